"""The text output of backup, verify, rollback, cleanup, history and pin.

Pure: a table's outcome in, lines out; `screen.py` assembles them.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import quoting
from hivekeeper.config.value_types import write_duration
from hivekeeper.model import Differences
from hivekeeper.plan.quarantine import Quarantine, explain
from hivekeeper.plan.retention import Window
from hivekeeper.reasons import Reason
from hivekeeper.report import text
from hivekeeper.report.results import BackupOutcome, BackupState, KeptFiles, TableOutcome, UnitOutcome
from hivekeeper.runlog.history import Effect, LoggedRun
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.replay import FileSet

MOST_LISTED = 20
MOST_COMPARED = 5


def render_backup(table: TableOutcome, _width: int) -> List[str]:
    files, size = sum(unit.files_before for unit in table.units), sum(unit.bytes_before for unit in table.units)
    shown = f"backup table {table.backup_table}" if table.backup_table else "no backup table"
    return [
        f"{table.table}: recorded {plural(len(table.units), 'unit')}, {plural(files, 'file')}, {text.bytes_text(size)}; run {table.run}",
        f"  {shown}. Nothing was copied: files that another writer deletes before a compact-swap are gone for good.",
    ]


def render_verify(table: TableOutcome, _width: int) -> List[str]:
    verified = [unit for unit in table.units if unit.outcome is Outcome.VERIFIED]
    if not table.units:
        return [f"{table.table}: nothing to verify: no run has changed it"]
    arrivals = sum(len(unit.late_files) for unit in table.units)
    rows = sum(unit.rows or 0 for unit in verified)
    what = f"{len(verified)} of {plural(len(table.units), 'unit')} verified"
    lines = [f"{table.table}: {what}: live holds the backup's {plural(rows, 'row')}"]
    if arrivals:
        lines.append(f"  and {plural(arrivals, 'file')} that came later")
        lines += _limited([f"{_name(table, unit)}: {name}" for unit in table.units for name in unit.late_files])
    lines += _limited([_reasoned(table, unit) for unit in table.units if unit.reason or unit.outcome is not Outcome.VERIFIED])
    differing = [(unit, unit.differences) for unit in table.units if unit.differences is not None]
    for unit, found in differing[:MOST_COMPARED]:
        lines += _differences(_name(table, unit), found)
    return lines


def _differences(name: str, found: Differences) -> List[str]:
    columns = ", ".join(found.columns) or "none by itself"
    lines = [f"  {name}: {found.only_in_one} rows only in the backup, {found.only_in_other} only in live; columns that differ: {columns}"]
    for side, rows in (("backup", found.examples_of_one), ("live", found.examples_of_other)):
        lines += [f"    only in {side}: " + ", ".join(f"{column}={_value(value)}" for column, value in row.items()) for row in rows]
    return lines


def _value(value: Optional[str]) -> str:
    return "NULL" if value is None else text.clean_text(value)


def render_rollback(table: TableOutcome, _width: int) -> List[str]:
    done = [unit for unit in table.units if unit.outcome is Outcome.ROLLED_BACK]
    planned = [unit for unit in table.units if unit.outcome is Outcome.PLANNED]
    if not table.units:
        return [f"{table.table}: nothing to roll back: no compaction is in force"]
    lines = []
    if planned:
        lines.append(f"{table.table}: would roll back {plural(len(planned), 'step')}:")
        lines += _limited([_exchange(table, unit) for unit in planned])
    if done:
        longest = max((unit.gap_ms or 0.0 for unit in done), default=0.0)
        lines.append(f"{table.table}: rolled back {plural(len(done), 'step')}, longest gap {longest:.1f} ms, run {table.run}")
        lines += _limited([_exchange(table, unit) for unit in done])
        lines.append(f"  to undo this: hivekeeper rollback --table {quoting.shell(table.table)} --run {table.run}")
    if not done and not planned and all(unit.outcome is Outcome.UNDONE for unit in table.units):
        lines.append(f"{table.table}: nothing to roll back")
    return lines + _limited([_reasoned(table, unit) for unit in table.units if unit.outcome not in (Outcome.ROLLED_BACK, Outcome.PLANNED)])


def _exchange(table: TableOutcome, unit: UnitOutcome) -> str:
    late = f", {plural(len(unit.late_files), 'file')} that came later kept" if unit.late_files else ""
    return f"{_name(table, unit)}: {unit.files_before} → {plural(unit.files_after or 0, 'file')}, undoes run {unit.of_run}{late}"


def render_cleanup(table: TableOutcome, width: int) -> List[str]:
    if not table.backups:
        return [f"{table.table}: no backups"]
    gone = [one for one in table.backups if one.state.goes]
    size, files = sum(one.going_bytes for one in gone), sum(one.going_files for one in gone)
    verb = "would discard" if any(one.state is BackupState.PLANNED for one in table.backups) else "discarded"
    lines = [
        f"{table.table}: {verb} {len(gone)} of {plural(len(table.backups), 'backup')}: {plural(files, 'file')}, {text.bytes_text(size)}"
    ]
    lines.append(f"  {_window_text(table.window)}")
    rows = [[*_backup_row(one), one.state.text, one.reason] for one in table.backups]
    lines.append(_indent(text.table(rows, [*_BACKUP_HEADERS, "OUTCOME", "WHY"], "===>>>==", width)))
    for one in table.backups:
        kept = [(f"{table.table}/{name}" if name else table.table, describe_problem(why) if why else "") for name, why in one.kept_units]
        lines += _limited([f"kept {name} of run {one.backup.run}: {reason}" for name, reason in kept])
        if one.late_files:
            lines.append(
                f"  {plural(len(one.late_files), 'file')} that came into the backup late went to live: {', '.join(one.late_files)}"
            )
    return lines


def _window_text(window: Optional[Window]) -> str:
    if window is None:
        return "kept as a whole: no run"
    return f"kept as a whole: the last {plural(window.runs, 'run')}, {text.age_text(window.back_ms)} back"


_BACKUP_HEADERS = ["RUN", "OF", "WHEN", "UNITS", "FILES", "SIZE"]


def _backup_row(one: BackupOutcome) -> List[str]:
    backup = one.backup
    kind = "record" if backup.is_record else backup.operation
    return [
        backup.run,
        kind + (" (pinned)" if backup.pinned else ""),
        _time(backup.timestamp_ms),
        "-" if backup.is_record else text.count_text(len(backup.effects)),
        "-" if backup.is_record else text.count_text(backup.files),
        "-" if backup.is_record else text.bytes_text(backup.total_bytes),
    ]


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
    rows = [_log_row(run) for run in table.log]
    headers = ["VERSION", "WHEN", "OPERATION", "RUN", "BY", "UNITS", "GAP", "LATE", "NOTE"]
    lines = [f"{table.table}:", _indent(text.table(rows, headers, ">=====>>=", width))]
    if table.backups:
        size = sum(one.backup.total_bytes for one in table.backups)
        lines.append(f"  backups: {len(table.backups)}, {text.bytes_text(size)}")
        lines.append(_indent(text.table([_backup_row(one) for one in table.backups], _BACKUP_HEADERS, "=<=>>>", width)))
    return lines + _limited([_in_quarantine(table, one) for one in table.quarantined])


def _old_files(table: TableOutcome, old_files: Sequence[KeptFiles], width: int) -> List[str]:
    if not old_files:
        return [f"{table.table}: no old files"]
    rows = [
        [
            one.effect.partition or "(whole table)",
            one.backup.run,
            _time(one.backup.timestamp_ms),
            text.count_text(one.effect.backup_files),
            text.bytes_text(one.effect.backup_bytes),
            "stays" if one.stay else "goes",
            one.why.what,
        ]
        for one in old_files
    ]
    going = sum(1 for one in old_files if not one.stay)
    head = f"{table.table}: old files of {plural(len({one.effect.partition for one in old_files}), 'partition')}; a cleanup now: {going} go"
    return [head, _indent(text.table(rows, ["PARTITION", "RUN", "WHEN", "FILES", "SIZE", "VERDICT", "WHY"], "<==>>==", width))]


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
            _time(run.timestamp_ms),
            run.run,
            f"{run.user}@{run.host}",
            text.count_text(len(run.discarded)),
            text.count_text(run.discarded_files),
            text.bytes_text(run.discarded_bytes),
            _rules_text(run) or ("recovered" if run.recovered_by else "-"),
        ]
        for run in cleanups
    ]
    headers = ["VERSION", "WHEN", "RUN", "BY", "PLACES", "FILES", "SIZE", "RULES"]
    return [f"{table.table}:", _indent(text.table(rows, headers, ">===>>>=", width))]


def _rules_text(run: LoggedRun) -> str:
    """The rules of a logged cleanup; what does not look like one is left out, because nothing depends on it."""
    known = [(name, write, run.parameters.get(key)) for key, (name, write) in _RULES.items()]
    return ", ".join(f"{name} {write(value)}" for name, write, value in known if type(value) is int)


def _in_quarantine(table: TableOutcome, quarantined: Quarantine) -> str:
    name, reason = quarantined.streak.partition, explain(quarantined)
    return f"{table.table}{'/' if name else ''}{name}: in quarantine: {describe_problem(reason)}"


def _log_row(run: LoggedRun) -> List[str]:
    gaps = [unit.gap_ms for unit in run.units if unit.gap_ms is not None]
    notes = [f"recovered by {run.recovered_by}"] if run.recovered_by else []
    notes += ["begun"] if not run.finished else []
    notes += [run.backup_table] if run.backup_table else []
    notes += [f"{'pins' if run.pin[1] else 'unpins'} {run.pin[0]}"] if run.pin else []
    return [
        str(run.version),
        _time(run.timestamp_ms),
        run.operation,
        run.run,
        f"{run.user}@{run.host}",
        _outcomes_text(run),
        f"{max(gaps):.1f} ms" if gaps else "-",
        str(sum(len(unit.late_files) for unit in run.units)),
        "; ".join(notes),
    ]


def _outcomes_text(run: LoggedRun) -> str:
    outcomes: Dict[Outcome, int] = {}
    for unit in run.units:
        outcomes[unit.outcome] = outcomes.get(unit.outcome, 0) + 1
    return ", ".join(f"{count} {outcome.text}" for outcome, count in outcomes.items()) or "-"


def _changes(table: TableOutcome, effects: Sequence[Effect]) -> List[str]:
    run = table.log[0]
    lines = [f"{table.table}: run {run.run} ({run.operation}, {_time(run.timestamp_ms)})"]
    for effect in effects:
        lines.append(f"  {effect.partition or '(whole table)'}: old files in {effect.place}")
        lines += [f"    - {file.name}  {text.bytes_text(file.length)}" for file in effect.before]
        lines += [f"    + {file.name}  {text.bytes_text(file.length)}" for file in effect.after]
    return lines if effects else [*lines, "  changed no file"]


def _file_set(table: TableOutcome, files: FileSet) -> List[str]:
    counts = f"{plural(len(files.files), 'file')}, {plural(len(files.tombstones), 'tombstone')}"
    lines = [f"{table.table}: {counts} (writers' own files are not in the log)"]
    lines += [f"  file       {path}  {text.bytes_text(size)}" for path, size in sorted(files.files.items())]
    return lines + [f"  tombstone  {path}  {text.bytes_text(size)}  in {place}" for path, (size, place) in sorted(files.tombstones.items())]


def render_answered(table: TableOutcome) -> List[str]:
    """The answer for a table whose log has the command's run key; [] for others."""
    run = table.answered_by
    if run is None:
        return []
    done = f"run {run.run} has this run key ({run.operation}, {_time(run.timestamp_ms)}: {_outcomes_text(run)})"
    return [f"{table.table}: {done}; nothing was done again, the exit code is that of then: {int(table.code)}"]


