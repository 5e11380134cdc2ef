"""Read the text of a NameNode's image from this machine or from HDFS, in pieces of bounded size.

Reads only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Callable, Iterator

from hivekeeper.errors import UsageError
from hivekeeper.plan.image_format import PIECE_BYTES
from hivekeeper.ports import Files
from hivekeeper.reasons import Code


@dataclass(frozen=True)
class ImageFile:
    """The file of --fsimage. `written_ms`: when it was last written; `read` yields it from its beginning."""

    path: str
    written_ms: int
    read: Callable[[], Iterator[bytes]]


def find_local(path: str) -> ImageFile:
    """Raises UsageError if it cannot be opened."""
    try:
        with open(path, "rb") as file:
            written_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
    except OSError as error:
        raise _cannot_read(path, error.strerror or str(error)) from None
    return ImageFile(path, written_ms, lambda: _read_local(path))


def _read_local(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while True:
                piece = file.read(PIECE_BYTES)
                if not piece:
                    return
                yield piece
    except OSError as error:
        raise _cannot_read(path, error.strerror or str(error)) from None


def find_remote(files: Files, path: str) -> ImageFile:
    """Raises UsageError if there is no such file."""
    found = files.stat(files.qualify(path))
    if found is None or found.is_dir:
        raise _cannot_read(path, "no such file" if found is None else "it is a directory")
    return ImageFile(path, found.mtime_ms, lambda: files.read_bytes(found))


def _cannot_read(path: str, why: str) -> UsageError:
    return UsageError(f"--fsimage {path}: {why}", code=Code.UNREADABLE_IMAGE, next="give the output of hdfs oiv -p Delimited")
