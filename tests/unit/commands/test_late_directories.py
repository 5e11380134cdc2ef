"""A committer that met a unit away and renames its directory to live when that is back: it is nested there. The run that had the unit away
moves its files up if they come in that moment; what comes later, or to a unit that was put back, is told.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps import late_directories
from hivekeeper.steps.directory_exchange import DirectoryExchange
from support.desk import desk_by, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import at, survive
from support.late_directories import BOTH, act_before_live_is_settled, desk_before, leaves, nest, put_back_with


@BOTH
def test_in_the_moment_after_the_exchange(command, monkeypatch):
    desk = desk_before(command)
    act_before_live_is_settled(desk, nest, monkeypatch)
    assert getattr(desk, command)().code is Exit.DONE
    assert desk.world.rows_of(desk.table)["late"] == 1


@BOTH
@pytest.mark.parametrize("hours", [0, 1])
def test_in_an_outage_that_the_recovery_ends(command, hours, monkeypatch):
    desk = desk_before(command)
    at(desk, leaves(desk), lambda: desk.world.files.die_after(1))
    with suppress(Killed):
        getattr(desk, command)()
    survive(desk)
    assert not desk.world.files.stat(desk.live("dt=1"))
    desk.world.files.namespace.advance(hours * 3_600_000)
    desk.world.clock.elapsed_ms += hours * 3_600_000
    bring = DirectoryExchange._bring

    def then_nest(self, *args, **more):
        bring(self, *args, **more)
        if self.unit.name == "dt=1":
            nest(desk)

    with monkeypatch.context() as patch:
        patch.setattr(DirectoryExchange, "_bring", then_nest)
        desk.recover()
    assert desk.world.rows_of(desk.table)["late"] == 1


@BOTH
@pytest.mark.parametrize("end", ["put back", "lost answer", "killed"])
def test_in_the_gap_of_a_unit_that_was_put_back(command, end, monkeypatch):
    """It may as well be a copy that came before live left. It is told once."""
    desk = desk_before(command)
    live, files = desk.live("dt=1"), desk.world.files

    def end_it():
        if end == "killed":
            files.die_after(1, at_once=True)
        elif end == "lost answer":
            files.fail_next("rename_exact", FilesUnavailable("the connection broke"), done=True)

    opened = put_back_with(desk, end_it)
    with monkeypatch.context() as patch, suppress(Killed):
        act_before_live_is_settled(desk, nest, patch)
        result = getattr(desk, command)()
    if end == "killed":
        survive(desk)
        nest(desk)
        result = desk.recover()
    assert opened
    assert files.stat(live)
    files.writer.close(opened[0])
    rows = desk.world.rows_of(desk.table)
    assert (result.code, desk.recover().code) == (Exit.INVESTIGATE, Exit.DONE)
    assert f"{live}/attempt" in next(unit.reason for unit in desk.log().runs[-1].units if unit.partition == "dt=1")
    assert desk.world.rows_of(desk.table) == rows


@BOTH
def test_what_a_recovery_finds_beside_the_new_files(command):
    """The run was killed after its swaps: the directory may be a copy that somebody keeps."""
    desk = desk_before(command)
    desk.kill_before(["rename_exact", "/log/"], getattr(desk, command))
    nest(desk)
    rows = desk.world.rows_of(desk.table)
    assert (desk.recover().code, desk.recover().code) == (Exit.INVESTIGATE, Exit.DONE)
    assert desk.world.rows_of(desk.table) == rows
    assert {unit.partition: unit.outcome for unit in desk.log().runs[-1].units}["dt=1"] is Outcome.MISPLACED


@BOTH
@pytest.mark.parametrize("at_once", [1, 100])
def test_what_comes_to_a_unit_while_others_are_exchanged_is_told(command, at_once, monkeypatch):
    monkeypatch.setattr(late_directories, "UNITS_AT_ONCE", at_once)
    desk = desk_before(command)
    act_before_live_is_settled(desk, nest, monkeypatch, unit="dt=2")
    result = getattr(desk, command)()
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.INVESTIGATE, "misplaced")
    assert outcomes(result)["dt=2"] in ("swapped", "rolled-back")
    assert {unit.name: unit.why.code for unit in result.tables[0].units if unit.why} == {"dt=1": Code.LATE_DIRECTORY}
    assert desk.recover().code is Exit.DONE
    # The run can be undone once the directory is away.
    desk.world.files.writer.delete(f"{desk.live('dt=1')}/attempt/late.parquet")
    desk.world.files.writer.delete(f"{desk.live('dt=1')}/attempt")
    assert outcomes(desk.rollback(desk.runs[0]))["dt=1"] in ("rolled-back", "undone")


def test_what_comes_to_a_unit_while_a_recovery_settles_others_is_told(monkeypatch):
    desk = desk_by(["dt"])
    desk.kill_before(["rename_exact", "/log/"], desk.compact)
    act_before_live_is_settled(desk, nest, monkeypatch, unit="dt=2")
    assert desk.recover().code is Exit.INVESTIGATE
    assert {unit.partition: unit.outcome.code for unit in desk.log().runs[-1].units} == {"dt=1": "misplaced", "dt=2": "swapped"}


@BOTH
def test_a_run_that_cannot_look_once_more_is_left_for_the_next_command(command, monkeypatch):
    desk = desk_before(command)
    act_before_live_is_settled(desk, nest, monkeypatch, unit="dt=2")

    def fail(*_args):
        raise FilesUnavailable("both NameNodes are standby")

    with monkeypatch.context() as patch:
        patch.setattr(late_directories, "look_where_allowed", fail)
        result = getattr(desk, command)()
    assert result.code is Exit.PARTIAL
    assert desk.recover().code is Exit.INVESTIGATE
    assert {unit.partition: unit.outcome.code for unit in desk.log().runs[-1].units}["dt=1"] == "misplaced"


@pytest.mark.parametrize("what", ["may not be read", "holds too much"])
def test_a_unit_that_cannot_be_looked_at_any_more_hides_no_others(what, monkeypatch):
    monkeypatch.setattr(late_directories, "UNITS_AT_ONCE", 1)
    desk = desk_by(["dt"], max_files=20)

    def spoil(*_args):
        nest(desk, "dt=2")
        if what == "may not be read":
            desk.world.files.namespace.unreadable.add(desk.live("dt=1"))
        else:
            for nth in range(60):
                desk.world.files.writer.add(f"{desk.live('dt=1')}/x{nth}.parquet", DataFile((str(nth),)))

    # The last call before that look.
    monkeypatch.setattr(desk.world.metastore, "update_sizes", spoil)
    assert outcomes(desk.compact()) == {"dt=1": "swapped", "dt=2": "misplaced"}


@BOTH
@pytest.mark.parametrize("later", ["recover", "compact", "rollback"])
def test_what_comes_after_the_run_stays_and_the_next_compaction_says_so(command, later):
    """Nobody knows any more what it is."""
    desk = desk_before(command)
    getattr(desk, command)()
    nest(desk)
    rows = desk.world.rows_of(desk.table)
    getattr(desk, later)()
    compacted = desk.compact()
    assert desk.world.rows_of(desk.table) == rows
    (why,) = [unit.why for unit in compacted.tables[0].units if unit.name == "dt=1"]
    assert (why.code, "attempt" in why.what) == (Code.SUBDIRECTORY, True)


def nest_with_marker(desk):
    desk.world.files.writer.add(f"{nest(desk)}/_SUCCESS", "", 0)


def nest_with_deeper(desk):
    desk.world.files.writer.add(f"{nest(desk)}/deeper/later.parquet", DataFile(("later",)))


def nest_closed(desk):
    node = desk.world.files.namespace.directory(nest(desk))
    node.attributes = replace(node.attributes, owner="another")


@BOTH
@pytest.mark.parametrize("brought", [nest_with_marker, nest_with_deeper, nest_closed])
def test_a_directory_that_is_not_moved_up_is_told(command, brought, monkeypatch):
    desk = desk_before(command)
    with monkeypatch.context() as patch:
        act_before_live_is_settled(desk, brought, patch)
        code = getattr(desk, command)().code
    assert desk.world.rows_of(desk.table)["late"] == 1 or code is Exit.INVESTIGATE


def nest_unwritable(desk):
    """For the user of the runs, who may write to live by an ACL that the committer's own directory does not have."""
    desk.world.files.namespace.denied.add(nest(desk))


