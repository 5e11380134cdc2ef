"""pin, unpin, backup and verify, killed at every single change: they write records only, so nothing may need a hand afterwards."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper.codes import Exit
from support.builders import a_table
from support.built_once import built_once
from support.desk import Desk
from support.every_step import KILLS
from support.fakes.files import Killed
from support.world import World

COMMANDS = {
    "pin": lambda desk: desk.pin(desk.runs[0]),
    "unpin": lambda desk: desk.pin(desk.runs[1], pinned=False),
    "backup": lambda desk: desk.backup(),
    "verify": lambda desk: desk.verify(),
}


@built_once
def build() -> Desk:
    """A table with two backups, the second of which is pinned."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk = Desk(world, cleanup_requires="verified")
    for row in ("a", "b"):
        desk.compact()
        desk.append("dt=1", row, row + row)
    desk.pin(desk.runs[1])
    return desk


def count_steps(command: str) -> int:
    desk = build()
    before = desk.world.files.steps
    assert COMMANDS[command](desk).code is Exit.DONE
    return desk.world.files.steps - before


CASES = [(command, step) for command in COMMANDS for step in range(count_steps(command))]


@pytest.mark.parametrize("at_once", KILLS)
@pytest.mark.parametrize(("command", "step"), CASES)
def test_a_command_that_was_killed_leaves_nothing_that_needs_a_hand(command, step, at_once):
    desk = build()
    rows, pinned = desk.world.rows_of(desk.table), desk.log().pinned
    desk.world.files.die_after(step, at_once)
    with suppress(Killed):
        COMMANDS[command](desk)
    desk.world.files.revive()
    desk.world.files.expire_locks()

    assert desk.recover().code is Exit.DONE

    written = desk.log().pinned != pinned
    assert desk.world.rows_of(desk.table) == rows
    again = COMMANDS[command](desk)
    assert again.code is Exit.DONE
    assert desk.log().pinned == {"pin": {*desk.runs[:2]}, "unpin": set()}.get(command, {desk.runs[1]})
    assert not written or again.tables[0].log_version is None
    assert len(desk.run_directories()) == 2 + len(desk.log().records)
