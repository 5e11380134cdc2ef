"""A committer that met a unit away and renames its directory to live when that is back: it is nested there, and its files move up, whatever
command had the unit away, and however that ended.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps.directory_exchange import DirectoryExchange
from support.desk import desk_by
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import at, survive


@pytest.fixture(params=["compact", "rollback"])
def command(request):
    return request.param


@pytest.fixture
def desk(command):
    desk = desk_by(["dt"])
    if command == "rollback":
        desk.compact()
    return desk


def nest(desk):
    desk.world.files.writer.add(f"{desk.live('dt=1')}/attempt/late.parquet", DataFile(("late",)))


@pytest.mark.parametrize("hours", [0, 1])
def test_in_an_outage_that_the_recovery_ends(desk, command, hours, monkeypatch):
    at(desk, [f"{desk.live('dt=1')} ", "/retired/"], lambda: desk.world.files.die_after(1))
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


@pytest.mark.parametrize("end", ["lost answer", "killed"])
def test_in_the_gap_of_a_unit_that_was_put_back(desk, command, end, monkeypatch):
    live, files, opened = desk.live("dt=1"), desk.world.files, []

    def watch(what):
        if "rename_exact" in what and f"{live} " in what and not opened:
            # A writer opens a file just before live leaves: it is put back.
            opened.append(files.writer.open(f"{live}/open.parquet"))
        elif "rename_exact" in what and "/retired/" in what and what.endswith(live):
            files.before_step = None
            if end == "killed":
                files.die_after(1, at_once=True)
            else:
                files.fail_next("rename_exact", FilesUnavailable("the connection broke"), done=True)

    rescue = DirectoryExchange.rescue

    def nest_and_rescue(self):
        if self.unit.name == "dt=1" and not files.stat(f"{live}/attempt"):
            nest(desk)
        return rescue(self)

    files.before_step = watch
    with monkeypatch.context() as patch, suppress(Killed):
        if end == "lost answer":
            patch.setattr(DirectoryExchange, "rescue", nest_and_rescue)
        getattr(desk, command)()
    if end == "killed":
        survive(desk)
        nest(desk)
    assert opened
    assert files.stat(live)
    files.writer.close(opened[0])
    code = desk.recover().code
    if end == "killed":
        # Nobody knows any more that it was away. It is told once.
        assert (code, desk.recover().code) == (Exit.INVESTIGATE, Exit.DONE)
        assert f"{live}/attempt" in desk.log().runs[-1].units[0].reason
    else:
        assert desk.world.rows_of(desk.table)["late"] == 1


def test_what_a_recovery_finds_beside_the_new_files_is_told_too(desk, command):
    """The run was killed after its swaps: the directory may be a copy that somebody keeps."""
    desk.kill_before(["rename_exact", "/log/"], getattr(desk, command))
    nest(desk)
    rows = desk.world.rows_of(desk.table)
    assert (desk.recover().code, desk.recover().code) == (Exit.INVESTIGATE, Exit.DONE)
    assert desk.world.rows_of(desk.table) == rows
    assert {unit.partition: unit.outcome for unit in desk.log().runs[-1].units}["dt=1"] is Outcome.MISPLACED


def test_what_comes_after_a_unit_was_put_back_stays_and_the_next_compaction_says_so(desk, command):
    """A little later than that look at the unit. The log does not say which files the unit had then: it may be a copy."""
    live, files, opened = desk.live("dt=1"), desk.world.files, []

    def watch(what):
        if "rename_exact" in what and f"{live} " in what and not opened:
            opened.append(files.writer.open(f"{live}/open.parquet"))
            files.die_after(1)

    files.before_step = watch
    with suppress(Killed):
        getattr(desk, command)()
    survive(desk)
    assert opened
    assert files.stat(live) is None
    files.writer.add("hdfs://nn/jobs/attempt/late.parquet", DataFile(("late",)))
    desk.recover()
    files.writer.rename_into("hdfs://nn/jobs/attempt", live)
    files.writer.close(opened[0])
    rows = desk.world.rows_of(desk.table)
    desk.recover()
    compacted = desk.compact()
    assert desk.world.rows_of(desk.table) == rows
    (why,) = [unit.why for unit in compacted.tables[0].units if unit.name == "dt=1"]
    assert (why.code, "attempt" in why.what) == (Code.SUBDIRECTORY, True)


@pytest.mark.parametrize("is_readable", [True, False], ids=["readable", "unreadable"])
def test_the_log_is_not_read_while_a_unit_is_away(is_readable, monkeypatch):
    """To know whether a directory may be a late one: a second failure would leave the unit away."""
    desk = desk_by(["dt"])
    desk.compact()
    live, read, away = desk.live("dt=1"), store.read_history, []

    def read_history(*args):
        away.append(desk.world.files.stat(live) is None)
        if away[-1] and not is_readable:
            raise FilesUnavailable("a DataNode does not answer")
        return read(*args)

    monkeypatch.setattr(store, "read_history", read_history)
    at(desk, ["rename_exact", "/restoring/", live], lambda: desk.world.files.fail_next("rename_exact", FilesUnavailable("failover")))
    desk.rollback(where="dt = '1'")
    assert True not in away
    assert desk.world.files.stat(live)
