"""Tables that were created in one second, one of which was renamed while a killed run had its rows away, or may have been: the others,
their owners and the tables of other databases are not stopped by that, nor get its rows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.recover import recover
from hivekeeper.model import Column, Selection
from hivekeeper.plan import listings
from hivekeeper.ports import FilesUnavailable, NoPermission
from hivekeeper.reasons import Code
from hivekeeper.steps.census import shared_census
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.hive_statements import Hive
from support.joined_desk import at
from support.listings import listen
from support.world import World

PLACE = "hdfs://nn/warehouse/sales.db/events"
FORMER = "hdfs://nn/warehouse/sales.db/.hivekeeper-events"
GAP = ["rename_exact", f"/ready/u00001 {PLACE}"]
MINE = "hdfs://nn/warehouse/tenant.db/mine"
MANY = ["20260101t000000z-0000"] * 10


def a_world(**more):
    world = World()
    world.catalog.databases.update(["archive", "tenant"])
    for name in ("sales", "archive", "tenant"):
        world.catalog.homes[name] = f"hdfs://nn/warehouse/{name}.db"
        world.files.writer.make_directory(world.catalog.homes[name])
    world.add_table(a_table((), **{"kind": "MANAGED_TABLE", "create_time": 5, "location": PLACE, **more}), {"": [1000] * 3})
    return world


def desk_of(world, name):
    desk = Desk(world, name, backup_table=False)
    desk.runs.extend(MANY)
    return desk


def run(statement):
    deque(statement, maxlen=0)


# ---- a tenant's database at a place that HDFS cannot look at


def test_a_database_at_a_place_that_fails_when_it_is_looked_at_stops_nobody_else(monkeypatch):
    """ALTER DATABASE tenant SET LOCATION 'hdfs://nn/a:b' (IllegalArgumentException: not a valid DFS filename); a mount that is down."""
    world = a_world()
    world.catalog.homes["tenant"] = "hdfs://nn/warehouse/a:b"
    look = world.files.look_hidden_directories

    def fail(places, *most):
        if any(":" in place[7:] for place in places):
            raise FilesUnavailable("IllegalArgumentException: Pathname /warehouse/a:b is not a valid DFS filename")
        return look(places, *most)

    monkeypatch.setattr(world.files, "look_hidden_directories", fail)
    assert desk_of(world, "sales.events").compact().code is Exit.DONE


def test_such_a_database_does_not_end_a_command_over_other_tables(monkeypatch):
    world = a_world()
    for nth in range(3):
        place = f"hdfs://nn/warehouse/sales.db/t{nth}"
        world.add_table(a_table((), kind="MANAGED_TABLE", name=f"t{nth}", create_time=20 + nth, location=place), {"": [1000] * 3})
    assert desk_of(world, "sales.t1").compact().code is Exit.DONE
    world.forget()
    world.catalog.homes["tenant"] = "hdfs://nn/warehouse/a:b"
    look = world.files.look_hidden_directories

    def fail(places, *most):
        if any(":" in place[7:] for place in places):
            raise FilesUnavailable("IllegalArgumentException: Pathname /warehouse/a:b is not a valid DFS filename")
        return look(places, *most)

    monkeypatch.setattr(world.files, "look_hidden_directories", fail)
    result = compact_swap(a_context(world.cluster, Selection(databases=("sales",)), "20260201t020304z-0000"))
    assert [(one.table, one.problem) for one in result.tables] == [(f"sales.{name}", None) for name in ("events", "t0", "t1", "t2")]


@pytest.mark.parametrize("home", ["hdfs://nn/"])
def test_the_root_is_not_asked_for_without_its_slash(home):
    """HDFS refuses hdfs://nn as it does a:b: `Pathname  from hdfs://nn is not a valid DFS filename`."""
    world = a_world()
    world.catalog.homes["tenant"] = home
    listed = listen(world.files, "look_hidden_directories")
    desk_of(world, "sales.events").compact()
    assert "hdfs://nn" not in listed


# ---- one reading hides what the other tells


def test_a_renamed_table_is_found_though_another_one_had_its_name_in_the_reading_before():
    """A: `others` is a dict by name, in which the older reading overrides the newer one."""
    world = a_world()
    world.catalog.add_table(replace(a_table((), name="kept", create_time=9, location=MINE), database="archive"), [])
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    run(Hive(world).rename_table("sales.events", "sales.renamed"))
    world.catalog.add_table(a_table((), kind="MANAGED_TABLE", create_time=99, location=PLACE), [])
    world.files.namespace.advance(3_600_001)
    ask, acted = world.metastore.tables, []

    def tables(database, names):
        found = ask(database, names)
        if not acted and database == "archive":
            # After archive was read, and before sales: DROP TABLE archive.kept; ALTER TABLE sales.renamed RENAME TO archive.kept.
            acted.append(True)
            run(Hive(world).drop_table("archive.kept"))
            run(Hive(world).rename_table("sales.renamed", "archive.kept"))
        return found

    world.metastore.tables = tables
    problem = desk.recover().tables[0].problem
    assert acted
    assert (problem.code, "archive.kept" in problem.what) == (Code.OTHER_TABLE, True)


