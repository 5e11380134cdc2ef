"""Fixtures for every test that needs a JVM: one Spark session with an embedded metastore for the whole run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Iterator

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A local session; its metastore (Derby) and warehouse lie in a directory of their own."""
    from hivekeeper.cluster.session import open_session

    home: Path = tmp_path_factory.mktemp("spark")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.master": "local[2]",
        "spark.app.name": "hivekeeper-tests",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"file:{home}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home / 'metastore'};create=true",
        # On HDFS: else a client sleeps 0.4 s where the DataNode's report is not there at its first question.
        "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home}",
    }
    session = open_session(options, log_level="ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def gateway(spark: object) -> object:
    from hivekeeper.cluster.gateway import Gateway

    return Gateway(spark)
