"""(no attacker needed) A table, or a partition, shows a backup, as somebody has pointed it there to have its rows. It is renamed while a
cleanup reads where all are, or knows it: the backup, which is all that it shows, stays.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
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


def show(desk, database="fin"):
    """A table that has long shown a backup. Returns its place, and the rows there."""
    place = retired(desk, 1)
    desk.world.catalog.add_table(replace(a_table(name="rescue", location=place, create_time=88), database=database), [])
    desk.world.metastore.forget()
    return place, desk.world.rows_below(place)


def rename_table(desk, old="fin.rescue", new="fin.rescued"):
    """ALTER TABLE fin.rescue RENAME TO fin.rescued: of an external table, nothing is moved."""
    catalog = desk.world.catalog
    table = catalog.tables[old]
    database, _, name = new.partition(".")
    catalog.drop_table(old)
    catalog.add_table(replace(table, database=database, name=name), [])


def act_before_each(desk, method, act):
    """Call `act` before each request but the first of a method of the metastore, with the number of the request."""
    count = iter(range(2, 1000))
    desk.world.metastore.before_request = lambda called: called == method and act(next(count))


def is_refused(result):
    return result.tables[0].problem.code is Code.SHARED_DIRECTORY


def test_a_backup_that_a_table_shows_stays_when_that_is_renamed_once_the_places_of_all_are_known(desk):
    """In the hour before the turn of the table, in a command over several tables."""
    world = desk.world
    place, held = show(desk)
    assert is_refused(desk.cleanup())
    rename_table(desk)
    result = desk.cleanup()
    assert world.rows_below(place) == held != {}, f"exit {result.code}, and the table shows nothing any more"
    assert is_refused(result)


def test_a_backup_that_a_backup_table_shows_stays_when_that_is_renamed(desk):
    """Whoever renames it wants to have it: its rows are kept, though its marks are those of ours."""
    own = next(name for name, table in desk.world.catalog.tables.items() if table.backup_of)
    place = retired(desk, 1)
    held = desk.world.rows_below(place)
    desk.world.metastore.forget()
    desk.world.metastore.locations_below([])
    partitions = dict(desk.world.catalog.partitions[own])
    rename_table(desk, own, "fin.rescued")
    desk.world.catalog.partitions["fin.rescued"] = partitions
    result = desk.cleanup()
    assert desk.world.rows_below(place) == held != {}
    assert is_refused(result)


def test_a_compaction_takes_a_backup_table_that_is_gone_for_dropped_and_leaves_the_backup_to_it(desk, monkeypatch):
    """By a cleanup of another process, as a rule; a compaction moves no backup. A rollback does."""
    world, place = desk.world, retired(desk, 1)
    own = next(name for name, table in world.catalog.tables.items() if table.backup_of)
    held = world.rows_below(place)
    desk.append("dt=1", "late 1", "late 2")
    world.metastore.forget()
    world.metastore.locations_below([])
    partitions = dict(world.catalog.partitions[own])
    rename_table(desk, own, "fin.rescued")
    world.catalog.partitions["fin.rescued"] = partitions
    with monkeypatch.context() as patched:
        patched.setattr(world.metastore, "read_places_again", pytest.fail)
        assert desk.compact().code is Exit.DONE
    for result in (desk.rollback(desk.runs[0]), desk.cleanup()):
        assert world.rows_below(place) == held != {}
        assert is_refused(result)


def test_a_compaction_doubts_a_table_that_is_gone_from_any_other_place(desk):
    """In the control directory, but where no backup table can lie: it may be in a directory that is to be moved by now."""
    world = desk.world
    world.catalog.add_table(replace(a_table(name="rescue", location=f"{desk.control.top}/else", create_time=88), database="fin"), [])
    world.metastore.forget()
    world.metastore.locations_below([])
    desk.append("dt=1", "late 1", "late 2")
    rename_table(desk)
    assert is_refused(desk.compact())


def test_a_table_that_was_dropped_since_keeps_no_backup(desk):
    place, held = show(desk)
    assert is_refused(desk.cleanup())
    desk.world.catalog.drop_table("fin.rescue")
    assert desk.cleanup().code is Exit.DONE
    assert not desk.world.rows_below(place)
    assert held


def test_backup_tables_that_a_command_drops_let_it_read_nothing_again(desk, monkeypatch):
    """Each of a thousand tables may have some."""
    monkeypatch.setattr(desk.world.metastore, "read_places_again", pytest.fail)
    desk.append("dt=1", "late 1", "late 2")
    desk.compact()
    assert any(table.backup_of for table in desk.world.catalog.tables.values())
    desk.world.metastore.forget()
    for _ in range(2):
        assert desk.cleanup().code is Exit.DONE
    assert not any(table.backup_of for table in desk.world.catalog.tables.values())


def test_whoever_renames_a_table_all_the_time_keeps_the_backup_and_lets_nothing_be_read_all_the_time(desk, monkeypatch):
    """Which would cost other tables their turn."""
    world, name, asked = desk.world, ["fin.rescue"], []
    place, held = show(desk)
    world.metastore.keeps_read_again_ms = 60_000
    ask = world.metastore.tables

    def tables(database, names):
        asked.append(database)
        if database == "fin":
            rename_table(desk, name[0], f"fin.rescue_{len(asked)}")
            name[0] = f"fin.rescue_{len(asked)}"
        return ask(database, names)

    monkeypatch.setattr(world.metastore, "tables", tables)
    result = desk.cleanup()
    assert world.rows_below(place) == held != {}
    assert result.tables[0].problem.code is Code.METASTORE_UNUSABLE
    assert "may lie there under another name" in result.tables[0].problem.what
    assert asked.count("fin") <= 2


@pytest.mark.parametrize("new", ["fin.rescued", "aaa.rescued", "zzz.rescued"])
@pytest.mark.parametrize("nth", range(2, 17))
def test_a_backup_that_a_table_shows_stays_when_that_is_renamed_while_the_places_of_all_are_read(desk, new, nth):
    """Also from a database that is read late to one that was read early."""
    place, held = show(desk)
    desk.world.catalog.databases |= {"aaa", "zzz"}
    act_before_each(desk, "locations_below", lambda number: number == nth and rename_table(desk, "fin.rescue", new))
    result = desk.cleanup()
    assert new in desk.world.catalog.tables
    assert desk.world.rows_below(place) == held != {}, f"exit {result.code}, and the table shows nothing any more"


def rename_partition(desk, old=9, new=10):
    """ALTER TABLE … PARTITION (dt=9) RENAME TO PARTITION (dt=10): of one with a place of its own, nothing is moved."""
    catalog = desk.world.catalog
    partition = catalog.partitions[desk.table][f"dt={old}"]
    catalog.drop_partition(desk.table, f"dt={old}")
    catalog.add_partition(desk.table, replace(partition, name=f"dt={new}", values=(str(new),)))


@pytest.mark.parametrize("nth", range(2, 7))
def test_a_backup_that_a_partition_shows_stays_when_that_is_renamed_while_all_are_read(desk, nth):
    """Hive's client asks for the names of all, then for these, a thousand at a time (PartitionReading.java)."""
    world, place = desk.world, retired(desk, 1)
    world.catalog.add_partition(desk.table, a_partition("dt=9", place))
    held = world.rows_below(place)
    act_before_each(desk, "partitions", lambda number: number == nth and rename_partition(desk))
    result = desk.cleanup()
    assert world.rows_below(place) == held != {}, f"exit {result.code}, and the partition shows nothing any more"


