"""rollback: undo what a run did to a table's units and keep later files; a rollback can itself be undone."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Mapping, Optional, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.codes import Exit
from hivekeeper.commands import per_table, run_keys, selection
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import find_control, hold_settled, refuse_left_elsewhere, refuse_where_it_was, require_own_place
from hivekeeper.errors import Refused
from hivekeeper.model import Block, Selection, Snapshot, Table, Unit
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.plan.inside import find_inside
from hivekeeper.plan.rollback import Surroundings, Undoing, newest_run, plan_undoing, read_stacks
from hivekeeper.ports import Files, Lock, most_files
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.runlog import manifests, store
from hivekeeper.runlog.entries import UnitResult, table_id
from hivekeeper.runlog.history import Effect, History
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import ROLLBACK, PlannedUnit, RunPlan, absolute
from hivekeeper.steps import finish, identity, ownership, run_directory, table_lock
from hivekeeper.steps.attributes import may_read_now
from hivekeeper.steps.cut import find_blocks
from hivekeeper.steps.leftovers import without_empty_staging
from hivekeeper.steps.observe import find_units, look_at, refused_if_too_many
from hivekeeper.steps.restore import Restored, restore_joined
from hivekeeper.steps.rollback import roll_back_units
from hivekeeper.steps.timing import Step, timed

KEEP = "its old files stay in the backup until cleanup"
CREATED_AGAIN = Reason(Code.TABLE_CREATED_AGAIN, "the table was dropped and created again since", KEEP)


def rollback(context: Context, undo: Optional[RunId] = None) -> CommandResult:
    """Undo a run in every selected table: the named one, or the newest compaction not yet undone."""
    return per_table.run_on_tables(context, ROLLBACK, lambda confined, table: roll_back_table(confined, table, undo))


def roll_back_table(context: Context, table: Table, undo: Optional[RunId]) -> TableOutcome:
    cluster, settings = context.cluster, context.settings_for(table.full_name)
    table, control = find_control(cluster, table, settings)
    if control is None:
        refuse_left_elsewhere(context, table)
        if undo:
            raise per_table.unknown_run(table.full_name, undo)
        return TableOutcome(table.full_name)
    if context.dry_run:
        ownership.require_own_records(cluster, table, control, settings.trusted_owners)
        require_own_place(cluster, table, control)
        return _planned(table, plan_rollback(context, table, control, undo))
    with hold_settled(cluster, table, control, context.run, settings) as lock:
        answered = run_keys.answer(context, table, store.read_history(cluster, control), ROLLBACK)
        if answered is not None:
            return answered
        require_own_place(cluster, table, control)
        with timed(cluster, Step.PLAN):
            undoing = plan_rollback(context, table, control, undo)
        if not undoing.units:
            return TableOutcome(table.full_name, None, _refusals(undoing))
        per_table.require_time(cluster, table)
        with cluster.stopping.at_once():
            confirmed = context.confirm(_planned(table, undoing))
        if not confirmed:
            problem = Reason(Code.NOT_CONFIRMED, "not confirmed", "answer yes, or give --yes").about(table.full_name)
            return TableOutcome(table.full_name, problem=problem, declined=True)
        return carry_out(context, table, control, undoing, undo, lock)


def plan_rollback(context: Context, table: Table, control: ControlPaths, undo: Optional[RunId]) -> Undoing:
    """Plan from the log, the metastore and listings; changes nothing. Raises Refused for a run that cannot be undone here, and for too many
    files.
    """
    cluster = context.cluster
    history = identity.know_history(cluster, table, store.read_history(cluster, control))
    chosen = _choose_units(history, table, context.selection)
    stacks = read_stacks(history, table_id(table))
    target = undo or newest_run({name: stack for name, stack in stacks.items() if name in chosen})
    if target is None:
        of_former = {} if stacks else {effect.partition: CREATED_AGAIN for effect in history.standing}
        return Undoing((), {name: why for name, why in of_former.items() if name in chosen})
    if undo:
        chosen = _units_of(history, table, undo, chosen)
    chains = {name: stacks[name].chain(target) for name in chosen if name in stacks and stacks[name].chain(target)}
    refused = _why_not(history, table, target, [name for name in chosen if undo and name not in chains])
    every = find_units(cluster, table)
    refuse_where_it_was(cluster, table, (unit.live for unit in every), context.settings_for(table.full_name))
    units = {unit.name: unit for unit in every if unit.name in chains}
    around = _look_around(context, table, control, chains, units, history)
    undoing = plan_undoing(chains, units, around)
    discarded = {name: reason for name, reason in _discarded(history, chains).items() if name in undoing.refused}
    listed = {unit.live: len(around.seen[unit.live].entries) for unit in undoing.units if unit.join and unit.live in around.seen}
    return Undoing(undoing.units, {**refused, **undoing.refused, **discarded}, listed, undoing.lossy)


def _look_around(
    context: Context,
    table: Table,
    control: ControlPaths,
    chains: Mapping[str, Sequence[Effect]],
    units: Mapping[str, Unit],
    history: History,
) -> Surroundings:
    """What is in the units and in the backups that are to go back. Raises Refused for too many files."""
    cluster = context.cluster
    places = [names.join(control.top, effect.place) for chain in chains.values() for effect in chain]
    # What was moved meanwhile is refused, and may be on a server that does not answer.
    unmoved = {unit.live for name, unit in units.items() if all(absolute(one.live, table.location) == unit.live for one in chains[name])}
    most = most_files(context.settings_for(table.full_name).max_files, [*unmoved, *places])
    with refused_if_too_many(table, most):
        seen = look_at(cluster.files.look, [*unmoved, *places], most)
    holders = [(units[name].live, one.inside) for name, chain in chains.items() if name in units for one in chain if one.inside]
    blocks = _find_blocks(cluster.files, seen, [(live, inside) for live, inside in holders if live in unmoved])
    # It stays in a backup where it may not be moved.
    backups = {place: replace(seen[place], entries=without_empty_staging(cluster.files, seen[place].entries)) for place in places}
    around = {**seen, **backups}
    inside = find_inside(history)
    return Surroundings(context.run, table.location, around, lambda place: names.join(control.top, place), blocks, history.cut, inside)


def _find_blocks(files: Files, seen: Mapping[str, Snapshot], holders: Sequence[Tuple[str, Inside]]) -> Dict[str, Tuple[Block, ...]]:
    """Of those files that are as a run left them, by path: somebody may have put files of a million blocks in the place of the others."""
    there = {file.path: file for live in {live for live, _ in holders} for file in seen[live].entries}
    found = {}
    for live, inside in holders:
        file = there.get(names.join(live, inside.file))
        blocks = find_blocks(files, file, inside) if file else None
        if file and blocks is not None:
            found[file.path] = blocks
    return found


def _choose_units(history: History, table: Table, selected: Selection) -> Sequence[str]:
    """Names of the units ever changed by a run that --where selects."""
    wanted = selection.wanted_names_in(table, selected)
    every = dict.fromkeys(effect.partition for effect in history.effects)
    return [name for name in every if wanted is None or wanted(name)]


def _units_of(history: History, table: Table, run: RunId, chosen: Sequence[str]) -> Sequence[str]:
    entry = per_table.find_run(table.full_name, history, run)
    if not entry.effects:
        raise Refused(
            f"{table.full_name}: run {run} was a {entry.operation} that changed no partition, so there is nothing to roll back",
            code=Code.NOTHING_OF_THIS_RUN,
            next=f"hivekeeper history --table {quoting.shell(table.full_name)} lists the runs",
        )
    changed = {effect.partition for effect in entry.effects}
    return [name for name in chosen if name in changed]


def _why_not(history: History, table: Table, run: RunId, units: Sequence[str]) -> Dict[str, Reason]:
    """Why a run has nothing left to undo in units it changed. Of several effects and undoers of one unit the first counts."""
    backwards = tuple(reversed(history.effects)) if units else ()
    changed = {effect.partition: effect for effect in backwards if effect.run == run}
    undoers = {effect.undoes: effect.run for effect in backwards if effect.undoes}

    def explain(effect: Effect) -> Reason:
        if effect.table_id != table_id(table):
            return CREATED_AGAIN
        undoer = undoers.get(effect.key)
        if undoer:
            return Reason(Code.ALREADY_ROLLED_BACK, f"it was rolled back already, by run {undoer}", "nothing to do")
        return Reason(Code.SUPERSEDED, "a later run took its place", "nothing to do")

    return {name: explain(changed[name]) for name in units}


def _discarded(history: History, chains: Mapping[str, Sequence[Effect]]) -> Dict[str, Reason]:
    """Units with a discarded backup in the chain; the reason names the newest one."""
    found: Dict[str, Reason] = {}
    for name, chain in chains.items():
        for effect in chain:
            by = history.discarded.get(effect.place)
            why = f"the backup of run {effect.run} was discarded by cleanup {by.run}" if by else ""
            if why:
                found.setdefault(name, Reason(Code.BACKUP_DISCARDED, why, "it cannot be rolled back any more"))
    return found


def carry_out(context: Context, table: Table, control: ControlPaths, undoing: Undoing, undo: Optional[RunId], lock: Lock) -> TableOutcome:
    """Write the plan durably first, then act."""
    cluster = context.cluster
    plan = RunPlan(context.run, ROLLBACK, table, undoing.units, run_key=context.run_key)
    settings = context.settings_for(table.full_name)
    joins, lives = any(unit.join for unit in undoing.units), [planned.unit for planned in undoing.units]

    def group_reads(group: str) -> bool:
        # What came since is recorded, too, and a unit may be closed since.
        asked = list(dict.fromkeys(unit.live for unit in lives))
        return may_read_now(cluster.files, asked, group, most_files(settings.max_files, asked))

    run = run_directory.open_run(cluster, table, control, lock, context.run, ROLLBACK, settings, group_reads, joins, lives)
    run.listed.planned.update(undoing.listed)
    with run_directory.told_if_taken(run):
        with timed(cluster, Step.RECORD):
            run_directory.write_plan(run, plan)
        restored = Restored()
        if joins:
            with timed(cluster, Step.COPY):
                restored = restore_joined(run, undoing.units, settings.owner)
        with timed(cluster, Step.EXCHANGE):
            units = roll_back_units(run, undoing.units, lambda: table_lock.hold_in_hive(run, settings), restored)
        units = [_telling_lossy(unit, undoing) for unit in units]
        finish.finish_units(run, units)
        units, unasked = finish.confirm_units(run, units)
    parameters: Dict[str, object] = {"undo": undo, "where": context.selection.where}
    outcome = TableOutcome(table.full_name, context.run, tuple(_outcome(unit) for unit in units) + _refusals(undoing))

    def record(code: Exit) -> int:
        if unasked:
            raise unasked
        version = finish.record_run(run, plan, units, parameters, exit_code=code)
        finish.tidy_up(cluster, table, control)
        return version

    return per_table.keep_done(cluster, table, outcome, record)


def _planned(table: Table, undoing: Undoing) -> TableOutcome:
    planned = (replace(_plain(unit, Outcome.PLANNED), why=undoing.lossy.get(unit.number)) for unit in undoing.units)
    return TableOutcome(table.full_name, None, (*planned, *_refusals(undoing)))


def _telling_lossy(unit: UnitResult, undoing: Undoing) -> UnitResult:
    """The result of a unit, with what its operator has been told before: not all rows that came back can be read."""
    return replace(unit, why=undoing.lossy.get(unit.planned.number)) if unit.outcome is Outcome.ROLLED_BACK and unit.why is None else unit


def _plain(unit: PlannedUnit, outcome: Outcome) -> UnitOutcome:
    newer, older = (sum(1 for file in files if not manifests.is_marker(file)) for files in (unit.manifest, unit.expected))
    if unit.join:
        # The old files come back as one.
        older = 1
    sizes = [sum(file.length for file in files) for files in (unit.manifest, unit.expected)]
    # What could not be rolled back, as its place is another table's by now, is a backup of this run.
    of_run = unit.backup.run if unit.backup else ""
    return UnitOutcome(unit.name, outcome, newer, sizes[0], older, sizes[1], of_run=of_run)


def _outcome(unit: UnitResult) -> UnitOutcome:
    plain = _plain(unit.planned, unit.outcome)
    why = unit.why.advising("run again; live is as it was") if unit.why and not unit.outcome.exchanged else unit.why
    return UnitOutcome(**{**vars(plain), "gap_ms": unit.gap_ms, "late_files": unit.late_files, "why": why})


def _refusals(undoing: Undoing) -> Tuple[UnitOutcome, ...]:
    """The refused units as outcomes. Already rolled back is not an error, so that the command can be repeated."""
    outcomes = []
    for name, reason in sorted(undoing.refused.items()):
        outcome = Outcome.UNDONE if reason.code is Code.ALREADY_ROLLED_BACK else Outcome.REFUSED
        outcomes.append(UnitOutcome(name, outcome, 0, 0, why=reason))
    return tuple(outcomes)
