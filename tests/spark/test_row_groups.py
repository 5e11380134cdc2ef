"""Where footers say that row groups and stripes are: as other readers find them, and not what cannot be true."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from hivekeeper.cluster.rows import SparkRows
from support import hostile_files
from support.data_files import listed


@pytest.fixture
def rows(gateway):
    return SparkRows(gateway)


def told(rows, format, directory, most=100_000):
    found = rows.footers(format, {"u": listed(directory)}, by_identity=True, most_row_groups=most)["u"]
    assert found.unreadable == ()
    return {one.file.name: [tuple(group) for group in one.groups] for one in found.row_groups}


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "compression": "none"}, {"data_page_version": "2.0"}])
def test_row_groups_of_parquet_are_where_arrow_finds_them(rows, tmp_path, options):
    table = pa.table({"id": range(1000), "text": [f"text {number % 7}" for number in range(1000)]})
    pq.write_table(table, tmp_path / "a", row_group_size=300, **options)
    metadata = pq.ParquetFile(tmp_path / "a").metadata
    expected = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(index) for index in range(group.num_columns)]
        start = min(column.dictionary_page_offset or column.data_page_offset for column in columns)
        expected.append((start, sum(column.total_compressed_size for column in columns), group.num_rows))
    assert told(rows, "parquet", tmp_path) == {"a": expected}
    assert [count for *_, count in expected] == [300, 300, 300, 100]


def test_stripes_of_orc_are_its_row_groups(rows, tmp_path):
    with po.ORCWriter(str(tmp_path / "a"), stripe_size=1 << 16, compression="uncompressed") as writer:
        for begin in range(0, 100_000, 1000):
            writer.write(pa.table({"id": range(begin, begin + 1000), "text": [f"{number * 7919 % 99991}" for number in range(1000)]}))
    file = po.ORCFile(tmp_path / "a")
    groups = told(rows, "orc", tmp_path)["a"]
    assert file.nstripes > 1
    assert [count for *_, count in groups] == [file.read_stripe(number).num_rows for number in range(file.nstripes)]
    assert groups[0][0] == len(b"ORC")
    assert all(end == begin for (end, begin) in zip([start + length for start, length, _ in groups], [start for start, *_ in groups[1:]]))


def test_a_file_without_rows_has_none(rows, tmp_path):
    for format, write in (("parquet", pq.write_table), ("orc", po.write_table)):
        (tmp_path / format).mkdir()
        write(pa.table({"id": pa.array([], pa.int64())}), tmp_path / format / "a")
        assert told(rows, format, tmp_path / format) == {}


def test_row_groups_that_lie_in_one_another_are_not_told_and_cost_only_their_own_file(rows, tmp_path):
    """A file of a hundred bytes of data, whose footer names them two hundred thousand times."""
    (tmp_path / "a").write_bytes(hostile_files.good())
    (tmp_path / "many").write_bytes(hostile_files.adds_up_to(200_000, [1] * 200_000))
    (tmp_path / "two").write_bytes(hostile_files.adds_up_to(2, [1, 1]))
    (tmp_path / "z").write_bytes(hostile_files.good())
    expected = [(4, len(hostile_files.GOOD), 1)]
    assert told(rows, "parquet", tmp_path) == {"a": expected, "z": expected}
    assert told(rows, "parquet", tmp_path, 1_000_000) == {"a": expected, "z": expected}
    assert len(told(rows, "parquet", tmp_path, 1)) == 1


def test_what_is_told_fits_into_the_room_however_many_files_there_are(rows, tmp_path):
    for number in range(30):
        pq.write_table(pa.table({"id": range(10)}), tmp_path / f"{number:02d}", row_group_size=1)
    assert len(told(rows, "parquet", tmp_path, 300)) == 30
    assert len(told(rows, "parquet", tmp_path, 55)) == 5
