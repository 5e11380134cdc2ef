"""`ports.Rows` writes the ends of a file that is to be joined, and finds where in a joined file one ends and another begins."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hivekeeper.cluster.rows import SparkRows
from hivekeeper.ports import RowsError
from support.data_files import listed


@pytest.fixture
def rows(gateway):
    return SparkRows(gateway)


def write(directory: Path, name: str, *values: int) -> Path:
    directory.mkdir(exist_ok=True)
    pq.write_table(pa.table({"n": list(values)}), directory / name)
    return directory / name


def test_a_file_with_an_end_without_rows_shows_none_and_with_its_own_again_all(rows, tmp_path):
    path = write(tmp_path / "d", "a.parquet", 1, 2, 3)
    (file,) = listed(tmp_path / "d")
    empty, own = tmp_path / "empty", tmp_path / "own"
    rows.write_ends("parquet", file, f"file:{empty}", f"file:{own}")
    ends = {"empty": empty.read_bytes(), "own": own.read_bytes()}
    assert path.read_bytes().endswith(ends["own"])
    assert {oct(one.stat().st_mode & 0o777) for one in (empty, own)} == {"0o600"}
    joined = tmp_path / "joined"
    joined.mkdir()
    (joined / "none").write_bytes(path.read_bytes() + ends["empty"])
    (joined / "all").write_bytes(path.read_bytes() + ends["empty"] + b"anything" + ends["own"])
    assert pq.read_table(joined / "none").to_pylist() == []
    assert pq.read_table(joined / "all") == pq.read_table(path)
    # As the run does before and after a join.
    read = rows.footers("parquet", {one.name: [one] for one in listed(joined)} | {"copy": [file]}, by_identity=True)
    assert {name: of_file.groups[0].row_count for name, of_file in read.items()} == {"none": 0, "all": 3, "copy": 3}
    assert len({(of_file.groups[0].form.schema, of_file.groups[0].form.identity) for of_file in read.values()}) == 1


def test_ends_are_never_written_over_a_file(rows, tmp_path):
    write(tmp_path / "d", "a.parquet", 1)
    (file,) = listed(tmp_path / "d")
    (tmp_path / "own").write_text("mine")
    with pytest.raises(RowsError):
        rows.write_ends("parquet", file, f"file:{tmp_path}/empty", f"file:{tmp_path}/own")
    assert (tmp_path / "own").read_text() == "mine"


def test_only_parquet_is_joined(rows, tmp_path):
    write(tmp_path / "d", "a.parquet", 1)
    (file,) = listed(tmp_path / "d")
    with pytest.raises(RowsError, match="orc"):
        rows.write_ends("orc", file, f"file:{tmp_path}/empty", f"file:{tmp_path}/own")
    with pytest.raises(RowsError, match="orc"):
        rows.find_starts("orc", file, [1])


def test_files_in_a_joined_file_are_found_by_where_they_begin_and_end(rows, tmp_path):
    parts = [write(tmp_path / "parts", f"{n}.parquet", *range(n * 100)).read_bytes() for n in (1, 2, 3)]
    joined = tmp_path / "joined"
    joined.mkdir()
    (joined / "a").write_bytes(b"".join(parts))
    (file,) = listed(joined)
    starts = [len(parts[0]), len(parts[0]) + len(parts[1])]
    assert rows.find_starts("parquet", file, [100, starts[0], starts[0] + 4, starts[1], starts[1] - 4]) == tuple(starts)
    assert rows.find_starts("parquet", file, []) == ()
