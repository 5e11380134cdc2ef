"""Accesses the Hive Metastore in bulk, through Hive's own client in the driver's JVM.

It decides nothing, moves no data, and changes only what it is told to.
"""

from __future__ import annotations

import json
import logging
import os
import re
from bisect import bisect_left
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar

from hivekeeper import names, ports, quoting
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_errors import JAVA_ERRORS, java_causes, metastore_error
from hivekeeper.cluster.uptime import uptime_s
from hivekeeper.errors import Unusable
from hivekeeper.model import CatalogueTable, Column, Partition, Storage, Table
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable

log = logging.getLogger(__name__)

Known = TypeVar("Known")

# How long the locations of all tables and databases are cached. Each run reads a table's own location again, and for one that is elsewhere
# by now the newer ones. So what is missed is a table that comes, since the cache was filled, to a place where another one was already.
KEEP_ROOTS_S = 3600.0
# Once they were read again for a table that is gone, that is not done for so many times as long as it took: a tenant may rename tables all
# the time.
KEEP_READ_AGAIN = 10
# How long all that may take meanwhile which reads newer ones only: a tenant may give tables new locations all the time.
MOST_NEWER_S = 60.0
# How long it is not asked again where the metastore answers, and does not tell them: each of a thousand tables would wait for that.
KEEP_REFUSAL_S = 60.0


# What Hive uses if nothing is configured.
DEFAULT_EMBEDDED = "jdbc:derby:;databaseName=metastore_db;create=true"


def place_of_embedded(url: str) -> str:
    """Where an embedded metastore keeps its tables: Derby's directory, or the database server's URL without possible secrets."""
    derby = re.fullmatch(r"jdbc:derby:(?:;databaseName=)?([^;]+).*", url)
    return os.path.abspath(derby[1]) if derby else re.split("[?;]", url)[0]


