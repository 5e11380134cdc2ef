"""Discard backups: each is renamed below the run's own directory, compared with its manifest there, and only then deleted.

Deletes only what exactly matches a manifest; additional files go to live, a backup that differs goes back. After a kill, only what is
deleted in part goes on being deleted.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Callable, Container, ContextManager, Dict, FrozenSet, List, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import Snapshot
from hivekeeper.names import RunId
from hivekeeper.plan.late_files import Stretch, as_cut
from hivekeeper.plan.retention import why_needed
from hivekeeper.ports import FilesError, ForeignTrash, NoPermission, NoSpace
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests, store
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.history import UnitKey
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.manifests import FileKey
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import TRASH, PlannedUnit, RunPlan
from hivekeeper.steps.arrivals import move_late
from hivekeeper.steps.checks import why_too_many
from hivekeeper.steps.cut import NOT_TO_TRASH, cut_off, is_begun
from hivekeeper.steps.grounds import Grounds
from hivekeeper.steps.leftovers import without_empty_staging
from hivekeeper.steps.lost_blocks import LostBlocks
from hivekeeper.steps.run_directory import Run, fenced, require_lock, return_backup
from hivekeeper.steps.unfinished import MOST_TRIES, needs_investigation, require_answers
from hivekeeper.steps.unit_loop import Act, leave_unit, take_turns

log = logging.getLogger(__name__)

# How soon a pause between two units notices that the command is asked to end.
LONGEST_REST_MS = 1000

NO_TRASH = "the trash is switched off on this cluster (fs.trash.interval); set discard: delete to delete at once"
NOT_REACHED = Reason(Code.RUN_ENDED, "the cleanup ended before this backup went; the next one decides anew")
LATE_TO_DO = "see who made it; move it to where its rows are missed, or away if they were overwritten on purpose; then run cleanup again"
FULL_TRASH = "free space in the trash, or raise the quota; then run cleanup again, or set discard: delete to delete at once"
NOT_OUR_TRASH = "find out who made that, and have it moved away; then run cleanup again, or set discard: delete to delete at once"


def discard_units(
    run: Run,
    plan: RunPlan,
    grounds: Grounds,
    stretches: Mapping[UnitKey, Stretch],
    inside: Mapping[str, Inside],
    pause_ms: int = 0,
) -> List[UnitResult]:
    """Discard all units of a cleanup, with a pause after each. A unit that is left, or cannot be discarded, keeps its backup.

    `grounds` are asked before each of them. `stretches` has those of all backups that go, `inside` by name the files that have old ones
    inside.
    """
    discard = _Discarder(run, plan, grounds, stretches, LostBlocks(run, inside)).discard

    def discard_and_rest(unit: PlannedUnit) -> UnitResult:
        result = discard(unit)
        if unit is not plan.units[-1]:
            _rest(run, pause_ms)
        return result

    def resume() -> ContextManager[object]:
        grounds.resume()
        return nullcontext()

    return take_turns(run.cluster.stopping, plan.units, discard_and_rest, leave_unit, hold=resume)


def _rest(run: Run, pause_ms: int) -> None:
    """Wait, but not longer than until the command is asked to end."""
    clock, stopping = run.cluster.clock, run.cluster.stopping
    until_ms = clock.monotonic_ms() + pause_ms
    left_ms: float = pause_ms
    while left_ms > 0 and not stopping.is_asked():
        clock.sleep_ms(min(LONGEST_REST_MS, left_ms))
        left_ms = until_ms - clock.monotonic_ms()


def ender(run: Run, plan: RunPlan, grounds: Grounds, is_former: bool = False) -> Act:
    """The function that ends what an interrupted cleanup had begun with a unit. Call it in the order of the plan.

    A backup that is deleted in part goes; one that is whole stays. Since the cleanup chose it, its run may have been pinned, the rules
    changed, or the table dropped: the next cleanup judges it by what is in force then. `is_former`: the plan is about a table that lay here
    before; its files are another one's now, and are not cut. Raises what `grounds` raise: nothing is ended then.
    """
    _note_former_places(run, plan)
    grounds.begin(_places_of(plan))
    grounds.directories()
    return partial(_end, run, _find_holders(plan), grounds, not (grounds.is_gone or is_former), _find_inside(run))


def _places_of(plan: RunPlan) -> List[str]:
    """Of the backups, below the control directory."""
    return [unit.backup.place for unit in plan.units if unit.backup]


def _find_inside(run: Run) -> FrozenSet[str]:
    """The backups that lie in files, according to the log; in a plan, those of a former table have none."""
    return frozenset(effect.place for effect in store.read_history(run.cluster, run.control).joined)


def _end(
    run: Run, holders: Mapping[str, PlannedUnit], grounds: Grounds, cuts: bool, inside: Container[str], unit: PlannedUnit
) -> UnitResult:
    if unit.inside:
        why = _why_held(run, unit, unit.inside, holders.get(unit.inside.file))
        if why:
            return leave_unit(unit, why)
        lost = LostBlocks(run, {unit.inside.file: unit.inside})
        return _cut(run, unit, None if cuts and is_begun(run, unit) else leave_unit(unit, NOT_REACHED), lost)
    if unit.backup and unit.backup.place in inside:
        return leave_unit(unit, NOT_REACHED)
    return _insist(run, unit, partial(_end_whole, run, grounds, unit))


def _end_whole(run: Run, grounds: Grounds, unit: PlannedUnit) -> UnitResult:
    """End the deletion of a backup that is not inside a file; one that is neither in part nor whole is deleted, or in the trash.

    HDFS deletes a directory completely or not at all, local files one by one. The run that was about to delete it finds nothing at its path
    any more: that leads through the directory that was taken over.
    """
    source, held, doomed = _places(run, unit)
    seen = _look_for(run, unit)
    if seen[doomed].exists:
        why = grounds.why_kept(_place_of(unit))
        if why:
            return _give_back(run, unit, why)
        if not _is_whole(run, unit, doomed):
            run.files.delete_tree(doomed)
            return UnitResult(unit, Outcome.DISCARDED)
        return_backup(run, unit, doomed)
    elif seen[held].exists:
        return_backup(run, unit, held)
    elif not seen[source].exists:
        return UnitResult(unit, Outcome.DISCARDED)
    return leave_unit(unit, NOT_REACHED)


def _is_whole(run: Run, unit: PlannedUnit, place: str) -> bool:
    """Whether a backup that was found to match its manifest still does."""
    entries = run.files.look([place], run.most_listed([unit]))[place].entries
    return manifests.judge(unit.manifest, without_empty_staging(run.files, entries)).seen is not manifests.Seen.SPOILED


def _find_holders(plan: RunPlan) -> Mapping[str, PlannedUnit]:
    """The units whose backups hold files that runs have joined, by the names of these files."""
    whole = (unit for unit in plan.units if unit.backup and not unit.inside)
    return {file.name: unit for unit in whole for file in unit.manifest if names.may_be_joined(file.name)}


@dataclass(frozen=True)
class How:
    """How a backup is discarded; `why_stays`: it is not, but late files of it go to live, or are told. `lost` is asked whether live can be
    read.
    """

    to_trash: bool
    lost: LostBlocks
    why_stays: Optional[Reason] = None


class _Discarder:
    """Discards the units of a cleanup, one after the other.

    `holders` are the units whose backups hold joined files; `kept` has, by stretch, the oldest run so far whose backup could not be
    discarded; `cut` the joined files that are shorter now than the plan says.
    """

    def __init__(self, run: Run, plan: RunPlan, grounds: Grounds, stretches: Mapping[UnitKey, Stretch], lost: LostBlocks) -> None:
        self.run, self.plan, self.grounds, self.stretches, self.lost = run, plan, grounds, stretches, lost
        grounds.begin(_places_of(plan))
        self.holders = _find_holders(plan)
        self.kept: Dict[Stretch, RunId] = {}
        self.cut: Dict[FileKey, Inside] = {}
        _note_former_places(run, plan)

    def discard(self, unit: PlannedUnit) -> UnitResult:
        backup = _place_of(unit)
        why = self.grounds.why_kept(backup)
        if unit.inside:
            holder = self.holders.get(unit.inside.file)
            why = why or (None if holder else self.grounds.why_uncut)
            why = why or self._why_needed(unit) or _why_held(self.run, unit, unit.inside, holder)
        result = UnitResult(unit, Outcome.KEPT, why=why) if why else self._discard_one(unit)
        if unit.backup and result.outcome is Outcome.KEPT:
            self.kept.setdefault(self.stretches[unit.backup.key], unit.backup.run)
        log.info("run=%s unit=%s step=discard done backup=%s %s", self.plan.run, unit.log_field, backup, result.for_log)
        return result

    def _why_needed(self, unit: PlannedUnit) -> Optional[Reason]:
        """Why a backup stays for the sake of an older one that does: a rollback to that one undoes this run first."""
        older = self.kept.get(self.stretches[unit.backup.key]) if unit.backup else None
        return why_needed(older) if older else None

    def _discard_one(self, unit: PlannedUnit) -> UnitResult:
        run, grounds, to_trash = self.run, self.grounds, self.plan.discard == TRASH
        if not unit.inside:
            how, now = How(to_trash, self.lost, self._why_needed(unit)), replace(unit, expected=as_cut(unit.expected, self.cut))
            result = _insist(run, unit, *(partial(act, run, grounds, now, how) for act in (_discard_whole, _go_on)))
            return replace(result, planned=unit)
        # The files of a table that is gone are not ours to change: they keep the old bytes.
        if grounds.is_gone:
            return UnitResult(unit, Outcome.DISCARDED)
        result = _cut(run, unit, UnitResult(unit, Outcome.KEPT, why=NOT_TO_TRASH) if to_trash else None, self.lost)
        if result.outcome is Outcome.DISCARDED:
            self.cut[manifests.key_of(unit.inside.file, unit.inside.length)] = unit.inside
        return result


def _place_of(unit: PlannedUnit) -> str:
    return unit.backup.place if unit.backup else ""


def _note_former_places(run: Run, plan: RunPlan) -> None:
    """Where the files were that have old ones inside: they may have to be looked for."""
    run.whereabouts.former.update({unit.inside.file_id: names.join(unit.live, unit.inside.file) for unit in plan.units if unit.inside})


def _cut(run: Run, unit: PlannedUnit, instead: Optional[UnitResult], lost: LostBlocks, tries: int = 0) -> UnitResult:
    """Discard a backup that lies in a file of live; see cut_off."""
    try:
        return cut_off(run, unit, instead, lost)
    except FilesError as error:
        require_answers(error, tries + 1)
        if tries + 1 >= MOST_TRIES:
            return UnitResult(unit, Outcome.KEPT, why=Reason(Code.CALL_FAILED, str(error)))
        return _cut(run, unit, instead, lost, tries + 1)


def _why_held(run: Run, unit: PlannedUnit, inside: Inside, holder: Optional[PlannedUnit]) -> Optional[Reason]:
    """Why old files inside a file stay: it lies in another backup, which this cleanup was to discard before, and did not."""

    def is_in(directory: str) -> bool:
        found = run.files.stat(names.join(directory, inside.file))
        return found is not None and found.file_id == inside.file_id

    if holder is None or holder.backup is None or is_in(unit.live) or not is_in(run.backup_path(holder)):
        return None
    return Reason(Code.IN_OTHER_BACKUP, f"the file that has it inside is in the backup of run {holder.backup.run}")


def _places(run: Run, unit: PlannedUnit) -> Tuple[str, str, str]:
    """Where a backup may be: in its place, held, or proved superfluous."""
    return run.backup_path(unit), run.paths.unit("held", unit.number), run.paths.unit("discarding", unit.number)


def _insist(run: Run, unit: PlannedUnit, act: Callable[[], UnitResult], again: Optional[Callable[[], UnitResult]] = None) -> UnitResult:
    """Act on a unit; if a call fails, act `again`, which first looks how far that went. If the user may not, the backup stays."""
    cause = ""
    for tries in range(1, MOST_TRIES + 1):
        try:
            return act()
        except NoPermission as error:
            return _give_back(run, unit, Reason(Code.NO_PERMISSION, str(error)))
        except FilesError as error:
            require_answers(error, tries)
            act, cause = again or act, str(error)
    raise needs_investigation(run, unit, Code.RENAME_KEEPS_FAILING, f"a rename keeps failing ({cause})")


def _discard_whole(run: Run, grounds: Grounds, unit: PlannedUnit, how: How) -> UnitResult:
    """Discard a backup that is at its place."""
    require_lock(run)
    source, held, _ = _places(run, unit)
    run.files.rename_exact(source, held)
    return _discard_held(run, grounds, unit, how)


def _look_for(run: Run, unit: PlannedUnit) -> Mapping[str, Snapshot]:
    """Which of the unit's places exist; raises if the run was taken over."""
    seen = run.files.look([run.paths.top, *_places(run, unit)], 0)
    if not seen[run.paths.top].exists:
        raise fenced(run)
    require_lock(run)
    return seen


