"""Builds the SQL text of the content digest from a Spark schema (as JSON): a hash of each row and sums over the hashes.

Pure. Plain xxhash64 over the columns does not detect moved NULLs, the shape of arrays or the sign of zero;
each term below closes one of these gaps, and the tests name them.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from hivekeeper.quoting import identifier

COUNT, HIGH, LOW = "__hivekeeper_n", "__hivekeeper_h", "__hivekeeper_l"

# One bit per column in a bigint, without the sign bit.
_BITS = 60
_PLAIN = frozenset(["boolean", "byte", "short", "integer", "long", "string", "binary", "date", "timestamp", "timestamp_ntz"])
_FLOATING = frozenset(["float", "double"])


class NoDigestError(Exception):
    """A column's type has no digest, so its content could not be proved."""


def row_hash(schema: Mapping[str, Any]) -> str:
    """The expression whose value changes with anything in a row. `schema` is `json.loads(df.schema.json())`."""
    terms: List[str] = []
    nulls: List[str] = []
    for field in schema["fields"]:
        column = identifier(field["name"])
        kind = field["type"]
        if isinstance(kind, Mapping):
            terms.append(_nested(column, kind, 0))
        else:
            terms += [_scalar(column, kind), *([_zero_sign(column)] if kind in _FLOATING else [])]
        nulls.append(column)
    return f"xxhash64({', '.join([*terms, *_null_bitmaps(nulls)])})"


def sums(hash_column: str) -> Dict[str, str]:
    """The aggregates of a digest, by name. Hashes are summed in two halves, because a sum of whole ones would overflow."""
    return {
        COUNT: "count(1)",
        HIGH: f"sum(shiftrightunsigned({hash_column}, 32))",
        LOW: f"sum({hash_column} & 4294967295L)",
    }


def _null_bitmaps(columns: List[str]) -> List[str]:
    groups = [columns[start : start + _BITS] for start in range(0, len(columns), _BITS)]
    return [" + ".join(f"IF(isnull({column}), {1 << bit}L, 0L)" for bit, column in enumerate(group)) for group in groups]


def _scalar(column: str, kind: str) -> str:
    if kind in _PLAIN or kind in _FLOATING or kind.startswith(("decimal(", "interval ")):
        return column
    raise NoDigestError(f"the column type {kind} has no digest")


def _zero_sign(value: str) -> str:
    return f"CASE WHEN {value} = 0 THEN CAST({value} AS STRING) END"


def _nested(value: str, kind: Any, depth: int) -> str:
    """A value inside arrays, maps and structs, wrapped so that its NULL and its place count."""
    if not isinstance(kind, Mapping):
        sign = f", 'z', {_zero_sign(value)}" if kind in _FLOATING else ""
        return f"named_struct('n', isnull({value}), 'v', {_scalar(value, kind)}{sign})"
    if kind["type"] == "struct":
        fields = [_nested(f"{value}.{identifier(field['name'])}", field["type"], depth) for field in kind["fields"]]
        named = ", ".join(f"'f{at}', {text}" for at, text in enumerate(fields))
        return f"named_struct('n', isnull({value}), {named})"
    if kind["type"] == "array":
        return _array(value, kind["elementType"], depth)
    if kind["type"] == "map":
        entry = {"type": "struct", "fields": [{"name": "key", "type": kind["keyType"]}, {"name": "value", "type": kind["valueType"]}]}
        return _array(f"map_entries({value})", entry, depth)
    raise NoDigestError(f"the column type {kind['type']} has no digest")


def _array(value: str, element: Any, depth: int) -> str:
    # size(NULL) is -1 or NULL, depending on spark.sql.legacy.sizeOfNull and ANSI mode.
    item = f"x{depth}"
    return f"named_struct('s', coalesce(size({value}), -1), 'v', transform({value}, {item} -> {_nested(item, element, depth + 1)}))"
