"""--run-key: a second attempt answers with the exit code of the first, also if that was due to an interrupted run that it had settled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup, compact_swap
from hivekeeper.model import Selection
from hivekeeper.report import screen
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

MIB = 2**20
COMMANDS = {"compact-swap": compact_swap.compact_swap, "cleanup": cleanup.clean_up}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_second_attempt_has_the_exit_code_of_the_first_that_settled_a_run_with_rows_astray(command):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3, "dt=2": [MIB] * 3})
    desk = Desk(world)
    desk.compact(where="dt = '2'")
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    world.catalog.drop_partition(desk.table, "dt=1")
    desk.append("dt=2", "a", "b", "c")
    settings = replace(desk.settings, min_age_ms=0)

    def attempt():
        context = a_context(world.cluster, Selection(tables=(desk.table,)), desk._new_run(), settings, run_key="monday")
        return COMMANDS[command](context)

    first, second = attempt(), attempt()
    assert second.tables[0].answered_by is not None
    assert (first.code, second.code) == (Exit.PARTIAL, Exit.PARTIAL), f"{screen.render(first)}\n-----\n{screen.render(second)}"
