"""Read a table's log: what runs did to it, the backups they left, and the files it held at a version.

Pure: lines in, values out; the rules are in docs/on-disk.md. Raises UnreadableRecord for anything that cannot be trusted: anyone who may
write to the table may have written its log, so an entry is accepted only if all of it is what we write.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.model import Digest
from hivekeeper.names import RunId, UnitNumber
from hivekeeper.runlog import run_files, strict
from hivekeeper.runlog.entries import READER_VERSION
from hivekeeper.runlog.manifests import Extent, ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import BACKUP, CLEANUP, MOST_FILES, MOST_UNITS, OPERATIONS
from hivekeeper.runlog.strict import NewerRecord, Node, UnreadableRecord

UnitKey = Tuple[RunId, UnitNumber]

# 9999-12-31: a later time cannot be written as a date.
LATEST_MS = 253_402_300_799_999
MOST_PROTOCOL = 1_000_000


@dataclass(frozen=True)
class Effect:
    """What one run did to one unit: live held `before`, then `after`; the `before` files are at `place`.

    Paths are relative: `live` to the table's location, `place` to the control directory. `undoes` names the run and unit whose effect a
    rollback undid. File ids in `after` are 0 if unknown. `whole` is False if `Keeper` dropped `before`, or both lists, while the log was
    read.
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
    whole: bool = True

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
    """One log entry. `timestamp_ms` is None if it cannot be read as a time, `partition_columns` if the entry names no table of its own."""

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
    partition_columns: Optional[Tuple[str, ...]] = None


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
        return tuple(run for run in self.runs if run.operation == BACKUP and names.record_place(run.directory) not in self.discarded)

    def find(self, run: RunId) -> Optional[LoggedRun]:
        """The last entry of a run, or None."""
        return next((entry for entry in reversed(self.runs) if entry.run == run), None)


class Keeper:
    """Which lists of files may still be needed, so that memory is bounded by the backups in place, not by the length of the log.

    `before` is kept as long as the backup is at its place. `after` is kept with it; without a backup, only while live may hold these files,
    which ends with the next compaction of the unit that was not rolled back. To know that, pass entries newest first.
    """

    def __init__(self, keeps: bool = True) -> None:
        self._keeps = keeps
        self._discarded: Set[str] = set()
        self._undone: Set[UnitKey] = set()
        self._compacted: Set[str] = set()

    def judge(self, effect: Effect) -> Tuple[bool, bool]:
        """Whether to keep `before` and `after`."""
        if not self._keeps or effect.key in self._undone:
            return False, False
        stands = effect.place not in self._discarded
        return stands, stands or effect.partition not in self._compacted

    def pass_by(self, run: LoggedRun) -> LoggedRun:
        """The entry without the lists that nobody needs. Remembers it to judge older entries."""
        self._discarded.update(run.discarded)
        effects = [self._reduce(effect) for effect in reversed(run.effects)]
        return replace(run, effects=tuple(reversed(effects)))

    def _reduce(self, effect: Effect) -> Effect:
        keep_before, keep_after = self.judge(effect)
        if effect.undoes:
            self._undone.add(effect.undoes)
        elif effect.key not in self._undone:
            self._compacted.add(effect.partition)
        if keep_before and keep_after:
            return effect
        return replace(effect, before=(), after=effect.after if keep_after else (), whole=False)


@dataclass
class _Exchanged:
    """A unit whose files this entry names: the prefixes of its paths, which lists to keep, and the files found so far."""

    path_begins: str
    place_begins: str
    keeps_before: bool
    keeps_after: bool
    before: List[ManifestFile] = field(default_factory=list)
    after: List[ManifestFile] = field(default_factory=list)


