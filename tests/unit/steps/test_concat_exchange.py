"""The rules of the exchange by concat, each with what happens without it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.config.settings import RunSettings
from hivekeeper.ports import NeverStops, RowsError
from hivekeeper.stop_conditions import LOOK_EVERY_MS, Watch
from support.desk import outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import ALL, a_desk, at, replace_one, rows, rows_by_file, survive


@pytest.fixture
def desk():
    return a_desk()


def test_small_files_become_one_and_the_others_stay(desk):
    large = desk.world.files.stat(f"{desk.live('dt=1')}/large.parquet")
    assert outcomes(desk.compact()) == {"dt=1": "swapped", "dt=2": "swapped"}
    (joined,) = rows_by_file(desk, "dt=1").keys() - {"large.parquet"}
    assert rows_by_file(desk, "dt=1")[joined] == tuple(ALL[:3])
    assert names.is_joined_name(joined, [f"part-0000{n}.parquet" for n in range(3)], desk.runs[0], 2)
    assert desk.world.files.stat(f"{desk.live('dt=1')}/large.parquet") == large
    assert len(rows_by_file(desk, "dt=2")) == 1
    assert desk.run_directories() == []


def test_a_marker_of_a_job_that_is_done_is_no_writer_and_stays(desk):
    """Spark leaves one in every table that it has written."""
    marker = f"{desk.live('dt=1')}/_SUCCESS"
    desk.world.mark_success(desk.live("dt=1"))
    desk.world.files.namespace.advance(3_600_000)
    assert outcomes(desk.compact())["dt=1"] == "swapped"
    assert outcomes(desk.verify())["dt=1"] == "verified"
    assert outcomes(desk.rollback())["dt=1"] == "rolled-back"
    assert desk.world.files.stat(marker) is not None
    assert rows(desk) == ALL


def test_a_hidden_file_that_somebody_writes_is_a_writer(desk):
    at(desk, ["rename_exact", "/ready/u00002"], lambda: desk.world.files.writer.open(f"{desk.live('dt=1')}/.part-9.parquet.crc", length=0))
    assert outcomes(desk.compact())["dt=1"] == "given-up"


def test_a_run_that_stalls_after_the_new_file_has_appeared_takes_it_away(desk):
    desk.world.clock.slowness_ms = 60
    assert set(outcomes(desk.compact()).values()) == {"put-back"}
    assert {name: found for name, found in rows_by_file(desk, "dt=1").items() if not found} == {}
    assert rows(desk) == ALL
    assert desk.run_directories() == []


def test_a_file_that_is_gone_ends_the_join_with_live_as_it_was(desk):
    at(desk, ["concat", "/dt=1/part"], lambda: desk.world.files.writer.delete(f"{desk.live('dt=1')}/part-00001.parquet"))
    assert outcomes(desk.compact())["dt=1"] == "not-swapped"
    assert rows(desk) == [row for row in ALL if row != "events/dt=1/1"]


def test_a_tail_that_somebody_deleted_ends_the_join(desk):
    tail = f"{desk.live('dt=1')}/{names.join_tail('20260101t020000z-0000', 2)}"
    at(desk, ["concat", "/dt=1/part"], lambda: desk.world.files.writer.delete(tail))
    assert outcomes(desk.compact())["dt=1"] == "not-swapped"
    assert rows(desk) == ALL
    assert all(found for found in rows_by_file(desk, "dt=1").values())


def test_a_strange_file_under_the_name_of_a_joined_one_is_left(desk):
    joined = f"{desk.live('dt=1')}/part-00001-20260101t020000z-0000-2.parquet"
    tail = f"{desk.live('dt=1')}/{names.join_tail('20260101t020000z-0000', 2)}"

    def put_another():
        length = desk.world.files.stat(joined).length
        desk.world.files.writer.delete(joined)
        desk.world.files.writer.delete(tail)
        desk.world.files.writer.add(joined, DataFile(("strange",)), length)

    at(desk, ["concat", "/dt=1/part"], put_another)
    assert outcomes(desk.compact())["dt=1"] == "not-swapped"
    assert rows(desk) == sorted([*ALL, "strange"])


def test_a_tail_that_somebody_deleted_in_an_outage_was_not_joined(desk):
    tail = f"{desk.live('dt=1')}/{names.join_tail('20260101t020000z-0000', 2)}"
    desk.kill_before(["rename_exact", "/ready/u00002/part"], desk.compact)
    desk.world.files.writer.delete(tail)
    assert desk.recover().code is Exit.DONE
    assert [effect.partition for effect in desk.log().effects] == ["dt=2"]
    assert rows(desk) == ALL
    assert desk.run_directories() == []


def test_a_joined_file_that_somebody_writes_to_is_left_and_known_as_overwritten(desk):
    joined = f"{desk.live('dt=1')}/part-00001-20260101t020000z-0000-2.parquet"

    def write():
        node = desk.world.files.writer.open(joined)
        node.length += 7
        desk.world.files.writer.close(node)

    desk.kill_before(["entry.json"], desk.compact)
    write()
    desk.recover()
    assert {unit.partition: unit.outcome.code for unit in desk.log().runs[-1].units} == {"dt=1": "overwritten", "dt=2": "swapped"}
    assert rows(desk) == ALL


@pytest.mark.parametrize(
    ("what", "of_source", "of_copy", "says"), [("replication", 5, 3, "5 copies"), ("block_size", 1 << 28, 1 << 27, "blocks of 268435456")]
)
def test_neither_copies_on_disk_are_lost_nor_larger_blocks_taken_in(desk, monkeypatch, what, of_source, of_copy, says):
    from support.fakes import files

    def info(path, node, given=files.info):
        is_source = path.endswith("part-00000.parquet") and "stage" not in path
        return given(path, node)._replace(**{what: of_source if is_source else of_copy})

    monkeypatch.setattr(files, "info", info)
    result = desk.compact()
    assert outcomes(result) == {"dt=1": "failed", "dt=2": "failed"}
    assert says in result.tables[0].units[0].why.what
    assert rows(desk) == ALL


@pytest.mark.parametrize(("spoilt", "outcome"), [("rows in the new file", "failed"), ("other rows in its tail", "put-back")])
def test_ends_that_are_not_as_planned_are_not_used(desk, spoilt, outcome, monkeypatch):
    def write_ends(self, _format, wanted):
        for ends in wanted.values():
            content = self._read(ends.file)
            first, last = (content, content) if "new file" in spoilt else (DataFile((), content.form), DataFile(("x",), content.form))
            self._put(ends.without_rows, first, 10)
            self._put(ends.own, last, 20)
        return {}

    monkeypatch.setattr(type(desk.world.rows), "write_ends", write_ends)
    assert set(outcomes(desk.compact()).values()) == {outcome}
    assert rows(desk) == ALL
    assert len(rows_by_file(desk, "dt=1")) == 4


@pytest.mark.parametrize("method", ["find_unlike", "write_ends"])
@pytest.mark.parametrize("is_whole_call", [False, True], ids=["its own", "the call"])
def test_files_that_could_not_be_made_ready_cost_their_own_join_and_a_call_that_fails_those_of_its_batch(desk, method, is_whole_call):
    given = getattr(desk.world.rows, method)

    def fail(format, wanted):
        if is_whole_call:
            raise RowsError("no memory")
        first = min(wanted)
        rest = given(format, {number: one for number, one in wanted.items() if number != first})
        return {**rest, first: "no memory"}

    setattr(desk.world.rows, method, fail)
    result = desk.compact()
    assert sorted(outcomes(result).values()) == ["failed", "failed" if is_whole_call else "swapped"]
    assert {unit.why.what for unit in result.tables[0].units if unit.why} == {"no memory"}
    assert rows(desk) == ALL
    assert desk.run_directories() == []


@pytest.mark.parametrize("method", ["find_unlike", "write_ends", "footers"])
def test_a_call_for_a_batch_that_fails_once_costs_no_join(desk, method):
    """It says nothing of a single set, so the batch is halved like one whose job fails."""
    fake, asked = desk.world.rows, []
    given, unlike = getattr(fake, method), fake.find_unlike

    def fail_once(format, wanted, *more):
        asked.append(sorted(wanted))
        if len(asked) == 1:
            raise RowsError("no memory")
        return given(format, wanted, *more)

    def find_unlike(format, sets):
        """Footers are read before this, too."""
        setattr(fake, method, fail_once)
        return (fail_once if method == "find_unlike" else unlike)(format, sets)

    fake.find_unlike = find_unlike
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert asked[0] == [1, 2]
    assert rows(desk) == ALL
    assert desk.run_directories() == []


def steps_of(desk):
    before = desk.world.files.steps
    desk.compact()
    return desk.world.files.steps - before


def fresh():
    desk = a_desk()
    desk.world.files.writer.delete(f"{desk.live('dt=1')}/large.parquet")
    desk.world.files.namespace.advance(3_600_000)
    return desk


STEPS = steps_of(fresh())
STOP = "hdfs://nn/ops/stop"


@pytest.mark.parametrize("more", range(14))
def test_a_run_that_leaves_its_units_and_is_killed_then_is_known_to_have_joined_none(more):
    desk = fresh()
    world = desk.world
    world.cluster = replace(world.cluster, stopping=Watch(world.cluster, RunSettings(stop_file=STOP)))

    def stop():
        world.files.writer.add(STOP, "")
        world.clock.elapsed_ms += LOOK_EVERY_MS
        world.files.die_after(more)

    at(desk, ["rename_exact", "certificates-1.jsonl"], stop)
    with suppress(Killed):
        desk.compact()
    survive(desk)
    world.files.writer.delete(STOP)
    world.cluster = replace(world.cluster, stopping=NeverStops())
    assert desk.recover().code is Exit.DONE
    recorded = desk.log().runs
    assert {unit.outcome.code for run in recorded for unit in run.units} <= {"left", "not-swapped"}
    assert [effect for run in recorded for effect in run.effects] == []
    assert rows(desk) == ALL[:3]
    assert desk.run_directories() == []


@pytest.mark.repeating
@pytest.mark.parametrize("interrupted", [False, True], ids=["undisturbed", "with a file replaced"])
@pytest.mark.parametrize("step", range(STEPS))
def test_a_run_that_is_killed_anywhere_is_settled_by_the_next(step, interrupted):
    desk = fresh()
    if interrupted:
        at(desk, ["concat", "/dt=1/part"], lambda: replace_one(desk))
    desk.world.files.die_after(step)
    with suppress(Killed):
        desk.compact()
    survive(desk)
    assert desk.recover().code is Exit.DONE
    expected = ALL[:3] if "new" not in rows(desk) else [ALL[0], ALL[2], "new"]
    assert rows(desk) == sorted(expected)
    assert rows(desk, "dt=2") == [f"events/dt=2/{n}" for n in range(4)]
    assert all(found for unit in ("dt=1", "dt=2") for found in rows_by_file(desk, unit).values())
    assert desk.run_directories() == []
    joined = [unit for unit in ("dt=1", "dt=2") if len(rows_by_file(desk, unit)) == 1]
    assert sorted(effect.partition for effect in desk.log().effects) == joined
    assert {unit.outcome.code for run in desk.log().runs for unit in run.units} <= {"swapped", "not-swapped", "put-back", "given-up"}
    desk.recover()
    assert desk.compact().code is Exit.DONE
    assert rows(desk) == sorted(expected)
