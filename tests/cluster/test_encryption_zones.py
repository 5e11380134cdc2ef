"""Encryption zones of a real KMS: whoever lacks the key reads nothing of a run, and nothing is begun that cannot end inside its zone."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Set

import pytest

from cluster.servers.artifacts import find_program
from cluster.servers.hadoop import CLOSED_KEY, ZONE_KEY, class_path, java_options, run_admin
from cluster.servers.layout import REALM, Layout
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.model import Differences
from hivekeeper.reasons import Code
from hivekeeper.report.results import BackupState
from support.desk import Desk
from support.drivers import another_cluster

HERE = Path(__file__).resolve().parent
DAYS = ("dt=1", "dt=2")


class Zones:
    """Directories below /data that are encryption zones, and tables in them."""

    def __init__(self, spark: Any, gateway: Any, superuser: Any, database: str) -> None:
        self.spark, self.jvm, self.dfs, self.database = spark, gateway.jvm, superuser, database

    def make(self, name: str, key: str = ZONE_KEY) -> str:
        """An encryption zone owned by etl."""
        place = self.path(f"/data/{self.database}-{name}")
        self.dfs.mkdirs(place)
        self.dfs.setOwner(place, "etl", "data")
        self.dfs.createEncryptionZone(place, key)
        return str(place)

    def path(self, text: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(text)

    def names_in(self, directory: str) -> Set[str]:
        return {status.getPath().getName() for status in self.dfs.listStatus(self.path(directory))}

    def is_encrypted(self, path: str) -> bool:
        return bool(self.dfs.getFileStatus(self.path(path)).isEncrypted())

    def add_rows(self, directory: str) -> None:
        self.spark.range(0, 40, 1, 4).write.mode("append").parquet(directory)

    def define(self, name: str, location: str, days: Dict[str, str] = {}) -> Desk:  # noqa: B006 - never changed
        """An external table; `days`: its partitions' locations by name."""
        by = "PARTITIONED BY (dt STRING) " if days else ""
        table = f"{self.database}.{name}"
        self.spark.sql(f"CREATE EXTERNAL TABLE {table} (id BIGINT) {by}STORED AS PARQUET LOCATION '{location}'")
        for day, place in days.items():
            self.spark.sql(f"ALTER TABLE {table} ADD PARTITION (dt='{day[3:]}') LOCATION '{place}'")
        return Desk(SimpleNamespace(cluster=another_cluster()), table, backup_table=False)

    def count(self, desk: Desk) -> int:
        self.spark.catalog.refreshTable(desk.table)
        return int(self.spark.table(desk.table).count())


@pytest.fixture
def zones(spark: Any, gateway: Any, superuser: Any, database: str) -> Zones:
    return Zones(spark, gateway, superuser, database)


def met_in(lines: List[str]) -> Dict[str, Set[str]]:
    """What a user has met, by path: `opened`, or the classes of errors."""
    met: Dict[str, Set[str]] = {}
    for line in lines:
        what, _, path = line.partition(" ")
        met.setdefault(path, set()).add(what)
    return met


@contextmanager
def looking(layout: Layout, user: str, top: str) -> Iterator[List[str]]:
    """A process of this user that opens everything below a directory, again and again; yields its lines, complete at the end."""
    words = [f"{user}@{REALM}", str(layout.keytab(user))] if layout.secure else ["", ""]
    command = [find_program("java"), *java_options(layout, "128m"), "-cp", class_path(layout), str(HERE / "KeyUser.java"), *words, top]
    environment = {**os.environ, "HADOOP_USER_NAME": user}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=layout.run / "tmp")
    lines: List[str] = []
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield lines
    finally:
        lines.extend(process.communicate("end\n")[0].splitlines())


def outcomes(result: Any) -> Dict[str, str]:
    (outcome,) = result.tables
    assert outcome.problem is None, outcome.problem
    return {unit.name: unit.outcome.code for unit in outcome.units}


def codes(result: Any) -> Dict[str, Any]:
    (outcome,) = result.tables
    return {unit.name: unit.why.code if unit.why else None for unit in outcome.units}


@pytest.mark.parametrize("partitioned", [pytest.param(True, marks=pytest.mark.thorough), False], ids=["partitioned", "unpartitioned"])
def test_a_user_without_the_key_opens_nothing_of_any_run_in_a_zone_and_its_backups_go_to_the_trash_of_the_zone(zones, layout, partitioned):
    zone = zones.make("open")
    root = f"{zone}/events"
    days = {day: f"{root}/{day}" for day in DAYS} if partitioned else {}
    for place in days.values() if days else [root]:
        zones.add_rows(place)
    desk, rows = zones.define("events", root, days), 80 if partitioned else 40
    control = f"{root}/.hivekeeper" if partitioned else f"{zone}/.hivekeeper-events"
    with looking(layout, "analyst", zone) as lines:
        for command, outcome in ((desk.compact, "swapped"), (desk.rollback, "rolled-back"), (desk.compact, "swapped")):
            assert set(outcomes(command()).values()) == {outcome}
            assert zones.count(desk) == rows
        (cleaned,) = desk.cleanup(how="trash").tables
        assert {backup.state for backup in cleaned.backups} == {BackupState.DISCARDED}
        assert zones.count(desk) == rows
    met = met_in(lines)
    # Permissions let everybody read the data files: the key alone decides.
    assert any("AuthorizationException" in seen for path, seen in met.items() if "/part-" in path)
    assert [path for path, seen in met.items() if "opened" in seen] == []
    assert zones.is_encrypted(control)
    assert zones.names_in(f"{zone}/.Trash/etl/Current") != set()


