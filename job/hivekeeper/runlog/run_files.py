"""What a run's own directory holds, as text: plans and certificates (docs/on-disk.md).

Pure: values to JSON and back. Paths in records are relative to the table's location, so that they stay true
when a NameNode or nameservice changes its name.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import Column, Digest, Partition, Storage, Table, Unit
from hivekeeper.runlog.manifests import RecordedFile

PLAN_VERSION = 1

COMPACT_SWAP, ROLLBACK, CLEANUP, BACKUP, PIN, UNPIN = "compact-swap", "rollback", "cleanup", "backup", "pin", "unpin"


class UnreadableRecord(Exception):
    """A record that cannot be read; the message says which and why."""


class NewerRecord(UnreadableRecord):
    """A record that a newer version wrote in a way that this one does not know."""


@dataclass(frozen=True)
class BackupPlace:
    """Where the former files of one unit lie: made by a run, below the control directory."""

    run: str
    number: int
    path: str


@dataclass(frozen=True)
class RecordedUnit:
    """A unit as a plan file holds it; `live` is absolute again.

    `manifest` holds the files that leave live; for a cleanup, those that the backup must consist of. `backup` is what a
    rollback restores or a cleanup discards. `expected` are the files that live must hold afterwards: what a rollback brings
    back; for a cleanup, what the newest run put there, () where live is not this table's any more. `digest` is what a former
    run's certificate says of both sides of a rollback.
    """

    number: int
    unit: Unit
    manifest: Tuple[RecordedFile, ...]
    markers: Tuple[str, ...] = ()
    backup: Optional[BackupPlace] = None
    expected: Tuple[RecordedFile, ...] = ()
    digest: Optional[Digest] = None

    @property
    def partition(self) -> Partition:
        """The partition as it was, for putting it back where auto-discovery dropped it."""
        return Partition(self.unit.name, self.unit.values, self.unit.live, self.unit.storage, self.unit.parameters)


@dataclass(frozen=True)
class RecordedPlan:
    """What a run set out to do. `table` is the definition as it was, `backup_table` the table that shows the old files, "" for none.

    `record` is the run whose record describes the units: this one, or an earlier `backup`. `discard` says how a cleanup
    removes files, delete or trash; `records` are the directories of the `backup` runs whose records it drops.
    """

    run: str
    operation: str
    table: Table
    units: Tuple[RecordedUnit, ...]
    backup_table: str = ""
    record: str = ""
    discard: str = ""
    records: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Certificate:
    """The evidence of one unit's proof, and what its output consists of."""

    unit: int
    name: str
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
    """Whether a path can be written relative to the table's location."""
    return path == root or path.startswith(root + "/")


def relative(path: str, root: str) -> str:
    """`.` for the root itself. Raises ValueError for a path that is not below it."""
    if not is_inside(path, root):
        raise ValueError(f"{path} is not below {root}")
    return path[len(root) + 1 :] or "."


def absolute(path: str, root: str) -> str:
    return root if path == "." else names.join(root, path)


def plan_to_text(plan: RecordedPlan, created_ms: int) -> str:
    root = plan.table.location
    document = {
        "version": PLAN_VERSION,
        "run": plan.run,
        "operation": plan.operation,
        "created": created_ms,
        "table": plan.table.full_name,
        "location": root,
        "definition": asdict(plan.table),
        "backupTable": plan.backup_table,
        "record": plan.record,
        "discard": plan.discard,
        "records": list(plan.records),
        "units": [_unit_to_dict(unit, root) for unit in plan.units],
    }
    return json.dumps(document, ensure_ascii=False)


def _unit_to_dict(unit: RecordedUnit, root: str) -> Dict[str, Any]:
    return {
        "unit": unit.number,
        "partition": unit.unit.name,
        "values": list(unit.unit.values),
        "live": relative(unit.unit.live, root),
        "storage": asdict(unit.unit.storage),
        "parameters": dict(unit.unit.parameters),
        "markers": list(unit.markers),
        "files": files_to_lists(unit.manifest),
        "backup": asdict(unit.backup) if unit.backup else None,
        "expected": files_to_lists(unit.expected),
        "digest": asdict(unit.digest) if unit.digest else None,
    }


def files_to_lists(files: Iterable[RecordedFile]) -> Any:
    return [[file.name, file.length, file.mtime_ms, file.file_id] for file in files]


def plan_from_text(text: str, root: str, where: str) -> RecordedPlan:
    """Raises UnreadableRecord; `where` names the file."""
    try:
        document = json.loads(text)
        if document["version"] > PLAN_VERSION:
            raise NewerRecord(f"{where} was written by a newer Hivekeeper (plan version {document['version']})")
        table = _table_from_dict(document["definition"], root)
        units = tuple(_unit_from_dict(unit, document["table"], root) for unit in document["units"])
        return RecordedPlan(
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


def _table_from_dict(definition: Mapping[str, Any], root: str) -> Table:
    lists = {name: tuple(definition[name]) for name in ("bucket_columns", "sort_columns", "skewed_columns")}
    columns = {name: tuple(Column(**column) for column in definition[name]) for name in ("columns", "partition_columns")}
    return Table(**{**definition, **lists, **columns, "storage": Storage(**definition["storage"]), "location": root})


def _unit_from_dict(unit: Mapping[str, Any], table: str, root: str) -> RecordedUnit:
    live = absolute(unit["live"], root)
    restored = Unit(table, unit["partition"], tuple(unit["values"]), live, Storage(**unit["storage"]), unit["parameters"])
    backup = BackupPlace(**unit["backup"]) if unit["backup"] else None
    manifest, expected = (tuple(RecordedFile(*file) for file in unit[key]) for key in ("files", "expected"))
    digest = Digest(**unit["digest"]) if unit["digest"] else None
    return RecordedUnit(unit["unit"], restored, manifest, tuple(unit["markers"]), backup, expected, digest)


def certificates_to_text(certificates: Iterable[Certificate]) -> str:
    return "".join(json.dumps(asdict(certificate), ensure_ascii=False) + "\n" for certificate in certificates)


def certificates_from_text(text: str, where: str) -> Tuple[Certificate, ...]:
    """Raises UnreadableRecord."""
    try:
        rows = [json.loads(line) for line in text.split("\n") if line]
        return tuple(Certificate(**{**row, "digest": Digest(**row["digest"])}) for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableRecord(f"{where} cannot be read ({error})") from error
