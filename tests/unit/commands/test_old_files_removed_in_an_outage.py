"""A run that was killed, or waits, has a unit away, and somebody removes the old files, or all that a run calls retired, for the room that
they take: what was to come in is all that is left of the unit then. Or they remove what was to come in: then the old files are.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import MetastoreUnavailable
from hivekeeper.reasons import Code
from support.desk import desk_by
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import drop_partition, manage, survive
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


def remove_in_gap_of(desk, how, before):
    """`before` a step of the run itself, which waits for a NameNode that others reach; then its call fails. Returns the rows."""
    files, rows = desk.world.files, set(desk.world.rows_below(desk.live("dt=1")))

    def remove(what):
        if all(word in what for word in before):
            files.before_step = None
            desk.world.fail_call("rename_exact", False)
            desk.world.clock.sleep_ms(600_000)
            if how == "the directory":
                files.writer.delete(place(desk, desk.runs[-1], "retired/u00001"))
            else:
                remove_inside(desk, desk.runs[-1], how == "all files in it")

    files.before_step = remove
    return rows


@BOTH
@pytest.mark.parametrize("how", ["the directory", "all files in it", "a file in it"])
def test_they_are_removed_while_the_run_itself_waits_in_its_gap(command, how):
    desk = desk_before(command)
    coming = "ready" if command == "compact" else "restoring"
    rows = remove_in_gap_of(desk, how, ["rename_exact", f"/{coming}/u00001 {desk.live('dt=1')}"])
    number = len(desk.runs)
    for then in (command, "recover"):
        result = getattr(desk, then)()
        assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.OLD_FILES_REMOVED)
        assert rows <= set(desk.world.rows_below(place(desk, desk.runs[number], f"{coming}/u00001")))


@BOTH
@pytest.mark.parametrize("are_all", [True, False])
def test_so_it_is_where_the_run_waits_before_it_looks_at_what_has_left(command, are_all, monkeypatch):
    desk = desk_before(command)
    coming, files = "ready" if command == "compact" else "restoring", desk.world.files
    rows, stat, waiting = set(desk.world.rows_below(desk.live("dt=1"))), files.stat, [True]

    def stat_late(path):
        if path.endswith("/retired/u00001") and stat(path) and waiting:
            waiting.clear()
            desk.world.clock.sleep_ms(600_000)
            remove_inside(desk, desk.runs[-1], are_all)
        return stat(path)

    monkeypatch.setattr(files, "stat", stat_late)
    result = getattr(desk, command)()
    assert not waiting
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.OLD_FILES_REMOVED)
    assert rows <= set(desk.world.rows_below(place(desk, desk.runs[-1], f"{coming}/u00001")))


@pytest.mark.parametrize("command", ["recover", "compact"])
@pytest.mark.parametrize("closed", ["the unit", "the log"])
def test_who_may_not_settle_that_run_is_told(command, closed):
    """A table that is refused is passed over with 0 by a run over its database."""
    desk, killed, _ = desk_in_gap("compact")
    desk.world.files.writer.delete(place(desk, killed, "retired/u00001"))
    desk.world.files.namespace.unreadable.add(desk.live("dt=1") if closed == "the unit" else desk.control.log)
    result = getattr(desk, command)()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.UNSETTLED)


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


@pytest.mark.parametrize("is_gone", [True, False], ids=["directory", "files in it"])
def test_a_recovery_that_was_killed_had_given_up_what_was_to_come_in(is_gone):
    desk, killed, _ = desk_in_gap("compact")
    rows = desk.world.rows_below(place(desk, killed, "ready/u00001"))
    manage(desk)
    drop_partition(desk)
    desk.kill_before(["rename_exact", "/entry.json"], desk.recover)
    if is_gone:
        desk.world.files.writer.delete(place(desk, killed, "retired/u00001"))
    else:
        remove_inside(desk, killed, are_all=False)
    problem = desk.recover().tables[0].problem
    assert problem.code is Code.OLD_FILES_REMOVED
    assert desk.world.rows_below(place(desk, killed, "stage/u00001")) == rows
    assert place(desk, killed, "stage/u00001") in problem.next
    desk.world.files.writer.delete(place(desk, killed, "stage/u00001"))
    desk.recover()
    assert desk.recover().code is Exit.DONE


@BOTH
def test_a_writer_has_removed_some_before_they_left_and_others_make_live_again(command):
    """What is merged into the rest of them, before that is put back, changes their directory, too."""
    desk, killed, _ = desk_in_gap(command)
    retired, writer = place(desk, killed, "retired/u00001"), desk.world.files.writer
    remove_inside(desk, killed, are_all=False)
    rows = desk.world.rows_below(retired)
    writer.make_directory(f"{retired}.0")
    writer.delete(f"{retired}.0")
    writer.add(f"{desk.live('dt=1')}/new.parquet", DataFile(("new",)), 77)
    desk.kill_before(["remove_empty", "/recreated/"], desk.recover)
    assert set(desk.world.rows_below(place(desk, killed, "retired/u00001"))) == {*rows, "new"}
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_below(desk.live("dt=1")) == {**rows, "new": 1}


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


def pass_time(desk):
    desk.world.files.namespace.advance(600_000)
    desk.world.clock.sleep_ms(600_000)


def append(desk):
    desk.world.files.writer.add(f"{desk.live('dt=1')}/new.parquet", DataFile(("new",)), 77)


def assert_told_and_brought_back(desk, result, rows):
    """By what is advised: whatever is in live is moved away meanwhile."""
    assert result.code is Exit.INVESTIGATE
    last, live, files = desk.log().runs[-1], desk.live("dt=1"), desk.world.files
    told = next(unit for unit in last.units if unit.partition == "dt=1")
    assert told.reason_code == "removed-after"
    desk.cleanup()
    assert desk.recover().code is Exit.DONE
    files.writer.rename_into(live, f"{desk.live()}/aside")
    files.writer.make_directory(live)
    assert desk.rollback(last.run, where="dt = '1'").code is Exit.DONE
    assert desk.world.rows_below(live) == rows


@BOTH
@pytest.mark.parametrize("is_first", [False, True], ids=["then", "before"])
@pytest.mark.parametrize("what", ["a job's file", "an old file"])
def test_the_directory_of_the_new_files_is_moved_into_live_beside(command, is_first, what):
    """A job's file makes live again, or one of the old files that somebody has copied back: no reader sees the rows of before."""
    desk, killed, coming = desk_in_gap(command)
    live, files, old = desk.live("dt=1"), desk.world.files, place(desk, killed, "retired/u00001")
    rows = desk.world.rows_below(old)
    path, content = sorted(files.contents(old).items())[0]

    def add():
        if what == "a job's file":
            append(desk)
        else:
            files.writer.add(f"{live}/{path.rpartition('/')[2]}", content, files.stat(path).length)

    if is_first:
        add()
    else:
        files.writer.make_directory(live)
    files.writer.rename_into(place(desk, killed, f"{coming}/u00001"), live)
    if not is_first:
        add()
    result = desk.recover()
    assert f"{live}/u00001 may have them" in result.tables[0].problem.what
    assert_told_and_brought_back(desk, result, rows)


