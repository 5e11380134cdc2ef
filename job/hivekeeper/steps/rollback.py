"""Roll back one unit: its backup goes live again, the live files become the rollback's backup. An exchange out of `restoring`.

Deletes nothing.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Set, Union

from hivekeeper.model import Attributes, FileInfo
from hivekeeper.names import UnitNumber
from hivekeeper.plan import file_rights
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps import exchange
from hivekeeper.steps.checks import GONE, find_other_directory
from hivekeeper.steps.directory_exchange import DirectoryExchange
from hivekeeper.steps.exchange import Exchange, Words
from hivekeeper.steps.fitness import MOST_AGE_MS, FitnessOfTable
from hivekeeper.steps.leftovers import without_empty_staging
from hivekeeper.steps.observe import ask_where_allowed, find_existing
from hivekeeper.steps.outsiders import Outsiders
from hivekeeper.steps.ownership import keep_closed
from hivekeeper.steps.restore import Restored, why_other_rights
from hivekeeper.steps.run_directory import Run, require_lock, require_own_directory, return_backup
from hivekeeper.steps.swap import describe_join
from hivekeeper.steps.unit_loop import Hold, leave_unit, take_turns
from hivekeeper.steps.whereabouts import usable_until

log = logging.getLogger(__name__)

# For so many units one answer about rights serves.
UNITS_AT_ONCE = 50
WORDS = Words(Outcome.ROLLED_BACK, Outcome.GIVEN_UP, Outcome.NOT_ROLLED_BACK, after="rollback")


def roll_back_units(
    run: Run, units: Sequence[PlannedUnit], hold: Hold = nullcontext, restored: Optional[Restored] = None
) -> List[UnitResult]:
    """Roll back the units in order, under `hold`; if a newer run of a unit could not be undone, its older runs are not tried. `restored` is
    what joined units bring in.
    """
    stuck: Set[str] = set()
    made = restored or Restored()
    # Old files come back also to a table that is no longer fit for compaction, but not to another one of its name.
    fitness = FitnessOfTable(run.cluster, run.table, refuse=lambda _: None)
    closed = Closed(run, units)

    def roll_back(unit: PlannedUnit) -> UnitResult:
        if unit.name in stuck:
            return UnitResult(unit, WORDS.refused, why=Reason(Code.NEWER_RUN_STAYS, "a newer run of this unit could not be undone"))
        why = made.failed.get(unit.number)
        result = UnitResult(unit, WORDS.refused, why=why) if why else exchange.carry_out(_describe_first(run, unit, made, fitness, closed))
        log.info("run=%s unit=%s step=rollback done %s", run.directory, unit.log_field, result.for_log)
        if result.outcome is not Outcome.ROLLED_BACK or result.nested:
            stuck.add(unit.name)
        return result

    def leave(unit: PlannedUnit, why: Reason) -> UnitResult:
        if unit.join:
            describe_rollback(run, unit, made.certificates.get(unit.number)).cancel()
        return leave_unit(unit, why)

    return take_turns(run.cluster.stopping, units, roll_back, leave, hold)


def settle_rollback(run: Run, unit: PlannedUnit, certificate: Optional[Certificate]) -> UnitResult:
    """Settle one unit of an interrupted rollback."""
    why = Reason(Code.RUN_ENDED, "the run ended before anything was restored")
    return exchange.settle(describe_rollback(run, unit, certificate), why)


def describe_rollback(run: Run, unit: PlannedUnit, certificate: Optional[Certificate] = None) -> Exchange:
    """Of a joined unit, with the certificate of what it brings in."""
    return describe_join(run, unit, certificate, WORDS) if unit.join else _describe_directory(run, unit)


def _describe_first(run: Run, unit: PlannedUnit, made: Restored, fitness: FitnessOfTable, closed: Closed) -> Exchange:
    """For the run itself. A recovery brings no copy in, so there are no rights to compare, and looks for the table itself."""
    described, holder = describe_rollback(run, unit, made.certificates.get(unit.number)), made.holders.get(unit.number)
    prepare = partial(why_other_rights, run, holder) if holder else described.prepare

    def object_to(entries: Iterable[FileInfo]) -> Optional[Reason]:
        """Last before live leaves: what does not come back keeps its rights."""
        entries = tuple(entries)
        why = described.object_to(entries) or closed.object_to(unit, entries)
        if why is None:
            closed.close(unit)
        return why

    return replace(described, prepare=lambda: fitness.why_unfit() or closed.claim(described, prepare), object_to=object_to)


class Closed:
    """Which backups must be closed before they come back, as live is closed now: somebody has closed it since, and what came since was
    never open to more users. So the rows come back, and not the rights from before that.

    `units` are rolled back in this order; one answer serves many of them, for some seconds.
    """

    def __init__(self, run: Run, units: Iterable[PlannedUnit]) -> None:
        self._run = run
        self._units = [unit for unit in units if unit.join is None]
        self._places = {unit.number: place for place, unit in enumerate(self._units)}
        self._known: Dict[str, Attributes] = {}
        # Why those of others may not be told.
        self._denied: Dict[str, Reason] = {}
        self._wanted: Dict[UnitNumber, Attributes] = {}
        # As live was before the first step of a unit.
        self._before: Dict[str, Attributes] = {}
        self._doubtful: Set[UnitNumber] = set()
        self._until_ms = 0.0

    def claim(self, described: Exchange, claim: Callable[[], Optional[Reason]]) -> Optional[Reason]:
        """Claim a backup; returns why it was not claimed."""
        unit = described.unit
        wanted = None if unit.join else self._find(unit)
        if isinstance(wanted, Reason):
            return exchange.why_exactly(described, wanted)
        why = claim()
        if why is None and wanted is not None:
            self._wanted[unit.number] = wanted
        return why

    def object_to(self, unit: PlannedUnit, entries: Iterable[FileInfo]) -> Optional[Reason]:
        """Why a backup must not come back: it has a late file, perhaps from somebody who may not write to live any more."""
        late = manifests.judge(unit.expected, entries).late if unit.number in self._doubtful else ()
        if not late:
            return None
        what = f"{late[0].name} came late into the backup, perhaps from somebody who may not write to live any more"
        return Reason(Code.LATE_IN_BACKUP, what, "find out who has put it there, move it away, and roll back again")

    def close(self, unit: PlannedUnit) -> None:
        """Close a backup that was claimed, if it must be."""
        wanted = self._wanted.get(unit.number)
        if wanted is None:
            return
        keep_closed(self._run.files, unit, self._run.paths.unit("restoring", unit.number), wanted)

    def _find(self, unit: PlannedUnit) -> Union[Attributes, Reason, None]:
        """The rights that the backup must get, None if it may keep its own; or why that is not known. What is away, or has another one in
        its place, may be back a moment later.
        """
        place = self._run.backup_path(unit)
        if place not in self._known or self._run.cluster.clock.monotonic_ms() > self._until_ms:
            self._ask_from(unit)
        live, backup = self._known.get(unit.live), self._known.get(place)
        if live is None:
            return self._denied.get(unit.live, GONE)
        if backup is None:
            return self._denied.get(place, Reason(Code.BACKUP_GONE, "its backup is gone"))
        other = find_other_directory(unit, live.directory_id)
        if other:
            return other
        before = self._before.setdefault(unit.live, live)
        if Outsiders(self._run, unit, place).may_have_written(self._known, backup, before):
            self._doubtful.add(unit.number)
        wanted = file_rights.closed_since(backup, live, self._run.users_at(unit.live))
        # As an older run of the unit, which comes next, will find it.
        self._known[unit.live] = wanted or backup
        return wanted

    def _ask_from(self, unit: PlannedUnit) -> None:
        began_ms, start = self._run.cluster.clock.monotonic_ms(), self._places[unit.number]
        some = self._units[start : start + UNITS_AT_ONCE]
        pairs = [(one, self._run.backup_path(one)) for one in some]
        places = [place for one, backup in pairs for place in (one.live, backup, *Outsiders(self._run, one, backup).places)]
        # Of several steps of one unit, the first one has the directory that is live now.
        ids = {one.live: one.directory_id for one in reversed(some)}
        known, denied = ask_where_allowed(lambda asked: self._run.files.attributes(asked, ids), list(dict.fromkeys(places)))
        self._known, self._denied = dict(known), {place: Reason(Code.NO_PERMISSION, why) for place, why in denied}
        self._until_ms = usable_until(self._run.cluster.clock, began_ms, MOST_AGE_MS)


def _describe_directory(run: Run, unit: PlannedUnit) -> Exchange:
    expected = manifests.expect(unit.expected)
    return Exchange(
        run,
        unit,
        DirectoryExchange.of(run, unit, "restoring", expected),
        WORDS,
        expected,
        prepare=partial(claim_backup, run, unit),
        object_to=partial(object_to_backup, run, unit),
        cancel=partial(give_back, run, unit),
        give_up=partial(give_back, run, unit),
        was_given_up=lambda: run.files.stat(run.backup_path(unit)) is not None,
        describe=partial(_describe_directory, run),
    )


def claim_backup(run: Run, unit: PlannedUnit) -> Optional[Reason]:
    """Move the backup below the run's own directory, so that the run can no longer act on it once taken over. Undo: give_back."""
    require_lock(run)
    run.files.rename_exact(run.backup_path(unit), run.paths.unit("restoring", unit.number))
    return None


