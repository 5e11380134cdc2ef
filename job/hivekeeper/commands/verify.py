"""verify: prove again, at any later time, that live holds what a backup holds, and list later files.

Writes nothing, except for tables whose cleanup requires it (`cleanup_requires: verified`): there an entry in the log, what was verified.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.commands import per_table, selection
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import find_records, read_again, refuse_left_elsewhere, refuse_where_it_was
from hivekeeper.config.settings import VERIFIED
from hivekeeper.errors import Locked, Refused
from hivekeeper.model import Table, Unit
from hivekeeper.names import ControlPaths, RunId, UnitNumber
from hivekeeper.plan import eligibility, rollback
from hivekeeper.plan.chain import Link
from hivekeeper.plan.rollback import Stack
from hivekeeper.plan.verify import How, Proof, plan_proof
from hivekeeper.ports import Cluster, FilesError, MetastoreUnavailable, most_files
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.runlog import manifests, store
from hivekeeper.runlog.entries import LogEntry, UnitResult, longest_line, table_id
from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.manifests import ManifestFile, key_of
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import BACKUP, VERIFY, BackupPlace, PlannedUnit, absolute
from hivekeeper.runlog.strict import MOST_LINE
from hivekeeper.steps import finish, identity, left_behind, run_directory, table_lock, table_log
from hivekeeper.steps.observe import find_units, look_at, refused_if_too_many
from hivekeeper.steps.timing import Step, timed
from hivekeeper.steps.verify import COUNT, DIGEST, Compared, Prover

log = logging.getLogger(__name__)

CREATED_AGAIN = Reason(Code.TABLE_CREATED_AGAIN, "the table was dropped and created again since")


@dataclass(frozen=True)
class Subject:
    """A unit and its former location, the backup's manifest and the later effects, oldest first; or why there is nothing to compare."""

    partition: str
    live: str
    manifest: Tuple[ManifestFile, ...] = ()
    effects: Tuple[Effect, ...] = ()
    of_run: str = ""
    nothing: Optional[Reason] = None


def verify(context: Context, against: Optional[RunId] = None, level: str = DIGEST) -> CommandResult:
    """Compare every selected table with the backup of a run, or each unit with its newest one."""
    return per_table.run_on_tables(context, "verify", lambda confined, table: verify_table(confined, table, against, level))


def verify_table(context: Context, table: Table, against: Optional[RunId], level: str) -> TableOutcome:
    cluster = context.cluster
    table, control = find_records(cluster, table, context.settings_for(table.full_name))
    history = store.read_history(cluster, control) if control else History()
    if control is None or not history.runs:
        left_behind.refuse_left_behind(cluster, table, cluster.trusted_owners, history)
        refuse_left_elsewhere(context, table)
        if against:
            raise per_table.unknown_run(table.full_name, against)
        return TableOutcome(table.full_name)
    refuse_unfinished(cluster, table, control, history)
    history = identity.know_history(cluster, table, history)
    with timed(cluster, Step.PLAN):
        subjects = find_subjects(context, table, control, history, against)
        units = {unit.name: unit for unit in find_units(cluster, table)}
    refuse_where_it_was(cluster, table, (unit.live for unit in units.values()), context.settings_for(table.full_name))
    outcomes, comparable = [], []
    for subject in subjects:
        outcome = _incomparable(subject, units.get(subject.partition), table)
        outcomes += [outcome] if outcome else []
        comparable += [] if outcome else [subject]
    with timed(cluster, Step.COMPARE):
        most = context.settings_for(table.full_name).max_files
        found, read = compare(cluster, table, control, comparable, units, level, history, most)
    outcomes += found
    done = TableOutcome(table.full_name, units=tuple(sorted(outcomes, key=lambda outcome: outcome.name)))
    if level == COUNT or context.settings_for(table.full_name).cleanup_requires != VERIFIED:
        return done
    same = {outcome.name for outcome in outcomes if outcome.outcome is Outcome.VERIFIED}
    return record(context, table, control, done, [one for one in read if one.partition in same], units)


def record(
    context: Context, table: Table, control: ControlPaths, done: TableOutcome, subjects: Sequence[Subject], units: Mapping[str, Unit]
) -> TableOutcome:
    """Write into the log which backups live was found to hold. If that cannot be done, they stay, and that is a warning.

    Nothing is written about a table that is gone by now, or another one: in the log of that one, it would be the last that is said.
    Raises NeedsInvestigation if the log is another table's by now: its control directory may have come here while rows were read.
    """
    cluster, settings = context.cluster, context.settings_for(table.full_name)
    found = [(one, effect) for one in subjects for effect in one.effects]
    verified = tuple(_verified(UnitNumber(number), units[one.partition], effect) for number, (one, effect) in enumerate(found, start=1))
    if not verified:
        return done
    if longest_line(unit.planned for unit in verified) > MOST_LINE:
        log.warning("table=%s step=record-verified failed reason='the entry could not be read again: too many units'", table.log_field)
        return done
    try:
        with table_lock.hold_table(cluster, table, control, context.run, settings) as lock, timed(cluster, Step.RECORD):
            identity.know_history(cluster, table, store.read_history(cluster, control))
            if table_id(read_again(cluster, table)) != table_id(table):
                raise Refused(f"{table.full_name}: {CREATED_AGAIN.what}", code=CREATED_AGAIN.code, next="run again")
            run = run_directory.open_run(cluster, table, control, lock, context.run, VERIFY, settings)
            entry = LogEntry(context.run, run.directory, VERIFY, cluster.clock.now_ms(), verified)
            version = table_log.commit(run, entry, {})
            finish.tidy_up(cluster, table, control)
    except (Locked, Refused, FilesError, MetastoreUnavailable) as error:
        log.warning("table=%s step=record-verified failed reason=%r", table.log_field, str(error))
        return done
    return replace(done, run=context.run, log_version=version)


