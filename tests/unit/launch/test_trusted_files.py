"""Whose files may decide what runs: real links and modes; other users' ownership is simulated in the stat results."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import Dict, Optional, Tuple

import pytest

from hivekeeper.config.sources import RELEASE_OWNERS
from hivekeeper.errors import UsageError
from hivekeeper.launch import trusted_files
from hivekeeper.launch.trusted_files import Trust, find_danger, find_owners, is_private_group, require_sole_use, require_trusted
from hivekeeper.reasons import Code

ME, MALLORY, NODE_MANAGER = os.geteuid(), 4242, 4343
PRIVATE, TEAM = 600, 700


class Machine:
    """The real files, with another owner for some names."""

    def __init__(self, **owners: Tuple[int, int]) -> None:
        self.owners: Dict[str, Tuple[int, int]] = owners
        self.acls: Tuple[str, ...] = ()
        self.trust = Trust(frozenset({0, ME}), lambda gid, uid: gid == PRIVATE and uid == ME)

    def look(self, path: str) -> os.stat_result:
        found = os.lstat(path)
        uid, gid = self.owners.get(os.path.basename(path), (ME, PRIVATE))
        return os.stat_result((found.st_mode, *found[1:4], uid, gid, *found[6:10]))

    def danger(self, path: object, judge: str = "judge") -> Optional[str]:
        found = find_danger(str(path), getattr(self.trust, judge), self.look, lambda at: os.path.basename(at) in self.acls)
        return None if found is None else found.what


@pytest.fixture
def place(tmp_path):
    """home/app/site.yaml, writable only by its owner."""
    app = tmp_path / "home" / "app"
    app.mkdir(parents=True)
    (app / "site.yaml").write_text("")
    for path in (app / "site.yaml", app, app.parent, tmp_path):
        path.chmod(0o700)
    return app / "site.yaml"


def test_ones_own_files_and_those_of_root_are_trusted(place):
    assert Machine().danger(place) is None
    assert Machine(app=(0, 0), home=(0, 0)).danger(place) is None


@pytest.mark.parametrize("part", ["site.yaml", "app", "home"])
def test_a_file_or_a_directory_above_it_of_somebody_else_is_not(place, part):
    assert Machine(**{part: (MALLORY, TEAM)}).danger(place) == f"{find(place, part)} belongs to {MALLORY}"


@pytest.mark.parametrize("part", ["site.yaml", "app", "home"])
def test_what_others_may_write_is_not(place, part):
    find(place, part).chmod(0o702)
    assert Machine().danger(place) == f"everybody may write to {find(place, part)} (mode 0702)"


@pytest.mark.parametrize("part", ["site.yaml", "app", "home"])
@pytest.mark.parametrize(
    ("group", "acls", "fits"), [(PRIVATE, False, True), (PRIVATE, True, False), (TEAM, False, False)], ids=["private", "acl", "team"]
)
def test_a_group_may_write_only_where_it_is_its_owners_private_one(place, part, group, acls, fits):
    find(place, part).chmod(0o770)
    machine = Machine(**{part: (ME, group)})
    machine.acls = (part,) if acls else ()
    assert (machine.danger(place) is None) == fits


def test_a_sticky_directory_is_passed_on_the_way_but_holds_no_trusted_file(place):
    """As in /tmp, where nobody can rename another user's files, but anyone can add a site.yaml."""
    place.parent.parent.chmod(0o1777)
    assert Machine().danger(place) is None
    assert Machine(app=(MALLORY, TEAM)).danger(place) == f"{place.parent} belongs to {MALLORY}"
    place.parent.parent.chmod(0o700)
    place.parent.chmod(0o1777)
    assert Machine().danger(place) == f"everybody may put files into {place.parent} (mode 1777)"


