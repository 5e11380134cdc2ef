"""What the catalogue holds: its components, their columns, and the views over them. docs/catalogue.md describes them.

Pure. The shape follows Drill's Iceberg metastore: a row is a metadata unit of a table, found by catalogue, database, table, metadata key
and metadata identifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Tuple

# The first four make the key of a row; none of them is ever null.
KEY_COLUMNS = ("catalogue_name", "database_name", "table_name", "metadata_key")
KEYS = (*KEY_COLUMNS, "metadata_identifier")

# The only catalogue that a metastore has for its clients before Hive 3, and the default one since.
CATALOGUE = "hive"
# Key and identifier of what is said about a table as a whole.
GENERAL = "GENERAL_INFO"
# The segment of a table without partitions.
DEFAULT_SEGMENT = "DEFAULT_SEGMENT"

# The column of the parts of a component whose rows are replaced by key; a table's name chooses one. A commit rewrites what it touches.
BUCKET = "bucket"
BUCKETS = 16

_IDENTITY = {**dict.fromkeys(KEYS, "string"), "metadata_kind": "string", "run": "string"}


@dataclass(frozen=True, eq=False)
class Component:
    """One table of the catalogue; each exists once. Its rows lie in parts, one file each: `part` names the column that says which.

    Rows are replaced by the first columns of `found_by`: three of them find all rows of a table, all of them those of one partition. A new
    column comes last: the metastore compares the types of columns by their position.
    """

    name: str
    part: str
    columns: Mapping[str, str]
    found_by: Tuple[str, ...] = KEY_COLUMNS

    @property
    def table(self) -> str:
        """Its table in the catalogue's database."""
        return f"metadata_{self.name}"


TABLES = Component(
    "tables",
    BUCKET,
    {
        **_IDENTITY,
        "operation": "string",
        "seen_ms": "bigint",
        "table_kind": "string",
        "owner": "string",
        "file_format": "string",
        "place": "string",
        "column_list": "string",
        "partition_column_list": "string",
        "created_ms": "bigint",
        "partition_name": "string",
        "file_name": "string",
        "modified_ms": "bigint",
        "directory_id": "bigint",
        "partition_count": "bigint",
        "files": "bigint",
        "total_bytes": "bigint",
        "median_bytes": "double",
        "small_files": "bigint",
        "small_bytes": "bigint",
        "main_writer": "string",
        "objects": "bigint",
        "backup_objects": "bigint",
        "verdict": "string",
        "reason_code": "string",
        "reason": "string",
        "files_after": "bigint",
        "bytes_to_rewrite": "bigint",
        "row_count": "bigint",
        "judged_by": "string",
        "lengths": "string",
        "last_run": "string",
        "last_run_ms": "bigint",
        "last_operation": "string",
        "file_bytes": "bigint",
        "row_group_index": "bigint",
        "row_group_start": "bigint",
    },
    (*KEY_COLUMNS, "partition_name"),
)

VIEWS = Component(
    "views",
    BUCKET,
    {
        **_IDENTITY,
        "seen_ms": "bigint",
        "view_kind": "string",
        "owner": "string",
        "column_list": "string",
        "view_text": "string",
        "created_ms": "bigint",
    },
)

RUNS = Component(
    "runs",
    "day",
    {
        **_IDENTITY,
        "operation": "string",
        "started_ms": "bigint",
        "seconds": "double",
        "exit_code": "bigint",
        "user_name": "string",
        "host": "string",
        "application": "string",
        "hivekeeper_version": "string",
        "log_version": "bigint",
        "partition_name": "string",
        "outcome": "string",
        "reason_code": "string",
        "reason": "string",
        "files_before": "bigint",
        "bytes_before": "bigint",
        "files_after": "bigint",
        "bytes_after": "bigint",
        "row_count": "bigint",
        "gap_ms": "double",
        "discarded_files": "bigint",
        "discarded_bytes": "bigint",
        "files": "bigint",
        "total_bytes": "bigint",
        "small_files": "bigint",
    },
)

COMPONENTS = (TABLES, VIEWS, RUNS)


@dataclass(frozen=True)
class View:
    """A view over the newest state, in SQL that Hive, Spark, Impala and Trino share. {database} is the catalogue's."""

    name: str
    of: Component
    columns: Tuple[str, ...]
    condition: str
    # What a column is if it is not the component's own, and its type.
    computed: Mapping[str, Tuple[str, str]]

    @property
    def types(self) -> Mapping[str, str]:
        return {name: self.computed[name][1] if name in self.computed else self.of.columns[name] for name in self.columns}

    def text(self, database: str) -> str:
        """Names are quoted, because Impala reserves `files`."""
        shown = [f"{self.computed[name][0]} AS `{name}`" if name in self.computed else f"`m`.`{name}`" for name in self.columns]
        return f"SELECT {', '.join(shown)} FROM `{database}`.`{self.of.table}` `m` WHERE {self.condition}"


def _words(text: str) -> Tuple[str, ...]:
    return tuple(text.split())


def _kind(kind: str) -> str:
    return f"`m`.`metadata_kind` = '{kind}'"


_SAVED = {"files_saved": ("`m`.`files` - `m`.`files_after`", "bigint")}

VIEWS_OF_NOW = (
    View(
        "tables_now",
        TABLES,
        _words(
            """database_name table_name verdict files total_bytes median_bytes small_files small_bytes files_saved bytes_to_rewrite
            partition_count objects backup_objects main_writer owner table_kind file_format place column_list partition_column_list
            created_ms reason_code reason last_operation last_run last_run_ms seen_ms"""
        ),
        _kind("TABLE"),
        _SAVED,
    ),
    View(
        "partitions_now",
        TABLES,
        _words(
            """database_name table_name partition_name verdict files total_bytes median_bytes small_files small_bytes files_saved
            bytes_to_rewrite main_writer place modified_ms row_count reason_code reason seen_ms"""
        ),
        _kind("PARTITION"),
        _SAVED,
    ),
    View(
        "small_files",
        TABLES,
        _words("database_name table_name partition_name main_writer small_files small_bytes files total_bytes seen_ms"),
        f"{_kind('PARTITION')} AND `m`.`small_files` > 0",
        {},
    ),
    View(
        "savings_by_run",
        RUNS,
        _words(
            """day run database_name table_name operation files_before files_after files_saved bytes_before bytes_after discarded_files
            discarded_bytes seconds started_ms exit_code"""
        ),
        f"{_kind('RUN')} AND (`m`.`files_before` IS NOT NULL OR `m`.`discarded_files` > 0)",
        {"day": ("`m`.`day`", "string"), "files_saved": ("`m`.`files_before` - `m`.`files_after`", "bigint")},
    ),
)
