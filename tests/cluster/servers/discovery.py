"""A second metastore that discovers partitions by itself every second; Spark cannot talk to it, so a small Java program does."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import List, NamedTuple, Tuple

from cluster.servers import process
from cluster.servers.artifacts import fetch_jars, find_program, unpacked_home
from cluster.servers.hadoop import java_options, write_xml
from cluster.servers.layout import JARS, Layout
from cluster.servers.process import Server

TOOLS = "org.apache.hadoop.hive.metastore"
NAME = "discovery"
# The newest; 4.0.1 has none of its own.
SCHEMA = "hive-schema-4.0.0.postgres.sql"
PERIOD_S = 1
HERE = Path(__file__).resolve().parent


class Look(NamedTuple):
    """How many directories are not yet partitions, and how many partitions have no directory: discovery adds and drops these."""

    new: int
    missing: int


class Discovery:
    """The server, with a table `events` in its own database."""

    def __init__(self, layout: Layout, port: int) -> None:
        self.layout, self.uri = layout, f"thrift://localhost:{port}"

    def make(self, database: str, root: str) -> None:
        """Create the table without partitions: discovery finds them."""
        self._run("make", database, f"{self.layout.namenode}{root}")

    def list(self, database: str) -> List[str]:
        return sorted(self._run("list", database).split())

    def drop(self, database: str) -> None:
        self._run("drop", database)

    def looks(self, database: str) -> List[Look]:
        """What each look of discovery at the table found, from the server's log."""
        log = (self.layout.logs / f"{NAME}.log").read_text(errors="replace")
        found = re.findall(rf"Msck: hive\.{database}\.events - #partsNotInMs: (\d+) #partsNotInFs: (\d+)", log)
        return [Look(int(new), int(missing)) for new, missing in found]

    def wait_for(self, database: str, *wanted: Look, since: int = 0, timeout_s: float = 60) -> None:
        """Wait until these looks follow one another, ignoring the first `since` looks."""
        until = time.monotonic() + timeout_s
        while wanted not in windows(self.looks(database)[since:], len(wanted)):
            assert time.monotonic() < until, f"no {wanted} in {self.looks(database)[since:]}"
            time.sleep(PERIOD_S / 4)

    def stop(self) -> None:
        process.stop(NAME, self.layout.run)

    def _run(self, *words: str) -> str:
        command = [*_java(self.layout, "256m"), str(HERE / "DiscoveredTable.java"), self.uri, *words]
        result = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "HADOOP_USER_NAME": "etl"})
        if result.returncode != 0:
            raise RuntimeError("\n".join(result.stderr.splitlines()[-12:]))
        return result.stdout


def windows(looks: List[Look], size: int) -> List[Tuple[Look, ...]]:
    return [tuple(looks[begin : begin + size]) for begin in range(len(looks) - size + 1)]


def start_discovery(layout: Layout) -> Discovery:
    """In its own PostgreSQL database, for a cluster without Kerberos. Raises Missing, ServerFailed, RuntimeError."""
    fetch_jars(["discovery"])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _write_configuration(layout, port)
    _make_schema(layout)
    environment = {"METASTORE_HOME": str(unpacked_home(NAME)), "METASTORE_CONF_DIR": str(_conf(layout)), "HADOOP_USER_NAME": "etl"}
    server = Server(NAME, [*_java(layout, "512m"), f"{TOOLS}.HiveMetaStore"], r"Started the new metaserver on port", environment)
    process.start(server, layout.run)
    process.wait_until_ready(server, layout.run)
    return Discovery(layout, port)


def _write_configuration(layout: Layout, port: int) -> None:
    properties = {
        "metastore.thrift.uris": f"thrift://localhost:{port}",
        "metastore.thrift.port": port,
        "metastore.warehouse.dir": "/warehouse",
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{layout.ports['postgres']}/{NAME}",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": "hive",
        "javax.jdo.option.ConnectionPassword": "not-a-secret",
        # Without hive-exec it is the only one that knows how to drop what discovery names.
        "metastore.expression.proxy": f"{TOOLS}.MsckPartitionExpressionProxy",
        "metastore.async.log.enabled": "false",
        "metastore.task.threads.always": f"{TOOLS}.PartitionManagementTask",
        "metastore.partition.management.task.frequency": f"{PERIOD_S}s",
    }
    write_xml(_conf(layout) / "metastore-site.xml", properties)


def _conf(layout: Layout) -> Path:
    directory = layout.run / "discovery-conf"
    directory.mkdir(exist_ok=True)
    return directory


def _java(layout: Layout, heap: str) -> List[str]:
    hadoop = [_conf(layout), layout.run / "server-conf", layout.conf, JARS / "hadoop" / "*"]
    places = [*hadoop, unpacked_home(NAME) / "lib" / "*", JARS / "metastore" / "*"]
    return [find_program("java"), *java_options(layout, heap), "-cp", os.pathsep.join(map(str, places))]


def _make_schema(layout: Layout) -> None:
    """With PostgreSQL's own client: the schema tool's shell cannot start with Hadoop's jars on its class path."""
    scripts = unpacked_home(NAME) / "scripts" / "metastore" / "upgrade" / "postgres"
    psql = [find_program("psql"), "-q", "-h", "127.0.0.1", "-p", str(layout.ports["postgres"]), "-U", "hive", "-v", "ON_ERROR_STOP=1"]
    again = [f"DROP DATABASE IF EXISTS {NAME}", f"CREATE DATABASE {NAME}"]
    for words in (*(["-d", "postgres", "-c", statement] for statement in again), ["-d", NAME, "-f", SCHEMA]):
        subprocess.run([*psql, *words], check=True, capture_output=True, cwd=scripts)
