"""The tables that a command works on, read one database at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.commands import selection
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.selection import SelectedTables
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable, NeverStops
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.world import World

DATABASES = ("hr", "sales", "web")


@pytest.fixture
def world():
    world = World()
    for database in DATABASES:
        world.catalog.databases.add(database)
        for name in ("events", "people"):
            table = a_table(name=name, location=f"hdfs://nn/warehouse/{database}/{name}")
            world.add_table(replace(table, database=database), {"": [1000] * 3})
    return world


def fail_on(world, monkeypatch, database, error):
    metastore = type(world.metastore)
    tables = metastore.tables

    def read(self, of, names):
        if of == database:
            raise error
        return tables(self, of, names)

    monkeypatch.setattr(metastore, "tables", read)


def select(world):
    return SelectedTables(world.cluster, Selection(databases=DATABASES), "__bkp_")


def test_the_definitions_of_a_database_are_read_when_its_first_table_is_taken(world, monkeypatch):
    read, tables = [], type(world.metastore).tables

    def note(self, database, names):
        read.append(database)
        return tables(self, database, names)

    monkeypatch.setattr(type(world.metastore), "tables", note)
    taken = [(table.full_name, tuple(read)) for table in select(world)]
    until = {database: DATABASES[: nth + 1] for nth, database in enumerate(DATABASES)}
    assert taken == [(f"{database}.{name}", until[database]) for database in DATABASES for name in ("events", "people")]


def many(world, number):
    """Tables of a database, and their names in order."""
    chosen = [f"t{at:03d}" for at in range(number)]
    for name in chosen:
        world.add_table(replace(a_table(name=name, location=f"hdfs://nn/warehouse/web/{name}"), database="web"), {"": [1000]})
    return ["events", "people", *chosen]


def test_no_more_definitions_are_held_than_are_read_at_once(world, monkeypatch):
    """Whoever may create tables makes ten thousand of a thousand columns, whose names and types have five characters: all of them had
    fewer characters than one call may tell, and took gigabytes both in Java and here.
    """
    monkeypatch.setattr(selection, "TABLES_AT_ONCE", 10)
    chosen, asked, tables = many(world, 95), [], type(world.metastore).tables

    def note(self, database, names):
        asked.append(list(names))
        return tables(self, database, names)

    monkeypatch.setattr(type(world.metastore), "tables", note)
    taken = [table.name for table in SelectedTables(world.cluster, Selection(databases=("web",)), "__bkp_")]
    assert taken == chosen
    assert asked == [chosen[start : start + 10] for start in range(0, len(chosen), 10)]


@pytest.mark.parametrize("error", [MetastoreUnavailable("it does not answer"), MetastoreRefused("it is closed"), ValueError("a bug")])
def test_a_database_that_fails_on_the_way_is_asked_no_more_and_the_next_one_is_read(world, monkeypatch, error):
    """Each request may wait for minutes."""
    monkeypatch.setattr(selection, "TABLES_AT_ONCE", 10)
    chosen, asked, tables = many(world, 95), [], type(world.metastore).tables

    def read(self, database, names):
        asked.append(database)
        if database == "web" and asked.count("web") > 2:
            raise error
        return tables(self, database, names)

    monkeypatch.setattr(type(world.metastore), "tables", read)
    selected = SelectedTables(world.cluster, Selection(databases=("web", "hr")), "__bkp_")
    taken = [table.full_name for table in selected]
    assert taken == [*(f"web.{name}" for name in chosen[:20]), "hr.events", "hr.people"]
    assert asked == ["web"] * 3 + ["hr"]
    is_refused = isinstance(error, MetastoreRefused)
    assert list(selected.absent) == (["web"] if is_refused else [f"web.{name}" for name in chosen[20:]])


@pytest.mark.parametrize(
    ("error", "code"),
    [(MetastoreUnavailable("it does not answer"), Code.METASTORE_UNUSABLE), (ValueError("a bug of ours"), Code.BUG)],
)
def test_what_was_done_is_told_although_a_later_database_cannot_be_read(world, monkeypatch, error, code):
    fail_on(world, monkeypatch, "sales", error)
    result = analyze(a_context(world.cluster, Selection(databases=DATABASES), "20260101t020000z-0000", Settings()))
    problems = {table.table: table.problem.code if table.problem else None for table in result.tables}
    assert problems == {
        **dict.fromkeys(["hr.events", "hr.people", "web.events", "web.people"]),
        **dict.fromkeys(["sales.events", "sales.people"], code),
    }


def test_a_metastore_that_does_not_answer_at_first_ends_the_command(world, monkeypatch):
    fail_on(world, monkeypatch, "hr", MetastoreUnavailable("it does not answer"))
    with pytest.raises(MetastoreUnavailable):
        list(select(world))


def test_tables_of_a_session_that_has_ended_are_not_begun(world, monkeypatch):
    fail_on(world, monkeypatch, "sales", ValueError("a connection that is gone"))
    tables = select(world)
    tables._cluster = replace(world.cluster, lost=lambda: "the driver has ended")
    assert len(list(tables)) == 4
    assert {why.code for why in tables.absent.values()} == {Code.SPARK_ENDED}


def test_a_table_whose_turn_comes_later_is_read_again_alone(world, monkeypatch):
    read, tables = [], type(world.metastore).tables

    def note(self, database, names):
        read.append((database, *names))
        return tables(self, database, names)

    monkeypatch.setattr(type(world.metastore), "tables", note)
    selected = select(world)
    for table in selected:
        if table.full_name == "hr.events":
            world.catalog.put_table(replace(world.table("hr.people"), create_time=99))
            world.catalog.drop_table("web.events")
            world.clock.sleep_ms(60_000)
        if table.full_name == "hr.people":
            assert table.create_time == 99
        if table.full_name == "sales.events":
            world.catalog.drop_table("sales.people")
            world.clock.sleep_ms(60_000)
    both = ("events", "people")
    assert read == [("hr", *both), ("hr", "people"), ("sales", *both), ("sales", "people"), ("web", *both)]
    assert {name: why.code for name, why in selected.absent.items()} == dict.fromkeys(["sales.people", "web.events"], Code.NO_SUCH_TABLE)


def test_nothing_is_read_again_for_a_command_that_ends(world, monkeypatch):
    selected = select(world)
    tables = iter(selected)
    assert next(tables).full_name == "hr.events"
    world.clock.sleep_ms(60_000)
    fail_on(world, monkeypatch, "hr", MetastoreUnavailable("it does not answer"))
    selected._cluster = replace(world.cluster, stopping=Ends())
    assert next(tables).full_name == "hr.people"


class Ends(NeverStops):
    def why(self):
        return "a signal"


def turns(world, selected, seed):
    return [table.full_name for table in SelectedTables(world.cluster, selected, "__bkp_", seed)]


def test_a_seed_gives_an_order_of_its_own_in_which_each_database_and_each_of_its_tables_comes_first_in_turn(world):
    found = [turns(world, Selection(databases=DATABASES), str(seed)) for seed in range(50)]
    every = {f"{database}.{name}" for database in DATABASES for name in ("events", "people")}
    assert [set(one) for one in found] == [every] * 50
    assert {one[0] for one in found} == {one[-1] for one in found} == every
    # The definitions of no two databases are needed at once.
    assert all([name.partition(".")[0] for name in one[::2]] == [name.partition(".")[0] for name in one[1::2]] for one in found)
    assert found == [turns(world, Selection(databases=DATABASES), str(seed)) for seed in range(50)]


def test_tables_that_are_named_come_before_all_others_as_named(world):
    selected = Selection(databases=("sales", "hr"), tables=("web.people", "sales.people", "web.events"))
    found = [turns(world, selected, str(seed)) for seed in range(20)]
    assert [one[:3] for one in found] == [["web.people", "web.events", "sales.people"]] * 20
    assert {tuple(one[3:]) for one in found} == {
        ("sales.events", "hr.events", "hr.people"),
        ("sales.events", "hr.people", "hr.events"),
        ("hr.events", "hr.people", "sales.events"),
        ("hr.people", "hr.events", "sales.events"),
    }


class Limited(NeverStops):
    is_limited = True


@pytest.mark.parametrize("stopping", [NeverStops(), Limited()])
def test_what_was_done_is_told_by_database_as_named_and_then_by_name(world, monkeypatch, stopping):
    read, names, tables = [], type(world.metastore).table_names, type(world.metastore).tables

    def drop_behind(self, database):
        told = names(self, database)
        return (*told, "gone") if database in ("web", "hr") else told

    def note(self, database, some):
        read.append(database)
        return tables(self, database, some)

    monkeypatch.setattr(type(world.metastore), "table_names", drop_behind)
    monkeypatch.setattr(type(world.metastore), "tables", note)
    orders = set()
    for second in range(10):
        read.clear()
        selected = Selection(databases=("web", "none", "hr", "sales"))
        context = a_context(replace(world.cluster, stopping=stopping), selected, f"20260101t0200{second:02d}z-0000", Settings())
        told = [table.table for table in analyze(context).tables]
        there = [f"{database}.{name}" for database in ("web", "hr", "sales") for name in ("events", "people")]
        assert told == ["none", "web.gone", "hr.gone", *there]
        orders.add(tuple(dict.fromkeys(read)))
    assert (len(orders) > 1) == stopping.is_limited
