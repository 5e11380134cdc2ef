"""Files that a command line asks for: replaced whole, never a directory, and no reason to lose a result."""

from __future__ import annotations

import pytest

from hivekeeper.errors import UsageError
from hivekeeper.launch import output_files
from support.fakes.files import FakeFiles

PLACE = "hdfs://nn/reports/out.json"


@pytest.fixture
def files():
    files = FakeFiles()
    files.make_directory("/reports")
    return files


def test_a_file_of_the_cluster_is_replaced_whole_and_nothing_else_stays(files):
    for text in ("old", "new"):
        output_files.write(files, "hdfs:///reports/out.json", text)
    assert files.contents() == {PLACE: "new\n"}


def test_a_report_that_cannot_be_written_to_the_cluster_is_logged_and_raises_nothing(files, caplog):
    output_files.write(files, "hdfs:///nowhere/out.json", "{}")
    assert "step=report-file failed path='hdfs:///nowhere/out.json'" in caplog.text


def test_a_directory_is_refused_before_the_run_and_left_alone_after_it(files, caplog):
    files.writer.add("/sales/events/part-0", "rows")
    with pytest.raises(UsageError, match="is a directory"):
        output_files.refuse_directories(files, ["hdfs:///reports/none", "hdfs:///sales/events"])
    output_files.forget_remote(files, "hdfs:///sales/events")
    output_files.write(files, "hdfs:///sales/events", "{}")
    assert "step=report-file failed" in caplog.text
    assert files.contents() == {"hdfs://nn/sales/events/part-0": "rows"}


def test_a_local_report_that_cannot_be_written_is_logged_and_raises_nothing(files, tmp_path, caplog):
    output_files.write(files, str(tmp_path / "nowhere" / "out.json"), "{}")
    assert "No such file or directory" in caplog.text