def test_a_user_without_the_key_of_a_zone_is_refused_before_anything_is_written(zones, layout):
    zone, plain = zones.make("closed", CLOSED_KEY), f"/user/etl/{zones.database}/plain"
    below = ("whole", "events/dt=1", "events/dt=2")
    for name in below:
        zones.add_rows(f"{plain}/{name}")
    run_admin(layout, ["dfs", "-cp", f"{plain}/whole", f"{plain}/events", zone])
    for name in (*below, "events"):
        zones.dfs.setOwner(zones.path(f"{zone}/{name}"), "etl", "data")
    whole = zones.define("whole", f"{zone}/whole")
    events = zones.define("events", f"{zone}/events", {day: f"{zone}/events/{day}" for day in DAYS})
    for desk, units in ((whole, {""}), (events, set(DAYS))):
        assert codes(desk.compact()) == dict.fromkeys(units, Code.NO_ZONE_KEY)
    assert zones.names_in(zone) == {"whole", "events"}
    assert zones.names_in(f"{zone}/events") == set(DAYS)


def test_the_key_of_a_zone_is_asked_for_although_a_file_in_it_cannot_be_opened(zones, layout, gateway):
    """Around tables without partitions, somebody may have a file in the database's directory that fails whoever opens it, as one does whose
    writer and its DataNode died. Here it is one that this user may not read.
    """
    closed, opened = zones.make("closed", CLOSED_KEY), zones.make("opened")
    run_admin(layout, ["dfs", "-touchz", f"{closed}/broken"])
    zones.add_rows(opened)
    for zone in (closed, opened):
        for name in zones.names_in(zone):
            zones.dfs.setOwner(zones.path(f"{zone}/{name}"), "hdfs", "data")
        run_admin(layout, ["dfs", "-chmod", "000", f"{zone}/*"])
    ties = HadoopFiles(gateway).ties([closed, opened])
    assert "not authorized" in ties[closed].locked
    assert ties[opened].locked == ""


def test_a_table_that_is_a_zone_is_refused_before_anything_is_written_beside_it(zones):
    zone = zones.make("whole")
    zones.add_rows(zone)
    before = zones.names_in("/data")
    assert codes(zones.define("whole", zone).compact()) == {"": Code.OTHER_ENCRYPTION_ZONE}
    assert zones.names_in("/data") == before


def test_a_partition_that_is_a_zone_of_its_own_is_refused_and_the_others_are_done(zones, database):
    root = f"/data/{database}-mixed"
    zones.add_rows(f"{root}/dt=1")
    zone = zones.make("mixed/dt=2")
    zones.add_rows(zone)
    desk = zones.define("mixed", root, {day: f"{root}/{day}" for day in DAYS})
    assert codes(desk.compact()) == {"dt=1": None, "dt=2": Code.OTHER_ENCRYPTION_ZONE}
    assert zones.count(desk) == 80


def test_a_partition_that_became_a_zone_since_is_not_rolled_back_and_loses_nothing(zones, database):
    root = f"/data/{database}-later"
    for day in DAYS:
        zones.add_rows(f"{root}/{day}")
    desk = zones.define("later", root, {day: f"{root}/{day}" for day in DAYS})
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    zones.dfs.delete(zones.path(f"{root}/dt=2"), True)
    zones.add_rows(zones.make("later/dt=2"))
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back", "dt=2": "refused"}
    assert zones.count(desk) == 80


def test_spark_reads_files_of_a_zone_by_their_ids(zones, gateway):
    files, zone = HadoopFiles(gateway), zones.make("rows")
    sides = [files.qualify(f"{zone}/{name}") for name in ("one", "other")]
    for side in sides:
        zones.add_rows(side)
    listed = [[entry for entry in seen.entries if entry.name.startswith("part-")] for seen in files.look(sides).values()]
    assert all(zones.is_encrypted(entry.path) and entry.file_id for entries in listed for entry in entries)
    rows = SparkRows(gateway)
    assert rows.differences("parquet", *(rows.footers("parquet", {0: entries})[0].groups for entries in listed), 10) == Differences(0, 0)
