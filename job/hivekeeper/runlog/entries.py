"""What a run writes to the table's log: JSON actions modelled on the Delta transaction log (docs/on-disk.md).

Pure: values to text. `runlog/entry_reader.py` reads them back.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import Table
from hivekeeper.names import RunId
from hivekeeper.reasons import Reason
from hivekeeper.runlog.joins import Inside, inside_to_dict
from hivekeeper.runlog.manifests import Extent, ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import COMPACT_SWAP, Certificate, PlannedUnit, RunPlan, relative
from hivekeeper.runlog.strict import MOST_TEXT

# What this program reads. Entries say what their readers need: version 2 only for units whose old files are inside others.
READER_VERSION = 2
_PLAIN, _WITH_INSIDE = 1, 2


@dataclass(frozen=True)
class Actor:
    """Who runs Hivekeeper, for the log."""

    user: str
    host: str
    application_id: str
    version: str


@dataclass(frozen=True)
class UnitResult:
    """The result of one unit, for the log. `late_files` are those moved to live.

    `has_backup`: for a unit that the metastore no longer has at its place, whether its old files left live. The files that replaced them
    are in the certificate or in `planned`; if neither has any, nothing did. `nested`: a directory that was in live after that may have
    been away, "" for none; None if it was not away, or is not the unit's any more.
    """

    planned: PlannedUnit
    outcome: Outcome
    certificate: Optional[Certificate] = None
    gap_ms: Optional[float] = None
    late_files: Tuple[str, ...] = ()
    why: Optional[Reason] = None
    has_backup: bool = False
    nested: Optional[str] = None

    @property
    def reason(self) -> str:
        return self.why.what if self.why else ""

    @property
    def for_log(self) -> str:
        """The result as shown in a line of the run's log."""
        code = f" code={self.why.code.code}" if self.why else ""
        gap = f" gap_ms={self.gap_ms:.1f}" if self.gap_ms is not None else ""
        return f"outcome={self.outcome.code}{code}{gap}"

    @property
    def is_without_new_files(self) -> bool:
        return self.certificate is None and self.planned.backup is None

    @property
    def exchanged(self) -> bool:
        """Whether live got other files, and it is known which; or its files became a backup and nothing replaced them."""
        if self.outcome.is_astray:
            return self.has_backup
        return self.outcome.exchanged and not self.is_without_new_files

    @property
    def inside(self) -> Optional[Inside]:
        """Where the files are that left live, if they were joined."""
        join, made = self.planned.join, self.certificate.join if self.certificate else None
        return Inside.of(join, made) if self.exchanged and join and made else None


@dataclass(frozen=True)
class LogEntry:
    """One log entry. `directory` is the run's directory below `runs/`, `RUN` or `RUN.tN`.

    `finished` is False for the first of a cleanup's two entries, whose `discarding` lists the places about to be deleted.
    `records` are the directories of `backup` runs whose records a cleanup dropped; `pin` is a run and whether it is
    pinned now. `run_key` is the scheduler's name for the execution, "" for none; `exit_code` that of the table, None if a later run
    recorded this one.
    """

    run: RunId
    directory: str
    operation: str
    now_ms: int
    units: Tuple[UnitResult, ...] = ()
    recovered_by: Optional[RunId] = None
    backup_table: str = ""
    finished: bool = True
    discarding: Tuple[str, ...] = ()
    pin: Optional[Tuple[RunId, bool]] = None
    records: Tuple[str, ...] = ()
    run_key: str = ""
    exit_code: Optional[int] = None


def place_of(directory: str, unit: PlannedUnit) -> str:
    """Where the former live files are after a swap or a rollback, relative to the control directory; only the name of the backup if they
    are inside a file of live.
    """
    return names.backup_place(directory, unit.number)


def entry_to_text(record: LogEntry, table: Table, actor: Actor, parameters: Mapping[str, Any], first: bool) -> str:
    return "".join(entry_lines(record, table, actor, parameters, first))


