"""`ports.Files.exchange` as the three steps of a NameNode that it is: for whoever must come between them.

tests/contract/ has it that the real one, which is one call, does the same.
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
