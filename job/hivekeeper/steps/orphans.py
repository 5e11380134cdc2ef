"""Look for what is left of tables, backups and runs of a database that are not there any more; writes only the mark of an orphan."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Callable, Collection, Container, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from hivekeeper import names, quoting
from hivekeeper.config.settings import Settings
from hivekeeper.errors import HivekeeperError, Refused
from hivekeeper.model import FileInfo, Snapshot, Table
from hivekeeper.names import BACKUP_NAME, BACKUP_OF, ControlPaths
from hivekeeper.plan import retention
from hivekeeper.plan.doctor import MOST_CLOCK_DIFFERENCE_MS
from hivekeeper.plan.orphans import Orphan, OrphanKind, explain_backup_table, explain_records, ids_of
from hivekeeper.ports import Cluster, FilesError, MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.runlog import orphan_mark, store
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History
from hivekeeper.runlog.namenode_time import ask_time
from hivekeeper.runlog.orphan_mark import OrphanMark
from hivekeeper.steps import ownership, removal, renames, rows_away
from hivekeeper.steps.census import TABLES_AT_ONCE
from hivekeeper.steps.observe import TooLarge, ask_where_allowed, look_in_portions

log = logging.getLogger(__name__)

HOUR_MS = 3_600_000
# Entries of all directories that hold tables of a database. What has more is not looked through.
MOST_LISTED = 200_000
# Of hidden directories in a directory that may have been a table's.
MOST_HIDDEN_INSIDE = 1000
# Of unread leftovers: those told for one database, and for all of a command, which holds them to its end.
MOST_UNREAD = 1000
MOST_UNREAD_OF_ALL = 10_000


@dataclass
class Looked:
    """What a command has looked through for the databases before: of each directory where it has read records, which are told for each
    database, as `cleanup --orphans` discards them only for that of their own table; and how many leftovers it has told and not read.
    """

    directories: Dict[str, Set[ControlPaths]] = field(default_factory=dict)
    # Of each of these, what a killed run of ours had begun to remove, which no database so far may end.
    removed: Dict[str, List[FileInfo]] = field(default_factory=dict)
    unread: int = 0


def find_backup_tables(tables: Sequence[Table], exists: Callable[[str], bool]) -> List[Orphan]:
    """Backup tables of tables that are gone."""
    found = []
    for table in tables:
        of = table.parameters.get(BACKUP_OF, "")
        if of and not exists(of):
            why, then = explain_backup_table(table, of)
            found.append(Orphan(OrphanKind.BACKUP_TABLE, table.full_name, of, why, then))
    return found


def slim(table: Table) -> Table:
    """What is asked of a table while all of its database are held."""
    marks = {key: table.parameters[key] for key in (BACKUP_OF, BACKUP_NAME)} if table.backup_of else {}
    return replace(table.bare(), parameters=marks)


def find_records(
    cluster: Cluster, database: str, home: str, tables: Sequence[Table], settings_for: Callable[[str], Settings], looked: Looked
) -> List[Orphan]:
    """Control directories that belong to no table, in the database's own directory and in those that its tables lie in; and those that a
    killed run had begun to remove. No directory is looked through for two databases, and none in a snapshot, which
    has the past of all tables.
    """
    found, removed, listed = _look_through(cluster, home, tables, looked)
    at_home = _find_at_home(cluster, tables, {control.home for control in found})
    homeless = sorted((control for control in found if control.top not in at_home), key=lambda control: (control.home, control.top))
    seen = _look_where_allowed(lambda some: cluster.files.look(some, 0), [control.top for control in homeless])
    # Not in the directory of a table, which may have many files.
    taken = {ControlPaths(top).home for top in at_home}
    inside = [one.home for one in homeless if one.is_inside and one.home not in taken and names.parent(one.home) in listed]
    removed += _removed_inside(cluster, inside)
    there = [control for control in homeless if control.top in seen]
    # What a run of this user may have left, which `cleanup --orphans` finishes, comes before what others have called so.
    ours = {cluster.files.user_at(home), *cluster.trusted_owners}
    removed.sort(key=lambda entry: (entry.owner not in ours, entry.path))
    before = {entry.path: ControlPaths.of_removed(entry.path) for entry in removed}
    beside = {names.parent(one.home) for one in (*there, *before.values()) if one}
    worked_in = {home, *_find_worked_in(cluster, beside - {home}, tables, settings_for)}
    leftovers = chain(
        (_explain_removed(path, database, one is None or names.parent(one.home) in worked_in) for path, one in before.items()),
        (_describe(cluster, control, database, tables, settings_for, names.parent(control.home) in worked_in) for control in there),
    )
    of_ours = [entry for entry in removed if entry.owner in ours]
    told = _tell_bounded(leftovers, {entry.path for entry in of_ours}, database, looked)
    read = {orphan.place for orphan in told if not orphan.is_unread}
    looked.directories.update({directory: set() for directory in listed})
    ended = {orphan.place for orphan in told if orphan.kind is OrphanKind.REMOVED and orphan.may_go}
    for parent in {names.parent(entry.path) for entry in of_ours} & looked.directories.keys():
        looked.removed[parent] = [entry for entry in of_ours if names.parent(entry.path) == parent and entry.path not in ended]
    for control in there:
        if control.top in read:
            looked.directories[names.parent(control.home)].add(control)
    return sorted(told, key=lambda orphan: orphan.kind is OrphanKind.REMOVED)


def _tell_bounded(leftovers: Iterable[Orphan], ours: Container[str], database: str, looked: Looked) -> List[Orphan]:
    """All that was read, or is `ours`, and so many of the rest: whoever may write beside a table fills its directory with what looks like
    records.
    """
    told: List[Orphan] = []
    first, left_out = "", 0
    most = min(looked.unread + MOST_UNREAD, MOST_UNREAD_OF_ALL)
    for orphan in leftovers:
        if not orphan.is_unread or orphan.place in ours:
            told.append(orphan)
        elif looked.unread < most:
            looked.unread += 1
            told.append(orphan)
        else:
            first, left_out = first or orphan.place, left_out + 1
    if left_out:
        what = f"{first} is left out, and {left_out - 1} more beside tables of {database}: their records were not read"
        log.warning("step=find-orphans reason=%r", what)
    return told


def _look_through(
    cluster: Cluster, home: str, tables: Sequence[Table], looked: Looked
) -> Tuple[Set[ControlPaths], List[FileInfo], Set[str]]:
    """Where control directories may be; those that a killed run had begun to remove; and the directories that were listed. What is listed
    is bounded for all of these together: whoever may create tables chooses how many they are.
    """
    found: Set[ControlPaths] = set()
    removed: List[FileInfo] = []
    listed: Set[str] = set()
    parents = {parent for parent in (home, *_find_parents(cluster, tables)) if not names.is_reserved(parent)}
    for parent in parents & looked.directories.keys():
        found.update(looked.directories[parent])
        removed += looked.removed.get(parent, ())
    for parent, entries in _list_in_turn(cluster, home, parents - looked.directories.keys()):
        listed.add(parent)
        found.update(_controls_among(entry for entry in entries if entry.is_dir))
        removed += _removed_among(cluster, entries)
    return found, removed, listed


def _list_in_turn(cluster: Cluster, home: str, parents: Set[str]) -> Iterator[Tuple[str, Sequence[FileInfo]]]:
    """The entries of each of these directories, that of the database first. Each other one gets an equal share of what may still be listed.
    Those with more wait, and share what the others have left over, as long as that more than doubles their share; then the first of them
    may take all of it. So nothing is listed more than some twenty times. What finds no room, or is closed, is left out, and told.
    """
    left, share, waiting = MOST_LISTED, 0, sorted(parents - {home})
    if home in parents:
        entries = _list_entries(cluster, home, left)
        left -= len(entries)
        yield home, entries
    while waiting:
        is_last = len(waiting) == 1 or left // len(waiting) <= 2 * share
        share, some, waiting = left // len(waiting), waiting, []
        for parent in some:
            try:
                entries = _list_entries(cluster, parent, left if is_last else share)
            except (Refused, FilesError) as error:
                if isinstance(error, Refused) and not is_last:
                    waiting.append(parent)
                else:
                    log.warning("step=find-orphans reason=%r", f"{parent} is left out: {error}")
                continue
            left -= len(entries)
            yield parent, entries


def _find_parents(cluster: Cluster, tables: Sequence[Table]) -> Set[str]:
    """The directories that tables lie in, but on servers that must not be called. One that lies inside a table itself, whose partitions may
    be a million, is left out.
    """
    parents = {names.parent(table.location) for table in tables if not cluster.files.is_foreign(table.location)}
    places = set(cluster.metastore.table_locations().values()) if parents else set()
    inside = {parent for parent in parents if not places.isdisjoint(names.with_above(parent))}
    if inside:
        log.warning("step=find-orphans reason=%r", f"{min(inside)} is left out, and {len(inside) - 1} more: they lie in tables")
    return parents - inside


def _find_at_home(cluster: Cluster, tables: Sequence[Table], places: Collection[str]) -> Set[str]:
    """The control directories of the tables at these places: not of one around or inside a place, which anybody may point there, and of no
    backup table.
    """
    # The fresh answer has no location of a table that is too large to be read.
    fresh = {table.full_name: table.location for table in tables if table.location}
    known = {**cluster.metastore.table_locations(), **fresh} if places else {}
    claimed = {name: location for name, location in known.items() if location in places}
    by_database: Dict[str, List[str]] = {}
    for name in sorted(claimed.keys() - {table.full_name for table in tables}):
        database, _, base = name.partition(".")
        by_database.setdefault(database, []).append(base)
    kinds = _kinds_of(tables)
    for database, bases in by_database.items():
        for start in range(0, len(bases), TABLES_AT_ONCE):
            some = bases[start : start + TABLES_AT_ONCE]
            try:
                # Their definitions, as large as others have made them, are not kept.
                kinds.update(_kinds_of(cluster.metastore.tables(database, some).values()))
            except MetastoreRefused:
                # Whoever owns a database may close it. What may be a table's is not left over.
                kinds.update({f"{database}.{base}": _EITHER for base in some})
    at = [(claimed[name], is_partitioned) for name, kind in kinds.items() if name in claimed for is_partitioned in kind]
    return {ControlPaths.of(place, is_partitioned).top for place, is_partitioned in at}


# Whether a table is partitioned, if that is not known.
_EITHER = (False, True)


def _kinds_of(tables: Iterable[Table]) -> Dict[str, Tuple[bool, ...]]:
    """Whether each of these is partitioned, which decides where its control directory is; without backup tables."""
    return {table.full_name: _EITHER if table.unreadable else (table.partitioned,) for table in tables if not table.backup_of}


def _removed_inside(cluster: Cluster, places: Sequence[str]) -> List[FileInfo]:
    """Of directories that somebody may have filled only what is looked for is kept; those with very much hidden in them are left out."""
    left = MOST_LISTED
    found: Dict[str, List[FileInfo]] = {}

    def look(some: Sequence[str]) -> Union[Mapping[str, Snapshot], TooLarge]:
        nonlocal left
        seen = cluster.files.look_hidden_directories(some, MOST_HIDDEN_INSIDE + 1)
        if sum(len(snapshot.entries) for snapshot in seen.values()) > MOST_HIDDEN_INSIDE:
            if len(some) > 1:
                return TooLarge(seen)
            why = f"{some[0]} is left out: more than {MOST_HIDDEN_INSIDE} hidden directories are in it"
            log.warning("step=find-orphans reason=%r", why)
            return {}
        for place, snapshot in seen.items():
            # One beside a closed directory is asked about several times.
            left += len(found.get(place, ()))
            found[place] = _removed_among(cluster, snapshot.entries)[:left]
            left -= len(found[place])
        return {place: replace(snapshot, entries=()) for place, snapshot in seen.items()}

    _look_where_allowed(look, places)
    return [entry for entries in found.values() for entry in entries]


def _look_where_allowed(
    look: Callable[[Sequence[str]], Union[Mapping[str, Snapshot], TooLarge]], places: Sequence[str]
) -> Dict[str, Snapshot]:
    """Those of these directories that exist and may be looked at. Whoever owns one beside tables may close it, and must not hide others."""
    seen, denied = ask_where_allowed(partial(look_in_portions, look), places)
    if denied:
        (place, why), more = denied[0], len(denied) - 1
        log.warning("step=find-orphans reason=%r", f"{place} is left out: {why}" + (f", and {more} more" if more else ""))
    return {place: snapshot for place, snapshot in seen.items() if snapshot.exists}


def _removed_among(cluster: Cluster, entries: Iterable[FileInfo]) -> List[FileInfo]:
    return [entry for entry in entries if removal.of_left(cluster, entry)]


def _explain_removed(path: str, database: str, may_go: bool) -> Orphan:
    why = "a run that made or removed it was interrupted, or is at work"
    then = f"hivekeeper cleanup --orphans --database {quoting.shell(database)}"
    return Orphan(OrphanKind.REMOVED, path, "", why, then, may_go=may_go)


def _list_entries(cluster: Cluster, parent: str, left: int) -> Sequence[FileInfo]:
    entries = cluster.files.look([parent], left + 1)[parent].entries
    if len(entries) > left:
        raise Refused(
            f"{parent}: with it, the directories of this database's tables have more than {MOST_LISTED} entries",
            code=Code.TOO_MANY_HIDDEN,
            next="find out who makes them, or look there by hand",
        )
    return entries


def _controls_among(directories: Iterable[FileInfo]) -> Iterator[ControlPaths]:
    """Where control directories may be: two for one place, of tables of both kinds, if somebody has made that beside it."""
    prefix = f"{names.CONTROL}-"
    for entry in directories:
        if entry.name.startswith(prefix):
            if entry.name != prefix:
                yield ControlPaths(entry.path)
        elif not names.is_hidden(entry.name):
            yield ControlPaths.of(entry.path, partitioned=True)


def _describe(
    cluster: Cluster,
    control: ControlPaths,
    database: str,
    tables: Sequence[Table],
    settings_for: Callable[[str], Settings],
    is_worked_in: bool,
) -> Orphan:
    place = control.home
    trusted = settings_for(f"{names.base(names.parent(place))}.{names.base(place)}").trusted_owners
    unknown = Table.without_definition("(no table)", names.base(place), "")
    try:
        history = _read_log(cluster, unknown, control, trusted)
        unfinished = find_unfinished(cluster, control, history)
    except (HivekeeperError, FilesError) as error:
        return Orphan(OrphanKind.RECORDS, control.top, "", f"its records were not read: {error}", "look at them by hand", is_read=False)
    why, then = explain_records(control.top, history.table_id, tables, database, cluster.files.is_foreign, is_worked_in)
    if unfinished:
        why += f". Run {unfinished[0]} was interrupted: rows that readers miss may be there alone"
        possible, how = _find_possible(cluster, control, unfinished)
        if possible:
            why += f". It may have been renamed: {', '.join(one.full_name for one in possible)}, without a directory from before that run"
            then = f"if it was renamed: {how}"
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
        may_go=is_worked_in,
    )


def _find_possible(cluster: Cluster, control: ControlPaths, unfinished: Iterable[str]) -> Tuple[Sequence[Table], str]:
    """The tables that may be the one of these runs, renamed while its rows were away, and what to do then. What cannot be asked for tells
    of none.
    """
    with suppress(HivekeeperError, FilesError, MetastoreUnavailable):
        for paths, plan in rows_away.read_plans(cluster, control, unfinished):
            possible = renames.find_possible(cluster, plan.table, paths)
            if possible.only is not None:
                return possible.tables, renames.how_to_bring(cluster, possible.only, control)
            if possible.tables:
                return possible.tables, "find out which table it is now; then see docs/runbook.md, the table changed meanwhile"
    return (), ""


def _find_worked_in(
    cluster: Cluster, directories: Collection[str], tables: Iterable[Table], settings_for: Callable[[str], Settings]
) -> Set[str]:
    """Those of these directories in which one of these tables has a log that is about it alone. Whoever has a table may point it beside, or
    at, those of another metastore; but for such a log it needs a directory of its own there.
    """
    by_control: Dict[ControlPaths, List[Table]] = {}
    for table in tables:
        if names.parent(table.location) in directories and not table.backup_of and not table.unreadable:
            by_control.setdefault(ControlPaths.of(table.location, table.partitioned), []).append(table)
    seen = _look_where_allowed(lambda some: cluster.files.look(some, 0), [control.top for control in by_control])
    worked_in: Set[str] = set()
    for control, there in by_control.items():
        directory = names.parent(control.home)
        if control.top not in seen or directory in worked_in:
            continue
        try:
            about = ids_of(_read_log(cluster, there[0], control, settings_for(there[0].full_name).trusted_owners))
        except (HivekeeperError, FilesError) as error:
            log.warning("table=%s step=find-orphans reason=%r", there[0].log_field, str(error))
            continue
        if about in [{table_id(table)} for table in there if table.create_time]:
            worked_in.add(directory)
    return worked_in


def _read_log(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> History:
    """A log that a trusted owner has written. Raises HivekeeperError or FilesError."""
    # It is as long as others have made it, and that of the next one is not held with it.
    alone = replace(cluster, log_entries={})
    ownership.require_own_records(alone, table, control, trusted)
    return store.read_history(alone, control)


def find_in_table(cluster: Cluster, table: Table, control: ControlPaths) -> Iterator[Orphan]:
    """What the log of a table and its control directory do not have in common."""
    history = store.read_history(cluster, control)
    standing = {names.join(control.top, effect.place): effect for effect in history.standing if effect.inside is None}
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
    for directory in find_unfinished(cluster, control, history):
        yield Orphan(
            OrphanKind.RUN,
            control.run(directory).top,
            table.full_name,
            "it is at work, or was interrupted",
            "hivekeeper recover, unless it is at work: then recover says so",
            store.run_of(directory),
        )


def renew_mark(cluster: Cluster, control: ControlPaths, history: History, min_age_ms: int) -> Optional[Tuple[int, int]]:
    """Since when, and until when, this log is known to belong to no table, by the NameNode's clock. A mark of another state of the log is
    replaced, and then both are now. None, and nothing is replaced, if this machine's clock does not agree: one that is wrong for days would
    make a wait of days needless. Some minutes matter only to a wait of minutes.
    """
    files, wanted = cluster.files, OrphanMark.of(history)
    most_ms = max(MOST_CLOCK_DIFFERENCE_MS, min(min_age_ms // 10, HOUR_MS))
    earliest_ms = cluster.clock.now_ms() - most_ms
    now_ms = ask_time(files, control.new_mark, orphan_mark.to_text(wanted)) or 0
    if not earliest_ms <= now_ms <= cluster.clock.now_ms() + most_ms:
        files.delete_file(control.new_mark)
        return None
    known = store.read_mark(cluster, control)
    if known and known[0] == wanted and known[1] <= now_ms:
        files.delete_file(control.new_mark)
        return known[1], now_ms
    files.delete_file(control.mark)
    files.rename_exact(control.new_mark, control.mark)
    return now_ms, now_ms


def remove_mark(cluster: Cluster, control: ControlPaths) -> None:
    """End the wait that a mark had begun: its table is there, or may be. Else the mark would be older than a later drop."""
    if cluster.files.stat(control.mark) is not None:
        cluster.files.delete_file(control.mark)


def find_unfinished(cluster: Cluster, control: ControlPaths, history: History) -> List[str]:
    """The directories of runs that the log does not know to be finished."""
    return [directory for directory in store.find_runs(cluster.files, control) if store.run_of(directory) not in history.finished]
