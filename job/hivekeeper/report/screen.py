"""Results as text for operators.

Pure: a result and a width in, text out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from hivekeeper.codes import Exit
from hivekeeper.config.layers import Config
from hivekeeper.config.settings import JOINED
from hivekeeper.plan import ranking
from hivekeeper.plan.analysis import ObservedTable, Status, UnitAnalysis, predict
from hivekeeper.plan.doctor import Check, Level
from hivekeeper.plan.exchange_choice import Choice
from hivekeeper.plan.sizing import Counts, sum_up, threshold_bytes
from hivekeeper.ports import Cell
from hivekeeper.reasons import Reason
from hivekeeper.report import command_text, history_text, image_text, overview, text
from hivekeeper.report.command_text import plural
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome, count_units

MOST_LISTED = 20
# Of one name in a table, which makes all lines as wide.
MOST_COLUMNS = 300
HISTOGRAM_BOUNDS = (4 * 2**10, 64 * 2**10, 2**20, 16 * 2**20, 64 * 2**20, 128 * 2**20)


def render(result: CommandResult, partitions: bool = False, width: int = 120) -> str:
    """The answer of a command."""
    result = text.clean_names(result)
    blocks = {"analyze": _analyze, "compact-swap": _compact, "recover": _recover, "doctor": _doctor, "catalogue": _catalogue}
    lines = blocks.get(result.command, _tables)(result, partitions, width)
    lines += [] if result.command == "compact-swap" and _in_short(result, partitions) else _problems(result)
    return "\n".join(lines)


def _in_short(result: CommandResult, partitions: bool) -> bool:
    return overview.is_many(result) and not partitions


def _tables(result: CommandResult, _partitions: bool, width: int) -> List[str]:
    """The output of the backup-related commands, table by table."""
    renderer = history_text.render_history if result.command == "history" else command_text.RENDERERS[result.command]
    lines: List[str] = []
    for table in result.tables:
        block = command_text.recovered_lines(table)
        if table.orphans is not None:
            block += history_text.render_orphans(table, table.orphans)
        else:
            # What was done is told, though recording it may have failed.
            has_answer = table.problem is None or table.units or table.backups
            block += command_text.render_answered(table) or (renderer(table, width) if has_answer else [])
        lines += ["", *block] if len(block) > 1 and lines else block
    return lines if lines or result.tables else ["no table is selected"]


def render_planned_rollback(planned: TableOutcome) -> str:
    """The plan shown before a rollback is confirmed."""
    return "\n".join(command_text.render_rollback(text.clean_names(planned), 0))


def render_problem(problem: Reason) -> str:
    """Three lines, whatever the names in them contain."""
    what, state, following = (text.clean_text(said) for said in (problem.what, problem.state, problem.next))
    return f"hivekeeper: {what} [{problem.code.code}]\n  state: {state}\n  next:  {following}"


def render_config(config: Config, site: Optional[Path]) -> str:
    rows = [[name, entry.text, entry.origin] for name, entry in config.winners.items()]
    return text.table(rows, ["KEY", "VALUE", "FROM"], "") + f"\n\nsite.yaml: {'none' if site is None else text.clean_text(str(site))}"


def _analyze(result: CommandResult, partitions: bool, width: int) -> List[str]:
    observed = [table.observed for table in result.tables if table.observed is not None and table.observed.reason is None]
    ranked = ranking.rank(observed, lambda o: predict(o).files_removed, lambda o: predict(o).bytes_rewritten, lambda o: o.table.full_name)
    rows = [_analysis_row(one) for one in ranked]
    lines = [text.table(rows, _ANALYSIS_HEADERS, _ANALYSIS_ALIGN, width)] if rows else ["nothing to show"]
    if ranked:
        lines += ["", *_prediction(ranked), *_unchanged(ranked), *_exchanges(ranked), *_quarantined(ranked)]
    for one in ranked:
        if partitions:
            lines += ["", f"{one.table.full_name}: {one.unit_count} units", _unit_table(one)]
        if one.status is Status.COMPACT and len(ranked) <= overview.MANY:
            lines += ["", *_histogram(one, width)]
    return lines + (image_text.render(result.image, width) if result.image else [])


_ANALYSIS_HEADERS = ["TABLE", "STATUS", "UNITS", "WORK", "FILES", "AFTER", "SIZE", "AVERAGE", "MEDIAN", "THRESHOLD"]
_ANALYSIS_ALIGN = "<<>>>>>>>>"


def _analysis_row(observed: ObservedTable) -> List[str]:
    prediction, settings = predict(observed), observed.settings
    lengths = observed.lengths
    total, files = observed.total_bytes, sum_up(lengths)[0]
    return [
        observed.table.full_name,
        observed.status.text,
        text.count_text(observed.unit_count),
        text.count_text(observed.statuses.get(Status.COMPACT, 0)),
        text.count_text(prediction.files_now),
        text.count_text(prediction.files_after),
        text.bytes_text(total),
        text.bytes_text(round(total / files)) if files else "-",
        text.bytes_text(_middle(lengths, files)) if files else "-",
        text.bytes_text(round(threshold_bytes(settings.block_bytes, settings.ratio_threshold))),
    ]


def _middle(lengths: Counts, files: int) -> int:
    """The length of the file in the middle, the larger one of two."""
    seen = 0
    for length, alike in sorted(lengths):
        seen += alike
        if seen > files // 2:
            return length
    return 0


def _prediction(observed: Sequence[ObservedTable]) -> List[str]:
    predictions = [predict(one) for one in observed]
    files_now, files_after = sum(p.files_now for p in predictions), sum(p.files_after for p in predictions)
    names = ("objects_now", "objects_after", "objects_after_cleanup", "backup_objects")
    now, after, cleaned, held = (sum(getattr(p, name) for p in predictions) for name in names)
    # Files of several forms are known only from footers, which nobody has read here.
    least = text.count_text(files_after) if files_after == files_now else f"at least {text.count_text(files_after)}"
    return [
        f"files            {text.count_text(files_now)} now, {least} after compact-swap",
        f"NameNode objects {text.count_text(now)} now{f' ({text.count_text(held)} in backups)' if held else ''}, "
        f"{text.count_text(after)} after compact-swap{' (the old files stay as the backup)' if after != now else ''}, "
        f"{text.count_text(cleaned)} after cleanup",
        f"to be rewritten  {text.bytes_text(sum(p.bytes_rewritten for p in predictions))}",
    ]


def _unchanged(observed: Sequence[ObservedTable]) -> List[str]:
    left, units = sum(one.unchanged for one in observed), sum(one.unit_count for one in observed)
    if not left:
        return []
    why = "unchanged since the catalogue saw them, by their directories' times, which an append to a file leaves as they are"
    return [
        f"not listed       {text.count_text(left)} of {plural(units, 'unit')}: {why}",
    ]


def _exchanges(observed: Sequence[ObservedTable]) -> List[str]:
    """A line for each table whose setting leaves open which exchange its units get. Only footers and directories could tell for sure."""
    lines = []
    for one in observed:
        counts = sorted(one.exchanges.items(), key=lambda item: -item[1])
        told = [f"{_exchange(choice, plural(count, 'unit'))} ({choice.why.what})" for choice, count in counts]
        if told:
            lines.append(f"exchange         {one.table.full_name}: {', '.join(told)}")
    return lines


def _exchange(choice: Choice, units: str) -> str:
    if choice.exchange is None:
        return f"{units} not at all"
    return f"at most {units} by files" if choice.exchange == JOINED else f"{units} by directory"


def _quarantined(observed: Sequence[ObservedTable]) -> List[str]:
    units = [unit for one in observed for unit in one.units if unit.status is Status.QUARANTINED and unit.reason]
    lines = [f"  {unit.label}: {command_text.describe_problem(unit.reason)}" for unit in units[:MOST_LISTED] if unit.reason]
    left = sum(one.statuses.get(Status.QUARANTINED, 0) for one in observed) - len(lines)
    more = [f"  … and {text.count_text(left)} more (all of them with --json)"] if left else []
    return ["", "in quarantine:", *lines, *more] if lines or more else []


def _unit_table(observed: ObservedTable) -> str:
    ranked = ranking.rank(observed.units, lambda u: u.files_removed, lambda u: u.sizes.total_bytes, lambda u: u.unit.name)
    told = text.table(
        [_unit_row(unit) for unit in ranked], ["PARTITION", "STATUS", "FILES", "AFTER", "SIZE", "AVERAGE", "MEDIAN", "WHY"], "<<>>>>><"
    )
    left = observed.unit_count - len(ranked)
    return f"{told}\n… and {text.count_text(left)} more: analyze this table alone" if left else told


def _unit_row(unit: UnitAnalysis) -> List[str]:
    return [
        text.shorten_text(unit.name, MOST_COLUMNS) or "(whole table)",
        unit.status.text,
        text.count_text(unit.sizes.files),
        text.count_text(unit.target_files),
        text.bytes_text(unit.sizes.total_bytes),
        text.bytes_text(round(unit.sizes.average_bytes)),
        text.bytes_text(round(unit.sizes.median_bytes)),
        unit.reason.what if unit.reason else "",
    ]


def _histogram(observed: ObservedTable, width: int) -> List[str]:
    title = f"{observed.table.full_name}: file sizes"
    return [title, text.histogram(observed.lengths, HISTOGRAM_BOUNDS, max(10, width - 50))]


def _compact(result: CommandResult, partitions: bool, width: int) -> List[str]:
    lines = []
    if _in_short(result, partitions):
        return overview.render_compaction(result)
    for table in result.tables:
        # A cleanup that follows may have failed, or there was room for nothing else.
        has_units = table.problem is None or table.units
        block = _table_outcome(table, result.dry_run, partitions, width) if has_units else command_text.recovered_lines(table)
        block += _cleanup_after(table, width)
        lines += [*block, ""] if block else []
    return lines[:-1] if lines or result.tables else ["no table is selected"]


def _cleanup_after(table: TableOutcome, width: int) -> List[str]:
    return command_text.render_cleanup(table, width) if table.backups else []


def _table_outcome(table: TableOutcome, dry_run: bool, partitions: bool, width: int) -> List[str]:
    lines = command_text.recovered_lines(table)
    done = [unit for unit in table.units if unit.outcome.is_done]
    left = sorted((unit for unit in table.units if not unit.outcome.is_done), key=lambda unit: unit.outcome.exit is not Exit.INVESTIGATE)
    if not done and not left:
        return [*lines, *(command_text.render_answered(table) or [f"{table.table}: nothing to do"])]
    if done:
        lines += _done_lines(table, done, dry_run, width)
    groups = [[unit] for unit in left] if partitions else overview.group_alike(left)
    shown = groups if partitions else groups[:MOST_LISTED]
    lines += [f"  {overview.describe_units(table, units)}" for units in shown]
    more = sum(unit.units for unit in left) - sum(unit.units for units in shown for unit in units)
    if more:
        lines.append(f"  … and {more} more (all of them with --json)")
    return lines


def _done_lines(table: TableOutcome, done: Sequence[UnitOutcome], dry_run: bool, width: int) -> List[str]:
    before, after = sum(unit.files_before for unit in done), sum(unit.files_after or 0 for unit in done)
    verb = "would compact" if dry_run else "compacted"
    # A unit that is joined has one outcome for each new file.
    units, size = plural(count_units(done), "unit"), text.bytes_text(sum(unit.bytes_before for unit in done))
    lines = [f"{table.table}: {verb} {units}: {text.count_text(before)} → {plural(after, 'file')}, {size}"]
    lines.append(f"  {text.bar(before, after, max(20, min(60, width - 40)))} {text.factor_text(before, after)} fewer files")
    lines += _forms_line(done)
    if dry_run:
        return lines + _exchange_lines(done)
    lines[0] += f" → {text.bytes_text(sum(unit.bytes_after or 0 for unit in done))}, {text.duration_text(table.seconds)}"
    gaps = [unit.gap_ms for unit in done if unit.gap_ms is not None]
    rows = sum(unit.rows or 0 for unit in done)
    longest = f"longest gap {max(gaps):.1f} ms, " if gaps else ""
    lines.append(f"  {text.count_text(rows)} rows proved by digest, {longest}run {table.run}")
    if table.backup_table:
        lines.append(f"  old rows in SQL: {table.backup_table}")
    late = sum(unit.late_count for unit in done)
    if late:
        lines.append(f"  {plural(late, 'file')} arrived during the run, carried over")
    return lines


def _forms_line(done: Sequence[UnitOutcome]) -> List[str]:
    """Why there are more files than the sizes ask for, if so."""
    mixed = [unit.forms for unit in done if unit.forms is not None and unit.forms > 1]
    if not mixed:
        return []
    return [f"  files of different writers, schemas or codecs stay apart in {plural(len(mixed), 'unit')}: up to {max(mixed)} forms in one"]


def _exchange_lines(done: Sequence[UnitOutcome]) -> List[str]:
    """Which exchange each unit would get, where the setting leaves that open; units with one reason share a line."""
    alike: Dict[Tuple[str, str], Dict[str, None]] = {}
    for unit in done:
        if unit.exchange_why:
            alike.setdefault((unit.exchange, unit.exchange_why.what), {})[unit.name or "(whole table)"] = None
    lines = []
    for (exchange, why), names in alike.items():
        more = f" … and {len(names) - MOST_LISTED} more (all of them with --json)" if len(names) > MOST_LISTED else ""
        lines.append(f"  by {exchange}, {why}: {', '.join(list(names)[:MOST_LISTED])}{more}")
    return lines


def _recover(result: CommandResult, _partitions: bool, _width: int) -> List[str]:
    lines = [line for table in result.tables for line in command_text.recovered_lines(table)]
    return lines if lines or any(table.problem for table in result.tables) else ["nothing to recover"]


def _doctor(result: CommandResult, _partitions: bool, _width: int) -> List[str]:
    return [render_check(check) for check in result.checks]


_DONE_TO_CATALOGUE = {
    "purge": "all rows are removed; commits and files stay until they expire",
    "expire": "what newer commits replaced longer ago than catalogue.expire_after is removed",
}


def _catalogue(result: CommandResult, _partitions: bool, width: int) -> List[str]:
    answer = result.catalogue
    if answer is None:
        return []
    if answer.action == "delete":
        counts = ", ".join(f"{count} of {name}" for name, count in answer.deleted.items())
        return [f"removed metadata keys: {counts}"]
    if answer.action != "show":
        return [_DONE_TO_CATALOGUE[answer.action]]
    if not answer.rows:
        return ["nothing is recorded"]
    rows = [[_cell(column, cell) for column, cell in zip(answer.columns, row)] for row in answer.rows]
    numbers = {index for row in answer.rows for index, cell in enumerate(row) if isinstance(cell, (int, float))}
    align = "".join(">" if index in numbers else "<" for index in range(len(answer.columns)))
    lines = [text.table(rows, [column.upper() for column in answer.columns], align, width)]
    return lines + ["… and more: give --limit, or ask in SQL"] if answer.has_more else lines


def _cell(column: str, cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, int) and column.endswith("_ms"):
        return command_text.time_text(cell)
    if isinstance(cell, int) and column.endswith("bytes"):
        return text.bytes_text(cell)
    return text.count_text(cell) if isinstance(cell, int) else str(cell)


def render_check(check: Check) -> str:
    """One finding, in the same columns as bin/lib/doctor.bash, whose lines come first."""
    check = text.clean_names(check)
    about = f"{check.table}: " if check.table else ""
    line = f"{check.level.code:<5} {check.name:<16} {about}{check.what}"
    return f"{line}\n      → {check.next}" if check.next and check.level is not Level.OK else line


def _problems(result: CommandResult) -> List[str]:
    """Problems of named tables in full, as errors; those of tables selected by database, one line each."""
    found = [(table.table, table.problem) for table in result.tables if table.problem is not None]
    problems = [problem for _, problem in found]
    if not problems:
        return []
    if len(problems) > overview.MANY:
        return overview.render_findings([(problem.exit, table, command_text.describe_problem(problem)) for table, problem in found])
    if result.named:
        return ["", *(render_problem(problem) for problem in problems)]
    return ["", "left alone:", *(f"  {command_text.describe_problem(problem)}" for problem in problems)]
