"""Which files have blocks that no DataNode has: their rows may be nowhere else than in what is about to go.

Reads only.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import FileInfo
from hivekeeper.plan.inside import find_inside, find_lost, has_lost_rows
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import store
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.run_directory import Run
from hivekeeper.steps.whereabouts import usable_until


class LostBlocks:
    """Asks for a directory once for all backups that go within a minute: a unit may have many.

    `inside`: by name, the files that have old ones inside.
    """

    def __init__(self, run: Run, inside: Mapping[str, Inside]) -> None:
        self._run, self._inside = run, inside
        self._known: Dict[str, Tuple[FileInfo, ...]] = {}
        self._until_ms = 0.0

    def why_only_copy(self, unit: PlannedUnit, files: Iterable[ManifestFile], directory: str) -> Optional[Reason]:
        """Why nothing goes that has the rows of these files of a directory: some have lost blocks that their readers need."""
        lost = (entry.name for entry in find_lost(files, self._find(unit, directory)) if has_lost_rows(entry, self._inside))
        name = next(lost, None)
        return Reason(Code.LIVE_LOST_BLOCKS, f"no DataNode has some blocks of {name}, which has these rows in live") if name else None

    def _find(self, unit: PlannedUnit, directory: str) -> Tuple[FileInfo, ...]:
        clock = self._run.cluster.clock
        if clock.monotonic_ms() > self._until_ms:
            self._known.clear()
        if directory not in self._known:
            began_ms, is_first = clock.monotonic_ms(), not self._known
            entries = self._run.look([unit], [directory])[directory].entries
            self._known[directory] = tuple(entry for entry in entries if entry.is_lost)
            self._until_ms = usable_until(clock, began_ms) if is_first else self._until_ms
        return self._known[directory]


def find_unreadable(run: Run, files: Iterable[ManifestFile], entries: Iterable[FileInfo]) -> List[FileInfo]:
    """Those of these files that have lost a block which their readers need. The log is asked only if one may have old files inside."""
    lost = find_lost(files, entries)
    if not any(names.may_be_joined(file.name) for file in lost):
        return lost
    inside = find_inside(store.read_history(run.cluster, run.control))
    return [file for file in lost if has_lost_rows(file, inside)]
