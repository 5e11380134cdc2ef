"""Turns the result of a command into rows of the catalogue.

Pure. A table is described as it is after the command: units that were swapped have the files of their compacted copy.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple
from zlib import crc32

from hivekeeper import __version__
from hivekeeper.catalogue.columns import BUCKETS, CATALOGUE, DEFAULT_SEGMENT, GENERAL, RUNS, VIEWS, Component
from hivekeeper.config.settings import JOINED, Settings
from hivekeeper.errors import Refused
from hivekeeper.model import MOST_TOLD, Table
from hivekeeper.plan import sizing
from hivekeeper.plan.analysis import ObservedTable, Status, UnitAnalysis
from hivekeeper.plan.unchanged import KnownUnit, judged_by, lengths_from, lengths_text
from hivekeeper.ports import Row
from hivekeeper.reasons import Code
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.runlog.outcomes import Outcome

# What the rows of a component replace, by its `found_by`.
Filter = Tuple[str, ...]

# Outcomes after which other files are live. A verify counts files too.
EXCHANGED = (Outcome.SWAPPED, Outcome.ROLLED_BACK, Outcome.OVERWRITTEN)

# Of one cell, in characters; names in the metastore are far shorter.
MOST_TEXT = MOST_TOLD

VIEW_KINDS = ("VIRTUAL_VIEW", "MATERIALIZED_VIEW")


@dataclass(frozen=True)
class Actor:
    """Who ran a command."""

    user: str
    host: str
    application: str


@dataclass(frozen=True)
class Level:
    """How deep tables are described: only as a whole, or down to segments, partitions, files or row groups."""

    depth: int

    @classmethod
    def of(cls, name: str) -> Level:
        return cls(LEVELS.index(name))

    def has(self, name: str) -> bool:
        return self.depth >= LEVELS.index(name)


# Drill's metadata levels.
LEVELS = ("table", "segment", "partition", "file", "row_group")


def bucket_of(database: str, table: str) -> str:
    """The part in which the rows of a table lie."""
    return f"{crc32(f'{database}.{table}'.encode('utf-8', 'surrogatepass')) % BUCKETS:02d}"


def day_of(time_ms: int) -> str:
    """The day in UTC, 2026-01-31."""
    return f"{datetime.fromtimestamp(time_ms / 1000, timezone.utc):%Y-%m-%d}"


def part_of(component: Component, result: CommandResult, outcome: TableOutcome) -> str:
    """The part that the rows of one table are for."""
    return day_of(result.started_ms) if component is RUNS else bucket_of(*_names(outcome.table))


def _names(full_name: str) -> Tuple[str, str]:
    database, _, table = full_name.partition(".")
    return database, table


def to_row(component: Component, cells: Mapping[str, Any]) -> Row:
    unknown = cells.keys() - component.columns.keys()
    if unknown:
        raise KeyError(f"{component.name} has no column {sorted(unknown)}")
    return tuple(_bounded(cells.get(column)) for column in component.columns)


def _bounded(cell: Any) -> Any:
    """A table's owner chooses its columns, properties and views: they do not decide how large the catalogue gets."""
    return f"{cell[:MOST_TEXT]}…" if isinstance(cell, str) and len(cell) > MOST_TEXT else cell


def identity(result: CommandResult, full_name: str, key: str, identifier: str, kind: str) -> Dict[str, Any]:
    database, table = _names(full_name)
    for part, value in {"database": database, "table": table, "metadata key": key, "metadata identifier": identifier}.items():
        if not value:
            raise _without_key(f"a {kind} row of {full_name!r} has no {part}")
    return {
        "catalogue_name": CATALOGUE,
        "database_name": database,
        "table_name": table,
        "metadata_key": key,
        "metadata_identifier": identifier,
        "metadata_kind": kind,
        "run": result.run,
    }


def _without_key(what: str) -> Refused:
    return Refused(
        f"the catalogue: {what}, and no part of a key may be missing",
        code=Code.NOT_RECORDABLE,
        state="no row of this component was added",
        next="report it with the command and the table's definition: the metastore named none",
    )


# ---- what a command says about tables


