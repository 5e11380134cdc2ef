"""cleanup --orphans, killed at every single change: the next one settles it, and nothing but what dropped tables have left is gone."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.names import ControlPaths
from hivekeeper.plan.orphans import OrphanState
from support.built_once import built_once
from support.fakes.files import Killed
from support.leftovers import SHAPES, build, clean, drop, leftovers, records, wait

RUNS = ["first", "second"]


@built_once
def prepare(shape, run):
    """The table is dropped; before the second run its records are marked."""
    desk = build(shape, compactions=1)
    drop(desk)
    if run == "second":
        clean(desk)
        wait(desk, 8)
    return desk


def count_steps(shape, run):
    desk = prepare(shape, run)
    before = desk.world.files.steps
    assert clean(desk).code is Exit.DONE
    return desk.world.files.steps - before


def picture(desk):
    """What is not of the dropped table's records, and which backups are there, by their path or whole."""
    return {path: content for path, content in desk.world.picture().items() if "/events/.hivekeeper" not in path and "-events" not in path}


def require_settled(desk, before, run):
    """The dropped table's records go by the next run, or by the one after the mark is old."""
    result = clean(desk)
    if run == "first":
        assert records(result).state is OrphanState.MARKED, result.tables
        wait(desk, 8)
        result = clean(desk)
    assert result.code is Exit.DONE, result.tables
    assert leftovers(clean(desk)) == []
    assert desk.world.picture() == before
    assert set(desk.world.catalog.tables) == {"sales.other"}


CASES = [(shape, run, step) for shape in SHAPES for run in RUNS for step in range(count_steps(shape, run))]


@pytest.mark.parametrize(("shape", "run", "step"), CASES)
def test_a_killed_run_is_settled_by_the_next_one(shape, run, step):
    desk = prepare(shape, run)
    before = picture(desk)
    desk.world.files.die_after(step)
    with suppress(Killed):
        clean(desk)
    desk.world.revive()
    assert picture(desk) == before
    if run == "first":
        assert any("/retired/" in path for path in desk.world.picture())
    require_settled(desk, before, run)


@pytest.mark.parametrize("done", [True, False], ids=["done all the same", "not done"])
@pytest.mark.parametrize(("shape", "run", "step"), [case for case in CASES if case[0] == "flat"])
def test_a_call_that_fails_anywhere_costs_nothing(shape, run, step, done):
    desk = prepare(shape, run)
    before = picture(desk)
    desk.world.fail_at(step, done)
    clean(desk)
    desk.world.files.before_step = None
    desk.world.revive()
    assert picture(desk) == before
    require_settled(desk, before, run)


@pytest.mark.parametrize("shape", SHAPES)
def test_backups_that_a_run_had_written_after_the_lock_was_lost_come_back(shape):
    """As after a pause of minutes just before the control directory is renamed away."""
    desk = prepare(shape, "second")
    table = "hdfs://nn/warehouse/sales/events"
    top = ControlPaths.of(table, partitioned=shape == "partitioned").top
    rows = f"{top}/runs/20260909t000000z-0000/retired/u00001/rows.parquet"

    def pause(what):
        if what.startswith("rename_exact") and "/.hivekeeper.removed-" in what:
            desk.world.files.before_step = None
            desk.world.add_file(rows, ["rows"])

    desk.world.files.before_step = pause
    result = clean(desk)
    assert result.code is Exit.INVESTIGATE
    assert desk.world.files.stat(rows)
    assert desk.world.files.stat(names.join(top, "log", names.log_entry(0)))
