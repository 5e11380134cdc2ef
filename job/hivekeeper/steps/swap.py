"""Swap one unit: its proved copy goes live, its old files become the backup. An exchange (steps/exchange.py) out of `ready`.

Deletes only the proved copy of a unit whose old files are live and can be read; the stage, which has the copies of those whose old files
stay aside and can be read, goes when the log has the run.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Callable, Iterable, Mapping, Optional

from hivekeeper.errors import NeedsInvestigation
from hivekeeper.model import FileInfo
from hivekeeper.plan.inside import LOST_BLOCKS_TO_DO
from hivekeeper.ports import NoPermission
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps import exchange
from hivekeeper.steps.checks import find_other_directory
from hivekeeper.steps.concat_exchange import ConcatExchange
from hivekeeper.steps.directory_exchange import DirectoryExchange
from hivekeeper.steps.exchange import Exchange, Words
from hivekeeper.steps.lost_blocks import find_unreadable
from hivekeeper.steps.run_directory import Run, require_own_directory

WORDS = Words(Outcome.SWAPPED, Outcome.GIVEN_UP, Outcome.NOT_SWAPPED, after="swap")


def swap_unit(
    run: Run,
    unit: PlannedUnit,
    certificate: Certificate,
    why_unfit: Callable[[], Optional[Reason]],
    why_changed: Callable[[], Optional[Reason]],
) -> UnitResult:
    """Steps 4 to 7 for one unit, unless its table is unfit by now or the rights of live were changed. Undo: automatic if somebody wrote in
    between; later by rollback.
    """
    described = describe_swap(run, unit, certificate)
    return exchange.carry_out(replace(described, prepare=lambda: why_unfit() or exchange.why_exactly(described, why_changed())))


def settle_swap(run: Run, unit: PlannedUnit, certificate: Optional[Certificate]) -> UnitResult:
    """Settle a unit of an interrupted run. Without a certificate it was never proved, so never swapped."""
    return exchange.settle(describe_swap(run, unit, certificate), Reason(Code.RUN_ENDED, "the run ended before its swap"))


def describe_swap(run: Run, unit: PlannedUnit, certificate: Optional[Certificate]) -> Exchange:
    if unit.join:
        return describe_join(run, unit, certificate, WORDS)
    expected = manifests.expect_new(certificate.files) if certificate else None
    return Exchange(
        run,
        unit,
        DirectoryExchange.of(run, unit, "ready", expected or {}),
        WORDS,
        expected,
        prepare=lambda: None,
        object_to=partial(object_to_copy, run, unit, certificate),
        cancel=partial(drop_ready, run, unit),
        give_up=partial(leave_ready, run, unit),
        was_given_up=partial(is_given_up, run, unit),
        describe=lambda there: describe_swap(run, there, certificate),
        certificate=certificate,
    )


def describe_join(run: Run, unit: PlannedUnit, certificate: Optional[Certificate], words: Words) -> Exchange:
    """Of files that a compaction joins, or a rollback with what it brings back; `certificate` is that of what comes in."""
    means = ConcatExchange(run, unit, certificate)
    return Exchange(
        run,
        unit,
        means,
        words,
        manifests.expect_new(certificate.files) if certificate else None,
        prepare=lambda: None,
        object_to=partial(object_to_copy, run, unit, certificate),
        cancel=means.give_up,
        give_up=means.give_up,
        describe=lambda there: describe_join(run, there, certificate, words),
        certificate=certificate,
    )


def object_to_copy(run: Run, unit: PlannedUnit, certificate: Optional[Certificate], entries: Iterable[FileInfo]) -> Optional[Reason]:
    """Why a copy must not come to live: it has lost blocks since it was proved. Raises like require_proved."""
    entries = tuple(entries)
    require_proved(run, unit, certificate, entries)
    lost = next((entry.name for entry in entries if entry.is_lost), None)
    return Reason(Code.LOST_BLOCKS, f"no DataNode has some blocks of {lost}, which is in its proved copy") if lost else None


def require_proved(run: Run, unit: PlannedUnit, certificate: Optional[Certificate], entries: Iterable[FileInfo]) -> None:
    """Raise NeedsInvestigation if the incoming files are not those that were proved: only Hivekeeper writes there."""
    if certificate is None or not manifests.holds_exactly(_incoming(unit, certificate), entries):
        require_own_directory(run)
        raise NeedsInvestigation(
            f"{unit.label}: {run.paths.unit('ready', unit.number)} does not hold what was proved",
            code=Code.NOT_AS_PROVED,
            state="live is untouched",
            next="find out who writes below the control directory",
        )


def _incoming(unit: PlannedUnit, certificate: Certificate) -> Mapping[str, int]:
    """What `ready` holds: what live gets, or the parts of a file that is joined there."""
    if unit.join is None or certificate.join is None:
        return certificate.files
    return unit.join.parts_aside(certificate.join)


def leave(run: Run, certificates: Mapping[int, Certificate], unit: PlannedUnit, why: Reason) -> UnitResult:
    """Leave a unit because the run has to end before its swap; its proved copy is given up, unless it has to be kept."""
    return exchange.end_unbegun(describe_swap(run, unit, certificates.get(unit.number)), Outcome.LEFT, why)


def drop_ready(run: Run, unit: PlannedUnit) -> Optional[Reason]:
    """Delete the proved copy of a unit whose old files are live. Returns why it stays: if some of them cannot be read, it may have the only
    copy of their rows. Then it goes to `kept`, out of which no command takes it, whatever becomes of live.
    """
    return _give_up(run, unit, unit.live, _delete_or_return)


def leave_ready(run: Run, unit: PlannedUnit) -> Optional[Reason]:
    """The same for a unit whose old files stay aside; the proved copy goes to the stage."""
    return _give_up(run, unit, run.paths.unit("retired", unit.number), return_to_stage)


def _give_up(run: Run, unit: PlannedUnit, old: str, let_go: Callable[[Run, PlannedUnit], None]) -> Optional[Reason]:
    """`old`: where its old files are. `let_go`: what becomes of a copy that need not be kept."""
    kept = run.paths.unit("kept", unit.number)
    if run.files.stat(kept) is None:
        # A recovery that was killed may have given it up.
        copies = (run.paths.unit("ready", unit.number), run.paths.given_up(unit.number))
        copy = next((place for place in copies if run.files.stat(place) is not None), None)
        if copy is None or not _may_be_only_copy(run, unit, old):
            let_go(run, unit)
            return None
        _keep(run, copy, kept)
    what = f"no DataNode had some blocks of its old files in {old}, or so many files came beside them that nobody can tell"
    return Reason(Code.LIVE_LOST_BLOCKS, f"{what}; their proved copy is kept in {kept}", LOST_BLOCKS_TO_DO)


def _may_be_only_copy(run: Run, unit: PlannedUnit, old: str) -> bool:
    """Whether old files cannot be read where they are, or a listing that ended early may not show it. Not where this user may not list."""
    most = run.most_looked_at([unit])
    try:
        seen = run.files.look([old], most)[old]
    except NoPermission:
        return False
    run.count_listed([unit], len(seen.entries))
    if find_unreadable(run, unit.manifest, seen.entries):
        return True
    is_unseen = len(seen.entries) >= most and bool(manifests.find_present(unit.manifest, seen.entries)[1])
    return is_unseen and find_other_directory(unit, seen.file_id) is None


def _keep(run: Run, copy: str, kept: str) -> None:
    if run.files.stat(run.paths.state("kept")) is None:
        run.files.make_directory(run.paths.state("kept"))
    run.files.rename_exact(copy, kept)


def _delete_or_return(run: Run, unit: PlannedUnit) -> None:
    """Delete a proved copy. One that may not be deleted, as a superuser's run has given it to the unit's owner, goes to the stage."""
    try:
        run.files.delete_tree(run.paths.unit("ready", unit.number))
    except NoPermission:
        return_to_stage(run, unit)


def return_to_stage(run: Run, unit: PlannedUnit) -> None:
    """Take the proved copy of a unit out of `ready`, so that it never comes to live. Deleted, it would look as if it had."""
    ready = run.paths.unit("ready", unit.number)
    if run.files.stat(ready) is None:
        require_own_directory(run)
        return
    if run.files.stat(run.paths.stages) is None:
        run.files.make_directory(run.paths.stages)
    run.files.rename_exact(ready, run.paths.given_up(unit.number))


def is_given_up(run: Run, unit: PlannedUnit) -> bool:
    return any(run.files.stat(place) is not None for place in (run.paths.given_up(unit.number), run.paths.unit("kept", unit.number)))
