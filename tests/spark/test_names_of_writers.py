"""Names of writers in footers, which Parquet's library searches by a pattern (`VersionParser.FORMAT`)."""

from __future__ import annotations

import time

import pytest

from hivekeeper.cluster.rows import SparkRows
from support import hostile_files as hostile
from support.data_files import listed

BYTE_ARRAY, BLANKS = 6, 1500


@pytest.fixture
def rows(gateway):
    return SparkRows(gateway)


def written_by(writer: bytes) -> bytes:
    """A file of one text, with the bounds that writers before 2018 gave: whether to trust them, the library asks the name of the writer."""
    text = hostile.page(1, 5, b"\x01\x00\x00\x00a")
    bounds = [(1, hostile.BINARY, b"a"), (2, hostile.BINARY, b"a"), (3, hostile.I64, 0)]
    chunk = hostile.chunk([b"id"], len(text), hostile.UTF8_CODEC_NONE, 1, bounds)
    chunk[1][2][0] = (1, hostile.I32, BYTE_ARRAY)
    column = [(1, hostile.I32, BYTE_ARRAY), (3, hostile.I32, hostile.REQUIRED), (4, hostile.BINARY, b"id")]
    elements = [[(4, hostile.BINARY, b"spark_schema"), (5, hostile.I32, 1)], column]
    group = [(1, hostile.LIST, (hostile.STRUCT, 1, [chunk])), (2, hostile.I64, len(text)), (3, hostile.I64, 1)]
    fields = [
        (1, hostile.I32, 1),
        (2, hostile.LIST, (hostile.STRUCT, 2, elements)),
        (3, hostile.I64, 1),
        (4, hostile.LIST, (hostile.STRUCT, 1, [group])),
        (6, hostile.BINARY, writer),
    ]
    return hostile.whole(text, hostile.write_struct(fields))


def test_a_name_of_blanks_takes_no_longer_than_another_one(rows, tmp_path):
    """The time grows with the cube of the number of blanks, in the driver, for each column of a row group: 34 s for 2,000 of them, months
    for a hundred thousand, which no limit of time ends.
    """
    for name, writer in (("sound", b"parquet-mr version 1.8.0 (build abc)"), ("blank", b"parquet-mr version " + b" " * BLANKS + b"(")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(written_by(writer))
    assert rows.footers("parquet", {"u": listed(tmp_path / "sound")})["u"].unreadable == ()
    started = time.monotonic()
    rows.footers("parquet", {"u": listed(tmp_path / "blank")})
    assert time.monotonic() - started < 5
