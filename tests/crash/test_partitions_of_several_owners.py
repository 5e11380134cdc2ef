"""A table where everybody may make partitions, and only the owner of one may rename it (the sticky bit): others make one in its gap."""

from __future__ import annotations

from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.hdfs_user import HdfsUser, own, own_tree
from support.joined_desk import at
from support.world import World

FORGED = DataFile(("forged",))


def a_shared_table(mode=0o1777):
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    space = world.files.namespace
    own_tree(space, desk.live("dt=1"), "alice", "alice", 0o755)
    own(space.find(desk.live()), "fin", "data", mode)
    return desk, HdfsUser(space, "mallory", ["data"])


def forge(desk, mallory):
    live = desk.live("dt=1")
    assert mallory.make_directory(live)
    assert mallory.add(f"{live}/forged.parquet", FORGED, 1000)


def test_mallory_may_neither_write_to_the_partition_nor_rename_it():
    desk, mallory = a_shared_table()
    live = desk.live("dt=1")
    assert not mallory.add(f"{live}/forged.parquet", FORGED, 1000)
    assert not mallory.rename(live, desk.live(".aside"))


def test_what_others_make_at_a_partitions_place_in_its_gap_is_not_merged():
    desk, mallory = a_shared_table()
    at(desk, ["rename_exact", "/ready/u00001", f" {desk.live('dt=1')}"], lambda: forge(desk, mallory))
    desk.compact()
    assert "forged" not in desk.world.rows_of(desk.table)


def test_nor_by_the_recovery_of_a_run_that_was_killed_there():
    desk, mallory = a_shared_table()
    desk.kill_before([f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    forge(desk, mallory)
    desk.recover()
    assert "forged" not in desk.world.rows_of(desk.table)
