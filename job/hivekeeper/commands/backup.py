"""backup: record the current state of a table and create a backup table over it. Writes metadata only."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Tuple

from hivekeeper.commands import per_table, selection
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import hold_settled, settle_unfit
from hivekeeper.config.settings import Settings
from hivekeeper.model import Table
from hivekeeper.names import RunId, UnitNumber
from hivekeeper.plan import listings
from hivekeeper.plan.analysis import ObservedTable, UnitAnalysis, portions
from hivekeeper.ports import Cluster, Lock
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import LogEntry
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import BACKUP, PlannedUnit, RunPlan, is_recordable
from hivekeeper.steps import backup_tables, identity, left_behind, run_directory, table_log
from hivekeeper.steps.attributes import is_read_by_group
from hivekeeper.steps.left_away import refuse_at_former_places
from hivekeeper.steps.observe import observe_table
from hivekeeper.steps.timing import Step, timed


def back_up(context: Context) -> CommandResult:
    """Record every selected table. Nothing is copied: a record cannot bring back files that another writer deletes later."""
    return per_table.run_on_tables(context, BACKUP, back_up_table)


def back_up_table(context: Context, table: Table) -> TableOutcome:
    cluster, settings = context.cluster, context.settings_for(table.full_name)
    wanted = selection.wanted_in(table, context.selection)
    observed = observe_table(cluster, table, settings, wanted)
    refuse_at_former_places(cluster, observed.table, observed.former_places, settings.trusted_owners)
    if observed.reason:
        settle_unfit(cluster, table, context.run, settings)
        return per_table.refused(table, observed.reason, observed)
    if not observed.has_control:
        left_behind.refuse_left_behind(cluster, observed.table, settings.trusted_owners)
        if _is_away(cluster, observed):
            return TableOutcome(table.full_name)
    with hold_settled(cluster, observed.table, observed.control, context.run, settings) as lock:
        observed = observe_table(cluster, observed.table, settings, wanted)
        if observed.reason:
            return per_table.refused(table, observed.reason, observed)
        # Else the entry would be one in another table's log.
        identity.know_history(cluster, observed.table, store.read_history(cluster, observed.control))
        if wanted and not observed.units:
            return TableOutcome(table.full_name)
        return _record(cluster, observed, settings, context.run, lock)


def _is_away(cluster: Cluster, observed: ObservedTable) -> bool:
    """Whether there is nothing to record: neither the table's directory, which somebody may be about to make, nor that of a unit."""
    return not any(one.snapshot.exists for one in observed.units) and cluster.files.stat(observed.table.location) is None


def _record(cluster: Cluster, observed: ObservedTable, settings: Settings, name: RunId, lock: Lock) -> TableOutcome:
    table = observed.table
    there, refused = _choose(observed)
    if not there and observed.units:
        return TableOutcome(table.full_name, units=refused)
    units = tuple(_recorded_unit(UnitNumber(number), judged) for number, judged in enumerate(there, start=1))
    plan = RunPlan(name, BACKUP, table, units, backup_tables.name_table(cluster, table, settings, name), name)

    def group_reads(group: str) -> bool:
        parts = ({one.live: one.snapshot for one in some} for some in portions(there))
        return all(is_read_by_group(cluster.files, part, group) for part in parts)

    lives = [one.unit for one in there]
    run = run_directory.open_run(cluster, table, observed.control, lock, name, BACKUP, settings, group_reads, units=lives)
    with run_directory.told_if_taken(run), timed(cluster, Step.RECORD):
        run_directory.write_plan(run, plan)
        plan = replace(plan, backup_table=backup_tables.make_table(run, plan))
    files, total = sum(len(unit.manifest) for unit in units), sum(file.length for unit in units for file in unit.manifest)
    entry = LogEntry(name, run.directory, BACKUP, cluster.clock.now_ms(), backup_table=plan.backup_table)
    version = table_log.commit(run, entry, {"units": len(units), "files": files, "bytes": total})
    outcomes = tuple(UnitOutcome(one.unit.name, Outcome.RECORDED, one.sizes.files, one.sizes.total_bytes) for one in there)
    return TableOutcome(table.full_name, name, outcomes + refused, log_version=version, backup_table=plan.backup_table)


def _choose(observed: ObservedTable) -> Tuple[List[UnitAnalysis], Tuple[UnitOutcome, ...]]:
    """The units that can be recorded, and why others cannot: a record must not say that there is nothing where nothing was seen."""
    chosen, refused = [], []
    for one in (one for one in observed.units if one.snapshot.exists):
        is_inside = is_recordable(one.unit.live, observed.table.location)
        why = listings.refuse_unseen(one.reason, one.snapshot) if is_inside else one.reason
        if why is None:
            chosen.append(one)
        else:
            refused.append(UnitOutcome(one.unit.name, Outcome.REFUSED, one.sizes.files, one.sizes.total_bytes, why=why))
    return chosen, tuple(refused)


def _recorded_unit(number: UnitNumber, judged: UnitAnalysis) -> PlannedUnit:
    manifest = tuple(ManifestFile.of(entry) for entry in judged.snapshot.entries if not entry.is_dir)
    return PlannedUnit(number, judged.unit, manifest)
