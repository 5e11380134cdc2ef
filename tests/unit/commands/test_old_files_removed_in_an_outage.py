"""A killed run has a unit away, and somebody removes the old files, or all that a run calls retired, for the room that they take: what was
to come in is all that is left of the unit then. Or they remove what was to come in: then the old files are.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import drop_partition, manage
from support.late_directories import BOTH, desk_before, desk_in_gap, place, put_back_with


@BOTH
@pytest.mark.parametrize("removed", ["retired/u00001", "retired"])
@pytest.mark.parametrize("then", ["recover", "compact"])
def test_the_only_copy_that_is_left_is_not_given_up(command, removed, then):
    desk, killed, coming = desk_in_gap(command)
    rows = desk.world.rows_below(place(desk, killed, f"{coming}/u00001"))
    desk.world.files.writer.delete(place(desk, killed, removed))
    for _ in range(2):
        result = getattr(desk, then)()
        assert result.code is Exit.INVESTIGATE
        assert [table.problem.code for table in result.tables] == [Code.OLD_FILES_REMOVED]
    desk.world.files.writer.rename_into(place(desk, killed, f"{coming}/u00001"), desk.live("dt=1"))
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(desk.live("dt=1")) == rows


@BOTH
def test_what_is_to_stay_away_is_given_up_once_that_is_removed_too(command):
    desk, killed, coming = desk_in_gap(command)
    desk.world.files.writer.delete(place(desk, killed, "retired/u00001"))
    desk.world.files.writer.delete(place(desk, killed, f"{coming}/u00001"))
    assert desk.recover().code is Exit.DONE


@BOTH
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_writer_has_made_live_again(command, is_removed):
    """Its rows are no reason to give up those of before."""
    desk, killed, coming = desk_in_gap(command)
    live, files = desk.live("dt=1"), desk.world.files
    rows = desk.world.rows_below(place(desk, killed, f"{coming}/u00001"))
    files.writer.delete(place(desk, killed, "retired/u00001"))
    files.writer.add(f"{live}/new.parquet", DataFile(("new",)), 77)
    result = desk.recover()
    assert result.tables[0].problem.code is Code.OLD_FILES_REMOVED
    for path in list(files.contents(place(desk, killed, f"{coming}/u00001"))):
        files.writer.rename_into(path, f"{live}/{path.rpartition('/')[2]}")
    if is_removed:
        files.writer.delete(place(desk, killed, f"{coming}/u00001"))
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(live) == {**rows, "new": 1}


def test_so_has_one_whose_certificates_are_gone_too():
    desk, killed, coming = desk_in_gap("compact")
    files, rows = desk.world.files, desk.world.rows_below(place(desk, killed, f"{coming}/u00001"))
    for gone in ("retired/u00001", "certificates-1.jsonl"):
        files.writer.delete(place(desk, killed, gone))
    files.writer.add(f"{desk.live('dt=1')}/new.parquet", DataFile(("new",)), 77)
    assert desk.recover().tables[0].problem.code is Code.OLD_FILES_REMOVED
    assert desk.world.rows_below(place(desk, killed, f"{coming}/u00001")) == rows


@BOTH
@pytest.mark.parametrize("of_new", [False, True], ids=["old files", "new files"])
def test_somebody_has_copied_all_back_and_removed_the_old_files_then(command, of_new):
    desk, killed, coming = desk_in_gap(command)
    live, files = desk.live("dt=1"), desk.world.files
    for path, content in list(files.contents(place(desk, killed, f"{coming if of_new else 'retired'}/u00001")).items()):
        files.writer.add(f"{live}/{path.rpartition('/')[2]}", content, files.stat(path).length)
    rows = desk.world.rows_below(live)
    files.writer.delete(place(desk, killed, "retired/u00001"))
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(live) == rows


@BOTH
@pytest.mark.parametrize("is_managed", [False, True], ids=["external", "managed"])
def test_of_a_partition_that_was_dropped_as_well(command, is_managed):
    """`MSCK REPAIR TABLE … SYNC PARTITIONS` drops one whose directory is away, as discovery does."""
    desk, killed, coming = desk_in_gap(command)
    if is_managed:
        manage(desk)
    rows = desk.world.rows_below(place(desk, killed, f"{coming}/u00001"))
    desk.world.files.writer.delete(place(desk, killed, "retired/u00001"))
    drop_partition(desk)
    result = desk.recover()
    assert result.tables[0].problem.code is Code.OLD_FILES_REMOVED
    assert desk.world.rows_below(place(desk, killed, f"{coming}/u00001")) == rows
    desk.world.files.writer.delete(place(desk, killed, f"{coming}/u00001"))
    desk.recover()
    assert desk.recover().code is Exit.DONE


def remove_inside(desk, killed, are_all):
    """Some of the old files, or all; their directory stays."""
    for path in sorted(desk.world.files.contents(place(desk, killed, "retired/u00001")))[: None if are_all else 1]:
        desk.world.files.writer.delete(path)


@BOTH
@pytest.mark.parametrize("are_all", [True, False])
@pytest.mark.parametrize("is_dropped", [True, False])
def test_their_directory_stays(command, are_all, is_dropped):
    desk, killed, coming = desk_in_gap(command)
    rows = desk.world.rows_below(place(desk, killed, f"{coming}/u00001"))
    remove_inside(desk, killed, are_all)
    if is_dropped:
        manage(desk)
        drop_partition(desk)
    for _ in range(2):
        assert desk.recover().tables[0].problem.code is Code.OLD_FILES_REMOVED
        assert desk.world.rows_below(place(desk, killed, f"{coming}/u00001")) == rows
    if not is_dropped:
        desk.world.files.writer.rename_into(place(desk, killed, f"{coming}/u00001"), desk.live("dt=1"))
        assert desk.recover().code is Exit.DONE
        assert desk.world.rows_below(desk.live("dt=1")) == rows


@BOTH
def test_a_writer_has_removed_some_before_they_left(command):
    desk, killed, coming = desk_in_gap(command)
    remove_inside(desk, killed, are_all=False)
    rows = desk.world.rows_below(place(desk, killed, "retired/u00001"))
    # As the rename does that takes them out of live.
    desk.world.files.writer.make_directory(place(desk, killed, "retired/u00001.0"))
    desk.world.files.writer.delete(place(desk, killed, "retired/u00001.0"))
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(desk.live("dt=1")) == rows


@BOTH
def test_their_directory_stays_and_a_writer_has_made_live_again(command):
    """What is advised brings all rows back."""
    desk, killed, coming = desk_in_gap(command)
    live, files = desk.live("dt=1"), desk.world.files
    rows = desk.world.rows_below(place(desk, killed, f"{coming}/u00001"))
    remove_inside(desk, killed, are_all=False)
    files.writer.add(f"{live}/new.parquet", DataFile(("new",)), 77)
    problem = desk.recover().tables[0].problem
    waiting = place(desk, killed, f"{coming}/u00001")
    assert f"move the files of {waiting}, which have their rows, to {live}, and remove {waiting}" in problem.next
    for path in list(files.contents(waiting)):
        files.writer.rename_into(path, f"{live}/{path.rpartition('/')[2]}")
    files.writer.delete(waiting)
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(live) == {**rows, "new": 1}


@BOTH
@pytest.mark.parametrize("before", ["remove_empty", "rename_exact"])
def test_what_an_overwriter_put_at_its_place_was_merged_into_them(command, before):
    """It removed an old file just before they left, and made live again in the gap. The run is killed while it puts them back."""
    desk = desk_before(command)
    live, files, merged = desk.live("dt=1"), desk.world.files, []

    def overwrite(what):
        if f"{live} " in what and "/retired/u00001" in what:
            files.writer.delete(min(path for path in files.contents(live) if path.rpartition("/")[0] == live))
        elif "/retired/u00001 " in what and what.endswith(live) and not files.stat(live) and not merged:
            files.writer.add(f"{live}/new.parquet", DataFile(("new",)), 77)
        elif "/recreated/u00001.0/new.parquet " in what:
            merged.append(what)
        elif merged and what.startswith(before):
            files.die_after(0)

    files.before_step = overwrite
    with suppress(Killed):
        getattr(desk, command)()
    assert merged
    files.before_step = None
    desk.world.revive()
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(live)["new"] == 1


@BOTH
@pytest.mark.parametrize("are_all", [True, False])
def test_they_were_moved_back_and_dropped_with_their_partition(command, are_all):
    """No backup of the run has what the log would say that it has."""
    desk, killed, coming = desk_in_gap(command)
    manage(desk)
    for path in sorted(desk.world.files.contents(place(desk, killed, "retired/u00001")))[: None if are_all else 1]:
        desk.world.files.writer.make_directory(desk.live("dt=1"))
        desk.world.files.writer.rename_into(path, f"{desk.live('dt=1')}/{path.rpartition('/')[2]}")
    desk.world.files.writer.delete(desk.live("dt=1"))
    drop_partition(desk)
    assert desk.recover().tables[0].problem.code is Code.OLD_FILES_REMOVED
    for needless in ("retired/u00001", f"{coming}/u00001"):
        desk.world.files.writer.delete(place(desk, killed, needless))
    desk.recover()
    assert desk.recover().code is Exit.DONE
    assert killed not in {backup.backup.run for backup in desk.history().tables[0].backups}


@BOTH
@pytest.mark.parametrize("beside", [False, True], ids=["nothing else", "an appended file"])
def test_not_all_new_files_are_there_any_more(command, beside):
    desk, killed, coming = desk_in_gap(command)
    rows = desk.world.rows_below(place(desk, killed, "retired/u00001"))
    waiting = place(desk, killed, f"{coming}/u00001")
    desk.world.files.writer.delete(min(path for path in desk.world.files.contents(waiting) if path.rpartition("/")[0] == waiting))
    if beside:
        desk.world.files.writer.add(f"{desk.live('dt=1')}/new.parquet", DataFile(("new",)), 77)
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(desk.live("dt=1")) == {**rows, **({"new": 1} if beside else {})}


@BOTH
@pytest.mark.parametrize("removed", ["u00001", ""], ids=["the unit's", "all"])
@pytest.mark.parametrize("into_live", [False, True])
def test_no_new_files_are_there_any_more(command, removed, into_live):
    """Or somebody has moved their directory to where something has made live again, which puts it into live."""
    desk, killed, coming = desk_in_gap(command)
    rows = desk.world.rows_below(place(desk, killed, "retired/u00001"))
    if into_live:
        desk.world.files.writer.make_directory(desk.live("dt=1"))
        desk.world.files.writer.rename_into(place(desk, killed, f"{coming}/u00001"), desk.live("dt=1"))
    desk.world.files.writer.delete(place(desk, killed, f"{coming}/{removed}".rstrip("/")))
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    assert "somebody removed its new files before the log had the run" in result.tables[0].problem.what
    assert desk.world.rows_below(place(desk, killed, "retired/u00001")) == rows
    assert desk.recover().code is Exit.DONE


@BOTH
@pytest.mark.parametrize("is_replaced", [False, True], ids=["removes", "replaces"])
def test_a_loader_that_removes_or_replaces_live_before_it_was_away_keeps_no_command(command, is_replaced):
    desk = desk_before(command)
    live = desk.live("dt=1")
    desk.kill_before([f"{live} ", "/retired/u00001"], getattr(desk, command))
    desk.world.files.writer.delete(live)
    if is_replaced:
        desk.world.files.writer.add(f"{live}/new.parquet", DataFile(("new",)), 77)
    assert desk.recover().code is Exit.DONE


def test_a_directory_that_was_removed_while_another_unit_was_away_keeps_that_from_nothing():
    """A retention job has removed the next partition's, and a writer has made live again, so that it does not look away."""
    desk = desk_before("compact")
    rows = desk.world.rows_below(desk.live("dt=1"))
    desk.kill_before(["rename_exact", f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    desk.world.files.writer.add(f"{desk.live('dt=1')}/new.parquet", DataFile(("new",)), 77)
    desk.world.files.writer.delete(desk.live("dt=2"))
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(desk.live("dt=1")) == {**rows, "new": 1}


@pytest.mark.parametrize("is_dropped", [True, False], ids=["dropped", "removed"])
@pytest.mark.parametrize("by", ["the run", "a recovery"])
def test_a_directory_that_was_removed_after_another_unit_was_put_back_keeps_no_command(by, is_dropped):
    """That one explains why something has happened last where old files leave for: whoever put it back was killed just then."""
    desk = desk_before("compact")
    files, rows = desk.world.files, desk.world.rows_below(desk.live("dt=1"))
    if by == "the run":
        opened = put_back_with(desk, lambda: files.die_after(1))
        with suppress(Killed):
            desk.compact()
        files.before_step = None
        files.writer.close(opened[0])
        desk.world.revive()
    else:
        desk.kill_before(["rename_exact", f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
        files.writer.delete(min(files.contents(place(desk, desk.runs[-1], "ready/u00001"))))
        desk.kill_before(["delete_tree", "/ready/u00001"], desk.recover)
    if is_dropped:
        desk.world.catalog.drop_partition(desk.table, "dt=2")
    files.writer.delete(desk.live("dt=2"))
    desk.recover()
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(desk.live("dt=1")) == rows


def test_the_only_copy_is_not_given_up_where_the_next_directory_was_removed_too():
    """And a writer has made live again, so that the next one looked more urgent: what was advised for that gave up the copy."""
    desk, killed, coming = desk_in_gap("compact")
    files, live = desk.world.files, desk.live("dt=1")
    rows = desk.world.rows_below(place(desk, killed, f"{coming}/u00001"))
    files.writer.delete(place(desk, killed, "retired/u00001"))
    files.writer.add(f"{live}/new.parquet", DataFile(("new",)), 77)
    files.writer.delete(desk.live("dt=2"))
    for _ in range(2):
        result = desk.recover()
        assert result.tables[0].problem.code is Code.OLD_FILES_REMOVED
        assert "dt=1: " in result.tables[0].problem.what
    assert desk.world.rows_below(place(desk, killed, f"{coming}/u00001")) == rows
