"""The user of the runs also writes what tenants ask for (`hive` with doAs=false): a whole control directory of that user, with any records
and files in it, beside somebody else's table without partitions that has none yet. Everybody may make names there (1777).
"""

from __future__ import annotations

import pytest

from support.builders import a_table
from support.desk import Desk
from support.hdfs_user import STICKY, own, own_tree
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
ORDERS = f"{HOME}/orders"
OTHER, OURS = "alice", "hive"


def build() -> World:
    world = World()
    world.add_table(a_table(name="orders", create_time=1_767_200_007), {"": [1000] * 3})
    own_tree(world.files.namespace, ORDERS, OTHER, OTHER, 0o755)
    own(world.files.namespace.directory(HOME), "hdfs", "hdfs", 0o777 | STICKY)
    return world


@pytest.mark.parametrize("command", ["recover", "compact"])
def test_another_table_keeps_its_rows_when_its_first_control_directory_is_forged(command: str) -> None:
    world = build()
    space, desk = world.files.namespace, Desk(world, "sales.orders", backup_table=False)
    before = world.rows_of("sales.orders")
    # What a tenant has our user write, byte by byte: made here by a run that is killed on a table of the same definition.
    space.rename(ORDERS, f"{HOME}/.theirs")
    space.make_directory(ORDERS)
    own(space.find(ORDERS), OURS, OURS, 0o755)
    for nth in range(3):
        world.add_file(f"{ORDERS}/forged-{nth}.parquet", [f"forged {nth}"])
        own(space.file(f"{ORDERS}/forged-{nth}.parquet"), OURS, OURS, 0o644)
    space.advance(3_600_000)
    desk.kill_before([f"/ready/u00001 {ORDERS}"], desk.compact)
    assert space.find(ORDERS) is None
    space.rename(f"{HOME}/.theirs", ORDERS)
    result = getattr(desk, command)()
    assert world.rows_of("sales.orders") == before, (result.code, result.tables[0].problem, result.tables[0].recovered)
