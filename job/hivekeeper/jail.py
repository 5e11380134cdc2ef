"""The jail: what a command may change while it works on one table, whatever records, listings or later commands say.

Hivekeeper runs with rights on all tables, and anyone who can write to a table can put anything into its directory. So the ports that a
command gets refuse every change outside the table's own places. The same jail wraps the real ports and the fakes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ContextManager, Iterable, Iterator, Mapping, Optional, Sequence, Tuple, Union

from hivekeeper import names
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.model import (
    OWNER_ONLY,
    Attributes,
    Block,
    CatalogueTable,
    Content,
    Differences,
    Ends,
    Exposed,
    FileInfo,
    FilesByRights,
    FooterGroup,
    Guard,
    Partition,
    Room,
    Snapshot,
    StageBatch,
    Table,
    Ties,
    UnitFooters,
)
from hivekeeper.names import ControlPaths, UnitNumber
from hivekeeper.ports import ALL, ANY_LENGTH, NO_IDS, Cluster, Files, Key, Lock, Metastore, Row, RowFiles, Rows, most_files
from hivekeeper.reasons import Code

_NOWHERE_NEW = frozenset(["", ".", "..", *names.RESERVED])
# Of directories that are listed without a limit, together: records, of which there are few. Whoever may write to the directory around
# them can put others at their place, with so many entries that they take the memory of the driver. With long paths fewer are listed.
MOST_ENTRIES = 5_000_000


@dataclass(frozen=True)
class Jail:
    """One table, or the database of the catalogue, and the directories in which changes are allowed (themselves included), spelled as by
    `Files.qualify`.
    """

    table: str = ""
    places: Tuple[str, ...] = ()
    database: str = ""

    @classmethod
    def of(cls, files: Files, table: Table) -> Jail:
        """The table's location and its control directory; no place for a view or for a table that is a whole file system."""
        location = files.qualify(table.location) if table.location else ""
        if not _path_of(location):
            return cls(table.full_name)
        return cls(table.full_name, (location, ControlPaths.of(location, table.partitioned).top))

    @classmethod
    def of_records(cls, table: str, *places: str) -> Jail:
        """Records without a table: its control directory, and where that is set aside. No place inside the root of a file system."""
        return cls(table, tuple(place for place in places if _path_of(names.parent(place))))

    def require(self, path: str) -> None:
        """Raise NeedsInvestigation if a path is outside all places or not in its normal form."""
        if not any(path == place or path.startswith(place + "/") for place in self.places):
            raise self._refusal(path)
        if _NOWHERE_NEW.intersection(_path_of(path).split("/")):
            raise self._refusal(path)

    def require_table(self, table: str) -> None:
        """Raise NeedsInvestigation for the name of another table."""
        if table != self.table:
            raise self._refusal(table)

    def require_database(self, table: str) -> None:
        """Raise NeedsInvestigation for the name of a table that is in another database than the catalogue's."""
        if not self.database or table.partition(".")[0] != self.database:
            raise self._refusal(table)

    def _refusal(self, what: str) -> NeedsInvestigation:
        return NeedsInvestigation(
            f"{self.table or 'no table'}: {what} is not the table's own, and was about to be changed",
            code=Code.NOT_OUR_OWN,
            state="that was not touched; what was begun on the table itself is finished or undone by the next run",
            next="find the record below the control directory that names it, and who wrote it",
        )


NOWHERE = Jail()


def _path_of(location: str) -> str:
    """The part after scheme and authority, without the leading slash; "" for the root and for a path without scheme."""
    server = names.server_of(location)
    return location[len(server) + 1 :] if server else ""


def confine(cluster: Cluster, jail: Jail) -> Cluster:
    """The cluster with ports that change nothing outside this jail; replaces any jail that it was in."""
    files, metastore, rows, row_files = cluster.files, cluster.metastore, cluster.rows, cluster.row_files
    return replace(
        cluster,
        files=JailedFiles(files.inner if isinstance(files, JailedFiles) else files, jail),
        metastore=JailedMetastore(metastore.inner if isinstance(metastore, JailedMetastore) else metastore, jail),
        rows=JailedRows(rows.inner if isinstance(rows, JailedRows) else rows, jail),
        row_files=JailedRowFiles(row_files.inner if isinstance(row_files, JailedRowFiles) else row_files, jail),
    )


