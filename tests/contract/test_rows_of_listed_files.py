"""On HDFS, Spark reads the files that were listed as rows, by their ids, whatever is renamed to their places just before it does."""

from __future__ import annotations

from typing import Any

import pytest

from hivekeeper.cluster.rows import SparkRows
from hivekeeper.model import Differences, StageBatch, StageOutput, StageUnit
from hivekeeper.ports import RowsError

pytestmark = pytest.mark.jvm
FORMATS = ["parquet", "orc"]


class World:
    """Two directories with the same rows, of which the second is read by ids while other rows are at its paths."""

    def __init__(self, files_world: Any, spark: Any, rows: SparkRows, format: str) -> None:
        self.files_world, self.rows, self.format = files_world, rows, format
        for name, first in (("one", 0), ("other", 0), ("theirs", 100)):
            frame = spark.range(first, first + 3, 1, 2).select("id")
            frame.write.format(format).save(files_world.path(name))
        self.one, self.other, self.theirs = map(self.listed, ("one", "other", "theirs"))
        self.groups = [rows.footers(format, {0: files})[0].groups for files in (self.one, self.other)]

    def listed(self, name: str) -> Any:
        place = self.files_world.path(name)
        entries = self.files_world.files.look([place])[place].entries
        return tuple(entry for entry in entries if entry.name.startswith("part-"))

    def have_others_there_when_spark_reads(self) -> None:
        load, exact = self.rows.sql._load, f"/.reserved/.inodes/{self.other[0].file_id}"

        def load_by_ids(session: Any, format: str, places: Any, *more: Any) -> Any:
            if any(place.file.endswith(exact) for place in places):
                self.put_others_there()
            return load(session, format, places, *more)

        self.rows.sql._load = load_by_ids  # type: ignore[method-assign]

    def put_others_there(self) -> None:
        for mine, theirs in zip(self.other, self.theirs):
            self.files_world.writer.rename_into(mine.path, f"{mine.path}.aside")
            self.files_world.writer.rename_into(theirs.path, mine.path)


@pytest.fixture
def world(request: pytest.FixtureRequest, files_world: Any) -> World:
    files_world.skip_on("fake", "it has no jobs")
    files_world.skip_on("local", "paths only")
    rows = SparkRows(request.getfixturevalue("gateway"), files_world.files.exact)
    return World(files_world, request.getfixturevalue("spark"), rows, request.param)


@pytest.mark.parametrize("world", FORMATS, indirect=True)
def test_rows_are_compared_of_the_listed_files(world):
    world.have_others_there_when_spark_reads()
    assert world.rows.differences(world.format, *world.groups, 10) == Differences(0, 0)
    assert world.listed("other")[0].file_id == world.theirs[0].file_id


@pytest.mark.parametrize("world", FORMATS, indirect=True)
@pytest.mark.parametrize("units", [1, 2])
def test_rows_are_sorted_of_the_listed_files(world, units):
    form, sources = world.groups[0][0].form, [world.other, world.one][:units]
    staged = tuple(StageUnit(number, (StageOutput(files, form, form.codec),)) for number, files in enumerate(sources, 1))
    batch = StageBatch(world.format, world.files_world.path("stage", "b00001"), staged, "20260101t020304z-1f0c", ("id",))
    world.files_world.files.make_directory(batch.target)
    world.have_others_there_when_spark_reads()
    found = world.rows.write_stage(batch)
    assert world.rows.read_stage(batch) == found
    assert found[1].digest.rows == 3
    assert world.listed("other")[0].file_id == world.theirs[0].file_id


@pytest.mark.parametrize("world", FORMATS, indirect=True)
@pytest.mark.parametrize("which", [0, -1], ids=["first", "last"])
def test_a_listed_file_that_is_gone_is_named_by_its_own_path(world, which):
    gone = world.other[which]
    world.files_world.writer.delete(gone.path)
    with pytest.raises(RowsError) as failed:
        world.rows.differences(world.format, *world.groups, 10)
    assert gone.name in str(failed.value)
    assert ".reserved" not in str(failed.value)
    world.files_world.writer.rename_into(world.theirs[0].path, gone.path)
    with pytest.raises(RowsError) as failed:
        world.rows.differences(world.format, *world.groups, 10)
    assert gone.name in str(failed.value)
    assert ".reserved" not in str(failed.value)


@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_a_file_that_was_written_to_is_not_read(world):
    storage = world.files_world.writer
    stream = storage._fs.append(storage._path(world.other[-1].path))
    stream.write(bytearray(b"more"))
    stream.close()
    with pytest.raises(RowsError, match=r"part-.*that were listed"):
        world.rows.differences(world.format, *world.groups, 10)
