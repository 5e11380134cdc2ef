"""A table that was dropped, and another owner's, created in the same second, that is renamed to its name: for a managed one Hive moves the
directory to the dropped one's place (HiveAlterHandler.alterTable). Who renames it needs no right on a directory, and a loop that creates
a table each second has one of each second.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from hivekeeper.config.settings import Settings
from hivekeeper.model import Column
from hivekeeper.ports import NoPermission
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World
from unit.commands.test_backups_of_dropped_tables_stay_closed import close, may_be_reached_by_all

DAY_MS = 86_400_000
THEIRS = (Column("other", "string"), Column("more", "int"))


def run(statement):
    deque(statement, maxlen=0)


def a_world():
    world = World()
    world.add_table(a_table(kind="MANAGED_TABLE", create_time=5, owner="finance"), {"": [1000] * 3})
    mine = replace(a_table(kind="MANAGED_TABLE", name="mine", create_time=5, owner="mallory"), columns=THEIRS)
    world.add_table(mine, {"": [1000] * 3})
    return world


def drop(world):
    run(Hive(world).drop_table("sales.events"))


def rename(world):
    """The dropped one's owner keeps it under another name: what lies beside its former place stays there."""
    run(Hive(world).rename_table("sales.events", "sales.renamed"))


WAYS = pytest.mark.parametrize("leave", [drop, rename])


def take(world, leave):
    hive = Hive(world)
    leave(world)
    run(hive.rename_table("sales.mine", "sales.events"))
    assert world.table("sales.events").owner == "mallory"


def old_files(desk):
    return sorted(path for path in desk.world.files.contents(desk.control.top) if "/retired/" in path)


def with_closed_backups():
    """One of them could be read by all before the table was closed."""
    world = a_world()
    desk = Desk(world, backup_table=False)
    desk.compact()
    close(world, desk.live())
    desk.append("", "a", "b", "c")
    desk.compact()
    return world, desk


@WAYS
def test_they_are_not_opened_with_the_rights_of_the_other_table(leave):
    world, desk = with_closed_backups()
    backups = old_files(desk)
    assert not any(may_be_reached_by_all(world, path) for path in backups)
    take(world, leave)
    desk.compact()
    assert [path for path in backups if may_be_reached_by_all(world, path)] == []


@WAYS
def test_nor_are_they_where_no_plan_can_be_read(leave):
    """Somebody renames the control directory away and back while they are asked for; or their blocks are lost."""
    world, desk = with_closed_backups()
    backups = old_files(desk)
    take(world, leave)
    stat = world.files.stat
    world.files.stat = lambda path: None if path.endswith("/plan.json") else stat(path)
    desk.compact()
    assert [path for path in backups if may_be_reached_by_all(world, path)] == []


@WAYS
def test_nor_are_they_by_a_later_run_where_the_first_could_not_close_them(leave):
    """They belong to a user by whom the runs were made before."""
    world, desk = with_closed_backups()
    backups, directories = old_files(desk), {f"{desk.control.runs}/{run}" for run in desk.run_directories()}
    take(world, leave)
    guard = world.files.guard

    def refuse(wanted):
        if directories & set(wanted):
            raise NoPermission("its owner is somebody else")
        guard(wanted)

    world.files.guard = refuse
    for night in range(3):
        desk.append("", f"{night}-a", f"{night}-b", f"{night}-c")
        assert desk.compact().tables[0].units
        assert [path for path in backups if may_be_reached_by_all(world, path)] == []


@WAYS
def test_a_rollback_of_the_other_table_does_not_bring_its_rows(leave):
    world = a_world()
    theirs = world.rows_of("sales.events")
    desk = Desk(world, backup_table=False)
    desk.compact()
    take(world, leave)
    desk.rollback()
    assert not theirs & world.rows_of("sales.events")


@WAYS
def test_the_rows_of_its_killed_run_do_not_come_to_the_other_table(leave):
    world = a_world()
    theirs = world.rows_of("sales.events")
    desk = Desk(world, backup_table=False)
    desk.kill_before(["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"], desk.compact)
    world.files.delete_tree("hdfs://nn/warehouse/sales/mine")
    take(world, leave)
    world.files.namespace.advance(3_600_000)
    desk.recover()
    assert not theirs & world.rows_of("sales.events")


@WAYS
def test_a_rollback_does_not_bring_them_where_the_other_table_is_empty(leave):
    world = a_world()
    theirs = world.rows_of("sales.events")
    desk = Desk(world, backup_table=False)
    desk.compact()
    for path in list(world.files.contents("hdfs://nn/warehouse/sales/mine")):
        world.files.delete_file(path)
    take(world, leave)
    result = desk.rollback()
    assert not theirs & world.rows_of("sales.events"), result


@WAYS
def test_its_old_files_do_not_go_where_only_the_location_is_set_to_its_place(leave):
    """ALTER TABLE mine SET LOCATION '…/events', under its own name: the columns of tables without partitions are not compared."""
    world = a_world()
    desk = Desk(world, backup_table=False)
    desk.compact()
    before = old_files(desk)
    world.wait(30 * DAY_MS)
    leave(world)
    run(Hive(world).set_location("sales.mine", "", "hdfs://nn/warehouse/sales/events"))
    world.add_file("hdfs://nn/warehouse/sales/events/part-00000.parquet", ["theirs"])
    theirs = Desk(world, "sales.mine", backup_table=False)
    theirs.runs = desk.runs
    theirs.cleanup(Settings(min_age_ms=7 * DAY_MS))
    assert set(before) <= set(old_files(theirs))
