"""Directories that come to a unit, and the moments in which they do."""

from __future__ import annotations

import pytest

from hivekeeper.steps.directory_exchange import DirectoryExchange
from support.desk import desk_by
from support.fakes.rows import DataFile

BOTH = pytest.mark.parametrize("command", ["compact", "rollback"])


def desk_before(command):
    """Where it will have units away."""
    desk = desk_by(["dt"])
    if command == "rollback":
        desk.compact()
    return desk


def leaves(desk):
    """The words of the step in which live leaves."""
    return [f"{desk.live('dt=1')} ", "/retired/"]


def put_back_with(desk, at_return):
    """A writer opens a file just before live leaves, so that it is put back; `at_return` comes before the rename that does it. Returns the
    open file, once it is there.
    """
    live, files, opened = desk.live("dt=1"), desk.world.files, []

    def watch(what):
        if "rename_exact" in what and f"{live} " in what and not opened:
            opened.append(files.writer.open(f"{live}/open.parquet"))
        elif "rename_exact" in what and "/retired/" in what and what.endswith(live):
            files.before_step = None
            at_return()

    files.before_step = watch
    return opened


def nest(desk, unit="dt=1", name="attempt"):
    """As a committer does that met the unit away."""
    place = f"{desk.live(unit)}/{name}"
    desk.world.files.writer.add(f"{place}/late.parquet", DataFile(("late",)))
    return place


def copy_to(desk, place, unit="dt=1"):
    """As `hdfs dfs -cp LIVE/* PLACE` does."""
    live = desk.live(unit)
    for path, content in list(desk.world.files.contents(live).items()):
        if path.rpartition("/")[0] == live:
            desk.world.files.writer.add(f"{place}/{path.rpartition('/')[2]}", content, desk.world.files.stat(path).length)


def act_before_live_is_settled(desk, act, monkeypatch, unit="dt=1"):
    """In the moment after the unit is live again, or its exchange is given up."""
    settle_live, waiting = DirectoryExchange.settle_live, [act]

    def act_then_settle(self, *args, **more):
        if self.unit.name == unit and waiting:
            waiting.pop()(desk)
        return settle_live(self, *args, **more)

    monkeypatch.setattr(DirectoryExchange, "settle_live", act_then_settle)


def desk_in_gap(command):
    """With the id of the run, and where it has what is to come in."""
    desk = desk_before(command)
    _, coming = kill_in_gap(desk, command)
    return desk, desk.runs[-1], coming


def kill_in_gap(desk, command):
    """Returns the directory of the killed run, and where in it is what is to come in."""
    live, coming = desk.live("dt=1"), "ready" if command == "compact" else "restoring"
    desk.kill_before(["rename_exact", f"/{coming}/u00001 {live}"], getattr(desk, command))
    return _directory_of(desk, desk.runs[-1]), coming


def place(desk, killed, state):
    """Recoveries rename the directory of a run."""
    return f"{_directory_of(desk, killed)}/{state}"


def _directory_of(desk, killed):
    (run,) = (one for one in desk.run_directories() if one.startswith(killed))
    return f"{desk.control.runs}/{run}"
