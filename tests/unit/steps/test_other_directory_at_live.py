"""Somebody has another table's directory, which they may rename but not write to, at a partition's place: nothing in it changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps.directory_exchange import DirectoryExchange
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.rows import DataFile
from support.joined_desk import at, files_of
from support.late_directories import act_before_live_is_settled
from support.world import World

THEIRS = "hdfs://nn/warehouse/fin/payments"
LIKE_OURS = {f"part-0000{number}.parquet": 1000 for number in range(3)}


def a_desk():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    return Desk(world, backup_table=False)


def make_theirs(desk, files):
    """The directory of the other table, an hour old; returns its files."""
    for name, length in files.items():
        desk.world.files.writer.add(f"{THEIRS}/{name}", DataFile((f"payment {name}",)), length)
    desk.world.wait(3_600_000)
    return sorted(desk.world.files.contents(THEIRS))


def give_rights(desk, place, **rights):
    node = desk.world.files.namespace.find(place)
    node.attributes = replace(node.attributes, **rights)


def put_there(desk, theirs=THEIRS):
    desk.world.files.namespace.rename(desk.live("dt=1"), desk.live(".aside"))
    desk.world.files.namespace.rename(theirs, desk.live("dt=1"))


def put_back(desk, theirs=THEIRS):
    desk.world.files.namespace.rename(desk.live("dt=1"), theirs)
    desk.world.files.namespace.rename(desk.live(".aside"), desk.live("dt=1"))


def test_a_late_file_is_not_moved_into_one_with_the_names_and_lengths_that_a_rollback_has_brought_back():
    desk = a_desk()
    before = make_theirs(desk, LIKE_OURS)
    desk.compact()
    desk.rollback()
    (run,) = [each for each in desk.run_directories() if desk.world.files.contents(f"{desk.control.runs}/{each}/retired")]
    desk.world.add_file(f"{desk.control.runs}/{run}/retired/u00001/mine.parquet", ["mine"])
    put_there(desk)
    desk.cleanup()
    put_back(desk)
    assert sorted(desk.world.files.contents(THEIRS)) == before


def test_a_late_file_is_not_moved_into_that_of_a_table_that_the_same_command_has_joined():
    """The joined file has the same name in both, and the same length if one has copied the other's files."""
    world = World()
    for number, name in enumerate(("events", "orders")):
        world.add_table(a_table(["dt"], name=name, create_time=5 + number), {"dt=1": [1000] * 3})
    joining = {"exchange": "files", "fewest_joined": 2, "backup_table": False}
    mine, theirs = (Desk(world, f"sales.{name}", backup_table=False) for name in ("events", "orders"))
    joins = [Desk(world, f"sales.{name}", **joining) for name in ("events", "orders")]
    for desk, join in zip((mine, theirs), joins):
        desk.compact()
        desk.append("dt=1", "a", "b", "c")
        join.runs = desk.runs
    for join in joins:
        join.compact()
    assert mine.runs == theirs.runs
    joined = [{name: length for name, (length, _) in files_of(join).items() if name.startswith("b-")} for join in joins]
    assert joined[0] == joined[1] != {}
    place = theirs.live("dt=1")
    before = sorted(world.files.contents(place))
    world.add_file(f"{mine.control.runs}/{mine.runs[0]}/retired/u00001/mine.parquet", ["mine"])
    put_there(mine, place)
    joins[0].cleanup()
    put_back(mine, place)
    assert sorted(world.files.contents(place)) == before
    joins[0].cleanup()
    assert f"{mine.live('dt=1')}/mine.parquet" in world.files.contents(mine.live("dt=1"))


def test_a_file_that_came_late_to_a_rollback_is_not_moved_into_one_with_its_names_and_lengths(monkeypatch):
    desk = a_desk()
    before = make_theirs(desk, LIKE_OURS)
    desk.compact()
    live, late = desk.live("dt=1"), []

    def add_late(what):
        if not late and what.startswith(("exchange", "rename_exact")) and f"{live} " in what:
            late.append(desk.world.add_file(f"{live}/mine.parquet", ["mine"]))

    desk.world.files.before_step = add_late
    carry_over = DirectoryExchange.carry_over

    def carry_over_there(self, expected):
        put_there(desk)
        try:
            return carry_over(self, expected)
        finally:
            put_back(desk)

    monkeypatch.setattr(DirectoryExchange, "carry_over", carry_over_there)
    result = desk.rollback()
    assert len(late) == 1
    assert sorted(desk.world.files.contents(THEIRS)) == before
    assert outcomes(result) == {"dt=1": Outcome.MISPLACED.code}


def test_what_lies_in_a_directory_of_its_own_there_is_not_moved_up(monkeypatch):
    desk = a_desk()
    before = make_theirs(desk, {"part-00000.parquet": 1000, "old/part-1.parquet": 1000})
    for place in (THEIRS, f"{THEIRS}/old"):
        give_rights(desk, place, owner="fin", group="fin", mode=0o750)
    act_before_live_is_settled(desk, put_there, monkeypatch)
    desk.compact()
    put_back(desk)
    assert sorted(desk.world.files.contents(THEIRS)) == before


def test_impalas_staging_directory_is_not_moved_into_it():
    """There it would be a writer at work."""
    desk = a_desk()
    make_theirs(desk, {"part-00000.parquet": 1000})
    desk.world.files.writer.make_directory(f"{desk.live('dt=1')}/_impala_insert_staging")
    desk.world.wait(3_600_000)
    at(desk, ["rename_exact", "/retired/u00001/_impala_insert_staging"], lambda: put_there(desk))
    desk.compact()
    put_back(desk)
    assert [entry.name for entry in desk.world.files.look([THEIRS])[THEIRS].entries] == ["part-00000.parquet"]


@pytest.mark.parametrize(
    ("rights", "is_merged"),
    [
        ({"owner": "fin", "mode": 0o755}, False),
        ({"mode": 0o755}, False),
        ({"mode": 0o775}, True),
    ],
    ids=["of another owner", "to which fewer may write", "alike"],
)
def test_an_older_directory_that_comes_in_the_gap_is_merged_only_if_nobody_gets_more_rights(rights, is_merged):
    """Who may rename another table's directory may not delete its files; in a directory of their own they could."""
    desk = a_desk()
    make_theirs(desk, {"part-00000.parquet": 1000})
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o775)
    give_rights(desk, THEIRS, **rights)
    at(desk, [f"/ready/u00001 {live}"], lambda: desk.world.files.namespace.rename(THEIRS, live))
    result = desk.compact()
    assert (f"{live}/part-00000.parquet" in desk.world.files.contents(live)) is is_merged
    assert outcomes(result) == {"dt=1": "swapped" if is_merged else Outcome.MISPLACED.code}
