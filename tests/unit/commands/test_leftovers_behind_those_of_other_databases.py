"""Somebody fills the directories of some databases with what looks like records, as many as are told of in one command: of a database that
comes later, what a killed run of ours has left is found, and ended, as without them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.names import ControlPaths
from hivekeeper.plan.orphans import OrphanKind
from hivekeeper.steps import orphans
from support.builders import a_table
from support.desk import Desk
from support.leftovers import HOME, build, clean, wait
from support.world import World

THEIRS = ["aaa", "bbb"]


@pytest.mark.parametrize("theirs", [0, 5])
def test_what_a_killed_run_has_set_aside_is_put_back(monkeypatch, theirs):
    monkeypatch.setattr(orphans, "MOST_UNREAD", 5)
    monkeypatch.setattr(orphans, "MOST_UNREAD_OF_ALL", 10)
    desk = build("flat")
    top = f"{HOME}/.hivekeeper-events"
    removed = ControlPaths(top).removed("20260101t000000z-0000")
    desk.world.files.namespace.rename(top, removed)
    for database in THEIRS:
        desk.world.catalog.databases.add(database)
        desk.world.catalog.homes[database] = f"hdfs://nn/warehouse/{database}"
        mine = a_table(name="mine", owner="mallory", create_time=9, location=f"hdfs://nn/warehouse/{database}/mine")
        desk.world.catalog.add_table(replace(mine, database=database), [])
        desk.world.files.writer.make_directory(f"hdfs://nn/warehouse/{database}/mine")
        for nth in range(theirs):
            fake = f"hdfs://nn/warehouse/{database}/.hivekeeper-fake{nth}"
            desk.world.files.writer.make_directory(fake)
            node = desk.world.files.namespace.directory(fake)
            node.attributes = replace(node.attributes, owner="mallory")
    wait(desk, 30)
    result = clean(desk, databases=(*THEIRS, "sales"))
    (sales,) = [one for one in result.tables if one.table == "sales"]
    assert [one.place for one in sales.orphans if one.kind is OrphanKind.REMOVED] == [removed]
    assert desk.world.files.stat(top) is not None


@pytest.mark.parametrize("is_pointed", [False, True])
def test_a_removal_is_ended_though_a_table_of_a_database_before_lies_beside_it(is_pointed):
    """No directory is looked through for two databases. The first one tells of it, and knows of no log beside it that is of a table of its
    own; the database that it is of must have its turn.
    """
    world = World()
    world.catalog.homes.update(aaa="hdfs://nn/warehouse/aaa", sales=HOME)
    world.catalog.databases.add("aaa")
    for nth, name in enumerate(("events", "other")):
        world.add_table(a_table(["dt"] if nth else [], name=name, create_time=5 + nth), {"dt=1" if nth else "": [1000] * 3})
    desk, other = Desk(world, backup_table=False), Desk(world, "sales.other", backup_table=False)
    desk.compact()
    other.compact()
    desk.cleanup()
    # As a `forget` that is killed just then leaves it, whose table is dropped afterwards.
    aside = desk.control.removed("20260101t000000z-0000")
    world.files.rename_exact(desk.control.top, aside)
    world.catalog.drop_table(desk.table)
    if is_pointed:
        mine = a_table(name="mine", owner="mallory", create_time=9, location=f"{HOME}/mine")
        world.catalog.add_table(replace(mine, database="aaa"), [])
    for _ in range(2):
        wait(desk, 30)
        clean(desk, databases=("aaa", "sales"))
    assert world.files.contents(aside) == {}
