"""Finish or undo what earlier runs left unfinished.

Deletes only stages, proved copies whose old files are live and can be read, and the rest of backups that a cleanup has deleted in part;
anything it does not understand is left alone and reported.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from functools import partial
from typing import Callable, Collection, Container, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.errors import NeedsInvestigation, Stopped
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths, RunId, RunPaths, UnitNumber
from hivekeeper.plan import listings, recover, renamed
from hivekeeper.plan.ownership import OWNER_AND_GROUP
from hivekeeper.ports import Cluster, Lock
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.manifests import key_of
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import BACKUP, CLEANUP, COMPACT_SWAP, ROLLBACK, Certificate, PlannedUnit, RunPlan, relative
from hivekeeper.steps import (
    backup_tables,
    cleanup,
    exchange,
    finish,
    identity,
    left_behind,
    ownership,
    places,
    removed,
    rollback,
    rows_away,
    run_directory,
    swap,
)
from hivekeeper.steps.attributes import may_list_now
from hivekeeper.steps.exchange import Exchange
from hivekeeper.steps.grounds import Directories, Grounds
from hivekeeper.steps.observe import find_above, find_existing, find_lives, find_overlap, look_at, qualify_all, refused_if_too_many
from hivekeeper.steps.run_directory import Returned, Run
from hivekeeper.steps.whereabouts import Whereabouts

log = logging.getLogger(__name__)

Settled = Tuple[str, Tuple[UnitResult, ...]]
Settle = Callable[[PlannedUnit], UnitResult]

# What was found of a run, and the run whose log entry is to say so; None if it needs no entry.
Found = Tuple[Optional[Run], Tuple[UnitResult, ...]]
SettleRun = Callable[[Run, RunPlan], Found]

EXCHANGES = (COMPACT_SWAP, ROLLBACK)


def settle_runs(
    cluster: Cluster, table: Table, control: ControlPaths, lock: Lock, by: RunId, settle: Optional[SettleRun] = None, every: bool = False
) -> Iterator[Settled]:
    """Fence and finish every unfinished run, oldest first, and tidy those killed at the very end; with `every`, all that are finished, and
    whatever was joined by mistake is copied, however large it is.

    Yields (run, results of its units) for each run that had a plan, just before it gets its log entry: from then on no later command tells
    of it, whatever becomes of this one. `settle`: instead of settle_run, for a table that is gone. Raises NeedsInvestigation at the end if
    the records of the table are elsewhere (`left_behind.refuse_left_behind`).
    """
    unfinished = run_directory.find_unfinished(cluster, control)
    is_interrupted = bool(unfinished)
    if unfinished:
        refuse_overlap(cluster, table, control, is_gone=settle is not None)
        unfinished = run_directory.fence(cluster, control, unfinished)
    for directory in unfinished:
        paths = control.run(directory)
        plan = store.read_plan(cluster, table, paths)
        if plan is None:
            if not finish.remove_unplanned(cluster.files, paths):
                raise _unknown_files(table, paths, f"{paths.top}, which has no plan")
            continue
        run_directory.require_name(table)
        whereabouts = Whereabouts(most_ms=math.inf) if every else Whereabouts()
        returned = Returned(is_unlimited=every)
        # With the entries of the runs that were settled just before.
        history = store.read_history(cluster, control)
        run = Run(cluster, table, control, paths, lock, returned=returned, whereabouts=whereabouts, history=history)
        about, units = (settle or settle_run)(run, plan)
        yield plan.run, units
        if about is not None:
            finish.record_run(_share_entry(about, table, plan), _as_ended(plan), units, {}, by)
    # While a run was unfinished, nobody has removed the directory of another one.
    history = finish.tidy_up(cluster, table, control, is_gone=settle is not None, every=every or is_interrupted)
    if settle is None:
        # Not before: until it is settled, the table's first run has no entry.
        left_behind.refuse_left_behind(cluster, table, cluster.trusted_owners, history)


def _share_entry(run: Run, table: Table, plan: RunPlan) -> Run:
    """Open the entry of a run that was settled to the table's group, if it may read the log, and the directories of the run's units as they
    are now: one may be closed since, and the entry tells of files that came to it. If it may not, the log is closed to it, too. Live is
    not listed any more: whatever is found there must still be told.
    """
    files, control = run.files, run.control
    log_group = ownership.find_log_group(files.look([control.top])[control.top], control.log)
    if log_group is None:
        return run
    units = plan.units if plan.operation in EXCHANGES else ()
    lives = dict.fromkeys(unit.live for unit in units)

    def group_reads(group: str) -> bool:
        return group == log_group and may_list_now(files, list(lives), group)

    above = find_above(table, (planned.unit for planned in units))
    rights, _ = ownership.find_rights(files, table, above, group_reads, run.cluster.trusted_owners)
    if run.table is table and rights.file_mode == OWNER_AND_GROUP:
        return replace(run, rights=replace(ownership.CLOSED, file_mode=OWNER_AND_GROUP))
    ownership.close_log(files, control)
    return run


def _as_ended(plan: RunPlan) -> RunPlan:
    """What the log is told of. A cleanup was only ended: its records go with the next one, and so does what its run key was given for."""
    return replace(plan, records=(), run_key="") if plan.operation == CLEANUP else plan


def refuse_overlap(cluster: Cluster, table: Table, control: ControlPaths, is_gone: bool) -> None:
    """Raise NeedsInvestigation if another table has files in this table's directory: which ones are to be moved is not certain any more."""
    why = find_overlap(cluster, table, control, is_gone)
    if why:
        raise NeedsInvestigation(
            f"{table.full_name}: a run was interrupted, and {why.what}",
            code=Code.SHARED_SINCE,
            state="nothing was touched; readers may miss a partition until the interrupted run is settled",
            next=f"{why.next}, then run: hivekeeper recover --table {quoting.shell(table.full_name)}",
        )


