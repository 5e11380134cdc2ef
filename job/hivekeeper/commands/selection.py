"""Find the tables that a command line selects.

Reads the metastore; changes nothing.
"""

from __future__ import annotations

import logging
import random
from fnmatch import fnmatchcase
from typing import Callable, Container, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from hivekeeper import names, quoting
from hivekeeper.errors import Refused
from hivekeeper.model import Selection, Table
from hivekeeper.plan import partition_filter
from hivekeeper.ports import Cluster, MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code, Reason
from hivekeeper.steps.fitness import MOST_AGE_MS
from hivekeeper.steps.observe import Wanted

log = logging.getLogger(__name__)

WantedName = Callable[[str], bool]

# Tables whose definitions are read, and held, together: what each takes besides its characters is counted of large ones only.
TABLES_AT_ONCE = 500

NO_SUCH_TABLE = Reason(Code.NO_SUCH_TABLE, "no such table", "look at the spelling; SHOW TABLES lists them")
NO_NAME = Reason(Code.NO_SUCH_TABLE, "not a table's name", "write DATABASE.TABLE, with one dot and no catalog, or leave it out of the list")


class SelectedTables:
    """The selected tables in the order they were named, or, with a `seed`, in an order of its own: those that were named come first, as
    named, then the databases in any order, and in each its other tables. Definitions are read when the first of some tables of a database
    is taken: those of all may take more than the memory there is. Whose turn comes more than some seconds later is read again: the tables
    before it may have taken hours.

    `absent`: the names of tables and databases that are not there, or refused, each with why: whoever owns one of several databases may
    drop it, or close it. Complete when all tables were taken.
    """

    def __init__(self, cluster: Cluster, selection: Selection, backup_prefix: str, seed: Optional[str] = None) -> None:
        self.absent: Dict[str, Reason] = {}
        self._cluster, self._exclude = cluster, selection.exclude
        self._named = {name.lower() for name in selection.tables}
        self._wanted: Dict[str, List[str]] = {}
        for name in selection.tables:
            if not names.is_table_name(name):
                self.absent[name] = NO_NAME
                continue
            database, table = name.lower().split(".")
            self._wanted.setdefault(database, []).append(table)
        for database in dict.fromkeys(name.lower() for name in selection.databases):
            try:
                inside = _tables_in(cluster, database, backup_prefix)
                self._wanted[database] = list(dict.fromkeys([*self._wanted.get(database, ()), *inside]))
            except (Refused, MetastoreRefused) as error:
                self.absent[database] = _why_absent(error)
        self._turns = list(self._wanted.items()) if seed is None else _mix(self._wanted, self._named, random.Random(seed))

    def places(self) -> Dict[str, int]:
        """The place of each table in an answer, whatever the order of their turns: by database as named, in it the named ones first."""
        told = (f"{database}.{name}" for database, inside in self._wanted.items() for name in inside)
        return {name: place for place, name in enumerate(told)}

    def __iter__(self) -> Iterator[Table]:
        """Raises an error of the metastore only before the first table: after that the database's tables are absent, because what was done
        on others must be told.
        """
        is_begun = False
        for database, inside in self._turns:
            chosen = [name for name in inside if not is_excluded(f"{database}.{name}", self._exclude)]
            for start in range(0, len(chosen) or 1, TABLES_AT_ONCE):
                some, read_ms = chosen[start : start + TABLES_AT_ONCE], self._cluster.clock.monotonic_ms()
                try:
                    found = dict(self._cluster.metastore.tables(database, some))
                except MetastoreRefused as error:
                    self.absent[database] = _why_absent(error)
                    break
                except Exception as error:
                    if not is_begun:
                        raise
                    left = (f"{database}.{name}" for name in chosen[start:])
                    self.absent.update(dict.fromkeys(left, self._why_unread(database, error)))
                    break
                self.absent.update({f"{database}.{name}": NO_SUCH_TABLE for name in some if name not in found})
                for name in some:
                    try:
                        table = self._as_at_its_turn(found.pop(name, None), read_ms)
                    except Exception as error:
                        if not is_begun and not isinstance(error, MetastoreRefused):
                            raise
                        self.absent[f"{database}.{name}"] = self._why_unread(database, error)
                        continue
                    if table is not None and (f"{database}.{name}" in self._named or not _is_backup(table)):
                        is_begun = True
                        yield table

    def _as_at_its_turn(self, table: Optional[Table], read_ms: float) -> Optional[Table]:
        """Read again if it is too old by now: somebody may have dropped the table, or created it again. So is what is only too much with
        others: else these could cost it its definition.
        """
        found, is_due, clock = table, bool(table and table.unreadable), self._cluster.clock
        # After a stop none is begun any more; a pause ends first, and may take hours, also one that began while the metastore was asked.
        while found and not self._cluster.stopping.why() and (is_due or clock.monotonic_ms() - read_ms > MOST_AGE_MS):
            found = self._cluster.metastore.tables(found.database, [found.name]).get(found.name)
            read_ms, is_due = clock.monotonic_ms(), False
        if table and not found:
            self.absent[table.full_name] = NO_SUCH_TABLE
        return found

    def _why_unread(self, database: str, error: Exception) -> Reason:
        lost = self._cluster.lost()
        if lost:
            return Reason(Code.SPARK_ENDED, f"not begun: {lost}", "fix the cause, then run again", "untouched by this run")
        if isinstance(error, MetastoreUnavailable):
            return _why_absent(error)
        log.exception("database=%s step=read-definitions failed", quoting.log_field(database))
        return Reason(Code.BUG, f"unexpected error: {error!r}", "report the stack in the log", "untouched by this run")


