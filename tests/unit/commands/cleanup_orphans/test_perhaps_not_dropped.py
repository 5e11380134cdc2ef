"""cleanup --orphans: the records of a table that may be somewhere else, under another name or in another metastore, stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.plan.orphans import OrphanState
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.leftovers import HOME, backups_in, before_first, build, clean, drop, drop_and_mark, leftovers, records, wait, without_mark


@pytest.mark.parametrize("where", ["sales.moved", "fin.elsewhere"])
def test_the_records_of_a_table_that_was_renamed_or_moved_stay(desk, where):
    table = desk.world.table(desk.table)
    drop_and_mark(desk)
    database, _, name = where.partition(".")
    desk.world.add_table(replace(table, database=database, name=name, location=f"hdfs://nn/elsewhere/{name}"), {})
    wait(desk, 1)
    before = desk.world.picture()
    found = records(clean(desk))
    assert found.state is OrphanState.FOUND
    assert f"{where} was created in the same second" in found.why
    # Not even the lock was taken.
    assert desk.world.picture() == without_mark(before)


def test_the_records_of_a_table_that_is_renamed_while_all_tables_are_read_stay(desk, top, monkeypatch):
    """It came back to the metastore after the first look, elsewhere, and is in no answer of one reading: the second one has it."""
    table = desk.world.table(desk.table)
    drop_and_mark(desk)
    world, held = desk.world, backups_in(desk, top)
    world.add_table(replace(table, name="back", location="hdfs://nn/elsewhere/back"), {})
    world.catalog.databases.add("archive")
    names_of, done = world.metastore.table_names, []

    def read_and_rename(database):
        found = names_of(database)
        if database == "archive" and not done:
            done.extend(Hive(world).rename_table("sales.back", "archive.back"))
        return found

    monkeypatch.setattr(world.metastore, "table_names", read_and_rename)
    clean(desk)
    assert done and held and backups_in(desk, top) == held


def test_a_table_that_the_metastore_cannot_read_may_be_the_one(desk):
    drop_and_mark(desk)
    desk.world.catalog.add_table(a_table(name="broken"), [])
    desk.world.catalog.unreadable.add("sales.broken")
    before = desk.world.picture()
    assert "sales.broken" in records(clean(desk)).why
    # That it cannot be read tonight does not make the wait for the other one begin anew.
    assert desk.world.picture() == before


def test_a_log_that_does_not_say_when_its_table_was_created_proves_nothing():
    desk = build("flat")
    desk.world.catalog.tables[desk.table] = replace(desk.world.table(desk.table), create_time=0)
    desk.append("", "x", "y")
    desk.compact()
    drop(desk)
    assert "does not say when" in records(clean(desk)).why


def test_a_metastore_without_any_table_is_not_believed(desk):
    desk.world.catalog.drop_table("sales.other")
    drop(desk)
    for name in list(desk.world.catalog.tables):
        desk.world.catalog.drop_table(name)
    assert "is it the right one?" in records(clean(desk)).why


def test_the_records_of_another_databases_table_are_that_databases_business(desk):
    drop(desk)
    world = desk.world
    world.catalog.homes["fin"] = "hdfs://nn/warehouse/fin"
    place = f"{HOME}/ledger"
    ledger = a_table(["dt"], name="ledger", location="hdfs://nn/warehouse/fin/ledger", create_time=9)
    world.add_table(replace(ledger, database="fin"), {"dt=1": [9] * 3})
    Desk(world, "fin.ledger").compact()
    world.files.writer.make_directory(place)
    world.files.writer.rename_into("hdfs://nn/warehouse/fin/ledger/.hivekeeper", f"{place}/.hivekeeper")
    world.catalog.drop_table("fin.ledger")
    wait(desk, 1)
    (found,) = [one for one in leftovers(clean(desk)) if one.place == f"{place}/.hivekeeper"]
    assert (found.state, "not in the database sales" in found.why) == (OrphanState.FOUND, True)


def test_a_table_that_came_and_went_between_the_first_look_and_the_lock_starts_the_wait_again(desk, top):
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
    unit = "dt=1" if table.partitioned else ""
    drop_and_mark(desk)

    def come_and_go():
        desk.world.catalog.add_table(replace(table, create_time=77), partitions.values())
        desk.append(unit, "x", "y")
        assert desk.compact(cluster=desk.world.another_process()).code is Exit.DONE
        desk.world.catalog.drop_table(desk.table)

    before_first(desk, ["hold ", top], come_and_go)
    assert records(clean(desk)).state is OrphanState.MARKED
    assert len({path.rpartition("/")[0] for path in backups_in(desk, top)}) == 2 * (1 + table.partitioned) + 1


def test_a_table_that_came_and_moved_on_between_the_first_look_and_the_lock_keeps_its_records(desk, top):
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
    drop_and_mark(desk)

    def come_and_move():
        desk.world.catalog.add_table(replace(table, create_time=77), partitions.values())
        desk.append("dt=1" if table.partitioned else "", "x", "y")
        assert desk.compact(cluster=desk.world.another_process()).code is Exit.DONE
        desk.world.catalog.drop_table(desk.table)
        desk.world.catalog.add_table(replace(table, create_time=77, name="moved", location="hdfs://nn/elsewhere/moved"))

    before_first(desk, ["hold ", top], come_and_move)
    assert "sales.moved was created in the same second" in records(clean(desk)).why


def test_a_table_on_an_unknown_server_is_no_reason(desk):
    drop_and_mark(desk)
    desk.world.catalog.add_table(a_table(name="far", location="hdfs://elsewhere/far", create_time=99))
    assert records(clean(desk)).state is OrphanState.REMOVED
