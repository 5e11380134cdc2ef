"""All tables of the metastore at once: whoever may create tables chooses how many there are, and how large."""

from __future__ import annotations

import weakref
from dataclasses import replace

import pytest

from hivekeeper import names, ports
from hivekeeper.model import Column
from hivekeeper.steps.census import Census
from support.builders import a_table
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