def _mix(wanted: Mapping[str, Sequence[str]], named: Container[str], order: random.Random) -> List[Tuple[str, List[str]]]:
    """Turns in which no table and no database always comes behind the same others; the named ones keep theirs. The tables of a
    database stay together, since their definitions are held together.
    """
    first: List[Tuple[str, List[str]]] = []
    others: List[Tuple[str, List[str]]] = []
    for database, inside in wanted.items():
        first.append((database, [name for name in inside if f"{database}.{name}" in named]))
        rest = [name for name in inside if f"{database}.{name}" not in named]
        order.shuffle(rest)
        others.append((database, rest))
    order.shuffle(others)
    return [turn for turn in (*first, *others) if turn[1]]


def _why_absent(error: Union[Refused, MetastoreUnavailable]) -> Reason:
    return error.reason if isinstance(error, Refused) else Reason(error.code, str(error), "fix the cause, then run again")


def _tables_in(cluster: Cluster, database: str, backup_prefix: str) -> List[str]:
    return sorted(name for name in names_of_tables(cluster, database) if not names.is_backup(name, backup_prefix))


def names_of_tables(cluster: Cluster, database: str) -> Tuple[str, ...]:
    """All of a database, backup tables too. Raises Refused if there is no such database."""
    try:
        return cluster.metastore.table_names(database)
    except KeyError as error:
        raise Refused(
            f"the database {database} does not exist", code=Code.NO_SUCH_DATABASE, next="look at the spelling; SHOW DATABASES lists them"
        ) from error


def _is_backup(table: Table) -> bool:
    return bool(table.backup_of)


def is_excluded(full_name: str, patterns: Sequence[str]) -> bool:
    """A pattern with a dot is matched against database.table, one without against the table alone. Hive 4 allows signs of patterns in
    names, so each also stands for itself.
    """
    table = full_name.partition(".")[2]
    asked = [(full_name if "." in pattern else table, pattern.lower()) for pattern in patterns]
    return any(name == pattern or fnmatchcase(name, pattern) for name, pattern in asked)


def refuse_where(table: Table, selected: Selection) -> Optional[Reason]:
    """Why --where cannot be about a table. One that was not named is no reason to say that the command line is wrong: its owner may have
    chosen its columns. Raises UsageError.
    """
    if selected.where is None:
        return None
    if not table.partitioned:
        return Reason(Code.NO_PARTITIONS, "it has no partitions for --where to select", "leave out --where for this table")
    try:
        partition_filter.parse(selected.where, table.partition_columns)
    except partition_filter.OtherColumns as error:
        if selected.names(table.full_name):
            raise
        return Reason(Code.NO_PARTITIONS, f"it has no such partitions for --where to select: {error}", error.reason.next)
    return None


def wanted_in(table: Table, selected: Selection) -> Optional[Wanted]:
    """The --where filter for this table. Raises UsageError, and Refused for a table that it cannot be about."""
    reason = refuse_where(table, selected)
    if reason:
        raise Refused(f"{table.full_name}: {reason.what}", code=reason.code, next=reason.next)
    if selected.where is None:
        return None
    return partition_filter.parse(selected.where, table.partition_columns).matches


def wanted_names_in(table: Table, selected: Selection) -> Optional[WantedName]:
    """As wanted_in, for the names of partitions in the log. Those of a former table with other partition columns are not wanted."""
    wanted = wanted_in(table, selected)
    columns = [column.name.lower() for column in table.partition_columns]

    def wants(name: str) -> bool:
        values = quoting.partition_values(name)
        return wanted is not None and [column.lower() for column in values] == columns and wanted(tuple(values.values()))

    return wants if wanted else None
