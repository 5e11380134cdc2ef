"""What readers of every kind see while compact-swap, rollback and cleanup swap units back and forth.

  make bench-readers [SWAPS=2000] [UNITS=10]
  make bench-readers JOIN=yes [SWAPS=600] [UNITS=10] [LIMIT=700]

Each read of a unit is judged and counted: it must return all rows, or none, or an error because a file is gone. Anything else
ends the benchmark with exit code 1.

With JOIN the same tables have joins of ten files each and as many swaps, one after the other. A rollback of a join leaves one file,
so before the next join the units get their small files again, while no reader reads.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import pyarrow
import pyarrow.parquet
from py4j.protocol import Py4JJavaError
from pyspark.sql.utils import CapturedException

from cluster.tables import SmallTable
from hivekeeper.cluster.connect import connect
from hivekeeper.cluster.signals import Signals
from hivekeeper.codes import Exit
from hivekeeper.config.settings import AT_ONCE, JOINED
from support.desk import Desk
from support.storage import login_options

DATABASE = "bench_readers"
OPTIONS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # Otherwise a compaction waits for the jobs of all readers before it, and few swaps happen.
    "spark.scheduler.mode": "FAIR",
}
POOL_OF_READERS = "readers"
ALL_ROWS, ABSENT, GONE = "all rows", "absent", "file gone"
MORE, FEWER, OTHER_ERROR = "MORE ROWS", "FEWER ROWS", "OTHER ERROR"
# Of a unit, so that it can be joined.
FILES_TO_JOIN = 10
MOST_ROLLBACKS = 20
# They write pages about each task that finds its file gone.
TALKATIVE = ("org.apache.spark.executor.Executor", "org.apache.spark.scheduler.TaskSetManager")
# What Spark and HDFS report for a file or directory that is gone, or a block of a file that cleanup deleted under a reader.
IS_GONE = re.compile(r"FileNotFoundException|PATH_NOT_FOUND|does not exist|BlockMissingException|Could not obtain block")

Read = Callable[[], Mapping[str, Tuple[int, int]]]


class Reader(threading.Thread):
    """Reads a table over and over; `seen` counts what each read of a unit returned. `read` returns number and sum of ids by unit."""

    def __init__(self, name: str, table: SmallTable, read: Read) -> None:
        super().__init__(name=name, daemon=True)
        self.context, self.read, self.units, self.ended = table.spark.sparkContext, read, table.units, threading.Event()
        self.wanted = (table.rows_a_unit, sum(range(table.rows_a_unit)))
        self.reads, self.seen, self.wrong = 0, Counter(), []  # type: Tuple[int, Counter, List[str]]
        # Who holds it keeps this reader from reading.
        self.turn = threading.Lock()

    def run(self) -> None:
        self.context.setLocalProperty("spark.scheduler.pool", POOL_OF_READERS)
        while not self.ended.is_set():
            with self.turn:
                try:
                    self._judge(self.read())
                except (Py4JJavaError, CapturedException) as error:
                    self._judge_error(str(error))
            self.reads += 1
            # Otherwise this thread has the lock again before anybody else gets it.
            time.sleep(0.001)

    def _judge(self, found: Mapping[str, Tuple[int, int]]) -> None:
        for unit in self.units:
            rows = found.get(unit, (0, 0))
            verdict = self._verdict(rows)
            self.seen[verdict] += 1
            if verdict in (MORE, FEWER):
                self.wrong.append(f"{self.name}: {unit}: {rows[0]} rows with the sum {rows[1]}, not {self.wanted}")

    def _verdict(self, rows: Tuple[int, int]) -> str:
        if not rows[0]:
            return ABSENT
        return ALL_ROWS if rows == self.wanted else MORE if rows[0] > self.wanted[0] else FEWER

    def _judge_error(self, text: str) -> None:
        verdict = GONE if IS_GONE.search(text) else OTHER_ERROR
        self.seen[verdict] += 1
        if verdict == OTHER_ERROR:
            self.wrong.append(f"{self.name}: {text}")

    def line(self) -> str:
        total = max(1, sum(self.seen.values()))
        verdicts = (ALL_ROWS, ABSENT, GONE, MORE, FEWER, OTHER_ERROR)
        shares = "   ".join(f"{verdict} {self.seen[verdict]:6} {self.seen[verdict] / total:7.2%}" for verdict in verdicts)
        return f"{self.name:32} {self.reads:6} reads   {shares}"


def make_readers(table: SmallTable) -> List[Reader]:
    """One of each kind, each with its own session."""
    what = "flat, " if not table.days else ""
    kinds: Dict[str, Callable[[SmallTable], Read]] = {
        "SQL": by_sql,
        "SQL, REFRESH after an error": by_sql_without_refresh,
        "path": by_path,
        "pyarrow": by_arrow,
        "pyarrow, all files at once": by_arrow_in_parallel,
    }
    return [Reader(what + name, table, make(table)) for name, make in kinds.items()]


def by_sql(table: SmallTable) -> Read:
    """Through the metastore, with REFRESH TABLE before each read."""
    session = table.spark.newSession()

    def read() -> Mapping[str, Tuple[int, int]]:
        session.sql(f"REFRESH TABLE {table.name}")
        return count(table, session.table(table.name))

    return read


def by_sql_without_refresh(table: SmallTable) -> Read:
    """Spark caches a table's listing, and raises an error when one of its files is gone."""
    session = table.spark.newSession()

    def read() -> Mapping[str, Tuple[int, int]]:
        try:
            return count(table, session.table(table.name))
        except (Py4JJavaError, CapturedException):
            session.sql(f"REFRESH TABLE {table.name}")
            raise

    return read


