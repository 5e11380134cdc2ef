"""A late file waits in the backup of a run; then somebody overwrites the partition, and a later run compacts what it holds now."""

from __future__ import annotations

import pytest

from support.builders import a_table
from support.desk import EVERYTHING, Desk
from support.world import World

A_YEAR_MS = 365 * 24 * 3_600_000


def overwritten_after_a_run(compacts_again):
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.compact()
    backup = next(path for path in sorted(world.files.contents(desk.control.top)) if "/retired/" in path).rpartition("/")[0]
    # A writer had it open across the swap, and closes it now.
    world.add_file(f"{backup}/late.parquet", ["late"])
    for path in list(world.files.contents(desk.live("dt=1"))):
        world.files.writer.delete(path)
    desk.append("dt=1", "a", "b", "c")
    if compacts_again:
        desk.compact()
    world.wait(A_YEAR_MS)
    return desk


@pytest.mark.parametrize("compacts_again", [False, True])
def test_its_rows_were_overwritten_too(compacts_again):
    desk = overwritten_after_a_run(compacts_again)
    desk.cleanup(EVERYTHING)
    assert sorted(desk.world.rows_of(desk.table)) == ["a", "b", "c"]
