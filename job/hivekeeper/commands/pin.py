"""pin and unpin: keep a backup from every cleanup, or let it go again. Writes a log entry only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hivekeeper.commands import per_table
from hivekeeper.commands.open_table import find_control, settle_table
from hivekeeper.errors import Refused
from hivekeeper.model import Selection, Table
from hivekeeper.plan import retention
from hivekeeper.plan.retention import Backup
from hivekeeper.ports import Cluster
from hivekeeper.report.results import BackupOutcome, BackupState, CommandResult, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import RunRecord
from hivekeeper.runlog.history import History
from hivekeeper.runlog.run_files import PIN, UNPIN
from hivekeeper.steps import record, run_directory, table_lock


@dataclass(frozen=True)
class Request:
    """What one pin or unpin command was asked to do: `backup` is the run whose backup is meant."""

    selection: Selection
    backup_prefix: str
    run: str
    backup: str
    pinned: bool


def pin(cluster: Cluster, request: Request) -> CommandResult:
    name = PIN if request.pinned else UNPIN
    return per_table.run_on_tables(
        cluster, name, request.selection, request.backup_prefix, request.run, lambda table: pin_table(cluster, table, request)
    )


def pin_table(cluster: Cluster, table: Table, request: Request) -> TableOutcome:
    table, control = find_control(cluster, table)
    if control is None:
        raise _unknown(table, request.backup)
    with table_lock.hold_table(cluster, table, control, request.run) as lock:
        recovered = settle_table(cluster, table, control, lock, request.run)
        found = _find_backup(store.read_history(cluster, control), table, request.backup)
        if found.pinned is request.pinned:
            return TableOutcome(table.full_name, recovered=recovered, backups=(BackupOutcome(found, BackupState.THERE),))
        operation = PIN if request.pinned else UNPIN
        run = run_directory.open_run(cluster, table, control, lock, request.run, operation)
        now_ms = cluster.clock.now_ms()
        entry = RunRecord(request.run, run.directory, operation, now_ms, pin=(request.backup, request.pinned))
        version = run_directory.commit(run, entry, {})
        record.tidy_up(cluster, table, control)
    shown = (BackupOutcome(replace(found, pinned=request.pinned), BackupState.THERE),)
    return TableOutcome(table.full_name, request.run, recovered=recovered, log_version=version, backups=shown)


def _find_backup(history: History, table: Table, run: str) -> Backup:
    found = [backup for backup in retention.list_backups(history) if backup.run == run]
    if not found:
        raise _unknown(table, run)
    return found[0]


def _unknown(table: Table, run: str) -> Refused:
    return Refused(f"{table.full_name}: there is no backup of run {run}", next=f"hivekeeper history --table {table.full_name} lists them")
