"""Observe tables: definitions from the metastore, listings from the file system, in bulk.

Reads only; changes nothing and opens no data file.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Callable, Collection, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union

from hivekeeper import names
from hivekeeper.config.settings import Settings
from hivekeeper.errors import Refused
from hivekeeper.model import Partition, Snapshot, Table, Ties, Unit
from hivekeeper.names import ControlPaths
from hivekeeper.plan import eligibility, listings, own_place
from hivekeeper.plan.analysis import ObservedTable, SeenTable, judge_table
from hivekeeper.plan.backup_tables import lies_in_run, lies_like_ours
from hivekeeper.plan.unchanged import KnownUnit, is_unchanged
from hivekeeper.ports import ALL, Cluster, Files, NoPermission, counts_as, local_table, most_files
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.run_files import may_be_inside
from hivekeeper.steps.leftovers import find_staging, look_inside
from hivekeeper.steps.timing import Step, timed

Item = TypeVar("Item")
Key = TypeVar("Key")
Answer = TypeVar("Answer")

# Directories listed in one call, and how many entries they should have together; an answer ends at twice as many. This bounds the size
# of the answer, not the work.
LOOK_AT_FIRST, LOOK_AT_ONCE, ENTRIES_AT_ONCE = 100, 2000, 50_000
# Entries in answers that were too large to be kept, above those that were kept: a large directory may be renamed from one to the next of
# those that are listed. From there on no call is for more directories than the one before.
MOST_DISCARDED = 2_000_000
# About what a call costs: so many more may be discarded for each directory, since in small calls each is one of its own.
ENTRIES_OF_CALL = 100
# Tables in or around a directory, most of which has none or a few backup tables of its own.
TOUCHING_AT_ONCE = 100
# Of the tables in the directory of another one that are looked at before it is refused.
MOST_BACKUP_TABLES = 10_000
# A name that is not known takes seconds, and its file system's client is kept.
MOST_SERVERS = 20
# Of the directories between a table's and its units, together: a million partitions have 400 MB of them at most, unless somebody gives
# them locations thousands of directories deep, which need not exist.
MOST_CHARACTERS_ABOVE = 2**29

# Of hidden entries in all these directories. A job may leave a marker in each. With long paths fewer are listed.
MOST_HIDDEN_ABOVE = 200_000

# No unit is known.
NOTHING: Mapping[str, KnownUnit] = MappingProxyType({})

Wanted = Callable[[Sequence[str]], bool]
Look = Callable[[Sequence[str]], Mapping[str, Snapshot]]
# The names of all, asked for once, and only if they are needed.
Databases = Callable[[], FrozenSet[str]]
# `Files.look`
BoundedLook = Callable[[Sequence[str], int], Mapping[str, Snapshot]]


def qualify_table(files: Files, table: Table) -> Table:
    """The table with its location in the canonical spelling; every command begins with this.

    Raises Refused if the location is on a server that no configuration names, or on this machine: a call to it might never return, and hold
    up all tables.
    """
    location = files.qualify(table.location) if table.location else ""
    if location and files.is_foreign(location):
        if location.startswith("file:"):
            raise local_table(f"{table.full_name}: {location}")
        raise Refused(
            f"{table.full_name}: its location ({location}) is on a server that is not configured here",
            code=Code.FOREIGN_SERVER,
            state="its server was not called",
            next="leave this table out, and find out who gave it this location; a server that you trust can be named in "
            "spark.kerberos.access.hadoopFileSystems",
        )
    return replace(table, location=location)


def observe_table(
    cluster: Cluster, table: Table, settings: Settings, wanted: Optional[Wanted] = None, known: Mapping[str, KnownUnit] = NOTHING
) -> ObservedTable:
    """Observe a table and all its units, then judge them. `wanted` selects partitions by their values; `known` units, by name, are only
    looked at if they have changed since.
    """
    reason = eligibility.refuse_table(table)
    if reason:
        return ObservedTable(table, ControlPaths(""), settings, reason=reason)
    with timed(cluster, Step.OBSERVE):
        return judge_table(look_at_table(cluster, table, settings, wanted, known), settings, cluster.clock.now_ms())


def look_at_table(
    cluster: Cluster, table: Table, settings: Settings, wanted: Optional[Wanted] = None, known: Mapping[str, KnownUnit] = NOTHING
) -> SeenTable:
    """All metadata of a table with a fit definition, in a few calls whatever its number of units."""
    table = qualify_table(cluster.files, table)
    control = ControlPaths.of(table.location, table.partitioned)
    touching = find_touching(cluster, table, control, moves_backups=False)
    all_units = find_units(cluster, table)
    units = tuple(unit for unit in all_units if wanted is None or wanted(unit.values))
    above = find_above(table, units)
    seen = _look_above(cluster.files, table, control, above)
    passed = _find_unchanged(cluster.files, table, units, known, settings) if known else {}
    snapshots, unreadable = _look_at_units(cluster.files, table, [unit for unit in units if unit.name not in passed], settings.max_files)
    snapshots = {**snapshots, **{unit.live: passed[unit.name] for unit in units if unit.name in passed}}
    entries = tuple(entry for place in above for entry in seen[place].entries)
    unsure = listings.find_unsure(entries, cluster.clock.now_ms(), settings.leftover_age_ms)
    staging = find_staging(entry for snapshot in snapshots.values() for entry in snapshot.entries)
    inside = look_inside(cluster.files, [*unsure, *staging])
    homes = find_homes(cluster)
    unchanged = {name: known[name] for name in passed}
    has_control = seen[control.top].exists
    return SeenTable(table, control, has_control, touching, homes, all_units, units, snapshots, unreadable, entries, inside, unchanged)


def _find_unchanged(
    files: Files, table: Table, units: Sequence[Unit], known: Mapping[str, KnownUnit], settings: Settings
) -> Dict[str, Snapshot]:
    """The directories, without entries, of the units that are as they were seen, by name. The directories above are listed: they say when
    each of a thousand partitions changed in one answer.
    """
    asked = [unit for unit in units if unit.name in known and own_place.is_inside(table, unit)]
    try:
        if table.partitioned:
            around = list(dict.fromkeys(names.parent(unit.live) for unit in asked))
            above = look_at(files.look, around, most_files(settings.max_files, around))
            listed = {entry.path: entry for snapshot in above.values() for entry in snapshot.entries if entry.is_dir}
            seen = {place: Snapshot(True, entry.file_id, entry.mtime_ms) for place, entry in listed.items()}
        else:
            seen = dict(files.look([unit.live for unit in asked], 0))
    except (NoPermission, TooManyEntries):
        # Who may not list them may look at single units all the same. And files that are in no unit are counted by nobody.
        return {}
    nothing = Snapshot(exists=False)
    return {
        unit.name: Snapshot(True, now.file_id, now.mtime_ms)
        for unit, now in ((unit, seen.get(unit.live, nothing)) for unit in asked)
        if is_unchanged(known[unit.name], unit, now, settings)
    }


def find_overlap(cluster: Cluster, table: Table, control: ControlPaths, is_gone: bool = False) -> Optional[Reason]:
    """Why no directory may be moved in a table (location qualified), not even a backup: another table or database has files there."""
    overlap = own_place.refuse_overlap(find_touching(cluster, table, control, moves_backups=True, is_gone=is_gone))
    return overlap or own_place.refuse_home(table, find_homes(cluster))


@dataclass
class _Met:
    """What a command knows of other tables and of databases, from one table to the next."""

    # Tables that were found in or around the directory of another one, by full name.
    strangers: Set[str] = field(default_factory=set)
    # The owners of directories around tables.
    owners: Dict[str, str] = field(default_factory=dict)
    # The newest `Metastore.database_locations`, and its index.
    homes: Optional[Tuple[Mapping[str, str], own_place.Homes]] = None


def find_homes(cluster: Cluster) -> own_place.Homes:
    """Indexed once for each reading of all databases, not for each table; with the place of the catalogue."""
    homes, known = cluster.metastore.database_locations(), cluster.memory.of(_Met)
    if known.homes is None or known.homes[0] is not homes:
        kept = cluster.files.qualify(cluster.catalogue_at) if cluster.catalogue_at else ""
        known.homes = homes, own_place.Homes(homes, kept)
    return known.homes[1]


def find_touching(cluster: Cluster, table: Table, control: ControlPaths, moves_backups: bool, is_gone: bool = False) -> Tuple[Table, ...]:
    """Existing tables of any database on the same directory, above it or below it, or in its control directory; not its own backup tables.
    Some of them, if there are many: whoever points a table at a root would have all definitions of the metastore read.

    The list of touching tables is cached. One of them that is not there any more may be there under another name, which is only known once
    all places are read again; so they are, and MetastoreUnavailable is raised where that was done only a moment ago. Backup tables of a
    table that is not there any more are left out: this one under its former name.

    Unless the command `moves_backups`, so is one that is not there any more and lay where only backup tables do. As a rule a cleanup of
    another process has dropped it, as each does many. Somebody may have renamed it to keep what it shows, but that stays as it is.

    A table (location qualified) that is not where the cache has it was made, renamed or pointed there since, and so may have been others
    that are there by now: newer places are read first, unless the table itself `is_gone`.
    """
    if not is_gone and table.location != cluster.metastore.table_locations().get(table.full_name, ""):
        cluster.metastore.read_newer_places(table)
    found, gone = _look_for_touching(cluster, table, control, moves_backups)
    while gone and not found:
        cluster.metastore.read_places_again(gone)
        found, gone = _look_for_touching(cluster, table, control, moves_backups)
    return found


def _look_for_touching(cluster: Cluster, table: Table, control: ControlPaths, moves_backups: bool) -> Tuple[Tuple[Table, ...], str]:
    """The same among the tables whose places are known; without any, the name of one that is gone and matters, "" for none."""

    def matters(full_name: str) -> bool:
        return moves_backups or not _lies_in_runs(cluster, full_name, control)

    touching = cluster.metastore.locations_below([table.location, control.top])
    others = sorted({name for found in touching.values() for name in found if name != table.full_name})
    # A backup table lies at live or in the control directory, whatever the mark of another one says.
    around = [name for name in others if _is_around(cluster, name, table.location)]
    around += [name for name in _find_paths_around(cluster, table) if name not in others]
    likely = sorted(set(others).difference(around))
    # No table has more backup tables than that.
    around += likely[MOST_BACKUP_TABLES:]
    likely = likely[:MOST_BACKUP_TABLES]
    gone = ""
    for some in _in_portions(around):
        found = _find_tables(cluster, some)
        if found:
            return tuple(found.values()), ""
        gone = gone or next(filter(matters, some), "")
    # First those that another table has met here: behind thousands that are marked as backups, each would meet them last.
    known = cluster.memory.of(_Met).strangers
    met = [name for name in likely if name in known]
    databases = lru_cache(maxsize=None)(lambda: frozenset(cluster.metastore.databases()))
    for some in chain(_in_portions(met), _in_portions([name for name in likely if name not in known])):
        found = _find_tables(cluster, some)
        strangers = _find_strangers(cluster, table, control, found, databases)
        if strangers:
            known.update(one.full_name for one in strangers)
            return strangers, ""
        gone = gone or next((name for name in some if name not in found and matters(name)), "")
    return (), gone


def _find_paths_around(cluster: Cluster, table: Table) -> Iterator[str]:
    """Tables of Spark in whose directory, by its path, this one lies. Only if that belongs to the table's owner, and has no databases, or
    has Delta's log of that owner: else anybody could keep all tables from being worked on by the path of one, as an owner is what a table's
    maker says. One that is missing may be away for a moment: else there is nothing inside it.
    """
    owners = cluster.memory.of(_Met).owners
    for place, tables in cluster.metastore.paths_around(table.location).items():
        found = None if place in owners else cluster.files.stat(place)
        if found:
            owners[place] = found.owner
        if not own_place.counts_around(place, table.location, find_homes(cluster)) and not _has_log_of(cluster, place, owners.get(place)):
            continue
        yield from (name for name, owner in tables if owner == owners.get(place, owner) and name != table.full_name)


def _has_log_of(cluster: Cluster, place: str, owner: Optional[str]) -> bool:
    """Whether a directory is one of Delta, whose files may lie in it in directories of any name (`delta.randomizeFilePrefixes`, and where
    columns are mapped). Anybody may make such a log where anybody may make names, but not as another user.
    """
    log_directory = cluster.files.stat(names.join(place, listings.DELTA_LOG))
    return log_directory is not None and log_directory.owner == owner


def _lies_in_runs(cluster: Cluster, full_name: str, control: ControlPaths) -> bool:
    """Whether all known places of a table are those of backup tables in directories of runs."""
    places = cluster.metastore.table_places().get(full_name, ())
    return bool(places) and all(lies_in_run(place, control.top) for place in places)


def _in_portions(full_names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (full_names[start : start + TOUCHING_AT_ONCE] for start in range(0, len(full_names), TOUCHING_AT_ONCE))


def _is_around(cluster: Cluster, full_name: str, place: str) -> bool:
    return any(own_place.is_below(place, top) for top in cluster.metastore.table_places().get(full_name, ()))


def _find_strangers(
    cluster: Cluster, table: Table, control: ControlPaths, found: Mapping[str, Table], databases: Databases
) -> Tuple[Table, ...]:
    """These tables, by full name, but for backup tables of this one or of a table that is gone; ordered by name. One that lies as
    this table's do is this one's from before it was renamed, even if another table, or a view, has that name by now.
    """
    others = {one.backup_of for one in found.values()} - {"", table.full_name}
    own = {table.full_name, *(others - _find_there(cluster, others, databases))}
    return tuple(found[name] for name in sorted(found) if not _is_own(cluster, table, control, found[name], own))


def _is_own(cluster: Cluster, table: Table, control: ControlPaths, one: Table, own: Collection[str]) -> bool:
    if one.backup_of in own:
        return True
    # Of a location on a server that must not be called, or of none, only the text is looked at.
    return bool(one.backup_of) and lies_like_ours(replace(one, location=cluster.files.qualify(one.location)), table, control.top)


def _find_there(cluster: Cluster, full_names: Collection[str], databases: Databases) -> Set[str]:
    """Those of these tables that exist; marks may name thousands of databases that do not."""
    return set(_find_tables(cluster, [name for name in full_names if name.partition(".")[0] in databases()]))


def _find_tables(cluster: Cluster, full_names: Iterable[str]) -> Dict[str, Table]:
    """Those of these tables that exist, by full name; one call for each database."""
    by_database: Dict[str, List[str]] = {}
    for name in full_names:
        database, _, base = name.partition(".")
        by_database.setdefault(database, []).append(base)
    found = [one for database, bases in by_database.items() for one in cluster.metastore.tables(database, bases).values()]
    return {one.full_name: one for one in found}


def _look_at_units(files: Files, table: Table, units: Sequence[Unit], most: int) -> Tuple[Mapping[str, Snapshot], Mapping[str, str]]:
    """As look_where_allowed; raises Refused above `most` entries, or fewer with long paths. Directories outside the table are not listed:
    they are refused whatever they hold, may be on servers that do not answer, and thousands of partitions may have one large directory.
    """
    inside = list(dict.fromkeys(unit.live for unit in units if own_place.is_inside(table, unit)))
    most = most_files(most, inside)
    with refused_if_too_many(table, most):
        seen, denied = look_where_allowed(files, inside, most)
    return {**{unit.live: Snapshot(exists=True) for unit in units}, **seen}, denied


def find_units(cluster: Cluster, table: Table) -> Tuple[Unit, ...]:
    """A table's units, ordered by name. Raises Refused if they are on many servers, each of which would be looked for by its name."""
    if not table.partitioned:
        return (Unit(table.full_name, "", (), table.location, table.storage, table.parameters),)
    partitions = cluster.metastore.partitions(table)
    return tuple(_unit_of(table, partition, live) for partition, live in zip(partitions, qualify_all(cluster.files, table, partitions)))


