"""The text output of history: runs and backups, and its views of files, partitions and cleanups.

Pure: a table's outcome in, lines out; `screen.py` assembles them.
"""

from __future__ import annotations

from typing import Callable, List, Mapping, Sequence, Tuple, Union

from hivekeeper.config.value_types import write_duration
from hivekeeper.plan.orphans import Orphan, OrphanState
from hivekeeper.plan.quarantine import Quarantine, explain
from hivekeeper.report import text
from hivekeeper.report.command_text import (
    BACKUP_HEADERS,
    backup_row,
    describe_problem,
    indent,
    limited,
    outcomes_text,
    plural,
    time_text,
    untold,
)
from hivekeeper.report.results import KeptFiles, LeftOut, LoggedUnits, TableOutcome
from hivekeeper.runlog.history import Effect, LoggedRun, LoggedUnit
from hivekeeper.runlog.replay import FileSet


def render_history(table: TableOutcome, width: int) -> List[str]:
    if table.files is not None:
        return _file_set(table, table.files)
    if table.changes is not None:
        return _changes(table, table.changes)
    if table.old_files is not None:
        return _old_files(table, table.old_files, width)
    if table.cleanups is not None:
        return _cleanups(table, table.cleanups, width)
    if not table.log:
        return [f"{table.table}: no runs"]
    rows = [_log_row(run, table.left_out) for run in table.log]
    headers = ["VERSION", "WHEN", "OPERATION", "RUN", "BY", "UNITS", "GAP", "LATE", "NOTE"]
    lines = [f"{table.table}:", indent(text.table(rows, headers, ">=====>>=", width))]
    if table.backups:
        size = sum(one.held.total_bytes for one in table.backups)
        lines.append(f"  backups: {len(table.backups)}, {text.bytes_text(size)}")
        lines.append(indent(text.table([backup_row(one) for one in table.backups], BACKUP_HEADERS, "=<=>>>", width)))
    lines += limited([_in_quarantine(table, one) for one in table.quarantined])
    return lines + untold(table.left_out.quarantined, "units in quarantine")


def _old_files(table: TableOutcome, old_files: Sequence[KeptFiles], width: int) -> List[str]:
    if not old_files:
        return [f"{table.table}: no old files"]
    rows = [
        [
            one.effect.partition or "(whole table)",
            one.backup.run,
            time_text(one.backup.timestamp_ms),
            text.count_text(one.effect.backup_files),
            text.bytes_text(one.effect.backup_bytes),
            "stays" if one.stay else "goes",
            one.why.what,
        ]
        for one in old_files
    ]
    every = table.of_old_files
    head = f"{table.table}: old files of {plural(every.partitions, 'partition')}; a cleanup now: {every.going} go"
    told = text.table(rows, ["PARTITION", "RUN", "WHEN", "FILES", "SIZE", "VERDICT", "WHY"], "<==>>==", width)
    return [head, indent(told), *untold(every.number - len(rows), "old files")]


def render_orphans(table: TableOutcome, orphans: Sequence[Orphan]) -> List[str]:
    """The leftovers in a database, and what became of them."""
    if not orphans:
        return [f"{table.table}: nothing is left over"]
    size = sum(one.size_bytes for one in orphans)
    lines = [f"{table.table}: {plural(len(orphans), 'leftover')}, {text.bytes_text(size)} of old files in them"]
    for one in orphans:
        held = f": {plural(one.files, 'file')}, {text.bytes_text(one.size_bytes)}" if one.files else ""
        since = f", last entry {time_text(one.last_ms)}" if one.last_ms is not None else ""
        became = "" if one.state is OrphanState.FOUND else f"{one.state.text}: "
        lines += [f"  {became}{one.kind.text} {one.place}{held}{since}", f"    {one.why}"]
        lines += [f"    next: {one.next}"] if one.next else []
    return lines


_RULES: Mapping[str, Tuple[str, Callable[[int], str]]] = {
    "minAgeMs": ("min_age", write_duration),
    "keepForMs": ("keep_for", write_duration),
    "keepLatestRuns": ("keep_latest_runs", str),
    "keepLatestVersions": ("keep_latest_versions", str),
}


