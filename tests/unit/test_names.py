from datetime import datetime, timedelta, timezone

import pytest

from hivekeeper import names
from hivekeeper.names import ControlPaths

RUN = "20260101t020304z-1f0c"


def test_a_run_id_is_utc_and_is_read_back_whole():
    run = names.run_id(datetime(2026, 1, 1, 3, 3, 4, tzinfo=timezone(timedelta(hours=1))), "1f0c")
    assert run == "20260101t020304z-1f0c"
    assert names.RUN.fullmatch(run)
    assert names.RUN_DIRECTORY.fullmatch(f"{run}.t12")["taken"] == "12"
    assert not names.RUN_DIRECTORY.fullmatch(f"{run}.old")


def test_the_backups_of_one_table_are_not_those_of_a_longer_name():
    match = names.backup_pattern("__bkp_").fullmatch
    assert match("__bkp_events_20260101_020304")["table"] == "events"
    assert match("__bkp_events_archive_20260101_020304")["table"] == "events_archive"
    assert match("__bkp_events_2_20260101_020304")["table"] == "events_2"
    assert not names.is_backup("events_20260101_020304", "__bkp_")
    assert not names.is_backup("__bkp_events", "__bkp_")


def test_the_control_directory_is_inside_a_partitioned_table_and_beside_an_unpartitioned_one():
    assert ControlPaths.of("hdfs://nn/w/t", partitioned=True).top == "hdfs://nn/w/t/.hivekeeper"
    assert ControlPaths.of("hdfs://nn/w/t", partitioned=False).top == "hdfs://nn/w/.hivekeeper-t"


def test_no_name_of_ours_could_be_taken_for_a_partition():
    for partitioned in (True, False):
        control = ControlPaths.of("hdfs://nn/w/t", partitioned)
        name = names.base(control.top)
        assert name.startswith(".")
        assert "=" not in name


@pytest.mark.parametrize("number", [1, 42, 99999, 123456])
def test_unit_directories_are_read_back(number):
    assert names.UNIT.fullmatch(names.unit_directory(number))["number"].lstrip("0") == str(number)
    assert not names.UNIT.fullmatch(names.unit_directory(number) + ".0")
    assert names.RECREATED.fullmatch(names.unit_directory(number) + ".0")


@pytest.mark.parametrize("table", ["events", "events_archive", "events_2", "events_20260101_020304"])
def test_the_name_of_a_backup_table_is_read_back_whole(table):
    name = names.backup_name("__bkp_", table, RUN)
    assert name == f"__bkp_{table}_20260101_020304"
    assert names.is_backup(name, "__bkp_")
    assert names.backup_pattern("__bkp_").fullmatch(name)["table"] == table


@pytest.mark.parametrize("run", ["", "20260101t020304z", f"{RUN}.t1", f"x{RUN}"])
def test_a_backup_table_is_named_after_a_run_and_nothing_else(run):
    with pytest.raises(ValueError, match="is not a run id"):
        names.backup_name("__bkp_", "events", run)


def test_a_prefix_is_taken_as_it_is_written():
    assert names.is_backup(names.backup_name("a.*b", "events", RUN), "a.*b")
    assert not names.is_backup("aXXb" + "events_20260101_020304", "a.*b")
    assert not names.is_backup("__bkp_events_20260101_020304_", "__bkp_")


def test_log_entries_are_read_back_and_nothing_else_is():
    assert names.log_version(names.log_entry(12)) == 12
    assert names.log_version("12.json") is None
    assert names.log_version(names.log_entry(12) + ".part") is None


@pytest.mark.parametrize(
    ("location", "before"),
    [
        ("hdfs://nn/data/days", "hdfs://nn/data/days"),
        ("hdfs://nn/data/days/*", "hdfs://nn/data/days"),
        ("hdfs://nn/data/d?ys/x", "hdfs://nn/data"),
        ("hdfs://nn/data/{a/b,c}/[x]", "hdfs://nn/data"),
        ("hdfs://nn/da\\ta", "hdfs://nn"),
        ("hdfs://nn/*", "hdfs://nn"),
        ("hdfs://[::1]:8020/data/d]", "hdfs://[::1]:8020/data/d]"),
        ("file:/[x]", "file:"),
        ("*", ""),
    ],
)
def test_what_a_pattern_finds_is_in_the_directory_before_it(location, before):
    assert names.before_pattern(location) == before
