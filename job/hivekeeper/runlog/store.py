"""Read a table's log and the files of its runs, and write files atomically.

Reads what docs/on-disk.md describes; anything that cannot be trusted is refused with what, state and next.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import (
    Callable,
    Collection,
    Container,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from hivekeeper import names
from hivekeeper.errors import NeedsInvestigation, Refused
from hivekeeper.model import FileInfo, Snapshot, Table
from hivekeeper.names import ControlPaths, RunId, RunPaths
from hivekeeper.ports import Cluster, Files, FilesError, NoPermission, SourceMissing, SourceReplaced
from hivekeeper.reasons import Code
from hivekeeper.runlog import checkpoint, orphan_mark, run_files, strict
from hivekeeper.runlog.checkpoint import Checkpoint
from hivekeeper.runlog.entries import longest_entry, longest_line, longest_unit
from hivekeeper.runlog.entry_reader import read_entry
from hivekeeper.runlog.expiry import count_expired
from hivekeeper.runlog.history import History, LoggedRun, UnitKey, reconcile
from hivekeeper.runlog.keeper import Keeper
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.orphan_mark import OrphanMark
from hivekeeper.runlog.replay import FileSet, files_at
from hivekeeper.runlog.run_files import (
    Certificate,
    PlannedUnit,
    RunPlan,
    certificates_from_lines,
    check_plan,
    plan_from_lines,
    plan_pieces,
    planned_table,
    unit_piece,
    why_not_of_plan,
)
from hivekeeper.runlog.strict import ForeignRecord, NewerRecord, UnreadableRecord

log = logging.getLogger(__name__)

Read = TypeVar("Read")
# Of one unit: the files that left live, and those that live got.
FileLists = Tuple[Tuple[ManifestFile, ...], Tuple[ManifestFile, ...]]

# What a record says is held in memory. A run has at most a million files, at 256 bytes each: name, length, time and id take about 110, or
# 330 with the longest name that HDFS allows.
MOST_RECORD_BYTES = 256 * 1_000_000
# For each file an entry has two lines of up to about a kilobyte, one for the old file and one for the new.
MOST_ENTRY_BYTES = 2 * 1024 * 1_000_000
MOST_MARK_BYTES = 10_000
# The bits of a mode that let others write; with an ACL they are its mask.
WRITE_OF_OTHERS = 0o022
# The size of one call that reads several files. The driver's JVM holds it about four times: as bytes, text, JSON and answer.
LOT_BYTES = 8 * 2**20


@dataclass(frozen=True)
class LogFiles:
    """The entries and checkpoints of a log by number, and the id of the directory that has them."""

    entries: Mapping[int, FileInfo]
    checkpoints: Mapping[int, FileInfo]
    directory_id: int


def read_history(cluster: Cluster, control: ControlPaths) -> History:
    """The current log. Raises Refused if a newer version wrote it, NeedsInvestigation if it cannot be read.

    Entries never change and name every file of their units, so each is read and parsed once per table; most of them from a checkpoint.
    `Keeper` drops lists of files that are no longer needed; read_whole reads them again.
    """
    with _explained():
        return _read_listed(cluster, list_log(cluster.files, control), control.log)


def read_listed(cluster: Cluster, log_directory: Snapshot, where: str) -> History:
    """The log that was seen by this look at its directory, `where`; raises like read_history."""
    with _explained():
        return _read_listed(cluster, _log_files_in(log_directory), where)


def _read_listed(cluster: Cluster, log_files: LogFiles, where: str) -> History:
    listed = log_files.entries
    known = {version: cluster.log_entries[key] for version, key in listed.items() if key in cluster.log_entries}
    repeated = Checkpoint()
    if len(known) < len(listed) or 0 not in listed:
        _, repeated = _read_checkpoint(cluster, log_files)
    known, keeper = {**repeated.runs, **known}, Keeper()
    unread = iter(_read_entries(cluster, {version: key for version, key in listed.items() if version not in known}, keeper))
    found: Dict[int, LoggedRun] = {}
    for version in sorted({*listed, *range(repeated.expired)}, reverse=True):
        entry = known[version] if version in known else next(unread)
        if entry is not None:
            found[version] = keeper.pass_by(entry)
            if version in listed:
                cluster.log_entries[listed[version]] = found[version]
    return reconcile(found, where)


def _read_checkpoint(cluster: Cluster, log_files: LogFiles) -> Tuple[Optional[FileInfo], Checkpoint]:
    """The newest checkpoint that can be used, and its file; an empty one where there is none. Raises NewerRecord.

    One that was read before has only its expired entries: the others are known.
    """
    listed, checkpoints = log_files.entries, log_files.checkpoints
    # One that is ahead of the entries is of a log that was restored since.
    usable = [checkpoints[version] for version in sorted(checkpoints, reverse=True) if version in listed]
    usable.sort(key=lambda file: file not in cluster.log_entries)
    # In a copy of the log, files have other ids and times. Where entries are missing, a checkpoint of entries of the same sizes is believed
    # about the expired ones; the others are read.
    for file, exact in [(file, True) for file in usable] + [(file, False) for file in usable if 0 not in listed]:
        try:
            found = cluster.log_entries.get(file)
            if found is None or found.expired < min(listed):
                found = checkpoint.read(_unpacked(cluster, file), file.path, listed, exact)
            expired = {version: run for version, run in found.runs.items() if run.expired}
            cluster.log_entries[file] = Checkpoint(expired, found.expired, found.base)
            return file, found
        except NewerRecord:
            raise
        except (SourceMissing, NoPermission):
            # A run that wrote a newer one has removed it; or it has more entries than the group may read.
            continue
        except UnreadableRecord as error:
            log.warning("step=read-log reason=%r", f"{error}; it is not used, the entries are read instead")
    return None, Checkpoint()


def _unpacked(cluster: Cluster, file: FileInfo) -> Iterator[str]:
    _refuse_large(file)
    _require_trusted(cluster, file)
    return strict.lines_of(checkpoint.decompress(cluster.files.read_bytes(file), file.path), file.path)


@dataclass(frozen=True)
class NewCheckpoint:
    """The content of a checkpoint to write, and what it says; the one that it follows; and the files of the entries that are expired
    according to both.
    """

    content: bytes
    history: History
    follows: Optional[FileInfo]
    expired: Tuple[FileInfo, ...]


def make_checkpoint(cluster: Cluster, control: ControlPaths, log_files: LogFiles, retention_ms: int) -> NewCheckpoint:
    """A checkpoint of all these entries. Raises like read_history, and FilesError; also if it could not be read again, as one may be all
    that is left of expired entries.
    """
    with _explained():
        # Of the entries that were listed: at the log's path may be another log by now, and only these files are said to be expired.
        history, listed = _read_listed(cluster, log_files, control.log), log_files.entries
        replaced = [file.path for file in listed.values() if file not in cluster.log_entries]
        if replaced:
            raise SourceReplaced(f"{replaced[0]} is not the entry that was listed")
        follows, former = _read_checkpoint(cluster, log_files)
        history = History(history.runs[: max(listed) + 1])
        written_ms = {version: file.mtime_ms for version, file in listed.items()}
        expired = max(former.expired, count_expired(history, written_ms, retention_ms))
        fresh = [listed[version] for version in range(former.expired, expired)]
        base = files_at(_texts(cluster, fresh), former.base)
        texts = _repeat(cluster, listed, follows)
        content = checkpoint.compress(checkpoint.lines_of(texts, history, expired, base, control.log))
        _require_readable(content, control.log, listed, history)
        return NewCheckpoint(content, history, follows, tuple(listed[version] for version in range(former.expired) if version in listed))


def _require_readable(content: bytes, where: str, listed: Mapping[int, FileInfo], history: History) -> None:
    """Raise UnreadableRecord unless a new checkpoint says of the backups what the log says."""
    if len(content) > MOST_RECORD_BYTES:
        raise UnreadableRecord(f"{where}: a checkpoint would have more than {MOST_RECORD_BYTES} bytes")
    standing = {effect.key for effect in history.standing}
    lines = strict.lines_of(checkpoint.decompress([content], where), where)
    for number, run in checkpoint.read_runs(lines, where, listed):
        told = history.runs[number]
        is_same = _lists_of(run, standing) == _lists_of(told, standing) and (run.expired or run.discarded == told.discarded)
        if not is_same:
            raise UnreadableRecord(f"{where}: a checkpoint would not say what entry {number} says")


def _lists_of(run: LoggedRun, wanted: Container[UnitKey]) -> List[Tuple[UnitKey, FileLists]]:
    return [(effect.key, (effect.before, effect.after)) for effect in run.effects if effect.key in wanted]


def _repeat(
    cluster: Cluster, listed: Mapping[int, FileInfo], follows: Optional[FileInfo]
) -> Iterator[Tuple[Mapping[str, int], Iterable[str]]]:
    """Each entry's identity and lines, oldest first: from a checkpoint as long as it is of the same files, then from the later entries."""
    done = 0
    if follows is not None:
        entries = checkpoint.entries_in(_unpacked(cluster, follows), follows.path)
        next(entries)
        for entry, lines in entries:
            told = {key: value for key, value in entry.value.items() if key != "version"}
            if done in listed and told != checkpoint.identity(listed[done]):
                break
            yield told, lines
            done += 1
    later = [listed[version] for version in sorted(listed) if version >= done]
    yield from ((checkpoint.identity(file), lines) for file, (_, lines) in zip(later, _texts(cluster, later)))