@BOTH
def test_a_directory_out_of_which_nothing_may_be_moved_does_not_end_the_run(command, monkeypatch):
    desk = desk_before(command)
    with monkeypatch.context() as patch:
        act_before_live_is_settled(desk, nest_unwritable, patch)
        result = getattr(desk, command)()
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.INVESTIGATE, "misplaced")
    assert outcomes(result)["dt=2"] in ("swapped", "rolled-back")


def test_nor_does_it_keep_other_units_from_being_compacted():
    desk = desk_by(["dt"])
    desk.compact()
    nest_unwritable(desk)
    desk.append("dt=2", "one", "two", "three")
    assert desk.recover().code is Exit.DONE
    result = desk.compact()
    assert outcomes(result) == {"dt=1": "refused", "dt=2": "swapped"}
    result = desk.rollback(where="dt = '1'")
    assert (result.code, outcomes(result)) == (Exit.PARTIAL, {"dt=1": "given-up"})


def nest_many(desk, unit, number):
    for nth in range(number):
        nest(desk, unit, f"job{nth}")


@pytest.mark.parametrize("limit", ["MOST_LIFTED_DIRECTORIES", "MOST_LIFTED"])
@pytest.mark.parametrize("number", [3, 7], ids=["few", "too many"])
def test_directories_are_moved_up_only_as_long_as_they_are_few(limit, number, monkeypatch):
    """A million would take hours of the night, and nothing could stop the command meanwhile."""
    monkeypatch.setattr(f"hivekeeper.steps.arrivals.{limit}", 6)
    desk = desk_by(["dt"])
    act_before_live_is_settled(desk, lambda desk: nest_many(desk, "dt=1", number), monkeypatch)
    result = desk.compact()
    is_few = number == 3
    assert result.code is (Exit.DONE if is_few else Exit.INVESTIGATE)
    assert sum("/job" in path for path in desk.world.picture()) == (0 if is_few else number)


def test_the_limit_is_that_of_the_whole_run(monkeypatch):
    """Whoever fills a partition up to the limit can fill a thousand of them."""
    monkeypatch.setattr("hivekeeper.steps.arrivals.MOST_LIFTED", 6)
    desk = desk_by(["dt"])
    act_before_live_is_settled(desk, lambda desk: nest_many(desk, "dt=1", 3), monkeypatch)
    act_before_live_is_settled(desk, lambda desk: nest_many(desk, "dt=2", 1), monkeypatch, unit="dt=2")
    assert outcomes(desk.compact()) == {"dt=1": "swapped", "dt=2": "misplaced"}


def test_directories_in_many_units_of_a_killed_run_are_told_of_all():
    desk = desk_by(["dt"])
    desk.kill_before(["rename_exact", "/log/"], desk.compact)
    for unit in ("dt=1", "dt=2"):
        nest_many(desk, unit, 4)
    before = desk.world.rows_anywhere()
    for code in (Exit.INVESTIGATE, Exit.DONE):
        assert desk.recover().code is code
        assert sum("/job" in path for path in desk.world.picture()) == 8
    assert desk.world.rows_anywhere() == before
    assert all(f"{unit.partition}/job0" in unit.reason for unit in desk.log().runs[-1].units)
