"""The output files of a command (--report-file, --properties-out), local or on the cluster.

A file that cannot be written is detected before the work begins. They are written when it is done: a failure then is only logged.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import stat

from hivekeeper.errors import UsageError
from hivekeeper.jail import confine_files
from hivekeeper.launch.trusted_files import name_group_of_others
from hivekeeper.ports import Files, FilesError, FilesUnavailable

log = logging.getLogger(__name__)

# Anyone who may read the directory may read a report in it; the umask applies.
READABLE = 0o666


def is_remote(path: str) -> bool:
    """Whether Hadoop opens a path; a path without a scheme is local."""
    return "://" in path or path.lower().startswith(("hdfs:", "file:"))


def require_writable_here(path: str) -> None:
    """Raise UsageError if a local file cannot be written; the test is to create a file beside it, which is removed again."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise _cannot_write(path, "it is not a file")
    aside = _aside(path)
    try:
        with open(aside, "x", encoding="utf-8"):
            os.unlink(aside)
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from None
    why = _why_not_ours(path)
    if why:
        raise _cannot_write(path, why)


def _why_not_ours(path: str) -> str:
    """Why a file there may be another user's when this run is done, and would be read for this run's; "" if it cannot."""
    around = os.path.dirname(path) or "."
    directory = os.stat(around)
    is_others = os.path.lexists(path) and os.lstat(path).st_uid != os.geteuid()
    # Without the sticky bit they may do more: `require_sole_use`.
    group = name_group_of_others(around) if directory.st_mode & stat.S_ISVTX else ""
    return _why_others_may(directory.st_mode, os.geteuid() in (0, directory.st_uid), is_others, group)


def _why_others_may(mode: int, may_replace: bool, is_others: bool, group: str = "") -> str:
    """The same from the directory's mode, whether this user may replace anything in it, whether a file of another user is there, and which
    other group may write there.
    """
    others = "everybody" if mode & stat.S_IWOTH else group
    if others:
        return f"{others} may put files into its directory, also under this name while the run is at work"
    if mode & stat.S_ISVTX and is_others and not may_replace:
        return "it belongs to another user, and in this directory only that one may replace it"
    return ""


def require_writable(files: Files, path: str) -> None:
    """The same on the cluster. An existing file will be replaced; a directory, which may be a table's, must never be."""
    _refuse_directory(files, path)
    aside = _aside(files.qualify(path))
    files = confine_files(files, aside)
    try:
        files.write_new(aside, "")
    except FilesUnavailable:
        raise
    except FilesError as error:
        raise _cannot_write(path, str(error)) from None
    files.delete_file(aside)
    why = _why_not_ours_there(files, path)
    if why:
        raise _cannot_write(path, why)


def _why_not_ours_there(files: Files, path: str) -> str:
    target = files.qualify(path)
    directory, there, user = files.stat(os.path.dirname(target)), files.stat(target), files.user_at(target)
    return _why_others_may(directory.mode, directory.owner == user, there is not None and there.owner != user) if directory else ""


def _refuse_directory(files: Files, path: str) -> None:
    found = files.stat(files.qualify(path))
    if found is not None and found.is_dir:
        raise _cannot_write(path, "it is a directory")


def _cannot_write(path: str, why: str) -> UsageError:
    return UsageError(f"{path} cannot be written: {why}", next="give --report-file and --properties-out a file that can be written")


def _aside(path: str) -> str:
    return f"{path}.{secrets.token_hex(4)}"


def write(files: Files, path: str, text: str, lost: str = "") -> None:
    """Replace the whole file. A path without scheme is local. `lost`: why the cluster's files cannot be written, "" if they can."""
    if not is_remote(path):
        write_local(path, text)
        return
    if lost:
        _log_failure(path, lost)
        return
    try:
        _refuse_directory(files, path)
        # hdfs:///… names no NameNode, which a rename requires.
        target = files.qualify(path)
        aside = _aside(target)
        files = confine_files(files, aside, target)
        files.write_new(aside, text + "\n", READABLE)
        forget_remote(files, path)
        files.rename_exact(aside, target)
    except (FilesError, UsageError) as error:
        _log_failure(path, str(error))


def write_local(path: str, text: str) -> None:
    aside = _aside(path)
    try:
        # Never through something that somebody has put there, such as a link.
        with open(aside, "x", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(aside, path)
    except OSError as error:
        _log_failure(path, error.strerror or str(error))


def _log_failure(path: str, reason: str) -> None:
    log.error("step=report-file failed path=%r reason=%r", path, reason)


def forget_remote(files: Files, path: str) -> None:
    """Remove the file of an earlier run; never a directory."""
    target = files.qualify(path)
    found = files.stat(target)
    if found is not None and not found.is_dir:
        confine_files(files, target).delete_file(target)


def forget_local(path: str) -> None:
    """Remove the file of an earlier run: a killed run writes nothing, and the old file must not be taken for its output."""
    with contextlib.suppress(OSError):
        os.unlink(path)
