"""The clock of the machine that a compaction runs on is ahead: a unit that was written to just now is left for a later run, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome
from support.contexts import a_context
from support.desk import desk_by
from unit.commands.test_clocks_that_differ import Wrong

MINUTE_MS = 60_000


def compact(desk, ahead_ms, run="20260901t000000z-0000"):
    cluster = replace(desk.world.cluster, clock=Wrong(desk.world.clock, ahead_ms))
    return compact_swap(a_context(cluster, Selection(tables=(desk.table,)), run, Settings(min_quiet_ms=15 * MINUTE_MS)))


def told(result):
    """Of the one partition that is worth compacting: its outcome, and why."""
    [unit] = [unit for unit in result.tables[0].units if unit.name == "dt=1"]
    return unit.outcome, unit.why.code if unit.why else None


@pytest.fixture(params=[False, True], ids=["its first run", "compacted before"])
def desk(request):
    desk = desk_by(["dt"])
    if request.param:
        desk.append("dt=1", *"abcd")
        desk.compact()
    desk.append("dt=1", *"efgh")
    return desk


def test_what_was_written_just_now_is_left_for_a_later_run(desk):
    desk.world.add_file(f"{desk.live('dt=1')}/i.parquet", ["i"])
    before = desk.world.files.contents(desk.live("dt=1"))
    assert told(compact(desk, 120 * MINUTE_MS)) == (Outcome.RECENT, Code.RECENTLY_WRITTEN)
    assert desk.world.files.contents(desk.live("dt=1")) == before
    desk.world.wait(16 * MINUTE_MS)
    assert told(compact(desk, 120 * MINUTE_MS, "20260901t010000z-0000"))[0] is Outcome.SWAPPED


def test_so_it_is_by_a_clock_that_is_behind(desk):
    assert told(compact(desk, -120 * MINUTE_MS)) == (Outcome.RECENT, Code.RECENTLY_WRITTEN)


@pytest.mark.parametrize("minutes", [0, 5, 120])
def test_what_is_quiet_by_both_is_compacted(desk, minutes):
    assert told(compact(desk, minutes * MINUTE_MS))[0] is Outcome.SWAPPED


def test_a_kill_while_the_namenode_is_asked_leaves_nothing(desk):
    desk.settings = replace(desk.settings, min_quiet_ms=15 * MINUTE_MS)
    before = desk.world.files.contents(desk.live("dt=1"))
    desk.kill_before(["delete", "_orphan.json.part"], desk.compact)
    assert desk.world.files.contents(desk.live("dt=1")) == before
    assert told(desk.compact())[0] is Outcome.SWAPPED
    assert desk.control.new_mark not in desk.world.files.contents(desk.control.top)
