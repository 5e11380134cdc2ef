"""A table that somebody makes in the moment before ours, with all that one of ours has. Its owner is a text that who makes it chooses (so
is that of one's own table, ALTER TABLE … SET OWNER), and the run's id is that of each table of the command.
"""

from __future__ import annotations

import pytest

from hivekeeper import names
from hivekeeper.model import Storage
from support.builders import a_partition, a_table
from support.desk import Desk
from support.world import World

# What tells it from ours here. Who makes a table chooses its SerDe and its columns, and who else may read it (Table.privileges, GRANT).
THEIRS = Storage("com.mallory.Input", "com.mallory.Output", "com.mallory.SerDe")


@pytest.mark.parametrize("command", ["backup", "compact"])
@pytest.mark.parametrize("columns", [("dt",), ()], ids=["partitioned", "unpartitioned"])
def test_it_is_not_pointed_at_old_or_live_files(columns, command):
    world = World()
    world.add_table(a_table(columns, owner="alice", create_time=5), {"dt=1" if columns else "": [1000] * 3})
    desk, made = Desk(world), []

    def come(step):
        if step.startswith("metastore.make_backup_table ") and not made:
            made.append(step.partition(" ")[2])
            (run,) = desk.run_directories()
            place = desk.control.run(run).state("backup_table")
            marks = {**names.backup_marks(made[0], "sales.events"), "EXTERNAL": "TRUE", "external.table.purge": "false"}
            forged = a_table(columns, name=made[0].partition(".")[2], location=place, storage=THEIRS, owner="alice", parameters=marks)
            world.catalog.add_table(forged, [a_partition("dt=1", place, storage=THEIRS)] if columns else [])

    world.files.before_step = come
    getattr(desk, command)()
    forged = world.table(made[0])
    assert forged.storage.serde == THEIRS.serde
    places = [one.location for one in world.partitions(made[0]).values()] if columns else [forged.location]
    assert [place for place in places if not place.endswith("/backup_table")] == []
