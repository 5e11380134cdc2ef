"""The text output of backup, verify, rollback, cleanup and pin.

Pure: a table's outcome in, lines out; `screen.py` assembles them.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from hivekeeper import quoting
from hivekeeper.model import Differences
from hivekeeper.plan.retention import Window
from hivekeeper.reasons import Reason
from hivekeeper.report import text
from hivekeeper.report.results import BackupOutcome, BackupState, LeftOut, TableOutcome, UnitOutcome, code_of_run
from hivekeeper.runlog.history import LoggedRun
from hivekeeper.runlog.outcomes import Outcome

MOST_LISTED = 20
MOST_COMPARED = 5


def render_backup(table: TableOutcome, _width: int) -> List[str]:
    units: List[UnitOutcome] = []
    refused: List[UnitOutcome] = []
    for unit in table.units:
        (units if unit.outcome is Outcome.RECORDED else refused).append(unit)
    files, size = sum(unit.files_before for unit in units), sum(unit.bytes_before for unit in units)
    left = limited([_reasoned(table, unit) for unit in refused])
    if refused and not units:
        return [f"{table.table}: nothing is recorded", *left]
    shown = f"backup table {table.backup_table}" if table.backup_table else "no backup table"
    return [
        f"{table.table}: recorded {plural(_count(units), 'unit')}, {plural(files, 'file')}, {text.bytes_text(size)}; run {table.run}",
        f"  {shown}. Nothing was copied: files that another writer deletes before a compact-swap are gone for good.",
        *left,
    ]


def render_verify(table: TableOutcome, _width: int) -> List[str]:
    verified = [unit for unit in table.units if unit.outcome is Outcome.VERIFIED]
    if not table.units:
        return [f"{table.table}: nothing to verify: no run has changed it"]
    arrivals = sum(unit.late_count for unit in table.units)
    rows = sum(unit.rows or 0 for unit in verified)
    what = f"{_count(verified)} of {plural(_count(table.units), 'unit')} verified"
    lines = [f"{table.table}: {what}: live holds the backup's {plural(rows, 'row')}"]
    if arrivals:
        lines.append(f"  and {plural(arrivals, 'file')} that came later")
        lines += limited([f"{_name(table, unit)}: {name}" for unit in table.units for name in unit.late_files])
    lines += limited([_reasoned(table, unit) for unit in table.units if unit.reason or unit.outcome is not Outcome.VERIFIED])
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
        lines.append(f"{table.table}: would roll back {plural(_count(planned), 'step')}:")
        lines += limited([_exchange(table, unit) for unit in planned])
    if done:
        gaps = [unit.gap_ms for unit in done if unit.gap_ms is not None]
        longest = f"longest gap {max(gaps):.1f} ms, " if gaps else ""
        lines.append(f"{table.table}: rolled back {plural(_count(done), 'step')}, {longest}run {table.run}")
        lines += limited([_exchange(table, unit) for unit in done])
        lines.append(f"  to undo this: hivekeeper rollback --table {quoting.shell(table.table)} --run {table.run}")
    if not done and not planned and all(unit.outcome is Outcome.UNDONE for unit in table.units):
        lines.append(f"{table.table}: nothing to roll back")
    return lines + limited([_reasoned(table, unit) for unit in table.units if unit.outcome not in (Outcome.ROLLED_BACK, Outcome.PLANNED)])


def _exchange(table: TableOutcome, unit: UnitOutcome) -> str:
    late = f", {plural(unit.late_count, 'file')} that came later kept" if unit.late_files else ""
    undone = f", undoes run {unit.of_run}" if unit.of_run else ""
    return f"{_name(table, unit)}: {unit.files_before} → {plural(unit.files_after or 0, 'file')}{undone}{late}"


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
    rows = [[*backup_row(one), one.state.text, one.reason] for one in table.backups]
    lines.append(indent(text.table(rows, [*BACKUP_HEADERS, "OUTCOME", "WHY"], "===>>>==", width)))
    for one in table.backups:
        kept = [(f"{table.table}/{name}" if name else table.table, describe_problem(why) if why else "") for name, why in one.kept_units]
        lines += limited([f"kept {name} of run {one.backup.run}: {reason}" for name, reason in kept])
        lines += untold(one.more_kept, f"kept units of run {one.backup.run}")
        if one.late_files:
            lines.append(f"  {plural(one.late_count, 'file')} that came into the backup late went to live: {_named_late(one)}")
    return lines


def _named_late(one: BackupOutcome) -> str:
    return ", ".join([*one.late_files, *([f"and {one.more_late} more"] if one.more_late else [])])


def _window_text(window: Optional[Window]) -> str:
    if window is None:
        return "kept as a whole: no run"
    runs = "run" if window.runs == 1 else plural(window.runs, "run")
    return f"kept as a whole: the last {runs}, {text.age_text(window.back_ms)} back"


BACKUP_HEADERS = ["RUN", "OF", "WHEN", "UNITS", "FILES", "SIZE"]


def backup_row(one: BackupOutcome) -> List[str]:
    backup, held = one.backup, one.held
    kind = "record" if backup.is_record else backup.operation
    return [
        backup.run,
        kind + (" (pinned)" if backup.pinned else ""),
        time_text(backup.timestamp_ms),
        "-" if backup.is_record else text.count_text(held.units),
        "-" if backup.is_record else text.count_text(held.files),
        "-" if backup.is_record else text.bytes_text(held.total_bytes),
    ]


def recovered_lines(table: TableOutcome) -> List[str]:
    """What was found of each interrupted run that was settled first."""
    return [f"{table.table}: recovered run {run}: {_counts_text(counts) or 'it had changed nothing'}" for run, counts in table.recovered]


def render_answered(table: TableOutcome) -> List[str]:
    """The answer for a table whose log has the command's run key; [] for others."""
    run = table.answered_by
    if run is None:
        return []
    done = f"run {run.run} has this run key ({run.operation}, {time_text(run.timestamp_ms)}: {outcomes_text(run, table.left_out)})"
    return [f"{table.table}: {done}; nothing was done again, the exit code is that of then: {int(code_of_run(run))}"]


