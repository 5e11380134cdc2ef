"""Read one entry of a table's log, action by action.

Pure: lines in, values out. Raises UnreadableRecord for anything that cannot be trusted: anyone who may write to the table may have written
its log, so an entry is accepted only if all of it is what we write.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.names import RunId, UnitNumber
from hivekeeper.runlog import run_files, strict
from hivekeeper.runlog.entries import READER_VERSION
from hivekeeper.runlog.history import Effect, LoggedRun, LoggedUnit
from hivekeeper.runlog.joins import Inside, inside_from
from hivekeeper.runlog.keeper import Keeper
from hivekeeper.runlog.manifests import Extent, ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import CLEANUP, MOST_FILES, MOST_UNITS, OPERATIONS
from hivekeeper.runlog.strict import NewerRecord, Node, UnreadableRecord

# 9999-12-31: a later time cannot be written as a date.
LATEST_MS = 253_402_300_799_999
MOST_PROTOCOL = 1_000_000
# Which files of a unit a list in a checkpoint has: those that left live, or those that live got.
BEFORE, AFTER = SIDES = ("before", "after")


def read_entry(lines: Iterable[str], version: int, where: str, keeper: Optional[Keeper] = None) -> LoggedRun:
    """Read one entry, with the lists of files that the keeper keeps (without a keeper: all); `where` names its file.

    Raises UnreadableRecord, NewerRecord.
    """
    entry = EntryReader(version, where, keeper or Keeper())
    take_actions(lines, where, entry.take)
    return entry.as_run()


def take_actions(lines: Iterable[str], where: str, take: Callable[[Node], None]) -> None:
    """Pass the actions of an entry on, one by one. If the entry is broken, looks for its protocol first: a newer one may explain it."""
    lines, found = iter(lines), False
    try:
        for line in lines:
            if line:
                found = True
                take(action_from(line, where))
    except NewerRecord:
        raise
    except UnreadableRecord:
        for line in lines:
            _look_for_protocol(line, where)
        raise
    if not found:
        raise UnreadableRecord(f"{where} cannot be read (it holds no actions)")


def action_from(line: str, where: str) -> Node:
    """The action on a line. Raises UnreadableRecord, and NewerRecord for a protocol that needs a newer reader."""
    action = Node(strict.parse(line, where), where)
    action.refuse_where(type(action.value) is not dict or len(action.value) != 1, "it is no action: an object with one key")
    if "protocol" in action.value:
        _check_protocol(action["protocol"])
    return action


def _look_for_protocol(line: str, where: str) -> None:
    try:
        if '"protocol"' in line:
            action_from(line, where)
    except NewerRecord:
        raise
    except UnreadableRecord:
        # The caller already reports what is wrong before this line.
        return


def _check_protocol(protocol: Node) -> None:
    needed = max(protocol[key].whole(0, MOST_PROTOCOL) for key in ("minReaderVersion", "minWriterVersion"))
    if needed > READER_VERSION:
        raise NewerRecord(f"{protocol.where} needs a newer Hivekeeper (protocol {needed}, this one knows {READER_VERSION})")


@dataclass
class _Exchanged:
    """A unit whose files this entry names: the prefixes of its paths, which lists to keep, and the files found so far."""

    path_begins: str
    place_begins: str
    keeps_before: bool
    keeps_after: bool
    before: List[ManifestFile] = field(default_factory=list)
    after: List[ManifestFile] = field(default_factory=list)


class EntryReader:
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
        self.discarded_files = self.discarded_bytes = 0
        self.pin: Optional[Tuple[RunId, bool]] = None
        self.run_key = ""
        self.exit_code: Optional[int] = None
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
            self.table_id = action[kind]["id"].matching(names.TABLE_ID, "database.table@time")
            self.columns = action[kind]["partitionColumns"].texts()
        elif kind == "discarding":
            self.discarding.append(_place_from(action[kind]["place"]))
        elif kind == "discarded":
            self.discarded.append(_place_from(action[kind]["place"]))
            self.discarded_files += action[kind]["files"].whole()
            self.discarded_bytes += action[kind]["size"].whole()
            if action[kind].get("path"):
                action[kind]["path"].text(names.MOST_PATH)
                action[kind]["pathSize"].whole()
        elif kind == "txn":
            action.refuse_where(self.run_key != "", "it is the second one of its kind")
            self.run_key, code = run_files.run_key_from(action[kind]["appId"]), action[kind].get("exitCode")
            self.exit_code = code.whole(0, max(Exit)) if code else None
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
        inside = unit.get("inside")
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
            undoes=logged.about,
            digest=run_files.digest_from(unit.get("digest")),
            inside=inside_from(inside, ()) if inside else None,
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

    def take_files(self, node: Node) -> None:
        """Store a part of a list of files, which a checkpoint has instead of `remove` and `add`: `unit`, `side`, `files`."""
        number, side = node["unit"].value, node["side"].one_of(SIDES)
        unit = self.exchanged.get(number) if type(number) is int else None
        if unit is None:
            node["unit"].refuse("no unit before it in this entry has this number and a place for its files")
        found = run_files.files_from(node["files"])
        self.files += len(found)
        node.refuse_where(self.files > 2 * MOST_FILES, f"there are more than {2 * MOST_FILES} files")
        if side == BEFORE:
            unit.keeps_before = True
            unit.before.extend(found)
        else:
            unit.keeps_after = True
            unit.after.extend(found)

    def as_run(self) -> LoggedRun:
        info = self.info
        if info is None:
            raise strict.foreign(self.where, "", "it has no commitInfo")
        for effect, found in zip(self.effects, self.exchanged.values()):
            _refuse_twins(self.where, effect, found.before)
            _refuse_twins(self.where, effect, found.after)
            if effect.inside and found.keeps_after:
                _refuse_outside(self.where, effect.number, effect.inside, found)
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
            run_key=self.run_key,
            exit_code=self.exit_code,
            discarded_files=self.discarded_files,
            discarded_bytes=self.discarded_bytes,
        )


def _refuse_twins(where: str, effect: Effect, files: Sequence[ManifestFile]) -> None:
    if len(set(map(itemgetter(0), files))) != len(files):
        raise strict.foreign(where, f"unit {effect.number}", "one of its files stands there twice")


def _refuse_outside(where: str, number: UnitNumber, inside: Inside, found: _Exchanged) -> None:
    if [(file.name, file.length) for file in found.after] != [(inside.file, inside.length)]:
        raise strict.foreign(where, f"unit {number}", "its old files are in a file that it did not put into live")
    if inside.begin + sum(file.length for file in found.before) > inside.length:
        raise strict.foreign(where, f"unit {number}", "its old files are larger than the file that they are in")


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
    known, gap, code, about = unit.get("source"), unit.get("gapMs"), unit.get("reasonCode"), unit.get("backup")
    source = Extent(known["files"].whole(), known["size"].whole(), known["modificationTime"].whole(strict.LOWEST)) if known else None
    partition = unit["partition"].text(names.MOST_PATH) if columns is None else check(unit["partition"], columns)
    if unit.get("rows"):
        unit["rows"].whole()
    return LoggedUnit(
        partition=partition,
        outcome=_outcome_from(unit["outcome"]),
        reason=unit["reason"].text(strict.MOST_TEXT),
        gap_ms=gap.number() if gap else None,
        late_files=tuple(strict.file_name_from(item) for item in unit["lateFiles"].each(MOST_FILES)),
        live=run_files.live_from(unit["live"], partition),
        source=source,
        reason_code=code.text() if code else "",
        about=(run_files.run_id_from(about["run"]), run_files.number_from(about["unit"])) if about else None,
    )


def _outcome_from(node: Node) -> Outcome:
    try:
        return Outcome.of_code(node.text())
    except ValueError as error:
        node.refuse(str(error))
