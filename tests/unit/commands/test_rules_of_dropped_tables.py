"""`cleanup --orphans` where two tables of the same database have lain at one place, one after the other: the old files of each go by the
rules for that one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from support.contexts import a_context
from support.desk import Desk
from support.leftovers import DAY_MS, HOME, build, drop, wait


def rules(table):
    """Of sales.events the site keeps old files for a year, of others nothing."""
    return Settings(min_age_ms=365 * DAY_MS if table == "sales.events" else 0)


def clean(desk, rules=rules):
    desk.runs.append(f"20260901t020304z-{len(desk.runs):04x}")
    context = a_context(desk.world.cluster, Selection(databases=("sales",)), desk.runs[-1])
    return clean_up_orphans(replace(context, settings_for=rules))


def old_files(world, top):
    return sorted(path for path in world.files.contents(top) if "/retired/" in path)


def come_and_go(desk, known, compactions=1):
    """A table of mallory's, who may create tables in this database, too, has the place for a while."""
    world = desk.world
    mine = replace(known, name="mine", location=f"{HOME}/events", create_time=world.clock.now_ms() // 1000, owner="mallory")
    world.catalog.add_table(mine, [])
    theirs = Desk(world, "sales.mine")
    theirs.runs = list(desk.runs)
    unit = "dt=1" if mine.partitioned else ""
    if unit:
        world.make_partition("sales.mine", unit)
    for number in range(compactions):
        theirs.append(unit, *(f"{number}-{nth}" for nth in range(3)))
        assert theirs.compact().code is Exit.DONE
    desk.runs = theirs.runs
    world.catalog.drop_table("sales.mine")


@pytest.mark.parametrize("shape", ["flat", "partitioned"])
@pytest.mark.parametrize("has_taker", [False, True], ids=["alone", "another one had the place since"])
def test_the_old_files_of_each_go_by_its_own_rules(shape, has_taker):
    desk = build(shape)
    world, known, top = desk.world, desk.world.table("sales.events"), desk.control.top
    before = old_files(world, top)
    drop(desk)
    if has_taker:
        come_and_go(desk, known)
    for _ in range(3):
        wait(desk, 2)
        clean(desk)
    assert before and set(before) <= set(old_files(world, top))


@pytest.mark.parametrize("shape", ["flat", "partitioned"])
def test_the_mark_waits_as_long_as_the_rules_for_each_say(shape):
    """The old files are older than a year, and their table was dropped by mistake yesterday."""
    desk = build(shape)
    world, known, top = desk.world, desk.world.table("sales.events"), desk.control.top
    wait(desk, 400)
    before = old_files(world, top)
    world.catalog.drop_table("sales.events")
    come_and_go(desk, known)
    for _ in range(3):
        clean(desk)
        wait(desk, 2)
    assert before and set(before) <= set(old_files(world, top))
    wait(desk, 365)
    clean(desk)
    assert not world.files.contents(top)


@pytest.mark.parametrize("shape", ["flat", "partitioned"])
def test_runs_of_another_one_do_not_count_as_runs_of_the_first(shape):
    desk = build(shape, compactions=1)
    world, known, top = desk.world, desk.world.table("sales.events"), desk.control.top
    before = old_files(world, top)
    drop(desk)
    come_and_go(desk, known, compactions=4)
    for _ in range(2):
        clean(desk, lambda _: Settings(min_age_ms=DAY_MS, keep_latest_runs=0))
        wait(desk, 30)
    assert before and set(before) <= set(old_files(world, top))


def test_those_of_a_table_that_was_renamed_before_it_was_dropped_stay_by_the_rules_for_its_last_name():
    """It was compacted under the name under which it was built, of which the site keeps nothing."""
    desk = build("partitioned")
    world, known = desk.world, desk.world.table("sales.events")
    world.catalog.drop_table("sales.events")
    world.catalog.add_table(replace(known, name="built"), [])
    later = Desk(world, "sales.built")
    later.runs = list(desk.runs)
    world.make_partition("sales.built", "dt=1")
    later.append("dt=1", "a", "b", "c")
    assert later.compact().code is Exit.DONE
    top = later.control.top
    before = old_files(world, top)
    world.catalog.drop_table("sales.built")
    for _ in range(3):
        clean(later, lambda table: Settings(min_age_ms=0, keep_for_ms=365 * DAY_MS if table == "sales.built" else None))
        wait(later, 30)
    assert before and old_files(world, top) == before
