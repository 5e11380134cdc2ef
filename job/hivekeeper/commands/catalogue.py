"""catalogue: show, delete, purge and expire what commands saw and did; and add to it what a command that ran saw and did."""

from __future__ import annotations

import heapq
import logging
from dataclasses import dataclass
from typing import Dict, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.catalogue import row_groups
from hivekeeper.catalogue.catalogue import Catalogue
from hivekeeper.catalogue.columns import COMPONENTS, RUNS, TABLES, VIEWS, Component
from hivekeeper.catalogue.rows import Level
from hivekeeper.commands import per_table, selection
from hivekeeper.commands.context import Context
from hivekeeper.config.settings import CatalogueSettings
from hivekeeper.errors import UsageError
from hivekeeper.model import Selection
from hivekeeper.names import RUN
from hivekeeper.ports import Cluster, Row
from hivekeeper.reasons import Code
from hivekeeper.report.results import CatalogueAnswer, CommandResult

log = logging.getLogger(__name__)

# The commands whose results the catalogue keeps.
RECORDED = frozenset(["analyze", "compact-swap", "rollback", "cleanup", "verify", "backup", "recover"])

SHOW, DELETE, PURGE, EXPIRE = ACTIONS = ("show", "delete", "purge", "expire")
# What is shown of a component if nothing else is asked for.
KINDS = {TABLES: "TABLE", VIEWS: "VIEW", RUNS: "RUN"}
SHOWN: Dict[Component, Tuple[str, ...]] = {
    TABLES: ("database_name", "table_name", "verdict", "files", "small_files", "total_bytes", "files_after", "last_run", "seen_ms"),
    VIEWS: ("database_name", "table_name", "view_kind", "owner", "seen_ms"),
    RUNS: ("run", "database_name", "table_name", "operation", "exit_code", "files_before", "files_after", "discarded_files", "started_ms"),
}


@dataclass(frozen=True)
class Request:
    """What the command line asks of the catalogue. `kind` and `columns` are "" and () for the usual ones, `key` "" for any."""

    action: str
    component: str = TABLES.name
    kind: str = ""
    columns: Tuple[str, ...] = ()
    key: str = ""
    limit: int = 1000


def open_known(context: Context, settings: CatalogueSettings, trusted: Tuple[str, ...]) -> Optional[Catalogue]:
    """The catalogue, for what is known of tables; None if a table claims its place, as anybody's can, which must not end a command."""
    try:
        return Catalogue.open(context.cluster, settings, context.run, trusted)
    except UsageError as error:
        if error.reason.code is not Code.CATALOGUE_PLACE:
            raise
        log.warning("step=catalogue failed reason=%r", f"{error}; the command goes on as if nothing was known")
        return None


def place_of(settings: CatalogueSettings) -> str:
    """Where its files are, as it is written; "" without a catalogue."""
    return names.join(settings.base_path, settings.relative_path) if settings.base_path else ""


def run_catalogue(context: Context, settings: CatalogueSettings, trusted: Tuple[str, ...], request: Request) -> CommandResult:
    """Carry out a request. Raises UsageError and the errors of the catalogue's files."""
    cluster = context.cluster
    started, began = cluster.clock.now_ms(), cluster.clock.monotonic_ms()
    catalogue = Catalogue.open_there(cluster, settings, context.run, trusted)
    if request.action == SHOW:
        answer = _show(catalogue, context.selection, request)
    elif request.action == DELETE:
        selected = context.selection
        counts = catalogue.delete(lambda database, table, key: _is_selected(selected, database, table) and key == (request.key or key))
        answer = CatalogueAnswer(request.action, deleted=counts)
    else:
        (catalogue.purge if request.action == PURGE else catalogue.expire)()
        answer = CatalogueAnswer(request.action)
    seconds = (cluster.clock.monotonic_ms() - began) / 1000
    return CommandResult("catalogue", context.run, started, seconds, named=False, catalogue=answer)


def _show(catalogue: Catalogue, selected: Selection, request: Request) -> CatalogueAnswer:
    component = next(one for one in COMPONENTS if one.name == request.component)
    columns = request.columns or SHOWN[component]
    known = {*component.columns, component.part}
    for column in columns:
        if column not in known:
            raise UsageError(f"{component.name} has no column {column}", next=f"its columns are {', '.join(sorted(known))}")
    only = {"metadata_kind": request.kind or KINDS[component]}
    if request.key:
        only["metadata_key"] = request.key
    if len(selected.tables) == 1 and not selected.databases:
        only["database_name"], _, only["table_name"] = selected.tables[0].lower().partition(".")
    rows = catalogue.read(component, (*columns, *_ORDER), only)
    wanted = (row for row in rows if _is_selected(selected, str(row[-3]), str(row[-2])))
    # The ids of runs begin with their time.
    first = heapq.nlargest if component is RUNS else heapq.nsmallest
    found = [row[: len(columns)] for row in first(request.limit + 1, wanted, key=_place_of)]
    return CatalogueAnswer(SHOW, component.name, columns, tuple(found[: request.limit]), has_more=len(found) > request.limit)


_ORDER = ("metadata_key", "database_name", "table_name", "metadata_identifier")


def _place_of(row: Row) -> Tuple[str, ...]:
    """Runs are ordered by their ids, all others by their tables."""
    key, *table = map(str, row[-len(_ORDER) :])
    return (key, *table) if RUN.fullmatch(key) else (*table, key)


def _is_selected(selected: Selection, database: str, table: str) -> bool:
    """Whether a selection names a table; an empty one names all."""
    name = f"{database}.{table}"
    named = not selected.databases and not selected.tables
    named = named or database in map(str.lower, selected.databases) or name in map(str.lower, selected.tables)
    return named and not selection.is_excluded(name, selected.exclude)


def most_row_groups(settings: CatalogueSettings) -> int:
    """Of so many row groups of each table a command is to say where they are."""
    return row_groups.MOST_OF_TABLE if settings.base_path is not None and Level.of(settings.level).has("row_group") else 0


def keeps_files(settings: CatalogueSettings) -> bool:
    """Whether a command's result must have each file of each table."""
    return settings.base_path is not None and Level.of(settings.level).has("file")


def record(cluster: Cluster, settings: CatalogueSettings, trusted: Sequence[str], result: CommandResult) -> None:
    """Keep what a command saw and did. Whatever fails here, the command has done its work: a warning, and the next one mends it."""
    if settings.base_path is None or result.dry_run or result.command not in RECORDED or not result.tables:
        return

    def write() -> None:
        Catalogue.open(cluster, settings, result.run, tuple(trusted)).record(result)

    problem: Optional[str] = per_table.try_beside(cluster, "catalogue", write)
    if problem is not None:
        log.warning("step=catalogue failed reason=%r", f"{problem}; what this run saw may be missing in the catalogue or its tables")
