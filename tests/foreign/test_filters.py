"""Readers that skip parts of a file find in a copy what they find in its sources, wherever these show them what is there.

Filters use bounds, page indexes, dictionaries and Bloom filters, which a proof of values does not read. Random tables and options of
writers, the same each time; only an answer that was right before and is not afterwards counts: sources with a NaN often hide rows.
"""

from __future__ import annotations

import operator
import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hivekeeper.cluster.physical_copy import CopyTask, PhysicalCopy
from support.data_files import listed
from support.storage import local_only

pytestmark = [pytest.mark.jvm, pytest.mark.foreign, local_only]

TABLES = 60
# Column, operator, value; None asks for NULLs.
Question = Tuple[str, str, Any]
OPERATORS: Dict[str, Callable[[Any, Any], Any]] = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, ">=": operator.ge}
ODD_FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, -1.5, 2.0**-140]
LONG = "z" * 64

# What writers have to cut, round or leave out in bounds.
VALUES: Dict[str, Tuple[pa.DataType, Sequence[Any]]] = {
    "i8": (pa.int8(), [-128, 127, 0, -1]),
    "u8": (pa.uint8(), [0, 127, 128, 255]),
    "u32": (pa.uint32(), [0, 2**31 - 1, 2**31, 2**32 - 1]),
    "i64": (pa.int64(), [-(2**63), 2**63 - 1, 0, -1, 2**53 + 1]),
    "f32": (pa.float32(), ODD_FLOATS),
    "f64": (pa.float64(), ODD_FLOATS),
    "text": (pa.string(), ["", "a", "é", "ÿ", "\uffff", "😀", LONG, LONG + "a", "\U0010ffff" * 30, "\x7f", "\x80", " "]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff", b"\xff" * 80, b"\x7f", b"\x80", b"\xff" * 64 + b"\x00"]),
    "d5": (pa.decimal128(5, 2), [Decimal(value) / 100 for value in (0, 1, -1, 99_999, -99_999, 128, -129)]),
    "d18": (pa.decimal128(18, 4), [Decimal(value).scaleb(-4) for value in (0, -1, 10**18 - 1, 1 - 10**18, 255)]),
    "d38": (pa.decimal128(38, 6), [Decimal(value).scaleb(-6) for value in (0, -1, 10**20, -(10**20), 128)]),
    "day": (pa.date32(), [date(1582, 10, 16), date(1900, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "time": (pa.timestamp("us"), [datetime(1900, 1, 2), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(9999, 12, 31)]),
    "flag": (pa.bool_(), [True, False]),
}


def make_column(chance: random.Random, name: str, rows: int, nulls: float) -> pa.Array:
    kind, pool = VALUES[name]
    some = chance.sample(list(pool), chance.randint(1, len(pool)))
    values = [None if chance.random() < nulls else chance.choice(some) for _ in range(rows)]
    return pa.array(sorted(values, key=repr) if chance.random() < 0.5 else values, kind)


def make_options(chance: random.Random) -> Dict[str, Any]:
    return {
        "compression": chance.choice(["none", "snappy", "zstd"]),
        "data_page_version": chance.choice(["1.0", "2.0"]),
        "data_page_size": chance.choice([64, 1 << 20]),
        "row_group_size": chance.choice([7, 50, 1000]),
        "use_dictionary": chance.choice([True, False]),
        "version": chance.choice(["1.0", "2.6"]),
        "write_page_index": chance.choice([True, False]),
        "write_statistics": chance.choice([True, True, False]),
    }


def write_files(chance: random.Random, directory: Path) -> pa.Table:
    """Some files of one schema; returns all their rows."""
    columns, nulls, options = chance.sample(list(VALUES), chance.randint(2, 5)), chance.choice([0, 0.1, 0.6]), make_options(chance)
    directory.mkdir()
    tables = []
    for number in range(chance.randint(2, 4)):
        rows = chance.choice([1, 3, 40, 300])
        tables.append(pa.table({name: make_column(chance, name, rows, nulls) for name in columns}))
        pq.write_table(tables[-1], directory / f"{number}.parquet", **options)
    return pa.concat_tables(tables)


def make_questions(chance: random.Random, columns: Sequence[str]) -> List[Question]:
    values = [(name, value) for name in columns for value in VALUES[name][1]]
    asked = [(name, sign, value) for name, value in values for sign in OPERATORS]
    return [*chance.sample(asked, min(len(asked), 24)), *((name, "=", None) for name in columns)]


def ask_arrow(files: Sequence[str], questions: Sequence[Question]) -> List[int]:
    table = ds.dataset(list(files), format="parquet")
    return [table.count_rows(filter=arrow_filter(*question)) for question in questions]


def arrow_filter(name: str, sign: str, value: Any) -> Any:
    return pc.field(name).is_null() if value is None else OPERATORS[sign](pc.field(name), pa.scalar(value, VALUES[name][0]))


def ask_duckdb(connection: Any, source: str, questions: Sequence[Question]) -> List[int]:
    counts = []
    for name, sign, value in questions:
        # A parameter would have another type than the column.
        connection.register("asked", pa.table({"value": pa.array([value], VALUES[name][0])}))
        condition = f"{name} IS NULL" if value is None else f"{name} {sign} (SELECT value FROM asked)"
        counts.append(connection.sql(f"SELECT count(*) FROM {source} WHERE {condition}").fetchone()[0])
    return counts


def ask_spark(spark: Any, files: Sequence[str], questions: Sequence[Question], pushdown: bool = True) -> List[int]:
    from pyspark.sql import functions

    spark.conf.set("spark.sql.parquet.filterPushdown", str(pushdown).lower())
    table = spark.read.parquet(*files)
    found = None
    for number, (name, sign, value) in enumerate(questions):
        column = functions.col(name)
        condition = column.isNull() if value is None else OPERATORS[sign](column, functions.lit(value).cast(table.schema[name].dataType))
        one = table.where(condition).selectExpr(f"{number} n", "count(*) rows")
        found = one if found is None else found.union(one)
    rows = sorted(found.coalesce(1).collect())
    spark.conf.unset("spark.sql.parquet.filterPushdown")
    return [row["rows"] for row in rows]


def require_no_worse(reader: str, questions: Sequence[Question], before: List[int], after: List[int], right: List[int]) -> None:
    answers = zip(questions, before, after, right)
    assert [(reader, *answer) for answer in answers if answer[1] == answer[3] != answer[2]] == []


@pytest.mark.parametrize("seed", range(TABLES))
def test_filters_find_in_a_copy_what_they_find_in_its_sources(spark, gateway, tmp_path, seed):
    chance = random.Random(seed)
    table = write_files(chance, tmp_path / "source")
    target = tmp_path / "copy" / "0.parquet"
    blooms = [name for name in table.column_names if name != "flag" and chance.random() < 0.5]
    task = CopyTask(f"file:{target}", listed(tmp_path / "source"), "zstd", blooms, row_group_bytes=chance.choice([300, 5000, 1 << 20]))
    (answer,) = PhysicalCopy(gateway).copy(f"file:{tmp_path}/attempts", [task])
    assert answer.failed == ""
    questions = make_questions(chance, table.column_names)
    source, copy = ([str(path) for path in sorted((tmp_path / place).glob("*.parquet"))] for place in ("source", "copy"))

    # Arrow's answer to a NaN in a filter depends on whether a file has statistics (`x < NaN`, pyarrow 21).
    some = [question for question in questions if question[2] == question[2]]
    right = [table.filter(arrow_filter(*question)).num_rows for question in some]
    require_no_worse("arrow", some, ask_arrow(source, some), ask_arrow(copy, some), right)

    few = chance.sample(questions, 8)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", chance.choice(["true", "false"]))
    before, after = ask_spark(spark, source, few), ask_spark(spark, copy, few)
    spark_right = before if before == after else ask_spark(spark, source, few, pushdown=False)
    spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    require_no_worse("spark", few, before, after, spark_right)

    duckdb = pytest.importorskip("duckdb", reason="NOTHING TESTED of DuckDB")
    connection = duckdb.connect()
    connection.register("arrow", table)
    # Arrow would answer the filters itself, with a NaN that is not above infinity.
    connection.execute("CREATE TABLE whole AS SELECT * FROM arrow")
    right = ask_duckdb(connection, "whole", questions)
    before, after = (ask_duckdb(connection, f"read_parquet({files})", questions) for files in (source, copy))
    require_no_worse("duckdb", questions, before, after, right)