def confine_files(files: Files, *places: str) -> Files:
    """A jail for files of no table: those named on a command line."""
    return JailedFiles(files.inner if isinstance(files, JailedFiles) else files, Jail("", places))


class JailedFiles:
    """`ports.Files` in a jail. Reads are not restricted."""

    def __init__(self, inner: Files, jail: Jail) -> None:
        self.inner = inner
        self.jail = jail
        self.clock_grain_ms = inner.clock_grain_ms

    def qualify(self, path: str) -> str:
        return self.inner.qualify(path)

    def is_foreign(self, location: str) -> bool:
        return self.inner.is_foreign(location)

    def look(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        if most < ALL:
            return self.inner.look(directories, most)
        most = most_files(MOST_ENTRIES, directories)
        found = self.inner.look(directories, most + 1)
        if sum(len(one.entries) for one in found.values()) > most:
            raise self._too_many(directories, most)
        return found

    def _too_many(self, directories: Sequence[str], most: int) -> NeedsInvestigation:
        more = f", and {len(directories) - 1} more" if len(directories) > 1 else ""
        return NeedsInvestigation(
            f"{self.jail.table or 'no table'}: {directories[0]}{more}: it has more than {most} entries",
            code=Code.RECORDS_OF_ANOTHER,
            state="nothing that lies there was believed; what was begun on the table itself is finished or undone by the next run",
            next="find out who put them there",
        )

    def look_hidden(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        return self.inner.look_hidden(directories, most)

    def look_hidden_directories(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        return self.inner.look_hidden_directories(directories, most)

    def stat(self, path: str) -> Optional[FileInfo]:
        return self.inner.stat(path)

    def id_around(self, directory: str) -> int:
        return self.inner.id_around(directory)

    def anchored(self, directories: Mapping[str, int]) -> ContextManager[None]:
        return self.inner.anchored(directories)

    def make_directory(self, path: str) -> None:
        self.jail.require(path)
        self.inner.make_directory(path)

    def rename_exact(self, source: str, target: str) -> None:
        self.jail.require(source)
        self.jail.require(target)
        self.inner.rename_exact(source, target)

    def exchange(self, live: str, aside: str, incoming: str, mark: Snapshot) -> Optional[FileInfo]:
        for path in (live, aside, incoming):
            self.jail.require(path)
        return self.inner.exchange(live, aside, incoming, mark)

    def blocks(
        self, path: str, below: int = ANY_LENGTH, ids: Optional[Mapping[str, int]] = None, most: int = ALL
    ) -> Mapping[str, Tuple[Block, ...]]:
        return self.inner.blocks(path, below, ids, most)

    def is_anywhere(self, near: str, file_id: int) -> bool:
        return self.inner.is_anywhere(near, file_id)

    def find_paths(self, near: str, former: Mapping[int, str]) -> Mapping[int, str]:
        return self.inner.find_paths(near, former)

    def concat(self, target: str, sources: Sequence[str]) -> None:
        for path in (target, *sources):
            self.jail.require(path)
        self.inner.concat(target, sources)

    def copy_part(self, file: FileInfo, begin: int, length: int, target: str) -> None:
        self.jail.require(target)
        self.inner.copy_part(file, begin, length, target)

    def cut(self, file: FileInfo, length: int, blocks: Sequence[Block]) -> None:
        self.jail.require(file.path)
        self.inner.cut(file, length, blocks)

    def remove_empty(self, path: str) -> bool:
        self.jail.require(path)
        return self.inner.remove_empty(path)

    def delete_tree(self, path: str) -> None:
        self.jail.require(path)
        self.inner.delete_tree(path)

    def delete_file(self, path: str, directory_id: int = 0, file_id: int = 0) -> None:
        self.jail.require(path)
        self.inner.delete_file(path, directory_id, file_id)

    def move_to_trash(self, path: str) -> bool:
        self.jail.require(path)
        return self.inner.move_to_trash(path)

    def read_bytes(self, file: FileInfo) -> Iterator[bytes]:
        return self.inner.read_bytes(file)

    def read_texts(self, files: Sequence[FileInfo]) -> Mapping[str, str]:
        return self.inner.read_texts(files)

    def read_pieces(self, file: FileInfo) -> Iterator[str]:
        return self.inner.read_pieces(file)

    def user_at(self, path: str) -> str:
        return self.inner.user_at(path)

    def write_new(self, path: str, content: Union[str, bytes, Iterable[str]], mode: int = OWNER_ONLY) -> None:
        self.jail.require(path)
        self.inner.write_new(path, content, mode)

    def require_lockable(self, path: str) -> None:
        self.inner.require_lockable(path)

    def hold(self, path: str, holder: str) -> Lock:
        self.jail.require(path)
        return self.inner.hold(path, holder)

    def attributes(self, directories: Sequence[str], ids: Mapping[str, int] = NO_IDS) -> Mapping[str, Attributes]:
        return self.inner.attributes(directories, ids)

    def file_rights(self, directories: Mapping[str, int], most: int) -> Mapping[str, FilesByRights]:
        return self.inner.file_rights(directories, most)

    def dress(self, wanted: Mapping[str, Attributes]) -> None:
        for path in wanted:
            self.jail.require(path)
        self.inner.dress(wanted)

    def exposed(self, top: str, levels: int) -> Tuple[Exposed, ...]:
        return self.inner.exposed(top, levels)

    def way_to(self, directory: str) -> Tuple[Exposed, ...]:
        return self.inner.way_to(directory)

    def guard(self, wanted: Mapping[str, Guard]) -> None:
        for path in wanted:
            self.jail.require(path)
        self.inner.guard(wanted)

    def ties(self, directories: Sequence[str], around: str = "") -> Mapping[str, Ties]:
        return self.inner.ties(directories, around)

    def room(self, path: str, quotas_at: Sequence[str]) -> Room:
        return self.inner.room(path, quotas_at)


class JailedMetastore:
    """`ports.Metastore` in a jail: changes only the table, and tables with its mark inside its own places. Reads are not restricted."""

    def __init__(self, inner: Metastore, jail: Jail) -> None:
        self.inner = inner
        self.jail = jail

    def databases(self) -> Tuple[str, ...]:
        return self.inner.databases()

    def table_names(self, database: str) -> Tuple[str, ...]:
        return self.inner.table_names(database)

    def tables(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        return self.inner.tables(database, names)

    def partitions(self, table: Table) -> Tuple[Partition, ...]:
        return self.inner.partitions(table)

    def partitions_named(self, table: Table, names: Sequence[str]) -> Mapping[str, Partition]:
        return self.inner.partitions_named(table, names)

    def update_sizes(
        self,
        table: Table,
        sizes: Mapping[str, Tuple[int, int]],
        lives: Optional[Mapping[str, str]] = None,
        rows: Optional[Mapping[str, int]] = None,
    ) -> None:
        self.jail.require_table(table.full_name)
        self.inner.update_sizes(table, sizes, lives, rows)

    def add_partition(self, table: Table, partition: Partition) -> bool:
        self.jail.require_table(table.full_name)
        self.jail.require(partition.location)
        return self.inner.add_partition(table, partition)

    def why_no_backup_tables(self) -> str:
        return self.inner.why_no_backup_tables()

    def make_backup_table(self, table: Table, name: str, location: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        self.jail.require_table(table.full_name)
        self._require_backup(name, parameters, [location])
        self.inner.make_backup_table(table, name, location, parameters, partitions)

    def point_backup_table(self, name: str, parameters: Mapping[str, str], places: Mapping[str, str]) -> None:
        self._require_backup(name, parameters, places.values())
        self.inner.point_backup_table(name, parameters, places)

    def trim_backup_table(self, name: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        self._require_backup(name, parameters)
        self.inner.trim_backup_table(name, parameters, partitions)

    def drop_backup_table(self, name: str, parameters: Mapping[str, str]) -> bool:
        self._require_backup(name, parameters)
        return self.inner.drop_backup_table(name, parameters)

    def _require_backup(self, name: str, parameters: Mapping[str, str], places: Iterable[str] = ()) -> None:
        """A backup table names itself and its table in its parameters; any other table is never altered."""
        self.jail.require_table(names.backed_up(name, parameters))
        for place in places:
            self.jail.require(place)

    def make_database(self, name: str, comment: str) -> None:
        self._require_catalogue(f"{name}.")
        self.inner.make_database(name, comment)

    def make_catalogue_table(self, table: CatalogueTable) -> bool:
        self._require_catalogue(table.name, [table.location])
        return self.inner.make_catalogue_table(table)

    def make_catalogue_view(
        self, name: str, text: str, columns: Mapping[str, str], parameters: Mapping[str, str], owners: Sequence[str]
    ) -> bool:
        self._require_catalogue(name)
        return self.inner.make_catalogue_view(name, text, columns, parameters, owners)

    def point_catalogue_table(self, table: CatalogueTable, places: Mapping[str, str]) -> bool:
        self._require_catalogue(table.name, [table.location, *places.values()])
        return self.inner.point_catalogue_table(table, places)

    def _require_catalogue(self, name: str, places: Iterable[str] = ()) -> None:
        self.jail.require_database(name)
        for place in places:
            self.jail.require(place)

    def hold(self, table: Table, timeout_s: float) -> AbstractContextManager[str]:
        self.jail.require_table(table.full_name)
        return self.inner.hold(table, timeout_s)

    def locations_below(self, locations: Sequence[str]) -> Mapping[str, Tuple[str, ...]]:
        return self.inner.locations_below(locations)

    def read_places_again(self, gone: str) -> None:
        self.inner.read_places_again(gone)

    def read_newer_places(self, table: Table) -> None:
        self.inner.read_newer_places(table)

    def paths_around(self, location: str) -> Mapping[str, Tuple[Tuple[str, str], ...]]:
        return self.inner.paths_around(location)

    def table_locations(self) -> Mapping[str, str]:
        return self.inner.table_locations()

    def table_places(self) -> Mapping[str, Tuple[str, ...]]:
        return self.inner.table_places()

    def database_locations(self) -> Mapping[str, str]:
        return self.inner.database_locations()


class JailedRows:
    """`ports.Rows` in a jail: writes files only below the table's own places. Reads are not restricted."""

    def __init__(self, inner: Rows, jail: Jail) -> None:
        self.inner = inner
        self.jail = jail

    def warm_up(self) -> None:
        self.inner.warm_up()

    def require_started(self) -> None:
        self.inner.require_started()

    def footers(
        self,
        format: str,
        sets: Mapping[Key, Sequence[FileInfo]],
        by_identity: bool = False,
        most_row_groups: int = 0,
        most_characters: Optional[int] = None,
    ) -> Mapping[Key, UnitFooters]:
        return self.inner.footers(format, sets, by_identity, most_row_groups, most_characters)

    def write_stage(self, batch: StageBatch) -> Mapping[UnitNumber, Content]:
        self.jail.require(batch.target)
        return self.inner.write_stage(batch)

    def read_stage(self, batch: StageBatch) -> Mapping[UnitNumber, Content]:
        return self.inner.read_stage(batch)

    def digests(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, Content]:
        return self.inner.digests(format, sets)

    def write_ends(self, format: str, wanted: Mapping[Key, Ends]) -> Mapping[Key, str]:
        for ends in wanted.values():
            for path in (ends.without_rows, ends.own, *([] if ends.alone is None else [ends.alone])):
                self.jail.require(path)
        return self.inner.write_ends(format, wanted)

    def find_unlike(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, str]:
        return self.inner.find_unlike(format, sets)

    def write_restored(self, format: str, file: FileInfo, begin: int, lengths: Sequence[int], target: str) -> None:
        self.jail.require(target)
        self.inner.write_restored(format, file, begin, lengths, target)

    def find_starts(self, format: str, file: FileInfo, offsets: Sequence[int]) -> Tuple[int, ...]:
        return self.inner.find_starts(format, file, offsets)

    def ends_like_whole(self, format: str, file: FileInfo, length: int) -> bool:
        return self.inner.ends_like_whole(format, file, length)

    def differences(self, format: str, one: Sequence[FooterGroup], other: Sequence[FooterGroup], limit: int) -> Differences:
        return self.inner.differences(format, one, other, limit)

    def hazards(self, format: str, groups: Mapping[str, FooterGroup]) -> Mapping[str, str]:
        return self.inner.hazards(format, groups)


class JailedRowFiles:
    """`ports.RowFiles` in a jail: writes files only below its places. Reads are not restricted."""

    def __init__(self, inner: RowFiles, jail: Jail) -> None:
        self.inner = inner
        self.jail = jail

    def write(
        self,
        path: str,
        columns: Mapping[str, str],
        rows: Iterable[Row],
        source: str = "",
        keys: Sequence[str] = (),
        without: Iterable[Sequence[str]] = (),
    ) -> int:
        self.jail.require(path)
        return self.inner.write(path, columns, rows, source, keys, without)

    def read(self, path: str, columns: Mapping[str, str], only: Mapping[str, str] = MappingProxyType({})) -> Iterator[Row]:
        return self.inner.read(path, columns, only)
