"""Read a table's log: what runs did to it, the backups they left, and the files it held at a version.

Pure: texts in, values out; the rules are in docs/on-disk.md. Raises UnreadableRecord for anything that cannot be trusted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Tuple

from hivekeeper.model import Digest
from hivekeeper.names import RunId, UnitNumber
from hivekeeper.runlog.entries import READER_VERSION
from hivekeeper.runlog.manifests import Extent, ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import BACKUP, NewerRecord, UnreadableRecord

UnitKey = Tuple[RunId, UnitNumber]
Action = Mapping[str, Any]


@dataclass(frozen=True)
class Effect:
    """What one run did to one unit: live held `before`, then `after`; the `before` files are at `place`.

    Paths are relative: `live` to the table's location, `place` to the control directory. `undoes` names the run and unit
    whose effect a rollback undid. File ids in `after` are 0 if unknown.
    """

    run: RunId
    number: UnitNumber
    version: int
    operation: str
    timestamp_ms: Optional[int]
    table_id: str
    partition: str
    live: str
    place: str
    before: Tuple[ManifestFile, ...]
    after: Tuple[ManifestFile, ...]
    undoes: Optional[UnitKey] = None
    digest: Optional[Digest] = None
    backup_table: str = ""

    @property
    def key(self) -> UnitKey:
        return self.run, self.number

    @property
    def backup_bytes(self) -> int:
        return sum(file.length for file in self.before)


@dataclass(frozen=True)
class LoggedUnit:
    """The logged result of one unit. `live` is relative to the table's location.

    `source` is what a compaction that did not swap the unit found there, None if not logged. `reason_code` may come from a later
    version: it is shown, not acted on.
    """

    partition: str
    outcome: Outcome
    reason: str
    gap_ms: Optional[float]
    late_files: Tuple[str, ...]
    live: str = "."
    source: Optional[Extent] = None
    reason_code: str = ""


@dataclass(frozen=True)
class LoggedRun:
    """One log entry. `timestamp_ms` is None if it cannot be read as a time."""

    version: int
    run: RunId
    directory: str
    operation: str
    timestamp_ms: Optional[int]
    user: str
    host: str
    application_id: str
    recovered_by: Optional[RunId]
    finished: bool
    backup_table: str
    table_id: str
    parameters: Mapping[str, Any]
    units: Tuple[LoggedUnit, ...]
    effects: Tuple[Effect, ...]
    pin: Optional[Tuple[RunId, bool]] = None
    discarding: Tuple[str, ...] = ()
    discarded: Tuple[str, ...] = ()


@dataclass(frozen=True)
class FileSet:
    """The files of a table at a version of its log, as far as runs know them; other writers do not report theirs.

    Path to size, and for tombstones also where the file is, relative to the control directory.
    """

    files: Mapping[str, int]
    tombstones: Mapping[str, Tuple[int, str]]


@dataclass(frozen=True)
class History:
    """The whole log, reconciled."""

    runs: Tuple[LoggedRun, ...] = ()

    @cached_property
    def finished(self) -> FrozenSet[RunId]:
        """Runs whose last entry is in the log."""
        return frozenset(run.run for run in self.runs if run.finished)

    @property
    def next_version(self) -> int:
        return len(self.runs)

    @cached_property
    def swapped(self) -> FrozenSet[str]:
        """Names of the units that any run ever touched."""
        return frozenset(unit.partition for run in self.runs for unit in run.units if unit.outcome.touched)

    @property
    def table_id(self) -> str:
        """The table that the last entry is about."""
        return self.runs[-1].table_id if self.runs else ""

    @cached_property
    def pinned(self) -> FrozenSet[RunId]:
        pins = {run.pin[0]: run.pin[1] for run in self.runs if run.pin}
        return frozenset(run for run, pinned in pins.items() if pinned)

    @cached_property
    def effects(self) -> Tuple[Effect, ...]:
        """All effects, oldest first."""
        return tuple(effect for run in self.runs for effect in run.effects)

    @cached_property
    def discarded(self) -> Mapping[str, LoggedRun]:
        """Places whose backups were discarded, and the run that did it."""
        return {place: run for run in self.runs for place in run.discarded}

    @cached_property
    def standing(self) -> Tuple[Effect, ...]:
        """Effects whose old files are still in place: neither discarded nor restored by a rollback."""
        undone = {effect.undoes for effect in self.effects}
        return tuple(effect for effect in self.effects if effect.place not in self.discarded and effect.key not in undone)

    @cached_property
    def records(self) -> Tuple[LoggedRun, ...]:
        """The `backup` runs whose record was not dropped."""
        return tuple(run for run in self.runs if run.operation == BACKUP and f"runs/{run.directory}" not in self.discarded)

    def find(self, run: RunId) -> Optional[LoggedRun]:
        """The last entry of a run, or None."""
        return next((entry for entry in reversed(self.runs) if entry.run == run), None)


@dataclass
class _Entry:
    """The actions of one entry, collected by kind while it is read."""

    info: Dict[str, Any] = field(default_factory=dict)
    table_id: str = ""
    removes: List[Action] = field(default_factory=list)
    adds: List[Action] = field(default_factory=list)
    discarding: List[str] = field(default_factory=list)
    discarded: List[str] = field(default_factory=list)
    pin: Optional[Tuple[RunId, bool]] = None

    def take(self, action: Action) -> None:
        """Store one action. Unknown kinds are ignored: the protocol version refuses readers that must not ignore them."""
        if "commitInfo" in action:
            self.info = dict(action["commitInfo"])
        elif "metaData" in action:
            self.table_id = str(action["metaData"]["id"])
        elif "remove" in action:
            self.removes.append(action["remove"])
        elif "add" in action:
            self.adds.append(action["add"])
        elif "discarding" in action:
            self.discarding.append(str(action["discarding"]["place"]))
        elif "discarded" in action:
            self.discarded.append(str(action["discarded"]["place"]))
        elif "pin" in action:
            self.pin = RunId(str(action["pin"]["run"])), bool(action["pin"]["pinned"])


def reconcile(entries: Mapping[int, LoggedRun]) -> History:
    """The history from entries already read. Raises UnreadableRecord for a gap."""
    runs: List[LoggedRun] = []
    for expected, version in enumerate(sorted(entries)):
        if version != expected:
            raise UnreadableRecord(f"log entry {expected} is missing")
        runs.append(_about(entries[version], runs[-1].table_id) if runs and not entries[version].table_id else entries[version])
    return History(tuple(runs))


def _about(entry: LoggedRun, table_id: str) -> LoggedRun:
    """Give an entry without a table id the table of the previous entry."""
    return replace(entry, table_id=table_id, effects=tuple(replace(effect, table_id=table_id) for effect in entry.effects))


def read_entry(text: str, version: int) -> LoggedRun:
    """Read one entry. Raises UnreadableRecord, NewerRecord."""
    entry = _Entry()
    try:
        for action in read_actions(text, version):
            entry.take(action)
        return _logged_run(entry, version)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableRecord(f"log entry {version} cannot be read ({error!r})") from error


def read_actions(text: str, version: int) -> List[Action]:
    """The actions of an entry, after checking its protocol."""
    try:
        # Not splitlines(): JSON strings may contain characters that it treats as line ends.
        actions = [json.loads(line) for line in text.split("\n") if line]
    except ValueError as error:
        raise UnreadableRecord(f"log entry {version} cannot be read ({error})") from error
    if not actions or not all(isinstance(action, dict) for action in actions):
        raise UnreadableRecord(f"log entry {version} cannot be read (it holds no actions)")
    for action in actions:
        _check_protocol(action.get("protocol"), version)
    return actions


def _check_protocol(protocol: Optional[Mapping[str, int]], version: int) -> None:
    try:
        needed = max(protocol["minReaderVersion"], protocol["minWriterVersion"]) if protocol is not None else 0
    except (KeyError, TypeError) as error:
        raise UnreadableRecord(f"log entry {version} cannot be read ({error!r})") from error
    if needed > READER_VERSION:
        raise NewerRecord(f"log entry {version} needs a newer Hivekeeper (protocol {needed}, this one knows {READER_VERSION})")


def _logged_run(entry: _Entry, version: int) -> LoggedRun:
    info = entry.info
    timestamp = info.get("timestamp")
    timestamp_ms = timestamp if isinstance(timestamp, int) and not isinstance(timestamp, bool) and timestamp > 0 else None
    removed, added = _by_unit(entry.removes), _by_unit(entry.adds)
    effects = []
    for unit in info["units"]:
        if unit["place"]:
            effects.append(_effect(entry, unit, version, timestamp_ms, removed.get(unit["unit"], ()), added.get(unit["unit"], ())))
    return LoggedRun(
        version=version,
        run=info["run"],
        directory=info["directory"],
        operation=info["operation"],
        timestamp_ms=timestamp_ms,
        user=info["userName"],
        host=info["host"],
        application_id=info["applicationId"],
        recovered_by=info["recoveredBy"],
        finished=info["finished"],
        backup_table=info["backupTable"],
        table_id=entry.table_id,
        parameters=info["operationParameters"],
        units=tuple(_logged_unit(unit) for unit in info["units"]),
        effects=tuple(effects),
        pin=entry.pin,
        discarding=tuple(entry.discarding),
        discarded=tuple(entry.discarded),
    )


def _by_unit(actions: Iterable[Action]) -> Dict[int, List[ManifestFile]]:
    found: Dict[int, List[ManifestFile]] = {}
    for action in actions:
        file = ManifestFile(str(action["path"]).rpartition("/")[2], action["size"], action["modificationTime"], action["fileId"])
        found.setdefault(action["unit"], []).append(file)
    return found


def _effect(
    entry: _Entry,
    unit: Mapping[str, Any],
    version: int,
    timestamp_ms: Optional[int],
    before: Iterable[ManifestFile],
    after: Iterable[ManifestFile],
) -> Effect:
    undoes = (unit["backup"]["run"], unit["backup"]["unit"]) if unit["backup"] else None
    return Effect(
        run=entry.info["run"],
        number=unit["unit"],
        version=version,
        operation=entry.info["operation"],
        timestamp_ms=timestamp_ms,
        table_id=entry.table_id,
        partition=unit["partition"],
        live=unit["live"],
        place=unit["place"],
        before=tuple(before),
        after=tuple(after),
        undoes=undoes,
        digest=Digest(**unit["digest"]) if unit["digest"] else None,
        backup_table=entry.info["backupTable"],
    )


def _logged_unit(unit: Mapping[str, Any]) -> LoggedUnit:
    known = unit.get("source")
    source = Extent(known["files"], known["size"], known["modificationTime"]) if known else None
    outcome = Outcome.of_code(unit["outcome"])
    return LoggedUnit(
        partition=unit["partition"],
        outcome=outcome,
        reason=unit["reason"],
        gap_ms=unit["gapMs"],
        late_files=tuple(unit["lateFiles"]),
        live=unit["live"],
        source=source,
        reason_code=unit.get("reasonCode", ""),
    )


def files_at(entries: Mapping[int, str], version: int) -> FileSet:
    """Replay the entries up to a version: adds and removes are unique by path, a discarded place drops its tombstones."""
    files: Dict[str, int] = {}
    tombstones: Dict[str, Tuple[int, str]] = {}
    for number in sorted(entries):
        if number > version:
            break
        for action in read_actions(entries[number], number):
            if "remove" in action:
                remove = action["remove"]
                files.pop(remove["path"], None)
                tombstones[remove["path"]] = remove["size"], remove["retired"]
            elif "add" in action:
                tombstones.pop(action["add"]["path"], None)
                files[action["add"]["path"]] = action["add"]["size"]
            elif "discarded" in action:
                place = action["discarded"]["place"] + "/"
                tombstones = {path: found for path, found in tombstones.items() if not found[1].startswith(place)}
    return FileSet(files, tombstones)
