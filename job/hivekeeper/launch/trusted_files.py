"""Checks that nobody else can change a file that decides what a run starts, or exchange files in a directory that a run writes to, by owner
and mode of the file and all directories above it.

The rule is that of ssh's StrictModes, with two exceptions. A group may write if it is the owner's private one (a directory service cannot
say who else has it as primary group). A sticky directory such as /tmp may be on the path, because nobody can rename another user's files in
it. A file directly in one is refused, because anyone can put another file beside it. docs/install.md has the full rule.
"""

from __future__ import annotations

import grp
import os
import pwd
import secrets
import shlex
import stat
from dataclasses import dataclass
from typing import Callable, FrozenSet, List, Mapping, Optional

from hivekeeper.config.sources import RELEASE_OWNERS
from hivekeeper.errors import UsageError
from hivekeeper.reasons import Code

MOST_LINKS = 40
ACL = "system.posix_acl_access"


@dataclass(frozen=True)
class Danger:
    """Which path is not trusted, and why."""

    what: str
    remedy: str


# Judges one path: what is there, whether it is the directory of the last part, whether it has an ACL.
Judge = Callable[[str, os.stat_result, bool, bool], Optional[Danger]]


@dataclass(frozen=True)
class Trust:
    """Whose files are trusted. `is_private`: whether a group (first argument) is a user's private one."""

    owners: FrozenSet[int]
    is_private: Callable[[int, int], bool]

    def judge(self, path: str, found: os.stat_result, is_last_directory: bool, has_acl: bool) -> Optional[Danger]:
        """None if only trusted users can change what is at this path."""
        if found.st_uid not in self.owners:
            return Danger(f"{path} belongs to {user_name(found.st_uid)}", _how_to_own(found))
        if stat.S_ISLNK(found.st_mode):
            return None
        mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
        if found.st_mode & stat.S_IWOTH:
            if not (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX):
                return Danger(f"everybody may write to {path} ({mode})", f"chmod o-w {shlex.quote(path)}")
            if is_last_directory:
                return Danger(f"everybody may put files into {path} ({mode})", "use a directory that only you can write to")
        elif found.st_mode & stat.S_IWGRP and (has_acl or not self.is_private(found.st_gid, found.st_uid)):
            whom = "users of its ACL" if has_acl else f"the group {_group_name(found.st_gid)}"
            return Danger(f"{whom} may write to {path} ({mode})", f"chmod g-w {shlex.quote(path)}")
        return None

    def judge_exchange(self, path: str, found: os.stat_result, is_last_directory: bool, has_acl: bool) -> Optional[Danger]:
        """None if only trusted users can put another file, or a link, in the place of ours in this directory; in a sticky one only its
        owner can. A group that may write above the last directory is left to the administrator, as in Debian's /var/log.
        """
        if found.st_uid not in self.owners:
            return Danger(f"its owner {user_name(found.st_uid)} may exchange files in {path}", _how_to_own(found))
        if stat.S_ISLNK(found.st_mode) or found.st_mode & stat.S_ISVTX:
            return None
        who = ""
        if found.st_mode & stat.S_IWOTH:
            who = "everyone"
        elif is_last_directory and found.st_mode & stat.S_IWGRP and (has_acl or not self.is_private(found.st_gid, found.st_uid)):
            who = "users of its ACL" if has_acl else f"the group {_group_name(found.st_gid)}"
        # With the sticky bit they could still take a name in the last one, before there is a file.
        remedy = "take that right away" + ("" if is_last_directory else f", or: chmod +t {shlex.quote(path)}")
        return Danger(f"{who} may exchange files in {path}", remedy) if who else None


def name_group_of_others(directory: str) -> str:
    """Whom the group of a directory, or its ACL, lets write there besides its owner and this user; "" if nobody."""
    found = os.stat(directory)
    has_acl = _has_acl(directory)
    is_private = any(is_private_group(found.st_gid, uid) for uid in (found.st_uid, os.geteuid()))
    if not found.st_mode & stat.S_IWGRP or (is_private and not has_acl):
        return ""
    return "users of its ACL" if has_acl else f"the group {_group_name(found.st_gid)}"


def _how_to_own(found: os.stat_result) -> str:
    return f"have it owned by root or {user_name(os.geteuid())}, or set {RELEASE_OWNERS}={user_name(found.st_uid)}"


def require_trusted(path: str, environ: Mapping[str, str]) -> None:
    """Raise UsageError if somebody else could change a file. A missing or invisible file is left to its reader."""
    danger = find_danger(path, Trust(find_owners(environ), is_private_group).judge, os.lstat, _has_acl)
    if danger is not None:
        raise UsageError(
            f"{path} is not used, as somebody else could change it: {danger.what}", code=Code.UNTRUSTED_FILE, next=danger.remedy
        )


def require_sole_use(path: str, environ: Mapping[str, str]) -> None:
    """Raise UsageError if somebody else could put another file in the place of one that this run writes, or another directory around it."""
    # What is at the path itself is replaced, never followed: a name that is not there ends the walk at its directory.
    beside = os.path.join(os.path.dirname(path), secrets.token_hex(8))
    danger = find_danger(beside, Trust(find_owners(environ), is_private_group).judge_exchange, os.lstat, _has_acl)
    if danger is not None:
        raise UsageError(f"{path} cannot be written: {danger.what}", next=f"{danger.remedy}; or name a file elsewhere")


def find_danger(
    path: str, judge: Judge, look: Callable[[str], os.stat_result], has_acl: Callable[[str], bool] = lambda _: False
) -> Optional[Danger]:
    """The first unsafe thing on the path, from the root down. Links are followed one by one, and each is checked itself. So `..` is the
    directory above the one that was reached, as for the system.
    """
    waiting, at, links = _parts(path if os.path.isabs(path) else os.path.join(os.getcwd(), path)), "/", 0
    while True:
        try:
            found = look(at)
        except OSError:
            return None
        is_link = stat.S_ISLNK(found.st_mode)
        danger = judge(at, found, len(waiting) == 1, not is_link and has_acl(at))
        if danger is not None:
            return danger
        if is_link:
            links += 1
            if links > MOST_LINKS:
                return None
            target = os.readlink(at)
            waiting, at = [*_parts(target), *waiting], "/" if target.startswith("/") else os.path.dirname(at)
        elif waiting:
            part = waiting.pop(0)
            at = os.path.dirname(at) if part == ".." else os.path.join(at, part)
        else:
            return None


def find_owners(environ: Mapping[str, str]) -> FrozenSet[int]:
    owners = {0, os.geteuid()}
    for name in environ.get(RELEASE_OWNERS, "").split():
        try:
            owners.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            raise UsageError(f"{RELEASE_OWNERS} names {name}, which is not a user of this machine", next="correct or unset it") from None
    return frozenset(owners)


def is_private_group(gid: int, uid: int) -> bool:
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(uid)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}


def _has_acl(path: str) -> bool:
    try:
        os.getxattr(path, ACL)
    except OSError:
        return False
    return True


def _parts(path: str) -> List[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
