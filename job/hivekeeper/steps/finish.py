"""Record what a run did in the metastore and the table's log, and tidy the run's directory.

Never touches a data file.
"""

from __future__ import annotations

import logging
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

from hivekeeper import names
from hivekeeper.errors import Refused
from hivekeeper.model import FileInfo, Snapshot, Table
from hivekeeper.names import ControlPaths, RunId, RunPaths
from hivekeeper.plan import inside, listings, recover
from hivekeeper.plan.untidy import choose_untidy
from hivekeeper.ports import Cluster, Files, FilesUnavailable, MetastoreUnavailable, NoPermission
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import LogEntry, UnitResult
from hivekeeper.runlog.history import History
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import RunPlan
from hivekeeper.steps import backup_tables, late_directories, places, removed, table_log
from hivekeeper.steps.observe import look_at, refused_if_too_many
from hivekeeper.steps.run_directory import Run

log = logging.getLogger(__name__)

# A finished run keeps the contents of these, and the records beside them.
KEPT_STATES = ("retired", "recreated", "restoring", "kept")


def finish_units(run: Run, units: Sequence[UnitResult], with_rows: bool = False) -> None:
    """Step 8 for units just handled: restore partitions that discovery dropped, then update sizes, and `with_rows` numbers of rows.

    Other engines read the sizes; Impala loads no files for them (docs/swap.md, what caches keep). If the metastore does not answer
    now, it is a warning, because the data are right without them.
    """
    try:
        back = places.restore_partitions(run, units)
        # Among these may be some of earlier ones.
        every = {unit.planned.number: unit for unit in (*back, *units)}
        update_sizes(run, list(every.values()), with_rows)
    except (MetastoreUnavailable, Refused) as error:
        log.warning("table=%s step=record-sizes failed reason=%r", run.table.log_field, str(error))


def update_sizes(run: Run, units: Sequence[UnitResult], with_rows: bool) -> None:
    """Update numFiles and totalSize to the current values, in bulk; `with_rows` also numRows, to what the proof counted."""
    lives = {unit.planned.name: unit.planned.live for unit in units if unit.outcome.resized or unit.late_files}
    if not lives:
        return
    most = run.most_listed(unit.planned for unit in units)
    with refused_if_too_many(run.table, most):
        seen = look_at(run.look_at_live(unit.planned for unit in units), list(dict.fromkeys(lives.values())), most)
    known = _find_inside(run, units, seen.values())
    proved = {unit.planned.name: unit.certificate for unit in units if with_rows and unit.certificate and unit.planned.join is None}
    sizes: Dict[str, Tuple[int, int]] = {}
    rows: Dict[str, int] = {}
    for name, live in lives.items():
        files = listings.data_files(seen[live])
        sizes[name] = (len(files), sum(inside.own_length(file, known) for file in files))
        if name in proved and {file.name: file.length for file in files} == dict(proved[name].files):
            # Nobody has counted the rows of files that came since.
            rows[name] = proved[name].rows
    run.cluster.metastore.update_sizes(run.table, sizes, lives, rows)


def _find_inside(run: Run, units: Sequence[UnitResult], seen: Iterable[Snapshot]) -> Mapping[str, Inside]:
    """By name, the files that have old ones inside, which do not count. The log is asked only if a name looks like it."""
    of_run = {unit.inside.file: unit.inside for unit in units if unit.inside}
    if any(names.may_be_joined(entry.name) for snapshot in seen for entry in snapshot.entries):
        return {**inside.find_inside(store.read_history(run.cluster, run.control)), **of_run}
    return of_run


def confirm_units(run: Run, units: Sequence[UnitResult]) -> Tuple[List[UnitResult], Union[MetastoreUnavailable, FilesUnavailable, None]]:
    """The results for the log, as the metastore and a last look at live tell them. If one of them does not answer, its error is returned,
    too: then the run gets no log entry yet, and the next one asks again.
    """
    confirmed, unasked = places.confirm(run, units)
    told, unseen = late_directories.tell_all(run, confirmed)
    found, unknown = removed.tell_removed(run, told)
    return found, unasked or unseen or unknown


