"""Who might write to a partition before a run, and may not since, may write to its backup still: nothing of theirs must come to live."""

from __future__ import annotations

import pytest

from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.hdfs_user import HdfsUser
from support.world import World
from unit.steps.test_other_directory_at_live import give_rights
from unit.steps.test_rights_that_a_rollback_changes import backup_files
from unit.steps.test_rollback_of_closed_units import compacted

FORGED = DataFile(("forged",))
A_YEAR_MS = 365 * 24 * 3_600_000


def close(desk, **rights):
    """Ann, of the group, may write there no more. What she may still do with the backup is what its own rights say."""
    give_rights(desk, desk.live("dt=1"), **{"mode": 0o755, "owner": "fin", "group": "data", **rights})
    ann = HdfsUser(desk.world.files.namespace, "ann", ["data"])
    assert not ann.add(f"{desk.live('dt=1')}/forged.parquet", FORGED, 1000)
    return ann


def backup_of(desk):
    return backup_files(desk)[0].rpartition("/")[0]


@pytest.mark.parametrize("before", [0o775, 0o777])
@pytest.mark.parametrize("since", [0o755, 0o750])
def test_a_cleanup_brings_no_file_to_live_from_who_may_not_write_there_any_more(before, since):
    desk = compacted(owner="fin", group="data", mode=before)
    ann = close(desk, mode=since)
    assert ann.add(f"{backup_of(desk)}/forged.parquet", FORGED, 1000)
    desk.world.wait(A_YEAR_MS)
    desk.cleanup()
    assert "forged" not in desk.world.rows_of(desk.table)


def test_a_cleanup_does_not_show_old_rows_twice_for_who_may_not_write_there_any_more():
    desk = compacted(owner="fin", group="data", mode=0o775)
    ann, old = close(desk), backup_files(desk)[0]
    assert ann.rename(old, old.replace(".parquet", "-2.parquet"))
    desk.world.wait(A_YEAR_MS)
    desk.cleanup()
    assert set(desk.world.rows_of(desk.table).values()) == {1}


def test_a_recovery_brings_no_file_to_live_from_who_may_not_reach_that_any_more():
    """The directory above a partition that a killed run has away is closed; the backup is not below that one."""
    world = World()
    world.add_table(a_table(["region", "dt"], create_time=5), {"region=eu/dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    live, above = desk.live("region=eu/dt=1"), desk.live("region=eu")
    give_rights(desk, live, mode=0o775, owner="fin", group="data")
    desk.kill_before([f"/ready/u00001 {live}"], desk.compact)
    give_rights(desk, above, mode=0o700, owner="fin", group="fin")
    ann = HdfsUser(world.files.namespace, "ann", ["data"])
    assert ann.add(f"{backup_of(desk)}/forged.parquet", FORGED, 1000)
    desk.recover()
    assert "forged" not in world.rows_of(desk.table)


def test_a_partition_whose_old_files_were_closed_while_a_killed_run_had_it_away_stays_closed():
    desk = compacted_and_killed()
    give_rights(desk, backup_of(desk), mode=0o700)
    desk.recover()
    assert desk.world.files.namespace.find(desk.live("dt=1")).mode == 0o700


def compacted_and_killed():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    give_rights(desk, desk.live("dt=1"), mode=0o755, owner="fin", group="data")
    desk.kill_before([f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    return desk
