"""Discard a backup that lies inside a file of live: the file is cut to its copy, in one step. See concat_exchange.py.

Cuts only a file that a run joined, and that nobody has written to since; no reader of it sees other rows afterwards.
"""

from __future__ import annotations

from typing import Optional, Tuple

from hivekeeper import names
from hivekeeper.model import Block, FileInfo
from hivekeeper.plan import eligibility
from hivekeeper.ports import NoPermission, NotPossible, RowsError, SourceMissing, SourceReplaced
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.joins import Inside, fingerprint
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.places import ask, find_moved
from hivekeeper.steps.run_directory import Run, require_lock

NOT_TO_TRASH = Reason(
    Code.NOT_TO_TRASH, "its old files lie inside a file of the table, and a part of a file cannot go to the trash", "set discard: delete"
)


def cut_off(run: Run, unit: PlannedUnit, to_trash: bool) -> UnitResult:
    """Discard the backup of a joined unit. Can be repeated: a file that is cut already, or gone with its backup, is discarded."""
    assert unit.inside is not None
    if to_trash:
        return UnitResult(unit, Outcome.KEPT, why=NOT_TO_TRASH)
    require_lock(run)
    found = _find(run, unit, unit.inside)
    if found is None and _is_on_the_way(run, unit, unit.inside):
        what = f"{unit.live} is gone, but the file of it that has the old ones inside is somewhere: moved, or in a trash"
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.DIRECTORY_GONE, what))
    # Whoever overwrote or removed the file, or its directory, has taken the old files with it.
    if found is None or found.length == unit.inside.copy_bytes:
        return UnitResult(unit, Outcome.DISCARDED)
    blocks = find_blocks(run, found, unit.inside)
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
        if run.files.stat(found.path) is None:
            return UnitResult(unit, Outcome.DISCARDED)
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.CALL_FAILED, str(error)))
    except NotPossible as error:
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.BACKUP_CHANGED, str(error)))
    except NoPermission as error:
        return UnitResult(unit, Outcome.KEPT, why=Reason(Code.NO_PERMISSION, str(error)))
    return UnitResult(unit, Outcome.DISCARDED)


def _find(run: Run, unit: PlannedUnit, inside: Inside) -> Optional[FileInfo]:
    """The file that a run joined, in live, or in the partition that its directory is now."""

    def look_in(place: str) -> Optional[FileInfo]:
        found = run.files.stat(names.join(place, inside.file))
        return found if found is not None and found.file_id == inside.file_id else None

    found = look_in(unit.live)
    if found is None and run.files.is_anywhere(run.table.location, inside.file_id):
        moved = find_moved(run, unit, lambda place: look_in(place) is not None)
        found = look_in(moved.live) if moved else None
    return found


def _is_on_the_way(run: Run, unit: PlannedUnit, inside: Inside) -> bool:
    """Whether the unit's directory is gone, but not deleted, and the metastore does not know that."""
    is_gone = run.files.stat(unit.live) is None
    return is_gone and run.files.is_anywhere(run.table.location, inside.file_id) and not ask(run, [unit]).changed


def _shows_same_rows(run: Run, found: FileInfo, inside: Inside) -> bool:
    """Whether the copy alone is a file of the same rows: where it ends is told by records, and this is not."""
    try:
        return run.cluster.rows.ends_like_whole(eligibility.format_of(run.table.storage) or "", found, inside.copy_bytes)
    except RowsError:
        return False


def find_blocks(run: Run, found: FileInfo, inside: Inside) -> Optional[Tuple[Block, ...]]:
    """The blocks of the file that a run joined; None if it is another one, or not as the run left it."""
    if (found.file_id, found.length, found.is_open) != (inside.file_id, inside.length, False):
        return None
    blocks = run.files.blocks(found.path).get(found.name, ())
    return blocks if fingerprint(blocks) == inside.blocks else None