def _texts(cluster: Cluster, wanted: Sequence[FileInfo]) -> Iterator[Tuple[str, Iterable[str]]]:
    """The path and lines of each. Raises SourceMissing."""
    for file, pieces in _read_all(cluster, wanted):
        if pieces is None:
            raise SourceMissing(file.path)
        yield file.path, strict.lines_of(pieces, file.path)


def read_whole(cluster: Cluster, control: ControlPaths, history: History, since: int = 0, until: Optional[int] = None) -> History:
    """The history with the complete lists of files of some entries, for questions about older runs; raises like read_history."""
    wanted = {
        run.version
        for run in history.runs[since : until if until is None else until + 1]
        if not run.expired and not all(effect.whole for effect in run.effects)
    }
    if not wanted:
        return history
    with _explained():
        listed = {version: key for version, key in list_log(cluster.files, control).entries.items() if version in wanted}
        runs = {run.version: run for run in history.runs}
        for entry in _read_entries(cluster, listed, Keeper()):
            if entry is not None:
                runs[entry.version] = entry
        return reconcile(runs, control.log)


def _read_entries(cluster: Cluster, listed: Mapping[int, FileInfo], keeper: Keeper) -> Iterator[Optional[LoggedRun]]:
    """The entries, newest first; None for one that was listed but has disappeared."""
    newest_first = sorted(listed, reverse=True)
    for version, (file, pieces) in zip(newest_first, _read_all(cluster, [listed[version] for version in newest_first])):
        yield None if pieces is None else read_entry(strict.lines_of(pieces, file.path), version, file.path, keeper)


