"""compact-swap of one table: analyze → plan → stage → prove → swap → record, unit by unit, after recovering interrupted runs."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.codes import Exit
from hivekeeper.commands import per_table, run_keys, selection
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import find_control, hold_settled, settle_unfit
from hivekeeper.commands.planning import is_tied_as_a_whole, make_plan, refuse_without_room
from hivekeeper.config.settings import AT_ONCE, JOINED, Settings
from hivekeeper.errors import Refused
from hivekeeper.model import FileRowGroups, StageBatch, Table
from hivekeeper.names import ControlPaths, UnitNumber
from hivekeeper.plan import analysis, compaction, eligibility, settled
from hivekeeper.plan.analysis import LEFT_ALONE, ObservedTable
from hivekeeper.plan.compaction import CompactionPlan
from hivekeeper.plan.ownership import is_read_by_group
from hivekeeper.ports import Cluster, Lock
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import TableOutcome, UnitOutcome
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.history import History
from hivekeeper.runlog.namenode_time import ask_before_run
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import COMPACT_SWAP, Certificate, PlannedUnit, RunPlan
from hivekeeper.steps import attributes, backup_tables, checks, finish, identity, ownership, run_directory, swap, table_lock
from hivekeeper.steps.fitness import FitnessOfTable
from hivekeeper.steps.left_away import refuse_at_former_places
from hivekeeper.steps.observe import Wanted, observe_table
from hivekeeper.steps.run_directory import Run
from hivekeeper.steps.stage import Staged, Stager
from hivekeeper.steps.timing import Step, timed
from hivekeeper.steps.unit_loop import leave_unit, take_turns

log = logging.getLogger(__name__)

FEWEST_FILES = Reason(
    Code.FEWEST_FILES,
    "its files are of different forms (writers, schemas, codecs, or labels of pandas), and each form has as few files as it needs",
    "nothing is to be done; --set compression=snappy merges forms that differ only in codec",
)
NO_ROWS = Reason(Code.NO_ROWS, "its files hold no rows, so there is nothing to write", "remove the files if nobody needs them")


def compact_table(context: Context, table: Table) -> TableOutcome:
    """Compact one table. A table with a log is observed once, after recovery; otherwise nothing is created before there is work to do."""
    cluster, settings = context.cluster, context.settings_for(table.full_name)
    unfit = selection.refuse_where(table, context.selection)
    wanted = selection.wanted_in(table, context.selection) if unfit is None else None
    unfit = eligibility.refuse_table(table) or compaction.refuse_compression(table, settings, cluster.spark_version) or unfit
    if unfit:
        if not context.dry_run:
            settle_unfit(cluster, table, context.run, settings)
        return per_table.refused(table, unfit, ObservedTable(table, ControlPaths(""), settings, reason=unfit))
    table, control = find_control(cluster, table, settings)
    before = None
    if context.dry_run or control is None:
        before = _observe(cluster, table, settings, wanted)
        done = _do_without_lock(context, before, settings)
        if done is not None:
            return done
    control = control or ControlPaths.of(table.location, table.partitioned)
    with hold_settled(cluster, table, control, context.run, settings) as lock:
        history = store.read_history(cluster, control)
        answered = run_keys.answer(context, table, history, COMPACT_SWAP)
        if answered is not None:
            return answered
        # If no run has worked on it since, only taking the lock has changed something: it has created the control directory.
        observed = replace(before, has_control=True) if before and not history.runs else _observe(cluster, table, settings, wanted)
        if observed.reason:
            return per_table.refused(table, observed.reason, observed)
        history = identity.know_history(cluster, observed.table, history)
        return _compact_held(context, observed, history, settings, lock)


def _observe(cluster: Cluster, table: Table, settings: Settings, wanted: Optional[Wanted]) -> ObservedTable:
    observed = observe_table(cluster, table, settings, wanted)
    refuse_at_former_places(cluster, observed.table, observed.former_places, settings.trusted_owners)
    return observed


def _do_without_lock(context: Context, observed: ObservedTable, settings: Settings) -> Optional[TableOutcome]:
    """The outcome of a table of which only a plan is wanted, or on which there is nothing to do; None if it is to be compacted. Nothing is
    created. Raises Unusable if there is no room for any unit.
    """
    name = observed.table.full_name
    if observed.reason:
        return per_table.refused(observed.table, observed.reason, observed)
    if context.dry_run:
        return _plan_only(context, observed, settings)
    if not analysis.choose(observed.units):
        return TableOutcome(name, None, _outcomes_left(observed), observed)
    # The lock needs space too. A table with an earlier run is checked after recovery, which may free space.
    refuse_without_room(context.cluster, observed, settings)
    if not is_tied_as_a_whole(context.cluster, observed, settings, context.run):
        return None
    plan = make_plan(context.cluster, observed, History(), settings, context.run, context.room_for_values)
    return TableOutcome(name, None, _outcomes_left(observed, plan), observed)


def _plan_only(context: Context, observed: ObservedTable, settings: Settings) -> TableOutcome:
    cluster, run = context.cluster, context.run
    if observed.has_control:
        ownership.require_own_records(cluster, observed.table, observed.control, settings.trusted_owners)
    history = store.read_history(cluster, observed.control) if observed.has_control else History()
    history = identity.know_history(cluster, observed.table, history)
    observed = settled.judge_by_log(observed, history, cluster.clock.now_ms())
    plan = make_plan(cluster, observed, history, settings, run, context.room_for_values)
    return TableOutcome(observed.table.full_name, run, _outcomes_of_plan(observed, plan), observed)


def _compact_held(context: Context, observed: ObservedTable, history: History, settings: Settings, lock: Lock) -> TableOutcome:
    """Plan and act, holding the lock, after recovery."""
    cluster = context.cluster
    observed = settled.judge_by_log(observed, history, cluster.clock.now_ms())
    if settings.min_quiet_ms and analysis.choose(observed.units):
        # The NameNode has dated the files. This machine's clock may be hours ahead: then a writer may be at work in each of them.
        observed = analysis.wait_until_all_quiet(observed, ask_before_run(cluster.files, observed.control))
    if analysis.choose(observed.units):
        # Spark starts while footers are read.
        cluster.rows.warm_up()
    with timed(cluster, Step.PLAN):
        plan = make_plan(cluster, observed, history, settings, context.run, context.room_for_values, context.most_row_groups)
    if not plan.units:
        left = _outcomes_left(observed, plan)
        return TableOutcome(observed.table.full_name, None, left, observed, row_groups=plan.row_groups)
    # Before anything is written: it may have to wait for a place in a queue, or fail.
    cluster.rows.require_started()
    per_table.require_time(cluster, observed.table)
    return carry_out(context, observed, plan, settings, lock)


def carry_out(context: Context, observed: ObservedTable, plan: CompactionPlan, settings: Settings, lock: Lock) -> TableOutcome:
    """Write the plan durably first, then work batch by batch, and write the log entry last."""
    cluster = context.cluster

    def group_reads(group: str) -> bool:
        return all(is_read_by_group(one, group) for one in plan.attributes.values())

    joins = any(unit.join for unit in plan.units)
    lives = [unit.unit for unit in plan.units]
    run = run_directory.open_run(cluster, plan.table, observed.control, lock, plan.run, COMPACT_SWAP, settings, group_reads, joins, lives)
    joined = {unit.name for unit in plan.units if unit.join}
    run.listed.planned.update((one.live, len(one.snapshot.entries)) for one in observed.units if one.name in joined)
    with run_directory.told_if_taken(run):
        with timed(cluster, Step.RECORD):
            known = _begin(run, plan, settings, context.run_key)
        stager = Stager(run, plan, settings.owner, context.most_row_groups)
        units, unasked = finish.confirm_units(run, compact_batches(run, plan, known, settings, stager))
    forms = plan.forms
    outcomes = tuple(_outcome(unit, plan, forms) for unit in units) + _outcomes_left(observed, plan)
    shown = known.backup_table if any(unit.exchanged for unit in units) else ""
    row_groups = _row_groups_of_live(plan, units, stager)
    outcome = TableOutcome(plan.table.full_name, plan.run, outcomes, observed, backup_table=shown, row_groups=row_groups)

    def record(code: Exit) -> int:
        if unasked:
            raise unasked
        version = finish.record_run(run, known, units, settled.logged_parameters(settings), exit_code=code)
        finish.tidy_up(cluster, plan.table, observed.control)
        return version

    return per_table.keep_done(cluster, plan.table, outcome, record)


def _begin(run: Run, plan: CompactionPlan, settings: Settings, run_key: str) -> RunPlan:
    """Write the plan durably, then create the backup table of the units about to be swapped."""
    try:
        # Not on the parent of all stages, which is closed to others whatever the units allow.
        run.files.make_directory(run.paths.stage(0))
        attributes.rehearse(run.files, run.paths.stage(0), plan.attributes.values(), settings.owner)
    except Refused:
        run.files.delete_tree(run.paths.top)
        raise
    known = backup_tables.choose_record(run, replace(compaction.to_run_plan(plan), run_key=run_key), settings)
    run_directory.write_plan(run, known)
    return replace(known, backup_table=backup_tables.make_table(run, known))


def compact_batches(run: Run, plan: CompactionPlan, known: RunPlan, settings: Settings, stager: Stager) -> List[UnitResult]:
    """Stage, prove and swap batch by batch; returns the result of every planned unit."""
    staged, units = Staged(), []  # type: Tuple[Staged, List[UnitResult]]
    for number, batch in enumerate(plan.batches, start=1):
        if stager.why_end():
            break
        log.info("run=%s table=%s step=stage begin batch=%d units=%d", plan.run, plan.table.log_field, number, len(batch.units))
        of_batch = stager.stage(number, batch)
        staged.failed.update(of_batch.failed)
        staged.differing.update(of_batch.differing)
        with timed(run.cluster, Step.EXCHANGE):
            done = swap_batch(run, batch, plan, known, of_batch.certificates, settings)
        with timed(run.cluster, Step.RECORD):
            finish.finish_units(run, done, with_rows=settings.analyze_stats)
            backup_tables.follow_units(run, known.backup_table, done)
        units.extend(done)
    units.extend(_not_staged(known, staged))
    units.extend(_not_begun(known, units, stager))
    return units


def _row_groups_of_live(plan: CompactionPlan, units: Sequence[UnitResult], stager: Stager) -> Dict[str, Tuple[FileRowGroups, ...]]:
    """Those of the copies that are live, and of the old files of units that are as they were."""
    swapped = [unit.planned for unit in units if unit.outcome is Outcome.SWAPPED and unit.planned.join is None]
    of_copies = {planned.name: stager.row_groups.get(planned.number, ()) for planned in swapped}
    exchanged = {unit.planned.name for unit in units if unit.outcome.exchanged}
    return {**{name: found for name, found in plan.row_groups.items() if name not in exchanged}, **of_copies}


def swap_batch(
    run: Run, batch: StageBatch, plan: CompactionPlan, known: RunPlan, certificates: Dict[int, Certificate], settings: Settings
) -> List[UnitResult]:
    """Steps 4 to 7 for the proved units of a batch, under Hive's own lock where that works."""
    staged = [unit for unit in batch.units if unit.number in certificates]
    proved = [known.units[unit.number - 1] for unit in staged]
    rights = attributes.RightsOfLive(run, list(zip(proved, staged)), plan.attributes)
    fitness = FitnessOfTable(run.cluster, run.table)

    def swap_one(unit: PlannedUnit) -> UnitResult:
        why = checks.why_begin_no_more(run)
        if why:
            return leave(unit, why)
        result = swap.swap_unit(run, unit, certificates[unit.number], fitness.why_unfit, partial(rights.why_changed, unit.number))
        log.info("run=%s unit=%s step=swap done %s", known.run, unit.log_field, result.for_log)
        return result

    hold, leave = partial(table_lock.hold_in_hive, run, settings), partial(swap.leave, run, certificates)
    return take_turns(run.cluster.stopping, proved, swap_one, leave, hold)


