"""How strictly new files must keep their owner, by the site's setting."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.errors import Refused
from hivekeeper.model import Attributes
from hivekeeper.ports import NoPermission
from hivekeeper.steps import attributes
from support.fakes.files import FakeFiles

PLACE = "hdfs://nn/stage"
WANTED = Attributes("alice", "analysts", 0o750, 0o640)


class OrdinaryUser(FakeFiles):
    """A client that may not give files to another user, nor to a group that it is not in."""

    groups = ("hive",)

    def dress(self, wanted):
        if any(attributes.owner or attributes.group not in ("", *self.groups) for attributes in wanted.values()):
            raise NoPermission("Only superusers may change owner")
        super().dress(wanted)


class Analyst(OrdinaryUser):
    groups = ("analysts",)


def at_place(files):
    return files.attributes([PLACE])[PLACE]


def make(kind):
    files = kind()
    files.writer.make_directory(PLACE)
    return files


@pytest.mark.parametrize(("owner", "expected"), [("require", "alice"), ("try", "alice"), ("ignore", "hive")])
def test_a_superuser_keeps_the_owner_unless_it_is_to_be_ignored(owner, expected):
    files = make(FakeFiles)
    attributes.dress(files, {PLACE: WANTED}, owner)
    assert (at_place(files).owner, at_place(files).mode) == (expected, 0o700 if owner == "ignore" else 0o750)


@pytest.mark.parametrize("owner", ["try", "ignore"])
def test_another_user_keeps_everything_else(owner):
    files = make(OrdinaryUser)
    assert attributes.dress(files, {PLACE: replace(WANTED, group="hive")}, owner) == {}
    assert (at_place(files).owner, at_place(files).mode, at_place(files).file_mode) == ("hive", 0o750, 0o640)


@pytest.mark.parametrize("owner", ["try", "ignore"])
def test_what_the_group_may_do_is_not_given_to_another_group(owner):
    files = make(OrdinaryUser)
    files.writer.add(f"{PLACE}/copy", "rows")
    narrower = attributes.dress(files, {PLACE: WANTED}, owner)
    found = at_place(files)
    assert (found.owner, found.group, found.mode, found.file_mode) == ("hive", "hive", 0o700, 0o600)
    assert narrower == {PLACE: "the group analysts cannot be kept; the one that it has, hive, may do no more than others"}


@pytest.mark.parametrize("owner", ["try", "ignore"])
def test_what_everybody_may_do_the_group_may_do_whichever_it_is(owner):
    files = make(OrdinaryUser)
    assert attributes.dress(files, {PLACE: replace(WANTED, mode=0o755, file_mode=0o644)}, owner) == {}
    assert at_place(files).mode == 0o755


@pytest.mark.parametrize(
    ("of_directory", "of_files", "expected"), [("hive", "analysts", (0o750, 0o600)), ("analysts", "hive", (0o700, 0o640))]
)
def test_the_group_of_a_directory_and_that_of_its_files_count_each_for_itself(of_directory, of_files, expected):
    files = make(OrdinaryUser)
    files.writer.add(f"{PLACE}/copy", "rows")
    narrower = attributes.dress(files, {PLACE: replace(WANTED, group=of_directory, file_group=of_files)}, "ignore")
    assert "the group analysts cannot be kept" in narrower[PLACE]
    assert (at_place(files).mode, at_place(files).file_mode) == expected


def test_a_copy_that_has_the_wanted_group_already_keeps_its_rights_without_the_owner():
    """As the batches of a stage have, where giving the owner fails after the group was given."""
    files = make(Analyst)
    attributes.dress(files, {PLACE: WANTED}, "try")
    assert attributes.dress(files, {PLACE: WANTED}, "ignore") == {}
    assert (at_place(files).group, at_place(files).mode) == ("analysts", 0o750)


def test_the_group_is_kept_where_only_the_owner_cannot_be():
    files = make(Analyst)
    attributes.dress(files, {PLACE: WANTED}, "try")
    assert (at_place(files).owner, at_place(files).group, at_place(files).mode) == ("hive", "analysts", 0o750)


def test_an_owner_that_is_required_and_cannot_be_kept_is_an_error():
    files = make(OrdinaryUser)
    with pytest.raises(NoPermission):
        attributes.dress(files, {PLACE: WANTED}, "require")
    assert at_place(files).mode == 0o755


def test_a_rehearsal_refuses_and_says_which_settings_help():
    files = make(OrdinaryUser)
    with pytest.raises(Refused, match="Only superusers may change owner") as caught:
        attributes.rehearse(files, PLACE, [WANTED], "require")
    assert "owner: ignore" in caught.value.reason.next


def test_a_rehearsal_tries_each_owner_group_and_policy_once_whatever_else_directories_have():
    """A hundred thousand partitions may have a mode, an ACL or an extended attribute each of their own."""
    files = make(FakeFiles)
    others = [replace(WANTED, xattrs=((f"user.{number}", "x"),), acl=(f"user:u{number}:r-x",)) for number in range(9)]
    attributes.rehearse(files, PLACE, [WANTED, *others, replace(WANTED, mode=0o700)], "require")
    assert files.steps == 1
    attributes.rehearse(files, PLACE, [replace(WANTED, group="ops"), replace(WANTED, file_owner="bob"), *others], "require")
    assert files.steps == 1 + 3
    attributes.rehearse(files, PLACE, [replace(WANTED, storage_policy="COLD"), replace(WANTED, ec_policy="RS-6-3-1024k")], "require")
    assert files.steps == 1 + 3 + 2
    # Whoever may not list it cannot give the files in it their rights.
    attributes.rehearse(files, PLACE, [WANTED, replace(WANTED, mode=0o077), replace(WANTED, mode=0o070)], "require")
    assert files.steps == 1 + 3 + 2 + 2


@pytest.mark.parametrize("unlike", [{"file_owner": "bob"}, {"group": "ops"}, {"file_group": "ops"}], ids=str)
def test_a_rehearsal_finds_one_that_cannot_be_given_among_others(unlike):
    files = make(OrdinaryUser)
    wanted = [replace(WANTED, owner="", group="hive", file_owner=None), replace(WANTED, owner="", **{"group": "hive", **unlike})]
    with pytest.raises(Refused, match="Only superusers may change owner"):
        attributes.rehearse(files, PLACE, wanted, "require")


@pytest.mark.parametrize("other", ["analysts", "ops"])
def test_a_group_that_cannot_be_given_costs_the_directories_of_another_group_nothing(other):
    """Those of one batch may have several."""
    files, beside = make(Analyst), f"{PLACE}2"
    files.writer.make_directory(beside)
    narrower = attributes.dress(files, {PLACE: WANTED, beside: replace(WANTED, group=other)}, "try")
    assert (at_place(files).group, at_place(files).mode) == ("analysts", 0o750)
    assert list(narrower) == ([beside] if other == "ops" else [])
    assert files.attributes([beside])[beside].mode == (0o700 if other == "ops" else 0o750)
