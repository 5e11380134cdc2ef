"""A table whose properties are huge, or that the metastore cannot read, costs no other table its night."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import ports
from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.model import Selection, Table
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

COMMANDS = ["analyze", "backup", "compact", "verify", "rollback", "cleanup", "history", "recover"]


@pytest.fixture
def desk(monkeypatch):
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 2**14)
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 2**16)
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    return Desk(world)


def grow(desk):
    table = desk.world.catalog.tables[desk.table]
    desk.world.catalog.put_table(replace(table, parameters={"x": "x" * 2**14}))


def grow_partitions(desk):
    stored = desk.world.catalog.partitions[desk.table]
    for partition in list(stored.values()):
        desk.world.catalog.put_partition(desk.table, replace(partition, parameters={"x": "x" * 2**15}))


def fail(desk):
    desk.world.catalog.unreadable.add(desk.table)


@pytest.mark.parametrize("spoil", [grow, fail])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_without_a_readable_definition_is_refused(desk, command, spoil):
    desk.compact()
    spoil(desk)
    (table,) = getattr(desk, command)().tables
    assert (table.code, table.problem.code) == (Exit.REFUSED, Code.UNREADABLE_DEFINITION)


@pytest.mark.parametrize("command", ["analyze", "backup", "compact", "cleanup"])
def test_a_table_with_huge_partitions_is_refused(desk, command):
    desk.compact()
    grow_partitions(desk)
    (table,) = getattr(desk, command)().tables
    assert (table.code, table.problem.code) == (Exit.REFUSED, Code.UNREADABLE_DEFINITION)


@pytest.mark.parametrize("spoil", [grow, grow_partitions, fail])
def test_the_other_tables_are_compacted(desk, spoil):
    desk.world.add_table(a_table(["dt"], name="other"), {"dt=1": [1000] * 3})
    spoil(desk)
    result = compact_swap.compact_swap(a_context(desk.world.cluster, Selection(databases=("sales",)), desk._new_run(), desk.settings))
    assert {table.table: table.code for table in result.tables} == {"sales.events": Exit.REFUSED, "sales.other": Exit.DONE}


@pytest.mark.parametrize("spoil", [grow, fail])
def test_a_table_that_cannot_be_read_any_more_during_a_run_is_not_taken_for_another(spoil, monkeypatch):
    """Its rows are where the run left them, and nothing says that it was dropped or moved."""
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 2**14)
    world = World()
    world.add_table(a_table([]), {"": [1000] * 3})
    desk = Desk(world)

    def spoil_at(what):
        if "live → retired" in what or "/retired/" in what:
            spoil(desk)

    world.files.before_step = spoil_at
    (table,) = desk.compact().tables
    world.files.before_step = None
    assert [unit.outcome.code for unit in table.units] == ["swapped"]


@pytest.mark.parametrize("theirs", [2**12, 2**13], ids=["lighter", "heavier"])
def test_many_tables_that_are_just_not_too_large_cost_no_other_table_its_definition(desk, monkeypatch, theirs):
    """All that one call returns is in memory together. Which of them are too much with the others, their owners choose."""
    monkeypatch.setattr(ports, "MOST_OF_TABLES", 4 * 2**14)
    desk.world.set_property(desk.table, schema="x" * (2**12 + 100))
    for nth in range(20):
        desk.world.catalog.add_table(a_table(name=f"large{nth}", location=f"hdfs://nn/elsewhere/t{nth}", parameters={"x": "y" * theirs}))
    result = compact_swap.compact_swap(a_context(desk.world.cluster, Selection(databases=("sales",)), desk._new_run(), desk.settings))
    codes = {table.table: table.problem.code if table.problem else table.code for table in result.tables}
    assert codes["sales.events"] is Exit.DONE
    assert Code.UNREADABLE_DEFINITION not in codes.values()


def test_a_table_that_cannot_be_asked_for_alone_is_told_and_the_others_are_done(desk, monkeypatch):
    desk.world.add_table(a_table(["dt"], name="before"), {"dt=1": [1000] * 3})
    grow(desk)
    ask = desk.world.metastore.tables

    def tables(database, wanted):
        if list(wanted) == ["events"]:
            raise MetastoreUnavailable("timeout")
        return ask(database, wanted)

    monkeypatch.setattr(desk.world.metastore, "tables", tables)
    result = compact_swap.compact_swap(a_context(desk.world.cluster, Selection(databases=("sales",)), desk._new_run(), desk.settings))
    assert {table.table: table.code for table in result.tables} == {"sales.events": Exit.UNUSABLE, "sales.before": Exit.DONE}


def test_what_could_not_be_read_says_nothing():
    table = Table.without_definition("sales", "events", "it is too large")
    with pytest.raises(MetastoreRefused, match=r"sales\.events: it is too large"):
        ports.require_readable(table)
    assert ports.require_readable(None) is None


def test_a_database_that_is_closed_before_its_table_is_asked_for_alone_costs_no_other_its_night(desk, monkeypatch):
    stored = replace(a_table(name="heavy", location="hdfs://nn/closed/heavy", parameters={"x": "x" * 2**14}), database="closed")
    desk.world.catalog.add_table(stored)
    ask, asked = desk.world.metastore.tables, []

    def tables(database, wanted):
        asked.extend([database] * (database == "closed"))
        if len(asked) > 1 and database == "closed":
            raise MetastoreRefused("Permission denied")
        return ask(database, wanted)

    monkeypatch.setattr(desk.world.metastore, "tables", tables)
    selected = Selection(databases=("closed", "sales"))
    result = compact_swap.compact_swap(a_context(desk.world.cluster, selected, desk._new_run(), desk.settings))
    assert {table.table: table.code for table in result.tables} == {"closed.heavy": Exit.UNUSABLE, "sales.events": Exit.DONE}
