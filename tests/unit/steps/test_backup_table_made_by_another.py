"""A table that somebody makes in the moment before ours, with all that one of ours has. Its owner is a text that who makes it chooses (so
is that of one's own table, ALTER TABLE … SET OWNER), and the run's id is that of each table of the command.
"""

from __future__ import annotations

import pytest

from hivekeeper import names, ports
from hivekeeper.model import Storage
from support.builders import a_partition, a_table
from support.desk import Desk
from support.world import World

# What tells it from ours here. Who makes a table chooses its SerDe and its columns, and who else may read it (Table.privileges, GRANT).
THEIRS = Storage("com.mallory.Input", "com.mallory.Output", "com.mallory.SerDe")


@pytest.mark.parametrize("more", ["", "y" * (ports.MOST_OF_TABLE + 1)], ids=["", "too large to be read at first"])
@pytest.mark.parametrize("command", ["backup", "compact"])
@pytest.mark.parametrize("columns", [("dt",), ()], ids=["partitioned", "unpartitioned"])
def test_it_is_not_pointed_at_old_or_live_files(columns, command, more):
    world = World()
    world.add_table(a_table(columns, owner="alice", create_time=5), {"dt=1" if columns else "": [1000] * 3})
    desk, made = Desk(world), []

    def come(step):
        if step.startswith("metastore.make_backup_table ") and not made:
            made.append(step.partition(" ")[2])
            (run,) = desk.run_directories()
            place = desk.control.run(run).state("backup_table")
            marks = {**names.backup_marks(made[0], "sales.events"), "EXTERNAL": "TRUE", "external.table.purge": "false", "x": more}
            forged = a_table(columns, name=made[0].partition(".")[2], location=place, storage=THEIRS, owner="alice", parameters=marks)
            world.catalog.add_table(forged, [a_partition("dt=1", place, storage=THEIRS)] if columns else [])

    world.files.before_step = come
    getattr(desk, command)()
    world.set_property(made[0], x="")
    desk.recover()
    forged = world.table(made[0])
    assert forged.storage.serde == THEIRS.serde
    places = [one.location for one in world.partitions(made[0]).values()] if columns else [forged.location]
    assert [place for place in places if not place.endswith("/backup_table")] == []


@pytest.mark.parametrize("columns", [("dt",), ()], ids=["partitioned", "unpartitioned"])
def test_a_killed_run_does_not_have_one_pointed_that_was_there_before(columns):
    """Its recovery knows only the name that the plan says. A backup table may have been made in the directory of any run."""
    world = World()
    world.add_table(a_table(columns, owner="alice", create_time=5), {"dt=1" if columns else "": [1000] * 3})
    desk, name = Desk(world), "__bkp_events_20260101_020000"
    place = desk.control.run("20260101t000000z-0000").state("backup_table")
    marks = {**names.backup_marks(f"sales.{name}", "sales.events"), "EXTERNAL": "TRUE", "external.table.purge": "false"}
    forged = a_table(columns, name=name, location=place, storage=THEIRS, owner="alice", parameters=marks)
    world.catalog.add_table(forged, [a_partition("dt=1", place, storage=THEIRS)] if columns else [])
    before = forged, dict(world.partitions(forged.full_name))
    desk.kill_before(["update_sizes"], desk.compact)
    desk.recover()
    desk.recover()
    assert (world.table(forged.full_name), dict(world.partitions(forged.full_name))) == before