class _Entry:
    """The actions of one entry, collected by kind while it is read."""

    def __init__(self, version: int, where: str, keeper: Keeper) -> None:
        self.version = version
        self.where = where
        self._keeper = keeper
        self.table_id: Optional[str] = None
        self.columns: Optional[Tuple[str, ...]] = None
        self.info: Optional[Node] = None
        self.units: List[LoggedUnit] = []
        self.exchanged: Dict[int, _Exchanged] = {}
        self.effects: List[Effect] = []
        self.discarding: List[str] = []
        self.discarded: List[str] = []
        self.pin: Optional[Tuple[RunId, bool]] = None
        self.files = 0

    def take(self, action: Node) -> None:
        """Store one action. Unknown kinds are ignored: the protocol version refuses readers that must not ignore them."""
        (kind,) = action.value
        if kind in ("remove", "add"):
            self._take_file(kind, action[kind])
        elif kind == "commitInfo":
            action.refuse_where(self.info is not None, "it is the second one of its kind")
            self._take_info(action[kind])
        elif kind == "metaData":
            action.refuse_where(self.table_id is not None or self.info is not None, "it comes too late, or twice")
            self.table_id = action[kind]["id"].text()
            action[kind]["id"].refuse_where(not self.table_id, "it is empty")
            self.columns = action[kind]["partitionColumns"].texts()
        elif kind == "discarding":
            self.discarding.append(_place_from(action[kind]["place"]))
        elif kind == "discarded":
            self.discarded.append(_place_from(action[kind]["place"]))
        elif kind == "pin":
            self.pin = run_files.run_id_from(action[kind]["run"]), action[kind]["pinned"].flag()

    def _take_info(self, info: Node) -> None:
        self.info = info
        run, directory = run_files.run_id_from(info["run"]), run_files.directory_from(info["directory"])
        info["directory"].refuse_where(names.run_of(directory) != run, f"it is not of run {run}")
        numbers: Set[int] = set()
        for unit in info["units"].each(MOST_UNITS):
            number = run_files.number_from(unit["unit"])
            unit["unit"].refuse_where(number in numbers, "another unit has this number")
            numbers.add(number)
            logged = _logged_unit(unit, self.columns, info["operation"].value == CLEANUP)
            self.units.append(logged)
            if unit.get("place"):
                place = names.backup_place(directory, number)
                unit["place"].refuse_where(unit["place"].value != place, f"{unit['place'].quoted()} is not {place}")
                unit["outcome"].refuse_where(not logged.outcome.exchanged, "it exchanges no files, and there is a place for them")
                begins = "" if logged.live == "." else logged.live + "/"
                effect = self._effect(unit, logged, number, place)
                self.exchanged[number] = _Exchanged(begins, place + "/", *self._keeper.judge(effect))
                self.effects.append(effect)

    def _effect(self, unit: Node, logged: LoggedUnit, number: UnitNumber, place: str) -> Effect:
        assert self.info is not None
        undone = unit.get("backup")
        return Effect(
            run=RunId(self.info["run"].value),
            number=number,
            version=self.version,
            operation=self.info["operation"].one_of(OPERATIONS),
            timestamp_ms=_time_from(self.info),
            table_id=self.table_id or "",
            partition=logged.partition,
            live=logged.live,
            place=place,
            before=(),
            after=(),
            undoes=(run_files.run_id_from(undone["run"]), run_files.number_from(undone["unit"])) if undone else None,
            digest=run_files.digest_from(unit.get("digest")),
            backup_table=run_files.table_name_from(self.info["backupTable"]),
        )

    def _take_file(self, kind: str, action: Node) -> None:
        """Runs for millions of files: a Node is created only for a value that does not fit."""
        known = action.value if type(action.value) is dict else {}
        number, path = known.get("unit"), known.get("path")
        unit = self.exchanged.get(number) if type(number) is int else None
        if unit is None:
            action["unit"].refuse("no unit before it in this entry has this number and a place for its files")
        name = path[len(unit.path_begins) :] if type(path) is str and path.startswith(unit.path_begins) else ""
        if not run_files.is_file(name, known.get("size"), known.get("modificationTime"), known.get("fileId")):
            action["path"].refuse_where(not names.is_file_name(name), f"it is no file of {unit.path_begins or 'the table'}")
            action.refuse("it has no size, modificationTime and fileId of a file")
        if kind == "remove" and known.get("retired") != unit.place_begins + name:
            action["retired"].refuse(f"it is not {unit.place_begins + name}")
        self.files += 1
        action.refuse_where(self.files > 2 * MOST_FILES, f"there are more than {2 * MOST_FILES} files")
        keeps, files = (unit.keeps_before, unit.before) if kind == "remove" else (unit.keeps_after, unit.after)
        if keeps:
            files.append(ManifestFile(name, known["size"], known["modificationTime"], known["fileId"]))

    def as_run(self) -> LoggedRun:
        info = self.info
        if info is None:
            raise strict.foreign(self.where, "", "it has no commitInfo")
        for effect, found in zip(self.effects, self.exchanged.values()):
            _refuse_twins(self.where, effect, found.before)
            _refuse_twins(self.where, effect, found.after)
        recovered_by = info.get("recoveredBy")
        return LoggedRun(
            version=self.version,
            run=RunId(info["run"].value),
            directory=info["directory"].text(),
            operation=info["operation"].one_of(OPERATIONS),
            timestamp_ms=_time_from(info),
            user=info["userName"].text(),
            host=info["host"].text(),
            application_id=info["applicationId"].text(),
            recovered_by=run_files.run_id_from(recovered_by) if recovered_by else None,
            finished=info["finished"].flag(),
            backup_table=run_files.table_name_from(info["backupTable"]),
            table_id=self.table_id or "",
            parameters=_parameters_from(info["operationParameters"]),
            units=tuple(self.units),
            effects=tuple(
                replace(effect, before=tuple(found.before), after=tuple(found.after), whole=found.keeps_before and found.keeps_after)
                for effect, found in zip(self.effects, self.exchanged.values())
            ),
            pin=self.pin,
            discarding=tuple(self.discarding),
            discarded=tuple(self.discarded),
            partition_columns=self.columns,
        )


