"""What a run, or the recovery of one, has found is told by no later command: so it must not be lost where a step after the log entry fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import backup, compact_swap, recover, rollback
from hivekeeper.model import Selection
from hivekeeper.ports import FilesUnavailable
from hivekeeper.report import screen
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.fakes.files import Killed
from support.world import World

MIB = 2**20
COMMANDS = {
    "compact-swap": compact_swap.compact_swap,
    "backup": backup.back_up,
    "recover": recover.recover,
    "rollback": rollback.rollback,
}


def a_world():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3, "dt=2": [MIB] * 3})
    world.add_table(a_table(name="healthy", location="hdfs://nn/warehouse/sales.db/healthy"), {"": [200 * MIB]})
    return world


@pytest.fixture
def killed():
    """As tests/unit/commands/test_recovered_and_refused.py: a partition was dropped while a killed run had it in its gap."""
    world = a_world()
    desk = Desk(world)
    desk.compact(where="dt = '2'")
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    gone = [name for name, one in world.catalog.partitions[desk.table].items() if world.files.namespace.find(one.location) is None]
    assert len(gone) == 1
    world.catalog.drop_partition(desk.table, gone[0])
    return desk


def run_on_database(desk, command):
    selected = Selection(databases=("sales",))
    return COMMANDS[command](a_context(desk.world.cluster, selected, desk._new_run(), desk.settings))


def fail_after_entry(files, error):
    """All listings fail from the moment on in which a log entry got its number, as while a NameNode fails over."""
    look, stepped = files.look, files.stepped
    state = {"down": False}

    def see(what):
        stepped(what)
        if what.startswith("rename_exact") and "/entry.json " in what and "/log/" in what:
            state["down"] = True

    def listing(*args, **more):
        if state["down"]:
            raise error
        return look(*args, **more)

    files.stepped, files.look = see, listing

    def heal():
        files.stepped, files.look = stepped, look

    return state, heal


def told(result, desk, outcome):
    (table,) = [one for one in result.tables if one.table == desk.table]
    of_units = [unit for unit in table.units if unit.outcome is outcome]
    return bool(of_units) or any(outcome in counts for _, counts in table.recovered)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_what_a_recovery_found_is_told_though_hdfs_fails_over_just_after_its_log_entry(killed, command):
    desk = killed
    state, heal = fail_after_entry(desk.world.files, FilesUnavailable("connection reset"))
    first = run_on_database(desk, command)
    assert state["down"]
    heal()
    desk.world.files.expire_locks()
    second = run_on_database(desk, command)
    some = told(first, desk, Outcome.DROPPED_MEANWHILE) or told(second, desk, Outcome.DROPPED_MEANWHILE)
    assert some, f"{screen.render(first)}\n-----\n{int(second.code)}\n{screen.render(second)}"


def move_in_gap(desk):
    """ALTER TABLE … PARTITION (dt='1') SET LOCATION, while a run has it in its gap."""
    world = desk.world
    elsewhere = "hdfs://nn/elsewhere/dt=1"
    world.files.writer.make_directory(elsewhere)

    def act(what):
        if what.startswith("rename_exact") and "/ready/u0000" in what and "dt=1" in what:
            places = world.catalog.partitions[desk.table]
            places["dt=1"] = replace(places["dt=1"], location=elsewhere)

    world.files.before_step = act


def a_run_that_loses_its_answer(error):
    desk = Desk(a_world())
    move_in_gap(desk)
    state, heal = fail_after_entry(desk.world.files, error)
    first = run_on_database(desk, "compact-swap")
    desk.world.files.before_step = None
    assert state["down"]
    heal()
    desk.world.files.expire_locks()
    return desk, first


def test_without_a_failure_the_run_says_that_readers_miss_rows():
    desk = Desk(a_world())
    move_in_gap(desk)
    result = run_on_database(desk, "compact-swap")
    assert told(result, desk, Outcome.MISPLACED), screen.render(result)
    assert result.code is Exit.INVESTIGATE


def test_what_a_run_has_done_itself_is_told_though_hdfs_fails_over_just_after_its_log_entry():
    desk, first = a_run_that_loses_its_answer(FilesUnavailable("connection reset"))
    later = [run_on_database(desk, "recover"), run_on_database(desk, "compact-swap")]
    assert [run.operation for run in desk.log().runs][:1] == ["compact-swap"]
    some = [result for result in (first, *later) if told(result, desk, Outcome.MISPLACED) or result.code is Exit.INVESTIGATE]
    assert some, "\n-----\n".join(f"{int(result.code)} {screen.render(result)}" for result in (first, *later))


def a_later_table(world):
    world.add_table(a_table(name="later", location="hdfs://nn/warehouse/sales.db/later"), {"": [MIB] * 3})


def kill_in_later_table(desk):
    desk.kill_before(["put", "later"], lambda: run_on_database(desk, "compact-swap"))


def test_what_a_recovery_found_is_told_though_the_command_is_killed_at_a_later_table(killed):
    """A command over a database tells everything at its end, perhaps hours after the log of the first table had it."""
    desk = killed
    a_later_table(desk.world)
    kill_in_later_table(desk)
    later = [run_on_database(desk, "recover"), run_on_database(desk, "compact-swap")]
    some = [result for result in later if told(result, desk, Outcome.DROPPED_MEANWHILE) or result.code is not Exit.DONE]
    assert some, "\n-----\n".join(f"{int(result.code)} {screen.render(result)}" for result in later)


def test_what_a_run_has_done_itself_is_told_though_the_command_is_killed_at_a_later_table():
    desk = Desk(a_world())
    a_later_table(desk.world)
    move_in_gap(desk)
    act = desk.world.files.before_step

    def die(what):
        act(what)
        if what.startswith("put") and "later" in what:
            desk.world.files.die_after(0)

    desk.world.files.before_step = die
    with pytest.raises(Killed):
        run_on_database(desk, "compact-swap")
    desk.world.files.before_step = None
    desk.world.files.revive()
    desk.world.files.expire_locks()
    assert [unit.outcome for unit in desk.log().runs[0].units if unit.partition == "dt=1"] == [Outcome.MISPLACED]
    later = [run_on_database(desk, "recover"), run_on_database(desk, "compact-swap")]
    some = [result for result in later if told(result, desk, Outcome.MISPLACED) or result.code is Exit.INVESTIGATE]
    assert some, "\n-----\n".join(f"{int(result.code)} {screen.render(result)}" for result in later)
