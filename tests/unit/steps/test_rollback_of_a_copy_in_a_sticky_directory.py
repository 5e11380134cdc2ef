"""A copy that could not be given away (`owner: try`) in a partition with the sticky bit: its rollback takes along what the
partition's owner has added since."""

from __future__ import annotations

from support.desk import outcomes
from unit.steps.test_other_directory_at_live import give_rights
from unit.steps.test_rollback_of_closed_units import compacted


def test_what_came_since_comes_along():
    desk = compacted(mode=0o1777, owner="alice", group="data")
    give_rights(desk, desk.live("dt=1"), mode=0o1777, owner=desk.world.files.user_at(desk.live("dt=1")), group="data")
    desk.append("dt=1", "new")
    (new,) = [path for path in desk.world.files.contents(desk.live("dt=1")) if path.endswith("new.parquet")]
    give_rights(desk, new, owner="alice")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    desk.world.wait(365 * 24 * 3_600_000)
    assert desk.cleanup().code == 0
