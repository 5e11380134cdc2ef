"""Data frames and DuckDB: pandas, polars, fastparquet. Each package is optional."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Tuple

import pyarrow as pa

from foreign.cases import PARQUET, Case
from foreign.tools import require_module
from foreign.writers import arrow

COLUMNS = "i64 BIGINT, s STRING, f64 DOUBLE"
# What polars and DuckDB take over from Arrow.
COMMON = (
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
    "f32",
    "f64",
    "flag",
    "dec7",
    "dec38",
    "day",
    "ts_us",
    "tz_us",
    "ts_ns",
    "s",
    "bin",
)


def a_frame(file: int) -> Any:
    pandas = require_module("pandas")
    frame = arrow.plain(file).to_pandas()
    frame["at"] = pandas.to_datetime([f"2024-03-31 02:30:00.{row:09d}" for row in range(len(frame))])
    frame["kind"] = pandas.Categorical(["x", "y", None] * (len(frame) // 3))
    return frame


def write_pandas(directory: Path, _tools: Any, change: Any = lambda frame: frame, **options: Any) -> None:
    for file in range(arrow.FILES):
        change(a_frame(file)).to_parquet(directory / f"{file}.parquet", engine="pyarrow", **options)


def rows_of(frame: Any, file: int, lengths: Tuple[int, ...], first_label: int = 0) -> Any:
    """As many rows as the file is to have, labelled as pandas does: by a range, which it keeps in the footer."""
    pandas = require_module("pandas")
    longer = pandas.concat([frame] * (lengths[file] // len(frame) + 1), ignore_index=True)[: lengths[file]]
    return longer.set_index(pandas.RangeIndex(first_label, first_label + lengths[file]))


def write_lengths(directory: Path, _tools: Any, lengths: Tuple[int, ...], engine: str, first_label: int = 0) -> None:
    """A range of labels for each file, whose end is another where its rows are."""
    for file in range(len(lengths)):
        frame = rows_of(a_frame(file)[["i64", "s"]], file, lengths, first_label)
        require_module(engine)
        frame.to_parquet(directory / f"{file}.parquet", engine=engine)


def write_fastparquet(directory: Path, _tools: Any, **options: Any) -> None:
    fastparquet = require_module("fastparquet")
    for file in range(arrow.FILES):
        frame = a_frame(file)
        fastparquet.write(str(directory / f"{file}.parquet"), frame, **options)


def write_polars(directory: Path, _tools: Any, **options: Any) -> None:
    polars = require_module("polars")
    for file in range(arrow.FILES):
        table = arrow.everything(file).select([*COMMON, "large", "t64n", "span", "dict", "st", "needed"])
        polars.from_arrow(table).write_parquet(directory / f"{file}.parquet", **options)


MORE = """SELECT *, '00000000-0000-0000-0000-00000000000f'::UUID AS uu, INTERVAL (needed % 5) DAY AS iv, (needed::HUGEINT << 70) AS huge,
 (CASE WHEN needed % 2 = 0 THEN 'a' ELSE 'b' END)::ENUM ('a', 'b') AS en, {'x': needed, 'y': [needed, NULL]} AS pair,
 TIME '10:00:00' AS tm, '{"a":1}'::JSON AS js, MAP {'b': needed, 'a': NULL} AS mp FROM rows"""


def write_duckdb(directory: Path, _tools: Any, select: str = MORE, **options: Any) -> None:
    duckdb = require_module("duckdb")
    for file in range(arrow.FILES):
        connection = duckdb.connect()
        connection.register("rows", arrow.everything(file).select([*COMMON, "t64", "needed"]))
        words = "".join(f", {key} {value}" for key, value in options.items())
        connection.sql(f"COPY ({select}) TO '{directory}/{file}.parquet' (FORMAT parquet{words})")


def write_nothing_but_nulls(directory: Path, _tools: Any) -> None:
    polars = require_module("polars")
    for file in range(arrow.FILES):
        polars.from_arrow(pa.table({"a": pa.nulls(3), "b": pa.array([file, None, 1])})).write_parquet(directory / f"{file}.parquet")


def _case(name: str, write: Any, expected: str = "compacted", **options: Any) -> Case:
    return Case(name, PARQUET, COLUMNS, partial(write, **options) if options else write, expected)


# What the program says of files that cannot become fewer.
FEWEST = "fewest"


CASES = (
    _case("pandas.range-index", write_pandas),
    _case("pandas.range-index-of-other-lengths", write_lengths, engine="pyarrow", lengths=(10, 99, 50)),
    _case("pandas.range-index-of-more-digits", write_lengths, engine="pyarrow", lengths=(9, 100, 8, 200)),
    _case("pandas.range-index-of-a-chunk", write_lengths, FEWEST, engine="pyarrow", lengths=(10, 10), first_label=100),
    _case("fastparquet.range-index-of-other-lengths", write_lengths, engine="fastparquet", lengths=(10, 99, 50)),
    _case("pandas.named-index", write_pandas, change=lambda frame: frame.set_index("i64")),
    _case("pandas.without-index", write_pandas, index=False),
    _case("pandas.milliseconds", write_pandas, coerce_timestamps="ms", allow_truncated_timestamps=True),
    _case("fastparquet.snappy", write_fastparquet),
    _case("fastparquet.int96", write_fastparquet, times="int96", compression="GZIP"),
    _case("fastparquet.uncompressed", write_fastparquet, compression="UNCOMPRESSED"),
    *(_case(f"polars.{codec}", write_polars, compression=codec) for codec in ("zstd", "snappy", "gzip", "lz4", "uncompressed")),
    _case("polars.without-statistics", write_polars, statistics=False),
    _case("polars.tiny-pages", write_polars, data_page_size=64, row_group_size=4),
    _case("polars.only-nulls", write_nothing_but_nulls),
    *(_case(f"duckdb.{codec}", write_duckdb, COMPRESSION=codec) for codec in ("snappy", "zstd", "gzip", "lz4_raw", "uncompressed")),
    _case("duckdb.version-2", write_duckdb, PARQUET_VERSION="v2"),
    _case("duckdb.version-2-simple", write_duckdb, select="SELECT i64, s, f64 FROM rows", PARQUET_VERSION="v2"),
    _case("duckdb.simple", write_duckdb, select="SELECT i64, s, f64 FROM rows"),
)