def _read_all(cluster: Cluster, wanted: Sequence[FileInfo]) -> Iterator[Tuple[FileInfo, Optional[Iterable[str]]]]:
    """The texts of files, None for one that has disappeared. Small files are read together in one call, a large one by itself in pieces.

    So no call returns more than LOT_BYTES, whatever the number and length of the files. What is read was written by the owner that the
    listing shows, even if somebody exchanges directories meanwhile: steps/ownership.py has checked what lies at these paths, perhaps
    another file.
    """
    files = cluster.files
    for file in wanted:
        _require_trusted(cluster, file)
    lot: List[FileInfo] = []
    length = 0
    for file in wanted:
        if lot and length + file.length > LOT_BYTES:
            yield from _read_lot(files, lot)
            lot, length = [], 0
        lot.append(file)
        length += file.length
    yield from _read_lot(files, lot)


def _read_lot(files: Files, lot: Sequence[FileInfo]) -> Iterator[Tuple[FileInfo, Optional[Iterable[str]]]]:
    if len(lot) == 1 and lot[0].length > LOT_BYTES:
        yield lot[0], files.read_pieces(lot[0])
        return
    texts = files.read_texts(lot)
    for file in lot:
        yield file, [texts[file.path]] if file.path in texts else None


def read_files_at(cluster: Cluster, control: ControlPaths, version: int) -> FileSet:
    """The files known to the log at a version whose entry is not expired; raises like read_history."""
    with _explained():
        log_files = list_log(cluster.files, control)
        former = Checkpoint() if 0 in log_files.entries else _read_checkpoint(cluster, log_files)[1]
        wanted = [file for number, file in sorted(log_files.entries.items()) if former.expired <= number <= version]
        return files_at(_texts(cluster, wanted), former.base)


