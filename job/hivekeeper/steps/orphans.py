"""Look for what is left of tables, backups and runs of a database that are not there any more. Reads only."""

from __future__ import annotations

import logging
from typing import Callable, Dict, Iterator, List, Mapping, Sequence

from hivekeeper import names
from hivekeeper.config.settings import Settings
from hivekeeper.errors import HivekeeperError, Refused
from hivekeeper.model import Table
from hivekeeper.names import BACKUP_OF, ControlPaths
from hivekeeper.plan import retention
from hivekeeper.plan.orphans import Orphan, OrphanKind, explain_backup_table, explain_records
from hivekeeper.ports import Cluster, FilesError
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.history import History
from hivekeeper.steps import ownership

log = logging.getLogger(__name__)

# Entries of a directory that holds tables. A database with more of them is not looked through.
MOST_LISTED = 200_000


def find_backup_tables(tables: Sequence[Table], exists: Callable[[str], bool]) -> List[Orphan]:
    """Backup tables of tables that are gone."""
    found = []
    for table in tables:
        of = table.parameters.get(BACKUP_OF, "")
        if of and not exists(of):
            why, then = explain_backup_table(table, of)
            found.append(Orphan(OrphanKind.BACKUP_TABLE, table.full_name, of, why, then))
    return found


def find_records(cluster: Cluster, home: str, tables: Sequence[Table], settings_for: Callable[[str], Settings]) -> List[Orphan]:
    """Control directories that belong to no table, in the database's own directory and in those that its tables lie in."""
    found: Dict[str, ControlPaths] = {}
    for parent in sorted({home, *(names.parent(table.location) for table in tables if table.location)}):
        try:
            found.update(_controls_in(cluster, parent))
        except (Refused, FilesError) as error:
            if parent == home:
                raise
            log.warning("step=find-orphans reason=%r", f"{parent} is left out: {error}")
    touching = cluster.metastore.locations_below(list(found)) if found else {}
    by_name = {table.full_name: table for table in tables}
    homeless = [place for place in sorted(found) if not any(_is_at_home(cluster, by_name, name) for name in touching.get(place, ()))]
    seen = cluster.files.look([found[place].top for place in homeless], 0)
    return [_describe(cluster, place, found[place], tables, settings_for) for place in homeless if seen[found[place].top].exists]


def _is_at_home(cluster: Cluster, known: Mapping[str, Table], name: str) -> bool:
    """Whether a table that touches the place of a control directory can be the one that it belongs to: it is there, and no backup table."""
    database, _, base = name.partition(".")
    table = known.get(name) or cluster.metastore.tables(database, [base]).get(base)
    return table is not None and BACKUP_OF not in table.parameters


def _controls_in(cluster: Cluster, parent: str) -> Mapping[str, ControlPaths]:
    """Where control directories may be, by the directory that would be the table's."""
    entries = cluster.files.look([parent], MOST_LISTED + 1)[parent].entries
    if len(entries) > MOST_LISTED:
        raise Refused(
            f"{parent}: it has more than {MOST_LISTED} entries",
            code=Code.TOO_MANY_HIDDEN,
            next="find out who makes them, or look there by hand",
        )
    prefix = f"{names.CONTROL}-"
    found = {}
    for entry in (entry for entry in entries if entry.is_dir):
        if entry.name.startswith(prefix):
            place = names.join(parent, entry.name[len(prefix) :])
            found[place] = ControlPaths.of(place, partitioned=False)
        elif not names.is_hidden(entry.name):
            place = names.join(parent, entry.name)
            found.setdefault(place, ControlPaths.of(place, partitioned=True))
    return found


def _describe(
    cluster: Cluster, place: str, control: ControlPaths, tables: Sequence[Table], settings_for: Callable[[str], Settings]
) -> Orphan:
    trusted = settings_for(f"{names.base(names.parent(place))}.{names.base(place)}").trusted_owners
    unknown = Table.without_definition("(no table)", names.base(place), "")
    try:
        ownership.require_own_records(cluster, unknown, control, trusted)
        history = store.read_history(cluster, control)
        unfinished = _unfinished(cluster, control, history)
    except (HivekeeperError, FilesError) as error:
        return Orphan(OrphanKind.RECORDS, control.top, "", f"its records were not read: {error}", "look at them by hand")
    why, then = explain_records(control.top, history.table_id, tables)
    if unfinished:
        why += f". Run {unfinished[0]} was interrupted: rows that readers miss may be there alone"
    backups = [backup for backup in retention.list_backups(history) if backup.effects]
    return Orphan(
        OrphanKind.RECORDS,
        control.top,
        history.table_id.rpartition("@")[0],
        why,
        then,
        backups=len(backups),
        files=sum(effect.backup_files for backup in backups for effect in backup.effects),
        size_bytes=sum(backup.total_bytes for backup in backups),
        last_ms=history.runs[-1].timestamp_ms if history.runs else None,
    )


def find_in_table(cluster: Cluster, table: Table, control: ControlPaths) -> Iterator[Orphan]:
    """What the log of a table and its control directory do not have in common."""
    history = store.read_history(cluster, control)
    standing = {names.join(control.top, effect.place): effect for effect in history.standing}
    seen = cluster.files.look(list(standing), 0)
    for place, effect in standing.items():
        if not seen[place].exists:
            yield Orphan(
                OrphanKind.BACKUP,
                place,
                table.full_name,
                f"the backup of {effect.partition or 'the table'} is gone, and no cleanup has discarded it",
                "it cannot be rolled back; the next cleanup that may discard it notes that it is gone",
                effect.run,
                1,
                effect.backup_files,
                effect.backup_bytes,
                effect.timestamp_ms,
            )
    for directory in _unfinished(cluster, control, history):
        yield Orphan(
            OrphanKind.RUN,
            control.run(directory).top,
            table.full_name,
            "it is at work, or was interrupted",
            "hivekeeper recover, unless it is at work: then recover says so",
            store.run_of(directory),
        )


def _unfinished(cluster: Cluster, control: ControlPaths, history: History) -> List[str]:
    return [directory for directory in store.find_runs(cluster.files, control) if store.run_of(directory) not in history.finished]
