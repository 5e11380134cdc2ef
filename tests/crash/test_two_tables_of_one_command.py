"""Both tables of one command have runs with the same id, so their control directories have directories of the same paths. A tenant has
another one's table in the place of their own for one call (tests/crash/test_another_table_in_the_gap.py): no partition of that leaves it.
"""

from __future__ import annotations

from support.builders import a_table
from support.desk import Desk
from support.world import World

MINE, THEIRS, AWAY = "hdfs://nn/warehouse/sales/events", "hdfs://nn/warehouse/sales/orders", "hdfs://nn/warehouse/sales/.x"


def test_a_partition_of_the_table_before_does_not_go_to_that_ones_own_control_directory():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3, "dt=7": [1000] * 3})
    world.add_table(a_table(["dt"], name="orders", create_time=6), {"dt=1": [1000] * 3, "dt=7": [1000]})
    mine, theirs = Desk(world, backup_table=False), Desk(world, "sales.orders", backup_table=False)
    theirs.compact()
    before, writer, state = world.rows_outside_control(THEIRS), world.files.writer, []

    def act(what):
        if state == ["in place"]:
            # The next call, whatever it is.
            state.append("back")
            writer.rename_into(MINE, THEIRS)
            writer.rename_into(AWAY, MINE)
        if not state and what.startswith(("rename_exact", "exchange")) and f"{MINE}/dt=7 " in what and "/retired/" in what:
            state.append("in place")
            writer.rename_into(MINE, AWAY)
            writer.rename_into(THEIRS, MINE)

    world.files.before_step = act
    mine.compact()
    world.files.before_step = None
    assert mine.runs == theirs.runs
    assert state, "no such step"
    if state == ["in place"]:
        writer.rename_into(MINE, THEIRS)
        writer.rename_into(AWAY, MINE)
    assert world.rows_outside_control(THEIRS) == before


def test_the_backup_of_the_table_before_does_not_go_to_the_next_ones_place():
    """Who may rename beside an unpartitioned table may rename its control directory, which is closed to them, but take
    nothing out of it.
    """
    world = World()
    world.add_table(a_table([], name="orders", create_time=6), {"": [1000] * 3})
    world.add_table(a_table([], create_time=5), {"": [1000] * 3})
    mine, theirs = Desk(world, backup_table=False), Desk(world, "sales.orders", backup_table=False)
    theirs.compact()
    writer, state, live = world.files.writer, [], mine.live()
    backup = f"{theirs.control.top}/runs/{theirs.runs[0]}/retired/u00001"
    before = sorted(world.files.contents(backup).items())

    def act(what):
        if state == ["in place"]:
            state.append("back")
            writer.rename_into(mine.control.top, theirs.control.top)
            writer.rename_into(f"{AWAY}-control", mine.control.top)
        if not state and what.startswith(("rename_exact", "exchange")) and f"{live} " in what and "/retired/" in what:
            # So that it is put back.
            writer.make_directory(f"{live}/_temporary/0")
        if not state and f"/retired/u00001 {live}" in what and what.startswith("rename_exact"):
            state.append("in place")
            writer.rename_into(mine.control.top, f"{AWAY}-control")
            writer.rename_into(theirs.control.top, mine.control.top)

    world.files.before_step = act
    mine.compact()
    world.files.before_step = None
    assert mine.runs == theirs.runs
    assert state == ["in place", "back"], "no such step"
    assert sorted(world.files.contents(backup).items()) == before