def object_to_backup(run: Run, unit: PlannedUnit, entries: Iterable[FileInfo]) -> Optional[Reason]:
    """Why a backup differs from what the undone run took out of live; a late file in it goes live with it, and so does Impala's empty
    staging directory.
    """
    return manifests.judge(unit.expected, without_empty_staging(run.files, tuple(entries))).why


def give_back(run: Run, unit: PlannedUnit) -> None:
    """Return the backup to its place, if it was claimed."""
    restoring = run.paths.unit("restoring", unit.number)
    if run.files.stat(restoring) is None:
        require_own_directory(run)
        return
    return_backup(run, unit, restoring)


def find_passed(run: Run, units: Sequence[PlannedUnit]) -> Set[int]:
    """For recovery: a step is done if a later one of the same unit was begun, whatever live holds now."""
    # Joins of one rollback do not depend on one another.
    units = [unit for unit in units if unit.join is None]
    places = {unit.number: [run.paths.unit(state, unit.number) for state in ("restoring", "retired")] for unit in units}
    there = find_existing(run.files, [place for pair in places.values() for place in pair])
    newest_begun = {unit.name: unit.number for unit in units if not there.isdisjoint(places[unit.number])}
    return {unit.number for unit in units if unit.number < newest_begun.get(unit.name, 0)}
