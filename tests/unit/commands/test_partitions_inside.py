"""A directory inside a unit that is another partition's own, or holds one, is not a late committer's: nothing is moved up out of it."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import MetastoreUnavailable
from hivekeeper.runlog.outcomes import Outcome
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


@pytest.mark.parametrize("command", ["recover", "rollback"])
def test_without_such_a_partition_it_may_be_a_late_committers(desk, command):
    desk.compact()
    move_inside(desk, as_partition=False)
    COMMANDS[command](desk)
    assert f"{desk.live('dt=1')}/{FILE}" in desk.world.picture()


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
