"""history --orphans: what is left in a database of tables, backups and runs that are not there any more. Writes nothing."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import AbstractSet, Callable, Dict, Iterator, List, Mapping, Sequence, Set

from hivekeeper import names
from hivekeeper.commands import per_table, selection
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import find_records
from hivekeeper.errors import HivekeeperError
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan.orphans import Orphan
from hivekeeper.ports import Cluster, FilesError, MetastoreRefused, MetastoreUnavailable, NoPermission
from hivekeeper.reasons import Reason
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.steps import orphans

log = logging.getLogger(__name__)


# What is done about a table that is at its place, and its control directory.
AtHome = Callable[[Table, ControlPaths], None]


def show_orphans(context: Context, at_home: AtHome = lambda _table, _control: None) -> CommandResult:
    """What is left in each selected database of tables, backups and runs that are not there any more."""
    cluster = context.cluster
    started, began = cluster.clock.now_ms(), cluster.clock.monotonic_ms()
    homes = cluster.metastore.database_locations()
    databases = [name.lower() for name in dict.fromkeys(context.selection.databases)]
    looked = orphans.Looked()
    outcomes = [outcome for database in databases for outcome in _orphans_of(_Search(context, database, homes, at_home, looked))]
    seconds = (cluster.clock.monotonic_ms() - began) / 1000
    return CommandResult(
        "history", context.run, started, seconds, context.selection.named, tables=tuple(outcomes), signal=cluster.stopping.signal
    )


def _orphans_of(search: _Search) -> List[TableOutcome]:
    """The outcome of a database, and of each table on which an unforeseen error has shown."""
    database = search.database
    try:
        why = per_table.find_bug(search.context.cluster, database, search.look)
    except HivekeeperError as error:
        why = error.reason
    except NoPermission as error:
        why = Reason(error.code, f"{database}: {error}", "run as a user who may list the database's directory", "nothing was changed")
    except (FilesError, MetastoreUnavailable) as error:
        why = Reason(error.code, f"{database}: {error}", "fix the cause, then run again", "nothing was changed")
    # What was found before it failed is told beside the reason.
    found = tuple(search.found) if search.found or not why else None
    of_database = TableOutcome(database, problem=why, orphans=found)
    return [of_database, *search.failed]


@dataclass
class _Search:
    """Finds what is left in one database. `looked`: of those before it."""

    context: Context
    database: str
    homes: Mapping[str, str]
    at_home: AtHome
    looked: orphans.Looked
    found: List[Orphan] = field(default_factory=list)
    failed: List[TableOutcome] = field(default_factory=list)

    def look(self) -> None:
        cluster, database = self.context.cluster, self.database
        inside = selection.names_of_tables(cluster, database)
        there = {f"{database}.{name}" for name in inside}
        tables: List[Table] = []
        for some in self._read(inside):
            there |= _find_there(cluster, {table.parameters.get(names.BACKUP_OF, "") for table in some} - there)
            self.found += orphans.find_backup_tables(some, there.__contains__)
            tables += map(orphans.slim, some)
        if database in self.homes and not cluster.files.is_foreign(self.homes[database]):
            home = self.homes[database]
            self.found += orphans.find_records(cluster, database, home, tables, self.context.settings_for, self.looked)
        # Read once more: their definitions, as large as others have made them, are not kept.
        for table in chain.from_iterable(self._read(inside)):
            why = per_table.find_bug(cluster, table.full_name, partial(self._look_in, table))
            if why:
                self.failed.append(TableOutcome(table.full_name, problem=why))

    def _read(self, inside: Sequence[str]) -> Iterator[List[Table]]:
        """These tables of the database, a portion at a time, their locations qualified."""
        cluster = self.context.cluster
        for start in range(0, len(inside), selection.TABLES_AT_ONCE):
            told = cluster.metastore.tables(self.database, inside[start : start + selection.TABLES_AT_ONCE]).values()
            yield [replace(table, location=cluster.files.qualify(table.location)) if table.location else table for table in told]

    def _look_in(self, table: Table) -> None:
        self.found += _orphans_in(self.context, table, self.at_home)


def _find_there(cluster: Cluster, marks: AbstractSet[str]) -> Set[str]:
    """Those of these marks of which `exists` is true. The names of all tables in their databases tell of most that are: whoever has
    thousands of tables may mark each of them with one whose definition takes long to read.
    """
    by_database: Dict[str, List[str]] = {}
    for mark in filter(_is_name, marks):
        by_database.setdefault(mark.partition(".")[0].lower(), []).append(mark)
    there: Set[str] = set()
    for database, some in by_database.items():
        with suppress(KeyError, MetastoreRefused):
            inside = frozenset(cluster.metastore.table_names(database))
            there.update(mark for mark in some if mark.partition(".")[2].lower() in inside)
    return {mark for mark in marks if mark in there or exists(cluster, mark)}


def exists(cluster: Cluster, name: str) -> bool:
    """Whether the metastore has a table of this name now. So counts one of which it tells nothing, and a text that is no name: anybody may
    mark a table with either.
    """
    if not _is_name(name):
        return True
    database, _, base = name.partition(".")
    try:
        return base in cluster.metastore.tables(database, [base])
    except MetastoreRefused:
        return True


def _is_name(mark: str) -> bool:
    return names.TABLE.fullmatch(mark) is not None and len(mark) <= names.MOST_NAME


def _orphans_in(context: Context, table: Table, at_home: AtHome) -> List[Orphan]:
    """Of one table; none of one that is not fit, whose server must not be called, or whose records cannot be read: the commands on it say
    why.
    """
    cluster = context.cluster
    if table.backup_of or cluster.files.is_foreign(table.location):
        return []
    try:
        table, control = find_records(cluster, table, context.settings_for(table.full_name))
        if control is None:
            return []
        at_home(table, control)
        return list(orphans.find_in_table(cluster, table, control))
    except (HivekeeperError, FilesError, MetastoreRefused) as error:
        log.warning("table=%s step=find-orphans reason=%r", table.log_field, str(error))
        return []
    finally:
        cluster.log_entries.clear()
