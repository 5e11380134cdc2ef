"""The random life of a table in tests/crash/test_everything.py, on local Spark, a real metastore and real files.

Writers and the reader that counts rows are not Spark but pyarrow; a kill is an exception between two real calls.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

import pyarrow
import pyarrow.parquet
import pytest

from crash.test_everything import UNITS, Life, live_on
from desk import Desk, outcomes
from hivekeeper.cluster.connect import WallClock, assemble
from hivekeeper.model import Partition, Table
from hivekeeper.seams import Cluster, Lock
from storage import TEST_FS, Storage
from twins.files import Killed

FILES_CHANGES = ("make_directory", "rename_exact", "remove_empty", "delete_tree", "move_to_trash", "write_new", "hold", "dress")
METASTORE_CHANGES = (
    "update_sizes",
    "add_partition",
    "make_backup_table",
    "point_backup_table",
    "trim_backup_table",
    "drop_backup_table",
)
ROWS_CHANGES = ("write_stage",)
SCHEMA = pyarrow.schema([("text", pyarrow.string())])
# As if Spark had written it: else a file and the output of a compaction would not be compacted together.
BY_SPARK = {"org.apache.spark.version": "3.5.9"}


class Process:
    """One that may be killed: it has so many changes left to make, and its locks end with it."""

    def __init__(self) -> None:
        self.left: Optional[int] = None
        self.at_once = True
        self.is_dead = False
        self.locks: List[Lock] = []

    def change(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """The call happens as a whole or not at all."""
        self.ask(lambda: None)
        if self.left == 0:
            self.die()
        result = method(*arguments)
        if method.__name__ == "hold":
            self.locks.append(result)
            result = MortalLock(result, self)
        if self.left is not None:
            self.left -= 1
            if self.left == 0 and self.at_once:
                self.die()
        return result

    def ask(self, method: Callable[..., Any], *arguments: Any) -> Any:
        if self.is_dead:
            raise Killed("a killed process does nothing more")
        return method(*arguments)

    def die(self) -> None:
        self.is_dead = True
        while self.locks:
            self.locks.pop().release()
        raise Killed("between two changes")


class MortalLock:
    """Given back once: by its holder, or by that one's death."""

    def __init__(self, lock: Lock, process: Process) -> None:
        self._lock, self._process = lock, process

    def check(self) -> bool:
        return bool(self._process.ask(self._lock.check))

    def release(self) -> None:
        if self._lock in self._process.locks:
            self._process.locks.remove(self._lock)
            self._lock.release()


class Mortal:
    """A real seam in the hands of a process that may be killed."""

    def __init__(self, seam: object, changes: Sequence[str], process: Process) -> None:
        self._seam, self._changes, self._process = seam, changes, process

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._seam, name)
        if not callable(found):
            return found
        return partial(self._process.change if name in self._changes else self._process.ask, found)


class LaterClock(WallClock):
    """The wall clock, set forward."""

    def __init__(self) -> None:
        self.forward_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.forward_ms


