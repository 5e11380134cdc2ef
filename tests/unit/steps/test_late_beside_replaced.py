"""As test_late_and_replaced.py, where the run, or its recovery, is at work and carries late files over while somebody writes live anew."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.files import FakeFiles
from support.hive_statements import Hive
from support.joined_desk import at
from support.world import World


def a_desk(kind="MANAGED_TABLE"):
    world = World()
    world.add_table(a_table(["dt"], kind=kind, create_time=5), {"dt=1": [1000] * 3})
    return Desk(world, backup_table=False)


def come_late(desk, then):
    """Two files come just before live leaves, and something happens when the first of them is carried over."""
    world, live = desk.world, desk.live("dt=1")

    def come():
        for name in ("late-a", "late-b"):
            world.add_file(f"{live}/{name}.parquet", [name])
        at(desk, ["/retired/u00001/late-"], then)

    at(desk, [f"{live} ", "/retired/u00001"], come)


def rewrite(desk):
    """Another tool merges the files that it has listed before (the compacted ones), and deletes these. It has never seen the late ones."""
    world, live = desk.world, desk.live("dt=1")
    rows = sorted(world.rows_below(live))
    for name in list(world.files.namespace.directory(live).children):
        world.files.writer.delete(f"{live}/{name}")
    world.add_file(f"{live}/merged-by-another-tool.parquet", rows)


@pytest.mark.parametrize("how", ["run", "recovery"])
def test_late_rows_are_told_of_if_live_is_rewritten_while_they_are_carried_over(how):
    desk = a_desk()
    world = desk.world
    if how == "run":
        come_late(desk, lambda: rewrite(desk))
        result = desk.compact()
    else:
        come_late(desk, lambda: world.files.die_after(0))
        try:
            desk.compact()
        except BaseException as error:  # noqa: BLE001
            assert type(error).__name__ == "Killed"
        world.files.before_step = None
        world.files.revive()
        world.files.expire_locks()
        at(desk, ["/retired/u00001/late-"], lambda: rewrite(desk))
        result = desk.recover()
    world.files.before_step = None
    assert {"late-a", "late-b"} <= set(world.rows_anywhere())
    hidden = {"late-a", "late-b"} - set(world.rows_of(desk.table))
    assert hidden == {"late-b"}, "the other one came beside the new file"
    assert result.code is not Exit.DONE, (outcomes(result), result.tables[0].recovered)


def test_late_rows_are_told_of_if_the_partition_is_renamed_just_before_they_are_carried_over(monkeypatch):
    """A managed partition, whose directory goes along with the compacted files. Nothing was overwritten or dropped, and "nothing, if it was
    dropped on purpose" is what the operator is told to do.
    """
    desk = a_desk()
    world, live = desk.world, desk.live("dt=1")
    at(desk, [f"{live} ", "/retired/u00001"], lambda: world.add_file(f"{live}/late.parquet", ["late"]))
    look, done = FakeFiles.look, []

    def look_and_rename(self, directories, *limits):
        in_live = world.files.namespace.find(live)
        left = world.files.namespace.find(f"{desk.control.runs}/{desk.runs[0]}/retired/u00001")
        if not done and live in directories and left is not None and in_live is not None:
            done.append(True)
            list(Hive(world).rename_partition(desk.table, "dt=1", "dt=9"))
        return look(self, directories, *limits)

    monkeypatch.setattr(FakeFiles, "look", look_and_rename)
    result = desk.compact()
    assert done
    assert "late" in world.rows_anywhere()
    why = result.tables[0].units[0].why
    said = f"{why.what} | {why.next}" if why else ""
    assert "late" in world.rows_of(desk.table) or "late.parquet" in said, (result.code, outcomes(result), said)


def test_late_rows_are_told_of_if_two_partitions_exchange_their_names_while_they_are_carried_over():
    """Managed partitions, whose directories go along, by three renames. Nothing was overwritten, dropped or set elsewhere."""
    world = World()
    world.add_table(a_table(["dt"], kind="MANAGED_TABLE", create_time=5), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    desk = Desk(world, backup_table=False)
    live, before = desk.live("dt=2"), set(world.rows_of(desk.table))

    def exchange_names():
        for old, new in (("dt=2", "dt=3"), ("dt=1", "dt=2"), ("dt=3", "dt=1")):
            list(Hive(world).rename_partition(desk.table, old, new))

    def come():
        for name in ("late-a", "late-b"):
            world.add_file(f"{live}/{name}.parquet", [name])
        at(desk, ["/retired/u00002/late-"], exchange_names)

    at(desk, [f"{live} ", "/retired/u00002"], come)
    result = desk.compact()
    world.files.before_step = None
    assert before <= set(world.rows_of(desk.table))
    assert {"late-a", "late-b"} <= set(world.rows_anywhere())
    hidden = {"late-a", "late-b"} - set(world.rows_of(desk.table))
    assert hidden == {"late-b"}
    assert result.code is not Exit.DONE, outcomes(result)
