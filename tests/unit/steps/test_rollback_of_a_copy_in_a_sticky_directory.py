"""A copy that could not be given away (`owner: try`) in a partition with the sticky bit: its rollback takes along what the
partition's owner has added since."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.ports import NoPermission
from support.desk import outcomes
from unit.steps.test_other_directory_at_live import give_rights
from unit.steps.test_rollback_of_closed_units import compacted


@pytest.mark.parametrize(("mode", "former"), [(0o1777, ""), (0o1770, ""), (0o1770, "etl-before")])
def test_what_came_since_comes_along(mode, former):
    """`former`: the user of the runs who could not give it away, whom one trusts still."""
    desk = compacted(mode=mode, owner="alice", group="data")
    desk.settings = replace(desk.settings, trusted_owners=(former,) if former else ())
    give_rights(desk, desk.live("dt=1"), mode=mode, owner=former or desk.world.files.user_at(desk.live("dt=1")), group="data")
    desk.append("dt=1", "new")
    (new,) = [path for path in desk.world.files.contents(desk.live("dt=1")) if path.endswith("new.parquet")]
    give_rights(desk, new, owner="alice")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    desk.world.wait(365 * 24 * 3_600_000)
    assert desk.cleanup().code == 0


def test_nothing_goes_where_rights_may_not_be_asked_for(monkeypatch):
    desk = compacted(mode=0o755)
    desk.append("dt=1", "new")
    attributes = desk.world.files.attributes

    def refuse(directories, *more):
        if "/retired/" in directories[0]:
            raise NoPermission("it is closed")
        return attributes(directories, *more)

    monkeypatch.setattr(desk.world.files, "attributes", refuse)
    assert outcomes(desk.rollback()) == {"dt=1": "misplaced"}
