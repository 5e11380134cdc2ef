"""Fixtures for every test that needs a JVM, one Spark session per test process, and the rule that decides which tests need one.

Random examples are the same each time, so a failure means a change: few for a developer who waits, many in CI, different ones nightly.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
from hypothesis import HealthCheck, settings

# Nothing here depends on how fast the machine is.
settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("quick"), max_examples=200)
settings.register_profile("nightly", settings.get_profile("quick"), max_examples=1000, derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HKTEST_EXAMPLES") or ("ci" if os.environ.get("CI") else "quick"))

WITHOUT_JVM = "not jvm"
SPARK = Path(__file__).parent / "spark"


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """Mark what needs a JVM: tests that use the driver, and all of tests/spark. Other cases carry the same mark explicitly."""
    for item in items:
        if "driver" in getattr(item, "fixturenames", ()) or SPARK in item.path.parents:
            item.add_marker(pytest.mark.jvm)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[object]:
    """A local driver: with an embedded metastore in its own directory, or with the cluster that HADOOP_CONF_DIR describes."""
    assert pytestconfig.option.markexpr != WITHOUT_JVM, "this test needs a JVM and is not marked so"
    from hivekeeper.cluster.driver import Driver
    from support.java import FEW_ROWS, WITHOUT_FSYNC
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
        "spark.driver.extraJavaOptions": f"{FEW_ROWS} {WITHOUT_FSYNC} -Dderby.system.home={home}",
        # On HDFS: otherwise a client sleeps 0.4 s if the DataNode's report is not there at its first request.
        "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
        "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "12",
        **(login_options() if os.environ.get("HADOOP_CONF_DIR") else _embedded(home)),
    }
    opened = Driver(options, log_level="ERROR")
    yield opened
    opened.stop()


@pytest.fixture(scope="session")
def spark(driver: Any) -> object:
    """The driver's session, on its application."""
    return driver.session


def _embedded(home: Path) -> Dict[str, str]:
    return {
        "spark.sql.warehouse.dir": f"file:{home}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home / 'metastore'};create=true",
    }


@pytest.fixture(scope="session")
def gateway(driver: Any) -> object:
    from hivekeeper.cluster.gateway import Gateway

    return Gateway(driver)


@pytest.fixture
def storage(spark: object, tmp_path: Path) -> Iterator[object]:
    """Where a test's tables are."""
    from support.storage import open_storage

    found = open_storage(spark, tmp_path)
    yield found
    found.close()