def settle_run(run: Run, plan: RunPlan) -> Found:
    """Finish or undo one run that was taken over.

    The lock is checked first: a control directory that somebody put at this place since its owner was checked does not hold it.
    """
    run_directory.require_lock(run)
    refuse_strangers(run, plan)
    refuse_unlogged(run, plan)
    # Raises if the plan is another table's.
    may_be_own, is_owned_alike = _may_be_of_this_table(run, plan), plan.table.owner == run.table.owner
    if plan.operation == BACKUP:
        # A record that is not in the log was never reported to anybody.
        if backup_tables.drop_table(run, plan.backup_table):
            run.files.delete_tree(run.paths.top)
        return None, ()
    is_own = may_be_own and (is_owned_alike or plan.table.full_name == run.table.full_name)
    if not (may_be_own and is_owned_alike) and plan.operation in EXCHANGES and rows_away.may_miss_rows(run.files, [(run.paths, plan)]):
        identity.refuse_renamed(run.cluster, run.table, run.control, plan)
        if may_be_own:
            raise _of_other_owner(run, plan)
    if not is_own:
        return replace(run, table=plan.table), _settle_of_former(run, plan)
    refuse_foreign_places(run, plan)
    _look_for_taken_out(run, plan)
    settle = _find_settler(run, plan)
    if plan.operation not in EXCHANGES:
        return run, tuple(_settle_units(run, plan, settle))
    units = _settle_units(run, plan, _leave_dropped(run, plan, settle))
    finish.finish_units(run, units)
    confirmed, unasked = finish.confirm_units(run, units)
    if unasked:
        raise unasked
    return run, tuple(confirmed)


def settle_orphaned(grounds: Grounds, run: Run, plan: RunPlan) -> Found:
    """End what a cleanup of a table that is gone had begun.

    Raises NeedsInvestigation for any other run: of these only the table's own recovery may move files. Its plan may have been hidden from
    who looked before.
    """
    run_directory.require_lock(run)
    if plan.operation != CLEANUP:
        raise NeedsInvestigation(
            f"{run.table.full_name}: the interrupted run {plan.run} of a table that is gone is a {plan.operation}",
            code=Code.UNKNOWN_FILES,
            state=f"no file in {run.paths.top} was touched; rows that readers miss may be there alone",
            next="find out what became of the table, and who had hidden the plan of this run when it was looked for",
        )
    refuse_strangers(run, plan)
    refuse_unlogged(run, plan)
    units = _settle_units(run, plan, cleanup.ender(run, plan, grounds))
    return replace(run, table=plan.table), tuple(units)


