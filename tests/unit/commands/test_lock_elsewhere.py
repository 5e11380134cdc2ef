"""The lock is taken in the control directory of another table, which somebody may rename but not read, and their own is back before it is
looked at: what goes by the lock's id goes there.
"""

from __future__ import annotations

import re

from hivekeeper import names
from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk
from support.world import World


def set_up():
    """Two tables on which the same commands work, so that their runs have the same ids."""
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    world.add_table(a_table(name="orders"), {"": [1000] * 3})
    mine, theirs = Desk(world), Desk(world, "sales.orders")
    assert mine.compact().code is Exit.DONE
    return mine, theirs


def picture(world, top):
    return [without_takeover(path[len(top) :]) for path, node in world.files.namespace.walk(top) if not node.is_dir]


def without_takeover(path):
    """Of a killed run that another one has found, which changes nothing for its own recovery."""
    return re.sub(r"\.t\d+/", "/", path)


def places_of(world, name):
    return [without_takeover(path) for path, _ in world.files.namespace.walk("hdfs://nn") if names.base(path) == name]


def attack(monkeypatch, mine, theirs, run, faked_files):
    """Recover `mine`, of whose finished run a directory with these files is shown, with the lock in the control directory of `theirs`."""
    files, writer = mine.world.files, mine.world.files.writer
    top, other = mine.control.top, theirs.control.top
    aside, faked = names.parent(top) + "/.aside", names.parent(top) + "/.faked"
    for name in faked_files:
        writer.add(f"{faked}/runs/{run}/{name}", "x")
    hold, look, looks = files.hold, files.look, []

    def hold_there(path, holder):
        writer.rename_into(top, aside)
        writer.rename_into(other, top)
        lock = hold(path, holder)
        writer.rename_into(top, other)
        writer.rename_into(aside, top)
        return lock

    def look_at_another(directories, *more):
        if list(directories) == [mine.control.runs]:
            looks.append(directories)
            if len(looks) == 2:
                # When finished runs are tidied, after the log was read.
                writer.rename_into(top, aside)
                writer.rename_into(faked, top)
        return look(directories, *more)

    monkeypatch.setattr(files, "hold", hold_there)
    monkeypatch.setattr(files, "look", look_at_another)
    result = mine.recover()
    monkeypatch.undo()
    return result


def test_the_plan_and_the_copy_of_a_killed_run_of_another_table_stay(monkeypatch):
    mine, theirs = set_up()
    theirs.kill_before(["rename_exact", "/ready/u00001", f" {theirs.live()}"], theirs.compact)
    assert mine.runs == theirs.runs
    before = picture(mine.world, theirs.control.top)
    attack(monkeypatch, mine, theirs, mine.runs[0], ["plan.json", "certificates-1.jsonl", "ready/u00001/x"])
    assert picture(mine.world, theirs.control.top) == before
    assert theirs.recover().code is Exit.DONE


def test_a_backup_of_another_table_that_a_killed_cleanup_holds_stays_with_the_file_that_came_late(monkeypatch):
    mine, theirs = set_up()
    assert theirs.compact().code is Exit.DONE
    late = f"{theirs.control.top}/runs/{theirs.runs[0]}/retired/u00001/late.parquet"
    mine.world.add_file(late, ["late"])
    assert mine.cleanup().code is Exit.DONE
    theirs.kill_before(["rename_exact", "/held/u00001/late.parquet"], theirs.cleanup)
    assert mine.runs == theirs.runs
    before = places_of(mine.world, "late.parquet")
    assert len(before) == 1
    attack(monkeypatch, mine, theirs, mine.runs[1], ["plan.json", "held/u00001/x"])
    assert places_of(mine.world, "late.parquet") == before
