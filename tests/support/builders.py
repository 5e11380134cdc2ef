"""Small values for tests, with defaults for everything a test does not care about."""

from __future__ import annotations

import zlib
from dataclasses import replace

from hivekeeper.model import Column, FileInfo, FooterGroup, Form, Partition, Snapshot, Storage, Table, Unit
from hivekeeper.names import SPARK_PROVIDER
from hivekeeper.plan.eligibility import FORMATS
from hivekeeper.runlog import entry_reader, history, replay

MIB = 2**20
ROOT = "hdfs://nn/warehouse/sales/events"
PARQUET = Storage(*next(triple for triple, name in FORMATS.items() if name == "parquet"))
ORC = Storage(*next(triple for triple, name in FORMATS.items() if name == "orc"))
FORM = Form("message schema {\n  optional int32 id;\n}", "snappy", "spark")


def a_file(name, length=1000, mtime_ms=1000, file_id=None, directory=ROOT, **more):
    path = f"{directory}/{name}"
    return FileInfo(path, length, mtime_ms, is_dir=False, file_id=file_id or zlib.crc32(path.encode()), **more)


def a_directory(name, directory=ROOT):
    return FileInfo(f"{directory}/{name}", 0, 1000, is_dir=True, file_id=7)


def a_snapshot(*entries, mtime_ms=1000):
    return Snapshot(True, file_id=1, mtime_ms=mtime_ms, entries=tuple(entries))


def a_table(partition_columns=(), kind="EXTERNAL_TABLE", storage=PARQUET, name="events", **more):
    columns = tuple(Column(column, "string") for column in partition_columns)
    location = more.pop("location", ROOT.replace("events", name))
    return Table("sales", name, kind, location, storage, (Column("id", "int"),), columns, **more)


def of_spark(table, path, key="path"):
    """The table as Spark writes it that Hive cannot read: its place is in its SerDe's properties, and its location is a placeholder."""
    storage = replace(table.storage, serde_parameters={**table.storage.serde_parameters, key: path})
    location = f"{ROOT.rpartition('/')[0]}/{table.name}-__PLACEHOLDER__"
    return replace(table, location=location, storage=storage, parameters={**table.parameters, SPARK_PROVIDER: "parquet"})


def a_partition(name="dt=2026-01-01", location=None, storage=PARQUET):
    values = tuple(part.partition("=")[2] for part in name.split("/"))
    return Partition(name, values, location or f"{ROOT}/{name}", storage)


def a_unit(name="dt=2026-01-01", live=None):
    values = tuple(part.partition("=")[2] for part in name.split("/")) if name else ()
    return Unit("sales.events", name, values, live or (f"{ROOT}/{name}" if name else ROOT), PARQUET)


def a_group(rows, form=FORM, columns=None):
    return FooterGroup(form, dict(rows), columns or {}, ())


def read_log(entries):
    """A table's log, from the texts of its entries by number."""
    read = {version: entry_reader.read_entry(text.split("\n"), version, f"log entry {version}") for version, text in entries.items()}
    return history.reconcile(read, "log")


def files_at(entries, version):
    """The files at a version, from the texts of a log's entries by number."""
    return replay.files_at((f"log entry {number}", entries[number].split("\n")) for number in sorted(entries) if number <= version)
