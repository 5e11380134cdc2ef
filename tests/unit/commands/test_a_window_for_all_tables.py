"""A maintenance window that is too short for all tables of a database: none is kept from its turn for ever by those before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import RunSettings, Settings
from hivekeeper.model import Selection
from hivekeeper.stop_conditions import LOOK_EVERY_MS, Watch
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

DAY_MS = 86_400_000
MINUTE_MS = 60_000
NIGHTS = 7
PARTITIONS = [f"dt={day}" for day in (1, 2, 3)]
# As the examples for schedulers limit each table (--max-units).
SETTINGS = Settings(min_quiet_ms=0, max_units=len(PARTITIONS))


@pytest.fixture
def world():
    """Two tables; each exchange takes a minute."""
    world = World()
    for name in ("aaa", "events"):
        world.add_table(a_table(["dt"], name=name), {partition: [1000] * 3 for partition in PARTITIONS})
    return world


def nights(world):
    """The results of some nights, each with a window of as many minutes as `aaa` has partitions: each day, whoever may write to that adds
    small files to each of these. Nothing here is by chance: the order of a run's tables comes from its id, and these ids are fixed; by
    them `events` comes first in some of these nights.
    """

    def pass_time(what):
        if what.startswith("rename_exact") and "/aaa/" in what and "/retired/u" in what:
            world.clock.elapsed_ms += MINUTE_MS + LOOK_EVERY_MS

    world.files.before_step = pass_time
    for night in range(1, NIGHTS + 1):
        cluster = replace(world.cluster, stopping=Watch(world.cluster, RunSettings(max_duration_ms=len(PARTITIONS) * MINUTE_MS)))
        run = f"202602{night:02d}t010000z-0000"
        yield compact_swap(a_context(cluster, Selection(databases=("sales",)), run, SETTINGS))
        for partition in PARTITIONS:
            for number in range(3):
                path = f"{world.table('sales.aaa').location}/{partition}/night-{night}-{number}.parquet"
                world.add_file(path, [f"{night}/{number}"])
        world.files.namespace.advance(DAY_MS)


def test_each_table_is_compacted_in_some_night(world):
    compacted = set()
    for result in nights(world):
        compacted |= {table.table for table in result.tables if any(unit.outcome.is_done for unit in table.units)}
    assert compacted == {"sales.aaa", "sales.events"}


def test_a_partition_that_a_killed_run_has_left_away_is_back_after_some_night(world):
    desk = Desk(world, "sales.events")
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    world.files.namespace.advance(3_600_000)
    lives = [desk.live(partition) for partition in PARTITIONS]

    def missing():
        return [live for live in lives if not world.files.look([live], 0)[live].exists]

    assert len(missing()) == 1
    codes = [result.exit_code for result in nights(world)]
    assert (missing(), codes) == ([], codes)
