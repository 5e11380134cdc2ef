"""Directories of several forms: tables that changed, codecs that changed, and every pair of writers of Parquet."""

from __future__ import annotations

import shutil
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Dict, Tuple

import pyarrow as pa
import pyarrow.parquet as pq

from foreign.cases import EMPTY, PARQUET, Case
from foreign.writers import arrow, avro, frames, hive, impersonated, parquet_mr, spark

COLUMNS = "a BIGINT, b STRING"
A = pa.array([1, None, -(2**31)], pa.int32())
B = pa.array(["x", None, ""])
C = pa.array([0.5, -0.0, None])
BOTH = {"a": A, "b": B}
CHANGES: Dict[str, Tuple[Dict[str, pa.Array], ...]] = {
    "added": (BOTH, {**BOTH, "c": C}),
    "added-in-the-middle": (BOTH, {"a": A, "c": C, "b": B}),
    "dropped": (BOTH, {"a": A}),
    "renamed": (BOTH, {"a": A, "renamed": B}),
    "reordered": (BOTH, {"b": B, "a": A}),
    "widened": (BOTH, {"a": A.cast(pa.int64()), "b": B}),
    "narrowed-again": ({"a": A.cast(pa.int64()), "b": B}, BOTH, {**BOTH, "c": C}),
    "other-case": (BOTH, {"A": A, "b": B}),
}


def write_tables(directory: Path, tables: Tuple[pa.Table, ...], codecs: Tuple[str, ...] = ("snappy", "snappy")) -> None:
    """Two files of each."""
    for number, table in enumerate(tables):
        for copy in range(2):
            codec = codecs[number % len(codecs)]
            pq.write_table(table, directory / f"{number}-{copy}.parquet", store_schema=False, compression=codec)


def write_change(directory: Path, _tools: Any, change: str) -> None:
    write_tables(directory, tuple(map(pa.table, CHANGES[change])))


def write_codecs(directory: Path, _tools: Any) -> None:
    write_tables(directory, (pa.table(BOTH), pa.table(BOTH)), ("gzip", "zstd"))


def write_nullability(directory: Path, _tools: Any) -> None:
    needed = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])
    write_tables(directory, (pa.table(BOTH), pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": B}, schema=needed)))


def write_no_rows(directory: Path, _tools: Any) -> None:
    write_tables(directory, (pa.table(BOTH).slice(0, 0),))


def write_no_rows_beside_rows(directory: Path, _tools: Any) -> None:
    write_tables(directory, (pa.table(BOTH), pa.table(BOTH).slice(0, 0), pa.table({"other": A}).slice(0, 0)))
    (directory / "nothing.parquet").touch()


# One case of each writer, for the pairs.
PAIRED = (
    "pyarrow.plain",
    "pandas.range-index",
    "polars.snappy",
    "fastparquet.snappy",
    "duckdb.simple",
    "parquet-mr.plain",
    "parquet-avro.only-strings",
    "spark.plain",
    "spark33.parquet",
    "spark40.parquet",
    "hive3.parquet-without-times",
    "hive4.los-angeles",
    "impala.2",
    "trino.int96",
    "spark2.of-2.4.8",
)
QUICK_PAIRS = {("pyarrow.plain", "spark.plain"), ("impala.2", "trino.int96")}
WRITERS = {case.name: case for module in (arrow, frames, parquet_mr, avro, spark, hive, impersonated) for case in module.CASES}


def write_pair(directory: Path, tools: Any, names: Tuple[str, str]) -> None:
    """Both writers' files side by side."""
    for name in names:
        for path in tools.made_once(name, lambda place, name=name: WRITERS[name].write(place, tools)):
            shutil.copyfile(path, directory / f"{name}-{path.name}")


def _case(name: str, write: Any, expected: str = "compacted", is_quick: bool = False) -> Case:
    return Case(f"mixed.{name}", PARQUET, COLUMNS, write, expected, is_quick)


CASES = (
    *(_case(change, partial(write_change, change=change), is_quick=change == "added") for change in CHANGES),
    _case("codecs", write_codecs, is_quick=True),
    _case("nullability", write_nullability),
    _case("no-rows", write_no_rows, EMPTY),
    _case("no-rows-beside-rows", write_no_rows_beside_rows, is_quick=True),
    *(
        _case(f"{one}-and-{other}", partial(write_pair, names=(one, other)), is_quick=(one, other) in QUICK_PAIRS)
        for one, other in combinations(PAIRED, 2)
    ),
)
