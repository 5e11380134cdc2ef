"""Run one command on each selected table; a failure of one does not stop the others.

This is the one place where an error of a table becomes part of a result, but for `doctor`, which finds errors. It catches every exception,
so a bug that shows on one table costs only that table.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from heapq import heappop, heappush
from typing import Callable, Iterable, Iterator, List, Mapping, Optional, Tuple

from hivekeeper import quoting
from hivekeeper.codes import Exit
from hivekeeper.commands import selection
from hivekeeper.commands.context import Context
from hivekeeper.errors import HivekeeperError, Refused, Stopped, Unusable
from hivekeeper.jail import Jail, confine
from hivekeeper.model import Table
from hivekeeper.names import RunId
from hivekeeper.plan.analysis import ObservedTable
from hivekeeper.ports import ALL, MOST_PARTITIONS, Cluster, FilesError, MetastoreUnavailable, NoPermission, RowsError
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.runlog.history import History, LoggedRun
from hivekeeper.steps.timing import Step, timed

log = logging.getLogger(__name__)

# Of all tables of a command: its result has them in memory until the end, and what a table has is claimed by its files.
MOST_ROW_GROUPS = 500_000
# Also of all tables: the characters of long names and texts, and of rows as examples; and as many of columns and of queries of views.
MOST_OF_TEXTS = 2**26
# Of one table: with no more of them it keeps them, whatever others have.
TEXTS_OF_TABLE = 2**12
# The same of units, each of which takes about a kilobyte: as many as one table may have. Its log may have more, for each run on it.
MOST_UNITS = MOST_PARTITIONS
UNITS_OF_TABLE = 20
_NOTHING_DONE = "nothing of it was discarded"

# The context's cluster can change only this table.
Work = Callable[[Context, Table], TableOutcome]


class Room:
    """Room for what all tables have of something. Where there is too little of it, the table with the most gives way, then the next,
    whichever came first: nobody has so much that others must do without.
    """

    def __init__(self, size: int, of_table: int) -> None:
        """`of_table`: with no more than that no table gives way."""
        self._spare, self._of_table = size, of_table
        # How much each of them could do without, the largest first, and which one it is.
        self._large: List[Tuple[int, int]] = []

    def take(self, dispensable: int, table: int) -> Iterator[int]:
        """The tables, known by numbers, that give way to this one, or this one itself. `dispensable`: what there is less if it does."""
        if dispensable <= self._of_table:
            return
        heappush(self._large, (-dispensable, table))
        self._spare -= dispensable
        while self._spare < 0:
            most, at = heappop(self._large)
            self._spare -= most
            yield at


class Outcomes:
    """The outcomes of tables, all of which a command has in memory until its end, where they may have more units, and longer texts, than
    there is room for.
    """

    def __init__(self, keeps_units: bool = False) -> None:
        """`keeps_units`: of a table that is named alone. Nobody else needs the room, and no other command would tell them."""
        self.tables: List[TableOutcome] = []
        self._units = Room(ALL if keeps_units else MOST_UNITS, UNITS_OF_TABLE)
        self._texts = Room(MOST_OF_TEXTS, TEXTS_OF_TABLE)
        # By itself: a table with many columns does not have its reasons cut.
        self._definitions = Room(MOST_OF_TEXTS, TEXTS_OF_TABLE)

    def add(self, outcome: TableOutcome) -> None:
        number = len(self.tables)
        self.tables.append(outcome.without_definitions())
        for at in self._units.take(outcome.unit_count, number):
            large = self.tables[at]
            self.tables[at] = large.without_units(UNITS_OF_TABLE)
            log.warning("table=%s step=leave-out units=%d", quoting.log_field(large.table), large.unit_count)
        for at in self._texts.take(self.tables[number].dispensable, number):
            long = self.tables[at]
            log.warning("table=%s step=cut-texts characters=%d", quoting.log_field(long.table), long.dispensable)
            self.tables[at] = long.shortened()
        for at in self._definitions.take(self.tables[number].of_definition, number):
            wide = self.tables[at]
            say_cut_definition(wide.table, wide.of_definition)
            self.tables[at] = wide.with_short_definition()


def say_cut_definition(table: str, characters: int) -> None:
    log.warning("table=%s step=cut-definition characters=%d", quoting.log_field(table), characters)


def run_on_tables(context: Context, command: str, work: Work) -> CommandResult:
    """Run a command on each selected table separately and return its result, including missing tables. If it may end before all had their
    turn, whoever owns the first ones must not keep the others from theirs in each run: the order is another one each time.
    """
    cluster, selected = context.cluster, context.selection
    started, began = cluster.clock.now_ms(), cluster.clock.monotonic_ms()
    tables = selection.SelectedTables(cluster, selected, context.backup_prefix, context.run if cluster.stopping.is_limited else None)
    outcomes = for_each(context, tables, work)
    absent = absent_outcomes(tables.absent)
    places = tables.places()
    # Databases that are absent as a whole, which have no place, come before all.
    for some in (absent, outcomes):
        some.sort(key=lambda outcome: places.get(outcome.table, -1))
    seconds = (cluster.clock.monotonic_ms() - began) / 1000
    return CommandResult(
        command,
        context.run,
        started,
        seconds,
        selected.named,
        context.dry_run,
        (*absent, *outcomes),
        signal=cluster.stopping.signal,
        where=selected.where,
        databases=selected.databases,
    )


def refused(table: Table, reason: Reason, observed: Optional[ObservedTable] = None) -> TableOutcome:
    """The outcome of a table that is not fit."""
    return TableOutcome(table.full_name, observed=observed, problem=reason.about(table.full_name))


def unknown_run(table: str, run: RunId) -> Refused:
    return Refused(
        f"{table}: no run {run} in its log",
        code=Code.NO_SUCH_RUN,
        next=f"hivekeeper history --table {quoting.shell(table)} lists the runs of this table",
    )


def find_run(table: str, history: History, run: RunId) -> LoggedRun:
    """The last entry of a run. Raises Refused if there is none, or if it is expired."""
    entry = history.find(run)
    if entry is None:
        raise unknown_run(table, run)
    require_details(table, entry)
    return entry


def require_details(table: str, entry: LoggedRun) -> None:
    """Raise Refused if an entry is expired."""
    if entry.expired:
        raise Refused(
            f"{table}: entry {entry.version} of its log, of run {entry.run}, is older than log_retention: no backup of it is left, and its "
            "details are not kept",
            code=Code.NO_SUCH_RUN,
            next=f"hivekeeper history --table {quoting.shell(table)} lists the runs of this table",
        )


def absent_outcomes(absent: Mapping[str, Reason]) -> List[TableOutcome]:
    """Of tables and databases that were named, but are not there."""
    return [TableOutcome(name, problem=reason.about(name)) for name, reason in absent.items()]


def for_each(context: Context, tables: Iterable[Table], work: Work) -> List[TableOutcome]:
    cluster, outcomes, lost, left = context.cluster, Outcomes(context.selection.names_one), "", MOST_ROW_GROUPS
    cluster.memory.clear()
    for table in tables:
        began = cluster.clock.monotonic_ms()
        cluster.spent.clear()
        context = replace(context, most_row_groups=min(context.most_row_groups, left))
        outcome = TableOutcome(table.full_name, problem=_cannot_begin(table, lost)) if lost else attempt(context, table, work)
        left = max(0, left - outcome.row_group_count)
        lost = lost or (cluster.lost() if outcome.problem else "")
        # A database may have thousands of tables, each with its own log.
        cluster.log_entries.clear()
        outcome = replace(outcome, seconds=(cluster.clock.monotonic_ms() - began) / 1000, spent=dict(cluster.spent))
        code = f" code={outcome.problem.code.code}" if outcome.problem else ""
        log.info("table=%s step=table done exit=%d%s seconds=%.1f", table.log_field, outcome.code, code, outcome.seconds)
        # All tables together may have more files than there is memory for.
        outcomes.add(outcome if context.keeps_files else outcome.without_listings())
    return outcomes.tables


def attempt(context: Context, table: Table, work: Work) -> TableOutcome:
    """The outcome of one table, whatever happens to it, with the interrupted runs that were settled."""
    cluster = replace(context.cluster, recovered=[])
    return with_recovered(cluster, _attempt(replace(context, cluster=cluster), table, work)).without_manifests()


def with_recovered(cluster: Cluster, outcome: TableOutcome) -> TableOutcome:
    return replace(outcome, recovered=(*cluster.recovered, *outcome.recovered))


def _attempt(context: Context, table: Table, work: Work) -> TableOutcome:
    cluster = context.cluster
    try:
        require_time(cluster, table)
        settings = context.settings_for(table.full_name)
        own = replace(
            confine(cluster, Jail.of(cluster.files, table)),
            trusted_owners=settings.trusted_owners,
            # What leaves live and what comes in.
            most_listed=min(ALL, 2 * settings.max_files),
        )
        return work(replace(context, cluster=own), table)
    except Exception as error:
        return TableOutcome(table.full_name, problem=_reason_of(cluster, table, error))


def keep_done(cluster: Cluster, table: Table, done: TableOutcome, record: Callable[[Exit], int]) -> TableOutcome:
    """Record what was done with a table, and tidy up after it: `record` does both, given the table's exit code, and returns the version of
    the log. If that fails, the outcome is still what was done, with the error beside it: the log may have the entry already, and from then
    on no later command tells of the units.
    """
    code = with_recovered(cluster, done).code
    try:
        with timed(cluster, Step.RECORD):
            return replace(done, log_version=record(code))
    except Exception as error:
        reason = _reason_of(cluster, table, error)
        recorded = "its units are as told here; the next run writes their log entry, if there is none yet, and tidies up"
        reason = reason if isinstance(error, HivekeeperError) else replace(reason, state=recorded)
        return replace(done, problem=reason, is_unrecorded=True)


def _reason_of(cluster: Cluster, table: Table, error: Exception) -> Reason:
    """Why an error ended the work on a table."""
    if isinstance(error, HivekeeperError):
        return error.reason
    if isinstance(error, NoPermission):
        return _not_allowed(table, error).reason
    if isinstance(error, (FilesError, MetastoreUnavailable, RowsError)):
        why = cluster.stopping.why() if isinstance(error, RowsError) else ""
        # A signal cancels the jobs that read files; at that point nothing has been changed.
        return (_not_begun(table, why) if why else _unusable(cluster, table, error)).reason
    return _unexpected(cluster, table, error)


def try_beside(cluster: Cluster, step: str, work: Callable[[], None]) -> Optional[str]:
    """Do something that no table depends on; returns why it failed, None if it did not."""
    try:
        work()
        return None
    except (HivekeeperError, FilesError, MetastoreUnavailable) as error:
        return str(error)
    except Exception as error:
        if cluster.lost():
            return cluster.lost()
        log.exception("step=%s failed", step)
        return f"unexpected error: {error!r}"


def find_bug(cluster: Cluster, name: str, work: Callable[[], None]) -> Optional[Reason]:
    """Do something for one table or database; returns the reason if an unforeseen error ends that. Raises the errors that have a name."""
    try:
        work()
        return None
    except (HivekeeperError, FilesError, MetastoreUnavailable, RowsError):
        raise
    except Exception as error:
        if cluster.lost():
            return Reason(Code.SPARK_ENDED, f"{name}: {cluster.lost()}", "fix the cause, then run again", _NOTHING_DONE)
        log.exception("table=%s step=table failed", quoting.log_field(name))
        return Reason(Code.BUG, f"{name}: unexpected error: {_name(error)}", "report the stack in the log", _NOTHING_DONE)


def require_time(cluster: Cluster, table: Table) -> None:
    """Raise Stopped if the command was asked to end before it began work on a table."""
    why = cluster.stopping.why()
    if why:
        raise _not_begun(table, why)


def _not_begun(table: Table, why: str) -> Stopped:
    return Stopped(f"{table.full_name}: not begun: {why}", next="run again")


def _not_allowed(table: Table, error: Exception) -> Refused:
    return Refused(
        f"{table.full_name}: {error}",
        code=Code.NO_PERMISSION,
        state="consistent; what was begun is finished or undone by the next run",
        next="run as a user who may read and write all of the table, or leave the table or partition out",
    )


def _unusable(cluster: Cluster, table: Table, error: Exception) -> Unusable:
    lost = cluster.lost()
    code = Code.SPARK_ENDED if lost else getattr(error, "code", None)
    about = "there is no space left for records or files: " if code is Code.NOT_ENOUGH_SPACE else ""
    return Unusable(
        f"{table.full_name}: {f'{lost} ({error})' if lost else f'{about}{error}'}",
        code=code,
        state="consistent; what was begun is finished or undone by the next run",
        next=f"fix the cause, then run again or: hivekeeper recover --table {quoting.shell(table.full_name)}",
    )


def _unexpected(cluster: Cluster, table: Table, error: Exception) -> Reason:
    """The reason for an unforeseen error, whose stack goes to the log. If Spark has ended, that is the reason instead."""
    if cluster.lost():
        return _unusable(cluster, table, error).reason
    log.exception("table=%s step=table failed", table.log_field)
    return Reason(
        Code.BUG,
        f"{table.full_name}: unexpected error: {_name(error)}",
        f"report the stack in the log; hivekeeper recover --table {quoting.shell(table.full_name)} settles what was begun",
        "consistent; what was begun is finished or undone by the next run",
    )


def _name(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _cannot_begin(table: Table, lost: str) -> Reason:
    return Reason(Code.SPARK_ENDED, f"{table.full_name}: not begun: {lost}", "fix the cause, then run again", "untouched by this run")
