"""Footers of more files than are held in memory together give what those of a few do."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hivekeeper import names
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.model import ColumnFacts
from support import hostile_files
from support.data_files import listed
from support.driver_cpu import cpu_seconds

# Footers.FILES_AT_ONCE is 1000.
MANY = 1100


@pytest.fixture
def unit(tmp_path):
    """In the order of their names: a file without rows, many of snappy, one that cannot be read, some of gzip, one without rows."""
    (tmp_path / "u").mkdir()
    schema = pa.schema({"id": pa.int64()})
    for codec, ids in {"snappy": [3, 1], "gzip": [9, 2, 5]}.items():
        pq.write_table(pa.table({"id": ids}, schema), tmp_path / codec, compression=codec)
    pq.ParquetWriter(tmp_path / "rowless", schema).close()
    (tmp_path / "damaged").write_bytes(b"PAR1")
    seeds = ["rowless", *["snappy"] * MANY, "damaged", *["gzip"] * 5, "rowless"]
    for number, seed in enumerate(seeds):
        os.link(tmp_path / seed, tmp_path / "u" / f"{number:05d}")
    return sorted(listed(tmp_path / "u"), key=lambda file: file.path)


@pytest.mark.parametrize("by_identity", [False, True])
def test_forms_rows_and_statistics_are_merged_over_all_files_of_a_unit(gateway, unit, by_identity):
    both = SparkRows(gateway).footers("parquet", {"all": unit, "last": unit[-6:]}, by_identity=by_identity)
    snappy, gzip = both["all"].groups
    assert [group.form.codec for group in (snappy, gzip)] == ["snappy", "gzip"]
    # Files without rows count as of the first form that differs from theirs only in what rows bring along.
    assert list(snappy.rows) == [file.path for file in [*unit[: MANY + 1], unit[-1]]]
    assert list(snappy.rows.values()) == [0, *[2] * MANY, 0]
    assert gzip.rows == dict.fromkeys((file.path for file in unit[-6:-1]), 3)
    values = {"snappy": ColumnFacts(2 * MANY), "gzip": ColumnFacts(15)}
    if not by_identity:
        values = {"snappy": ColumnFacts(2 * MANY, 0, "1", "3"), "gzip": ColumnFacts(15, 0, "2", "9")}
    assert [group.columns["id"] for group in (snappy, gzip)] == [values["snappy"], values["gzip"]]
    assert [names.base(path) for path, _ in both["all"].unreadable] == [f"{MANY + 1:05d}"]
    (last,) = both["last"].groups
    assert (last.form, sorted(last.rows.values())) == (gzip.form, [0, 3, 3, 3, 3, 3])


@pytest.mark.parametrize("by_identity", [False, True])
def test_forms_of_one_hash_are_not_compared_with_one_another(gateway, tmp_path, by_identity):
    """Of a hundred thousand files it would take hours."""
    chosen = hostile_files.names_of_one_hash(8000)
    seconds = []
    for kind, columns in {"plain": [b"c%031d" % number for number in range(8000)], "chosen": chosen}.items():
        (tmp_path / kind).mkdir()
        for number, column in enumerate(columns):
            (tmp_path / kind / str(number)).write_bytes(hostile_files.has_columns([column]))
        before = cpu_seconds(gateway)
        found = SparkRows(gateway).footers("parquet", {"u": listed(tmp_path / kind)}, by_identity=by_identity)["u"]
        seconds.append(cpu_seconds(gateway) - before)
        assert len(found.groups) == 8000
    # On a busy machine up to four times as much for the chosen ones; seven times where maps are keys.
    assert seconds[1] < 10 + 3 * seconds[0]
