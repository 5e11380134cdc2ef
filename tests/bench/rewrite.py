"""Measure how fast many small Parquet files become few: FILES files in UNITS partitions, copied as they are stored, and rewritten as rows.

  make bench-rewrite [FILES=5000] [UNITS=100] [TURNS=3]

Local files, `local[2]`. Both ways are proved in full: footers, and a digest of sources and outputs. The two take turns in one session,
so they share the state of the machine and of the JVM; the first turn is cold for both. Prints wall and CPU seconds of each turn, and the
median of the ratios of all but the first turn.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import List, NamedTuple

from hivekeeper import names
from hivekeeper.cluster.driver import Driver
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.model import StageBatch
from support.data_files import batch_of, listed

ROWS_PER_FILE = 280
COLUMNS = (
    "id",
    "id % 5000 AS user_id",
    "element_at(array('view', 'click', 'buy'), CAST(id % 3 + 1 AS INT)) AS kind",
    "rand(7) * 100 AS amount",
    "timestamp_micros(1700000000000000 + id * 1000003) AS ts",
    "sha2(CAST(id AS STRING), 256) AS payload",
)


class Cost(NamedTuple):
    wall: float
    cpu: float


class Meter:
    """Wall and CPU seconds of this process and its JVM, both in this machine's /proc."""

    def __init__(self, jvm: int) -> None:
        self.processes = (os.getpid(), jvm)
        self.begun = self._now()

    def _now(self) -> Cost:
        ticks = 0
        for process in self.processes:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return Cost(time.perf_counter(), ticks / os.sysconf("SC_CLK_TCK"))

    def stop(self) -> Cost:
        now = self._now()
        return Cost(now.wall - self.begun.wall, now.cpu - self.begun.cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--units", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3, help="at least 2: the first one is cold")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-rewrite-") as directory:
        top = Path(directory)
        options = {"spark.driver.memory": "2g", "spark.sql.warehouse.dir": f"file:{top}/w", "spark.ui.showConsoleProgress": "false"}
        driver = Driver({"spark.master": "local[2]", **options}, "ERROR")
        gateway, spark = Gateway(driver), driver.session
        units = write_tables(spark, top / "source", asked.files, asked.units)
        rows = SparkRows(gateway)
        jvm = int(str(gateway.jvm.java.lang.ProcessHandle.current().pid()))
        batch = batch_of(rows, "parquet", top / "stage", units)
        size = sum(file.length for unit in batch.units for file in unit.files)
        print(
            f"{asked.files} files in {asked.units} partitions, {size >> 20} MiB, {asked.files * ROWS_PER_FILE} rows; Spark {spark.version}"
        )
        report([(measure(rows, batch, jvm, True), measure(rows, batch, jvm, False)) for _ in range(asked.turns)])


def write_tables(spark, top: Path, files: int, units: int) -> List[Path]:
    each = files // units
    frame = spark.range(0, units * each * ROWS_PER_FILE, 1, units * each).selectExpr(*COLUMNS)
    frame.write.option("compression", "snappy").parquet(f"file:{top}/all")
    written = sorted(path for path in (top / "all").iterdir() if path.name.startswith("part-"))
    directories = [top / f"unit-{number:05d}" for number in range(units)]
    for number, directory in enumerate(directories):
        directory.mkdir()
        for path in written[number * each : (number + 1) * each]:
            path.rename(directory / path.name)
    return directories


def measure(rows: SparkRows, batch: StageBatch, jvm: int, is_copied: bool) -> Cost:
    """Footers, stage and proof, as a compaction does them."""
    batch = replace(batch, is_copied=is_copied)
    meter = Meter(jvm)
    rows.footers("parquet", {unit.number: unit.files for unit in batch.units}, is_copied)
    read = rows.write_stage(batch)
    written = rows.read_stage(batch)
    outputs = Path(batch.target.partition(":")[2])
    rows.footers("parquet", {unit.number: listed(outputs / f"{names.UNIT_COLUMN}={unit.number}") for unit in batch.units}, is_copied)
    cost = meter.stop()
    if read != written or any(content.failed for content in read.values()):
        sys.exit("the output differs from the source")
    shutil.rmtree(outputs)
    return cost


def report(turns: list) -> None:
    for number, (copied, made) in enumerate(turns):
        which = "cold" if number == 0 else "warm"
        print(f"{which}: copied {copied.wall:6.1f} s ({copied.cpu:6.1f} s CPU)   as rows {made.wall:6.1f} s ({made.cpu:6.1f} s CPU)")
    warm = turns[1:]
    wall, cpu = (statistics.median(getattr(copied, what) / getattr(made, what) for copied, made in warm) for what in ("wall", "cpu"))
    print(f"a copy takes {wall:.2f} of the time and {cpu:.2f} of the CPU time (median of {len(warm)} warm turns)")


if __name__ == "__main__":
    main()
