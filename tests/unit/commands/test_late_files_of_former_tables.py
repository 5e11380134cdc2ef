"""A file that came late to the backup of a table that is gone: it must not come to the table that lies in its place now."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import EVERYTHING, Desk
from support.fakes.rows import DataFile
from support.hdfs_user import HdfsUser, own_tree
from support.world import World

DAY_MS = 24 * 3_600_000


SHAPES = pytest.mark.parametrize(("by", "unit"), [(["dt"], "dt=1"), ([], "")], ids=["partitioned", "flat"])


def a_table_that_was_compacted(by, unit, owner):
    world = World()
    world.add_table(a_table(by, create_time=5), {unit: [1000] * 3})
    desk = Desk(world, backup_table=False)
    own_tree(world.files.namespace, desk.live(unit), owner, owner, 0o755)
    desk.compact()
    return desk


def create_again(desk, unit, owner="fin", files_stay=False):
    """As DROP TABLE and CREATE TABLE do; the control directory is there still, and of an external table the files."""
    world, old, live = desk.world, desk.world.table(desk.table), desk.live(unit)
    partitions = list(world.partitions(desk.table).values()) if old.partitioned else []
    world.catalog.drop_table(desk.table)
    for path in [path for path in world.files.contents(live) if "/.hivekeeper" not in path and not files_stay]:
        world.files.writer.delete(path)
    own_tree(world.files.namespace, live, owner, owner, 0o755)
    world.catalog.add_table(replace(old, create_time=world.clock.now_ms() // 1000, owner=owner), partitions)


def backup_of(desk):
    return next(path for path in sorted(desk.world.files.contents(desk.control.top)) if "/retired/" in path).rpartition("/")[0]


def clean_up_all(desk):
    desk.world.wait(365 * DAY_MS)
    return desk.cleanup(EVERYTHING, former=True)


@SHAPES
def test_one_that_who_had_the_place_before_puts_there_does_not_come_to_the_table_of_somebody_else(by, unit):
    desk = a_table_that_was_compacted(by, unit, "mallory")
    create_again(desk, unit)
    mallory = HdfsUser(desk.world.files.namespace, "mallory")
    assert not mallory.add(f"{desk.live(unit)}/forged.parquet", DataFile(("forged",)), 1000)
    assert mallory.add(f"{backup_of(desk)}/forged.parquet", DataFile(("forged",)), 1000)
    desk.append(unit, "a", "b", "c")
    desk.compact()
    clean_up_all(desk)
    assert sorted(desk.world.rows_of(desk.table)) == ["a", "b", "c"]


@SHAPES
def test_one_that_a_writer_had_open_while_the_former_table_was_compacted_does_not_come_to_the_new_one(by, unit):
    """No attacker: a job drops and creates the table each night, so that a regular cleanup is about former tables, too."""
    desk = a_table_that_was_compacted(by, unit, "fin")
    desk.world.add_file(f"{backup_of(desk)}/yesterday.parquet", ["yesterday"])
    create_again(desk, unit)
    desk.append(unit, "a", "b", "c")
    desk.compact()
    clean_up_all(desk)
    assert sorted(desk.world.rows_of(desk.table)) == ["a", "b", "c"]


@SHAPES
def test_nor_does_it_come_to_one_that_was_created_over_the_same_files(by, unit):
    """Whoever creates it decides what is in it: the files that lie there, and no others."""
    desk = a_table_that_was_compacted(by, unit, "mallory")
    mallory = HdfsUser(desk.world.files.namespace, "mallory")
    create_again(desk, unit, files_stay=True)
    assert mallory.add(f"{backup_of(desk)}/forged.parquet", DataFile(("forged",)), 1000)
    rows = desk.world.rows_of(desk.table)
    desk.append(unit, "a", "b", "c")
    desk.compact()
    result = clean_up_all(desk)
    assert desk.world.rows_of(desk.table) == rows + Counter("abc")
    assert result.code is Exit.PARTIAL
    assert Code.LATE_IN_BACKUP in {why.code for backup in result.tables[0].backups for _, why in backup.kept_units}


@SHAPES
def test_what_stays_of_a_former_table_does_not_keep_the_backups_of_the_new_one(by, unit):
    """No rollback leads from one to the other."""
    desk = a_table_that_was_compacted(by, unit, "mallory")
    desk.world.add_file(f"{backup_of(desk)}/late.parquet", ["late"])
    create_again(desk, unit)
    desk.append(unit, "a", "b", "c")
    desk.compact()
    clean_up_all(desk)
    assert [effect.run for effect in desk.log().standing] == [desk.runs[0]]


@SHAPES
def test_what_stays_of_the_table_before_it_was_renamed_keeps_its_newer_backups(by, unit):
    desk = a_table_that_was_compacted(by, unit, "fin")
    desk.world.files.writer.open(f"{backup_of(desk)}/open.parquet", DataFile(("open",)), 1000)
    world, old = desk.world, desk.world.table(desk.table)
    partitions = list(world.partitions(desk.table).values()) if old.partitioned else []
    world.catalog.drop_table(desk.table)
    desk.table = "sales.events_2"
    world.catalog.add_table(replace(old, name="events_2"), partitions)
    desk.append(unit, "a", "b", "c")
    desk.compact()
    clean_up_all(desk)
    assert [effect.run for effect in desk.log().standing] == desk.runs[:2]