def record_run(
    run: Run,
    plan: RunPlan,
    units: Sequence[UnitResult],
    parameters: Dict[str, object],
    recovered_by: Optional[RunId] = None,
    exit_code: Optional[int] = None,
) -> int:
    """Write the run's last log entry and return its version. `tidy_up` follows.

    First it is told of what readers may miss: no later command tells of it, and this one's answer comes at its end, if it is not killed.
    """
    for unit in units:
        if unit.outcome.is_astray:
            level = logging.ERROR if unit.outcome is Outcome.MISPLACED else logging.WARNING
            log.log(level, "run=%s unit=%s step=astray %s reason=%r", run.directory, unit.planned.log_field, unit.for_log, unit.reason)
    entry = LogEntry(
        run=store.run_of(run.directory),
        directory=run.directory,
        operation=plan.operation,
        now_ms=run.cluster.clock.now_ms(),
        units=tuple(units),
        recovered_by=recovered_by,
        backup_table=plan.backup_table,
        records=plan.records,
        pin=_pin_only_copies(run, plan, units),
        run_key=plan.run_key,
        exit_code=exit_code,
    )
    return table_log.commit(run, entry, parameters)


def _pin_only_copies(run: Run, plan: RunPlan, units: Sequence[UnitResult]) -> Optional[Tuple[RunId, bool]]:
    """The pin that protects from cleanup rows that readers may miss and that exist only in a backup."""

    def is_only_copy(unit: UnitResult) -> bool:
        is_removed = unit.why is not None and unit.why.code is Code.REMOVED_AFTER
        return unit.is_without_new_files or is_removed or unit.planned.number in run.taken_out

    is_needed = any(unit.outcome is Outcome.MISPLACED and unit.has_backup and is_only_copy(unit) for unit in units)
    return (plan.run, True) if is_needed else None


def tidy_up(cluster: Cluster, table: Table, control: ControlPaths, is_gone: bool = False, every: bool = False) -> History:
    """Bring backup tables and the directories of finished runs in line with the log: these keep a backup and its evidence, or go. Returns
    the log.

    `every`: also of those that earlier runs have left in line, for what others have done to them since.
    """
    history = store.read_history(cluster, control)
    backup_tables.correct_tables(cluster, table, control, history, is_gone)
    sweep_finished(cluster.files, control, history, every or is_gone)
    return history


def sweep_finished(files: Files, control: ControlPaths, history: History, every: bool) -> None:
    """Tidy the directories of runs in the log: remove those that hold neither a backup nor a record, and empty directories.

    No run directory is removed while a run is unfinished: its files may have to go back into a directory that is empty for now. None of one
    without a plan, which may stay for long.
    """
    listed = store.list_runs(files, control)
    directories = {name: store.run_of(name) for name in listed}
    chosen = frozenset(listed) if every else choose_untidy(history, {name: entry.mtime_ms for name, entry in listed.items()})
    records = {run.run for run in history.records}
    runs = [control.run(name) for name, run in directories.items() if name in chosen and run in history.finished and run not in records]
    unfinished = (name for name, run in directories.items() if run not in history.finished)
    all_finished = not any(may_have_begun(files, control.run(name)) for name in unfinished)
    seen = look_at(files.look, [place for paths in runs for place in (paths.top, *map(paths.state, KEPT_STATES))])
    for paths in runs:
        entries = seen[paths.top].entries
        if all_finished and not any(seen[paths.state(state)].entries for state in KEPT_STATES):
            _remove_run(files, paths, entries)
        else:
            _tidy(files, paths, [entry.name for entry in entries])
    if runs:
        files.remove_empty(control.runs)


