"""Which directories that come to a unit may be another table's, which somebody has renamed: those older than the unit's new files.

Whoever may rename a directory may not delete its files, nor read them later. In a partition of their own they could.
"""

from __future__ import annotations

from typing import Mapping, Sequence

from hivekeeper.model import FileInfo
from hivekeeper.plan import listings
from hivekeeper.ports import NoPermission
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.run_directory import Run


class Older:
    """The directories of a unit, or of what was set aside for it, that are older than its new files; where a rollback has brought old ones
    back, than the run. Most that come to live, or to its place while it is away, are made then. A committer of a job that began before may
    have made one, too, with the rights that others have there.

    A NameNode's ids only grow (INodeId). Those of local files are given again, and tell nothing of age; nor is there any without ids.
    """

    def __init__(self, run: Run, unit: PlannedUnit) -> None:
        self._run, self._unit = run, unit
        self._first = 0

    def _find_first(self) -> int:
        """The id from which on a directory is not older; asked for only if there is one to compare."""
        if not self._first:
            own = self._run.files.stat(self._run.paths.top)
            number = self._unit.number
            came = self._run.incoming_ids.get(number, 0) or self._run.certified_ids.get(number, 0)
            self._first = max(came, own.file_id if own else 0)
        return self._first

    def why_left(self, directories: Sequence[FileInfo], target: str, target_id: int) -> Mapping[str, str]:
        """Why the files of some stay where they are and do not go to `target`, which has this id, by path; asked for in one call."""
        compared = [one for one in directories if one.file_id and not one.path.startswith("file:")]
        older = [one for one in compared if one.file_id < self._find_first()]
        if not older:
            return {}
        ids = {**{one.path: one.file_id for one in older}, target: target_id}
        try:
            known = self._run.files.attributes([*ids], ids)
        except NoPermission as error:
            return {one.path: f"who may reach it is not known: {error}" for one in older}
        into, left = known.get(target), {}
        for one in older:
            there = known.get(one.path)
            if there is None or into is None or there.directory_id not in (0, one.file_id) or into.directory_id not in (0, target_id):
                left[one.path] = "who may reach it is not known"
            elif not listings.is_as_guarded(there, into):
                left[one.path] = f"it is older than the exchange, and {target} has other rights: it may be another table's"
        return left