def by_path(table: SmallTable) -> Read:
    session = table.spark.newSession()
    return lambda: count(table, session.read.schema(f"id BIGINT{', dt STRING' if table.days else ''}").parquet(table.root))


def count(table: SmallTable, rows: Any) -> Mapping[str, Tuple[int, int]]:
    unit = "concat('dt=', dt)" if table.days else "''"
    found = rows.selectExpr(f"{unit} unit", "id").groupBy("unit").agg({"*": "count", "id": "sum"}).collect()
    return {row["unit"]: (row["count(1)"], row["sum(id)"]) for row in found}


def by_arrow(table: SmallTable) -> Read:
    """Lists each unit in HDFS, then opens and reads one file after another with pyarrow."""
    return by_files(table, lambda read, files: [read(file) for file in files])


def by_arrow_in_parallel(table: SmallTable) -> Read:
    """Lists each unit, then opens all its files at once in no order, as no reader in name order does."""
    pool = ThreadPoolExecutor(2 * FILES_TO_JOIN)
    return by_files(table, lambda read, files: list(pool.map(read, random.sample(files, len(files)))))


def by_files(table: SmallTable, read_all: Callable[[Callable[[Any], List[int]], List[Any]], List[List[int]]]) -> Read:
    jvm, fs = table.spark._jvm, table.open_file_system()
    to_bytes = jvm.org.apache.commons.io.IOUtils.toByteArray

    def read_file(path: Any) -> List[int]:
        stream = fs.open(path)
        try:
            content = pyarrow.BufferReader(to_bytes(stream))
        finally:
            stream.close()
        return pyarrow.parquet.ParquetFile(content).read(["id"])["id"].to_pylist()

    def read() -> Mapping[str, Tuple[int, int]]:
        found = {}
        for unit in table.units:
            statuses = fs.listStatus(table.path(table.live(unit)))
            seen = [status.getPath() for status in statuses if status.getLen() and not status.getPath().getName().startswith((".", "_"))]
            ids = [number for numbers in read_all(read_file, seen) for number in numbers]
            found[unit] = (len(ids), sum(ids))
        return found

    return read


