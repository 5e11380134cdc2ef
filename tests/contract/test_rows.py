"""What `Rows` promises, on the fake and on Spark with real files: the same cases, each row one text."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Mapping, Sequence, Tuple

import pytest

from hivekeeper import names
from hivekeeper.model import Content, Differences, Digest, FileInfo, StageBatch, StageOutput, StageUnit, UnitFooters
from hivekeeper.ports import Rows, RowsError
from support.fakes.files import FakeFiles
from support.fakes.rows import ROWS_OF_GROUP, DataFile, FakeRows
from support.storage import Storage

RUN = "20260101t020304z-1f0c"


class FakeWorld:
    def __init__(self) -> None:
        self.files = FakeFiles()
        self.rows: Rows = FakeRows(self.files)
        self.root = "hdfs://nn/t"

    def add(self, unit: int, name: str, rows: Sequence[str]) -> None:
        self.files.writer.add(f"{self.root}/in {unit}/{name}", DataFile(tuple(rows)))

    def add_raw(self, unit: int, name: str, text: str) -> None:
        self.files.writer.add(f"{self.root}/in {unit}/{name}", text)

    def remove(self, unit: int, name: str) -> None:
        self.files.writer.delete(f"{self.root}/in {unit}/{name}")

    def move(self, source: str, target: str) -> None:
        self.files.writer.rename_into(source, target)

    def list(self, directory: str) -> Tuple[FileInfo, ...]:
        return self.files.look([directory])[directory].entries

    def read(self, path: str) -> List[str]:
        return list(self.files.content(path).rows)


class SparkWorld:
    def __init__(self, gateway: object, storage: Storage) -> None:
        from hivekeeper.cluster.rows import SparkRows

        self.rows: Rows = SparkRows(gateway)
        self.storage = storage
        self.root = storage.root

    def _place(self, unit: int, name: str) -> str:
        return f"{self.root}/in {unit}/{name}"

    def add(self, unit: int, name: str, rows: Sequence[str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        content = pa.BufferOutputStream()
        table = pa.table({"row": pa.array(rows, pa.string())})
        pq.write_table(table, content, store_schema=False, compression="snappy", row_group_size=ROWS_OF_GROUP)
        self.storage.write(self._place(unit, name), content.getvalue().to_pybytes())

    def add_raw(self, unit: int, name: str, text: str) -> None:
        self.storage.write(self._place(unit, name), text.encode())

    def remove(self, unit: int, name: str) -> None:
        self.storage.delete(self._place(unit, name))

    def move(self, source: str, target: str) -> None:
        self.storage.rename(source, target)

    def list(self, directory: str) -> Tuple[FileInfo, ...]:
        found = (one for one in self.storage.listing(directory) if not one.location.endswith(".crc"))
        return tuple(FileInfo(one.location, one.size_bytes, 0, one.is_dir, 0) for one in found)

    def read(self, path: str) -> List[str]:
        import pyarrow.parquet as pq

        return pq.ParquetFile(self.storage.copy(path)).read().column("row").to_pylist()


@pytest.fixture(params=["fake", pytest.param("spark", marks=pytest.mark.jvm)])
def world(request):
    if request.param == "fake":
        return FakeWorld()
    return SparkWorld(request.getfixturevalue("gateway"), request.getfixturevalue("storage"))


def footers_of(world, *units: int) -> Mapping[str, UnitFooters]:
    return world.rows.footers("parquet", {str(unit): world.list(f"{world.root}/in {unit}") for unit in units})


def batch_of(world, bins: Mapping[int, Sequence[int]], sort: Tuple[str, ...] = (), stage: int = 1, is_copied: bool = True) -> StageBatch:
    form = footers_of(world, *bins)[str(next(iter(bins)))].groups[0].form
    units = []
    for number, of_unit in bins.items():
        files = world.list(f"{world.root}/in {number}")
        members = [tuple(file for file, found in zip(files, of_unit) if found == wanted) for wanted in range(max(of_unit) + 1)]
        units.append(StageUnit(number, tuple(StageOutput(of_output, form, "snappy") for of_output in members)))
    target = f"{world.root}/.hivekeeper/stage/b{stage:05d}"
    return StageBatch("parquet", target, tuple(units), RUN, sort, is_copied and not sort)


def outputs_of(world, batch: StageBatch, number: int) -> Dict[str, List[str]]:
    return {file.name: world.read(file.path) for file in world.list(f"{batch.target}/{names.UNIT_COLUMN}={number}")}


@pytest.fixture
def three_units(world):
    """Unit n has files a, b, c with three rows each."""
    for unit in (1, 2, 3):
        for name in "abc":
            world.add(unit, f"{name}.parquet", [f"{unit}{name}{index}" for index in (3, 1, 2)])
    return world


def test_footers_count_the_rows_of_each_file(world):
    world.add(1, "a.parquet", ["x", "y"])
    world.add(1, "b.parquet", ["z"])
    group = footers_of(world, 1)["1"].groups[0]
    assert {names.base(path): rows for path, rows in group.rows.items()} == {"a.parquet": 2, "b.parquet": 1}
    assert group.row_count == 3


def test_footers_merge_the_bounds_of_all_files(world):
    world.add(1, "a.parquet", ["m", "y"])
    world.add(1, "b.parquet", ["c", "p"])
    facts = footers_of(world, 1)["1"].groups[0].columns["row"]
    assert (facts.values, facts.nulls, facts.low, facts.high) == (4, 0, "c", "y")


def test_footers_of_the_first_sets_are_told_as_far_as_there_is_room_for_what_they_say(world):
    for unit in range(1, 6):
        world.add(unit, "a.parquet", ["x"])
    sets = {unit: world.list(f"{world.root}/in {unit}") for unit in range(1, 6)}
    told = {most: list(world.rows.footers("parquet", sets, True, 0, most)) for most in (0, 100_000)}
    assert told == {0: [], 100_000: [1, 2, 3, 4, 5]}
    # What they have in common is told once.
    first = next(most for most in range(0, 100_000, 8) if world.rows.footers("parquet", {1: sets[1]}, True, 0, most))
    assert list(world.rows.footers("parquet", sets, True, 0, first + 16)) == [1, 2, 3]


def row_groups_of(world, most: int) -> List[Tuple[str, int, List[int]]]:
    """The name and length of each file, and the rows of its row groups, which follow one another inside it."""
    units = {str(unit): world.list(f"{world.root}/in {unit}") for unit in (1, 2)}
    found = world.rows.footers("parquet", units, by_identity=True, most_row_groups=most)
    told = [one for footers in found.values() for one in footers.row_groups]
    for one in told:
        ends = [0, *(group.start + group.length for group in one.groups)]
        assert all(end <= group.start for end, group in zip(ends, one.groups))
        assert ends[-1] <= one.file.length
        assert one.file in units["1"] + units["2"]
    return sorted((one.file.name, len(one.groups), [group.rows for group in one.groups]) for one in told)


def test_row_groups_are_told_with_their_places_if_they_are_asked_for(world):
    world.add(1, "a.parquet", ["1", "2", "3", "4", "5"])
    world.add(1, "b.parquet", ["6"])
    world.add(2, "c.parquet", ["7", "8", "9"])
    world.add_raw(1, "d.parquet", "this is no data file")
    world.add_raw(1, "e.parquet", "")
    assert row_groups_of(world, 1000) == [("a.parquet", 3, [2, 2, 1]), ("b.parquet", 1, [1]), ("c.parquet", 2, [2, 1])]
    assert row_groups_of(world, 0) == []


def test_all_row_groups_of_a_file_are_told_or_none(world):
    world.add(1, "a.parquet", ["1", "2", "3", "4", "5"])
    world.add(2, "c.parquet", ["7", "8", "9"])
    assert [name for name, *_ in row_groups_of(world, 2)] == ["c.parquet"]
    # Either of both.
    assert len(row_groups_of(world, 4)) == 1
    assert len(row_groups_of(world, 5)) == 2


def test_files_that_do_not_fit_take_no_room_from_one_that_does(world):
    """A race, so asked often enough to meet it."""
    world.add(1, "a.parquet", ["1", "2", "3", "4", "5"])
    world.add(2, "c.parquet", ["7", "8", "9"])
    for _ in range(200):
        assert [name for name, *_ in row_groups_of(world, 2)] == ["c.parquet"]


def test_an_empty_file_is_left_out(world):
    world.add(1, "a.parquet", ["x"])
    world.add_raw(1, "b.parquet", "")
    footers = footers_of(world, 1)["1"]
    assert len(footers.groups[0].rows) == 1
    assert footers.unreadable == ()


def test_a_damaged_file_is_reported_not_raised(world):
    world.add(1, "a.parquet", ["x"])
    world.add_raw(1, "b.parquet", "this is no data file")
    footers = footers_of(world, 1)["1"]
    assert [names.base(path) for path, _ in footers.unreadable] == ["b.parquet"]
    assert "\n" not in footers.unreadable[0][1]
    assert len(footers.groups) == 1


def test_a_missing_file_is_reported_not_raised(world):
    world.add(1, "a.parquet", ["x"])
    listed = world.list(f"{world.root}/in 1")
    world.remove(1, "a.parquet")
    footers = world.rows.footers("parquet", {"1": listed})["1"]
    assert [names.base(path) for path, _ in footers.unreadable] == ["a.parquet"]


def test_the_footer_of_another_file_in_the_place_of_the_listed_one_is_not_read(world):
    """Whoever may rename a closed file there could learn the names of its columns from a reason."""
    world.add(1, "a.parquet", ["x"])
    world.add(1, "b.parquet", ["y"])
    first, second = world.list(f"{world.root}/in 1")
    footers = world.rows.footers("parquet", {"1": [first._replace(file_id=second.file_id or 1), second]})["1"]
    assert [(path, "another file is there" in why) for path, why in footers.unreadable] == [(first.path, True)]
    assert [list(group.rows) for group in footers.groups] == [[second.path]]


@pytest.fixture(params=[True, False], ids=["copied", "as rows"])
def is_copied(request):
    return request.param


@pytest.mark.parametrize("units", [(1,), (1, 2, 3)], ids=["one unit", "many units"])
def test_every_unit_gets_exactly_its_outputs_in_the_order_of_its_files(three_units, units, is_copied):
    batch = batch_of(three_units, dict.fromkeys(units, (0, 0, 1)), is_copied=is_copied)
    three_units.rows.write_stage(batch)
    for unit in units:
        first, second = (rows for _, rows in sorted(outputs_of(three_units, batch, unit).items()))
        expected = [f"{unit}{name}{index}" for name in "ab" for index in (3, 1, 2)]
        assert sorted([first, second], key=len) == [[f"{unit}c3", f"{unit}c1", f"{unit}c2"], expected]


@pytest.mark.parametrize("units", [(1,), (1, 2, 3)], ids=["one unit", "many units"])
def test_sort_columns_sort_each_output(three_units, units):
    batch = batch_of(three_units, dict.fromkeys(units, (0, 0, 0)), sort=("row",))
    three_units.rows.write_stage(batch)
    for unit in units:
        (rows,) = outputs_of(three_units, batch, unit).values()
        assert rows == [f"{unit}{name}{index}" for name in "abc" for index in (1, 2, 3)]


@pytest.mark.parametrize("units", [(1,), (1, 2)], ids=["one unit", "many units"])
def test_an_output_without_rows_is_written_all_the_same(world, units, is_copied):
    for unit in units:
        world.add(unit, "a.parquet", [])
        world.add(unit, "b.parquet", ["x"])
    batch = batch_of(world, dict.fromkeys(units, (0, 1)), is_copied=is_copied)
    world.rows.write_stage(batch)
    for unit in units:
        assert sorted(outputs_of(world, batch, unit).values()) == [[], ["x"]]


def test_units_without_any_row_are_written_and_read_back(world, is_copied):
    for unit in (1, 2):
        world.add(unit, "a.parquet", [])
        world.add(unit, "b.parquet", [])
    batch = batch_of(world, {1: (0, 0), 2: (0, 0)}, is_copied=is_copied)
    assert world.rows.write_stage(batch) == {1: Content(), 2: Content()}
    assert [list(outputs_of(world, batch, unit).values()) for unit in (1, 2)] == [[[]], [[]]]
    assert world.rows.read_stage(batch) == {1: Content(), 2: Content()}


def test_output_names_carry_the_run_and_differ_between_stages(three_units):
    found = []
    for stage in (1, 2):
        batch = batch_of(three_units, {1: (0, 1, 2), 2: (0, 0, 0)}, stage=stage)
        three_units.rows.write_stage(batch)
        found += outputs_of(three_units, batch, 1)
    assert len(set(found)) == 6
    assert all(RUN in name and not names.is_hidden(name) for name in found)


@pytest.mark.parametrize("units", [(1,), (1, 2)], ids=["one unit", "many units"])
def test_output_names_differ_between_tables_that_one_command_compacts_at_one_place(three_units, units, is_copied):
    """Each has its first stage then, of a run of the same name: the log knows these files by their names and lengths."""
    batch = batch_of(three_units, dict.fromkeys(units, (0, 0, 1)), is_copied=is_copied)
    found = []
    for table in ("events", "orders"):
        three_units.rows.write_stage(batch)
        found += [name for unit in units for name in outputs_of(three_units, batch, unit)]
        three_units.move(f"{three_units.root}/.hivekeeper", f"{three_units.root}/{table}")
    assert len(found) == 4 * len(units)
    assert not {*found[: 2 * len(units)]} & {*found[2 * len(units) :]}


@pytest.mark.parametrize("units", [(1,), (1, 2, 3)], ids=["one unit", "many units"])
def test_reading_back_gives_the_digest_of_what_was_read(three_units, units, is_copied):
    batch = batch_of(three_units, dict.fromkeys(units, (0, 1, 1)), is_copied=is_copied)
    read = three_units.rows.write_stage(batch)
    assert three_units.rows.read_stage(batch) == read
    assert [content.digest.rows for content in read.values()] == [9] * len(units)
    sources = {unit: three_units.list(f"{three_units.root}/in {unit}") for unit in units}
    assert three_units.rows.digests("parquet", sources) == read


def digests_of(world, *units: int) -> Mapping[int, Content]:
    return world.rows.digests("parquet", {unit: world.list(f"{world.root}/in {unit}") for unit in units})


def test_the_digest_of_a_file_depends_on_its_rows_and_not_on_their_order(world):
    world.add(1, "a.parquet", ["x", "y", "y"])
    world.add(2, "a.parquet", ["y", "x", "y"])
    world.add(3, "a.parquet", ["x", "x", "y"])
    found = digests_of(world, 1, 2, 3)
    assert found[1] == found[2]
    assert found[1] != found[3]
    assert found[1].digest.rows == found[3].digest.rows == 3


def test_the_digest_of_no_files_is_zero(world):
    assert world.rows.digests("parquet", {7: ()}) == {7: Content()}


def test_a_set_of_files_that_cannot_be_read_has_no_digest_and_does_not_fail_the_others(world):
    world.add(1, "a.parquet", ["x"])
    world.add_raw(2, "a.parquet", "this is no data file")
    found = digests_of(world, 1, 2)
    assert (found[1].digest.rows, found[1].failed) == (1, "")
    assert found[2].digest == Digest(0, 0, 0)
    assert "a.parquet" in found[2].failed
    assert "\n" not in found[2].failed


def test_a_file_that_is_gone_fails_its_own_copied_unit_in_one_line(three_units):
    batch = batch_of(three_units, dict.fromkeys((1, 2, 3), (0, 0, 0)))
    three_units.remove(2, "b.parquet")
    read = three_units.rows.write_stage(batch)
    assert [bool(read[unit].failed) for unit in (1, 2, 3)] == [False, True, False]
    assert "b.parquet" in read[2].failed
    assert "\n" not in read[2].failed
    assert len(outputs_of(three_units, batch, 3)) == 1


@pytest.mark.parametrize("units", [(1,), (1, 2, 3)], ids=["one unit", "many units"])
def test_a_file_that_is_gone_fails_the_job_that_makes_rows_in_one_line(three_units, units):
    batch = batch_of(three_units, dict.fromkeys(units, (0, 0, 0)), sort=("row",))
    three_units.remove(1, "b.parquet")
    with pytest.raises(RowsError, match=r"b\.parquet") as caught:
        three_units.rows.write_stage(batch)
    assert "\n" not in str(caught.value)


def test_plain_files_have_no_hazards(three_units):
    groups = {str(unit): footers_of(three_units, unit)[str(unit)].groups[0] for unit in (1, 2)}
    assert three_units.rows.hazards("parquet", groups) == {}


# ---- differences


def differences_of(world, one: Sequence[int], other: Sequence[int], limit: int = 10):
    footers = footers_of(world, *one, *other)
    sides = ([group for unit in units for group in footers[str(unit)].groups] for units in (one, other))
    return world.rows.differences("parquet", *sides, limit)


def rows_in(examples) -> List[str]:
    return sorted(example["row"] for example in examples)


def test_the_same_rows_in_other_files_and_another_order_do_not_differ(world):
    world.add(1, "a.parquet", ["x", "y", "y"])
    world.add(1, "b.parquet", ["z"])
    world.add(2, "c.parquet", ["y", "z", "x", "y"])
    assert differences_of(world, [1], [2]) == Differences(0, 0)


def test_a_changed_row_differs_on_both_sides_and_is_shown(world):
    world.add(1, "a.parquet", ["x", "y", "z"])
    world.add(2, "a.parquet", ["x", "Y", "z"])
    assert differences_of(world, [1], [2]) == Differences(1, 1, ("row",), ({"row": "y"},), ({"row": "Y"},))


def test_a_row_that_is_there_more_often_is_counted_each_time_and_shown_once(world):
    world.add(1, "a.parquet", ["x", "x", "x", "y"])
    world.add(2, "a.parquet", ["x", "y", "z", "z"])
    assert differences_of(world, [1], [2]) == Differences(2, 2, ("row",), ({"row": "x"},), ({"row": "z"},))


@pytest.mark.parametrize("limit", [0, 2, 4])
def test_no_more_examples_than_asked_for_are_shown_and_always_the_same_ones(world, limit):
    world.add(1, "a.parquet", ["a", "b", "c", "d", "same"])
    world.add(2, "a.parquet", ["same", "e"])
    world.add(3, "a.parquet", ["d", "c", "same", "b", "a"])
    found = differences_of(world, [1], [2], limit)
    assert (found.only_in_one, found.only_in_other) == (4, 1)
    assert len(set(rows_in(found.examples_of_one)) & set("abcd")) == limit
    assert rows_in(found.examples_of_other) == ["e"][:limit]
    assert differences_of(world, [3], [2], limit) == found


def test_a_side_has_the_rows_of_all_its_groups(world):
    world.add(1, "a.parquet", ["x"])
    world.add(2, "a.parquet", ["y", "z"])
    world.add(3, "a.parquet", ["z", "y", "x"])
    assert differences_of(world, [1, 2], [3]) == Differences(0, 0)
    assert differences_of(world, [1], [3]).only_in_other == 2


def test_a_side_without_files_lacks_all_rows_of_the_other(world):
    world.add(1, "a.parquet", ["x", "y"])
    found = differences_of(world, [1], [])
    assert (found.only_in_one, found.only_in_other, found.columns) == (2, 0, ("row",))
    assert (rows_in(found.examples_of_one), found.examples_of_other) == (["x", "y"], ())
    assert rows_in(differences_of(world, [], [1]).examples_of_other) == ["x", "y"]


def test_sides_without_rows_do_not_differ(world):
    world.add(1, "a.parquet", [])
    assert differences_of(world, [1], []) == differences_of(world, [], []) == differences_of(world, [1], [1]) == Differences(0, 0)


@pytest.mark.parametrize("side", ["one", "other"])
def test_files_with_other_row_counts_than_their_footers_said_are_an_error(world, side):
    for unit in (1, 2):
        world.add(unit, "a.parquet", ["x"])
    groups = {unit: list(footers_of(world, unit)[str(unit)].groups) for unit in (1, 2)}
    groups[1] = [replace(group, rows=dict.fromkeys(group.rows, 2)) for group in groups[1]]
    sides = (groups[1], groups[2]) if side == "one" else (groups[2], groups[1])
    with pytest.raises(RowsError, match="2 rows in the files' footers, 1 were read"):
        world.rows.differences("parquet", *sides, 10)


def test_differences_with_a_file_that_is_gone_fail_in_one_line(three_units):
    groups = {unit: list(footers_of(three_units, unit)[str(unit)].groups) for unit in (1, 2)}
    three_units.remove(1, "b.parquet")
    with pytest.raises(RowsError, match=r"a file is gone: .*b\.parquet") as caught:
        three_units.rows.differences("parquet", groups[1], groups[2], 10)
    assert "\n" not in str(caught.value)