def find_alone(cluster: Cluster, table: Table) -> FrozenSet[str]:
    """The directories of a table's units that are, contain or lie inside no other one's."""
    units = find_units(cluster, table)
    shared = own_place.find_shared_locations(units)
    return frozenset(unit.live for unit in units if unit.name not in shared)


def find_lives(cluster: Cluster, table: Table) -> Mapping[str, str]:
    """The directories of a table's units, by name; those in its control directory as shown there."""
    top = ControlPaths.of(table.location, table.partitioned).top
    return {unit.name: as_shown(cluster.files, unit.live, top) for unit in find_units(cluster, table)}


def as_shown(files: Files, place: str, top: str) -> str:
    """A place (qualified) as it counts where something in a control directory may be deleted. On a server that nobody configured its path
    alone decides: that may be another name of our own server, which this machine cannot find.
    """
    server = names.server_of(place)
    if top.startswith(f"{server}/"):
        return place
    here = names.server_of(top) + place[len(server) :]
    return here if may_be_inside(here, top) and files.is_foreign(place) else place


def qualify_all(files: Files, table: Table, partitions: Iterable[Partition]) -> Tuple[str, ...]:
    """The directories of a table's partitions in the canonical spelling, in their order. Raises Refused if they are on many servers, each
    of which would be looked for by its name.
    """
    locations = [partition.location for partition in partitions]
    servers = count_servers(locations)
    if servers > MOST_SERVERS:
        raise Refused(
            f"{table.full_name}: its partitions lie on {servers} servers or file systems; no more than {MOST_SERVERS} are asked for",
            code=Code.OUTSIDE_TABLE,
            next="find out who gave its partitions these locations",
        )
    return tuple(map(files.qualify, locations))


