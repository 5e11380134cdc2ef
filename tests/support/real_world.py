"""The real counterpart of world.py: a table on local Spark or a cluster, and a process that can be killed between two real calls.

Writers, and the reader that counts rows, use pyarrow instead of Spark.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

import pyarrow
import pyarrow.orc
import pyarrow.parquet

from hivekeeper.cluster.connect import WallClock
from hivekeeper.model import Partition, Table
from hivekeeper.ports import Cluster, FilesUnavailable, Lock, MetastoreUnavailable, RowsError
from support import changes, step_by_step
from support.drivers import another_cluster
from support.fakes.files import Killed
from support.storage import Storage

SCHEMA = pyarrow.schema([("text", pyarrow.string())])
# As if Spark had written it; otherwise the file would not be compacted together with a compaction's output.
BY_SPARK = {"org.apache.spark.version": "3.5.9"}
ERRORS = {
    **dict.fromkeys(changes.FILES, FilesUnavailable),
    **dict.fromkeys(changes.METASTORE, MetastoreUnavailable),
    **dict.fromkeys(changes.ROWS, RowsError),
}

KILLED, LOST_ANSWER, FAILED = "killed", "answer lost", "failed"


@dataclass
class Fault:
    """What happens once, at the nth change of this name: a kill after it, a lost answer, or a call without effect."""

    name: str
    nth: int
    kind: str
    seen: int = 0

    def is_due(self, name: str) -> bool:
        self.seen += name == self.name
        return name == self.name and self.seen == self.nth

    @property
    def happened(self) -> bool:
        return self.seen >= self.nth


class Process:
    """A process that may be killed: after `left` changes, or by a fault. Its locks end with it. `changed` lists its changes."""

    def __init__(self) -> None:
        self.left: Optional[int] = None
        self.at_once = True
        self.fault: Optional[Fault] = None
        self.is_dead = False
        self.locks: List[Lock] = []
        self.changed: List[str] = []
        # Other programs act here: just before a change, or just before any call. They get its name; for a read, the method's.
        self.before_change: Callable[[str], None] = lambda _name: None
        self.before_call: Callable[[str], None] = lambda _name: None

    def change(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """The call happens completely or not at all."""
        self.require_life(name)
        self.before_change(name)
        if self.left == 0:
            self.die()
        kind = self.fault.kind if self.fault is not None and self.fault.is_due(name) else ""
        if kind == FAILED:
            raise ERRORS[method.__name__](f"{name}: the test lets it fail")
        self.changed.append(name)
        result = method(*arguments)
        if method.__name__ == "hold":
            self.locks.append(result)
            result = MortalLock(result, self)
        if kind == LOST_ANSWER:
            raise ERRORS[method.__name__](f"{name}: the test loses the answer")
        if kind == KILLED:
            self.die()
        self._count_down()
        return result

    def ask(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        self.require_life(name)
        return method(*arguments)

    def require_life(self, name: str) -> None:
        if self.is_dead:
            raise Killed("a killed process does nothing more")
        self.before_call(name)

    def _count_down(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left == 0 and self.at_once:
                self.die()

    def die(self) -> None:
        self.is_dead = True
        self.end()
        raise Killed("between two changes")

    def end(self) -> None:
        """Release the process's locks, including those it does not know it has."""
        while self.locks:
            self.locks.pop().release()


class MortalLock:
    """Released once: by its holder, or by the holder's death."""

    def __init__(self, lock: Lock, process: Process) -> None:
        self._lock, self._process = lock, process

    def check(self) -> bool:
        return bool(self._process.ask("check lock", self._lock.check))

    def release(self) -> None:
        if self._lock in self._process.locks:
            self._process.locks.remove(self._lock)
            self._lock.release()


class Mortal:
    """A real port used by a process that may be killed, working on the table at `root`."""

    def __init__(self, port: object, methods: Sequence[str], process: Process, root: str) -> None:
        self._port, self._methods, self._process, self._root = port, methods, process, root

    def __getattr__(self, name: str) -> Any:
        if name == "exchange":
            return partial(step_by_step.exchange, self)
        found = getattr(self._port, name)
        if not callable(found):
            return found
        if name not in self._methods:
            return partial(self._process.ask, name, found)

        def change(*arguments: Any) -> Any:
            named = changes.name_change(name, changes.paths_of(name, arguments), self._root)
            return self._process.change(named, found, *arguments)

        return change


def in_hands_of(process: Process, real: Cluster, root: str, clock: WallClock) -> Cluster:
    """The three ports, each call made by the process."""
    return replace(
        real,
        files=Mortal(real.files, changes.FILES, process, root),
        metastore=Mortal(real.metastore, changes.METASTORE, process, root),
        rows=Mortal(real.rows, changes.ROWS, process, root),
        clock=clock,
    )


class LaterClock(WallClock):
    """The wall clock, set forward."""

    def __init__(self) -> None:
        self.forward_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.forward_ms


class Picture:
    """A local copy of everything in a world, read by pyarrow."""

    def __init__(self, top: Path, units: Sequence[str]) -> None:
        self.live = {unit: rows_of(visible_files(top / "events" / unit)) for unit in units}
        self.files = {unit: len(visible_files(top / "events" / unit)) for unit in units}
        control = top / "events" / ".hivekeeper" if units[0] else top / ".hivekeeper-events"
        # Keyed by path below `runs`: RUN/retired/u00001.
        self.held = {
            str(place.relative_to(control / "runs")): rows_of(visible_files(place))
            for state in ("retired", "restoring", "held")
            for place in sorted(control.glob(f"runs/*/{state}/u*"))
        }
        unproved = [*(f"{state}/*/*" for state in ("stage", "ready", "recreated")), "taken/*"]
        self.unproved = [str(path) for below in unproved for path in control.glob(f"runs/*/{below}")]

    @property
    def rows(self) -> Counter:
        return sum(self.live.values(), Counter())