def remove_unplanned(files: Files, paths: RunPaths) -> bool:
    """Remove the directory of a run that died before its plan, which changed nothing; False, and no file is touched, if it holds more.

    Or of a `pin`, which has no plan, only an entry for the log. Or of one that was taken over while it staged: it has re-created its
    directory, for copies and their certificates, and went no further.
    Never as a tree: a plan also seems to be missing while somebody has exchanged the control directory, and then rows may lie here. What is
    another user's, such as a superuser's, stays, with no more in it: that must not keep the table from being worked on.
    """
    try:
        return _remove_unplanned(files, paths)
    except NoPermission as error:
        if holds_more(files, paths):
            return False
        log.warning("step=tidy left path=%r reason=%r", paths.top, str(error))
        return True


def _remove_unplanned(files: Files, paths: RunPaths) -> bool:
    ours, others = _look_unplanned(files, paths)
    if not all(entry.is_dir and _remove_empty_or_gone(files, entry.path) for entry in others):
        return False
    for path in sorted(ours):
        files.delete_tree(path)
    return _remove_empty_or_gone(files, paths.top)


def holds_more(files: Files, paths: RunPaths) -> bool:
    """Whether the directory of a run holds a plan, or more than one that died before it leaves there; reads only."""
    _, others = _look_unplanned(files, paths)
    inside = files.look([entry.path for entry in others if entry.is_dir], 1)
    return any(not entry.is_dir or inside[entry.path].entries for entry in others)


def may_have_begun(files: Files, paths: RunPaths) -> bool:
    """Whether an unfinished run may have changed anything: one without a plan has not, and may stay where this user may not remove it."""
    try:
        return holds_more(files, paths)
    except NoPermission:
        return True


def _look_unplanned(files: Files, paths: RunPaths) -> Tuple[Set[str], List[FileInfo]]:
    """What a run may leave in its directory before its plan, and what else is there."""
    entries = files.look([paths.top])[paths.top].entries
    ours = {paths.stages, paths.clock, paths.checkpoint, paths.entry, paths.plan + ".part"}
    ours.update(entry.path for entry in entries if _is_certificates(entry) or not entry.is_dir and names.AWAY.fullmatch(entry.name))
    return ours, [entry for entry in entries if entry.path not in ours]


def _is_certificates(entry: FileInfo) -> bool:
    name = entry.name[: -len(".part")] if entry.name.endswith(".part") else entry.name
    return not entry.is_dir and names.CERTIFICATES.fullmatch(name) is not None


def _remove_empty_or_gone(files: Files, path: str) -> bool:
    """Whether the directory is gone afterwards; a run that took this one over removes the same."""
    return files.remove_empty(path) or files.stat(path) is None


def _remove_run(files: Files, paths: RunPaths, entries: Iterable[FileInfo]) -> None:
    """Remove a run's directory, but never as a tree: a run that took over may have put a backup back since the listing.

    A directory with an entry that no run creates is left as it is.
    """
    kept = [entry for entry in entries if entry.name in KEPT_STATES]
    if not all(recover.is_known_in_run(entry) for entry in entries):
        return
    if all(files.remove_empty(entry.path) for entry in kept):
        for entry in entries:
            if entry not in kept:
                if entry.is_dir:
                    _delete_allowed(files, entry.path)
                else:
                    files.delete_file(entry.path)
        files.remove_empty(paths.top)


def _tidy(files: Files, paths: RunPaths, present: Sequence[str]) -> None:
    for file in present:
        if file in ("clock", "checkpoint.json.gz") or names.AWAY.fullmatch(file):
            files.delete_file(paths.state(file))
    # Copies, and joined files whose rows have files of their own again. What others had put in the places of these went back, or to a
    # backup, before the run got its entry.
    for needless in ("stage", "taken"):
        if needless in present:
            _delete_allowed(files, paths.state(needless))
    for state in ("ready", "recreated", "restoring", "kept"):
        if state in present:
            files.remove_empty(paths.state(state))


def _delete_allowed(files: Files, path: str) -> None:
    """Delete copies that nobody needs. If one belongs to the table's owner, who got it from a superuser's run, this user may not: that must
    not keep the table from being worked on.
    """
    try:
        files.delete_tree(path)
    except NoPermission as error:
        log.warning("step=tidy left path=%r reason=%r", path, str(error))
