"""recover: bring interrupted runs to their end or back to their start. Never starts new work."""

from __future__ import annotations

from hivekeeper.commands import per_table
from hivekeeper.commands.open_table import find_control, lift_in_swapped, settle_table
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection, Table
from hivekeeper.ports import Cluster
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.steps import table_lock
from hivekeeper.steps.observe import observe_table


def recover(cluster: Cluster, selected: Selection, backup_prefix: str, run: str) -> CommandResult:
    return per_table.run_on_tables(cluster, "recover", selected, backup_prefix, run, lambda table: recover_table(cluster, table, run))


def recover_table(cluster: Cluster, table: Table, run: str) -> TableOutcome:
    """Take the lock and settle what is unfinished. A table that we never touched is left without a trace."""
    table, control = find_control(cluster, table)
    if control is None:
        return TableOutcome(table.full_name)
    with table_lock.hold_table(cluster, table, control, run) as lock:
        recovered = settle_table(cluster, table, control, lock, run)
        lift_in_swapped(cluster, observe_table(cluster, table, Settings()), store.read_history(cluster, control))
    return TableOutcome(table.full_name, recovered=recovered)
