"""parquet-mr itself, below any engine: every page version and codec, its own encodings, and schemas that only old or odd programs write."""

from __future__ import annotations

import struct
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping

from foreign.cases import PARQUET, Case

FILES, ROWS = 3, 12
COLUMNS = "id INT, s STRING, ts TIMESTAMP, decf DECIMAL(10,2), flag BOOLEAN, db DOUBLE"
SCHEMA = """message hive_schema {
  required int32 id; optional binary en (ENUM); optional binary js (JSON); optional int96 ts;
  optional int32 u8 (INTEGER(8,false)); optional int64 u64 (INTEGER(64,false)); optional int32 i32 (INTEGER(32,true));
  optional int32 tm (TIME(MILLIS,true)); optional int64 tn (TIMESTAMP(NANOS,true)); optional fixed_len_byte_array(16) uu (UUID);
  optional binary dec (DECIMAL(20,3)); optional fixed_len_byte_array(5) decf (DECIMAL(10,2)); optional int32 deci (DECIMAL(9,2));
  optional group two (LIST) { repeated int32 array; }
  optional group bag (LIST) { repeated group bag { optional binary array_element (UTF8); } }
  optional group mp (MAP) { repeated group map (MAP_KEY_VALUE) { required binary key (UTF8); optional double value; } }
  optional group st { optional int32 a = 7;
    optional group deep (LIST) { repeated group list { optional group element { optional float f; } } } }
  optional boolean flag; optional float fl; optional double db; repeated int64 bare;
}"""
RARE = """message rare { required int32 id; optional fixed_len_byte_array(12) iv (INTERVAL); optional binary bs (BSON);
  required group needed { required binary b; } repeated group many { optional int32 x; } }"""
PLAIN = "message spark_schema { optional int64 i64; optional binary s (STRING); optional double f64; }"

FLOATS = [0x3F800000, 0x80000000, 0x7F800000, 0x7FC00000, 1]
DOUBLES = [0x3FF0000000000000, -(2**63), 0x7FF0000000000000, 0x7FF8000000000000, 1]


def int96(day: int, nanos: int) -> bytes:
    return struct.pack("<qi", nanos, day)


# The first day of Julian reckoning that Spark accepts, 1582-10-04, 1970-01-01, 2024-03-31 with nanoseconds.
INT96 = [int96(1721424, 1), int96(2299160, 0), int96(2440588, 0), int96(2460401, 9000123456789)]


def a_row(file: int, row: int) -> Mapping[str, List[Any]]:
    number = file * ROWS + row
    if row % 7 == 3:
        return {"id": [number], "needed": [{"b": [b""]}]}
    return {
        **_scalars(number),
        "two": [{"array": list(range(number % 4))}],
        "bag": [{"bag": [{"array_element": [b"s"]}, {}][: number % 3]}],
        "mp": [{"map": [{"key": [b"k%d" % key], "value": [DOUBLES[key]]} for key in range(number % 3)]}],
        "st": [{"a": [number], "deep": [{"list": [{"element": [{"f": [FLOATS[1]]}]}, {}, {"element": [{}]}]}]} if number % 2 else {}],
        "bare": list(range(number % 3)),
        "iv": [bytes(range(12))],
        "bs": [b"\x05\x00\x00\x00\x00"],
        "needed": [{"b": [b"\xff"]}],
        "many": [{"x": [1]}, {}][: number % 3],
    }


def _scalars(number: int) -> Dict[str, List[Any]]:
    return {
        "id": [number],
        "en": [b"E%d" % (number % 3)],
        "js": [b'{"a":1}'],
        "ts": [INT96[number % len(INT96)]],
        "u8": [number % 256],
        "u64": [-(2**63)],
        "i32": [-number],
        "tm": [86399999],
        "tn": [1711846800123456789 + number],
        "uu": [bytes(range(16))],
        "dec": [number.to_bytes(3, "big")],
        "decf": [number.to_bytes(5, "big")],
        "deci": [-number],
        "flag": [number % 2 == 0],
        "fl": [FLOATS[number % len(FLOATS)]],
        "db": [DOUBLES[number % len(DOUBLES)]],
    }


def plain_row(file: int, row: int) -> Mapping[str, List[Any]]:
    return {} if row == 3 else {"i64": [-(2**63) + row], "s": [b"row %d" % (file + row)], "f64": [DOUBLES[row % len(DOUBLES)]]}


Row = Callable[[int, int], Mapping[str, List[Any]]]


def write(
    directory: Path,
    tools: Any,
    schema: str = SCHEMA,
    row: Row = a_row,
    codec: str = "SNAPPY",
    version: str = "PARQUET_1_0",
    keys: Mapping[str, str] = {},  # noqa: B006 - a constant
    **switches: Any,
) -> None:
    """`switches`: methods of the builder by name, with their argument or arguments."""
    java = tools.java
    for file in range(FILES):
        builder = java.rows.parquet(f"file:{directory}/mr-{file}.parquet", schema, dict(keys), {})
        builder = builder.withCompressionCodec(java.jvm.org.apache.parquet.hadoop.metadata.CompressionCodecName.valueOf(codec))
        builder = builder.withWriterVersion(getattr(java.jvm.org.apache.parquet.column.ParquetProperties.WriterVersion, version))
        for name, arguments in switches.items():
            builder = getattr(builder, name)(*(arguments if isinstance(arguments, tuple) else (arguments,)))
        java.rows.write(builder, schema, [row(file, number) for number in range(ROWS)])


def _case(name: str, expected: str = "compacted", is_quick: bool = False, **options: Any) -> Case:
    return Case(f"parquet-mr.{name}", PARQUET, COLUMNS, partial(write, **options), expected, is_quick)


VERSIONS = {"v1": "PARQUET_1_0", "v2": "PARQUET_2_0"}
CODECS = ("SNAPPY", "GZIP", "ZSTD", "LZ4_RAW", "UNCOMPRESSED")

CASES = (
    *(
        _case(f"{short}-{codec.lower()}", version=version, codec=codec, is_quick=(short, codec) == ("v1", "SNAPPY"))
        for short, version in VERSIONS.items()
        for codec in CODECS
    ),
    *(_case(f"{short}-without-dictionaries", version=version, withDictionaryEncoding=False) for short, version in VERSIONS.items()),
    _case("byte-stream-split", withByteStreamSplitEncoding=True, withDictionaryEncoding=False),
    _case("tiny-pages", withPageSize=64, withPageRowCountLimit=3),
    _case("tiny-dictionaries", withDictionaryPageSize=64),
    _case("blooms", withBloomFilterEnabled=("id", True)),
    _case("checksums", withPageWriteChecksumEnabled=True),
    _case("without-checksums", withPageWriteChecksumEnabled=False),
    _case("rare-types", schema=RARE),
    _case("plain", schema=PLAIN, row=plain_row, is_quick=True),
    _case("plain-with-keys", schema=PLAIN, row=plain_row, keys={"writer.model.name": "example", "own": "ü"}),
)
