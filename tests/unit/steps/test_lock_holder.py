"""What a second run is told about the one that holds the table."""

from __future__ import annotations

import re

from hivekeeper.codes import Exit
from hivekeeper.config.settings import Settings
from hivekeeper.steps import table_lock
from support.builders import a_table
from support.desk import Desk
from support.world import World


def test_a_second_run_is_told_who_holds_the_table_and_since_when():
    world = World()
    world.add_table(a_table(), {"": [1000] * 3})
    world.files.namespace.advance(1_767_323_045_000 - world.clock.now_ms())
    desk = Desk(world)
    with table_lock.hold_table(world.cluster, world.table(desk.table), desk.control, "20260102t030400z-abcd", Settings()):
        (outcome,) = desk.compact(cluster=world.another_process()).tables
    assert outcome.code is Exit.LOCKED
    assert re.search(r"\(run 20260102t030400z-abcd of etl on edge1 \(app-1\) since 2026-01-02 03:04:05 UTC\)", outcome.problem.what)
