"""compact-swap as a whole: each table is compacted, and its cleanup follows at once, or beside the copying of a later table.

Two runs, each with its own lock and log entry: whatever happens to the cleanup, the compaction is recorded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import per_table
from hivekeeper.commands.cleanup import clean_up_table
from hivekeeper.commands.compact_table import compact_table
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import read_again
from hivekeeper.errors import Refused, Unusable
from hivekeeper.model import Table
from hivekeeper.plan import retention
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import CommandResult, TableOutcome, beside, code_of_units
from hivekeeper.runlog.run_files import COMPACT_SWAP

LACKS_ROOM = (Code.NOT_ENOUGH_SPACE, Code.NOT_ENOUGH_NAMES)


def compact_swap(context: Context) -> CommandResult:
    """Compact every selected table, each followed by its cleanup if that is asked for."""
    cluster = context.cluster
    cleaned = per_table.Outcomes(context.selection.names_one)
    began = cluster.clock.monotonic_ms()
    result = per_table.run_on_tables(context, COMPACT_SWAP, partial(_compact_and_clean_up, cleaned))
    cluster.beside.do()
    seconds = (cluster.clock.monotonic_ms() - began) / 1000
    later = {one.table: one for one in cleaned.tables}
    tables = tuple(_with_later(table, later[table.table]) if table.table in later else table for table in result.tables)
    return replace(result, tables=tables, seconds=seconds, signal=cluster.stopping.signal)


def _compact_and_clean_up(cleaned: per_table.Outcomes, context: Context, table: Table) -> TableOutcome:
    """`cleaned` gets the outcomes of cleanups that come later."""
    settings = context.settings_for(table.full_name)
    if not settings.cleanup_after:
        return compact_table(context, table)
    # Wrong rules are an error in the configuration, after which no table is touched.
    retention.refuse_contradiction(settings, table.full_name)
    outcome = _compact_if_there_is_room(context, table)
    if not _is_cleanup_wanted(outcome):
        return outcome
    if not settings.cleanup_beside or context.dry_run:
        return _with_cleanup(outcome, _clean_up(context, table, partial(clean_up_table, is_observed=True)))

    context.cluster.beside.add(partial(_clean_up_later, cleaned, context, table.bare()))
    return outcome


def _is_cleanup_wanted(outcome: TableOutcome) -> bool:
    """Where a proof failed, or rows are not where they belong, somebody may need more than the newest backup."""
    is_done = not outcome.answered_by and (not outcome.problem or outcome.problem.code in LACKS_ROOM)
    return is_done and code_of_units(outcome.units) in (Exit.DONE, Exit.PARTIAL, Exit.REFUSED)


def _clean_up(context: Context, table: Table, work: per_table.Work) -> TableOutcome:
    """The outcome of the cleanup; an empty one if the command is asked to end."""
    if context.cluster.stopping.is_asked():
        return TableOutcome(table.full_name)
    after = replace(context, run=names.following_run_id(context.run), run_key="")
    return per_table.attempt(after, table, work)


def _clean_up_later(cleaned: per_table.Outcomes, context: Context, bare: Table) -> None:
    """The same while another table is in work, whose log and times are not mixed up with this one's. Its definition is asked for again:
    thousands of cleanups may wait.
    """

    def clean_up(context: Context, bare: Table) -> TableOutcome:
        try:
            table = read_again(context.cluster, bare)
        except Refused:
            # The table that was compacted is not there any more, so there is nothing to clean up, and the compaction is told as it was.
            return TableOutcome(bare.full_name)
        return clean_up_table(context, table, is_observed=True)

    own = replace(context.cluster, log_entries={}, spent={})
    cleaned.add(replace(_clean_up(replace(context, cluster=own), bare, clean_up), spent=own.spent))


def _with_cleanup(outcome: TableOutcome, cleaned: TableOutcome) -> TableOutcome:
    recovered = (*outcome.recovered, *cleaned.recovered)
    problem = beside(outcome.problem, _of_cleanup(cleaned.problem)) if cleaned.problem else outcome.problem
    return replace(outcome, recovered=recovered, backups=cleaned.backups, window=cleaned.window, problem=problem)


def _with_later(outcome: TableOutcome, cleaned: TableOutcome) -> TableOutcome:
    spent = {step: outcome.spent.get(step, 0.0) + cleaned.spent.get(step, 0.0) for step in {**outcome.spent, **cleaned.spent}}
    return replace(_with_cleanup(outcome, cleaned), spent=spent)


def _of_cleanup(problem: Reason) -> Reason:
    state = f"the compaction is recorded; of the backups: {problem.state}"
    return replace(problem, what=f"cleanup after the compaction: {problem.what}", state=state)


def _compact_if_there_is_room(context: Context, table: Table) -> TableOutcome:
    """Like compact_table, but a lack of room is an outcome: nothing was written, and only a cleanup may help the next run."""
    try:
        return compact_table(context, table)
    except Unusable as error:
        if error.reason.code not in LACKS_ROOM:
            raise
        return TableOutcome(table.full_name, problem=error.reason)
