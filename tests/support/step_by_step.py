"""`ports.Files.exchange` as its three NameNode steps, for tests that act between them.

tests/contract/ proves that the real one, a single call, does the same.
"""

from __future__ import annotations

from typing import Any, Optional

from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.ports import SourceMissing, TargetExists


def exchange(files: Any, live: str, aside: str, incoming: str, mark: Snapshot) -> Optional[FileInfo]:
    files.rename_exact(live, aside)
    left: Optional[FileInfo] = files.stat(aside)
    if left is None:
        raise SourceMissing(aside)
    if (left.file_id, left.mtime_ms) == (mark.file_id, mark.mtime_ms):
        try:
            files.rename_exact(incoming, live)
        except TargetExists:
            return left
        return None
    return left
