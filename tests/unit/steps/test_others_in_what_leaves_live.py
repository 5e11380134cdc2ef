"""Somebody has another table's directory, which they may rename, at a partition's place when that leaves live, or just after."""

from __future__ import annotations

import json

import pytest

from hivekeeper.codes import Exit
from hivekeeper.runlog.outcomes import Outcome
from support.desk import outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import at, manage, survive
from support.late_directories import act_before_live_is_settled, leaves
from unit.steps.test_other_directory_at_live import THEIRS, a_desk, carry_over_into_theirs, give_rights, make_theirs, put_back, put_there

KILLED = pytest.mark.parametrize("is_killed", [False, True], ids=["in the run", "in its recovery"])


def act_where_it_leaves(desk, act, command, is_killed):
    """Just before live leaves; `is_killed`: the command is killed before it brings anything back."""
    live, files = desk.live("dt=1"), desk.world.files

    def act_then_die():
        act()
        if is_killed:
            at(desk, ["rename_exact", f"/u00001 {live}"], lambda: files.die_after(0))

    at(desk, leaves(desk), act_then_die)
    if not is_killed:
        return command()
    with pytest.raises(Killed):
        command()
    survive(desk)
    return desk.recover()


def desk_with_only_a_backup():
    """A partition was dropped with its files while a run was killed in its gap, and added again: its rows are in the backup alone."""
    desk = a_desk()
    manage(desk)
    desk.kill_before([f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    desk.world.drop_partition(desk.table, "dt=1", purge=True)
    desk.recover()
    desk.world.make_partition(desk.table, "dt=1")
    desk.world.wait(3_600_000)
    return desk


def put_sticky_there(desk):
    """With all files of the partition in it: anybody may put files there, only their owners may take them away."""
    live, namespace = desk.live("dt=1"), desk.world.files.namespace
    for path in list(desk.world.files.contents(live)):
        namespace.rename(path, f"{THEIRS}/{path.rpartition('/')[2]}")
    put_there(desk)


def make_sticky(desk):
    make_theirs(desk, {"payment.parquet": 1000})
    give_rights(desk, THEIRS, owner="fin", group="fin", mode=0o1777)
    return desk.world.files.namespace.find(THEIRS)


@KILLED
def test_files_in_a_sticky_directory_stay_there(is_killed):
    desk = a_desk()
    theirs = make_sticky(desk)
    act_where_it_leaves(desk, lambda: put_sticky_there(desk), desk.compact, is_killed)
    assert "payment.parquet" in theirs.children
    # It is back where it was found, and no backup.
    assert desk.world.files.namespace.find(desk.live("dt=1")) is theirs


def test_files_in_a_sticky_directory_that_comes_before_the_check_stay_there():
    """After rights were looked at, which serves for ten seconds, and for many units. Its time is read first in the check."""
    desk = a_desk()
    theirs = make_sticky(desk)
    at(desk, ["write_new", "/clock"], lambda: put_sticky_there(desk))
    assert outcomes(desk.compact()) != {"dt=1": "swapped"}
    assert "payment.parquet" in theirs.children


def test_a_run_of_a_former_version_that_was_killed_in_its_gap_is_finished():
    """Its plan has no ids of directories."""
    desk = a_desk()
    files, live = desk.world.files, desk.live("dt=1")

    def come_late_and_die():
        desk.world.add_file(f"{live}/mine.parquet", ["mine"])
        at(desk, ["rename_exact", f"/ready/u00001 {live}"], lambda: files.die_after(0))

    at(desk, leaves(desk), come_late_and_die)
    with pytest.raises(Killed):
        desk.compact()
    survive(desk)
    (run,) = desk.run_directories()
    plan = f"{desk.control.runs}/{run}/plan.json"
    head, unit = map(json.loads, str(files.contents(desk.control.top)[plan]).splitlines())
    former = {key: value for key, value in unit.items() if key not in ("join", "inside", "directoryId")}
    files.writer.delete(plan)
    files.writer.add(plan, "".join(json.dumps(line) + "\n" for line in ({**head, "version": 1}, former)))
    desk.recover()
    assert [effect.partition for effect in desk.log().effects] == ["dt=1"]
    assert f"{live}/mine.parquet" in files.contents(live)


@KILLED
def test_files_of_another_table_do_not_come_late_to_a_rollback_that_takes_nothing_out(is_killed):
    desk = desk_with_only_a_backup()
    make_theirs(desk, {"payment.parquet": 1000})
    give_rights(desk, THEIRS, owner="fin", group="fin", mode=0o700)
    theirs = desk.world.files.namespace.find(THEIRS)
    act_where_it_leaves(desk, lambda: put_there(desk), lambda: desk.rollback(desk.runs[0]), is_killed)
    assert "payment.parquet" in theirs.children


def test_nor_do_those_of_one_that_comes_before_the_check():
    desk = desk_with_only_a_backup()
    make_theirs(desk, {"payment.parquet": 1000})
    give_rights(desk, THEIRS, owner="fin", group="fin", mode=0o700)
    theirs = desk.world.files.namespace.find(THEIRS)
    at(desk, ["write_new", "/clock"], lambda: put_there(desk))
    desk.rollback(desk.runs[0])
    assert "payment.parquet" in theirs.children


def test_rows_that_came_while_a_partition_was_closed_are_not_opened_by_a_rollback():
    """The files that it brings back have a directory with their former rights; what came since was never open."""
    desk = a_desk()
    give_rights(desk, desk.live("dt=1"), mode=0o755)
    desk.compact()
    give_rights(desk, desk.live("dt=1"), mode=0o700)
    desk.append("dt=1", "secret")
    desk.rollback()
    place = next(path for path in desk.world.files.contents(desk.live()) if path.endswith("/secret.parquet")).rpartition("/")[0]
    assert oct(desk.world.files.namespace.find(place).mode) == oct(0o700)


def desk_with_nothing_to_bring_in():
    """A rollback of a rollback: live was empty before."""
    desk = desk_with_only_a_backup()
    assert outcomes(desk.rollback(desk.runs[0])) == {"dt=1": "rolled-back"}
    desk.world.wait(3_600_000)
    return desk


def test_a_late_file_is_not_moved_into_another_table_by_a_rollback_that_brings_nothing_in(monkeypatch):
    desk = desk_with_nothing_to_bring_in()
    before = make_theirs(desk, {"payment.parquet": 1000})
    live = desk.live("dt=1")
    at(desk, leaves(desk), lambda: desk.world.add_file(f"{live}/mine.parquet", ["mine"]))
    carry_over_into_theirs(desk, monkeypatch)
    assert outcomes(desk.rollback(desk.runs[-1])) == {"dt=1": Outcome.MISPLACED.code}
    assert sorted(desk.world.files.contents(THEIRS)) == before


def test_a_late_file_goes_to_the_directory_that_a_rollback_brings_in_without_files():
    desk = desk_with_nothing_to_bring_in()
    live = desk.live("dt=1")
    at(desk, leaves(desk), lambda: desk.world.add_file(f"{live}/mine.parquet", ["mine"]))
    assert outcomes(desk.rollback(desk.runs[-1])) == {"dt=1": "rolled-back"}
    assert list(desk.world.files.contents(live)) == [f"{live}/mine.parquet"]


def test_so_it_does_after_a_call_that_failed_where_the_run_has_younger_certificates():
    desk = desk_with_nothing_to_bring_in()
    files, live = desk.world.files, desk.live("dt=1")

    def come_late():
        desk.world.add_file(f"{live}/mine.parquet", ["mine"])
        at(desk, ["rename_exact", f"/restoring/u00001 {live}"], certify_and_fail)

    def certify_and_fail():
        (top,) = [f"{desk.control.runs}/{run}" for run in desk.run_directories() if run.startswith(desk.runs[-1])]
        files.writer.add(f"{top}/certificates-1.jsonl", "")
        desk.world.fail_call("rename_exact", done=True)

    at(desk, leaves(desk), come_late)
    assert outcomes(desk.rollback(desk.runs[-1])) == {"dt=1": "rolled-back"}
    assert list(files.contents(live)) == [f"{live}/mine.parquet"]


def test_after_a_kill_it_stays_in_the_backup_and_is_told():
    """Nothing shows any more which directory was brought in."""
    desk = desk_with_nothing_to_bring_in()
    files, live = desk.world.files, desk.live("dt=1")

    def come_late_and_die():
        desk.world.add_file(f"{live}/mine.parquet", ["mine"])
        at(desk, ["rename_exact", "/mine.parquet "], lambda: files.die_after(0))

    at(desk, leaves(desk), come_late_and_die)
    with pytest.raises(Killed):
        desk.rollback(desk.runs[-1])
    survive(desk)
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    assert not files.contents(live)
    assert any(path.endswith("/retired/u00001/mine.parquet") for path in files.contents(desk.control.top))


def test_nothing_in_another_table_is_moved_up_by_a_rollback_that_brings_nothing_in(monkeypatch):
    desk = desk_with_nothing_to_bring_in()
    before = make_theirs(desk, {"payment.parquet": 1000, "old/part-1.parquet": 1000})
    act_before_live_is_settled(desk, put_there, monkeypatch)
    assert outcomes(desk.rollback(desk.runs[-1])) == {"dt=1": Outcome.MISPLACED.code}
    put_back(desk)
    assert sorted(desk.world.files.contents(THEIRS)) == before


def test_a_late_file_is_not_moved_into_another_table_by_a_cleanup_because_live_had_only_a_marker():
    desk = desk_with_only_a_backup()
    desk.world.mark_success(desk.live("dt=1"))
    for undone in (desk.runs[0], None):
        desk.world.wait(3_600_000)
        assert outcomes(desk.rollback(undone or desk.runs[-1])) == {"dt=1": "rolled-back"}
    before = make_theirs(desk, {"payment.parquet": 1000})
    (run,) = [each for each in desk.run_directories() if each.startswith(desk.runs[-1])]
    desk.world.add_file(f"{desk.control.runs}/{run}/retired/u00001/mine.parquet", ["mine"])
    put_there(desk)
    desk.cleanup()
    put_back(desk)
    assert sorted(desk.world.files.contents(THEIRS)) == before


@pytest.mark.parametrize("is_killed", [False, True], ids=["a call fails", "it is killed"])
def test_what_came_in_the_gap_is_not_merged_into_an_empty_directory_of_another_table(is_killed):
    """It was at a partition's place when that left live: who may rename it may not write to it."""
    desk = a_desk()
    files, live = desk.world.files, desk.live("dt=1")
    files.writer.make_directory(THEIRS)
    give_rights(desk, THEIRS, owner="fin", group="fin", mode=0o755)
    desk.world.wait(3_600_000)
    theirs = files.namespace.find(THEIRS)

    def come():
        put_there(desk)
        at(desk, [f"/retired/u00001 {live}"], come_again)

    def come_again():
        files.writer.add(f"{live}/mine.parquet", DataFile(("mine",)), 1000)
        if is_killed:
            files.die_after(0)
        else:
            desk.world.fail_call("rename_exact", done=False)

    at(desk, leaves(desk), come)
    if is_killed:
        with pytest.raises(Killed):
            desk.compact()
        survive(desk)
        desk.recover()
    else:
        desk.compact()
    assert not theirs.children


def test_a_new_directory_whose_acl_keeps_some_out_is_not_merged_as_one_that_is_open_to_all():
    """It was made since the copies were written, and is renamed to a partition's place in the gap."""
    desk = a_desk()
    live, files = desk.live("dt=1"), desk.world.files

    def come():
        make_theirs(desk, {"payment.parquet": 1000})
        acl = ("group::r-x", "mask::r-x", "other::r-x", "user::rwx", "user:bob:---")
        give_rights(desk, THEIRS, owner="fin", group="fin", mode=0o755, acl=acl)
        files.namespace.rename(THEIRS, live)

    at(desk, [f"/ready/u00001 {live}"], come)
    desk.compact()
    assert f"{live}/payment.parquet" not in files.contents(live)


def test_nor_are_those_in_a_new_directory_of_the_same_owner():
    desk = a_desk()
    live, files = desk.live("dt=1"), desk.world.files

    def come():
        make_theirs(desk, {"payment.parquet": 1000})
        acl = ("group::r-x", "mask::r-x", "other::r-x", "user::rwx", "user:bob:---")
        give_rights(desk, THEIRS, mode=0o755, acl=acl)
        files.namespace.rename(THEIRS, live)

    at(desk, [f"/ready/u00001 {live}"], come)
    desk.compact()
    assert f"{live}/payment.parquet" not in files.contents(live)


@pytest.mark.parametrize("keeps_out", [False, True])
def test_a_new_directory_in_live_whose_acl_keeps_some_out_is_not_moved_up(keeps_out, monkeypatch):
    desk = a_desk()
    live, files = desk.live("dt=1"), desk.world.files
    acl = ("group::r-x", "mask::r-x", "other::r-x", "user::rwx", "user:bob:---") if keeps_out else ()

    def come(_):
        make_theirs(desk, {"payment.parquet": 1000})
        give_rights(desk, THEIRS, mode=0o755, acl=acl)
        files.namespace.rename(THEIRS, f"{live}/attempt")

    act_before_live_is_settled(desk, come, monkeypatch)
    desk.compact()
    assert (f"{live}/payment.parquet" not in files.contents(live)) == keeps_out


def test_nor_does_what_came_in_the_gap_go_into_one_that_is_brought_back_at_once():
    """Its owner is that of the partition: only its id shows that it is another one."""
    desk = a_desk()
    files, live = desk.world.files, desk.live("dt=1")
    before = make_theirs(desk, {"payment.parquet": 1000})
    mine = f"{live}/mine.parquet"

    def come():
        put_there(desk)
        at(desk, [f"/retired/u00001 {live}"], lambda: files.writer.add(mine, DataFile(("mine",)), 1000))

    at(desk, leaves(desk), come)
    assert outcomes(desk.compact()) == {"dt=1": Outcome.MISPLACED.code}
    put_back(desk)
    assert sorted(files.contents(THEIRS)) == before


def test_a_late_file_goes_to_what_a_recovery_brings_in_without_files():
    desk = desk_with_nothing_to_bring_in()
    files, live = desk.world.files, desk.live("dt=1")

    def come_late_and_die():
        desk.world.add_file(f"{live}/mine.parquet", ["mine"])
        at(desk, ["rename_exact", f"/restoring/u00001 {live}"], lambda: files.die_after(0))

    at(desk, leaves(desk), come_late_and_die)
    with pytest.raises(Killed):
        desk.rollback(desk.runs[-1])
    survive(desk)
    assert desk.recover().code is Exit.DONE
    assert list(files.contents(live)) == [f"{live}/mine.parquet"]


@KILLED
def test_an_open_directory_does_not_come_late_to_a_rollback_that_takes_nothing_out(is_killed):
    """Its rights do not keep its files where they are."""
    desk = desk_with_only_a_backup()
    make_theirs(desk, {"payment.parquet": 1000})
    give_rights(desk, THEIRS, owner="fin", group="fin", mode=0o755)
    theirs = desk.world.files.namespace.find(THEIRS)
    act_where_it_leaves(desk, lambda: put_there(desk), lambda: desk.rollback(desk.runs[0]), is_killed)
    assert "payment.parquet" in theirs.children


def test_one_that_is_older_than_a_rollback_but_not_than_its_backup_is_not_merged():
    desk = a_desk()
    desk.compact()
    make_theirs(desk, {"payment.parquet": 1000})
    give_rights(desk, THEIRS, owner="fin", group="fin", mode=0o755)
    theirs, namespace, live = desk.world.files.namespace.find(THEIRS), desk.world.files.namespace, desk.live("dt=1")
    at(desk, [f"/restoring/u00001 {live}"], lambda: namespace.rename(THEIRS, live))
    assert outcomes(desk.rollback()) == {"dt=1": Outcome.MISPLACED.code}
    assert "payment.parquet" in theirs.children
