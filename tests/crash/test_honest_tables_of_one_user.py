"""Everything belongs to one functional user, who also runs Hivekeeper, and nobody else may make names beside the tables."""

from __future__ import annotations

import pytest

from support.builders import a_table
from support.desk import Desk
from support.hdfs_user import own, own_tree
from support.world import World

HOME, SCRATCH = "hdfs://nn/warehouse/sales", "hdfs://nn/tmp/hive/query/-ext-10000"
OURS = "hive"


@pytest.mark.parametrize("killed", [False, True])
def test_an_overwrite_that_began_before_the_run_and_ends_in_its_gap_stays(killed: bool) -> None:
    """Hive renames the directory that a query wrote to the table's place, if it is not below the table (hive.exec.stagingdir)."""
    world = World()
    world.add_table(a_table(name="orders", create_time=5), {"": [1000] * 3})
    space = world.files.namespace
    world.add_file(f"{SCRATCH}/000000_0.parquet", ["new"])
    own_tree(space, f"{HOME}/orders", OURS, OURS, 0o755)
    own_tree(space, "hdfs://nn/tmp/hive/query", OURS, OURS, 0o755)
    own(space.directory(HOME), OURS, OURS, 0o755)
    desk, done = Desk(world, "sales.orders", backup_table=False), []

    def overwrite(_what: str) -> None:
        if space.find(f"{HOME}/orders") is None and not done:
            done.append(True)
            space.rename(SCRATCH, f"{HOME}/orders")

    if killed:
        desk.kill_before(["rename_exact", "ready/", f" {desk.live()}"], desk.compact)
        overwrite("")
        desk.recover()
    else:
        world.files.before_step = overwrite
        desk.compact()
    assert done
    assert set(world.rows_of("sales.orders")) == {"new"}
