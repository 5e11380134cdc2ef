"""Tell the metastore and the table's log what a run did, and tidy the run's directory.

Never touches a data file.
"""

from __future__ import annotations

import logging
from typing import Dict, Iterable, Optional, Sequence, Tuple

from hivekeeper.names import ControlPaths, RunPaths
from hivekeeper.plan import eligible
from hivekeeper.plan.records import TOUCHED, Actor, RunRecord, UnitRecord
from hivekeeper.seams import Files, MetastoreUnavailable
from hivekeeper.steps import journal
from hivekeeper.steps.journal import Run

log = logging.getLogger(__name__)

SWAPPED = "swapped"


def record_units(run: Run, units: Sequence[UnitRecord]) -> None:
    """Step 8 for units that were just handled: partitions that discovery dropped, then sizes.

    The sizes are what other engines read and what Impala's event processor waits for; a metastore that does not
    answer now is a warning, because the data are right without them.
    """
    try:
        restore_partitions(run, units)
        update_sizes(run, units)
    except MetastoreUnavailable as error:
        log.warning("table=%s step=record-sizes failed reason=%r", run.table.full_name, str(error))


def restore_partitions(run: Run, units: Sequence[UnitRecord]) -> Tuple[str, ...]:
    """Put back what auto-discovery dropped while live was away. Where discovery is off, somebody dropped it on purpose."""
    if run.table.parameters.get("discover.partitions", "").lower() != "true":
        return ()
    touched = {unit.recorded.unit.name: unit.recorded for unit in units if unit.recorded.unit.name and unit.outcome in TOUCHED}
    present = run.cluster.metastore.partitions_named(run.table, list(touched)) if touched else {}
    missing = [name for name in touched if name not in present]
    for name in missing:
        if run.cluster.metastore.add_partition(run.table, touched[name].partition):
            log.warning("unit=%s/%s step=restore-partition done reason='discovery had dropped it'", run.table.full_name, name)
    return tuple(missing)


def update_sizes(run: Run, units: Sequence[UnitRecord]) -> None:
    """numFiles and totalSize as they are now, in bulk."""
    lives = {unit.recorded.unit.name: unit.recorded.unit.live for unit in units if unit.outcome == SWAPPED}
    if not lives:
        return
    seen = run.files.look(list(lives.values()))
    sizes: Dict[str, Tuple[int, int]] = {}
    for name, live in lives.items():
        files = eligible.data_files(seen[live])
        sizes[name] = (len(files), sum(file.length for file in files))
    run.cluster.metastore.update_sizes(run.table, sizes, lives)


def recompute_statistics(run: Run, units: Sequence[UnitRecord]) -> None:
    """ANALYZE TABLE for what was swapped: partitions, then the table. The data are right without it, so a failure is a warning."""
    swapped = [unit.recorded.unit.name for unit in units if unit.outcome == SWAPPED]
    if not swapped:
        return
    try:
        run.cluster.metastore.analyze(run.table, [name for name in swapped if name])
    except MetastoreUnavailable as error:
        log.warning("table=%s step=analyze-stats failed reason=%r", run.table.full_name, str(error))


def finish_run(
    run: Run, units: Sequence[UnitRecord], actor: Actor, parameters: Dict[str, object], recovered_by: Optional[str] = None
) -> int:
    """The run's one log entry; then its directory keeps the backup and the evidence, or goes.

    Discovery may have looked in the gap and dropped a partition only now, so they are asked for again.
    """
    try:
        restore_partitions(run, units)
    except MetastoreUnavailable as error:
        log.warning("table=%s step=restore-partitions failed reason=%r", run.table.full_name, str(error))
    now_ms = run.cluster.clock.now_ms()
    operation = "recover" if recovered_by else "compact-swap"
    record = RunRecord(journal.run_of(run.directory), run.directory, operation, now_ms, tuple(units), recovered_by)
    version = journal.commit(run, record, actor, parameters)
    tidy(run.files, run.paths)
    return version


def tidy(files: Files, paths: RunPaths) -> None:
    """Drop the stage and empty directories of a run that is in the log; all of it where nothing was swapped."""
    kept = [paths.state(state) for state in ("retired", "recreated")]
    if not any(snapshot.entries for snapshot in files.look(kept).values()):
        files.delete_tree(paths.top)
        return
    for needless in (paths.tick, paths.stages):
        files.delete_tree(needless)
    for state in ("ready", "recreated"):
        files.remove_empty(paths.state(state))


def sweep_finished(files: Files, control: ControlPaths, directories: Iterable[str]) -> None:
    """Tidy runs that are in the log but were killed before they had tidied up themselves."""
    runs = [control.run(directory) for directory in directories]
    seen = files.look([paths.stages for paths in runs])
    for paths in runs:
        if seen[paths.stages].exists:
            tidy(files, paths)
