"""The in-memory fake of `cluster/metastore.py`: a metastore, our client, and changes by others.

It behaves like Hive's (tests/contract defines how) and dies with the files fake's process.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names, ports, quoting
from hivekeeper.model import CatalogueTable, Column, Partition, Storage, Table
from hivekeeper.ports import FilesError, MetastoreRefused, MetastoreUnavailable
from support.fakes.files import FakeFiles

PARQUET = Storage(
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    {"serialization.format": "1"},
)

USER = "etl"

# Properties that Hive's and Spark's statistics add, and those that let others delete a table's files: a backup table has neither.
ROW_STATISTICS = ("numRows", "rawDataSize", "COLUMN_STATS_ACCURATE", "STATS_GENERATED_VIA_STATS_TASK", "numFilesErasureCoded")
RIGHTS_OVER_FILES = ("TRANSLATED_TO_EXTERNAL", "transactional", "transactional_properties", "auto.purge", "partition.retention.period")


KEEP_ROOTS_MS = 3_600_000
# How often partitions are asked for that were renamed between two requests.
MOST_ROUNDS = 10
# So many partitions are read in a request, and so many tables to know their places.
PARTITIONS_AT_ONCE = 100
TABLES_AT_ONCE = 500
# So much of a partition's location and values does not count.
USUAL_PLACE = 256


@dataclass
class Catalog:
    """The metastore server: what it stores, for all clients. `events` is what its listeners were told."""

    databases: Set[str] = field(default_factory=lambda: {"default"})
    tables: Dict[str, Table] = field(default_factory=dict)
    partitions: Dict[str, Dict[str, Partition]] = field(default_factory=dict)
    events: List[Tuple[str, str, str]] = field(default_factory=list)
    locked: Set[str] = field(default_factory=set)
    has_locks: bool = True
    # Tables that make each request fail that reads them.
    unreadable: Set[str] = field(default_factory=set)
    # As a Hive before 3.0, on a server of its own.
    has_indexes: bool = False
    # Tables to which somebody has added an index.
    indexed: Set[str] = field(default_factory=set)
    # The directories of databases, if a test sets them.
    homes: Dict[str, str] = field(default_factory=dict)

    def add_table(self, table: Table, partitions: Iterable[Partition] = ()) -> None:
        self.databases.add(table.database)
        self.tables[table.full_name] = table
        self.partitions[table.full_name] = {partition.name: partition for partition in partitions}
        self.events.append(("CREATE_TABLE", table.full_name, ""))

    def drop_table(self, full_name: str) -> None:
        del self.tables[full_name], self.partitions[full_name]
        self.events.append(("DROP_TABLE", full_name, ""))

    def put_table(self, table: Table) -> None:
        """Alter a table."""
        self.tables[table.full_name] = table
        self.events.append(("ALTER_TABLE", table.full_name, ""))

    def add_partition(self, full_name: str, partition: Partition) -> None:
        self.partitions[full_name][partition.name] = partition
        self.events.append(("ADD_PARTITION", full_name, partition.name))

    def drop_partition(self, full_name: str, name: str) -> None:
        del self.partitions[full_name][name]
        self.events.append(("DROP_PARTITION", full_name, name))

    def put_partition(self, full_name: str, partition: Partition) -> None:
        """Alter a partition."""
        self.partitions[full_name][partition.name] = partition
        self.events.append(("ALTER_PARTITION", full_name, partition.name))


class FakeMetastore:
    """`ports.Metastore` in memory, for the process that owns `files`: it shares that process's kills, steps and callbacks.

    Every changing call is one step, including taking and releasing Hive's lock; creating a backup table of a partitioned table
    is two, first the table and then its partitions (make_backup_table.partitions).
    """

    def __init__(self, files: FakeFiles, catalog: Optional[Catalog] = None) -> None:
        self.catalog = catalog or Catalog()
        self._files = files
        self._failures: Dict[str, Tuple[Exception, bool]] = {}
        # What was told of all tables, and when; the location and the places of each.
        self._told: Dict[str, List[Table]] = {}
        self._read_ms = 0
        self._homes: Dict[str, str] = {}
        self._roots: Optional[Dict[str, Tuple[str, Tuple[str, ...]]]] = None
        self._locations: Dict[str, str] = {}
        # Backup tables that were dropped since.
        self._dropped: Set[str] = set()
        # When they may be read again before an hour has passed, and how long after that once more.
        self._again_ms = 0
        self.keeps_read_again_ms = 0
        # How often newer places may be read until then.
        self.newer_left = 1_000_000
        # Called before each request but the first of a method that makes several, with its name.
        self.before_request: Callable[[str], None] = lambda _: None

    def fail_next(self, method: str, error: Exception, done: bool = False) -> None:
        """Make the next call of this method raise; with `done` a change takes effect all the same."""
        self._failures[method] = (error, done)

    # ---- ports.Metastore

    def databases(self) -> Tuple[str, ...]:
        self._read("databases")
        return tuple(sorted(self.catalog.databases))

    def table_names(self, database: str) -> Tuple[str, ...]:
        self._read("table_names")
        if database.lower() not in self.catalog.databases:
            raise KeyError(database)
        return tuple(sorted(table.name for table in self.catalog.tables.values() if table.database == database.lower()))

    def tables(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        self._read("tables")
        found = (self.catalog.tables.get(f"{database}.{name}".lower()) for name in sorted(names))
        return _light_together([self._readable(_without_place_of_view(table)) for table in found if table is not None])

    def partitions(self, table: Table) -> Tuple[Partition, ...]:
        self._read("partitions")
        if not table.partitioned:
            return ()
        found: Dict[str, Partition] = {}
        left, was_complete = list(self._partitions(table)), True
        for number in range(MOST_ROUNDS):
            told: Dict[str, Partition] = {}
            for start in range(0, max(1, len(left)), PARTITIONS_AT_ONCE):
                self.before_request("partitions")
                stored = self._partitions(table)
                told.update({name: stored[name] for name in left[start : start + PARTITIONS_AT_ONCE] if name in stored})
            is_complete = len(told) == len(left)
            is_moved = any(name in found and found[name].location != one.location for name, one in told.items())
            found.update(told)
            if is_complete and not is_moved and (number or len(left) <= PARTITIONS_AT_ONCE):
                return tuple(_light(table, [found[name] for name in sorted(found)]))
            self.before_request("partitions")
            # Names that were told may be those of others by now.
            is_twice = not number and len({one.location for one in found.values()}) < len(found)
            is_anew = is_moved or (is_twice if is_complete else was_complete)
            left = [name for name in self._partitions(table) if is_anew or name not in found]
            was_complete = was_complete and is_complete
        raise MetastoreUnavailable(f"partitions of {table.full_name} were dropped or renamed each time that they were read")

    def partitions_named(self, table: Table, names: Sequence[str]) -> Mapping[str, Partition]:
        self._read("partitions_named")
        if not names:
            return {}
        stored = self._partitions(table)
        return {one.name: one for one in _light(table, [stored[name] for name in sorted(names) if name in stored])}

    def update_sizes(
        self,
        table: Table,
        sizes: Mapping[str, Tuple[int, int]],
        lives: Optional[Mapping[str, str]] = None,
        rows: Optional[Mapping[str, int]] = None,
    ) -> None:
        self._change("update_sizes", table.full_name, lambda: self._update_sizes(table, sizes, lives or {}, rows or {}))

    def add_partition(self, table: Table, partition: Partition) -> bool:
        added: bool = self._change("add_partition", f"{table.full_name}/{partition.name}", lambda: self._add_partition(table, partition))
        return added

    def why_no_backup_tables(self) -> str:
        self._read("why_no_backup_tables")
        return "the metastore is of a Hive before 3.0" if self.catalog.has_indexes else ""

    def make_backup_table(self, table: Table, name: str, location: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        self._change("make_backup_table", name, lambda: self._make_backup_table(table, name, location, parameters))
        if table.partitioned:
            try:
                self._change("make_backup_table.partitions", name, lambda: self._copy_partitions(table, name, location, partitions))
            except MetastoreUnavailable:
                if name in self.catalog.tables:
                    self.catalog.drop_table(name)
                raise

    def point_backup_table(self, name: str, parameters: Mapping[str, str], places: Mapping[str, str]) -> None:
        self._change("point_backup_table", name, lambda: self._point_backup_table(name, parameters, places))

    def trim_backup_table(self, name: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        self._change("trim_backup_table", name, lambda: self._trim_backup_table(name, parameters, partitions))

    def drop_backup_table(self, name: str, parameters: Mapping[str, str]) -> bool:
        dropped: bool = self._change("drop_backup_table", name, lambda: self._drop_backup_table(name, parameters))
        if dropped:
            self._dropped.add(name)
        return dropped

    def make_database(self, name: str, comment: str) -> None:  # noqa: ARG002
        self._change("make_database", name, lambda: self.catalog.databases.add(name))

    def make_catalogue_table(self, table: CatalogueTable) -> bool:
        more = {**table.parameters, "EXTERNAL": "TRUE", "external.table.purge": "false", "discover.partitions": "false"}
        database, _, name = table.name.partition(".")
        fields, keys = _columns(table.columns), (Column(table.partition_column, "string"),)
        own = Table(database, name, "EXTERNAL_TABLE", table.location, PARQUET, fields, keys, more, owner=USER)
        made: bool = self._change("make_catalogue_table", table.name, lambda: self._make_own(own, self._is_our_table(table)))
        return made

    def make_catalogue_view(
        self, name: str, text: str, columns: Mapping[str, str], parameters: Mapping[str, str], owners: Sequence[str]
    ) -> bool:
        database, _, own_name = name.partition(".")
        view = Table(database, own_name, "VIRTUAL_VIEW", "", PARQUET, _columns(columns), (), parameters, owner=USER, view_text=text)
        is_ours = self._is_ours(name, view.kind, parameters, owners)
        made: bool = self._change("make_catalogue_view", name, lambda: self._make_own(view, is_ours))
        return made

    def point_catalogue_table(self, table: CatalogueTable, places: Mapping[str, str]) -> bool:
        pointed: bool = self._change("point_catalogue_table", table.name, lambda: self._point_catalogue_table(table, places))
        return pointed

    @contextmanager
    def hold(self, table: Table, timeout_s: float) -> Iterator[str]:
        reason = self._change("hold", table.full_name, lambda: self._lock(table.full_name)) if timeout_s > 0 else "it was not asked for"
        try:
            yield reason
        finally:
            if not reason:
                self._change("release", table.full_name, lambda: self.catalog.locked.discard(table.full_name))

    def locations_below(self, locations: Sequence[str]) -> Mapping[str, Tuple[str, ...]]:
        self._read("locations_below")
        roots = self._read_roots()
        known = {name: root for name, root in roots.items() if name not in self._dropped}
        return {location: tuple(sorted(name for name, root in known.items() if self._touches(root, location))) for location in locations}

    def read_places_again(self, gone: str) -> None:
        self._read("read_places_again")
        now_ms = self._files.namespace.now()
        if now_ms < self._again_ms:
            raise ports.renamed_meanwhile(gone)
        self._roots, self._again_ms = None, now_ms + self.keeps_read_again_ms
        self._read_roots()

    def read_newer_places(self, table: Table) -> None:
        self._read("read_newer_places")
        if self._files.namespace.now() >= self._again_ms:
            self.read_places_again(table.full_name)
            return
        if not self.newer_left:
            raise ports.moved_meanwhile()
        self.newer_left -= 1
        self._read_roots()
        whole = {table.database, *(name for name, home in self._homes.items() if f"{table.location}/".startswith(f"{home}/"))}
        told = {name: tables for name, tables in self._told.items() if name.partition(".")[0] not in whole}
        self._roots = None
        self._dropped &= told.keys()
        self._read_all_tables(told)
        self._know(told)
        self._homes = {**self._read_homes(), **self._homes}

    def paths_around(self, location: str) -> Mapping[str, Tuple[Tuple[str, str], ...]]:
        self._read("paths_around")
        place, found = self._files.qualify(location).rstrip("/"), {}
        for name in self._read_roots():
            for one in map(self._qualified, self._told[name]):
                for path in one.places:
                    if path != names.before_pattern(one.location) and place.startswith(f"{path.rstrip('/')}/"):
                        found.setdefault(path.rstrip("/"), set()).add((name, one.owner))
        return {path: tuple(sorted(tables)) for path, tables in found.items()}

    def database_locations(self) -> Mapping[str, str]:
        self._read("database_locations")
        self._read_roots()
        return self._homes

    def table_locations(self) -> Mapping[str, str]:
        self._read("table_locations")
        self._read_roots()
        return self._locations

    def table_places(self) -> Mapping[str, Tuple[str, ...]]:
        self._read("table_places")
        return {name: places for name, (_, places) in self._read_roots().items()}

    # ---- inside

    def forget(self) -> None:
        """A client of another process has not read the locations yet."""
        self._roots = None

    def _read_roots(self) -> Dict[str, Tuple[str, Tuple[str, ...]]]:
        """The location and the places of each table. Caches a client's reading for an hour, like the real one."""
        now_ms = self._files.namespace.now()
        if self._roots is None or now_ms - self._read_ms > KEEP_ROOTS_MS:
            found: Dict[str, List[Table]] = {}
            self._read_all_tables(found)
            self._know(found)
            self._homes, self._read_ms = self._read_homes(), now_ms
            self._dropped.clear()
        return self._roots

    def _read_homes(self) -> Dict[str, str]:
        return {name: self._files.qualify(home) for name, home in self.catalog.homes.items() if name in self.catalog.databases}

    def _know(self, found: Dict[str, List[Table]]) -> None:
        """Let what was told of all tables be what is known of them."""
        told = {name: [self._qualified(table) for table in tables] for name, tables in found.items()}
        places = {name: tuple(dict.fromkeys(place for table in tables for place in table.places)) for name, tables in told.items()}
        self._roots = {name: (told[name][0].location, of_table) for name, of_table in places.items() if of_table}
        self._locations = {name: location for name, (location, _) in self._roots.items() if location}
        self._told = found

    def _read_all_tables(self, found: Dict[str, List[Table]]) -> None:
        """By full name all that is told of it: names and then definitions, a database at a time, then those of the names that are new, and
        of databases that have changed; then of tables at one place.
        """
        changed: Set[str] = set()
        for _ in range(2):
            for database in sorted(self.catalog.databases):
                self.before_request("locations_below")
                named = sorted(name for name, table in self.catalog.tables.items() if table.database == database)
                left = [name for name in named if database in changed or name not in found]
                self._read_tables(left, found)
                changed |= {database} if any(name not in found for name in left) else set()
        at = Counter(place for tables in found.values() for table in tables for place in table.places)
        self._read_tables([name for name, tables in found.items() if any(at[place] > 1 for one in tables for place in one.places)], found)

    def _read_tables(self, wanted: Sequence[str], found: Dict[str, List[Table]]) -> None:
        for start in range(0, max(1, len(wanted)), TABLES_AT_ONCE):
            self.before_request("locations_below")
            for name in wanted[start : start + TABLES_AT_ONCE]:
                if name in self.catalog.tables:
                    found.setdefault(name, []).append(_without_place_of_view(self.catalog.tables[name]))

    def _qualified(self, table: Table) -> Table:
        paths = {key: self._files.qualify(path) for key, path in table.spark_paths.items() if _is_path(path)}
        location = table.location and self._files.qualify(table.location)
        return dataclasses.replace(table, location=location, storage=Storage("", "", "", paths))

    def _readable(self, table: Table) -> Table:
        weight = _weight_of(table)
        if table.full_name in self.catalog.unreadable:
            return Table.without_definition(table.database, table.name, "the metastore cannot give its definition")
        if weight <= ports.MOST_OF_TABLE:
            return table
        return _brief(table)

    def _read(self, method: str) -> None:
        self._files.qualify("/")  # a killed process makes no more calls
        error, _ = self._failures.pop(method, (None, True))
        if error is not None:
            raise error

    def _change(self, method: str, what: str, effect: Callable[[], Any]) -> Any:
        what = f"metastore.{method} {what}"
        self._files.step(what)
        error, done = self._failures.pop(method, (None, True))
        if error is not None and not done:
            raise error
        result = effect()
        self._files.stepped(what)
        if error is not None:
            raise error
        return result

    def _partitions(self, table: Table) -> Dict[str, Partition]:
        if table.full_name not in self.catalog.tables:
            raise MetastoreRefused(f"{table.full_name} table not found")
        return self.catalog.partitions[table.full_name]

    def _update_sizes(self, table: Table, sizes: Mapping[str, Tuple[int, int]], lives: Mapping[str, str], rows: Mapping[str, int]) -> None:
        if not table.partitioned:
            stored = self.catalog.tables.get(table.full_name)
            if stored is not None and "" in sizes and self._lies_at(stored.location, lives.get("")):
                self.catalog.put_table(dataclasses.replace(stored, parameters=_sized(stored.parameters, *sizes[""], rows.get(""))))
            return
        partitions = self._partitions(table)
        for name, (count, size_bytes) in sizes.items():
            if name in partitions and self._lies_at(partitions[name].location, lives.get(name)):
                parameters = _sized(partitions[name].parameters, count, size_bytes, rows.get(name))
                self.catalog.put_partition(table.full_name, dataclasses.replace(partitions[name], parameters=parameters))

    def _add_partition(self, table: Table, partition: Partition) -> bool:
        self._require_same(table, has_moved=True)
        name = quoting.partition_name([column.name for column in table.partition_columns], partition.values)
        if name in self._partitions(table):
            return False
        self._files.namespace.make_directory(self._files.qualify(partition.location))
        parameters = _without_column_statistics(partition.parameters)
        self.catalog.add_partition(table.full_name, dataclasses.replace(partition, name=name, parameters=parameters))
        return True

    def _make_backup_table(self, table: Table, name: str, place: str, parameters: Mapping[str, str]) -> None:
        self._require_allowed()
        self._require_same(table)
        stored = self.catalog.tables[table.full_name]
        database, _, own_name = name.partition(".")
        if database not in self.catalog.databases:
            raise MetastoreRefused(f"{name}: no such database")
        if name in self.catalog.tables:
            raise MetastoreRefused(f"Table {own_name} already exists")
        self._make_place(place)
        made = dataclasses.replace(
            stored,
            database=database,
            name=own_name,
            kind="EXTERNAL_TABLE",
            location=place,
            storage=_moved(stored.storage, place),
            parameters=_backup_parameters(stored, parameters),
            create_time=self._files.namespace.now() // 1000,
        )
        self.catalog.add_table(made)

    def _copy_partitions(self, table: Table, name: str, place: str, partitions: Sequence[str]) -> None:
        if name not in self.catalog.tables:
            raise MetastoreRefused(f"{name} table not found")
        self.before_request("make_backup_table.partitions")
        self._require_same(table)
        stored = self._partitions(table)
        for partition in [_partition_at(stored[one], place) for one in partitions if one in stored]:
            self._make_place(place)
            parameters = _without_row_statistics(partition.parameters)
            self.catalog.add_partition(name, dataclasses.replace(partition, parameters=parameters))

    def _require_same(self, table: Table, has_moved: bool = False) -> None:
        self._partitions(table)  # raises unless the table exists
        stored = self.catalog.tables[table.full_name]
        is_same = (stored.owner, stored.create_time) == (table.owner, table.create_time)
        if not is_same or not (has_moved or self._lies_at(stored.location, table.location)):
            raise MetastoreRefused(f"{table.full_name} is another table by now")

    def _make_place(self, location: str) -> None:
        try:
            self._files.namespace.make_directory(location)
        except FilesError as error:
            raise MetastoreRefused(f"{location} is not a directory or unable to create one") from error

    def _carries(self, name: str, parameters: Mapping[str, str]) -> bool:
        table = self.catalog.tables.get(name)
        return table is not None and parameters.items() <= table.parameters.items()

    def _is_backup_table(self, name: str, parameters: Mapping[str, str]) -> bool:
        return self._carries(name, parameters) and _is_harmless(self.catalog.tables[name])

    def _point_backup_table(self, name: str, parameters: Mapping[str, str], places: Mapping[str, str]) -> None:
        if not self._is_backup_table(name, parameters):
            return
        table, partitions = self.catalog.tables[name], self.catalog.partitions[name]
        if not table.partitioned and table.location != places.get("", table.location):
            self.catalog.put_table(dataclasses.replace(table, location=places[""], storage=_moved(table.storage, places[""])))
        for one, place in places.items():
            if one in partitions and partitions[one].location != place:
                self.catalog.put_partition(name, _partition_at(partitions[one], place))

    def _trim_backup_table(self, name: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        for one in partitions if self._is_backup_table(name, parameters) else ():
            if one in self.catalog.partitions[name]:
                self.catalog.drop_partition(name, one)

    def _drop_backup_table(self, name: str, parameters: Mapping[str, str]) -> bool:
        ours = self._is_backup_table(name, parameters)
        if ours:
            self._require_allowed()
            if name in self.catalog.indexed:
                raise MetastoreRefused("somebody has added an index to it")
            self.catalog.drop_table(name)
        return ours

    def _require_allowed(self) -> None:
        why = self.why_no_backup_tables()
        if why:
            raise MetastoreRefused(why)

    def _is_ours(self, name: str, kind: str, parameters: Mapping[str, str], owners: Sequence[str]) -> bool:
        known = self.catalog.tables.get(name)
        return known is not None and known.kind == kind and known.owner in (USER, *owners) and self._carries(name, parameters)

    def _is_our_table(self, table: CatalogueTable) -> bool:
        if not self._is_ours(table.name, "EXTERNAL_TABLE", table.parameters, table.owners):
            return False
        known = self.catalog.tables[table.name]
        classes = (known.storage.input_format, known.storage.output_format, known.storage.serde)
        keys = [(column.name, column.type) for column in known.partition_columns]
        return (
            known.parameters.get("external.table.purge", "").lower() == "false"
            and self._lies_at(known.location, table.location)
            and classes == (PARQUET.input_format, PARQUET.output_format, PARQUET.serde)
            and keys == [(table.partition_column, "string")]
        )

    def _make_own(self, table: Table, is_ours: bool) -> bool:
        if table.database not in self.catalog.databases:
            raise MetastoreRefused(f"{table.full_name}: no such database")
        if table.full_name not in self.catalog.tables:
            if table.location:
                self._make_place(table.location)
            self.catalog.add_table(dataclasses.replace(table, create_time=self._files.namespace.now() // 1000))
            return True
        if not is_ours:
            return False
        known = self.catalog.tables[table.full_name]
        self.catalog.put_table(dataclasses.replace(known, columns=table.columns, view_text=table.view_text))
        return True

    def _point_catalogue_table(self, table: CatalogueTable, places: Mapping[str, str]) -> bool:
        if not self._is_our_table(table):
            return False
        name = table.name
        column, known = self.catalog.tables[name].partition_columns[0].name, self.catalog.partitions[name]
        wanted = {f"{column}={value}": Partition(f"{column}={value}", (value,), place, PARQUET) for value, place in places.items()}
        for gone in known.keys() - wanted.keys():
            self.catalog.drop_partition(name, gone)
        for one, partition in wanted.items():
            if one not in known:
                self.catalog.add_partition(name, partition)
            elif known[one].location != partition.location:
                self.catalog.put_partition(name, dataclasses.replace(known[one], location=partition.location))
        return True

    def _lock(self, full_name: str) -> str:
        if not self.catalog.has_locks:
            return "Unable to update transaction database"
        if full_name in self.catalog.locked:
            return "another holds Hive's lock on it"
        self.catalog.locked.add(full_name)
        return ""

    def _lies_at(self, location: str, live: Optional[str]) -> bool:
        return live is None or self._files.qualify(location) == self._files.qualify(live)

    def _touches(self, root: Tuple[str, Tuple[str, ...]], location: str) -> bool:
        (own, places), top = root, self._files.qualify(location).rstrip("/") + "/"
        is_in = any(f"{place.rstrip('/')}/".startswith(top) for place in places)
        return is_in or bool(own) and top.startswith(names.before_pattern(own).rstrip("/") + "/")


def _without_place_of_view(table: Table) -> Table:
    return dataclasses.replace(table, location="") if table.kind == "VIRTUAL_VIEW" else table


def _is_path(text: str) -> bool:
    """Whether Hadoop takes a text for a path: what is before a colon must be a scheme, and the path behind it absolute."""
    return names.is_location(text) or ":" not in text.partition("/")[0]


def _columns(columns: Mapping[str, str]) -> Tuple[Column, ...]:
    return tuple(Column(name, type) for name, type in columns.items())


def _weight_of(table: Table) -> int:
    return _weight(table.parameters) + sum(len(column.name) + len(column.type) for column in (*table.columns, *table.partition_columns))


def _brief(table: Table) -> Table:
    return Table.without_definition(table.database, table.name, ports.why_heavy(_weight_of(table)), table.kind, table.create_time)


def _light_together(tables: Sequence[Table]) -> Mapping[str, Table]:
    """The tables by name; the largest without their definitions, if all are too large together."""
    found, total = {table.name: table for table in tables}, sum(map(_weight_of, tables))
    for table in sorted(tables, key=_weight_of, reverse=True):
        if total <= ports.MOST_OF_TABLES:
            break
        found[table.name] = _brief(table)
        total -= _weight_of(table)
    return found


def _weight(parameters: Mapping[str, str]) -> int:
    besides = 100 * max(0, len(parameters) - 1000)
    return besides + sum(max(24, len(key) + len(value)) for key, value in parameters.items())


def _light(table: Table, partitions: List[Partition]) -> List[Partition]:
    places = (len(one.location) + 2 * len(json.dumps(one.values)) for one in partitions)
    if len(partitions) > ports.MOST_PARTITIONS:
        raise ports.heavy_partitions(table)
    if sum(_weight(one.parameters) for one in partitions) + sum(max(0, one - USUAL_PLACE) for one in places) > ports.MOST_OF_PARTITIONS:
        raise ports.heavy_partitions(table)
    return partitions


def _backup_parameters(table: Table, own: Mapping[str, str]) -> Mapping[str, str]:
    left_out = {*RIGHTS_OVER_FILES, *(("numFiles", "totalSize") if table.partitioned else ())}
    kept = {key: value for key, value in _without_row_statistics(table.parameters).items() if key not in left_out}
    return {**kept, **own, "EXTERNAL": "TRUE", "external.table.purge": "false", "discover.partitions": "false"}


def _is_harmless(table: Table) -> bool:
    purge = table.parameters.get("external.table.purge", "").lower()
    return table.kind == "EXTERNAL_TABLE" and purge == "false" and "TRANSLATED_TO_EXTERNAL" not in table.parameters


def _without_row_statistics(parameters: Mapping[str, str]) -> Mapping[str, str]:
    prefixes = ("spark.sql.statistics.", "impala_intermediate_stats_")
    return {key: value for key, value in parameters.items() if key not in ROW_STATISTICS and not key.startswith(prefixes)}


def _partition_at(partition: Partition, place: str) -> Partition:
    return dataclasses.replace(partition, location=place, storage=_moved(partition.storage, place))


def _moved(storage: Storage, place: str) -> Storage:
    """The SerDe's `path`, if Spark set one, follows."""
    found = {key: place if key.lower() == "path" else value for key, value in storage.serde_parameters.items()}
    return dataclasses.replace(storage, serde_parameters=found)


def _sized(parameters: Mapping[str, str], files: int, size_bytes: int, rows: Optional[int]) -> Mapping[str, str]:
    known = {"totalSize": str(size_bytes), **({} if rows is None else {"numRows": str(rows)})}
    of_spark = known if "spark.sql.statistics.totalSize" in parameters else {}
    return {**parameters, "numFiles": str(files), **known, **{f"spark.sql.statistics.{key}": value for key, value in of_spark.items()}}


def _without_column_statistics(parameters: Mapping[str, str]) -> Mapping[str, str]:
    if "COLUMN_STATS_ACCURATE" not in parameters:
        return parameters
    accurate = json.loads(parameters["COLUMN_STATS_ACCURATE"])
    accurate.pop("COLUMN_STATS", None)
    return {**parameters, "COLUMN_STATS_ACCURATE": json.dumps(accurate, separators=(",", ":"))}
