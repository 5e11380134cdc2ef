"""A tenant marks thousands of tables as backup tables of one table in another database, whose definition takes long to read, as it has
megabytes of properties.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.model import Selection
from hivekeeper.ports import MetastoreRefused
from support.builders import a_table
from support.contexts import a_context
from support.world import World

MARKED = 30
COMMANDS = pytest.mark.parametrize("command", [show_orphans, clean_up_orphans])


def a_world(*marks):
    world = World()
    world.catalog.databases.update(["sales", "tenant"])
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    world.files.writer.make_directory("hdfs://nn/warehouse/sales")
    world.catalog.add_table(replace(a_table(name="heavy", location="hdfs://nn/tenant/heavy"), database="tenant"), [])
    for nth, mark in enumerate(marks):
        world.catalog.add_table(a_table(name=f"m{nth}", location=f"hdfs://nn/marked/m{nth}", parameters={names.BACKUP_OF: mark}), [])
    return world


def found(world, command):
    result = command(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"))
    assert result.tables[0].problem is None
    return [orphan.table for orphan in result.tables[0].orphans]


@COMMANDS
def test_its_definition_is_not_read_for_each_of_them(command):
    world = a_world(*[f"{database}.heavy" for database in ("tenant", "Tenant", "TENANT") for _ in range(MARKED // 3)])
    ask, asked, named, ask_names = world.metastore.tables, [], [], world.metastore.table_names
    world.metastore.tables = lambda database, names: asked.extend(names) or ask(database, names)
    world.metastore.table_names = lambda database: named.append(database) or ask_names(database)
    assert found(world, command) == []
    assert asked.count("heavy") == 0
    assert named.count("tenant") == 1


def test_what_is_not_there_is_told_and_what_is_not_known_is_not(monkeypatch):
    world = a_world("tenant.heavy", "tenant.gone", "nowhere.gone", "no name", "closed.gone", "sales.m0", "sales.gone", "Tenant.HEAVY")
    for method in ("tables", "table_names"):
        ask = getattr(world.metastore, method)

        def refuse(database, *more, ask=ask):
            if database == "closed":
                raise MetastoreRefused("no privilege")
            return ask(database, *more)

        monkeypatch.setattr(world.metastore, method, refuse)
    assert found(world, show_orphans) == ["tenant.gone", "nowhere.gone", "sales.gone"]
