"""`ALTER TABLE events RENAME TO events2; CREATE TABLE events …`: the mark of a backup table has a name, no creation time."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk, desk_by
from support.hive_statements import Hive


@pytest.fixture(params=[("dt",), ()], ids=["partitioned", "unpartitioned"])
def desk(request):
    return desk_by(request.param)


def rename_and_take_name(desk, kind="EXTERNAL_TABLE"):
    """ALTER TABLE events RENAME TO events2; CREATE TABLE events …, as who keeps the old rows does, or CREATE VIEW events AS SELECT … FROM
    events2. HMS gives the new one another second.
    """
    for _ in Hive(desk.world).rename_table(desk.table, "sales.events2"):
        pass
    location = "" if "VIEW" in kind else "hdfs://nn/warehouse/sales/elsewhere"
    desk.world.catalog.add_table(a_table(name="events", kind=kind, location=location, create_time=9), [])
    desk.world.files.namespace.advance(3_600_001)
    desk.table = "sales.events2"


@pytest.mark.parametrize("command", [Desk.rollback, Desk.cleanup, Desk.compact], ids=["rollback", "cleanup", "compact-swap"])
@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "VIRTUAL_VIEW"])
def test_backup_tables_of_a_former_name_that_another_table_has_by_now_are_not_other_tables(desk, command, kind):
    desk.compact()
    rename_and_take_name(desk, kind)
    result = command(desk)
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)


def test_a_run_in_the_gap_is_recovered_though_another_table_has_the_former_name(desk):
    before = desk.world.rows_of(desk.table)
    desk.kill_before(["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"], desk.compact)
    rename_and_take_name(desk)
    result = desk.recover()
    assert desk.world.rows_of(desk.table) == before
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)
