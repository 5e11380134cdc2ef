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
from hivekeeper.runlog.history import FileSet, History, files_at, read_entry, reconcile
from hivekeeper.runlog.run_files import (
    Certificate,
    NewerRecord,
    RunPlan,
    UnreadableRecord,
    certificates_from_text,
    plan_from_text,
)


def read_history(cluster: Cluster, control: ControlPaths) -> History:
    """The current log. Raises Refused if a newer version wrote it, NeedsInvestigation if it cannot be read.

    Entries never change and can be large (they name every file of their units), so each is read and parsed once per process.
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
    """The files known to the log at a version; raises like read_history."""
    with _explained(control):
        listed = _list_entries(cluster.files, control)
        texts = cluster.files.read_texts([key.path for key in listed.values()])
        return files_at({number: texts[key.path] for number, key in listed.items()}, version)


@contextmanager
def _explained(control: ControlPaths) -> Iterator[None]:
    try:
        yield
    except NewerRecord as error:
        raise Refused(
            f"{control.log}: {error}", code=Code.NEWER_LOG, next="use the version of Hivekeeper that wrote it, or a later one"
        ) from error
    except UnreadableRecord as error:
        raise NeedsInvestigation(
            f"{control.log}: {error}",
            code=Code.UNREADABLE_LOG,
            next="look at the entry; do not delete it: it says where the old files are",
        ) from error


def _list_entries(files: Files, control: ControlPaths) -> Dict[int, FileInfo]:
    versions = {names.log_version(entry.name): entry for entry in files.look([control.log])[control.log].entries}
    return {version: entry for version, entry in versions.items() if version is not None}


def find_runs(files: Files, control: ControlPaths) -> List[str]:
    """Names of the run directories, oldest first."""
    entries = files.look([control.runs])[control.runs].entries
    return sorted(entry.name for entry in entries if entry.is_dir and names.RUN_DIRECTORY.fullmatch(entry.name))


def run_of(directory: str) -> RunId:
    match = names.RUN_DIRECTORY.fullmatch(directory)
    if match is None:
        raise ValueError(f"{directory} is not the name of a run directory")
    return RunId(match["run"])


def read_plan(files: Files, table: Table, paths: RunPaths) -> Optional[RunPlan]:
    """A run's plan, or None if there is none. Raises NeedsInvestigation if it cannot be read."""
    try:
        return plan_from_text(files.read_text(paths.plan), table.location, paths.plan)
    except SourceMissing:
        return None
    except UnreadableRecord as error:
        raise NeedsInvestigation(
            str(error),
            code=Code.UNREADABLE_LOG,
            state=f"the run in {paths.top} is unfinished",
            next="look at the file; nothing of it was touched",
        ) from error


def read_certificates(files: Files, paths: RunPaths) -> Dict[int, Certificate]:
    """All certificates of a run, by unit number."""
    entries = files.look([paths.top])[paths.top].entries
    found = [entry.path for entry in entries if entry.name.startswith("certificates-") and entry.name.endswith(".jsonl")]
    texts = files.read_texts(found)
    return {certificate.unit: certificate for path in found for certificate in certificates_from_text(texts[path], path)}


def write_durably(files: Files, path: str, text: str) -> None:
    """Write a file atomically: it exists complete or not at all."""
    # A kill between the two calls leaves a .part, which nothing reads and which is deleted with its run.
    files.write_new(path + ".part", text)
    files.rename_exact(path + ".part", path)
