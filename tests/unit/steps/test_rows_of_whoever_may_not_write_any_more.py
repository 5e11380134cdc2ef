"""Who might write to a partition before a run, and may not since, may write to its backup still: nothing of theirs must come to live."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.rows import DataFile
from support.hdfs_user import HdfsUser, own_tree
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


@pytest.mark.parametrize("since", [0o755, 0o775])
def test_a_cleanup_does_not_show_old_rows_twice_whoever_may_write_there_still(since):
    desk = compacted(owner="fin", group="data", mode=0o775)
    ann, old = close(desk), backup_files(desk)[0]
    give_rights(desk, desk.live("dt=1"), mode=since)
    assert ann.rename(old, old.replace(".parquet", "-2.parquet"))
    desk.world.wait(A_YEAR_MS)
    desk.cleanup()
    assert set(desk.world.rows_of(desk.table).values()) == {1}


def test_nor_does_a_cleanup_bring_what_they_rename_into_the_backup_though_it_is_the_owners():
    desk = compacted(owner="fin", group="data", mode=0o775)
    ann = close(desk)
    aside = f"{desk.live()}/aside"
    desk.world.add_file(f"{aside}/old.parquet", ["forged"])
    own_tree(desk.world.files.namespace, aside, "fin", "data", 0o775)
    assert ann.rename(f"{aside}/old.parquet", f"{backup_of(desk)}/forged.parquet")
    desk.world.wait(A_YEAR_MS)
    desk.cleanup()
    assert "forged" not in desk.world.rows_of(desk.table)


def test_a_cleanup_brings_no_file_to_live_from_its_former_owner_and_says_so():
    desk = compacted(owner="ann", group="data", mode=0o755)
    ann = close(desk)
    assert ann.add(f"{backup_of(desk)}/forged.parquet", FORGED, 1000)
    desk.world.wait(A_YEAR_MS)
    result = desk.cleanup()
    assert "forged" not in desk.world.rows_of(desk.table)
    (kept,) = result.tables[0].backups
    assert (result.code, [why.code for _, why in kept.kept_units]) == (Exit.PARTIAL, [Code.LATE_IN_BACKUP])


@pytest.mark.parametrize("owner", ["fin", "hive"])
@pytest.mark.parametrize("mode", [0o755, 0o775, 0o777])
def test_a_late_file_comes_where_nothing_was_closed_also_to_a_copy_that_could_not_be_given_away(owner, mode):
    desk = compacted(owner="fin", group="data", mode=mode)
    bare = {"owner": desk.world.files.user, "group": "users", "mode": mode & 0o755 | (mode & 0o002) * 0o11}
    give_rights(desk, desk.live("dt=1"), **({} if owner == "fin" else bare))
    desk.world.add_file(f"{backup_of(desk)}/late.parquet", ["late"])
    desk.world.wait(A_YEAR_MS)
    desk.cleanup()
    assert desk.world.rows_of(desk.table)["late"] == 1


def test_a_rollback_does_not_bring_back_a_backup_with_files_of_who_may_not_write_there_any_more():
    desk = compacted(owner="fin", group="data", mode=0o775)
    ann = close(desk)
    assert ann.add(f"{backup_of(desk)}/forged.parquet", FORGED, 1000)
    assert outcomes(desk.rollback()) == {"dt=1": "given-up"}
    assert "forged" not in desk.world.rows_of(desk.table)


def test_nor_does_one_of_two_runs_whose_newer_one_gives_them_back_the_right_to_write():
    desk = compacted(owner="fin", group="data", mode=0o775)
    (older, first) = (backup_of(desk), desk.runs[-1])
    desk.append("dt=1", "a", "b")
    desk.compact()
    ann = close(desk)
    assert ann.add(f"{older}/forged.parquet", FORGED, 1000)
    desk.rollback(first)
    assert "forged" not in desk.world.rows_of(desk.table)


def test_a_rollback_brings_late_files_along_where_nothing_was_closed():
    desk = compacted(owner="fin", group="data", mode=0o775)
    desk.world.add_file(f"{backup_of(desk)}/late.parquet", ["late"])
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert desk.world.rows_of(desk.table)["late"] == 1


def killed_below(word, mode=0o755):
    """A run that was killed, with the mode of the directory above its unit when it began, and Ann; with the rows of the table."""
    world = World()
    world.add_table(a_table(["region", "dt"], create_time=5), {"region=eu/dt=1": [1000] * 3})
    desk, rows = Desk(world, backup_table=False), dict(world.rows_of("sales.events"))
    live = desk.live("region=eu/dt=1")
    give_rights(desk, desk.live("region=eu"), mode=mode, owner="fin", group="fin")
    give_rights(desk, live, mode=0o775, owner="fin", group="data")
    desk.kill_before([word, live], desk.compact)
    return desk, HdfsUser(world.files.namespace, "ann", ["data"]), rows


def close_above(desk):
    give_rights(desk, desk.live("region=eu"), mode=0o700)


def test_a_recovery_brings_no_file_to_live_from_who_may_not_reach_that_any_more():
    """The directory above a partition that a killed run has away is closed; the backup is not below that one."""
    desk, ann, rows = killed_below("/ready/u00001 ")
    close_above(desk)
    assert ann.add(f"{backup_of(desk)}/forged.parquet", FORGED, 1000)
    desk.recover()
    assert dict(desk.world.rows_of(desk.table)) == rows


def test_late_files_below_a_directory_that_was_closed_before_the_run_come_by_its_recovery():
    desk, _, rows = killed_below("/ready/u00001 ", mode=0o700)
    desk.world.add_file(f"{backup_of(desk)}/late.parquet", ["late"])
    desk.recover()
    assert dict(desk.world.rows_of(desk.table)) == {**rows, "late": 1}


def test_a_recovery_brings_no_file_to_a_copy_that_was_closed_since_it_came_in():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk, rows = Desk(world, backup_table=False), dict(world.rows_of("sales.events"))
    give_rights(desk, desk.live("dt=1"), mode=0o775, owner="fin", group="data")
    desk.kill_before(["sizes"], desk.compact)
    ann = close(desk)
    assert ann.add(f"{backup_of(desk)}/forged.parquet", FORGED, 1000)
    old = backup_files(desk)[1]
    assert ann.rename(old, old.replace(".parquet", "-2.parquet"))
    desk.recover()
    assert dict(world.rows_of(desk.table)) == rows


def test_a_late_file_comes_to_a_copy_whose_group_alone_could_not_be_kept():
    desk = compacted(group="data", mode=0o775)
    find = desk.world.files.namespace.find
    assert find(desk.live("dt=1")).attributes.owner == find(backup_of(desk)).attributes.owner
    give_rights(desk, desk.live("dt=1"), group="users", mode=0o755)
    desk.world.add_file(f"{backup_of(desk)}/late.parquet", ["late"])
    desk.world.wait(A_YEAR_MS)
    desk.cleanup()
    assert desk.world.rows_of(desk.table).get("late") == 1


def test_an_old_file_that_was_renamed_and_appended_to_is_late_or_told():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.kill_before(["sizes"], desk.compact)
    old = backup_files(desk)[0]
    node = world.files.namespace.find(old)
    world.files.namespace.rename(old, old.replace(".parquet", "-2.parquet"))
    node.content, node.length = DataFile((*node.content.rows, "more")), node.length + 10
    result = desk.recover()
    assert [counts for _, counts in result.tables[0].recovered] != [{Outcome.SWAPPED: 1}] or "more" in world.rows_of(desk.table)


def test_the_root_is_not_asked_for_again_for_each_partition_with_a_late_file(monkeypatch):
    """The real call lists a directory until it finds a data file: that is all of a root with partitions."""
    world = World()
    partitions = [f"dt={n}" for n in range(1, 9)]
    world.add_table(a_table(["dt"], create_time=5), {name: [1000] * 3 for name in partitions})
    desk = Desk(world, backup_table=False)
    desk.compact()
    directories = {path.rpartition("/")[0] for path in world.files.contents(desk.control.top) if "/retired/u" in path}
    for directory in directories:
        world.add_file(f"{directory}/late.parquet", [directory])
    asked, attributes = [], world.files.attributes

    def count(places, *more):
        asked.extend(place for place in places if place == desk.live())
        return attributes(places, *more)

    monkeypatch.setattr(world.files, "attributes", count)
    world.wait(A_YEAR_MS)
    desk.cleanup()
    assert len(directories) == 8 and len(asked) <= 3
