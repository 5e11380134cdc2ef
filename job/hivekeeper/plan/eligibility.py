"""Decide by its definition whether a table, or a unit, is fit for compaction.

Pure. Each answer is None or a reason; in doubt it is a reason. The cases and their sources are listed in
docs/refusals.md. Where it may lie is in own_place.py, what its directories may hold in listings.py.
"""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Storage, Table, Unit
from hivekeeper.plan import own_place
from hivekeeper.reasons import Code, Reason

PARQUET = "parquet"
ORC = "orc"

# Exactly these triples: a Hudi table has Hive's Parquet SerDe and another input format (hazards 1).
FORMATS: Mapping[Tuple[str, str, str], str] = {
    (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    ): PARQUET,
    (
        "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    ): ORC,
}

# What a definition may promise of the files besides their format, which a rewrite would break.
LAYOUTS: Mapping[str, Tuple[Code, str]] = {
    "bucketed": (Code.BUCKETED, "bucketed, and file names carry the bucket"),
    "skewed": (Code.SKEWED, "skewed (list bucketing)"),
    "sorted": (Code.SORTED, "declared SORTED BY, which a rewrite would break"),
}

# Properties by which Hive leaves out rows at the ends of each file, whatever its format.
_SKIPPED_ROWS = ("skip.header.line.count", "skip.footer.line.count")


def format_of(storage: Storage) -> Optional[str]:
    return FORMATS.get((storage.input_format, storage.output_format, storage.serde))


def refuse_kind(table: Table) -> Optional[Reason]:
    """Why a table cannot have our log. A table that became unfit in any other way can still be rolled back."""
    if table.unreadable:
        return Reason(Code.UNREADABLE_DEFINITION, table.unreadable, "find out who gave it such properties, or leave it out")
    if "VIEW" in table.kind:
        return Reason(Code.VIEW, "it is a view", "name the table behind it")
    if table.kind not in ("EXTERNAL_TABLE", "MANAGED_TABLE"):
        return Reason(Code.UNKNOWN_TABLE_TYPE, f"its type is {table.kind}, neither external nor managed", "leave it out of the selection")
    if not table.location:
        return Reason(Code.NO_LOCATION, "it has no location", "leave it out of the selection")
    if names.is_reserved(table.location):
        return _refuse_reserved(table.location, "leave it out of the selection")
    if table.backup_of:
        return Reason(Code.BACKUP_TABLE, f"it is a backup table of {table.backup_of}", "name that table instead")
    if names.is_in_control(table.location):
        # An unpartitioned table's control directory lies beside it, so no table's directory is around it.
        return _refuse_control(table.location, "the table")
    return None


def _refuse_reserved(location: str, next: str) -> Reason:
    return Reason(Code.RESERVED_NAME, f"it lies in a snapshot, or where HDFS finds files by their numbers ({location})", next)


def _refuse_control(location: str, what: str) -> Reason:
    return Reason(
        Code.IN_CONTROL_DIRECTORY,
        f"it lies in a control directory of Hivekeeper, among backups and records ({location})",
        f"give {what} a directory of its own, or leave it out",
    )


def refuse_shown(table: Table) -> Optional[Reason]:
    """Why nothing of a table may be moved or deleted: Spark reads it among backups, wherever its location is."""
    shown = [path for path in table.spark_paths.values() if names.is_in_control(path)]
    return _refuse_control(shown[0], "the property path of its SerDe, where Spark reads it,") if shown else None


def refuse_table(table: Table) -> Optional[Reason]:
    """Why the whole table is unfit for compaction, from its definition alone."""
    leave_out = "leave it out of the selection"
    reason = refuse_kind(table) or refuse_shown(table)
    if reason:
        return reason
    parameters = {key.lower(): value for key, value in table.parameters.items()}
    if names.CATALOGUE in parameters:
        return Reason(Code.CATALOGUE_TABLE, "it is the catalogue's own", leave_out)
    # A wish that is not spelled as the pages say is one all the same.
    if parameters.get("hivekeeper.skip", "").strip().lower() not in ("", "false", "no", "off", "0"):
        return Reason(Code.SKIP_PROPERTY, "its property hivekeeper.skip is true", "unset the property to have it compacted")
    if parameters.get("transactional", "").lower() == "true":
        return Reason(Code.TRANSACTIONAL, "it is transactional (ACID)", "let Hive compact it: ALTER TABLE … COMPACT")
    reason = refuse_engine(table)
    if reason:
        return reason
    if table.buckets > 0 or table.bucket_columns or "spark.sql.sources.schema.numbuckets" in parameters:
        return _refuse_layout("bucketed", "it", leave_out)
    if table.skewed_columns:
        return _refuse_layout("skewed", "it", leave_out)
    if table.sort_columns:
        return _refuse_layout("sorted", "it", leave_out)
    if format_of(table.storage) is None:
        return Reason(Code.OTHER_FORMAT, f"its format is not Parquet or ORC (SerDe {table.storage.serde})", leave_out)
    skipping = _find_skipping({**table.storage.serde_parameters, **parameters})
    if skipping:
        return Reason(Code.SKIPPED_ROWS, f"Hive leaves out rows of each of its files ({skipping})", "unset the property, or leave it out")
    return None


def refuse_engine(table: Table) -> Optional[Reason]:
    """Why another engine has noted, for itself, which files are the table's and how long each is."""
    engine = _other_engine({key.lower(): value for key, value in table.parameters.items()})
    return Reason(Code.OTHER_ENGINE, f"it belongs to {engine}", f"use the maintenance of {engine} itself") if engine else None


def _refuse_layout(layout: str, what: str, next: str) -> Reason:
    code, promise = LAYOUTS[layout]
    return Reason(code, f"{what} is {promise}", next)


def _find_skipping(properties: Mapping[str, str]) -> str:
    """The property by which Hive skips rows, as it is set; "" for none. It takes a text for a number, or fails."""
    found = {key: properties.get(key, "").strip() for key in _SKIPPED_ROWS}
    return next((f"{key}={lines}" for key, lines in found.items() if lines not in ("", "0")), "")


def _other_engine(parameters: Mapping[str, str]) -> Optional[str]:
    provider = parameters.get(names.SPARK_PROVIDER, "").lower()
    handler = parameters.get("storage_handler", "").lower()
    for engine in ("iceberg", "delta", "hudi"):
        if provider == engine or engine in handler or parameters.get("table_type", "").lower() == engine:
            return engine.capitalize()
    if handler:
        return f"the storage handler {parameters['storage_handler']}"
    if provider and provider not in (PARQUET, ORC, "hive"):
        return f"Spark's data source {provider}"
    return None


def refuse_unit(table: Table, unit: Unit) -> Optional[Reason]:
    """Why one partition is unfit, from its definition (location qualified)."""
    if format_of(unit.storage) is None:
        return Reason(Code.OTHER_FORMAT, f"its own format is not Parquet or ORC (SerDe {unit.storage.serde})", "leave it out with --where")
    if format_of(unit.storage) != format_of(table.storage):
        return Reason(Code.OTHER_FORMAT, "its format differs from the table's", "leave it out with --where")
    if unit.storage.layout:
        # It was loaded before ALTER TABLE … NOT CLUSTERED, which changes no partition, and Hive asks each partition.
        return _refuse_layout(unit.storage.layout, "the partition itself", "leave it out with --where")
    if not own_place.is_below(unit.live, table.location):
        return Reason(Code.OUTSIDE_TABLE, f"it lies outside the table's directory ({unit.live})", "leave it out with --where")
    if names.is_reserved(unit.live):
        return _refuse_reserved(unit.live, "leave it out with --where")
    if names.is_in_control(unit.live[len(table.location.rstrip("/")) + 1 :]):
        return _refuse_control(unit.live, "the partition")
    levels = unit.live.count("/") - table.location.count("/")
    if levels > own_place.MOST_LEVELS:
        return Reason(Code.TOO_DEEP, f"it lies {levels} levels below the table's directory", "leave it out with --where")
    return None


def refuse_units(table: Table, units: Sequence[Unit]) -> Dict[str, Reason]:
    """The partitions that are unfit by definition, by name. `units` are all of the table, not only the selected ones."""
    if not table.partitioned:
        return {}
    refused = own_place.find_shared_locations(units)
    for unit in units:
        reason = refuse_unit(table, unit)
        if reason:
            refused.setdefault(unit.name, reason)
    return refused
