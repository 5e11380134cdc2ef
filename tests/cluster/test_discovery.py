"""Nothing that Hivekeeper creates is ever taken for a partition: by MSCK, by readers by path, by the metastore's own discovery."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pyarrow.dataset
import pytest

from cluster.servers.discovery import Discovery, Look, start_discovery
from cluster.servers.layout import Layout
from cluster.tables import SmallTable
from hivekeeper.codes import Exit

DAYS = tuple(f"2026-01-{day:02d}" for day in range(1, 4))
MANY_DAYS = tuple(f"2026-{month:02d}-{day:02d}" for month in range(1, 5) for day in range(1, 10))
DISCOVERED = "'discover.partitions'='true'"


def list_partitions(table: SmallTable) -> Dict[str, str]:
    """Name → location."""
    database, _, name = table.name.partition(".")
    metastore = table.cluster.metastore
    (known,) = metastore.tables(database, [name]).values()
    return {partition.name: partition.location for partition in metastore.partitions(known)}


def check_as_hive_does(gateway: Any, table: SmallTable) -> Tuple[List[str], List[str]]:
    """What Hive's own MSCK would add and drop, computed by the class in Spark's Hive client."""
    hive = gateway.jvm.org.apache.hadoop.hive
    conf = hive.conf.HiveConf(gateway.hadoop_conf, gateway.jvm.java.lang.Class.forName("org.apache.hadoop.hive.conf.HiveConf"))
    result = hive.ql.metadata.CheckResult()
    database, _, name = table.name.partition(".")
    hive.ql.metadata.HiveMetaStoreChecker(hive.ql.metadata.Hive.get(conf)).checkMetastore(database, name, None, result)
    return tuple(
        sorted(str(one.getPartitionName()) for one in found) for found in (result.getPartitionsNotInMs(), result.getPartitionsNotOnFs())
    )


def require_nothing_to_find(gateway: Any, table: SmallTable) -> None:
    before = list_partitions(table)
    assert sorted(before) == sorted(table.units)
    assert check_as_hive_does(gateway, table) == ([], [])
    # It adds and drops.
    table.spark.sql(f"MSCK REPAIR TABLE {table.name} SYNC PARTITIONS")
    assert list_partitions(table) == before


def require_paths_show_every_row_once(table: SmallTable, copies: Path) -> None:
    table.require_counts(table.spark.read.parquet(table.root))
    found = pyarrow.dataset.dataset(table.copy(copies), format="parquet", partitioning="hive").to_table()
    days = found["dt"].to_pylist() if table.days else [""] * len(found)
    numbers = range(table.rows_a_unit)
    wanted = [(str(day), number) for day in table.days or [""] for number in numbers]
    assert sorted(zip(map(str, days), found["id"].to_pylist())) == wanted


@pytest.mark.parametrize("days", [DAYS, pytest.param((), marks=pytest.mark.thorough)], ids=["partitioned", "flat"])
def test_after_every_command_discovery_finds_nothing_and_a_path_read_gives_each_row_once(spark, gateway, database, tmp_path, days):
    table = SmallTable(spark, database, days)
    desk = table.desk(backup_table=True)

    def require_all_is_well() -> None:
        if days:
            require_nothing_to_find(gateway, table)
        require_paths_show_every_row_once(table, tmp_path)
        table.require_every_row_once()

    for command in (desk.backup, desk.compact, desk.rollback, lambda: desk.rollback(undo=desk.runs[-1])):
        assert command().code is Exit.DONE
        require_all_is_well()
    table.append()
    table.kill_after("live → retired", desk.compact)
    if days:
        require_only_the_unit_in_the_gap_is_missed(gateway, table)
    for command in (desk.recover, desk.compact, desk.cleanup):
        assert command().code is Exit.DONE
        require_all_is_well()


def require_only_the_unit_in_the_gap_is_missed(gateway: Any, table: SmallTable) -> None:
    """Nothing is taken for a partition then either."""
    table.spark.sql(f"MSCK REPAIR TABLE {table.name} ADD PARTITIONS")
    assert sorted(list_partitions(table)) == sorted(table.units)
    would_add, would_drop = check_as_hive_does(gateway, table)
    assert would_add == [] and len(would_drop) == 1


def test_a_partition_that_discovery_drops_in_the_gap_is_put_back_as_it_was(spark, database):
    table = SmallTable(spark, database, DAYS, properties=DISCOVERED)
    before, seen = list_partitions(table), []

    def discover() -> None:
        spark.sql(f"MSCK REPAIR TABLE {table.name} SYNC PARTITIONS")
        seen.extend(list_partitions(table))

    table.do_before("ready → live", discover)
    assert table.desk().compact().code is Exit.DONE
    assert len(seen) == len(DAYS) - 1, "discovery drops what it does not find"
    assert list_partitions(table) == before
    table.require_every_row_once()


def test_a_partition_that_discovery_drops_after_a_kill_in_the_gap_is_put_back_by_the_next_run(spark, database):
    table = SmallTable(spark, database, DAYS, properties=DISCOVERED)
    before, desk = list_partitions(table), table.desk()
    table.kill_after("live → retired", desk.compact)
    spark.sql(f"MSCK REPAIR TABLE {table.name} SYNC PARTITIONS")
    assert len(list_partitions(table)) == len(DAYS) - 1
    assert desk.recover().code is Exit.DONE
    assert list_partitions(table) == before
    table.require_every_row_once()


@pytest.fixture
def discovery(layout: Layout) -> Iterator[Discovery]:
    if layout.secure:
        pytest.skip("NOTHING TESTED: this metastore runs without Kerberos only")
    found = start_discovery(layout)
    yield found
    found.stop()


@pytest.mark.thorough
def test_the_metastores_own_discovery_finds_nothing_new_and_finds_again_what_it_drops_in_a_gap(discovery, spark, database):
    table, nothing = SmallTable(spark, database, MANY_DAYS), Look(0, 0)
    desk = table.desk()
    discovery.make(database, table.root)
    try:
        discovery.wait_for(database, Look(len(MANY_DAYS), 0), nothing)
        begin = len(discovery.looks(database))
        for command in (desk.compact, desk.rollback, desk.cleanup, desk.compact):
            assert command().code is Exit.DONE
        discovery.wait_for(database, nothing, nothing, since=len(discovery.looks(database)))
        looks = discovery.looks(database)[begin:]
        assert sum(look.new for look in looks) <= sum(look.missing for look in looks), "what it looked for in a gap, and nothing else"
        begin = len(discovery.looks(database))
        table.append()
        table.do_before("ready → live", lambda: discovery.wait_for(database, Look(0, 1), nothing, since=begin))
        assert desk.compact().code is Exit.DONE
        discovery.wait_for(database, nothing, nothing, since=len(discovery.looks(database)))
        assert Look(1, 0) in discovery.looks(database)[begin:]
        assert tuple(discovery.list(database)) == MANY_DAYS
    finally:
        discovery.drop(database)
