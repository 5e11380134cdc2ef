"""Remove a control directory that holds nothing but its records: it is set aside, looked at there, and deleted record by record.

Never deletes a backup, a file that no run writes there, or a directory as a tree.
"""

from __future__ import annotations

import logging
from typing import Dict, List, Optional, Sequence

from hivekeeper import names, quoting
from hivekeeper.errors import HivekeeperError, Locked, NeedsInvestigation
from hivekeeper.model import FileInfo, Table
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.plan.retention import list_backups
from hivekeeper.ports import Cluster, Files, Lock, TargetExists
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.history import History
from hivekeeper.steps import ownership

log = logging.getLogger(__name__)

# Of hidden entries beside a control directory.
MOST_BESIDE = 200_000


def find_strangers(files: Files, control: ControlPaths) -> List[str]:
    """What lies in a control directory besides its log and its lock: what is left of runs, and files that no run writes there."""
    seen = files.look([control.top, control.log, control.runs])
    known = {control.log: True, control.runs: True, control.lock: False, control.mark: False, f"{control.mark}.part": False}
    inside = [entry for entry in seen[control.top].entries if known.get(entry.path) is not entry.is_dir]
    inside += [entry for entry in seen[control.log].entries if not _is_of_log(entry)]
    return [entry.path for entry in (*inside, *seen[control.runs].entries)]


def find_needed(cluster: Cluster, removed: ControlPaths) -> List[str]:
    """What of a control directory that was set aside is more than records, or a backup that only its log knows: one inside a joined file
    has no directory there.
    """
    strangers = find_strangers(cluster.files, removed)
    if strangers:
        return strangers
    try:
        history = read_log_set_aside(cluster, removed)
    except HivekeeperError as error:
        return [str(error)]
    return [f"the backup of run {backup.run}" for backup in list_backups(history)] if history else []


def read_log_set_aside(cluster: Cluster, removed: ControlPaths) -> Optional[History]:
    """The log of a control directory that was set aside; None if its deletion has begun, so that entries may be missing."""
    if cluster.files.stat(removed.lock) is None:
        return None
    return store.read_history(cluster, removed)


def _is_of_log(entry: FileInfo) -> bool:
    numbers = (names.log_version(entry.name), names.checkpoint_version(entry.name))
    return not entry.is_dir and numbers != (None, None)


def set_aside(cluster: Cluster, table: Table, control: ControlPaths, lock: Lock, run: RunId) -> ControlPaths:
    """Rename a control directory to a name that no command takes for records, with the lock held. Undo: put_back.

    A run that has lost the lock can no longer write there afterwards. So only then is looked for what it had written before: if there is
    anything, or if somebody had put another directory there, it goes back.
    """
    files, removed = cluster.files, ControlPaths(control.removed(run))
    before = files.stat(control.top)
    if before is None or not lock.check():
        raise _taken(table, control)
    files.rename_exact(control.top, removed.top)
    after = files.stat(removed.top)
    needed = find_needed(cluster, removed)
    if after is not None and (needed or after.file_id != before.file_id):
        put_back(cluster, table, removed, control)
        raise _unknown(table, control, needed[0] if needed else control.top)
    return removed


def put_back(cluster: Cluster, table: Table, removed: ControlPaths, control: ControlPaths) -> None:
    """Rename a control directory that holds more than records back to its place. Raises NeedsInvestigation if another one is there."""
    try:
        cluster.files.rename_exact(removed.top, control.top)
    except TargetExists as error:
        raise NeedsInvestigation(
            f"{table.full_name}: its records, which are still needed, are at {removed.top}, and there is a new {control.top}",
            code=Code.UNKNOWN_FILES,
            state="nothing was removed",
            next=f"move the new one away, then: hdfs dfs -mv {quoting.shell(removed.top)} {quoting.shell(control.top)}, then: "
            f"hivekeeper recover --table {quoting.shell(table.full_name)}",
        ) from error
    log.warning("step=put-records-back done path=%r", control.top)


def delete_records(files: Files, removed: ControlPaths) -> int:
    """Delete the records that were set aside; returns how many. The lock goes first: while it is there, nothing is missing."""
    records = files.look([removed.log])[removed.log].entries
    for path in (removed.lock, removed.mark, f"{removed.mark}.part", *(entry.path for entry in records if _is_of_log(entry))):
        files.delete_file(path)
    for directory in (removed.log, removed.runs, removed.top):
        files.remove_empty(directory)
    return len(records)


def find_removed(files: Files, control: ControlPaths, known: Dict[str, List[ControlPaths]]) -> List[ControlPaths]:
    """What killed runs have set aside of a control directory and have not deleted. `known`: of all tables, by the directory they are in.

    Each unpartitioned table of a database has its control directory in the same one, so that it is listed only once.
    """
    beside = names.parent(control.top)
    if beside not in known:
        hidden = files.look_hidden([beside], MOST_BESIDE)[beside].entries
        known[beside] = [ControlPaths(entry.path) for entry in hidden if entry.is_dir and ControlPaths.of_removed(entry.path)]
    return [removed for removed in known[beside] if ControlPaths.of_removed(removed.top) == control]


def finish_removal(cluster: Cluster, table: Table, removed: ControlPaths, trusted: Sequence[str]) -> bool:
    """Finish what a killed run had begun; returns False if the directory was put back instead, because it holds more than records.

    Its name proves nothing: whoever may write beside it may have given another directory this name. So the caller has looked whose log it
    is, as far as that is whole. Raises NeedsInvestigation.
    """
    files, control = cluster.files, ControlPaths.of_removed(removed.top)
    ownership.require_own_records(cluster, table, removed, trusted)
    needed = find_needed(cluster, removed)
    if not needed:
        delete_records(files, removed)
        return True
    if control is None or files.stat(removed.lock) is None:
        raise _unknown(table, removed, needed[0])
    put_back(cluster, table, removed, control)
    return False


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
