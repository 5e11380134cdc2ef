"""All tables of the metastore at once: whoever may create tables chooses how many there are, and how large."""

from __future__ import annotations

import weakref
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper import names, ports
from hivekeeper.model import Column, Table
from hivekeeper.ports import MetastoreRefused
from hivekeeper.steps import census as module
from hivekeeper.steps.census import Census, PartitionInside
from hivekeeper.steps.observe import as_shown
from support.builders import a_partition, a_table
from support.hive_statements import Hive
from support.world import World

LONG = 2**19
PARTS = {
    "properties": {"parameters": {"x": "y" * LONG}},
    "mark": {"parameters": {names.BACKUP_OF: "y" * LONG}},
    "columns": {"partition_columns": tuple(Column(f"{number}{'y' * 2**10}", "string") for number in range(2**9))},
}


class Text(str):
    """Unlike a str it can be referred to weakly."""


def copied(table):
    """As a metastore tells it, whose answers share nothing."""
    parameters = {key: Text(value) for key, value in table.parameters.items()}
    columns = tuple(Column(Text(one.name), one.type) for one in table.partition_columns)
    return replace(table, parameters=parameters, partition_columns=columns)


def texts_of(table):
    return [*table.parameters.values(), *(one.name for one in table.partition_columns)]


@pytest.mark.parametrize("part", list(PARTS))
def test_many_tables_that_are_just_not_too_large_are_not_held_together(part, monkeypatch):
    monkeypatch.setattr(ports, "MOST_OF_TABLES", 4 * LONG)
    world = World()
    for number in range(40):
        table = replace(a_table(["dt"], name=f"t{number}", location=f"hdfs://nn/x/{number}"), **PARTS[part])
        world.catalog.add_table(table)
    ask, told = world.metastore.tables, []

    def held():
        return sum(text() is not None for text in told)

    def tables(*wanted):
        assert held() == 0
        answer = {name: copied(one) for name, one in ask(*wanted).items()}
        told.extend(weakref.ref(text) for table in answer.values() for text in texts_of(table))
        return answer

    monkeypatch.setattr(world.metastore, "tables", tables)
    found = Census(world.cluster).tables()
    assert [(one.location, one.partitioned, bool(one.unreadable)) for one in found if one.name == "t7"] == [("hdfs://nn/x/7", True, False)]
    assert len(found) == 40
    assert len(told) >= 40
    assert held() == 0


@pytest.mark.parametrize(
    ("location", "database", "found"),
    [("hdfs://nn/tenant/.hivekeeper-x/{}", "tenant", 0), ("hdfs://far/tenant/.hivekeeper-x/{}", "tenant", 0)]
    + [("hdfs://nn/warehouse/*/{}", "tenant", 0), ("hdfs://nn/warehouse/*/{}", "sales", 1)],
)
def test_many_partitions_are_not_looked_at_for_each_leftover_elsewhere(location, database, found, monkeypatch):
    world = World()
    table = replace(a_table(["dt"], name="mine", location=f"hdfs://nn/{database}/mine"), database=database)
    world.catalog.add_table(table, [a_partition(f"dt={nth}", location.format(nth)) for nth in range(300)])
    looked, is_shown = [], module._is_shown
    monkeypatch.setattr(module, "_is_shown", lambda place, *more, **named: looked.append(place) or is_shown(place, *more, **named))
    census = Census(world.cluster)
    for nth in range(10):
        assert len(census.partitions_inside(f"hdfs://nn/warehouse/x/.hivekeeper-gone{nth}", (), "sales")) == found
    assert len(looked) == 10 * found


TOP = "hdfs://nn/warehouse/x/.hivekeeper-gone"


class Renamed:
    """A table with a partition in a control directory, which is renamed while the partitions of all tables are read."""

    def __init__(self, monkeypatch):
        self.world = World()
        self.world.catalog.databases.add("sales")
        self.hive = Hive(self.world)
        self.asked = []
        self.add("fin.rescue", 7, a_partition("dt=1", f"{TOP}/runs/x"))
        self.add("fin.zoo", 8)
        partitions = self.world.metastore.partitions

        def read(table):
            self.asked.append(table.full_name)
            self.before(table)
            found = partitions(table)
            self.after(table)
            return found

        monkeypatch.setattr(self.world.metastore, "partitions", read)

    def before(self, table):
        """When the metastore is asked for the partitions of a table."""

    def after(self, table):
        """When it has answered."""

    def add(self, name, create_time, *partitions):
        database, _, base = name.partition(".")
        table = a_table(["dt"], name=base, location=f"hdfs://nn/elsewhere/{create_time}", create_time=create_time)
        self.world.catalog.add_table(replace(table, database=database), partitions)

    def rename(self, old, new):
        if new and old in self.world.catalog.tables:
            list(self.hive.rename_table(old, new))

    def found(self):
        return [name for name, _ in Census(self.world.cluster).partitions_inside(TOP, (), "sales")]


@pytest.fixture
def renamed(monkeypatch):
    return Renamed(monkeypatch)


