"""Users who may have changed the old files of a unit where these went, and may not write to live: that, or a directory above it, was closed
to them since.

The old files keep the rights that they had when they left live, and lie below the control directory, which is as open as the table's root.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Mapping, Sequence

from hivekeeper import names
from hivekeeper.model import Attributes
from hivekeeper.plan import file_rights, ownership
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.fitness import MOST_AGE_MS
from hivekeeper.steps.observe import find_above
from hivekeeper.steps.run_directory import Run
from hivekeeper.steps.whereabouts import usable_until


@dataclass
class _Around:
    known: Dict[str, Attributes] = field(default_factory=dict)
    until_ms: float = 0.0


class Outsiders:
    """Of a unit whose old files were in `backup`, in the directory of a run, for longer than a moment. If in doubt, there may be some."""

    def __init__(self, run: Run, unit: PlannedUnit, backup: str) -> None:
        self._run, self._unit = run, unit
        self._above = find_above(run.table, [unit.unit])
        self._way = names.parent(names.parent(backup))

    @property
    def places(self) -> Sequence[str]:
        """The directories of which the rights decide, besides the old files' and live: of a partition also the table's."""
        return [*self._above, self._way]

    def ask(self) -> Mapping[str, Attributes]:
        """The rights of these as they are, or were some seconds ago: to tell those of a table's root, HDFS lists all its partitions. Raises
        NoPermission.
        """
        clock, around = self._run.cluster.clock, self._run.cluster.memory.of(_Around)
        if clock.monotonic_ms() > around.until_ms:
            around.known, around.until_ms = {}, usable_until(clock, clock.monotonic_ms(), MOST_AGE_MS)
        missing = [place for place in self.places if place not in around.known]
        around.known.update(self._run.files.attributes(missing) if missing else {})
        return around.known

    def may_have_written(self, known: Mapping[str, Attributes], old: Attributes, live: Attributes) -> bool:
        if self._is_way_closed(known):
            return False
        return self._is_closed_above(known) or file_rights.may_be_of_others(old, live, self._run.users_at(self._unit.live))

    def _is_way_closed(self, known: Mapping[str, Attributes]) -> bool:
        """Whether the old files are for the user of the run that has them alone: a directory above live was closed before."""
        return self._way in known and not known[self._way].mode & 0o011

    def _is_closed_above(self, known: Mapping[str, Attributes]) -> bool:
        way = known.get(self._way)
        return any(way is None or place not in known or ownership.is_narrower(known[place], way) for place in self._above)
