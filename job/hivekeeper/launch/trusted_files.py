"""Checks that nobody else can change a file that decides what a run starts, by owner and mode of the file and all directories above it.

The rule is that of ssh's StrictModes, with two exceptions. A group may write if it is the owner's private one (a directory service cannot
say who else has it as primary group). A sticky directory such as /tmp may be on the path, because nobody can rename another user's files in
it. A file directly in one is refused, because anyone can put another file beside it. docs/install.md has the full rule.
"""

from __future__ import annotations

import grp
import os
import pwd
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


@dataclass(frozen=True)
class Trust:
    """Whose files are trusted. `is_private`: whether a group (first argument) is a user's private one."""

    owners: FrozenSet[int]
    is_private: Callable[[int, int], bool]

    def judge(self, path: str, found: os.stat_result, is_last_directory: bool, has_acl: bool) -> Optional[Danger]:
        """None if only trusted users can change what is at this path."""
        if found.st_uid not in self.owners:
            owner = _user_name(found.st_uid)
            return Danger(
                f"{path} belongs to {owner}", f"have it owned by root or {_user_name(os.geteuid())}, or set {RELEASE_OWNERS}={owner}"
            )
        if stat.S_ISLNK(found.st_mode):
            return None
        mode = f"mode {stat.S_IMODE(found.st_mode):04o}"
        if found.st_mode & stat.S_IWOTH:
            if not (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX):
                return Danger(f"everybody may write to {path} ({mode})", f"chmod o-w {path}")
            if is_last_directory:
                return Danger(f"everybody may put files into {path} ({mode})", "use a directory that only you can write to")
        elif found.st_mode & stat.S_IWGRP and (has_acl or not self.is_private(found.st_gid, found.st_uid)):
            whom = "users of its ACL" if has_acl else f"the group {_group_name(found.st_gid)}"
            return Danger(f"{whom} may write to {path} ({mode})", f"chmod g-w {path}")
        return None


def require_trusted(path: str, environ: Mapping[str, str]) -> None:
    """Raise UsageError if somebody else could change a file. A missing or invisible file is left to its reader."""
    danger = find_danger(path, Trust(find_owners(environ), is_private_group), os.lstat, _has_acl)
    if danger is not None:
        raise UsageError(
            f"{path} is not used, as somebody else could change it: {danger.what}", code=Code.UNTRUSTED_FILE, next=danger.remedy
        )


def find_danger(
    path: str, trust: Trust, look: Callable[[str], os.stat_result], has_acl: Callable[[str], bool] = lambda _: False
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
        danger = trust.judge(at, found, len(waiting) == 1, not is_link and has_acl(at))
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


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
