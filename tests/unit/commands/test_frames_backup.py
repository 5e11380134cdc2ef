"""As test_backup_of_closed.test_nor_where_rows_lie_in_directories…: names that readers do not hide, but that a writer's mark may have."""

from __future__ import annotations

import pytest

from hivekeeper.report import screen
from support.builders import a_table
from support.desk import Desk, outcomes
from support.world import World


@pytest.mark.parametrize("inside", ["-ext-10000", "+tmp"])
def test_rows_in_a_directory_that_no_reader_hides_are_not_said_to_be_recorded(inside):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk = Desk(world)
    path = f"{desk.live('dt=2')}/{inside}/000000_0"
    world.add_file(path, ["a", "b", "c"])
    recorded = desk.backup()
    world.files.writer.delete(path)
    result = desk.verify(against=desk.runs[0])
    is_told = outcomes(recorded).get("dt=2") != "recorded" or outcomes(result).get("dt=2") != "verified"
    assert is_told, f"{screen.render(recorded)}\n{screen.render(result)}"
