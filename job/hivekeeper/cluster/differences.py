"""Compares two sets of rows with Spark jobs: the number of surplus rows on each side, the columns that differ, and examples.

It decides nothing and writes nothing; the rows are data frames, and only the examples leave the executors.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hivekeeper import names
from hivekeeper.cluster import digest
from hivekeeper.model import Differences
from hivekeeper.ports import RowsError
from hivekeeper.quoting import identifier, literal

_SIDE, _HASH = f"{names.UNIT_COLUMN}_side", f"{names.UNIT_COLUMN}_hash"
_ONE, _OTHER = "one", "other"
# The characters of an example in all its columns together, which leave the executors, and of a value however many columns there are.
MOST_SHOWN, LEAST_SHOWN = 1_000_000, 20
# NULL fields are omitted, like fields missing from a file. Spark's default format has only milliseconds.
_JSON = {
    "ignoreNullFields": "true",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}

Example = Mapping[str, Optional[str]]


class Side(NamedTuple):
    """The rows of one side, a frame per form, and their number according to the footers."""

    frames: Sequence[DataFrame]
    row_count: int


def find_differences(one: Side, other: Side, limit: int) -> Differences:
    """The differences between two sides. Rows are equal if their hashes are; a surplus row is shown once.

    A column missing from a frame is NULL in its rows. A column whose type is not the same in all frames is compared as
    text: 5 equals 5 as int and bigint, but 1.5 as decimal(10,2) and decimal(10,4) differs.
    """
    rows = _unite(one.frames, other.frames)
    columns: List[Dict[str, Any]] = [field for field in _fields(rows) if field["name"] != _SIDE]
    hashed = rows.withColumn(_HASH, F.expr(digest.row_hash({"fields": columns})))
    counts = hashed.groupBy(_HASH).agg(_count(_ONE), _count(_OTHER))
    more_in_one, more_in_other = _count_surplus(counts, one.row_count, other.row_count)
    if not (more_in_one or more_in_other):
        return Differences(0, 0)
    differing = _differing_columns(rows, columns)
    of_one, of_other = _surplus_hashes(counts, limit)
    texts = _texts(hashed, columns, [*of_one, *of_other])
    return Differences(
        more_in_one, more_in_other, differing, tuple(texts[found] for found in of_one), tuple(texts[found] for found in of_other)
    )


def _unite(one: Sequence[DataFrame], other: Sequence[DataFrame]) -> DataFrame:
    """All rows, with the columns of all frames and the name of the side."""
    mixed = _columns_of_many_types([*one, *other])
    frames = [_place(frame, _ONE, mixed) for frame in one] + [_place(frame, _OTHER, mixed) for frame in other]
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)


def _place(frame: DataFrame, side: str, mixed: Set[str]) -> DataFrame:
    columns = [(field["name"], _text(field) if field["name"] in mixed else identifier(field["name"])) for field in _fields(frame)]
    return frame.select(*(F.expr(text).alias(name) for name, text in columns), F.lit(side).alias(_SIDE))


def _columns_of_many_types(frames: Sequence[DataFrame]) -> Set[str]:
    types: Dict[str, List[Any]] = {}
    for frame in frames:
        for field in _fields(frame):
            types.setdefault(field["name"], []).append(field["type"])
    return {name for name, found in types.items() if any(kind != found[0] for kind in found)}


def _count_surplus(counts: DataFrame, promised_in_one: int, promised_in_other: int) -> Tuple[int, int]:
    """The number of surplus rows of each side. Raises RowsError if rows were not read, which would otherwise pass as equal."""
    (found,) = counts.selectExpr(
        f"sum({_ONE})", f"sum({_OTHER})", f"sum(greatest(0L, {_ONE} - {_OTHER}))", f"sum(greatest(0L, {_OTHER} - {_ONE}))"
    ).collect()
    in_one, in_other, more_in_one, more_in_other = (number or 0 for number in found)
    for read, promised in ((in_one, promised_in_one), (in_other, promised_in_other)):
        if read != promised:
            raise RowsError(f"{promised} rows in the files' footers, {read} were read")
    return more_in_one, more_in_other


def _differing_columns(rows: DataFrame, columns: Sequence[Mapping[str, Any]]) -> Tuple[str, ...]:
    """The columns whose values differ between the sides, regardless of rows."""
    hashes = [F.expr(digest.row_hash({"fields": [field]})).alias(f"h{at}") for at, field in enumerate(columns)]
    sums = [F.expr(text) for at in range(len(columns)) for text in digest.sums(f"h{at}").values()]
    found = {row[0]: row[1:] for row in rows.select(_SIDE, *hashes).groupBy(_SIDE).agg(*sums).collect()}
    if len(found) == 1:
        return tuple(field["name"] for field in columns)
    width = len(sums) // len(columns)
    slices = [slice(at * width, (at + 1) * width) for at in range(len(columns))]
    return tuple(field["name"] for field, part in zip(columns, slices) if found[_ONE][part] != found[_OTHER][part])


def _surplus_hashes(counts: DataFrame, limit: int) -> Tuple[List[int], List[int]]:
    """The lowest hashes of the surplus rows of each side."""
    tops = [
        counts.where(f"{more} > {less}").orderBy(_HASH).limit(limit).select(F.lit(more), _HASH)
        for more, less in ((_ONE, _OTHER), (_OTHER, _ONE))
    ]
    found = sorted(tuple(row) for row in tops[0].union(tops[1]).collect())
    return [number for side, number in found if side == _ONE], [number for side, number in found if side == _OTHER]


def _texts(hashed: DataFrame, columns: Sequence[Mapping[str, Any]], hashes: Sequence[int]) -> Dict[int, Example]:
    """One row for each hash, its values as text, of which long ones are cut off."""
    most = max(LEAST_SHOWN, MOST_SHOWN // max(1, len(columns)))
    texts = [F.substring(F.expr(_text(field)), 1, most).alias(f"c{at}") for at, field in enumerate(columns)]
    found = hashed.where(F.col(_HASH).isin(list(hashes))).select(_HASH, *texts).dropDuplicates([_HASH]).collect()
    return {row[0]: dict(zip((field["name"] for field in columns), row[1:])) for row in found}


def _text(field: Mapping[str, Any]) -> str:
    column = identifier(field["name"])
    if not isinstance(field["type"], Mapping):
        return f"CAST({column} AS STRING)"
    options = ", ".join(literal(text) for option in _JSON.items() for text in option)
    return f"to_json({column}, map({options}))"


def _count(side: str) -> Any:
    return F.expr(f"count_if({_SIDE} = {literal(side)})").alias(side)


def _fields(frame: DataFrame) -> List[Dict[str, Any]]:
    return list(json.loads(frame.schema.json())["fields"])