@contextmanager
def _explained(state: str = "nothing was changed") -> Iterator[None]:
    """Turn a record that cannot be trusted into an error of its table."""
    try:
        yield
    except SourceReplaced as error:
        raise _put_in_place(str(error)) from error
    except NewerRecord as error:
        raise Refused(
            str(error), code=Code.NEWER_LOG, state=state, next="use the version of Hivekeeper that wrote it, or a later one"
        ) from error
    except ForeignRecord as error:
        raise NeedsInvestigation(
            str(error),
            code=Code.FOREIGN_RECORD,
            state=state,
            next="find out who wrote it (its owner, its time); do not delete it: it may say where old files are",
        ) from error
    except UnreadableRecord as error:
        raise NeedsInvestigation(
            str(error), code=Code.UNREADABLE_LOG, state=state, next="look at the file; do not delete it: it says where the old files are"
        ) from error


def _require_trusted(cluster: Cluster, file: FileInfo) -> None:
    """Raise NeedsInvestigation if others may have written this file."""
    why = why_not_trusted(cluster.files, file, cluster.trusted_owners)
    if why:
        raise _put_in_place(why)


def why_not_trusted(files: Files, file: FileInfo, trusted: Collection[str]) -> str:
    """Why others than this user and the trusted ones may have written a file, "" if they cannot have."""
    if file.owner != files.user_at(file.path) and file.owner not in trusted:
        return f"{file.path} belongs to {file.owner}"
    if file.mode & WRITE_OF_OTHERS:
        return f"{file.path} may be written by others (mode {file.mode:04o})"
    return ""


def _put_in_place(what: str) -> NeedsInvestigation:
    return NeedsInvestigation(
        f"{what}: it was put in the place of a record that was checked a moment ago",
        code=Code.RECORDS_OF_ANOTHER,
        state="nothing that lies there was believed",
        next="find out who exchanges directories in the table's root",
    )


def _refuse_large(file: FileInfo, most: int = MOST_RECORD_BYTES) -> None:
    """Checked before reading: a record written to exhaust our memory would end the work on all other tables."""
    if file.length > most:
        raise strict.foreign(file.path, "", f"it has {file.length} bytes, more than {most}")


def written_times(cluster: Cluster, control: ControlPaths) -> Mapping[int, int]:
    """When the entries of a log were written, by the NameNode's clock."""
    with _explained():
        return {version: file.mtime_ms for version, file in list_log(cluster.files, control).entries.items()}


def list_log(files: Files, control: ControlPaths) -> LogFiles:
    """The files of a log. Raises UnreadableRecord for an entry that is too large."""
    return _log_files_in(files.look([control.log])[control.log])


