"""recover: bring interrupted runs to their end or back to their start. Never starts new work."""

from __future__ import annotations

from typing import Dict, Optional, Sequence, Tuple

from hivekeeper import __version__
from hivekeeper.commands import per_table
from hivekeeper.errors import Refused
from hivekeeper.model import Selection, Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import eligibility
from hivekeeper.plan.analysis import ObservedTable
from hivekeeper.plan.settings import Settings
from hivekeeper.ports import Cluster, Lock
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.runlog.entries import Actor
from hivekeeper.steps import journal
from hivekeeper.steps.observe import observe_table, qualify_table
from hivekeeper.steps.recover import lift_leftovers, settle_runs

Recovered = Tuple[Tuple[str, Dict[str, int]], ...]


def recover(cluster: Cluster, selected: Selection, backup_prefix: str, run: str) -> CommandResult:
    return per_table.run_on_tables(cluster, "recover", selected, backup_prefix, run, lambda table: recover_table(cluster, table, run))


def recover_table(cluster: Cluster, table: Table, run: str) -> TableOutcome:
    """Take the lock and settle what is unfinished. A table that we never touched is left without a trace."""
    table, control = find_control(cluster, table)
    if control is None:
        return TableOutcome(table.full_name)
    with journal.hold_table(cluster, table, control, run) as lock:
        recovered = settle_table(cluster, table, control, lock, run)
        lift_in_swapped(cluster, observe_table(cluster, table, Settings()))
    return TableOutcome(table.full_name, recovered=recovered)


def find_control(cluster: Cluster, table: Table) -> Tuple[Table, Optional[ControlPaths]]:
    """The table with its location qualified, and its control directory, None where we never worked on it. Raises Refused."""
    reason = eligibility.refuse_kind(table)
    if reason:
        raise Refused(f"{table.full_name}: {reason.what}", next=reason.next)
    table = qualify_table(cluster.files, table)
    control = ControlPaths.of(table.location, table.partitioned)
    return table, control if cluster.files.look([control.top])[control.top].exists else None


def settle_table(cluster: Cluster, table: Table, control: ControlPaths, lock: Lock, run: str) -> Recovered:
    """What every writing command does first."""
    settled = settle_runs(cluster, table, control, lock, actor_of(cluster), run)
    return tuple((name, count_outcomes([unit.outcome for unit in units])) for name, units in settled)


def lift_in_swapped(cluster: Cluster, observed: ObservedTable) -> bool:
    """Mend units into which a late committer renamed its directory; True where there were any."""
    swapped = journal.read_history(cluster, observed.control).swapped
    return bool(lift_leftovers(cluster.files, swapped, [(unit.unit, unit.snapshot) for unit in observed.units]))


def actor_of(cluster: Cluster) -> Actor:
    return Actor(cluster.user, cluster.host, cluster.application_id, __version__)


def count_outcomes(outcomes: Sequence[str]) -> Dict[str, int]:
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
