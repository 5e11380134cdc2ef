"""Refuse records that others may have written, and set the rights of a control directory.

Changes only rights, and only of our own files and directories below a control directory.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Callable, Collection, Dict, Iterable, Mapping, Optional, Sequence, Tuple

from hivekeeper import quoting
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.model import OWNER_ONLY, Attributes, Exposed, FileInfo, Guard, Snapshot, Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import ownership
from hivekeeper.ports import Cluster, Files, NoPermission, NotPossible
from hivekeeper.reasons import Code
from hivekeeper.runlog.run_files import PlannedUnit

log = logging.getLogger(__name__)

# Of entries in a control directory, which has six at most, besides what a killed doctor leaves.
MOST_ENTRIES = 100

# For this user alone, like everything when it is created.
CLOSED = Guard(0o700, OWNER_ONLY)


def require_own_control(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> None:
    """Check the control directory itself before anything is written there. Raises NeedsInvestigation."""
    _judge(cluster, table, control, trusted, 0)


def require_own_records(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> None:
    """Check everything in the control directory before any record is trusted. Raises NeedsInvestigation."""
    for path in _judge(cluster, table, control, trusted, ownership.LEVELS):
        log.warning(
            "table=%s step=check-records reason=%r", table.log_field, f"others may write to {path}; the next writing run forbids it"
        )


def require_no_others(cluster: Cluster, table: Table, control: ControlPaths, entries: Sequence[FileInfo], trusted: Collection[str]) -> None:
    """Raise NeedsInvestigation if nothing in a directory with these entries (the first MOST_ENTRIES) shows that we have made it: neither
    the seal, which somebody may have removed, nor a run or a log entry of ours. With one of these, somebody has put there what else is in
    it. Any directory may have one that is called `log`, or be empty.

    This user may own those of other tables, too, as wherever a copy could not be given away. Whoever may rename one without reading it
    would have it get this table's lock and records, and the rights of its root.
    """
    believed = {cluster.files.user_at(control.top), *trusted}

    def is_made_by_us(found: Iterable[FileInfo]) -> bool:
        return any(ownership.is_own(control, entry) and entry.owner in believed for entry in found)

    if is_made_by_us(entries):
        return
    inside = _look_inside(cluster.files, [entry.path for entry in entries if entry.is_dir and entry.path in (control.log, control.runs)])
    if is_made_by_us(inside):
        return
    strangers = ownership.find_strangers(control, entries) + [one.path for one in inside if not ownership.is_own(control, one)]
    why = f"{strangers[0]} is in it" if strangers else "nothing in it shows that a run has made it"
    raise NeedsInvestigation(
        f"{table.full_name}: {control.top} is not its control directory: {why}",
        code=Code.UNKNOWN_FILES,
        state="nothing that was in it was touched",
        next="find out whose it is, and who put it there: move what is not the table's away, and nothing else; if no more is in it, and it "
        f"is nobody's: {_explain_removal(control, entries)}; then run again",
    )


def _explain_removal(control: ControlPaths, entries: Sequence[FileInfo]) -> str:
    """The commands that remove a control directory in which only a lock and empty directories are left, and nothing else."""
    lock = [f"hdfs dfs -rm {quoting.hdfs(entry.path)}" for entry in entries if entry.path == control.lock and not entry.is_dir]
    inside = [entry.path for entry in entries if entry.path in (control.log, control.runs) and entry.is_dir]
    return "; ".join([*lock, *(f"hdfs dfs -rmdir {quoting.hdfs(path)}" for path in (*inside, control.top))])


def _look_inside(files: Files, directories: Sequence[str]) -> Sequence[FileInfo]:
    """The first entries; nothing where they may not be listed, so that nothing there counts as ours."""
    try:
        return [entry for one in files.look(directories, MOST_ENTRIES).values() for entry in one.entries] if directories else []
    except NoPermission:
        return []


def tighten(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str], is_new: bool = False) -> None:
    """Like require_own_records, with the lock held: removes others' write from our own directories and the lock.

    `is_new`: there is nothing yet to search.
    """
    wide = _judge(cluster, table, control, trusted, ownership.LEVELS, at_once=is_new)
    if wide:
        cluster.files.guard(wide)
    for path, guard in wide.items():
        log.warning("table=%s step=tighten done path=%r mode=%04o reason='others could write to it'", table.log_field, path, guard.mode)


def _judge(
    cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str], levels: int, at_once: bool = False
) -> Mapping[str, Guard]:
    found = ownership.judge(control, _find_exposed(cluster, table, control, levels if at_once else 0), trusted)
    if levels and not at_once and found.why_not is None:
        # Not before: in a directory of somebody else there may be millions of files, and their ACLs are asked for one by one.
        found = ownership.judge(control, _find_exposed(cluster, table, control, levels), trusted)
    if found.why_not is not None:
        why = found.why_not.about(table.full_name, "nothing was touched, and nothing that lies there was believed")
        raise NeedsInvestigation(why.what, code=why.code, state=why.state, next=why.next)
    return found.tighten


def _find_exposed(cluster: Cluster, table: Table, control: ControlPaths, levels: int) -> Sequence[Exposed]:
    try:
        return cluster.files.exposed(control.top, levels)
    except NotPossible as error:
        raise NeedsInvestigation(
            f"{table.full_name}: {error}, so who may have changed its records is not known",
            code=Code.RECORDS_WRITABLE,
            state="nothing was touched, and nothing that lies there was believed",
            next=f"find out who made them, and move away what is not the table's: hdfs dfs -ls -R {quoting.hdfs(control.top)}",
        ) from error


def find_rights(
    files: Files, table: Table, above: Sequence[str], group_reads: Callable[[str], bool], trusted: Collection[str]
) -> Tuple[Guard, Optional[Mapping[str, Attributes]]]:
    """The rights of the directories that lead to backups, none while the table's directory is missing; and those of the ones `above` the
    units, None if one of them is closed to somebody whom the table's root lets through. Then these rights show too much of such a unit.
    So they may if one is away, perhaps for just this call: whoever may rename it need not be one who may pass it.
    `group_reads`: whether a group may read everything that the records will describe.
    """
    places = list(dict.fromkeys([table.location, *above]))
    try:
        found = files.attributes(places)
    except NoPermission as error:
        log.warning("step=open-control-directory reason=%r", f"backups and records are for this user alone: {error}")
        return CLOSED, None
    root = found.get(table.location)
    if root is None:
        return CLOSED, None
    is_closed = len(found) < len(places) or any(ownership.is_narrower(one, root) for one in found.values())
    guard = ownership.share(root, not is_closed and group_reads(root.group), trusted)
    return guard, None if is_closed else found


def find_log_group(control_directory: Snapshot, log: str) -> Optional[str]:
    """The group that the log is open to, None if an earlier run closed it. A table that was given to another group since has been read by
    the former one, perhaps in units that the new one may not read.
    """
    found = [entry.group for entry in control_directory.entries if entry.path == log and not ownership.is_closed(entry.mode)]
    return found[0] if found else None


def close_log(files: Files, control: ControlPaths) -> None:
    """Close the log to the group, for good: a checkpoint repeats each entry, with the rights of the newest one."""
    try:
        files.guard({control.log: Guard(0o700)})
    except NoPermission as error:
        log.warning("step=close-log failed reason=%r", str(error))


def open_up(files: Files, guard: Guard, control: ControlPaths, directories: Iterable[str]) -> Guard:
    """Give directories, so far this user's alone, their rights, and the log and the lock theirs; returns the rights they have.

    The lock is the only file that changes: any other gets its rights when it is written. Whoever exchanges the control directory could
    have files in it, which others may write to, made such as are trusted.
    """
    for allowed in (guard, ownership.without_group(guard)):
        bare = replace(allowed, file_mode=None)
        wanted: Dict[str, Guard] = dict.fromkeys(directories, bare)
        lock = Guard(allowed.file_mode or OWNER_ONLY, group=allowed.group)
        try:
            files.guard({**wanted, control.log: replace(ownership.of_log(allowed), file_mode=None), control.lock: lock})
            return allowed
        except NoPermission as error:
            log.warning("step=open-control-directory group=not-kept reason=%r", str(error))
    return CLOSED


def keep_closed(files: Files, unit: PlannedUnit, place: str, wanted: Attributes) -> None:
    """Give a directory that is about to become live these rights; without the group, if that cannot be set. If that is not allowed either,
    it keeps its own.
    """
    guard = Guard(wanted.mode, group=wanted.group, acl=wanted.acl)
    for allowed in (guard, ownership.without_group(guard)):
        try:
            files.guard({place: replace(allowed, file_mode=None, file_id=wanted.directory_id)})
            log.info("unit=%s step=keep-closed done mode=%04o", unit.log_field, allowed.mode)
            return
        except NoPermission as error:
            log.warning("unit=%s step=keep-closed failed reason=%r", unit.log_field, str(error))