def _log_files_in(log_directory: Snapshot) -> LogFiles:
    seen = log_directory.entries
    entries = {version: entry for entry in seen for version in [names.log_version(entry.name)] if version is not None}
    for entry in entries.values():
        _refuse_large(entry, MOST_ENTRY_BYTES)
    checkpoints = {version: entry for entry in seen for version in [names.checkpoint_version(entry.name)] if version is not None}
    return LogFiles(entries, checkpoints, log_directory.file_id)


def find_runs(files: Files, control: ControlPaths) -> List[str]:
    """Names of the run directories, oldest first."""
    return list(list_runs(files, control))


def list_runs(files: Files, control: ControlPaths) -> Dict[str, FileInfo]:
    """The run directories by name, oldest first."""
    entries = files.look([control.runs])[control.runs].entries
    return {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name) if entry.is_dir and names.run_of(entry.name)}


def run_of(directory: str) -> RunId:
    run = names.run_of(directory)
    if run is None:
        raise ValueError(f"{directory} is not the name of a run directory")
    return run


def read_plan(cluster: Cluster, table: Table, paths: RunPaths) -> Optional[RunPlan]:
    """A run's plan; None if there is none. Raises like read_history."""
    return _read_of_plan(cluster, table, paths, plan_from_lines)


def may_be_owned_alike(cluster: Cluster, table: Table, logged: Iterable[LoggedRun], listed: Container[str]) -> bool:
    """Whether the first plan that can be read of these finished runs, which are of one table, is of one with this table's owner; so it may
    be if no directory of them is `listed`. Anybody can create a table in the second of another one, but a rename keeps the owner.

    A damaged plan ends no command: of a run that has ended, nothing else is asked of it.
    """
    control = ControlPaths.of(table.location, table.partitioned)
    there = [control.run(run.directory) for run in logged if run.directory in listed]
    for paths in there:
        try:
            planned = _read_of_plan(cluster, table, paths, planned_table)
        except (NeedsInvestigation, FilesError) as error:
            log.warning("table=%s step=read-plan failed reason=%r", table.log_field, str(error))
            continue
        if planned is not None:
            return planned.owner == table.owner
    return not there


def _read_of_plan(
    cluster: Cluster, table: Table, paths: RunPaths, read: Callable[[Iterator[str], str, str, RunId], Read]
) -> Optional[Read]:
    with _explained(f"nothing of the run in {paths.top} was touched"):
        file = cluster.files.stat(paths.plan)
        if file is None:
            return None
        _refuse_large(file)
        _require_trusted(cluster, file)
        try:
            lines = strict.lines_of(cluster.files.read_pieces(file), paths.plan)
            return read(lines, table.location, paths.plan, run_of(names.base(paths.top)))
        except SourceMissing:
            return None
        except NewerRecord as error:
            # Unlike a log from a newer version, this plan may belong to a run that stopped in the gap.
            raise UnreadableRecord(str(error)) from error


def read_mark(cluster: Cluster, control: ControlPaths) -> Optional[Tuple[OrphanMark, int]]:
    """What marks a control directory as an orphan, and since when by the NameNode's clock; None without a mark that can be read.

    Raises NeedsInvestigation if others may have written it.
    """
    file = cluster.files.stat(control.mark)
    if file is None:
        return None
    _require_trusted(cluster, file)
    if file.is_dir or file.length > MOST_MARK_BYTES:
        return None
    try:
        return orphan_mark.from_text("".join(cluster.files.read_pieces(file)), control.mark), file.mtime_ms
    except (SourceMissing, SourceReplaced, UnreadableRecord):
        return None