class HiveMetastore:
    """`ports.Metastore` on the metastore of the session's configuration; the constructor connects."""

    def __init__(self, gateway: Gateway) -> None:
        self._roots: Optional[Roots] = None
        self._places = _Places()
        self._homes: Mapping[str, str] = {}
        self._read_at = 0.0
        # When they may be read again before that, and how long newer ones may be read until then.
        self._again_at = 0.0
        self._newer_left_s = MOST_NEWER_S
        # The tables of these names that this client has dropped since.
        self._dropped: Set[str] = set()
        # Why the places of all tables are not known, and when that was told.
        self._refused = "", 0.0
        try:
            connection = _ask(gateway.helper, "MetastoreConnection", gateway.hadoop_conf)
            _ask(connection.connect)
        except (MetastoreUnavailable, MetastoreRefused) as error:
            raise _unusable(str(error)) from error
        if not gateway.hadoop_conf.get("hive.metastore.uris"):
            url = gateway.hadoop_conf.get("javax.jdo.option.ConnectionURL") or DEFAULT_EMBEDDED
            reason = "hive.metastore.uris is not set: no hive-site.xml was found, or it has no metastore server"
            log.warning("step=metastore embedded place=%r reason=%r", place_of_embedded(url), reason)
        helpers = ("MetastoreReader", "MetastoreWriter", "BackupTables", "CatalogueTables", "HiveLock")
        self._reader, self._writer, self._backups, self._catalogue, self._lock = (gateway.helper(name, connection) for name in helpers)

    def databases(self) -> Tuple[str, ...]:
        return tuple(sorted(json.loads(_ask(self._reader.databases))))

    def table_names(self, database: str) -> Tuple[str, ...]:
        found = json.loads(_ask(self._reader.tableNames, database, ports.MOST_TABLES))
        if found is None:
            raise KeyError(database)
        return tuple(sorted(found))

    def tables(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        if not names:
            return {}
        definitions = _ask(self._reader.tables, database, json.dumps(list(names)), ports.MOST_OF_TABLE, ports.MOST_OF_TABLES)
        missing, tables, more = json.loads(_ask(definitions.missing)), {}, True
        while more:
            found = json.loads(_ask(definitions.next, ports.MOST_OF_ANSWER))
            tables.update({entry["name"]: _read_table(entry) for entry in found["tables"]})
            more = found["more"]
        for name, known in missing["heavy"].items():
            tables[name] = Table.without_definition(database, name, ports.why_heavy(known["weight"]), known["kind"], known["create_time"])
        for name, why in missing["unreadable"].items():
            tables[name] = Table.without_definition(database, name, f"the metastore cannot give its definition: {why}")
        return dict(sorted(tables.items()))

    def partitions(self, table: Table) -> Tuple[Partition, ...]:
        return self._find_partitions(table, None) if table.partitioned else ()

    def partitions_named(self, table: Table, names: Sequence[str]) -> Mapping[str, Partition]:
        return {partition.name: partition for partition in self._find_partitions(table, json.dumps(list(names)))} if names else {}

    def _find_partitions(self, table: Table, wanted: Optional[str]) -> Tuple[Partition, ...]:
        most = ports.MOST_OF_PARTITIONS, ports.MOST_PARTITIONS
        found = json.loads(_ask(self._reader.partitions, table.database, table.name, wanted, *most))
        if found is None:
            raise ports.heavy_partitions(table)
        storages = [Storage(**storage) for storage in found["storages"]]
        partitions = (
            Partition(**{**row, "values": tuple(row["values"]), "storage": storages[row["storage"]]}) for row in found["partitions"]
        )
        return tuple(sorted(partitions, key=lambda partition: partition.name))

    def update_sizes(
        self,
        table: Table,
        sizes: Mapping[str, Tuple[int, int]],
        lives: Optional[Mapping[str, str]] = None,
        rows: Optional[Mapping[str, int]] = None,
    ) -> None:
        lives, rows = lives or {}, rows or {}
        changes = {
            name: {"files": files, "bytes": size, "rows": rows.get(name), "live": lives.get(name)} for name, (files, size) in sizes.items()
        }
        if table.partitioned:
            _ask(self._writer.updatePartitions, table.database, table.name, json.dumps(changes))
        elif "" in changes:
            _ask(self._writer.updateTable, table.database, table.name, json.dumps(changes))

    def add_partition(self, table: Table, partition: Partition) -> bool:
        record = {
            "values": partition.values,
            "location": partition.location,
            "storage": vars(partition.storage),
            "parameters": dict(partition.parameters),
        }
        seen = json.dumps({"owner": table.owner, "create_time": table.create_time})
        return bool(_ask(self._writer.addPartition, table.database, table.name, seen, json.dumps(record)))

    def why_no_backup_tables(self) -> str:
        return str(_ask(self._backups.whyNone))

    def make_backup_table(self, table: Table, name: str, location: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        seen = json.dumps({"owner": table.owner, "create_time": table.create_time, "location": table.location})
        source = (table.database, table.name, seen)
        _ask(self._backups.make, *_split(name), *source, location, json.dumps(dict(parameters)), json.dumps(list(partitions)))

    def point_backup_table(self, name: str, parameters: Mapping[str, str], places: Mapping[str, str]) -> None:
        _ask(self._backups.point, *_split(name), json.dumps(dict(parameters)), json.dumps(dict(places)))

    def trim_backup_table(self, name: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        _ask(self._backups.trim, *_split(name), json.dumps(dict(parameters)), json.dumps(list(partitions)))

    def drop_backup_table(self, name: str, parameters: Mapping[str, str]) -> bool:
        is_dropped = bool(_ask(self._backups.drop, *_split(name), json.dumps(dict(parameters))))
        if is_dropped:
            self._dropped.add(name.lower())
        return is_dropped

    def make_database(self, name: str, comment: str) -> None:
        _ask(self._catalogue.makeDatabase, name, comment)

    def make_catalogue_table(self, table: CatalogueTable) -> bool:
        return bool(_ask(self._catalogue.makeTable, *_split(table.name), *_definition(table), json.dumps(dict(table.columns))))

    def make_catalogue_view(
        self, name: str, text: str, columns: Mapping[str, str], parameters: Mapping[str, str], owners: Sequence[str]
    ) -> bool:
        definition = (text, json.dumps(dict(columns)), json.dumps(dict(parameters)), json.dumps(list(owners)))
        return bool(_ask(self._catalogue.makeView, *_split(name), *definition))

    def point_catalogue_table(self, table: CatalogueTable, places: Mapping[str, str]) -> bool:
        return bool(_ask(self._catalogue.point, *_split(table.name), *_definition(table), json.dumps(dict(places))))

    @contextmanager
    def hold(self, table: Table, timeout_s: float) -> Iterator[str]:
        """Hold the lock. The metastore drops a lock without heartbeats; a daemon thread in the JVM sends them and dies with the driver."""
        reason = str(self._lock.lock(table.database, table.name, int(timeout_s * 1000))) if timeout_s > 0 else "it was not asked for"
        try:
            yield reason
        finally:
            if not reason:
                self._lock.unlock()

    def locations_below(self, locations: Sequence[str]) -> Mapping[str, Tuple[str, ...]]:
        qualified = json.loads(_ask(self._reader.qualified, json.dumps(list(locations))))
        roots = self._read_roots()
        return {location: tuple(sorted(set(roots.touching(path)) - self._dropped)) for location, path in zip(locations, qualified)}

    def read_places_again(self, gone: str) -> None:
        began = uptime_s()
        if began < self._again_at:
            raise ports.renamed_meanwhile(gone)
        self._roots = None
        self._read_roots()
        self._again_at = self._read_at + KEEP_READ_AGAIN * (self._read_at - began)

    def read_newer_places(self, table: Table) -> None:
        if uptime_s() >= self._again_at:
            self.read_places_again(table.full_name)
            return
        if self._newer_left_s <= 0:
            raise ports.moved_meanwhile()
        self._read_roots()
        began = uptime_s()
        try:
            self._read_newer(table)
        finally:
            self._newer_left_s -= uptime_s() - began

    def _read_newer(self, table: Table) -> None:
        around = (name for name, home in self._homes.items() if f"{table.location}/".startswith(f"{home.rstrip('/')}/"))
        places = self._places.without_databases({table.database, *around})
        # Not beside what is read. If that fails, all are read again.
        self._roots = None
        # Others may have taken the names of the rest, which are told by what is read now.
        self._dropped = set(filter(places.is_told, self._dropped))
        self._read_places(places)
        # Not of new databases alone: one that is closed to this user is new each time, and seems to show that none is told.
        homes = {**self._read_homes(self.databases()), **self._homes}
        self._roots, self._places, self._homes = Roots(places), places, homes

    def paths_around(self, location: str) -> Mapping[str, Tuple[Tuple[str, str], ...]]:
        return self._read_roots().paths_around(location)

    def table_locations(self) -> Mapping[str, str]:
        return self._read_roots().locations

    def table_places(self) -> Mapping[str, Tuple[str, ...]]:
        return self._read_roots().places

    def database_locations(self) -> Mapping[str, str]:
        self._read_roots()
        return self._homes

    def _read_roots(self) -> Roots:
        why, told_at = self._refused
        if why and uptime_s() - told_at < KEEP_REFUSAL_S:
            raise MetastoreUnavailable(why)
        if self._roots is None or uptime_s() - self._read_at > KEEP_ROOTS_S:
            # Not beside what is read.
            self._roots, self._places, places = None, _Places(), _Places()
            self._read_places(places)
            homes = self._read_homes(self.databases())
            # All or nothing: where nothing is known of databases, a table may lie in the directory of any.
            self._roots, self._homes, self._read_at = Roots(places), homes, uptime_s()
            self._places, self._newer_left_s = places, MOST_NEWER_S
            self._dropped.clear()
        return self._roots

    def _read_homes(self, databases: Sequence[str]) -> Mapping[str, str]:
        return _told(json.loads(_ask(self._reader.databaseLocations, json.dumps(list(databases)))))

    def _read_places(self, places: _Places) -> None:
        """Add those of all tables that were not told before. One that is renamed after the names of its database were told, and before its
        definition, or from a database that is read late to one that was read early, has no place so far: so the names are asked for again.
        So it is with one that could not be read: what fails in a bad second may lie in any other's directory.

        Or it has got a name by then whose place was told before. So a database in which one was gone at its turn is read as a whole once
        more, and tables that are at one place, as two seem to be that exchange their names.
        """
        changed: Set[str] = set()
        for _ in range(2):
            for database in self.databases():
                named = self._of_database(database, self._reader.namesLeft, ports.MOST_TABLES)
                left = [name for name in named if database in changed or not places.is_told(f"{database}.{name}")]
                self._read_locations(places, database, left)
                if not all(places.is_found(f"{database}.{name}") for name in left):
                    changed.add(database)
        for database, left in places.find_sharing().items():
            self._read_locations(places, database, left)

    def _refuse_all(self, largest: str) -> MetastoreUnavailable:
        """There is no memory for the places of all tables. One database may have most of them, and is not the last one that was read."""
        why = (
            "where all tables are is not known, and any of them may share a directory with another table: names and locations have more "
            f"than {ports.MOST_OF_ALL_PLACES} characters, most of them in the database {largest}; have those that nobody needs dropped"
        )
        self._refused = why, uptime_s()
        return MetastoreUnavailable(why)

    def _read_locations(self, places: _Places, database: str, wanted: Sequence[str]) -> None:
        """Add the places of these tables of a database."""
        if not wanted:
            return
        places.add(database, self._of_database(database, self._reader.locations, json.dumps(wanted), names.MOST_PATH, ports.MOST_OF_PLACES))
        if places.of_all > ports.MOST_OF_ALL_PLACES:
            raise self._refuse_all(max(places.characters, key=lambda name: places.characters[name]))

    def _of_database(self, database: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """What is told of a database's tables. Raises MetastoreUnavailable if the metastore answers, and does not tell it: any other's
        directory may hold its tables.
        """
        try:
            return json.loads(_ask(method, database, *arguments))
        except MetastoreRefused as error:
            why = (
                f"where the tables of the database {database} are is not known, and any of them may share a directory with another table: "
                f"the metastore does not tell it ({error}); have those that nobody needs dropped, or this user allowed to see them"
            )
            with suppress(MetastoreUnavailable):
                # In a bad minute it fails at this, too: that may be over when the next table asks.
                self.databases()
                self._refused = why, uptime_s()
            raise MetastoreUnavailable(why) from error


class _Places:
    """The places of all tables, by full name, while they are read. One that was told several places has all of them."""

    def __init__(self) -> None:
        # The first one that was told: what came later may be where another table was made after the names of all were told.
        self.locations: Dict[str, str] = {}
        self.later: Dict[str, Tuple[str, ...]] = {}
        self.of: Dict[str, Tuple[str, ...]] = {}
        # Of those that Spark finds by a path.
        self.owners: Dict[str, str] = {}
        self.without: Set[str] = set()
        self.unreadable: Set[str] = set()
        # How many characters were told of each database, and of all.
        self.characters: Dict[str, int] = {}
        self.of_all = 0

    def add(self, database: str, found: Mapping[str, Any]) -> None:
        of_location, paths = _told(found, f"{database}."), found["paths"]
        full_names = {table: f"{database}.{table}" for table in {**of_location, **paths}}
        characters = _count_characters(found, database, self.is_told)
        for table, location in of_location.items():
            if self.locations.setdefault(full_names[table], location) != location:
                self.later[full_names[table]] = (*self.later.get(full_names[table], ()), location)
        self.owners.update({full_names[table]: owner for table, owner in found["owners"].items()})
        for table, full_name in full_names.items():
            self.of[full_name] = tuple(dict.fromkeys((*self.of.get(full_name, ()), *_places(table, of_location, paths))))
        self.without.update(f"{database}.{table}" for table in found["others"])
        self.unreadable.update(f"{database}.{table}" for table in found["unreadable"])
        self.characters[database] = self.characters.get(database, 0) + characters
        self.of_all += characters

    def without_databases(self, left_out: Collection[str]) -> _Places:
        """Another one to add to, in which nothing is told of these. Who has asked for the locations keeps what was told."""

        def is_kept(full_name: str) -> bool:
            return _split(full_name)[0] not in left_out

        def keep(told: Mapping[str, Known]) -> Dict[str, Known]:
            return {name: known for name, known in told.items() if is_kept(name)}

        found = _Places()
        found.locations, found.later, found.of, found.owners = keep(self.locations), keep(self.later), keep(self.of), keep(self.owners)
        found.without, found.unreadable = set(filter(is_kept, self.without)), set(filter(is_kept, self.unreadable))
        found.characters = {database: count for database, count in self.characters.items() if database not in left_out}
        found.of_all = sum(found.characters.values())
        return found

    def is_told(self, full_name: str) -> bool:
        """Whether a definition of a table of this name was told, perhaps one without a place."""
        return full_name in self.of or full_name in self.without

    def is_found(self, full_name: str) -> bool:
        """Whether there was a table of this name at its turn, perhaps one that cannot be read."""
        return self.is_told(full_name) or full_name in self.unreadable

    def find_sharing(self) -> Mapping[str, List[str]]:
        """The names of tables that are at one place with another one, by their databases."""
        at: Dict[str, List[str]] = {}
        for full_name, all_of_it in self.of.items():
            for place in all_of_it:
                at.setdefault(place, []).append(full_name)
        found: Dict[str, List[str]] = {}
        for full_name in dict.fromkeys(name for sharing in at.values() if len(sharing) > 1 for name in sharing):
            database, name = _split(full_name)
            found.setdefault(database, []).append(name)
        return found


def _count_characters(found: Mapping[str, Any], database: str, is_told: Callable[[str], bool]) -> int:
    """Of the full names and the places of a database's tables, and the owners that are kept, but of those that were told before."""
    new = {table for table in (*found["locations"], *found["others"], *found["paths"]) if not is_told(f"{database}.{table}")}
    located = sum(len(database) + len(table) + len(location) for table, location in found["locations"].items() if table in new)
    located += sum(len(database) + len(table) for table in found["others"] if table in new)
    pathed = ((table, [*paths, found["owners"][table]]) for table, paths in found["paths"].items() if table in new)
    return located + sum(len(database) + len(table) + sum(map(len, texts)) for table, texts in pathed)


def _told(found: Mapping[str, Dict[str, str]], database: str = "") -> Mapping[str, str]:
    """The locations; what could not be read is only named in the log."""
    for name, why in found["unreadable"].items():
        log.warning("table=%s step=read-locations failed reason=%r", quoting.log_field(f"{database}{name}"), why)
    return found["locations"]


def _places(table: str, locations: Mapping[str, str], paths: Mapping[str, Sequence[str]]) -> Tuple[str, ...]:
    """As `Table.places`, of a table whose locations are qualified."""
    known = [locations[table]] if table in locations else []
    return tuple(dict.fromkeys(map(names.before_pattern, [*known, *paths.get(table, ())])))


def _split(full_name: str) -> Tuple[str, str]:
    database, _, name = full_name.partition(".")
    return database, name


def _definition(table: CatalogueTable) -> Tuple[str, str, str, str]:
    return table.location, table.partition_column, json.dumps(dict(table.parameters)), json.dumps(list(table.owners))


class Roots:
    """The places of tables, indexed to find the tables that touch a path without scanning all of them. `locations` and `places` are by full
    name, the second with Spark's paths, too.
    """

    def __init__(self, told: _Places) -> None:
        self.locations, self.places, self._owners = told.locations, told.of, told.owners
        self._at = _by_place((name, place) for name, all_of_it in told.of.items() for place in all_of_it)
        later = ((name, location) for name, all_of_it in told.later.items() for location in all_of_it)
        self._located = _by_place((name, names.before_pattern(location)) for name, location in chain(told.locations.items(), later))
        # With a slash at their ends, those inside a place follow it directly. The directories above each, of which a location that need not
        # exist has two thousand, are not kept.
        self._ordered = sorted(f"{place}/" for place in self._at)

    def touching(self, location: str) -> List[str]:
        """Names of the tables at or below a location, or above it by their own, one several times if several of its places are."""
        place = location.rstrip("/")
        return [*self._below(f"{place}/"), *(name for above in _above(place) for name in self._located.get(above, ()))]

    def paths_around(self, location: str) -> Dict[str, Tuple[Tuple[str, str], ...]]:
        """As `ports.Metastore.paths_around`."""
        tables = {above: self._at.get(above, ()) for above in _above(location.rstrip("/"))}
        found = {above: tuple((name, self._owners[name]) for name in there if name in self._owners) for above, there in tables.items()}
        return {above: owned for above, owned in found.items() if owned}

    def _below(self, top: str) -> Iterator[str]:
        """Names of the tables at or below a location with a slash at its end."""
        for number in range(bisect_left(self._ordered, top), len(self._ordered)):
            if not self._ordered[number].startswith(top):
                return
            yield from self._at[self._ordered[number][:-1]]


def _by_place(placed: Iterable[Tuple[str, str]]) -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = {}
    for name, place in placed:
        found.setdefault(place.rstrip("/"), []).append(name)
    return found


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = names.parent(path)
        yield path


def _read_table(entry: Mapping[str, Any]) -> Table:
    return Table(
        **{
            **entry,
            "storage": Storage(**entry["storage"]),
            "columns": tuple(Column(**column) for column in entry["columns"]),
            "partition_columns": tuple(Column(**column) for column in entry["partition_columns"]),
            "bucket_columns": tuple(entry["bucket_columns"]),
            "sort_columns": tuple(entry["sort_columns"]),
            "skewed_columns": tuple(entry["skewed_columns"]),
        }
    )


def _ask(method: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except JAVA_ERRORS as error:
        meaning = metastore_error(java_causes(error))
        if meaning is None:
            raise
        raise meaning from error


def _unusable(message: str) -> Unusable:
    if "Another instance of Derby" in message:
        return Unusable(
            f"the embedded metastore is in use by another process ({message})",
            next="wait until it ends, or name a metastore by hive.metastore.uris",
        )
    return Unusable(message, next="check the ticket (klist), hive.metastore.uris and the metastore's own log, then run again")
