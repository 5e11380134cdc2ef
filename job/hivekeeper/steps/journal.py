"""A table's lock, run directories and log: taken, fenced, read and written here.

Never touches live data.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Dict, Iterator, List, Optional

from hivekeeper import names
from hivekeeper.errors import AskAPerson, Locked, Refused
from hivekeeper.model import FileInfo, Table
from hivekeeper.names import ControlPaths, RunPaths
from hivekeeper.plan import recover
from hivekeeper.plan.settings import Settings
from hivekeeper.ports import Cluster, Files, FilesError, FilesUnavailable, Lock, LockHeld, SourceMissing, TargetExists
from hivekeeper.runlog.entries import Actor, RunRecord, entry_to_text
from hivekeeper.runlog.history import FileSet, History, files_at, read_entry, reconcile
from hivekeeper.runlog.run_files import (
    Certificate,
    NewerRecord,
    RecordedPlan,
    RecordedUnit,
    UnreadableRecord,
    certificates_from_text,
    plan_from_text,
    plan_to_text,
)

log = logging.getLogger(__name__)

MOST_COMMIT_TRIES = 1000
# Safe mode can be read in, so that looking again succeeds each time.
MOST_UNANSWERED = 4


class Fenced(Locked):
    """Another run took this one over: it finishes or undoes what was begun here."""


@dataclass(frozen=True)
class Run:
    """What every step of one run on one table needs."""

    cluster: Cluster
    table: Table
    control: ControlPaths
    paths: RunPaths
    lock: Lock

    @property
    def files(self) -> Files:
        return self.cluster.files

    @property
    def directory(self) -> str:
        return names.base(self.paths.top)

    def backup_path(self, unit: RecordedUnit) -> str:
        """Where the backup lies that a rollback restores or a cleanup discards."""
        assert unit.backup is not None
        return names.join(self.control.top, unit.backup.place)


@contextmanager
def hold_table(cluster: Cluster, table: Table, control: ControlPaths, run: str) -> Iterator[Lock]:
    """Keep the table's lock for the body. Raises Locked."""
    since = datetime.fromtimestamp(cluster.clock.now_ms() / 1000, timezone.utc)
    holder = f"run {run} of {cluster.user} on {cluster.host} ({cluster.application_id}) since {since:%Y-%m-%d %H:%M:%S} UTC"
    try:
        lock = cluster.files.hold(control.lock, holder)
    except LockHeld as held:
        raise Locked(
            f"{table.full_name}: another run holds the table" + (f" ({held.holder.strip()})" if held.holder else ""),
            state="untouched by this run",
            next="wait for it; a killed run's lock ends by itself after about a minute",
        ) from held
    try:
        yield lock
    finally:
        _release(lock, control)


def _release(lock: Lock, control: ControlPaths) -> None:
    """The lock ends with this process in any case, so a failure must not hide what the run has done or what went wrong."""
    try:
        lock.release()
    except FilesError as error:
        log.warning("step=unlock failed path=%s reason=%r", control.lock, str(error))


@contextmanager
def hold_in_hive(run: Run, settings: Settings) -> Iterator[None]:
    """Hive's own lock too, while live is exchanged, where that works: its overwriting writers wait for it."""
    with run.cluster.metastore.hold(run.table, settings.hive_lock_wait_s if settings.hive_lock else 0) as why_not:
        if why_not:
            log.debug("table=%s step=hive-lock skipped reason=%r", run.table.full_name, why_not)
        yield


def write_durably(files: Files, path: str, text: str) -> None:
    """A file that is there whole or not at all."""
    # Killed between the two, a .part is left, which nobody reads and which goes with its run.
    files.write_new(path + ".part", text)
    files.rename_exact(path + ".part", path)


def read_history(cluster: Cluster, control: ControlPaths) -> History:
    """The log as it is now. Raises Refused for one that a newer version wrote, AskAPerson for one that cannot be read.

    An entry never changes and names every file of its units, so each is read and parsed once per process.
    """
    with _explained(control):
        listed = _list_entries(cluster.files, control)
        new = {key: version for version, key in listed.items() if key not in cluster.log_entries}
        texts = cluster.files.read_texts([key.path for key in new])
        for key, version in new.items():
            if key.path in texts:
                cluster.log_entries[key] = read_entry(texts[key.path], version)
        return reconcile({version: cluster.log_entries[key] for version, key in listed.items() if key in cluster.log_entries})


def read_files_at(cluster: Cluster, control: ControlPaths, version: int) -> FileSet:
    """The files that the log knows at a version; errors as read_history."""
    with _explained(control):
        listed = _list_entries(cluster.files, control)
        texts = cluster.files.read_texts([key.path for key in listed.values()])
        return files_at({number: texts[key.path] for number, key in listed.items()}, version)


@contextmanager
def _explained(control: ControlPaths) -> Iterator[None]:
    try:
        yield
    except NewerRecord as error:
        raise Refused(f"{control.log}: {error}", next="use the version of Hivekeeper that wrote it, or a later one") from error
    except UnreadableRecord as error:
        raise AskAPerson(
            f"{control.log}: {error}",
            state="nothing was changed",
            next="look at the entry; do not delete it: it says where the old files are",
        ) from error


def _list_entries(files: Files, control: ControlPaths) -> Dict[int, FileInfo]:
    versions = {names.log_version(entry.name): entry for entry in files.look([control.log])[control.log].entries}
    return {version: entry for version, entry in versions.items() if version is not None}


