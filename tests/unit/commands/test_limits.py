"""How much of a table one run does, and what its answer says about the rest."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.config.settings import RunSettings
from hivekeeper.report import document, properties, screen
from hivekeeper.stop_conditions import LOOK_EVERY_MS, Watch
from support.builders import a_table
from support.desk import Desk, outcomes
from support.world import World


def table_of(units):
    world = World()
    world.add_table(a_table(["dt"]), units)
    return Desk(world)


def test_max_bytes_takes_the_most_profitable_that_fit_and_the_next_runs_take_the_rest():
    desk = table_of({"dt=1": [1000] * 4, "dt=2": [1000] * 6, "dt=3": [1000] * 2})
    desk.settings = replace(desk.settings, max_bytes=8000)
    first, second = desk.compact(), desk.compact()
    assert [outcomes(result) for result in (first, second)] == [{"dt=2": "swapped", "dt=3": "swapped"}, {"dt=1": "swapped"}]
    assert [result.code for result in (first, second)] == [Exit.DONE, Exit.DONE]


def test_where_no_unit_is_as_small_as_max_bytes_the_log_says_so(caplog):
    desk = table_of({"dt=1": [1000] * 4})
    desk.settings = replace(desk.settings, max_bytes=3999)
    assert (desk.compact().code, outcomes(desk.compact())) == (Exit.DONE, {})
    assert "no unit that is fit is as small as max_bytes" in caplog.text


@pytest.fixture
def stopped():
    """The time is up after one of three units."""
    desk = table_of({f"dt={day}": [1000] * 3 for day in (1, 2, 3)})
    world = desk.world

    def pass_time(what):
        if "retired/u00001" in what:
            world.clock.elapsed_ms += 60_000 + LOOK_EVERY_MS

    world.files.before_step = pass_time
    world.cluster = replace(world.cluster, stopping=Watch(world.cluster, RunSettings(max_duration_ms=60_000)))
    return desk.compact()


def test_the_text_says_what_is_left_and_why(stopped):
    lines = screen.render(stopped).splitlines()
    told = "left: max_duration is over (1m) [stop-asked] — run again; live is as it was"
    assert [line for line in lines if ": left: " in line] == [f"  sales.events/dt=2: {told}", f"  sales.events/dt=3: {told}"]
    assert lines[0].startswith("sales.events: compacted 1 unit")


def test_the_document_says_what_is_left_and_why(stopped):
    read = json.loads(document.to_json(document.build(stopped)))
    units = {unit["partition"]: (unit["outcome"], unit["reason"]) for unit in read["tables"][0]["units"]}
    left = ("left", "max_duration is over (1m)")
    assert units == {"dt=1": ("swapped", ""), "dt=2": left, "dt=3": left}
    assert (read["exit_code"], read["signal"]) == (6, 0)


def test_the_properties_say_what_is_left_and_why(stopped):
    read = dict(line.partition("=")[::2] for line in properties.render(stopped).splitlines())
    told = {name: read[f"hivekeeper.{name}"] for name in ("exit_code", "retry", "units_done", "units_left", "error")}
    error = "sales.events/dt=2: left: max_duration is over (1m)"
    assert told == {"exit_code": "6", "retry": "later", "units_done": "1", "units_left": "2", "error": error}


def test_a_signal_is_the_exit_code_whatever_was_done(stopped):
    by_signal = replace(stopped, signal=15)
    read = dict(line.partition("=")[::2] for line in properties.render(by_signal).splitlines())
    assert (by_signal.exit_code, document.build(by_signal)["exit_code"], read["hivekeeper.exit_code"]) == (143, 143, "143")
    assert (read["hivekeeper.meaning"], read["hivekeeper.retry"]) == ("stopped", "later")


def test_a_run_that_has_done_all_is_not_kept_by_a_pause_at_its_end(caplog):
    caplog.set_level("INFO")
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk, pause = Desk(world), "hdfs://nn/ops/pause"

    def pause_after_the_swap(what):
        if what.startswith("metastore.update_sizes"):
            world.files.writer.add(pause, "")
            world.clock.elapsed_ms += 2 * LOOK_EVERY_MS

    world.files.before_step = pause_after_the_swap
    watch = Watch(world.cluster, RunSettings(max_duration_ms=3_600_000, pause_file=pause))
    result = desk.compact(cluster=replace(world.cluster, stopping=watch))
    assert outcomes(result) == {"dt=1": "swapped"}
    assert "step=pause" not in caplog.text
    assert watch.is_asked()
