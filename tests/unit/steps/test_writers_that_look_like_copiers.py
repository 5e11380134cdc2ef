"""Writers in the gap of a run itself, which has lasted a moment: what they bring is no copy that somebody has brought back, although names
and lengths are those of the unit's files; and who drops a partition just before it leaves has met no outage.
"""

from __future__ import annotations

from hivekeeper.codes import Exit
from hivekeeper.ports import NoPermission
from support.desk import desk_by, outcomes
from support.fakes.rows import DataFile
from support.joined_desk import at, drop_partition
from support.late_directories import leaves


def add(desk, path, row="new"):
    desk.world.files.writer.add(f"{desk.live('dt=1')}/{path}", DataFile((row,)), 1000)


def when_put_back(desk, act):
    """A writer begins just before live leaves, so that it is put back."""

    def begin():
        add(desk, "_temporary/0/task1/part-1.parquet")
        at(desk, [f"/retired/u00001 {desk.live('dt=1')}"], act)

    at(desk, leaves(desk), begin)


def test_a_committer_finds_all_its_tasks_in_a_directory_that_it_had_before_and_made_again_in_the_gap():
    desk = desk_by(["dt"])
    when_put_back(desk, lambda: add(desk, "_temporary/0/task2/part-2.parquet"))
    assert outcomes(desk.compact())["dt=1"] == "put-back"
    there = desk.world.files.contents(f"{desk.live('dt=1')}/_temporary")
    assert {path.rpartition("/")[2] for path in there} == {"part-1.parquet", "part-2.parquet"}


def test_a_row_that_was_inserted_in_the_gap_is_read():
    """Hive names the first file of each statement alike, and one row of numbers takes the same bytes as another."""
    desk = desk_by(["dt"])
    first = desk.world.files.contents(desk.live("dt=1"))
    at(desk, [f"/ready/u00001 {desk.live('dt=1')}"], lambda: add(desk, min(first).rpartition("/")[2]))
    assert desk.compact().code is Exit.DONE
    assert desk.world.rows_of(desk.table)["new"] == 1


def test_what_left_comes_back_although_it_may_not_be_listed_any_more(monkeypatch):
    desk, closed = desk_by(["dt"]), []
    look = desk.world.files.look

    def refuse(places, *most):
        if closed and any("/retired/u00001" in place for place in places):
            raise NoPermission("it may not be listed")
        return look(places, *most)

    def come_and_close():
        closed.append(True)
        add(desk, "new.parquet")

    monkeypatch.setattr(desk.world.files, "look", refuse)
    when_put_back(desk, come_and_close)
    assert outcomes(desk.compact())["dt=1"] == "put-back"


def test_a_partition_that_is_dropped_just_before_it_leaves_was_not_away():
    desk = desk_by(["dt"])

    def drop():
        drop_partition(desk)
        desk.world.files.writer.delete(desk.live("dt=1"))

    at(desk, leaves(desk), drop)
    result = desk.compact()
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.PARTIAL, "dropped-meanwhile")
