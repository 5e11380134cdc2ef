"""pyarrow: every type, page version, codec and encoding that it writes."""

from __future__ import annotations

import decimal
import struct
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from foreign.cases import PARQUET, Case

FILES, ROWS = 3, 12
COLUMNS = "i64 BIGINT, s STRING, f64 DOUBLE"
# What parquet-mr 1.15 and older do not read, whatever the engine: no page of it can be copied.
UNDECODABLE = "not-faithful"


def bits(*numbers: int) -> List[float]:
    return [struct.unpack("<d", struct.pack("<Q", number))[0] for number in numbers]


# A NaN with a payload, a negative NaN, both zeros, both infinities, the smallest and an ordinary number.
DOUBLES = bits(0x7FF8DEADBEEF0001, 0xFFF8000000000000, 0x8000000000000000, 0, 0x7FF0000000000000, 0xFFF0000000000000, 1, 0x400921FB54442D18)


def cycle(values: List[Any], file: int, kind: pa.DataType) -> pa.Array:
    """ROWS values and NULLs; each file begins elsewhere."""
    found = [*values, None]
    return pa.array([found[(file * 5 + row) % len(found)] for row in range(ROWS)], kind)


def floats(file: int, kind: pa.DataType) -> pa.Array:
    """By their bits: a Python float of another width would lose them."""
    if kind == pa.float64():
        return cycle(DOUBLES, file, kind)
    size, format, patterns = (
        (4, "<I", [0x7FC12345, 0xFFC00000, 0x80000000, 0x3F800000]) if kind == pa.float32() else (2, "<H", [0x7E01, 0x8000, 1, 0x3C00])
    )
    raw = b"".join(struct.pack(format, patterns[(file + row) % len(patterns)]) for row in range(ROWS))
    assert len(raw) == size * ROWS
    return pa.Array.from_buffers(kind, ROWS, [None, pa.py_buffer(raw)])


def numbers(file: int) -> Dict[str, pa.Array]:
    whole = {}
    for width in (8, 16, 32, 64):
        top = 2 ** (width - 1)
        whole[f"i{width}"] = cycle([-top, -1, 0, 1, top - 1], file, getattr(pa, f"int{width}")())
        whole[f"u{width}"] = cycle([0, 1, top, 2 * top - 1], file, getattr(pa, f"uint{width}")())
    exact = [decimal.Decimal(text) for text in ("-99999.99", "0.00", "0.01", "12345.67")]
    long = [decimal.Decimal(text) for text in ("-9" * 19, "9" * 38, "0")[1:]]
    return {
        **whole,
        "f32": floats(file, pa.float32()),
        "f64": floats(file, pa.float64()),
        "flag": cycle([True, False], file, pa.bool_()),
        "dec7": cycle(exact, file, pa.decimal128(7, 2)),
        "dec38": cycle(long, file, pa.decimal128(38, 0)),
        "dec60": cycle(exact, file, pa.decimal256(60, 2)),
    }


def times(file: int) -> Dict[str, pa.Array]:
    # Before the Gregorian calendar, before 1970, a nanosecond, far in the future.
    days = [-719162, -141428, -1, 0, 19723, 2932896]
    seconds = [-62135596800, -12219292801, -1, 0, 1711846800, 253402300799]
    nanos = [-9223372036854775807, -1, 0, 1, 1711846800123456789]
    found = {"day": cycle(days, file, pa.int32()).cast(pa.date32())}
    for unit, factor in (("ms", 1000), ("us", 10**6)):
        values = cycle([second * factor + 1 for second in seconds], file, pa.int64())
        found[f"ts_{unit}"] = values.cast(pa.timestamp(unit))
        found[f"tz_{unit}"] = values.cast(pa.timestamp(unit, tz="Europe/Berlin"))
    found["ts_ns"] = cycle(nanos, file, pa.int64()).cast(pa.timestamp("ns"))
    found["tz_ns"] = cycle(nanos, file, pa.int64()).cast(pa.timestamp("ns", tz="UTC"))
    found["ts_s"] = cycle(seconds, file, pa.int64()).cast(pa.timestamp("s"))
    found["t32"] = cycle([0, 86399999], file, pa.int32()).cast(pa.time32("ms"))
    found["t64"] = cycle([0, 86399999999], file, pa.int64()).cast(pa.time64("us"))
    found["t64n"] = cycle([0, 86399999999999], file, pa.int64()).cast(pa.time64("ns"))
    found["span"] = cycle([0, -1, 10**12], file, pa.int64()).cast(pa.duration("us"))
    return found