def count_servers(locations: Iterable[str]) -> int:
    """How many servers are named in these locations, as they are written."""
    return len(set(map(names.server_of, locations)))


def _unit_of(table: Table, partition: Partition, live: str) -> Unit:
    return Unit(table.full_name, partition.name, partition.values, live, partition.storage, partition.parameters)


def find_tied(cluster: Cluster, control: ControlPaths, units: Sequence[Unit]) -> Dict[str, Reason]:
    """The units whose directories must not be renamed, by name."""
    ties, zone = find_ties(cluster, control, units)
    judged = {name: listings.refuse_ties(of_unit, zone) for name, of_unit in ties.items()}
    return {name: reason for name, reason in judged.items() if reason}


def find_ties(cluster: Cluster, control: ControlPaths, units: Sequence[Unit]) -> Tuple[Mapping[str, Ties], str]:
    """What ties the units that are there to their places, by name, and the encryption zone around the control directory, "" for none."""
    beside = names.parent(control.top)
    ties = cluster.files.ties([unit.live for unit in units], beside)
    return {unit.name: ties[unit.live] for unit in units if unit.live in ties}, ties[beside].zone if beside in ties else ""


def find_above(table: Table, units: Iterable[Unit]) -> Tuple[str, ...]:
    """The root of a partitioned table and the directories between it and its units: committers work there. What is above a unit in a
    control directory, such as a lock, is no committer's; that unit is refused.

    Raises Refused if their names alone would take a driver's memory.
    """
    found: Dict[str, None] = {}
    characters = 0
    for unit in units:
        place = unit.live
        if names.is_in_control(place[len(table.location) :]):
            continue
        while own_place.is_below(place, table.location):
            place = names.parent(place)
            if place in found:
                # So are those above it.
                break
            found[place] = None
            characters += len(place)
            if characters > MOST_CHARACTERS_ABOVE:
                raise _too_deep(table)
    return tuple(found)


