"""`ports.Rows` writes the ends of a file that is to be joined, and finds where in a joined file one ends and another begins."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from hivekeeper.cluster.rows import SparkRows
from hivekeeper.model import Ends
from hivekeeper.ports import RowsError
from support import hostile_files
from support.data_files import listed


@pytest.fixture
def rows(gateway):
    return SparkRows(gateway)


@pytest.fixture(params=["parquet", "orc"])
def format(request):
    return request.param


def write(format: str, directory: Path, name: str, *values: int) -> Path:
    directory.mkdir(exist_ok=True)
    (pq if format == "parquet" else po).write_table(pa.table({"n": list(values)}), directory / name)
    return directory / name


def read(format: str, path: Path) -> pa.Table:
    return (pq if format == "parquet" else po).read_table(path)


def test_a_file_with_an_end_without_rows_shows_none_and_with_its_own_again_all(rows, format, tmp_path):
    path = write(format, tmp_path / "d", "a.data", 1, 2, 3)
    (file,) = listed(tmp_path / "d")
    empty, own = tmp_path / "empty", tmp_path / "own"
    assert rows.write_ends(format, {1: Ends(file, f"file:{empty}", f"file:{own}")}) == {}
    ends = {"empty": empty.read_bytes(), "own": own.read_bytes()}
    assert path.read_bytes().endswith(ends["own"])
    assert {oct(one.stat().st_mode & 0o777) for one in (empty, own)} == {"0o600"}
    joined = tmp_path / "joined"
    joined.mkdir()
    (joined / "none").write_bytes(path.read_bytes() + ends["empty"])
    (joined / "all").write_bytes(path.read_bytes() + ends["empty"] + b"anything" + ends["own"])
    assert read(format, joined / "none").to_pylist() == []
    assert read(format, joined / "all") == read(format, path)
    # As the run does before and after a join.
    found = rows.footers(format, {one.name: [one] for one in listed(joined)} | {"copy": [file]}, by_identity=True)
    assert {name: of_file.groups[0].row_count for name, of_file in found.items()} == {"none": 0, "all": 3, "copy": 3}
    assert len({(of_file.groups[0].form.schema, of_file.groups[0].form.identity) for of_file in found.values()}) == 1
    # As a cleanup does before it cuts.
    one = {each.name: each for each in listed(joined)}
    assert rows.ends_like_whole(format, one["all"], file.length)
    assert not rows.ends_like_whole(format, one["all"], file.length + len(ends["empty"]))
    assert not rows.ends_like_whole(format, one["none"], file.length)
    for length in (0, 1, file.length - 1, file.length + 1):
        with pytest.raises(RowsError):
            rows.ends_like_whole(format, one["all"], length)


def test_ends_are_never_written_over_a_file(rows, format, tmp_path):
    write(format, tmp_path / "d", "a.data", 1)
    (file,) = listed(tmp_path / "d")
    (tmp_path / "own").write_text("mine")
    places = [Ends(file, f"file:{tmp_path}/empty{number}", f"file:{tmp_path}/own{number}") for number in ("", 2)]
    assert rows.write_ends(format, dict(enumerate(places))).keys() == {0}
    assert (tmp_path / "own2").exists()
    assert (tmp_path / "own").read_text() == "mine"


def test_ends_that_do_not_fit_into_memory_together_are_written_all_the_same(rows, tmp_path):
    """Sixteen of 14 MiB, each several times in memory, in a driver with 1 GiB."""
    directory = tmp_path / "d"
    directory.mkdir()
    data = hostile_files.has_long_bounds(7 << 20)
    for number in range(16):
        (directory / f"{number}").write_bytes(data)
    files = dict(enumerate(listed(directory)))
    wanted = {number: Ends(file, f"file:{tmp_path}/empty{number}", f"file:{tmp_path}/own{number}") for number, file in files.items()}
    assert rows.write_ends("parquet", wanted) == {}
    assert all(data.endswith((tmp_path / f"own{number}").read_bytes()) for number in wanted)


def test_files_in_a_joined_file_are_found_by_where_they_begin_and_end(rows, format, tmp_path):
    parts = [write(format, tmp_path / "parts", f"{n}.data", *range(n * 100)).read_bytes() for n in (1, 2, 3)]
    joined = tmp_path / "joined"
    joined.mkdir()
    (joined / "a").write_bytes(b"".join(parts))
    (file,) = listed(joined)
    starts = [len(parts[0]), len(parts[0]) + len(parts[1])]
    assert rows.find_starts(format, file, [100, starts[0], starts[0] + 4, starts[1], starts[1] - 4]) == tuple(starts)
    assert rows.find_starts(format, file, []) == ()
    # Of files that somebody put in the place of the first and the last one, too short for any format.
    assert rows.find_starts(format, file, [1, starts[0], file.length - 1]) == (starts[0],)


# ---- old files inside another one


@pytest.fixture
def parts(format, tmp_path):
    """Three files, the third too long to be held in memory as a whole, and where they lie in a fourth."""
    return [write(format, tmp_path / "parts", f"{n}.data", *range(n, n + 10**size)) for n, size in ((0, 1), (100, 2), (200, 5))]


@pytest.fixture
def around(format, parts, tmp_path):
    """The file that has them inside, behind a copy and before a tail; and each of them as it lies there."""
    copy = write(format, tmp_path / "copy", "copy.data", 7, 8).read_bytes()
    directory = tmp_path / "around"
    directory.mkdir()
    (directory / "around.data").write_bytes(copy + b"".join(part.read_bytes() for part in parts) + copy)
    file = listed(directory)[0]._replace(file_id=(directory / "around.data").stat().st_ino)
    begin, inner = len(copy), []
    for part in parts:
        length = part.stat().st_size
        inner.append(file._replace(begin=begin, length=length, inner=part.name))
        begin += length
    return file, inner


def test_a_file_inside_another_is_read_as_the_file_that_it_was(rows, format, around, tmp_path):
    _, inner = around
    plain = listed(tmp_path / "parts")
    for by_identity in (False, True):
        found = rows.footers(format, {"plain": plain, "inner": inner}, by_identity=by_identity)
        assert len(found["inner"].groups) == len(found["plain"].groups) == 1
        assert sorted(found["inner"].groups[0].rows.values()) == sorted(found["plain"].groups[0].rows.values()) == [10, 100, 100_000]
        assert (found["inner"].groups[0].form, found["inner"].groups[0].columns) == (
            found["plain"].groups[0].form,
            found["plain"].groups[0].columns,
        )


@pytest.mark.parametrize("window", [64 << 20, 100], ids=["whole", "streamed"])
def test_a_file_inside_another_has_the_digest_of_the_file_that_it_was(rows, format, around, tmp_path, window):
    _, inner = around
    rows.physical._jobs.setWindow(window)
    try:
        found = rows.digests(format, {"plain": listed(tmp_path / "parts"), "inner": inner, "one": inner[:1]})
    finally:
        rows.physical._jobs.setWindow(64 << 20)
    assert found["plain"] == found["inner"] != found["one"]
    assert found["one"].digest.rows == 10


def test_what_is_no_file_inside_another_is_unreadable(rows, format, around):
    _, inner = around
    wrong = [inner[0]._replace(begin=inner[0].begin + 1)]
    assert rows.footers(format, {0: wrong})[0].unreadable
    assert rows.digests(format, {0: wrong})[0].failed


def test_files_inside_another_come_back_as_one_with_their_own_bytes(rows, format, parts, around, tmp_path):
    file, inner = around
    target = tmp_path / "restored" / "r.data"
    target.parent.mkdir()
    rows.write_restored(format, file, inner[0].begin, [one.length for one in inner], f"file:{target}")
    bytes_of_all = b"".join(part.read_bytes() for part in parts)
    assert target.read_bytes().startswith(bytes_of_all)
    assert oct(target.stat().st_mode & 0o777) == "0o600"
    assert read(format, target) == pa.concat_tables([read(format, part) for part in parts])
    assert rows.digests(format, {0: listed(target.parent)}) == rows.digests(format, {0: inner})
    with pytest.raises(RowsError):
        rows.write_restored(format, file, inner[0].begin, [one.length for one in inner], f"file:{target}")


def test_a_file_that_replaced_the_one_with_old_files_inside_is_not_read(rows, format, around, tmp_path):
    file, inner = around
    target = tmp_path / "restored.data"
    with pytest.raises(RowsError, match="another file"):
        rows.write_restored(format, file._replace(file_id=file.file_id + 1), inner[0].begin, [inner[0].length], f"file:{target}")
    assert not target.exists()


def test_files_whose_footers_say_more_than_their_rows_could_not_come_back_as_one(rows, format, tmp_path):
    write(format, tmp_path / "d", "a.data", 1)
    write(format, tmp_path / "d", "b.data", 2)
    assert rows.find_unlike(format, {1: listed(tmp_path / "d")}) == {}
    if format == "parquet":
        pq.write_table(pa.table({"n": [3]}).replace_schema_metadata({"who": "else"}), tmp_path / "d" / "c.data")
    else:
        po.write_table(pa.table({"n": [3]}), tmp_path / "d" / "c.data", compression="zstd")
    assert "more than their rows" in rows.find_unlike(format, {1: listed(tmp_path / "d")})[1]


def test_files_whose_footers_together_would_not_be_read_are_not_joined(rows, format, tmp_path):
    """A rollback writes one footer over the rows of all of them, and none above 64 MiB is ever read."""
    directory = tmp_path / "d"
    directory.mkdir()
    for name in "abc":
        if format == "parquet":
            (directory / name).write_bytes(hostile_files.has_long_bounds(12 << 20))
        else:
            po.write_table(pa.table({"text": [name * (12 << 20)]}), directory / name, compression="zlib")
    files = listed(directory)
    assert rows.find_unlike(format, {1: files[:1]}) == {}
    assert "more than 67108864 are not read" in rows.find_unlike(format, {1: files})[1]


def test_ends_that_are_too_long_together_are_not_held_in_memory_all_the_same(rows, format, tmp_path):
    """What is known by then is enough: no further file is read. Compressed, an end of ORC takes a thousandth."""
    directory = tmp_path / "d"
    directory.mkdir()
    if format == "parquet":
        (directory / "a").write_bytes(hostile_files.has_long_bounds(3 << 20))
    else:
        po.write_table(pa.table({"text": ["a" * (3 << 20)]}), directory / "a", compression="zlib")
    (file,) = listed(directory)
    assert "more than 67108864 are not read" in rows.find_unlike(format, {1: [*[file] * 16, file._replace(path=f"file:{directory}/b")]})[1]


def test_files_of_more_stripes_than_are_read_of_one_are_not_joined(rows, tmp_path):
    directory = tmp_path / "d"
    directory.mkdir()
    for name in "ab":
        hostile_files.write_orc_naming_a_stripe_often(directory / name, 6000)
    files = listed(directory)
    assert rows.find_unlike("orc", {1: files[:1]}) == {}
    assert "12002 stripes" in rows.find_unlike("orc", {1: files})[1]


def test_a_whole_file_without_rows_is_written_beside(rows, format, tmp_path):
    path = write(format, tmp_path / "d", "a.data", 1)
    (file,) = listed(tmp_path / "d")
    alone = tmp_path / "alone.data"
    rows.write_ends(format, {1: Ends(file, f"file:{tmp_path}/empty", f"file:{tmp_path}/own", f"file:{alone}")})
    assert read(format, alone).to_pylist() == []
    assert read(format, alone).schema == read(format, path).schema
