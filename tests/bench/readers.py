"""What readers of every kind see while compact-swap, rollback and cleanup swap units back and forth.

  make bench-readers [SWAPS=2000] [UNITS=10]

Each read of a unit is judged and counted: it must return all rows, or none, or an error because a file is gone. Anything else
ends the benchmark with exit code 1.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
import time
from collections import Counter
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

import pyarrow
import pyarrow.parquet
from py4j.protocol import Py4JJavaError
from pyspark.sql.utils import CapturedException

from cluster.tables import SmallTable
from hivekeeper.cluster.connect import connect
from hivekeeper.cluster.signals import Signals
from hivekeeper.codes import Exit
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
ALL_ROWS, ABSENT, GONE, WRONG = "all rows", "absent", "file gone", "WRONG"
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

    def run(self) -> None:
        self.context.setLocalProperty("spark.scheduler.pool", POOL_OF_READERS)
        while not self.ended.is_set():
            try:
                self._judge(self.read())
            except (Py4JJavaError, CapturedException) as error:
                self._judge_error(str(error))
            self.reads += 1

    def _judge(self, found: Mapping[str, Tuple[int, int]]) -> None:
        for unit in self.units:
            rows = found.get(unit, (0, 0))
            verdict = ABSENT if not rows[0] else ALL_ROWS if rows == self.wanted else WRONG
            self.seen[verdict] += 1
            if verdict == WRONG:
                self.wrong.append(f"{self.name}: {unit}: {rows[0]} rows with the sum {rows[1]}, not {self.wanted}")

    def _judge_error(self, text: str) -> None:
        verdict = GONE if IS_GONE.search(text) else WRONG
        self.seen[verdict] += 1
        if verdict == WRONG:
            self.wrong.append(f"{self.name}: {text}")

    def line(self) -> str:
        total = sum(self.seen.values())
        shares = "   ".join(
            f"{verdict} {self.seen[verdict]:6} {self.seen[verdict] / total:7.2%}" for verdict in (ALL_ROWS, ABSENT, GONE, WRONG)
        )
        return f"{self.name:32} {self.reads:6} reads   {shares}"


def make_readers(table: SmallTable) -> List[Reader]:
    """One of each kind, each with its own session."""
    what = "flat, " if not table.days else ""
    kinds: Dict[str, Callable[[SmallTable], Read]] = {
        "SQL": by_sql,
        "SQL, REFRESH after an error": by_sql_without_refresh,
        "path": by_path,
        "pyarrow": by_arrow,
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
    jvm, fs = table.spark._jvm, table.open_file_system()
    to_bytes = jvm.org.apache.commons.io.IOUtils.toByteArray

    def read_unit(unit: str) -> Iterator[int]:
        for status in fs.listStatus(table.path(table.live(unit))):
            if status.getLen():
                stream = fs.open(status.getPath())
                content = pyarrow.BufferReader(to_bytes(stream))
                stream.close()
                yield from pyarrow.parquet.read_table(content)["id"].to_pylist()

    def read() -> Mapping[str, Tuple[int, int]]:
        found = {}
        for unit in table.units:
            ids = list(read_unit(unit))
            found[unit] = (len(ids), sum(ids))
        return found

    return read


def swap_under(tables: Sequence[SmallTable], readers: Sequence[Reader], swaps: int) -> List[float]:
    """Swap the tables' units back and forth this many times while all readers read; returns the gaps in ms."""
    for reader in readers:
        reader.start()
    try:
        return swap_back_and_forth(tables, swaps)
    finally:
        for reader in readers:
            reader.ended.set()
        for reader in readers:
            reader.join(120)


def swap_back_and_forth(tables: Sequence[SmallTable], swaps: int) -> List[float]:
    desks, gaps = [table.desk() for table in tables], []  # type: ignore[var-annotated]
    while len(gaps) < swaps:
        for desk in desks:
            for command in (desk.compact, desk.rollback, desk.cleanup):
                result = command()
                (outcome,) = result.tables
                if result.code is not Exit.DONE:
                    raise SystemExit(f"bench: {desk.table}: {outcome.problem or [unit.reason for unit in outcome.units]}")
                gaps += [unit.gap_ms for unit in outcome.units if unit.gap_ms is not None]
    return gaps


def clear(spark: Any) -> None:
    spark.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")
    hadoop = spark._jvm.org.apache.hadoop.fs
    hadoop.FileSystem.get(spark.sparkContext._jsc.hadoopConfiguration()).delete(hadoop.Path(f"/user/etl/{DATABASE}"), True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swaps", type=int, default=2000)
    parser.add_argument("--units", type=int, default=10, help="partitions of the partitioned table")
    asked = parser.parse_args()
    with Signals(patient=False) as signals, connect({**OPTIONS, **login_options()}, signals, "error") as cluster:
        spark = cluster.rows.inner.gateway.spark
        # A task that finds its file gone logs pages about it.
        spark.sparkContext.setLogLevel("OFF")
        clear(spark)
        spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '/user/etl/{DATABASE}'")
        tables = [SmallTable(spark, DATABASE, [str(day) for day in range(asked.units)]), SmallTable(spark, DATABASE, name="flat")]
        readers = [reader for table in tables for reader in make_readers(table)]
        begin = time.perf_counter()
        gaps = sorted(swap_under(tables, readers, asked.swaps))
        took = time.perf_counter() - begin
        clear(spark)
    print(f"{len(gaps)} swaps in {took:.0f} s beside {len(readers)} readers")
    print(f"gap: median {gaps[len(gaps) // 2]:.1f} ms   99 % {gaps[int(len(gaps) * 0.99)]:.1f} ms   worst {gaps[-1]:.1f} ms")
    for reader in readers:
        print(reader.line())
    wrong = [text for reader in readers for text in reader.wrong]
    print("\n".join(wrong[:10]), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