def _look_above(files: Files, table: Table, control: ControlPaths, above: Sequence[str]) -> Mapping[str, Snapshot]:
    """The hidden entries of the control directory and of those above the units. Raises Refused if there are so many that listing those of
    a unit again before its swap would take all night, or that all of them would take a driver's memory.
    """
    left = MOST_HIDDEN_ABOVE

    def look(places: Sequence[str]) -> Mapping[str, Snapshot]:
        nonlocal left
        each = max(map(counts_as, places))
        found = files.look_hidden(places, left // each + 1)
        left -= each * sum(len(snapshot.entries) for snapshot in found.values())
        if left < 0:
            raise _crowded(table, MOST_HIDDEN_ABOVE)
        if any(len(found[place].entries) > listings.MOST_HIDDEN for place in places if place != control.top):
            raise _crowded(table, listings.MOST_HIDDEN)
        return found

    return look_in_portions(look, [control.top, *above])


def _crowded(table: Table, most: int) -> Refused:
    reason = listings.too_many_hidden(most)
    return Refused(f"{table.full_name}: {reason.what}", code=reason.code, next=reason.next)


def _too_deep(table: Table) -> Refused:
    return Refused(
        f"{table.full_name}: the names of the directories above its partitions have more than {MOST_CHARACTERS_ABOVE} characters together",
        code=Code.NOT_RECORDABLE,
        next="find out who gave its partitions locations so deep below the table's, or select fewer with --where",
    )


class TooManyEntries(Exception):
    """Directories hold more than whoever looks at them can hold in memory."""


@dataclass(frozen=True)
class TooLarge:
    """An answer about several directories that is not kept. They are asked for again, in smaller portions."""

    seen: Mapping[str, Snapshot]


@contextmanager
def refused_if_too_many(table: Table, most: int) -> Iterator[None]:
    """Raise Refused for TooManyEntries."""
    try:
        yield
    except TooManyEntries:
        raise Refused(
            f"{table.full_name}: the selected partitions, or their backups, have more than {most} files (fewer may have long paths)",
            code=Code.TOO_MANY_FILES,
            next="select some partitions with --where, or raise max_files and the driver's memory outside the JVM",
        ) from None


def look_at(look: BoundedLook, places: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
    """The snapshots of any number of directories. No answer is much larger than that for a single one of them, which is never divided.
    Raises TooManyEntries above `most` entries of all of them.
    """

    def look_bounded(some: Sequence[str]) -> Union[Mapping[str, Snapshot], TooLarge]:
        if len(some) == 1:
            return look(some, min(ALL, most + 1))
        found = look(some, 2 * ENTRIES_AT_ONCE)
        # So many may be only a part, and it is not known of which directories.
        return found if _count(found) < 2 * ENTRIES_AT_ONCE else TooLarge(found)

    return look_in_portions(look_bounded, places, most)


def look_in_portions(
    look: Callable[[Sequence[str]], Union[Mapping[str, Snapshot], TooLarge]], places: Sequence[str], most: int = ALL
) -> Mapping[str, Snapshot]:
    """In calls for as many as the ones before let expect few enough entries of, and for half of them or fewer where that was too many."""
    seen: Dict[str, Snapshot] = {}
    start, at_once, entries, discarded = 0, LOOK_AT_FIRST, 0, 0
    while start < len(places):
        some = places[start : start + at_once]
        found = look(some)
        if isinstance(found, TooLarge):
            discarded += _count(found.seen)
            at_once = max(1, min(_count_before_large(some, found.seen), len(some) // 2))
            continue
        seen.update(found)
        start += len(some)
        entries += _count(found)
        if entries > most:
            raise TooManyEntries
        may_grow = discarded <= entries + MOST_DISCARDED + ENTRIES_OF_CALL * start
        at_once = max(1, min(LOOK_AT_ONCE if may_grow else len(some), ENTRIES_AT_ONCE * start // max(1, entries)))
    return seen


def _count_before_large(places: Sequence[str], seen: Mapping[str, Snapshot]) -> int:
    """How many of these directories come before the one that has more entries than all others together; all, if none has."""
    sizes = [len(seen[place].entries) if place in seen else 0 for place in places]
    return sizes.index(max(sizes)) if 2 * max(sizes) > sum(sizes) else len(places)


def _count(found: Mapping[str, Snapshot]) -> int:
    return sum(len(snapshot.entries) for snapshot in found.values())


def find_existing(files: Files, places: Sequence[str]) -> FrozenSet[str]:
    """Those of these directories that exist. What lies in them, which may be a million files, is not told."""
    seen = look_in_portions(lambda some: files.look(some, 0), places)
    return frozenset(place for place, snapshot in seen.items() if snapshot.exists)


def look_where_allowed(files: Files, places: Sequence[str], most: int = ALL) -> Tuple[Mapping[str, Snapshot], Mapping[str, str]]:
    """The snapshots, and why some directories may not be read; those count as existing and empty. Raises like look_at."""
    denied: Dict[str, str] = {}

    def look(some: Sequence[str], most_of_some: int) -> Mapping[str, Snapshot]:
        left = most_of_some

        def look_at_part(part: Sequence[str]) -> Mapping[str, Snapshot]:
            nonlocal left
            found = files.look(part, left)
            left -= _count(found)
            return found

        found, closed = ask_where_allowed(look_at_part, some)
        denied.update(closed)
        return found

    seen = look_at(look, places, most)
    return {**seen, **{place: Snapshot(exists=True) for place in denied}}, denied


def ask_where_allowed(
    ask: Callable[[Sequence[Item]], Mapping[Key, Answer]], items: Sequence[Item]
) -> Tuple[Dict[Key, Answer], List[Tuple[Item, str]]]:
    """The answers about directories, and about which ones nothing may be asked, with why.

    One forbidden directory fails the whole call, which does not say which one it is: the list is halved until that directory is alone.
    """
    if not items:
        return {}, []
    try:
        return dict(ask(items)), []
    except NoPermission as error:
        if len(items) == 1:
            return {}, [(items[0], str(error))]
    half = len(items) // 2
    found, denied = ask_where_allowed(ask, items[:half])
    more_found, more_denied = ask_where_allowed(ask, items[half:])
    return {**found, **more_found}, denied + more_denied
