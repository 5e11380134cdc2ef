"""Honest late files that stay aside although nobody has overwritten what they were added to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import EVERYTHING, Desk, outcomes
from support.world import World

A_YEAR_MS = 365 * 24 * 3_600_000


def compacted_once(names=None):
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [] if names else [1000] * 3})
    desk = Desk(world, backup_table=False)
    for name in names or ():
        insert(desk, name, name)
    desk.compact()
    return desk


def insert(desk, name, row):
    desk.world.add_file(f"{desk.live('dt=1')}/{name}", [row])
    desk.world.wait(3_600_000)


def add_late(desk, row, run=-1, number=1):
    (effect,) = (one for one in desk.log().standing if one.run == desk.runs[run] and one.number == number)
    desk.world.add_file(f"{desk.control.top}/{effect.place}/{row}.parquet", [row])


def overwrite(desk, *rows):
    for path in list(desk.world.files.contents(desk.live("dt=1"))):
        desk.world.files.writer.delete(path)
    desk.append("dt=1", *rows)


def rows(desk):
    return desk.world.rows_below(desk.live("dt=1"))


def clean_up(desk):
    desk.world.wait(A_YEAR_MS)
    return desk.cleanup(EVERYTHING)


def test_it_comes_from_a_backup_that_was_pinned_while_newer_ones_went():
    """No rollback leads to what a rollback took out once a run has come after that, so the newer ones do not stay with it."""
    desk = compacted_once()
    desk.append("dt=1", "a", "b")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    undoing = desk.runs[-1]
    desk.compact()
    desk.pin(undoing)
    clean_up(desk)
    assert [effect.run for effect in desk.log().standing] == [undoing]
    desk.world.add_file(f"{desk.control.top}/{desk.log().standing[0].place}/late.parquet", ["late"])
    desk.pin(undoing, False)
    result = clean_up(desk)
    assert rows(desk)["late"] == 1
    assert result.code is Exit.DONE


def test_it_comes_where_a_rollback_had_to_rename_what_came_between_two_runs():
    """Each INSERT of Hive into a directory without one gives its file the name 000000_0."""
    desk = compacted_once(["000000_0", "000001_0", "000002_0"])
    insert(desk, "000000_0", "x")
    insert(desk, "000001_0", "y")
    desk.compact()
    assert outcomes(desk.rollback(desk.runs[0])) == {"dt=1": "rolled-back"}
    held = rows(desk)
    assert held == Counter(["000000_0", "000001_0", "000002_0", "x", "y"])
    add_late(desk, "late", number=1)
    result = clean_up(desk)
    assert rows(desk) == held + Counter(["late"])
    assert result.code is Exit.DONE
