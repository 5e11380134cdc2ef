"""Look into directories that writers created in a table, to tell writers at work from leftovers.

Reads only. Costs one call for each level of those directories, and nothing without any.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.plan import listings
from hivekeeper.ports import Files, NoPermission

# Limits, because each swap looks again, and at each directory a second time within milliseconds. Directories that were not observed count
# as those of a writer at work. A unit, and each directory above it, may have one staging directory of Impala, which is empty.
MOST_DIRECTORIES, MOST_STAGING, MOST_ENTRIES = 200, 1000, 10_000


def look_inside(
    files: Files, tops: Sequence[str], directories: Optional[int] = None, entries: Optional[int] = None
) -> Mapping[str, Snapshot]:
    """Snapshots of directories and everything below them, as far as this user may read, up to the limits."""
    seen: Dict[str, Snapshot] = {}
    staging = sum(names.base(top) == names.IMPALA_STAGING for top in tops)
    most, left = directories or MOST_DIRECTORIES + min(staging, MOST_STAGING), entries or MOST_ENTRIES
    level: List[str] = list(tops)
    while level and len(seen) + len(level) <= most:
        try:
            found = files.look(level, left + 1)
        except NoPermission:
            break
        left -= sum(len(snapshot.entries) for snapshot in found.values())
        if left < 0:
            break
        seen.update(found)
        level = [entry.path for place in level for entry in found[place].entries if entry.is_dir]
    return seen


def without_empty_staging(files: Files, entries: Sequence[FileInfo]) -> Tuple[FileInfo, ...]:
    """The entries of a unit's directory without Impala's staging directory, if that is empty at this moment."""
    return listings.without_empty_staging(entries, look_inside(files, find_staging(entries)))


def find_staging(entries: Iterable[FileInfo]) -> List[str]:
    return [entry.path for entry in entries if listings.is_impala_staging(entry)]
