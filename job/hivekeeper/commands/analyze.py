"""analyze: find the tables and partitions worth compacting. Reads metadata only; writes nothing."""

from __future__ import annotations

import logging
from typing import Callable

from hivekeeper.commands import per_table, selection
from hivekeeper.config.settings import Settings
from hivekeeper.errors import HivekeeperError
from hivekeeper.model import Selection, Table
from hivekeeper.plan import quarantine
from hivekeeper.plan.analysis import ObservedTable
from hivekeeper.ports import Cluster
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.steps.observe import observe_table

log = logging.getLogger(__name__)

SettingsFor = Callable[[str], Settings]


def analyze(cluster: Cluster, selected: Selection, settings_for: SettingsFor, backup_prefix: str, run: str) -> CommandResult:
    """Judge every selected table."""

    def work(table: Table) -> TableOutcome:
        return analyze_table(cluster, table, selected, settings_for(table.full_name))

    return per_table.run_on_tables(cluster, "analyze", selected, backup_prefix, run, work)


def analyze_table(cluster: Cluster, table: Table, selected: Selection, settings: Settings) -> TableOutcome:
    observed = observe_table(cluster, table, settings, selection.wanted_in(table, selected.where))
    if observed.reason is None:
        return TableOutcome(table.full_name, observed=set_apart(cluster, observed))
    return per_table.refused(table, observed.reason, observed)


def set_apart(cluster: Cluster, observed: ObservedTable) -> ObservedTable:
    """With the units that compact-swap would leave alone because they keep failing. A log that cannot be read hides no small files."""
    if not observed.has_control or not observed.settings.quarantine_after:
        return observed
    try:
        history = store.read_history(cluster, observed.control)
    except HivekeeperError as error:
        log.warning("table=%s step=read-log failed reason=%r", observed.table.full_name, str(error))
        return observed
    return quarantine.set_apart(observed, history, cluster.clock.now_ms())
