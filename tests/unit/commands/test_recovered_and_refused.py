"""What the recovery of an interrupted run has found is told, also if the command then leaves the table alone: no later one tells it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import backup, compact_swap, recover, rollback
from hivekeeper.model import Selection
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


@pytest.fixture
def desk():
    """MSCK REPAIR TABLE … SYNC PARTITIONS, while a killed run had the partition in its gap: its rows are at their place again, and no
    reader sees them.
    """
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3, "dt=2": [MIB] * 3})
    world.add_table(a_table(name="healthy", location="hdfs://nn/warehouse/sales.db/healthy"), {"": [200 * MIB]})
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
    told = [counts.get(Outcome.DROPPED_MEANWHILE) for _, counts in table.recovered]
    assert (result.code, told) == (Exit.PARTIAL, [1]), screen.render(result)


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
