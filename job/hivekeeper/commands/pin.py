"""pin and unpin: protect a backup from every cleanup, or release it. Writes a log entry only."""

from __future__ import annotations

from dataclasses import replace

from hivekeeper import quoting
from hivekeeper.commands import per_table
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import find_control, hold_settled
from hivekeeper.errors import Refused
from hivekeeper.model import Table
from hivekeeper.names import RunId
from hivekeeper.plan import retention
from hivekeeper.plan.retention import Backup
from hivekeeper.reasons import Code
from hivekeeper.report.results import BackupOutcome, BackupState, CommandResult, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import LogEntry
from hivekeeper.runlog.history import History
from hivekeeper.runlog.run_files import PIN, UNPIN
from hivekeeper.steps import finish, run_directory, table_log


def pin(context: Context, backup: RunId, pinned: bool) -> CommandResult:
    """Pin the backup that a run left in each selected table, or unpin it."""
    return per_table.run_on_tables(context, PIN if pinned else UNPIN, lambda confined, table: pin_table(confined, table, backup, pinned))


def pin_table(context: Context, table: Table, backup: RunId, pinned: bool) -> TableOutcome:
    cluster, settings = context.cluster, context.settings_for(table.full_name)
    table, control = find_control(cluster, table, settings)
    if control is None:
        raise _unknown(table, backup)
    with hold_settled(cluster, table, control, context.run, settings) as lock:
        found = _find_backup(store.read_history(cluster, control), table, backup)
        if found.pinned is pinned:
            return TableOutcome(table.full_name, backups=(BackupOutcome(found, BackupState.THERE),))
        operation = PIN if pinned else UNPIN
        run = run_directory.open_run(cluster, table, control, lock, context.run, operation, settings)
        now_ms = cluster.clock.now_ms()
        entry = LogEntry(context.run, run.directory, operation, now_ms, pin=(backup, pinned))
        version = table_log.commit(run, entry, {})
        finish.tidy_up(cluster, table, control)
    shown = (BackupOutcome(replace(found, pinned=pinned), BackupState.THERE),)
    return TableOutcome(table.full_name, context.run, log_version=version, backups=shown)


def _find_backup(history: History, table: Table, run: RunId) -> Backup:
    found = [backup for backup in retention.list_backups(history) if backup.run == run]
    if not found:
        raise _unknown(table, run)
    return found[0]


def _unknown(table: Table, run: RunId) -> Refused:
    return Refused(
        f"{table.full_name}: there is no backup of run {run}",
        code=Code.NO_SUCH_RUN,
        next=f"hivekeeper history --table {quoting.shell(table.full_name)} lists them",
    )
