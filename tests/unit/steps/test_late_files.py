"""Files that came into a partition or its backup late are carried over, however many there are."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.steps import arrivals
from support.builders import a_table
from support.desk import Desk
from support.fakes.files import FakeFiles
from support.world import World

LATE = 300


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    return desk


def add_late(desk, count):
    backup = f"{desk.control.runs}/{desk.runs[0]}/retired/u00001"
    for number in range(count):
        desk.world.add_file(f"{backup}/late{number}.parquet", [f"late {number}"])


def test_the_looks_at_live_grow_with_the_number_of_late_files(desk, monkeypatch):
    """A look at a thousand files is one call, and each late file adds one to them."""
    listed_at_once, calls, look = 10, [], FakeFiles.look

    def look_and_count(self, directories, *limits):
        found = look(self, directories, *limits)
        calls.append(1 + len(found[desk.live("dt=1")].entries) // listed_at_once if desk.live("dt=1") in found else 0)
        return found

    add_late(desk, LATE)
    rows = desk.world.rows_of(desk.table)
    monkeypatch.setattr(arrivals, "LISTED_IN_ONE_CALL", listed_at_once)
    monkeypatch.setattr(FakeFiles, "look", look_and_count)
    assert desk.cleanup().code is Exit.DONE
    assert len(desk.world.rows_of(desk.table)) == len(rows) + LATE
    assert sum(calls) < 2 * LATE


def test_before_each_of_few_late_files_live_is_looked_at(desk, monkeypatch):
    add_late(desk, 3)
    looks, look = [], FakeFiles.look

    def look_and_count(self, directories, *limits):
        looks.extend(directory for directory in directories if directory == desk.live("dt=1"))
        return look(self, directories, *limits)

    monkeypatch.setattr(FakeFiles, "look", look_and_count)
    desk.cleanup()
    assert len(looks) >= 3
