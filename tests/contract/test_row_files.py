"""What `RowFiles` promises, on the fake and with Spark's Parquet library on real files."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from hivekeeper.ports import FilesError, TargetExists
from support import hostile_files
from support.driver_cpu import cpu_seconds
from support.fakes.row_files import FakeRowFiles
from support.storage import local_only

COLUMNS = {"name": "string", "part": "string", "files": "bigint", "median": "double"}
# Every kind of cell: text that needs care, the edges of both kinds of numbers, and nothing.
ROWS = (
    ("events", "dt=1", 5, 1.5),
    ("events", "dt=été \"'\\\n\N{GRINNING FACE}", -(2**63), -0.1),
    ("events", None, 2**63 - 1, None),
    ("", "", None, 0.0),
    (None, None, None, None),
)


@pytest.fixture
def row_files(files_world, request: pytest.FixtureRequest) -> Any:
    if files_world.kind == "fake":
        return FakeRowFiles(files_world.files)
    from hivekeeper.cluster.row_files import ParquetRowFiles

    return ParquetRowFiles(request.getfixturevalue("gateway"))


@pytest.fixture
def written(files_world, row_files) -> str:
    path = files_world.path("a.parquet")
    assert row_files.write(path, COLUMNS, ROWS) == len(ROWS)
    return path


def test_rows_are_read_as_they_were_written(row_files, written):
    assert tuple(map(tuple, row_files.read(written, COLUMNS))) == ROWS


def test_columns_are_read_in_any_order_and_one_that_is_missing_is_null(row_files, written):
    found = list(row_files.read(written, {"files": "bigint", "new": "string", "name": "string"}))
    assert found == [(row[2], None, row[0]) for row in ROWS]


def test_only_rows_with_the_texts_asked_for_are_read(row_files, written):
    assert list(row_files.read(written, {"files": "bigint"}, {"name": "events", "part": "dt=1"})) == [(5,)]
    assert list(row_files.read(written, {"files": "bigint"}, {"name": "Events"})) == []
    assert list(row_files.read(written, {"name": "string"}, {"name": ""})) == [("",)]


def test_a_new_file_has_the_rows_of_another_but_those_that_are_replaced_and_its_own(files_world, row_files, written):
    path, more = files_world.path("b.parquet"), [("other", "x", 1, None)]
    assert row_files.write(path, COLUMNS, more, written, ("name", "part"), [("events", "dt=1"), ("", "no")]) == 5
    assert tuple(map(tuple, row_files.read(path, COLUMNS))) == (*ROWS[1:], *more)
    last = files_world.path("c.parquet")
    assert row_files.write(last, COLUMNS, (), written, ("name", "part"), [("events",), ("",)]) == 1
    assert list(row_files.read(last, COLUMNS)) == [ROWS[-1]]


def test_a_file_without_rows_is_a_file(files_world, row_files):
    path = files_world.path("none.parquet")
    assert row_files.write(path, COLUMNS, ()) == 0
    assert list(row_files.read(path, COLUMNS)) == []


def test_an_existing_file_is_not_overwritten(row_files, written):
    with pytest.raises(TargetExists):
        row_files.write(written, COLUMNS, ())
    assert tuple(map(tuple, row_files.read(written, COLUMNS))) == ROWS


def test_what_is_missing_or_no_parquet_is_an_error(files_world, row_files):
    files_world.writer.add(files_world.path("text"), "no Parquet")
    for name in ("gone", "text"):
        with pytest.raises(FilesError):
            list(row_files.read(files_world.path(name), COLUMNS))
        with pytest.raises(FilesError):
            row_files.write(files_world.path(f"of-{name}"), COLUMNS, (), files_world.path(name))


def test_rows_that_fail_midway_are_an_error_of_their_own(files_world, row_files):
    def rows() -> Any:
        yield ROWS[0]
        raise LookupError("the source of the rows fails")

    with pytest.raises(LookupError):
        row_files.write(files_world.path("half.parquet"), COLUMNS, rows())


@local_only
def test_names_of_one_hash_are_not_compared_with_one_another(gateway, tmp_path):
    """Whoever names a hundred thousand partitions so could have a commit of the catalogue take hours."""
    from hivekeeper.cluster.row_files import ParquetRowFiles

    files, columns, seconds = ParquetRowFiles(gateway), {"name": "string", "part": "string"}, []
    plain = [f"p=c{number:031d}" for number in range(16_000)]
    for kind, parts in {"plain": plain, "chosen": [f"p={name.decode()}" for name in hostile_files.names_of_one_hash(16_000)]}.items():
        rows = [("events", part) for part in parts]
        files.write(f"{tmp_path}/{kind}", columns, rows)
        before = cpu_seconds(gateway)
        assert files.write(f"{tmp_path}/without-{kind}", columns, (), f"{tmp_path}/{kind}", ("name", "part"), rows[1:]) == 1
        seconds.append(cpu_seconds(gateway) - before)
    assert seconds[1] < 3 + 2 * seconds[0]


@local_only
def test_repeated_names_of_one_hash_are_not_compared_with_one_another(gateway, tmp_path):
    """The library's dictionaries go by a hash that everybody knows: each file of such a partition was compared with all of them."""
    from hivekeeper.cluster.row_files import ParquetRowFiles

    files, columns, seconds = ParquetRowFiles(gateway), {"name": "string", "part": "string"}, []
    plain = [f"p=c{number:027d}" for number in range(16_000)]
    for kind, parts in {"plain": plain, "chosen": [f"p={name.decode()}" for name in hostile_files.names_of_one_hash(16_000)]}.items():
        before = cpu_seconds(gateway)
        files.write(f"{tmp_path}/{kind}", columns, (("events", part) for part in parts for _ in range(6)))
        seconds.append(cpu_seconds(gateway) - before)
    assert seconds[1] < 3 + 2 * seconds[0]