@BOTH
@pytest.mark.parametrize("removed", ["u00001", ""], ids=["the unit's", "all"])
def test_the_new_files_are_removed_and_a_job_appends(command, removed):
    """Its rows are no reason to leave those of before in a backup of which nobody is told."""
    desk, killed, coming = desk_in_gap(command)
    rows = desk.world.rows_below(place(desk, killed, "retired/u00001"))
    pass_time(desk)
    desk.world.files.writer.delete(place(desk, killed, f"{coming}/{removed}".rstrip("/")))
    append(desk)
    assert_told_and_brought_back(desk, desk.recover(), rows)


@BOTH
@pytest.mark.parametrize("is_killed", [False, True], ids=["without the metastore", "killed"])
def test_a_recovery_that_could_not_end_leaves_it_to_be_told(command, is_killed):
    desk, killed, coming = desk_in_gap(command)
    files, rows = desk.world.files, desk.world.rows_below(place(desk, killed, "retired/u00001"))
    pass_time(desk)
    files.writer.delete(place(desk, killed, f"{coming}/u00001"))
    append(desk)
    if is_killed:
        desk.kill_before(["entry.json"], desk.recover)
    else:
        desk.world.metastore.fail_next("partitions_named", MetastoreUnavailable("timeout"), False)
        desk.recover()
    assert_told_and_brought_back(desk, desk.recover(), rows)


@BOTH
@pytest.mark.parametrize("is_killed", [False, True], ids=["", "killed later"])
def test_so_they_are_while_the_run_itself_waits_in_its_gap(command, is_killed):
    desk = desk_before(command)
    live, files, coming = desk.live("dt=1"), desk.world.files, "ready" if command == "compact" else "restoring"
    rows = desk.world.rows_below(live)

    def remove(what):
        if "rename_exact" in what and f"/{coming}/u00001 {live}" in what:
            files.before_step = die if is_killed else None
            desk.world.fail_call("rename_exact", False)
            pass_time(desk)
            files.writer.delete(desk.control.run(desk.runs[-1]).unit(coming, 1))
            append(desk)

    def die(what):
        if "entry.json" in what:
            files.die_after(0)

    files.before_step = remove
    with suppress(Killed):
        result = getattr(desk, command)()
    if is_killed:
        survive(desk)
        result = desk.recover()
    assert_told_and_brought_back(desk, result, rows)