@pytest.mark.parametrize("part", ["app", "home"])
def test_files_that_are_written_can_be_exchanged_by_whoever_owns_or_may_write_a_directory_around_them(place, part):
    at = find(place, part)
    assert Machine().danger(place, "judge_exchange") is None
    assert Machine(**{part: (MALLORY, TEAM)}).danger(place, "judge_exchange") == f"its owner {MALLORY} may exchange files in {at}"
    at.chmod(0o707)
    assert Machine().danger(place, "judge_exchange") == f"everyone may exchange files in {at}"
    at.chmod(0o1777)
    assert Machine().danger(place, "judge_exchange") is None
    assert Machine(**{part: (MALLORY, TEAM)}).danger(place, "judge_exchange") == f"its owner {MALLORY} may exchange files in {at}"


@pytest.mark.parametrize(("group", "acls"), [(PRIVATE, ()), (PRIVATE, ("app", "home")), (TEAM, ())], ids=["private", "acl", "team"])
def test_a_group_may_not_exchange_files_that_are_written_but_what_it_may_above_is_left_to_the_administrator(place, group, acls):
    machine = Machine(app=(ME, group), home=(ME, group))
    machine.acls = acls
    place.parent.parent.chmod(0o770)
    assert machine.danger(place, "judge_exchange") is None
    place.parent.chmod(0o770)
    assert (machine.danger(place, "judge_exchange") is None) == (group == PRIVATE and not acls)
    place.parent.chmod(0o1770)
    assert machine.danger(place, "judge_exchange") is None


@pytest.mark.parametrize(("mode", "private_of"), [(0o1770, None), (0o1750, None), (0o1770, "owner"), (0o1770, "me")])
def test_a_group_may_take_a_name_where_it_may_write_unless_it_is_private(tmp_path, monkeypatch, mode, private_of):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    found = os.stat(shared)
    monkeypatch.setattr(os, "geteuid", lambda: MALLORY)
    private = {None: [], "owner": [found.st_uid], "me": [MALLORY]}[private_of]
    monkeypatch.setattr(trusted_files, "is_private_group", lambda gid, uid: gid == found.st_gid and uid in private)
    others = trusted_files.name_group_of_others(str(shared))
    assert others.startswith("the group ") == bool(mode & 0o020 and not private_of)
    monkeypatch.setattr(trusted_files, "_has_acl", lambda _: True)
    assert trusted_files.name_group_of_others(str(shared)) == ("users of its ACL" if mode & 0o020 else "")


def test_a_file_that_is_written_takes_the_place_of_a_link_and_is_looked_at_where_it_lies(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    theirs.chmod(0o777)
    (tmp_path / "out.json").symlink_to(theirs / "out.json")
    (tmp_path / "link").symlink_to(theirs)
    require_sole_use(str(tmp_path / "out.json"), {})
    with pytest.raises(UsageError, match=f"{tmp_path}/link/out.json cannot be written: everyone may exchange files in {theirs}"):
        require_sole_use(str(tmp_path / "link" / "out.json"), {})


def test_each_link_on_the_way_is_looked_at_with_the_directory_that_it_lies_in(place, tmp_path):
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "second").symlink_to("../home/app")
    (tmp_path / "first").symlink_to(other / "second")
    linked = tmp_path / "first" / "site.yaml"
    assert linked.samefile(place)
    assert Machine().danger(linked) is None
    assert Machine(second=(MALLORY, TEAM)).danger(linked) == f"{other / 'second'} belongs to {MALLORY}"
    assert Machine(app=(MALLORY, TEAM)).danger(linked) == f"{place.parent} belongs to {MALLORY}"
    other.chmod(0o1777)
    assert Machine().danger(linked) is None
    other.chmod(0o777)
    assert Machine().danger(linked) == f"everybody may write to {other} (mode 0777)"


