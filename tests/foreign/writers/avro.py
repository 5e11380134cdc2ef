"""parquet-avro: Avro's records, decoded from JSON, as Kafka Connect, Flume and Sqoop write them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Optional

from foreign.cases import PARQUET, Case

FILES, ROWS = 3, 12
COLUMNS = "id BIGINT, word STRING, words ARRAY<STRING>"


def _optional(kind: Any) -> List[Any]:
    return ["null", kind]


def _logical(kind: str, name: str, **more: Any) -> Dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


KINDS = {
    "word": _optional("string"),
    "kind": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]},
    "mac": {"type": "fixed", "name": "Mac", "size": 6},
    "uu": _logical("string", "uuid"),
    "price": _logical("bytes", "decimal", precision=12, scale=2),
    "exact": {"type": "fixed", "name": "Exact", "size": 6, "logicalType": "decimal", "precision": 12, "scale": 2},
    "day": _logical("int", "date"),
    "at_ms": _logical("long", "timestamp-millis"),
    "at_us": _logical("long", "timestamp-micros"),
    "of_day": _logical("int", "time-millis"),
    "raw": "bytes",
    "fl": "float",
    "words": {"type": "array", "items": "string"},
    "records": {"type": "array", "items": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": _optional("int")}]}},
    "scores": {"type": "map", "values": _optional("double")},
}


def schema_of(names: Optional[List[str]] = None) -> str:
    fields = [{"name": name, "type": KINDS[name]} for name in names or KINDS]
    return json.dumps({"type": "record", "name": "Event", "namespace": "org.example", "fields": [{"name": "id", "type": "long"}, *fields]})


def a_record(number: int, names: List[str]) -> str:
    values: Dict[str, Any] = {
        "word": None if number % 5 == 0 else {"string": f"wörd {number}"},
        "kind": "AB"[number % 2],
        "mac": "\u0000\u00ff\u0001\u0002\u0003\u0004",
        "uu": f"00000000-0000-0000-0000-{number:012d}",
        "price": "\u00ff\u0001",
        "exact": "\u0000\u0000\u0000\u0000\u0001\u0002",
        "day": -141428 + number,
        "at_ms": -12219292801000,
        "at_us": 1711846800123456,
        "of_day": 86399999,
        "raw": "\u0000\u00ff",
        "fl": -0.0,
        "words": ["a", ""][: number % 3],
        "records": [{"x": {"int": 1}}, {"x": None}][: number % 3],
        "scores": {"k": {"double": 1.5}, "j": None} if number % 2 else {},
    }
    return json.dumps({"id": number, **{name: values[name] for name in names}})


def write(directory: Path, tools: Any, names: Optional[List[str]] = None, codec: str = "SNAPPY", **options: str) -> None:
    """`options`: settings of parquet-avro, dots written as double underscores."""
    java, text = tools.avro, schema_of(names)
    jvm = java.jvm
    schema = jvm.org.apache.avro.Schema.Parser().parse(text)
    conf = java.rows.configuration({key.replace("__", "."): value for key, value in options.items()})
    reader = jvm.org.apache.avro.generic.GenericDatumReader(schema)
    for file in range(FILES):
        target = jvm.org.apache.hadoop.fs.Path(f"file:{directory}/avro-{file}.parquet")
        builder = jvm.org.apache.parquet.avro.AvroParquetWriter.builder(target).withSchema(schema).withConf(conf)
        writer = builder.withCompressionCodec(jvm.org.apache.parquet.hadoop.metadata.CompressionCodecName.valueOf(codec)).build()
        for number in range(file * ROWS, (file + 1) * ROWS):
            record = a_record(number, names or list(KINDS))
            writer.write(reader.read(None, jvm.org.apache.avro.io.DecoderFactory.get().jsonDecoder(schema, record)))
        writer.close()


THREE_LEVELS = {"parquet__avro__write-old-list-structure": "false"}


def _case(name: str, **options: Any) -> Case:
    return Case(f"parquet-avro.{name}", PARQUET, COLUMNS, partial(write, **options))


CASES = (
    _case("two-level-lists"),
    _case("three-level-lists", **THREE_LEVELS),
    _case("uuid", **THREE_LEVELS, **{"parquet__avro__write-parquet-uuid": "true"}),
    _case("gzip", codec="GZIP"),
    _case("only-strings", names=["word"]),
)
