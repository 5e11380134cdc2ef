"""A partition is set to a snapshot of the directory around the table, to rescue rows that somebody has deleted. A run was at work when that
snapshot was made, and has ended since: its records there are the past.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_partition, a_table
from support.desk import Desk
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
SNAPSHOT = f"{HOME}/.snapshot/s0"


def make_snapshot(desk):
    space = desk.world.files.namespace
    for path, node in list(space.walk(HOME)):
        copy = SNAPSHOT + path[len(HOME) :]
        if node.is_dir:
            space.make_directory(copy)
        else:
            space.create(copy, node.content, node.length)
        made = space.find(copy)
        made.attributes, made.mtime_ms = node.attributes, node.mtime_ms


def compact_while_a_snapshot_is_made():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    desk = Desk(world, backup_table=False)

    def act(what):
        if what.startswith("rename_exact") and "/ready/u00002 " in what:
            desk.world.files.before_step = None
            make_snapshot(desk)

    desk.world.files.before_step = act
    assert desk.compact().code is Exit.DONE
    assert desk.world.files.stat(SNAPSHOT)
    return desk


def test_a_run_that_was_at_work_when_a_snapshot_was_made_does_not_stop_the_table():
    """A, in one's own table: exit 7 each night, and the advice to set the table's location into the snapshot."""
    desk = compact_while_a_snapshot_is_made()
    world = desk.world
    stored = world.table("sales.events")
    world.catalog.add_partition(stored.full_name, a_partition("dt=0", location=f"{SNAPSHOT}/events/dt=1"))
    desk.append("dt=1", "a", "b", "c")
    result = desk.compact()
    problem = result.tables[0].problem
    assert not (problem and problem.code is Code.UNSETTLED), problem


@pytest.mark.parametrize("act", ["compact", "recover", "cleanup"])
def test_nor_does_it_in_a_table_that_was_set_to_that_snapshot(act):
    desk = compact_while_a_snapshot_is_made()
    stored = desk.world.table("sales.events")
    desk.world.catalog.tables["sales.events"] = replace(stored, location=f"{SNAPSHOT}/events")
    before = sorted(path for path, _ in desk.world.files.namespace.walk(HOME))
    result = getattr(desk, act)()
    problem = result.tables[0].problem
    assert not (problem and problem.code is Code.UNSETTLED), problem
    assert sorted(path for path, _ in desk.world.files.namespace.walk(HOME)) == before
