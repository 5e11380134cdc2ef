"""What lies above a unit is looked at again before each swap: it must not cost minutes for each of thousands of partitions."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from hivekeeper.steps import checks
from support.builders import a_partition, a_table
from support.desk import Desk, outcomes
from support.world import World

# Of a NameNode nearby: one request, and one of sixteen at a time.
ONE_MS, OF_MANY_MS = 1.0, 0.2
UNITS = 10


def charge(world, slowness=1.0):
    """Let the time pass that HDFS takes for looks."""
    files, clock = world.files, world.clock
    look, look_hidden, stat = files.look, files.look_hidden, files.stat

    def charged_look(directories, *more):
        clock.elapsed_ms += slowness * (ONE_MS + OF_MANY_MS * len(directories))
        return look(directories, *more)

    def charged_hidden(directories, *more):
        clock.elapsed_ms += slowness * (ONE_MS + OF_MANY_MS * len(directories))
        return look_hidden(directories, *more)

    def charged_stat(path):
        clock.elapsed_ms += slowness * ONE_MS
        return stat(path)

    files.look, files.look_hidden, files.stat = charged_look, charged_hidden, charged_stat


def seconds_of(world, act):
    began = world.clock.monotonic_ms()
    result = act()
    return (world.clock.monotonic_ms() - began) / 1000, result


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in range(UNITS)})
    return Desk(world)


@pytest.mark.parametrize(("left", "exit_code"), [(0, Exit.DONE), (40, Exit.DONE), (190, Exit.DONE), (210, Exit.LOCKED), (990, Exit.LOCKED)])
def test_an_old_leftover_of_many_directories_costs_no_minutes_for_each_unit(desk, left, exit_code):
    for nth in range(left):
        desk.world.files.writer.make_directory(f"{desk.live()}/_temporary/{nth:04d}")
    # It is a leftover after a week.
    desk.world.files.namespace.advance(30 * 86_400_000)
    charge(desk.world)
    seconds, result = seconds_of(desk.world, desk.compact)
    assert result.code is exit_code
    assert seconds / UNITS < 1


def test_a_slow_namenode_costs_some_seconds_for_each_unit(desk):
    desk.world.files.namespace.advance(30 * 86_400_000)
    charge(desk.world, slowness=200)
    seconds, result = seconds_of(desk.world, desk.compact)
    assert set(outcomes(result).values()) == {"given-up"}
    assert seconds / UNITS < 15


@pytest.mark.parametrize(("levels", "outcome"), [(50, "swapped"), (51, "refused")])
def test_a_partition_many_levels_below_its_table_is_refused(levels, outcome):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    place = f"{desk.live()}{'/x' * (levels - 1)}/dt=2"
    world.catalog.add_partition(desk.table, a_partition("dt=2", place))
    for nth in range(3):
        world.add_file(f"{place}/part-{nth}.parquet", [f"deep {nth}"])
    desk.world.files.namespace.advance(30 * 86_400_000)
    result = desk.compact()
    assert outcomes(result) == {"dt=1": "swapped", "dt=2": outcome}
    assert [unit.why.code for unit in result.tables[0].units if unit.why] == ([Code.TOO_DEEP] if outcome == "refused" else [])


def test_a_partition_that_takes_seconds_to_list_is_glanced_at_more_than_once(monkeypatch):
    """Half a million files, and every third glance is fast enough."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    world.files.namespace.advance(30 * 86_400_000)
    look, glance, glances = world.files.look, checks.is_still_true, []

    def slow_look(directories, *more):
        world.clock.elapsed_ms += 6000 if any(place.endswith("dt=1") for place in directories) else 1
        return look(directories, *more)

    def is_still_true(run, checked):
        glances.append(checked)
        world.clock.elapsed_ms += 20 if len(glances) % 3 == 0 else 150
        return glance(run, checked)

    monkeypatch.setattr(checks, "is_still_true", is_still_true)
    world.files.look = slow_look
    assert outcomes(desk.compact()) == {"dt=1": "swapped"}
    assert len(glances) > 1
