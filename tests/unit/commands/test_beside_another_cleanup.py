"""Backup tables that another process drops are no reason to put tables off."""

from __future__ import annotations

from hivekeeper.commands import cleanup, compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

NAMES = [f"t{n}" for n in range(6)]


def test_a_nightly_run_beside_another_process_that_cleans_up():
    world = World()
    for n, name in enumerate(NAMES):
        world.add_table(a_table(["dt"], name=name, create_time=10 + n), {"dt=1": [1000] * 3})
        desk = Desk(world, f"sales.{name}")
        desk.compact()
        desk.append("dt=1", "a", "b", "c")
    world.wait(86_400_000)
    world.forget()
    world.cluster.metastore.keeps_read_again_ms = 600_000
    others = world.another_process()
    selected = Selection(tables=tuple(f"sales.{name}" for name in NAMES))
    done = []

    # The other process is one table ahead.
    def ahead(step):
        for n, name in enumerate(NAMES[:-1]):
            if step.startswith("hold ") and f"/{name}/" in step and name not in done:
                done.append(name)
                after = Selection(tables=(f"sales.{NAMES[n + 1]}",))
                kept, world.files.before_step = world.files.before_step, None
                context = a_context(others, after, f"20260901t02030{n}z-0001", Settings(min_age_ms=0))
                result = cleanup.clean_up(context)
                assert result.code == 0, result.tables[0].problem
                world.files.before_step = kept

    world.files.before_step = ahead
    result = compact_swap.compact_swap(a_context(world.cluster, selected, "20260901t020304z-0000", Desk(world).settings))
    assert [one.code for one in result.tables] == [0] * len(NAMES)