def _of_other_owner(run: Run, plan: RunPlan) -> NeedsInvestigation:
    was, now = (table.owner or "nobody" for table in (plan.table, run.table))
    return NeedsInvestigation(
        f"{run.table.full_name}: its run {plan.run} was interrupted while it belonged to {was}, and it belongs to {now} now: it may be "
        "another table that was created in the same second, and has got its name or place since",
        code=Code.OTHER_TABLE,
        state=f"nothing was touched; rows that readers miss may be in {run.paths.top} alone",
        next="if it is the same table, give it back to its former owner for a moment (ALTER TABLE … SET OWNER), then: "
        f"hivekeeper recover --table {quoting.shell(run.table.full_name)}; if not: see docs/runbook.md, the table changed meanwhile",
    )


def _may_be_of_this_table(run: Run, plan: RunPlan) -> bool:
    """Whether the plan is about this table, as far as another owner does not speak against it. Two tables can be created in one second, so
    under another name there must be more evidence: the same definition, or what may have become of it, and no unit whose live holds files
    of which the plan knows none.

    A cleanup needs no such files: of live, its recovery changes only a file of which the log says that a run joined it.
    """
    if not identity.is_same(run.cluster, run.table, plan.table.full_name, plan.table.create_time):
        return False
    if plan.table.full_name == run.table.full_name:
        return True
    return renamed.may_have_become(plan.table, run.table) and (plan.operation not in EXCHANGES or _knows_live(run, plan))


def _knows_live(run: Run, plan: RunPlan) -> bool:
    """Whether live is away, is the directory that was planned for, or holds a file of the manifest or of the proof, for each unit: an
    empty one that nobody knows may be that of another table of the same second. A partition's that is younger than the run was made again.
    """
    certificates, own = store.read_certificates(run.cluster, run.paths, plan), run.files.stat(run.paths.top)
    most = run.most_listed(plan.units)
    with refused_if_too_many(run.table, most):
        seen = look_at(run.files.look, [unit.live for unit in plan.units], most)
    for unit in plan.units:
        there = seen[unit.live]
        if not there.exists or (unit.directory_id and unit.directory_id == there.file_id):
            continue
        files = listings.data_files(there)
        if unit.name and not files and own is not None and 0 < own.file_id < there.file_id:
            continue
        proved = certificates.get(unit.number)
        known = {key_of(file.name, file.length, file.file_id) for file in (*unit.manifest, *unit.expected)}
        # A certificate does not know the ids of its files; no other stage has any of these names.
        known.update(key_of(name, length) for name, length in (proved.files.items() if proved else ()))
        if unit.join:
            # What goes back where files were joined has ids of its own; and the joined file is longer if it took another one.
            known.update(key_of(file.name, file.length) for file in unit.manifest)
            known.update(key_of(one.name, one.length) for one in files if one.name == unit.join.file)
        found = (key for one in files for key in (key_of(one.name, one.length, one.file_id), key_of(one.name, one.length)))
        if known.isdisjoint(found):
            return False
    return True


def _settle_of_former(run: Run, plan: RunPlan) -> Tuple[UnitResult, ...]:
    """Finish the run of a table that was dropped and created again; nothing in the new table's directory is touched.

    The entry is about the former table.
    """
    why = Reason(Code.TABLE_CREATED_AGAIN, "the table was dropped and created again while the run was interrupted")
    if plan.operation in EXCHANGES:
        _look_for_taken_out(run, plan)
        describe = _find_describer(run, plan)
        return tuple(_settle_units(run, plan, lambda unit: exchange.leave_aside(describe(unit), why)))
    return tuple(_settle_units(run, plan, _find_settler(run, plan, is_former=True)))


