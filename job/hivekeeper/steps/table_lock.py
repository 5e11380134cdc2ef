"""The locks of a table: our own, held by every writing command, and Hive's, held while live is exchanged."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Collection, Iterator, Sequence

from hivekeeper import names
from hivekeeper.config.settings import Settings
from hivekeeper.errors import Locked, NeedsInvestigation, Refused
from hivekeeper.model import FileInfo, Table
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.ports import Cluster, Files, FilesError, Lock, LockHeld, SourceMissing
from hivekeeper.reasons import Code
from hivekeeper.steps import ownership
from hivekeeper.steps.run_directory import Run
from hivekeeper.steps.timing import Step, timed

log = logging.getLogger(__name__)

# Once it was in vain, a run does not wait again, while other tables wait: whoever may read the table can keep a lock on it for hours.
HIVE_LOCK_WAIT_S, AT_ONCE_S = 5.0, 0.001
# How much of a lock file's text is shown; our own is about a hundred characters long.
MOST_HOLDER = 500


@contextmanager
def hold_table(cluster: Cluster, table: Table, control: ControlPaths, run: RunId, settings: Settings) -> Iterator[Lock]:
    """Keep the table's lock for the body. Raises Locked, Refused if the directory around the control directory is gone, and
    NeedsInvestigation for records that others may have written.

    Anyone who may write to the table's root can put another directory there at any moment. So the control directory is checked before the
    lock is taken, to leave no lock in a foreign one, and again with the lock held.
    """
    with timed(cluster, Step.LOCK):
        lock = _take(cluster, table, control, run, settings)
    try:
        entries = _require_control(cluster, table, control, _holder(cluster, run), settings.trusted_owners)
        is_new = not any(entry.is_dir for entry in entries)
        ownership.tighten(cluster, table, control, settings.trusted_owners, is_new)
        yield lock
    finally:
        _release(lock, control)


def _require_control(cluster: Cluster, table: Table, control: ControlPaths, holder: str, trusted: Collection[str]) -> Sequence[FileInfo]:
    """What is in the directory of the lock that is held, which no new lock stays in if it is another table's."""
    entries = cluster.files.look([control.top], ownership.MOST_ENTRIES)[control.top].entries
    # HDFS does not yet know the length of a new file.
    new_lock = [entry for entry in entries if entry.path == control.lock and entry.length in (0, len(holder.encode()) + 1)]
    try:
        ownership.require_no_others(cluster, table, control, [entry for entry in entries if entry not in new_lock], trusted)
    except NeedsInvestigation:
        if new_lock:
            cluster.files.delete_file(control.lock)
        raise
    return entries


def _holder(cluster: Cluster, run: RunId) -> str:
    since = datetime.fromtimestamp(cluster.clock.now_ms() / 1000, timezone.utc)
    return f"run {run} of {cluster.user} on {cluster.host} ({cluster.application()}) since {since:%Y-%m-%d %H:%M:%S} UTC"


def _take(cluster: Cluster, table: Table, control: ControlPaths, run: RunId, settings: Settings) -> Lock:
    ownership.require_own_control(cluster, table, control, settings.trusted_owners)
    try:
        return cluster.files.hold(control.lock, _holder(cluster, run))
    except LockHeld as held:
        shown = show_holder(held.holder)
        raise Locked(
            f"{table.full_name}: another run holds the table" + (f" ({shown})" if shown else ""),
            code=Code.TABLE_LOCKED,
            state="untouched by this run",
            next="wait for it; a killed run's lock ends by itself after about a minute",
        ) from held
    except SourceMissing as gone:
        require_no_file(cluster.files, table, control)
        raise Refused(
            f"{table.full_name}: its directory is gone: {names.parent(control.top)}",
            code=Code.TABLE_DIRECTORY_GONE,
            state="it was not made again: who removed it may be about to put another one there",
            next="run again later; if nobody puts one there, find out who removed it",
        ) from gone
    except FilesError:
        require_no_file(cluster.files, table, control)
        raise


def require_no_file(files: Files, table: Table, control: ControlPaths) -> None:
    """Raise Refused if a file is at the place of the control directory: listings treat it as a missing directory."""
    found = files.stat(control.top)
    if found is not None and not found.is_dir:
        raise Refused(
            f"{table.full_name}: {control.top} is a file, and should be the control directory",
            code=Code.CONTROL_NOT_A_DIRECTORY,
            next="find out who made it, move it away, then run again",
        )


def show_holder(text: str) -> str:
    """A lock file's text about its holder, as one short line: anyone who may write to the table may write anything there."""
    plain = "".join(char if char.isprintable() else " " for char in text[:MOST_HOLDER])
    return " ".join(plain.split())


def _release(lock: Lock, control: ControlPaths) -> None:
    """Release the lock. It ends with this process anyway, so a failure is only logged and does not hide the run's result or error."""
    try:
        lock.release()
    except FilesError as error:
        log.warning("step=unlock failed path=%r reason=%r", control.lock, str(error))


@contextmanager
def hold_in_hive(run: Run, settings: Settings) -> Iterator[None]:
    """Also hold Hive's own lock while live is exchanged, where that works: Hive's overwriting writers wait for it."""
    wait_s = AT_ONCE_S if run.hive_lock.was_in_vain else HIVE_LOCK_WAIT_S
    with run.cluster.metastore.hold(run.table, wait_s if settings.hive_lock == "try" else 0) as why_not:
        if why_not:
            run.hive_lock.was_in_vain = True
            log.debug("table=%s step=hive-lock skipped reason=%r", run.table.log_field, why_not)
        yield