def _give_back(run: Run, unit: PlannedUnit, why: Reason) -> UnitResult:
    """Put back a backup that must not be deleted, or that we are not allowed to delete; one that is partly deleted needs investigation."""
    _, held, doomed = _places(run, unit)
    seen = run.files.look([held, doomed], 0)
    if seen[doomed].exists and not _is_whole(run, unit, doomed):
        raise needs_investigation(
            run, unit, Code.BACKUP_HALF_DELETED, f"a part of its backup was deleted, the rest could not be ({why.what})"
        )
    for place in (held, doomed):
        if seen[place].exists:
            return_backup(run, unit, place)
    return UnitResult(unit, Outcome.KEPT, why=why)


def _go_on(run: Run, grounds: Grounds, unit: PlannedUnit, how: How) -> UnitResult:
    """Continue from where the unit's backup is: a call failed, and perhaps was done."""
    source, held, doomed = _places(run, unit)
    seen = _look_for(run, unit)
    if seen[doomed].exists:
        # To wait for a NameNode takes its time, too.
        why = grounds.why_kept(_place_of(unit))
        if why:
            return _give_back(run, unit, why)
        run.files.delete_tree(doomed)
        return UnitResult(unit, Outcome.DISCARDED)
    if seen[source].exists:
        run.files.rename_exact(source, held)
    elif not seen[held].exists:
        return UnitResult(unit, Outcome.DISCARDED)
    return _discard_held(run, grounds, unit, how)


