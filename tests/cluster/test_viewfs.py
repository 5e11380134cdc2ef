"""A table behind a mount of ViewFs is swapped, joined, verified, rolled back and cleaned up as one on HDFS."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hivekeeper.codes import Exit
from hivekeeper.config.settings import AT_ONCE, JOINED
from support.desk import Desk, outcomes
from support.drivers import another_cluster

FILES, ROWS = 10, 100


def files_in(spark: Any, directory: str) -> int:
    path = spark._jvm.org.apache.hadoop.fs.Path(directory)
    listed = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).listStatus(path)
    return len([status for status in listed if not status.isDirectory() and not status.getPath().getName().startswith((".", "_"))])


@pytest.mark.parametrize(("exchange", "files_after_rollback"), [(AT_ONCE, FILES), (JOINED, 1)])
def test_a_table_behind_a_mount_is_compacted_and_rolled_back(spark, database, exchange, files_after_rollback):
    table, root = f"{database}.mounted", f"viewfs://ours/user/etl/{database}-mounted"
    spark.sql(f"CREATE EXTERNAL TABLE {table} (id BIGINT) PARTITIONED BY (dt STRING) STORED AS PARQUET LOCATION '{root}'")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION (dt='1')")
    spark.range(0, ROWS, 1, FILES).write.mode("append").parquet(f"{root}/dt=1")
    desk = Desk(SimpleNamespace(cluster=another_cluster()), table, backup_table=False, exchange=exchange)
    for command, outcome, files in (
        (desk.compact, "swapped", 1),
        (desk.verify, "verified", 1),
        (desk.rollback, "rolled-back", files_after_rollback),
    ):
        result = command()
        assert (result.code, outcomes(result)) == (Exit.DONE, {"dt=1": outcome})
        spark.sql(f"REFRESH TABLE {table}")
        assert sorted(row["id"] for row in spark.table(table).collect()) == list(range(ROWS))
        assert files_in(spark, f"{root}/dt=1") == files
    assert desk.cleanup().code is Exit.DONE
    assert desk.history().tables[0].backups == ()
