"""The catalogue over an in-memory world, for tests: its settings, its rows and its files."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from hivekeeper.catalogue.catalogue import Catalogue
from hivekeeper.catalogue.columns import KEYS, TABLES, Component
from hivekeeper.catalogue.commits import OVERWRITE
from hivekeeper.catalogue.store import Part, Store
from hivekeeper.config.settings import CatalogueSettings
from hivekeeper.jail import Jail, confine
from hivekeeper.ports import Cluster
from support.world import World

ROOT = "hdfs://nn/catalogue"
SETTINGS = CatalogueSettings(base_path="/catalogue")
RUN = "20260101t020304z-1f0c"


def open_catalogue(cluster: Cluster, settings: CatalogueSettings = SETTINGS, run: str = RUN) -> Catalogue:
    return Catalogue.open(cluster, settings, run, ())


def rows_in(cluster: Cluster, component: Component, columns: Sequence[str], **only: str) -> List[Tuple[Any, ...]]:
    """The rows of the newest state, in any order."""
    found = open_catalogue(cluster).read(component, columns, only)
    return sorted((tuple(row) for row in found), key=repr)


def places_shown(world: World, component: Component) -> Dict[str, str]:
    """What the metastore says: part → directory."""
    partitions = world.catalog.partitions.get(f"hivekeeper.{component.table}", {})
    return {name.partition("=")[2]: partition.location for name, partition in partitions.items()}


def rows_shown(world: World, component: Component) -> List[Tuple[Any, ...]]:
    """Rows that a reader of the component's table sees: all files in the directories of its partitions."""
    found = []
    for place in places_shown(world, component).values():
        files = [content for path, content in world.files.contents(place).items()]
        found += [tuple(row) for file in files for row in file.rows]
    return sorted(found, key=repr)


# ---- single components, with short rows


def a_store(cluster: Cluster, expire_after_ms: Optional[int] = None, component: Component = TABLES, base: str = ROOT) -> Store:
    top = f"{base}/metadata/{component.name}"
    return Store(confine(cluster, Jail("the catalogue", (f"{base}/metadata",), "hivekeeper")), component, top, RUN, (), expire_after_ms)


def short_row(table: str, key: str, files: int) -> Tuple[Any, ...]:
    cells = dict(zip(KEYS, ("hive", "sales", table, key, key)))
    return tuple({**cells, "files": files}.get(column) for column in TABLES.columns)


def put(store: Store, part: str, table: str, **files_by_key: int) -> int:
    """Overwrite all rows of a table; returns the number of the commit."""
    rows = [short_row(table, key, files) for key, files in files_by_key.items()]
    return store.change(OVERWRITE, lambda _before: [Part(part, [("hive", "sales", table)], lambda: rows)])[0]


def content(store: Store) -> Dict[Tuple[str, str], Any]:
    """(table, key) → files."""
    return {(str(table), str(key)): files for table, key, files in store.rows(("table_name", "metadata_key", "files"))}
