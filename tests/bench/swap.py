"""How long a unit is absent during a swap on HDFS, how fast small files are compacted, and where a run spends its time.

  make bench-swap [UNITS=1000] [FILES=3]
  make bench-swap JOIN=yes [UNITS=1000] [FILES=10]

With JOIN files are exchanged by concat: then there is no gap, but a time in which live has the new file beside the old ones.
For comparison, in the same run: two bare HDFS renames with nothing between, which no swap can beat. On a cluster that was started with
BENCH=yes also the NameNode's calls.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List

from bench.whole.namenode import Calls
from cluster.servers.layout import choose_run, read_layout
from hivekeeper.cluster.connect import connect
from hivekeeper.cluster.signals import Signals
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import JOINED, Settings
from hivekeeper.launch.spark_submit import FIXED
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome
from support.contexts import a_context
from support.storage import login_options

SEAMS = ("files", "metastore", "rows")
DATABASE = "bench_swap"


class Metered:
    """A port that adds up how long each of its methods takes."""

    def __init__(self, name: str, port: Any, spent: Counter, calls: Counter) -> None:
        self._name, self._port, self._spent, self._calls = name, port, spent, calls

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._port, method)
        return self._metered(f"{self._name}.{method}", found) if callable(found) else found

    def _metered(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            begin = time.perf_counter()
            try:
                return method(*arguments, **named)
            finally:
                self._spent[name] += time.perf_counter() - begin
                self._calls[name] += 1

        return call


class Overlaps(Metered):
    """`ports.Files`, with the milliseconds in which live has both the old files and the one that they are joined with."""

    def __init__(self, name: str, port: Any, spent: Counter, calls: Counter) -> None:
        super().__init__(name, port, spent, calls)
        self.ms: List[float] = []
        self._began = 0.0

    def rename_exact(self, source: str, target: str) -> None:
        self._began = time.perf_counter()
        self._metered("files.rename_exact", self._port.rename_exact)(source, target)

    def concat(self, target: str, sources: List[str]) -> None:
        self._metered("files.concat", self._port.concat)(target, sources)
        if "/.hivekeeper/" not in target:
            self.ms.append((time.perf_counter() - self._began) * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=1000)
    parser.add_argument("--files", type=int, default=3, help="small files of each unit")
    parser.add_argument("--join", action="store_true", help="exchange files by concat, not directories")
    parser.add_argument("--place", default="/user/etl/bench_swap", help="directory in HDFS")
    asked = parser.parse_args()
    begin = time.perf_counter()
    # FIXED is what bin/hivekeeper passes to spark-submit.
    options = {**FIXED, "spark.master": "local[2]", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", **login_options()}
    with Signals(patient=False) as signals, connect(options, signals, "warning") as cluster:
        opened = time.perf_counter() - begin
        spark = cluster.rows.inner.gateway.spark
        make_table(spark, asked.place, asked.units, asked.files)
        # What is measured is not the jail.
        bare = time_bare_renames(cluster.files.inner, asked.place, asked.units)
        spent, calls = Counter(), Counter()  # type: ignore[var-annotated]
        metered = replace(cluster, **{name: Metered(name, getattr(cluster, name).inner, spent, calls) for name in SEAMS})
        overlaps = Overlaps("files", cluster.files.inner, spent, calls)
        layout = read_layout(choose_run())
        asking = Calls(layout) if layout.bench else None
        begin = time.perf_counter()
        gaps = compact(replace(metered, files=overlaps) if asked.join else metered, asked.join)
        took = time.perf_counter() - begin
        measured = {"overlap of a join": overlaps.ms} if asked.join else {"gap of a swap": gaps}
        report(asked.units * asked.files, opened, took, {**measured, "two bare renames": bare}, spent, calls)
        if asking:
            asked_for, _ = asking.stop(lambda _path: "")
            report_calls(asked_for, asked.units)
        print(
            f"driver: Python {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB, JVM {jvm_peak_mib(spark):.0f} MiB at most"
        )
        spark.sql(f"DROP DATABASE {DATABASE} CASCADE")
        cluster.files.inner.delete_tree(asked.place)


def make_table(spark: Any, place: str, units: int, files: int) -> None:
    """Partitions with few small files: one Parquet file of 100 rows, copied on HDFS, because Spark would write only 15 a second."""
    spark.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")
    spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{place}'")
    table = f"{DATABASE}.events"
    spark.sql(f"CREATE EXTERNAL TABLE {table} (id BIGINT, text STRING) PARTITIONED BY (dt INT) STORED AS PARQUET LOCATION '{place}/events'")
    spark.range(0, 100, 1, 1).selectExpr("id", "concat('row ', id) text").write.mode("overwrite").parquet(f"{place}/seed")
    jvm, conf = spark._jvm, spark.sparkContext._jsc.hadoopConfiguration()
    fs = jvm.org.apache.hadoop.fs.FileSystem.get(conf)
    (seed,) = (status.getPath() for status in fs.listStatus(jvm.org.apache.hadoop.fs.Path(f"{place}/seed")) if status.getLen())

    def copy(number: int) -> None:
        target = jvm.org.apache.hadoop.fs.Path(f"{place}/events/dt={number // files}/part-{number % files:05d}.parquet")
        jvm.org.apache.hadoop.fs.FileUtil.copy(fs, seed, fs, target, False, conf)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(copy, range(units * files)))
    spark.sql(f"ALTER TABLE {table} ADD " + " ".join(f"PARTITION (dt={number})" for number in range(units)))


def time_bare_renames(files: Any, place: str, times: int) -> List[float]:
    """Milliseconds from the start of the first rename to the end of the second."""
    live, ready, retired = (f"{place}/bare/{name}" for name in ("live", "ready", "retired"))
    gaps = []
    for number in range(times):
        for directory in (live, ready, retired):
            files.make_directory(f"{directory}/{number}")
        begin = time.perf_counter()
        files.rename_exact(f"{live}/{number}", f"{retired}/{number}.old")
        files.rename_exact(f"{ready}/{number}", f"{live}/{number}")
        gaps.append((time.perf_counter() - begin) * 1000)
    return gaps


def compact(cluster: Any, join: bool) -> List[float]:
    more = {"exchange": JOINED, "fewest_joined": 2, "read_by_llap": False} if join else {}
    settings = Settings(min_quiet_ms=0, backup_table=False, **more)
    (table,) = compact_swap(a_context(cluster, Selection(databases=(DATABASE,)), "20260101t020304z-0000", settings)).tables
    if table.problem:
        raise SystemExit(f"bench: {table.problem}")
    failed = [unit for unit in table.units if unit.outcome is not Outcome.SWAPPED]
    # A busy machine needs more than 50 ms for a rename now and then, and the unit is left for another run.
    if [unit for unit in failed if not (join and unit.why and unit.why.code is Code.KEEPS_CHANGING)]:
        raise SystemExit(f"bench: {len(failed)} units were not exchanged: {failed[0]}")
    if failed:
        print(f"{len(failed)} units were left: {failed[0].reason}")
    return [unit.gap_ms for unit in table.units if unit.gap_ms is not None]


def report(files: int, opened: float, took: float, rows: Dict[str, List[float]], spent: Counter, calls: Counter) -> None:
    """The last of the rows is what the first is compared with."""
    gaps, *_, bare = rows.values()
    print(f"{files} files in {len(gaps)} units: {took:.1f} s, {files / took:.0f} files/s; Spark and the metastore opened in {opened:.1f} s")
    for name, values in rows.items():
        ordered = sorted(values)
        at_99 = ordered[int(len(ordered) * 0.99)]
        print(f"{name:18} median {statistics.median(ordered):6.1f} ms   99 % {at_99:6.1f} ms   worst {ordered[-1]:6.1f} ms")
    print(f"ratio of medians   {statistics.median(gaps) / statistics.median(bare):.1f}")
    for name, seconds in spent.most_common(12):
        print(f"{name:30} {seconds:8.2f} s  {seconds / took:4.0%}  {calls[name]} calls")
    print(f"{'elsewhere':30} {took - sum(spent.values()):8.2f} s  {1 - sum(spent.values()) / took:4.0%}")


def report_calls(calls: Counter, units: int) -> None:
    """Other clients' calls too, such as the metastore's."""
    print(
        f"{sum(calls.values()) / units:.1f} NameNode calls for each unit: "
        + ", ".join(f"{n / units:.1f} {name}" for name, n in calls.most_common(12))
    )


def jvm_peak_mib(spark: Any) -> float:
    """The driver JVM's peak resident memory."""
    process = spark._jvm.java.lang.ProcessHandle.current().pid()
    (line,) = (line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