def _leave_dropped(run: Run, plan: RunPlan, settle: Settle) -> Settle:
    """Settle partitions that were dropped in the outage, with files that Hive would have deleted, without touching live."""
    found = places.ask(run, plan.units)
    undecided, describe = places.find_undecided(run, found.changed), _find_describer(run, plan)

    def settle_one(unit: PlannedUnit) -> UnitResult:
        if unit.number not in undecided or describe(unit).means.find_moved():
            return settle(unit)
        # Hive has found the new files and deleted them, unless it was discovery that did not find them.
        why = found.changed[unit.number]
        after = Outcome.MISPLACED if places.discovers(run.table) else places.outcome_of(run, unit.number, why)
        return exchange.leave_aside(describe(unit), why, after)

    return settle_one


def _settle_units(run: Run, plan: RunPlan, settle: Settle) -> List[UnitResult]:
    """The result of each unit, in order. Of an exchange, units whose old files are aside are settled first, if live is missing, or what is
    to come to it waits still; Stopped may be raised before any other.

    The others as the run took them: where old files leave for may have changed last because one was put back
    (`DirectoryExchange._require_not_removed`), which says nothing of later ones once that is settled.

    Raises Fenced before the next unit if the lock is lost, even if nobody took the directory.
    """
    urgent: FrozenSet[UnitNumber] = frozenset()
    if plan.operation in EXCHANGES:
        left, in_gap = _find_left(run, plan)
        urgent = in_gap | _find_missing(run, [unit for unit in plan.units if unit.number in left])
        run.were_away.update(run.taken_out, _find_away(run, plan, in_gap))
    done: Dict[int, UnitResult] = {}
    for unit in sorted(plan.units, key=lambda unit: unit.number not in urgent):
        if done and unit.number not in urgent:
            _require_time(run, plan, len(done))
        run_directory.require_lock(run)
        done[unit.number] = settle(unit)
        log.info("run=%s unit=%s step=recover done %s", plan.run, unit.log_field, done[unit.number].for_log)
    return [done[unit.number] for unit in plan.units]


def _find_missing(run: Run, units: Sequence[PlannedUnit]) -> FrozenSet[UnitNumber]:
    """Those of which live is absent."""
    there = find_existing(run.files, list(dict.fromkeys(unit.live for unit in units)))
    return frozenset(unit.number for unit in units if unit.live not in there)


def _find_left(run: Run, plan: RunPlan) -> Tuple[FrozenSet[UnitNumber], FrozenSet[UnitNumber]]:
    """Units whose files have left live, and those of them in their gap: what is to come to live waits still. A writer may have made live
    again since. A join leaves it where it is.
    """
    states = _states(run, plan)
    # Two listings, however many units there are.
    seen = run.files.look(states)
    left, waits = ({entry.name for entry in seen[state].entries if entry.is_dir} for state in states)
    directories = {unit.number: names.unit_directory(unit.number) for unit in plan.units if unit.join is None}
    gone = frozenset(number for number, directory in directories.items() if directory in left)
    return gone, frozenset(number for number in gone if directories[number] in waits)


def _states(run: Run, plan: RunPlan) -> Sequence[str]:
    """Where old files leave for, and where new ones wait."""
    return [run.paths.state(state) for state in ("retired", "restoring" if plan.operation == ROLLBACK else "ready")]


def _look_for_taken_out(run: Run, plan: RunPlan) -> None:
    """Find the units whose new files were taken out, and note it: what this recovery changes hides it from the next one, if this one cannot
    end. Before the metastore is asked, which may not answer.
    """
    if plan.operation not in EXCHANGES:
        return
    noted = {entry.path for entry in run.files.look([run.paths.top])[run.paths.top].entries}
    run.taken_out.update(unit.number for unit in plan.units if run.paths.taken_out(unit.number) in noted)
    if not run.was_recovered_before:
        for number in _find_taken_out(run, plan, _find_left(run, plan)[0]):
            run_directory.note_taken_out(run, number)


