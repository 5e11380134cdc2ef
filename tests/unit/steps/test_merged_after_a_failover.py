"""What came to a unit's place in an outage, no more than a run merges, where the NameNode fails over while it is merged."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable
from hivekeeper.steps import arrivals
from support.builders import a_table
from support.desk import Desk
from support.world import World

MOST, CAME = 6, 5


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("at_file", [0, 2])
def test_a_failover_while_it_is_merged_does_not_count_it_twice(monkeypatch, at_file, done):
    """No attacker needed. A run is killed in its gap, and a writer adds files in the directory that it makes again: fewer than the limit.
    The recovery merges them; one answer is lost, so it begins anew, and takes what it had counted already for files of somebody else.
    """
    monkeypatch.setattr(arrivals, "MOST_LIFTED", MOST)
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    live = desk.live("dt=1")
    before = world.rows_of(desk.table)
    desk.kill_before([f"/ready/u00001 {live}"], desk.compact)
    came = [f"came-in-the-outage-{nth}" for nth in range(CAME)]
    desk.append("dt=1", *came)
    seen = []

    def act(what):
        if what.startswith("rename_exact") and "/recreated/u00001.0/" in what.split()[1]:
            seen.append(what)
            if len(seen) == at_file + 1:
                world.files.fail_next("rename_exact", FilesUnavailable("the NameNode fails over"), done)

    world.files.before_step = act
    result = desk.recover()
    world.files.before_step = None
    assert len(seen) > at_file
    assert set(came) <= set(world.rows_anywhere())
    hidden = (set(came) | set(before)) - set(world.rows_of(desk.table))
    assert not hidden or result.code is not Exit.DONE, (result.code, result.tables[0].recovered, hidden)
