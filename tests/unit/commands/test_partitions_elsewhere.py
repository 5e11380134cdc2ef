"""Partitions whose locations lie outside their table, or absurdly deep in it: they cost neither the run's time nor its memory."""

from __future__ import annotations

import tracemalloc

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.plan.analysis import Status
from hivekeeper.reasons import Code
from hivekeeper.steps import observe
from hivekeeper.steps.census import Census
from support.builders import PARQUET, ROOT, a_partition, a_table
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

    def ask_and_act(self, what, *limits):
        asked.append(what)
        return act(self, what, *limits)

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


def foreign(asked):
    return {names.server_of(path) for path in asked if "mallory" in path}


def backup_tables(desk):
    return [name for name, table in desk.world.catalog.tables.items() if names.BACKUP_OF in table.parameters]


def far_away(name, path="/x"):
    """Partitions on more servers than are asked for."""
    return [a_partition(f"{name}={number}", f"hdfs://n{number}.mallory:8020{path}") for number in range(observe.MOST_SERVERS + 80)]


def test_partitions_that_others_add_to_a_backup_table_are_not_looked_for_and_go(desk, monkeypatch):
    desk.compact(where="dt = '1'")
    (backup,) = backup_tables(desk)
    for partition in far_away("x"):
        desk.world.catalog.add_partition(backup, partition)
    asked = record(monkeypatch, "qualify")
    assert desk.compact().code is Exit.DONE
    assert not foreign(asked)
    assert list(desk.world.partitions(backup)) == ["dt=1"]


def test_partitions_of_a_backup_table_on_many_servers_are_not_looked_for(desk, monkeypatch):
    desk.world.add_table(a_table(["dt"], name="many"), {f"dt={number}": [1000] * 3 for number in range(observe.MOST_SERVERS + 80)})
    desk = Desk(desk.world, "sales.many")
    desk.compact()
    (backup,) = backup_tables(desk)
    for partition in far_away("dt"):
        desk.world.catalog.put_partition(backup, partition)
    asked = record(monkeypatch, "qualify")
    assert desk.compact().code is Exit.DONE
    assert not foreign(asked)


def test_partitions_that_come_while_a_run_is_interrupted_are_not_looked_for(desk, monkeypatch):
    """Where one is missing, the places of all others are compared with its place."""
    desk.kill_before(["rename_exact", "ready/", f" {desk.live('dt=1')}"], desk.compact)
    desk.world.catalog.drop_partition(desk.table, "dt=2")
    for partition in far_away("x"):
        desk.world.catalog.partitions[desk.table].setdefault(partition.name, partition)
    asked = record(monkeypatch, "qualify")
    assert desk.recover().tables[0].problem.code is Code.UNSETTLED
    assert not foreign(asked)
    desk.world.catalog.partitions[desk.table] = {
        name: one for name, one in desk.world.partitions(desk.table).items() if "mallory" not in one.location
    }
    # The run is ended, and tells of the partition that was dropped.
    assert desk.recover().tables[0].problem.code is Code.CHANGED_IN_OUTAGE
    assert len(desk.world.files.look([desk.live("dt=1")])[desk.live("dt=1")].entries) == 1


def test_partitions_in_control_directories_on_many_servers_keep_what_lies_there_by_its_path(desk, monkeypatch):
    control = "/warehouse/sales/gone/.hivekeeper"
    for partition in far_away("dt", f"{control}/runs"):
        desk.world.catalog.partitions[desk.table].setdefault(partition.name, partition)
    asked = record(monkeypatch, "qualify")
    census = Census(desk.world.cluster)
    # Also for whoever compares them with the directory of a backup.
    assert {place for _, place in census.partitions_inside(f"hdfs://nn{control}", [], "sales")} == {f"hdfs://nn{control}/runs"}
    assert not census.partitions_inside(f"hdfs://nn{control}-other", [], "sales")
    assert not foreign(asked)


def test_a_partition_in_a_control_directory_on_an_unknown_server_keeps_what_lies_there_by_its_path(desk):
    control = "/warehouse/sales/gone/.hivekeeper"
    locations = [f"hdfs://silent:2121{control}/runs", f"hdfs://silent:2121{control}-other/runs", f"//silent{control}/x"]
    for number, location in enumerate(locations):
        desk.world.catalog.add_partition(desk.table, a_partition(f"dt={number}", location))
    census = Census(desk.world.cluster)
    assert census.partitions_inside(f"hdfs://nn{control}", [], "sales") == [("sales.events/dt=0", f"hdfs://nn{control}/runs")]


@pytest.mark.parametrize("command", ["analyze", "compact"])
def test_the_directories_above_partitions_do_not_take_the_drivers_memory(desk, monkeypatch, command):
    """In the metastore a location of 4,000 characters costs nothing; all above it have 4 MB of names."""
    monkeypatch.setattr(observe, "MOST_CHARACTERS_ABOVE", 2**24)
    add_partitions(desk, *(f"{desk.live(f'dt={number}')}{'/a' * 1950}" for number in range(50)))
    tracemalloc.start()
    result = getattr(desk, command)()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.code is Exit.REFUSED
    assert most < 2**26


def test_directories_above_partitions_are_looked_at_once(desk, monkeypatch):
    add_partitions(desk, *(f"{ROOT}/a/b/c/{number}" for number in range(50)))
    asked = record(monkeypatch, "look_hidden")
    desk.analyze()
    above = [place for places in asked for place in places if "/a" in place]
    assert sorted(above) == [f"{ROOT}/{place}" for place in ("a", "a/b", "a/b/c")]


@pytest.mark.parametrize("dry_run", [True, False])
def test_deep_locations_in_the_control_directory_take_no_memory_of_a_cleanup(desk, dry_run):
    """They need not exist, and the metastore takes 4,000 characters for each: 30,000 of them are less than MOST_OF_PARTITIONS."""
    desk.compact()
    add_partitions(desk, *((f"{desk.control.top}/{number}" + "/a" * 2000)[:4000] for number in range(100)))
    tracemalloc.start()
    try:
        result = desk.cleanup(dry_run=dry_run)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.code is Exit.DONE
    assert most < 50 * 2**20, f"{most / 2**20:.0f} MiB for {100 * 4000 / 2**20:.1f} MiB of locations"