def _find_taken_out(run: Run, plan: RunPlan, left: Collection[UnitNumber]) -> Sequence[UnitNumber]:
    """The unit that left last, if its new files were taken out of where they waited by somebody else (`removed.is_taken_out`). Not if the
    run went on after it: then they were live. Where it gave up the copies of later units, nobody can tell.

    Asked before anything is settled, which changes these times. The run had certified the copies of a batch before any of that left, and
    had claimed one backup after the other, which changes the directory around it, as its return does.
    """
    if not left:
        return ()
    last, states = max(left), _states(run, plan)
    later = [unit for unit in plan.units if unit.join is None and unit.number > last]
    around = {names.parent(run.backup_path(unit)) for unit in later} if plan.operation == ROLLBACK else set()
    seen = run.files.look([*states, run.paths.top])
    retired, coming, entries = seen[states[0]], seen[states[1]], seen[run.paths.top].entries
    waits = {entry.name for entry in coming.entries if entry.is_dir}
    times = [one.mtime_ms for one in run.files.look(list(around), 0).values()]
    times += [entry.mtime_ms for entry in entries if names.CERTIFICATES.fullmatch(entry.name)]
    if max(times, default=0) > retired.mtime_ms or names.unit_directory(last) in waits:
        return ()
    noted_ms = max((entry.mtime_ms for entry in entries if entry.path == run.paths.away(last)), default=0)
    if not removed.is_taken_out(retired, coming, noted_ms):
        return ()
    # No run removes where they wait as a whole.
    is_told = plan.operation == COMPACT_SWAP and coming.exists
    proved = store.read_certificates(run.cluster, run.paths, plan) if is_told else {}
    return [last] if all(names.unit_directory(UnitNumber(number)) in waits for number in proved if number > last) else ()


def _find_away(run: Run, plan: RunPlan, in_gap: Container[UnitNumber]) -> Iterable[UnitNumber]:
    """Units in their gap, and those that the run itself has had away for longer than a moment; any, if an earlier recovery was killed,
    which may have ended that.
    """
    numbers = [unit.number for unit in plan.units if unit.join is None]
    if run.was_recovered_before:
        return numbers
    noted = {entry.path for entry in run.files.look([run.paths.top])[run.paths.top].entries}
    return [number for number in numbers if number in in_gap or run.paths.away(number) in noted]


def _require_time(run: Run, plan: RunPlan, settled: int) -> None:
    why = run.cluster.stopping.why()
    if why:
        raise Stopped(
            f"{run.table.full_name}: {settled} of {len(plan.units)} units of the interrupted run {plan.run} were settled: {why}",
            state="consistent; the rest of that run is as it was left, and nothing new was begun",
            next="run again: it continues where this one ended",
        )


def _find_settler(run: Run, plan: RunPlan, is_former: bool = False) -> Settle:
    """The function that finishes or undoes a unit of the plan. `is_former`: of a table that is not there any more."""
    if plan.operation == CLEANUP:
        # Unlike a cleanup's own, not whether the table is the same: what goes is deleted in part already, and is no backup any more.
        # Refused where the table was created again, the run would never be ended, nor any later one begun.
        grounds = Grounds(run.cluster.clock, run.control, lambda: Directories(find_lives(run.cluster, run.table)))
        return cleanup.ender(run, plan, grounds, is_former)
    certificates = _read_certificates(run, plan)
    if plan.operation == ROLLBACK:
        return partial(_settle_rollback, run, rollback.find_passed(run, plan.units), certificates)
    return lambda unit: swap.settle_swap(run, unit, certificates.get(unit.number))


def _settle_rollback(run: Run, passed: Container[int], certificates: Mapping[int, Certificate], unit: PlannedUnit) -> UnitResult:
    if unit.number in passed:
        return UnitResult(unit, Outcome.ROLLED_BACK)
    return rollback.settle_rollback(run, unit, certificates.get(unit.number))


def _find_describer(run: Run, plan: RunPlan) -> Callable[[PlannedUnit], Exchange]:
    describe = rollback.describe_rollback if plan.operation == ROLLBACK else swap.describe_swap
    certificates = _read_certificates(run, plan)
    return lambda unit: describe(run, unit, certificates.get(unit.number))


def _read_certificates(run: Run, plan: RunPlan) -> Mapping[int, Certificate]:
    """Also tells where all was that the run had joined: it may have to be looked for."""
    found = store.read_certificates(run.cluster, run.paths, plan)
    for unit in plan.units:
        made = found[unit.number].join if unit.number in found else None
        if unit.join and made:
            former = {made.file_id: unit.join.file, made.tail_id: unit.join.tail, made.beside_id: unit.join.beside}
            run.whereabouts.former.update({file_id: names.join(unit.live, name) for file_id, name in former.items() if name})
            run.whereabouts.former[made.directory_id] = unit.live
    return found


