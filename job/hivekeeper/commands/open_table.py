"""What commands do first with a table: find its records, and finish or undo interrupted runs."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager, suppress
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from hivekeeper import quoting
from hivekeeper.commands.context import Context
from hivekeeper.config.settings import Settings
from hivekeeper.errors import NeedsInvestigation, Refused
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.plan import eligibility, own_place
from hivekeeper.ports import Cluster, FilesError, Lock, MetastoreUnavailable, NoPermission, require_readable
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps import left_away, left_behind, orphans, ownership, places, run_directory, table_lock
from hivekeeper.steps.observe import find_lives, find_overlap, qualify_table
from hivekeeper.steps.recover import Settled, settle_runs
from hivekeeper.steps.table_lock import require_no_file
from hivekeeper.steps.timing import Step, timed

log = logging.getLogger(__name__)


def find_control(cluster: Cluster, table: Table, settings: Settings) -> Tuple[Table, Optional[ControlPaths]]:
    """The table with its location qualified, and its control directory, None where we never worked on it.

    Raises Refused, and NeedsInvestigation if the control directory stayed behind under the table's former name.
    """
    reason = eligibility.refuse_kind(table)
    if reason:
        raise Refused(f"{table.full_name}: {reason.what}", code=reason.code, next=reason.next)
    table = qualify_table(cluster.files, table)
    control = ControlPaths.of(table.location, table.partitioned)
    # Whether it exists, not what it holds: anyone who may write to the table may have filled it.
    if cluster.files.look([control.top], 0)[control.top].exists:
        return table, control
    require_no_file(cluster.files, table, control)
    left_behind.refuse_left_behind(cluster, table, settings.trusted_owners)
    return table, None


def read_again(cluster: Cluster, known: Table) -> Table:
    """The definition as it is now, perhaps of another table that was created at the same place since. Raises Refused if none is there any
    more: what was kept of it may be the only copy of its rows then.
    """
    found = require_readable(cluster.metastore.tables(known.database, [known.name]).get(known.name))
    if found is None:
        code, what = Code.NO_SUCH_TABLE, "it was dropped or renamed meanwhile"
    elif known.location not in (found.location, cluster.files.qualify(found.location)):
        code, what = Code.MOVED, "its location in the metastore was changed meanwhile"
    else:
        return found
    state, next_step = "nothing was discarded", "see whether somebody needs what was kept of it; then run again"
    raise Refused(f"{known.full_name}: {what}", code=code, state=state, next=next_step)


def find_records(cluster: Cluster, table: Table, settings: Settings) -> Tuple[Table, Optional[ControlPaths]]:
    """As find_control, for a command that reads records without the lock. Raises NeedsInvestigation if others may have written them."""
    table, control = find_control(cluster, table, settings)
    if control is not None:
        ownership.require_own_records(cluster, table, control, settings.trusted_owners)
    return table, control


def require_own_place(cluster: Cluster, table: Table, control: ControlPaths) -> None:
    """Raise Refused if another table has files in this table's directory, or Spark reads it among its own backups, so that none of them may
    be moved or deleted. Reads only.
    """
    reason = find_overlap(cluster, table, control) or eligibility.refuse_shown(table)
    if reason:
        raise Refused(f"{table.full_name}: {reason.what}", code=reason.code, state="nothing was touched", next=reason.next)


@contextmanager
def hold_settled(
    cluster: Cluster, table: Table, control: ControlPaths, run: RunId, settings: Settings, every: bool = False
) -> Iterator[Lock]:
    """Keep the table's lock for the body, after settling interrupted runs. `every`: look through the directories of all runs.

    Raises NeedsInvestigation if the table, or a right, is refused while units of an unfinished run, an earlier one or the body's own, are
    away or not yet recorded: a run over a database passes over refused tables, but not then.
    """
    with ExitStack() as held:
        try:
            lock = held.enter_context(table_lock.hold_table(cluster, table, control, run, settings))
            settle_table(cluster, table, control, lock, run, every)
            yield lock
        except (Refused, NoPermission) as error:
            if _is_left_away(cluster, control):
                raise _unsettled(table, error) from error
            raise


def settle_unfit(cluster: Cluster, table: Table, run: RunId, settings: Settings) -> None:
    """Settle interrupted runs of a table that the command will refuse: its owner may want it left alone, but not without a partition.

    Takes the lock only if there are some. A table that may not be looked at stays refused as it is: it may be another engine's, on a server
    that must not be called. Raises FilesUnavailable if its server does not answer: there may be some.
    """
    if eligibility.refuse_kind(table):
        return
    try:
        table, control = find_control(cluster, table, settings)
        if control is None or not cluster.files.look([control.runs], 0)[control.runs].exists:
            return
    except (Refused, NoPermission) as error:
        log.info("table=%s step=find-records failed reason=%r", table.log_field, str(error))
        return
    try:
        ownership.require_own_records(cluster, table, control, settings.trusted_owners)
    except NeedsInvestigation as error:
        # Somebody else runs the commands on this table.
        log.info("table=%s step=find-records failed reason=%r", table.log_field, str(error))
        return
    try:
        history = store.read_history(cluster, control)
    except NoPermission as error:
        if left_away.may_have_taken_away(cluster, control):
            raise _unsettled(table, error) from error
        raise
    left_behind.refuse_left_behind(cluster, table, settings.trusted_owners, history)
    if orphans.find_unfinished(cluster, control, history):
        with hold_settled(cluster, table, control, run, settings):
            pass


def _is_left_away(cluster: Cluster, control: ControlPaths) -> bool:
    """Whether an unfinished run has taken units out of live, as far as this user may see."""
    try:
        return left_away.has_taken_away(cluster, control, run_directory.find_unfinished(cluster, control))
    except (Refused, NoPermission):
        return left_away.may_have_taken_away(cluster, control)


def refuse_left_elsewhere(context: Context, table: Table) -> None:
    """Raise NeedsInvestigation like left_away.refuse_at_former_places, for a command that has found no records of a table, nor asked for
    its partitions. Only of a table that was named: those of all tables would be asked for, most of which no run has ever changed.
    """
    if context.selection.named and table.partitioned:
        # Of a table with more partitions than can be read nothing is known, as of one that was not named.
        with suppress(Refused):
            lives = find_lives(context.cluster, table).values()
            refuse_where_it_was(context.cluster, table, lives, context.settings_for(table.full_name))


def refuse_where_it_was(cluster: Cluster, table: Table, lives: Iterable[str], settings: Settings) -> None:
    """The same, where the directories of the partitions are known."""
    places = own_place.find_former_places(table, lives) if table.partitioned else ()
    left_away.refuse_at_former_places(cluster, table, places, settings.trusted_owners)


def _unsettled(table: Table, error: Exception) -> NeedsInvestigation:
    known = error.reason.next if isinstance(error, Refused) else "run as a user who may read and write all of the table"
    return NeedsInvestigation(
        f"{table.full_name}: a run was interrupted, and cannot be settled: {error}",
        code=Code.UNSETTLED,
        state="no row is lost, but readers may miss a partition until the interrupted run is settled",
        next=f"{known}; then run: hivekeeper recover --table {quoting.shell(table.full_name)}",
    )


def settle_table(cluster: Cluster, table: Table, control: ControlPaths, lock: Lock, run: RunId, every: bool = False) -> None:
    """Finish or undo interrupted runs; every writing command does this first (`hold_settled`). `every` as there.

    What was found is told with the outcome, whatever happens to the table after that (`per_table.attempt`): the log has those runs then, so
    that no later command tells of them.
    """
    settled: List[Settled] = []
    with timed(cluster, Step.SETTLE):
        orphans.remove_mark(cluster, control)
        try:
            for one in settle_runs(cluster, table, control, lock, run, every=every):
                settled.append(one)
                note_recovered(cluster, one)
        except (FilesError, MetastoreUnavailable, NeedsInvestigation) as error:
            _refuse_misplaced(table, settled, f"; and then: {error}")
            raise
    _refuse_misplaced(table, settled)


def note_recovered(cluster: Cluster, settled: Settled) -> None:
    run, units = settled
    cluster.recovered.append((run, count_outcomes([unit.outcome for unit in units])))


def _refuse_misplaced(table: Table, settled: Sequence[Settled], then: str = "") -> None:
    """Raise NeedsInvestigation if an interrupted run left rows that readers may not see. `then`: what ended the recovery."""
    found = [(run, unit) for run, units in settled for unit in units if unit.outcome is Outcome.MISPLACED]
    if found:
        run, unit = found[0]
        more = f", and {len(found) - 1} more, which history lists" if len(found) > 1 else ""
        raise NeedsInvestigation(
            f"{unit.planned.label}: the interrupted run {run} was ended: {unit.reason}{more}{then}",
            code=Code.CHANGED_IN_OUTAGE,
            state="no row is lost, and the log says where they are; but readers may not see them. Nothing new was begun",
            next=f"{unit.why.next if unit.why else places.ADVICE}; then run again: {table.full_name}",
        )


def count_outcomes(outcomes: Sequence[Outcome]) -> Dict[Outcome, int]:
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes), key=lambda outcome: outcome.code)}
