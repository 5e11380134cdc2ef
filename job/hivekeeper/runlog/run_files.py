"""The text files in a run's directory: plans and certificates (docs/on-disk.md).

Pure: values to JSON and back. Paths in records are relative to the table's location, so that they stay valid
when a NameNode or nameservice is renamed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import Column, Digest, Partition, Storage, Table, Unit
from hivekeeper.names import RunId, UnitNumber
from hivekeeper.runlog.manifests import ManifestFile

PLAN_VERSION = 1

COMPACT_SWAP, ROLLBACK, CLEANUP, BACKUP, PIN, UNPIN = "compact-swap", "rollback", "cleanup", "backup", "pin", "unpin"


class UnreadableRecord(Exception):
    """A record that cannot be read; the message says which and why."""


class NewerRecord(UnreadableRecord):
    """A record in a format of a newer version that this one does not know."""


@dataclass(frozen=True)
class BackupPlace:
    """Where a run put the former files of one unit; `place` is relative to the control directory."""

    run: RunId
    number: UnitNumber
    place: str


@dataclass(frozen=True)
class PlannedUnit:
    """A unit in a plan file; `live` is absolute here.

    `manifest` holds the files that leave live; for a cleanup, those that the backup must consist of. `backup` is what a
    rollback restores or a cleanup discards. `expected` are the files that live must hold afterwards: what a rollback
    restores; for a cleanup, what the newest run put there, () if live no longer belongs to this table. `digest` is the
    digest in a former run's certificate, valid for both sides of a rollback.
    """

    number: UnitNumber
    unit: Unit
    manifest: Tuple[ManifestFile, ...]
    markers: Tuple[str, ...] = ()
    backup: Optional[BackupPlace] = None
    expected: Tuple[ManifestFile, ...] = ()
    digest: Optional[Digest] = None

    @property
    def name(self) -> str:
        return self.unit.name

    @property
    def live(self) -> str:
        return self.unit.live

    @property
    def label(self) -> str:
        return self.unit.label

    @property
    def data_files(self) -> int:
        """How many files of the manifest hold rows."""
        return sum(1 for file in self.manifest if file.holds_rows)

    @property
    def data_bytes(self) -> int:
        return sum(file.length for file in self.manifest if file.holds_rows)

    @property
    def partition(self) -> Partition:
        """The partition as planned, for re-creating it if auto-discovery dropped it."""
        return Partition(self.unit.name, self.unit.values, self.unit.live, self.unit.storage, self.unit.parameters)


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run. `table` is the definition at that time, `backup_table` the table that shows the old files, "" for none.

    `record` is the run whose record describes the units: this one, or an earlier `backup`. `discard` says how a cleanup
    removes files, delete or trash; `records` are the directories of the `backup` runs whose records it drops.
    """

    run: RunId
    operation: str
    table: Table
    units: Tuple[PlannedUnit, ...]
    backup_table: str = ""
    record: str = ""
    discard: str = ""
    records: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Certificate:
    """The evidence of one unit's proof, and what its output consists of."""

    unit: UnitNumber
    partition: str
    files: Mapping[str, int]
    rows: int
    digest: Digest
    source_files: int
    source_bytes: int
    codec: str
    schema: str
    file_rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def total_bytes(self) -> int:
        return sum(self.files.values())


def is_inside(path: str, root: str) -> bool:
    """Whether a path can be expressed relative to the table's location."""
    return path == root or path.startswith(root + "/")


def relative(path: str, root: str) -> str:
    """The path relative to the root, `.` for the root itself. Raises ValueError for a path that is not below it."""
    if not is_inside(path, root):
        raise ValueError(f"{path} is not below {root}")
    return path[len(root) + 1 :] or "."


def absolute(path: str, root: str) -> str:
    return root if path == "." else names.join(root, path)


def plan_to_text(plan: RunPlan, created_ms: int) -> str:
    root = plan.table.location
    document = {
        "version": PLAN_VERSION,
        "run": plan.run,
        "operation": plan.operation,
        "created": created_ms,
        "table": plan.table.full_name,
        "location": root,
        "definition": _table_to_dict(plan.table),
        "backupTable": plan.backup_table,
        "record": plan.record,
        "discard": plan.discard,
        "records": list(plan.records),
        "units": [_unit_to_dict(unit, root) for unit in plan.units],
    }
    return json.dumps(document, ensure_ascii=False)


def _unit_to_dict(unit: PlannedUnit, root: str) -> Dict[str, Any]:
    return {
        "unit": unit.number,
        "partition": unit.name,
        "values": list(unit.unit.values),
        "live": relative(unit.live, root),
        "storage": _storage_to_dict(unit.unit.storage),
        "parameters": dict(unit.unit.parameters),
        "markers": list(unit.markers),
        "files": files_to_lists(unit.manifest),
        "backup": {"run": unit.backup.run, "unit": unit.backup.number, "place": unit.backup.place} if unit.backup else None,
        "expected": files_to_lists(unit.expected),
        "digest": asdict(unit.digest) if unit.digest else None,
    }