class Exchanges:
    """Counts exchanges. `ms`: the gaps of swaps, or how long live had a file beside those that it was joined with."""

    def __init__(self) -> None:
        self.ms: List[float] = []
        self.done, self.undone, self.left = 0, 0, 0
        self._began = 0.0
        self._is_joining = False

    def note(self, call: str) -> None:
        """Gets the name of each call of a command just before it."""
        now = time.perf_counter()
        if self._is_joining:
            self.ms.append((now - self._began) * 1000)
        self._is_joining = call == "concat live/FILE"
        if call == "ready/FILE → live":
            self._began = now

    def add(self, units: Sequence[Any]) -> None:
        self.done += sum(unit.outcome.exchanged for unit in units)
        self.left += sum(not unit.outcome.exchanged for unit in units)
        self.ms += [unit.gap_ms for unit in units if unit.gap_ms is not None]

    def lines(self, what: str, took: float) -> List[str]:
        ordered = sorted(self.ms)
        times = f"median {ordered[len(ordered) // 2]:.1f} ms   99 % {ordered[int(len(ordered) * 0.99)]:.1f} ms   worst {ordered[-1]:.1f} ms"
        undone = f" ({self.undone} of them undo one)" if self.undone else ""
        return [f"{self.done} {what}s{undone} in {took:.0f} s, {self.left} units were left", f"{what}: {times}"]


def swap_under(tables: Sequence[SmallTable], readers: Sequence[Reader], swaps: int) -> List[float]:
    """Swap the tables' units back and forth this many times while all readers read; returns the gaps in ms."""
    return exchange_under(readers, lambda: swap_back_and_forth(tables, swaps)).ms


def exchange_under(readers: Sequence[Reader], act: Callable[[], Exchanges]) -> Exchanges:
    for reader in readers:
        reader.start()
    try:
        return act()
    finally:
        for reader in readers:
            reader.ended.set()
        for reader in readers:
            reader.join(120)


def swap_back_and_forth(tables: Sequence[SmallTable], swaps: int, until: float = math.inf) -> Exchanges:
    """A unit may be left for another run when the busy machine needs too long for a check."""
    return swap_at([table.desk() for table in tables], swaps, until)


def swap_at(desks: Sequence[Desk], swaps: int, until: float) -> Exchanges:
    found = Exchanges()
    while found.done < swaps and time.monotonic() < until:
        for desk in desks:
            compacted = do(desk, desk.compact)
            found.add(compacted)
            undo(desk, compacted, found)
            do(desk, desk.cleanup)
    return found


def join_again_and_again(desks: Sequence[Desk], readers: Sequence[Reader], kept: Mapping[str, str], joins: int, until: float) -> Exchanges:
    """Every fourth round also undoes the joins, which takes longer than they do."""
    tables: List[Any] = [desk.world for desk in desks]
    found, rounds = Exchanges(), 0
    for table in tables:
        table.process.before_call = found.note
    while found.done < joins and time.monotonic() < until:
        for desk in desks:
            compacted = do(desk, desk.compact)
            found.add(compacted)
            if rounds % 4 == 3:
                found.undone += undo(desk, compacted, found)
            do(desk, desk.cleanup)
        with ExitStack() as quiet:
            for reader in readers:
                quiet.enter_context(reader.turn)
            for table in tables:
                refill(table, kept[table.name])
        rounds += 1
    for table in tables:
        table.process.before_call = lambda _name: None
    return found


def undo(desk: Desk, compacted: Sequence[Any], found: Exchanges) -> int:
    """Roll the newest run back until no unit is left as it made it, as that has too few files to be exchanged again. Returns how many."""
    run, units = desk.runs[-1], {unit.name for unit in compacted if unit.outcome.exchanged}
    waiting = set(units)
    for _ in range(MOST_ROLLBACKS):
        if not waiting:
            return len(units)
        undone = do(desk, lambda: desk.rollback(run))
        found.add([unit for unit in undone if unit.name in waiting])
        waiting -= {unit.name for unit in undone if unit.outcome.exchanged}
    raise SystemExit(f"bench: {desk.table}: run {run} is not undone after {MOST_ROLLBACKS} rollbacks")


def do(desk: Any, command: Callable[[], Any]) -> Sequence[Any]:
    result = command()
    (outcome,) = result.tables
    if result.code not in (Exit.DONE, Exit.PARTIAL) or outcome.problem:
        raise SystemExit(f"bench: {desk.table}: {outcome.problem or [unit.reason for unit in outcome.units]}")
    return outcome.units


