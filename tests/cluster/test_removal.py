"""Control directories are removed on a real HDFS and metastore: the lock in them is open while they are renamed, and is released later."""

from __future__ import annotations

import time

import pytest

from cluster.tables import SmallTable
from hivekeeper.codes import Exit
from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.plan.orphans import OrphanKind, OrphanState
from support.contexts import a_context
from support.drivers import another_cluster

SHAPES = pytest.mark.parametrize("days", [(), ("1", "2")], ids=["flat", "partitioned"])


def clean(database, number):
    context = a_context(another_cluster(), Selection(databases=(database,)), f"20260901t020304z-{number:04x}", Settings(min_age_ms=0))
    result = clean_up_orphans(context)
    assert result.code is Exit.DONE, result.tables
    return [(one.kind, one.state) for one in result.tables[0].orphans]


@SHAPES
def test_what_a_dropped_table_has_left_is_marked_and_then_removed(spark, database, days):
    table = SmallTable(spark, database, days)
    # Tables that were created in the same second are taken for the one that was dropped.
    time.sleep(1.1)
    other = SmallTable(spark, database, days, name="other")
    others = other.desk(backup_table=True)
    assert [desk.compact().code for desk in (table.desk(backup_table=True), others)] == [Exit.DONE] * 2
    live = [table.ids(table.live(unit)) for unit in table.units]
    spark.sql(f"DROP TABLE {table.name}")
    assert (OrphanKind.RECORDS, OrphanState.MARKED) in clean(database, 1)
    found = clean(database, 2)
    assert (OrphanKind.RECORDS, OrphanState.REMOVED) in found and OrphanState.MARKED not in {state for _, state in found}
    assert clean(database, 3) == []
    assert not table.open_file_system().exists(table.path(table.control))
    assert [table.ids(table.live(unit)) for unit in table.units] == live
    assert others.rollback().code is Exit.DONE
    assert {row.tableName for row in spark.sql(f"SHOW TABLES IN {database} LIKE 'events*'").collect()} == set()


@SHAPES
def test_forget_leaves_nothing_but_the_table_which_is_compacted_again(spark, database, days):
    table = SmallTable(spark, database, days)
    desk = table.desk(backup_table=True)
    for _ in range(2):
        assert desk.compact().code is Exit.DONE
        assert desk.forget().code is Exit.REFUSED
        assert desk.cleanup().code is Exit.DONE
        assert desk.forget().code is Exit.DONE
        fs, beside = table.open_file_system(), table.control.rpartition("/")[0]
        assert not [status for status in fs.listStatus(table.path(beside)) if status.getPath().getName().startswith(".hivekeeper")]
        assert {row.tableName for row in spark.sql(f"SHOW TABLES IN {database}").collect()} == {"events"}
        table.require_every_row_once()
        table.append()
