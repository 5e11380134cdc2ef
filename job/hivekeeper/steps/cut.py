"""Discard a backup that lies inside a file of live: the file is cut to its copy, in one step. See concat_exchange.py.

Cuts only a file that a run joined, and that nobody has written to since; no reader of it sees other rows afterwards.
"""

from __future__ import annotations

from typing import Container, Dict, Iterable, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import Block, FileInfo
from hivekeeper.names import UnitNumber
from hivekeeper.plan import eligibility
from hivekeeper.ports import Files, NoPermission, NotPossible, RowsError, SourceMissing, SourceReplaced
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.joins import Inside, fingerprint
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.observe import LOOK_AT_ONCE, look_where_allowed
from hivekeeper.steps.places import ask, find_directories
from hivekeeper.steps.run_directory import Run, require_lock

NOT_TO_TRASH = Reason(
    Code.NOT_TO_TRASH, "its old files lie inside a file of the table, and a part of a file cannot go to the trash", "set discard: delete"
)

# Of what was found out about all partitions; and how long they may be listed once more for what has left its place since.
MOST_AGE_MS, MOST_AGAIN_MS = 60_000, 600_000


class Whereabouts:
    """Where the files that have old ones inside are now, if they are not in live: a partition may have been renamed or moved.

    The metastore is asked, and all partitions are listed, once for all of these files, and again a minute later. Who overwrites a table or
    drops partitions may have moved thousands of them to a trash.
    """

    def __init__(self, run: Run, units: Iterable[PlannedUnit]) -> None:
        self._run, self._units = run, [unit for unit in units if unit.inside]
        self._names = {unit.inside.file_id: unit.inside.file for unit in self._units if unit.inside}
        self._asked_ms: Optional[float] = None
        self._places: Dict[int, str] = {}
        self._changed: Container[UnitNumber] = frozenset()
        self._again_ms = 0.0

    def find(self, unit: PlannedUnit, inside: Inside) -> Optional[FileInfo]:
        """The file, in live or in the partition that its directory is now; None if it is in neither."""
        found = self._look_in(unit.live, inside)
        if found is not None or not self._run.files.is_anywhere(self._run.table.location, inside.file_id):
            return found
        self._ask()
        found = self._look_where_listed(inside)
        if found is None and inside.file_id in self._places and self._again_ms < MOST_AGAIN_MS:
            # It has left that place since the listing. Whoever may write there can move thousands of them again and again.
            began_ms, self._asked_ms = self._run.cluster.clock.monotonic_ms(), None
            self._ask()
            self._again_ms += self._run.cluster.clock.monotonic_ms() - began_ms
            found = self._look_where_listed(inside)
        return found

    def is_on_the_way(self, unit: PlannedUnit, inside: Inside) -> bool:
        """Whether a file that was not found was in a partition a moment ago; or the unit's directory is gone, but not deleted, and the
        metastore does not know that.
        """
        files = self._run.files
        if not files.is_anywhere(self._run.table.location, inside.file_id):
            return False
        if inside.file_id in self._places:
            return True
        if files.stat(unit.live) is not None:
            return False
        self._ask()
        return unit.number not in self._changed

    def _look_where_listed(self, inside: Inside) -> Optional[FileInfo]:
        place = self._places.get(inside.file_id)
        return self._look_in(place, inside) if place is not None else None

    def _look_in(self, place: str, inside: Inside) -> Optional[FileInfo]:
        found = self._run.files.stat(names.join(place, inside.file))
        return found if found is not None and found.file_id == inside.file_id else None

    def _ask(self) -> None:
        clock = self._run.cluster.clock
        if self._asked_ms is not None and clock.monotonic_ms() - self._asked_ms <= MOST_AGE_MS:
            return
        self._changed = ask(self._run, self._units).changed
        directories = find_directories(self._run)
        self._places = {}
        for start in range(0, len(directories), LOOK_AT_ONCE):
            seen, _ = look_where_allowed(self._run.files, directories[start : start + LOOK_AT_ONCE])
            found = ((entry, place) for place, snapshot in seen.items() for entry in snapshot.entries)
            self._places.update((entry.file_id, place) for entry, place in found if self._names.get(entry.file_id) == entry.name)
        self._asked_ms = clock.monotonic_ms()


def cut_off(run: Run, unit: PlannedUnit, whereabouts: Whereabouts, to_trash: bool) -> UnitResult:
    """Discard the backup of a joined unit. Can be repeated: a file that is cut already, or gone with its backup, is discarded."""
    assert unit.inside is not None
    require_lock(run)
    found = whereabouts.find(unit, unit.inside)
    if found is None and whereabouts.is_on_the_way(unit, unit.inside):
        what = f"the file of {unit.live} that has the old ones inside is not there, but somewhere: moved, or in a trash"
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.DIRECTORY_GONE, what))
    # Whoever overwrote or removed the file, or its directory, has taken the old files with it.
    if found is None or found.length == unit.inside.copy_bytes:
        return UnitResult(unit, Outcome.DISCARDED)
    if to_trash:
        return UnitResult(unit, Outcome.KEPT, why=NOT_TO_TRASH)
    blocks = find_blocks(run.files, found, unit.inside)
    if blocks is None:
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.BACKUP_CHANGED, f"somebody has written to {found.name}, which has it inside"))
    if not _shows_same_rows(run, found, unit.inside):
        what = f"{found.name} would show other rows without what is inside it"
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.BACKUP_CHANGED, what))
    try:
        run.files.cut(found, unit.inside.copy_bytes, blocks)
    except SourceReplaced:
        return UnitResult(unit, Outcome.DISCARDED)
    except SourceMissing as error:
        if not run.files.is_anywhere(run.table.location, unit.inside.file_id):
            return UnitResult(unit, Outcome.DISCARDED)
        # It was renamed or moved just now. The next cleanup looks for it.
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.CALL_FAILED, str(error)))
    except NotPossible as error:
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.BACKUP_CHANGED, str(error)))
    except NoPermission as error:
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.NO_PERMISSION, str(error)))
    return UnitResult(unit, Outcome.DISCARDED)


def _shows_same_rows(run: Run, found: FileInfo, inside: Inside) -> bool:
    """Whether the copy alone is a file of the same rows: where it ends is told by records, and this is not."""
    try:
        return run.cluster.rows.ends_like_whole(eligibility.format_of(run.table.storage) or "", found, inside.copy_bytes)
    except RowsError:
        return False


def find_blocks(files: Files, found: FileInfo, inside: Inside) -> Optional[Tuple[Block, ...]]:
    """The blocks of the file that a run joined; None if it is another one, or not as the run left it."""
    if (found.file_id, found.length, found.is_open) != (inside.file_id, inside.length, False):
        return None
    blocks = files.blocks(found.path, ids={found.name: found.file_id}).get(found.name, ())
    return blocks if fingerprint(blocks) == inside.blocks else None
