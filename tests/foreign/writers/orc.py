"""ORC itself, below any engine, and pyarrow's ORC (the C++ library)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Mapping

import pyarrow as pa
import pyarrow.orc as po

from foreign.cases import ORC, Case
from foreign.writers import arrow

FILES, ROWS = 3, 12
COLUMNS = "id INT, s STRING"
SIMPLE = "struct<id:int,s:string,db:double,dec:decimal(10,2),words:array<string>>"
TIMES = "struct<id:int,ts:timestamp>"
DOUBLES = [0x7FF8DEADBEEF0001, -(2**63), 0x7FF0000000000000, 1]
# 1001-01-01, 1969-12-31, the hour that Berlin skipped, the one that New York had twice; with nanoseconds.
MOMENTS = [[-30578688000, 1], [-1, 999999999], [1711848600, 123456789], [1730611800, 0]]


def simple(number: int) -> List[Any]:
    if number % 7 == 3:
        return [number, None, None, None, None]
    return [number, b"row %d" % number, DOUBLES[number % 4], f"-{number}.25", [b"a", None, b""][: number % 4]]


def times(number: int) -> List[Any]:
    return [number, MOMENTS[number % 4] if number % 7 else None]


def maps(number: int) -> List[Any]:
    return [number, [[b"z", 1], [b"a", None], [b"m", number]][: number % 4]]


def unions(number: int) -> List[Any]:
    return [number, [0, number] if number % 2 else [1, b"text"]]


def characters(number: int) -> List[Any]:
    return [number, b"ab   ", b"abc"]


def write(
    directory: Path,
    tools: Any,
    schema: str = SIMPLE,
    row: Callable[[int], List[Any]] = simple,
    codec: str = "ZLIB",
    zone: str = "UTC",
    keys: Mapping[str, bytes] = {},  # noqa: B006 - a constant
    attributes: Mapping[str, str] = {},  # noqa: B006 - a constant
    settings: Mapping[str, str] = {},  # noqa: B006 - a constant
    blooms: str = "",
) -> None:
    java = tools.java
    kind = java.jvm.org.apache.orc.TypeDescription.fromString(schema)
    for key, value in attributes.items():
        kind.getChildren()[0].setAttribute(key, value)
    for file in range(FILES):
        options = java.rows.orc(kind, codec, dict(settings))
        options = options.bloomFilterColumns(blooms) if blooms else options
        rows = [row(file * ROWS + number) for number in range(ROWS)]
        java.rows.writeOrc(f"file:{directory}/{file}.orc", options, dict(keys), zone, rows)


def write_arrow(directory: Path, _tools: Any, nested: bool = False, **options: Any) -> None:
    for file in range(FILES):
        table = arrow.plain(file)
        columns = {
            **dict(zip(table.column_names, table.columns)),
            "flag": arrow.cycle([True, False], file, pa.bool_()),
            "day": arrow.times(file)["day"],
        }
        if nested:
            columns.update({name: arrow.nested(file)[name] for name in ("st", "map")})
        po.write_table(pa.table(columns), directory / f"{file}.orc", **options)


def write_arrow_table(directory: Path, _tools: Any, **options: Any) -> None:
    for file in range(FILES):
        table = arrow.plain(file).append_column("nanos", arrow.times(file)["ts_ns"].slice(0, arrow.ROWS))
        po.write_table(table, directory / f"{file}.orc", **options)


REFUSED = "not-faithful"


def _case(name: str, expected: str = "compacted", is_quick: bool = False, write: Any = write, **options: Any) -> Case:
    return Case(f"orc.{name}", ORC, COLUMNS, partial(write, **options), expected, is_quick)


CASES = (
    *(_case(f"codec-{codec.lower()}", codec=codec, is_quick=codec == "ZLIB") for codec in ("NONE", "ZLIB", "SNAPPY", "ZSTD", "LZ4")),
    _case("codec-lzo", REFUSED, codec="LZO"),
    _case("char-and-varchar", schema="struct<id:int,c:char(5),v:varchar(3)>", row=characters, is_quick=True),
    _case("union", schema="struct<id:int,u:uniontype<int,string>>", row=unions),
    _case("nanoseconds-new-york", schema=TIMES, row=times, zone="America/New_York", is_quick=True),
    _case("nanoseconds-berlin", schema=TIMES, row=times, zone="Europe/Berlin"),
    _case("nanoseconds-utc", schema=TIMES, row=times),
    _case("instants", schema="struct<id:int,ts:timestamp with local time zone>", row=times),
    _case("maps-unsorted", schema="struct<id:int,m:map<string,int>>", row=maps, is_quick=True),
    _case("without-statistics", is_quick=True, settings={"orc.create.index": "false", "orc.row.index.stride": "0"}),
    _case("blooms", blooms="id,s"),
    _case("user-metadata", keys={"own": b"\xff\x00"}),
    _case("attributes", attributes={"iceberg.id": "1"}),
    _case("back-quoted", schema="struct<`a``b`:int,`c d`:string>", row=lambda number: [number, b"x"]),
    _case("old-version", settings={"orc.write.format": "0.11"}),
    *(_case(f"pyarrow-{codec}", write=write_arrow, compression=codec) for codec in ("uncompressed", "zlib", "snappy", "lz4", "zstd")),
    _case("pyarrow-nested", write=write_arrow, nested=True),
    _case("pyarrow-nanoseconds", write=write_arrow_table),
    _case("pyarrow-stripes", write=write_arrow, stripe_size=1024, batch_size=4),
)