def _refuse_twins(where: str, effect: Effect, files: Sequence[ManifestFile]) -> None:
    if len({file.name for file in files}) != len(files):
        raise strict.foreign(where, f"unit {effect.number}", "one of its files stands there twice")


def reconcile(entries: Mapping[int, LoggedRun], where: str) -> History:
    """The history from entries already read; `where` names the log. Raises UnreadableRecord for a gap."""
    runs: List[LoggedRun] = []
    for expected, version in enumerate(sorted(entries)):
        if version != expected:
            raise UnreadableRecord(f"{where}: entry {expected} is missing")
        runs.append(_about(entries[version], runs[-1].table_id) if runs and not entries[version].table_id else entries[version])
    return History(tuple(runs))


def _about(entry: LoggedRun, table_id: str) -> LoggedRun:
    """Give an entry without a table id the table of the previous entry."""
    return replace(entry, table_id=table_id, effects=tuple(replace(effect, table_id=table_id) for effect in entry.effects))


def known_as(history: History, ids: Mapping[str, str]) -> History:
    """The same history with the ids of some tables replaced, for example after a rename."""
    return History(tuple(_about(run, ids[run.table_id]) if run.table_id in ids else run for run in history.runs))


def read_entry(lines: Iterable[str], version: int, where: str, keeper: Optional[Keeper] = None) -> LoggedRun:
    """Read one entry, with the lists of files that the keeper keeps (without a keeper: all); `where` names its file.

    Raises UnreadableRecord, NewerRecord.
    """
    entry = _Entry(version, where, keeper or Keeper())
    take_actions(lines, where, entry.take)
    return entry.as_run()


def take_actions(lines: Iterable[str], where: str, take: Callable[[Node], None]) -> None:
    """Yield the actions of an entry one by one. If the entry is broken, looks for its protocol first: a newer one may explain it."""
    lines, found = iter(lines), False
    try:
        for line in lines:
            if line:
                found = True
                take(_action_from(line, where))
    except NewerRecord:
        raise
    except UnreadableRecord:
        for line in lines:
            _look_for_protocol(line, where)
        raise
    if not found:
        raise UnreadableRecord(f"{where} cannot be read (it holds no actions)")


def _action_from(line: str, where: str) -> Node:
    action = Node(strict.parse(line, where), where)
    action.refuse_where(type(action.value) is not dict or len(action.value) != 1, "it is no action: an object with one key")
    if "protocol" in action.value:
        _check_protocol(action["protocol"])
    return action


def _look_for_protocol(line: str, where: str) -> None:
    try:
        if '"protocol"' in line:
            _action_from(line, where)
    except NewerRecord:
        raise
    except UnreadableRecord:
        # The caller already reports what is wrong before this line.
        return


