"""recover: finish or undo interrupted runs. Never starts new work."""

from __future__ import annotations

from hivekeeper.commands import per_table
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import find_control, hold_settled, refuse_left_elsewhere, refuse_where_it_was
from hivekeeper.model import Table
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.steps.observe import find_lives


def recover(context: Context) -> CommandResult:
    """Settle the unfinished runs of every selected table."""
    return per_table.run_on_tables(context, "recover", recover_table)


def recover_table(context: Context, table: Table) -> TableOutcome:
    """Take the lock and settle unfinished runs. Leaves no trace in a table that was never worked on."""
    cluster, settings = context.cluster, context.settings_for(table.full_name)
    table, control = find_control(cluster, table, settings)
    if control is None:
        refuse_left_elsewhere(context, table)
        return TableOutcome(table.full_name)
    with hold_settled(cluster, table, control, context.run, settings, every=True):
        pass
    if table.partitioned:
        refuse_where_it_was(cluster, table, find_lives(cluster, table).values(), settings)
    return TableOutcome(table.full_name)
