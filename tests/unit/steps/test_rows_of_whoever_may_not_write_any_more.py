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
from unit.steps.test_rights_that_a_rollback_changes import backup_files, run_as_superuser
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


@pytest.mark.parametrize("deed", ["delete a file", "rename a file", "make a directory", "do nothing"])
@pytest.mark.parametrize("forges", [False, True])
def test_whatever_they_do_to_the_old_files_the_proved_copy_comes_in(deed, forges):
    desk, ann, rows = killed_below("/ready/u00001 ")
    close_above(desk)
    old = backup_files(desk)[0]
    if deed == "delete a file":
        assert ann.delete(old)
    elif deed == "rename a file":
        assert ann.rename(old, old.replace(".parquet", "-2.parquet"))
    elif deed == "make a directory":
        assert ann.make_directory(f"{backup_of(desk)}/_temporary")
    if forges:
        assert ann.add(f"{backup_of(desk)}/forged.parquet", FORGED, 1000)
    result = desk.recover()
    assert dict(desk.world.rows_of(desk.table)) == rows
    expected = Outcome.MISPLACED if forges or deed != "do nothing" else Outcome.SWAPPED
    assert [counts for _, counts in result.tables[0].recovered] == [{expected: 1}]


def test_who_may_still_reach_the_partition_has_the_old_files_put_back():
    desk, ann, rows = killed_below("/ready/u00001 ")
    assert ann.delete(backup_files(desk)[0])
    desk.recover()
    assert sum(desk.world.rows_of(desk.table).values()) == sum(rows.values()) - 1


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


def test_a_partition_whose_old_files_were_closed_while_a_killed_run_had_it_away_stays_closed(monkeypatch):
    desk = compacted_and_killed()
    run_as_superuser(desk, monkeypatch)
    give_rights(desk, backup_of(desk), mode=0o700)
    desk.recover()
    assert desk.world.files.namespace.find(desk.live("dt=1")).mode == 0o700


def test_a_copy_that_nobody_has_closed_comes_in_as_it_is():
    desk = compacted_and_killed()
    desk.recover()
    assert desk.world.files.namespace.find(desk.live("dt=1")).mode == 0o755


def compacted_and_killed():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    give_rights(desk, desk.live("dt=1"), mode=0o755, owner="fin", group="data")
    desk.kill_before([f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    return desk