def _check_protocol(protocol: Node) -> None:
    needed = max(protocol[key].whole(0, MOST_PROTOCOL) for key in ("minReaderVersion", "minWriterVersion"))
    if needed > READER_VERSION:
        raise NewerRecord(f"{protocol.where} needs a newer Hivekeeper (protocol {needed}, this one knows {READER_VERSION})")


def _time_from(info: Node) -> Optional[int]:
    """A time that cannot be read is unknown; nothing depends on it."""
    found = info.value.get("timestamp")
    return found if type(found) is int and 0 < found <= LATEST_MS else None


def _parameters_from(node: Node) -> Mapping[str, Any]:
    node.refuse_where(type(node.value) is not dict, "it is no object")
    found: Mapping[str, Any] = node.plain()
    return found


def _place_from(node: Node) -> str:
    """The place of a backup, or of a `backup` run's record."""
    text = node.text()
    is_record = text.startswith("runs/") and names.run_of(text[len("runs/") :]) is not None
    is_backup = names.BACKUP_PLACE.fullmatch(text) is not None
    node.refuse_where(not is_record and not is_backup, f"{node.quoted()} is no place of a backup")
    return text


def _logged_unit(unit: Node, columns: Optional[Sequence[str]], of_cleanup: bool) -> LoggedUnit:
    """Checks the partition's name against the partition columns of the entry's own table, if the entry names one."""
    check = run_files.former_partition_from if of_cleanup else run_files.partition_from
    known, gap, code = unit.get("source"), unit.get("gapMs"), unit.get("reasonCode")
    source = Extent(known["files"].whole(), known["size"].whole(), known["modificationTime"].whole(strict.LOWEST)) if known else None
    partition = unit["partition"].text(names.MOST_PATH) if columns is None else check(unit["partition"], columns)
    if unit.get("rows"):
        unit["rows"].whole()
    return LoggedUnit(
        partition=partition,
        outcome=_outcome_from(unit["outcome"]),
        reason=unit["reason"].text(strict.MOST_TEXT),
        gap_ms=gap.number() if gap else None,
        late_files=tuple(run_files.file_name_from(item) for item in unit["lateFiles"].each(MOST_FILES)),
        live=run_files.live_from(unit["live"], partition),
        source=source,
        reason_code=code.text() if code else "",
    )


def _outcome_from(node: Node) -> Outcome:
    try:
        return Outcome.of_code(node.text())
    except ValueError as error:
        node.refuse(str(error))


class _Replay:
    """The files and tombstones so far. Paths are unique: the newest action wins."""

    def __init__(self) -> None:
        self.files: Dict[str, int] = {}
        self.tombstones: Dict[str, Tuple[int, str]] = {}
        self._at_place: Dict[str, Set[str]] = {}

    def take(self, action: Mapping[str, Any]) -> None:
        if "remove" in action:
            path, where = action["remove"]["path"], action["remove"]["retired"]
            self.files.pop(path, None)
            self._rise(path)
            self.tombstones[path] = action["remove"]["size"], where
            self._at_place.setdefault(names.parent(where), set()).add(path)
        elif "add" in action:
            self._rise(action["add"]["path"])
            self.files[action["add"]["path"]] = action["add"]["size"]
        elif "discarded" in action:
            for path in self._at_place.pop(action["discarded"]["place"], ()):
                del self.tombstones[path]

    def _rise(self, path: str) -> None:
        buried = self.tombstones.pop(path, None)
        if buried:
            self._at_place[names.parent(buried[1])].discard(path)


def files_at(entries: Iterable[Tuple[str, Iterable[str]]]) -> FileSet:
    """Replay entries, each given as the name of its file and its lines.

    Adds and removes are unique by path; a discarded place drops its tombstones.
    """
    replay = _Replay()
    for version, (where, lines) in enumerate(entries):
        entry = _Entry(version, where, Keeper(keeps=False))

        def take(action: Node, entry: _Entry = entry) -> None:
            entry.take(action)
            replay.take(action.value)

        take_actions(lines, where, take)
    return FileSet(replay.files, replay.tombstones)
