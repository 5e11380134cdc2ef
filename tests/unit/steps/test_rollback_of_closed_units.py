"""A partition is closed, or gets an ACL, after a run that is then rolled back: the rows come back, and not the rights from before."""

from __future__ import annotations

import pytest

from hivekeeper.ports import NoPermission
from support.desk import outcomes
from unit.steps.test_other_directory_at_live import a_desk, give_rights

KEEPS_BOB_OUT = ("group::r-x", "mask::r-x", "other::r-x", "user::rwx", "user:bob:---")


def rights_at(desk, place):
    known = desk.world.files.namespace.find(place).attributes
    return known.group, known.mode, known.acl


def place_of(desk, name):
    return next(path for path in desk.world.files.contents(desk.live()) if path.endswith(f"/{name}.parquet")).rpartition("/")[0]


def compacted(**rights):
    desk = a_desk()
    give_rights(desk, desk.live("dt=1"), **rights)
    desk.compact()
    return desk


def forbid_to_guard(desk, monkeypatch):
    guard = desk.world.files.guard

    def refuse(wanted):
        if any("/restoring/" in path for path in wanted):
            raise NoPermission("its owner is somebody else")
        guard(wanted)

    monkeypatch.setattr(desk.world.files, "guard", refuse)


@pytest.mark.parametrize("rights", [{"mode": 0o700}, {"mode": 0o755, "acl": KEEPS_BOB_OUT}, {"mode": 0o750, "group": "hr"}])
def test_what_was_closed_since_stays_closed(rights):
    desk = compacted(mode=0o755, group="data")
    give_rights(desk, desk.live("dt=1"), **rights)
    wanted = rights_at(desk, desk.live("dt=1"))
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert rights_at(desk, desk.live("dt=1")) == wanted


def test_modes_of_files_stay():
    desk = a_desk()
    (file, *_) = desk.world.files.contents(desk.live("dt=1"))
    desk.compact()
    give_rights(desk, desk.live("dt=1"), mode=0o700)
    desk.rollback()
    assert desk.world.files.stat(file).mode == 0o644


@pytest.mark.parametrize("between_ms", [0, 20_000])
def test_of_two_runs_that_are_rolled_back_both_stay_closed(between_ms):
    desk = compacted(mode=0o755)
    first = desk.runs[-1]
    desk.append("dt=1", "a", "b")
    desk.compact()
    give_rights(desk, desk.live("dt=1"), mode=0o700)
    desk.append("dt=1", "secret")

    def wait(what):
        # One answer about rights serves for ten seconds.
        if what.startswith("exchange") or "/retired/u00001" in what:
            desk.world.clock.elapsed_ms += between_ms

    desk.world.files.before_step = wait
    began_ms = desk.world.clock.elapsed_ms
    assert outcomes(desk.rollback(first))["dt=1"] == "rolled-back"
    assert desk.world.clock.elapsed_ms - began_ms >= 2 * between_ms
    assert rights_at(desk, place_of(desk, "secret"))[1] == 0o700
    assert rights_at(desk, desk.live("dt=1"))[1] == 0o700


def test_of_two_runs_that_are_rolled_back_the_older_one_is_as_closed_as_the_newer_one_that_came_back_before():
    desk = compacted(mode=0o755)
    first = desk.runs[-1]
    give_rights(desk, desk.live("dt=1"), mode=0o700)
    desk.append("dt=1", "a", "b")
    desk.compact()
    give_rights(desk, desk.live("dt=1"), mode=0o755)
    assert outcomes(desk.rollback(first))["dt=1"] == "rolled-back"
    assert rights_at(desk, desk.live("dt=1"))[1] == 0o700
    assert place_of(desk, "a") == desk.live("dt=1")


@pytest.mark.parametrize("mode", [0o750, 0o755, 0o777])
def test_what_was_opened_since_comes_back_with_its_own_rights(mode):
    desk = compacted(mode=0o700)
    give_rights(desk, desk.live("dt=1"), mode=mode)
    desk.append("dt=1", "new")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert rights_at(desk, desk.live("dt=1"))[1] == 0o700


def test_a_user_who_was_added_since_closes_nothing():
    desk = compacted(mode=0o750)
    acl = ("group::r-x", "mask::r-x", "other::---", "user::rwx", "user:bob:r-x")
    give_rights(desk, desk.live("dt=1"), acl=acl)
    desk.append("dt=1", "new")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert rights_at(desk, desk.live("dt=1"))[1:] == (0o750, ())
    assert place_of(desk, "new") == desk.live("dt=1")


def test_a_copy_that_could_be_given_neither_owner_nor_group_is_not_taken_for_closed():
    desk = compacted(mode=0o750, owner="alice", group="data")
    give_rights(desk, desk.live("dt=1"), mode=0o700, owner=desk.world.files.user, group="etl")
    desk.append("dt=1", "new")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert rights_at(desk, desk.live("dt=1"))[:2] == ("data", 0o750)
    assert place_of(desk, "new") == desk.live("dt=1")


