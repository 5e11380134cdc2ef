"""Which rows two sets of files do not share, on Spark with files of many types, which the contract's one text column cannot show."""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pyarrow.orc as po
import pytest

from hivekeeper.cluster.rows import SparkRows
from hivekeeper.model import Differences
from hivekeeper.ports import RowsError
from support.data_files import listed, write_arrow

NESTED = pa.struct([("a", pa.int32()), ("list", pa.list_(pa.string()))])


@pytest.fixture
def rows(gateway):
    return SparkRows(gateway)


@pytest.fixture
def compare(rows, tmp_path):
    """Differences between two sets of Arrow tables, each table in its own file."""

    def compared(one, other, limit=10):
        sides = []
        for side, tables in (("one", one), ("other", other)):
            for number, table in enumerate(tables):
                write_arrow(tmp_path / side / f"f{number}.parquet", {name: table[name] for name in table.column_names})
            (tmp_path / side).mkdir(exist_ok=True)
            sides.append(rows.footers("parquet", {"u": listed(tmp_path / side)})["u"].groups)
        return rows.differences("parquet", *sides, limit)

    return compared


def table(**columns):
    return pa.table(columns)


def test_one_changed_value_is_one_row_on_each_side_and_just_its_column(compare):
    one = table(id=[1, 2, 3], name=["a", "b", "c"], price=[1.5, None, 2.5])
    other = table(id=[3, 2, 1], name=["c", "B", "a"], price=[2.5, None, 1.5])
    found = compare([one], [other])
    assert (found.only_in_one, found.only_in_other, found.columns) == (1, 1, ("name",))
    assert found.examples_of_one == ({"id": "2", "name": "b", "price": None},)
    assert found.examples_of_other == ({"id": "2", "name": "B", "price": None},)


def test_values_that_changed_places_differ_in_rows_and_in_no_column(compare):
    found = compare([table(id=[1, 2], name=["a", "b"])], [table(id=[1, 2], name=["b", "a"])])
    assert (found.only_in_one, found.only_in_other, found.columns) == (2, 2, ())


def test_a_lost_column_of_nulls_is_no_difference(compare):
    one = table(id=[1, 2], gone=pa.array([None, None], pa.string()))
    assert compare([one], [table(id=[2, 1])]) == Differences(0, 0)


@pytest.mark.parametrize("lost_by", ["one", "other"])
def test_a_lost_column_with_values_is_named_and_counts_the_rows_that_had_one(compare, lost_by):
    whole, lost = table(id=[1, 2, 3], gone=["x", None, "y"]), table(id=[1, 2, 3])
    found = compare([lost], [whole]) if lost_by == "one" else compare([whole], [lost])
    assert (found.only_in_one, found.only_in_other, found.columns) == (2, 2, ("gone",))
    without = found.examples_of_one if lost_by == "one" else found.examples_of_other
    assert sorted(example["id"] for example in without) == ["1", "3"]
    assert {example["gone"] for example in without} == {None}


def test_files_of_one_side_may_have_other_columns_in_another_order(compare):
    one = [table(id=[1], name=["a"]), table(name=["b"], id=[2], extra=[5])]
    assert compare(one, [table(extra=[5, None], id=[2, 1], name=["b", "a"])]) == Differences(0, 0)


def test_columns_that_differ_in_case_only_are_two_columns(compare):
    found = compare([table(id=[1], ID=["x"])], [table(id=[1], Id=["x"])])
    assert (found.only_in_one, found.only_in_other, found.columns) == (1, 1, ("ID", "Id"))
    assert found.examples_of_one == ({"id": "1", "ID": "x", "Id": None},)


# What one value is in one file, and in another.
LITTLE = {
    "sign of zero": (pa.array([0.0]), pa.array([-0.0])),
    "NULL": (pa.array(["x"]), pa.array([None], pa.string())),
    "empty text": (pa.array([""]), pa.array([None], pa.string())),
    "NaN": (pa.array([math.nan]), pa.array([None], pa.float64())),
    "empty list": (pa.array([[]], pa.list_(pa.int32())), pa.array([None], pa.list_(pa.int32()))),
    "sign of zero in a list": (pa.array([[0.0]]), pa.array([[-0.0]])),
    "order in a list": (pa.array([{"a": 1, "list": ["x", None]}], NESTED), pa.array([{"a": 1, "list": [None, "x"]}], NESTED)),
    "map": (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), pa.array([[("k", 2)]], pa.map_(pa.string(), pa.int32()))),
    "microsecond": (
        pa.array([dt.datetime(2020, 1, 1, 0, 0, 0, 1)], pa.timestamp("us", "UTC")),
        pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("us", "UTC")),
    ),
}


def test_values_that_differ_little_differ_and_their_examples_too(compare):
    """A column for each kind; row n differs in the nth column only, the last one in none. Together: a comparison takes two seconds."""
    rows = len(LITTLE) + 1
    one = {name: pa.concat_arrays([left] * rows) for name, (left, _) in LITTLE.items()}
    other = {
        name: pa.concat_arrays([right if row == column else left for row in range(rows)])
        for column, (name, (left, right)) in enumerate(LITTLE.items())
    }
    ids = {"id": list(range(rows))}
    found = compare([pa.table({**ids, **one})], [pa.table({**ids, **other})])
    assert (found.only_in_one, found.only_in_other, set(found.columns)) == (len(LITTLE), len(LITTLE), set(LITTLE))
    of_one, of_other = ({example["id"]: example for example in side} for side in (found.examples_of_one, found.examples_of_other))
    differing = {id: [name for name in LITTLE if of_one[id][name] != of_other[id][name]] for id in of_one}
    assert differing == {str(row): [name] for row, name in enumerate(LITTLE)}


