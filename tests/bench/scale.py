"""Measure the memory and time that one very large table takes until it is planned: FILES=1000000 files in UNITS=100000 partitions.

  make bench-scale [FILES=1000000] [UNITS=100000]

Real files on local disk (links to a thousand small ones) and a driver of 1 GB; the metastore alone is one in memory. Prints for each step
the seconds, and the peak memory of Python and of the JVM's heap.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, List, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from bench.memory import MIB, Meter
from hivekeeper.cluster.driver import Driver
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.row_files import ParquetRowFiles
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.commands import planning
from hivekeeper.config.settings import Settings
from hivekeeper.model import OWNER_ONLY, Partition, Table
from hivekeeper.names import RunId, RunPaths
from hivekeeper.plan import compaction
from hivekeeper.plan.capacity import RoomForValues
from hivekeeper.ports import Cluster
from hivekeeper.runlog import store
from hivekeeper.runlog.history import History
from hivekeeper.runlog.run_files import plan_pieces
from hivekeeper.steps.observe import observe_table
from support.builders import PARQUET, a_table
from support.fakes.files import FakeFiles
from support.fakes.metastore import FakeMetastore
from support.world import TestClock

SEEDS = 1000
RUN = RunId("20260101t000000z-0000")
# As long as those that Spark writes.
FILE = "part-{:05d}-2f1cbb0c-3d1e-4f3c-9d6e-0a8a7f4f1c11.c000.snappy.parquet"


def make_seeds(place: Path, columns: int) -> List[Path]:
    place.mkdir()
    seeds = [place / str(number) for number in range(SEEDS)]
    for number, path in enumerate(seeds):
        rows = {f"column_{nth}": pa.array(range(number, number + 10 + number % 7), pa.int64()) for nth in range(columns)}
        pq.write_table(pa.table(rows), path)
    return seeds


def fill(table: Table, files: int, units: int, seeds: List[Path]) -> List[Partition]:
    partitions = []
    for unit in range(units):
        value = f"p{unit:06d}"
        directory = Path(table.location[len("file:") :]) / f"dt={value}"
        directory.mkdir(parents=True)
        for number in range(files // units):
            os.link(seeds[(unit * 31 + number) % SEEDS], directory / FILE.format(number))
        parameters = {"transient_lastDdlTime": str(1767225600 + unit), "numFiles": "10"}
        partitions.append(Partition(f"dt={value}", (value,), f"{table.location}/dt={value}", PARQUET, parameters))
    return partitions


class Written(NamedTuple):
    """Where a plan was written."""

    cluster: Cluster
    table: Table
    paths: RunPaths


def measure(meter: Meter, gateway: Gateway, home: Path, asked: argparse.Namespace) -> Written:
    table = a_table(["dt"], create_time=5, location=f"file:{home}/events")
    in_memory = FakeFiles()
    metastore = FakeMetastore(in_memory)
    metastore.catalog.add_table(table, fill(table, asked.files, asked.units, make_seeds(home / "seeds", asked.columns)))
    files: Any = HadoopFiles(gateway)
    clock: Any = TestClock(in_memory)
    clock.now_ms = lambda: 4_000_000_000_000
    cluster = Cluster(
        files, metastore, SparkRows(gateway), ParquetRowFiles(gateway), clock, "etl", "edge1", lambda: "app-1", "3.5.9", "UTC"
    )
    settings = Settings()
    print(f"{asked.files} files of {asked.columns} columns in {asked.units} partitions", flush=True)
    observed = meter.measure("observe", lambda: observe_table(cluster, table, settings))
    assert observed.reason is None, observed.reason
    assert sum(unit.sizes.files for unit in observed.units) == asked.files
    plan = meter.measure("plan", lambda: planning.make_plan(cluster, observed, History(), settings, RUN, RoomForValues()))
    assert len(plan.units) == asked.units, (len(plan.units), plan.refused[:1])
    known = compaction.to_run_plan(plan)
    paths = observed.control.run(RUN)
    files.make_directory(paths.top)
    why = meter.measure("check that it can be read back", lambda: store.why_not_readable(paths, known, 1))
    assert not why, why
    meter.measure("write it", lambda: store.write_durably(files, paths.plan, plan_pieces(known, 1), OWNER_ONLY))
    print(f"plan.json: {Path(paths.plan[len('file:') :]).stat().st_size // MIB} MiB", flush=True)
    return Written(cluster, table, paths)


def measure_recovery(meter: Meter, written: Written, asked: argparse.Namespace) -> None:
    """What a run holds that finds this one interrupted."""
    read = meter.measure("read it", lambda: store.read_plan(*written))
    assert read is not None
    assert len(read.units) == asked.units


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--memory", default="1g", help="of the driver's JVM")
    asked = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="bench-scale-"))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    driver = Driver({"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.driver.memory": asked.memory}, "ERROR")
    try:
        gateway = Gateway(driver)
        meter = Meter(gateway)
        measure_recovery(meter, measure(meter, gateway, home, asked), asked)
    finally:
        driver.stop()
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
