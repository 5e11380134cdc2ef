"""Whether a table can be one that was renamed, perhaps altered after that, by the definition that a plan has of it.

Pure. Its second, its owner and the place of its directory must say so, too: anybody can make a table of any definition.
"""

from __future__ import annotations

from hivekeeper.model import Table

TRANSLATED = "TRANSLATED_TO_EXTERNAL"
_KINDS = ("MANAGED_TABLE", "EXTERNAL_TABLE")


def follows_its_name(table: Table) -> bool:
    """Whether Hive moves the table's directory when the table is renamed."""
    return table.kind == "MANAGED_TABLE" or table.parameters.get(TRANSLATED, "").lower() == "true"


def is_alike(one: Table, other: Table) -> bool:
    """Whether two definitions can be one table's under two names: a rename changes neither kind nor columns."""
    return (one.kind, one.columns, one.partition_columns) == (other.kind, other.columns, other.partition_columns)


def may_have_become(known: Table, table: Table) -> bool:
    """Whether this can be the known table after a rename and what is common after that: more columns, or made external or managed. Its
    files still have all columns that it had, in the same format.
    """
    if is_alike(known, table):
        return True
    is_format_kept = known.storage.input_format == table.storage.input_format
    is_kind_kept = known.kind == table.kind or (known.kind in _KINDS and table.kind in _KINDS)
    return (
        is_kind_kept and is_format_kept and known.partition_columns == table.partition_columns and set(known.columns) <= set(table.columns)
    )
