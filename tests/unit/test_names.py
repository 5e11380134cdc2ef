from datetime import datetime, timedelta, timezone

import pytest

from hivekeeper import names
from hivekeeper.names import ControlPaths


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
    assert names.unit_number(names.unit_directory(number)) == number


def test_log_entries_are_read_back_and_nothing_else_is():
    assert names.log_version(names.log_entry(12)) == 12
    assert names.log_version("12.json") is None
    assert names.log_version(names.log_entry(12) + ".part") is None
