"""The backup table: a table that follows a unit's files to their backup when the unit is swapped; that of a record shows live until then.

A convenience for querying old rows: failing to create or repoint it is a warning, and nothing relies on it. The end of this run and
of every later one compares it with the log and corrects it.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from functools import partial
from typing import Callable, Counter, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.config.settings import Settings
from hivekeeper.errors import Refused
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.plan import backup_tables
from hivekeeper.plan.backup_tables import Remedy, Showing
from hivekeeper.ports import Cluster, FilesError, MetastoreRefused, MetastoreUnavailable, require_readable
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import UnitResult, place_of, table_id
from hivekeeper.runlog.history import History
from hivekeeper.runlog.run_files import BACKUP, RunPlan, is_inside, is_recordable
from hivekeeper.steps.observe import find_lives, qualify_all
from hivekeeper.steps.run_directory import Run, require_lock

log = logging.getLogger(__name__)

# Dropped in one command: each is a request of its own, and whoever may write to backup tables may have added a million partitions to every
# one of them. A later command drops the rest. What one table may always have dropped, whatever others have.
MOST_TRIMMED, TRIMMED_OF_TABLE = 10_000, 100


def name_table(cluster: Cluster, table: Table, settings: Settings, run: RunId) -> str:
    """`sales.__bkp_events_20260101_020304`, in the metastore's spelling, or "" if backup tables are off. In a database for those of all
    databases `bkp.__bkp_sales__events_20260101_020304`: all tables of a command have runs of one time.

    "" also where none may be made, and if there is such a table: whoever has guessed the name would have it called ours by the log, and by
    the plan, which the recovery of a killed run believes.
    """
    if not settings.backup_table:
        return ""
    database = settings.backup_database or table.database
    stem = table.name if database == table.database else f"{table.database}__{table.name}"
    name = f"{database}.{names.backup_name(settings.backup_prefix, stem, run)}".lower()
    return name if _attempt(table, "make", name, partial(_require_free, cluster, name)) else ""


def choose_record(run: Run, plan: RunPlan, settings: Settings) -> RunPlan:
    """The plan with the record that describes its units: the newest `backup` that still matches, else its own."""
    history = store.read_history(run.cluster, run.control)
    for entry in reversed(history.records):
        known = store.read_plan(run.cluster, run.table, run.control.run(entry.directory))
        if known and describes(known, plan):
            return replace(plan, backup_table=entry.backup_table, record=entry.run)
    return replace(plan, backup_table=name_table(run.cluster, run.table, settings, plan.run), record=plan.run)


def describes(known: RunPlan, plan: RunPlan) -> bool:
    """Whether a record still matches the units of a plan: same definition, places and files."""
    before = {unit.name: (unit.live, set(unit.manifest)) for unit in known.units}
    same = all(before.get(unit.name) == (unit.live, set(unit.manifest)) for unit in plan.units)
    return same and _definition(known.table) == _definition(plan.table)


def _definition(table: Table) -> Tuple[object, ...]:
    """The table's definition as an operator sees it, without parameters, whose statistics and times change with every write."""
    return table_id(table), table.kind, table.location, table.columns, table.partition_columns, table.storage


def make_table(run: Run, plan: RunPlan) -> str:
    """Create the plan's own backup table; returns its name, "" if there is none. That of a record shows the live files of the units, any
    other one no files before they are swapped.

    All is made at a directory of the run's own and pointed elsewhere from there, which makes no directory: one of live may be away for a
    moment, and who renames another one to its place would find it there.
    """
    if not plan.backup_table or plan.record != plan.run:
        return plan.backup_table
    places = {unit.name: unit.live for unit in plan.units if unit.join is None}
    if plan.units and not places:
        return ""
    shown, metastore = run.paths.state("backup_table"), run.cluster.metastore
    marks = {**names.backup_marks(plan.backup_table, run.table.full_name), names.BACKUP_TOKEN: secrets.token_hex(16)}

    def create() -> None:
        # A table that a run makes after it was taken over is in no log, and nobody drops it.
        require_lock(run)
        run.files.make_directory(shown)
        run.files.guard({shown: run.rights})
        metastore.make_backup_table(run.table, plan.backup_table, shown, marks, list(places))

    is_made = _attempt(run.table, "make", plan.backup_table, create) or _may_be_there(run, plan.backup_table, marks)
    if is_made and plan.operation == BACKUP:
        point = partial(metastore.point_backup_table, plan.backup_table, marks, places)
        is_made = _attempt(run.table, "point", plan.backup_table, point) or not drop_table(run, plan.backup_table)
    return plan.backup_table if is_made else ""


