"""A whole cluster in memory: tables with files, the three fakes and a clock, with ways to break it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Callable, Dict, Iterable, Mapping, Optional, Sequence

from hivekeeper import names
from hivekeeper.model import Partition, Table
from hivekeeper.ports import Cluster, FilesUnavailable, MetastoreUnavailable, RowsError
from support import changes
from support.builders import PARQUET, a_partition
from support.fakes.files import FakeFiles
from support.fakes.metastore import FakeMetastore
from support.fakes.row_files import FakeRowFiles
from support.fakes.rows import DataFile, FakeRows


class TestClock:
    """The namespace's clock, and a duration that tests may stretch."""

    __test__ = False

    def __init__(self, files: FakeFiles) -> None:
        self.files = files
        self.slowness_ms = 0.0
        self.elapsed_ms = 0.0

    def now_ms(self) -> int:
        return self.files.namespace.now()

    def monotonic_ms(self) -> float:
        self.elapsed_ms += self.slowness_ms
        return self.elapsed_ms

    def sleep_ms(self, ms: float) -> None:
        self.elapsed_ms += ms
        self.files.namespace.advance(int(ms))


class World:
    """Files are given by length, or by rows; each row is a unique text."""

    def __init__(self) -> None:
        self.files = FakeFiles()
        self.metastore = FakeMetastore(self.files)
        self.rows = FakeRows(self.files)
        self.clock = TestClock(self.files)
        self.cluster = self.cluster_of(self.files, self.metastore, self.rows)

    @property
    def catalog(self):
        return self.metastore.catalog

    def cluster_of(self, files: FakeFiles, metastore: FakeMetastore, rows: FakeRows) -> Cluster:
        return Cluster(files, metastore, rows, FakeRowFiles(files), self.clock, "etl", "edge1", lambda: "app-1", "3.5.9", "UTC")

    def another_process(self) -> Cluster:
        """A second client of the same cluster."""
        files = self.files.another_client()
        metastore = FakeMetastore(files, self.catalog)
        return self.cluster_of(files, metastore, FakeRows(files))

    def add_table(self, table: Table, units: Mapping[str, Sequence[int]], form: Optional[object] = None) -> None:
        """`units` maps partition names ("" for an unpartitioned table) to the lengths of their files, one row each."""
        partitions = [a_partition(name, names.join(table.location, name), table.storage) for name in units if name]
        self.catalog.add_table(table, partitions)
        for name, lengths in units.items():
            directory = names.join(table.location, name) if name else table.location
            self.files.writer.make_directory(directory)
            for index, length in enumerate(lengths):
                self.add_file(f"{directory}/part-{index:05d}.parquet", [f"{table.name}/{name}/{index}"], length, form)
        self.files.namespace.advance(3_600_000)

    def add_file(self, path: str, rows: Iterable[str], length: int = 1000, form: Optional[object] = None) -> None:
        content = DataFile(tuple(rows)) if form is None else DataFile(tuple(rows), form)
        self.files.writer.add(path, content, length)

    def fail_at(self, step: int, done: bool) -> None:
        """Make the call of this step, counted from now, fail, with or without taking effect."""
        seen = [0]

        def fail(what: str) -> None:
            if seen[0] == step:
                self.fail_call(what, done)
            seen[0] += 1

        self.files.before_step = fail

    def fail_call(self, what: str, done: bool) -> None:
        """Make the call of the step that is about to happen fail."""
        method = what.partition(" ")[0]
        if method.startswith("metastore."):
            self.metastore.fail_next(method.partition(".")[2], MetastoreUnavailable("timeout"), done)
        elif method == "put":
            raise RowsError("the job fails")
        else:
            self.files.fail_next(method, FilesUnavailable("connection reset"), done)

    def picture(self) -> Dict[str, object]:
        """Every file and its content."""
        return dict(self.files.contents())

    def rows_below(self, directory: str) -> Counter:
        """Rows that a reader of one unit sees: those in its data files, not in subdirectories."""
        found: Counter = Counter()
        for path, content in self.files.contents(directory).items():
            if names.parent(path) == directory and not names.is_hidden(names.base(path)) and isinstance(content, DataFile):
                found.update(content.rows)
        return found

    def rows_outside_control(self, top: str) -> Counter:
        """Rows in all files below a directory, whether a reader finds them or not, but for those in control directories."""
        found = self.files.contents(top).items()
        return Counter(row for path, one in found if isinstance(one, DataFile) and "/.hivekeeper/" not in path for row in one.rows)

    def rows_of(self, full_name: str) -> Counter:
        """Rows that a reader of a table sees through the metastore."""
        table = self.catalog.tables[full_name]
        places = [p.location for p in self.catalog.partitions[full_name].values()] if table.partitioned else [table.location]
        return sum((self.rows_below(place) for place in places), Counter())

    def set_property(self, full_name: str, **parameters: str) -> None:
        table = self.catalog.tables[full_name]
        self.catalog.tables[full_name] = replace(table, parameters={**table.parameters, **parameters})

    # ---- what a random test does to any world, this one or one on disk

    def table(self, full_name: str) -> Table:
        return self.catalog.tables[full_name]

    def tables(self) -> Dict[str, Table]:
        return dict(self.catalog.tables)

    def partitions(self, full_name: str) -> Dict[str, Partition]:
        return dict(self.catalog.partitions[full_name])

    def rows_anywhere(self) -> Counter:
        return Counter(row for content in self.picture().values() if isinstance(content, DataFile) for row in content.rows)

    def start_committer(self, directory: str) -> None:
        self.files.writer.start_committer(directory)

    def watch(self, full_name: str, act: Callable[[str], None]) -> None:
        """Let others act just before each change of a command; they get its name."""
        root, last = self.catalog.tables[full_name].location, ""

        def tell(step: str) -> None:
            nonlocal last
            name = changes.name_step(step, root)
            # The real ports do in one call what these fakes do in several.
            is_same_call = name == last and step.startswith(("put ", "write_ends ", "dress ", "guard "))
            last = name or last
            if name and not is_same_call:
                act(name)

        self.files.before_step = tell

    def mark_success(self, directory: str) -> None:
        """As Spark's and MapReduce's committers do, replacing an existing one."""
        self.files.writer.delete(names.join(directory, "_SUCCESS"))
        self.add_file(names.join(directory, "_SUCCESS"), (), 0)

    def overwrite(self, directory: str, name: str, rows: Sequence[str], whole: bool) -> None:
        """INSERT OVERWRITE: replace the directory, or only its contents."""
        doomed = [directory] if whole else [names.join(directory, entry) for entry in self.files.namespace.directory(directory).children]
        for path in doomed:
            self.files.writer.delete(path)
        self.add_file(names.join(directory, name), rows)

    def drop_table(self, full_name: str, create_again: bool = False) -> None:
        """Drop a table with everything in its directory, as Hive does if the table owns its files; optionally create a new one at once."""
        table = self.catalog.tables[full_name]
        self.catalog.drop_table(full_name)
        self.files.writer.delete(table.location)
        if create_again:
            self.catalog.add_table(replace(table, create_time=table.create_time + 60), [])
            self.files.writer.make_directory(table.location)

    def drop_partition(self, full_name: str, name: str, purge: bool) -> None:
        location = self.catalog.partitions[full_name][name].location
        self.catalog.drop_partition(full_name, name)
        if purge:
            self.files.writer.delete(location)

    def make_partition(self, full_name: str, name: str) -> None:
        location = names.join(self.catalog.tables[full_name].location, name)
        self.files.writer.make_directory(location)
        self.catalog.add_partition(full_name, a_partition(name, location, PARQUET))

    def wait(self, ms: int) -> None:
        self.files.namespace.advance(ms)

    def die_after(self, steps: int, at_once: bool) -> None:
        self.files.die_after(steps, at_once)

    def forget(self) -> None:
        """What a client remembers ends with its process."""
        self.metastore.forget()
        self.cluster.memory.clear()
        self.cluster.log_entries.clear()

    def revive(self) -> None:
        self.forget()
        self.files.revive()
        self.files.expire_locks()
