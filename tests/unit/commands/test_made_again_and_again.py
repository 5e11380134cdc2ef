"""Whoever may make names beside a partition makes its directory again each time that the run brings one back."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from hivekeeper.steps.directory_exchange import MOST_ASIDES
from support.builders import a_table
from support.desk import Desk
from support.world import World


@pytest.mark.parametrize("command", [Desk.compact, Desk.rollback], ids=["compact-swap", "rollback"])
@pytest.mark.parametrize("is_there", [False, True], ids=["", "one is still there"])
def test_it_stays_away_and_is_told_until_nobody_does_that_any_more(command, is_there):
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={number}": [1000] * 3 for number in (1, 2)})
    desk = Desk(world, backup_table=False)
    if command is Desk.rollback:
        desk.compact()
    before, live, made = world.rows_of(desk.table), desk.live("dt=1"), []

    def make_again(what):
        if what.startswith("rename_exact") and what.endswith(f"/u00001 {live}"):
            made.append(live)
            world.files.writer.make_directory(live)

    world.files.before_step = make_again
    result = command(desk)
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.RE_CREATED_AGAIN)
    assert len(made) >= MOST_ASIDES and not world.rows_below(live)
    world.files.before_step = None
    if is_there:
        # All names for what is set aside are taken.
        world.files.writer.make_directory(live)
        result = desk.recover()
        assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.NO_FREE_NAME)
        world.files.writer.delete(live)
    assert desk.recover().code is Exit.DONE
    assert world.rows_of(desk.table) == before
