"""A run is killed in its gap; its table is renamed, then altered (ADD COLUMNS, or SET TBLPROPERTIES), before the next run."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Column, Selection
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World

PLACE, NAME = "hdfs://nn/warehouse/sales/events", "sales.kept"
CHANGES = {
    "as it was": {},
    "another column": {"columns": (Column("id", "int"), Column("more", "int"))},
    "external": {
        "kind": "EXTERNAL_TABLE",
        "parameters": {"EXTERNAL": "TRUE", "external.table.purge": "true", "TRANSLATED_TO_EXTERNAL": "TRUE"},
    },
    "external, and not by the metastore": {"kind": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}},
}
ALTERED = {name: changes for name, changes in CHANGES.items() if changes}
OTHER_COLUMNS = {"columns": (Column("number", "bigint"),)}


def interrupt(columns, changes):
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    world.add_table(a_table(columns, kind="MANAGED_TABLE", create_time=5), {"dt=1" if columns else "": [1000] * 3})
    before = world.rows_of("sales.events")
    desk = Desk(world, backup_table=False)
    desk.kill_before(["rename_exact", f"/ready/u00001 {PLACE}"], desk.compact)
    for _ in Hive(world).rename_table("sales.events", NAME):
        pass
    world.catalog.put_table(replace(world.table(NAME), **changes))
    world.files.namespace.advance(3_600_001)
    kept = Desk(world, NAME, backup_table=False)
    kept.runs = list(desk.runs)
    return kept, before


def bring(world):
    """As the error (`left-behind`) advises."""
    place, _, base = world.table(NAME).location.rpartition("/")
    world.files.writer.rename_into(f"{PLACE.rpartition('/')[0]}/.hivekeeper-events", f"{place}/.hivekeeper-{base}")


@pytest.mark.parametrize("changes", [*CHANGES.values(), OTHER_COLUMNS], ids=[*CHANGES, "other columns"])
@pytest.mark.parametrize("command", [Desk.recover, Desk.compact, Desk.verify], ids=["recover", "compact", "verify"])
def test_its_commands_tell_that_its_rows_are_missing(command, changes):
    kept, before = interrupt((), changes)
    assert kept.world.rows_of(NAME) != before
    assert command(kept).code is Exit.INVESTIGATE


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_table_of_somebody_else_at_its_former_place_does_not_end_its_run(changes):
    kept, _ = interrupt((), changes)
    world = kept.world
    # CREATE DATABASE … LOCATION
    world.catalog.homes["tenant"] = PLACE
    world.catalog.add_table(replace(a_table((), name="mine", location=PLACE, create_time=77), database="tenant"), [])
    result = compact_swap(a_context(world.another_process(), Selection(databases=("tenant",)), "20260201t020304z-0000"))
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.OTHER_TABLE)


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("columns", [(), ("dt",)], ids=["unpartitioned", "partitioned"])
def test_its_rows_come_back(columns, changes):
    kept, before = interrupt(columns, changes)
    world = kept.world
    if not columns:
        bring(world)
    assert (kept.recover().code, world.rows_of(NAME)) == (Exit.DONE, before)


@pytest.mark.parametrize("changes", [CHANGES["another column"], OTHER_COLUMNS], ids=["another column", "other columns"])
def test_it_is_told_after_new_rows_have_come(changes):
    kept, _ = interrupt((), changes)
    kept.append("", "n1", "n2", "n3")
    for command in (kept.compact, kept.recover, kept.verify):
        assert command().tables[0].problem.code is Code.LEFT_BEHIND


@pytest.mark.parametrize("columns", [(), ("dt",)], ids=["unpartitioned", "partitioned"])
def test_rows_of_other_columns_stay_aside_and_are_told(columns):
    """Columns that had other names do not show that the run is this table's: there may have been another one of its second."""
    kept, before = interrupt(columns, OTHER_COLUMNS)
    world = kept.world
    if not columns:
        bring(world)
    assert kept.recover().tables[0].problem.code is Code.CHANGED_IN_OUTAGE
    assert not before - world.rows_anywhere()


@pytest.mark.parametrize("is_empty", [False, True], ids=["with rows", "empty"])
@pytest.mark.parametrize("changes", [*ALTERED.values(), OTHER_COLUMNS], ids=[*ALTERED, "other columns"])
def test_another_table_of_the_same_second_is_not_stopped_by_what_a_dropped_one_has_left(changes, is_empty):
    """Its directory was there before the run that was killed, so it was never away."""
    world = World()
    for name in ("kept", "events"):
        table = a_table((), kind="MANAGED_TABLE", name=name, create_time=5)
        world.add_table(replace(table, **changes) if name == "kept" else table, {"": [] if is_empty and name == "kept" else [1000] * 3})
    desk, kept = Desk(world, backup_table=False), Desk(world, NAME, backup_table=False)
    desk.kill_before(["rename_exact", f"/ready/u00001 {PLACE}"], desk.compact)
    for _ in Hive(world).drop_table("sales.events"):
        pass
    world.files.namespace.advance(3_600_001)
    kept.runs.extend(["20260101t000000z-0000"] * 10)
    results = list(chain.from_iterable((kept.recover(), kept.compact(), kept.verify()) for _ in range(2)))
    assert {result.code for result in results} == {Exit.DONE}
