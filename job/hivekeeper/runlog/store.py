"""Read a table's log and the files of its runs, and write files atomically.

Reads what docs/on-disk.md describes; anything that cannot be trusted is refused with what, state and next.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional

from hivekeeper import names
from hivekeeper.errors import NeedsInvestigation, Refused
from hivekeeper.model import FileInfo, Table
from hivekeeper.names import ControlPaths, RunId, RunPaths
from hivekeeper.ports import Cluster, Files, SourceMissing
from hivekeeper.reasons import Code
from hivekeeper.runlog import strict
from hivekeeper.runlog.history import FileSet, History, files_at, read_entry, reconcile
from hivekeeper.runlog.run_files import Certificate, RunPlan, certificates_from_text, plan_from_text
from hivekeeper.runlog.strict import ForeignRecord, NewerRecord, UnreadableRecord

# A record is held in memory while it is read. A million files, the most that one run takes, of 256 bytes each: name, length, time and id
# take about 110, with the longest name that HDFS allows 330.
MOST_RECORD_BYTES = 256 * 1_000_000
# Of each file an entry holds two lines of up to about a kilobyte, one for the old and one for the new.
MOST_ENTRY_BYTES = 2 * 1024 * 1_000_000


def read_history(cluster: Cluster, control: ControlPaths) -> History:
    """The current log. Raises Refused if a newer version wrote it, NeedsInvestigation if it cannot be read.

    Entries never change and can be large (they name every file of their units), so each is read and parsed once per process.
    """
    with _explained():
        listed = _list_entries(cluster.files, control)
        new = {key: version for version, key in listed.items() if key not in cluster.log_entries}
        texts = cluster.files.read_texts([key.path for key in new])
        for key, version in new.items():
            if key.path in texts:
                cluster.log_entries[key] = read_entry(texts[key.path].split("\n"), version, key.path)
        return reconcile({version: cluster.log_entries[key] for version, key in listed.items() if key in cluster.log_entries}, control.log)


def read_files_at(cluster: Cluster, control: ControlPaths, version: int) -> FileSet:
    """The files that the log knows at a version; errors as read_history."""
    with _explained():
        listed = {number: key for number, key in sorted(_list_entries(cluster.files, control).items()) if number <= version}
        texts = cluster.files.read_texts([key.path for key in listed.values()])
        return files_at((key.path, texts[key.path].split("\n")) for key in listed.values())


@contextmanager
def _explained(state: str = "nothing was changed") -> Iterator[None]:
    """A record that cannot be trusted, as an error of its table."""
    try:
        yield
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


def _refuse_large(file: FileInfo, most: int = MOST_RECORD_BYTES) -> None:
    """Before it is read: what is written to exhaust our memory would end the work on all other tables."""
    if file.length > most:
        raise strict.foreign(file.path, "", f"it has {file.length} bytes, more than {most}")


def _list_entries(files: Files, control: ControlPaths) -> Dict[int, FileInfo]:
    versions = {names.log_version(entry.name): entry for entry in files.look([control.log])[control.log].entries}
    found = {version: entry for version, entry in versions.items() if version is not None}
    for entry in found.values():
        _refuse_large(entry, MOST_ENTRY_BYTES)
    return found


def find_runs(files: Files, control: ControlPaths) -> List[str]:
    """Names of the run directories, oldest first."""
    entries = files.look([control.runs])[control.runs].entries
    return sorted(entry.name for entry in entries if entry.is_dir and names.run_of(entry.name))


def run_of(directory: str) -> RunId:
    run = names.run_of(directory)
    if run is None:
        raise ValueError(f"{directory} is not the name of a run directory")
    return run


def read_plan(files: Files, table: Table, paths: RunPaths) -> Optional[RunPlan]:
    """A run's plan; None where there is none. Raises as read_history does."""
    with _explained(f"nothing of the run in {paths.top} was touched"):
        file = files.stat(paths.plan)
        if file is None:
            return None
        _refuse_large(file)
        try:
            return plan_from_text(files.read_text(paths.plan), table.location, paths.plan, run_of(names.base(paths.top)))
        except SourceMissing:
            return None
        except NewerRecord as error:
            # Unlike a log, it is the plan of a run that may have stopped in the gap.
            raise UnreadableRecord(str(error)) from error


def read_certificates(files: Files, paths: RunPaths) -> Dict[int, Certificate]:
    """All certificates of a run, by unit number. Raises as read_history does."""
    with _explained(f"the run in {paths.top} is unfinished; nothing of it was touched"):
        entries = files.look([paths.top])[paths.top].entries
        found = [entry for entry in entries if names.CERTIFICATES.fullmatch(entry.name)]
        for entry in found:
            _refuse_large(entry)
        texts = files.read_texts([entry.path for entry in found])
        return {one.unit: one for entry in found for one in certificates_from_text(texts[entry.path], entry.path)}


def write_durably(files: Files, path: str, text: str) -> None:
    """Write a file atomically: it exists complete or not at all."""
    # A kill between the two calls leaves a .part, which nothing reads and which is deleted with its run.
    files.write_new(path + ".part", text)
    files.rename_exact(path + ".part", path)
