"""The backup table that `backup` has made of a table which is gone must not show rows of the table that has its name and place by now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import EVERYTHING, Desk
from support.hive_statements import Hive
from support.leftovers import HOME, SHAPES, wait
from support.world import World


def recorded(shape):
    """sales.events of alice, of which `backup` has made a record and a table that shows live."""
    columns, units = SHAPES[shape]
    world = World()
    world.catalog.homes["sales"] = HOME
    world.add_table(replace(a_table(columns, create_time=5), owner="alice"), {unit: [1000] * 3 for unit in units})
    world.add_table(a_table(["dt"], name="other", create_time=6), {"dt=1": [1000] * 3})
    desk = Desk(world)
    assert desk.backup().code is Exit.DONE
    (name,) = [name for name in world.tables() if "__bkp_events" in name]
    return desk, name, units


def replaced(desk, units, name, owner):
    """The table is dropped, and its rows go; another one gets its place, and rows."""
    world, known = desk.world, desk.world.table("sales.events")
    wait(desk, 30)
    world.catalog.drop_table("sales.events")
    for unit in units:
        directory = world.files.namespace.find(f"{known.location}/{unit}" if unit else known.location)
        for file in [file for file, node in directory.children.items() if not node.is_dir]:
            del directory.children[file]
    world.catalog.add_table(replace(known, name=name, owner=owner, create_time=world.clock.now_ms() // 1000), [])
    theirs = Desk(world, f"sales.{name}")
    theirs.runs = list(desk.runs)
    for unit in units:
        if unit:
            world.make_partition(theirs.table, unit)
        theirs.append(unit, *(f"secret-{unit}-{nth}" for nth in range(3)))
    return theirs


def shown(world, name):
    return {row for row in world.rows_of(name) if "secret" in row}


def test_no_command_points_it_at_the_rows_of_a_table_that_was_created_again():
    """The record is pinned. After the table was compacted, its table shows the old files; once these are discarded, it shows live."""
    desk, name, units = recorded("flat")
    record = desk.runs[-1]
    assert (desk.compact().code, desk.pin(record).code) == (Exit.DONE, Exit.DONE)
    theirs = replaced(desk, units, "events", "alice")
    wait(theirs, 30)
    assert not shown(desk.world, name)
    assert theirs.cleanup(EVERYTHING, former=True).code is Exit.DONE
    assert name not in desk.world.tables() or not shown(desk.world, name)


@pytest.mark.parametrize("owner", ["alice", "bob"])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_it_shows_no_rows_of_a_table_that_has_its_place_and_name_once_that_is_compacted(shape, owner):
    """Nobody has compacted the former table, so the table of its record shows live."""
    desk, name, units = recorded(shape)
    theirs = replaced(desk, units, "events", owner)
    assert shown(desk.world, name)
    assert theirs.compact().code is Exit.DONE
    assert name not in desk.world.tables()


@pytest.mark.parametrize("owner", ["alice", "bob"])
def test_what_a_killed_rollback_or_somebody_has_pointed_at_live_is_dropped_and_the_rest_still_shows_old_files(owner):
    desk, name, units = recorded("partitioned")
    world = desk.world
    assert desk.compact().code is Exit.DONE
    backup = dict(world.partitions(name))
    world.catalog.put_partition(name, replace(backup["dt=1"], location=desk.live("dt=1")))
    theirs = replaced(desk, units, "events", owner)
    assert shown(world, name)
    assert theirs.compact().code is Exit.DONE
    assert world.partitions(name) == {"dt=2": backup["dt=2"]}


def test_one_without_partitions_that_still_shows_live_is_dropped_although_there_are_old_files():
    desk, name, units = recorded("flat")
    world = desk.world
    assert desk.compact().code is Exit.DONE
    world.catalog.put_table(replace(world.table(name), location=desk.live()))
    theirs = replaced(desk, units, "events", "bob")
    assert theirs.compact().code is Exit.DONE
    assert name not in world.tables()
    assert [effect for effect in theirs.log().standing if effect.backup_table == name]


def test_that_of_a_table_which_was_renamed_and_got_its_name_back_shows_live_as_before():
    desk, name, units = recorded("partitioned")
    world = desk.world
    assert (desk.compact().code, desk.rollback().code) == (Exit.DONE, Exit.DONE)
    before = dict(world.partitions(name))
    hive = Hive(world)
    list(hive.rename_table("sales.events", "sales.old"))
    old = Desk(world, "sales.old")
    old.runs = list(desk.runs)
    assert old.compact().code is Exit.DONE
    list(hive.rename_table("sales.old", "sales.events"))
    desk.runs = list(old.runs)
    desk.append("dt=1", "a", "b", "c")
    assert desk.compact().code is Exit.DONE
    assert world.partitions(name) == before
    assert {one.location for one in before.values()} == {desk.live(unit) for unit in units}