class RealWorld:
    """One database at `place`, with a single-column table `events`: partitions by name, or "" if unpartitioned."""

    def __init__(self, spark: Any, database: str, storage: Storage, units: Sequence[str], place: str, format: str = "parquet") -> None:
        self.spark, self.database, self.storage, self.units, self.place, self.format = spark, database, storage, units, place, format
        self.clock = LaterClock()
        self.process = Process()
        # Every row that a writer has added.
        self.written: Counter = Counter()
        # Rows of writers that were told of a failure: these rows may exist or not.
        self.unpromised: Counter = Counter()
        real = another_cluster()
        self.files, self.metastore = real.files, real.metastore

    @classmethod
    def make(cls, spark: Any, database: str, storage: Storage, units: Sequence[str], format: str = "parquet") -> RealWorld:
        """Three small files in each unit."""
        world = cls(spark, database, storage, units, f"{storage.root}/{database}", format)
        spark.sql(f"CREATE DATABASE {database} LOCATION '{world.place}'")
        by = "PARTITIONED BY (dt STRING)" if units[0] else ""
        # The time zone of ORC is in its stripes, and a file without rows has none.
        columns = "text STRING, at TIMESTAMP" if format == "orc" else "text STRING"
        definition = f"({columns}) {by} STORED AS {format}"
        spark.sql(f"CREATE EXTERNAL TABLE {database}.events {definition} LOCATION '{world.place}/events'")
        if units[0]:
            spark.sql(f"ALTER TABLE {database}.events ADD " + " ".join(f"PARTITION ({spec_of(unit)})" for unit in units))
        for unit in units:
            for index in range(3):
                world.add_file(f"{world.live(unit)}/part-{index:05d}.{format}", [f"events/{unit}/{index}"])
        return world

    @cached_property
    def events(self) -> Table:
        """It never changes."""
        return self.tables()[f"{self.database}.events"]

    def live(self, unit: str) -> str:
        return f"{self.place}/events/{unit}".rstrip("/")

    @property
    def cluster(self) -> Cluster:
        """The ports for the next command: another process, which has read nothing yet."""
        return in_hands_of(self.process, another_cluster(), self.events.location, self.clock)

    def die_after(self, steps: int, at_once: bool) -> None:
        self.process.left, self.process.at_once = steps, at_once

    def revive(self) -> None:
        """The next process."""
        self.process.end()
        self.process = Process()

    def watch(self, full_name: str, act: Callable[[str], None]) -> None:
        """Let others act just before each change of a command; they get its name."""
        assert full_name == self.events.full_name
        self.process.before_change = act

    def start_committer(self, directory: str) -> None:
        self.storage.make_directory(f"{directory}/_temporary/0")

    def wait(self, ms: int) -> None:
        self.clock.forward_ms += ms

    def table(self, full_name: str) -> Table:
        """The table that a desk works on."""
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
        self.storage.write(path, parquet_of(rows) if self.format == "parquet" else orc_of(rows))
        self.written.update(rows)

    def mark_success(self, directory: str) -> None:
        self.storage.write(f"{directory}/_SUCCESS")

    def overwrite(self, directory: str, name: str, rows: Sequence[str], whole: bool) -> None:
        for doomed in [directory] if whole else [found.location for found in self.storage.listing(directory)]:
            self.storage.delete(doomed)
        self.add_file(f"{directory}/{name}", rows)

    def rows_below(self, directory: str) -> Counter:
        return rows_of(visible_files(self.storage.copy(directory)))

    def rows_anywhere(self) -> Counter:
        return rows_of(self.storage.copy(self.place).rglob("*.parquet"))

    def picture(self) -> Picture:
        return Picture(self.storage.copy(self.place), self.units)


def spec_of(partition: str) -> str:
    column, _, value = partition.partition("=")
    return f"{column}='{value}'"


def parquet_of(rows: Sequence[str]) -> bytes:
    """A file as Spark writes it."""
    content = pyarrow.BufferOutputStream()
    with pyarrow.parquet.ParquetWriter(content, SCHEMA, store_schema=False) as writer:
        writer.write_table(pyarrow.table({"text": list(rows)}, SCHEMA))
        writer.add_key_value_metadata(BY_SPARK)
    return bytes(content.getvalue().to_pybytes())


def orc_of(rows: Sequence[str]) -> bytes:
    content = pyarrow.BufferOutputStream()
    at = pyarrow.array(range(len(rows)), pyarrow.timestamp("ns"))
    pyarrow.orc.write_table(pyarrow.table({"text": list(rows), "at": at}), content)
    return bytes(content.getvalue().to_pybytes())


def visible_files(directory: Path) -> List[Path]:
    """What readers of one unit see: its data files, not those in subdirectories."""
    return [path for path in sorted(directory.glob("*")) if path.is_file() and not path.name.startswith((".", "_"))]


def rows_of(files: Iterable[Path]) -> Counter:
    return Counter(text for file in files for text in read_table(file)["text"].to_pylist())


def read_table(file: Path) -> pyarrow.Table:
    if file.read_bytes().startswith(b"ORC"):
        return pyarrow.orc.read_table(file)
    return pyarrow.parquet.read_table(file, partitioning=None)
