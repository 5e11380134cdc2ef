"""Checks that nobody else can change a file on HDFS that a run was started from, such as `spark.archive`, by owners and modes.

Only looks. The directories on the way are judged as those above a catalogue are (plan/ownership.py).
"""

from __future__ import annotations

from typing import Collection, Optional, Sequence
from urllib.parse import unquote

from hivekeeper import names, quoting
from hivekeeper.errors import UsageError
from hivekeeper.model import Exposed
from hivekeeper.plan import ownership
from hivekeeper.ports import Files
from hivekeeper.reasons import Code, Reason

# On others modes say little.
FILE_SYSTEMS = ("hdfs://", "viewfs://")


def require_trusted(files: Files, paths: Sequence[str], trusted: Collection[str]) -> None:
    """Raise UsageError if somebody else than the user of the run and the trusted ones could change one of these files."""
    why = refuse_untrusted(files, paths, trusted)
    if why is not None:
        raise UsageError(why.what, code=why.code, next=why.next)


def refuse_untrusted(files: Files, paths: Sequence[str], trusted: Collection[str]) -> Optional[Reason]:
    """Why the first such file is not to be used; None if there is none. What is missing, or not on HDFS, is left to its reader.

    Spark takes most paths for URIs (Utils.resolveURI), but not those of `spark.sql.hive.metastore.jars.path` (DataSource.
    checkAndGlobPathIfNecessary): one with a `%` is judged as it is written, and decoded.
    """
    for path in dict.fromkeys(files.qualify(spelled) for each in paths for spelled in (each, unquote(each))):
        if path.startswith(FILE_SYSTEMS):
            why = _refuse(files, path, trusted)
            if why is not None:
                return Reason(Code.UNTRUSTED_FILE, f"{path} is not to be used, as somebody else could change it: {why.what}", why.next)
    return None


def _refuse(files: Files, path: str, trusted: Collection[str]) -> Optional[Reason]:
    """Spark takes a path for a pattern. All files in its directory are judged, whether or not the pattern finds them."""
    top, user = names.before_pattern(path), files.user_at(path)
    if top == path:
        return _judge(files.way_to(path), user, trusted)
    if top != names.parent(path):
        return Reason(Code.UNTRUSTED_FILE, "it is a pattern for directories, any of which it may find", "name the directory itself")
    return _judge([*files.way_to(top), *(entry for entry in files.exposed(top, 1) if not entry.is_dir)], user, trusted)


def _judge(way: Sequence[Exposed], user: str, trusted: Collection[str]) -> Optional[Reason]:
    """`way` ends with the file, or files of one directory, or where something is missing."""
    directories, found = [one for one in way if one.is_dir], [one for one in way if not one.is_dir]
    why = ownership.why_exchangeable(directories, user, trusted)
    if why is not None:
        return why
    roots = {root.owner for root in way[:1]}
    believed = {user, *trusted, *roots}
    for above, below in zip(directories, directories[1:]):
        others = ownership.writers(above, believed) if above.mode & ownership.STICKY and below.owner not in roots else []
        if others:
            return _refuse_brought(above, below, others)
    # With the sticky bit, others may not take away what is there, but may put in what is missing, or beside it.
    for one in [*directories[-1:], *found]:
        others = ownership.writers(one, believed)
        if others and one.is_dir:
            what = f"{', '.join(others)} may put files into {one.path} (mode {one.mode:04o})"
            return Reason(Code.UNTRUSTED_FILE, what, "use a directory that only this user can write to")
        if others:
            what = f"{', '.join(others)} may write to {one.path} (mode {one.mode:04o})"
            return Reason(Code.UNTRUSTED_FILE, what, f"hdfs dfs -chmod go-w {quoting.hdfs(one.path)}")
    for one in found:
        if not one.is_ours and one.owner not in believed:
            remedy = f"have it owned by {' or '.join(sorted(believed))}, or add {one.owner} to trusted_owners"
            return Reason(Code.UNTRUSTED_FILE, f"{one.path} belongs to {one.owner}", remedy)
    return None


def _refuse_brought(above: Exposed, below: Exposed, others: Sequence[str]) -> Reason:
    """Tables have directories of the user of the runs, copies that could not be given away, with files of that user's that others named."""
    return Reason(
        Code.UNTRUSTED_FILE,
        f"{', '.join(others)} may make names in {above.path} (mode {above.mode:04o}), and may have renamed a directory of {below.owner} to "
        f"{below.path} while none was there",
        "use a directory around which nobody else may make names, such as the home of the user of the run",
    )
