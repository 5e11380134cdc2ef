"""compact-swap with cleanup_after: two runs, so that a failing cleanup takes nothing from the compaction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.errors import Refused
from hivekeeper.plan import retention
from hivekeeper.ports import MetastoreUnavailable, RowsError
from hivekeeper.reasons import Code
from hivekeeper.report import screen
from hivekeeper.report.results import TableOutcome, code_of_tables
from support.builders import a_table
from support.desk import Desk, outcomes
from support.world import World

DAY_MS = 86_400_000
NIGHTS = 30
POLICIES = {
    "by age": {"keep_for_ms": 7 * DAY_MS},
    "by runs": {"keep_latest_runs": 3},
    "by versions": {"keep_latest_versions": 2},
    "all of them": {"keep_for_ms": 4 * DAY_MS, "keep_latest_runs": 2, "keep_latest_versions": 1},
}


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    return Desk(world, cleanup_after=True, min_age_ms=0, keep_for_ms=2 * DAY_MS)


def a_night(desk, number):
    """dt=1 gets new files every night, dt=2 every fourth."""
    desk.append("dt=1", f"a{number}", f"b{number}")
    if number % 4 == 0:
        desk.append("dt=2", f"c{number}", f"d{number}")
    desk.world.wait(DAY_MS)
    return desk.compact()


def standing(desk):
    return {(effect.run, effect.partition) for effect in desk.log().standing}


@pytest.mark.parametrize("policy", POLICIES)
def test_thirty_nights_leave_exactly_what_the_policy_says(policy):
    """Night after night, or judged once at the end from the whole log as if nothing had gone: the same stays."""
    rules = {"min_age_ms": DAY_MS, **POLICIES[policy]}
    left = {}
    for is_nightly in (True, False):
        world = World()
        world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
        desk = Desk(world, cleanup_after=is_nightly, **rules)
        for number in range(NIGHTS):
            assert a_night(desk, number).code is Exit.DONE
        rows = world.rows_of(desk.table)
        if not is_nightly:
            found = retention.judge_backups(desk.log(), Settings(**rules), world.clock.now_ms())
            left[is_nightly] = {(effect.run, effect.partition) for verdict in found for effect, _ in verdict.staying}
            assert len(left[is_nightly]) < len(standing(desk))
        else:
            left[is_nightly] = standing(desk)
        assert world.rows_of(desk.table) == rows
    assert left[True] == left[False]


def test_both_runs_are_logged_and_told(desk):
    a_night(desk, 1)
    for number in (2, 3):
        result = a_night(desk, number)
    (table,) = result.tables
    assert (result.code, outcomes(result)) == (Exit.DONE, {"dt=1": "swapped"})
    assert [one.state.code for one in table.backups] == ["discarded", "kept", "kept"]
    begin, end = desk.log().runs[-2:]
    assert (begin.operation, begin.finished, end.operation, end.finished) == ("cleanup", False, "cleanup", True)
    assert end.run == names.following_run_id(desk.runs[-1])
    told = screen.render(result)
    assert "sales.events: compacted 1 unit" in told
    assert "sales.events: discarded 1 of 3 backups" in told
    assert "kept as a whole: the last 2 runs, 1 day back" in told


def test_it_cleans_up_where_there_was_nothing_to_compact(desk):
    a_night(desk, 1)
    desk.world.wait(3 * DAY_MS)
    result = desk.compact()
    assert (outcomes(result), [one.state.code for one in result.tables[0].backups]) == ({}, ["discarded"])
    assert desk.run_directories() == []


def test_a_dry_run_tells_both_and_changes_nothing(desk):
    a_night(desk, 1)
    desk.world.wait(3 * DAY_MS)
    desk.append("dt=2", "x", "y")
    before = desk.world.picture()
    result = desk.compact(dry_run=True)
    assert (outcomes(result), [one.state.code for one in result.tables[0].backups]) == ({"dt=2": "planned"}, ["planned"])
    assert desk.world.picture() == before


def test_rules_that_contradict_each_other_are_refused_before_the_table_is_touched(desk):
    desk.settings = replace(desk.settings, min_age_ms=7 * DAY_MS)
    before = desk.world.picture()
    result = desk.compact()
    assert (result.code, result.tables[0].problem.code) == (Exit.USAGE, Code.WRONG_CONFIGURATION)
    assert "min_age keeps every backup younger than 7d" in screen.render(result)
    assert desk.world.picture() == before


def test_a_cleanup_that_fails_is_told_and_leaves_the_compaction_as_it_is(desk, monkeypatch):
    def fail(_context, _table):
        raise MetastoreUnavailable("timeout")

    monkeypatch.setattr(compact_swap, "clean_up_table", fail)
    result = a_night(desk, 1)
    (table,) = result.tables
    assert (result.code, table.code) == (Exit.PARTIAL, Exit.UNUSABLE)
    assert set(outcomes(result).values()) == {"swapped"}
    assert [run.operation for run in desk.log().runs] == ["compact-swap"]
    told = screen.render(result)
    assert "sales.events: compacted 2 units" in told
    assert "timeout" in told


def test_a_cleanup_that_is_refused_does_not_hide_a_unit_that_was_not_compacted(desk, monkeypatch):
    """Over a database a refused table is left alone without an error."""

    def refuse(_context, _table):
        raise Refused("another table has files here", code=Code.SHARED_DIRECTORY, next="move it")

    def fail(_batch):
        raise RowsError("the job fails")

    monkeypatch.setattr(compact_swap, "clean_up_table", refuse)
    monkeypatch.setattr(desk.world.rows, "read_stage", fail)
    (table,) = desk.compact().tables
    assert (table.problem.code, {unit.outcome.code for unit in table.units}) == (Code.SHARED_DIRECTORY, {"failed"})
    done = TableOutcome("sales.other")
    assert (table.code, table.is_left_alone, code_of_tables([table, done], named=False)) == (Exit.PARTIAL, False, Exit.PARTIAL)


def test_it_makes_room_where_there_is_none_to_compact(desk):
    a_night(desk, 1)
    desk.world.wait(3 * DAY_MS)
    desk.append("dt=1", "x", "y")
    namespace = desk.world.files.namespace
    namespace.space_bytes = namespace.used_bytes() + 20_000
    result = desk.compact()
    (table,) = result.tables
    assert (result.code, table.problem.code) == (Exit.PARTIAL, Code.NOT_ENOUGH_SPACE)
    assert [one.state.code for one in table.backups] == ["discarded"]
    assert "discarded 1 of 1 backup" in screen.render(result)
    assert not standing(desk)


def test_a_table_that_is_refused_keeps_its_backups(desk):
    a_night(desk, 1)
    desk.world.wait(3 * DAY_MS)
    table = desk.world.table(desk.table)
    desk.world.catalog.put_table(replace(table, parameters={**table.parameters, "hivekeeper.skip": "true"}))
    assert desk.compact().code is Exit.REFUSED
    assert standing(desk)


def test_after_a_failed_proof_nothing_is_discarded(desk):
    a_night(desk, 1)
    desk.world.wait(3 * DAY_MS)
    desk.append("dt=1", "x", "y")
    read_stage = desk.world.rows.read_stage
    desk.world.rows.read_stage = lambda batch: {
        number: replace(content, digest=replace(content.digest, low=content.digest.low + 1))
        for number, content in read_stage(batch).items()
    }
    result = desk.compact()
    assert (result.code, outcomes(result), result.tables[0].backups) == (Exit.DIFFERENT, {"dt=1": "differs"}, ())
    assert len(standing(desk)) == 2


def test_a_run_that_is_to_end_begins_no_cleanup(desk):
    a_night(desk, 1)
    desk.world.wait(3 * DAY_MS)
    desk.append("dt=1", "x", "y")
    real = desk.world.cluster.stopping

    class AsksAfterTheLog:
        """A signal that comes while the compaction is recorded."""

        signal = 0

        def why(self):
            return "SIGTERM" if self.is_asked() else ""

        def is_asked(self):
            return any(run.run == desk.runs[-1] for run in desk.log().runs)

        def __getattr__(self, name):
            return getattr(real, name)

    desk.world.cluster = replace(desk.world.cluster, stopping=AsksAfterTheLog())
    result = desk.compact()
    assert (outcomes(result), result.tables[0].backups) == ({"dt=1": "swapped"}, ())
    assert standing(desk)


def test_the_following_run_has_the_same_second_and_the_next_number():
    assert names.following_run_id("20260101t020304z-1f0c") == "20260101t020304z-1f0d"
    assert names.following_run_id("20260101t020304z-ffff") == "20260101t020304z-0000"
