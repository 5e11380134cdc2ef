"""The former owner of a partition moves its directory away just while it is compared who may reach late files there and where they are."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from unit.steps.test_other_directory_at_live import give_rights
from unit.steps.test_rights_that_a_rollback_changes import run_as_superuser
from unit.steps.test_rollback_of_closed_units import compacted, place_of


@contextmanager
def away(desk, place):
    space = desk.world.files.namespace
    is_there = space.find(place) is not None
    if is_there:
        space.rename(place, desk.live(".aside"))
    yield
    if is_there:
        space.rename(desk.live(".aside"), place)


@pytest.mark.parametrize("moves", [False, True])
def test_rows_of_a_new_owner_stay_where_they_are(moves, monkeypatch):
    desk = compacted(mode=0o755, owner="alice", group="data")
    run_as_superuser(desk, monkeypatch)
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o700, owner="bob", group="data")
    desk.append("dt=1", "secret")
    attributes = desk.world.files.attributes

    def read(directories, *ids):
        if moves and directories[1:] == [live] and "/retired/" in directories[0]:
            with away(desk, live):
                return attributes(directories, *ids)
        return attributes(directories, *ids)

    monkeypatch.setattr(desk.world.files, "attributes", read)
    desk.rollback()
    assert desk.world.files.namespace.find(place_of(desk, "secret")).attributes.owner == "bob"


@pytest.mark.parametrize("moves", [False, True])
def test_a_backup_is_closed_as_live_is(moves, monkeypatch):
    desk = compacted(mode=0o755, group="data")
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o700)
    attributes = desk.world.files.attributes

    def read(directories, *ids):
        if moves and directories[0] == live and "/retired/" in directories[-1]:
            with away(desk, live):
                return attributes(directories, *ids)
        return attributes(directories, *ids)

    monkeypatch.setattr(desk.world.files, "attributes", read)
    desk.rollback()
    assert desk.world.files.namespace.find(live).mode == 0o700
