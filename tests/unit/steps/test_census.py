"""All tables of the metastore at once: whoever may create tables chooses how many there are, and how large."""

from __future__ import annotations

import weakref
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper import names, ports
from hivekeeper.model import Column
from hivekeeper.steps import census as module
from hivekeeper.steps.census import Census, PartitionInside
from hivekeeper.steps.observe import as_shown
from support.builders import a_partition, a_table
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
