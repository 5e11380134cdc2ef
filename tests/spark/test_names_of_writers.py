"""Names of writers in footers, which Parquet's library searches by a pattern (`VersionParser.FORMAT`)."""

from __future__ import annotations

import json
import time

import pytest

from hivekeeper.cluster.java_errors import CALL_ERRORS
from hivekeeper.cluster.physical_copy import PhysicalCopy, as_asked
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


def placed(tmp_path, writer: bytes):
    """The listing of a directory with such a file."""
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "f").write_bytes(written_by(writer))
    return listed(tmp_path / "u")


SLOW = b"a" + b" " * 64 + b"version" + b" " * 96 + b"(build" + b" " * 128
REFUSED = "the name of its writer takes too long to read"


def test_a_short_name_that_would_take_long_is_refused_by_each_reader(gateway, rows, tmp_path):
    """The time grows with the sixth power of the length: minutes for this one, of 300 characters."""
    files = placed(tmp_path, SLOW)
    started = time.monotonic()
    ((_, reason),) = rows.footers("parquet", {"u": files})["u"].unreadable
    assert REFUSED in reason
    (answer,) = PhysicalCopy(gateway).digest([files])
    assert REFUSED in answer.failed
    with pytest.raises(CALL_ERRORS, match=REFUSED):
        gateway.helper("RowSchema", gateway.hadoop_conf).footer(json.dumps(as_asked(files[0])))
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    "writer",
    [
        b"parquet-mr version 1.8.0rc2-SNAPSHOT (build ddb469afac70404ea63b72ed2f07a911a8592ff7)",
        b"parquet-mr compatible Photon version 0.4 (build 15.4)",
        b"github.com/parquet-go/parquet-go version 0.20.0(build 0000000000000000000000000000000000000000)",
        b"parquet-mr version  (build ${buildNumber})",
        b"",
        "é".encode() * 900,
        b"of  two  blanks " * 20,
    ],
)
def test_other_names_are_read(rows, tmp_path, writer):
    assert rows.footers("parquet", {"u": placed(tmp_path, writer)})["u"].unreadable == ()
