"""A stalled run, or a run killed while it held another run's backup, must not block the next run."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.model import Content
from hivekeeper.names import RunId
from hivekeeper.ports import FilesUnavailable, RowsError
from hivekeeper.reasons import Code
from hivekeeper.runlog.run_files import ROLLBACK, RunPlan
from hivekeeper.steps import run_directory
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import at, survive
from support.records import plan_to_text
from support.world import World


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    desk = Desk(world)
    desk.compact()
    return desk


def test_a_run_directory_stays_while_an_unfinished_run_may_have_to_give_its_backup_back(desk):
    rows, first = desk.world.rows_of(desk.table), desk.runs[0]
    desk.kill_before(["rename_exact", desk.live("dt=1"), "/retired/"], lambda: desk.rollback(where="dt = '1'"))
    desk.world.files.writer.delete(desk.control.run(first).unit("retired", 2))
    sleeper = "20250101t000000z-0000"
    plan = RunPlan(sleeper, ROLLBACK, desk.world.catalog.tables[desk.table], ())
    desk.world.files.writer.add(desk.control.run(sleeper).plan, plan_to_text(plan, 1))

    assert desk.recover().code is Exit.DONE

    assert desk.world.rows_of(desk.table) == rows
    assert len(desk.world.files.contents(desk.control.run(first).unit("retired", 1))) == 3


def test_a_backup_that_comes_back_while_its_directory_is_swept_is_not_deleted(desk):
    """The sweeping run stalls between its look and its deletion; meanwhile the run that took over restores a backup."""
    first = desk.control.run(desk.runs[0])
    for number in (1, 2):
        desk.world.files.writer.delete(first.unit("retired", number))
    come_back = names.join(first.unit("retired", 1), "part-00000.parquet")
    at(desk, ["remove_empty", first.state("retired")], lambda: desk.world.files.writer.add(come_back, DataFile(("old",))))
    desk.recover()
    assert come_back in desk.world.picture()
    assert first.plan in desk.world.picture()


@pytest.mark.parametrize("command", ["pin", "backup", "rollback", "cleanup"])
def test_a_run_that_sleeps_while_it_makes_its_directories_writes_nothing(desk, command):
    first, other = desk.runs[0], desk.world.another_process()
    log = desk.log().next_version

    def take_over():
        desk.world.files.expire_locks()
        assert desk.compact(cluster=other).code is Exit.DONE

    at(desk, ["make_directory", "/runs/"], take_over)
    result = desk.pin(first) if command == "pin" else getattr(desk, command)()
    assert result.code is Exit.LOCKED
    assert desk.log().next_version == log
    assert not [path for path in desk.world.picture() if path.endswith("plan.json") and first not in path]


@pytest.mark.parametrize("step", ["/ready/u00001", "/plan.json"])
def test_a_run_that_slept_through_a_takeover_and_cannot_ask_for_its_lock_says_that_it_was_taken_over(desk, step):
    """The connection from the lock's file to its DataNode times out before the lease is requested."""
    for nth in range(2):
        desk.world.add_file(f"{desk.live('dt=1')}/more{nth}.parquet", [f"more{nth}"])
    desk.world.files.namespace.advance(3_600_000)
    other = desk.world.another_process()

    def take_over():
        desk.world.files.expire_locks()
        assert desk.compact(cluster=other, where="dt = '2'").code is Exit.DONE
        desk.world.files.fail_next("check", FilesUnavailable("the connection was lost"))

    at(desk, ["rename_exact", step], take_over)
    assert desk.compact().code is Exit.LOCKED
    assert desk.recover().code is Exit.DONE


