"""A killed run has left a partition in its gap, so that no reader finds its rows. A nightly run must not end with 0 while that is so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.model import Selection
from hivekeeper.report import screen
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

MIB = 2**20


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3, "dt=2": [MIB] * 3})
    world.add_table(a_table(name="healthy", location="hdfs://nn/warehouse/sales.db/healthy"), {"": [200 * MIB]})
    desk = Desk(world)
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    return desk


def skip(table):
    return replace(table, parameters={**table.parameters, "hivekeeper.skip": "true"})


def bucketed(table):
    return replace(table, buckets=4, bucket_columns=("id",))


def sorted_by(table):
    return replace(table, sort_columns=("id",))


@pytest.mark.parametrize("change", [None, skip, bucketed, sorted_by])
def test_a_night_does_not_end_well_while_a_partition_is_in_the_gap_of_a_killed_run(desk, change):
    world = desk.world
    hidden = world.rows_anywhere() - world.rows_of(desk.table)
    assert any(row.startswith("events/") for row in hidden)
    if change:
        world.catalog.tables[desk.table] = change(world.catalog.tables[desk.table])
    result = compact_swap.compact_swap(a_context(world.cluster, Selection(databases=("sales",)), desk._new_run(), desk.settings))
    seen = world.rows_of(desk.table)
    missing = [row for row in world.rows_anywhere() if row.startswith("events/") and row not in seen]
    assert not missing or result.code is not Exit.DONE, f"{missing}\n{screen.render(result)}"
