"""Remove a control directory that holds nothing but its records: it is set aside, looked at there, and deleted record by record.

Never deletes a backup, a file that no run writes there, or a directory as a tree.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Collection, Dict, List, Mapping, Optional, Tuple

from hivekeeper import names, quoting
from hivekeeper.errors import HivekeeperError, Locked, NeedsInvestigation
from hivekeeper.model import FileInfo, Snapshot, Table
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.plan import listings
from hivekeeper.plan.ownership import judge
from hivekeeper.plan.retention import list_backups
from hivekeeper.ports import Cluster, Files, FilesError, Lock, NotPossible, TargetExists
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.history import History

log = logging.getLogger(__name__)

# How long what a run makes may take to come to its place, whatever clocks say. It takes milliseconds.
AT_WORK_MS = 86_400_000
# Of entries in what may be left then, which are two.
MOST_UNBORN = 10


@dataclass(frozen=True)
class Aside:
    """A control directory that was set aside, by one look at it: whoever may rename beside it can put another one at its path later.

    `records`: each with the id of the directory that it is in, in the order in which they may be deleted. `strangers`: what is there
    besides. `history`: the log, None if its deletion has begun, so that entries may be missing.
    """

    paths: ControlPaths
    directory_id: int
    records: Tuple[Tuple[FileInfo, int], ...]
    strangers: Tuple[str, ...]
    history: Optional[History]

    @property
    def needed(self) -> List[str]:
        """What is more than records, or a backup that only its log knows: one inside a joined file has no directory there."""
        backups = list_backups(self.history) if self.history else ()
        return [*self.strangers, *(f"the backup of run {backup.run}" for backup in backups)]


def find_strangers(files: Files, control: ControlPaths) -> List[str]:
    """What lies in a control directory besides its log and its lock: what is left of runs, and files that no run writes there."""
    return _strangers_among(files.look([control.top, control.log, control.runs]), control)


def explain_stranger(path: str) -> str:
    return f"{path} is no record: a run has kept files in it, perhaps the only copy of rows, or somebody else has made it"


def _strangers_among(seen: Mapping[str, Snapshot], control: ControlPaths) -> List[str]:
    files = (control.seal, control.lock, control.mark, control.new_mark)
    known = {control.log: True, control.runs: True, **dict.fromkeys(files, False)}
    inside = [entry for entry in seen[control.top].entries if known.get(entry.path) is not entry.is_dir]
    inside += [entry for entry in seen[control.log].entries if not _is_of_log(entry)]
    return [entry.path for entry in (*inside, *seen[control.runs].entries)]


def read_aside(cluster: Cluster, removed: ControlPaths) -> Aside:
    """Look at a control directory that was set aside. Raises like read_history; and NeedsInvestigation if it is exchanged meanwhile."""
    seen = cluster.files.look([removed.top, removed.log, removed.runs])
    top, logged = seen[removed.top], seen[removed.log]
    for entry in top.entries:
        if entry.is_dir and entry.path in seen and seen[entry.path].file_id != entry.file_id:
            raise _exchanged(entry.path)
    files = {entry.path: entry for entry in top.entries if not entry.is_dir}
    first = [files[path] for path in (removed.lock, removed.seal, removed.mark, removed.new_mark) if path in files]
    records = [(file, top.file_id) for file in first] + [(file, logged.file_id) for file in logged.entries if _is_of_log(file)]
    # Their owners were looked at before, perhaps at another directory.
    of_others = [file.path for file, _ in records if store.why_not_trusted(cluster.files, file, cluster.trusted_owners)]
    history = store.read_listed(cluster, logged, removed.log) if removed.lock in files else None
    if history is not None and len(history.runs) != _count_entries(logged):
        # An entry that was not there when it was to be read does not count as one that never was.
        raise _exchanged(removed.log)
    return Aside(removed, top.file_id, tuple(records), (*_strangers_among(seen, removed), *of_others), history)


def _count_entries(log_directory: Snapshot) -> int:
    """Of the log, with those that are expired."""
    versions = [names.log_version(entry.name) for entry in log_directory.entries]
    return 1 + max((version for version in versions if version is not None), default=-1)


def _is_of_log(entry: FileInfo) -> bool:
    numbers = (names.log_version(entry.name), names.checkpoint_version(entry.name))
    return not entry.is_dir and numbers != (None, None)


def set_aside(cluster: Cluster, table: Table, control: ControlPaths, lock: Lock, run: RunId, about: Collection[str]) -> Aside:
    """Rename a control directory to a name that no command takes for records, with the lock held. Undo: put_back.

    A run that has lost the lock can no longer write there afterwards. So only then is looked for what it had written before: if there is
    anything, or if somebody had put another directory there, it goes back; so it does if a call fails before that is known. `about`: the
    ids of the tables that its log is about.
    """
    files, removed = cluster.files, ControlPaths(control.removed(run))
    before = files.stat(control.top)
    if before is None or not lock.check():
        raise _taken(table, control)
    try:
        files.rename_exact(control.top, removed.top)
        aside = read_aside(cluster, removed)
        needed = aside.needed or _find_foreign(aside, before, about)
    except HivekeeperError as error:
        needed = [str(error)]
    except FilesError as error:
        _put_back_if_there(cluster, table, removed, control, str(error), before.file_id)
        raise
    if needed:
        _put_back_if_there(cluster, table, removed, control, needed[0])
        raise _unknown(table, control, needed[0])
    return aside


def _put_back_if_there(cluster: Cluster, table: Table, removed: ControlPaths, control: ControlPaths, why: str, only_id: int = 0) -> None:
    """Put back what was set aside, or perhaps was: only a directory with this id, unless it is 0. Raises NeedsInvestigation if that cannot
    be done: no later command but another removal looks there.
    """
    try:
        there = cluster.files.stat(removed.top) if only_id else None
        if not only_id or there is not None and there.file_id == only_id:
            put_back(cluster, table, removed, control)
    except FilesError as error:
        raise NeedsInvestigation(
            f"{table.full_name}: {removed.top} may have its records, and cannot be moved back ({error}): {why}",
            code=Code.UNKNOWN_FILES,
            state="nothing was removed; if another run was at work just then, rows that readers miss may be there",
            next=f"once HDFS answers, if it is there: {_by_hand(table, removed, control)}",
        ) from error


def _find_foreign(aside: Aside, before: FileInfo, about: Collection[str]) -> List[str]:
    """What shows that this is not the directory that the caller has looked at."""
    if aside.history is None:
        return [f"{aside.paths.log}, without its lock"]
    if {run.table_id for run in aside.history.runs} != set(about):
        return [f"{aside.paths.log}, which is about other tables"]
    return [] if aside.directory_id == before.file_id else [aside.paths.top]


def put_back(cluster: Cluster, table: Table, removed: ControlPaths, control: ControlPaths) -> None:
    """Rename a control directory that holds more than records back to its place. Raises NeedsInvestigation if another one is there."""
    try:
        cluster.files.rename_exact(removed.top, control.top)
    except TargetExists as error:
        raise NeedsInvestigation(
            f"{table.full_name}: its records, which are still needed, are at {removed.top}, and there is a new {control.top}",
            code=Code.UNKNOWN_FILES,
            state="nothing was removed",
            next=f"move the new one away, then: {_by_hand(table, removed, control)}",
        ) from error
    log.warning("step=put-records-back done path=%r", control.top)


def _by_hand(table: Table, removed: ControlPaths, control: ControlPaths) -> str:
    move = f"hdfs dfs -mv {quoting.hdfs(removed.top)} {quoting.hdfs(control.top)}"
    return f"{move}, then: hivekeeper recover --table {quoting.shell(table.full_name)}"


def delete_records(files: Files, aside: Aside) -> None:
    """Delete the records that were set aside. The lock goes first: while it is there, nothing is missing."""
    for file, directory_id in aside.records:
        files.delete_file(file.path, directory_id, file.file_id)
    for directory in (aside.paths.log, aside.paths.runs, aside.paths.top):
        files.remove_empty(directory)


def of_left(cluster: Cluster, entry: FileInfo) -> Optional[ControlPaths]:
    """The control directory of which a killed run may have left this beside its place; None if it is none of those. Of one that was being
    made only the directory is known in which it was to be. Where one may be made just now, nothing is left.
    """
    if not entry.is_dir or names.NEW.fullmatch(entry.name) is None:
        return ControlPaths.of_removed(entry.path) if entry.is_dir else None
    is_ours = entry.owner == cluster.files.user_at(entry.path)
    is_old = entry.mtime_ms <= cluster.clock.now_ms() - AT_WORK_MS
    return ControlPaths(names.join(names.parent(entry.path), names.CONTROL)) if is_ours and is_old else None


def remove_unborn(files: Files, place: str) -> bool:
    """Remove the directory in which a killed run was making a control directory; returns False, and removes nothing, if it holds more."""
    new = ControlPaths(names.join(place, names.CONTROL))
    seen = files.look([place, new.top], MOST_UNBORN)
    inside = seen[new.top].entries
    if {entry.path for entry in seen[place].entries} - {new.top} or {entry.path for entry in inside} - {new.seal}:
        return False
    for seal in inside:
        files.delete_file(seal.path, seen[new.top].file_id, seal.file_id)
    files.remove_empty(new.top)
    return files.remove_empty(place)


def why_not_ours(cluster: Cluster, removed: ControlPaths) -> str:
    """Why no killed run can have left this, "" if one may have: anybody may give a directory such a name, and must not end a command with
    it. The lock of the run that set it aside had closed it to all others; but somebody may have opened it since with all that lies around
    it, and then the seal tells.
    """
    try:
        judgement = judge(removed, cluster.files.exposed(removed.top, 0), cluster.trusted_owners)
    except NotPossible as too_many:
        return str(too_many)
    if judgement.why_not:
        return judgement.why_not.what
    seal = cluster.files.stat(removed.seal) if judgement.tighten else None
    is_ours = seal is not None and seal.owner in {cluster.files.user_at(removed.seal), *cluster.trusted_owners}
    return f"others may write to {removed.top}" if judgement.tighten and not is_ours else ""


class Removed:
    """What killed runs have left beside the places of control directories, for a command over many tables.

    Each unpartitioned table of a database has its control directory in the same one, so that it is listed only once. All that are kept have
    no more names together than one may have: whoever may write to tables can fill each of them.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # By the directory, then by where each was before, or would have been.
        self._known: Dict[str, Dict[str, List[ControlPaths]]] = {}
        self._count = 0

    def of(self, control: ControlPaths) -> List[ControlPaths]:
        """Of one control directory. Raises FilesError."""
        beside = names.parent(control.top)
        found = self._known.get(beside)
        if found is None:
            found, count = self._find(beside)
            # Nobody else asks for what is inside a table's directory.
            if not control.is_inside:
                self._keep(beside, found, count)
        return found.get(control.top, [])

    def _find(self, directory: str) -> Tuple[Dict[str, List[ControlPaths]], int]:
        found: Dict[str, List[ControlPaths]] = {}
        count = 0
        for entry in self._cluster.files.look_hidden_directories([directory], listings.MOST_BESIDE)[directory].entries:
            of_table = of_left(self._cluster, entry)
            if of_table is not None:
                found.setdefault(of_table.top, []).append(ControlPaths(entry.path))
                count += 1
        return found, count

    def _keep(self, directory: str, found: Dict[str, List[ControlPaths]], count: int) -> None:
        if self._count + count > listings.MOST_BESIDE:
            self._known.clear()
            self._count = 0
        self._known[directory] = found
        self._count += count


