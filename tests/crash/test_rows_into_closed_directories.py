"""A tenant may rename another one's directory (they may write to the one around it), but not write into it. With it in the place of their
own unit's for a call or two, a run that moves single files by path must not write into it for them.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.world import World

MINE, THEIRS = "hdfs://nn/warehouse/sales/events", "hdfs://nn/warehouse/sales/salaries"


def set_up(mode=0o755):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    world.add_table(a_table((), name="salaries"), {"": []})
    world.files.writer.add(f"{THEIRS}/000000_0", DataFile(("true",)), 10)
    node = world.files.namespace.directory(THEIRS)
    node.attributes = replace(node.attributes, mode=mode)
    world.files.namespace.advance(3_600_000)
    return Desk(world, backup_table=False), node


def require_no_rows_of_others(desk, theirs, act, done, steps):
    """The directory has its own rows alone after these acts have met a run, so many times."""
    desk.world.files.before_step = act
    desk.compact()
    desk.world.files.before_step = None
    assert len(done) == steps, "no such steps"
    assert [child.content.rows for child in theirs.children.values()] == [("true",)]


@pytest.mark.parametrize("mode", [0o755, 0o700], ids=["readable", "closed"])
def test_no_file_is_merged_into_another_tables_directory_that_left_live_in_the_place_of_the_units(mode):
    """It is put back, as it is not what was checked; what stands at live's place then is merged into it, though nothing of the unit is in
    it.
    """
    desk, theirs = set_up(mode)
    live, writer, done = desk.live("dt=1"), desk.world.files.writer, []
    writer.add(f"{MINE}/.forged/000000_1", DataFile(("forged",)), 7)

    def act(what):
        if not done and what.startswith(("rename_exact", "exchange")) and f"{live} " in what and "/retired/" in what:
            done.append(what)
            writer.rename_into(live, f"{MINE}/.mine")
            writer.rename_into(THEIRS, live)
        elif len(done) == 1 and f"/retired/u00001 {live}" in what:
            done.append(what)
            writer.rename_into(f"{MINE}/.forged", live)

    require_no_rows_of_others(desk, theirs, act, done, 2)


def test_no_late_file_is_moved_into_another_tables_directory_that_is_in_lives_place_for_that_call():
    desk, theirs = set_up()
    live, writer, done = desk.live("dt=1"), desk.world.files.writer, []

    def act(what):
        if f"{live} " in what and "/retired/" in what and not done:
            writer.add(f"{live}/late.parquet", DataFile(("forged",)), 7)
        if f"/retired/u00001/late.parquet {live}/" in what and not done:
            done.append(what)
            writer.rename_into(live, f"{MINE}/.mine")
            writer.rename_into(THEIRS, live)

    require_no_rows_of_others(desk, theirs, act, done, 1)


def test_no_file_that_came_in_the_gap_is_merged_into_another_tables_directory_in_lives_place():
    desk, theirs = set_up()
    live, writer, done = desk.live("dt=1"), desk.world.files.writer, []
    writer.add(f"{MINE}/.forged/000000_1", DataFile(("forged",)), 7)

    def act(what):
        if f"/ready/u00001 {live}" in what and not done:
            done.append(what)
            writer.rename_into(f"{MINE}/.forged", live)
        elif len(done) == 1 and "/recreated/u00001.0/000000_1 " in what:
            done.append(what)
            writer.rename_into(live, f"{MINE}/.mine")
            writer.rename_into(THEIRS, live)

    require_no_rows_of_others(desk, theirs, act, done, 2)