def _discard_held(run: Run, grounds: Grounds, unit: PlannedUnit, how: How) -> UnitResult:
    source, held, doomed = _places(run, unit)
    why, late = find_objection(run, unit, held, takes_late=grounds.is_at(unit.unit, unit.live))
    # To move and to compare a hundred thousand files takes its time.
    why = why or how.why_stays or grounds.why_kept(_place_of(unit)) or _why_only_copy(how.lost, unit)
    if not why and how.to_trash:
        why = _move_to_trash(run, unit, held)
    if why:
        run.files.rename_exact(held, source)
        return UnitResult(unit, Outcome.KEPT, late_files=late, why=why)
    if not how.to_trash:
        run.files.rename_exact(held, doomed)
        run.files.delete_tree(doomed)
    return UnitResult(unit, Outcome.DISCARDED, late_files=late)


def _why_only_copy(lost: LostBlocks, unit: PlannedUnit) -> Optional[Reason]:
    """Why a backup stays although the rules let it go: what runs have put into live in its place cannot be read."""
    if not manifests.tells(manifests.expect(unit.expected)):
        return None
    return lost.why_only_copy(unit, unit.expected, unit.live)


def _move_to_trash(run: Run, unit: PlannedUnit, held: str) -> Optional[Reason]:
    """Why it could not be moved there, and is where it was; None if it is in the trash."""
    try:
        return None if run.files.move_to_trash(held) else Reason(Code.TRASH_OFF, NO_TRASH)
    except ForeignTrash as error:
        return Reason(error.code, str(error), NOT_OUR_TRASH, "its old files stay in the backup")
    except NoSpace as error:
        # On another file system it may have gone in parts.
        if not _is_whole(run, unit, held):
            raise
        return Reason(Code.TRASH_FULL, str(error), FULL_TRASH, "its old files stay in the backup")