def finish_removal(cluster: Cluster, table: Table, aside: Aside) -> bool:
    """Finish what a killed run had begun; returns False if the directory was put back instead, because it holds more than records.

    Its name proves nothing: whoever may write beside it may have given another directory this name. So the caller has looked whose log it
    is, as far as that is whole. Raises NeedsInvestigation.
    """
    control, needed = ControlPaths.of_removed(aside.paths.top), aside.needed
    if not needed:
        delete_records(cluster.files, aside)
        return True
    if control is None or aside.history is None:
        raise _unknown(table, aside.paths, needed[0])
    put_back(cluster, table, aside.paths, control)
    return False


def _exchanged(path: str) -> NeedsInvestigation:
    return NeedsInvestigation(
        f"{path}: another directory was put in its place while it was looked at",
        code=Code.RECORDS_OF_ANOTHER,
        state="nothing of these records was removed",
        next="find out who exchanges directories beside the table's",
    )


def _taken(table: Table, control: ControlPaths) -> HivekeeperError:
    return Locked(
        f"{table.full_name}: another run took over {control.top}",
        code=Code.RUN_TAKEN_OVER,
        state="nothing was removed",
        next="look at the other run's result, then run again",
    )


def _unknown(table: Table, control: ControlPaths, stranger: str) -> NeedsInvestigation:
    return NeedsInvestigation(
        f"{table.full_name}: {control.top} holds more than records: {stranger}",
        code=Code.UNKNOWN_FILES,
        state="nothing was removed",
        next="find out who made it, move it away, then run again",
    )