def _not_staged(known: RunPlan, staged: Staged) -> List[UnitResult]:
    differing = [UnitResult(known.units[number - 1], Outcome.DIFFERS, why=why) for number, why in sorted(staged.differing.items())]
    failed = [UnitResult(known.units[number - 1], Outcome.FAILED, why=why) for number, why in sorted(staged.failed.items())]
    return differing + failed


def _not_begun(known: RunPlan, handled: Sequence[UnitResult], stager: Stager) -> List[UnitResult]:
    """The units the run did not reach. If all were handled, the pause file is not checked again at the end."""
    numbers = {unit.planned.number for unit in handled}
    left = [unit for unit in known.units if unit.number not in numbers]
    why = stager.why_end() if left else None
    return [leave_unit(unit, why) for unit in left]


def _outcome(unit: UnitResult, plan: CompactionPlan, forms: Mapping[UnitNumber, int]) -> UnitOutcome:
    planned, certificate = plan.unit(unit.planned.number), unit.certificate
    return UnitOutcome(
        name=planned.unit.name,
        outcome=unit.outcome,
        files_before=planned.data_files,
        bytes_before=planned.data_bytes,
        files_after=len(certificate.file_rows) if certificate else None,
        bytes_after=certificate.total_bytes if certificate else None,
        rows=certificate.rows if certificate else None,
        gap_ms=unit.gap_ms,
        late_files=unit.late_files,
        forms=forms[planned.number],
        exchange=_exchange_of(planned),
        exchange_why=plan.whys.get(planned.number),
        why=unit.why.advising("run again; live is as it was") if unit.why and not unit.outcome.exchanged else unit.why,
    )


