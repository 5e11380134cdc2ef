"""Users who may have changed the old files of a unit where these went, and may not write to live: that, or a directory above it, was closed
to them since.

The old files keep the rights that they had when they left live, and lie below the control directory, which is as open as the table's root.
"""

from __future__ import annotations

from typing import Mapping, Sequence

from hivekeeper import names
from hivekeeper.model import Attributes
from hivekeeper.plan import file_rights, ownership
from hivekeeper.ports import NoPermission
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.observe import find_above
from hivekeeper.steps.run_directory import Run


class Outsiders:
    """Of a unit whose old files were in `backup` for longer than a moment. Each answer is that there may be some, if in doubt."""

    def __init__(self, run: Run, unit: PlannedUnit, backup: str) -> None:
        self._run, self._unit = run, unit
        self._above = find_above(run.table, [unit.unit])
        self._way = names.parent(names.parent(backup))

    @property
    def places(self) -> Sequence[str]:
        """The directories of which the rights decide, besides the old files' and live: of a partition also the table's."""
        return [*self._above, self._way]

    def may_have_written(self, known: Mapping[str, Attributes], old: Attributes, live: Attributes) -> bool:
        if self._is_way_closed(known):
            return False
        return self._is_closed_above(known) or file_rights.may_be_of_others(old, live, self._run.users_at(self._unit.live))

    def may_have_come_around(self) -> bool:
        """Of a unit that is away: whether somebody may have changed the old files who may not pass a directory above live."""
        try:
            known = self._run.files.attributes(self.places)
        except NoPermission:
            return True
        return not self._is_way_closed(known) and self._is_closed_above(known)

    def _is_way_closed(self, known: Mapping[str, Attributes]) -> bool:
        """Whether the old files are for the user of the run that has them alone: a directory above live was closed before."""
        return self._way in known and not known[self._way].mode & 0o011

    def _is_closed_above(self, known: Mapping[str, Attributes]) -> bool:
        root = known.get(self._run.table.location)
        return any(root is None or place not in known or ownership.is_narrower(known[place], root) for place in self._above)