@pytest.mark.parametrize("by", ["path", "link"])
def test_what_is_above_a_link_is_where_the_system_says_not_where_the_path_does(place, tmp_path, by):
    """`link/..` is the directory above the one that the link leads to."""
    shared = tmp_path / "shared"
    (shared / "deep").mkdir(parents=True)
    (shared / "site.yaml").write_text("")
    (place.parent / "link").symlink_to(shared / "deep")
    (tmp_path / "second.yaml").symlink_to("home/app/link/../site.yaml")
    shared.chmod(0o777)
    path = f"{place.parent}/link/../site.yaml" if by == "path" else tmp_path / "second.yaml"
    assert os.path.samefile(path, shared / "site.yaml")
    assert Machine().danger(path) == f"everybody may write to {shared} (mode 0777)"


def test_a_file_beside_a_driver_in_a_container_is_trusted_if_the_user_of_the_nodemanager_is(tmp_path):
    """YARN makes `usercache` as the NodeManager's user, and below it a directory of the application's user, for which it makes the rest."""
    user = tmp_path / "local" / "usercache" / "etl"
    (user / "filecache" / "10").mkdir(parents=True)
    (user / "filecache" / "10" / "site.yaml").write_text("")
    container = user / "appcache" / "application_1_1" / "container_1_1_01_000001"
    container.mkdir(parents=True)
    (container / "site.yaml").symlink_to(user / "filecache" / "10" / "site.yaml")
    machine = Machine(usercache=(NODE_MANAGER, TEAM))
    assert machine.danger(container / "site.yaml") == f"{tmp_path}/local/usercache belongs to {NODE_MANAGER}"
    machine.trust = replace(machine.trust, owners=machine.trust.owners | {NODE_MANAGER})
    assert machine.danger(container / "site.yaml") is None


def test_links_that_lead_nowhere_and_files_that_are_missing_are_left_to_the_reader(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert Machine().danger(tmp_path / "a") is None
    assert Machine().danger(tmp_path / "none" / "site.yaml") is None


def test_a_refusal_has_its_code_and_says_what_to_do(place):
    place.chmod(0o602)
    with pytest.raises(UsageError) as refused:
        require_trusted(str(place), {})
    assert refused.value.reason.code is Code.UNTRUSTED_FILE
    assert (str(place) in refused.value.reason.what, refused.value.reason.next) == (True, f"chmod o-w {place}")


@pytest.mark.parametrize("mode", [0o602, 0o620])
def test_the_command_of_a_refusal_has_the_path_as_one_word(mode, tmp_path):
    place = tmp_path / "it's a place"
    place.touch()
    place.chmod(mode)
    danger = Trust(frozenset([ME]), lambda *_: False).judge(str(place), place.stat(), False, False)
    assert danger is not None
    assert shlex.split(danger.remedy)[2:] == [str(place)]


def test_users_who_install_can_be_trusted_by_name():
    name = trusted_files.pwd.getpwuid(1).pw_name
    assert find_owners({}) == {0, ME}
    assert find_owners({RELEASE_OWNERS: f" {name} root "}) == {0, 1, ME}
    with pytest.raises(UsageError, match="no-such-user"):
        find_owners({RELEASE_OWNERS: "no-such-user"})


def test_a_private_group_is_named_as_its_user_and_has_no_other_member(monkeypatch):
    members: Dict[str, list] = {"etl": []}
    monkeypatch.setattr(
        trusted_files.grp,
        "getgrgid",
        lambda gid: trusted_files.grp.struct_group((next(iter(members)), "x", gid, next(iter(members.values())))),
    )
    monkeypatch.setattr(trusted_files.pwd, "getpwuid", lambda uid: trusted_files.pwd.struct_passwd(("etl", "x", uid, 600, "", "/", "")))
    assert is_private_group(600, 500)
    members["etl"] = ["etl"]
    assert is_private_group(600, 500)
    members["etl"] = ["etl", "bob"]
    assert not is_private_group(600, 500)
    members.clear()
    members["team"] = []
    assert not is_private_group(600, 500)


def find(place, part):
    return next(path for path in (place, *place.parents) if path.name == part)