def entry_lines(record: LogEntry, table: Table, actor: Actor, parameters: Mapping[str, Any], first: bool) -> Iterator[str]:
    """One log entry, one action per line; lazily, because each file has two lines."""
    return (_json_text(action) + "\n" for action in _actions(record, table, actor, parameters, first))


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _actions(record: LogEntry, table: Table, actor: Actor, parameters: Mapping[str, Any], first: bool) -> Iterator[Dict[str, Any]]:
    has_inside = any(unit.inside for unit in record.units)
    if first or has_inside:
        version = _WITH_INSIDE if has_inside else _PLAIN
        yield {"protocol": {"minReaderVersion": version, "minWriterVersion": version}}
    yield {"metaData": _table_to_dict(table)}
    yield {"commitInfo": _commit_info(record, actor, parameters, table)}
    if record.run_key and record.finished:
        yield {"txn": {"appId": record.run_key, "version": 1, "lastUpdated": record.now_ms, "exitCode": record.exit_code}}
    if record.pin:
        yield {"pin": {"run": record.pin[0], "pinned": record.pin[1]}}
    yield from ({"discarding": {"place": place}} for place in record.discarding)
    if record.finished:
        yield from ({"discarded": {"place": names.record_place(directory), "files": 0, "size": 0}} for directory in record.records)
    for unit in record.units:
        if unit.outcome is Outcome.DISCARDED and unit.planned.backup:
            yield {"discarded": _discarded(unit.planned, table)}
        elif unit.exchanged:
            yield from _removes(record, unit, table)
            yield from _adds(record, unit, table)


# The characters of all reasons and names of late files in an entry together. Anyone who may write to the table chooses how many there are
# and how long, and every later command reads them; reason codes are always there.
MOST_NOTES = 2**21
# The size of one unit's outcome without its name, its directory and these notes: keys, numbers and punctuation.
_CHARACTERS_OF_OUTCOME = 900


def longest_line(units: Iterable[PlannedUnit]) -> int:
    """An upper estimate of the characters in the longest line of an entry about these units, the one with their outcomes."""
    said = ([unit.name, unit.live, unit.join.file if unit.join else ""] for unit in units)
    return MOST_NOTES + sum(_CHARACTERS_OF_OUTCOME + len(_json_text(each)) for each in said)


# The size of one file's action without its names and values: keys, numbers and punctuation.
_BYTES_OF_ACTION = 320


def longest_entry(plan: RunPlan) -> int:
    """An upper estimate of the bytes in this run's entry, assuming that each of its units is exchanged."""
    return sum(longest_unit(unit) for unit in plan.units)


def longest_unit(unit: PlannedUnit) -> int:
    values = sum(len(value.encode()) for value in unit.unit.values)
    each = _BYTES_OF_ACTION + len(unit.name.encode()) + len(unit.live.encode()) + values
    return sum(each + 2 * len(file.name.encode()) for files in (unit.manifest, unit.expected) for file in files)


def table_id(table: Table) -> str:
    """Distinguishes a table from one dropped and created again under its name. (Metastores before 4 have no id of their own.)"""
    return f"{table.full_name}@{table.create_time}"


def _table_to_dict(table: Table) -> Dict[str, Any]:
    """The definition may have grown since the run was planned, so a schema that no entry should hold is left out."""
    schema = json.dumps([asdict(column) for column in table.columns])
    return {
        "id": table_id(table),
        "name": table.full_name,
        "format": {"provider": table.storage.serde},
        "schemaString": schema if len(schema) <= MOST_TEXT else "",
        "partitionColumns": [column.name for column in table.partition_columns],
        "configuration": {"kind": table.kind, "location": table.location},
        "createdTime": table.create_time * 1000,
    }


def _commit_info(record: LogEntry, actor: Actor, parameters: Mapping[str, Any], table: Table) -> Dict[str, Any]:
    return {
        "timestamp": record.now_ms,
        "operation": record.operation,
        "operationParameters": dict(parameters),
        "run": record.run,
        "directory": record.directory,
        "finished": record.finished,
        "recoveredBy": record.recovered_by,
        "backupTable": record.backup_table,
        "userName": actor.user,
        "host": actor.host,
        "applicationId": actor.application_id,
        "engineInfo": f"Hivekeeper/{actor.version}",
        "units": _unit_outcomes(record, table),
    }