@pytest.mark.parametrize("since_s", [0, 30, 120])
def test_a_table_that_took_another_name_since_a_command_read_all_tables_is_found(since_s):
    """A, without a race of milliseconds: the newest reading may be a minute old, the one before an hour."""
    world, first = World(), "hdfs://nn/warehouse/archive.db/first"
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5, location=PLACE), {"": [1000] * 3})
    table = a_table((), kind="MANAGED_TABLE", name="first", create_time=6, location=first)
    world.add_table(replace(table, database="archive"), {"": [1000] * 3})
    world.catalog.add_table(a_table((), kind="MANAGED_TABLE", name="kept", create_time=9, location=f"{PLACE}-kept"), [])
    for name, place in (("sales.events", PLACE), ("archive.first", first)):
        desk = desk_of(world, name)
        desk.kill_before(["rename_exact", f"/ready/u00001 {place}"], desk.compact)
    # The interrupted run of the first one lets the command read all tables.
    world.catalog.drop_table("archive.first")
    world.catalog.add_table(replace(table, database="archive", create_time=98), [])
    world.files.namespace.advance(3_600_001)
    ask, acted = world.metastore.tables, []

    def tables(database, names):
        if database == "sales" and not acted and shared_census(world.cluster)._before_ms is not None:
            acted.append(True)
            world.clock.sleep_ms(since_s * 1000)
            # DROP TABLE kept; ALTER TABLE events RENAME TO kept; CREATE TABLE events.
            run(Hive(world).drop_table("sales.kept"))
            run(Hive(world).rename_table("sales.events", "sales.kept"))
            world.catalog.add_table(a_table((), kind="MANAGED_TABLE", create_time=99, location=PLACE), [])
        return ask(database, names)

    world.metastore.tables = tables
    result = recover(a_context(world.cluster, Selection(databases=("archive", "sales")), "20260201t020304z-0000"))
    assert acted
    codes = {one.table: one.problem and one.problem.code for one in result.tables}
    assert codes["sales.events"] is Code.OTHER_TABLE


# ---- external tables without a directory


def an_external_one_to_come(world, **more):
    table = a_table((), name="landed", create_time=7, location="hdfs://nn/landing/landed", **more)
    world.files.writer.make_directory("hdfs://nn/landing")
    world.catalog.add_table(table, [])
    return desk_of(world, "sales.landed")


@pytest.mark.parametrize("command", [Desk.compact, Desk.recover, Desk.verify], ids=["compact", "recover", "verify"])
def test_hidden_directories_in_a_shared_one_stop_no_external_table_that_has_no_directory_yet(command, monkeypatch):
    monkeypatch.setattr(listings, "MOST_BESIDE", 20)
    world = a_world()
    desk = an_external_one_to_come(world)
    for nth in range(30):
        world.files.writer.make_directory(f"hdfs://nn/landing/.{nth}")
    result = command(desk)
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)


@pytest.mark.parametrize("command", [Desk.compact, Desk.recover, Desk.verify], ids=["compact", "recover", "verify"])
def test_an_external_table_without_a_directory_in_one_that_may_not_be_listed_is_no_problem(command, monkeypatch):
    world = a_world()
    desk = an_external_one_to_come(world)
    look = world.files.look_hidden_directories

    def refuse(places, *most):
        if "hdfs://nn/landing" in places:
            raise NoPermission("landing: permission denied")
        return look(places, *most)

    monkeypatch.setattr(world.files, "look_hidden_directories", refuse)
    result = command(desk)
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)


# ---- another tenant's table of the second


def test_the_advice_does_not_give_the_rows_of_a_dropped_or_renamed_table_to_a_tenants_table_of_its_second():
    """CREATE EXTERNAL TABLE tenant.mine … LOCATION (where nothing is), in the second of sales.events."""
    world = a_world()
    before = world.rows_of("sales.events")
    mine = replace(a_table((), kind="EXTERNAL_TABLE", name="mine", create_time=5, location=MINE), database="tenant", owner="mallory")
    world.catalog.add_table(mine, [])
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    run(Hive(world).rename_table("sales.events", "sales.renamed"))
    world.files.namespace.advance(3_600_001)
    thief = desk_of(world, "tenant.mine")
    problem = thief.recover().tables[0].problem
    if problem is not None and f"hdfs dfs -mv {FORMER}" in problem.next:
        world.files.writer.rename_into(FORMER, f"{MINE.rpartition('/')[0]}/.hivekeeper-mine")
        thief.recover()
    assert not before & world.rows_of("tenant.mine")


