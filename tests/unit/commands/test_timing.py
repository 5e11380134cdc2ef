"""The seconds of each step."""

from __future__ import annotations

import pytest

from support.builders import a_table
from support.desk import Desk
from support.world import World


def test_the_seconds_of_the_steps_make_up_most_of_a_tables_and_begin_anew_for_each():
    world = World()
    for name in ("one", "two"):
        world.add_table(a_table(["dt"], name=name), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    world.clock.slowness_ms = 1000
    for name in ("one", "two"):
        (outcome,) = Desk(world, f"sales.{name}").compact().tables
        assert set(outcome.spent) == {"observe", "lock", "settle", "plan", "record", "copy", "prove", "exchange"}
        assert all(seconds > 0 for seconds in outcome.spent.values())
        assert outcome.seconds / 2 < sum(outcome.spent.values()) <= outcome.seconds


HELD = {"lock", "settle", "plan", "record"}
STEPS = {
    "history": set(),
    "analyze": {"observe"},
    "backup": {"observe", "lock", "settle", "record"},
    "verify": {"plan", "compare"},
    "rollback": HELD | {"exchange"},
    "cleanup": HELD | {"discard"},
}


@pytest.mark.parametrize("command", STEPS)
def test_a_command_has_only_the_steps_that_it_takes(command):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    (outcome,) = getattr(desk, command)().tables
    assert outcome.spent.keys() == STEPS[command]
