"""The rights of a copy: nobody reads rows in it that they could not read in its files."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from hivekeeper.model import Attributes, FileInfo, FileRights, Snapshot
from hivekeeper.plan.file_rights import (
    MOST_DIFFERENT,
    are_of,
    closed_since,
    find_kept_from_others,
    may_be_of_others,
    share_rights,
    without_group,
)
from hivekeeper.plan.ownership import is_read_by_group
from hivekeeper.reasons import Code, Reason

DIRECTORY = Attributes("inbox", "data", 0o777, 0o666)
READ = 0o4


def acl(*named, group="r--", mask="rwx", other="---"):
    return tuple(sorted([*named, "user::rw-", f"group::{group}", f"mask::{mask}", f"other::{other}"]))


def copied(*files):
    """(owner, group, mode, ACL) of the copy."""
    found = share_rights(DIRECTORY, files)
    assert isinstance(found, Attributes), found
    return (
        found.owner if found.file_owner is None else found.file_owner,
        found.group if found.file_group is None else found.file_group,
        found.file_mode,
        found.file_acl,
    )


def refused(*files):
    found = share_rights(DIRECTORY, files)
    return isinstance(found, Reason) and found.code is Code.MIXED_RIGHTS


OURS = FileRights("inbox", "data", 0o640)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([OURS], ("inbox", "data", 0o640, ())),
        ([OURS._replace(acl=acl("user:eve:r--"))], ("inbox", "data", 0o640, acl("user:eve:r--"))),
        # Files that everybody reads may belong to whoever owns the directory.
        ([FileRights("alice", "hr", 0o644), FileRights("bob", "data", 0o664)], ("inbox", "data", 0o644, ())),
        # Files of one user and one group keep them.
        ([FileRights("alice", "hr", 0o600)], ("alice", "data", 0o600, ())),
        ([FileRights("alice", "hr", 0o640), FileRights("alice", "hr", 0o660)], ("alice", "hr", 0o640, ())),
        ([FileRights("alice", "data", 0o640)], ("alice", "data", 0o640, ())),
        # Of several users, one of whom may not read the files of the other but as a member of the group: the user of the run.
        ([FileRights("alice", "data", 0o640), FileRights("bob", "data", 0o640)], ("", "data", 0o640, ())),
        ([OURS, OURS._replace(mode=0o644)], ("inbox", "data", 0o640, ())),
        ([OURS, OURS._replace(mode=0o600)], ("inbox", "data", 0o600, ())),
    ],
)
def test_a_copy_has_the_rights_that_all_files_have(files, expected):
    assert copied(*files) == expected


def test_what_not_every_acl_gives_is_taken_off():
    one = OURS._replace(mode=0o660, acl=acl("user:eve:rw-", "user:joe:r--"))
    other = OURS._replace(mode=0o660, acl=acl("user:eve:r--", group="rw-"))
    shared = ("group::r--", "mask::r--", "other::---", "user::rw-", "user:eve:r--")
    assert copied(one, other) == ("inbox", "data", 0o640, shared)
    assert copied(one, OURS) == ("inbox", "data", 0o640, ())


def test_whom_one_acl_keeps_out_does_not_get_in_as_a_member_of_the_group_or_as_one_of_the_others():
    kept_out = OURS._replace(mode=0o644, acl=acl("user:eve:---", mask="r--", other="r--"))
    assert refused(kept_out, OURS._replace(mode=0o644))


@pytest.mark.parametrize(
    "files",
    [
        # What a user drops first, for all, into a directory of files that are one user's own.
        [FileRights("mallory", "data", 0o666), FileRights("alice", "hr", 0o600)],
        # Only members of both groups read all rows.
        [FileRights("inbox", "data", 0o640), FileRights("inbox", "hr", 0o640)],
        [FileRights("alice", "data", 0o600), FileRights("bob", "data", 0o600)],
        [OURS._replace(mode=mode) for mode in range(MOST_DIFFERENT + 1)],
    ],
)
def test_files_whose_copy_would_be_closed_to_all_who_may_read_them_are_not_copied(files):
    assert refused(*files)


def may_read(rights, user, groups):
    """As HDFS decides: the first class that fits counts."""
    owner, group, mode, entries = rights
    named = {tuple(entry.split(":")[:2]): entry.split(":")[2] for entry in entries}
    mask = mode >> 3 & READ
    if user == owner:
        return bool(mode >> 6 & READ)
    if ("user", user) in named:
        return bool(mask) and "r" in named["user", user]
    of_group = "r" in named["group", ""] if named else True
    fitting = [of_group] if group in groups else []
    fitting += ["r" in allowed for (kind, name), allowed in named.items() if kind == "group" and name in groups]
    return any(fitting) and bool(mask) if fitting else bool(mode & READ)


def test_no_user_reads_a_copy_of_whose_files_they_could_not_read_one():
    """Every pair of files, and every user with every set of groups."""
    acls = [(), acl("user:eve:r--"), acl("user:eve:---", mask="r--", other="r--"), acl("group:hr:r--", group="---"), acl("group:hr:---")]
    acls.append(acl("group:hr:---", mask="r--", other="r--"))
    some = [
        FileRights(owner, group, mode, entries)
        for owner, group, mode, entries in itertools.product(["inbox", "alice"], ["data", "ops"], [0o600, 0o640, 0o644, 0o604, 0o444], acls)
        if not entries or mode & 0o7 == (READ if "other::r--" in entries else 0)
    ]
    groups = [set(some) for size in range(4) for some in itertools.combinations(["data", "hr", "ops"], size)]
    copies = 0
    for one, other in itertools.product(some, some):
        found = share_rights(DIRECTORY, list(dict.fromkeys([one, other])))
        if isinstance(found, Reason):
            continue
        copy = copied(*dict.fromkeys([one, other]))
        copies += 1
        for user, of_user in itertools.product(["inbox", "alice", "eve"], groups):
            if may_read(copy, user, of_user):
                assert may_read(one, user, of_user) and may_read(other, user, of_user), (one, other, copy, user, of_user)
    assert copies > 100


def test_records_are_not_shown_to_the_directorys_group_where_the_files_are_another_groups():
    found = share_rights(DIRECTORY, [FileRights("alice", "hr", 0o640)])
    assert not is_read_by_group(found, DIRECTORY.group)
    assert is_read_by_group(share_rights(DIRECTORY, [OURS]), DIRECTORY.group)


@pytest.mark.parametrize(
    ("mode", "entries", "expected"),
    [
        (0o755, (), (0o755, ())),
        (0o1775, (), (0o1755, ())),
        (0o750, (), (0o700, ())),
        # What is kept from a group alone is kept from all: its members count as others.
        (0o705, (), (0o700, ())),
        # With an ACL the group bits of the mode are its mask.
        (
            0o770,
            ("group::rwx", "mask::rwx", "other::---", "user::rwx", "user:bob:rwx"),
            (0o770, ("group::---", "mask::rwx", "other::---", "user::rwx", "user:bob:rwx")),
        ),
        (
            0o754,
            ("group::rwx", "mask::r-x", "other::r--", "user::rwx", "user:bob:rwx"),
            (0o754, ("group::r--", "mask::r-x", "other::r--", "user::rwx", "user:bob:rwx")),
        ),
        # Somebody in the group that it has may be in one that others are preferred to.
        (
            0o755,
            ("group::r-x", "group:hr:---", "mask::r-x", "other::r-x", "user::rwx"),
            (0o755, ("group::---", "group:hr:---", "mask::r-x", "other::r-x", "user::rwx")),
        ),
        # What comes later gets the directory's group, too. Without entries for users or groups there is no mask.
        (
            0o750,
            ("default:group::rwx", "default:mask::r-x", "default:other::---", "default:user::rwx", "default:user:bob:rwx")
            + ("group::r-x", "other::---", "user::rwx"),
            (
                0o700,
                ("default:group::---", "default:mask::r-x", "default:other::---", "default:user::rwx", "default:user:bob:rwx")
                + ("group::---", "other::---", "user::rwx"),
            ),
        ),
    ],
)
def test_a_group_that_may_be_anyone_may_do_what_others_may(mode, entries, expected):
    known = Attributes("alice", "hr", mode, mode, entries, entries)
    both, directory, files = without_group(known, True, True), without_group(known, True, False), without_group(known, False, True)
    assert ((both.mode, both.acl), (both.file_mode, both.file_acl)) == (expected, expected)
    assert ((directory.mode, directory.acl), (directory.file_mode, directory.file_acl)) == (expected, (mode, entries))
    assert ((files.mode, files.acl), (files.file_mode, files.file_acl)) == ((mode, entries), expected)


def test_no_user_reads_a_copy_of_another_group_who_could_not_read_the_file():
    """Every file, and every user with every set of groups. Those in neither group lose nothing, unless it was closed to the group alone."""
    acls = [
        (),
        *(acl("user:eve:r--", group=group, other=other) for group in ("r--", "---") for other in ("r--", "---")),
        *(acl("user:eve:---", group=group, other=other) for group in ("r--", "---") for other in ("r--", "---")),
        *(acl("group:hr:r--", group=group, mask=mask) for group in ("r--", "---") for mask in ("r--", "---")),
        *(acl("group:hr:---", group=group, mask="r--", other=other) for group in ("r--", "---") for other in ("r--", "---")),
    ]
    groups = [set(some) for size in range(4) for some in itertools.combinations(["data", "hr", "ops"], size)]
    for mode, entries in itertools.product([0o600, 0o640, 0o644, 0o604], acls):
        if entries and mode & 0o7 != (READ if "other::r--" in entries else 0):
            continue
        found = without_group(Attributes("alice", "ops", 0o750, mode, (), entries), False, True)
        file, copy = ("alice", "ops", mode, entries), ("etl", "data", found.file_mode, found.file_acl)
        for user, of_user in itertools.product(["joe", "eve"], groups):
            if may_read(copy, user, of_user):
                assert may_read(file, user, of_user), (file, copy, user, of_user)
            elif may_read(file, user, of_user) and may_read(file, "joe", {"ops"}):
                assert of_user & {"data", "ops"}, (file, copy, user, of_user)


def test_a_directory_that_comes_back_lets_in_nobody_who_was_kept_out_of_it_or_of_the_one_that_it_replaces():
    """Every pair of directories, and every user with every set of groups but the owners."""
    all_pass = [acl(named, group="r-x", mask="r-x", other="r-x") for named in ("user:eve:r-x", "user:eve:---", "group:hr:---")]
    few_pass = [
        acl(named, group=group, mask="r-x") for named in ("user:eve:r-x", "user:eve:---", "group:hr:r-x") for group in ("r-x", "---")
    ]
    modes = [(0o700, ()), (0o750, ()), (0o755, ()), *((0o755, one) for one in all_pass), *((0o750, one) for one in few_pass)]
    some = [Attributes("etl", group, mode, 0o644, entries) for group in ("data", "ops") for mode, entries in modes]
    groups = [set(some) for size in range(4) for some in itertools.combinations(["data", "hr", "ops"], size)]
    kept = 0
    for former, now in itertools.product(some, some):
        found = closed_since(former, now, ()) or former
        kept += found == former
        for user, of_user in itertools.product(["joe", "eve"], groups):
            before, after, back = (may_read((one.owner, one.group, one.mode, one.acl), user, of_user) for one in (former, now, found))
            assert not back or (before and after), (former, now, found, user, of_user)
    assert len(some) < kept < len(some) ** 2


def test_a_copy_without_owner_and_group_was_not_closed_since():
    former, users = Attributes("alice", "data", 0o750, 0o640), ("etl", "old_etl")
    assert closed_since(former, Attributes("etl", "etl", 0o700, 0o600), users) is None
    assert closed_since(former, Attributes("old_etl", "etl", 0o700, 0o600), users) is None
    assert closed_since(former, Attributes("etl", "data", 0o700, 0o600), users) is not None
    assert closed_since(former, Attributes("alice", "etl", 0o700, 0o600), users) is not None
    assert closed_since(former, Attributes("etl", "etl", 0o750, 0o600), users) is not None
    # A directory of their own that got another group.
    assert closed_since(Attributes("etl", "data", 0o750, 0o640), Attributes("etl", "etl", 0o700, 0o600), users) is not None
    # One that was given to somebody else.
    assert closed_since(former, Attributes("bob", "etl", 0o700, 0o600), users) is not None


@pytest.mark.parametrize(("directory_id", "is_that"), [(7, True), (8, False), (0, True)])
def test_rights_of_another_directory_are_not_those_of_the_one_that_was_seen(directory_id, is_that):
    """Behind a router, and on local files, they are asked for by path."""
    known = Attributes("alice", "data", 0o755, 0o644, directory_id=directory_id)
    assert are_of(known, {}, Snapshot(True, file_id=7)) is is_that


@pytest.mark.parametrize(
    ("owners", "modes", "kept"),
    [
        (("alice", "bob"), (0o700, 0o700), "alice bob"),
        (("alice", "bob"), (0o700, 0o755), ""),
        (("alice", "etl"), (0o700, 0o700), ""),
        (("alice", "old_etl"), (0o700, 0o700), ""),
        (("etl", "bob"), (0o700, 0o700), ""),
        (("alice", "alice"), (0o755, 0o1777), "alice bob"),
        (("alice", "alice"), (0o1777, 0o1777), ""),
        (("alice", "bob"), (0o1777, 0o1777), "bob"),
        (("alice", "etl"), (0o1777, 0o1777), "bob"),
        (("etl", "bob"), (0o1777, 0o1777), ""),
    ],
)
def test_what_came_to_a_directory_of_another_owner_or_with_the_sticky_bit(owners, modes, kept):
    former, now = (Attributes(owner, "data", mode, 0o644) for owner, mode in zip(owners, modes))
    late = [FileInfo(f"/dt=1/{owner}", 1, 1, False, 1, owner=owner) for owner in ("alice", "bob")]
    assert " ".join(file.owner for file in find_kept_from_others(former, now, late, ("etl", "old_etl"))) == kept


def may_write(one, user, groups):
    """To a directory; its owner may give that right to themselves."""
    named = {tuple(entry.split(":")[:2]): entry.split(":")[2] for entry in one.acl}
    mask, of_group = (
        "".join(letter if one.mode >> 3 & bit else "-" for bit, letter in zip((4, 2, 1), "rwx")),
        named.get(("group", ""), "rwx"),
    )
    fitting = [of_group] if one.group in groups else []
    fitting += [allowed for (kind, name), allowed in named.items() if kind == "group" and name in groups]
    if user == one.owner:
        return True
    if ("user", user) in named:
        fitting = [named["user", user]]
    if fitting:
        return any(all(letter in allowed and letter in mask for letter in "wx") for allowed in fitting)
    return one.mode & 0o3 == 0o3


def test_a_late_file_is_believed_only_if_all_who_may_write_to_the_backup_may_write_to_live():
    """Every pair of directories, and every user with every set of groups."""
    acls = [acl("user:eve:rwx", group="r-x"), acl("user:eve:---", group="rwx"), acl("group:ops:rwx", group="r-x"), acl("user:eve:rw-")]
    some = [
        Attributes(owner, group, mode, 0o644, entries)
        for owner, group, mode, entries in itertools.product(
            ["fin", "ann"], ["data", "hr"], [0o755, 0o750, 0o775, 0o770, 0o777, 0o757, 0o1777, 0o766, 0o555], [(), *acls]
        )
        if not entries or mode & 0o7 == 0
    ]
    groups = [set(some) for size in range(3) for some in itertools.combinations(["data", "hr", "ops"], size)]
    believed = 0
    for backup, live in itertools.product(some, some):
        if may_be_of_others(backup, live, ()):
            continue
        believed += 1
        for user, of_user in itertools.product(["fin", "ann", "eve"], groups):
            assert may_write(live, user, of_user) or not may_write(backup, user, of_user), (backup, live, user, of_user)
    assert len(some) <= believed < len(some) ** 2


@pytest.mark.parametrize(
    ("backup", "live", "is_doubtful"),
    [
        (("fin", "data", 0o775), ("fin", "data", 0o775), False),
        (("fin", "data", 0o755), ("fin", "data", 0o555), False),
        (("fin", "data", 0o755), ("fin", "data", 0o775), False),
        # Nobody may write who may not pass.
        (("fin", "data", 0o766), ("fin", "data", 0o755), False),
        (("fin", "data", 0o775), ("fin", "data", 0o765), True),
        # Copies that could not be given away.
        (("fin", "data", 0o775), ("etl", "data", 0o775), False),
        (("fin", "data", 0o775), ("old_etl", "etl", 0o755), False),
        (("fin", "data", 0o775), ("etl", "data", 0o755), True),
        (("fin", "data", 0o755), ("etl", "etl", 0o700), True),
        # Of one that could not be given away, the copy could be.
        (("etl", "etl", 0o755), ("fin", "data", 0o775), False),
        (("fin", "data", 0o755), ("bob", "data", 0o755), True),
        (("fin", "data", 0o755), ("bob", "data", 0o777), False),
    ],
)
def test_who_may_write_to_a_backup_and_to_live(backup, live, is_doubtful):
    assert may_be_of_others(Attributes(*backup, 0o644), Attributes(*live, 0o644), ("etl", "old_etl")) is is_doubtful


def test_an_acl_of_default_entries_alone_closes_nobody_out():
    """With those alone, the other entries only repeat the mode."""
    backup = Attributes("fin", "data", 0o775, 0o664)
    default = ("default:group::r-x", "default:mask::r-x", "default:other::r-x", "default:user::rwx", "default:user:bob:r-x")
    live = replace(backup, acl=(*default, "group::rwx", "other::r-x", "user::rwx"))
    assert not may_be_of_others(backup, live, {"hive"})
