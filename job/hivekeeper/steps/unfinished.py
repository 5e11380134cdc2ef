"""The errors raised when a unit can be neither finished nor undone."""

from __future__ import annotations

from dataclasses import replace

from hivekeeper import quoting
from hivekeeper.errors import NeedsInvestigation, Unusable
from hivekeeper.model import Snapshot
from hivekeeper.ports import FilesError, FilesUnavailable, NoPermission
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.checks import why_too_many
from hivekeeper.steps.run_directory import Run

MOST_TRIES = 4
MAY_BE_ABSENT = "no row is lost, but readers may find it absent until the next run finishes or undoes what was begun"
UNIT_STATES = ("ready", "retired", "restoring", "held", "discarding")


def require_answers(error: FilesError, tries: int) -> None:
    """Re-raise the error if retries have not helped because HDFS does not answer: there is nothing for an operator to decide."""
    if tries >= MOST_TRIES and isinstance(error, FilesUnavailable):
        raise error


def interrupted(run: Run, unit: PlannedUnit, error: FilesUnavailable, begun: bool) -> Unusable:
    """The error of a unit whose directories may be between two renames while HDFS is unavailable."""
    return Unusable(
        f"{unit.label}: {error}",
        code=Code.EXCHANGE_INTERRUPTED,
        state=MAY_BE_ABSENT if begun else "live is untouched; the next run undoes what was begun",
        next=f"fix the cause, then run again at once or: hivekeeper recover --table {quoting.shell(run.table.full_name)}",
    )


def denied(run: Run, unit: PlannedUnit, error: NoPermission) -> NeedsInvestigation:
    """The error of a unit whose directories may be between two renames when the rights on them end."""
    return NeedsInvestigation(
        f"{unit.label}: its exchange was begun, and can be neither finished nor undone: {error}",
        code=Code.UNSETTLED,
        state=MAY_BE_ABSENT,
        next=f"give the user of the runs its rights back, then run: hivekeeper recover --table {quoting.shell(run.table.full_name)}",
    )


def look_whole(run: Run, unit: PlannedUnit, directory: str) -> Snapshot:
    """Raises NeedsInvestigation if so much has come to it that a listing may be only a part."""
    seen = run.files.look([directory], run.most_listed([unit]))[directory]
    why = why_too_many(run, unit, len(seen.entries))
    if why:
        raise too_many(run, unit, replace(why, what=f"{directory}: {why.what}"))
    return seen


def too_many(run: Run, unit: PlannedUnit, why: Reason) -> NeedsInvestigation:
    """The error of a unit of which a listing may be only a part."""
    return needs_investigation(
        run,
        unit,
        why.code,
        why.what,
        "move away what does not belong there, or raise max_files and the driver's memory outside the JVM; then run: "
        f"hivekeeper recover --table {quoting.shell(run.table.full_name)}",
    )


def needs_investigation(run: Run, unit: PlannedUnit, code: Code, why: str, next: str = "") -> NeedsInvestigation:
    """The error of a unit that cannot be settled; it lists the directories that exist."""
    states = [run.paths.unit(state, unit.number) for state in UNIT_STATES]
    places = [unit.live, *states, run.paths.state("recreated")]
    seen = run.files.look(places, 0)
    there = [place for place in places if seen[place].exists]
    return NeedsInvestigation(
        f"{unit.label}: {why}",
        code=code,
        state="these directories are there: " + "; ".join(there),
        next=next or f"compare them with {run.paths.plan} (docs/on-disk.md says what each one holds); nothing was deleted",
    )
