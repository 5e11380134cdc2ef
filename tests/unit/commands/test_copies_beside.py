"""A directory with copies of a unit's files, which somebody makes in it, is not a late committer's: its rows must not be shown twice, in
whatever moment it comes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.model import FileInfo
from hivekeeper.ports import FilesUnavailable
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.steps import arrivals, concat_exchange
from support import joined_desk
from support.desk import desk_by, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import at, survive
from support.late_directories import BOTH, act_before_live_is_settled, copy_to, desk_before, kill_in_gap, leaves, put_back_with

# What a job writes, by name, with rows and length.
NEW = {"000000_0": (DataFile(("new",)), 77)}


def unit_of(desk):
    return "dt=1" if desk.world.table(desk.table).partitioned else ""


@pytest.mark.parametrize("by", [["dt"], []], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("later", ["recover", "compact", "rollback"])
@pytest.mark.parametrize("before", [None, "rollback"])
def test_copies_that_are_made_after_a_run(by, before, later):
    """As `hdfs dfs -mkdir LIVE/before_reload; hdfs dfs -cp LIVE/part-* LIVE/before_reload` does. Nor after a rollback that was refused
    because of them.
    """
    desk = desk_by(by)
    desk.compact()
    rows = desk.world.rows_of(desk.table)
    copy_to(desk, f"{desk.live(unit_of(desk))}/before_reload", unit_of(desk))
    for command in filter(None, [before, later]):
        getattr(desk, command)()
        assert desk.world.rows_of(desk.table) == rows, command


def keep_copies(desk):
    """Of files that lie aside already: `hdfs dfs -mv` brings them all at once."""
    desk.world.files.writer.rename_into("hdfs://nn/aside", f"{desk.live('dt=1')}/before_reload")


@BOTH
@pytest.mark.parametrize("end", ["put back", "without effect", "killed"])
def test_copies_that_come_just_before_live_leaves(command, end):
    desk = desk_before(command)
    rows = desk.world.rows_of(desk.table)
    copy_to(desk, "hdfs://nn/aside")

    def come():
        keep_copies(desk)
        if end == "killed":
            desk.world.files.die_after(1)
        elif end == "without effect":
            for method in ("exchange", "rename_exact"):
                desk.world.files.fail_next(method, FilesUnavailable("failover"))

    at(desk, leaves(desk), come)
    with suppress(Killed):
        getattr(desk, command)()
    survive(desk)
    for _ in range(2):
        desk.recover()
        assert desk.world.rows_of(desk.table) == rows


@BOTH
@pytest.mark.parametrize("is_spoiled", [False, True], ids=["brought in", "put back"])
@pytest.mark.parametrize("of_new", [False, True], ids=["old files", "new files"])
def test_copies_at_the_place_of_a_unit_that_a_killed_run_had_away(command, is_spoiled, of_new):
    """Somebody misses the partition, finds its files, and copies them back (`hdfs dfs -cp`, or `distcp` from another cluster)."""
    desk = desk_before(command)
    rows = desk.world.rows_of(desk.table)
    live = desk.live("dt=1")
    run, coming = kill_in_gap(desk, command)
    for path, content in list(desk.world.files.contents(f"{run}/{coming if of_new else 'retired'}/u00001").items()):
        desk.world.files.writer.add(f"{live}/{path.rpartition('/')[2]}", content, desk.world.files.stat(path).length)
    desk.world.mark_success(live)
    assert desk.world.rows_of(desk.table) == rows
    if is_spoiled:
        desk.world.files.writer.open(f"{run}/retired/u00001/open.parquet")
    assert desk.recover().code is Exit.INVESTIGATE
    assert desk.world.rows_of(desk.table) == rows


@BOTH
@pytest.mark.parametrize("is_spoiled", [False, True], ids=["brought in", "put back"])
@pytest.mark.parametrize("beside", ["000000_0", "part-9.parquet._COPYING_"], ids=["a new file", "an unfinished copy"])
def test_copies_with_something_else_at_the_place_of_a_unit_that_a_killed_run_had_away(command, is_spoiled, beside):
    """A job has appended to what somebody has copied back; or the copier was killed, or is at work still."""
    desk = desk_before(command)
    rows = desk.world.rows_of(desk.table)
    live, files = desk.live("dt=1"), desk.world.files
    run, _ = kill_in_gap(desk, command)
    for path, content in list(files.contents(f"{run}/retired/u00001").items()):
        files.writer.add(f"{live}/{path.rpartition('/')[2]}", content, files.stat(path).length)
    files.writer.add(f"{live}/{beside}", DataFile(("new",)), 77)
    if is_spoiled:
        files.writer.open(f"{run}/retired/u00001/open.parquet")
    result = desk.recover()
    there = desk.world.rows_of(desk.table)
    assert {row: count for row, count in there.items() if row != "new"} == rows
    assert result.code is Exit.INVESTIGATE


def kept_of(desk, live):
    """The files of live, as a snapshot keeps them: by name, rows and length."""
    files = desk.world.files
    return {path.rpartition("/")[2]: (content, files.stat(path).length) for path, content in files.contents(live).items()}


def bring(desk, live, kept):
    for name, (content, length) in kept.items():
        desk.world.files.writer.add(f"{live}/{name}", content, length)


@pytest.mark.parametrize("is_spoiled", [False, True], ids=["brought in", "put back"])
@pytest.mark.parametrize("by", [["dt"], []], ids=["partitioned", "unpartitioned"])
def test_copies_of_an_older_backup_at_the_place_of_a_unit_that_a_killed_run_had_away(by, is_spoiled):
    """Somebody who misses the unit finds the files that an earlier run had taken out of it, there or in a snapshot."""
    desk = desk_by(by)
    live, files = desk.live(unit_of(desk)), desk.world.files
    older = kept_of(desk, live)
    desk.compact()
    for number in range(3):
        files.writer.add(f"{live}/since-{number}.parquet", DataFile((f"since {number}",)), 10)
    rows = desk.world.rows_of(desk.table)
    desk.kill_before(["rename_exact", f"/ready/u00001 {live}"], desk.compact)
    bring(desk, live, older)
    if is_spoiled:
        (run,) = (one for one in desk.run_directories() if one.startswith(desk.runs[-1]))
        files.writer.open(f"{desk.control.runs}/{run}/retired/u00001/open.parquet")
    result = desk.recover()
    assert desk.world.rows_of(desk.table) == rows
    assert result.code is Exit.INVESTIGATE


@BOTH
@pytest.mark.parametrize("moved", [1, 9], ids=["one of them", "all of them"])
@pytest.mark.parametrize("appended", [False, True])
def test_files_that_somebody_has_moved_back_while_a_killed_run_had_the_unit_away(command, moved, appended):
    """As `hdfs dfs -mv RUN/retired/u00001/* LIVE` does it, which is no copy: they are nowhere else."""
    desk = desk_before(command)
    rows = desk.world.rows_of(desk.table)
    live, files = desk.live("dt=1"), desk.world.files
    run, _ = kill_in_gap(desk, command)
    left = f"{run}/retired/u00001"
    files.writer.make_directory(live)
    for path in sorted(path for path in files.contents(left) if path.rpartition("/")[0] == left)[:moved]:
        files.writer.rename_into(path, f"{live}/{path.rpartition('/')[2]}")
    if appended:
        files.writer.add(f"{live}/new.parquet", DataFile(("new",)), 77)
    result = desk.recover()
    assert desk.world.rows_of(desk.table) == {**rows, **({"new": 1} if appended else {})}
    assert result.code is Exit.DONE


@pytest.mark.parametrize("is_moved", [False, True])
def test_without_ids_a_file_with_the_same_time_is_a_copy_while_the_old_one_is_there(is_moved):
    """`hdfs dfs -cp -p` keeps the times."""
    old, brought = (FileInfo(f"hdfs://nn/{place}/000000_0", 10, 5, is_dir=False, file_id=0) for place in ("retired", "recreated"))
    unit = SimpleNamespace(manifest=(ManifestFile.of(old),))
    assert list(arrivals._without_own([brought], unit, [] if is_moved else [old])) == ([] if is_moved else [brought])


@BOTH
def test_new_files_that_somebody_has_moved_to_live_while_a_killed_run_had_the_unit_away(command):
    """As `hdfs dfs -mv RUN/ready/u00001/* LIVE` does it: the old files, which are whole, are live again, and not both."""
    desk = desk_before(command)
    rows = desk.world.rows_of(desk.table)
    live, files = desk.live("dt=1"), desk.world.files
    run, coming = kill_in_gap(desk, command)
    files.writer.make_directory(live)
    for path in list(files.contents(f"{run}/{coming}/u00001")):
        files.writer.rename_into(path, f"{live}/{path.rpartition('/')[2]}")
    assert desk.recover().code is Exit.INVESTIGATE
    assert desk.world.rows_of(desk.table) == rows


@BOTH
@pytest.mark.parametrize("is_spoiled", [False, True], ids=["brought in", "put back"])
@pytest.mark.parametrize(["name", "length"], [("000001_0", 0), ("_common_metadata", 300)])
def test_what_a_writer_brings_with_an_empty_file_or_a_hidden_one_as_it_had_before(command, is_spoiled, name, length):
    """Hive's files of tasks without rows, and the schema that Parquet's writers put beside theirs, are the same in each of its outputs."""
    desk = desk_by(["dt"])
    live, files = desk.live("dt=1"), desk.world.files
    files.writer.add(f"{live}/{name}", DataFile(()), length)
    if command == "rollback":
        desk.compact()
    rows = desk.world.rows_of(desk.table)
    coming = "ready" if command == "compact" else "restoring"
    desk.kill_before(["rename_exact", f"/{coming}/u00001 {live}"], getattr(desk, command))
    if is_spoiled:
        (run,) = (one for one in desk.run_directories() if one.startswith(desk.runs[-1]))
        files.writer.open(f"{desk.control.runs}/{run}/retired/u00001/open.parquet")
    files.writer.add(f"{live}/000000_0", DataFile(("new",)), 77)
    files.writer.add(f"{live}/{name}", DataFile(()), length)
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == {**rows, "new": 1}


@BOTH
def test_old_files_that_somebody_has_moved_into_an_empty_directory_while_a_killed_run_had_the_unit_away(command):
    """As `hdfs dfs -mv RUN/retired/u00001 LIVE` does it where something has made live again: no reader sees them."""
    desk = desk_before(command)
    live, files = desk.live("dt=1"), desk.world.files
    run, _ = kill_in_gap(desk, command)
    files.writer.make_directory(live)
    files.writer.rename_into(f"{run}/retired/u00001", live)
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    assert f"{live}/u00001" in result.tables[0].problem.what


@BOTH
@pytest.mark.parametrize("hangs", ["before the call", "in one that fails", "after one that failed"])
@pytest.mark.parametrize("of_new", [False, True], ids=["old files", "new files"])
def test_copies_at_the_place_of_a_unit_that_a_run_has_away_and_puts_back(command, hangs, of_new):
    """The run itself stands still, or waits for a NameNode that others reach."""
    desk = desk_before(command)
    rows = desk.world.rows_of(desk.table)
    live, files = desk.live("dt=1"), desk.world.files

    def wait_and_bring():
        desk.world.clock.sleep_ms(600_000)
        (run,) = (one for one in desk.run_directories() if one.startswith(desk.runs[-1]))
        coming = "ready" if command == "compact" else "restoring"
        for path, content in list(files.contents(f"{desk.control.runs}/{run}/{coming if of_new else 'retired'}/u00001").items()):
            if not files.stat(path).is_open:
                files.writer.add(f"{live}/{path.rpartition('/')[2]}", content, files.stat(path).length)

    def hang():
        if hangs != "before the call":
            desk.world.fail_call("rename_exact", False)
        if hangs == "after one that failed":
            at(desk, ["rename_exact", f"/retired/u00001 {live}"], wait_and_bring)
        else:
            wait_and_bring()

    put_back_with(desk, hang)
    assert getattr(desk, command)().code is Exit.INVESTIGATE
    assert desk.world.rows_of(desk.table) == rows
    survive(desk)
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == rows


@BOTH
def test_copies_that_are_being_made_while_live_is_put_back(command):
    """`hdfs dfs -cp` goes on where live is back."""
    desk = desk_before(command)
    rows = desk.world.rows_of(desk.table)
    live, files = desk.live("dt=1"), desk.world.files
    opened = []
    at(desk, leaves(desk), lambda: opened.append(files.writer.open(f"{live}/before_reload/part-0._COPYING_")))
    getattr(desk, command)()
    files.writer.delete(f"{live}/before_reload/part-0._COPYING_")
    copy_to(desk, f"{live}/before_reload")
    survive(desk)
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


@BOTH
@pytest.mark.parametrize("of_new", [False, True], ids=["old files", "new files"])
def test_copies_that_come_in_the_moment_after_the_exchange(command, of_new, monkeypatch):
    """They lie aside, of the old files or of those that came in, and are told."""
    desk = desk_before(command)
    rows = desk.world.rows_of(desk.table)
    copy_to(desk, "hdfs://nn/aside")

    def come(desk):
        if of_new:
            copy_to(desk, f"{desk.live('dt=1')}/before_reload")
        else:
            keep_copies(desk)

    act_before_live_is_settled(desk, come, monkeypatch)
    assert getattr(desk, command)().code is Exit.INVESTIGATE
    assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("words", [["dt=1 ", "/retired/"], ["write_new", "entry.json"]], ids=["before live leaves", "after the swap"])
def test_a_copy_that_was_written_anew_under_another_name(words):
    """As `INSERT OVERWRITE DIRECTORY` does it."""
    desk = desk_by(["dt"])
    rows = desk.world.rows_of(desk.table)
    sorted_copy = f"{desk.live('dt=1')}/sorted/one.parquet"
    at(desk, words, lambda: desk.world.files.writer.add(sorted_copy, DataFile(tuple(desk.world.rows_below(desk.live("dt=1"))))))
    desk.compact()
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("is_put_back", [False, True], ids=["joined", "put back"])
def test_a_copy_in_a_unit_whose_files_were_joined_which_was_never_away(is_put_back, monkeypatch):
    desk = joined_desk.a_desk()
    rows = desk.world.rows_of(desk.table)
    if is_put_back:
        monkeypatch.setattr(concat_exchange, "MOST_MS_BESIDE", -1)
    sorted_copy = f"{desk.live('dt=1')}/sorted/one.parquet"
    at(desk, ["write_new", "entry.json"], lambda: desk.world.files.writer.add(sorted_copy, DataFile(tuple(rows))))
    result = desk.compact()
    assert outcomes(result)["dt=1"] == ("put-back" if is_put_back else "swapped")
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("is_managed", [False, True], ids=["external", "managed"])
@pytest.mark.parametrize("is_copy", [True, False], ids=["copies", "a job's files"])
def test_copies_of_an_older_backup_of_a_partition_that_was_renamed_since(is_managed, is_copy):
    """In the log it has its former name."""
    desk = desk_by(["dt"])
    live, catalog = desk.live("dt=1"), desk.world.catalog
    older = kept_of(desk, live)
    desk.compact()
    if is_managed:
        joined_desk.manage(desk)
        joined_desk.rename_partition(desk)
        live = desk.live("dt=9")
    else:
        former = desk.world.partitions(desk.table)["dt=1"]
        catalog.drop_partition(desk.table, "dt=1")
        catalog.add_partition(desk.table, replace(former, name="dt=9", values=("9",)))
    desk.append("dt=9" if is_managed else "dt=1", "since-0", "since-1", "since-2")
    rows = desk.world.rows_of(desk.table)
    desk.kill_before(["rename_exact", "/ready/", f" {live}"], desk.compact)
    bring(desk, live, older if is_copy else NEW)
    result = desk.recover()
    assert desk.world.rows_of(desk.table) == (rows if is_copy else {**rows, "new": 1})
    assert result.code is (Exit.INVESTIGATE if is_copy else Exit.DONE)


@pytest.mark.parametrize("is_copy", [True, False], ids=["copies", "a job's files"])
def test_copies_of_an_older_backup_that_come_while_the_run_itself_waits_in_its_gap(is_copy):
    desk = desk_by(["dt"])
    live = desk.live("dt=1")
    older = kept_of(desk, live)
    desk.compact()
    desk.append("dt=1", "since-0", "since-1", "since-2")
    rows = desk.world.rows_of(desk.table)

    def wait_and_bring():
        desk.world.fail_call("rename_exact", False)
        desk.world.clock.sleep_ms(600_000)
        bring(desk, live, older if is_copy else NEW)

    at(desk, ["rename_exact", f"/ready/u00001 {live}"], wait_and_bring)
    result = desk.compact()
    assert desk.world.rows_of(desk.table) == (rows if is_copy else {**rows, "new": 1})
    assert result.code is (Exit.INVESTIGATE if is_copy else Exit.DONE)
