"""What is left of a dropped table is closed, as the table was at last, with older backups in it that were open once: another table comes to
these records, or they are renamed to its place.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.plan.orphans import OrphanState
from hivekeeper.ports import NoPermission
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.leftovers import HOME, clean, records, wait
from support.world import World


def close(world, place, mode=0o700):
    node = world.files.namespace.find(place)
    node.attributes = replace(node.attributes, mode=mode)


def may_be_reached_by_all(world, path):
    """As far as the directory of all tables is above it."""
    around = [place for place in names.with_above(names.parent(path)) if place.startswith("hdfs://nn/warehouse/sales")]
    modes = [world.files.namespace.find(place).mode for place in around]
    return all(mode & 0o005 == 0o005 for mode in modes) and bool(world.files.namespace.find(path).mode & 0o004)


@pytest.mark.parametrize("how", ["renamed", "created again"])
def test_they_are_not_opened_with_the_rights_of_the_other_table(how):
    world = World()
    world.add_table(a_table(name="orders", create_time=5), {"": [1000] * 3})
    world.add_table(a_table(name="mine", create_time=7), {"": [1000] * 3})
    orders, mine = Desk(world, "sales.orders", backup_table=False), Desk(world, "sales.mine", backup_table=False)
    assert orders.compact().code is Exit.DONE
    close(world, orders.live())
    orders.append("", "a", "b", "c")
    assert orders.compact().code is Exit.DONE
    backups = [path for path in world.files.contents(orders.control.top) if "/retired/" in path]
    assert backups
    assert not any(may_be_reached_by_all(world, path) for path in backups)
    top = orders.control.top
    world.drop_table("sales.orders")
    mine.runs = orders.runs
    if how == "renamed":
        world.files.writer.rename_into(top, mine.control.top)
        desk = mine
    else:
        world.add_table(a_table(name="orders", create_time=9), {"": [1000] * 3})
        desk = orders
    desk.compact()
    of_former = [desk.control.top + path[len(top) :] for path in backups]
    assert [path for path in of_former if world.files.stat(path) is None or may_be_reached_by_all(world, path)] == []


def test_those_of_the_same_table_under_its_former_name_stay_as_they_are():
    world = World()
    world.add_table(a_table(["dt"], name="orders", create_time=5), {"dt=1": [1000] * 3})
    orders = Desk(world, "sales.orders", backup_table=False)
    orders.compact()
    (run,) = orders.run_directories()
    deque(Hive(world).rename_table("sales.orders", "sales.renamed"), maxlen=0)
    renamed = Desk(world, "sales.renamed", backup_table=False)
    renamed.runs = orders.runs
    renamed.append("dt=1", "a", "b", "c")
    assert renamed.compact().code is Exit.DONE
    assert len(renamed.run_directories()) == 2
    assert world.files.stat(f"{renamed.control.runs}/{run}").mode & 0o777 == 0o755


def test_where_they_cannot_be_closed_the_control_directory_is():
    world = World()
    world.add_table(a_table(name="orders", create_time=5), {"": [1000] * 3})
    orders = Desk(world, "sales.orders", backup_table=False)
    orders.compact()
    (run,) = orders.run_directories()
    former, guard = f"{orders.control.runs}/{run}", world.files.guard
    world.drop_table("sales.orders")
    world.add_table(a_table(name="orders", create_time=9), {"": [1000] * 3})

    def refuse(wanted):
        if former in wanted:
            raise NoPermission("its owner is somebody else")
        guard(wanted)

    world.files.guard = refuse
    assert orders.compact().code is Exit.DONE
    assert world.files.stat(orders.control.top).mode & 0o777 == 0o700
    assert world.files.stat(orders.control.runs).mode & 0o777 == 0o700


@pytest.mark.parametrize("is_pinned", [True, False])
def test_they_are_not_opened_with_the_rights_of_a_directory_that_somebody_makes_at_its_place(is_pinned):
    """By `cleanup --orphans`, which discards them, or the record of a `backup` beside them."""
    world = World()
    world.catalog.homes["sales"] = HOME
    world.add_table(a_table(name="orders", create_time=5, kind="MANAGED_TABLE"), {"": [1000] * 3})
    world.add_table(a_table(["dt"], name="other", create_time=6), {"dt=1": [1000] * 3})
    orders = Desk(world, "sales.orders", backup_table=False)
    assert orders.compact().code is Exit.DONE
    if is_pinned:
        assert (orders.pin(orders.runs[0]).code, orders.backup().code) == (Exit.DONE, Exit.DONE)
    close(world, orders.live())
    orders.append("", "a", "b", "c")
    assert orders.compact().code is Exit.DONE
    place, top, seen = orders.live(), orders.control.top, []
    backups = [path for path in world.files.contents(top) if "/retired/" in path]
    deque(Hive(world).drop_table("sales.orders"), maxlen=0)
    world.files.writer.make_directory(place)
    close(world, place, 0o777)

    def look(_what):
        seen.extend(path for path in backups if world.files.namespace.find(path) and may_be_reached_by_all(world, path))

    world.files.before_step = look
    states = []
    for _ in range(2):
        states.append(records(clean(orders)).state)
        wait(orders, 8)
    look("")
    assert states == [OrphanState.MARKED, OrphanState.DISCARDED if is_pinned else OrphanState.REMOVED]
    assert seen == []
