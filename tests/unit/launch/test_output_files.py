"""Files that a command line names: replaced as a whole, never a directory, and never a reason to lose a result."""

from __future__ import annotations

import dataclasses
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from hivekeeper.errors import UsageError
from hivekeeper.launch import output_files
from hivekeeper.ports import FilesUnavailable
from support.fakes.files import FakeFiles

PLACE = "hdfs://nn/reports/out.json"


@pytest.fixture
def files():
    files = FakeFiles()
    files.make_directory("/reports")
    return files


def set_attributes(files, path, **changed):
    node = files.namespace.find(files.qualify(path))
    node.attributes = dataclasses.replace(node.attributes, **changed)


@pytest.mark.parametrize("path", ["hdfs:/reports/out.json", "HDFS:/reports/out.json", "viewfs://x/out.json", "File:/tmp/out.json"])
def test_hadoop_opens_what_has_a_scheme_however_it_is_written(path):
    assert output_files.is_remote(path)
    assert not output_files.is_remote(path.partition(":")[2].lstrip("/"))


def test_a_file_of_the_cluster_is_replaced_whole_and_nothing_else_stays(files):
    for text in ("old", "new"):
        output_files.write(files, "hdfs:///reports/out.json", text)
    assert files.contents() == {PLACE: "new\n"}


def test_a_report_that_cannot_be_written_to_the_cluster_is_logged_and_raises_nothing(files, caplog):
    output_files.write(files, "hdfs:///nowhere/out.json", "{}")
    assert "step=report-file failed path='hdfs:///nowhere/out.json'" in caplog.text


def test_a_file_that_can_be_written_is_tried_without_a_trace(files, tmp_path):
    output_files.write(files, PLACE, "old")
    for path in (PLACE, "hdfs:///reports/other.json"):
        output_files.require_writable(files, path)
    (tmp_path / "old.json").write_text("old")
    for name in ("old.json", "new.json"):
        output_files.require_writable_here(str(tmp_path / name))
    assert files.contents() == {PLACE: "old\n"}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old.json": "old"}


def test_a_file_that_cannot_be_written_to_the_cluster_is_refused_before_the_work(files):
    with pytest.raises(UsageError, match="hdfs:///nowhere/out.json cannot be written: "):
        output_files.require_writable(files, "hdfs:///nowhere/out.json")


def test_a_directory_is_refused_before_the_run_and_left_alone_after_it(files, caplog):
    files.writer.add("/sales/events/part-0", "rows")
    with pytest.raises(UsageError, match="cannot be written: it is a directory"):
        output_files.require_writable(files, "hdfs:///sales/events")
    output_files.forget_remote(files, "hdfs:///sales/events")
    output_files.write(files, "hdfs:///sales/events", "{}")
    assert "step=report-file failed" in caplog.text
    assert files.contents() == {"hdfs://nn/sales/events/part-0": "rows"}


@pytest.mark.parametrize(
    "change", [output_files.require_writable, output_files.forget_remote, output_files.write], ids=lambda one: one.__name__
)
def test_another_directory_that_somebody_puts_at_the_place_of_a_file_that_goes_is_not_deleted(files, monkeypatch, change):
    """Whoever may write to the directory of a report can rename that of a table there, whose rows they may not read."""
    files.writer.add("/reports/out.json", "old")
    files.writer.add("/sales/events/part-0", "rows")
    for delete in ("delete_tree", "delete_file"):
        real = getattr(files, delete)

        def exchange_first(path, *more, real=real):
            files.writer.delete(path)
            files.another_client().rename_exact("/sales/events", path)
            real(path, *more)

        monkeypatch.setattr(files, delete, exchange_first)
    with suppress(FilesUnavailable):
        change(files, PLACE, *(["{}"] if change is output_files.write else []))
    assert "rows" in files.contents().values()


@pytest.mark.parametrize(
    ("mode", "owner", "why"),
    [
        (0o1777, "hive", "everybody may put files into its directory"),
        (0o777, "hive", "everybody may put files into its directory"),
        (0o1770, "mallory", "it belongs to another user"),
    ],
)
def test_nor_is_a_file_of_the_cluster_that_may_be_another_users_when_the_run_is_done(files, mode, owner, why):
    """As in /tmp on HDFS: it would be taken for this run's own."""
    files.writer.add("/reports/out.json", "{}")
    set_attributes(files, "/reports", owner="hdfs", mode=mode)
    set_attributes(files, "/reports/out.json", owner=owner)
    with pytest.raises(UsageError, match=why):
        output_files.require_writable(files, PLACE)
    assert files.contents() == {PLACE: "{}"}


def test_a_file_of_another_user_that_this_one_may_replace_is_replaced(files):
    files.writer.add("/reports/out.json", "{}")
    set_attributes(files, "/reports", owner="hdfs", mode=0o770)
    set_attributes(files, "/reports/out.json", owner="mallory")
    output_files.require_writable(files, PLACE)
    set_attributes(files, "/reports", owner=files.user, mode=0o1770)
    output_files.require_writable(files, PLACE)


@pytest.mark.parametrize(
    ("path", "why"), [("nowhere/out.json", "No such file or directory"), ("taken", "it is not a file"), ("file/out", "Not a directory")]
)
def test_a_file_that_cannot_be_written_here_is_refused_before_the_work(tmp_path, path, why):
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=f"cannot be written: {why}"):
        output_files.require_writable_here(str(tmp_path / path))


def test_a_local_report_that_cannot_be_written_is_logged_and_raises_nothing(files, tmp_path, caplog):
    output_files.write(files, str(tmp_path / "nowhere" / "out.json"), "{}")
    assert "No such file or directory" in caplog.text


def test_a_local_report_is_never_written_through_a_link(tmp_path, monkeypatch, caplog):
    precious, out = tmp_path / "precious", tmp_path / "out.json"
    precious.write_text("rows")
    out.symlink_to(precious)
    output_files.write_local(str(out), "{}")
    assert (precious.read_text(), out.read_text(), out.is_symlink()) == ("rows", "{}\n", False)
    monkeypatch.setattr(output_files.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / "out.json.guessed").symlink_to(precious)
    output_files.write_local(str(out), "[]")
    assert (precious.read_text(), out.read_text()) == ("rows", "{}\n")
    assert "step=report-file failed" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can make files of two users")
def test_a_file_that_somebody_else_has_put_into_a_shared_directory_is_refused_before_the_work():
    """As in /tmp: it could neither be removed nor replaced, and would be taken for this run's own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as shared:
        os.chmod(shared, 0o777 | stat.S_ISVTX)
        theirs = Path(shared, "out.properties")
        theirs.write_text("hivekeeper.exit_code=0\n")
        theirs.chmod(0o666)
        os.seteuid(65534)
        try:
            for group_only in (False, True):
                os.seteuid(0)
                os.chown(shared, 0, os.getegid())
                os.chmod(shared, (0o770 if group_only else 0o777) | stat.S_ISVTX)
                os.seteuid(65534)
                with pytest.raises(UsageError, match="belongs to another user" if group_only else "everybody may"):
                    output_files.require_writable_here(str(theirs))
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_nor_is_a_file_written_where_everybody_may_put_one_while_the_run_is_at_work(tmp_path, mode):
    """The file of an earlier run is removed first: another user can take its name before this run is done."""
    tmp_path.chmod(mode)
    with pytest.raises(UsageError, match="everybody may put files into its directory"):
        output_files.require_writable_here(str(tmp_path / "out.properties"))
    assert list(tmp_path.iterdir()) == []
    tmp_path.chmod(0o1775)
    output_files.require_writable_here(str(tmp_path / "out.properties"))
