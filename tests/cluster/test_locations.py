"""Another spelling or name of the NameNode does not hide that two tables share a directory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hivekeeper.cluster.connect import assemble
from hivekeeper.reasons import Code
from support.desk import Desk
from support.drivers import another_cluster, another_driver

FAILOVER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


@pytest.mark.parametrize("spelling", ["somebody@localhost", "some:body@127.0.0.1"])
def test_a_table_that_somebody_moved_onto_anothers_directory_is_refused_whatever_the_spelling(spark, layout, database, spelling):
    place = make_two_tables(spark, database)
    set_locations(spark, layout, database, place, layout.namenode.replace("localhost", spelling))
    assert compacted(another_cluster(), database) == [Code.SHARED_DIRECTORY] * 2


@pytest.fixture
def another():
    """Its configuration is that of all tests."""
    driver = another_driver()
    keys = ("fs.defaultFS", "dfs.nameservices", "dfs.namenode.rpc-address.alias", "dfs.client.failover.proxy.provider.alias")
    before = {key: driver.hadoop_conf.get(key) for key in keys}
    yield driver
    for key, value in before.items():
        driver.hadoop_conf.unset(key) if value is None else driver.hadoop_conf.set(key, value)


@pytest.mark.parametrize("wanted", ["default", "nameservice"])
def test_the_same_where_a_nameservice_has_this_namenode_too(spark, layout, database, another, wanted):
    place = make_two_tables(spark, database)
    server = layout.namenode.partition("//")[2].replace("localhost", "127.0.0.1")
    set_locations(spark, layout, database, place, f"hdfs://{server}")
    another.hadoop_conf.set("dfs.nameservices", "alias")
    another.hadoop_conf.set("dfs.namenode.rpc-address.alias", server)
    another.hadoop_conf.set("dfs.client.failover.proxy.provider.alias", FAILOVER)
    if wanted == "nameservice":
        another.hadoop_conf.set("fs.defaultFS", "hdfs://alias")
    cluster = assemble(another)
    assert cluster.files.qualify(place).startswith(layout.namenode if wanted == "default" else "hdfs://alias/")
    # A client can use the one spelling.
    for name in (layout.namenode, f"hdfs://{server}", "hdfs://alias"):
        assert cluster.files.look([cluster.files.qualify(f"{name}{place}")]).popitem()[1].exists
    assert compacted(cluster, database) == [Code.SHARED_DIRECTORY] * 2


def make_two_tables(spark, database):
    place = f"/user/etl/{database}/salaries"
    spark.range(0, 40, 1, 4).write.parquet(place)
    for name in ("salaries", "events"):
        spark.sql(f"CREATE EXTERNAL TABLE {database}.{name} (id BIGINT) STORED AS PARQUET LOCATION '{place}-{name}'")
    return place


def set_locations(spark, layout, database, place, another_name):
    spark.sql(f"ALTER TABLE {database}.salaries SET LOCATION '{layout.namenode}{place}'")
    spark.sql(f"ALTER TABLE {database}.events SET LOCATION '{another_name}{place}'")


def compacted(cluster, database):
    desks = [Desk(SimpleNamespace(cluster=cluster), f"{database}.{name}", backup_table=False) for name in ("salaries", "events")]
    return [outcome.problem.code for desk in desks for outcome in desk.compact().tables]
