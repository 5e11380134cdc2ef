"""analyze: find the tables and partitions worth compacting. Reads metadata only."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import Dict, Mapping, Optional

from hivekeeper.catalogue.catalogue import Catalogue
from hivekeeper.commands import per_table, selection
from hivekeeper.commands.context import Context
from hivekeeper.errors import HivekeeperError
from hivekeeper.model import Table
from hivekeeper.plan import retention, settled
from hivekeeper.plan.analysis import ObservedTable
from hivekeeper.plan.unchanged import KnownUnit
from hivekeeper.ports import Cluster
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.steps import ownership
from hivekeeper.steps.observe import NOTHING, observe_table

log = logging.getLogger(__name__)


@dataclass
class Known:
    """What a catalogue says of tables, until it fails once: no table depends on it, and each would wait for its answer anew."""

    catalogue: Optional[Catalogue]

    def units(self, cluster: Cluster, table: Table) -> Mapping[str, KnownUnit]:
        """What is known of the units of a table, by name."""
        if self.catalogue is None:
            return NOTHING
        catalogue = self.catalogue
        found: Dict[str, KnownUnit] = {}
        problem = per_table.try_beside(cluster, "catalogue", lambda: found.update(catalogue.known_units(table.full_name)))
        if problem is not None:
            log.warning("step=catalogue failed reason=%r", f"{problem}; the command goes on as if nothing was known")
            self.catalogue = None
        return found


def analyze(context: Context, catalogue: Optional[Catalogue] = None) -> CommandResult:
    """Judge every selected table; with a catalogue, units that it knows and that have not changed are not looked at again."""
    return per_table.run_on_tables(context, "analyze", partial(analyze_table, Known(catalogue)))


def analyze_table(known: Known, context: Context, table: Table) -> TableOutcome:
    settings = context.settings_for(table.full_name)
    wanted = selection.wanted_in(table, context.selection)
    observed = observe_table(context.cluster, table, settings, wanted, known.units(context.cluster, table))
    if observed.reason is None:
        return TableOutcome(table.full_name, observed=set_apart(context.cluster, observed))
    return per_table.refused(table, observed.reason, observed)


def set_apart(cluster: Cluster, observed: ObservedTable) -> ObservedTable:
    """Mark the units that compact-swap would skip because of the log: they keep failing, or are still what a run made of them; and count
    what earlier runs left. If the log cannot be read, all units are shown by their metadata.
    """
    if not observed.has_control:
        return observed
    ownership.require_own_records(cluster, observed.table, observed.control, observed.settings.trusted_owners)
    try:
        history = store.read_history(cluster, observed.control)
    except HivekeeperError as error:
        log.warning("table=%s step=read-log failed reason=%r", observed.table.log_field, str(error))
        return observed
    left = sum(backup.count_objects(observed.settings.block_bytes) for backup in retention.list_backups(history))
    last = history.runs[-1] if history.runs else None
    last_run = (last.run, last.timestamp_ms, last.operation) if last else None
    observed = replace(observed, backup_objects=left, last_run=last_run)
    return settled.judge_by_log(observed, history, cluster.clock.now_ms())