@pytest.mark.parametrize("failed", [RowsError("executors were lost"), "its output is gone"], ids=["job", "unit"])
@pytest.mark.parametrize("is_logged", [True, False], ids=["logged by the other run", "not yet logged"])
def test_a_run_that_was_taken_over_writes_no_entry_although_its_executors_re_created_its_directory(failed, is_logged):
    """Else the log would name backups where they no longer are: they could not be rolled back, and cleanup would never find them."""
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    desk, other = Desk(world, batch_units=1), world.another_process()
    write_stage, before = world.rows.write_stage, world.rows_below(desk.live("dt=1"))

    def stall(batch):
        if not batch.target.endswith("/b00002"):
            return write_stage(batch)
        world.files.expire_locks()
        if not is_logged:
            other.files.before_step = lambda what: other.files.die_after(0) if "rename_exact" in what and "/log/" in what else None
        with nullcontext() if is_logged else pytest.raises(Killed):
            desk.recover(cluster=other)
        world.files.writer.make_directory(batch.target)
        if isinstance(failed, RowsError):
            raise failed
        return {unit.number: Content(failed=failed) for unit in batch.units}

    world.rows.write_stage = stall
    (table,) = desk.compact().tables
    assert table.problem.code is Code.RUN_TAKEN_OVER
    world.files.expire_locks()
    assert desk.recover().code is Exit.DONE
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert set(world.files.contents(desk.live("dt=1")).values()) == {DataFile((row,)) for row in before}


def test_a_backup_that_was_taken_over_after_its_plan_makes_no_table(desk, monkeypatch):
    other, write_plan, tables = desk.world.another_process(), run_directory.write_plan, desk.world.tables().keys()

    def then_stall(run, plan):
        write_plan(run, plan)
        desk.world.files.expire_locks()
        assert desk.recover(cluster=other).code is Exit.DONE

    monkeypatch.setattr(run_directory, "write_plan", then_stall)
    assert desk.backup().code is Exit.LOCKED
    assert desk.world.tables().keys() == tables
    assert desk.log().next_version == 1


def test_a_backup_that_was_taken_over_while_it_makes_its_table_is_not_in_the_log(desk):
    """The table's directory re-creates that of the run, whose plan the other run has removed."""
    other = desk.world.another_process()

    def take_over():
        desk.world.files.expire_locks()
        assert desk.recover(cluster=other).code is Exit.DONE

    def once_planned(_what):
        if any(path.endswith("/plan.json") and desk.runs[-1] in path for path in desk.world.picture()):
            desk.world.files.before_step = None
            take_over()

    desk.world.files.before_step = once_planned
    assert desk.backup().code is Exit.LOCKED
    assert desk.log().next_version == 1
    assert desk.recover().code is Exit.DONE
    assert desk.run_directories() == [desk.runs[0]]


def test_what_a_run_stages_after_it_was_taken_over_is_swept_away(desk):
    """It re-creates its directory, without a plan, and comes as far as its certificates."""
    for nth in range(2):
        desk.world.add_file(f"{desk.live('dt=1')}/more{nth}.parquet", [f"more{nth}"])
    desk.world.files.namespace.advance(3_600_000)
    other, finished = desk.world.another_process(), len(desk.runs)

    def take_over():
        desk.world.files.expire_locks()
        assert desk.compact(cluster=other, where="dt = '2'").code is Exit.DONE

    at(desk, ["make_directory", "/stage/b00001"], take_over)
    assert desk.compact().code is Exit.LOCKED
    sleeper = desk.control.run(desk.runs[finished])
    assert {sleeper.certificates(1), sleeper.plan} & desk.world.picture().keys() == {sleeper.certificates(1)}
    assert desk.recover().code is Exit.DONE
    assert not [path for path in desk.world.picture() if path.startswith(sleeper.top)]


def test_a_directory_without_a_plan_that_holds_more_than_a_stage_keeps_every_file(desk):
    strange = desk.control.run(RunId("20250101t000000z-0000"))
    held = [
        strange.certificates(1),
        names.join(strange.staged(1, 1), "part-0.parquet"),
        names.join(strange.unit("retired", 1), "a.parquet"),
    ]
    for path in held:
        desk.world.files.writer.add(path, DataFile(("row",)))
    (outcome,) = desk.recover().tables
    assert outcome.code is Exit.INVESTIGATE
    kept = [path.rpartition("/")[2] for path in desk.world.picture() if "20250101t000000z-0000" in path]
    assert sorted(kept) == ["a.parquet", "certificates-1.jsonl", "part-0.parquet"]