def texts(file: int) -> Dict[str, pa.Array]:
    words = ["", "a", "ü\U0001f600", "x" * 100, "\x00", 'say "x"']
    raw = [b"", b"\x00", b"\xff\xfe", b"\x80" * 9]
    return {
        "s": cycle(words, file, pa.string()),
        "large": cycle(words, file, pa.large_string()),
        "bin": cycle(raw, file, pa.binary()),
        "fixed": cycle([b"\x00" * 7, b"\xff" * 7], file, pa.binary(7)),
        "dict": cycle(["x", "yy"], file, pa.string()).dictionary_encode(),
        "nothing": pa.nulls(ROWS),
    }


def nested(file: int) -> Dict[str, pa.Array]:
    deep = [
        [],
        [None],
        [{"a": 1, "l": [[1, None], [], None], "m": [("k", -0.0), ("j", None)]}, None],
        [{"a": None, "l": None, "m": []}],
    ]
    inner = pa.struct([("a", pa.int64()), ("l", pa.list_(pa.list_(pa.int32()))), ("m", pa.map_(pa.string(), pa.float64()))])
    return {
        "deep": cycle(deep, file, pa.list_(inner)),
        "st": cycle([{"x": None, "y": None}, {"x": 1, "y": "t"}], file, pa.struct([("x", pa.int32()), ("y", pa.string())])),
        "map": cycle([[], [("b", 1), ("a", None)]], file, pa.map_(pa.string(), pa.int32())),
        "three": pa.array([[file, None, 3]] * ROWS, pa.list_(pa.int16(), 3)),
    }


def everything(file: int) -> pa.Table:
    columns = {**numbers(file), **times(file), **texts(file), **nested(file)}
    return pa.table({**columns, "needed": pa.array(range(file * ROWS, (file + 1) * ROWS), pa.int64())}, schema=_schema(columns))


def _schema(columns: Mapping[str, pa.Array]) -> pa.Schema:
    identified = {"i8": "1", "s": "2", "deep": "3"}
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": identified[name]} if name in identified else None)
        for name, array in columns.items()
    ]
    return pa.schema([*fields, pa.field("needed", pa.int64(), nullable=False)], metadata={"own": "ü"})


def halves(file: int) -> pa.Table:
    return pa.table({"f16": floats(file, pa.float16()), "i32": cycle([1], file, pa.int32())})


def nans(file: int) -> pa.Table:
    return pa.table({"f64": floats(file, pa.float64()), "f32": floats(file, pa.float32())})


def plain(file: int) -> pa.Table:
    """What every reader of every version understands, and every writer keeps."""
    columns = {
        "i64": cycle([-(2**63), 0, 2**63 - 1], file, pa.int64()),
        "s": texts(file)["s"],
        "f64": cycle([float("nan"), *DOUBLES[2:]], file, pa.float64()),
    }
    return pa.table(columns)


def write_files(directory: Path, tables: Iterator[pa.Table], **options: Any) -> None:
    for number, table in enumerate(tables):
        pq.write_table(table, directory / f"arrow-{number}.parquet", **{"row_group_size": 5, **options})


def write(make: Any, directory: Path, _tools: Any, **options: Any) -> None:
    write_files(directory, map(make, range(FILES)), **options)


def write_odd_names(directory: Path, _tools: Any) -> None:
    names = [
        "a.b",
        "a b",
        "ü",
        "UPPER",
        "tab\there",
        "back`quote",
        'double"quote',
        "list",
        "element",
        "key_value",
        "_hidden",
        "a;b,c{}()=\n",
    ]
    for file in range(FILES):
        columns = [cycle([1, 2], file, pa.int32()) for _ in names]
        inner = pa.StructArray.from_arrays(columns[:4], ["x.y", " ", "É", "List"])
        table = pa.Table.from_arrays([*columns, inner], [*names, "st.ruct"])
        pq.write_table(table, directory / f"{file}.parquet", store_schema=False)


