"""analyze: find the tables and partitions worth compacting. Reads metadata only; writes nothing."""

from __future__ import annotations

from typing import Callable

from hivekeeper.commands import each, selection
from hivekeeper.model import Selection, Table
from hivekeeper.plan.settings import Settings
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.seams import Cluster
from hivekeeper.steps.observe import observe_table

SettingsFor = Callable[[str], Settings]


def analyze(cluster: Cluster, selected: Selection, settings_for: SettingsFor, backup_prefix: str, run: str) -> CommandResult:
    """Judge every selected table."""

    def work(table: Table) -> TableOutcome:
        return analyze_table(cluster, table, selected, settings_for(table.full_name))

    return each.run_on_tables(cluster, "analyze", selected, backup_prefix, run, work)


def analyze_table(cluster: Cluster, table: Table, selected: Selection, settings: Settings) -> TableOutcome:
    observed = observe_table(cluster, table, settings, selection.wanted_in(table, selected.where))
    if observed.reason is None:
        return TableOutcome(table.full_name, observed=observed)
    return each.refused(table, observed.reason, observed)
