"""A table where everybody may make partitions, and only the owner of one may rename it (the sticky bit): others make one in its gap."""

from __future__ import annotations

import pytest

from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.desk import Desk, outcomes
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


def recovered(result):
    return [outcome for _, counts in result.tables[0].recovered for outcome in counts]


def test_mallory_may_neither_write_to_the_partition_nor_rename_it():
    desk, mallory = a_shared_table()
    live = desk.live("dt=1")
    assert not mallory.add(f"{live}/forged.parquet", FORGED, 1000)
    assert not mallory.rename(live, desk.live(".aside"))


def in_the_gap(desk, state, act):
    at(desk, ["rename_exact", f"/{state}/u00001", f" {desk.live('dt=1')}"], act)


@pytest.mark.parametrize("mode", [0o1777, 0o1775])
def test_what_others_make_at_a_partitions_place_in_its_gap_is_not_merged(mode):
    desk, mallory = a_shared_table(mode)
    in_the_gap(desk, "ready", lambda: forge(desk, mallory))
    assert outcomes(desk.compact()) == {"dt=1": "misplaced"}
    assert "forged" not in desk.world.rows_of(desk.table)


def test_nor_in_the_gap_of_a_rollback():
    desk, mallory = a_shared_table()
    desk.compact()
    in_the_gap(desk, "restoring", lambda: forge(desk, mallory))
    assert outcomes(desk.rollback()) == {"dt=1": "misplaced"}
    assert "forged" not in desk.world.rows_of(desk.table)


def test_nor_where_the_old_files_go_back():
    desk, mallory = a_shared_table()
    desk.kill_before([f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    forge(desk, mallory)
    retired = f"{desk.control.top}/runs/{desk.runs[-1]}/retired/u00001"
    desk.world.files.writer.make_directory(f"{retired}/_temporary")
    assert recovered(desk.recover()) == [Outcome.MISPLACED]
    assert "forged" not in desk.world.rows_of(desk.table)


def test_nor_by_the_recovery_of_a_run_that_was_killed_there():
    desk, mallory = a_shared_table()
    desk.kill_before([f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    forge(desk, mallory)
    assert recovered(desk.recover()) == [Outcome.MISPLACED]
    assert "forged" not in desk.world.rows_of(desk.table)


def test_nor_a_directory_of_the_user_of_the_runs_that_others_bring_there():
    """As a copy of a table of theirs that could not be given away is; so is the partition's."""
    desk, mallory = a_shared_table()
    space, mine, user = desk.world.files.namespace, "hdfs://nn/warehouse/mine", desk.world.files.user
    desk.world.add_file(f"{mine}/dt=7/forged.parquet", ["forged"])
    own(space.find(mine), "mallory", "data", 0o755)
    own_tree(space, f"{mine}/dt=7", user, "data", 0o755)
    own_tree(space, desk.live("dt=1"), user, "data", 0o755)

    def bring():
        assert mallory.rename(f"{mine}/dt=7", desk.live("dt=1"))

    in_the_gap(desk, "ready", bring)
    assert outcomes(desk.compact()) == {"dt=1": "misplaced"}
    assert "forged" not in desk.world.rows_of(desk.table)


@pytest.mark.parametrize("owner", ["alice", "fin"])
def test_what_the_owner_of_the_partition_or_of_the_directory_around_makes_there_is_merged(owner):
    desk, _ = a_shared_table()
    in_the_gap(desk, "ready", lambda: forge(desk, HdfsUser(desk.world.files.namespace, owner, ["data"])))
    assert outcomes(desk.compact()) == {"dt=1": "swapped"}
    assert desk.world.rows_of(desk.table)["forged"] == 1


def test_so_is_what_anybody_makes_who_might_rename_the_partition():
    desk, mallory = a_shared_table(0o777)
    in_the_gap(desk, "ready", lambda: forge(desk, mallory))
    assert outcomes(desk.compact()) == {"dt=1": "swapped"}
    assert desk.world.rows_of(desk.table)["forged"] == 1


def an_open_directory(desk, mallory):
    """Of the partition's owner, with a file of Mallory's in it, who may rename it."""
    space, drop = desk.world.files.namespace, "hdfs://nn/exchange/drop"
    space.make_directory(drop)
    own(space.find("hdfs://nn/exchange"), "fin", "data", 0o777)
    own(space.find(drop), "alice", "alice", 0o777)
    assert mallory.add(f"{drop}/forged.parquet", FORGED, 1000)
    return drop


def test_what_others_put_into_an_open_directory_of_the_partitions_owner_is_not_merged():
    """Its owner tells nothing of who has put the files into it, nor of who has brought it there; it has more writers than the partition."""
    desk, mallory = a_shared_table()
    desk.kill_before([f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    assert mallory.rename(an_open_directory(desk, mallory), desk.live("dt=1"))
    result = desk.recover()
    assert "forged" not in desk.world.rows_of(desk.table), result.code


def test_nor_what_lay_in_one_that_is_older_than_the_run():
    """Nobody needs an outage for that: the directory is ready, and as open as the unit is all that is compared."""
    desk, mallory = a_shared_table()
    drop, live = an_open_directory(desk, mallory), desk.live("dt=1")
    at(desk, ["rename_exact", "/ready/u00001", f" {live}"], lambda: mallory.rename(drop, live))
    result = desk.compact()
    assert desk.world.files.namespace.find(drop) is None
    assert "forged" not in desk.world.rows_of(desk.table), result.code
