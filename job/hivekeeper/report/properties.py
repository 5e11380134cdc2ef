"""The output of --properties-out: a few Java properties that a scheduler branches on (docs/schedulers.md).

Pure. Always shorter than LIMIT bytes, the most that Oozie captures of an action's output; plain ASCII.
"""

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterable, Iterator, List, Mapping, Tuple

from hivekeeper import quoting
from hivekeeper.codes import Exit
from hivekeeper.plan.doctor import Level
from hivekeeper.reasons import Reason
from hivekeeper.report.command_text import name_backup
from hivekeeper.report.document import count_totals
from hivekeeper.report.results import SEVERITY, CommandResult, TableOutcome, UnitOutcome
from hivekeeper.report.text import clean_text
from hivekeeper.runlog.outcomes import Kind

# Oozie's oozie.action.max.output.data; a longer output fails the action.
LIMIT = 2048
LONGEST_WORD, LONGEST_TEXT, LONGEST_RUNS = 40, 400, 200
# What to do may be a command, of which no part is shown.
UNTOLD = "it cannot be shown here: see the answer, or docs/runbook.md"
# Oozie puts a property into a workflow's XML as it is, before that is parsed, and may evaluate it once more: other signs look alike.
IN_XML: Mapping[int, str] = {ord("&"): "\uff06", ord("<"): "\uff1c", ord(">"): "\uff1e", ord("$"): "\uff04"}
RUNS, MOST_RUNS = "recovered_runs", 5

# A run that a signal stopped.
STOPPED = {"meaning": "stopped", "retry": "later"}

# What a scheduler does after each code.
RETRIES: Mapping[int, str] = {
    Exit.DONE: "none",
    Exit.BUG: "recover",
    Exit.USAGE: "manual",
    Exit.REFUSED: "manual",
    Exit.LOCKED: "later",
    Exit.DIFFERENT: "manual",
    Exit.PARTIAL: "later",
    Exit.INVESTIGATE: "manual",
    Exit.UNUSABLE: "later",
}


def render(result: CommandResult) -> str:
    """The properties of a command that ran."""
    totals = count_totals(result)
    recovered = [run for table in result.tables for run, _ in table.recovered]
    words = {
        **_head(result.command, result.code),
        **(STOPPED if result.exit_code > max(Exit) else {}),
        "exit_code": result.exit_code,
        "run": result.run,
        "dry_run": str(result.dry_run).lower(),
        "tables": totals["tables"],
        "tables_done": sum(table.code is Exit.DONE for table in result.tables),
        **_count_units(unit for table in result.tables for unit in table.units),
        **{name: totals[name] for name in ("files_before", "files_after", "bytes_before", "bytes_after")},
        "recovered": len(recovered),
    }
    what, advice = _find_trouble(result)
    return _render_lines({**words, RUNS: ",".join(recovered[:MOST_RUNS])}, what, advice)


def render_error(problem: Reason, command: str, exit: Exit) -> str:
    """The properties of a command that could not run."""
    return _render_lines(_head(command, exit), problem.what, problem.next)


def _head(command: str, code: Exit) -> Dict[str, object]:
    return {"exit_code": int(code), "meaning": code.name.lower(), "retry": RETRIES[code], "command": command}


def _count_units(units: Iterable[UnitOutcome]) -> Dict[str, int]:
    counts: Counter[Kind] = Counter()
    for unit in units:
        counts[unit.outcome.kind] += unit.units
    return {f"units_{kind.code}": counts[kind] for kind in Kind}


def _find_trouble(result: CommandResult) -> Tuple[str, str]:
    """What is wrong, and the next step: the first thing that stands for the command's exit code, or else the gravest one."""
    for check in result.checks:
        if check.level is Level.FIX:
            return check.what, check.next
    # Computed once: the code depends on every table.
    code = result.code
    found = (trouble for table in result.tables for trouble in _troubles_of(table))
    first = min(found, key=lambda trouble: (trouble[0] is not code, SEVERITY.index(trouble[0])), default=None)
    return first[1:] if first else ("", "")


def _troubles_of(table: TableOutcome) -> Iterator[Tuple[Exit, str, str]]:
    """The exit code, what is wrong, and the next step, of a table's problem, of units, backups and interrupted runs."""
    if table.problem is not None:
        yield table.problem.exit, table.problem.what, table.problem.next
    for unit in table.units:
        if unit.outcome.kind in (Kind.FAILED, Kind.REFUSED, Kind.LEFT):
            name = f"{table.table}/{unit.name}" if unit.name else table.table
            yield unit.exit, f"{name}: {unit.outcome.text}: {unit.reason}", unit.next
    for one in table.backups:
        if not one.is_done:
            what, next = (one.trouble.what, one.trouble.next) if one.trouble else (one.state.meaning, "")
            yield one.state.exit, f"{name_backup(table, one)}: {what}", next
    for run, counts in table.recovered:
        for outcome in counts:
            if outcome.is_astray:
                history = f"hivekeeper history --table {quoting.shell(table.table)}"
                yield outcome.exit, f"{table.table}: recovered run {run}: {counts[outcome]} {outcome.text}", history


def _render_lines(words: Mapping[str, object], what: str, advice: str) -> str:
    """One line for each property. Words are short by nature; the last ones share the remaining space: what is wrong may take most of it."""
    lines = [_line(name, str(value), LONGEST_RUNS if name == RUNS else LONGEST_WORD) for name, value in words.items()]
    left = LIMIT - 1 - sum(len(line) + 1 for line in lines)
    room = left - len(_line("error", "", 0)) - 1 - len(_line("next", UNTOLD, len(UNTOLD))) - 1
    lines.append(_line("error", what.partition("\n")[0], min(LONGEST_TEXT, room)))
    left -= len(lines[-1]) + 1
    told = _line("next", advice, LIMIT)
    is_fit = len(told) < left and _clean(advice) == advice
    return "\n".join([*lines, told if is_fit else _line("next", UNTOLD, LIMIT)])


def _line(name: str, value: str, longest: int) -> str:
    return f"hivekeeper.{name}={_escape_value(_clean(value), longest)}"


def _clean(value: str) -> str:
    """The value without signs of XML, and without characters that no XML can have: one would end the action that it is put into, such as
    the mail that tells of it.
    """
    return clean_text(value).translate(IN_XML)


def _escape_value(value: str, longest: int) -> str:
    """Escape a value for java.util.Properties, in at most `longest` bytes; a truncated value ends in dots."""
    escaped = [_escape_char(char, at == 0) for at, char in enumerate(value[: longest + 1])]
    if sum(map(len, escaped)) <= longest:
        return "".join(escaped)
    kept: List[str] = []
    room = longest - len("...")
    for piece in escaped:
        room -= len(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept) + "..."


_ESCAPES: Mapping[str, str] = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def _escape_char(char: str, first: bool) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char == " " and first:
        return "\\ "
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
