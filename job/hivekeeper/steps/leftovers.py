"""Look into what writers have made in a table, to tell those at work from what others left behind.

Reads only. It costs nothing where there is none: one call for each level of their directories where there is.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Sequence, Tuple

from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.plan import eligibility
from hivekeeper.ports import Files, NoPermission

# Looked into again before each swap, so there must be an end; what was not seen counts as a writer's.
MOST_DIRECTORIES = 1000


def look_inside(files: Files, tops: Sequence[str]) -> Mapping[str, Snapshot]:
    """Snapshots of directories and of all below them, as far as this user may read and MOST_DIRECTORIES go."""
    seen: Dict[str, Snapshot] = {}
    level: List[str] = list(tops)
    while level and len(seen) + len(level) <= MOST_DIRECTORIES:
        try:
            found = files.look(level)
        except NoPermission:
            break
        seen.update(found)
        level = [entry.path for place in level for entry in found[place].entries if entry.is_dir]
    return seen


def without_empty_staging(files: Files, entries: Sequence[FileInfo]) -> Tuple[FileInfo, ...]:
    """The entries of a unit's directory but for Impala's staging directory where that is empty at this moment."""
    return eligibility.without_empty_staging(entries, look_inside(files, find_staging(entries)))


def find_staging(entries: Iterable[FileInfo]) -> List[str]:
    return [entry.path for entry in entries if eligibility.is_impala_staging(entry)]
