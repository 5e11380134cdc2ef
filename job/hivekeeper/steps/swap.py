"""Swap one unit: live → retired, ready → live, with the looks and checks of docs/swap.md.

Invariant at every instant: the rows of the snapshot exist in live or in retired, a late file exists exactly
once, and nothing is deleted but a stage.
"""

from __future__ import annotations

from typing import Mapping, Optional, Tuple

from hivekeeper.errors import AskAPerson
from hivekeeper.model import Snapshot
from hivekeeper.plan.recover import Live, Move, next_move
from hivekeeper.ports import FilesError, FilesUnavailable
from hivekeeper.runlog import manifests
from hivekeeper.runlog.entries import UnitRecord
from hivekeeper.runlog.run_files import Certificate, RecordedUnit
from hivekeeper.steps.checks import check_often
from hivekeeper.steps.journal import Run, fenced, require_own_directory
from hivekeeper.steps.moves import (
    MOST_TRIES,
    ask_person,
    bring,
    exchange,
    interrupted,
    lift_nested,
    merge_recreated,
    move_late,
    put_back,
    require_answers,
)
from hivekeeper.steps.unit_loop import leave_unit

NOT_BEGUN = "the run ended before its swap"


def swap_unit(run: Run, unit: RecordedUnit, certificate: Certificate) -> UnitRecord:
    """Steps 4 to 7 for one unit. Undo: the old files come back by themselves when somebody wrote in between; later by rollback."""
    ready = run.paths.unit("ready", unit.number)
    checked = check_often(run, unit, ready)
    if checked.why:
        return give_up(run, unit, checked.why)
    if not manifests.holds_exactly(certificate.files, checked.incoming):
        require_own_directory(run)
        raise AskAPerson(
            f"{unit.unit.label}: {ready} does not hold what was proved",
            state="live is untouched",
            next="find out who writes below the control directory",
        )
    clock = run.cluster.clock
    began = clock.monotonic_ms()
    try:
        why = exchange(run, unit, checked, run.paths.unit("retired", unit.number), ready)
    except FilesError as error:
        # Whether the rename happened is not known; where the directories lie tells.
        return settle_unit(run, unit, certificate, str(error))
    gap_ms = clock.monotonic_ms() - began
    try:
        return finish_put_back(run, unit, why, gap_ms) if why else finish_unit(run, unit, certificate, gap_ms)
    except FilesError as error:
        return settle_unit(run, unit, certificate, str(error))


def finish_unit(run: Run, unit: RecordedUnit, certificate: Certificate, gap_ms: Optional[float] = None) -> UnitRecord:
    """Steps 6 and 7 after a promotion: carry over, then verify."""
    late = carry_over(run, unit, certificate)
    merge_recreated(run, unit, unit.unit.live)
    lift_nested(run.files, unit.unit.live)
    live = run.files.look([unit.unit.live])[unit.unit.live]
    if manifests.holds(certificate.files, live.entries):
        return UnitRecord(unit, "swapped", certificate, gap_ms, late)
    # Somebody overwrote the unit since: its old rows must never come back under an overwriter.
    return UnitRecord(unit, "overwritten", certificate, gap_ms, late, "somebody replaced its files after the swap")


def carry_over(run: Run, unit: RecordedUnit, certificate: Certificate) -> Tuple[str, ...]:
    """Move the late files of retired into live; then retired is the snapshot."""
    return move_late(run.files, unit, run.paths.unit("retired", unit.number), certificate.files)


def give_up(run: Run, unit: RecordedUnit, why: str) -> UnitRecord:
    """Leave a unit that was not touched as it is, and drop what was staged for it."""
    drop_ready(run, unit)
    return UnitRecord(unit, "given up", reason=why)


def leave(run: Run, unit: RecordedUnit, why: str) -> UnitRecord:
    """A unit whose swap is not begun, because the run is to end; what was staged for it is dropped."""
    drop_ready(run, unit)
    return leave_unit(unit, why)


def finish_put_back(run: Run, unit: RecordedUnit, why: str, gap_ms: Optional[float] = None, outcome: str = "put back") -> UnitRecord:
    """After live is back, or was never away."""
    lift_nested(run.files, unit.unit.live)
    drop_ready(run, unit)
    return UnitRecord(unit, outcome, gap_ms=gap_ms, reason=why)


def drop_ready(run: Run, unit: RecordedUnit) -> None:
    """Delete the proved copy of a unit whose old files are live."""
    run.files.delete_tree(run.paths.unit("ready", unit.number))


def settle_unit(run: Run, unit: RecordedUnit, certificate: Optional[Certificate], cause: str = NOT_BEGUN) -> UnitRecord:
    """Bring one unit to its end or back to its start, from where its directories lie. `cause` says why it is asked for."""
    try:
        return _settle(run, unit, certificate, cause)
    except FilesUnavailable as error:
        raise interrupted(run, unit, error) from error


def _settle(run: Run, unit: RecordedUnit, certificate: Optional[Certificate], cause: str, tries: int = 0) -> UnitRecord:
    if tries >= MOST_TRIES:
        raise ask_person(run, unit, f"a rename keeps failing ({cause})")
    live, ready, retired = unit.unit.live, run.paths.unit("ready", unit.number), run.paths.unit("retired", unit.number)
    seen = run.files.look([live, ready, retired, run.paths.top])
    if not seen[run.paths.top].exists:
        raise fenced(run)
    move = next_move(picture_live(seen, live, certificate), seen[ready].exists, seen[retired].exists)
    try:
        return _carry_out(run, unit, certificate, move, seen, cause)
    except FilesError as error:
        require_answers(error, tries + 1)
        return _settle(run, unit, certificate, str(error), tries + 1)


def picture_live(seen: Mapping[str, Snapshot], live: str, certificate: Optional[Certificate]) -> Live:
    if not seen[live].exists:
        return Live.ABSENT
    ours = certificate is not None and manifests.holds(certificate.files, seen[live].entries)
    return Live.OURS if ours else Live.OTHER


def _carry_out(
    run: Run, unit: RecordedUnit, certificate: Optional[Certificate], move: Move, seen: Mapping[str, Snapshot], cause: str
) -> UnitRecord:
    if move is Move.NOTHING_SWAPPED:
        return finish_put_back(run, unit, cause, outcome="not swapped")
    if certificate is None:
        raise ask_person(run, unit, "it was retired without a certificate")
    if move is Move.OVERWRITTEN:
        return UnitRecord(unit, "overwritten", certificate, reason="somebody replaced or removed its files after the swap")
    if move is Move.FINISH_GAP:
        retired = run.paths.unit("retired", unit.number)
        why = manifests.judge(unit.manifest, seen[retired].entries).why
        if why:
            put_back(run, unit, retired)
            return finish_put_back(run, unit, why)
        bring(run, unit, run.paths.unit("ready", unit.number))
    return finish_unit(run, unit, certificate)
