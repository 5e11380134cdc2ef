"""Refuse records that others may have written, and give a control directory its rights.

Changes rights only, and only of what is ours below a control directory.
"""

from __future__ import annotations

import logging
from typing import Collection, Dict, Iterable, Mapping

from hivekeeper.errors import NeedsInvestigation
from hivekeeper.model import OWNER_ONLY, Guard, Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import ownership
from hivekeeper.ports import Cluster, Files, NoPermission

log = logging.getLogger(__name__)

# For this user alone, as everything is made.
CLOSED = Guard(0o700, OWNER_ONLY)


def require_own_control(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> None:
    """The control directory itself, before anything is written there. Raises NeedsInvestigation."""
    _judge(cluster, table, control, trusted, 0)


def require_own_records(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> None:
    """Before anything that lies in the control directory is believed. Raises NeedsInvestigation."""
    for path in _judge(cluster, table, control, trusted, ownership.LEVELS):
        log.warning("table=%s step=check-records reason='others may write to %s; the next writing run forbids it'", table.full_name, path)


def tighten(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> None:
    """As require_own_records, with the lock: what is ours and others may write to is taken from them."""
    wide = _judge(cluster, table, control, trusted, ownership.LEVELS)
    if wide:
        cluster.files.guard(wide)
    for path, guard in wide.items():
        log.warning("table=%s step=tighten done path=%s mode=%04o reason='others could write to it'", table.full_name, path, guard.mode)


def _judge(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str], levels: int) -> Mapping[str, Guard]:
    found = ownership.judge(control, cluster.files.exposed(control.top, levels), trusted)
    if found.why_not is not None:
        why = found.why_not.about(table.full_name, "nothing was touched, and nothing that lies there was believed")
        raise NeedsInvestigation(why.what, code=why.code, state=why.state, next=why.next)
    return found.tighten


def find_rights(files: Files, table: Table, group_reads: bool, trusted: Collection[str]) -> Guard:
    """The rights of the directories that lead to backups. A table whose directory is away at the moment tells nothing."""
    root = files.attributes([table.location]).get(table.location)
    return CLOSED if root is None else ownership.share(root, group_reads, trusted)


def is_log_closed(files: Files, control: ControlPaths) -> bool:
    """Whether an earlier run closed the log to the group."""
    found = files.stat(control.log)
    return found is not None and ownership.is_closed(found.mode)


def open_up(files: Files, guard: Guard, log_directory: str, directories: Iterable[str]) -> Guard:
    """Give directories, which are this user's alone so far, their rights; gives those that they have."""
    for allowed in (guard, ownership.without_group(guard)):
        wanted: Dict[str, Guard] = dict.fromkeys(directories, allowed)
        try:
            files.guard({**wanted, log_directory: ownership.of_log(allowed)})
            return allowed
        except NoPermission as error:
            log.warning("step=open-control-directory group=not-kept reason=%r", str(error))
    return CLOSED
