"""A tenant's tables have partitions in the places of many others, where these tables may have been before their locations were set
elsewhere: of each such place the records are read, however long, for each of the tenant's tables.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.steps import left_away
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

OTHERS, TABLES, MS_OF_RECORDS = 12, 10, 2000
SETTINGS = Settings(min_quiet_ms=0, backup_table=False)
ALL = Selection(databases=("tenant",))


def a_world(interrupted=0):
    """`interrupted`: so many of the others had a run killed in its gap."""
    world = World()
    world.catalog.databases.add("tenant")
    for nth in range(OTHERS):
        table = a_table(["dt"], name=f"t{nth}", location=f"hdfs://nn/warehouse/sales/t{nth}", create_time=1000 + nth)
        world.add_table(table, {"dt=1": [1000] * 3})
        desk = Desk(world, table.full_name, backup_table=False)
        if nth < interrupted:
            desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
        else:
            assert desk.compact().code is Exit.DONE
    for nth in range(TABLES):
        own = replace(a_table(["dt"], name=f"p{nth}", location=f"hdfs://nn/tenant/p{nth}", create_time=5 + nth), database="tenant")
        world.catalog.add_table(own, [a_partition(f"dt={one}", f"hdfs://nn/warehouse/sales/t{one}/dt={one}") for one in range(OTHERS)])
        world.files.writer.make_directory(own.location)
    world.files.namespace.advance(3_600_001)
    return world


def read_slowly(world, monkeypatch):
    """Returns the control directories whose records are read."""
    read, find = [], left_away.ownership.require_own_records

    def require_own_records(cluster, table, control, trusted):
        read.append(control.top)
        world.clock.elapsed_ms += MS_OF_RECORDS
        find(cluster, table, control, trusted)

    monkeypatch.setattr(left_away.ownership, "require_own_records", require_own_records)
    return read


@pytest.mark.parametrize("interrupted", [0, OTHERS])
def test_the_records_of_other_tables_are_not_read_for_each_table(interrupted, monkeypatch):
    world = a_world(interrupted)
    read = read_slowly(world, monkeypatch)
    result = compact_swap(a_context(world.cluster, ALL, "20260201t020304z-0000", SETTINGS))
    assert [table.problem for table in result.tables] == [None] * TABLES
    assert OTHERS <= len(read) <= 2 * OTHERS


def test_a_table_is_told_of_its_own_interrupted_run_where_another_one_has_had_the_records_read_before(monkeypatch):
    world = a_world(interrupted=OTHERS)
    read = read_slowly(world, monkeypatch)
    moved = replace(world.table("sales.t3"), location="hdfs://nn/new/t3")
    world.files.writer.make_directory(moved.location)
    world.catalog.put_table(moved)
    result = compact_swap(a_context(world.cluster, Selection(tables=("tenant.p0", "sales.t3")), "20260201t020304z-0000", SETTINGS))
    assert len(read) > OTHERS
    assert [table.problem and table.problem.code for table in result.tables] == [None, Code.UNSETTLED]
