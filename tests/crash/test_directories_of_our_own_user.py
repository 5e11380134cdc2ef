"""A tenant has a directory of our own user: a copy that could not be given its owner. In the gap of somebody else's table without
partitions, whose copy could not be given away either, they rename it to that one's place.

A site as docs/permissions.md has it: the user of the runs is no superuser, and tables have `owner: try`. The tenant may write to their own
table, and make names beside others, which they may not rename (the sticky bit).
"""

from __future__ import annotations

import pytest

from support.builders import a_table
from support.desk import Desk
from support.hdfs_user import STICKY, HdfsUser, own, own_tree, take_no_superuser
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
TENANT, OTHER, OURS = "loader", "alice", "hive"
SETTINGS = {"owner": "try", "backup_table": False}


def build() -> World:
    world = World()
    world.add_table(a_table(["dt"], create_time=1_767_200_005), {"dt=1": [1000] * 3})
    world.add_table(a_table(name="orders", create_time=1_767_200_007), {"": [1000] * 3})
    own_tree(world.files.namespace, f"{HOME}/events", TENANT, TENANT, 0o755)
    own_tree(world.files.namespace, f"{HOME}/orders", OTHER, OTHER, 0o755)
    own(world.files.namespace.directory(HOME), OURS, OURS, 0o777 | STICKY)
    take_no_superuser(world.files)
    return world


@pytest.mark.parametrize("was_compacted", [True, False])
def test_what_a_tenant_puts_at_the_place_of_another_table_in_its_gap_does_not_stay_there(was_compacted: bool) -> None:
    """Nor is it merged into the other table: that it is our user's does not tell whose it was."""
    world = build()
    space, user = world.files.namespace, HdfsUser(world.files.namespace, TENANT, [TENANT])
    theirs = Desk(world, "sales.orders", **SETTINGS)
    Desk(world, "sales.events", **SETTINGS).compact()
    if was_compacted:
        theirs.compact()
        for nth in range(3):
            world.add_file(f"{HOME}/orders/more-{nth}.parquet", [f"more {nth}"])
            own(space.file(f"{HOME}/orders/more-{nth}.parquet"), OURS, OTHER, 0o644)
        space.advance(3_600_000)
    before, done = world.rows_of("sales.orders"), []
    assert not user.may_take(f"{HOME}/orders")
    assert not user.may_change_in(f"{HOME}/orders")

    def put_there(_what: str) -> None:
        if space.find(f"{HOME}/orders") is None and not done:
            done.append(user.rename(f"{HOME}/events/dt=1", f"{HOME}/orders"))

    world.files.before_step = put_there
    result = theirs.compact()
    assert done == [True]
    assert world.rows_of("sales.orders") == before, (result.code, result.tables[0].units)
