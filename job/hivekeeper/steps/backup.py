"""The backup table: a table over a unit's live files that follows them to their backup when the unit is swapped.

A convenience for people who query old rows: failing to make or move it is a warning, and nothing relies on it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Table
from hivekeeper.plan.eligible import BACKUP_OF
from hivekeeper.plan.entries import UnitRecord, place_of, table_id
from hivekeeper.plan.history import History
from hivekeeper.plan.records import CLEANUP, RecordedPlan
from hivekeeper.plan.settings import Settings
from hivekeeper.seams import Cluster, FilesError, MetastoreUnavailable
from hivekeeper.steps import journal
from hivekeeper.steps.journal import Run

log = logging.getLogger(__name__)


def name_table(table: Table, settings: Settings, run: str) -> str:
    """`sales.__bkp_events_20260101_020304`, or "" where the site wants none."""
    if not settings.backup_table:
        return ""
    return f"{settings.backup_database or table.database}.{names.backup_name(settings.backup_prefix, table.name, run)}"


def choose_record(run: Run, plan: RecordedPlan, settings: Settings) -> RecordedPlan:
    """The plan with the record that describes its units: the newest `backup` that still does, else its own."""
    history = journal.read_history(run.cluster, run.control)
    for entry in reversed(history.records):
        known = journal.read_plan(run.files, run.table, run.control.run(entry.directory))
        if known and describes(known, plan):
            return replace(plan, backup_table=entry.backup_table, record=entry.run)
    return replace(plan, backup_table=name_table(run.table, settings, plan.run), record=plan.run)


def describes(known: RecordedPlan, plan: RecordedPlan) -> bool:
    """Whether a record still says what the units of a plan are: same definition, places and files."""
    before = {unit.unit.name: (unit.unit.live, set(unit.manifest)) for unit in known.units}
    same = all(before.get(unit.unit.name) == (unit.unit.live, set(unit.manifest)) for unit in plan.units)
    return same and _definition(known.table) == _definition(plan.table)


def _definition(table: Table) -> Tuple[object, ...]:
    """What a person would call the table's definition; statistics and times of its parameters change with every write."""
    return table_id(table), table.kind, table.location, table.columns, table.partition_columns, table.storage


def make_table(run: Run, plan: RecordedPlan) -> str:
    """Create the plan's own backup table over the live files of its units; gives its name, "" where there is none."""
    if not plan.backup_table or plan.record != plan.run:
        return plan.backup_table
    shown = run.paths.state("shown")
    places = {unit.unit.name: unit.unit.live for unit in plan.units}

    def create() -> None:
        run.files.make_directory(shown)
        run.cluster.metastore.make_backup_table(run.table, plan.backup_table, shown, _marks(run.table), places)

    is_made = _attempt(run.table, "make", plan.backup_table, create) or _may_be_there(run, plan.backup_table)
    return plan.backup_table if is_made else ""


def _may_be_there(run: Run, name: str) -> bool:
    """An answer that was lost tells nothing, so the table is looked for: one that the log does not know would stay for ever."""
    database, _, base = name.partition(".")
    try:
        found = run.cluster.metastore.tables(database, [base]).get(base)
    except MetastoreUnavailable:
        return True
    return found is not None and _marks(run.table).items() <= found.parameters.items()


def follow_units(run: Run, backup_table: str, units: Iterable[UnitRecord]) -> None:
    """After swaps: let the backup table show the files that were live."""
    places = {
        unit.recorded.unit.name: names.join(run.control.top, place_of(run.directory, unit.recorded)) for unit in units if unit.exchanged
    }
    if backup_table and places:
        point = run.cluster.metastore.point_backup_table
        _attempt(run.table, "point", backup_table, lambda: point(backup_table, _marks(run.table), places))