class RecordSize(NamedTuple):
    """How large the records of a run are: the units and files of its plan, and its bytes; the bytes of its log entry at most, and the
    characters of the longest line in that.
    """

    units: int
    files: int
    plan_bytes: int
    entry_bytes: int
    line: int

    def plus(self, more: RecordSize) -> RecordSize:
        return RecordSize(*map(sum, zip(self, more)))

    @property
    def why_too_large(self) -> str:
        """Which limit they exceed, beyond which no command would read them again; "" if none."""
        limits = (
            (self.plan_bytes, MOST_RECORD_BYTES, "its plan would have more than {} bytes"),
            (self.entry_bytes, MOST_ENTRY_BYTES, "its log entry could have more than {} bytes"),
            (self.line, strict.MOST_LINE, "its log entry could have a line of more than {} characters"),
            (self.units, run_files.MOST_UNITS, "its plan would have more than {} units"),
            (self.files, run_files.MOST_FILES, "its plan would have more than {} files"),
        )
        return next((what.format(most) for size, most, what in limits if size > most), "")


def why_not_readable(paths: RunPaths, plan: RunPlan, created_ms: int) -> str:
    """Why the plan or the log entry of this run could not be read back; "" if they can. Called before anything is changed."""
    size = RecordSize(
        units=len(plan.units),
        files=sum(map(_files_of, plan.units)),
        plan_bytes=sum(map(_bytes_of, plan_pieces(plan, created_ms))),
        entry_bytes=longest_entry(plan),
        line=longest_line(plan.units),
    )
    if size.why_too_large:
        return size.why_too_large
    try:
        check_plan(plan, created_ms, paths.plan, run_of(names.base(paths.top)))
        return ""
    except UnreadableRecord as error:
        return str(error)


def _files_of(unit: PlannedUnit) -> int:
    return len(unit.manifest) + len(unit.expected)


def _bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


# Of the first line of a plan: what is not known yet, as the run's key.
_SPARE_BYTES = 10_000


class PlanRoom:
    """What the limits of `RecordSize` allow in one run: units are taken as long as they fit. `plan` has none yet, and perhaps no run."""

    def __init__(self, plan: RunPlan) -> None:
        self._root = plan.table.location
        first_line = _SPARE_BYTES + sum(map(_bytes_of, plan_pieces(plan, 0)))
        self._taken = RecordSize(units=0, files=0, plan_bytes=first_line, entry_bytes=0, line=longest_line(()))

    def take(self, units: Sequence[PlannedUnit]) -> bool:
        """Whether there is room for all of them; if not, none is taken."""
        size = self._taken
        for unit in units:
            size = size.plus(self._size_of(unit))
        if size.why_too_large:
            return False
        self._taken = size
        return True

    def _size_of(self, unit: PlannedUnit) -> RecordSize:
        return RecordSize(
            units=1,
            files=_files_of(unit),
            plan_bytes=_bytes_of(unit_piece(unit, self._root)),
            entry_bytes=longest_unit(unit),
            line=longest_line([unit]) - longest_line(()),
        )


def read_certificates(cluster: Cluster, paths: RunPaths, plan: RunPlan) -> Dict[int, Certificate]:
    """All certificates of a run, by unit number. Raises like read_history, also for one that does not fit the plan."""
    with _explained(f"the run in {paths.top} is unfinished; nothing of it was touched"):
        entries = cluster.files.look([paths.top])[paths.top].entries
        found = [entry for entry in entries if names.CERTIFICATES.fullmatch(entry.name)]
        for entry in found:
            _refuse_large(entry)
        units = {unit.number: unit for unit in plan.units}
        certificates: Dict[int, Certificate] = {}
        for entry, pieces in _read_all(cluster, found):
            for one in certificates_from_lines(strict.lines_of(pieces or (), entry.path), entry.path):
                why = why_not_of_plan(one, units)
                if why:
                    raise strict.foreign(entry.path, "a certificate", why)
                certificates[one.unit] = one
        return certificates


def write_durably(files: Files, path: str, text: Union[str, Iterable[str]], mode: int) -> None:
    """Write a file atomically: it exists complete or not at all."""
    # A kill between the two calls leaves a .part, which nothing reads and which is deleted with its run.
    files.write_new(path + ".part", text, mode)
    files.rename_exact(path + ".part", path)
