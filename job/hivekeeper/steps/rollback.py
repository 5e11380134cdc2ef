"""Undo what a run did to one unit: its backup → restoring, live → discarded, restoring → live; the mirror image of the swap.

Invariant at every instant: both the newer and the older files exist, a late file exists exactly once; nothing is deleted.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Dict, List, Optional, Sequence, Set

from hivekeeper.plan.recover import Undo, next_undo
from hivekeeper.ports import FilesError, FilesUnavailable
from hivekeeper.runlog import manifests
from hivekeeper.runlog.entries import UnitRecord
from hivekeeper.runlog.run_files import RecordedUnit
from hivekeeper.steps.checks import check_often
from hivekeeper.steps.journal import Run, fenced
from hivekeeper.steps.moves import (
    MOST_TRIES,
    ask_person,
    backup_path,
    bring,
    exchange,
    interrupted,
    lift_nested,
    merge_recreated,
    move_late,
    put_back,
    require_answers,
)
from hivekeeper.steps.unit_loop import Hold, leave_unit, take_turns

log = logging.getLogger(__name__)

NOT_BEGUN = "the run ended before anything was restored"


def undo_units(run: Run, units: Sequence[RecordedUnit], hold: Hold = nullcontext) -> List[UnitRecord]:
    """All steps of a rollback in order, under `hold`; where a newer run of a unit could not be undone, its older ones are not tried."""
    stuck: Set[str] = set()

    def undo(unit: RecordedUnit) -> UnitRecord:
        if unit.unit.name in stuck:
            return UnitRecord(unit, "not rolled back", reason="a newer run of this unit could not be undone")
        result = undo_unit(run, unit)
        gap = "" if result.gap_ms is None else f" gap_ms={result.gap_ms:.1f}"
        log.info("run=%s unit=%s step=rollback done outcome=%r%s", run.directory, unit.unit.label, result.outcome, gap)
        if result.outcome != "rolled back":
            stuck.add(unit.unit.name)
        return result

    return take_turns(run.cluster.stopping, units, undo, leave_unit, hold)


def undo_unit(run: Run, unit: RecordedUnit) -> UnitRecord:
    """One step. Undo: a rollback of this rollback."""
    restoring, discarded = (run.paths.unit(state, unit.number) for state in ("restoring", "discarded"))
    clock = run.cluster.clock
    try:
        claim_backup(run, unit)
        checked = check_often(run, unit, restoring)
        why = checked.why or manifests.judge(unit.expected, checked.incoming).why
        if why:
            return give_back(run, unit, why)
        began = clock.monotonic_ms()
        why = exchange(run, unit, checked, discarded, restoring)
        gap_ms = clock.monotonic_ms() - began
        return give_back(run, unit, why, "put back", gap_ms) if why else finish_undo(run, unit, gap_ms)
    except FilesError as error:
        # Whether a rename happened is not known; where the directories lie tells.
        return settle_undo(run, unit, str(error))


def claim_backup(run: Run, unit: RecordedUnit) -> None:
    """Move the backup below our own directory, so that a run that is taken over can do nothing with it. Undo: give_back."""
    run.files.rename_exact(backup_path(run, unit), run.paths.unit("restoring", unit.number))


def give_back(run: Run, unit: RecordedUnit, why: str, outcome: str = "not rolled back", gap_ms: Optional[float] = None) -> UnitRecord:
    """Nothing was restored, or live is back: the backup goes to its place."""
    run.files.rename_exact(run.paths.unit("restoring", unit.number), backup_path(run, unit))
    return _as_it_was(run, unit, why, outcome, gap_ms)


def _as_it_was(run: Run, unit: RecordedUnit, why: str, outcome: str, gap_ms: Optional[float] = None) -> UnitRecord:
    lift_nested(run.files, unit.unit.live)
    return UnitRecord(unit, outcome, gap_ms=gap_ms, reason=why)


def finish_undo(run: Run, unit: RecordedUnit, gap_ms: Optional[float] = None) -> UnitRecord:
    """After the older files are live: carry back what the undone run did not write, then verify."""
    late = move_late(run.files, unit, run.paths.unit("discarded", unit.number), lengths_of(unit))
    merge_recreated(run, unit, unit.unit.live)
    lift_nested(run.files, unit.unit.live)
    live = run.files.look([unit.unit.live])[unit.unit.live]
    if manifests.holds(lengths_of(unit), live.entries):
        return UnitRecord(unit, "rolled back", gap_ms=gap_ms, late_files=late)
    return UnitRecord(unit, "overwritten", gap_ms=gap_ms, late_files=late, reason="somebody replaced its files after the rollback")


def lengths_of(unit: RecordedUnit) -> Dict[str, int]:
    return {file.name: file.length for file in unit.expected}


def find_passed(run: Run, units: Sequence[RecordedUnit]) -> Set[int]:
    """For the recovery of a rollback: a step after which another one of the same unit was begun is done, whatever live holds now."""
    places = {unit.number: [run.paths.unit(state, unit.number) for state in ("restoring", "discarded")] for unit in units}
    seen = run.files.look([place for pair in places.values() for place in pair])
    newest_begun = {unit.unit.name: unit.number for unit in units if any(seen[place].exists for place in places[unit.number])}
    return {unit.number for unit in units if unit.number < newest_begun.get(unit.unit.name, 0)}


def settle_undo(run: Run, unit: RecordedUnit, cause: str = NOT_BEGUN) -> UnitRecord:
    """Bring one unit of a rollback to its end or back to its start, from where its directories lie."""
    try:
        return _settle(run, unit, cause)
    except FilesUnavailable as error:
        raise interrupted(run, unit, error) from error


def _settle(run: Run, unit: RecordedUnit, cause: str, tries: int = 0) -> UnitRecord:
    if tries >= MOST_TRIES:
        raise ask_person(run, unit, f"a rename keeps failing ({cause})")
    live, restoring, discarded = unit.unit.live, run.paths.unit("restoring", unit.number), run.paths.unit("discarded", unit.number)
    seen = run.files.look([live, restoring, discarded, run.paths.top])
    if not seen[run.paths.top].exists:
        raise fenced(run)
    older = seen[live].exists and manifests.holds(lengths_of(unit), seen[live].entries)
    move = next_undo(older, seen[restoring].exists, seen[discarded].exists)
    try:
        return _carry_out(run, unit, move, manifests.judge(unit.manifest, seen[discarded].entries).why, cause)
    except FilesError as error:
        require_answers(error, tries + 1)
        return _settle(run, unit, str(error), tries + 1)


def _carry_out(run: Run, unit: RecordedUnit, move: Undo, spoiled: str, cause: str) -> UnitRecord:
    if move is Undo.LOOK:
        if spoiled:
            put_back(run, unit, run.paths.unit("discarded", unit.number))
            return give_back(run, unit, spoiled, "put back")
        bring(run, unit, run.paths.unit("restoring", unit.number))
        return finish_undo(run, unit)
    if move is Undo.RESTORED:
        return finish_undo(run, unit)
    if move is Undo.OVERWRITTEN:
        return UnitRecord(unit, "overwritten", reason="somebody replaced or removed its files after the rollback")
    if move is Undo.GIVE_BACK:
        return give_back(run, unit, cause)
    return _as_it_was(run, unit, cause, "not rolled back")