class RealWorld:
    """What tests/world.py is in memory: one database on disk, with a partitioned table `events` of one column."""

    def __init__(self, spark: Any, database: str, storage: Storage) -> None:
        self.spark, self.database, self.storage = spark, database, storage
        place = f"{storage.root}/{database}"
        self.clock = LaterClock()
        self.process = Process()
        spark.sql(f"CREATE DATABASE {database} LOCATION '{place}'")
        definition = "(text STRING) PARTITIONED BY (dt STRING) STORED AS PARQUET"
        spark.sql(f"CREATE EXTERNAL TABLE {database}.events {definition} LOCATION '{place}/events'")
        self.place = place
        real = assemble(spark)
        self.files, self.metastore = real.files, real.metastore
        self.events = self.tables()[f"{database}.events"]
        for unit in UNITS:
            self.make_partition(f"{database}.events", unit)
            for index in range(3):
                self.add_file(f"{place}/events/{unit}/part-{index:05d}.parquet", [f"events/{unit}/{index}"])

    @property
    def cluster(self) -> Cluster:
        """The seams as the next command has them: another process, which has read nothing yet."""
        real = assemble(self.spark)
        return replace(
            real,
            files=Mortal(real.files, FILES_CHANGES, self.process),
            metastore=Mortal(real.metastore, METASTORE_CHANGES, self.process),
            rows=Mortal(real.rows, ROWS_CHANGES, self.process),
            clock=self.clock,
        )

    def die_after(self, steps: int, at_once: bool) -> None:
        self.process.left, self.process.at_once = steps, at_once

    def revive(self) -> None:
        self.process = Process()

    def wait(self, ms: int) -> None:
        self.clock.forward_ms += ms

    def table(self, full_name: str) -> Table:
        """The one that a desk works on; it never changes."""
        assert full_name == self.events.full_name
        return self.events

    def tables(self) -> Dict[str, Table]:
        found = self.metastore.tables(self.database, self.metastore.table_names(self.database))
        return {table.full_name: replace(table, location=self.files.qualify(table.location)) for table in found.values()}

    def partitions(self, full_name: str) -> Dict[str, Partition]:
        name = full_name.partition(".")[2]
        found = self.metastore.partitions(self.metastore.tables(self.database, [name])[name])
        return {partition.name: replace(partition, location=self.files.qualify(partition.location)) for partition in found}

    def drop_partition(self, full_name: str, name: str, purge: bool) -> None:
        self.spark.sql(f"ALTER TABLE {full_name} DROP PARTITION ({spec_of(name)})")
        if purge:
            self.storage.delete(f"{self.events.location}/{name}")

    def make_partition(self, full_name: str, name: str) -> None:
        self.spark.sql(f"ALTER TABLE {full_name} ADD PARTITION ({spec_of(name)})")

    def add_file(self, path: str, rows: Sequence[str]) -> None:
        content = pyarrow.BufferOutputStream()
        with pyarrow.parquet.ParquetWriter(content, SCHEMA, store_schema=False) as writer:
            writer.write_table(pyarrow.table({"text": list(rows)}, SCHEMA))
            writer.add_key_value_metadata(BY_SPARK)
        self.storage.write(path, content.getvalue().to_pybytes())

    def mark_success(self, directory: str) -> None:
        self.storage.write(f"{directory}/_SUCCESS")

    def overwrite(self, directory: str, name: str, rows: Sequence[str], whole: bool) -> None:
        for doomed in [directory] if whole else [found.location for found in self.storage.listing(directory)]:
            self.storage.delete(doomed)
        self.add_file(f"{directory}/{name}", rows)

    def rows_below(self, directory: str) -> Counter:
        return rows_of(path for path in self.storage.copy(directory).glob("*") if not path.name.startswith((".", "_")))

    def rows_anywhere(self) -> Counter:
        return rows_of(self.storage.copy(self.place).rglob("*.parquet"))


def spec_of(partition: str) -> str:
    column, _, value = partition.partition("=")
    return f"{column}='{value}'"


def rows_of(files: Iterable[Path]) -> Counter:
    texts = (pyarrow.parquet.read_table(file, partitioning=None)["text"].to_pylist() for file in files)
    return Counter(text for found in texts for text in found)


@pytest.mark.parametrize("seed", range(2 if TEST_FS else 4))
def test_no_row_is_lost_or_doubled_whatever_commands_writers_and_kills_come(spark, storage, seed):
    database, chance = f"life{seed}_{abs(hash(storage.root)) % 10**8}", random.Random(seed)
    life = Life(Desk(RealWorld(spark, database, storage), f"{database}.events"))
    try:
        assert set(outcomes(life.desk.compact()).values()) == {"swapped"}
        live_on(life, chance, moves=12)
    finally:
        spark.sql(f"DROP DATABASE {database} CASCADE")
