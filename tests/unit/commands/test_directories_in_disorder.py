"""Directories that come to a unit in an unlucky moment: copies that somebody keeps must not be shown twice, and what a committer has
brought in the gap is shown or told.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable
from hivekeeper.steps import concat_exchange
from hivekeeper.steps.directory_exchange import DirectoryExchange
from support import joined_desk
from support.desk import desk_by, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import at, rename_partition, survive
from support.leftovers import DAY_MS


@pytest.fixture(params=["compact", "rollback"])
def command(request):
    return request.param


@pytest.fixture
def desk(command):
    desk = desk_by(["dt"])
    if command == "rollback":
        desk.compact()
    return desk


def copy_to(desk, place, unit="dt=1"):
    """As `hdfs dfs -cp LIVE/* PLACE` does."""
    live = desk.live(unit)
    for path, content in list(desk.world.files.contents(live).items()):
        if path.rpartition("/")[0] == live:
            desk.world.files.writer.add(f"{place}/{path.rpartition('/')[2]}", content, desk.world.files.stat(path).length)


def keep_copies(desk):
    """Of files that lie aside already: `hdfs dfs -mv` brings them all at once."""
    desk.world.files.writer.rename_into("hdfs://nn/aside", f"{desk.live('dt=1')}/before_reload")


def pass_days(desk, days):
    desk.world.files.namespace.advance(days * DAY_MS)
    desk.world.clock.elapsed_ms += days * DAY_MS


def leaves(desk):
    """The words of the step in which live leaves."""
    return [f"{desk.live('dt=1')} ", "/retired/"]


@pytest.mark.parametrize("end", ["put back", "without effect", "killed"])
def test_copies_that_come_just_before_live_leaves(desk, command, end):
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
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("exchange", ["directory", "files"])
def test_copies_that_are_made_between_the_swap_of_their_unit_and_the_end_of_the_run(exchange):
    """Which may take hours."""
    desk = joined_desk.a_desk() if exchange == "files" else desk_by(["dt"])
    rows = desk.world.rows_of(desk.table)
    at(desk, ["write_new", "entry.json"], lambda: copy_to(desk, f"{desk.live('dt=1')}/before_reload"))
    assert desk.compact().code is Exit.DONE
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


def test_other_copies_of_a_unit_whose_files_were_joined_which_was_never_away():
    desk = joined_desk.a_desk()
    rows = desk.world.rows_of(desk.table)
    sorted_copy = f"{desk.live('dt=1')}/sorted/one.parquet"
    at(desk, ["write_new", "entry.json"], lambda: desk.world.files.writer.add(sorted_copy, DataFile(tuple(rows))))
    assert desk.compact().code is Exit.DONE
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


def test_copies_in_a_partition_that_is_renamed_to_the_name_of_one_that_was_swapped():
    desk = desk_by(["dt"])
    copy_to(desk, f"{desk.live('dt=2')}/before_reload", "dt=2")
    desk.compact(where="dt = '1'")
    rename_partition(desk)
    partition = desk.world.partitions(desk.table)["dt=2"]
    desk.world.files.writer.rename_into(desk.live("dt=2"), desk.live("dt=1"))
    desk.world.catalog.drop_partition(desk.table, "dt=2")
    desk.world.catalog.add_partition(desk.table, replace(partition, name="dt=1", values=("1",), location=desk.live("dt=1")))
    rows = desk.world.rows_of(desk.table)
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


def test_copies_that_were_made_before_the_swap_and_are_moved_in_after_it():
    desk = desk_by(["dt"])
    rows = desk.world.rows_of(desk.table)
    copy_to(desk, "hdfs://nn/aside")
    desk.compact()
    keep_copies(desk)
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


def test_copies_of_a_table_whose_log_was_copied_to_another_file_system():
    """DistCp: all ids are new."""
    desk = desk_by(["dt"])
    rows = desk.world.rows_of(desk.table)
    desk.compact()
    copy_to(desk, f"{desk.live('dt=1')}/before_reload")
    for path, content in list(desk.world.files.contents(desk.control.log).items()):
        length = desk.world.files.stat(path).length
        desk.world.files.writer.delete(path)
        desk.world.files.writer.add(path, content, length)
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


def test_copies_that_are_being_made_while_live_is_put_back(desk, command):
    """`hdfs dfs -cp` goes on where live is back."""
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


def nest(desk):
    place = f"{desk.live('dt=1')}/attempt"
    desk.world.files.writer.add(f"{place}/late.parquet", DataFile(("late",)))
    return place


def nest_with_marker(desk):
    desk.world.files.writer.add(f"{nest(desk)}/_SUCCESS", "", 0)


def nest_with_deeper(desk):
    desk.world.files.writer.add(f"{nest(desk)}/deeper/later.parquet", DataFile(("later",)))


def nest_closed(desk):
    node = desk.world.files.namespace.directory(nest(desk))
    node.attributes = replace(node.attributes, owner="another")


def act_before_live_is_settled(desk, act, monkeypatch):
    settle_live, waiting = DirectoryExchange.settle_live, [act]

    def act_then_settle(self, *args, **more):
        if self.unit.name == "dt=1" and waiting:
            waiting.pop()(desk)
        return settle_live(self, *args, **more)

    monkeypatch.setattr(DirectoryExchange, "settle_live", act_then_settle)


@pytest.mark.parametrize("brought", [nest_with_marker, nest_with_deeper, nest_closed])
def test_a_committers_directory_that_is_not_moved_up_is_told(desk, command, brought, monkeypatch):
    with monkeypatch.context() as patch:
        act_before_live_is_settled(desk, brought, patch)
        code = getattr(desk, command)().code
    assert desk.world.rows_of(desk.table)["late"] == 1 or code is Exit.INVESTIGATE


def test_too_much_for_one_command_is_told(desk, command, monkeypatch):
    monkeypatch.setattr("hivekeeper.steps.arrivals.MOST_LIFTED", 0)
    with monkeypatch.context() as patch:
        act_before_live_is_settled(desk, nest, patch)
        code = getattr(desk, command)().code
    assert code is Exit.INVESTIGATE


def nest_unwritable(desk):
    """For the user of the runs, who may write to live by an ACL that the committer's own directory does not have."""
    desk.world.files.namespace.denied.add(nest(desk))


