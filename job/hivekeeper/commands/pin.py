"""pin and unpin: protect a backup from every cleanup, or release it. Writes a log entry only."""

from __future__ import annotations

from dataclasses import replace
from typing import FrozenSet, Optional

from hivekeeper import names, quoting
from hivekeeper.commands import per_table
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import find_control, hold_settled
from hivekeeper.errors import Refused
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.plan import retention
from hivekeeper.plan.retention import Backup
from hivekeeper.ports import Cluster, Files, NotPossible
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import BackupOutcome, BackupState, CommandResult, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import LogEntry
from hivekeeper.runlog.history import Effect, History
from hivekeeper.runlog.run_files import PIN, UNPIN, absolute
from hivekeeper.steps import finish, identity, run_directory, table_log
from hivekeeper.steps.observe import ask_where_allowed


def pin(context: Context, backup: RunId, pinned: bool) -> CommandResult:
    """Pin the backup that a run left in each selected table, or unpin it."""
    return per_table.run_on_tables(context, PIN if pinned else UNPIN, lambda confined, table: pin_table(confined, table, backup, pinned))


def pin_table(context: Context, table: Table, backup: RunId, pinned: bool) -> TableOutcome:
    cluster, settings = context.cluster, context.settings_for(table.full_name)
    table, control = find_control(cluster, table, settings)
    if control is None:
        raise _unknown(table, backup)
    with hold_settled(cluster, table, control, context.run, settings) as lock:
        # Else the entry would be one in another table's log.
        history = identity.know_history(cluster, table, store.read_history(cluster, control))
        found = _find_backup(history, table, backup)
        why = _why_incomplete(cluster, table, control, found) if pinned else None
        if found.pinned is pinned:
            return TableOutcome(table.full_name, backups=(BackupOutcome(found, BackupState.THERE, why),))
        operation = PIN if pinned else UNPIN
        run = run_directory.open_run(cluster, table, control, lock, context.run, operation, settings)
        now_ms = cluster.clock.now_ms()
        entry = LogEntry(context.run, run.directory, operation, now_ms, pin=(backup, pinned))
        version = table_log.commit(run, entry, {})
        finish.tidy_up(cluster, table, control)
    shown = (BackupOutcome(replace(found, pinned=pinned), BackupState.THERE, why),)
    return TableOutcome(table.full_name, context.run, log_version=version, backups=shown)


def _find_backup(history: History, table: Table, run: RunId) -> Backup:
    found = [backup for backup in retention.list_backups(history) if backup.run == run]
    if not found:
        raise _unknown(table, run)
    return found[0]


def _why_incomplete(cluster: Cluster, table: Table, control: ControlPaths, backup: Backup) -> Optional[Reason]:
    """What of a backup is not there any more, whatever the log says; None if all is. Raises Refused if a pin would protect nothing."""
    places = {effect.place: names.join(control.top, effect.place) for effect in backup.effects if not effect.inside}
    # What may not be seen counts as there: a pin too many does no harm.
    seen, _ = ask_where_allowed(lambda some: cluster.files.look(some, 0), list(places.values()))
    lost = _find_lost(cluster.files, table, backup)

    def is_there(effect: Effect) -> bool:
        if effect.inside:
            return effect.inside.file_id not in lost
        return places[effect.place] not in seen or seen[places[effect.place]].exists

    gone = [effect for effect in backup.effects if effect.backup_files and not is_there(effect)]
    if not gone:
        return None
    if len(gone) == len(backup.effects):
        raise Refused(
            f"{table.full_name}: nothing is left of the backup of run {backup.run}: somebody removed it, or the files that had it inside",
            code=Code.NOTHING_OF_THIS_RUN,
            next="look for it in the trash and in snapshots",
        )
    units, all_units = ({effect.partition for effect in some} for some in (gone, backup.effects))
    return Reason(Code.BACKUP_GONE, f"old files of {len(units)} of its {len(all_units)} units are gone: somebody removed them")


def _find_lost(files: Files, table: Table, backup: Backup) -> FrozenSet[int]:
    """The ids of the files with old ones inside that do not exist any more, or are in a trash: a cleanup takes these for discarded."""
    former = {one.inside.file_id: names.join(absolute(one.live, table.location), one.inside.file) for one in backup.effects if one.inside}
    try:
        paths = files.find_paths(table.location, former)
        return frozenset(
            one for one in former if ("/.Trash/" in paths[one] if one in paths else not files.is_anywhere(table.location, one))
        )
    except NotPossible:
        # As by way of a router.
        return frozenset()


def _unknown(table: Table, run: RunId) -> Refused:
    return Refused(
        f"{table.full_name}: there is no backup of run {run}",
        code=Code.NO_SUCH_RUN,
        next=f"hivekeeper history --table {quoting.shell(table.full_name)} lists them",
    )