def _verified(number: UnitNumber, unit: Unit, effect: Effect) -> UnitResult:
    backup = BackupPlace(effect.run, effect.number, effect.place)
    return UnitResult(PlannedUnit(number, unit, (), backup=backup), Outcome.VERIFIED)


def refuse_unfinished(cluster: Cluster, table: Table, control: ControlPaths, history: History) -> None:
    """Raise Locked if a run is unfinished: its intermediate state would look like another writer's overwrite. One without a plan, which may
    stay for long where this user may not remove it, has changed nothing.
    """
    found = (name for name in store.find_runs(cluster.files, control) if store.run_of(name) not in history.finished)
    unfinished = [name for name in found if finish.may_have_begun(cluster.files, control.run(name))]
    if unfinished:
        raise Locked(
            f"{table.full_name}: run {store.run_of(unfinished[0])} is at work, or was interrupted",
            code=Code.RUN_UNFINISHED,
            next=f"wait for it, or: hivekeeper recover --table {quoting.shell(table.full_name)}",
        )


def compare(
    cluster: Cluster,
    table: Table,
    control: ControlPaths,
    subjects: List[Subject],
    units: Mapping[str, Unit],
    level: str,
    history: History,
    most: int,
) -> Tuple[List[UnitOutcome], List[Subject]]:
    """List the directories to compare in one call, then read them in a few. Returns the subjects, too, with the effects whose old files
    were themselves compared. Raises Refused above `most` files, or fewer with long paths.
    """
    places = {effect.place: names.join(control.top, effect.place) for subject in subjects for effect in subject.effects}
    asked = [*(units[subject.partition].live for subject in subjects), *places.values()]
    most = most_files(most, asked)
    with refused_if_too_many(table, most):
        seen = look_at(cluster.files.look, asked, most)

    def prove(one: Subject) -> Proof:
        live = seen[units[one.partition].live]
        return plan_proof(one.manifest, one.effects, live, seen, places.__getitem__, history.cut, history.cut_ids, history.discarded)

    proofs = {one.partition: prove(one) for one in subjects}
    compared = Prover(cluster.rows, eligibility.format_of(table.storage) or "", level).compare(proofs)
    read = [replace(one, effects=_effects_read(one, proofs[one.partition], level)) for one in subjects]
    return [_outcome(subject, proofs[subject.partition], compared[subject.partition]) for subject in subjects], read


def _effects_read(subject: Subject, proof: Proof, level: str) -> Tuple[Effect, ...]:
    """The effects whose old files were compared with live: by row, or where the claims do not lead to live, only those of the first."""
    if proof.broken or level != DIGEST:
        return tuple(one for one in subject.effects[:1] if one.before == subject.manifest and proof.base is not None)
    return tuple(link.effect for link in reversed(list(takewhile(_is_read, reversed(proof.links)))))


def _is_read(link: Link) -> bool:
    return link.before is not None and link.after is not None


def find_subjects(context: Context, table: Table, control: ControlPaths, history: History, against: Optional[RunId]) -> List[Subject]:
    """What to compare: the units of the named run, else each unit's newest run not undone."""
    wanted = selection.wanted_names_in(table, context.selection)
    if against is None:
        stacks = rollback.read_stacks(history, table_id(table))
        if history.standing and not stacks:
            raise Refused(f"{table.full_name}: {CREATED_AGAIN.what}", code=CREATED_AGAIN.code, next="nothing of it can be verified")
        newest = {name: stack.newest for name, stack in stacks.items() if stack.done}
        found = [
            Subject(
                name,
                absolute(some[-1].live, table.location),
                tuple(file for one in some for file in one.before),
                stacks[name].with_detours(some),
                some[-1].run,
            )
            for name, some in newest.items()
        ]
    else:
        entry = per_table.find_run(table.full_name, history, against)
        is_record = entry.operation == BACKUP
        # Backups between this run and live may have been discarded since.
        # What is read again has the table's former name, if it was renamed since.
        history = identity.know_history(context.cluster, table, store.read_whole(context.cluster, control, history, entry.version))
        entry, stacks = history.runs[entry.version], rollback.read_stacks(history, table_id(table))
        found = _of_record(context.cluster, table, control, entry, history) if is_record else _of_run(table, entry, stacks)
        if not found:
            raise Refused(
                f"{table.full_name}: run {entry.run} was a {entry.operation} that left no backup to compare with",
                code=Code.NOTHING_OF_THIS_RUN,
                next=f"hivekeeper history --table {quoting.shell(table.full_name)} lists the backups",
            )
    return [one for one in found if wanted is None or wanted(one.partition)]