@BOTH
@pytest.mark.parametrize("is_managed", [False, True], ids=["external", "managed"])
def test_they_are_removed_and_their_partition_is_dropped_as_its_directory_is_away(command, is_managed):
    desk, killed, coming = desk_in_gap(command)
    if is_managed:
        manage(desk)
    rows = desk.world.rows_below(place(desk, killed, "retired/u00001"))
    pass_time(desk)
    desk.world.files.writer.delete(place(desk, killed, f"{coming}/u00001"))
    drop_partition(desk)
    result = desk.recover()
    assert (result.code, desk.log().runs[-1].units[0].reason_code) == (Exit.INVESTIGATE, "dropped")
    assert "unpin" in result.tables[0].problem.next
    desk.cleanup()
    assert rows.keys() <= desk.world.rows_anywhere().keys()


@BOTH
@pytest.mark.parametrize("end", ["at once", "after a long gap", "once the next one waits"])
def test_who_overwrites_it_in_an_outage_has_removed_nothing(command, end):
    """The run had brought the new files in: within a moment, or it has noted that this took longer, or has gone on."""
    desk = desk_by(["dt"], batch_units=1)
    if command == "rollback":
        desk.compact()
    live, files, coming = desk.live("dt=1"), desk.world.files, "ready" if command == "compact" else "restoring"
    waits = {"after a long gap": f"/{coming}/u00001 {live}", "once the next one waits": f"/{coming}/u00002"}.get(end)
    dies = f"{desk.live('dt=2')} " if end == "once the next one waits" else "update_sizes"

    def watch(what):
        if waits and waits in what:
            pass_time(desk)
        if dies in what:
            files.die_after(0)

    files.before_step = watch
    with suppress(Killed):
        getattr(desk, command)()
    survive(desk)
    pass_time(desk)
    desk.world.overwrite(live, "other.parquet", ["other"], whole=True)
    desk.recover()
    assert desk.log().runs[-1].units[0].outcome.code == "overwritten"
    assert not desk.log().pinned


@pytest.mark.parametrize("command, by_recovery", [("compact", False), ("compact", True), ("rollback", False)])
def test_nor_if_the_copy_of_the_next_one_was_given_up_since(command, by_recovery):
    """By the run itself, as a writer has changed that one, or by a recovery that was killed."""
    desk = desk_before(command)
    live, files = desk.live("dt=1"), desk.world.files
    comes = f"/{'ready' if command == 'compact' else 'restoring'}/u00001 {live}"
    gives_up = ["delete_tree", "/ready/u00002"] if command == "compact" else ["rename_exact", "/restoring/u00002 ", "/retired/"]
    dies = "rename_exact " + desk.live("dt=2") if by_recovery else "update_sizes"

    def watch(what):
        if comes in what and not by_recovery:
            files.writer.delete(min(files.contents(desk.live("dt=2"))))
        if all(word in what for word in gives_up):
            pass_time(desk)
            if by_recovery:
                files.die_after(1)
        elif dies in what:
            files.die_after(0)

    files.before_step = watch
    for end in (getattr(desk, command), desk.recover)[: 1 + by_recovery]:
        with pytest.raises(Killed):
            end()
        survive(desk)
        files.before_step = watch
    files.before_step = None
    pass_time(desk)
    desk.world.overwrite(live, "other.parquet", ["other"], whole=True)
    desk.recover()
    assert desk.log().runs[-1].units[0].outcome.code == "overwritten"
    assert not desk.log().pinned


@BOTH
def test_nor_if_they_came_late_and_the_answer_was_lost(command):
    """Then what stays aside is told, and the backup is the only copy of nothing."""
    desk = desk_before(command)
    live, files, coming = desk.live("dt=1"), desk.world.files, "ready" if command == "compact" else "restoring"
    path, content = min(files.contents(live).items())
    length, tries = files.stat(path).length, []

    def watch(what):
        if f"/{coming}/u00001 {live}" in what:
            tries.append(what)
            if len(tries) == 1:
                pass_time(desk)
                files.writer.add(path, content, length)
            else:
                desk.world.fail_call("rename_exact", True)

    files.before_step = watch
    assert getattr(desk, command)().code is Exit.INVESTIGATE
    assert desk.log().runs[-1].units[0].reason_code == "late-in-backup"
    assert not desk.log().pinned


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
