"""Where files and directories are that were moved, by their ids. Reads only."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional, Tuple

from hivekeeper.model import Partition
from hivekeeper.names import UnitNumber
from hivekeeper.ports import Clock, Files, FilesUnavailable, NoPermission
from hivekeeper.runlog.entries import UnitResult

# So many are looked for one by one, before all that may have been moved are looked for at once; and how old what that showed may be, unless
# it took longer: then it is used for as long as it took, so that half of the time at most goes into that.
FEW, MOST_AGE_MS = 20, 60_000
# For how long one run looks, while other tables wait: whoever moves its files on and on is looked for again and again.
MOST_MS = 600_000


@dataclass
class Whereabouts:
    """What a run has found out about things that may have been moved. All of it is only a hint where to look: whoever may write to a table
    can move thousands of its files, and each of them again meanwhile.

    `former`: by id the paths of all that a run may have to look for. `partitions`: by their directories; `new_names`: those that its table
    may have by now. What was found may be used until a time; until `not_alone_until_ms` no unit counts as alone in its directory.
    `missing`: units that the metastore did not have; it is asked for them again after `not_missing_until_ms`. `missing_ms`: how long that
    has taken.
    """

    most_ms: float = MOST_MS
    spent_ms: float = 0.0
    searches: int = 0
    former: Dict[int, str] = field(default_factory=dict)
    paths: Dict[int, str] = field(default_factory=dict)
    paths_until_ms: float = -math.inf
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    partitions_until_ms: float = -math.inf
    not_alone_until_ms: float = -math.inf
    new_names: Tuple[str, ...] = ()
    new_names_until_ms: float = -math.inf
    missing: Dict[UnitNumber, UnitResult] = field(default_factory=dict)
    not_missing_until_ms: float = -math.inf
    missing_ms: float = 0.0

    def find(self, files: Files, clock: Clock, near: str, file_id: int, former: str) -> Optional[str]:
        """Where it is now; None if it does not exist, or its place is not shown to this user. `near`: as for Files.find_paths. Raises
        FilesUnavailable if it keeps being moved, or if the run has looked for too long.
        """
        hint = self._find_hinted(files, file_id)
        if hint is not None:
            return hint
        self.require_time(former)
        began_ms = clock.monotonic_ms()
        try:
            return self._find_at_once(files, clock, near, file_id) or self._find_alone(files, near, file_id, former)
        finally:
            # Also in vain: a cleanup goes on with the next file.
            self.spent_ms += clock.monotonic_ms() - began_ms

    def require_time(self, former: str) -> None:
        """Raise FilesUnavailable if the run has looked for too long."""
        if self.spent_ms > self.most_ms:
            raise FilesUnavailable(f"{former}: looking for what was moved has taken more than {self.most_ms / 60_000:.0f} minutes")

    def _find_hinted(self, files: Files, file_id: int) -> Optional[str]:
        hint = self.paths.get(file_id)
        return hint if hint is not None and _is_at(files, hint, file_id) else None

    def _find_at_once(self, files: Files, clock: Clock, near: str, file_id: int) -> Optional[str]:
        """With all others, if that was not done just now. One that keeps being moved is no reason not to find another one."""
        began_ms = clock.monotonic_ms()
        if self.searches < FEW or began_ms <= self.paths_until_ms:
            return None
        with suppress(FilesUnavailable):
            self.paths.update(files.find_paths(near, self.former))
        self.paths_until_ms = usable_until(clock, began_ms)
        return self._find_hinted(files, file_id)

    def _find_alone(self, files: Files, near: str, file_id: int, former: str) -> Optional[str]:
        self.searches += 1
        found = files.find_paths(near, {file_id: former})
        self.paths.update(found)
        return found.get(file_id)


def usable_until(clock: Clock, began_ms: float, most_age_ms: float = MOST_AGE_MS) -> float:
    """For how long something may be used that was just read, from then on."""
    ended_ms = clock.monotonic_ms()
    return max(began_ms + most_age_ms, ended_ms + (ended_ms - began_ms))


def _is_at(files: Files, path: str, file_id: int) -> bool:
    try:
        found = files.stat(path)
    except NoPermission:
        return False
    return found is not None and found.file_id == file_id
