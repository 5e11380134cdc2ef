"""All tables of the metastore, and which of their partitions lie in a control directory. Reads only.

Before anything of a table that is gone is deleted: a table that was renamed or moved may be anywhere.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names, quoting
from hivekeeper.errors import Refused
from hivekeeper.model import Partition, Storage, Table
from hivekeeper.plan import orphans as rules
from hivekeeper.plan.orphans import Reading
from hivekeeper.plan.retention import NamedPlace
from hivekeeper.ports import Cluster, MetastoreRefused, MetastoreUnavailable
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.run_files import is_inside, may_be_inside
from hivekeeper.steps.observe import MOST_SERVERS, as_shown, count_servers

log = logging.getLogger(__name__)

# So many are read in one call.
TABLES_AT_ONCE = 1000
MOST_AGE_OF_TABLES_MS = 60_000
# Of a reading that only confirms a newer one: what was dropped since still counts as there.
MOST_AGE_OF_TABLES_BEFORE_MS = 3_600_000
# Like the locations of tables (`ports.Metastore.locations_below`): reading all partitions of a metastore may take many minutes.
MOST_AGE_OF_PARTITIONS_MS = 3_600_000
# Once all tables were read again because one was renamed since, that is not done for so many times as long as it took: a tenant may rename
# one all the time.
KEEP_READ_AGAIN = 10
# So often the partitions of tables that are renamed meanwhile are asked for.
MOST_ROUNDS = 5
# Stands for those of a database that may not be read, in messages: Hive 4 lets anybody call a table so.
ALL_TABLES = "*"
_MARKS = (names.BACKUP_OF, names.BACKUP_NAME, names.SPARK_PROVIDER)


@dataclass(frozen=True)
class PartitionInside:
    """A partition whose directory is in some control directory, or may be, because it is a pattern. `backup_of`: its table is the backup
    table of that one. `location` is without a server if not all could be asked for: then it counts as one on a foreign server.

    `name` is for messages, and others may have the same: Hive 4 allows `/` and `=` in the names of tables.
    """

    database: str
    name: str
    location: str
    backup_of: str


class _ByPlace:
    """Partitions by their directories, or the directory before a pattern. Somebody may give one table two million of them, in a control
    directory of its own: not all are looked at for each of hundreds of other control directories.
    """

    def __init__(self, partitions: Sequence[PartitionInside]) -> None:
        paths = [f"{_path_of(names.before_pattern(one.location))}/" for one in partitions]
        order = sorted(range(len(paths)), key=paths.__getitem__)
        self._paths, self._partitions = [paths[nth] for nth in order], [partitions[nth] for nth in order]
        # By database and text before the pattern. What one may find does not depend on what follows, so one of them stands for all.
        self._patterns: Dict[Tuple[str, str], Dict[Tuple[str, str], PartitionInside]] = {}
        for one in partitions:
            server = names.server_of(one.location)
            pattern = names.PATTERN.search(one.location, len(server))
            if pattern:
                alike = self._patterns.setdefault((one.database, one.location[len(server) : pattern.start()]), {})
                alike.setdefault((server, one.backup_of), one)

    def around(self, top: str, database: str) -> Iterator[PartitionInside]:
        """All that may show something below a directory (`_is_shown`), and little else: on any server, because a foreign one may be ours
        under another name.
        """
        path = _path_of(top)
        # "0" comes next after "/".
        yield from self._partitions[bisect_left(self._paths, f"{path}/") : bisect_left(self._paths, f"{path}0")]
        # Patterns that may lead there from above. Of a text that is no location the beginning may be that of the server's name.
        for begin in {text[:length] for text in (top, path) for length in range(len(text) + 1)}:
            yield from self._patterns.get((database, begin), {}).values()


@dataclass
class _Answers:
    """What the metastore has told of the partitions of tables. One that is not there under its name has no answer."""

    inside: List[PartitionInside] = field(default_factory=list)
    # By their ids (`table_id`) the tables whose partitions were read, or are too many; and those of which they are refused, or that fail.
    read: Set[str] = field(default_factory=set)
    refused: Dict[str, Tuple[Table, MetastoreUnavailable]] = field(default_factory=dict)


@dataclass
class Census:
    """What the metastore had when it was last asked; it is asked again when that is too long ago."""

    cluster: Cluster
    _tables: Reading = Reading(())
    _tables_ms: Optional[float] = None
    # Those of the reading before, in the opposite order.
    _before: Reading = Reading(())
    _before_ms: Optional[float] = None
    _step: int = 1
    # How many readings are still to come because of `expire`, and when it may be asked for more.
    _readings_again: int = 0
    _again_ms: float = -math.inf
    # Databases of which the metastore refuses the tables.
    _closed: Sequence[str] = ()
    _partitions: _ByPlace = field(default_factory=lambda: _ByPlace(()))
    _partitions_ms: Optional[float] = None
    # Tables that are, or whose partitions are, more than can be read, or refused; and those whose partitions let each request fail, or
    # that are renamed again and again.
    _unread: List[Table] = field(default_factory=list)
    _failing: Sequence[Table] = ()
    # Why no partition of any table can be read, which asking again soon would not change.
    _refusal: Optional[MetastoreUnavailable] = None

    def tables(self) -> Sequence[Table]:
        """The tables of all databases without what takes room, their locations qualified; at most a minute old."""
        return self._newest().tables

    def why_perhaps_there(self, ids: Collection[str]) -> str:
        """Why one of these tables may still be there (`plan.orphans`), "" if none is.

        One that is renamed from a database that is read late to one that was read early, or within one after its names were read, is in
        no answer. So before none counts as there, two readings must agree, the second in the opposite order. Which came first is all one,
        and an older one only names more: each reading serves with the next one, too, else a slow metastore would do nothing but answer.
        """
        why = rules.why_perhaps_there(ids, [self._newest()])
        if not why and self._is_old(self._before_ms, MOST_AGE_OF_TABLES_BEFORE_MS):
            self._read_all_tables()
            why = rules.why_perhaps_there(ids, [self._tables])
        return why or rules.why_perhaps_there(ids, [self._before])

    def tables_twice(self) -> Sequence[Table]:
        """The tables of two readings, as above: what is renamed while all are read is in one of them, if not in both."""
        return tuple(rules.tables_of(self.readings()))

    def readings(self) -> Tuple[Reading, Reading]:
        """These two, the newer one first."""
        if self._is_old(self._tables_ms, MOST_AGE_OF_TABLES_MS) or self._is_old(self._before_ms, MOST_AGE_OF_TABLES_BEFORE_MS):
            self._read_all_tables()
        if self._is_old(self._before_ms, MOST_AGE_OF_TABLES_BEFORE_MS):
            self._read_all_tables()
        return self._tables, self._before

    def _newest(self) -> Reading:
        if self._is_old(self._tables_ms, MOST_AGE_OF_TABLES_MS):
            self._read_all_tables()
        return self._tables

    def _read_all_tables(self) -> None:
        began_ms = self.cluster.clock.monotonic_ms()
        try:
            found, closed = self._read_tables(self.cluster.metastore.databases()[:: self._step])
        finally:
            self._note_reading(began_ms)
        self._before, self._before_ms = self._tables, self._tables_ms
        self._tables, self._closed, self._tables_ms = Reading(found), closed, self.cluster.clock.monotonic_ms()
        self._step = -self._step

    def inside(self, top: str, own: Iterable[str], database: str) -> List[NamedPlace]:
        """The directories of all partitions and tables below a directory; see below."""
        others = sorted(own)
        return [*self.partitions_inside(top, others, database), *self.tables_inside(top, others)]

    def tables_inside(self, top: str, own: Sequence[str]) -> List[NamedPlace]:
        """The directories of all tables below a directory, of which a table may have several; but not of backup tables of `own`. Those of
        a database that may not be read may be anywhere.
        """
        near = chain.from_iterable(reading.below(top) for reading in self.readings())
        others = (table for table in near if table.backup_of not in own)
        shown = ((table.full_name, as_shown(self.cluster.files, place, top)) for table in others for place in table.places)
        found = [(name, place) for name, place in shown if is_inside(place, top)]
        return [*found, *((f"{database}.{ALL_TABLES}", top) for database in self._closed)]

    def partitions_inside(self, top: str, own: Sequence[str], database: str) -> List[NamedPlace]:
        """The directories of all partitions below a directory, named `database.table/partition`; but not of backup tables of `own`.

        A table of the same database that cannot be read may lie, or have its partitions, all over it. One of another database, of which the
        metastore refuses the partitions, is not asked to: else anybody could keep everybody's old files for ever. One at which it fails is:
        that may be no more than a bad hour.
        """
        if self._is_old(self._partitions_ms, MOST_AGE_OF_PARTITIONS_MS):
            self._read_partitions()
            self._partitions_ms = self.cluster.clock.monotonic_ms()
        if self._refusal is not None:
            raise self._refusal
        others = (one for one in self._partitions.around(top, database) if one.backup_of not in own)
        shown = ((one, as_shown(self.cluster.files, one.location, top)) for one in others)
        found = [(one.name, place) for one, place in shown if _is_shown(place, top, is_of_database=one.database == database)]
        near = (table for table in self._unread if table.database == database and table.backup_of not in own)
        unread = dict.fromkeys(table.full_name for table in (*near, *self._failing))
        return [*found, *((f"{name}/(which cannot be read)", top) for name in unread)]

    def expire(self) -> bool:
        """Whether whoever asks next gets tables that were read since, twice: not if they were read again so lately that a command would do
        little else.
        """
        if self.cluster.clock.monotonic_ms() < self._again_ms:
            return False
        self._tables_ms = self._before_ms = None
        self._readings_again = 2
        return True

    def _note_reading(self, began_ms: float) -> None:
        if self._readings_again:
            ended_ms = self.cluster.clock.monotonic_ms()
            self._readings_again -= 1
            self._again_ms = max(self._again_ms, ended_ms) + KEEP_READ_AGAIN * (ended_ms - began_ms)

    def _is_old(self, read_ms: Optional[float], most_ms: int) -> bool:
        return read_ms is None or self.cluster.clock.monotonic_ms() - read_ms > most_ms

    def _read_tables(self, databases: Iterable[str]) -> Tuple[Sequence[Table], Sequence[str]]:
        """The tables of these databases, and those that are closed. Raises MetastoreRefused if that is all that the metastore does: whoever
        owns a database can close it, but not those of others.
        """
        found: List[Table] = []
        closed: Dict[str, MetastoreRefused] = {}
        for database in databases:
            try:
                found += self._read_database(database)
            except MetastoreRefused as refusal:
                log.warning("step=read-tables refused database=%s reason=%r", quoting.log_field(database), str(refusal))
                closed[database] = refusal
        if closed and not found:
            raise next(iter(closed.values()))
        found += (Table.without_definition(database, ALL_TABLES, str(refusal)) for database, refusal in closed.items())
        return found, tuple(closed)

    def _read_database(self, database: str) -> List[Table]:
        try:
            inside = self.cluster.metastore.table_names(database)
        except KeyError:
            # It was dropped since it was listed.
            return []
        portions = (inside[start : start + TABLES_AT_ONCE] for start in range(0, len(inside), TABLES_AT_ONCE))
        return [table for some in portions for table in self._read_some(database, some)]

    def _read_some(self, database: str, wanted: Sequence[str]) -> Iterable[Table]:
        found = self._read_slim(database, wanted)
        # What is only too much with others is asked for alone: else these could hide it.
        for name in [name for name, table in found.items() if table.unreadable]:
            found.update(self._read_slim(database, [name]))
        return found.values()

    def _read_slim(self, database: str, wanted: Sequence[str]) -> Dict[str, Table]:
        """No more definitions are held in full than one call tells."""
        return {name: _slim(self.cluster, table) for name, table in self.cluster.metastore.tables(database, wanted).items()}

    def _read_partitions(self) -> None:
        """Read the partitions of all tables. A refusal of them all is kept too: not every leftover waits minutes for it."""
        answers = _Answers()
        self._unread, self._failing, self._refusal = [], (), None
        unsettled = self._ask_until_settled(answers)
        refused = list(answers.refused.values())
        if refused:
            first, why = refused[0]
            if not answers.read:
                self._refusal = why
                return
            log.warning("step=read-partitions refused tables=%d table=%s reason=%r", len(refused), first.log_field, str(why))
        if unsettled:
            log.warning("step=read-partitions renamed tables=%d table=%s", len(unsettled), unsettled[0].log_field)
        self._unread += (table for table in rules.tables_of((self._tables, self._before)) if table.unreadable)
        self._unread += (table for table, _ in refused)
        self._failing = [*(table for table, error in refused if not isinstance(error, MetastoreRefused)), *unsettled]
        self._partitions = _ByPlace(self._qualified(answers.inside))

    def _ask_until_settled(self, answers: _Answers) -> Sequence[Table]:
        """Ask for the partitions of all tables. Returns the tables that were renamed again and again, whose partitions may be unknown.

        One that is renamed before its turn is in no answer, or the answer is about another one that has its name by then. So an answer
        counts only if the same table has that name before and after; else the table is looked for under another name. Not for those that
        were created since: partitions may be known so late anyway.
        """
        settled: Set[str] = set()
        times: Set[int] = set()
        wanted = _partitioned(self.tables_twice())
        for _ in range(MOST_ROUNDS):
            self._ask_all(wanted.values(), answers)
            if not wanted or (answers.refused and not answers.read):
                # There is none left, or all are refused.
                break
            self._read_all_tables()
            self._read_all_tables()
            there = _partitioned(rules.tables_of((self._tables, self._before)))
            answers.read &= there.keys()
            settled |= answers.read | (there.keys() & answers.refused.keys())
            times |= {table.create_time for id, table in wanted.items() if id not in settled}
            wanted = {id: table for id, table in there.items() if table.create_time in times and id not in settled}
        return list(wanted.values())

    def _ask_all(self, tables: Iterable[Table], answers: _Answers) -> None:
        """Ask for the partitions of these tables. Raises MetastoreUnavailable if the metastore does not answer at all."""
        refused = self._ask_once(tables, answers)
        # What refused them may have passed meanwhile. What concerns one table alone, such as its rights, stays.
        answers.refused.update(self._ask_once([table for table, _ in refused.values()], answers))

    def _ask_once(self, tables: Iterable[Table], answers: _Answers) -> Dict[str, Tuple[Table, MetastoreUnavailable]]:
        refused: Dict[str, Tuple[Table, MetastoreUnavailable]] = {}
        for table in tables:
            id = table_id(table)
            try:
                partitions = self._partitions_of(table)
            except Refused:
                self._unread.append(table)
                answers.read.add(id)
            except MetastoreRefused as refusal:
                refused[id] = table, refusal
            except MetastoreUnavailable as failure:
                # The owner of a table may give it partitions that let each request for them fail. One that asks for none of them tells.
                self.cluster.metastore.databases()
                refused[id] = table, failure
            else:
                if partitions is not None:
                    answers.inside += _in_control(table, partitions)
                    answers.read.add(id)
        return refused

    def _qualified(self, found: Sequence[PartitionInside]) -> List[PartitionInside]:
        qualify = self.cluster.files.qualify
        if count_servers(one.location for one in found) > MOST_SERVERS:
            # To look for each name would take all night.
            return [replace(one, location=_path_of(qualify(_path_of(one.location)))) for one in found]
        return [replace(one, location=qualify(one.location)) for one in found]

    def _partitions_of(self, table: Table) -> Optional[Tuple[Partition, ...]]:
        """Its partitions; None if it is not there under its name: the metastore refuses then, or knows none."""
        try:
            found = self.cluster.metastore.partitions(table)
        except MetastoreRefused:
            if self._is_there(table):
                raise
            return None
        return found if found or self._is_there(table) else None

    def _is_there(self, table: Table) -> bool:
        found = self.cluster.metastore.tables(table.database, [table.name]).get(table.name)
        return found is not None and table_id(found) == table_id(table)


@dataclass
class _OfCommand:
    census: Optional[Census] = None


def shared_census(cluster: Cluster) -> Census:
    """The one of a command for all of its tables. It reads nothing before it is asked."""
    known = cluster.memory.of(_OfCommand)
    known.census = known.census or Census(cluster)
    return known.census


def _partitioned(tables: Iterable[Table]) -> Mapping[str, Table]:
    return {table_id(table): table for table in tables if table.partitioned}


def _in_control(table: Table, partitions: Iterable[Partition]) -> Iterator[PartitionInside]:
    for one in partitions:
        # Most locations have no such name in them and are no pattern that may find one, and need not be qualified.
        if names.CONTROL in one.location or names.before_pattern(one.location) != one.location:
            yield PartitionInside(table.database, f"{table.full_name}/{one.name}", one.location, table.backup_of)


def _is_shown(place: str, top: str, is_of_database: bool) -> bool:
    """Whether a partition shows something below a directory. A pattern that may lead there from above counts like a table that cannot be
    read.
    """
    return may_be_inside(place, top) if is_of_database else is_inside(names.before_pattern(place), top)


def _path_of(location: str) -> str:
    return location[len(names.server_of(location)) :]


def _slim(cluster: Cluster, table: Table) -> Table:
    """What is asked of a table. Of a mark that is longer than any table's name its beginning, which names none."""
    marks = {key: table.parameters[key][: names.MOST_NAME] for key in _MARKS if key in table.parameters}
    paths = {key: cluster.files.qualify(path) for key, path in table.spark_paths.items()}
    location = cluster.files.qualify(table.location) if table.location else ""
    return replace(table.bare(), location=location, parameters=marks, storage=Storage("", "", "", paths))