def trim_units(run: Run, plan: RecordedPlan, units: Sequence[UnitRecord]) -> str:
    """At a compaction's end its own backup table keeps what was swapped; gives its name, "" where nothing was and it is gone."""
    if not plan.backup_table or plan.record != plan.run:
        return plan.backup_table if any(unit.exchanged for unit in units) else ""
    left = [unit.recorded.unit.name for unit in units if not unit.exchanged]
    if len(left) == len(units):
        # One that could not be dropped stays in the log, for drop_unused to try again.
        return "" if drop_table(run, plan.backup_table) else plan.backup_table
    if left:
        trim = run.cluster.metastore.trim_backup_table
        _attempt(run.table, "trim", plan.backup_table, lambda: trim(plan.backup_table, _marks(run.table), left))
    return plan.backup_table


def release_units(run: Run, plan: RecordedPlan, history: History, units: Sequence[UnitRecord]) -> None:
    """After a rollback or a cleanup: backup tables let go of the backups that are restored or discarded.

    The table of a `backup` record shows restored files where they are now, live. One that shows nothing any more is left to
    drop_unused, when the log says so.
    """
    gone = {unit.recorded.backup.path: unit for unit in units if unit.recorded.backup and (unit.exchanged or unit.outcome == "discarded")}
    touched: Dict[str, List[str]] = {}
    for effect in history.effects:
        if effect.backup_table and effect.place in gone:
            touched.setdefault(effect.backup_table, []).append(effect.partition)
    recorded = {record.backup_table for record in history.records if record.directory not in plan.records}
    needed = recorded | {effect.backup_table for effect in history.standing if effect.place not in gone}
    for table in needed.intersection(touched):
        partitions = touched[table]
        lives = {unit.recorded.unit.name: unit.recorded.unit.live for unit in gone.values() if unit.recorded.unit.name in partitions}
        follows = table in recorded and plan.operation != CLEANUP
        _let_go(run, table, partitions, lives if follows or not run.table.partitioned else None)


def _let_go(run: Run, table: str, partitions: Sequence[str], lives: Optional[Dict[str, str]]) -> None:
    """Show the live files instead, or nothing any more. An unpartitioned table has no partition to drop."""
    metastore = run.cluster.metastore
    if lives is not None:
        _attempt(run.table, "point", table, lambda: metastore.point_backup_table(table, _marks(run.table), lives))
    else:
        _attempt(run.table, "trim", table, lambda: metastore.trim_backup_table(table, _marks(run.table), partitions))


def drop_unused(cluster: Cluster, table: Table, history: History) -> None:
    """Drop the backup tables that show no backup any more, those too that could not be dropped when their time came."""
    known = {run.backup_table for run in history.runs if run.backup_table}
    unused = known - {effect.backup_table for effect in history.standing} - {run.backup_table for run in history.records}
    by_database: Dict[str, List[str]] = {}
    for name in sorted(unused):
        database, _, base = name.partition(".")
        by_database.setdefault(database, []).append(base)
    for database, bases in by_database.items():
        _attempt(table, "drop", database, partial(_drop_present, cluster, table, database, bases))


def _drop_present(cluster: Cluster, table: Table, database: str, names_there: Sequence[str]) -> None:
    for name in cluster.metastore.tables(database, names_there):
        cluster.metastore.drop_backup_table(f"{database}.{name}", _marks(table))


def drop_table(run: Run, table: str) -> bool:
    """False where it may still be there."""
    drop = run.cluster.metastore.drop_backup_table
    return not table or _attempt(run.table, "drop", table, lambda: drop(table, _marks(run.table)))


def _marks(table: Table) -> Dict[str, str]:
    """What a backup table of ours carries, so that no other table is ever altered or dropped."""
    return {BACKUP_OF: table.full_name}


def _attempt(table: Table, what: str, backup_table: str, act: Callable[[], object]) -> bool:
    try:
        act()
        return True
    except (MetastoreUnavailable, FilesError) as error:
        log.warning("table=%s step=%s-backup-table failed backup_table=%s reason=%r", table.full_name, what, backup_table, str(error))
        return False