@pytest.fixture(params=["refuses", "knows none"])
def absent(request, monkeypatch, renamed):
    """What a metastore says of the partitions of a table that is not there: without a listener before reads it does not look for it."""
    partitions = renamed.world.metastore.partitions

    def read(table):
        try:
            return partitions(table)
        except MetastoreRefused:
            return ()

    if request.param == "knows none":
        monkeypatch.setattr(renamed.world.metastore, "partitions", read)


@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize("new", ["fin.a", "fin.z", "default.a", "sales.z"])
def test_the_partitions_of_a_table_that_is_renamed_before_its_turn_are_known(renamed, new):
    renamed.before = lambda _: renamed.rename("fin.rescue", new)
    assert renamed.found() == [f"{new}/dt=1"]


@pytest.mark.usefixtures("absent")
def test_so_are_those_of_one_that_has_its_name_again_after_its_turn(renamed):
    turns = iter([("fin.rescue", "fin.away"), ("fin.away", "fin.rescue")])
    renamed.before = lambda _: renamed.rename(*next(turns, ("", "")))
    assert renamed.found() == ["fin.rescue/dt=1"]


@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize("by", ["a new one", "another one"])
def test_so_are_those_of_one_whose_name_another_table_has_at_its_turn(renamed, by):
    """Nothing is refused then: a table is made anew beside, and the names are exchanged."""
    renamed.add("fin.zoo2", 9, a_partition("dt=1", "hdfs://nn/elsewhere/9/dt=1"))

    def before(table):
        if table.name == "rescue" and "fin.old" not in renamed.world.catalog.tables:
            renamed.rename("fin.rescue", "fin.old")
            if by == "another one":
                renamed.rename("fin.zoo2", "fin.rescue")
            else:
                renamed.add("fin.rescue", 10, a_partition("dt=1", "hdfs://nn/elsewhere/10/dt=1"))

    renamed.before = before
    assert renamed.found() == ["fin.old/dt=1"]


def test_so_are_those_of_one_that_has_its_name_again_when_it_is_asked_for_by_another(renamed):
    def before(table):
        if table.name == "rescue" and "fin.new" not in renamed.world.catalog.tables:
            renamed.rename("fin.rescue", "fin.old")
            renamed.add("fin.rescue", 10, a_partition("dt=1", "hdfs://nn/elsewhere/10/dt=1"))
        elif table.name == "old":
            renamed.rename("fin.rescue", "fin.new")
            renamed.rename("fin.old", "fin.rescue")

    renamed.before = before
    assert renamed.found() == ["fin.rescue/dt=1"]


@pytest.mark.usefixtures("absent")
def test_a_table_that_is_renamed_a_second_time_is_found_in_the_next_round(renamed):
    new = {"fin.rescue": "fin.b", "fin.b": "fin.c"}
    renamed.before = lambda table: renamed.rename(table.full_name, new.get(table.full_name, ""))
    assert renamed.found() == ["fin.c/dt=1"]


@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize("first", ["fin.rescue", "fin.b"], ids=["before the turns of all", "after them"])
def test_one_that_is_in_no_answer_of_a_reading_of_all_tables_is_in_one_of_the_next(renamed, monkeypatch, first):
    """It is renamed while all tables are read, from a database that is read late to one that was read early."""
    names_of = renamed.world.metastore.table_names

    def read(database):
        found = names_of(database)
        if database == "default":
            renamed.rename(first, "default.rescued")
        return found

    monkeypatch.setattr(renamed.world.metastore, "table_names", read)
    renamed.before = lambda _: renamed.rename("fin.rescue", "fin.b")
    assert renamed.found() == ["default.rescued/dt=1"]


def test_one_that_is_too_large_to_be_read_counts_for_the_database_that_it_is_moved_to_meanwhile(renamed, monkeypatch):
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 1000)
    stored = renamed.world.catalog.tables["fin.rescue"]
    renamed.world.catalog.put_table(replace(stored, parameters={"x": "y" * 2000}))
    renamed.before = lambda _: renamed.rename("fin.rescue", "sales.z")
    assert renamed.found() == ["sales.z/(which cannot be read)"]


@pytest.mark.usefixtures("absent")
def test_one_that_is_renamed_again_and_again_may_show_everything_and_is_named(renamed, caplog):
    """In any database: its owner can have that at any time, as with partitions that let each request fail."""
    renamed.before = lambda table: table.name == "zoo" or renamed.rename(table.full_name, f"{table.full_name}x")
    last = f"fin.rescue{'x' * module.MOST_ROUNDS}"
    assert renamed.found() == [f"{last}/(which cannot be read)"]
    assert f"step=read-partitions renamed tables=1 table={last}" in caplog.text


@pytest.mark.usefixtures("absent")
def test_tables_that_come_and_go_all_the_time_let_nothing_be_read_again(renamed):
    """As a job does that writes a table beside, and exchanges the names."""
    count = iter(range(20, 100))

    def before(_):
        nth = next(count)
        if "fin.zoo" in renamed.world.catalog.tables:
            renamed.world.catalog.drop_table("fin.zoo")
        renamed.add(f"fin.new{nth}", nth)
        renamed.rename(f"fin.new{nth}", "fin.zoo")

    renamed.before = before
    assert renamed.found() == ["fin.rescue/dt=1"]
    assert sorted(renamed.asked) == ["fin.rescue", "fin.zoo"]