def _of_run(table: Table, entry: LoggedRun, stacks: Mapping[str, Stack]) -> List[Subject]:
    """One subject per unit; if a run had several effects on a unit, the first, which found the oldest files."""
    subjects: Dict[str, Subject] = {}
    for effect in entry.effects:
        stack = stacks.get(effect.partition)
        chain = stack.with_detours(tuple(reversed(stack.chain(entry.run)))) if stack else ()
        why = None if chain else Reason(Code.ALREADY_ROLLED_BACK, "it was rolled back") if stack else CREATED_AGAIN
        manifest = rollback.first_files(chain)
        subject = Subject(effect.partition, absolute(effect.live, table.location), manifest, chain, entry.run, why)
        subjects.setdefault(effect.partition, subject)
    return list(subjects.values())


def _of_record(cluster: Cluster, table: Table, control: ControlPaths, entry: LoggedRun, history: History) -> List[Subject]:
    plan = store.read_plan(cluster, table, control.run(entry.directory))
    if plan is None:
        raise Refused(
            f"{table.full_name}: the record of run {entry.run} was discarded",
            code=Code.NOTHING_OF_THIS_RUN,
            next="name another run; history lists them",
        )
    stacks = rollback.read_stacks(history, table_id(table))
    subjects = []
    for unit in plan.units:
        name, created_again = unit.name, entry.table_id != table_id(table)
        why = CREATED_AGAIN if created_again else None
        since = _find_since(unit, entry.version, history, stacks.get(name, Stack()))
        subjects.append(Subject(name, unit.live, unit.manifest, since, entry.run, why))
    return subjects


def _find_since(unit: PlannedUnit, version: int, history: History, stack: Stack) -> Tuple[Effect, ...]:
    """The effects between a record and live: the runs not undone, or all later effects if those do not start from the record's files."""
    in_force = tuple(effect for effect in stack.done if effect.version > version)
    wanted = {key_of(file.name, file.length) for file in unit.manifest if not manifests.is_marker(file)}
    if in_force and wanted <= {key_of(file.name, file.length) for file in in_force[0].before}:
        return stack.with_detours(in_force)
    return tuple(effect for effect in history.effects if effect.version > version and effect.partition == unit.name)


def _incomparable(subject: Subject, unit: Optional[Unit], table: Table) -> Optional[UnitOutcome]:
    """The outcome of a unit that needs no comparison, or allows none; else None."""
    outcome = partial(UnitOutcome, subject.partition, files_before=0, bytes_before=0, of_run=subject.of_run)
    if subject.nothing:
        return outcome(Outcome.UNDONE, why=subject.nothing)
    if unit is None:
        return outcome(Outcome.DROPPED, why=Reason(Code.DROPPED, "it was dropped from the metastore since"))
    if unit.live != subject.live or any(absolute(effect.live, table.location) != unit.live for effect in subject.effects):
        why = Reason(Code.MOVED, "its location in the metastore was changed since", "compare the two locations by hand")
        return outcome(Outcome.DIFFERS, why=why)
    return None


def _explain(proof: Proof, compared: Compared) -> Optional[Reason]:
    """The notes on a comparison, with the code of the first one."""
    gone, advice = proof.gone, "look at what wrote to it since; hivekeeper verify --level rows shows the rows" if compared.why else ""
    notes = [compared.why]
    if gone and not proof.broken:
        notes.append(replace(gone.why, what=f"{gone.why.what}: compared with the run's certificate"))
    elif gone and gone.how is not How.DISCARDED:
        notes.append(gone.why)
    notes.append(compared.note)
    if proof.late_in_backup:
        what = f"{proof.late_in_backup[0]} came into a backup late; cleanup or rollback brings it to live"
        notes.append(Reason(Code.LATE_IN_BACKUP, what))
    said = [note for note in notes if note]
    if not said:
        return None
    return Reason(said[0].code, "; ".join(note.what for note in said), advice or said[0].next)


def _outcome(subject: Subject, proof: Proof, compared: Compared) -> UnitOutcome:
    if compared.is_replaced:
        what = f"{proof.gone.why.what}, and {proof.broken.what}: there is nothing to compare" if proof.gone and proof.broken else ""
        why = Reason(Code.NOTHING_LEFT_TO_COMPARE, what)
        return UnitOutcome(subject.partition, Outcome.REPLACED, 0, 0, why=why, of_run=subject.of_run)
    base, newest = proof.base or (), proof.newest
    return UnitOutcome(
        name=subject.partition,
        outcome=Outcome.DIFFERS if compared.why or proof.is_lost else Outcome.VERIFIED,
        files_before=len(base),
        bytes_before=sum(file.length for file in base),
        files_after=len(newest),
        bytes_after=sum(file.length for file in newest),
        rows=compared.rows,
        late_files=tuple(file.name for file in proof.arrivals),
        why=_explain(proof, compared),
        of_run=subject.of_run,
        differences=compared.differences,
    )
