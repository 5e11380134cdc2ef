"""The files that a command line asks for (--report-file, --properties-out), here or on the cluster.

They are written when the work is done, so that one which cannot be written is said in the log and changes nothing else.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from typing import Iterable

from hivekeeper.errors import UsageError
from hivekeeper.ports import Files, FilesError

log = logging.getLogger(__name__)


def is_remote(path: str) -> bool:
    """Whether a path is for Hadoop to open: one without scheme is local."""
    return "://" in path or path.startswith(("hdfs:", "file:"))


def refuse_directories(files: Files, paths: Iterable[str]) -> None:
    """Raise UsageError where an output on the cluster is a directory. A file that is there will be replaced; a directory, which may
    be a table's, must never be.
    """
    for path in paths:
        found = files.stat(files.qualify(path))
        if found is not None and found.is_dir:
            raise UsageError(f"{path} is a directory", next="give --report-file and --properties-out the name of a file")


def write(files: Files, path: str, text: str) -> None:
    """The file is replaced whole. A path without scheme is local."""
    if not is_remote(path):
        write_local(path, text)
        return
    try:
        refuse_directories(files, [path])
        # hdfs:///… names no NameNode, which a rename asks for.
        target = files.qualify(path)
        aside = f"{target}.{secrets.token_hex(4)}"
        files.write_new(aside, text + "\n")
        forget_remote(files, path)
        files.rename_exact(aside, target)
    except (FilesError, UsageError) as error:
        _log_failure(path, str(error))


def write_local(path: str, text: str) -> None:
    aside = f"{path}.{secrets.token_hex(4)}"
    try:
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(aside, path)
    except OSError as error:
        _log_failure(path, error.strerror or str(error))


def _log_failure(path: str, reason: str) -> None:
    log.error("step=report-file failed path=%r reason=%r", path, reason)


def forget_remote(files: Files, path: str) -> None:
    """Remove the file that an earlier run has written, and nothing but a file."""
    target = files.qualify(path)
    found = files.stat(target)
    if found is not None and not found.is_dir:
        files.delete_tree(target)


def forget_local(path: str) -> None:
    """A run that is killed writes nothing; what the run before it wrote must not be taken for its own."""
    with contextlib.suppress(OSError):
        os.unlink(path)
