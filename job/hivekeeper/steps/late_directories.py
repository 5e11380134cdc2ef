"""Directories in a unit that a committer may have renamed into it: it met the unit away, found no directory, and renamed its own to live
just after live was back, which HDFS takes for a rename *into* live, where readers may not see its rows.

The run itself moves up what it finds in the moment after its exchange (`exchange.Means.settle_live`): live had no directory then. Of what
comes later nobody can tell whether it is a copy of the unit's own files, which would be read twice; it is only told, at the end of the run.
Reads only.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Container, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.plan import listings
from hivekeeper.ports import FilesUnavailable
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.manifests import Found, ManifestFile, is_marker, key_of
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.observe import TooManyEntries, look_where_allowed
from hivekeeper.steps.run_directory import Run

log = logging.getLogger(__name__)

# What is listed at once is held in memory.
UNITS_AT_ONCE = 100


def are_copies(inside: Sequence[FileInfo], had: Iterable[Found]) -> bool:
    """Whether all in a directory, markers aside, are files with names and lengths that a unit has had: no committer makes copies."""
    found = [entry for entry in inside if entry.is_dir or not is_marker(ManifestFile.of(entry))]
    return bool(found) and len(_find_copies(found, had)) == len(found)


def has_copies(inside: Sequence[FileInfo], had: Iterable[Found]) -> bool:
    """The same of any of these: beside what somebody has copied, others may have written something, or a copy may be unfinished. But not of
    what has no rows for readers: empty files, and hidden ones such as Parquet's `_common_metadata`, are as long in all that a job writes.
    """
    return any(ManifestFile.of(entry).holds_rows for entry in _find_copies(inside, had))


def _find_copies(inside: Sequence[FileInfo], had: Iterable[Found]) -> Sequence[FileInfo]:
    known = {key_of(file.name, file.length) for file in had}
    return [entry for entry in inside if not entry.is_dir and key_of(entry.name, entry.length) in known]


def find_nested(entries: Tuple[FileInfo, ...], own: Container[int] = ()) -> str:
    """A directory among what live holds that a committer may have left there; "" for none. Or one with an `own` id, which was live before:
    `hdfs dfs -mv` of the old files' directory moves it *into* what has come to live's place.
    """
    former = next((entry.path for entry in entries if entry.is_dir and entry.file_id and entry.file_id in own), "")
    return former or next((entry.path for entry in listings.find_committed(Snapshot(True, entries=entries))), "")


def tell_all(run: Run, results: Sequence[UnitResult]) -> Tuple[List[UnitResult], Optional[FilesUnavailable]]:
    """The results for the log, after one more look at live of all units that were away. If that cannot be had, its error is returned, too:
    the run is to be left for the next one, which looks again.

    Nothing is told before: what the metastore has done to a unit meanwhile is put right, and told, whatever lies in it.
    """
    away = [unit.planned for unit in results if unit.nested is not None and not unit.outcome.is_astray and unit.planned.join is None]
    seen: Dict[str, str] = {}
    failed: Optional[FilesUnavailable] = None
    is_enough = run.has_listed_enough
    try:
        for start in range(0, len(away), UNITS_AT_ONCE):
            seen.update(_find_all_nested(run, away[start : start + UNITS_AT_ONCE], is_enough))
    except FilesUnavailable as error:
        failed = error
    return [_tell(unit, seen) for unit in results], failed


def _tell(result: UnitResult, seen: Mapping[str, str]) -> UnitResult:
    nested = "" if result.nested is None else seen.get(result.planned.live, result.nested)
    if not nested:
        return result
    what = f"{nested} is a copy that somebody keeps, what a writer has brought who met the unit away, or another table's: nobody can tell"
    advice = "if it is this table's, and its rows are nowhere else, move its files up, else move it away; readers may not see them"
    if nested == result.planned.live:
        what = f"{nested} was not looked through for what a writer may have brought who met the unit away"
        advice = "look for a directory in it: if its rows are nowhere else, move its files up; readers may not see them"
    # What else became of the unit comes first.
    why = Reason(Code.LATE_DIRECTORY, what) if result.why is None else replace(result.why, what=f"{result.why.what}; {what}")
    if result.outcome.is_astray:
        return replace(result, why=why)
    why = replace(why, next=advice)
    return replace(result, outcome=Outcome.MISPLACED, why=why, has_backup=result.exchanged)


def look_at_last(run: Run, units: Sequence[PlannedUnit]) -> Mapping[str, Snapshot]:
    """What live of some units holds at the end of a run. Without what may not be read, or is too much by now."""
    most = run.most_looked_at(units)
    try:
        seen, denied = look_where_allowed(run.files, list(dict.fromkeys(unit.live for unit in units)), most)
    except TooManyEntries:
        run.count_listed(units, most)
        if len(units) > 1:
            # Those of one unit must not hide the others.
            return {place: one for unit in units for place, one in look_at_last(run, [unit]).items()}
        log.warning("unit=%s step=find-late failed reason='so many files came to it'", units[0].log_field)
        return {}
    run.count_listed(units, sum(len(one.entries) for one in seen.values()))
    return {place: one for place, one in seen.items() if place not in denied}


def _find_all_nested(run: Run, units: Sequence[PlannedUnit], is_enough: bool) -> Mapping[str, str]:
    """By live, what `find_nested` tells of it. What is not seen was looked at after its exchange; where the run has listed enough, that may
    not be so, and live itself is told.
    """
    own = {unit.directory_id for unit in units}
    seen = look_at_last(run, units)
    unseen = {unit.live: unit.live for unit in units if unit.live not in seen} if is_enough else {}
    return {**{place: find_nested(one.entries, own) for place, one in seen.items()}, **unseen}
