"""Another spelling of the NameNode does not hide that two tables share a directory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hivekeeper.reasons import Code
from support.desk import Desk
from support.drivers import another_cluster


@pytest.mark.parametrize("spelling", ["somebody@localhost", "some:body@127.0.0.1"])
def test_a_table_that_somebody_moved_onto_anothers_directory_is_refused_whatever_the_spelling(spark, layout, database, spelling):
    place = f"/user/etl/{database}/salaries"
    spark.range(0, 40, 1, 4).write.parquet(place)
    for name in ("salaries", "events"):
        spark.sql(f"CREATE EXTERNAL TABLE {database}.{name} (id BIGINT) STORED AS PARQUET LOCATION '{place}-{name}'")
    spark.sql(f"ALTER TABLE {database}.salaries SET LOCATION '{layout.namenode}{place}'")
    spark.sql(f"ALTER TABLE {database}.events SET LOCATION '{layout.namenode.replace('localhost', spelling)}{place}'")
    for name in ("salaries", "events"):
        (outcome,) = Desk(SimpleNamespace(cluster=another_cluster()), f"{database}.{name}", backup_table=False).compact().tables
        assert outcome.problem.code is Code.SHARED_DIRECTORY