def outcomes_text(run: LoggedRun, left_out: LeftOut) -> str:
    outcomes: Dict[Outcome, int] = {}
    for unit in run.units:
        outcomes[unit.outcome] = outcomes.get(unit.outcome, 0) + 1
    for units in left_out.units.get(run.version, ()):
        outcomes[units.outcome] = outcomes.get(units.outcome, 0) + units.units
    return _counts_text(outcomes) or "-"


def _counts_text(counts: Mapping[Outcome, int]) -> str:
    return ", ".join(f"{count} {outcome.text}" for outcome, count in counts.items())


def render_pin(table: TableOutcome, _width: int) -> List[str]:
    return [
        f"{table.table}: the backup of run {one.backup.run} is {'pinned' if one.backup.pinned else 'not pinned'}"
        + (f"; {one.reason}" if one.reason else "")
        for one in table.backups
    ]


def render_forget(table: TableOutcome, _width: int) -> List[str]:
    found = table.forgotten
    if found is None:
        return [f"{table.table}: nothing to forget"]
    verb = "forgot" if table.run else "would forget"
    tables = "".join(f", backup table {name}" for name in found.backup_tables)
    return [f"{table.table}: {verb} {found.place} ({text.count_text(found.entries)} log entries){tables}"]


RENDERERS: Mapping[str, Callable[[TableOutcome, int], List[str]]] = {
    "backup": render_backup,
    "verify": render_verify,
    "rollback": render_rollback,
    "cleanup": render_cleanup,
    "forget": render_forget,
    "pin": render_pin,
    "unpin": render_pin,
}


def _count(units: Sequence[UnitOutcome]) -> int:
    return sum(unit.units for unit in units)


def _name(table: TableOutcome, unit: UnitOutcome) -> str:
    if unit.units > 1:
        return f"{table.table}: {plural(unit.units, 'unit')}"
    return f"{table.table}/{unit.name}" if unit.name else table.table


def _reasoned(table: TableOutcome, unit: UnitOutcome) -> str:
    return f"{_name(table, unit)}: {describe_outcome(unit)}"


def describe_outcome(unit: UnitOutcome) -> str:
    """`refused: it is a view [view] — name the table behind it`."""
    return unit.outcome.text + (f": {describe_problem(unit.why)}" if unit.why else "")


def name_backup(table: TableOutcome, one: BackupOutcome) -> str:
    return f"{table.table}: backup of run {one.backup.run}: {one.state.text}"


def describe_problem(why: Reason) -> str:
    return f"{why.what} [{why.code.code}]" + (f" — {why.next}" if why.next else "")


def limited(lines: Sequence[str]) -> List[str]:
    shown = [f"  {line}" for line in lines[:MOST_LISTED]]
    more = len(lines) - len(shown)
    return shown + ([f"  … and {more} more (all of them with --json)"] if more > 0 else [])


def untold(number: int, what: str) -> List[str]:
    """The line for what a command over many tables has no room for."""
    return [f"  … and {text.count_text(number)} more {what}: name this table alone to see them"] if number else []


def indent(block: str) -> str:
    return "\n".join(f"  {line}" for line in block.split("\n"))


def time_text(timestamp_ms: Optional[int]) -> str:
    if timestamp_ms is None:
        return "unknown"
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def plural(count: int, noun: str) -> str:
    return f"{text.count_text(count)} {noun}" + ("" if count == 1 else "s")