def test_a_backup_that_a_partition_shows_stays_when_that_is_renamed_all_the_time(desk):
    world, place, names = desk.world, retired(desk, 1), iter(range(9, 1000))
    world.catalog.add_partition(desk.table, a_partition("dt=9", place))
    held = world.rows_below(place)

    def rename(_):
        old = next(names)
        rename_partition(desk, old, old + 1)

    act_before_each(desk, "partitions", rename)
    result = desk.cleanup()
    assert world.rows_below(place) == held != {}
    assert result.tables[0].problem.code is Code.METASTORE_UNUSABLE


@pytest.mark.parametrize("nth", range(2, 8))
def test_a_backup_stays_whose_partition_takes_a_name_that_has_been_told(desk, nth):
    """Of two that are renamed while all are read, so that no name is new that shows the backup."""
    world, place = desk.world, retired(desk, 1)
    world.catalog.add_partition(desk.table, a_partition("dt=8", f"{world.table(desk.table).location}/dt=8"))
    world.catalog.add_partition(desk.table, a_partition("dt=9", place))
    held = world.rows_below(place)
    renames = {nth: [(9, 10)], nth + 1: [(8, 11), (10, 8)]}
    act_before_each(desk, "partitions", lambda number: [rename_partition(desk, *one) for one in renames.get(number, ())])
    result = desk.cleanup()
    assert world.rows_below(place) == held != {}, f"exit {result.code}, and the partition shows nothing any more"


def test_a_partition_that_is_dropped_while_all_are_read_costs_one_more_reading(desk):
    asked = []

    def drop(number):
        asked.append(number)
        if number == 2:
            desk.world.catalog.drop_partition(desk.table, "dt=1")

    act_before_each(desk, "partitions", drop)
    found = desk.world.metastore.partitions(desk.world.table(desk.table))
    assert "dt=1" not in {partition.name for partition in found}
    assert asked == [2, 3, 4]
