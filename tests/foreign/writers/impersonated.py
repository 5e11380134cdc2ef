"""Writers that cannot be run here, after their sources: parquet-mr writes with their schema, then the footer says that they did it.

Impala: hdfs-parquet-table-writer.cc. Trino: ParquetWriter.formatCreatedBy ("parquet-mr-trino", so that Hive does not shift times).
Spark 2.4: ParquetWriteSupport; SPARK-31404 added its version to the footer in 2.4.6. Hive 4: DataWritableWriteSupport (HIVE-21215).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Callable, Mapping, Optional

from foreign import footers
from foreign.cases import PARQUET, Case
from foreign.evidence import data_files
from foreign.writers import parquet_mr

# Impala annotates no strings, unless told to; PARQUET_ANNOTATE_STRINGS_UTF8 sets only the converted type.
IMPALA = """message schema { optional int32 id; optional binary s; optional int96 ts; optional fixed_len_byte_array(5) decf (DECIMAL(10,2));
  optional double db; optional boolean flag; optional group two (LIST) { repeated group list { optional int32 element; } } }"""
IMPALA_ANNOTATED = IMPALA.replace("binary s;", "binary s (UTF8);").replace("int32 id;", "int32 id (INTEGER(32,true));")
TRINO = """message trino_schema { optional int32 id; optional binary s (STRING); optional int96 ts; optional int64 long (DECIMAL(18,2));
  optional double db; optional group mp (MAP) { repeated group key_value { required binary key (STRING); optional double value; } } }"""
TRINO_MILLIS = TRINO.replace("int96 ts;", "int64 tn (TIMESTAMP(MILLIS,false));")
SPARK = """message spark_schema { optional int32 id; optional binary s (UTF8); optional int96 ts; optional int32 day (DATE);
  optional group two (LIST) { repeated group list { optional int32 element; } } }"""
HIVE = """message hive_schema { optional int32 id; optional binary s (UTF8); optional int96 ts; optional int32 day (DATE);
  optional fixed_len_byte_array(5) decf (DECIMAL(10,2));
  optional group bag (LIST) { repeated group bag { optional binary array_element (UTF8); } }
  optional group mp (MAP) { repeated group map (MAP_KEY_VALUE) { required binary key (UTF8); optional double value; } } }"""
MR = "parquet-mr version {} (build 0000000000000000000000000000000000000000)"
ROW_METADATA = (
    '{"type":"struct","fields":[{"name":"id","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"s","type":"string","nullable":true,"metadata":{}},{"name":"ts","type":"timestamp","nullable":true,"metadata":{}},'
    '{"name":"day","type":"date","nullable":true,"metadata":{}},{"name":"two","type":{"type":"array","elementType":"integer",'
    '"containsNull":true},"nullable":true,"metadata":{}}]}'
)
SPARK_ROW = {"org.apache.spark.sql.parquet.row.metadata": ROW_METADATA}
HIVE_4 = {
    "writer.model.name": "4.0.1",
    "writer.time.zone": "America/Los_Angeles",
    "writer.date.proleptic": "false",
    "writer.zone.conversion.legacy": "false",
}


def a_row(file: int, row: int) -> Mapping[str, Any]:
    found = dict(parquet_mr.a_row(file, row))
    number = file * parquet_mr.ROWS + row
    if "ts" in found:
        found.update(s=[b"s%d" % number], day=[[-141428, -719162, 0, 19723][number % 4]], long=[-number], tn=[1711846800123])
        found["two"] = [{"list": [{"element": [1]}, {}][: number % 3]}]
        found["mp"] = [{name: [{"key": [b"k"], "value": [parquet_mr.DOUBLES[1]]}] for name in ("map", "key_value")}]
    return found


def write(
    directory: Path,
    tools: Any,
    schema: str,
    created_by: Optional[str],
    keys: Mapping[str, str] = {},  # noqa: B006 - a constant
    more: Callable[[Path], None] = lambda _path: None,
    **options: Any,
) -> None:
    parquet_mr.write(directory, tools, schema=schema, row=a_row, **options)
    for path in data_files(directory):
        footers.sign(path, created_by, keys)
        more(path)


def _case(name: str, schema: str, created_by: Optional[str], expected: str = "compacted", is_quick: bool = False, **options: Any) -> Case:
    return Case(name, PARQUET, parquet_mr.COLUMNS, partial(write, schema=schema, created_by=created_by, **options), expected, is_quick)


IMPALA_2 = "impala version 2.12.0-cdh5.16.2 (build 0000000000000000000000000000000000000000)"
IMPALA_4 = "impala version 4.1.0-RELEASE (build 0000000000000000000000000000000000000000)"
TRINO_435 = "parquet-mr-trino version 435 (build n/a)"

CASES = (
    _case("impala.2", IMPALA, IMPALA_2, more=footers.drop_annotations, is_quick=True),
    _case("impala.4", IMPALA_ANNOTATED, IMPALA_4),
    _case("impala.4-zstd", IMPALA_ANNOTATED, IMPALA_4, codec="ZSTD"),
    _case("trino.int96", TRINO, TRINO_435, is_quick=True),
    _case("trino.millis", TRINO_MILLIS, TRINO_435, codec="GZIP"),
    _case("spark2.hive-1.2", SPARK, MR.format("1.6.0"), more=footers.drop_annotations),
    _case("spark2.of-2.4.5", SPARK, MR.format("1.10.1"), keys=SPARK_ROW),
    _case("spark2.of-2.4.8", SPARK, MR.format("1.10.1"), keys={"org.apache.spark.version": "2.4.8", **SPARK_ROW}),
    _case("hive4.los-angeles", HIVE, MR.format("1.13.1"), keys=HIVE_4, is_quick=True),
    _case("hive4.utc-proleptic", HIVE, MR.format("1.13.1"), keys={**HIVE_4, "writer.time.zone": "UTC", "writer.date.proleptic": "true"}),
    _case("hive2.of-2.3", HIVE, MR.format("1.8.1"), more=footers.drop_annotations),
    _case("nobody.at-all", SPARK, None),
)