def test_what_came_since_stays_in_the_backup_where_the_directory_may_not_be_closed(monkeypatch):
    desk = compacted(mode=0o755)
    give_rights(desk, desk.live("dt=1"), mode=0o700)
    desk.append("dt=1", "secret")
    forbid_to_guard(desk, monkeypatch)
    result = desk.rollback()
    assert outcomes(result) == {"dt=1": "misplaced"}
    assert "secret.parquet came late" in result.tables[0].units[0].reason
    assert rights_at(desk, place_of(desk, "secret"))[1] == 0o700
    assert rights_at(desk, desk.live("dt=1"))[1] == 0o755


def test_without_such_files_it_comes_back_as_it_was_where_it_may_not_be_closed(monkeypatch):
    desk = compacted(mode=0o755)
    give_rights(desk, desk.live("dt=1"), mode=0o700)
    forbid_to_guard(desk, monkeypatch)
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}


def test_where_the_group_may_not_be_given_it_is_for_nobody_else(monkeypatch):
    desk = compacted(mode=0o755, group="data")
    give_rights(desk, desk.live("dt=1"), mode=0o750, group="hr")
    guard = desk.world.files.guard

    def refuse_group(wanted):
        if any(one.group == "hr" for one in wanted.values()):
            raise NoPermission("not a member")
        guard(wanted)

    monkeypatch.setattr(desk.world.files, "guard", refuse_group)
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert rights_at(desk, desk.live("dt=1"))[:2] == ("data", 0o700)


def test_a_rollback_that_is_killed_in_its_gap_stays_closed():
    desk = compacted(mode=0o755)
    give_rights(desk, desk.live("dt=1"), mode=0o700)
    desk.append("dt=1", "secret")
    desk.kill_before([f"/restoring/u00001 {desk.live('dt=1')}"], desk.rollback)
    desk.recover()
    assert place_of(desk, "secret") == desk.live("dt=1")
    assert rights_at(desk, desk.live("dt=1"))[1] == 0o700


def test_what_comes_to_a_unit_that_is_closed_just_before_a_swap_stays_in_its_backup():
    """After rights were looked at, which serves for ten seconds."""
    desk = a_desk()
    give_rights(desk, desk.live("dt=1"), mode=0o755)
    live, files = desk.live("dt=1"), desk.world.files

    def close(what):
        if what.startswith("exchange") or ("rename_exact" in what and f"{live} " in what):
            files.before_step = None
            give_rights(desk, live, mode=0o700)
            desk.world.add_file(f"{live}/secret.parquet", ["secret"])

    files.before_step = close
    assert outcomes(desk.compact()) == {"dt=1": "misplaced"}
    assert rights_at(desk, place_of(desk, "secret"))[1] == 0o700


def test_many_units_cost_one_look_at_rights():
    desk = a_desk()
    for number in range(2, 20):
        desk.world.make_partition(desk.table, f"dt={number}")
        desk.append(f"dt={number}", "a", "b", "c")
    desk.compact()
    asked = []
    attributes = desk.world.files.attributes
    desk.world.files.attributes = lambda *given: asked.append(given) or attributes(*given)
    desk.rollback()
    assert sum(any("/retired/" in path for path in paths) for paths, *_ in asked) == 1


def test_one_unit_whose_rights_may_not_be_told_does_not_keep_others_open():
    desk = a_desk()
    desk.world.make_partition(desk.table, "dt=2")
    desk.append("dt=2", "a", "b", "c")
    for unit in ("dt=1", "dt=2"):
        give_rights(desk, desk.live(unit), mode=0o755)
    desk.compact()
    give_rights(desk, desk.live("dt=2"), mode=0o700)
    attributes = desk.world.files.attributes

    def deny(directories, *ids):
        if any(path == desk.live("dt=1") for path in directories):
            raise NoPermission("closed")
        return attributes(directories, *ids)

    desk.world.files.attributes = deny
    desk.rollback()
    assert rights_at(desk, desk.live("dt=2"))[1] == 0o700


def test_what_is_closed_while_other_units_are_rolled_back_stays_closed():
    """One answer about rights serves for ten seconds."""
    desk = a_desk()
    desk.world.make_partition(desk.table, "dt=2")
    desk.append("dt=2", "a", "b", "c")
    give_rights(desk, desk.live("dt=2"), mode=0o755)
    desk.compact()

    def close(what):
        if what.endswith(f"/restoring/u00001 {desk.live('dt=1')}") or (what.startswith("exchange") and "/u00001" in what):
            desk.world.files.before_step = None
            desk.world.clock.elapsed_ms += 20_000
            give_rights(desk, desk.live("dt=2"), mode=0o700)

    desk.world.files.before_step = close
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}
    assert desk.world.files.before_step is None
    assert rights_at(desk, desk.live("dt=2"))[1] == 0o700
