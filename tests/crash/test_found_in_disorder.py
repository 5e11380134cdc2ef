"""What tests/crash/test_two_tables_in_disorder.py has found, each in a few lines."""

from __future__ import annotations

from typing import Any

import pytest

from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.hdfs_user import STICKY, HdfsUser, own, own_tree
from support.world import World

HOME = "hdfs://nn/warehouse/sales"


def a_closed_table() -> Desk:
    """`orders`, unpartitioned and closed to all but its owner, in a directory in which everybody may make names and nobody may rename those
    of others, as in Hive's warehouse.
    """
    world = World()
    world.add_table(a_table(name="orders", create_time=6), {"": [1000] * 3})
    space = world.files.namespace
    own_tree(space, f"{HOME}/orders", "alice", "alice", 0o700)
    own(space.directory(HOME), "hive", "hive", 0o777 | STICKY)
    return Desk(world, "sales.orders", backup_table=False)


def put_in_place(desk: Desk) -> None:
    """What another user does when the name is free: make a directory of it, open to all, with a file."""
    user = HdfsUser(desk.world.files.namespace, "loader")
    assert not user.may_change_in(f"{HOME}/orders")
    assert user.make_directory(f"{HOME}/orders", 0o777)
    assert user.add(f"{HOME}/orders/forged.parquet", DataFile(("forged",)), 1000)


@pytest.mark.parametrize("moment", ["in the gap", "in the outage after a kill"])
@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_who_may_not_write_to_a_table_adds_no_rows_to_it_by_making_its_directory_while_that_is_away(command: str, moment: str) -> None:
    desk = a_closed_table()
    before, files = desk.world.rows_of("sales.orders"), desk.world.files
    if command == "rollback":
        desk.compact()
    act: Any = getattr(desk, command)
    waiting = "/restoring/" if command == "rollback" else "/ready/"
    if moment == "in the gap":

        def put_in_gap(what: str) -> None:
            if what.startswith("rename_exact") and what.endswith(f"{HOME}/orders") and files.namespace.find(f"{HOME}/orders") is None:
                files.before_step = None
                put_in_place(desk)

        files.before_step = put_in_gap
        act()
    else:
        desk.kill_before(["rename_exact", waiting, f" {HOME}/orders"], act)
        put_in_place(desk)
        desk.recover()
    assert files.namespace.find(f"{HOME}/orders") is not None
    assert desk.world.rows_of("sales.orders") == before
