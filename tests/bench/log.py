"""Measure the memory and time that a table's log takes: ENTRIES old entries of FILES files each, then a run over OWN files.

  make bench-log [ENTRIES=150] [FILES=4800] [KEPT=3] [OWN=1000000]

Runs on local files, with a driver of 1 GB. Each entry compacts all files of the previous one, whose backup a cleanup has discarded; the
newest KEPT backups remain. Prints the peak memory of Python and of the JVM's heap, and Python's CPU time. The log is read entry by entry
and by a checkpoint, in turn, and the seconds of both are compared.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Protocol

from bench.memory import MIB, Meter
from hivekeeper import names
from hivekeeper.cluster.driver import Driver
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.model import OWNER_ONLY, Digest, Table, Unit
from hivekeeper.names import ControlPaths, RunId, UnitNumber
from hivekeeper.ports import Cluster, Files
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import Actor, LogEntry, UnitResult, entry_lines, longest_entry, place_of
from hivekeeper.runlog.history import History
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import COMPACT_SWAP, BackupPlace, Certificate, OutputForm, PlannedUnit, RunPlan, plan_pieces
from support.builders import PARQUET, a_table

ACTOR = Actor("etl", "edge1.example.com", "application_1767225600000_0001", "0.1.0")
UNIT = "dt=2026-01-01"
TURNS = 5
# The default of log_retention.
RETENTION_MS = 400 * 86_400_000
CLEANER = RunId("20270101t020304z-0000")


class AnyMeter(Protocol):
    def measure(self, what: str, act: Callable[[], Any]) -> Any: ...


def run_of(version: int) -> RunId:
    return RunId(f"20260101t{version // 3600:02d}{version // 60 % 60:02d}{version % 60:02d}z-0000")


def files_of(version: int, count: int) -> List[ManifestFile]:
    """Names as Spark creates them."""
    return [
        ManifestFile(
            f"part-{nth:05d}-{version:08d}-1f0c-4c1e-9e0b-6d2f.c000.snappy.parquet", 1000 + nth, 1_767_225_600_000 + nth, 16_385 + nth
        )
        for nth in range(count)
    ]


def planned(table: Table, version: int, count: int) -> PlannedUnit:
    unit = Unit(table.full_name, UNIT, ("2026-01-01",), names.join(table.location, UNIT), PARQUET)
    return PlannedUnit(UnitNumber(1), unit, tuple(files_of(version, count)))


def swapped(unit: PlannedUnit, version: int, count: int) -> UnitResult:
    """A result after which live holds the files of the next version."""
    lengths = {file.name: file.length for file in files_of(version + 1, count)}
    certificate = Certificate(
        unit.number,
        UNIT,
        lengths,
        count,
        Digest(count, 1, 2),
        count,
        sum(lengths.values()),
        (OutputForm("message", "snappy"),),
        dict.fromkeys(lengths, 1),
    )
    return UnitResult(unit, Outcome.SWAPPED, certificate, 3.0)


def lines_of_entry(table: Table, version: int, count: int, output: int) -> Iterator[str]:
    unit = planned(table, version, count)
    record = LogEntry(run_of(version), run_of(version), COMPACT_SWAP, 1_767_225_600_000, (swapped(unit, version, output),))
    return entry_lines(record, table, ACTOR, {}, version == 0)


def lines_of_cleanup(table: Table, entries: int, kept: int) -> Iterator[str]:
    """The entry of a cleanup that discarded all backups but the newest."""
    gone = []
    for version in range(entries - kept):
        unit = planned(table, version, 0)
        place = BackupPlace(run_of(version), unit.number, place_of(run_of(version), unit))
        gone.append(UnitResult(PlannedUnit(UnitNumber(version + 1), unit.unit, (), (), place), Outcome.DISCARDED))
    record = LogEntry(CLEANER, CLEANER, "cleanup", 1_767_225_600_000, tuple(gone))
    return entry_lines(record, table, ACTOR, {}, False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=150)
    parser.add_argument("--files", type=int, default=4800, help="files of each entry, before and after")
    parser.add_argument("--kept", type=int, default=3, help="backups that no cleanup has discarded")
    parser.add_argument("--own", type=int, default=1_000_000, help="files of the run that writes its own entry")
    parser.add_argument("--memory", default="1g", help="of the driver")
    asked = parser.parse_args()
    home = tempfile.mkdtemp(prefix="bench-log-")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.driver.memory": asked.memory,
        "spark.sql.warehouse.dir": f"file:{home}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/metastore;create=true",
    }
    driver = Driver(options, "ERROR")
    try:
        gateway = Gateway(driver)
        measure(HadoopFiles(gateway), Meter(gateway), f"file:{home}/events", asked)
    finally:
        driver.stop()
        shutil.rmtree(home)


def measure(files: Files, meter: AnyMeter, location: str, asked: argparse.Namespace) -> None:
    table = a_table(["dt"], create_time=5, location=location)
    control = ControlPaths.of(table.location, True)
    files.make_directory(control.log)
    if asked.entries:
        write_entries(files, table, control, asked)
        history = meter.measure("read all entries", lambda: store.read_history(cluster_of(files), control))
        assert history.next_version == asked.entries + 1
        compare_with_checkpoint(files, control, history)
        del history
    if asked.own:
        measure_own(meter, files, table, control, asked)


def write_entries(files: Files, table: Table, control: ControlPaths, asked: argparse.Namespace) -> None:
    for version in range(asked.entries):
        entry = names.join(control.log, names.log_entry(version))
        files.write_new(entry, lines_of_entry(table, version, asked.files, asked.files))
    files.write_new(names.join(control.log, names.log_entry(asked.entries)), lines_of_cleanup(table, asked.entries, asked.kept))
    size = sum(file.length for file in store.list_log(files, control).entries.values())
    print(f"{asked.entries} entries of {asked.files} files: {size // MIB} MiB on disk", flush=True)


def compare_with_checkpoint(files: Files, control: ControlPaths, told: History) -> None:
    """Read the log without and with a checkpoint of its entries, in turn."""
    content = store.make_checkpoint(cluster_of(files), control, store.list_log(files, control), RETENTION_MS).content
    seconds: Dict[bool, List[float]] = {False: [], True: []}
    for with_checkpoint in [False, True] * TURNS:
        path = names.join(control.log, names.checkpoint(told.next_version - 1))
        if with_checkpoint:
            files.write_new(path, content)
        begin = time.perf_counter()
        history = store.read_history(cluster_of(files), control)
        seconds[with_checkpoint].append(time.perf_counter() - begin)
        assert history == told
        files.delete_tree(path)
    entries, checkpoint = (statistics.median(seconds[each]) for each in (False, True))
    print(
        f"checkpoint: {len(content) / MIB:.2f} MiB; read by entries {entries:.2f} s, by checkpoint {checkpoint:.3f} s: "
        f"{entries / checkpoint:.0f} times (medians of {TURNS})",
        flush=True,
    )


def measure_own(meter: AnyMeter, files: Files, table: Table, control: ControlPaths, asked: argparse.Namespace) -> None:
    """A run over this many files: its plan, its entry, and what the next command reads."""
    version = asked.entries + 1 if asked.entries else 0
    paths = control.run(run_of(version))
    files.make_directory(paths.top)
    plan = RunPlan(run_of(version), COMPACT_SWAP, table, (planned(table, version, asked.own),), record=run_of(version))
    print(f"the entry has {longest_entry(plan) // MIB} MiB at most", flush=True)
    why = meter.measure("check that the plan can be read back", partial(store.why_not_readable, paths, plan, 1))
    assert not why
    meter.measure("write the plan", partial(store.write_durably, files, paths.plan, plan_pieces(plan, 1), OWNER_ONLY))
    print(f"plan: {size_of(files, paths.plan) // MIB} MiB", flush=True)
    del plan
    read = meter.measure("read the plan", lambda: store.read_plan(cluster_of(files), table, paths))
    assert len(read.units[0].manifest) == asked.own
    del read
    entry = names.join(control.log, names.log_entry(version))
    lines = lines_of_entry(table, version, asked.own, max(1, asked.own // 100))
    meter.measure("write the entry", lambda: files.write_new(entry, lines))
    print(f"entry: {size_of(files, entry) // MIB} MiB", flush=True)
    history = meter.measure("read the log with it", lambda: store.read_history(cluster_of(files), control))
    assert len(history.effects[-1].before) == asked.own


def size_of(files: Files, path: str) -> int:
    found = files.stat(path)
    assert found is not None
    return found.length


def cluster_of(files: Files) -> Cluster:
    nothing: Any = None
    return Cluster(files, nothing, nothing, nothing, nothing, "etl", "edge1", lambda: "app-1", "3.5", "UTC")


if __name__ == "__main__":
    main()
