"""A run on a tenant's table at the former place of a renamed one ends the interrupted run of that one, whose rows then stay away."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.recover import recover
from hivekeeper.model import Column, Selection
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World

PLACE = "hdfs://nn/warehouse/sales/events"
BEFORE = Counter(f"events//{nth}" for nth in range(3))
GAP = ["rename_exact", f"/ready/u00001 {PLACE}"]
FORMER, NEW = (f"hdfs://nn/warehouse/sales/.hivekeeper-{name}" for name in ("events", "renamed"))


@pytest.mark.parametrize("is_pointed", [False, True])
def test_a_run_on_a_table_at_the_former_place_does_not_end_the_interrupted_run_of_the_renamed_one(is_pointed):
    world = World()
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    before = world.rows_of("sales.events")
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    for _ in Hive(world).rename_table("sales.events", "sales.renamed"):
        pass
    world.files.namespace.advance(3_600_001)
    if is_pointed:
        world.catalog.add_table(replace(a_table((), name="mine", location=PLACE, create_time=77), database="tenant"), [])
        compact_swap(a_context(world.another_process(), Selection(databases=("tenant",)), "20260201t020304z-0000"))
        world.catalog.drop_table("tenant.mine")
        world.files.namespace.advance(3_600_001)
    # As the error (`left-behind`) of the renamed table advises.
    world.files.writer.rename_into(FORMER, NEW)
    desk.table = "sales.renamed"
    result = desk.recover()
    assert (result.code, world.rows_of("sales.renamed")) == (Exit.DONE, before)


def interrupt_and_rename(words=GAP):
    """A run is killed, its table renamed, and another one created under its name and at its place."""
    world = World()
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.kill_before(words, desk.compact)
    for _ in Hive(world).rename_table("sales.events", "sales.renamed"):
        pass
    world.catalog.add_table(a_table((), kind="MANAGED_TABLE", create_time=99), [])
    world.files.namespace.advance(3_600_001)
    return desk


def alter(world, **changes):
    world.catalog.tables["sales.renamed"] = replace(world.table("sales.renamed"), **changes)


def test_one_that_took_the_name_too_is_told_until_the_records_are_brought_as_the_error_advises():
    desk = interrupt_and_rename()
    world = desk.world
    for command in (desk.compact, desk.recover):
        result = command()
        problem = result.tables[0].problem
        assert (result.code, problem.code) == (Exit.INVESTIGATE, Code.OTHER_TABLE)
        world.files.namespace.advance(3_600_001)
    assert problem.next.startswith(f"if it was renamed: hdfs dfs -mv {FORMER} {NEW}, then: hivekeeper recover --table sales.renamed; ")
    world.files.writer.rename_into(FORMER, NEW)
    renamed = Desk(world, "sales.renamed", backup_table=False)
    renamed.runs.extend(["20260101t000000z-0000"] * 10)
    assert (renamed.recover().code, world.rows_of("sales.renamed")) == (Exit.DONE, BEFORE)
    assert desk.recover().code is Exit.DONE


@pytest.mark.parametrize("changes", [{"columns": (Column("more", "int"),)}, {"kind": "EXTERNAL_TABLE"}, {"create_time": 6}], ids=str)
def test_a_table_that_cannot_be_the_renamed_one_stops_nobody(changes):
    desk = interrupt_and_rename()
    alter(desk.world, **changes)
    assert desk.recover().tables[0].problem.code is Code.CHANGED_IN_OUTAGE
    assert desk.recover().code is Exit.DONE


@pytest.mark.parametrize(
    "method, asked, code",
    [
        ("table_names", ("archive",), Code.OTHER_TABLE),
        ("tables", ("sales", ["events", "renamed"]), Code.OTHER_TABLE),
        ("tables", ("sales", ["renamed"]), None),
    ],
)
def test_one_that_is_renamed_once_more_while_all_tables_are_read_is_found(method, asked, code):
    """To a database that was read before its own."""
    desk = interrupt_and_rename()
    world = desk.world
    world.catalog.databases.add("archive")
    ask, acted = getattr(world.metastore, method), []

    def rename(database, *names):
        before = ask(database, *names)
        if not acted and (database, *map(list, names)) == asked:
            acted.append(True)
            deque(Hive(world).rename_table("sales.renamed", "archive.kept"), maxlen=0)
        return before if database == "archive" or names != (["renamed"],) else ask(database, *names)

    setattr(world.metastore, method, rename)
    problem = desk.recover().tables[0].problem
    assert acted
    assert problem.code is (code or Code.METASTORE_UNUSABLE)
    problem = desk.recover().tables[0].problem
    assert (problem.code, "may be archive.kept now" in problem.what) == (Code.OTHER_TABLE, True)


def test_once_one_was_renamed_meanwhile_all_tables_are_read_again_for_the_next_table():
    world = World()
    world.catalog.databases.add("archive")
    for name, second in (("events", 5), ("visits", 6)):
        place = PLACE.replace("events", name)
        world.add_table(a_table((), kind="MANAGED_TABLE", name=name, create_time=second, location=place), {"": [1000] * 3})
        desk = Desk(world, f"sales.{name}", backup_table=False)
        desk.kill_before(["rename_exact", f"/ready/u00001 {place}"], desk.compact)
        deque(Hive(world).rename_table(f"sales.{name}", f"sales.{name}2"), maxlen=0)
        world.catalog.add_table(a_table((), kind="MANAGED_TABLE", name=name, create_time=90 + second, location=place), [])
    world.files.namespace.advance(3_600_001)
    ask, acted = world.metastore.tables, []

    def tables(database, names):
        if not acted and (database, list(names)) == ("sales", ["events2"]):
            acted.append(True)
            for name in ("events", "visits"):
                deque(Hive(world).rename_table(f"sales.{name}2", f"archive.{name}"), maxlen=0)
        return ask(database, names)

    world.metastore.tables = tables
    result = recover(a_context(world.cluster, Selection(tables=("sales.events", "sales.visits")), "20260201t020304z-0000"))
    assert [one.problem.code for one in result.tables] == [Code.METASTORE_UNUSABLE, Code.OTHER_TABLE]
    assert "may be archive.visits now" in result.tables[1].problem.what


def test_a_run_that_took_no_rows_away_is_ended_without_asking_for_all_tables():
    desk = interrupt_and_rename(["rename_exact", "/stage/"])
    desk.world.metastore.databases = None
    assert desk.recover().code is Exit.DONE


def test_a_renamed_table_at_a_server_that_must_not_be_called_is_told_without_a_command():
    desk = interrupt_and_rename()
    alter(desk.world, location="hdfs://elsewhere/warehouse/sales/renamed")
    problem = desk.recover().tables[0].problem
    assert (problem.code, "hdfs dfs" in problem.next) == (Code.OTHER_TABLE, False)


def test_all_tables_are_asked_for_twice_in_a_command():
    world, number = World(), 5
    for nth in range(number):
        world.add_table(a_table((), kind="MANAGED_TABLE", name=f"t{nth}", create_time=5 + nth), {"": [1000] * 3})
        desk = Desk(world, f"sales.t{nth}", backup_table=False)
        desk.runs.extend(["20260101t000000z-0000"] * 10)
        desk.kill_before(["rename_exact", f"/ready/u00001 hdfs://nn/warehouse/sales/t{nth}"], desk.compact)
        world.catalog.drop_table(desk.table)
        world.catalog.add_table(a_table((), kind="MANAGED_TABLE", name=f"t{nth}", create_time=99), [])
    world.files.namespace.advance(3_600_001)
    asked, databases = [], world.metastore.databases
    world.metastore.databases = lambda: asked.append(1) or databases()
    result = recover(a_context(world.cluster, Selection(databases=("sales",)), "20260201t020304z-0000"))
    assert [table.problem.code for table in result.tables] == [Code.CHANGED_IN_OUTAGE] * number
    assert len(asked) == 2