def _outcomes_left(observed: ObservedTable, plan: Optional[CompactionPlan] = None) -> Tuple[UnitOutcome, ...]:
    """Units that need compaction but were not tried: refused by metadata or by their files, without rows, or too recent."""
    left = []
    by_files = {unit.name: (Outcome.REFUSED, reason) for unit, reason in plan.refused} if plan else {}
    by_files.update({unit.name: (Outcome.EMPTY, NO_ROWS) for unit in plan.rowless} if plan else {})
    by_files.update({unit.name: (Outcome.FEWEST, FEWEST_FILES) for unit in plan.fewest} if plan else {})
    by_files.update({unit.name: (Outcome.FEWEST, reason) for unit, reason in plan.unjoined} if plan else {})
    by_files.update({one.unit.name: (Outcome.LEFT, one.reason) for one in plan.left} if plan else {})
    for judged in observed.units:
        outcome, reason = by_files.get(judged.unit.name) or (LEFT_ALONE.get(judged.status), judged.reason)
        if outcome is not None and reason is not None:
            sizes = judged.sizes
            left.append(UnitOutcome(judged.unit.name, outcome, sizes.files, sizes.total_bytes, why=reason))
    return tuple(left)


def _outcomes_of_plan(observed: ObservedTable, plan: CompactionPlan) -> Tuple[UnitOutcome, ...]:
    outputs, forms = plan.outputs, plan.forms
    planned = tuple(
        UnitOutcome(
            unit.name,
            Outcome.PLANNED,
            unit.data_files,
            unit.data_bytes,
            outputs[unit.number],
            forms=forms[unit.number],
            exchange=_exchange_of(unit),
            exchange_why=plan.whys.get(unit.number),
        )
        for unit in plan.units
    )
    return planned + _outcomes_left(observed, plan)


def _exchange_of(unit: PlannedUnit) -> str:
    return JOINED if unit.join else AT_ONCE
