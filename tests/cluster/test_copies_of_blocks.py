"""How often HDFS keeps the blocks of a copy: as often as those of the old file with the most copies, at least."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hivekeeper.codes import Exit
from support.desk import Desk
from support.drivers import another_cluster


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_what_setrep_has_set_is_kept_by_a_compaction(spark, gateway, superuser, database, format):
    path = gateway.jvm.org.apache.hadoop.fs.Path
    table, root = f"{database}.often_{format}", path(f"/data/{database}-often-{format}")
    spark.sql(f"CREATE EXTERNAL TABLE {table} (id BIGINT) STORED AS {format.upper()} LOCATION '{root}'")
    spark.range(0, 40, 1, 4).write.mode("append").format(format).save(str(root))
    files = [status.getPath() for status in superuser.listStatus(root) if not status.getPath().getName().startswith("_")]
    usual = superuser.getDefaultReplication(root)
    superuser.setReplication(files[0], usual + 2)
    result = Desk(SimpleNamespace(cluster=another_cluster()), table, backup_table=False, owner="try").compact()
    assert result.code is Exit.DONE
    (copy,) = [status for status in superuser.listStatus(root) if not status.getPath().getName().startswith("_")]
    assert copy.getReplication() == usual + 2
