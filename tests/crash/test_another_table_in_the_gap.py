"""In the gap of a swap a tenant, who may rename beside the tables' directories but not write into another one's, has that one's directory
in the place of their own table's for one or two calls. Nothing goes from the control directory, which is away with the table then, to the
other table's directory, and nothing of that goes there.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from support.builders import a_table
from support.desk import Desk
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.world import World

MINE, THEIRS, AWAY = "hdfs://nn/warehouse/sales/events", "hdfs://nn/warehouse/sales/orders", "hdfs://nn/warehouse/sales/.x"


def set_up(theirs):
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    world.add_table(a_table(["dt"], name="orders", create_time=6), {unit: [1000] * 2 for unit in theirs})
    return Desk(world, backup_table=False)


def exchange_tables(desk, words):
    """The other table's directory is in the place of one's own from the step with these words on, until `restore`."""
    writer, state = desk.world.files.writer, []

    def act(what):
        if not state and all(word in what for word in words):
            state.append("in place")
            writer.rename_into(MINE, AWAY)
            writer.rename_into(THEIRS, MINE)

    desk.world.files.before_step = act
    return state


def restore(desk, state):
    if state == ["in place"]:
        state.append("back")
        desk.world.files.writer.rename_into(MINE, THEIRS)
        desk.world.files.writer.rename_into(AWAY, MINE)


@pytest.mark.parametrize("theirs", [["dt=7"], ["dt=1", "dt=7"]], ids=["without that partition", "with that partition"])
def test_another_tables_directory_in_the_place_of_ones_own_in_the_gap_is_left_alone(theirs):
    """It gets no rows of the tenant, who may not write there, and none of its own leave it."""
    desk = set_up(theirs)
    before = desk.world.rows_outside_control(THEIRS)
    state = exchange_tables(desk, ["rename_exact", "/ready/u00001 "])
    desk.compact()
    assert state, "no such step"
    restore(desk, state)
    desk.world.files.before_step = None
    desk.world.files.expire_locks()
    desk.recover()
    assert desk.world.rows_outside_control(THEIRS) == before


def test_a_kill_leaves_no_partition_of_another_table_in_the_tenants_control_directory():
    desk = set_up(["dt=1", "dt=7"])
    before = desk.world.rows_outside_control(THEIRS)
    state = exchange_tables(desk, ["rename_exact", "/ready/u00001 "])
    act = desk.world.files.before_step

    def act_then_die(what):
        act(what)
        if "/recreated/" in what:
            desk.world.files.die_after(1)

    desk.world.files.before_step = act_then_die
    with suppress(Killed):
        desk.compact()
    desk.world.files.before_step = None
    desk.world.files.revive()
    restore(desk, state)
    assert desk.world.rows_outside_control(THEIRS) == before


def add_late(desk):
    """A file that a writer closes in the former directory of live after the swap: what it holds is the tenant's choice."""
    place = next(path for path, _ in desk.world.files.namespace.walk(MINE) if path.endswith("/retired/u00001"))
    desk.world.files.writer.add(f"{place}/late.parquet", DataFile(("forged",)), 77)


def test_a_late_file_that_a_cleanup_finds_does_not_come_to_another_tables_partition():
    desk = set_up(["dt=1", "dt=7"])
    desk.compact()
    add_late(desk)
    desk.world.files.namespace.advance(3_600_000)
    before = desk.world.rows_outside_control(THEIRS)
    state = exchange_tables(desk, ["rename_exact", "/held/u00001/late.parquet "])
    desk.cleanup()
    desk.world.files.before_step = None
    assert state, "no such step"
    restore(desk, state)
    assert desk.world.rows_outside_control(THEIRS) == before