def refuse_strangers(run: Run, plan: RunPlan) -> None:
    """Raise NeedsInvestigation if the run's directory holds anything that its plan does not explain."""
    numbers = {unit.number for unit in plan.units}
    states = [state for state in recover.STATES.get(plan.operation, ()) if state != "stage"]
    places = [run.paths.top, *(run.paths.state(state) for state in states)]
    seen = run.files.look(places)
    entries = [entry for place in places for entry in seen[place].entries]
    strangers = recover.find_strangers(run.paths.top, entries, numbers, plan.operation)
    if plan.operation not in recover.STATES:
        strangers = [run.paths.plan]
    if strangers:
        raise _unknown_files(run.table, run.paths, strangers[0])


def _unknown_files(table: Table, paths: RunPaths, what: str) -> NeedsInvestigation:
    return NeedsInvestigation(
        f"{table.full_name}: an interrupted run holds what we do not understand: {what}",
        code=Code.UNKNOWN_FILES,
        state=f"no file in {paths.top} was touched",
        next=f"find out who made it, move it away, then run: hivekeeper recover --table {quoting.shell(table.full_name)}",
    )


def refuse_unlogged(run: Run, plan: RunPlan) -> None:
    """Raise NeedsInvestigation if the plan speaks of a backup of which the log says something else: a cleanup's goes back to its place, and
    a file with old ones inside is cut.

    The metastore is not asked, as it is for an exchange: the partition may be elsewhere by now, and another one at its place.
    """
    units = [unit for unit in plan.units if unit.inside or plan.operation == CLEANUP]
    if not units:
        return
    logged = {effect.place: effect for effect in run.history.effects}
    for unit in units:
        place = unit.backup.place if unit.backup else ""
        effect = logged.get(place)
        is_of_unit = effect is not None and effect.live == relative(unit.live, plan.table.location)
        if not is_of_unit or (unit.inside and effect and unit.inside != effect.inside):
            what = f"old files inside {unit.inside.file}" if unit.inside else f"backup at {place}"
            field = f"units[{plan.units.index(unit)}].backup"
            raise NeedsInvestigation(
                f"{run.paths.plan} is not what Hivekeeper writes: {field}: the log knows no {what} of {unit.label} in {unit.live}",
                code=Code.FOREIGN_RECORD,
                state=f"nothing of the run in {run.paths.top} was touched",
                next="find out who wrote it",
            )


def refuse_foreign_places(run: Run, plan: RunPlan) -> None:
    """Raise NeedsInvestigation if a plan gives a unit a directory of something else: recovery would move files out of it."""
    units = recover.find_elsewhere(plan)
    if units and plan.operation in EXCHANGES:
        # Somebody has moved the directory with what the run had put there.
        describe = _find_describer(run, plan)
        units = tuple(unit for unit in units if unit.join is None or describe(unit).means.find_moved() is None)
    if not units:
        return
    partitions = run.cluster.metastore.partitions(run.table)
    lives = dict(zip((partition.name for partition in partitions), qualify_all(run.files, run.table, partitions)))
    aside = {unit.number: run.paths.unit("retired", unit.number) for unit in units}
    there = find_existing(run.files, [*(unit.live for unit in units), *aside.values()])
    nowhere = {unit.number for unit in units if there.isdisjoint([unit.live, aside[unit.number]])}
    # A join changes nothing in a directory that is not there, nor makes one.
    units = tuple(unit for unit in units if unit.join is None or unit.number not in nowhere)
    foreign = recover.find_foreign(units, lives, nowhere)
    if foreign:
        field, live = f"units[{plan.units.index(foreign[0])}].live", foreign[0].live
        raise NeedsInvestigation(
            f"{run.paths.plan} is not what Hivekeeper writes: {field}: {live} is not the directory of {foreign[0].label}",
            code=Code.FOREIGN_RECORD,
            state=f"nothing of the run in {run.paths.top} was touched",
            next="find out who wrote it; if the partition was moved since, move it back, then run: "
            f"hivekeeper recover --table {quoting.shell(run.table.full_name)}",
        )
