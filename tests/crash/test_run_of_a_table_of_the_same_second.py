"""A tenant creates a table in the second in which somebody else's is created, as a job does each night, has a run on it killed in its gap,
drops it, and renames its records to the place of the other one's, which is empty still. They may make names beside the other table, which
they may not rename (the sticky bit).
"""

from __future__ import annotations

from hivekeeper import names
from hivekeeper.names import ControlPaths
from support.builders import a_table
from support.desk import Desk
from support.hdfs_user import STICKY, HdfsUser, own, own_tree
from support.world import World

HOME, OWN = "hdfs://nn/warehouse/sales", "hdfs://nn/data/loader"
TENANT, OTHER, OURS = "loader", "alice", "hive"
SECOND = 1_767_200_005


def test_an_empty_table_gets_no_rows_from_it() -> None:
    world = World()
    world.add_table(a_table(name="mine", location=f"{OWN}/mine", create_time=SECOND), {"": [1000] * 3})
    world.add_table(a_table(name="orders", create_time=SECOND), {"": []})
    space, user = world.files.namespace, HdfsUser(world.files.namespace, TENANT, [TENANT])
    own_tree(space, OWN, TENANT, TENANT, 0o755)
    own_tree(space, f"{HOME}/orders", OTHER, OTHER, 0o755)
    own(space.directory(HOME), OURS, OURS, 0o777 | STICKY)
    mine, theirs = Desk(world, "sales.mine", backup_table=False), Desk(world, "sales.orders", backup_table=False)
    mine.kill_before(["rename_exact", "ready/", f" {mine.live()}"], mine.compact)
    control = mine.control.top
    world.drop_table("sales.mine")
    assert user.rename(control, ControlPaths.of(f"{HOME}/orders", partitioned=False).top), names.base(control)
    result = theirs.compact()
    assert not world.rows_of("sales.orders"), (result.code, result.tables)