def find_objection(run: Run, unit: PlannedUnit, held: str, takes_late: bool) -> Tuple[Optional[Reason], Tuple[str, ...]]:
    """Why a backup must not be deleted, None if it may; and the late files, which are moved to live first, if `takes_late`: readers look
    there.

    Open files are checked before taking the listing that is compared: a file closed in between then shows its new
    length. Whoever could write to the partition may have put millions of files into it: such a backup stays as it is.
    """
    expected = manifests.expect(unit.expected) if takes_late else {}
    late: Tuple[str, ...] = ()
    seen, crowded = _look_at_held(run, unit, held)
    if manifests.tells(expected) and not crowded and unit.lay_in(seen.file_id, seen.entries):
        late = move_late(run, unit, manifests.find_late(unit.manifest, seen.entries), expected, run.backup_path(unit)).moved
    still_open = [entry.name for entry in seen.entries if entry.is_open]
    if still_open:
        return Reason(Code.OPEN_FILE, f"a writer still has {still_open[0]} open in it"), late
    seen, crowded = _look_at_held(run, unit, held)
    if crowded:
        return crowded, late
    # This backup could not go back to live, which was replaced first.
    judged = manifests.judge(unit.manifest, without_empty_staging(run.files, seen.entries))
    if judged.seen is manifests.Seen.LATE:
        why_not = "that was overwritten or closed to writers since, is another table's, would show it to more users, or it may not be moved"
        what = f"{judged.late[0].name} came into it late and is not in live: {why_not}"
        return Reason(Code.LATE_IN_BACKUP, what, LATE_TO_DO), late
    return (Reason(Code.BACKUP_CHANGED, judged.why.what) if judged.why else None), late


def _look_at_held(run: Run, unit: PlannedUnit, held: str) -> Tuple[Snapshot, Optional[Reason]]:
    """The listing of a backup, and why it is not used if it may be only a part."""
    seen = run.files.look([held], run.most_listed([unit]))[held]
    why = why_too_many(run, unit, len(seen.entries))
    return seen, why.advising("move away what does not belong there, or raise max_files") if why else None
