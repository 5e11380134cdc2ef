"""Directories in a unit that a committer may have renamed into it: it met the unit away, found no directory, and renamed its own to live
just after live was back, which HDFS takes for a rename *into* live, where readers may not see its rows.

The run itself moves up what it finds in the moment after its exchange (`exchange.Means.settle_live`): live had no directory then. Of what
comes later nobody can tell whether it is a copy of the unit's own files, which would be read twice; it is only told. Reads only.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.plan import eligibility
from hivekeeper.ports import FilesUnavailable
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.manifests import Found
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.observe import TooManyEntries, look_where_allowed
from hivekeeper.steps.run_directory import Run

log = logging.getLogger(__name__)

# Live was away, and nobody is known to have replaced it since.
CONCERNED = (Outcome.SWAPPED, Outcome.ROLLED_BACK, Outcome.PUT_BACK)
# What is listed at once is held in memory.
UNITS_AT_ONCE = 100


def are_copies(inside: Sequence[FileInfo], had: Iterable[Found]) -> bool:
    """Whether all files of a directory have the name and length of files that the unit has had: copies are no committer's."""
    known = {(file.name, file.length) for file in had}
    return bool(inside) and all((entry.name, entry.length) in known for entry in inside)


def tell(result: UnitResult, entries: Tuple[FileInfo, ...]) -> UnitResult:
    """The result of a unit whose live holds these entries."""
    committed = eligibility.find_committed(Snapshot(True, entries=entries))
    if not committed:
        return result
    what = f"{committed[0].path} is a copy that somebody keeps, or what a writer has brought who met the unit away: nobody can tell"
    # Where not all of the unit is in live, that comes first.
    why = Reason(Code.LATE_DIRECTORY, what) if result.why is None else replace(result.why, what=f"{result.why.what}; {what}")
    why = replace(why, next="if its rows are nowhere else, move its files up, else move it away; readers may not see them")
    has_backup = result.has_backup or result.outcome.exchanged
    return replace(result, outcome=Outcome.MISPLACED, why=why, has_backup=has_backup)


def tell_all(run: Run, results: Sequence[UnitResult]) -> Tuple[List[UnitResult], Optional[FilesUnavailable]]:
    """The results for the log, after one more look at live of all units that were away. If that cannot be had, its error is returned, too:
    the run is to be left for the next one, which looks again.
    """
    told, concerned = list(results), [nth for nth, unit in enumerate(results) if unit.outcome in CONCERNED and unit.planned.join is None]
    try:
        for start in range(0, len(concerned), UNITS_AT_ONCE):
            some = concerned[start : start + UNITS_AT_ONCE]
            seen = _look(run, [results[nth].planned for nth in some])
            for nth in some:
                told[nth] = tell(results[nth], seen[results[nth].planned.live].entries)
    except FilesUnavailable as error:
        return told, error
    return told, None


def _look(run: Run, units: Sequence[PlannedUnit]) -> Mapping[str, Snapshot]:
    """What may not be read, or is too much by now, counts as empty: each unit was looked at after its exchange."""
    places = [unit.live for unit in units]
    try:
        seen, _ = look_where_allowed(run.files, places, run.most_listed(units))
    except TooManyEntries:
        log.warning("table=%s step=find-late failed reason='so many files came to its units'", run.table.log_field)
        return dict.fromkeys(places, Snapshot(False))
    return seen
