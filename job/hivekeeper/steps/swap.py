"""Swap one unit: its proved copy goes live, its old files become the backup. An exchange (steps/exchange.py) out of `ready`.

Deletes only the proved copy of a unit whose old files are live; the stage goes when the log has the run.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Callable, Iterable, Mapping, Optional

from hivekeeper.errors import NeedsInvestigation
from hivekeeper.model import FileInfo
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps import exchange
from hivekeeper.steps.concat_exchange import ConcatExchange
from hivekeeper.steps.directory_exchange import DirectoryExchange
from hivekeeper.steps.exchange import Exchange, Words
from hivekeeper.steps.run_directory import Run, require_own_directory
from hivekeeper.steps.unit_loop import leave_unit

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
        object_to=partial(require_proved, run, unit, certificate),
        cancel=partial(drop_ready, run, unit),
        give_up=partial(return_to_stage, run, unit),
        was_given_up=partial(is_in_stage, run, unit),
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
        object_to=partial(require_proved, run, unit, certificate),
        cancel=means.give_up,
        give_up=means.give_up,
        describe=lambda there: describe_join(run, there, certificate, words),
        certificate=certificate,
    )


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
    """Leave a unit because the run has to end before its swap; its proved copy is given up."""
    describe_swap(run, unit, certificates.get(unit.number)).cancel()
    return leave_unit(unit, why)


def drop_ready(run: Run, unit: PlannedUnit) -> None:
    """Delete the proved copy of a unit whose old files are live."""
    run.files.delete_tree(run.paths.unit("ready", unit.number))


def return_to_stage(run: Run, unit: PlannedUnit) -> None:
    """Take the proved copy of a unit out of `ready`, so that it never comes to live. Deleted, it would look as if it had."""
    ready = run.paths.unit("ready", unit.number)
    if run.files.stat(ready) is None:
        require_own_directory(run)
        return
    if run.files.stat(run.paths.stages) is None:
        run.files.make_directory(run.paths.stages)
    run.files.rename_exact(ready, run.paths.given_up(unit.number))


def is_in_stage(run: Run, unit: PlannedUnit) -> bool:
    return run.files.stat(run.paths.given_up(unit.number)) is not None
