"""A directory that somebody makes in a unit long after a run, with copies of its files, is not a late committer's."""

from __future__ import annotations

import pytest

from hivekeeper.model import FileInfo
from hivekeeper.steps.arrivals import may_be_of_gap
from support.desk import desk_by
from support.leftovers import DAY_MS


@pytest.mark.parametrize("command", ["recover", "compact", "rollback"])
@pytest.mark.parametrize("by", [["dt"], []], ids=["partitioned", "unpartitioned"])
def test_copies_that_somebody_keeps_in_a_directory_beside_the_files_are_not_shown_twice(by, command):
    desk = desk_by(by)
    unit = "dt=1" if by else ""
    desk.compact()
    rows, world = desk.world.rows_of(desk.table), desk.world
    world.files.namespace.advance(90 * DAY_MS)
    # hdfs dfs -mkdir LIVE/before_reload; hdfs dfs -cp LIVE/part-* LIVE/before_reload
    for path, content in list(world.files.contents(desk.live(unit)).items()):
        if path.startswith(f"{desk.live(unit)}/part-"):
            world.files.writer.add(f"{desk.live(unit)}/before_reload/{path.rpartition('/')[2]}", content)
    world.files.namespace.advance(90 * DAY_MS)
    assert world.rows_of(desk.table) == rows
    getattr(desk, command)()
    assert world.rows_of(desk.table) == rows, sorted(world.files.contents(desk.live(unit)))


@pytest.mark.parametrize("place", ["hdfs://nn/t", "file:/t", "viewfs://x/t"])
def test_a_directory_may_be_a_committers_if_it_is_older_than_the_log_entry(place):
    entry = FileInfo(f"{place}/log/0.json", 9, 5000, False, 700)
    directory = FileInfo(f"{place}/job", 0, 4000, True, 600)
    later, newer = directory._replace(mtime_ms=6000), directory._replace(file_id=800)
    # A killed run has moved some of its files up: that changes its time, but not its number.
    assert [may_be_of_gap(one, entry) for one in (directory, later, newer)] == [
        True,
        place.startswith("hdfs"),
        not place.startswith("hdfs"),
    ]
    assert not may_be_of_gap(directory, None)