def test_equal_nested_values_and_nans_do_not_differ(compare):
    columns = {
        "s": pa.array([{"a": None, "list": []}, None], NESTED),
        "m": pa.array([[("k", 1), ("l", None)], []], pa.map_(pa.string(), pa.int32())),
        "f": [math.nan, -0.0],
    }
    backwards = {name: pa.array(values).take(pa.array([1, 0])) for name, values in columns.items()}
    assert compare([pa.table(columns)], [pa.table(backwards)]) == Differences(0, 0)


def test_examples_show_nested_values_as_json_to_the_microsecond(compare):
    when = pa.array([[dt.datetime(2020, 1, 1, 0, 0, 0, 1)]], pa.list_(pa.timestamp("us", "UTC")))
    found = compare([pa.table({"s": pa.array([{"a": 1, "list": ["x", None]}], NESTED), "when": when})], [])
    assert found.examples_of_one[0]["s"] == '{"a":1,"list":["x",null]}'
    assert ".000001" in found.examples_of_one[0]["when"]


def test_examples_leave_the_executors_in_short(compare):
    """Twenty of them go to the driver for each unit that differs, and values may have gigabytes."""
    found = compare([pa.table({"long": ["x" * 3_000_000], "other": [["y" * 3_000_000]]})], [])
    assert [len(found.examples_of_one[0][name]) for name in ("long", "other")] == [500_000, 500_000]


def test_any_column_name_is_compared_and_shown(compare):
    names = ["a.b", "a`b", "a b", "ü-日", "one", "other", "it's", "select", "a,b;c", "x0"]
    one, other = ({name: [f"{side} {name}"] for name in names} for side in "xy")
    found = compare([pa.table({**one, "id": [1]})], [pa.table({"id": [1], **other})])
    assert set(found.columns) == set(names)
    for side, examples in (("x", found.examples_of_one), ("y", found.examples_of_other)):
        assert examples == ({"id": "1", **{name: f"{side} {name}" for name in names}},)


def test_a_column_that_became_wider_is_compared_by_its_text(compare):
    one = [pa.table({"n": pa.array([1, 2], pa.int32())}), pa.table({"n": pa.array([3], pa.int64())})]
    assert compare(one, [pa.table({"n": pa.array([3, 2, 1], pa.int64())})]) == Differences(0, 0)


def test_a_struct_that_got_a_field_is_compared_by_its_text(compare):
    grown = pa.struct([*NESTED, ("new", pa.string())])
    one = pa.table({"s": pa.array([{"a": 1, "list": []}, {"a": 2, "list": None}], NESTED)})
    other = pa.table({"s": pa.array([{"a": 1, "list": [], "new": None}, {"a": 2, "list": None, "new": "x"}], grown)})
    found = compare([one], [other])
    assert (found.only_in_one, found.only_in_other, found.columns) == (1, 1, ("s",))
    assert found.examples_of_other == ({"s": '{"a":2,"new":"x"}'},)


def test_lists_that_may_and_may_not_hold_nulls_are_of_one_type(compare):
    strict = pa.list_(pa.field("element", pa.float64(), nullable=False))
    found = compare([pa.table({"v": pa.array([[0.5], []], strict)})], [pa.table({"v": pa.array([[], [0.5]], pa.list_(pa.float64()))})])
    assert found == Differences(0, 0)


def test_a_column_with_a_name_of_ours_is_refused(compare):
    with pytest.raises(RowsError, match="a name that Hivekeeper itself uses"):
        compare([table(__hivekeeper_unit_side=[1])], [table(__hivekeeper_unit_side=[2])])


def test_orc_files_are_compared_too(rows, tmp_path):
    groups = []
    for side, names in (("one", ["a", "b"]), ("other", ["b", "c"])):
        (tmp_path / side).mkdir()
        po.write_table(pa.table({"id": [1, 1], "name": names}), tmp_path / side / "f.orc")
        groups.append(rows.footers("orc", {"u": listed(tmp_path / side)})["u"].groups)
    expected = Differences(1, 1, ("name",), ({"id": "1", "name": "a"},), ({"id": "1", "name": "c"},))
    assert rows.differences("orc", *groups, 10) == expected


def test_rows_are_counted_by_as_many_tasks_as_the_site_gives_to_a_shuffle(spark, compare):
    """Otherwise one task would count the billion rows of a unit."""
    before = {key: spark.conf.get(key) for key in ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")}
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("differences", "as many tasks")
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "7")
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        compare([table(id=[1])], [table(id=[2])])
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        for key, value in before.items():
            spark.conf.set(key, value)
    stages = [stage for job in tracker.getJobIdsForGroup("differences") for stage in tracker.getJobInfo(job).stageIds]
    assert 7 in {tracker.getStageInfo(stage).numTasks for stage in stages}