def sweep(desk, batch):
    desk.world.files.expire_locks()
    desk.world.files.writer.delete(batch.target)


def take_directory(desk, batch):
    """By a run that has stalled since it found it, and has lost its own lock: this one's is held."""
    top = batch.target.partition("/stage/")[0]
    desk.world.files.writer.rename_into(top, f"{top}.t1")


@pytest.mark.parametrize("act", [sweep, take_directory])
def test_a_stage_that_another_run_swept_away_is_no_failed_proof(desk, act):
    for nth in range(2):
        desk.world.add_file(f"{desk.live('dt=1')}/more{nth}.parquet", [f"more{nth}"])
    desk.world.files.namespace.advance(3_600_000)
    read_stage = desk.world.rows.read_stage

    def swept_after(batch):
        written = read_stage(batch)
        act(desk, batch)
        return written

    desk.world.rows.read_stage = swept_after
    assert desk.compact().code is Exit.LOCKED


def test_a_late_file_reaches_live_although_somebody_removed_the_marker_meanwhile(desk):
    live = desk.live("dt=1")
    for nth in range(2):
        desk.world.add_file(f"{live}/more{nth}.parquet", [f"more{nth}"])
    desk.world.mark_success(live)
    desk.world.files.namespace.advance(3_600_000)
    late = f"{live}/late.parquet"
    at(desk, ["rename_exact", f"{live} ", "/retired/"], lambda: desk.world.files.writer.add(late, DataFile(("late",)), 10))
    before = desk.world.rows_of(desk.table)
    with pytest.raises(Killed):
        step = desk.world.files.before_step

        def die_before_carrying(what):
            if step is not None and desk.world.files.namespace.find(late) is None:
                step(what)
                desk.world.files.before_step = die_before_carrying
            if "/late.parquet" in what:
                desk.world.files.die_after(0)

        desk.world.files.before_step = die_before_carrying
        desk.compact()
    survive(desk)
    desk.world.files.writer.delete(f"{live}/_SUCCESS")
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == {**before, "late": 1}


def test_hives_own_lock_is_held_while_a_rollback_exchanges_live(desk):
    held = []
    at(desk, ["rename_exact", f"{desk.live('dt=1')} ", "/retired/"], lambda: held.append(set(desk.world.catalog.locked)))
    assert set(outcomes(desk.rollback()).values()) == {"rolled-back"}
    assert held == [{desk.table}]
    assert desk.world.catalog.locked == set()


def lose_lock_before(desk, words):
    """Somebody recovers the lease just before this step, and nobody takes the table over: no directory shows it."""
    at(desk, words, desk.world.files.expire_locks)


def is_there(desk, state, number, run):
    directory = next(name for name in desk.run_directories() if name.startswith(desk.runs[run]))
    return desk.world.files.stat(desk.control.run(directory).unit(state, number)) is not None


def test_a_recovery_that_loses_the_lock_touches_no_further_unit(desk):
    desk.kill_before(["rename_exact", "/restoring/u00001 ", desk.live("dt=1")], desk.rollback)
    first, undoing = (desk.control.run(run) for run in desk.runs)
    desk.world.files.writer.rename_into(first.unit("retired", 2), undoing.unit("restoring", 2))
    lose_lock_before(desk, ["rename_exact", "/restoring/u00001 ", desk.live("dt=1")])
    assert desk.recover().code is Exit.LOCKED
    assert is_there(desk, "restoring", 2, run=1)


def test_a_rollback_that_loses_the_lock_claims_no_further_backup(desk):
    lose_lock_before(desk, ["rename_exact", "/restoring/u00001 ", desk.live("dt=1")])
    assert desk.rollback().code is Exit.LOCKED
    assert is_there(desk, "retired", 2, run=0)


def test_a_cleanup_that_loses_the_lock_discards_no_further_backup(desk):
    lose_lock_before(desk, ["delete_tree", "/discarding/u00001"])
    assert desk.cleanup().code is Exit.LOCKED
    assert is_there(desk, "retired", 2, run=0)
