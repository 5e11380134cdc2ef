"""Checks that nobody else can change a file on HDFS that a run was started from, such as `spark.archive`, by owners and modes.

Only looks. The rule is that for files of the edge node (launch/trusted_files.py), but no group is known to be somebody's private one.
"""

from __future__ import annotations

from typing import Collection, Dict, List, Optional, Sequence

from hivekeeper import quoting
from hivekeeper.errors import UsageError
from hivekeeper.model import FileInfo
from hivekeeper.ports import Files
from hivekeeper.reasons import Code, Reason

STICKY, WRITE_OF_ALL, WRITE_OF_OTHERS = 0o1000, 0o002, 0o022


def require_trusted(files: Files, paths: Sequence[str], trusted: Collection[str]) -> None:
    """Raise UsageError if somebody else than the user of the run and the trusted ones could change one of these files."""
    why = refuse_untrusted(files, paths, trusted)
    if why is not None:
        raise UsageError(why.what, code=why.code, next=why.next)


def refuse_untrusted(files: Files, paths: Sequence[str], trusted: Collection[str]) -> Optional[Reason]:
    """Why the first such file is not to be used; None if there is none. What is missing, or not on HDFS, is left to its reader."""
    seen: Dict[str, Optional[FileInfo]] = {}
    for path in map(files.qualify, paths):
        if not path.startswith("hdfs://"):
            continue
        way = _list_way(path)
        for at in way:
            if at not in seen:
                seen[at] = files.stat(at)
        root = seen[way[0]]
        # Whoever owns the root can exchange everything below it.
        users = {files.user_at(path), *trusted, *([root.owner] if root else [])}
        for at in way:
            found = seen[at]
            why = _judge(path, found, users, is_last_directory=[at] == way[-2:-1]) if found else None
            if why is not None:
                return why
    return None


def _list_way(path: str) -> List[str]:
    """The root, each directory down to a file, and the file."""
    server, parts = "/".join(path.split("/")[:3]), [part for part in path.split("/")[3:] if part]
    return [f"{server}/{'/'.join(parts[:count])}" for count in range(len(parts) + 1)]


def _judge(path: str, found: FileInfo, users: Collection[str], is_last_directory: bool) -> Optional[Reason]:
    at, mode = found.path, f"mode {found.mode:04o}"
    if found.owner not in users:
        who = " or ".join(sorted(users))
        return _refuse(path, f"{at} belongs to {found.owner}", f"have it owned by {who}, or add {found.owner} to trusted_owners")
    if found.is_dir and found.mode & STICKY and found.mode & WRITE_OF_ALL:
        if is_last_directory:
            return _refuse(path, f"everybody may put files into {at} ({mode})", "use a directory that only this user can write to")
    elif found.mode & WRITE_OF_OTHERS:
        who = "everybody" if found.mode & WRITE_OF_ALL else f"the group {found.group}, or users of its ACL,"
        return _refuse(path, f"{who} may write to {at} ({mode})", f"hdfs dfs -chmod go-w {quoting.hdfs(at)}")
    return None


def _refuse(path: str, what: str, remedy: str) -> Reason:
    return Reason(Code.UNTRUSTED_FILE, f"{path} is not to be used, as somebody else could change it: {what}", remedy)
