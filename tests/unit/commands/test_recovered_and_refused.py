"""What a run, or the recovery of an interrupted one, has found is told, also if the command then leaves the table alone or fails in it: no
later one tells it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import backup, compact_swap, recover, rollback
from hivekeeper.model import Selection
from hivekeeper.ports import FilesUnavailable
from hivekeeper.report import screen
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
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
def desk():
    """MSCK REPAIR TABLE … SYNC PARTITIONS, while a killed run had the partition in its gap: its rows are at their place again, and no
    reader sees them.
    """
    world = a_world()
    desk = Desk(world)
    desk.run_key = "monday"
    desk.compact(where="dt = '2'")
    desk.run_key = ""
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    gone = [name for name, one in world.catalog.partitions[desk.table].items() if world.files.namespace.find(one.location) is None]
    assert len(gone) == 1
    world.catalog.drop_partition(desk.table, gone[0])
    return desk


def run_on_database(desk, command, run_key=""):
    selected = Selection(databases=("sales",))
    return COMMANDS[command](a_context(desk.world.cluster, selected, desk._new_run(), desk.settings, run_key=run_key))


def require_told(result, desk):
    (table,) = [one for one in result.tables if one.table == desk.table]
    told = [counts.get(Outcome.MISPLACED) for _, counts in table.recovered]
    assert (result.code, told) == (Exit.INVESTIGATE, [1]), screen.render(result)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_partition_that_readers_miss_since_an_outage_is_told(desk, command):
    require_told(run_on_database(desk, command), desk)


@pytest.mark.parametrize("command", ["compact-swap", "recover"])
def test_it_is_told_although_a_writer_is_at_work_in_the_table(desk, command):
    desk.world.files.writer.make_directory(names.join(desk.live(), "_temporary"))
    require_told(run_on_database(desk, command), desk)


@pytest.mark.parametrize("command", ["compact-swap", "recover"])
def test_it_is_told_although_there_are_too_many_files(desk, command):
    desk.settings = replace(desk.settings, max_files=20)
    desk.append("dt=2", *map(str, range(40)))
    result = run_on_database(desk, command)
    require_told(result, desk)


def test_it_is_told_although_the_command_had_done_its_work_before(desk):
    require_told(run_on_database(desk, "compact-swap", run_key="monday"), desk)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_nothing_tells_it_later(desk, command):
    """Why it has to be told at once: the log has it, and all further commands end as if nothing were missing."""
    before = desk.world.rows_anywhere()
    desk.recover()
    assert desk.world.rows_of(desk.table) != before
    assert run_on_database(desk, command).code is Exit.DONE


# -- where a step after the log entry fails -----------------------------------------------------------------


def fail_after_entry(files):
    """All listings fail from the moment on in which a log entry gets its number, as while a NameNode fails over."""
    look, stepped, is_down = files.look, files.stepped, []

    def see(what):
        stepped(what)
        if what.startswith("rename_exact") and "/entry.json " in what and "/log/" in what:
            is_down.append(True)

    def listing(*args, **more):
        if is_down:
            raise FilesUnavailable("connection reset")
        return look(*args, **more)

    files.stepped, files.look = see, listing
    return is_down


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_it_is_told_although_hdfs_fails_over_just_after_its_log_entry(desk, command):
    is_down = fail_after_entry(desk.world.files)
    require_told(run_on_database(desk, command), desk)
    assert is_down


def move_in_gap(desk):
    """ALTER TABLE … PARTITION (dt='1') SET LOCATION, while a run has it in its gap."""
    places, elsewhere = desk.world.catalog.partitions[desk.table], "hdfs://nn/elsewhere/dt=1"
    desk.world.files.writer.make_directory(elsewhere)

    def act(what):
        if what.startswith("rename_exact") and "/ready/u0000" in what and "dt=1" in what:
            places["dt=1"] = replace(places["dt=1"], location=elsewhere)

    desk.world.files.before_step = act


@pytest.mark.parametrize("fails_over", [False, True])
def test_what_a_run_has_done_itself_is_told_although_hdfs_fails_over_just_after_its_log_entry(fails_over):
    desk = Desk(a_world())
    move_in_gap(desk)
    is_down = fail_after_entry(desk.world.files) if fails_over else []
    result = run_on_database(desk, "compact-swap")
    (table,) = [one for one in result.tables if one.table == desk.table]
    assert (result.code, {unit.name: unit.outcome.code for unit in table.units}) == (
        Exit.INVESTIGATE,
        {"dt=1": "misplaced", "dt=2": "swapped"},
    )
    assert bool(table.problem) == bool(is_down) == fails_over
    assert "sales.events/dt=1: misplaced: the metastore has it at hdfs://nn/elsewhere/dt=1 now" in screen.render(result)


def test_a_rollback_that_could_not_be_recorded_tells_what_it_has_done():
    desk = Desk(a_world())
    desk.compact()
    fail_after_entry(desk.world.files)
    result = desk.rollback()
    told = screen.render(result)
    assert "sales.events: rolled back 2 steps" in told
    assert "connection reset" in told


# -- where the command is killed ----------------------------------------------------------------------------


def lines_of_log(caplog):
    return [(record.levelname, record.getMessage()) for record in caplog.records if "step=astray" in record.getMessage()]


def test_a_command_that_is_killed_has_told_it_before_the_log_of_the_table_had_it(desk, caplog):
    desk.kill_before(["rename_exact", "/entry.json ", "/log/"], lambda: run_on_database(desk, "compact-swap"))
    ((level, line),) = lines_of_log(caplog)
    assert (level, "unit=sales.events/dt=1 step=astray outcome=misplaced code=dropped" in line) == ("ERROR", True)
    require_told(run_on_database(desk, "recover"), desk)


def test_a_command_that_is_killed_has_told_what_it_had_done_itself(caplog):
    desk = Desk(a_world())
    move_in_gap(desk)
    run_on_database(desk, "compact-swap")
    ((level, line),) = lines_of_log(caplog)
    assert (level, "the metastore has it at hdfs://nn/elsewhere/dt=1 now" in line) == ("ERROR", True)
