"""compact-swap: analyze → plan → stage → prove → swap → record, unit by unit, after recovering what former runs left."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from hivekeeper.commands import each, selection
from hivekeeper.commands.recover import Recovered, actor_of, lift_in_swapped, settle_table
from hivekeeper.errors import Refused, Unusable
from hivekeeper.model import Selection, StageBatch, Table
from hivekeeper.plan import analysis, compaction, eligible
from hivekeeper.plan.analysis import ObservedTable, UnitAnalysis
from hivekeeper.plan.compaction import Candidate, CompactionPlan
from hivekeeper.plan.entries import UnitRecord
from hivekeeper.plan.records import COMPACT_SWAP, Certificate, RecordedPlan, recorded
from hivekeeper.plan.settings import Engine, Settings
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.seams import Cluster, Lock
from hivekeeper.steps import attributes, backup, journal, record, swap
from hivekeeper.steps.journal import Run
from hivekeeper.steps.observe import Wanted, find_tied, observe_table
from hivekeeper.steps.stage import Staged, Stager

log = logging.getLogger(__name__)

SettingsFor = Callable[[str], Settings]

NO_ROWS = eligible.Reason("its files hold no rows, so there is nothing to write", "remove the files if nobody needs them")


@dataclass(frozen=True)
class Request:
    """What one compact-swap command was asked to do."""

    selection: Selection
    settings_for: SettingsFor
    backup_prefix: str
    run: str
    dry_run: bool = False


def compact_swap(cluster: Cluster, request: Request) -> CommandResult:
    """Compact every selected table."""
    prefix, run = request.backup_prefix, request.run
    return each.run_on_tables(
        cluster, COMPACT_SWAP, request.selection, prefix, run, lambda table: compact_table(cluster, table, request), request.dry_run
    )


def compact_table(cluster: Cluster, table: Table, request: Request) -> TableOutcome:
    settings = request.settings_for(table.full_name)
    wanted = selection.wanted_in(table, request.selection.where)
    observed = observe_table(cluster, table, settings, wanted)
    if observed.reason:
        return _refused(observed)
    chosen = analysis.choose(observed.units)
    if observed.has_control:
        # A log that this version must not touch is refused at once, by a dry run too.
        journal.read_history(cluster, observed.control)
    if request.dry_run:
        plan = make_plan(cluster, observed, chosen, settings, request.run)
        return TableOutcome(table.full_name, request.run, _outcomes_of_plan(observed, plan), observed, plan)
    if not chosen and not observed.has_control:
        return TableOutcome(table.full_name, None, _outcomes_left(observed), observed)
    with journal.hold_table(cluster, observed.table, observed.control, request.run) as lock:
        return _compact_held(cluster, observed, wanted, settings, request.run, lock)


def _refused(observed: ObservedTable) -> TableOutcome:
    assert observed.reason is not None
    return each.refused(observed.table, observed.reason, observed)


def _compact_held(
    cluster: Cluster, observed: ObservedTable, wanted: Optional[Wanted], settings: Settings, run: str, lock: Lock
) -> TableOutcome:
    """With the lock: recover, look again, plan, act."""
    recovered = settle_table(cluster, observed.table, observed.control, lock, run)
    observed = observe_table(cluster, observed.table, settings, wanted)
    if observed.reason is None and lift_in_swapped(cluster, observed):
        observed = observe_table(cluster, observed.table, settings, wanted)
    if observed.reason:
        return _refused(observed)
    chosen = analysis.choose(observed.units)
    plan = make_plan(cluster, observed, chosen, settings, run)
    if not plan.units:
        return TableOutcome(observed.table.full_name, None, _outcomes_left(observed, plan), observed, plan, recovered=recovered)
    refuse_without_space(cluster, plan)
    return carry_out(cluster, observed, plan, settings, lock, recovered)


def make_plan(cluster: Cluster, observed: ObservedTable, chosen: Sequence[UnitAnalysis], settings: Settings, run: str) -> CompactionPlan:
    """Read the footers of the chosen units and decide. Reads only.

    With a limit they are read until so many units are fit, lest an unfit one that ranks high takes a place in every run.
    """
    table, engine = observed.table, Engine(cluster.spark_version, cluster.time_zone)
    waiting, candidates, wanted = list(chosen), [], settings.max_units or len(chosen)  # type: ignore[var-annotated]
    while waiting and wanted > 0:
        read = read_candidates(cluster, observed, waiting[:wanted])
        waiting = waiting[wanted:]
        wanted -= sum(compaction.is_fit(candidate, table, settings, engine) for candidate in read)
        candidates += read
    return compaction.plan_compaction(run, observed.control.run(run), table, candidates, settings, engine)


def read_candidates(cluster: Cluster, observed: ObservedTable, chosen: Sequence[UnitAnalysis]) -> List[Candidate]:
    """What the directories of some units are tied to, and what their files say, in a few calls for all of them."""
    tied = find_tied(cluster, observed.control, [unit.unit for unit in chosen])
    free = [unit for unit in chosen if unit.unit.name not in tied]
    format = eligible.format_of(observed.table.storage) or ""
    read = cluster.rows.footers(format, {unit.unit.name: unit.files for unit in free})
    footers = {name: compaction.leave_out_rowless(of_unit) for name, of_unit in read.items()}
    attributes_of = cluster.files.attributes([unit.unit.live for unit in free])
    single = {name: found.groups[0] for name, found in footers.items() if len(found.groups) == 1 and not found.unreadable}
    hazards = cluster.rows.hazards(format, single)
    fit = [Candidate(unit, footers[unit.unit.name], attributes_of[unit.unit.live], hazards.get(unit.unit.name)) for unit in free]
    return fit + [Candidate.of_tied(unit, tied[unit.unit.name]) for unit in chosen if unit.unit.name in tied]


def refuse_without_space(cluster: Cluster, plan: CompactionPlan) -> None:
    """The old files stay as the backup, so the new ones need room beside them."""
    needed = sum(unit.total_bytes for unit in plan.units)
    free = cluster.files.free_bytes(plan.table.location)
    if free is not None and free < needed:
        raise Unusable(
            f"{plan.table.full_name}: not enough space: {needed} bytes are to be written, {free} are free",
            state="untouched",
            next="free space or raise the quota, or do less at once with --max-units or --where",
        )


def carry_out(
    cluster: Cluster, observed: ObservedTable, plan: CompactionPlan, settings: Settings, lock: Lock, recovered: Recovered
) -> TableOutcome:
    """The plan durably first; then batch by batch."""
    run, known = _begin(cluster, observed, plan, lock, settings)
    stager = Stager(run, plan, settings.owner)
    staged, units = Staged(), []  # type: Tuple[Staged, List[UnitRecord]]
    for number, batch in enumerate(plan.batches, start=1):
        log.info("run=%s table=%s step=stage begin batch=%d units=%d", plan.run, plan.table.full_name, number, len(batch.units))
        of_batch = stager.stage(number, batch)
        staged.failed.update(of_batch.failed)
        staged.differing.update(of_batch.differing)
        done = swap_batch(run, batch, known, of_batch.certificates, settings)
        record.record_units(run, done)
        backup.follow_units(run, known.backup_table, done)
        units.extend(done)
    units.extend(_not_staged(known, staged))
    backup_table = backup.trim_units(run, known, units)
    version = record.finish_run(run, known, units, actor_of(cluster), parameters_of(settings), backup_table=backup_table)
    if settings.analyze_stats:
        record.recompute_statistics(run, units)
    outcomes = tuple(_outcome(unit, plan) for unit in units) + _outcomes_left(observed, plan)
    return TableOutcome(plan.table.full_name, plan.run, outcomes, observed, plan, None, recovered, version, backup_table=backup_table)


def _begin(cluster: Cluster, observed: ObservedTable, plan: CompactionPlan, lock: Lock, settings: Settings) -> Tuple[Run, RecordedPlan]:
    """The plan durably, then the backup table over what is about to be swapped."""
    run = journal.open_run(cluster, plan.table, observed.control, lock, plan.run, COMPACT_SWAP)
    try:
        attributes.rehearse(cluster.files, run.paths.stages, plan.attributes.values(), settings.owner)
    except Refused:
        cluster.files.delete_tree(run.paths.top)
        raise
    known = backup.choose_record(run, recorded(plan), settings)
    journal.write_plan(run, known)
    return run, replace(known, backup_table=backup.make_table(run, known))


def swap_batch(
    run: Run, batch: StageBatch, known: RecordedPlan, certificates: Dict[int, Certificate], settings: Settings
) -> List[UnitRecord]:
    """Steps 4 to 7 for the proved units of a batch, under Hive's own lock where that works."""
    if not certificates:
        return []
    done = []
    with journal.hold_in_hive(run, settings):
        for unit in batch.units:
            certificate = certificates.get(unit.number)
            if certificate is None:
                continue
            result = swap.swap_unit(run, known.units[unit.number - 1], certificate)
            gap = "" if result.gap_ms is None else f" gap_ms={result.gap_ms:.1f}"
            log.info("run=%s unit=%s step=swap done outcome=%r%s", known.run, result.recorded.unit.label, result.outcome, gap)
            done.append(result)
    return done


