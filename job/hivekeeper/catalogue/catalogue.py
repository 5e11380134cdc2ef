"""The catalogue as a whole: its components at their places, and their tables in the metastore.

Changes nothing outside its own directories and its own database.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Callable, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.catalogue import row_groups, rows
from hivekeeper.catalogue.columns import BUCKET, CATALOGUE, COMPONENTS, GENERAL, KEY_COLUMNS, RUNS, TABLES, VIEWS, VIEWS_OF_NOW, Component
from hivekeeper.catalogue.commits import DELETE, EXPIRE, OVERWRITE, PURGE, Commit
from hivekeeper.catalogue.row_groups import RowGroups
from hivekeeper.catalogue.rows import Actor, Filter, Level
from hivekeeper.catalogue.store import Part, Store
from hivekeeper.config.settings import CatalogueSettings
from hivekeeper.errors import HivekeeperError, UsageError
from hivekeeper.jail import Jail, confine
from hivekeeper.model import CatalogueTable
from hivekeeper.names import RunId
from hivekeeper.plan.analysis import ObservedTable
from hivekeeper.plan.unchanged import KnownUnit
from hivekeeper.ports import Cluster, FilesError, MetastoreRefused, MetastoreUnavailable, Row
from hivekeeper.reasons import Code
from hivekeeper.report.results import CommandResult, TableOutcome

log = logging.getLogger(__name__)

# What a change makes of the state before it; None before the first commit.
Parts = Callable[[Optional[Commit]], Iterable[Part]]

# Those that have a name; any other one is a bug, and ends the change.
FAILURES = (HivekeeperError, FilesError, MetastoreUnavailable)

# Another run may commit while the tables are pointed at a commit.
MOST_TURNS = 5


@dataclass(frozen=True)
class Catalogue:
    """The catalogue that a configuration names. The cluster is in its jail."""

    cluster: Cluster
    settings: CatalogueSettings
    base: str
    run: RunId
    trusted: Tuple[str, ...]
    # Those that are read and changed.
    components: Tuple[Component, ...] = COMPONENTS
    # What its components have found, so that each command looks once: see Store.
    fixed: Set[str] = field(default_factory=set, compare=False)

    @classmethod
    def open(cls, cluster: Cluster, settings: CatalogueSettings, run: RunId, trusted: Tuple[str, ...]) -> Catalogue:
        """Raises UsageError if there is none, or if it would lie where tables do: their readers would find its files among the rows."""
        opened = cls._at_place(cluster, settings, run, trusted)
        for claim in opened._find_claims().values():
            raise claim
        return opened

    @classmethod
    def open_there(cls, cluster: Cluster, settings: CatalogueSettings, run: RunId, trusted: Tuple[str, ...]) -> Catalogue:
        """The same for what only deals with rows that are there, without the components that lie where tables do and have no commit yet.

        A table that claims the place of a commit came to it later, as anybody's can. Nobody else may write there, and nothing is removed
        but what only commits name. Raises UsageError if no component is left.
        """
        opened = cls._at_place(cluster, settings, run, trusted)
        claims = opened._find_claims()
        there = tuple(component for component in COMPONENTS if component not in claims or opened.store(component).is_there())
        for claim in () if there else claims.values():
            raise claim
        for component, claim in claims.items():
            log.warning("step=catalogue component=%s claimed reason=%r", component.name, str(claim))
        return replace(opened, components=there)

    @classmethod
    def _at_place(cls, cluster: Cluster, settings: CatalogueSettings, run: RunId, trusted: Tuple[str, ...]) -> Catalogue:
        if settings.base_path is None:
            raise UsageError("catalogue.base_path is not set", next="set it to a directory for the catalogue (docs/catalogue.md)")
        base = cluster.files.qualify(settings.base_path)
        if cluster.files.is_foreign(base):
            raise UsageError(
                f"catalogue.base_path: {base} is on a server, or a file system, that no configuration names",
                next="give one on the default one",
            )
        top = names.join(base, settings.relative_path)
        opened = cls(confine(cluster, Jail("the catalogue", (top,), settings.database.lower())), settings, base, run, trusted)
        places = [opened.store(component).top for component in COMPONENTS]
        if len(set(places)) < len(places):
            raise _wrong_place(f"two components lie at {max(places, key=places.count)}", "give each component a directory of its own")
        return opened

    def _find_claims(self) -> Dict[Component, UsageError]:
        """The components that lie where a table of somebody else does."""
        places = {self.store(component).top: component for component in COMPONENTS}
        own = {f"{self.database}.{component.table}" for component in COMPONENTS}
        found = {}
        for place, touching in self.cluster.metastore.locations_below(list(places)).items():
            others = [name for name in touching if name not in own]
            if others:
                what = f"{place} is, contains or lies in the directory of {others[0]}"
                found[places[place]] = _wrong_place(what, "set catalogue.base_path to another one")
        return found

    @property
    def database(self) -> str:
        return self.settings.database.lower()

    def store(self, component: Component) -> Store:
        places = {TABLES: self.settings.tables, VIEWS: self.settings.views, RUNS: self.settings.runs}
        top = names.join(self.base, self.settings.relative_path, places[component])
        return Store(self.cluster, component, top, self.run, self.trusted, self.settings.expire_after_ms, self.fixed)

    # ---- what commands saw

    def record(self, result: CommandResult) -> None:
        """Add what a command saw and did."""
        actor = Actor(self.cluster.user, self.cluster.host, self.cluster.application())
        vanished = self._find_vanished(result)

        def plan(component: Component) -> Parts:
            by_part: Dict[str, List[TableOutcome]] = {}
            for outcome in result.tables:
                if rows.describes(component, outcome):
                    by_part.setdefault(rows.part_of(component, result, outcome), []).append(outcome)
            gone: Dict[str, List[Filter]] = {}
            for database, table in vanished.get(component, ()):
                gone.setdefault(rows.bucket_of(database, table), []).append((CATALOGUE, database, table))
            return partial(self._parts, component, result, by_part, gone, actor)

        self._change(COMPONENTS, OVERWRITE, plan)

    def _parts(
        self,
        component: Component,
        result: CommandResult,
        by_part: Mapping[str, Sequence[TableOutcome]],
        gone: Mapping[str, Sequence[Filter]],
        actor: Actor,
        before: Optional[Commit],
    ) -> Iterator[Part]:
        level = Level.of(self.settings.level)
        for name in sorted({*by_part, *gone}):
            some = by_part.get(name, ())
            without = [*gone.get(name, ()), *(each for outcome in some for each in rows.replaced(component, result, outcome, level))]
            yield Part(name, without, partial(self._rows_of_all, component, result, some, actor, level))
        if component is RUNS and before is not None:
            oldest = rows.day_of(result.started_ms - self.settings.keep_runs_ms)
            yield from (Part(file.part, (), is_whole=True) for file in before.files if file.part < oldest)

    def _rows_of_all(
        self, component: Component, result: CommandResult, outcomes: Sequence[TableOutcome], actor: Actor, level: Level
    ) -> Iterator[Row]:
        for outcome in sorted(outcomes, key=lambda one: one.table):
            yield from rows.rows_of(component, result, outcome, actor, level)
            if component is TABLES and level.has("file") and outcome.observed:
                yield from self._files_of_unchanged(outcome.table, outcome.observed)
        if component is TABLES and level.has("row_group") and outcomes:
            yield from self._row_groups(result, outcomes)

    def _row_groups(self, result: CommandResult, outcomes: Sequence[TableOutcome]) -> Iterator[Row]:
        """Of tables of one part: those that were read, and those of before whose files are still there."""
        only = {BUCKET: rows.part_of(TABLES, result, outcomes[0]), "metadata_kind": row_groups.KIND}
        only.update(_of_table(outcomes[0].table) if len(outcomes) == 1 else {})
        before = self.read(TABLES, row_groups.TABLE_AND_PARTITION, only) if result.where else ()
        after = RowGroups(result, outcomes, row_groups.count_staying(before, outcomes))
        for outcome in outcomes:
            yield from (rows.to_row(TABLES, cells) for cells in after.read(outcome.table))
        yield from filter(after.keeps, self.read(TABLES, tuple(TABLES.columns), only))

    def _files_of_unchanged(self, table: str, observed: ObservedTable) -> Iterator[Row]:
        """The rows of the files in partitions that were not looked at."""
        unchanged = {unit.name for unit in observed.units if unit.known}
        if unchanged:
            columns = tuple(TABLES.columns)
            at = columns.index("partition_name")
            files = self.read(TABLES, columns, {**_of_table(table), "metadata_kind": "FILE"})
            yield from (row for row in files if row[at] in unchanged)

    def known_units(self, table: str) -> Mapping[str, KnownUnit]:
        """What is known of the units of a table, by name."""
        found = self.read(TABLES, rows.KNOWN_COLUMNS, {**_of_table(table), "metadata_kind": "PARTITION"})
        known = ((row[0], rows.known_from(row)) for row in found)
        return {str(name): unit for name, unit in known if unit is not None}

    def _find_vanished(self, result: CommandResult) -> Mapping[Component, Set[Tuple[str, str]]]:
        """What is recorded of the selected databases, and not there any more. What is there is asked last: another command may record a
        table that was created a moment ago.
        """
        databases = {name.lower() for name in result.databases}
        recorded = {component: self._find_recorded(component, databases) for component in (TABLES, VIEWS)}
        there = self._names_there({database for known in recorded.values() for database, _ in known})
        return {
            component: {(database, name) for database, name in known if database in there and name not in there[database]}
            for component, known in recorded.items()
        }

    def _find_recorded(self, component: Component, databases: Collection[str]) -> Set[Tuple[str, str]]:
        """The tables or views of these databases; none if they cannot be read, as the change of the component tells."""
        if not databases:
            return set()
        # All that is recorded is read once, not once for each of ten thousand databases.
        only = {"metadata_key": GENERAL, **({"database_name": next(iter(databases))} if len(databases) == 1 else {})}
        with suppress(*FAILURES):
            known = self.store(component).rows(("database_name", "table_name"), only)
            return {(str(database), str(name)) for database, name in known if database in databases}
        return set()

    def _names_there(self, databases: Iterable[str]) -> Mapping[str, Set[str]]:
        """The tables and views of these databases, without the databases that are closed."""
        found: Dict[str, Set[str]] = {}
        for database in sorted(databases):
            try:
                found[database] = set(self.cluster.metastore.table_names(database))
            except KeyError:
                # Its owner has dropped it.
                found[database] = set()
            except MetastoreRefused:
                # Or closed it.
                continue
        return found

    # ---- commands of its own

    def read(self, component: Component, columns: Sequence[str], only: Mapping[str, str]) -> Iterator[Row]:
        """The rows that have these texts in these columns; if they name a table, only its part is read."""
        if component.part == BUCKET and {"database_name", "table_name"} <= only.keys():
            only = {**only, BUCKET: rows.bucket_of(only["database_name"], only["table_name"])}
        return self.store(component).rows(columns, only)

    def delete(self, chosen: Callable[[str, str, str], bool]) -> Mapping[str, int]:
        """Remove rows by database, table and metadata key; returns how many keys were there, by component. Files stay until they expire."""
        counts = {}

        def plan(component: Component) -> Optional[Parts]:
            by_part: Dict[str, Set[Filter]] = {}
            for part, *key in self.store(component).rows((component.part, *KEY_COLUMNS)):
                catalogue, database, table, metadata_key = map(str, key)
                if chosen(database, table, metadata_key):
                    by_part.setdefault(str(part), set()).add((catalogue, database, table, metadata_key))
            counts[component.name] = sum(map(len, by_part.values()))
            return partial(_without, by_part) if by_part else None

        self._change(self.components, DELETE, plan)
        return counts

    def purge(self) -> None:
        """Remove all rows. Commits and files stay until they expire."""
        self._change(self.components, PURGE, lambda _component: _without_rows)

    def expire(self) -> None:
        """Remove what a newer commit replaced longer ago than expire_after."""
        self._change(self.components, EXPIRE, lambda _component: lambda _before: ())

    def _change(self, components: Iterable[Component], operation: str, plan: Callable[[Component], Optional[Parts]]) -> None:
        """Change the files of each component as planned, if at all, then let their tables show them. Raises the first error at the end.

        A table of somebody else by a name that is needed keeps no rows out of the files, which come first, nor another table from showing
        its own. Nor does a component whose files are damaged.
        """
        changed: List[Component] = []
        errors: List[Exception] = []
        for component in components:
            try:
                parts = plan(component)
                if parts is not None:
                    self._change_files(component, operation, parts)
                    changed.append(component)
            except FAILURES as error:
                errors.append(error)
        for component in changed:
            try:
                self.register(component)
            except FAILURES as error:
                errors.append(error)
        for other in errors[1:]:
            log.warning("step=catalogue failed reason=%r", str(other))
        if errors:
            raise errors[0]

    def _change_files(self, component: Component, operation: str, parts: Parts) -> None:
        version, commit = self.store(component).change(operation, parts)
        log.info("step=catalogue component=%s operation=%s version=%d rows=%d", component.name, operation, version, _count(commit))

    # ---- Hive's tables

    def register(self, component: Component) -> None:
        """Let the component's table show the newest commit, and make what is missing: the database, the table, its views.

        The files are the truth. Two runs may point the table in any order, so the newest commit is asked for again afterwards.
        """
        metastore, store = self.cluster.metastore, self.store(component)
        name, owners = f"{self.database}.{component.table}", (self.cluster.user, *self.trusted)
        table = CatalogueTable(name, store.top, component.columns, component.part, {names.CATALOGUE: component.name}, owners)
        metastore.make_database(self.database, "What Hivekeeper saw and did (docs/catalogue.md)")
        if not metastore.make_catalogue_table(table):
            raise _taken(name)
        self._point(table, store)
        for view in (view for view in VIEWS_OF_NOW if view.of is component):
            own = f"{self.database}.{view.name}"
            if not metastore.make_catalogue_view(own, view.text(self.database), view.types, {names.CATALOGUE: view.name}, owners):
                raise _taken(own)

    def _point(self, table: CatalogueTable, store: Store) -> None:
        shown = -1
        for _ in range(MOST_TURNS):
            version, commit = store.newest()
            if version == shown:
                return
            places = {file.part: names.join(store.top, file.place) for file in commit.files} if commit else {}
            if not self.cluster.metastore.point_catalogue_table(table, places):
                raise _taken(table.name)
            shown = version


def _without(by_part: Mapping[str, Set[Filter]], _before: Optional[Commit]) -> Iterator[Part]:
    return (Part(part, sorted(keys)) for part, keys in sorted(by_part.items()))


def _without_rows(before: Optional[Commit]) -> Iterator[Part]:
    return (Part(name, (), is_whole=True) for name in (before.by_part if before else ()))


def _of_table(full_name: str) -> Dict[str, str]:
    database, _, table = full_name.lower().partition(".")
    return {"database_name": database, "table_name": table}


def _count(commit: Commit) -> int:
    return sum(file.rows for file in commit.files)


def _wrong_place(what: str, then: str) -> UsageError:
    return UsageError(f"the catalogue: {what}", code=Code.CATALOGUE_PLACE, next=then)


def _taken(name: str) -> UsageError:
    return UsageError(
        f"{name} exists and is not the catalogue's",
        code=Code.CATALOGUE_PLACE,
        state="it was not changed; the catalogue's files are right",
        next="set catalogue.database to a database of its own; or, if it is the catalogue's from before its place or its user changed, "
        "drop it: its files stay",
    )
