"""Who may rename what was closed to them has it away, or another one in its place, just while its rights are read."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from hivekeeper.steps import rollback
from hivekeeper.steps.attributes import RightsOfLive
from support.desk import outcomes
from support.joined_desk import a_desk as a_desk_of_joins
from support.joined_desk import at, files_of, joined_path
from unit.steps.test_other_directory_at_live import a_desk, give_rights
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


@pytest.mark.parametrize("moves", [False, True])
def test_a_partition_that_was_closed_while_copies_were_written_is_not_opened(moves, monkeypatch):
    desk = a_desk()
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o755)
    at(desk, ["write_new", "certificates-1"], lambda: give_rights(desk, live, mode=0o700))
    compare = RightsOfLive._compare

    def compare_while_away(self, some, most):
        if not moves:
            return compare(self, some, most)
        with away(desk, live):
            return compare(self, some, most)

    monkeypatch.setattr(RightsOfLive, "_compare", compare_while_away)
    desk.compact()
    assert desk.world.files.namespace.find(live).mode == 0o700


@pytest.mark.parametrize("moves", [False, True])
def test_a_joined_file_that_was_closed_while_its_copy_was_made_is_not_opened(moves, monkeypatch):
    desk = a_desk_of_joins()
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    path, compare = joined_path(desk), rollback.why_other_rights

    def compare_while_away(run, holder):
        if not moves or holder.path != path:
            return compare(run, holder)
        with away(desk, path):
            return compare(run, holder)

    monkeypatch.setattr(rollback, "why_other_rights", compare_while_away)
    at(desk, ["write_ends", "unit=1"], lambda: give_rights_to_file(desk, path))
    desk.rollback()
    open_ones = {name for name in files_of(desk) if desk.world.files.stat(f"{desk.live('dt=1')}/{name}").mode != 0o600}
    assert open_ones == {"large.parquet"}


def give_rights_to_file(desk, path):
    give_rights(desk, path, file_mode=0o600)


@pytest.mark.parametrize("moves", [False, True])
def test_a_file_that_was_closed_while_copies_were_written_is_not_opened(moves, monkeypatch):
    desk = a_desk()
    file = sorted(desk.world.files.contents(desk.live("dt=1")))[0]
    at(desk, ["write_new", "certificates-1"], lambda: give_rights(desk, file, file_mode=0o600))
    compare = RightsOfLive._compare

    def compare_while_away(self, some, most):
        if not moves:
            return compare(self, some, most)
        with away(desk, file):
            return compare(self, some, most)

    monkeypatch.setattr(RightsOfLive, "_compare", compare_while_away)
    assert outcomes(desk.compact()) == {"dt=1": "given-up"}


@contextmanager
def exchanged(desk, place):
    """An open directory of the same owner, such as another partition, is in its place."""
    space, decoy = desk.world.files.namespace, desk.live(".decoy")
    node = space.find(place)
    space.make_directory(decoy)
    give_rights(desk, decoy, owner=node.attributes.owner, group=node.attributes.group, mode=0o755)
    space.rename(place, desk.live(".aside"))
    space.rename(decoy, place)
    yield
    space.rename(place, decoy)
    space.rename(desk.live(".aside"), place)


def test_a_partition_that_was_closed_is_not_opened_by_what_is_in_its_place_meanwhile(monkeypatch):
    desk = a_desk()
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o755)
    at(desk, ["write_new", "certificates-1"], lambda: give_rights(desk, live, mode=0o700))
    compare = RightsOfLive._compare

    def compare_meanwhile(self, some, most):
        with exchanged(desk, live):
            return compare(self, some, most)

    monkeypatch.setattr(RightsOfLive, "_compare", compare_meanwhile)
    desk.compact()
    assert desk.world.files.namespace.find(live).mode == 0o700


def test_a_backup_is_closed_as_live_is_whatever_is_in_its_place_meanwhile(monkeypatch):
    desk = compacted(mode=0o755, group="data")
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o700)
    ask = rollback.Closed._ask_from

    def ask_meanwhile(self, unit):
        with exchanged(desk, live):
            ask(self, unit)

    monkeypatch.setattr(rollback.Closed, "_ask_from", ask_meanwhile)
    desk.rollback()
    assert desk.world.files.namespace.find(live).mode == 0o700
