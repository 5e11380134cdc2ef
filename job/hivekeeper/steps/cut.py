"""Discard a backup that lies inside a file of live: the file is cut to its copy, in one step. See concat_exchange.py.

Cuts only a file that a run joined, and that nobody has written to since; no reader of it sees other rows afterwards.

A cut is no rename, so taking the run's directory over does not keep a stalled run from it. Therefore a mark in that directory comes first:
without it the run cannot cut any more once it was taken over, and a recovery that finds it cuts, too.
"""

from __future__ import annotations

import logging
from typing import Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Block, FileInfo
from hivekeeper.plan import eligibility
from hivekeeper.ports import Files, FilesUnavailable, NoPermission, NotPossible, RowsError, SourceMissing, SourceReplaced, TargetExists
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.joins import Inside, fingerprint
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.lost_blocks import LostBlocks
from hivekeeper.steps.places import find_at, is_left
from hivekeeper.steps.run_directory import Run, fenced, require_lock

log = logging.getLogger(__name__)

NOT_TO_TRASH = Reason(
    Code.NOT_TO_TRASH, "its old files lie inside a file of the table, and a part of a file cannot go to the trash", "set discard: delete"
)


def cut_off(run: Run, unit: PlannedUnit, instead: Optional[UnitResult], lost: LostBlocks) -> UnitResult:
    """Discard the backup of a joined unit. Can be repeated: a file that is cut already, or gone with its backup, is discarded.

    `instead`: nothing is cut, and this is the result of a backup that is still there. `lost` knows the file as one with old ones inside.
    """
    assert unit.inside is not None
    require_lock(run)
    found, is_on_the_way = _find(run, unit, unit.inside)
    if is_on_the_way:
        what = f"the file of {unit.live} that has the old ones inside is not there, but somewhere: moved, or in a trash"
        return _kept(unit, Code.DIRECTORY_GONE, what)
    # Whoever overwrote or removed the file, or its directory, has taken the old files with it.
    if found is None or found.length == unit.inside.copy_bytes:
        return UnitResult(unit, Outcome.DISCARDED)
    if instead:
        return instead
    blocks = find_blocks(run.files, found, unit.inside)
    if blocks is None:
        return _kept(unit, Code.BACKUP_CHANGED, f"somebody has written to {found.name}, which has it inside")
    # First: what cannot be read does not show what it would show.
    why = lost.why_only_copy(unit, [ManifestFile.of(found)], names.parent(found.path))
    if why:
        return UnitResult(unit, Outcome.KEPT, why=why)
    if not _shows_same_rows(run, found, unit.inside):
        return _kept(unit, Code.BACKUP_CHANGED, f"{found.name} would show other rows without what is inside it")
    _mark(run, unit)
    return _cut(run, unit, unit.inside, found, blocks)


def _cut(run: Run, unit: PlannedUnit, inside: Inside, found: FileInfo, blocks: Sequence[Block]) -> UnitResult:
    try:
        run.files.cut(found, inside.copy_bytes, blocks)
    except SourceReplaced:
        return UnitResult(unit, Outcome.DISCARDED)
    except SourceMissing as error:
        if not run.files.is_anywhere(run.table.location, inside.file_id):
            return UnitResult(unit, Outcome.DISCARDED)
        # It was renamed or moved just now. The next cleanup looks for it.
        return _kept(unit, Code.CALL_FAILED, str(error))
    except NotPossible as error:
        return _kept(unit, Code.BACKUP_CHANGED, str(error))
    except NoPermission as error:
        return _kept(unit, Code.NO_PERMISSION, str(error))
    return UnitResult(unit, Outcome.DISCARDED)


def _kept(unit: PlannedUnit, code: Code, what: str) -> UnitResult:
    return UnitResult(unit, Outcome.KEPT, why=Reason(code, what))


def is_begun(run: Run, unit: PlannedUnit) -> bool:
    """Whether a run may have cut the unit's file, or may be about to."""
    return run.files.stat(_mark_path(run, unit)) is not None


def _mark(run: Run, unit: PlannedUnit) -> None:
    """Say in the run's directory that the unit's file is about to be cut. Raises Fenced if that was taken over."""
    try:
        run.files.write_new(_mark_path(run, unit), "")
    except TargetExists:
        # By a call that failed, or by the run that this one ends.
        require_lock(run)
    except SourceMissing as gone:
        raise fenced(run) from gone


def _mark_path(run: Run, unit: PlannedUnit) -> str:
    return run.paths.unit("discarding", unit.number)


def _find(run: Run, unit: PlannedUnit, inside: Inside) -> Tuple[Optional[FileInfo], bool]:
    """The file that has old ones inside, in live or in the partition that its directory is now; None if it is in neither. And whether it is
    on its way: it keeps being moved, or has left that partition just now, or live is gone, but not deleted, and the metastore does not know
    that.
    """
    files, in_live = run.files, names.join(unit.live, inside.file)
    found = _look_at(files, in_live, inside)
    if found is not None:
        return found, False
    try:
        path = run.find_path(inside.file_id, in_live)
    except FilesUnavailable as error:
        # One that nobody can find must not keep all others, and every later run, waiting. If HDFS does not answer, the next call tells.
        log.warning("run=%s unit=%s step=find-joined failed reason=%r", run.directory, unit.log_field, str(error))
        return None, True
    if path and names.base(path) == inside.file and find_at(run, unit, names.parent(path)):
        found = _look_at(files, path, inside)
        return found, found is None
    if files.stat(unit.live) is not None:
        # It may have been away just when it was looked at.
        return _look_at(files, in_live, inside), False
    is_moved = files.is_anywhere(run.table.location, inside.file_id)
    return None, is_moved and not is_left(run, unit)


def _look_at(files: Files, path: str, inside: Inside) -> Optional[FileInfo]:
    found = files.stat(path)
    return found if found is not None and found.file_id == inside.file_id else None


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
