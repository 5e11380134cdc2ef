"""recover: bring interrupted runs to their end or back to their start. Never starts new work."""

from __future__ import annotations

from typing import Dict, Sequence, Tuple

from hivekeeper import __version__
from hivekeeper.commands import each, selection
from hivekeeper.errors import Exit
from hivekeeper.model import Selection, Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import eligible
from hivekeeper.plan.analysis import ObservedTable
from hivekeeper.plan.records import Actor
from hivekeeper.plan.settings import Settings
from hivekeeper.report.results import CommandResult, Problem, TableOutcome
from hivekeeper.seams import Cluster, Lock
from hivekeeper.steps import journal, settle
from hivekeeper.steps.observe import observe_table, qualify_table

Recovered = Tuple[Tuple[str, Dict[str, int]], ...]


def recover(cluster: Cluster, selected: Selection, backup_prefix: str, run: str) -> CommandResult:
    started, began = cluster.clock.now_ms(), cluster.clock.monotonic_ms()
    tables, missing = selection.find_tables(cluster, selected, backup_prefix)
    outcomes = [each.missing_outcome(name) for name in missing]
    outcomes += each.for_each(tables, lambda table: recover_table(cluster, table, run), cluster.clock)
    seconds = (cluster.clock.monotonic_ms() - began) / 1000
    return CommandResult("recover", run, started, seconds, selected.named, tables=tuple(outcomes))


def recover_table(cluster: Cluster, table: Table, run: str) -> TableOutcome:
    """Take the lock and settle what is unfinished. A table that we never touched is left without a trace."""
    reason = eligible.refuse_table(table)
    if reason:
        problem = Problem(f"{table.full_name}: {reason.what}", "nothing was changed", reason.next, Exit.REFUSED)
        return TableOutcome(table.full_name, problem=problem)
    table = qualify_table(cluster.files, table)
    control = ControlPaths.of(table.location, table.partitioned)
    if not cluster.files.look([control.top])[control.top].exists:
        return TableOutcome(table.full_name)
    with journal.hold_table(cluster, table, control, run) as lock:
        recovered = settle_table(cluster, table, control, lock, run)
        lift_in_swapped(cluster, observe_table(cluster, table, Settings()))
    return TableOutcome(table.full_name, recovered=recovered)


def settle_table(cluster: Cluster, table: Table, control: ControlPaths, lock: Lock, run: str) -> Recovered:
    """What every writing command does first."""
    settled = settle.settle_runs(cluster, table, control, lock, actor_of(cluster), run)
    return tuple((name, _count([unit.outcome for unit in units])) for name, units in settled)


def lift_in_swapped(cluster: Cluster, observed: ObservedTable) -> bool:
    """Mend units into which a late committer renamed its directory; True where there were any."""
    swapped = journal.read_state(cluster.files, observed.control).swapped
    return bool(settle.lift_leftovers(cluster.files, set(swapped), [(unit.unit, unit.snapshot) for unit in observed.units]))


def actor_of(cluster: Cluster) -> Actor:
    return Actor(cluster.user, cluster.host, cluster.application_id, __version__)


def _count(outcomes: Sequence[str]) -> Dict[str, int]:
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
