"""What lies on disk, as text: plans, certificates and log entries (docs/on-disk.md).

Pure: values to JSON and back. Paths in records are relative to the table's location, so that they stay true
when a NameNode or nameservice changes its name.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.model import Digest, FileInfo, FooterGroup, Partition, Storage, Table, Unit
from hivekeeper.plan.compaction import CompactionPlan, PlannedUnit
from hivekeeper.plan.look import RecordedFile

PLAN_VERSION = 1
READER_VERSION = 1
WRITER_VERSION = 1

# Outcomes of units whose live directory was away, or may have been: a late committer may have met the gap.
TOUCHED = frozenset(["swapped", "put back", "not swapped"])


class UnreadableRecord(Exception):
    """A record that this version cannot read; the message says which and why."""


@dataclass(frozen=True)
class RecordedUnit:
    """A unit as a plan file holds it; `live` is absolute again."""

    number: int
    unit: Unit
    manifest: Tuple[RecordedFile, ...]
    markers: Tuple[str, ...]

    @property
    def partition(self) -> Partition:
        """The partition as it was, for putting it back where auto-discovery dropped it."""
        return Partition(self.unit.name, self.unit.values, self.unit.live, self.unit.storage, self.unit.parameters)


@dataclass(frozen=True)
class RecordedPlan:
    run: str
    operation: str
    table: str
    units: Tuple[RecordedUnit, ...]


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


def relative(path: str, root: str) -> str:
    """`.` for the root itself. Raises ValueError for a path that is not below it."""
    if path == root:
        return "."
    if not path.startswith(root + "/"):
        raise ValueError(f"{path} is not below {root}")
    return path[len(root) + 1 :]


def absolute(path: str, root: str) -> str:
    return root if path == "." else names.join(root, path)


def plan_to_text(plan: CompactionPlan, created_ms: int) -> str:
    root = plan.table.location
    document = {
        "version": PLAN_VERSION,
        "run": plan.run,
        "operation": "compact-swap",
        "created": created_ms,
        "table": plan.table.full_name,
        "location": root,
        "batches": [[unit.number for unit in batch.units] for batch in plan.batches],
        "units": [_unit_to_dict(unit, root) for unit in plan.units],
    }
    return json.dumps(document, ensure_ascii=False)


def _unit_to_dict(planned: PlannedUnit, root: str) -> Dict[str, Any]:
    return {
        "unit": planned.number,
        "partition": planned.unit.name,
        "values": list(planned.unit.values),
        "live": relative(planned.unit.live, root),
        "storage": asdict(planned.unit.storage),
        "parameters": dict(planned.unit.parameters),
        "markers": list(planned.markers),
        "outputs": planned.outputs,
        "files": [[file.name, file.length, file.mtime_ms, file.file_id] for file in planned.manifest],
    }


def plan_from_text(text: str, root: str, where: str) -> RecordedPlan:
    """Raises UnreadableRecord; `where` names the file."""
    try:
        document = json.loads(text)
        if document["version"] > PLAN_VERSION:
            raise UnreadableRecord(f"{where} was written by a newer Hivekeeper (plan version {document['version']})")
        units = tuple(_unit_from_dict(unit, document["table"], root) for unit in document["units"])
        return RecordedPlan(document["run"], document["operation"], document["table"], units)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableRecord(f"{where} cannot be read ({error})") from error


def _unit_from_dict(unit: Mapping[str, Any], table: str, root: str) -> RecordedUnit:
    live = absolute(unit["live"], root)
    restored = Unit(table, unit["partition"], tuple(unit["values"]), live, Storage(**unit["storage"]), unit["parameters"])
    manifest = tuple(RecordedFile(*file) for file in unit["files"])
    return RecordedUnit(unit["unit"], restored, manifest, tuple(unit["markers"]))


def recorded(plan: CompactionPlan) -> RecordedPlan:
    """The plan as a reader of its file would see it."""
    units = tuple(RecordedUnit(unit.number, unit.unit, unit.manifest, unit.markers) for unit in plan.units)
    return RecordedPlan(plan.run, "compact-swap", plan.table.full_name, units)


def certify(planned: PlannedUnit, source: FooterGroup, output: FooterGroup, listed: Iterable[FileInfo], digest: Digest) -> Certificate:
    """The certificate of a proved unit; `listed` is its stage, markers included."""
    return Certificate(
        unit=planned.number,
        name=planned.unit.name,
        files={entry.name: entry.length for entry in listed},
        rows=source.row_count,
        digest=digest,
        source_files=planned.files,
        source_bytes=planned.total_bytes,
        codec=output.form.codec,
        schema=output.form.schema,
        file_rows={names.base(path): rows for path, rows in output.rows.items()},
    )


def certificates_to_text(certificates: Iterable[Certificate]) -> str:
    return "".join(json.dumps(asdict(certificate), ensure_ascii=False) + "\n" for certificate in certificates)


def certificates_from_text(text: str, where: str) -> Tuple[Certificate, ...]:
    """Raises UnreadableRecord."""
    try:
        rows = [json.loads(line) for line in text.splitlines()]
        return tuple(Certificate(**{**row, "digest": Digest(**row["digest"])}) for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableRecord(f"{where} cannot be read ({error})") from error


@dataclass(frozen=True)
class Actor:
    """Who runs, for the log."""

    user: str
    host: str
    application_id: str
    version: str


@dataclass(frozen=True)
class UnitRecord:
    """What became of one unit, for the log. `outcome`: swapped, overwritten, put back, not swapped, given up, differs, failed."""

    recorded: RecordedUnit
    outcome: str
    certificate: Optional[Certificate] = None
    gap_ms: Optional[float] = None
    late_files: Tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class RunRecord:
    """A finished run, for the log. `directory` is where its retired units lie, `RUN` or `RUN.tN`."""

    run: str
    directory: str
    operation: str
    now_ms: int
    units: Tuple[UnitRecord, ...]
    recovered_by: Optional[str] = None


def entry_to_text(record: RunRecord, table: Table, actor: Actor, parameters: Mapping[str, Any], first: bool) -> str:
    """One log entry: JSON actions in the shape of the Delta transaction log, one a line."""
    actions: List[Dict[str, Any]] = []
    if first:
        actions.append({"protocol": {"minReaderVersion": READER_VERSION, "minWriterVersion": WRITER_VERSION}})
    actions.append({"metaData": _table_to_dict(table)})
    actions.append({"commitInfo": _commit_info(record, actor, parameters)})
    for unit in record.units:
        if unit.certificate is not None and unit.outcome in ("swapped", "overwritten"):
            actions.extend(_removes(record, unit, table))
            actions.extend(_adds(record, unit, table))
    return "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions)


def table_id(table: Table) -> str:
    """Tells a table from one that was dropped and made anew under its name. (Metastores before 4 give no id of their own.)"""
    return f"{table.full_name}@{table.create_time}"


def _table_to_dict(table: Table) -> Dict[str, Any]:
    return {
        "id": table_id(table),
        "name": table.full_name,
        "format": {"provider": table.storage.serde},
        "schemaString": json.dumps([asdict(column) for column in table.columns]),
        "partitionColumns": [column.name for column in table.partition_columns],
        "configuration": {"kind": table.kind, "location": table.location},
        "createdTime": table.create_time * 1000,
    }


def _commit_info(record: RunRecord, actor: Actor, parameters: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        "timestamp": record.now_ms,
        "operation": record.operation,
        "operationParameters": dict(parameters),
        "run": record.run,
        "directory": record.directory,
        "recoveredBy": record.recovered_by,
        "userName": actor.user,
        "host": actor.host,
        "applicationId": actor.application_id,
        "engineInfo": f"Hivekeeper/{actor.version}",
        "units": [_unit_outcome(unit) for unit in record.units],
    }


def _unit_outcome(unit: UnitRecord) -> Dict[str, Any]:
    return {
        "unit": unit.recorded.number,
        "partition": unit.recorded.unit.name,
        "outcome": unit.outcome,
        "reason": unit.reason,
        "gapMs": unit.gap_ms,
        "lateFiles": list(unit.late_files),
    }


def _removes(record: RunRecord, unit: UnitRecord, table: Table) -> Iterable[Dict[str, Any]]:
    recorded_unit, root = unit.recorded, table.location
    for file in recorded_unit.manifest:
        yield {
            "remove": {
                "path": _file_path(recorded_unit, file.name, root),
                "partitionValues": _partition_values(table, recorded_unit),
                "size": file.length,
                "modificationTime": file.mtime_ms,
                "deletionTimestamp": record.now_ms,
                "dataChange": False,
                "retired": f"runs/{record.directory}/retired/{names.unit_directory(recorded_unit.number)}/{file.name}",
            }
        }


def _adds(record: RunRecord, unit: UnitRecord, table: Table) -> Iterable[Dict[str, Any]]:
    certificate = unit.certificate
    assert certificate is not None
    for name, length in certificate.files.items():
        yield {
            "add": {
                "path": _file_path(unit.recorded, name, table.location),
                "partitionValues": _partition_values(table, unit.recorded),
                "size": length,
                "modificationTime": record.now_ms,
                "dataChange": False,
                "stats": json.dumps({"numRecords": certificate.file_rows.get(name, 0)}),
                "digest": asdict(certificate.digest),
                "unit": certificate.unit,
            }
        }


def _file_path(unit: RecordedUnit, name: str, root: str) -> str:
    top = relative(unit.unit.live, root)
    return name if top == "." else f"{top}/{name}"


def _partition_values(table: Table, unit: RecordedUnit) -> Dict[str, str]:
    return {column.name: value for column, value in zip(table.partition_columns, unit.unit.values)}


@dataclass(frozen=True)
class LogState:
    """What a run needs to know of the log: the finished runs, the next version, the units that were ever swapped."""

    finished: Set[str]
    next_version: int
    swapped: Tuple[str, ...] = ()


def read_log(entries: Mapping[int, str]) -> LogState:
    """Reconcile log entries (version → text). Raises UnreadableRecord for a gap, a broken entry, a newer protocol."""
    finished: Set[str] = set()
    swapped: Dict[str, None] = {}
    for expected, version in enumerate(sorted(entries)):
        if version != expected:
            raise UnreadableRecord(f"log entry {expected} is missing")
        for action in _actions(entries[version], version):
            try:
                _check_protocol(action.get("protocol"), version)
                info = action.get("commitInfo")
                if info:
                    finished.add(info["run"])
                    swapped.update({unit["partition"]: None for unit in info["units"] if unit["outcome"] in TOUCHED})
            except (KeyError, TypeError) as error:
                raise UnreadableRecord(f"log entry {version} cannot be read ({error!r})") from error
    return LogState(finished, len(entries), tuple(swapped))


def _actions(text: str, version: int) -> Sequence[Mapping[str, Any]]:
    try:
        actions = [json.loads(line) for line in text.splitlines()]
    except ValueError as error:
        raise UnreadableRecord(f"log entry {version} cannot be read ({error})") from error
    if not actions or not all(isinstance(action, dict) for action in actions):
        raise UnreadableRecord(f"log entry {version} cannot be read (it holds no actions)")
    return actions


def _check_protocol(protocol: Optional[Mapping[str, int]], version: int) -> None:
    if protocol is not None and max(protocol["minReaderVersion"], protocol["minWriterVersion"]) > READER_VERSION:
        raise UnreadableRecord(f"log entry {version} needs a newer Hivekeeper (protocol {protocol['minReaderVersion']})")
