"""Who may rename what was closed to them has it away, or another one in its place, just while its rights are read."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from hivekeeper.reasons import Code
from hivekeeper.steps import rollback
from hivekeeper.steps.attributes import RightsOfLive
from support.desk import outcomes
from support.joined_desk import a_desk as a_desk_of_joins
from support.joined_desk import at, files_of, joined_path
from unit.steps.test_other_directory_at_live import a_desk, give_rights
from unit.steps.test_rights_that_a_rollback_changes import run_as_superuser
from unit.steps.test_rollback_of_closed_units import compacted, forbid_to_guard, place_of


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
def exchanged(desk, place, **rights):
    """An open directory of the same owner, such as another partition, is in its place, or one with these rights."""
    space, decoy = desk.world.files.namespace, desk.live(".decoy")
    known = space.find(place).attributes
    space.make_directory(decoy)
    give_rights(desk, decoy, **{"owner": known.owner, "group": known.group, "mode": 0o755, **rights})
    space.rename(place, desk.live(".aside"))
    space.rename(decoy, place)
    yield
    space.rename(place, decoy)
    space.rename(desk.live(".aside"), place)
    space.delete(decoy)


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


@pytest.mark.parametrize("act", [away, exchanged])
def test_where_no_directory_is_found_by_its_id_a_rollback_waits_until_the_right_one_is_there(act, monkeypatch):
    """As behind a router, or of a partition outside the directory of its table."""
    desk = compacted(mode=0o755, group="data")
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o700)
    attributes = desk.world.files.attributes

    def read(directories, *_ids):
        with act(desk, live):
            return attributes(directories)

    ask = rollback.Closed._ask_from

    def ask_meanwhile(self, unit):
        with monkeypatch.context() as patch:
            patch.setattr(desk.world.files, "attributes", read)
            ask(self, unit)

    monkeypatch.setattr(rollback.Closed, "_ask_from", ask_meanwhile)
    assert outcomes(desk.rollback()) == {"dt=1": "given-up"}
    assert desk.world.files.namespace.find(live).mode == 0o700
    monkeypatch.undo()
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert desk.world.files.namespace.find(live).mode == 0o700


def test_a_file_that_was_closed_is_not_opened_by_one_that_is_in_its_place_meanwhile(monkeypatch):
    desk = a_desk()
    file = sorted(desk.world.files.contents(desk.live("dt=1")))[0]
    at(desk, ["write_new", "certificates-1"], lambda: give_rights(desk, file, file_mode=0o600))
    compare = RightsOfLive._compare

    def compare_meanwhile(self, some, most):
        with file_exchanged(desk, file):
            return compare(self, some, most)

    monkeypatch.setattr(RightsOfLive, "_compare", compare_meanwhile)
    assert outcomes(desk.compact()) == {"dt=1": "given-up"}


@contextmanager
def file_exchanged(desk, path):
    """An open file of the same owner is in its place."""
    space, decoy = desk.world.files.namespace, desk.live(".decoy")
    node = space.find(path)
    space.create(decoy, node.content, node.length)
    give_rights(desk, decoy, owner=node.attributes.owner, group=node.attributes.group, file_mode=0o644)
    space.rename(path, desk.live(".aside"))
    space.rename(decoy, path)
    yield
    space.rename(path, decoy)
    space.rename(desk.live(".aside"), path)
    space.delete(decoy)


def test_a_joined_file_that_was_closed_is_not_opened_by_one_that_is_in_its_place_meanwhile(monkeypatch):
    desk = a_desk_of_joins()
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    path, compare = joined_path(desk), rollback.why_other_rights

    def compare_meanwhile(run, holder):
        if holder.path != path:
            return compare(run, holder)
        with file_exchanged(desk, path):
            return compare(run, holder)

    monkeypatch.setattr(rollback, "why_other_rights", compare_meanwhile)
    at(desk, ["write_ends", "unit=1"], lambda: give_rights_to_file(desk, path))
    assert outcomes(desk.rollback())["dt=1"] == "given-up"


def compares_late(desk, directories):
    return len(directories) == 2 and directories[1] == desk.live("dt=1") and directories[0].startswith(desk.control.top)


def act_while_late_are_compared(desk, act, monkeypatch):
    attributes = desk.world.files.attributes

    def read(directories, *ids):
        if compares_late(desk, directories):
            with act():
                return attributes(directories, *ids)
        return attributes(directories, *ids)

    monkeypatch.setattr(desk.world.files, "attributes", read)


def test_late_files_go_to_the_directory_whose_rights_were_compared(monkeypatch):
    """The old one could not be closed, and one that is as closed as that which left is in its place for that call."""
    desk = compacted(mode=0o755)
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o700)
    desk.append("dt=1", "secret")
    forbid_to_guard(desk, monkeypatch)
    act_while_late_are_compared(desk, lambda: exchanged(desk, live, mode=0o700), monkeypatch)
    assert outcomes(desk.rollback()) == {"dt=1": "misplaced"}
    assert desk.world.files.namespace.find(place_of(desk, "secret")).mode == 0o700


@pytest.mark.parametrize("act", [away, exchanged])
def test_nor_does_a_later_cleanup_bring_them_elsewhere(act, monkeypatch):
    desk = compacted(mode=0o755, owner="alice", group="data")
    run_as_superuser(desk, monkeypatch)
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o700, owner="bob", group="data")
    desk.append("dt=1", "secret")
    assert outcomes(desk.rollback()) == {"dt=1": "misplaced"}
    desk.world.wait(365 * 24 * 3_600_000)
    rights = {} if act is away else {"owner": "bob", "mode": 0o700}
    act_while_late_are_compared(desk, lambda: act(desk, live, **rights), monkeypatch)
    (backup,) = desk.cleanup().tables[0].backups
    assert [why.code for _, why in backup.kept_units] == [Code.LATE_IN_BACKUP]
    assert desk.world.files.namespace.find(place_of(desk, "secret")).attributes.owner == "bob"
