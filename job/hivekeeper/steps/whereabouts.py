"""Where files and directories are that were moved, by their ids. Reads only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional

from hivekeeper.model import Partition
from hivekeeper.ports import Clock, Files, NoPermission

# So many are looked for one by one, before all that may have been moved are looked for at once; and how old what that showed may be, unless
# it took longer: then it is used for as long as it took, so that half of the time at most goes into that.
FEW, MOST_AGE_MS = 20, 60_000


@dataclass
class Whereabouts:
    """What a run has found out about things that may have been moved. All of it is only a hint where to look: whoever may write to a table
    can move thousands of its files, and each of them again meanwhile.

    `former`: by id the paths of all that a run may have to look for. `partitions`: by their directories. Both may be used until a time.
    """

    former: Dict[int, str] = field(default_factory=dict)
    paths: Dict[int, str] = field(default_factory=dict)
    searches: int = 0
    paths_until_ms: float = -math.inf
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    partitions_until_ms: float = -math.inf

    def find(self, files: Files, clock: Clock, near: str, file_id: int, former: str) -> Optional[str]:
        """Where it is now; None if it does not exist, or its place is not shown to this user. `near`: as for Files.find_paths."""
        hint = self.paths.get(file_id)
        if hint is not None and _is_at(files, hint, file_id):
            return hint
        wanted, began_ms = {file_id: former}, clock.monotonic_ms()
        finds_all = self.searches >= FEW and began_ms > self.paths_until_ms
        self.searches += 1
        if finds_all:
            self.paths_until_ms = began_ms + MOST_AGE_MS
            wanted.update(self.former)
        found = files.find_paths(near, wanted)
        if finds_all:
            self.paths_until_ms = usable_until(clock, began_ms)
        self.paths.update(found)
        return found.get(file_id)


def usable_until(clock: Clock, began_ms: float) -> float:
    """For how long something may be used that was just read, from then on."""
    ended_ms = clock.monotonic_ms()
    return max(began_ms + MOST_AGE_MS, ended_ms + (ended_ms - began_ms))


def _is_at(files: Files, path: str, file_id: int) -> bool:
    try:
        found = files.stat(path)
    except NoPermission:
        return False
    return found is not None and found.file_id == file_id
