"""A run is killed in its gap; its table is renamed, then altered (ADD COLUMNS, or SET TBLPROPERTIES), before the next run."""

from __future__ import annotations

from dataclasses import replace

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
}


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


CASES = pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)


@CASES
@pytest.mark.parametrize("command", [Desk.recover, Desk.compact, Desk.verify], ids=["recover", "compact", "verify"])
def test_its_commands_tell_that_its_rows_are_missing(command, changes):
    kept, before = interrupt((), changes)
    assert kept.world.rows_of(NAME) != before
    assert command(kept).code is Exit.INVESTIGATE


@CASES
def test_a_table_of_somebody_else_at_its_former_place_does_not_end_its_run(changes):
    kept, _ = interrupt((), changes)
    world = kept.world
    # CREATE DATABASE … LOCATION
    world.catalog.homes["tenant"] = PLACE
    world.catalog.add_table(replace(a_table((), name="mine", location=PLACE, create_time=77), database="tenant"), [])
    result = compact_swap(a_context(world.another_process(), Selection(databases=("tenant",)), "20260201t020304z-0000"))
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.OTHER_TABLE)


@CASES
@pytest.mark.parametrize("columns", [(), ("dt",)], ids=["unpartitioned", "partitioned"])
def test_its_rows_come_back(columns, changes):
    kept, before = interrupt(columns, changes)
    world = kept.world
    if not columns:
        # As the error (`left-behind`) advises.
        place, _, base = world.table(NAME).location.rpartition("/")
        world.files.writer.rename_into(f"{PLACE.rpartition('/')[0]}/.hivekeeper-events", f"{place}/.hivekeeper-{base}")
    assert (kept.recover().code, world.rows_of(NAME)) == (Exit.DONE, before)


@pytest.mark.parametrize("columns", [(), ("dt",)], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("changes", [{"owner": "mallory"}, {"columns": (Column("other", "string"),)}], ids=["owner", "columns"])
def test_rows_do_not_come_to_a_table_with_another_owner_or_without_its_columns(columns, changes):
    more = Column("more", "int")
    kept, _ = interrupt(columns, {"columns": (Column("id", "int"), more), **changes})
    world = kept.world
    if not columns:
        place, _, base = world.table(NAME).location.rpartition("/")
        world.files.writer.rename_into(f"{PLACE.rpartition('/')[0]}/.hivekeeper-events", f"{place}/.hivekeeper-{base}")
    before = world.rows_of(NAME)
    assert (kept.recover().code, world.rows_of(NAME)) == (Exit.INVESTIGATE, before)
