"""(no attacker needed) A table, or a partition, shows a backup, as somebody has pointed it there to have its rows. It is renamed while a
cleanup reads where all are, or knows it: the backup, which is all that it shows, stays.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.reasons import Code
from support.builders import a_partition, a_table
from support.desk import desk_by


@pytest.fixture
def desk():
    desk = desk_by(["dt"])
    desk.compact()
    return desk


def retired(desk, number):
    return desk.control.run(desk.runs[0]).unit("retired", number)


def rename_table(desk):
    """ALTER TABLE fin.rescue RENAME TO fin.rescued: of an external table, nothing is moved."""
    catalog = desk.world.catalog
    table = catalog.tables["fin.rescue"]
    catalog.drop_table("fin.rescue")
    catalog.add_table(replace(table, name="rescued"), [])


def test_a_backup_that_a_table_shows_stays_when_that_is_renamed_once_the_places_of_all_are_known(desk):
    """In the hour before the turn of the table, in a command over several tables. It was shown long before."""
    world, place = desk.world, retired(desk, 1)
    rescue = a_table(name="rescue", location=place, create_time=88)
    world.catalog.add_table(replace(rescue, database="fin"), [])
    world.files.namespace.advance(7_200_000)
    held = world.rows_below(place)
    assert desk.cleanup().tables[0].problem.code is Code.SHARED_DIRECTORY
    rename_table(desk)
    result = desk.cleanup()
    assert world.rows_below(place) == held != {}, f"exit {result.code}, and the table shows nothing any more"


def rename_partition(desk):
    """ALTER TABLE … PARTITION (dt=9) RENAME TO PARTITION (dt=10): of one with a place of its own, nothing is moved."""
    catalog = desk.world.catalog
    partition = catalog.partitions[desk.table]["dt=9"]
    catalog.drop_partition(desk.table, "dt=9")
    catalog.add_partition(desk.table, replace(partition, name="dt=10", values=("10",)))


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_backup_that_a_partition_shows_stays_when_that_is_renamed_while_all_are_read(desk, nth, monkeypatch):
    """Hive's client asks for the names of all, then for these, a thousand at a time (MetastoreReader.readPartitions)."""
    world, place = desk.world, retired(desk, 1)
    desk.world.catalog.add_partition(desk.table, a_partition("dt=9", place))
    held = world.rows_below(place)
    ask, waiting = world.metastore.partitions, [rename_partition, *[lambda _: None] * (nth - 1)]

    def partitions(table):
        named = [partition.name for partition in ask(table)]
        if waiting:
            waiting.pop()(desk)
        return tuple(world.metastore.partitions_named(table, named).values())

    monkeypatch.setattr(world.metastore, "partitions", partitions)
    result = desk.cleanup()
    assert world.rows_below(place) == held != {}, f"exit {result.code}, and the partition shows nothing any more"
