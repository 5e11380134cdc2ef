"""`cleanup --former-tables`, which docs/retention.md recommends for regular cleanups of databases whose jobs drop and create their tables:
the old files of a dropped table go by the rules, and with the patience, that the site has for that one, whoever has its place now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.commands import cleanup
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from support.contexts import a_context
from support.desk import Desk
from support.hive_statements import Hive
from support.leftovers import DAY_MS, HOME, build, wait

PLACE = "hdfs://nn/warehouse/sales/events"


def old_files(desk):
    return sorted(path for path in desk.world.files.contents(desk.control.top) if "/retired/" in path)


def clean_former(desk, rules):
    """`cleanup --former-tables` with the site's rules, by the name of a table."""
    context = a_context(desk.world.cluster, Selection(tables=(desk.table,)), "20260901t020304z-0000", former_tables=True)
    return cleanup.clean_up(replace(context, settings_for=rules))


def why(result):
    return {backup.why.code for backup in result.tables[0].backups}


@pytest.fixture(params=["flat", "partitioned"])
def old(request):
    """sales.events, an external table outside the directories of all databases, compacted twice."""
    desk = build(request.param)
    desk.world.catalog.homes.pop("sales", None)
    return desk


def old_table_of_mallory(desk, kind, location):
    """Long there, and compacted never: `scratch.mine`."""
    world = desk.world
    created = world.clock.now_ms() // 1000
    mine = replace(kind, database="scratch", name="mine", location=location, create_time=created, owner="mallory")
    world.catalog.add_table(mine, [])
    return Desk(world, "scratch.mine")


def test_they_go_by_the_rules_for_the_table_that_they_were_of(old):
    """The site keeps what `sales` had for 90 days, and of `scratch` nothing. Mallory sets the location of a table to the place of
    sales.events, which was dropped."""
    world = old.world
    known = world.table("sales.events")
    wait(old, 30)
    world.catalog.drop_table("sales.events")
    theirs = old_table_of_mallory(old, known, PLACE)
    wait(theirs, 20)
    before = old_files(theirs)

    def rules(table):
        return Settings(min_age_ms=90 * DAY_MS if table.startswith("sales.") else 0)

    result = clean_former(theirs, rules)
    assert before and old_files(theirs) == before, why(result)


def test_an_older_table_that_was_pointed_there_just_now_does_not_end_the_wait(old):
    """Somebody drops sales.events by mistake. That minute mallory sets the location of a table, which is a month old, to its place; the
    nightly cleanup follows."""
    world = old.world
    theirs = old_table_of_mallory(old, world.table("sales.events"), "hdfs://nn/home/mallory/mine")
    wait(old, 30)
    world.catalog.drop_table("sales.events")
    world.catalog.put_table(replace(world.table("scratch.mine"), location=PLACE))
    wait(theirs, 0)
    before = old_files(theirs)
    result = clean_former(theirs, lambda _: Settings())
    assert before and old_files(theirs) == before, why(result)


def test_nor_does_an_older_table_that_has_got_its_name_and_place_just_now():
    """(no attacker needed) A table is built anew beside the old one for two weeks; then the old one is dropped, and it gets its name."""
    old = build("flat")
    world, known = old.world, old.world.table("sales.events")
    made = replace(known, name="built", kind="MANAGED_TABLE", location=f"{HOME}/built", create_time=world.clock.now_ms() // 1000)
    world.add_table(made, {"": [1000] * 3})
    wait(old, 14)
    before = old_files(old)
    world.catalog.put_table(replace(known, kind="MANAGED_TABLE"))
    list(Hive(world).drop_table("sales.events"))
    list(Hive(world).rename_table("sales.built", "sales.events"))
    wait(old, 0)
    assert world.table("sales.events").location == PLACE
    result = clean_former(old, lambda _: Settings())
    assert before and old_files(old) == before, why(result)


def test_runs_of_the_table_that_is_there_now_do_not_count_as_runs_of_the_former_one(old):
    """`keep_latest_runs`: old files of a former table are counted by themselves (docs/retention.md)."""
    world, known = old.world, old.world.table("sales.events")
    unit = "dt=1" if known.partitioned else ""
    wait(old, 30)
    before = old_files(old)
    world.catalog.drop_table("sales.events")
    world.catalog.add_table(replace(known, create_time=world.clock.now_ms() // 1000), [])
    if unit:
        world.make_partition("sales.events", unit)
    for night in range(4):
        old.append(unit, *(f"night-{night}-{nth}" for nth in range(3)))
        old.compact()
    wait(old, 30)
    result = clean_former(old, lambda _: Settings(keep_latest_runs=1))
    assert before and set(before) <= set(old_files(old)), why(result)
