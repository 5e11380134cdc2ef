"""compact-swap with cleanup_after: two runs, so that a failing cleanup takes nothing from the compaction."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.errors import NeedsInvestigation, Refused
from hivekeeper.model import Selection
from hivekeeper.names import ControlPaths
from hivekeeper.plan import retention
from hivekeeper.ports import MetastoreUnavailable, RowsError
from hivekeeper.reasons import Code
from hivekeeper.report import screen
from hivekeeper.report.results import TableOutcome, code_of_tables
from hivekeeper.runlog import store
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.fakes.files import Killed
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


@pytest.mark.repeating
@pytest.mark.parametrize("policy", POLICIES)
def test_thirty_nights_leave_exactly_what_the_policy_says(policy):
    """Night after night, or judged once at the end from the whole log as if nothing had gone: the same stays."""
    rules = {"min_age_ms": DAY_MS, **POLICIES[policy]}
    policy_of_all = Settings(**rules)
    left = {}
    for is_nightly in (True, False):
        world = World()
        world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
        desk = Desk(world, cleanup_after=is_nightly, **rules)
        for number in range(NIGHTS):
            assert a_night(desk, number).code is Exit.DONE
        rows = world.rows_of(desk.table)
        if not is_nightly:
            found = retention.judge_backups(desk.log(), lambda _: policy_of_all, world.clock.now_ms())
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
    def fail(_context, _table, **_):
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

    def refuse(_context, _table, **_):
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


@pytest.mark.parametrize("beside", [False, True])
def test_what_it_finds_is_told_although_there_was_no_room_to_compact(desk, monkeypatch, beside):
    def investigate(_context, _table, **_):
        raise NeedsInvestigation("a part of its backup was deleted", code=Code.BACKUP_HALF_DELETED, next="compare")

    a_night(desk, 1)
    desk.append("dt=1", "x", "y")
    desk.settings = replace(desk.settings, cleanup_beside=beside)
    desk.world.files.namespace.space_bytes = desk.world.files.namespace.used_bytes() + 20_000
    monkeypatch.setattr(compact_swap, "clean_up_table", investigate)
    result = desk.compact()
    (table,) = result.tables
    assert (table.code, table.problem.next) == (Exit.INVESTIGATE, "compare")
    assert "[not-enough-space]" in screen.render(result)


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


# ---- beside the next table


TABLES = ("sales.events", "sales.more")


def two_tables(**rules):
    """Two tables with a backup each that may go, and something to compact in both."""
    world = World()
    for name in ("events", "more"):
        world.add_table(a_table(["dt"], name=name), {"dt=1": [1000] * 3})
    settings = Settings(min_quiet_ms=0, min_age_ms=0, keep_for_ms=2 * DAY_MS, cleanup_after=True, **rules)
    for number in (1, 2):
        run_both(world, settings, f"2026010{number}t020304z-0000")
        world.wait(3 * DAY_MS)
        for name in TABLES:
            for row in "xy":
                world.add_file(f"{world.table(name).location}/dt=1/{number}{row}.parquet", [f"{name} {number}{row}"])
        world.files.namespace.advance(3_600_000)
    return world, settings


def run_both(world, settings, run="20260109t020304z-0000", cluster=None):
    return compact_swap.compact_swap(a_context(cluster or world.cluster, Selection(tables=TABLES), run, settings))


def left_in(world, name):
    table = world.table(name)
    history = store.read_history(world.cluster, ControlPaths.of(table.location, True))
    return [(run.run, run.operation, run.finished) for run in history.runs], {effect.run for effect in history.standing}


def test_a_cleanup_beside_the_next_table_leaves_what_one_in_between_leaves():
    (one, settings), (other, beside) = two_tables(), two_tables(cleanup_beside=True)
    results = [run_both(one, settings), run_both(other, beside)]
    for name in TABLES:
        assert left_in(one, name) == left_in(other, name)
        assert one.rows_of(name) == other.rows_of(name)
    told = [[(table.table, table.code, [backup.state.code for backup in table.backups]) for table in result.tables] for result in results]
    assert told[0] == told[1]
    assert [states for _, _, states in told[1]] == [["discarded", "kept"]] * 2
    assert all("discard" in table.spent for table in results[1].tables)


def test_the_cleanup_runs_while_the_next_table_is_copied_and_the_last_one_at_the_end():
    world, settings = two_tables(cleanup_beside=True)
    steps = []
    world.files.before_step = steps.append
    run_both(world, settings)

    def first(*words):
        return next(number for number, step in enumerate(steps) if all(word in step for word in words))

    staging = first("make_directory", "/more/", "/stage/b00001")
    assert staging < first("rename_exact", "/events/", "/held/") < first("put", "/more/") < first("rename_exact", "/more/", "/held/")
    last_entry = max(
        number
        for number, step in enumerate(steps)
        if "rename_exact" in step and "/more/" in step and "/held/" not in step and "/retired" in step
    )
    assert last_entry < first("rename_exact", "/more/", "/held/")


@pytest.mark.repeating
def test_killed_at_any_step_beside_no_row_is_lost_and_the_next_run_ends_both():
    world, settings = two_tables(cleanup_beside=True)
    rows = {name: world.rows_of(name) for name in TABLES}
    before = world.files.steps
    run_both(world, settings)
    steps = world.files.steps - before
    for step in range(0, steps, 5):
        world, settings = two_tables(cleanup_beside=True)
        world.files.die_after(step)
        with suppress(Killed):
            run_both(world, settings)
        world.files.revive()
        world.files.expire_locks()
        assert run_both(world, settings, "20260110t020304z-0000").code is Exit.DONE
        for name in TABLES:
            assert world.rows_of(name) == rows[name]
            runs, standing_runs = left_in(world, name)
            assert all(finished for run, _, finished in runs[-1:])
            assert "20260102t020304z-0000" not in standing_runs or step < 3


def test_a_cleanup_that_fails_beside_is_told_with_its_own_table(monkeypatch):
    world, settings = two_tables(cleanup_beside=True)
    clean_up_table = compact_swap.clean_up_table

    def fail(context, table, **more):
        if table.name == "events":
            raise MetastoreUnavailable("timeout")
        return clean_up_table(context, table, **more)

    monkeypatch.setattr(compact_swap, "clean_up_table", fail)
    first, second = run_both(world, settings).tables
    assert (first.code, second.code) == (Exit.UNUSABLE, Exit.DONE)
    assert "cleanup after the compaction: sales.events: timeout" in first.problem.what
    assert {unit.outcome.code for table in (first, second) for unit in table.units} == {"swapped"}


def test_a_copy_that_fails_takes_nothing_from_the_cleanup_beside_it(monkeypatch):
    world, settings = two_tables(cleanup_beside=True)

    def fail(_batch):
        raise RowsError("the job fails")

    write_stage = world.rows.write_stage
    monkeypatch.setattr(world.rows, "write_stage", lambda batch: fail(batch) if "/more/" in batch.target else write_stage(batch))
    first, second = run_both(world, settings).tables
    assert (first.code, [backup.state.code for backup in first.backups]) == (Exit.DONE, ["discarded", "kept"])
    assert {unit.outcome.code for unit in second.units} == {"failed"}


def test_a_command_that_is_to_end_begins_no_cleanup_that_waits():
    world, settings = two_tables(cleanup_beside=True)

    class AsksInTheSecondTable:
        signal, is_limited = 15, False

        def why(self):
            return "SIGTERM" if self.is_asked() else ""

        def is_asked(self):
            return len(left_in(world, "sales.more")[0]) > 4

        def at_once(self):
            return nullcontext()

    standing_before = left_in(world, "sales.more")[1]
    run_both(world, settings, cluster=replace(world.cluster, stopping=AsksInTheSecondTable()))
    assert standing_before < left_in(world, "sales.more")[1]
