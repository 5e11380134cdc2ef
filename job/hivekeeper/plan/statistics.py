"""Whether Spark, told to count the rows of a table, would read just the files that were judged.

Pure. Spark resolves the table by itself (3.5, checked by hand): a table with a data source reads the path in its SerDe properties and takes
the others for options of the reader; every location is a pattern of names, in which escaped dots lead out of it; and a table whose
partitions Spark does not keep in the metastore is all that lies below its location.
"""

from __future__ import annotations

import re
from typing import Callable, Iterable, Optional

from hivekeeper.model import Storage, Table, Unit

_PATTERN = re.compile(r"[*?\[\]{}\\]")
# What Hive and Spark write for any table.
_HARMLESS = frozenset(["serialization.format", "path"])

Qualify = Callable[[str], str]


def refuse_counting(table: Table, units: Iterable[Unit], qualify: Qualify) -> Optional[str]:
    """Why Spark must not count the rows of a table (locations qualified), from its definition and those of its partitions."""
    provider = table.parameters.get("spark.sql.sources.provider", "").lower()
    of_spark = bool(provider) and provider != "hive"
    if of_spark and table.partitioned and table.parameters.get("spark.sql.partitionProvider", "").lower() != "catalog":
        return "Spark does not take its partitions from the metastore"
    for location, storage in [(table.location, table.storage), *((unit.live, unit.storage) for unit in units)]:
        if _PATTERN.search(location):
            return f"Spark takes the location {location} for a pattern"
        why = _refuse_options(location, storage, qualify) if of_spark else None
        if why:
            return why
    return None


def _refuse_options(location: str, storage: Storage, qualify: Qualify) -> Optional[str]:
    for key, value in storage.serde_parameters.items():
        if key.lower() not in _HARMLESS:
            return f"Spark takes the SerDe property {key} for an option of its reader"
        if key.lower() == "path" and qualify(value) != location:
            return f"Spark reads {value}, the path in its SerDe properties"
    return None
