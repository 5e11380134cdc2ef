"""The evidence sees what it is there to see: for each change to a file, one that it would be wrong to miss."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from foreign import evidence, footers
from foreign.cases import ORC, PARQUET
from foreign.writers import arrow
from foreign.writers.arrow import bits

NANOS = pa.timestamp("ns")
INT96 = {"use_deprecated_int96_timestamps": True}


def seen(directory, values, kind, format=PARQUET, **options):
    directory.mkdir()
    table = pa.table({"a": pa.array(values, kind)})
    if format == ORC:
        po.write_table(table, directory / "x")
    else:
        pq.write_table(table, directory / "x", store_schema=False, **options)
    return evidence.gather(directory, format)


CHANGES = {
    "the bits of a NaN": (bits(0x7FF8000000000000), bits(0x7FF8000000000001), pa.float64()),
    "the sign of zero": ([0.0], [-0.0], pa.float64()),
    "the sign of zero in a list": ([[0.0]], [[-0.0]], pa.list_(pa.float64())),
    "a nanosecond": ([1], [2], NANOS),
    "NULL and an empty list": ([None], [[]], pa.list_(pa.int32())),
    "the order of a map": ([[("a", 1), ("b", 2)]], [[("b", 2), ("a", 1)]], pa.map_(pa.string(), pa.int32())),
    "a row twice": ([1, 2], [1, 1, 2], pa.int32()),
}


@pytest.mark.parametrize("format", [PARQUET, ORC])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_value_is_seen_by_pyarrow(tmp_path, change, format):
    one, other, kind = CHANGES[change]
    found = seen(tmp_path / "one", one, kind, format)
    assert found["pyarrow"] == seen(tmp_path / "same", one, kind, format)["pyarrow"]
    assert found["pyarrow"] != seen(tmp_path / "other", other, kind, format)["pyarrow"]


def test_the_bytes_of_int96_are_seen_where_arrow_overflows(tmp_path):
    found = seen(tmp_path / "one", [0], NANOS, **INT96)
    (row,) = (row for _, row in found["pyarrow"])
    assert row == repr((struct.pack("<qi", 0, 2440588),))


@pytest.mark.parametrize(("created_by", "keys"), [("somebody else", {"own": "1"}), ("me", {"own": "2"}), (None, {"own": "1"}), ("me", {})])
def test_another_footer_is_seen(tmp_path, created_by, keys):
    before = seen(tmp_path / "t", [1], pa.int32())
    file = tmp_path / "t" / "x"
    footers.sign(file, "me", {"own": "1"})
    signed = evidence.gather(tmp_path / "t", PARQUET)
    footers.sign(file, created_by, keys)
    after = evidence.gather(tmp_path / "t", PARQUET)
    assert len({repr(found[evidence.FOOTERS]) for found in (before, signed, after)}) == 3
    assert before["pyarrow"] == signed["pyarrow"] == after["pyarrow"]


def test_a_footer_is_written_back_as_it_was_read(tmp_path):
    """Otherwise a changed footer would differ in more than what was changed."""
    arrow.write(arrow.everything, tmp_path, None, write_page_index=True)
    for path in evidence.data_files(tmp_path):
        assert footers.join(*footers.split(path.read_bytes())) == path.read_bytes()
