"""A late file that a run has carried over to one unit, and that somebody then moves to another unit of the same run."""

from __future__ import annotations

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk, outcomes
from support.world import World


def test_a_late_file_that_was_moved_to_another_partition_after_it_was_carried_over_is_not_hidden_without_a_word():
    """No attacker needed. A load puts a file into the wrong partition while a run is at work, which carries it over; then it is moved to
    the right one (`hdfs dfs -mv`, or LOAD DATA INPATH), which the same run swaps next. It is late there, too.
    """
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    desk = Desk(world, backup_table=False)
    first, second = desk.live("dt=1"), desk.live("dt=2")
    before, done = world.rows_of(desk.table), []

    def act(what):
        words = what.split()
        leaves = words[0] in ("exchange", "rename_exact") and "/retired/" in what
        if leaves and f"{first} " in what and not done:
            done.append("loaded")
            world.add_file(f"{first}/loaded.parquet", ["loaded"])
        elif leaves and f"{second} " in what and done == ["loaded"]:
            done.append("moved")
            assert world.files.namespace.find(f"{first}/loaded.parquet") is not None, "it was carried over"
            world.files.writer.rename_into(f"{first}/loaded.parquet", second)

    world.files.before_step = act
    result = desk.compact()
    world.files.before_step = None
    assert done == ["loaded", "moved"]
    assert not before - world.rows_of(desk.table)
    assert "loaded" in world.rows_anywhere()
    seen = "loaded" in world.rows_of(desk.table)
    assert seen or result.code is not Exit.DONE, outcomes(result)