def _cleanups(table: TableOutcome, cleanups: Sequence[LoggedRun], width: int) -> List[str]:
    if not cleanups:
        return [f"{table.table}: no cleanups"]
    rows = [
        [
            str(run.version),
            time_text(run.timestamp_ms),
            run.run,
            f"{run.user}@{run.host}",
            text.count_text(len(run.discarded) + table.left_out.places.get(run.version, 0)),
            text.count_text(run.discarded_files),
            text.bytes_text(run.discarded_bytes),
            _rules_text(run) or ("recovered" if run.recovered_by else "-"),
        ]
        for run in cleanups
    ]
    headers = ["VERSION", "WHEN", "RUN", "BY", "PLACES", "FILES", "SIZE", "RULES"]
    return [f"{table.table}:", indent(text.table(rows, headers, ">===>>>=", width))]


def _rules_text(run: LoggedRun) -> str:
    """The rules of a logged cleanup; what does not look like one is left out, because nothing depends on it."""
    known = [(name, write, run.parameters.get(key)) for key, (name, write) in _RULES.items()]
    return ", ".join(f"{name} {write(value)}" for name, write, value in known if type(value) is int)


def _in_quarantine(table: TableOutcome, quarantined: Quarantine) -> str:
    name, reason = quarantined.streak.partition, explain(quarantined)
    return f"{table.table}{'/' if name else ''}{name}: in quarantine: {describe_problem(reason)}"


def _log_row(run: LoggedRun, left_out: LeftOut) -> List[str]:
    units: Sequence[Union[LoggedUnit, LoggedUnits]] = (*run.units, *left_out.units.get(run.version, ()))
    gaps = [unit.gap_ms for unit in units if unit.gap_ms is not None]
    notes = [f"recovered by {run.recovered_by}"] if run.recovered_by else []
    notes += ["begun"] if not run.finished else []
    notes += ["details expired"] if run.expired else []
    notes += [run.backup_table] if run.backup_table else []
    notes += [f"{'pins' if run.pin[1] else 'unpins'} {run.pin[0]}"] if run.pin else []
    return [
        str(run.version),
        time_text(run.timestamp_ms),
        run.operation,
        run.run,
        f"{run.user}@{run.host}",
        outcomes_text(run, left_out),
        f"{max(gaps):.1f} ms" if gaps else "-",
        str(sum(unit.late_count for unit in units)),
        "; ".join(notes),
    ]


def _changes(table: TableOutcome, effects: Sequence[Effect]) -> List[str]:
    run = table.log[0]
    lines = [f"{table.table}: run {run.run} ({run.operation}, {time_text(run.timestamp_ms)})"]
    for effect in effects:
        inside = effect.inside
        where = f"inside {inside.file}, one behind the other from byte {inside.begin} on" if inside else f"in {effect.place}"
        lines.append(f"  {effect.partition or '(whole table)'}: old files {where}")
        lines += [f"    - {file.name}  {text.bytes_text(file.length)}" for file in effect.before]
        lines += [f"    + {file.name}  {text.bytes_text(file.length)}" for file in effect.after]
    if table.left_out.changes:
        return lines + untold(table.left_out.changes, "changed units")
    return lines if effects else [*lines, "  changed no file"]


def _file_set(table: TableOutcome, files: FileSet) -> List[str]:
    left_out = table.left_out
    tombstones = len(files.tombstones) + left_out.tombstones
    counts = f"{plural(len(files.files) + left_out.files, 'file')}, {plural(tombstones, 'tombstone')}"
    lines = [f"{table.table}: {counts} (writers' own files are not in the log)"]
    lines += [f"  file       {path}  {text.bytes_text(size)}" for path, size in sorted(files.files.items())]
    lines += [f"  tombstone  {path}  {text.bytes_text(size)}  in {place}" for path, (size, place) in sorted(files.tombstones.items())]
    return lines + untold(left_out.files + left_out.tombstones, "files and tombstones")
