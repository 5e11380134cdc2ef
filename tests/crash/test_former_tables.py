"""cleanup --former-tables, killed at every change: the next one notes that the former table is gone, or discards what it has left."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.config.settings import Settings
from support.built_once import built_once
from support.fakes.files import Killed
from support.leftovers import SHAPES, build, wait

RUNS = ["first", "second"]


@built_once
def prepare(shape, run):
    """The table was dropped and created again; before the second run the log has it that the former one is gone."""
    desk = build(shape, compactions=1)
    known = desk.world.table(desk.table)
    wait(desk, 30)
    desk.world.catalog.drop_table(desk.table)
    desk.world.catalog.add_table(replace(known, create_time=desk.world.clock.now_ms() // 1000), [])
    if run == "second":
        clean(desk)
        wait(desk, 8)
    return desk


def clean(desk):
    return desk.cleanup(Settings(), former=True)


def old_files(desk):
    return sorted(path for path in desk.world.files.contents(desk.control.top) if "/retired/" in path)


def count_steps(shape, run):
    desk = prepare(shape, run)
    before = desk.world.files.steps
    assert clean(desk).code is Exit.DONE
    return desk.world.files.steps - before


def require_settled(desk, before, run):
    if run == "first":
        assert old_files(desk) == before
        # As long as if it had not been killed: since an entry, at the latest that of this one.
        assert clean(desk).code is Exit.DONE
        wait(desk, 6)
        assert clean(desk).code is Exit.DONE
        assert old_files(desk) == before
        wait(desk, 2)
    assert clean(desk).code is Exit.DONE
    assert old_files(desk) == []
    assert not desk.log().standing
    assert desk.run_directories() == []


CASES = [(shape, run, step) for shape in SHAPES for run in RUNS for step in range(count_steps(shape, run))]


@pytest.mark.parametrize(("shape", "run", "step"), CASES)
def test_a_killed_run_is_settled_by_the_next_one(shape, run, step):
    desk = prepare(shape, run)
    before = old_files(desk)
    desk.world.files.die_after(step)
    with suppress(Killed):
        clean(desk)
    desk.world.revive()
    require_settled(desk, before, run)


@pytest.mark.parametrize("done", [True, False], ids=["done all the same", "not done"])
@pytest.mark.parametrize(("shape", "run", "step"), [case for case in CASES if case[0] == "flat"])
def test_a_call_that_fails_anywhere_costs_nothing(shape, run, step, done):
    desk = prepare(shape, run)
    before = old_files(desk)
    desk.world.fail_at(step, done)
    clean(desk)
    desk.world.files.before_step = None
    desk.world.revive()
    require_settled(desk, before, run)
