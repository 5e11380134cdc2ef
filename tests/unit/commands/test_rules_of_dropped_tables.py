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


def clean(desk):
    desk.runs.append(f"20260901t020304z-{len(desk.runs):04x}")
    context = a_context(desk.world.cluster, Selection(databases=("sales",)), desk.runs[-1])
    return clean_up_orphans(replace(context, settings_for=rules))


def old_files(world, top):
    return sorted(path for path in world.files.contents(top) if "/retired/" in path)


@pytest.mark.parametrize("shape", ["flat", "partitioned"])
@pytest.mark.parametrize("has_taker", [False, True], ids=["alone", "another one had the place since"])
def test_the_old_files_of_each_go_by_its_own_rules(shape, has_taker):
    desk = build(shape)
    world, known, top = desk.world, desk.world.table("sales.events"), desk.control.top
    before = old_files(world, top)
    drop(desk)
    if has_taker:
        # A table of mallory's, who may create tables in this database, too.
        mine = replace(known, name="mine", location=f"{HOME}/events", create_time=world.clock.now_ms() // 1000, owner="mallory")
        world.catalog.add_table(mine, [])
        theirs = Desk(world, "sales.mine")
        theirs.runs = list(desk.runs)
        unit = "dt=1" if mine.partitioned else ""
        if unit:
            world.make_partition("sales.mine", unit)
        theirs.append(unit, "a", "b", "c")
        assert theirs.compact().code is Exit.DONE
        desk.runs = theirs.runs
        world.catalog.drop_table("sales.mine")
    for _ in range(3):
        wait(desk, 2)
        clean(desk)
    assert before and set(before) <= set(old_files(world, top))