def _may_be_there(run: Run, name: str, marks: Mapping[str, str]) -> bool:
    """Whether the table may exist after a failed call, whose effect is unknown: a table missing from the log would never be dropped.

    Who else makes one just then chooses its owner and all but the random one of these marks. Without them, one that cannot be read is none
    of ours: whoever makes it can have it be too large until it is believed.
    """
    database, _, base = name.partition(".")
    try:
        found = run.cluster.metastore.tables(database, [base]).get(base)
    except (MetastoreUnavailable, Refused):
        return True
    return found is not None and marks.items() <= found.parameters.items()


def _require_free(cluster: Cluster, name: str) -> None:
    why = cluster.metastore.why_no_backup_tables()
    if why:
        raise MetastoreRefused(why)
    database, _, base = name.partition(".")
    if base in cluster.metastore.tables(database, [base]):
        raise MetastoreRefused(f"there is a table {name} already, which no run has made")


def _find_ours(cluster: Cluster, table: Table, control: ControlPaths, name: str) -> Optional[Table]:
    """The backup table as it is now; None if it is gone, or if there is another one in its place. Raises MetastoreUnavailable, also if it
    cannot be told: one that cannot be read may be ours.
    """
    database, _, base = name.partition(".")
    found = require_readable(cluster.metastore.tables(database, [base]).get(base))
    if found is None or not _is_like_ours(cluster, table, control, found) or not _is_of_owner(cluster, table, found):
        return None
    return found


def _is_of_owner(cluster: Cluster, table: Table, found: Table) -> bool:
    why = backup_tables.why_of_other(found, table, {cluster.user, *cluster.trusted_owners})
    return _told_as_left(table, found, why)


def _is_like_ours(cluster: Cluster, table: Table, control: ControlPaths, found: Table) -> bool:
    is_spelled_like_ours = not found.location or is_inside(found.location, control.top)
    try:
        place = found.location if is_spelled_like_ours else cluster.files.qualify(found.location)
        why = backup_tables.why_not_ours(replace(found, location=place), table, control.top)
    except FilesError as error:
        # No location that we have given one.
        why = str(error)
    return _told_as_left(table, found, why)


def _told_as_left(table: Table, found: Table, why: str) -> bool:
    """Whether nothing is against it."""
    if why:
        log.warning("table=%s step=find-backup-table left backup_table=%s reason=%r", table.log_field, found.log_field, why)
    return not why


def follow_units(run: Run, backup_table: str, units: Iterable[UnitResult]) -> None:
    """Point the backup table at the files that were live before the swaps."""
    moved = [unit.planned for unit in units if unit.exchanged and unit.planned.join is None]
    places = {planned.name: names.join(run.control.top, place_of(run.directory, planned)) for planned in moved}

    def point() -> None:
        if _find_ours(run.cluster, run.table, run.control, backup_table):
            run.cluster.metastore.point_backup_table(backup_table, names.backup_marks(backup_table, run.table.full_name), places)

    if backup_table and places:
        _attempt(run.table, "point", backup_table, point)


def correct_tables(cluster: Cluster, table: Table, control: ControlPaths, history: History, is_gone: bool = False) -> None:
    """Correct every backup table of a table to match the log, and drop those that no longer show a backup.

    This repairs earlier omissions: a failed call, a run that was killed or taken over. If the table is gone, one that would have to show
    live stays as it is. One of a former table, or of another owner, is pointed nowhere (`Remedy`), but it loses what is gone, and is
    dropped with the rest: no file goes with it.
    """
    showings = backup_tables.find_showings(history, control.top, table.location, table_id(table))
    unused = backup_tables.find_unused(history, showings)
    present = _find_present(cluster, table, control, [*showings, *unused])
    for name in showings.keys() & present.keys():
        wanted, found = showings[name], present[name]
        if is_gone and not all(is_inside(place, control.top) for place in wanted.places.values()):
            continue
        if not _is_of_owner(cluster, table, found):
            wanted = wanted.of_other_owner()
        _attempt(table, "correct", name, partial(_correct, cluster, table, control, found, wanted))
    for name in present.keys() & set(unused):
        _attempt(table, "drop", name, partial(_drop, cluster, table, name))