def render_pin(table: TableOutcome, _width: int) -> List[str]:
    return [
        f"{table.table}: the backup of run {one.backup.run} is {'pinned' if one.backup.pinned else 'not pinned'}" for one in table.backups
    ]


RENDERERS: Mapping[str, Callable[[TableOutcome, int], List[str]]] = {
    "backup": render_backup,
    "verify": render_verify,
    "rollback": render_rollback,
    "cleanup": render_cleanup,
    "history": render_history,
    "pin": render_pin,
    "unpin": render_pin,
}


def _name(table: TableOutcome, unit: UnitOutcome) -> str:
    return f"{table.table}/{unit.name}" if unit.name else table.table


def _reasoned(table: TableOutcome, unit: UnitOutcome) -> str:
    return f"{_name(table, unit)}: {describe_outcome(unit)}"


def describe_outcome(unit: UnitOutcome) -> str:
    """`refused: it is a view [view] — name the table behind it`."""
    return unit.outcome.text + (f": {describe_problem(unit.why)}" if unit.why else "")


def describe_problem(why: Reason) -> str:
    return f"{why.what} [{why.code.code}]" + (f" — {why.next}" if why.next else "")


def _limited(lines: Sequence[str]) -> List[str]:
    shown = [f"  {line}" for line in lines[:MOST_LISTED]]
    more = len(lines) - len(shown)
    return shown + ([f"  … and {more} more (all of them with --json)"] if more > 0 else [])


def _indent(block: str) -> str:
    return "\n".join(f"  {line}" for line in block.split("\n"))


def _time(timestamp_ms: Optional[int]) -> str:
    if timestamp_ms is None:
        return "unknown"
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def plural(count: int, noun: str) -> str:
    return f"{text.count_text(count)} {noun}" + ("" if count == 1 else "s")
