"""Have Spark count a table's rows again after a run (`analyze_stats`), if all that it would read is fit."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Optional, Sequence

from hivekeeper.errors import Refused
from hivekeeper.model import Table, Unit
from hivekeeper.plan import eligibility
from hivekeeper.plan.statistics import refuse_counting
from hivekeeper.ports import Cluster, FilesError, MetastoreUnavailable, RowsError
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.steps import places
from hivekeeper.steps.leftovers import without_empty_staging
from hivekeeper.steps.observe import LOOK_AT_ONCE, find_units, qualify_table
from hivekeeper.steps.run_directory import Run

log = logging.getLogger(__name__)


def recompute(run: Run, units: Sequence[UnitResult]) -> None:
    """Run ANALYZE TABLE for swapped partitions, then the table. The data are right without it, so a failure is a warning.

    Spark reads what the table's definition names by then, with any data source; so all of it must be fit still.
    """
    swapped = [unit.planned.name for unit in units if unit.outcome.resized]
    if not swapped:
        return
    try:
        table, moved = places.find_table(run)
        why = moved.what if moved else None
        if table is not None and why is None:
            why = _refuse_renamed(run, table) or _find_unfit(run.cluster, table)
        if table is None or why:
            log.warning("table=%s step=analyze-stats skipped reason=%r", run.table.full_name, why)
            return
        run.cluster.metastore.analyze(table, [name for name in swapped if name])
    except (MetastoreUnavailable, FilesError, RowsError, Refused) as error:
        log.warning("table=%s step=analyze-stats failed reason=%r", run.table.full_name, str(error))


def _refuse_renamed(run: Run, table: Table) -> Optional[str]:
    """A run changes no table of another name than its own."""
    return None if table.full_name == run.table.full_name else f"it was renamed to {table.full_name} meanwhile"


def _find_unfit(cluster: Cluster, table: Table) -> Optional[str]:
    """Why Spark must not count the rows of a table: it reads all partitions, also those that were refused or not looked at.

    One may lie in a directory that its tenant may not read, another may hold a file with endless rows.
    """
    table = qualify_table(cluster.files, table)
    reason = eligibility.refuse_table(table)
    if reason:
        return reason.what
    units = find_units(cluster, table)
    refused = next(iter(eligibility.refuse_units(table, units).items()), None)
    if refused:
        return _about(refused[0], refused[1].what)
    why = refuse_counting(table, units, cluster.files.qualify)
    for start in range(0, 0 if why else len(units), LOOK_AT_ONCE):
        why = _find_unreadable(cluster, table, units[start : start + LOOK_AT_ONCE])
        if why:
            break
    return why


def _find_unreadable(cluster: Cluster, table: Table, units: Sequence[Unit]) -> Optional[str]:
    seen = cluster.files.look([unit.live for unit in units])
    for unit in units:
        snapshot = seen[unit.live]
        reason = eligibility.refuse_directory(replace(snapshot, entries=without_empty_staging(cluster.files, snapshot.entries)))
        if reason:
            return _about(unit.name, reason.what)
    files = {unit.name: eligibility.data_files(seen[unit.live]) for unit in units}
    found = cluster.rows.footers(eligibility.format_of(table.storage) or "", files)
    unreadable = [footers.unreadable[0] for footers in found.values() if footers.unreadable]
    return f"{unreadable[0][0]}: {unreadable[0][1]}" if unreadable else None


def _about(name: str, why: str) -> str:
    return f"{name}: {why}" if name else why