def test_a_table_that_is_renamed_after_its_turn_is_found_once_more_at_most(renamed):
    renamed.after = lambda _: renamed.rename("fin.rescue", "fin.rescued")
    assert set(renamed.found()) == {"fin.rescue/dt=1", "fin.rescued/dt=1"}
    assert renamed.asked.count("fin.rescued") == 1


@pytest.mark.parametrize("new", ["fin.a", "default.a", "sales.z"])
@pytest.mark.parametrize("nth", range(2, 5))
def test_a_table_that_is_renamed_while_all_are_read_once_more_is_known_by_the_reading_before(renamed, monkeypatch, nth, new):
    """As every minute of a cleanup of hours: only the first reading was done twice just before."""
    world, asked = renamed.world, []
    world.catalog.put_table(replace(world.catalog.tables["fin.rescue"], location=f"{TOP}/runs/x"))
    census, names_of = Census(world.cluster), world.metastore.table_names
    assert set(census.tables_inside(TOP, ())) == {("fin.rescue", f"{TOP}/runs/x")}
    world.clock.elapsed_ms += 120_000

    def read(database):
        found = names_of(database)
        asked.append(database)
        if len(asked) == nth - 1:
            renamed.rename("fin.rescue", new)
        return found

    monkeypatch.setattr(world.metastore, "table_names", read)
    assert f"{TOP}/runs/x" in {place for _, place in census.tables_inside(TOP, ())}
    assert len(asked) == 3
    assert "was created in the same second" in census.why_perhaps_there(["fin.rescue@7"])
    assert len(asked) == 3


def test_the_places_of_all_tables_are_not_gone_through_for_each_control_directory(monkeypatch):
    world, asked, places = World(), [], Table.places
    for nth in range(200):
        world.catalog.add_table(a_table(name=f"t{nth}", location=f"hdfs://nn/x/{nth}"))
    world.catalog.add_table(a_table(name="rescue", location="hdfs://nn/x/.hivekeeper-gone7/runs/r"))

    def ask(table):
        asked.append(table.name)
        return places.fget(table)

    census = Census(world.cluster)
    monkeypatch.setattr(Table, "places", property(ask))
    found = [name for nth in range(50) for name, _ in census.tables_inside(f"hdfs://nn/x/.hivekeeper-gone{nth}", ())]
    assert {*found} == {"sales.rescue"}
    assert len(asked) <= 5 * 200


PATHS = ["/a/.hivekeeper", "/a/.hivekeeper-t", "/a/.hivekeeper/a/.hivekeeper", "/.hivekeeper", "/a[1]/.hivekeeper"]
TOPS = [*(f"hdfs://nn{path}" for path in PATHS), "file:/a/.hivekeeper", "hdfs://far/a/.hivekeeper"]
SERVERS = ["hdfs://nn", "hdfs://n", "hdfs://", "hdfs:", "h", "", "//far", "hdfs://far", "s3a://far", "file:"]
FILES = World().files
ENDS = ["", "/", "*", "/*", "/x", "/x/{y", "0", "-t"]


def shown(partitions, top):
    """Those that show something in a control directory of a table of `sales`, by a look at each of them."""
    seen = [(one, as_shown(FILES, one.location, top)) for one in partitions]
    return [(one, place) for one, place in seen if module._is_shown(place, top, is_of_database=one.database == "sales")]


@pytest.mark.parametrize("database", ["sales", "loader"])
def test_by_place_each_is_found_that_a_look_at_it_finds(database):
    begins = {path[:length] for path in PATHS for length in range(len(path) + 1)}
    texts = {f"{server}{begin}{end}" for server in SERVERS for begin in begins for end in ENDS}
    for one in (PartitionInside(database, "t/dt=1", text, "") for text in sorted(texts)):
        index = module._ByPlace([one])
        for top in TOPS:
            assert shown(index.around(top, "sales"), top) == shown([one], top), (one.location, top)


LOCATIONS = st.builds("{}{}".format, st.sampled_from(["hdfs://nn", "hdfs://far"]), st.sampled_from(["/a/.h*", "/a/.h[x]", "/a/*", *PATHS]))


@given(st.lists(st.tuples(LOCATIONS, st.sampled_from(["sales", "loader"]), st.sampled_from(["", "sales.events"])), max_size=12))
def test_patterns_that_begin_alike_stand_for_each_other_only_if_they_find_the_same(partitions):
    every = [PartitionInside(database, str(nth), place, of) for nth, (place, database, of) in enumerate(partitions)]

    def told(found):
        # All that is asked of them besides their names.
        return {(one.database, one.backup_of, names.before_pattern(place)) for one, place in found}

    for top in TOPS:
        found = shown(module._ByPlace(every).around(top, "sales"), top)
        assert told(found) == told(shown(every, top))
        assert len(found) == len(set(found))
