"""Renames that the swap and the rollback of one unit share: exchange, bring to live, set aside, merge back, lift.

A file is only ever renamed, never over another one; nothing is deleted but empty directories.
"""

from __future__ import annotations

from typing import Mapping, Tuple

from hivekeeper import names
from hivekeeper.errors import AskAPerson, Unusable
from hivekeeper.model import FileInfo
from hivekeeper.ports import Files, FilesError, FilesUnavailable, SourceMissing, TargetExists
from hivekeeper.runlog import manifests
from hivekeeper.runlog.run_files import RecordedUnit
from hivekeeper.steps.checks import Checked, look_at_leaving
from hivekeeper.steps.journal import Run

MOST_TRIES = 4
MOST_ASIDES = 100
UNIT_STATES = ("ready", "retired", "restoring", "discarded", "discarding", "deleting")


def backup_path(run: Run, unit: RecordedUnit) -> str:
    assert unit.backup is not None
    return names.join(run.control.top, unit.backup.path)


def exchange(run: Run, unit: RecordedUnit, checked: Checked, aside: str, incoming: str) -> str:
    """Step 5: live → aside, a look at it there, incoming → live. Else aside → live again, and why: what left is not what was checked.

    One call does it where the directory's id and time can tell. A kill leaves live absent, and recovery does the rest.
    """
    live, files = unit.unit.live, run.files
    before = checked.seen[live]
    if manifests.can_tell(before, checked.clock_ms, files.clock_grain_ms):
        left = files.exchange(live, aside, incoming, before)
        if left is None:
            return ""
    else:
        files.rename_exact(live, aside)
        left = files.stat(aside)
        if left is None:
            raise SourceMissing(aside)
    why = look_at_leaving(run, unit, checked, left)
    bring(run, unit, aside if why else incoming, with_recreated=bool(why))
    return why


def bring(run: Run, unit: RecordedUnit, source: str, with_recreated: bool = False) -> None:
    """Rename to live; what a writer put there meanwhile is set aside, under a name of its own each time.

    `with_recreated`, for a put-back: it comes along, merged before that, as a committer that ended its job over the half of its tasks
    would say nothing. One that finds no directory fails. Never into `ready`, which a later put-back deletes.
    """
    for _ in range(MOST_ASIDES):
        try:
            run.files.rename_exact(source, unit.unit.live)
            return
        except TargetExists:
            set_aside(run, unit)
            if with_recreated:
                merge_recreated(run, unit, source)
    raise ask_person(run, unit, "somebody keeps making its directory anew")


def put_back(run: Run, unit: RecordedUnit, aside: str) -> None:
    """For recovery: bring back what had left live, with what the interrupted run had set aside already."""
    merge_recreated(run, unit, aside)
    bring(run, unit, aside, with_recreated=True)


def set_aside(run: Run, unit: RecordedUnit) -> None:
    """Move what stands at live's place to recreated/uN.K. Undo: merge_recreated."""
    for nth in range(MOST_ASIDES):
        try:
            run.files.rename_exact(unit.unit.live, run.paths.recreated(unit.number, nth))
            return
        except TargetExists:
            continue
        except SourceMissing:
            return
    raise ask_person(run, unit, "too many directories were set aside")


def move_file(files: Files, source: str, directory: str) -> str:
    """Rename a file into a directory, under a new name where its own is taken; gives the name."""
    name = names.base(source)
    stem, dot, suffix = name.partition(".")
    for nth in range(MOST_ASIDES):
        candidate = name if nth == 0 else f"{stem}-late{nth}{dot}{suffix}"
        try:
            files.rename_exact(source, names.join(directory, candidate))
            return candidate
        except TargetExists:
            continue
    raise AskAPerson(f"{source}: no name is free in {directory}", state="the file is where it was", next="move it by hand")


def move_late(files: Files, unit: RecordedUnit, source: str, expected: Mapping[str, int]) -> Tuple[str, ...]:
    """Move the complete files that the manifest does not know from a directory into live; gives their names there.

    Only while live holds what was put there: an overwriter who came since has replaced these rows with the others.
    """
    live, moved = unit.unit.live, []
    for file in manifests.find_late(unit.manifest, files.look([source])[source].entries):
        if not manifests.holds(expected, files.look([live])[live].entries):
            break
        moved.append(move_file(files, file.path, live))
    return tuple(moved)


def merge_recreated(run: Run, unit: RecordedUnit, target: str) -> None:
    """Merge what was set aside into another directory as a tree, directories whole where their name is free: a committer finds its own."""
    top = run.paths.state("recreated")
    for aside in run.files.look([top])[top].entries:
        match = names.RECREATED.fullmatch(aside.name)
        if match and int(match["number"]) == unit.number:
            _merge(run, aside.path, target)


def _merge(run: Run, source: str, target: str) -> None:
    for entry in run.files.look([source])[source].entries:
        if not entry.is_dir:
            move_file(run.files, entry.path, target)
            continue
        inner = names.join(target, entry.name)
        try:
            run.files.rename_exact(entry.path, inner)
        except TargetExists:
            _merge(run, entry.path, inner)
    run.files.remove_empty(source)


def lift_nested(files: Files, live: str) -> None:
    """Files of a directory that a committer renamed *into* live, which it took for its target, belong in live itself."""
    for entry in files.look([live])[live].entries:
        if is_committed_directory(entry):
            _lift(files, entry, live)


def is_committed_directory(entry: FileInfo) -> bool:
    return entry.is_dir and not names.is_hidden(entry.name) and not names.is_hive_subdirectory(entry.name)


def _lift(files: Files, directory: FileInfo, live: str) -> None:
    for entry in files.look([directory.path])[directory.path].entries:
        if is_committed_directory(entry):
            _lift(files, entry, live)
        elif not entry.is_dir:
            move_file(files, entry.path, live)
    files.remove_empty(directory.path)


def require_answers(error: FilesError, tries: int) -> None:
    """Raise an error again that trying has not mended, if HDFS does not answer or takes no writes: that is no question for a person."""
    if tries >= MOST_TRIES and isinstance(error, FilesUnavailable):
        raise error


def interrupted(run: Run, unit: RecordedUnit, error: FilesUnavailable) -> Unusable:
    """The error of a unit whose directories may be between two renames, where HDFS has to be waited for."""
    return Unusable(
        f"{unit.unit.label}: {error}",
        state="no row is lost, but readers may find it absent until the next run finishes or undoes what was begun",
        next=f"mend the cause, then run again at once or: hivekeeper recover --table {run.table.full_name}",
    )


def ask_person(run: Run, unit: RecordedUnit, why: str) -> AskAPerson:
    """The error of a unit that cannot be brought to an end: what lies where."""
    states = [run.paths.unit(state, unit.number) for state in UNIT_STATES]
    places = [unit.unit.live, *states, run.paths.state("recreated")]
    seen = run.files.look(places)
    there = [place for place in places if seen[place].exists]
    return AskAPerson(
        f"{unit.unit.label}: {why}",
        state="these directories are there: " + "; ".join(there),
        next=f"compare them with {run.paths.plan} (docs/on-disk.md says what each one holds); nothing was deleted",
    )
