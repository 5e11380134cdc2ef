"""A directory inside a unit that is another partition's own, or holds one, is not a late committer's: nothing is moved up out of it."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import MetastoreUnavailable
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps import places
from support.builders import a_partition
from support.desk import Desk, desk_by
from support.fakes.rows import DataFile

COMMANDS = {
    "compact-swap": Desk.compact,
    "recover": Desk.recover,
    "rollback": Desk.rollback,
    "selected": lambda desk: desk.compact(where="dt = '1'"),
}


FILE = "late.parquet"


@pytest.fixture
def desk():
    """With a directory elsewhere that is older than all runs."""
    desk = desk_by(["dt"])
    desk.world.files.writer.add(f"hdfs://nn/loads/extra/{FILE}", DataFile(("extra",)))
    return desk


def move_inside(desk, as_partition):
    place = f"{desk.live('dt=1')}/extra"
    desk.world.files.writer.rename_into("hdfs://nn/loads/extra", place)
    if as_partition:
        desk.world.catalog.add_partition(desk.table, a_partition("dt=9", place))
    return f"{place}/{FILE}"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_files_of_a_partition_that_lies_in_another_one_stay_its_own(desk, command):
    """The directory is moved there after the other one was compacted."""
    assert desk.compact().code is Exit.DONE
    file = move_inside(desk, as_partition=True)
    COMMANDS[command](desk)
    assert file in desk.world.picture()


@pytest.mark.parametrize("answers", [True, False])
def test_a_recovery_leaves_those_of_a_partition_that_was_added_in_the_outage(desk, answers, monkeypatch):
    """The other one was in its gap. If the metastore does not tell all partitions, nothing is moved up, and that is told."""
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    file = move_inside(desk, as_partition=True)

    def fail(*_args):
        raise MetastoreUnavailable("too large")

    if not answers:
        monkeypatch.setattr(desk.world.metastore, "partitions", fail)
    result = desk.recover()
    assert file in desk.world.picture()
    ((_, counted),) = result.tables[0].recovered
    assert (result.code, counted) == (Exit.INVESTIGATE, {Outcome.MISPLACED: 1, Outcome.NOT_SWAPPED: 1})


@pytest.mark.parametrize("is_slow", [True, False])
def test_a_partition_that_comes_after_all_were_read_keeps_its_files(desk, is_slow, monkeypatch):
    """A committer met the unit before in its gap, so that they were read for that one."""
    live, writer, clock = desk.live, desk.world.files.writer, desk.world.clock
    find_alone = places.find_alone

    def find(cluster, table):
        clock.elapsed_ms += 1000 * is_slow
        return find_alone(cluster, table)

    def commit(unit):
        writer.make_directory(live(unit))
        writer.add(f"{live(unit)}/attempt/late.parquet", DataFile(("late",)))

    def move_in():
        clock.elapsed_ms += 3000
        commit("dt=2")
        desk.world.catalog.add_partition(desk.table, a_partition("dt=9", f"{live('dt=2')}/attempt"))

    def act(what):
        for number, do in ((1, lambda: commit("dt=1")), (2, move_in)):
            if "rename_exact" in what and f"/ready/u0000{number} " in what and number not in done:
                done.append(number)
                do()

    done = []
    monkeypatch.setattr(places, "find_alone", find)
    desk.world.files.before_step = act
    desk.compact()
    assert done == [1, 2]
    assert f"{live('dt=1')}/late.parquet" in desk.world.picture()
    assert f"{live('dt=2')}/attempt/late.parquet" in desk.world.picture()
