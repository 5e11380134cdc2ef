"""`cleanup --former-tables`, which docs/retention.md recommends for regular cleanups of databases whose jobs drop and create their tables:
the old files of a dropped table go by the rules, and with the patience, that the site has for that one, whoever has its place now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.runlog import strict
from support.contexts import a_context
from support.desk import Desk
from support.hive_statements import Hive
from support.leftovers import DAY_MS, HOME, build, wait

PLACE = "hdfs://nn/warehouse/sales/events"


def old_files(desk):
    return sorted(path for path in desk.world.files.contents(desk.control.top) if "/retired/" in path)


def clean_former(desk, rules):
    """`cleanup --former-tables` with the site's rules, by the name of a table."""
    desk.runs.append(f"20260901t020304z-{len(desk.runs):04x}")
    context = a_context(desk.world.cluster, Selection(tables=(desk.table,)), desk.runs[-1], former_tables=True)
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


def test_they_go_once_the_table_is_known_to_be_gone_for_long_enough(old):
    """However young the one at its place is then: a job drops and creates it every night."""
    world, known = old.world, old.world.table("sales.events")
    unit = "dt=1" if known.partitioned else ""
    wait(old, 30)
    left = [set(old_files(old))]
    found = []
    for night in range(10):
        world.catalog.drop_table("sales.events")
        world.catalog.add_table(replace(known, create_time=world.clock.now_ms() // 1000), [])
        found.append(clean_former(old, lambda _: Settings()))
        assert found[-1].code is Exit.DONE
        if unit:
            world.make_partition("sales.events", unit)
        before = set(old_files(old))
        old.append(unit, *(f"night-{night}-{nth}" for nth in range(3)))
        assert old.compact().code is Exit.DONE
        left.append(set(old_files(old)) - before)
        wait(old, 1)
    assert [why(result) for result in found] == [{Code.TOO_YOUNG}] * 7 + [{Code.TOO_YOUNG, Code.NOT_KEPT}] * 3
    assert "is known to be gone from now on" in found[0].tables[0].backups[0].why.what
    assert "is known to be gone since" in found[1].tables[0].backups[0].why.what
    # What each night's table has left goes seven days after the cleanup that did not find that any more.
    assert [bool(files & set(old_files(old))) for files in left] == [False] * 3 + [True] * 8


def test_a_night_on_which_there_is_nothing_new_to_note_writes_nothing(old):
    world, known = old.world, old.world.table("sales.events")
    world.catalog.drop_table("sales.events")
    world.catalog.add_table(replace(known, create_time=world.clock.now_ms() // 1000), [])
    for _ in range(3):
        clean_former(old, lambda _: Settings())
        wait(old, 1)
    assert len([run for run in old.log().runs if run.operation == "cleanup" and run.finished]) == 1


def test_a_dry_run_notes_nothing(old):
    theirs = old_table_of_mallory(old, old.world.table("sales.events"), PLACE)
    old.world.catalog.drop_table("sales.events")
    context = a_context(old.world.cluster, Selection(tables=(theirs.table,)), "20260901t020304z-0000", former_tables=True, dry_run=True)
    runs = theirs.log().runs
    assert why(cleanup.clean_up(replace(context, settings_for=lambda _: Settings()))) == {Code.TOO_YOUNG}
    assert theirs.log().runs == runs


@pytest.mark.parametrize("was_gone", [False, True], ids=["ever since", "again, from a backup of the metastore"])
def test_the_wait_begins_when_a_table_that_is_elsewhere_is_dropped(old, was_gone):
    """(no attacker needed) It was renamed, and its job has made a new one; a month later somebody drops the former one by mistake."""
    world, known = old.world, old.world.table("sales.events")
    world.catalog.drop_table("sales.events")
    world.catalog.add_table(replace(known, create_time=world.clock.now_ms() // 1000), [])
    if was_gone:
        clean_former(old, lambda _: Settings())
    world.catalog.add_table(replace(known, name="elsewhere", location=f"{HOME}/elsewhere"), [])
    for _ in range(3):
        wait(old, 10)
        assert why(clean_former(old, lambda _: Settings())) == {Code.OF_FORMER_TABLE}
    world.catalog.drop_table("sales.elsewhere")
    wait(old, 1)
    before = old_files(old)
    result = clean_former(old, lambda _: Settings())
    assert before and old_files(old) == before, why(result)
    wait(old, 8)
    assert why(clean_former(old, lambda _: Settings())) == {Code.NOT_KEPT}
    assert old_files(old) == []


def test_a_database_that_is_closed_for_a_night_does_not_end_the_wait(old):
    """A table of the same second as one of two former ones does, for that one."""
    world, known = old.world, old.world.table("sales.events")
    wait(old, 30)
    for _ in range(2):
        world.catalog.drop_table("sales.events")
        second = replace(known, create_time=world.clock.now_ms() // 1000)
        world.catalog.add_table(second, [])
        if known.partitioned:
            world.make_partition("sales.events", "dt=1")
        old.append("dt=1" if known.partitioned else "", "a", "b", "c")
        assert old.compact().code is Exit.DONE
    of_second = min(run.table_id for run in old.log().runs)
    clean_former(old, lambda _: Settings())
    world.catalog.add_table(replace(known, database="closed", name="any", location="", create_time=0, unreadable="it is refused"), [])
    back = int(of_second.rpartition("@")[2])
    world.catalog.add_table(replace(known, name="back", location=f"{HOME}/back", create_time=back), [])
    wait(old, 4)
    assert Code.OF_FORMER_TABLE in why(clean_former(old, lambda _: Settings()))
    world.catalog.drop_table("closed.any")
    world.catalog.drop_table("sales.back")
    wait(old, 4)
    result = clean_former(old, lambda _: Settings())
    told = {entry.backup.table_id: entry.why.code for entry in result.tables[0].backups}
    assert told == {"sales.events@5": Code.NOT_KEPT, of_second: Code.TOO_YOUNG, old.log().table_id: Code.NOT_KEPT}


def test_those_of_a_table_that_was_renamed_stay_by_the_rules_for_either_name(old):
    """It was `sales.events_new` while it was built, of which the site keeps nothing; or mallory has named hers of the same second so."""
    world, known = old.world, old.world.table("sales.events")
    wait(old, 30)
    list(Hive(world).rename_table("sales.events", "sales.renamed"))
    later = Desk(world, "sales.renamed")
    later.runs = list(old.runs)
    if not known.partitioned:
        world.catalog.put_table(replace(world.table("sales.renamed"), location=known.location))
    later.append("dt=1" if known.partitioned else "", "a", "b", "c")
    assert later.compact().code is Exit.DONE
    world.catalog.drop_table("sales.renamed")
    world.catalog.add_table(replace(known, create_time=world.clock.now_ms() // 1000, location=known.location), [])
    before = old_files(old)

    def rules(table):
        return Settings(min_age_ms=365 * DAY_MS if table == "sales.renamed" else 0)

    for _ in range(2):
        clean_former(old, rules)
        wait(old, 60)
    assert before and old_files(old) == before


def test_they_go_to_the_trash_if_those_of_that_table_do(old):
    world, known = old.world, old.world.table("sales.events")
    wait(old, 30)
    world.catalog.drop_table("sales.events")
    theirs = old_table_of_mallory(old, known, PLACE)
    old_table = {"min_age_ms": 0, "discard": "trash"}
    result = clean_former(theirs, lambda table: Settings(**old_table) if table.startswith("sales.") else Settings(min_age_ms=0))
    assert result.code is Exit.DONE
    assert [path for path in world.files.contents("hdfs://nn") if "/.Trash/" in path]


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


def test_a_table_that_is_in_its_place_again_ends_the_wait(old):
    """(no attacker needed) It is dropped by mistake, and its job makes a new one, which nobody compacts; the nightly cleanup notes that.
    The metastore is restored from a backup: it is there again, for two months, and each cleanup looks at it. Then it is dropped again.
    """
    world, known = old.world, old.world.table("sales.events")
    parts = dict(world.partitions("sales.events")) if known.partitioned else {}
    wait(old, 30)
    world.catalog.drop_table("sales.events")
    world.catalog.add_table(replace(known, create_time=world.clock.now_ms() // 1000), [])
    assert why(clean_former(old, lambda _: Settings())) == {Code.TOO_YOUNG}
    world.catalog.drop_table("sales.events")
    world.catalog.add_table(known, list(parts.values()))
    for _ in range(4):
        wait(old, 14)
        assert why(clean_former(old, lambda _: Settings(min_age_ms=90 * DAY_MS))) == {Code.TOO_YOUNG}
    world.catalog.drop_table("sales.events")
    world.catalog.add_table(replace(known, create_time=world.clock.now_ms() // 1000), [])
    before = old_files(old)
    result = clean_former(old, lambda _: Settings())
    assert before and old_files(old) == before, why(result)


def test_a_log_with_many_former_tables_can_still_be_read(monkeypatch):
    """An hourly job drops and creates its table, and `keep_latest_runs` keeps the last of each for ever. What a cleanup notes of them is
    more than a reader takes (4096 items; here 20): from then on no command can read the log.
    """
    old = build("flat")
    world, known = old.world, old.world.table("sales.events")
    world.catalog.homes.pop("sales", None)
    monkeypatch.setattr(strict, "MOST_WORD", 20)
    for hour in range(24):
        world.catalog.drop_table("sales.events")
        world.catalog.add_table(replace(known, create_time=world.clock.now_ms() // 1000), [])
        result = clean_former(old, lambda _: Settings(keep_latest_runs=1))
        assert result.code is Exit.DONE, (hour, result.tables[0].problem)
        old.append("", *(f"{hour}-{nth}" for nth in range(3)))
        assert old.compact().code is Exit.DONE
        wait(old, 1)
