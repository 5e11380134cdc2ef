"""Tables of small files in HDFS, for tests that run whole commands in one JVM; created, changed and counted without our own code.

Every row of a unit is a different number, so missing and duplicate rows show up.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import pytest

from cluster.servers.layout import Layout
from hivekeeper.cluster.connect import WallClock
from hivekeeper.ports import Cluster
from support.desk import Desk
from support.drivers import another_cluster
from support.fakes.files import Killed
from support.real_world import KILLED, Fault, Process, in_hands_of

ROWS_A_FILE = 10


@contextmanager
def making_database(layout: Layout, spark: Any, home: Path) -> Iterator[str]:
    """A database owned by etl, with its tables in its own HDFS directory; `home` is a directory of the test alone."""
    name = f"c{abs(hash(str(home))) % 10**8}"
    spark.sql(f"CREATE DATABASE {name} LOCATION '{layout.namenode}/user/etl/{name}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


class SmallTable:
    """An external table with this many files per unit. `days` are the values of its partition column dt; empty means unpartitioned."""

    def __init__(
        self,
        spark: Any,
        database: str,
        days: Sequence[str] = (),
        name: str = "events",
        files: int = 3,
        properties: str = "",
        top: str = "/user/etl",
    ) -> None:
        self.spark, self.name, self.days, self.files = spark, f"{database}.{name}", tuple(days), files
        self.root = f"{top}/{database}/{name}"
        self.units = [f"dt={day}" for day in days] or [""]
        self.appends, self.process = 0, Process()
        self._location = another_cluster().files.qualify(self.root)
        by, with_properties = "PARTITIONED BY (dt STRING)" if days else "", f"TBLPROPERTIES ({properties})" if properties else ""
        spark.sql(f"CREATE EXTERNAL TABLE {self.name} (id BIGINT) {by} STORED AS PARQUET LOCATION '{self._location}' {with_properties}")
        if days:
            spark.sql(f"ALTER TABLE {self.name} ADD " + " ".join(f"PARTITION (dt='{day}')" for day in days))
        self.append()

    def append(self) -> None:
        """Add files of new rows to every unit: written once and copied, because Spark would write only 15 files a second."""
        seed, each = f"{self.root}-seed", self.files * ROWS_A_FILE
        begin = self.appends * each
        self.spark.range(begin, begin + each, 1, self.files).write.mode("overwrite").parquet(seed)
        fs, conf = self.open_file_system(), self.spark.sparkContext._jsc.hadoopConfiguration()
        copy = self.spark._jvm.org.apache.hadoop.fs.FileUtil.copy
        for status in fs.listStatus(self.path(seed)):
            for unit in self.units if status.getLen() else ():
                copy(fs, status.getPath(), fs, self.path(f"{self.live(unit)}/{status.getPath().getName()}"), False, conf)
        fs.delete(self.path(seed), True)
        self.appends += 1

    @property
    def rows_a_unit(self) -> int:
        return self.appends * self.files * ROWS_A_FILE

    def live(self, unit: str = "") -> str:
        return f"{self.root}/{unit}" if unit else self.root

    @property
    def control(self) -> str:
        return f"{self.root}/.hivekeeper" if self.days else f"{self.root.rpartition('/')[0]}/.hivekeeper-events"

    def path(self, text: str) -> Any:
        return self.spark._jvm.org.apache.hadoop.fs.Path(text)

    def open_file_system(self) -> Any:
        return self.spark._jvm.org.apache.hadoop.fs.FileSystem.get(self.spark.sparkContext._jsc.hadoopConfiguration())

    def ids(self, directory: str) -> Dict[str, int]:
        """A directory's files, and how HDFS identifies them."""
        return {status.getPath().getName(): status.getFileId() for status in self.open_file_system().listStatus(self.path(directory))}

    def everything(self) -> List[Tuple[str, int, int]]:
        """Path, id and length of all files and directories below the table's root and control directory."""
        tops = [self.root] if self.days else [self.root, self.control]
        fs, found = self.open_file_system(), []
        while tops:
            for status in fs.listStatus(self.path(tops.pop())):
                found.append((status.getPath().toUri().getPath(), status.getFileId(), status.getLen()))
                if status.isDirectory():
                    tops.append(found[-1][0])
        return sorted(found)

    def require_every_row_once(self) -> None:
        """Counted by Spark through the metastore."""
        self.spark.sql(f"REFRESH TABLE {self.name}")
        self.require_counts(self.spark.table(self.name))

    def require_counts(self, rows: Any) -> None:
        unit, n = "concat('dt=', dt)" if self.days else "''", self.rows_a_unit
        found = rows.selectExpr(f"{unit} unit", "id").groupBy("unit").agg({"id": "sum", "*": "count"}).collect()
        assert {row["unit"]: (row["count(1)"], row["sum(id)"]) for row in found} == {name: (n, sum(range(n))) for name in self.units}

    def copy(self, directory: Path) -> Path:
        """The whole table with its hidden directories, as local files."""
        target = directory / f"copy-{len(list(directory.iterdir()))}"
        self.open_file_system().copyToLocalFile(False, self.path(self.root), self.path(f"file:{target}"), True)
        return target

    @property
    def cluster(self) -> Cluster:
        """The ports for the next command; `process` lets tests act between their calls."""
        return in_hands_of(self.process, another_cluster(), self._location, WallClock())

    def desk(self, **settings: Any) -> Desk:
        """A table's run ids must differ, so one desk runs every command on it."""
        return Desk(self, self.name, **{"backup_table": False, **settings})  # type: ignore[arg-type]

    def kill_after(self, change: str, command: Callable[[], object]) -> None:
        """Kill a command right after a change, named as in tests/support/changes.py."""
        self.process.fault = Fault(change, 1, KILLED)
        with pytest.raises(Killed):
            command()
        self.process = Process()

    def do_before(self, call: str, act: Callable[[], None]) -> None:
        """Once, just before the next command's first call of this name."""

        def watch(name: str) -> None:
            if name == call:
                self.process.before_call = lambda _name: None
                act()

        self.process.before_call = watch
