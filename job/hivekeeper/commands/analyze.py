"""analyze: find the tables and partitions worth compacting. Reads metadata only; writes nothing."""

from __future__ import annotations

from typing import Callable

from hivekeeper.commands import each, selection
from hivekeeper.errors import Exit
from hivekeeper.model import Selection, Table
from hivekeeper.plan.settings import Settings
from hivekeeper.report.results import CommandResult, Problem, TableOutcome
from hivekeeper.seams import Cluster
from hivekeeper.steps.observe import observe_table

SettingsFor = Callable[[str], Settings]


def analyze(cluster: Cluster, selected: Selection, settings_for: SettingsFor, backup_prefix: str, run: str) -> CommandResult:
    """Judge every selected table."""
    started, began = cluster.clock.now_ms(), cluster.clock.monotonic_ms()
    tables, missing = selection.find_tables(cluster, selected, backup_prefix)
    outcomes = [each.missing_outcome(name) for name in missing]
    outcomes += each.for_each(tables, lambda table: analyze_table(cluster, table, selected, settings_for(table.full_name)), cluster.clock)
    seconds = (cluster.clock.monotonic_ms() - began) / 1000
    return CommandResult("analyze", run, started, seconds, selected.named, tables=tuple(outcomes))


def analyze_table(cluster: Cluster, table: Table, selected: Selection, settings: Settings) -> TableOutcome:
    observed = observe_table(cluster, table, settings, selection.wanted_in(table, selected.where))
    if observed.reason is None:
        return TableOutcome(table.full_name, observed=observed)
    reason = observed.reason
    problem = Problem(f"{table.full_name}: {reason.what}", "nothing was changed", reason.next, Exit.REFUSED)
    return TableOutcome(table.full_name, observed=observed, problem=problem)
