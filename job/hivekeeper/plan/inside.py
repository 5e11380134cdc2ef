"""What files count for that have old ones inside: their copy alone, until a cleanup cuts the rest off. And which have lost blocks.

Pure: the table's log and its units in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import FrozenSet, Iterable, List, Mapping, Optional

from hivekeeper.model import FileInfo
from hivekeeper.plan import analysis, sizing
from hivekeeper.plan.analysis import ObservedTable, Status, UnitAnalysis
from hivekeeper.plan.sizing import Lengths
from hivekeeper.runlog.history import History
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.manifests import ManifestFile

# What an operator does about lost blocks.
LOST_BLOCKS_TO_DO = "see docs/runbook.md, blocks are lost"


def find_inside(history: History) -> Mapping[str, Inside]:
    """By name, the files that have old ones inside, in whatever partition: theirs may have been renamed since.

    No two that runs joined have one name, which tells the run and the set. What replaced one, or is a copy of it, may: with another id.
    """
    return {effect.inside.file: effect.inside for effect in history.joined if effect.inside}


def own_length(file: FileInfo, inside: Mapping[str, Inside]) -> int:
    """The length of a file of live without the old ones in it."""
    known = _as_joined(file, inside)
    return known.copy_bytes if known else file.length


def find_lost(files: Iterable[ManifestFile], entries: Iterable[FileInfo]) -> List[FileInfo]:
    """Those of these files that have lost blocks, as a directory's entries tell. By id, too: where it was moved over, a file may have got
    another name.
    """
    lost = [entry for entry in entries if entry.is_lost]
    if not lost:
        return []
    files = list(files)
    known, ids = {(file.name, file.length) for file in files}, {file.file_id for file in files if file.file_id}
    return [entry for entry in lost if entry.file_id in ids or (entry.name, entry.length) in known]


def has_lost_rows(file: FileInfo, inside: Mapping[str, Inside]) -> bool:
    """Whether a file has lost blocks without which its rows cannot be read: of one with old ones inside, those of its copy, or of its end,
    which has the footer. Where both the old ones and the end have some, as well.
    """
    known = _as_joined(file, inside)
    return file.is_lost and (known is None or file.lost_from < known.copy_bytes or file.lost_to >= file.length)


def _as_joined(file: FileInfo, inside: Mapping[str, Inside]) -> Optional[Inside]:
    """What is inside a file, if it is the one that a run left, as it was then."""
    known = inside.get(file.name)
    return known if known and (known.file_id, known.length) == (file.file_id, file.length) else None


def count_copies(observed: ObservedTable, history: History, now_ms: int) -> ObservedTable:
    """The table with units judged by the sizes of the copies."""
    known = find_inside(history)
    return replace(observed, units=tuple(_judge(observed, unit, known, now_ms) for unit in observed.units)) if known else observed


def _judge(observed: ObservedTable, unit: UnitAnalysis, inside: Mapping[str, Inside], now_ms: int) -> UnitAnalysis:
    if unit.status not in (Status.COMPACT, Status.FINE, Status.RECENT) or unit.known is not None:
        return unit
    stays = names_of(unit.files, inside)
    if not stays:
        return unit
    lengths = {file.name: own_length(file, inside) for file in unit.files}
    sizes = sizing.measure(list(lengths.values()), observed.settings.block_bytes)
    joinable = sizing.count(length for name, length in lengths.items() if name not in stays)
    judged = analysis.judge_sizes(unit.unit, unit.snapshot, sizes, joinable, None, observed.settings)
    judged = analysis.wait_until_quiet(judged, observed.settings, now_ms)
    return replace(judged, counted=Lengths.of(sizing.count(lengths.values())))


def names_of(files: Iterable[FileInfo], inside: Mapping[str, Inside]) -> FrozenSet[str]:
    """Those of the files that have old ones inside: they are not joined again before these are cut off, or the old ones could not come
    back.
    """
    return frozenset(file.name for file in files if own_length(file, inside) != file.length)
