"""Late files that a killed run had not carried over, where somebody has since written the unit's files anew, without theirs."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk
from support.joined_desk import at
from support.world import World


@pytest.mark.parametrize("command", ["swap", "rollback"])
def test_late_rows_of_a_killed_run_are_told_of_if_live_was_rewritten_by_another_tool_in_the_outage(command):
    """Nobody has overwritten these rows: the other tool (a merge of small files, a deduplication) never saw them. As for those that came to
    the unit's place in the gap (test_rows_that_came_in_the_gap_are_told_of_…), the recovery must not say that all is well.
    """
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    if command == "rollback":
        desk.compact()
    live = desk.live("dt=1")
    before = world.rows_of(desk.table)
    run = desk.rollback if command == "rollback" else desk.compact

    def come_late():
        world.add_file(f"{live}/late.parquet", ["late"])
        at(desk, ["/retired/u00001/late.parquet"], lambda: world.files.die_after(0))

    at(desk, ["/retired/u00001"] if command == "swap" else [f"{live} ", "/retired/u00001"], come_late)
    try:
        run()
    except BaseException as error:  # noqa: BLE001
        assert type(error).__name__ == "Killed"
    world.files.before_step = None
    world.files.revive()
    world.files.expire_locks()
    assert "late" not in world.rows_of(desk.table)
    rows = sorted(world.rows_of(desk.table))
    assert rows == sorted(before)
    for name in list(world.files.namespace.directory(live).children):
        world.files.writer.delete(f"{live}/{name}")
    world.add_file(f"{live}/merged-by-another-tool.parquet", rows)
    result = desk.recover()
    assert "late" in world.rows_anywhere()
    assert "late" in world.rows_of(desk.table) or result.code is not Exit.DONE, result.tables[0].recovered
