"""Fixtures for tests on a running cluster, and a user's shell on an edge node; tests/cluster/run starts one and sets the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import pytest

from cluster.edge import Edge
from cluster.long_run import LongRun, start_stopping
from cluster.servers.bring_up import runs_whole
from cluster.servers.kerberos import get_ticket
from cluster.servers.layout import Layout, choose_run, read_layout
from cluster.tables import making_database
from support.superuser import open_as_superuser


@pytest.fixture(scope="session")
def layout() -> Layout:
    """Skips with a clear reason if no cluster is running; never in CI."""
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
    return open_as_superuser(layout, gateway)


@pytest.fixture
def loader(layout: Layout, gateway: Any) -> Any:
    """HDFS as the user loader, who is in the group data."""
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    if layout.secure:
        cache = layout.run / "tmp" / "loader"
        get_ticket(layout, "loader", cache)
        conf.set("hadoop.security.kerberos.ticket.cache.path", str(cache))
    return gateway.jvm.org.apache.hadoop.fs.FileSystem.newInstance(gateway.jvm.java.net.URI(layout.namenode), conf, "loader")


@pytest.fixture
def database(layout: Layout, spark: Any, tmp_path: Path) -> Iterator[str]:
    with making_database(layout, spark, tmp_path) as name:
        yield name


@pytest.fixture
def start(edge: Edge, table: str) -> Iterator[Callable[..., LongRun]]:
    """Starts runs that can be stopped; leaves none behind."""
    started = []

    def start_run(stop_after: str = "nowhere", user: Optional[str] = "etl", **spark: Any) -> LongRun:
        started.append(start_stopping(edge, table, stop_after, user, **spark))
        return started[-1]

    yield start_run
    for run in started:
        run.end()