def test_a_directory_out_of_which_nothing_may_be_moved_does_not_end_the_run(desk, command, monkeypatch):
    with monkeypatch.context() as patch:
        act_before_live_is_settled(desk, nest_unwritable, patch)
        result = getattr(desk, command)()
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.INVESTIGATE, "misplaced")
    assert outcomes(result)["dt=2"] in ("swapped", "rolled-back")


def test_nor_does_it_keep_other_units_from_being_compacted():
    desk = desk_by(["dt"])
    desk.compact()
    nest_unwritable(desk)
    desk.world.make_older(f"{desk.live('dt=1')}/attempt")
    desk.append("dt=2", "one", "two", "three")
    assert desk.recover().code is Exit.DONE
    result = desk.compact()
    assert outcomes(result) == {"dt=1": "refused", "dt=2": "swapped"}
    result = desk.rollback(where="dt = '1'")
    assert (result.code, outcomes(result)) == (Exit.PARTIAL, {"dt=1": "not-rolled-back"})


@pytest.mark.xfail(strict=True, reason="only their names tell copies from what a committer has brought in the gap")
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


def overwrite(desk):
    """As a job does that leaves directories alone."""
    live = desk.live("dt=1")
    for path in [path for path in desk.world.files.contents(live) if names.parent(path) == live]:
        desk.world.files.writer.delete(path)
    for name in ("a", "b"):
        desk.world.files.writer.add(f"{live}/new-{name}.parquet", DataFile((f"new {name}",)))
    desk.world.files.namespace.advance(3_600_000)


@pytest.mark.parametrize("is_appended", [True, False], ids=["appended", "as it was"])
def test_a_copy_made_during_the_run_does_not_come_back_after_an_overwrite(is_appended):
    desk = desk_by(["dt"])
    live = desk.live("dt=1")

    def copy():
        if is_appended:
            desk.world.files.writer.add(f"{live}/appended.parquet", DataFile(("appended",)))
        copy_to(desk, f"{live}/before_reload")

    at(desk, ["write_new", "entry.json"], copy)
    desk.compact()
    overwrite(desk)
    rows = desk.world.rows_of(desk.table)
    desk.recover(), desk.compact()
    assert desk.world.rows_of(desk.table) == rows


def test_nor_does_one_of_a_unit_whose_exchange_failed():
    desk = desk_by(["dt"])
    live = desk.live("dt=1")

    def fail():
        for call in ("exchange", "rename_exact"):
            desk.world.files.fail_next(call, FilesUnavailable("failover"))
        at(desk, ["write_new", "entry.json"], lambda: copy_to(desk, f"{live}/before_reload"))

    at(desk, [f"{live} ", "/retired/"], fail)
    assert outcomes(desk.compact())["dt=1"] == "not-swapped"
    overwrite(desk)
    rows = desk.world.rows_of(desk.table)
    desk.recover(), desk.compact()
    assert desk.world.rows_of(desk.table) == rows


def test_a_join_that_is_put_back_was_never_away(monkeypatch):
    desk = joined_desk.a_desk()
    rows = desk.world.rows_of(desk.table)
    monkeypatch.setattr(concat_exchange, "MOST_MS_BESIDE", -1)
    at(
        desk,
        ["write_new", "entry.json"],
        lambda: desk.world.files.writer.add(f"{desk.live('dt=1')}/sorted/one.parquet", DataFile(tuple(rows))),
    )
    assert outcomes(desk.compact())["dt=1"] == "put-back"
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("is_cleaned", [True, False])
@pytest.mark.parametrize("later", ["compact", "recover"])
def test_old_copies_that_are_moved_in_when_the_log_has_forgotten_the_old_files(is_cleaned, later):
    """They are older than the log entry, and `hdfs dfs -mv /aside LIVE` moves them into it."""
    desk = desk_by(["dt"])
    copy_to(desk, "hdfs://nn/aside")
    desk.compact()
    rows = desk.world.rows_of(desk.table)
    pass_days(desk, 40)
    if is_cleaned:
        desk.cleanup()
        assert desk.log().standing == ()
    keep_copies(desk)
    pass_days(desk, 2)
    getattr(desk, later)()
    assert desk.world.rows_of(desk.table) == rows