def write_groups_of_no_rows(directory: Path, _tools: Any) -> None:
    table = plain(0)
    for file in range(FILES):
        with pq.ParquetWriter(directory / f"{file}.parquet", table.schema, store_schema=False) as writer:
            for rows in (table, table.slice(0, 0), table.slice(3)):
                writer.write_table(rows)


def _encodings(kinds: Mapping[str, str]) -> Dict[str, Any]:
    return {"use_dictionary": False, "column_encoding": dict(kinds)}


DELTA = {
    **dict.fromkeys(("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "day", "ts_ms", "ts_us", "t32", "t64"), "DELTA_BINARY_PACKED"),
    "s": "DELTA_BYTE_ARRAY",
    "fixed": "DELTA_BYTE_ARRAY",
    "bin": "DELTA_LENGTH_BYTE_ARRAY",
    "large": "DELTA_LENGTH_BYTE_ARRAY",
}
SPLIT = dict.fromkeys(("f32", "f64"), "BYTE_STREAM_SPLIT")
SPLIT_WHOLE = dict.fromkeys(("i32", "i64", "fixed", "dec38"), "BYTE_STREAM_SPLIT")


def _case(name: str, make: Any = everything, expected: str = "compacted", is_quick: bool = False, **options: Any) -> Case:
    return Case(f"pyarrow.{name}", PARQUET, COLUMNS, partial(write, make, **options), expected, is_quick)


CASES = (
    _case("plain", plain, store_schema=False, is_quick=True),
    _case("plain-as-it-comes", plain),
    *(_case(f"codec-{codec}", compression=codec) for codec in ("none", "snappy", "gzip", "zstd", "lz4")),
    _case("nan-bits", nans, store_schema=False, is_quick=True),
    # An annotation that parquet-mr before 1.14 does not know.
    _case("float16", halves, store_schema=False, is_quick=True),
    _case("codec-brotli", expected=UNDECODABLE, compression="brotli"),
    _case("plain-zstd", plain, store_schema=False, compression="zstd"),
    _case("plain-lz4_raw", plain, store_schema=False, compression="lz4"),
    _case("pages-v2", data_page_version="2.0", is_quick=True),
    _case("pages-v2-none", data_page_version="2.0", compression="none"),
    _case("version-1.0", version="1.0", coerce_timestamps="us", allow_truncated_timestamps=True),
    _case("version-2.4", version="2.4", coerce_timestamps="us", allow_truncated_timestamps=True),
    _case("version-2.6", version="2.6"),
    _case("without-arrow-schema", store_schema=False),
    _case("int96", use_deprecated_int96_timestamps=True),
    _case("int96-without-arrow-schema", use_deprecated_int96_timestamps=True, store_schema=False),
    _case("decimals-as-integers", store_decimal_as_integer=True, store_schema=False),
    _case("two-level-names", use_compliant_nested_type=False),
    _case("two-level-names-without-arrow-schema", use_compliant_nested_type=False, store_schema=False),
    _case("checksums", write_page_checksum=True),
    _case("page-index", write_page_index=True),
    _case("without-dictionaries", use_dictionary=False),
    _case("without-statistics", write_statistics=False),
    _case("tiny-pages", data_page_size=64, write_batch_size=2),
    _case("delta", **_encodings(DELTA)),
    _case("delta-v2", data_page_version="2.0", **_encodings(DELTA)),
    _case("byte-stream-split", **_encodings(SPLIT)),
    _case("byte-stream-split-of-integers", expected=UNDECODABLE, **_encodings(SPLIT_WHOLE)),
    _case("rle-booleans", **_encodings({"flag": "RLE"})),
    Case("pyarrow.odd-names", PARQUET, COLUMNS, write_odd_names, is_quick=True),
    Case("pyarrow.groups-of-no-rows", PARQUET, COLUMNS, write_groups_of_no_rows),
)
