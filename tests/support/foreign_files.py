"""Directories of Parquet files as many writers leave them, made with Arrow: two files each, of equal schema."""

from __future__ import annotations

import decimal
import struct
from pathlib import Path
from typing import Any, Callable, Dict, List

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 400
ODD_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF80000DEADBEEF))[0]


def _numbers(kind: pa.DataType, most: int) -> pa.Array:
    return pa.array([None if row % 11 == 0 else (row * 2654435761) % most for row in range(ROWS)], kind)


def _nested(row: int) -> Any:
    if row % 11 == 0:
        return None
    return [
        None if at == 2 else {"a": row if at % 2 else None, "l": [[at, None]] * (row % 3), "m": [("k", 1.5)] * at} for at in range(row % 5)
    ]


def columns() -> Dict[str, pa.Array]:
    doubles = [-0.0 if row % 17 == 0 else row / 3 for row in range(ROWS)]
    micros = _numbers(pa.int64(), 2**50)
    return {
        "i8": _numbers(pa.int8(), 2**7),
        "u32": _numbers(pa.uint32(), 2**32),
        "u64": _numbers(pa.uint64(), 2**63),
        "i32": _numbers(pa.int32(), 2**31),
        "f32": pa.array(doubles, pa.float32()),
        "f64": pa.array([float("nan") if row % 19 == 0 else value for row, value in enumerate(doubles)], pa.float64()),
        "b": pa.array([None if row % 7 == 0 else row % 2 == 0 for row in range(ROWS)]),
        "time": _numbers(pa.int32(), 86_400_000).cast(pa.time32("ms")),
        "nanos": micros.cast(pa.timestamp("ns")),
        "micros": micros.cast(pa.timestamp("us", tz="Europe/Berlin")),
        "date": _numbers(pa.int32(), 30_000).cast(pa.date32()),
        "decimal": pa.array([decimal.Decimal(row) / 100 for row in range(ROWS)], pa.decimal128(7, 2)),
        "long_decimal": pa.array([decimal.Decimal(row) for row in range(ROWS)], pa.decimal128(38, 0)),
        "text": pa.array([None if row % 5 == 0 else f"é{row % 50}" for row in range(ROWS)]),
        "bytes": pa.array([bytes([row % 256]) * (row % 9) for row in range(ROWS)]),
        "fixed": pa.array([struct.pack(">Q", row)[1:] for row in range(ROWS)], pa.binary(7)),
        "nothing": pa.nulls(ROWS),
        "nested": pa.array(
            list(map(_nested, range(ROWS))),
            pa.list_(pa.struct([("a", pa.int64()), ("l", pa.list_(pa.list_(pa.int32()))), ("m", pa.map_(pa.string(), pa.float64()))])),
        ),
        "required": pa.array(range(ROWS)),
    }


def table() -> pa.Table:
    arrays = columns()
    arrays["f16"] = arrays["f32"].cast(pa.float16()) if hasattr(pa, "float16") else arrays["f32"]
    ids = {"i8": "1", "nested": "7"}
    fields = [
        pa.field(name, array.type, name != "required", {"PARQUET:field_id": ids[name]} if name in ids else None)
        for name, array in arrays.items()
    ]
    return pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields, metadata={"own": "ü"}))


def _delta(name: str, kind: pa.DataType) -> str:
    if name in ("text", "fixed"):
        return "DELTA_BYTE_ARRAY"
    if name == "bytes":
        return "DELTA_LENGTH_BYTE_ARRAY"
    return "DELTA_BINARY_PACKED" if pa.types.is_integer(kind) or pa.types.is_temporal(kind) else "PLAIN"


def _encodings() -> Dict[str, str]:
    return {
        field.name: _delta(field.name, field.type)
        for field in table().schema
        if field.name not in ("b", "nothing") and not pa.types.is_nested(field.type)
    }


WRITERS: Dict[str, Dict[str, Any]] = {
    "plain": {},
    "gzip": {"compression": "gzip"},
    "zstd": {"compression": "zstd"},
    "uncompressed": {"compression": "none"},
    "v2-pages": {"data_page_version": "2.0"},
    "int96": {"use_deprecated_int96_timestamps": True},
    "no-arrow-schema": {"store_schema": False},
    "decimals-in-integers": {"store_decimal_as_integer": True},
    "old-lists": {"use_compliant_nested_type": False},
    "checksums": {"write_page_checksum": True},
    "no-dictionary": {"use_dictionary": False},
    "no-statistics": {"write_statistics": False},
    "tiny-pages": {"data_page_size": 256, "write_batch_size": 10},
    "page-index": {"write_page_index": True},
    "split": {"use_dictionary": False, "column_encoding": {"f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT"}},
    "delta": {"use_dictionary": False, "column_encoding": _encodings()},
    "delta-v2": {"use_dictionary": False, "column_encoding": _encodings(), "data_page_version": "2.0"},
}


def write_two(directory: Path, content: pa.Table, **options: Any) -> None:
    directory.mkdir()
    for name, part in (("a", content), ("b", content.slice(0, content.num_rows // 2))):
        pq.write_table(part, directory / name, **{"row_group_size": 150, **options})


def _long_lists() -> pa.Table:
    return pa.table({"long": pa.array([list(range(200_000)), None, [1]])})


def _wide() -> pa.Table:
    return pa.table({f"c{number}": pa.array([number, None]) for number in range(1500)})


def _odd_nans() -> pa.Table:
    return pa.table({"d": [1.0, ODD_NAN, float("nan"), -0.0] * 50, "f": pa.array([ODD_NAN, None, 2.0, -0.0] * 50, pa.float32())})


OTHERS: Dict[str, Callable[[], pa.Table]] = {
    "long-lists": _long_lists,
    "wide": _wide,
    "odd-nans": _odd_nans,
    "no-rows": lambda: table().slice(0, 0),
    "large-values": lambda: pa.table({"v": [bytes([row]) * 700_000 for row in range(20)]}),
}


def write_empty_groups(directory: Path) -> None:
    """The middle one of three row groups has no rows."""
    directory.mkdir()
    content = table()
    for name in ("a", "b"):
        with pq.ParquetWriter(directory / name, content.schema) as writer:
            for part in (content.slice(0, 10), content.slice(0, 0), content.slice(10, 20)):
                writer.write_table(part)


def write_all(top: Path) -> List[str]:
    """One directory per kind; their names."""
    content = table()
    for name, options in WRITERS.items():
        write_two(top / name, content, **options)
    for name, make in OTHERS.items():
        write_two(top / name, make())
    write_empty_groups(top / "empty-groups")
    return [*WRITERS, *OTHERS, "empty-groups"]
