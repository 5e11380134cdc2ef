"""forget: remove every trace of Hivekeeper from a table whose backups are gone.

Deletes only records, and backup tables that show nothing.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Collection, List, Optional, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.commands import per_table
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import find_control, require_own_place
from hivekeeper.errors import Refused, Unusable
from hivekeeper.jail import Jail, confine
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import orphans as rules
from hivekeeper.plan import retention
from hivekeeper.plan.retention import Backup
from hivekeeper.ports import Cluster, Lock
from hivekeeper.reasons import Code
from hivekeeper.report.results import CommandResult, Forgotten, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History
from hivekeeper.steps import backup_tables, finish, identity, ownership, removal, run_directory, table_lock
from hivekeeper.steps.census import shared_census
from hivekeeper.steps.removal import Aside

log = logging.getLogger(__name__)

FORGET = "forget"


def forget(context: Context) -> CommandResult:
    """Remove what Hivekeeper keeps of each selected table."""
    return per_table.run_on_tables(context, FORGET, partial(_forget_table, removal.Removed(context.cluster)))


def _forget_table(removed: removal.Removed, context: Context, table: Table) -> TableOutcome:
    settings = context.settings_for(table.full_name)
    table, control = find_control(context.cluster, table, settings)
    own = control or ControlPaths.of(table.location, table.partitioned)
    leftovers = [one for one in removed.of(own) if _is_ours(context.cluster, table, one)]
    places = (own.top, own.removed(context.run), *(one.top for one in leftovers))
    cluster = confine(context.cluster, Jail.of_records(table.full_name, *places))
    found: Optional[Forgotten] = None
    if control is None or context.dry_run:
        found = _look(cluster, table, control) if control else None
    else:
        with table_lock.hold_table(cluster, table, control, context.run, settings) as lock:
            found, aside = _set_aside(replace(context, cluster=cluster), table, control, lock)
        # Only now: the lock, which is in it, is released.
        removal.delete_records(cluster.files, aside)
    if not context.dry_run:
        _finish(cluster, table, leftovers)
    shown = found or (Forgotten(leftovers[0].top) if leftovers else None)
    return TableOutcome(table.full_name, None if context.dry_run or shown is None else context.run, forgotten=shown)


def _is_ours(cluster: Cluster, table: Table, removed: ControlPaths) -> bool:
    why = removal.why_not_ours(cluster, removed)
    if why:
        log.warning("table=%s step=find-left reason=%r", table.log_field, f"{removed.top} is left alone: {why}")
    return not why


def _look(cluster: Cluster, table: Table, control: ControlPaths) -> Forgotten:
    """What would be removed. Raises Refused if anything is still needed."""
    ownership.require_own_records(cluster, table, control, cluster.trusted_owners)
    found, _ = _describe(cluster, table, control)
    records = store.find_runs(cluster.files, control)
    known = {control.run(name).top for name in records}
    _refuse_strangers(table, [path for path in removal.find_strangers(cluster.files, control) if path not in known])
    return found


def _set_aside(context: Context, table: Table, control: ControlPaths, lock: Lock) -> Tuple[Forgotten, Aside]:
    """Drop the backup tables, then set the control directory aside. Killed between: the next one does the rest."""
    cluster = context.cluster
    found, history = _describe(cluster, table, control)
    finish.tidy_up(cluster, table, control, every=True)
    _require_dropped(cluster, table, control)
    _refuse_strangers(table, removal.find_strangers(cluster.files, control))
    return found, removal.set_aside(cluster, table, control, lock, context.run, rules.ids_of(history))


def _finish(cluster: Cluster, table: Table, leftovers: List[ControlPaths]) -> None:
    full: List[str] = []
    for removed in leftovers:
        if names.NEW.fullmatch(names.base(removed.top)):
            full += [] if removal.remove_unborn(cluster.files, removed.top) else [removed.top]
            continue
        ownership.require_own_records(cluster, table, removed, cluster.trusted_owners)
        aside = removal.read_aside(cluster, removed)
        if aside.history is not None:
            _refuse_log_of_other(cluster, table, identity.know_history(cluster, table, aside.history))
        if not removal.finish_removal(cluster, table, aside):
            back = ControlPaths.of_removed(removed.top)
            raise Refused(
                f"{table.full_name}: an interrupted forget had set records aside that are still needed; they are at "
                f"{back.top if back else removed.top} again",
                code=Code.RECORDS_NEEDED,
                state="nothing of these was removed",
                next=f"hivekeeper recover --table {quoting.shell(table.full_name)}",
            )
    if full:
        raise Refused(
            f"{table.full_name}: {full[0]} holds more than a control directory that was being made",
            code=Code.RECORDS_NEEDED,
            state="nothing of it was removed; what else Hivekeeper had of the table is gone",
            next="find out who made it, move it away, then run again",
        )


def _describe(cluster: Cluster, table: Table, control: ControlPaths) -> Tuple[Forgotten, History]:
    """What Hivekeeper has of a table, and its log as it is written. Raises Refused if the table, or a reader of its log, still needs it."""
    require_own_place(cluster, table, control)
    logged = store.read_history(cluster, control)
    history = identity.know_history(cluster, table, logged)
    unfinished = run_directory.find_unfinished(cluster, control)
    if unfinished:
        what = f"run {store.run_of(unfinished[0])} is at work, or was interrupted"
        raise _needed(table, what, f"hivekeeper recover --table {quoting.shell(table.full_name)}")
    backups = retention.list_backups(history)
    if backups:
        raise _needed(table, *_explain_backups(table, backups, retention.find_former(history, table_id(table))))
    _refuse_log_of_other(cluster, table, history)
    entries = store.list_log(cluster.files, control).entries
    return Forgotten(control.top, len(entries), backup_tables.find_left(cluster, table, history)), logged


def _refuse_log_of_other(cluster: Cluster, table: Table, history: History) -> None:
    """Raise Refused if the log is also about another table, which may only have been renamed or moved away: it needs its records."""
    others = rules.ids_of(history) - {table_id(table), ""}
    why = shared_census(cluster).why_perhaps_there(others) if others else ""
    if why:
        what = f"its log is also about {sorted(rules.names_of(others))[0]}, and {why}"
        raise _needed(table, what, "find out what became of that table, and whether it needs these records")


def _explain_backups(table: Table, backups: Sequence[Backup], former: Collection[str]) -> Tuple[str, str]:
    """What is left, and what to do."""
    what = f"{len(backups)} backups of it are left" if len(backups) > 1 else f"the backup of run {backups[0].run} is left"
    option = " --former-tables" if former else ""
    then = f"hivekeeper cleanup{option} --table {quoting.shell(table.full_name)}, which says when each may go"
    pinned = [backup.run for backup in backups if backup.pinned]
    if not pinned:
        return what, then
    release = f"hivekeeper unpin --table {quoting.shell(table.full_name)} --run {pinned[0]}"
    return f"{what}, {len(pinned)} of them pinned", f"{release}, then {then}"


def _require_dropped(cluster: Cluster, table: Table, control: ControlPaths) -> None:
    """Raise Unusable if a backup table is still there: nothing else knows that it is ours."""
    left = backup_tables.find_left(cluster, table, store.read_history(cluster, control))
    if left:
        raise Unusable(
            f"{table.full_name}: its backup table {left[0]} could not be dropped",
            code=Code.METASTORE_UNUSABLE,
            state="no record was removed",
            next="find the cause in the log of this run, then run again",
        )


def _refuse_strangers(table: Table, strangers: List[str]) -> None:
    if strangers:
        then = "find out what is in it (docs/runbook.md, stop and investigate), move it away, then run again"
        raise _needed(table, removal.explain_stranger(strangers[0]), then)


def _needed(table: Table, what: str, then: str) -> Refused:
    return Refused(f"{table.full_name}: {what}", code=Code.RECORDS_NEEDED, state="nothing was removed", next=then)