def files_to_lists(files: Iterable[ManifestFile]) -> Any:
    return [[file.name, file.length, file.mtime_ms, file.file_id] for file in files]


def plan_from_text(text: str, root: str, where: str) -> RunPlan:
    """Read a plan; `where` names the file. Raises UnreadableRecord."""
    try:
        document = json.loads(text)
        if document["version"] > PLAN_VERSION:
            raise NewerRecord(f"{where} was written by a newer Hivekeeper (plan version {document['version']})")
        table = _table_from_dict(document["definition"], root)
        units = tuple(_unit_from_dict(unit, document["table"], root) for unit in document["units"])
        return RunPlan(
            document["run"],
            document["operation"],
            table,
            units,
            document["backupTable"],
            document["record"],
            document["discard"],
            tuple(document["records"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableRecord(f"{where} cannot be read ({error})") from error


def _table_to_dict(table: Table) -> Dict[str, Any]:
    return {
        "database": table.database,
        "name": table.name,
        "kind": table.kind,
        "location": table.location,
        "storage": _storage_to_dict(table.storage),
        "columns": [asdict(column) for column in table.columns],
        "partitionColumns": [asdict(column) for column in table.partition_columns],
        "parameters": dict(table.parameters),
        "bucketColumns": list(table.bucket_columns),
        "buckets": table.buckets,
        "sortColumns": list(table.sort_columns),
        "skewedColumns": list(table.skewed_columns),
        "owner": table.owner,
        "createTime": table.create_time,
    }


def _table_from_dict(definition: Mapping[str, Any], root: str) -> Table:
    return Table(
        database=definition["database"],
        name=definition["name"],
        kind=definition["kind"],
        location=root,
        storage=_storage_from_dict(definition["storage"]),
        columns=tuple(Column(**column) for column in definition["columns"]),
        partition_columns=tuple(Column(**column) for column in definition["partitionColumns"]),
        parameters=definition["parameters"],
        bucket_columns=tuple(definition["bucketColumns"]),
        buckets=definition["buckets"],
        sort_columns=tuple(definition["sortColumns"]),
        skewed_columns=tuple(definition["skewedColumns"]),
        owner=definition["owner"],
        create_time=definition["createTime"],
    )


def _storage_to_dict(storage: Storage) -> Dict[str, Any]:
    return {
        "inputFormat": storage.input_format,
        "outputFormat": storage.output_format,
        "serde": storage.serde,
        "serdeParameters": dict(storage.serde_parameters),
    }


def _storage_from_dict(storage: Mapping[str, Any]) -> Storage:
    return Storage(storage["inputFormat"], storage["outputFormat"], storage["serde"], storage["serdeParameters"])


def _unit_from_dict(unit: Mapping[str, Any], table: str, root: str) -> PlannedUnit:
    live = absolute(unit["live"], root)
    restored = Unit(table, unit["partition"], tuple(unit["values"]), live, _storage_from_dict(unit["storage"]), unit["parameters"])
    known = unit["backup"]
    backup = BackupPlace(known["run"], known["unit"], known["place"]) if known else None
    manifest, expected = (tuple(ManifestFile(*file) for file in unit[key]) for key in ("files", "expected"))
    digest = Digest(**unit["digest"]) if unit["digest"] else None
    return PlannedUnit(unit["unit"], restored, manifest, tuple(unit["markers"]), backup, expected, digest)


def certificates_to_text(certificates: Iterable[Certificate]) -> str:
    return "".join(json.dumps(_certificate_to_dict(certificate), ensure_ascii=False) + "\n" for certificate in certificates)


def _certificate_to_dict(certificate: Certificate) -> Dict[str, Any]:
    return {
        "unit": certificate.unit,
        "partition": certificate.partition,
        "files": dict(certificate.files),
        "fileRows": dict(certificate.file_rows),
        "rows": certificate.rows,
        "digest": asdict(certificate.digest),
        "codec": certificate.codec,
        "schema": certificate.schema,
        "sourceFiles": certificate.source_files,
        "sourceBytes": certificate.source_bytes,
    }


def certificates_from_text(text: str, where: str) -> Tuple[Certificate, ...]:
    """Read certificates; `where` names the file. Raises UnreadableRecord."""
    try:
        return tuple(_certificate_from_dict(json.loads(line)) for line in text.split("\n") if line)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableRecord(f"{where} cannot be read ({error})") from error


def _certificate_from_dict(row: Mapping[str, Any]) -> Certificate:
    return Certificate(
        unit=row["unit"],
        partition=row["partition"],
        files=row["files"],
        rows=row["rows"],
        digest=Digest(**row["digest"]),
        source_files=row["sourceFiles"],
        source_bytes=row["sourceBytes"],
        codec=row["codec"],
        schema=row["schema"],
        file_rows=row["fileRows"],
    )
