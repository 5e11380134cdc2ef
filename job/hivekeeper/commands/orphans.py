"""history --orphans: what is left in a database of tables, backups and runs that are not there any more. Writes nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Callable, Iterator, List, Mapping, Sequence

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
    of_database = TableOutcome(database, problem=why) if why else TableOutcome(database, orphans=tuple(search.found))
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
        known = {f"{database}.{name}" for name in inside}
        tables: List[Table] = []
        for some in self._read(inside):
            self.found += orphans.find_backup_tables(some, lambda name: name in known or exists(cluster, name))
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


def exists(cluster: Cluster, name: str) -> bool:
    """Whether the metastore has a table of this name now. So counts one of which it tells nothing, and a text that is no name: anybody may
    mark a table with either.
    """
    if not names.TABLE.fullmatch(name) or len(name) > names.MOST_NAME:
        return True
    database, _, base = name.partition(".")
    try:
        return base in cluster.metastore.tables(database, [base])
    except MetastoreRefused:
        return True


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
