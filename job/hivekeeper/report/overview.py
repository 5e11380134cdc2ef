"""A short report on many tables: a line for each with work done, then what needs attention, the most severe last.

Pure: values in, lines out; `screen.py` assembles them.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.codes import Exit
from hivekeeper.reasons import Reason
from hivekeeper.report import text
from hivekeeper.report.command_text import (
    MOST_LISTED,
    describe_outcome,
    describe_problem,
    name_backup,
    plural,
    recovered_lines,
    render_answered,
)
from hivekeeper.report.results import LOOKED_AT, SEVERITY, CommandResult, TableOutcome, UnitOutcome, count_units
from hivekeeper.runlog.outcomes import Kind, Outcome

# With more tables than this a paragraph for each is too much to read.
MANY = 12
# At least this many units with the same outcome and reason share one line.
ALIKE = 4

HEADS: Mapping[Exit, str] = {
    Exit.DONE: "left alone for now",
    Exit.REFUSED: "refused",
    Exit.PARTIAL: "not all done, run again",
    Exit.LOCKED: "held by another run or by a writer",
    Exit.UNUSABLE: "the cluster could not be used",
    Exit.DIFFERENT: "the proof failed",
    Exit.USAGE: "wrong usage",
    Exit.BUG: "a bug",
    Exit.INVESTIGATE: "stop and investigate",
}

# The exit code that it stands for, its table, and the line for it.
Finding = Tuple[Exit, str, str]


def is_many(result: CommandResult) -> bool:
    return len(result.tables) > MANY


def render_compaction(result: CommandResult) -> List[str]:
    """compact-swap on many tables."""
    lines = [line for table in result.tables for line in _done_lines(table, result.dry_run)]
    return [*lines, *render_findings(find_all(result.tables)), "", summarize(result)]


def _done_lines(table: TableOutcome, dry_run: bool) -> List[str]:
    lines = recovered_lines(table)
    lines += render_answered(table)
    done = [unit for unit in table.units if unit.outcome.is_done]
    if done:
        before, after = sum(unit.files_before for unit in done), sum(unit.files_after or 0 for unit in done)
        verb, spent = ("would compact", "") if dry_run else ("compacted", f", {text.duration_text(table.seconds)}")
        size = text.bytes_text(sum(unit.bytes_before for unit in done))
        counts = f"{plural(count_units(done), 'unit')}: {text.count_text(before)} → {plural(after, 'file')}"
        lines.append(f"{table.table}: {verb} {counts}, {size}{spent}")
    return lines


def find_all(tables: Iterable[TableOutcome]) -> List[Finding]:
    """What may need attention in each table."""
    found: List[Finding] = []
    for table in tables:
        if table.problem is not None:
            found.append((table.problem.exit, table.table, describe_problem(table.problem)))
        # Skipped units appear only in the totals: there is nothing to do about them.
        left = [unit for unit in table.units if not unit.outcome.is_done and unit.outcome.kind is not Kind.SKIPPED]
        for units in group_alike(left):
            found.append((units[0].exit, table.table, describe_units(table, units)))
        for one in table.backups:
            if not one.is_done:
                what = describe_problem(one.trouble) if one.trouble else one.state.meaning
                found.append((one.state.exit, table.table, f"{name_backup(table, one)}: {what}"))
    return found


def render_findings(findings: Sequence[Finding]) -> List[str]:
    """The most severe last, where a reader at a terminal looks first."""
    lines: List[str] = []
    for code in reversed(SEVERITY):
        of_code = [(table, line) for found, table, line in findings if found is code]
        if of_code:
            # Where an operator has to look, no table is left out because another tenant has so many.
            most = max(MOST_LISTED, len({table for table, _ in of_code}) if code in LOOKED_AT else 0)
            lines += ["", f"{HEADS[code]}:", *(f"  {line}" for line in _take_turns(of_code, most))]
            more = len(of_code) - most
            lines += [f"  … and {more} more (all of them with --json)"] if more > 0 else []
    return lines


def _take_turns(lines: Sequence[Tuple[str, str]], most: int) -> List[str]:
    """So many of these lines of tables, in their order: one of each table before a second one of any, and so on."""
    turns: List[int] = []
    of_table: Dict[str, int] = {}
    for table, _ in lines:
        turns.append(of_table.setdefault(table, 0))
        of_table[table] += 1
    return [lines[at][1] for at in sorted(nsmallest(most, range(len(lines)), key=turns.__getitem__))]


def group_alike(units: Iterable[UnitOutcome]) -> List[List[UnitOutcome]]:
    """Group units with the same outcome and reason if there are several, ordered by the first unit of each group."""
    alike: Dict[Tuple[Outcome, Optional[Reason]], List[UnitOutcome]] = {}
    for unit in units:
        alike.setdefault((unit.outcome, unit.why), []).append(unit)
    counts = {key: sum(unit.units for unit in group) for key, group in alike.items()}
    return [part for key, group in alike.items() for part in ([group] if counts[key] >= ALIKE else [[unit] for unit in group])]


def describe_units(table: TableOutcome, units: Sequence[UnitOutcome]) -> str:
    """One line for one unit, or for a group of alike units."""
    first = units[0]
    what = describe_outcome(first)
    count = sum(unit.units for unit in units)
    if count == 1:
        return f"{table.table}/{first.name}: {what}" if first.name else f"{table.table}: {what}"
    return f"{table.table}: {plural(count, 'unit')} {what}"


def summarize(result: CommandResult) -> str:
    """The number of tables and units by outcome, and the exit code."""
    counts: Dict[str, int] = {}
    for table in result.tables:
        word = _word_of(table, result.dry_run)
        counts[word] = counts.get(word, 0) + 1
    units: Dict[Outcome, int] = {}
    for unit in (unit for table in result.tables for unit in table.units):
        units[unit.outcome] = units.get(unit.outcome, 0) + unit.units
    of_units = ", ".join(f"{text.count_text(count)} {outcome.text}" for outcome, count in units.items())
    of_tables = ", ".join(f"{text.count_text(count)} {word}" for word, count in counts.items())
    return f"{plural(len(result.tables), 'table')}: {of_tables}; units: {of_units or 'none'}; exit code {result.exit_code}"


def _word_of(table: TableOutcome, dry_run: bool) -> str:
    if table.code is not Exit.DONE:
        return HEADS[table.code]
    if table.answered_by:
        return "done before"
    if any(unit.outcome.is_done for unit in table.units):
        return "would be compacted" if dry_run else "compacted"
    return "with nothing to do"
