"""Hive 3.1.3's own Parquet and ORC writers: rows parsed from delimited text, as INSERT … SELECT from a text table does."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Mapping

from foreign.cases import ORC, PARQUET, Case

FILES, ROWS = 3, 8
WRITABLE = "org.apache.hadoop.io.Writable"
FORMATS = {
    PARQUET: (
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    ),
    ORC: ("org.apache.hadoop.hive.ql.io.orc.OrcSerde", "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"),
}
# Delimiters of the text: columns, elements, keys, and below.
A, B, C = "\x01", "\x02", "\x03"
SCALARS = {
    "i8": ("tinyint", ["-128", "127", r"\N"]),
    "i16": ("smallint", ["-32768", r"\N"]),
    "i32": ("int", ["-2147483648", "7", r"\N"]),
    "i64": ("bigint", ["-9223372036854775808", r"\N"]),
    "flag": ("boolean", ["true", "false", r"\N"]),
    "fl": ("float", ["-0.0", "NaN", "1.5", r"\N"]),
    "db": ("double", ["-0.0", "NaN", "Infinity", r"\N"]),
    "dec": ("decimal(10,2)", ["-12345.67", "0.01", r"\N"]),
    "big": ("decimal(38,10)", ["1234567890123456789012345678.0123456789", r"\N"]),
    "s": ("string", ["", "ü\U0001f600", "plain", r"\N"]),
    "bin": ("binary", ["AP8=", "", r"\N"]),
    "day": ("date", ["1001-01-01", "1582-10-04", "1969-12-31", "2024-03-31", r"\N"]),
    "at": ("timestamp", ["1001-01-01 00:00:00.000000001", "1969-12-31 23:59:59.999999999", "2024-03-31 02:30:00.123456789", r"\N"]),
    "ch": ("char(5)", ["ab", "abcde", r"\N"]),
    "vc": ("varchar(3)", ["a", "abc", r"\N"]),
}
NESTED = {
    "words": ("array<string>", [f"a{B}{B}b", rf"\N{B}x", r"\N"]),
    "scores": ("map<string,int>", [f"zz{C}1{B}a{C}2", rf"k{C}\N", r"\N"]),
    "st": ("struct<x:int,y:array<double>>", [f"1{B}-0.0{C}2.5", rf"\N{B}\N", r"\N"]),
}
UNION = {"un": ("uniontype<int,string>", [f"0{B}7", f"1{B}text"])}
Fields = Mapping[str, Any]


def a_line(fields: Fields, number: int) -> str:
    return A.join(values[number % len(values)] for _, values in fields.values())


def _serde(jvm: Any, name: str, fields: Fields, conf: Any, **more: str) -> Any:
    properties = jvm.java.util.Properties()
    kinds = {
        "columns": ",".join(fields),
        "columns.types": ":".join(kind for kind, _ in fields.values()),
        "serialization.null.format": r"\N",
    }
    for key, value in {**kinds, "columns.comments": "", **more}.items():
        properties.setProperty(key, value)
    serde = jvm.java.lang.Class.forName(name).newInstance()
    serde.initialize(conf, properties)
    return serde, properties


def write(directory: Path, tools: Any, format: str, fields: Fields, **options: str) -> None:
    """`options`: table properties or settings, dots written as double underscores."""
    jvm = tools.hive.jvm
    more = {key.replace("__", "."): value for key, value in options.items()}
    conf = jvm.org.apache.hadoop.mapred.JobConf()
    for key, value in {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem", **more}.items():
        conf.set(key, value)
    text, _ = _serde(jvm, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", fields, conf)
    serde, properties = _serde(jvm, FORMATS[format][0], fields, conf, **more)
    for file in range(FILES):
        output = jvm.java.lang.Class.forName(FORMATS[format][1]).newInstance()
        target = jvm.org.apache.hadoop.fs.Path(f"file:{directory}/00000{file}_0")
        nothing = jvm.org.apache.hadoop.mapred.Reporter.NULL
        writer = output.getHiveRecordWriter(conf, target, jvm.java.lang.Class.forName(WRITABLE), False, properties, nothing)
        for number in range(file, file + ROWS):
            row = text.deserialize(jvm.org.apache.hadoop.io.Text(a_line(fields, number)))
            writer.write(serde.serialize(row, text.getObjectInspector()))
        writer.close(False)


def _case(name: str, format: str, fields: Fields, expected: str = "compacted", **options: str) -> Case:
    columns = ", ".join(f"{column} {kind}" for column, (kind, _) in {**SCALARS, **NESTED}.items())
    return Case(f"hive3.{format}-{name}", format, columns, partial(write, format=format, fields=fields, **options), expected)


WITHOUT_TIMES = {name: field for name, field in SCALARS.items() if name not in ("day", "at", "ch", "vc")}

CASES = (
    _case("snappy", PARQUET, {**SCALARS, **NESTED}, parquet__compression="SNAPPY"),
    _case("uncompressed", PARQUET, {**SCALARS, **NESTED}),
    _case("gzip", PARQUET, {**SCALARS, **NESTED}, parquet__compression="GZIP"),
    _case("without-times", PARQUET, WITHOUT_TIMES, parquet__compression="SNAPPY"),
    _case("without-dictionaries", PARQUET, SCALARS, parquet__enable__dictionary="false"),
    _case("without-times", ORC, WITHOUT_TIMES),
    _case("times", ORC, SCALARS),
    _case("nested", ORC, NESTED),
    _case("snappy", ORC, {**WITHOUT_TIMES, **NESTED}, orc__compress="SNAPPY"),
    _case("none", ORC, WITHOUT_TIMES, orc__compress="NONE"),
    _case("blooms", ORC, WITHOUT_TIMES, orc__bloom__filter__columns="i32,s"),
    _case("without-indexes", ORC, WITHOUT_TIMES, orc__create__index="false", orc__row__index__stride="0"),
    _case("union", ORC, {**WITHOUT_TIMES, **UNION}),
)