def _unit_outcomes(record: LogEntry, table: Table) -> List[Dict[str, Any]]:
    room = _Room(MOST_NOTES)
    return [_unit_outcome(record, unit, table, room) for unit in record.units]


class _Room:
    """How many characters there still are for texts that an entry can do without."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    def fits(self, text: str) -> bool:
        """Whether the text fits; if so, its room is taken."""
        needed = len(_json_text(text))
        if needed > self._left:
            return False
        self._left -= needed
        return True


def _unit_outcome(record: LogEntry, unit: UnitResult, table: Table, room: _Room) -> Dict[str, Any]:
    backup = unit.planned.backup
    digest = unit.certificate.digest if unit.certificate else unit.planned.digest
    return {
        "unit": unit.planned.number,
        "partition": unit.planned.name,
        "live": relative(unit.planned.live, table.location),
        "outcome": unit.outcome.code,
        "reason": unit.reason if room.fits(unit.reason) else "",
        "reasonCode": unit.why.code.code if unit.why else "",
        "gapMs": unit.gap_ms,
        "lateFiles": [name for name in unit.late_files if room.fits(name)],
        "place": place_of(record.directory, unit.planned) if unit.exchanged else None,
        "backup": {"run": backup.run, "unit": backup.number} if backup else None,
        "rows": digest.rows if digest else None,
        "digest": asdict(digest) if digest else None,
        "source": _source(unit.planned) if record.operation == COMPACT_SWAP and not unit.exchanged else None,
        **({"inside": inside_to_dict(unit.inside)} if unit.inside else {}),
    }


def _source(unit: PlannedUnit) -> Dict[str, int]:
    """What live held when a compaction planned the unit but did not swap it; the entry has no `remove` actions to show it."""
    extent = Extent.of(unit.manifest)
    return {"files": extent.files, "size": extent.size_bytes, "modificationTime": extent.newest_ms}


def _discarded(unit: PlannedUnit, table: Table) -> Dict[str, Any]:
    assert unit.backup is not None
    return {
        "place": unit.backup.place,
        "files": len(unit.manifest),
        "size": sum(file.length for file in unit.manifest),
        **({"path": _path(unit, unit.inside.file, table), "pathSize": unit.inside.copy_bytes} if unit.inside else {}),
    }


def _removes(record: LogEntry, unit: UnitResult, table: Table) -> Iterable[Dict[str, Any]]:
    place = place_of(record.directory, unit.planned)
    for file in unit.planned.manifest:
        yield {
            "remove": {
                **_file(unit.planned, file, table),
                "deletionTimestamp": record.now_ms,
                "retired": f"{place}/{file.name}",
            }
        }


def _adds(record: LogEntry, unit: UnitResult, table: Table) -> Iterable[Dict[str, Any]]:
    """The `add` actions of a unit. A certificate has no file ids; a rollback does, because it restores files seen before."""
    if unit.certificate is None:
        yield from ({"add": {**_file(unit.planned, file, table), "stats": None}} for file in unit.planned.expected)
        return
    for name, length in unit.certificate.files.items():
        rows = unit.certificate.file_rows.get(name, 0)
        file = ManifestFile(name, length, record.now_ms, 0)
        yield {"add": {**_file(unit.planned, file, table), "stats": json.dumps({"numRecords": rows})}}


def _path(unit: PlannedUnit, name: str, table: Table) -> str:
    top = relative(unit.live, table.location)
    return name if top == "." else f"{top}/{name}"


def _file(unit: PlannedUnit, file: ManifestFile, table: Table) -> Dict[str, Any]:
    return {
        "path": _path(unit, file.name, table),
        "partitionValues": {column.name: value for column, value in zip(table.partition_columns, unit.unit.values)},
        "size": file.length,
        "modificationTime": file.mtime_ms,
        "fileId": file.file_id,
        "dataChange": False,
        "unit": unit.number,
    }