@dataclass(frozen=True)
class SeenUnit:
    """A unit as it is after the command."""

    judged: UnitAnalysis
    files: int
    total_bytes: int
    lengths: sizing.Counts
    target_files: int
    status: Status
    rows: Optional[int] = None

    @property
    def known(self) -> Optional[KnownUnit]:
        """What the catalogue said of it, if it was not looked at."""
        return self.judged.known

    def small(self, threshold: float) -> Tuple[int, int]:
        """The number and size of its small files. Known lengths may be rounded, known sums are not."""
        if self.known:
            return self.known.small_files, self.known.small_bytes
        return sizing.sum_up([(length, files) for length, files in self.lengths if length < threshold])

    @property
    def segment(self) -> str:
        return self.judged.name.partition("/")[0] or DEFAULT_SEGMENT

    @classmethod
    def after(cls, judged: UnitAnalysis, outcome: Optional[UnitOutcome]) -> SeenUnit:
        """A swapped unit has files of about equal size. Of a joined one only some files are told: the next look counts all."""
        if (
            outcome is None
            or outcome.exchange == JOINED
            or outcome.outcome is not Outcome.SWAPPED
            or outcome.files_after is None
            or outcome.bytes_after is None
        ):
            return cls(judged, judged.sizes.files, judged.sizes.total_bytes, judged.lengths, judged.target_files, judged.status)
        files, size = outcome.files_after, outcome.bytes_after
        return cls(judged, files, size, [(size // files, files)] if files else [], files, Status.FINE, outcome.rows)


def is_view(outcome: TableOutcome) -> bool:
    return outcome.observed is not None and outcome.observed.table.kind in VIEW_KINDS


def describes(component: Component, outcome: TableOutcome) -> bool:
    """Whether a command has looked at a table in a way that this component records."""
    if component is RUNS:
        return bool(all(_names(outcome.table)))
    seen = outcome.observed
    # Where there was no room for all units, what is known of them stays.
    if seen is None or seen.of_all:
        return False
    return not seen.table.unreadable and bool(seen.table.kind) and is_view(outcome) is (component is VIEWS)


def replaced(component: Component, result: CommandResult, outcome: TableOutcome, level: Level) -> Iterator[Filter]:
    """Which rows a command's rows about a table replace."""
    database, table = _names(outcome.table)
    if component is RUNS:
        yield (CATALOGUE, database, table, result.run)
    elif not result.where:
        yield (CATALOGUE, database, table)
    elif outcome.observed and level.has("partition"):
        for unit in outcome.observed.units:
            yield (CATALOGUE, database, table, segment_of(unit.name), unit.name)


def rows_of(component: Component, result: CommandResult, outcome: TableOutcome, actor: Actor, level: Level) -> Iterator[Row]:
    """The rows of a component about one table."""
    if component is RUNS:
        rows: Iterable[Dict[str, Any]] = _rows_of_run(result, outcome, actor)
    elif component is VIEWS:
        rows = [_row_of_view(result, outcome)]
    else:
        rows = _rows_of_table(result, outcome, level)
    return (to_row(component, cells) for cells in rows)


def segment_of(partition: str) -> str:
    return partition.partition("/")[0] or DEFAULT_SEGMENT


def _identifier_of(partition: str) -> str:
    """A partition's own name. Behind a slash, which names do not end with: a table by one column has a segment of the same name."""
    return f"{partition}/"


def seen_units(outcome: TableOutcome) -> List[SeenUnit]:
    done = {unit.name: unit for unit in outcome.units}
    return [SeenUnit.after(unit, done.get(unit.name)) for unit in outcome.observed.units] if outcome.observed else []


def _rows_of_table(result: CommandResult, outcome: TableOutcome, level: Level) -> Iterator[Dict[str, Any]]:
    """The row of the table comes only from a look at all of it: --where shows a part."""
    observed = outcome.observed
    if observed is None:
        return
    settings, units = observed.settings, seen_units(outcome)
    by_segment: Dict[str, List[SeenUnit]] = {}
    for unit in units:
        by_segment.setdefault(unit.segment, []).append(unit)
    if not result.where:
        yield _general(result, outcome, observed, units)
        if level.has("segment"):
            for segment, some in by_segment.items():
                head = identity(result, outcome.table, segment, segment, "SEGMENT")
                yield {**head, **seen_by(result), **_sums(some, settings), "partition_count": len(some)}
    if level.has("partition"):
        for unit in units:
            yield from _rows_of_unit(result, outcome.table, unit, settings, level)


def seen_by(result: CommandResult) -> Dict[str, Any]:
    return {"operation": result.command, "seen_ms": result.started_ms}


def _general(result: CommandResult, outcome: TableOutcome, observed: ObservedTable, units: List[SeenUnit]) -> Dict[str, Any]:
    reason = outcome.problem
    status = observed.status
    if status is Status.COMPACT and not any(unit.status is Status.COMPACT for unit in units):
        status = Status.FINE
    last = observed.last_run
    if outcome.log_version is not None and outcome.run:
        last = (outcome.run, result.started_ms, result.command)
    return {
        **identity(result, outcome.table, GENERAL, GENERAL, "TABLE"),
        **seen_by(result),
        **_definition(observed.table),
        **(_sums(units, observed.settings) if not observed.reason else {}),
        "partition_count": len(units) if observed.table.partitioned and not observed.reason else None,
        "backup_objects": observed.backup_objects,
        "verdict": status.code,
        "reason_code": reason.code.code if reason else None,
        "reason": reason.what if reason else None,
        "last_run": last[0] if last else None,
        "last_run_ms": last[1] if last else None,
        "last_operation": last[2] if last else None,
    }


def _definition(table: Table) -> Dict[str, Any]:
    of_table, of_partitions = table.column_lists
    return {
        "table_kind": table.kind,
        "owner": table.owner,
        "file_format": table.storage.serde.rpartition(".")[2],
        "place": table.location,
        "column_list": of_table,
        "partition_column_list": of_partitions,
        "created_ms": table.create_time * 1000,
    }


def _sums(units: Iterable[SeenUnit], settings: Settings) -> Dict[str, Any]:
    units = list(units)
    threshold = sizing.threshold_bytes(settings.block_bytes, settings.ratio_threshold)
    small = [unit.small(threshold) for unit in units]
    return {
        "files": sum(unit.files for unit in units),
        "total_bytes": sum(unit.total_bytes for unit in units),
        "median_bytes": sizing.median_of(sizing.merge(unit.lengths for unit in units)),
        "small_files": sum(files for files, _ in small),
        "small_bytes": sum(size for _, size in small),
        "main_writer": _main_writer(units, threshold),
        "objects": sum(_objects(unit, settings) for unit in units),
        "files_after": sum(unit.target_files for unit in units),
        "bytes_to_rewrite": sum(unit.total_bytes for unit in units if unit.status is Status.COMPACT),
    }


def _objects(unit: SeenUnit, settings: Settings) -> int:
    if unit.known:
        return unit.known.objects
    files = sum(count * sizing.file_objects(length, settings.block_bytes) for length, count in unit.lengths)
    return files + 1 if unit.judged.snapshot.exists else 0


def _main_writer(units: Iterable[SeenUnit], threshold: float) -> Optional[str]:
    """Who owns most of the small files."""
    owners: Counter[str] = Counter()
    for unit in units:
        owners.update(unit.judged.count_small(threshold))
        if unit.known and unit.known.main_writer:
            owners[unit.known.main_writer] += unit.known.small_files
    return max(owners, key=lambda owner: (owners[owner], owner)) if owners else None


def _rows_of_unit(result: CommandResult, table: str, unit: SeenUnit, settings: Settings, level: Level) -> Iterator[Dict[str, Any]]:
    judged, name = unit.judged, unit.judged.name
    head = identity(result, table, unit.segment, _identifier_of(name), "PARTITION")
    is_as_listed = unit.status is judged.status and unit.rows is None
    yield {
        **head,
        **seen_by(result),
        **_sums([unit], settings),
        "partition_name": name,
        # "" where the answer of all tables would have been too large with it.
        "place": judged.live or None,
        "modified_ms": judged.snapshot.mtime_ms if judged.snapshot.exists else None,
        "directory_id": judged.snapshot.file_id if is_as_listed and judged.snapshot.exists else None,
        "verdict": unit.status.code,
        "reason_code": judged.reason.code.code if judged.reason and is_as_listed else None,
        "reason": judged.reason.what if judged.reason and is_as_listed else None,
        "row_count": unit.rows,
        "judged_by": judged_by(settings),
        "lengths": lengths_text(unit.lengths),
        **(
            {"median_bytes": unit.known.median_bytes, "seen_ms": unit.known.seen_ms, "row_count": unit.known.row_count}
            if unit.known
            else {}
        ),
    }
    if level.has("file") and is_as_listed and not unit.known:
        for file in judged.files:
            of_file = identity(result, table, unit.segment, f"{name}/{file.name}", "FILE")
            size = {"files": 1, "total_bytes": file.length, "modified_ms": file.mtime_ms, "main_writer": file.owner}
            yield {**of_file, **seen_by(result), **size, "partition_name": name, "file_name": file.name}


# ---- views and runs


def _row_of_view(result: CommandResult, outcome: TableOutcome) -> Dict[str, Any]:
    assert outcome.observed is not None
    view = outcome.observed.table
    return {
        **identity(result, outcome.table, GENERAL, GENERAL, "VIEW"),
        "seen_ms": result.started_ms,
        "view_kind": view.kind,
        "owner": view.owner,
        "column_list": view.column_lists[0],
        "view_text": view.view_text,
        "created_ms": view.create_time * 1000,
    }


def _rows_of_run(result: CommandResult, outcome: TableOutcome, actor: Actor) -> Iterator[Dict[str, Any]]:
    common = {
        "operation": result.command,
        "started_ms": result.started_ms,
        "user_name": actor.user,
        "host": actor.host,
        "application": actor.application,
        "hivekeeper_version": __version__,
    }
    measured = [unit for unit in outcome.units if unit.outcome in EXCHANGED and unit.files_after is not None]
    gone = [backup for backup in outcome.backups if backup.state.did_something]
    yield {
        **identity(result, outcome.table, result.run, GENERAL, "RUN"),
        **common,
        **(_now(outcome) if not result.where else {}),
        "seconds": outcome.seconds,
        "exit_code": int(outcome.code),
        "log_version": outcome.log_version,
        "reason_code": outcome.problem.code.code if outcome.problem else None,
        "reason": outcome.problem.what if outcome.problem else None,
        "files_before": sum(unit.files_before for unit in measured) if measured else None,
        "bytes_before": sum(unit.bytes_before for unit in measured) if measured else None,
        "files_after": sum(unit.files_after or 0 for unit in measured) if measured else None,
        "bytes_after": sum(unit.bytes_after or 0 for unit in measured) if measured else None,
        "discarded_files": sum(backup.going_files for backup in gone),
        "discarded_bytes": sum(backup.going_bytes for backup in gone),
    }
    for unit in (unit for unit in outcome.units if unit.units == 1):
        yield {
            **identity(result, outcome.table, result.run, _identifier_of(unit.name), "UNIT"),
            **common,
            "partition_name": unit.name,
            "outcome": unit.outcome.code,
            "reason_code": unit.why.code.code if unit.why else None,
            "reason": unit.reason or None,
            "files_before": unit.files_before,
            "bytes_before": unit.bytes_before,
            "files_after": unit.files_after,
            "bytes_after": unit.bytes_after,
            "row_count": unit.rows,
            "gap_ms": unit.gap_ms,
        }


def _now(outcome: TableOutcome) -> Dict[str, Any]:
    """The size of the table after the command, for growth over time."""
    if outcome.observed is None or outcome.observed.reason or outcome.observed.of_all or is_view(outcome):
        return {}
    sums = _sums(seen_units(outcome), outcome.observed.settings)
    return {key: sums[key] for key in ("files", "total_bytes", "small_files")}


# ---- what is known of units

_OF_UNIT = ("place", "directory_id", "modified_ms", "seen_ms", "judged_by", "verdict", "files", "total_bytes", "median_bytes", "objects",
            "small_files", "small_bytes", "lengths", "main_writer", "row_count")  # fmt: skip
KNOWN_COLUMNS = ("partition_name", *_OF_UNIT)


def known_from(row: Row) -> Optional[KnownUnit]:
    """A unit as its row in KNOWN_COLUMNS describes it; None if that lacks something."""
    cells: Dict[str, Any] = dict(zip(_OF_UNIT, row[1:]))
    lengths = lengths_from(cells["lengths"]) if isinstance(cells["lengths"], str) else None
    optional = ("main_writer", "row_count")
    if lengths is None or any(cell is None for name, cell in cells.items() if name not in optional):
        return None
    return KnownUnit(**{**cells, "lengths": lengths})
