"""numRows, from which Hive answers count(*), is set only where live holds what the proof has counted and nothing else."""

from __future__ import annotations

import pytest

from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.world import World

NEW = DataFile(("new",))


def come_in_the_gap(desk, live, what):
    if what.startswith("rename_exact") and what.endswith(f"/ready/u00001 {live}"):
        desk.world.files.writer.add(f"{live}/new.parquet", NEW, 10)
        return True
    return False


def come_late_with_a_lost_answer(desk, live, what):
    if what.startswith(f"rename_exact {live} "):
        desk.world.files.writer.add(f"{live}/new.parquet", NEW, 10)
    if "/retired/u00001/new.parquet " in what:
        desk.world.fail_call(what, done=True)
        return True
    return False


def come_while_others_are_swapped(desk, live, what):
    if what.startswith(f"rename_exact {desk.live('dt=2')} "):
        desk.world.files.writer.add(f"{live}/new.parquet", NEW, 10)
        return True
    return False


@pytest.mark.parametrize("come", [come_in_the_gap, come_late_with_a_lost_answer, come_while_others_are_swapped])
def test_rows_that_nobody_has_counted_are_in_no_number(come):
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk, met = Desk(world, backup_table=False, analyze_stats=True), []
    live = desk.live("dt=1")

    def act(what):
        if not met and come(desk, live, what):
            met.append(what)

    world.files.before_step = act
    desk.compact()
    assert met and world.rows_below(live)["new"]
    told = {name: one.parameters.get("numRows") for name, one in world.partitions(desk.table).items()}
    assert told == {"dt=1": None, "dt=2": "3"}
