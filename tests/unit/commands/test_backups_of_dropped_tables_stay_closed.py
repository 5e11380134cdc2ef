"""What is left of a dropped table is closed, as the table was at last, with older backups in it that were open once: another table comes to
these records, or they are renamed to its place.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk
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
