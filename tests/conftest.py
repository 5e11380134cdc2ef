"""Fixtures for every test that needs a JVM: one Spark session for the whole run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Dict, Iterator

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A local session: with an embedded metastore in a directory of its own, or with the cluster that HADOOP_CONF_DIR describes."""
    from hivekeeper.cluster.session import open_session
    from support.storage import login_options

    home: Path = tmp_path_factory.mktemp("spark")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.master": "local[2]",
        "spark.app.name": "hivekeeper-tests",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        # On HDFS: else a client sleeps 0.4 s where the DataNode's report is not there at its first question.
        "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
        "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "12",
        **(login_options() if os.environ.get("HADOOP_CONF_DIR") else _embedded(home)),
    }
    session = open_session(options, log_level="ERROR")
    yield session
    session.stop()


def _embedded(home: Path) -> Dict[str, str]:
    return {
        "spark.sql.warehouse.dir": f"file:{home}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home / 'metastore'};create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home}",
    }


@pytest.fixture(scope="session")
def gateway(spark: object) -> object:
    from hivekeeper.cluster.gateway import Gateway

    return Gateway(spark)


@pytest.fixture
def storage(spark: object, tmp_path: Path) -> Iterator[object]:
    """Where a test's tables lie."""
    from support.storage import open_storage

    found = open_storage(spark, tmp_path)
    yield found
    found.close()
