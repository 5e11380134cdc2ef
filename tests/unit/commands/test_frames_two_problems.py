"""A table of which both the compaction and the cleanup after it have something to say: exit code 7 is never made milder."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.reasons import Code
from hivekeeper.report import screen
from support.builders import a_table
from support.desk import Desk
from support.world import World


@pytest.mark.parametrize("beside", [False, True])
def test_what_a_cleanup_finds_is_told_although_there_was_no_room_to_compact(monkeypatch, beside):
    def investigate(_context, _table):
        raise NeedsInvestigation("a part of its backup was deleted", code=Code.BACKUP_HALF_DELETED, next="compare")

    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world, cleanup_after=True, cleanup_beside=beside, min_age_ms=0)
    desk.compact()
    desk.append("dt=1", "x", "y")
    world.files.namespace.space_bytes = world.files.namespace.used_bytes() + 20_000
    monkeypatch.setattr(compact_swap, "clean_up_table", investigate)
    result = desk.compact()
    (table,) = result.tables
    assert table.code is Exit.INVESTIGATE, f"{int(table.code)}\n{screen.render(result)}"
    assert "a part of its backup was deleted" in screen.render(result)
