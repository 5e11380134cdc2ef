"""cleanup --orphans: where the metastore does not tell all partitions, what they may show stays, and others are not kept from going."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper import ports
from hivekeeper.codes import Exit
from hivekeeper.plan.orphans import OrphanState
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable
from hivekeeper.steps.census import Census
from support.builders import a_partition, a_table
from support.leftovers import backups_in, clean, drop_and_mark, records


@pytest.mark.parametrize(("database", "stays"), [("loader", False), ("sales", True)])
def test_a_table_whose_partitions_are_too_many_to_be_read_keeps_only_what_is_left_in_its_own_database(
    desk, top, monkeypatch, database, stays
):
    drop_and_mark(desk)
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 1000)
    heavy = replace(a_table(["dt"], name="heavy", location="hdfs://nn/elsewhere/heavy", create_time=88), database=database)
    partition = replace(a_partition("dt=1", "hdfs://nn/elsewhere/heavy/dt=1"), parameters={"x": "y" * 2000})
    desk.world.catalog.add_table(heavy, [partition])
    result = clean(desk)
    assert (records(result).state, bool(backups_in(desk, top))) == ((OrphanState.KEPT, True) if stays else (OrphanState.REMOVED, False))


@pytest.mark.parametrize(("database", "stays"), [("loader", False), ("sales", True)])
def test_a_table_too_large_to_be_read_may_show_what_is_left_in_its_own_database(desk, top, monkeypatch, database, stays):
    place = f"{top}/{desk.log().standing[0].place}"
    drop_and_mark(desk)
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 1000)
    heavy = replace(a_table(["dt"], name="heavy", location="hdfs://nn/elsewhere/heavy", create_time=88), database=database)
    desk.world.catalog.add_table(replace(heavy, parameters={"x": "y" * 2000}), [a_partition("dt=1", place)])
    result = clean(desk)
    assert (records(result).state, bool(backups_in(desk, top))) == ((OrphanState.KEPT, True) if stays else (OrphanState.REMOVED, False))


def test_tables_that_are_large_together_do_not_hide_one_that_shows_old_files(desk, top, monkeypatch):
    place = f"{top}/{desk.log().standing[0].place}"
    drop_and_mark(desk)
    monkeypatch.setattr(ports, "MOST_OF_TABLES", 10_000)
    for number in range(20):
        other = a_table(name=f"other{number}", location=f"hdfs://nn/loader/{number}", create_time=88)
        desk.world.catalog.add_table(replace(other, database="loader", parameters={"x": "y" * 900}))
    rescue = replace(a_table(["dt"], name="rescue", location="hdfs://nn/elsewhere/rescue", create_time=88), database="loader")
    desk.world.catalog.add_table(replace(rescue, parameters={"x": "y" * 1000}), [a_partition("dt=1", place)])
    clean(desk)
    assert [path for path in backups_in(desk, top) if path.startswith(place)]


REFUSED, FAILED = MetastoreRefused("permission denied"), MetastoreUnavailable("Internal error processing get_partitions_by_names")


def refuse_partitions(desk, monkeypatch, *names, why=REFUSED, times=99):
    """Let the metastore refuse the partitions of these tables, or of all, so many times; returns how often it was asked for each."""
    partitions, asked = desk.world.metastore.partitions, Counter()

    def refuse(table):
        asked[table.name] += 1
        if table.name in (names or [table.name]) and asked[table.name] <= times:
            raise why
        return partitions(table)

    monkeypatch.setattr(desk.world.metastore, "partitions", refuse)
    return asked


def add_partitioned(desk, name, database, *partitions):
    table = replace(a_table(["dt"], name=name, location=f"hdfs://nn/elsewhere/{name}", create_time=88), database=database)
    desk.world.catalog.add_table(table, partitions)


@pytest.mark.parametrize("why", [REFUSED, FAILED])
def test_a_metastore_that_refuses_all_partitions_is_asked_for_them_twice_and_not_for_each_leftover(desk, top, monkeypatch, why):
    """Reading all partitions takes minutes, and a database may have hundreds of leftovers."""
    drop_and_mark(desk)
    kept = backups_in(desk, top)
    asked = refuse_partitions(desk, monkeypatch, why=why)
    add_partitioned(desk, "closed", "a")
    census = Census(desk.world.cluster)
    for _ in range(3):
        with pytest.raises(type(why)):
            census.partitions_inside(top, (), "sales")
    assert asked["closed"] == 2
    assert (clean(desk).code, backups_in(desk, top)) == (Exit.UNUSABLE, kept)


@pytest.mark.parametrize(("why", "database", "stays"), [(REFUSED, "loader", False), (REFUSED, "sales", True), (FAILED, "loader", True)])
def test_one_table_whose_partitions_are_refused_keeps_only_what_is_left_in_its_own_database(desk, top, monkeypatch, why, database, stays):
    """One at which the metastore fails may show anything, and is named; it ends nothing."""
    drop_and_mark(desk)
    refuse_partitions(desk, monkeypatch, "odd", why=why)
    add_partitioned(desk, "odd", database)
    add_partitioned(desk, "plain", "z")
    result = clean(desk)
    assert (records(result).state, bool(backups_in(desk, top))) == ((OrphanState.KEPT, True) if stays else (OrphanState.REMOVED, False))


def test_a_table_whose_partitions_fail_is_asked_for_them_twice_and_not_for_each_leftover(desk, top, monkeypatch):
    asked = refuse_partitions(desk, monkeypatch, "odd", why=FAILED)
    add_partitioned(desk, "odd", "loader")
    add_partitioned(desk, "plain", "z")
    census = Census(desk.world.cluster)
    for _ in range(3):
        census.partitions_inside(top, (), "sales")
    assert asked["odd"] == 2


def test_a_metastore_that_goes_away_while_partitions_are_read_keeps_everything(desk, top, monkeypatch):
    drop_and_mark(desk)
    kept, metastore = backups_in(desk, top), desk.world.metastore
    add_partitioned(desk, "odd", "loader")
    add_partitioned(desk, "plain", "z")
    partitions = metastore.partitions

    def go_away(table):
        if table.name != "odd":
            return partitions(table)
        metastore.fail_next("databases", FAILED)
        raise FAILED

    monkeypatch.setattr(metastore, "partitions", go_away)
    assert (clean(desk).code, backups_in(desk, top)) == (Exit.UNUSABLE, kept)


@pytest.mark.parametrize("why", [REFUSED, FAILED])
def test_a_refusal_that_passes_does_not_hide_what_a_partition_shows(desk, top, monkeypatch, why):
    place = f"{top}/{desk.log().standing[0].place}"
    drop_and_mark(desk)
    refuse_partitions(desk, monkeypatch, "rescue", why=why, times=1)
    add_partitioned(desk, "plain", "z")
    add_partitioned(desk, "rescue", "loader", a_partition("dt=1", place))
    clean(desk)
    assert [path for path in backups_in(desk, top) if path.startswith(place)]


@pytest.mark.parametrize("what", ["a database", "a table"])
def test_what_is_dropped_while_all_tables_are_read_costs_nothing(desk, monkeypatch, what):
    drop_and_mark(desk)
    metastore = desk.world.metastore
    desk.world.catalog.add_table(a_table(["dt"], name="brief", create_time=99))
    databases, partitions = metastore.databases, metastore.partitions

    def read(table):
        if table.name == "brief":
            desk.world.catalog.drop_table("sales.brief")
        return partitions(table)

    if what == "a database":
        monkeypatch.setattr(metastore, "databases", lambda: (*databases(), "brief"))
    else:
        monkeypatch.setattr(metastore, "partitions", read)
    assert records(clean(desk)).state is OrphanState.REMOVED