def _drop(cluster: Cluster, table: Table, name: str) -> None:
    cluster.metastore.drop_backup_table(name, names.backup_marks(name, table.full_name))


def find_left(cluster: Cluster, table: Table, history: History) -> Tuple[str, ...]:
    """Backup tables that runs created and that exist, by name. Raises MetastoreUnavailable, also if one cannot be read."""
    found: Dict[str, Table] = {}
    for name in backup_tables.find_unused(history, {}):
        database, _, base = name.partition(".")
        _find_in(cluster, database, [base], found)
    for one in found.values():
        require_readable(one)
    return tuple(sorted(name for name, one in found.items() if one.backup_of == table.full_name))


def _find_present(cluster: Cluster, table: Table, control: ControlPaths, full_names: Iterable[str]) -> Dict[str, Table]:
    """Those that exist and are as we make them. A database for which the metastore does not answer is skipped: the next run tries again."""
    by_database: Dict[str, List[str]] = {}
    for name in full_names:
        database, _, base = name.partition(".")
        by_database.setdefault(database, []).append(base)
    found: Dict[str, Table] = {}
    for database, bases in by_database.items():
        _attempt(table, "find", database, partial(_find_in, cluster, database, bases, found))
    return {name: one for name, one in found.items() if _is_like_ours(cluster, table, control, one)}


def _find_in(cluster: Cluster, database: str, bases: Sequence[str], found: Dict[str, Table]) -> None:
    found.update({one.full_name: one for one in cluster.metastore.tables(database, bases).values()})


def _correct(cluster: Cluster, table: Table, control: ControlPaths, found: Table, wanted: Showing) -> None:
    name, metastore = found.full_name, cluster.metastore
    shown = {"": cluster.files.qualify(found.location)}
    if found.partitioned:
        partitions = metastore.partitions(found)
        shown = {partition.name: partition.location for partition in partitions}
        # What others have added goes by its name, wherever it lies.
        known = [partition for partition in partitions if partition.name in wanted.places]
        shown.update(zip((partition.name for partition in known), qualify_all(cluster.files, found, known)))
    point, trim = backup_tables.compare(wanted, shown)
    if trim and not found.partitioned and wanted.remedy is Remedy.DROP:
        _drop(cluster, table, name)
        return
    blank = backup_tables.find_blank(wanted, shown, control.top)
    if blank:
        lives = find_lives(cluster, table)
        point.update({unit: lives[unit] for unit in blank if unit in lives and is_recordable(lives[unit], table.location)})
    if point:
        metastore.point_backup_table(name, names.backup_marks(name, table.full_name), point)
    if trim:
        _trim(cluster, table, name, trim)


class _Trimmed(Counter[str]):
    """How many partitions of its backup tables a command has had dropped, by table."""


def _trim(cluster: Cluster, table: Table, name: str, partitions: Sequence[str]) -> None:
    trimmed = cluster.memory.of(_Trimmed)
    most = max(MOST_TRIMMED - sum(trimmed.values()), TRIMMED_OF_TABLE - trimmed[table.full_name], 0)
    some, left = partitions[:most], len(partitions) - most
    if left > 0:
        log.warning("table=%s step=correct-backup-table backup_table=%s left=%d", table.log_field, quoting.log_field(name), left)
    if some:
        # Before it is known how many of them a call that fails has dropped.
        trimmed[table.full_name] += len(some)
        cluster.metastore.trim_backup_table(name, names.backup_marks(name, table.full_name), some)


def drop_table(run: Run, table: str) -> bool:
    """Drop a backup table; returns False if it may still exist."""

    def drop() -> None:
        if _find_ours(run.cluster, run.table, run.control, table):
            run.cluster.metastore.drop_backup_table(table, names.backup_marks(table, run.table.full_name))

    return not table or _attempt(run.table, "drop", table, drop)


def _attempt(table: Table, what: str, backup_table: str, act: Callable[[], object]) -> bool:
    try:
        act()
        return True
    except (MetastoreUnavailable, FilesError, Refused) as error:
        # Refused: whoever may write to a backup table can make its definition too large to be read.
        log.warning(
            "table=%s step=%s-backup-table failed backup_table=%s reason=%r",
            table.log_field,
            what,
            quoting.log_field(backup_table),
            str(error),
        )
        return False
