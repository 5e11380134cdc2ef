"""HDFS enters safe mode at any instant: the exit code says the cluster is unusable, nobody has to investigate, the next run finishes."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable
from support.builders import a_table
from support.desk import Desk
from support.world import World


def a_desk():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 2})
    return world, Desk(world)


COMMANDS = {
    "compact": ([], lambda desk: desk.compact()),
    "rollback": ([lambda desk: desk.compact()], lambda desk: desk.rollback()),
    "cleanup": ([lambda desk: desk.compact()], lambda desk: desk.cleanup()),
}


def prepare(command):
    world, desk = a_desk()
    before, act = COMMANDS[command]
    for former in before:
        assert former(desk).code is Exit.DONE
    return world, desk, act


def count_steps(command):
    world, desk, act = prepare(command)
    begun = world.files.steps
    assert act(desk).code is Exit.DONE
    return world.files.steps - begun


EVERY_STEP = [(command, step) for command in COMMANDS for step in range(count_steps(command))]


def enter_safe_mode_at(world, step):
    seen = [0]

    def refuse(what):
        method = what.partition(" ")[0]
        if seen[0] >= step and not method.startswith("metastore."):
            world.files.fail_next(method, FilesUnavailable("SafeModeException: Name node is in safe mode"))
        seen[0] += 1

    world.files.before_step = refuse


@pytest.mark.repeating
@pytest.mark.parametrize(("command", "step"), EVERY_STEP)
def test_safe_mode_from_any_step_on_asks_no_person_and_the_next_run_finishes(command, step):
    world, desk, act = prepare(command)
    rows = world.rows_of("sales.events")
    enter_safe_mode_at(world, step)
    first = act(desk)
    # 6 from where the units are done, and not yet recorded or tidied up after.
    assert first.code in (Exit.DONE, Exit.UNUSABLE, Exit.PARTIAL), first.tables[0].problem
    world.files.before_step = None
    world.files.expire_locks()
    assert desk.compact().code is Exit.DONE
    assert world.rows_of("sales.events") == rows


def test_safe_mode_in_the_gap_says_that_readers_may_miss_the_partition():
    world, desk = a_desk()

    def refuse_from_the_gap_on(what):
        method, source = what.split()[:2]
        if method == "rename_exact" and source.endswith("/ready/u00001"):
            enter_safe_mode_at(world, 0)
            world.files.before_step(what)

    world.files.before_step = refuse_from_the_gap_on
    (outcome,) = desk.compact().tables
    assert outcome.code is Exit.UNUSABLE
    assert "readers may find it absent" in outcome.problem.state
    assert "hivekeeper recover --table sales.events" in outcome.problem.next
