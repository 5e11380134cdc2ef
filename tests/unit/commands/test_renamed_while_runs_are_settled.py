"""A tenant has many tables that are at the places of former ones, of which runs were interrupted with rows away, and renames one that was
created in the second of these all the time: it may be any of them, so all tables of the metastore are read for that.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

TABLES, SECOND = 20, 5
HOUR_MS = 3_600_001
# In a warehouse of a hundred thousand tables.
MS_OF_READING = 60_000
OTHER = "hdfs://nn/elsewhere"


def interrupt(desk):
    """The tenant takes the control directory away for a moment, once the first partition is exchanged."""
    files, top = desk.world.files, desk.control.top

    def take_away(what):
        if "rename_exact" in what and "/retired/u00002" in what and files.stat(top):
            files.before_step = None
            files.writer.rename_into(top, f"{OTHER}/away")

    files.before_step = take_away
    assert desk.compact().code is Exit.INVESTIGATE
    files.writer.rename_into(f"{OTHER}/away", top)
    files.expire_locks()


def a_world():
    world = World()
    world.catalog.databases.update(["tenant", "scratch"])
    world.files.writer.make_directory(OTHER)
    for nth in range(TABLES):
        place = f"hdfs://nn/warehouse/tenant/t{nth}"
        table = replace(a_table(["dt"], name=f"t{nth}", location=place, create_time=SECOND), database="tenant")
        world.add_table(table, {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
        desk = Desk(world, table.full_name, backup_table=False)
        interrupt(desk)
        world.catalog.drop_table(table.full_name)
        world.catalog.add_table(replace(table, create_time=100 + nth), [])
    world.files.namespace.advance(HOUR_MS)
    return world


def rename_on_and_on(world, by=("dt",)):
    """It has another name each time that somebody asks for it by the one that it had."""
    table = replace(a_table(by, name="x", location=f"{OTHER}/x", create_time=SECOND), database="scratch")
    for one in (table, replace(table, name="still", location=f"{OTHER}/still", create_time=7)):
        world.catalog.add_table(one, [])
    ask = world.metastore.tables

    def tables(database, names):
        (own,) = (one for one in world.tables().values() if one.location == table.location)
        if list(names) == [own.name]:
            world.catalog.drop_table(own.full_name)
            world.catalog.add_table(replace(own, name=f"{own.name}x"), [])
        return ask(database, names)

    world.metastore.tables = tables


def read_slowly(world):
    """Returns how often all databases were asked for, as the first thing of each reading."""
    asked, ask = [], world.metastore.databases

    def databases():
        asked.append(1)
        world.clock.elapsed_ms += MS_OF_READING
        return ask()

    world.metastore.databases = databases
    return asked


def test_all_tables_are_not_read_again_for_each_table_of_a_tenant_who_renames_one_on_and_on():
    world = a_world()
    rename_on_and_on(world)
    asked = read_slowly(world)
    settings = Settings(min_quiet_ms=0, backup_table=False)
    result = compact_swap(a_context(world.cluster, Selection(databases=("tenant",)), "20260201t020304z-0000", settings))
    assert [one.problem.code for one in result.tables] == [Code.METASTORE_UNUSABLE] * TABLES
    assert len(asked) <= 4


def a_world_of_leftovers():
    """Tables without partitions, which were dropped while a run had their rows away."""
    world = World()
    world.catalog.databases.update(["tenant", "scratch"])
    world.catalog.homes["tenant"] = "hdfs://nn/warehouse/tenant.db"
    for nth in range(TABLES):
        place = f"hdfs://nn/warehouse/tenant.db/t{nth}"
        table = replace(a_table((), name=f"t{nth}", kind="MANAGED_TABLE", location=place, create_time=SECOND), database="tenant")
        world.add_table(table, {"": [1000] * 3})
        desk = Desk(world, table.full_name, backup_table=False)
        desk.kill_before(["rename_exact", f"/ready/u00001 {place}"], desk.compact)
    for nth in range(TABLES):
        world.catalog.drop_table(f"tenant.t{nth}")
    world.files.namespace.advance(HOUR_MS)
    return world


@pytest.mark.parametrize("command", [show_orphans, clean_up_orphans])
def test_nor_for_each_leftover_that_may_be_of_such_a_table(command):
    world = a_world_of_leftovers()
    rename_on_and_on(world, by=())
    asked = read_slowly(world)
    result = command(a_context(world.cluster, Selection(databases=("tenant",)), "20260201t020304z-0000"))
    assert len(result.tables[0].orphans) == TABLES
    assert len(asked) <= 8


@pytest.mark.parametrize("new", ["{}x", ""], ids=["renamed", "dropped"])
def test_nor_all_of_a_database_for_each_table_that_is_renamed_or_dropped_while_its_run_is_at_work(new):
    world = World()
    world.catalog.databases.add("tenant")
    for nth in range(TABLES):
        table = replace(a_table(["dt"], name=f"t{nth}", location=f"hdfs://nn/warehouse/tenant/t{nth}", create_time=nth), database="tenant")
        world.add_table(table, {"dt=1": [1000] * 3, "dt=2": [1000] * 3})

    def take_away(what):
        found = re.search(r"rename_exact .*/tenant/(t\d+)/.*/retired/u00002", what)
        table = world.catalog.tables.get(f"tenant.{found[1]}") if found else None
        if table:
            partitions = list(world.partitions(table.full_name).values())
            world.catalog.drop_table(table.full_name)
            if new:
                world.catalog.add_table(replace(table, name=new.format(table.name)), partitions)

    world.files.before_step = take_away
    ask, asked = world.metastore.tables, []

    def tables(database, names):
        if len(names) > 1:
            asked.append(len(names))
            world.clock.elapsed_ms += MS_OF_READING
        return ask(database, names)

    world.metastore.tables = tables
    settings = Settings(min_quiet_ms=0, backup_table=False)
    result = compact_swap(a_context(world.cluster, Selection(databases=("tenant",)), "20260201t020304z-0000", settings))
    assert len(asked) <= 2
    world.files.before_step = None
    # What was not asked is asked by the next command.
    problems = [one.problem.code for one in result.tables if one.problem]
    assert set(problems) == {Code.METASTORE_UNUSABLE}
    if new:
        again = compact_swap(a_context(world.another_process(), Selection(databases=("tenant",)), "20260202t020304z-0000", settings))
        assert (again.code, len(again.tables)) == (Exit.DONE, TABLES)
