"""A partition that was given to another owner and group, or in which users of an ACL share a sticky directory, and then rolled back."""

from __future__ import annotations

from support.desk import outcomes
from unit.steps.test_other_directory_at_live import give_rights
from unit.steps.test_rights_that_a_rollback_changes import run_as_superuser
from unit.steps.test_rollback_of_closed_units import compacted, place_of, rights_at

SHARED = ("group::rwx", "mask::rwx", "other::---", "user::rwx", "user:bob:rwx", "user:carol:rwx")


def test_what_was_given_to_another_owner_and_group_and_closed_stays_closed(monkeypatch):
    desk = compacted(mode=0o750, owner="alice", group="data")
    run_as_superuser(desk, monkeypatch)
    give_rights(desk, desk.live("dt=1"), mode=0o700, owner="bob", group="hr")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert rights_at(desk, desk.live("dt=1")) == ("hr", 0o700, ())


def test_a_sticky_directory_from_which_a_user_was_shut_out_stays_sticky():
    desk = compacted(mode=0o1770, acl=(*SHARED, "user:dave:r-x"))
    give_rights(desk, desk.live("dt=1"), acl=SHARED)
    desk.append("dt=1", "new")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert rights_at(desk, desk.live("dt=1"))[1] == 0o1770
    assert place_of(desk, "new") == desk.live("dt=1")
