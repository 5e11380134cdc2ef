"""Where files and directories are that were moved, by their ids. Reads only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional

from hivekeeper.model import Partition
from hivekeeper.ports import Clock, Files, NoPermission

# So many are looked for one by one, before all that may have been moved are looked for at once; and how old what that showed may be.
FEW, MOST_AGE_MS = 20, 60_000


@dataclass
class Whereabouts:
    """What a run has found out about things that may have been moved. All of it is only a hint where to look: whoever may write to a table
    can move thousands of its files, and each of them again meanwhile.

    `former`: by id the paths of all that a run may have to look for. `partitions`: by their directories, read at `partitions_ms`.
    """

    former: Dict[int, str] = field(default_factory=dict)
    paths: Dict[int, str] = field(default_factory=dict)
    searches: int = 0
    paths_ms: Optional[float] = None
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    partitions_ms: Optional[float] = None

    def find(self, files: Files, clock: Clock, near: str, file_id: int, former: str) -> Optional[str]:
        """Where it is now; None if it does not exist, or its place is not shown to this user. `near`: as for Files.find_paths."""
        hint = self.paths.get(file_id)
        if hint is not None and _is_at(files, hint, file_id):
            return hint
        wanted = {file_id: former}
        if self.searches >= FEW and is_old(clock, self.paths_ms):
            self.paths_ms = clock.monotonic_ms()
            wanted.update(self.former)
        self.searches += 1
        found = files.find_paths(near, wanted)
        self.paths.update(found)
        return found.get(file_id)


def is_old(clock: Clock, read_ms: Optional[float]) -> bool:
    """Whether what was read then, if ever, is too old."""
    return read_ms is None or clock.monotonic_ms() - read_ms > MOST_AGE_MS


def _is_at(files: Files, path: str, file_id: int) -> bool:
    try:
        found = files.stat(path)
    except NoPermission:
        return False
    return found is not None and found.file_id == file_id
