"""What the metastore says of a unit's own name counts, also where it does not tell all partitions of the table."""

from __future__ import annotations

import pytest

from hivekeeper.ports import MetastoreUnavailable
from support.builders import a_partition, a_table
from support.desk import Desk, outcomes
from support.hive_statements import Hive
from support.joined_desk import at
from support.world import World


@pytest.mark.parametrize("why", ["no answer", "many servers"])
def test_a_partition_that_was_moved_in_its_gap_is_misplaced_though_not_all_partitions_are_told(why):
    """SET LOCATION in the gap. That the metastore has it elsewhere is in the answer about its name. Then all partitions are asked for, as
    one of them may have its place: of a table with many, that is the answer that does not come in time; or somebody has given others
    locations on so many servers that it is refused. The run says "swapped", exit 0.
    """
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    live = desk.live("dt=1")

    def move():
        list(Hive(world).set_location(desk.table, "dt=1", f"{live}-elsewhere"))
        if why == "no answer":
            partitions = world.metastore.partitions

            def time_out(_):
                world.metastore.partitions = partitions
                raise MetastoreUnavailable("timeout")

            world.metastore.partitions = time_out
        else:
            for nth in range(1000):
                world.catalog.put_partition(desk.table, a_partition(f"dt=x{nth}", f"hdfs://other{nth}/x"))

    at(desk, [f"/ready/u00001 {live}"], move)
    result = desk.compact()
    world.files.before_step = None
    assert outcomes(result) == {"dt=1": "misplaced"}, result.code