def find_runs(files: Files, control: ControlPaths) -> List[str]:
    """Names of the run directories, oldest first."""
    entries = files.look([control.runs])[control.runs].entries
    return sorted(entry.name for entry in entries if entry.is_dir and names.RUN_DIRECTORY.fullmatch(entry.name))


def run_of(directory: str) -> str:
    match = names.RUN_DIRECTORY.fullmatch(directory)
    if match is None:
        raise ValueError(f"{directory} is not the name of a run directory")
    return match["run"]


def fence(cluster: Cluster, control: ControlPaths) -> List[str]:
    """Rename every unfinished run directory, taken ones too, so that a run that sleeps in it can do nothing more.

    The log is read again afterwards: an entry committed before the rename counts. Gives the
    directories that are still unfinished, oldest first.
    """
    files = cluster.files
    finished = read_history(cluster, control).finished
    moved = []
    for directory in find_runs(files, control):
        if run_of(directory) in finished:
            continue
        taken = recover.next_taken_name(run_of(directory), find_runs(files, control))
        files.rename_exact(names.join(control.runs, directory), names.join(control.runs, taken))
        moved.append(taken)
    finished = read_history(cluster, control).finished if moved else finished
    return [directory for directory in moved if run_of(directory) not in finished]


def open_run(cluster: Cluster, table: Table, control: ControlPaths, lock: Lock, name: str, operation: str) -> Run:
    """Make a run's directories, so that every later step is a rename into a parent that exists. Raises Fenced.

    One that lost its lock meanwhile may have made them anew after the takeover, which fencing cannot see: so the lock is
    asked for afterwards. Whoever takes over later finds the directories and renames them.
    """
    run = Run(cluster, table, control, control.run(name), lock)
    cluster.files.make_directory(control.log)
    cluster.files.make_directory(run.paths.top)
    for state in recover.STATES[operation]:
        cluster.files.make_directory(run.paths.state(state))
    if not lock.check():
        raise fenced(run)
    return run


def write_plan(run: Run, plan: RecordedPlan) -> None:
    """The plan durably, before anything is changed."""
    write_durably(run.files, run.paths.plan, plan_to_text(plan, run.cluster.clock.now_ms()))


def read_plan(files: Files, table: Table, paths: RunPaths) -> Optional[RecordedPlan]:
    """A run's plan; None where there is none. Raises AskAPerson for one that cannot be read."""
    try:
        return plan_from_text(files.read_text(paths.plan), table.location, paths.plan)
    except SourceMissing:
        return None
    except UnreadableRecord as error:
        raise AskAPerson(
            str(error), state=f"the run in {paths.top} is unfinished", next="look at the file; nothing of it was touched"
        ) from error


def read_certificates(files: Files, paths: RunPaths) -> Dict[int, Certificate]:
    """All certificates of a run, by unit number."""
    entries = files.look([paths.top])[paths.top].entries
    found = [entry.path for entry in entries if entry.name.startswith("certificates-") and entry.name.endswith(".jsonl")]
    texts = files.read_texts(found)
    return {certificate.unit: certificate for path in found for certificate in certificates_from_text(texts[path], path)}


def commit(run: Run, record: RunRecord, actor: Actor, parameters: Dict[str, object]) -> int:
    """Write the run's log entry: aside in the run's own directory, then renamed to the next free number without overwrite."""
    files, paths, unanswered = run.files, run.paths, 0
    for _ in range(MOST_COMMIT_TRIES):
        history = read_history(run.cluster, run.control)
        written = [entry for entry in history.runs if entry.run == record.run and entry.finished == record.finished]
        if written:
            # A former try succeeded although the client saw an error; or another run took this one over and finished it.
            require_own_directory(run)
            return written[0].version
        text = entry_to_text(record, run.table, actor, parameters, first=history.next_version == 0)
        target = names.join(run.control.log, names.log_entry(history.next_version))
        try:
            files.delete_tree(paths.entry)
            files.write_new(paths.entry, text)
            files.rename_exact(paths.entry, target)
        except SourceMissing as gone:
            if not files.look([paths.top])[paths.top].exists:
                raise fenced(run) from gone
        except TargetExists:
            continue
        except FilesUnavailable:
            unanswered += 1
            if unanswered >= MOST_UNANSWERED:
                raise
    raise AskAPerson(f"{run.control.log}: no number is free", state="the table is consistent", next="look at the log directory")


def read_clock(run: Run) -> int:
    """The NameNode's own time now: the modification time of a file that it just made for us.

    No other clock is compared with the times of its directories.
    """
    files, clock = run.files, run.paths.clock
    try:
        files.delete_tree(clock)
        files.write_new(clock, "")
        info = files.stat(clock)
    except SourceMissing as gone:
        raise fenced(run) from gone
    if info is None:
        raise fenced(run)
    return info.mtime_ms


def require_own_directory(run: Run) -> None:
    """Raise Fenced where the run's directory was taken from it: then what was not found there means nothing."""
    if run.files.stat(run.paths.top) is None:
        raise fenced(run)


def fenced(run: Run) -> Fenced:
    return Fenced(
        f"{run.table.full_name}: another run took over {run.paths.top}",
        state="that run finishes or undoes what this one began",
        next="look at the other run's result",
    )
