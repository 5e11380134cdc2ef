"""A backup must not say that it has recorded what it could not see."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.report import screen
from support.builders import a_table
from support.desk import Desk, outcomes
from support.world import World


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    return Desk(world)


def test_a_partition_that_may_not_be_read_is_not_said_to_be_recorded(desk):
    desk.world.files.namespace.unreadable.add(desk.live("dt=2"))
    result = desk.backup()
    assert outcomes(result).get("dt=2") != "recorded", screen.render(result)
    assert result.code is not Exit.DONE


def test_nor_verified_when_all_its_files_are_others_since(desk):
    desk.world.files.namespace.unreadable.add(desk.live("dt=2"))
    desk.backup()
    desk.world.files.namespace.unreadable.clear()
    desk.world.overwrite(desk.live("dt=2"), "theirs.parquet", ["other", "rows"], whole=False)
    result = desk.verify(against=desk.runs[0])
    assert outcomes(result).get("dt=2") != "verified", screen.render(result)


@pytest.mark.parametrize("inside", ["HIVE_UNION_SUBDIR_1", "delta_0000001_0000001", "-ext-10000", "+tmp"])
def test_nor_where_rows_lie_in_directories_of_a_partition_that_it_does_not_look_into(desk, inside):
    """Hive's Tez writes UNION ALL so, and Hive, Impala and Spark may each read such rows: also those in directories of other writers that
    begin with neither a dot nor an underscore.
    """
    path = f"{desk.live('dt=2')}/{inside}/000000_0"
    desk.world.add_file(path, ["a", "b", "c"])
    recorded = desk.backup()
    desk.world.files.writer.delete(path)
    result = desk.verify(against=desk.runs[0])
    is_told = outcomes(recorded).get("dt=2") != "recorded" or outcomes(result).get("dt=2") != "verified"
    assert is_told, f"{screen.render(recorded)}\n{screen.render(result)}"
