"""Find the tables that a command line selects.

Reads the metastore; changes nothing.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Union

from hivekeeper import names, quoting
from hivekeeper.errors import Refused
from hivekeeper.model import Selection, Table
from hivekeeper.plan import partition_filter
from hivekeeper.ports import Cluster, MetastoreRefused
from hivekeeper.reasons import Code, Reason
from hivekeeper.steps.observe import Wanted

WantedName = Callable[[str], bool]

NO_SUCH_TABLE = Reason(Code.NO_SUCH_TABLE, "no such table", "look at the spelling; SHOW TABLES lists them")


def find_tables(cluster: Cluster, selection: Selection, backup_prefix: str) -> Tuple[List[Table], Dict[str, Reason]]:
    """The selected tables in the order they were named; and the names of tables and databases that are not there, or refused, each with
    why: whoever owns one of several databases may drop it, or close it.
    """
    wanted: Dict[str, List[str]] = {}
    absent: Dict[str, Reason] = {}
    for name in selection.tables:
        database, table = name.lower().split(".")
        wanted.setdefault(database, []).append(table)
    for database in dict.fromkeys(name.lower() for name in selection.databases):
        try:
            inside = _tables_in(cluster, database, backup_prefix)
            wanted[database] = list(dict.fromkeys([*wanted.get(database, ()), *inside]))
        except (Refused, MetastoreRefused) as error:
            absent[database] = _why_absent(error)
    named = {name.lower() for name in selection.tables}
    tables: List[Table] = []
    for database, inside_names in wanted.items():
        chosen = [name for name in inside_names if not _is_excluded(f"{database}.{name}", selection.exclude)]
        try:
            found = cluster.metastore.tables(database, chosen)
        except MetastoreRefused as error:
            absent[database] = _why_absent(error)
            continue
        tables.extend(found[name] for name in chosen if name in found and (f"{database}.{name}" in named or not _is_backup(found[name])))
        absent.update({f"{database}.{name}": NO_SUCH_TABLE for name in chosen if name not in found})
    return tables, absent


def _why_absent(error: Union[Refused, MetastoreRefused]) -> Reason:
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
    return names.BACKUP_OF in table.parameters


def _is_excluded(full_name: str, patterns: Sequence[str]) -> bool:
    """A pattern with a dot is matched against database.table, one without against the table alone."""
    table = full_name.partition(".")[2]
    return any(fnmatchcase(full_name if "." in pattern else table, pattern.lower()) for pattern in patterns)


def wanted_in(table: Table, text: Optional[str]) -> Optional[Wanted]:
    """The --where filter for this table. Raises UsageError, and Refused for a table without partitions."""
    if text is None:
        return None
    if not table.partitioned:
        raise Refused(
            f"{table.full_name}: it has no partitions for --where to select",
            code=Code.NO_PARTITIONS,
            next="leave out --where for this table",
        )
    return partition_filter.parse(text, table.partition_columns).matches


def wanted_names_in(table: Table, text: Optional[str]) -> Optional[WantedName]:
    """As wanted_in, for the names of partitions in the log. Those of a former table with other partition columns are not wanted."""
    wanted = wanted_in(table, text)
    columns = [column.name.lower() for column in table.partition_columns]

    def wants(name: str) -> bool:
        values = quoting.partition_values(name)
        return wanted is not None and [column.lower() for column in values] == columns and wanted(tuple(values.values()))

    return wants if wanted else None
