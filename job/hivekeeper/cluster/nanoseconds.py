"""Builds the SQL that finds timestamps with nanoseconds, which before a rewrite only the data can show.

Pure. Spark keeps microseconds, and neither row counts nor digests computed with its own reader show the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Tuple

from hivekeeper.model import Form
from hivekeeper.quoting import identifier
from hivekeeper.schemas import PARQUET, OrcType, SchemaTextError, parse_orc, parse_parquet


@dataclass(frozen=True)
class NanosecondChecks:
    """The checks of one form. `schema` is the DDL of the columns to read; `columns` are (name, SQL true for a value with nanoseconds)."""

    schema: str = ""
    columns: Tuple[Tuple[str, str], ...] = ()
    refusal: str = ""


def find_checks(format: str, form: Form) -> NanosecondChecks:
    # Spark writes microseconds only.
    if form.writer == "spark":
        return NanosecondChecks()
    try:
        return _parquet_checks(form) if format == PARQUET else _orc_checks(form)
    except SchemaTextError as error:
        return NanosecondChecks(refusal=f"its schema is not understood ({error})")


def _parquet_checks(form: Form) -> NanosecondChecks:
    """Checks on INT96 read as twelve bytes: eight for the nanoseconds of the day, lowest byte first, then the day."""
    fields = parse_parquet(form.schema)
    if any(leaf.physical == "int96" for field in fields for leaf in field.leaves if leaf is not field):
        return NanosecondChecks(refusal=_nested("INT96 timestamps"))
    found = [field.name for field in fields if field.physical == "int96"]
    return _checks(found, "BINARY", [_int96_has_nanoseconds(identifier(name)) for name in found])


def _int96_has_nanoseconds(column: str) -> str:
    digits = ", ".join(f"substr(hex({column}), {start}, 2)" for start in range(15, 0, -2))
    return f"CAST(conv(concat({digits}), 16, 10) AS BIGINT) % 1000 <> 0"


def _orc_checks(form: Form) -> NanosecondChecks:
    """Checks on timestamps read as text, whose fraction has the digits in the file."""
    root, _ = parse_orc(form.schema)
    found = [name for name, kind in zip(root.names, root.children) if kind.kind == "timestamp"]
    if any(_has_timestamp(kind) for kind in root.children if kind.children):
        return NanosecondChecks(refusal=_nested("timestamps"))
    return _checks(found, "STRING", [f"length(regexp_extract({identifier(name)}, '[.]([0-9]*)', 1)) > 6" for name in found])


def _has_timestamp(kind: OrcType) -> bool:
    return any(inner.kind == "timestamp" for inner in kind.all)


def _nested(what: str) -> str:
    return f"it has {what} inside structs, lists or maps, whose nanoseconds cannot be checked"


def _checks(columns: Iterable[str], kind: str, checks: Iterable[str]) -> NanosecondChecks:
    found = list(columns)
    return NanosecondChecks(", ".join(f"{identifier(name)} {kind}" for name in found), tuple(zip(found, checks)))
