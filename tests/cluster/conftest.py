"""The running cluster for tests, and a user's shell on an edge node of it; tests/cluster/run starts one and sets the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Iterator

import pytest

from cluster.edge import Edge
from cluster.servers.bring_up import runs_whole
from cluster.servers.kerberos import get_ticket
from cluster.servers.layout import Layout, choose_run, read_layout


@pytest.fixture(scope="session")
def layout() -> Layout:
    """Skipped, in plain words, where no cluster runs; never in CI."""
    run = choose_run()
    if runs_whole(run):
        return read_layout(run)
    why = f"NOTHING TESTED: no cluster runs in {run}; make test-cluster starts one"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture
def edge(layout: Layout, tmp_path: Path) -> Edge:
    return Edge(layout, tmp_path)


@pytest.fixture(scope="session")
def superuser(layout: Layout, gateway: Any) -> Any:
    """HDFS's own DistributedFileSystem, as the superuser: an administrator's hand."""
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    user = "hdfs"
    if layout.secure:
        cache = layout.run / "tmp" / "superuser"
        get_ticket(layout, "hdfs/localhost", cache)
        conf.set("hadoop.security.kerberos.ticket.cache.path", str(cache))
        user = "hdfs/localhost"
    return gateway.jvm.org.apache.hadoop.fs.FileSystem.newInstance(gateway.jvm.java.net.URI(layout.namenode), conf, user)


@pytest.fixture
def database(layout: Layout, spark: Any, tmp_path: Path) -> Iterator[str]:
    """A database of etl, with its tables in a directory of its own in HDFS."""
    name = f"c{abs(hash(str(tmp_path))) % 10**8}"
    spark.sql(f"CREATE DATABASE {name} LOCATION '{layout.namenode}/user/etl/{name}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")
