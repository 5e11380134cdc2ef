"""What Hive does for a statement, call by call, on the fakes of the metastore and HDFS, while a run is at work or after it was killed.

Each statement is a generator that pauses before each of its calls, so that others can act there. The call sequences are those of Hive's
HiveAlterHandler, HMSHandler, Warehouse.deleteDir and Hive.replaceFiles. Raises `HiveError` where Hive ends a statement with an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, Mapping

from hivekeeper import names
from hivekeeper.model import Partition, Table
from hivekeeper.ports import FilesError
from support.fakes.files import TRASH
from support.fakes.namespace import parts
from support.fakes.rows import DataFile

Calls = Iterator[str]


class HiveError(Exception):
    """The statement failed; the metastore is unchanged."""


class Hive:
    """Another program on the same cluster.

    `metadata_first`: Hive 1 and 2 commit a rename to the metastore before they move files; Hive 3 and later move them first.
    """

    def __init__(self, world: Any, metadata_first: bool = False) -> None:
        self.world = world
        self.metadata_first = metadata_first

    @property
    def catalog(self) -> Any:
        return self.world.catalog

    @property
    def space(self) -> Any:
        return self.world.files.namespace

    def moves_files(self, table: Table) -> bool:
        """Whether a rename moves the directory and a drop deletes it."""
        return table.kind == "MANAGED_TABLE"

    def deletes_files(self, table: Table) -> bool:
        return table.kind == "MANAGED_TABLE" or table.parameters.get("external.table.purge") == "true"

    # ---- statements

    def rename_partition(self, table: str, old: str, new: str) -> Calls:
        stored, partition = self._table(table), self._partition(table, old)
        if new in self.catalog.partitions[table]:
            raise HiveError("Partition already exists")
        values = tuple(part.partition("=")[2] for part in new.split("/"))
        target = names.join(stored.location, new) if self.moves_files(stored) else partition.location
        renamed = replace(partition, name=new, values=values, location=target)

        def alter() -> None:
            self._partition(table, old)
            del self.catalog.partitions[table][old]
            self.catalog.put_partition(table, renamed)

        yield from self._alter_and_move(alter, partition.location, target)

    def rename_table(self, old: str, new: str) -> Calls:
        stored = self._table(old)
        if new in self.catalog.tables:
            raise HiveError("new table already exists")
        source = stored.location
        target = names.join(names.parent(source), new.partition(".")[2]) if self.moves_files(stored) else source
        is_there = self.space.find(source) is not None
        moves_partitions = self.metadata_first or is_there

        def alter() -> None:
            table = self._table(old)
            kept: Dict[str, Partition] = self.catalog.partitions.pop(old)
            del self.catalog.tables[old]
            database, _, name = new.partition(".")
            self.catalog.put_table(replace(table, database=database, name=name, location=target))
            moved = {name: replace(one, location=_moved(one.location, source, target)) for name, one in kept.items()}
            self.catalog.partitions[new] = moved if moves_partitions else kept

        yield from self._alter_and_move(alter, source, target)

    def set_location(self, table: str, partition: str, location: str) -> Calls:
        """Set the location of a partition, or of a table ("")."""
        yield "alter"
        if partition:
            self.catalog.put_partition(table, replace(self._partition(table, partition), location=location))
        else:
            self.catalog.put_table(replace(self._table(table), location=location))

    def drop_partition(self, table: str, partition: str) -> Calls:
        location, deletes = self._partition(table, partition).location, self.deletes_files(self._table(table))
        yield "drop"
        self._partition(table, partition)
        self.catalog.drop_partition(table, partition)
        if deletes:
            yield from self._delete_directory(location)

    def drop_table(self, table: str) -> Calls:
        stored = self._table(table)
        yield "drop"
        self._table(table)
        self.catalog.drop_table(table)
        if self.deletes_files(stored):
            yield from self._delete_directory(stored.location)

    def drop_and_create(self, table: str) -> Calls:
        """DROP TABLE, CREATE TABLE at the same place, MSCK REPAIR TABLE."""
        stored, partitions = self._table(table), dict(self.catalog.partitions[table])
        yield from self.drop_table(table)
        yield "create"
        self.catalog.add_table(replace(stored, create_time=stored.create_time + 99))
        yield "repair" if stored.partitioned else "mkdirs"
        if not stored.partitioned:
            self.space.make_directory(stored.location)
        for partition in partitions.values():
            if table in self.catalog.tables and self.space.find(partition.location) is not None:
                self.catalog.add_partition(table, partition)

    def truncate(self, table: str, partition: str) -> Calls:
        """Hive reads the file status first; a missing directory ends the statement."""
        location = self._location(table, partition)
        yield "status"
        if self.space.find(location) is None:
            raise HiveError("FileNotFoundException")
        yield from self._delete_directory(location)
        yield "mkdirs"
        self.space.make_directory(location)

    def exchange_partition(self, source: str, partition: str, target: str) -> Calls:
        """Move from `source` to `target`: first the files, then the metastore, in one transaction."""
        moved = self._partition(source, partition)
        location = names.join(self._table(target).location, partition)
        yield "rename"
        self._rename(moved.location, location)
        self._partition(source, partition)
        self.catalog.add_partition(target, replace(moved, location=location))
        self.catalog.drop_partition(source, partition)

    def insert_overwrite(self, table: str, partition: str, content: Mapping[str, DataFile]) -> Calls:
        """Each old file goes to the trash separately, then the new files come one by one."""
        location = self._location(table, partition)
        yield "list"
        node = self.space.find(location)
        doomed = [names.join(location, name) for name in node.children if not names.is_hidden(name)] if node is not None else []
        for path in doomed:
            yield "trash"
            self._to_trash(path)
        yield "mkdirs"
        self.space.make_directory(location)
        for name, data in content.items():
            yield "rename"
            self.space.create(names.join(location, name), data, 100)

    # ---- the calls of statements

    def _alter_and_move(self, alter: Any, source: str, target: str) -> Calls:
        if source == target:
            yield "alter"
            alter()
        elif self.metadata_first:
            if self.space.find(target) is not None:
                raise HiveError("New location already exists")
            yield "alter"
            alter()
            yield "rename if it is there"
            if self.space.find(source) is not None:
                self._rename(source, target)
        else:
            yield "rename if it is there"
            if self.space.find(source) is not None:
                if self.space.find(target) is not None:
                    raise HiveError("New location already exists")
                self._rename(source, target)
            yield "alter"
            alter()

    def _rename(self, source: str, target: str) -> None:
        try:
            self.space.make_directory(names.parent(target))
            self.space.rename(source, target)
        except FilesError as error:
            raise HiveError(str(error)) from error

    def _delete_directory(self, location: str) -> Calls:
        """Move it to the trash; a missing directory is no error."""
        yield "to the trash"
        self._to_trash(location)

    def _to_trash(self, path: str) -> None:
        if self.space.find(path) is None:
            return
        target = wanted = names.join(TRASH, *parts(path))
        number = 0
        while self.space.find(target) is not None:
            number += 1
            target = f"{wanted}{number}"
        self._rename(path, target)

    def _table(self, full_name: str) -> Table:
        if full_name not in self.catalog.tables:
            raise HiveError("table not found")
        found: Table = self.catalog.tables[full_name]
        return found

    def _partition(self, full_name: str, name: str) -> Partition:
        self._table(full_name)
        if name not in self.catalog.partitions[full_name]:
            raise HiveError("partition not found")
        found: Partition = self.catalog.partitions[full_name][name]
        return found

    def _location(self, table: str, partition: str) -> str:
        return self._partition(table, partition).location if partition else self._table(table).location


def _moved(location: str, source: str, target: str) -> str:
    return target + location[len(source) :] if location.startswith(source + "/") else location