def test_the_advice_names_all_tables_that_may_be_the_renamed_one():
    world = a_world()
    mine = replace(a_table((), kind="EXTERNAL_TABLE", name="mine", create_time=5, location=MINE), database="tenant")
    world.catalog.add_table(mine, [])
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    run(Hive(world).rename_table("sales.events", "sales.renamed"))
    world.files.namespace.advance(3_600_001)
    problem = desk_of(world, "tenant.mine").recover().tables[0].problem
    assert problem is None or "sales.renamed" in str(problem)


def test_the_command_of_the_advice_is_about_the_table_that_is_most_like_the_renamed_one():
    """A tenant's, of other columns, whose directory is missing on purpose, is the first that is told, by the name of its database."""
    world = a_world()
    world.catalog.databases.add("zzz")
    mine = replace(a_table((), name="mine", create_time=5, location=MINE), database="zzz", columns=(Column("other", "string"),))
    world.catalog.add_table(mine, [])
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    run(Hive(world).rename_table("sales.events", "sales.renamed"))
    world.catalog.add_table(a_table((), kind="MANAGED_TABLE", create_time=99, location=PLACE), [])
    world.files.namespace.advance(3_600_001)
    assert "--table sales.renamed" in desk.recover().tables[0].problem.next


# ---- tables of a script, created in one second


def test_what_was_misplaced_once_and_is_settled_does_not_stop_others_of_its_second_after_a_drop():
    """B: an overwrite by Spark makes the directory of another table anew, each night."""
    world = a_world()
    other = replace(
        a_table((), kind="MANAGED_TABLE", name="other", create_time=5, location="hdfs://nn/warehouse/archive.db/other"),
        database="archive",
        columns=(Column("name", "string"),),
    )
    world.add_table(other, {"": [1000]})
    desk = Desk(world, backup_table=False)

    def rename():
        run(Hive(world).rename_table("sales.events", "sales.kept"))

    at(desk, GAP, rename)
    assert outcomes(desk.compact()) == {"": "misplaced"}
    world.files.namespace.advance(3_600_001)
    world.files.writer.rename_into(FORMER, FORMER.replace("events", "kept"))
    kept = desk_of(world, "sales.kept")
    kept.recover()
    run(Hive(world).drop_table("sales.kept"))
    world.files.namespace.advance(3_600_001)
    world.overwrite(other.location, "new.parquet", ["n"], whole=True)
    world.files.namespace.advance(3_600_001)
    world.forget()
    result = desk_of(world, "archive.other").compact()
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)


@pytest.mark.parametrize("nights", [1, 3])
def test_a_table_that_a_script_drops_and_creates_is_not_stopped_by_others_of_its_former_second(nights):
    """B: of other columns, with their rows in older directories, so that they were never away."""
    world = a_world()
    for nth in range(3):
        table = a_table((), kind="MANAGED_TABLE", name=f"a{nth}", create_time=5, location=f"hdfs://nn/warehouse/sales.db/a{nth}")
        world.add_table(replace(table, columns=(Column("other", "string"),)), {"": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.runs.extend(MANY)
    desk.kill_before(GAP, desk.compact)
    run(Hive(world).drop_table("sales.events"))
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=99, location=PLACE), {"": [1000] * 3})
    for _ in range(nights):
        world.files.namespace.advance(3_600_001)
        world.forget()
        result = desk.compact()
    # Once it may be told.
    assert result.tables[0].problem is None or (nights == 1 and result.tables[0].problem.code is Code.CHANGED_IN_OUTAGE)


@pytest.mark.parametrize("command", [Desk.compact, Desk.recover, Desk.verify], ids=["compact", "recover", "verify"])
def test_what_a_dropped_external_table_has_left_stops_no_external_one_of_its_second_that_has_no_directory_yet(command):
    """B: CREATE EXTERNAL TABLE … LIKE in a loop; no run was ever interrupted. A rename never moves the directory of such a table."""
    world = a_world()
    for year in ("2024", "2025"):
        table = a_table((), name=f"e_{year}", create_time=30, location=f"hdfs://nn/landing/e_{year}")
        if year == "2024":
            world.add_table(table, {"": [1000] * 3})
            assert outcomes(desk_of(world, "sales.e_2024").compact()) == {"": "swapped"}
            world.catalog.drop_table("sales.e_2024")
        else:
            world.catalog.add_table(table, [])
    world.files.namespace.advance(3_600_001)
    world.forget()
    result = command(desk_of(world, "sales.e_2025"))
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)