@local_only
def test_rows_of_long_texts_go_in_small_pieces(gateway, tmp_path, monkeypatch):
    """Whoever owns thousands of tables chooses their columns: all of them in one text took gigabytes, here and in the JVM."""
    from hivekeeper.cluster.row_files import ParquetRowFiles

    client, sizes = gateway.java_gateway._gateway_client, []
    send = client.send_command

    def send_and_measure(command, *more, **options):
        answer = send(command, *more, **options)
        sizes.append(max(len(command), len(answer)))
        return answer

    monkeypatch.setattr(client, "send_command", send_and_measure)
    row_files, path = ParquetRowFiles(gateway), f"file:{tmp_path}/long.parquet"
    rows = [(f"{number:06d}" * 10_000, number) for number in range(400)]
    assert row_files.write(path, {"text": "string", "number": "bigint"}, iter(rows)) == len(rows)
    assert list(row_files.read(path, {"text": "string", "number": "bigint"})) == rows
    assert max(sizes) < 2**23


@local_only
@pytest.mark.jvm
@pytest.mark.parametrize("name", [*hostile_files.FOOTERS, *hostile_files.CONTENTS])
def test_a_file_that_no_catalogue_has_written_costs_an_error_at_most(gateway, tmp_path, name):
    """Only the user of the runs and trusted owners can put one there (unit/catalogue/test_store.py)."""
    from hivekeeper.cluster.row_files import ParquetRowFiles

    content = {**hostile_files.FOOTERS, **hostile_files.CONTENTS}[name]()
    (tmp_path / "a.parquet").write_bytes(content)
    (tmp_path / "good.parquet").write_bytes(hostile_files.good())
    files, began = ParquetRowFiles(gateway), cpu_seconds(gateway)
    for columns in ({"id": "bigint"}, {"id": "string"}, {"gone": "string"}):
        with suppress(FilesError):
            assert len(list(files.read(f"{tmp_path}/a.parquet", columns))) <= 3
    assert cpu_seconds(gateway) - began < 10
    assert list(files.read(f"{tmp_path}/good.parquet", {"gone": "string"})) == [(None,)]