def keep_files(table: SmallTable) -> str:
    """Copy the small files of a unit aside; all units have the same."""
    aside, fs, conf = f"{table.root}-kept", table.open_file_system(), table.spark.sparkContext._jsc.hadoopConfiguration()
    fs.mkdirs(table.path(aside))
    for name in table.ids(table.live(table.units[0])):
        source, target = (table.path(f"{place}/{name}") for place in (table.live(table.units[0]), aside))
        table.spark._jvm.org.apache.hadoop.fs.FileUtil.copy(fs, source, fs, target, False, conf)
    return aside


def refill(table: SmallTable, kept: str) -> None:
    """Replace the files of each unit by the small ones."""
    fs, conf = table.open_file_system(), table.spark.sparkContext._jsc.hadoopConfiguration()
    copy, names = table.spark._jvm.org.apache.hadoop.fs.FileUtil.copy, list(table.ids(kept))

    def fill(unit: str) -> None:
        for status in fs.listStatus(table.path(table.live(unit))):
            if not status.isDirectory():
                fs.delete(status.getPath(), False)
        for name in names:
            copy(fs, table.path(f"{kept}/{name}"), fs, table.path(f"{table.live(unit)}/{name}"), False, conf)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fill, table.units))


def clear(spark: Any) -> None:
    spark.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")
    hadoop = spark._jvm.org.apache.hadoop.fs
    hadoop.FileSystem.get(spark.sparkContext._jsc.hadoopConfiguration()).delete(hadoop.Path(f"/user/etl/{DATABASE}"), True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swaps", type=int, default=2000)
    parser.add_argument("--units", type=int, default=10, help="partitions of the partitioned table")
    parser.add_argument("--join", action="store_true", help="first joins of files, then swaps")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop each of the two after this time")
    asked = parser.parse_args()
    with Signals(patient=False) as signals, connect({**OPTIONS, **login_options()}, signals, "error") as cluster:
        spark = cluster.rows.inner.gateway.spark
        log4j = spark._jvm.org.apache.logging.log4j
        for name in TALKATIVE:
            log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)
        clear(spark)
        spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '/user/etl/{DATABASE}'")
        files = FILES_TO_JOIN if asked.join else 3
        days = [str(day) for day in range(asked.units)]
        tables = [SmallTable(spark, DATABASE, days, files=files), SmallTable(spark, DATABASE, name="flat", files=files)]
        # Run ids count up in a desk, so one of each table serves for both.
        desks = [table.desk(exchange=JOINED if asked.join else AT_ONCE) for table in tables]
        wrong = measure_joins(desks, asked.swaps, asked.seconds) if asked.join else []
        for desk in desks:
            desk.settings = replace(desk.settings, exchange=AT_ONCE)
        wrong += measure(tables, "swap", lambda _readers: swap_at(desks, asked.swaps, time.monotonic() + asked.seconds))
        clear(spark)
    print("\n".join(wrong[:10]), file=sys.stderr)
    return 1 if wrong else 0


def measure_joins(desks: Sequence[Desk], joins: int, seconds: float) -> List[str]:
    tables: List[Any] = [desk.world for desk in desks]
    kept = {table.name: keep_files(table) for table in tables}
    until = time.monotonic() + seconds
    return measure(tables, "join", lambda readers: join_again_and_again(desks, readers, kept, joins, until))


def measure(tables: Sequence[SmallTable], what: str, act: Callable[[Sequence[Reader]], Exchanges]) -> List[str]:
    """Prints what was seen; returns what must not be."""
    readers = [reader for table in tables for reader in make_readers(table)]
    begin = time.perf_counter()
    found = exchange_under(readers, lambda: act(readers))
    print("\n".join(found.lines(what, time.perf_counter() - begin)), f"\nload {os.getloadavg()[0]:.1f}; {len(readers)} readers:")
    for reader in readers:
        print(reader.line(), flush=True)
    return [text for reader in readers for text in reader.wrong]


if __name__ == "__main__":
    sys.exit(main())
