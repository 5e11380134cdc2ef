"""`MSCK REPAIR TABLE … SYNC PARTITIONS` looks for all directories for minutes, and drops partitions whose directories it did not find. One
that was away longer than a moment is told with 7, whoever had it away: schedulers run a command again after 6, and hear 0 from then on.
"""

from __future__ import annotations

from collections import Counter

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable
from support.desk import desk_by, outcomes
from support.fakes.files import Killed
from support.joined_desk import at, drop_partition, manage, survive
from support.late_directories import desk_before, nest, put_back_with

IN_GAP = ["rename_exact", "/ready/u00001 "]


def drop_after(desk, ms, then=lambda: None):
    desk.world.clock.sleep_ms(ms)
    drop_partition(desk)
    then()


@pytest.mark.parametrize("done", [False, True], ids=["without effect", "done"])
def test_a_call_of_the_run_itself_failed_in_the_gap(done):
    """As between a driver and a NameNode that reaches all others."""
    desk = desk_by(["dt"])
    at(desk, IN_GAP, lambda: drop_after(desk, 600_000, lambda: desk.world.fail_call("rename_exact", done)))
    assert desk.compact().code is Exit.INVESTIGATE
    assert desk.compact().code is Exit.DONE


@pytest.mark.parametrize(["ms", "code"], [(20, Exit.PARTIAL), (600_000, Exit.INVESTIGATE)])
def test_the_gap_of_the_run_itself_was_long(ms, code):
    """HDFS's client has waited for a failover, or the machine stood still."""
    desk = desk_by(["dt"])
    at(desk, IN_GAP, lambda: drop_after(desk, ms))
    result = desk.compact()
    assert outcomes(result)["dt=1"] == ("dropped-meanwhile" if code is Exit.PARTIAL else "misplaced")
    assert result.code is code


@pytest.mark.parametrize("is_managed", [False, True], ids=["external", "managed"])
def test_a_recovery_that_had_found_it_there_is_killed(is_managed):
    desk = desk_by(["dt"])
    if is_managed:
        manage(desk)
    desk.kill_before(IN_GAP, desk.compact)

    def drop_and_die():
        drop_partition(desk)
        desk.world.files.die_after(0)

    # It has asked the metastore, brings the new files in, and is killed then.
    at(desk, IN_GAP, lambda: at(desk, ["rename_exact"], drop_and_die))
    with pytest.raises(Killed):
        desk.recover()
    survive(desk)
    assert desk.recover().code is Exit.INVESTIGATE
    assert desk.recover().code is Exit.DONE


@pytest.mark.parametrize(["ms", "code"], [(20, Exit.PARTIAL), (600_000, Exit.INVESTIGATE)])
@pytest.mark.parametrize("next_step", ["/retired/u00002", "entry.json"], ids=["next unit", "entry"])
@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_a_run_with_a_long_gap_is_killed_once_it_is_over(ms, code, next_step, command):
    """Its recovery finds the unit live again."""
    desk = desk_before(command)
    coming = "ready" if command == "compact" else "restoring"

    def drop_then_die():
        drop_after(desk, ms)
        at(desk, [next_step], lambda: desk.world.files.die_after(0))

    at(desk, ["rename_exact", f"/{coming}/u00001 {desk.live('dt=1')}"], drop_then_die)
    with pytest.raises(Killed):
        getattr(desk, command)()
    survive(desk)
    assert desk.recover().code is code
    assert desk.recover().code is Exit.DONE
    assert not [path for path in desk.world.picture() if "/away-" in path]


def test_what_says_that_a_gap_was_long_could_not_be_written():
    """The run goes on, and tells what it knows itself."""
    desk = desk_by(["dt"])

    def drop_then_fail():
        drop_after(desk, 600_000)
        at(desk, ["write_new", "/away-u00001"], lambda: desk.world.fail_call("write_new", False))

    at(desk, IN_GAP, drop_then_fail)
    result = desk.compact()
    assert outcomes(result) == {"dt=1": "misplaced", "dt=2": "swapped"}
    assert result.code is Exit.INVESTIGATE


def fail_its_way_in(desk):
    at(desk, IN_GAP, lambda: drop_after(desk, 600_000, lambda: desk.world.fail_call("rename_exact", False)))


def put_it_back_after_a_writer_came_to_its_place(desk):
    def come():
        desk.world.clock.sleep_ms(600_000)
        nest(desk)

    put_back_with(desk, come)


@pytest.mark.parametrize("meet", [fail_its_way_in, put_it_back_after_a_writer_came_to_its_place])
def test_a_long_gap_is_noted_only_once_the_unit_is_live_again(meet, monkeypatch):
    """In an encryption zone that waits for the KMS."""
    desk, missing = desk_by(["dt"]), []
    rows, write_new = desk.world.rows_below(desk.live("dt=1")), desk.world.files.write_new

    def watch(path, *args, **more):
        if "/away-" in path:
            missing.append(rows - desk.world.rows_below(desk.live("dt=1")))
        return write_new(path, *args, **more)

    monkeypatch.setattr(desk.world.files, "write_new", watch)
    meet(desk)
    desk.compact()
    assert missing == [Counter()]


@pytest.mark.parametrize(["ms", "outcome"], [(20, "dropped-meanwhile"), (600_000, "misplaced")])
def test_it_is_dropped_and_overwritten_in_a_gap_whose_end_is_not_known(ms, outcome):
    """The call that brings the new files in is done, and its answer lost: nothing of it is live when the run looks."""
    desk = desk_by(["dt"])

    def fail_then_overwrite():
        drop_after(desk, ms, lambda: desk.world.fail_call("rename_exact", True))

    at(desk, IN_GAP, fail_then_overwrite)
    rename = desk.world.files.rename_exact

    def rename_exact(source, target):
        try:
            rename(source, target)
        except FilesUnavailable:
            desk.world.overwrite(desk.live("dt=1"), "new.parquet", ["new"], True)
            raise

    desk.world.files.rename_exact = rename_exact
    result = desk.compact()
    assert outcomes(result)["dt=1"] == outcome


def test_a_rollback_was_killed_in_the_gap():
    desk = desk_by(["dt"])
    desk.compact()
    desk.kill_before(["rename_exact", f"/restoring/u00001 {desk.live('dt=1')}"], desk.rollback)
    drop_partition(desk)
    assert desk.recover().code is Exit.INVESTIGATE


def test_one_that_a_killed_run_had_finished_was_dropped_on_purpose():
    desk = desk_by(["dt"])
    desk.kill_before(["rename_exact", "/ready/u00002 "], desk.compact)
    drop_partition(desk)
    assert desk.recover().code is Exit.PARTIAL


def test_a_directory_that_was_made_again_with_the_note_of_a_gap_is_no_strangers():
    """A run that stands still notes its gap in a directory that its tasks have made again after another one took its own over."""
    desk = desk_by(["dt"])
    again = desk.control.run("20260101t050000z-0000")
    desk.world.files.writer.make_directory(again.state("stage"))
    desk.world.files.write_new(again.away(1), "")
    assert desk.recover().code is Exit.DONE
