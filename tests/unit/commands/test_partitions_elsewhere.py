"""Partitions whose locations lie outside their table: they cost neither the run's time nor its memory, however many there are."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.plan.analysis import Status
from hivekeeper.reasons import Code
from support.builders import PARQUET, a_partition, a_table
from support.desk import Desk
from support.fakes.files import FakeFiles
from support.world import World


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    return Desk(world)


def record(monkeypatch, call):
    """What a call of the file system is asked from now on, each time."""
    asked, act = [], getattr(FakeFiles, call)

    def ask_and_act(self, what):
        asked.append(what)
        return act(self, what)

    monkeypatch.setattr(FakeFiles, call, ask_and_act)
    return asked


@pytest.fixture
def looks(monkeypatch):
    """The lists of directories that were listed."""
    return record(monkeypatch, "look")


def add_partitions(desk, *locations):
    for number, location in enumerate(locations, 100):
        desk.world.catalog.add_partition(desk.table, a_partition(f"dt={number}", location, PARQUET))


def test_directories_outside_the_table_are_not_listed(desk, looks):
    add_partitions(desk, "hdfs://nn/warehouse/fin/huge", "hdfs://switched-off/x")
    (table,) = desk.compact().tables
    assert not [place for places in looks for place in places if "huge" in place or "switched-off" in place]
    refused = [unit for unit in table.observed.units if unit.status is Status.REFUSED]
    assert [unit.reason.code for unit in refused] == [Code.OUTSIDE_TABLE] * 2


def test_a_directory_of_many_partitions_is_listed_once(desk, looks):
    add_partitions(desk, *[desk.live("dt=9")] * 50)
    desk.analyze()
    assert [place for places in looks for place in places].count(desk.live("dt=9")) == 1


@pytest.mark.parametrize("command", ["analyze", "backup", "compact", "cleanup"])
def test_partitions_on_many_servers_are_not_looked_for(desk, monkeypatch, command):
    desk.compact()
    add_partitions(desk, *(f"hdfs://host{number}/x" for number in range(100)))
    asked = record(monkeypatch, "qualify")
    result = getattr(desk, command)()
    assert result.code is Exit.REFUSED
    assert not [path for path in asked if "host" in path]