def _not_staged(known: RecordedPlan, staged: Staged) -> List[UnitRecord]:
    differing = [UnitRecord(known.units[number - 1], "differs", reason=why) for number, why in sorted(staged.differing.items())]
    failed = [UnitRecord(known.units[number - 1], "failed", reason=why) for number, why in sorted(staged.failed.items())]
    return differing + failed


def parameters_of(settings: Settings) -> Dict[str, object]:
    """What of the settings the log keeps."""
    return {
        "blockBytes": settings.block_bytes,
        "ratioThreshold": settings.ratio,
        "compression": settings.compression,
        "sortColumns": list(settings.sort_columns),
        "minQuietMs": settings.min_quiet_ms,
    }


def _outcome(unit: UnitRecord, plan: CompactionPlan) -> UnitOutcome:
    planned, certificate = plan.unit(unit.recorded.number), unit.certificate
    return UnitOutcome(
        name=planned.unit.name,
        outcome=unit.outcome,
        files_before=planned.files,
        bytes_before=planned.total_bytes,
        files_after=len(certificate.file_rows) if certificate else None,
        bytes_after=certificate.total_bytes if certificate else None,
        rows=certificate.rows if certificate else None,
        gap_ms=unit.gap_ms,
        late_files=unit.late_files,
        reason=unit.reason,
        next="" if certificate else "run again; live is as it was",
    )


def _outcomes_left(observed: ObservedTable, plan: Optional[CompactionPlan] = None) -> Tuple[UnitOutcome, ...]:
    """Units that were not tried although they are not fine: refused by metadata or by their files, without rows, or too recent."""
    left = []
    by_files = {unit.name: ("refused", reason) for unit, reason in plan.refused} if plan else {}
    by_files.update({unit.name: ("empty", NO_ROWS) for unit in plan.rowless} if plan else {})
    for judged in observed.units:
        status, reason = by_files.get(judged.unit.name) or (judged.status, judged.reason)
        if status in ("refused", "empty", "recent") and reason is not None:
            sizes = judged.sizes
            left.append(UnitOutcome(judged.unit.name, status, sizes.files, sizes.total_bytes, reason=reason.what, next=reason.next))
    return tuple(left)


def _outcomes_of_plan(observed: ObservedTable, plan: CompactionPlan) -> Tuple[UnitOutcome, ...]:
    planned = tuple(UnitOutcome(unit.unit.name, "planned", unit.files, unit.total_bytes, files_after=unit.outputs) for unit in plan.units)
    return planned + _outcomes_left(observed, plan)
