"""A run on a tenant's table at the former place of a renamed one ends the interrupted run of that one, whose rows then stay away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World

PLACE = "hdfs://nn/warehouse/sales/events"
FORMER, NEW = (f"hdfs://nn/warehouse/sales/.hivekeeper-{name}" for name in ("events", "renamed"))


@pytest.mark.parametrize("is_pointed", [False, True])
def test_a_run_on_a_table_at_the_former_place_does_not_end_the_interrupted_run_of_the_renamed_one(is_pointed):
    world = World()
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    before = world.rows_of("sales.events")
    desk = Desk(world, backup_table=False)
    desk.kill_before(["rename_exact", f"/ready/u00001 {PLACE}"], desk.compact)
    for _ in Hive(world).rename_table("sales.events", "sales.renamed"):
        pass
    world.files.namespace.advance(3_600_001)
    if is_pointed:
        world.catalog.add_table(replace(a_table((), name="mine", location=PLACE, create_time=77), database="tenant"), [])
        compact_swap(a_context(world.another_process(), Selection(databases=("tenant",)), "20260201t020304z-0000"))
        world.catalog.drop_table("tenant.mine")
        world.files.namespace.advance(3_600_001)
    # As the error (`left-behind`) of the renamed table advises.
    world.files.writer.rename_into(FORMER, NEW)
    desk.table = "sales.renamed"
    result = desk.recover()
    assert (result.code, world.rows_of("sales.renamed")) == (Exit.DONE, before)
