"""The table that a backup table is made like is read again by its name just then: another one may have that name by now."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from support.builders import a_partition, a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World

MINE = "hdfs://nn/user/mallory/mine"


@pytest.mark.parametrize("columns", [("dt",), ()], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("command", ["backup", "compact"])
def test_it_is_not_that_of_a_table_that_takes_the_name_just_then(command, columns):
    """The owner of a backup table reads what it shows, and may have it purge that: DROP TABLE deletes live files then."""
    world = World()
    world.add_table(a_table(columns, owner="alice", create_time=5), {"dt=1" if columns else "": [1000] * 3})
    mine = replace(a_table(columns, location=MINE, create_time=9), owner="mallory")
    seen = []

    def act(step):
        if step.startswith("metastore.make_backup_table ") and not seen:
            seen.append(step)
            # A job of alice's builds the table anew, and is about to rename another one to this name.
            deque(Hive(world).rename_table("sales.events", "sales.events_old"), maxlen=0)
            world.catalog.add_table(mine, [a_partition("dt=1", f"{MINE}/dt=1")] if columns else [])

    world.files.before_step = act
    getattr(Desk(world), command)()
    assert seen
    made = [table for table in world.catalog.tables.values() if table.owner == "mallory" and table.name != "events"]
    shown = [one.location for table in made for one in world.partitions(table.full_name).values()] if columns else []
    shown += [table.location for table in made if not columns]
    # An empty directory of the run, where it is made, shows nothing.
    shown = [place for place in shown if not place.endswith("/backup_table")]
    assert [place for place in shown if place.startswith("hdfs://nn/warehouse/sales/events")] == []
