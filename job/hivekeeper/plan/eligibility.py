"""Decide what is fit for compaction: tables, units, directories.

Pure. Each answer is None or a reason; in doubt it is a reason. The cases and their sources are listed in
docs/refusals.md.
"""

from __future__ import annotations

from typing import Container, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from hivekeeper import names
from hivekeeper.model import Attributes, FileInfo, Snapshot, Storage, Table, Ties, Unit
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

# Snapshots of writers' directories and everything below them, by path. A missing path was not observed.
Inside = Mapping[str, Snapshot]

FOREIGN_LOGS = frozenset(["_spark_metadata", "_delta_log", ".hoodie", "metadata", "_hudi_metadata"])

# Directories with files of Hive's transactional tables.
ACID_DIRECTORIES = ("base_", "delta_", "delete_delta_")
# What other engines have beside their files, and the directory in which Iceberg has those.
_FOREIGN = frozenset([*FOREIGN_LOGS, "data", ".hoodie_partition_metadata", "_orc_acid_version"])

# Of a unit below its table: before each swap, every directory between is looked at twice, the second time within milliseconds.
MOST_LEVELS = 50
# Of directories that are looked at for a table's records: all of its partitions outside it may have places of their own.
MOST_FORMER_PLACES = 1000
# Of hidden entries above one unit, which are listed before each swap. A healthy table has a handful, or a few in each directory.
MOST_HIDDEN = 10_000
# Of a unit's markers. A swap makes each again beside the output, one call after the other.
MOST_MARKERS = 100

# What a definition may promise of the files besides their format, which a rewrite would break.
LAYOUTS: Mapping[str, Tuple[Code, str]] = {
    "bucketed": (Code.BUCKETED, "bucketed, and file names carry the bucket"),
    "skewed": (Code.SKEWED, "skewed (list bucketing)"),
    "sorted": (Code.SORTED, "declared SORTED BY, which a rewrite would break"),
}

# Properties by which Hive leaves out rows at the ends of each file, whatever its format.
_SKIPPED_ROWS = ("skip.header.line.count", "skip.footer.line.count")

# Parquet summary files describe the old files; readers take the schema from them, so they must not stay (hazards 2.1).
SUMMARY_FILES = frozenset(["_metadata", "_common_metadata"])


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
    other_engine = _other_engine(parameters)
    if other_engine:
        return Reason(Code.OTHER_ENGINE, f"it belongs to {other_engine}", f"use the maintenance of {other_engine} itself")
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
    if not is_below(unit.live, table.location):
        return Reason(Code.OUTSIDE_TABLE, f"it lies outside the table's directory ({unit.live})", "leave it out with --where")
    if names.is_reserved(unit.live):
        return _refuse_reserved(unit.live, "leave it out with --where")
    if names.is_in_control(unit.live[len(table.location.rstrip("/")) + 1 :]):
        return _refuse_control(unit.live, "the partition")
    levels = unit.live.count("/") - table.location.count("/")
    if levels > MOST_LEVELS:
        return Reason(Code.TOO_DEEP, f"it lies {levels} levels below the table's directory", "leave it out with --where")
    return None


def refuse_units(table: Table, units: Sequence[Unit]) -> Dict[str, Reason]:
    """The partitions that are unfit by definition, by name. `units` are all of the table, not only the selected ones."""
    if not table.partitioned:
        return {}
    refused = find_shared_locations(units)
    for unit in units:
        reason = refuse_unit(table, unit)
        if reason:
            refused.setdefault(unit.name, reason)
    return refused


# The other table may be somebody's mistake, but its files may be the only ones.
_HOW_TO_MOVE_PATH = ", or set that property to the table's own (ALTER TABLE … SET SERDEPROPERTIES ('path'='…'))"
_HOW_TO_MOVE = "(ALTER TABLE … SET LOCATION; DROP TABLE may delete the files)"


def refuse_overlap(table: Table, touching: Iterable[Table]) -> Optional[Reason]:
    """Why no directory may be moved in a table that overlaps another table. Its own backup tables are no reason."""
    other = next((one for one in touching if one.backup_of != table.full_name), None)
    if other is None:
        return None
    is_elsewhere = any(path != other.location for path in other.spark_paths.values())
    return Reason(
        Code.SHARED_DIRECTORY,
        f"its directory, or its control directory, equals, contains or lies inside that of {other.full_name}"
        + (", or the one that the property path of its SerDe names, where Spark reads it" if is_elsewhere else ""),
        f"give each table a directory of its own {_HOW_TO_MOVE}" + (_HOW_TO_MOVE_PATH if is_elsewhere else ""),
    )


def refuse_home(table: Table, homes: Mapping[str, str]) -> Optional[Reason]:
    """Why a table in another database's directory, or around one, may not be swapped.

    The default database's directory is around those of all others, so the innermost one around the table must be that of its own database.
    """
    around = {name: home for name, home in homes.items() if table.location == home or is_below(table.location, home)}
    innermost = max((len(home) for home in around.values()), default=0)
    nearest = sorted(name for name, home in around.items() if len(home) == innermost)
    if nearest and table.database not in nearest:
        return _shared(f"it lies in the directory of the database {nearest[0]} ({around[nearest[0]]})")
    inside = sorted(name for name, home in homes.items() if is_below(home, table.location))
    return _shared(f"it contains the directory of the database {inside[0]} ({homes[inside[0]]})") if inside else None


def _shared(what: str) -> Reason:
    return Reason(
        Code.SHARED_DIRECTORY,
        what,
        f"give each table a directory of its own, in its own database's directory or outside all {_HOW_TO_MOVE}",
    )


def is_inside(table: Table, unit: Unit) -> bool:
    """Whether a unit is in its table's directory, so that its own may be looked at. Others are refused whatever they hold."""
    return unit.live == table.location or is_below(unit.live, table.location)


def find_former_places(table: Table, lives: Iterable[str]) -> Tuple[str, ...]:
    """Where the table may have been before its location was set elsewhere, which moves no partition: the directories in which partitions
    outside its own lie as Hive makes them (`dt=1/hour=2`), on its server. No more than MOST_FORMER_PLACES.
    """
    server, columns = names.server_of(table.location), [column.name.lower() for column in table.partition_columns]
    found: Dict[str, None] = {}
    for live in lives:
        if live == table.location or is_below(live, table.location) or names.server_of(live) != server:
            continue
        place = live
        for column in reversed(columns):
            name, is_named, _ = names.base(place).partition("=")
            if not is_named or name.lower() != column:
                break
            place = names.parent(place)
        else:
            if len(place) > len(server) and place != table.location:
                found[place] = None
        if len(found) == MOST_FORMER_PLACES:
            break
    return tuple(found)


def is_below(path: str, top: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")


def find_shared_locations(units: Sequence[Unit]) -> Dict[str, Reason]:
    """Partitions whose directory equals, contains or lies inside another's (hazards 5.7), by name.

    Takes each partition once, however many share a directory or lie around and inside one another.
    """
    by_location: Dict[str, List[str]] = {}
    for unit in units:
        by_location.setdefault(unit.live, []).append(unit.name)
    found: Dict[str, Reason] = {}
    for sharing in by_location.values():
        if len(sharing) > 1:
            found.update({name: _shared_unit(f"it shares its directory with {_other(sharing, name)}") for name in sharing})
    containing: Set[str] = set()
    for outer, inner in _find_nested(by_location):
        if outer not in containing:
            containing.add(outer)
            for name in by_location[outer]:
                found.setdefault(name, _shared_unit(f"its directory contains that of {by_location[inner][0]}"))
        found.update({name: _shared_unit(f"its directory lies inside that of {by_location[outer][0]}") for name in by_location[inner]})
    return found


def _find_nested(locations: Iterable[str]) -> Iterator[Tuple[str, str]]:
    """Each location that lies inside others, behind the nearest of these."""
    around: List[str] = []
    # With a slash at their ends, those inside a location follow it directly.
    for place in sorted(locations, key=lambda location: location.rstrip("/") + "/"):
        while around and not is_below(place, around[-1]):
            around.pop()
        if around:
            yield around[-1], place
        around.append(place)


def _shared_unit(what: str) -> Reason:
    return Reason(Code.SHARED_DIRECTORY, what, "give each partition a directory of its own")


def _other(sharing: Sequence[str], name: str) -> str:
    return next(other for other in sharing if other != name)


def refuse_directory(snapshot: Snapshot) -> Optional[Reason]:
    """Why a unit's directory is unfit, from its raw listing."""
    for entry in snapshot.entries:
        reason = _refuse_subdirectory(entry) if entry.is_dir else _refuse_file(entry)
        if reason:
            return reason
    return refuse_markers(len(marker_files(snapshot)))


def refuse_markers(markers: int) -> Optional[Reason]:
    """Why a unit with so many of them is unfit."""
    if markers <= MOST_MARKERS:
        return None
    what = f"it has {markers} empty hidden files, more than {MOST_MARKERS}, each of which would be made again"
    return Reason(Code.TOO_MANY_HIDDEN, what, "find out who makes them, and remove them")


def _refuse_subdirectory(entry: FileInfo) -> Reason:
    if names.is_writer_mark(entry.name):
        return writer_at_work(entry.name)
    if entry.name in FOREIGN_LOGS:
        return _refuse_log(entry)
    if entry.name.startswith(ACID_DIRECTORIES):
        return Reason(Code.ACID_DIRECTORY, f"it has an ACID directory ({entry.name})", "let Hive compact it")
    return Reason(
        Code.SUBDIRECTORY,
        f"it has a sub-directory ({entry.name}), whose rows Hive and Spark see differently",
        "move its files up or away, or leave the unit out with --where",
    )


def refuse_logs_above(entries: Iterable[FileInfo]) -> Optional[Reason]:
    """Why nothing may be moved in a table: in its root, or above its units, lies a log that says which files are rows. Spark's streaming
    sinks (FileStreamSink.hasMetadata), Delta and Hudi have theirs above the partitions.
    """
    found = next((entry for entry in entries if entry.is_dir and entry.name in FOREIGN_LOGS), None)
    return _refuse_log(found) if found else None


def _refuse_log(log: FileInfo) -> Reason:
    return Reason(Code.OTHER_ENGINE, f"it has a commit log of another engine ({log.name})", "use that engine's own maintenance")


def refuse_unseen(reason: Optional[Reason], snapshot: Snapshot) -> Optional[Reason]:
    """Why a unit has rows perhaps that its listing does not show. `reason`: why it is unfit."""
    if reason is not None and reason.code is Code.UNREADABLE_DIRECTORY:
        return reason
    # Not all that writers make is hidden from readers.
    inside = (entry for entry in snapshot.entries if entry.is_dir and not names.is_hidden(entry.name))
    return next(map(_refuse_subdirectory, inside), None)


def find_committed(live: Snapshot) -> Tuple[FileInfo, ...]:
    """The directories in a unit's directory that a committer may have renamed into it, having taken it for its target.

    None where another engine keeps files: its directories say which rows are there, in which version. And none beside no data file at all:
    a committer's rename goes into live because something is there. What has only directories may be another table, and what has a lock
    beside a log or runs a control directory, that somebody has put in its place.
    """
    present = {entry.name for entry in live.entries}
    is_other = bool(present & _FOREIGN) or any(entry.is_dir and entry.name.startswith(ACID_DIRECTORIES) for entry in live.entries)
    is_control = names.LOCK in present and not present.isdisjoint(["log", "runs"])
    if is_other or is_control or not any(map(_is_complete_data, live.entries)):
        return ()
    unlike = (names.is_hidden, names.is_writer_mark, names.is_hive_subdirectory)
    return tuple(entry for entry in live.entries if entry.is_dir and not any(known(entry.name) for known in unlike))


def holds_only_data(committed: Snapshot) -> bool:
    """Whether a directory holds nothing but complete data files, as a committer's rename leaves it."""
    return committed.exists and all(_is_complete_data(entry) for entry in committed.entries)


def _is_complete_data(entry: FileInfo) -> bool:
    return not entry.is_dir and not names.is_hidden(entry.name) and _refuse_file(entry) is None


def is_as_open(directory: Union[FileInfo, Attributes], live: Union[FileInfo, Attributes]) -> bool:
    """Whether whoever reaches files in a unit reaches those of a directory in it: moved up, they must not become known to more users.

    The directory may be another table's, which somebody may rename but not read.
    """
    for_group = directory.group == live.group or directory.mode & 0o5 == 0o5
    return directory.owner == live.owner and for_group and not live.mode & ~directory.mode & 0o055


def may_have_made(directory: FileInfo, owners: Container[str], live: FileInfo) -> bool:
    """Whether whoever made a directory at the place of a table without partitions may write to the table: anybody may who may make names
    beside it. Of the group that may, nobody can tell.
    """
    return directory.owner in owners or bool(live.mode & 0o002)


def is_shielded(entry: FileInfo, directory: FileInfo) -> bool:
    """Whether a directory may keep users away from an entry of it that they could read in another one. Named users of an ACL count as the
    group.
    """
    for_group = directory.mode & 0o050 == 0o050
    for_all = for_group and directory.mode & 0o005 == 0o005
    is_of_group = not entry.mode & 0o005 and entry.group == directory.group
    return bool(entry.mode & 0o055) and not for_all and not (for_group and is_of_group)


def refuse_ties(ties: Ties, control_zone: str) -> Optional[Reason]:
    """Why a unit's directory must not be renamed. `control_zone`: the encryption zone where the new files will be written."""
    leave_out = "leave the unit out with --where, or the table out of the selection"
    if ties.denied:
        return Reason(
            Code.NOT_RENAMABLE, f"its directory may not be renamed: {ties.denied}", "run as the owner of that directory or as the superuser"
        )
    if ties.zone != control_zone:
        theirs, ours = ties.zone or "none", control_zone or "none"
        return Reason(
            Code.OTHER_ENCRYPTION_ZONE,
            f"its encryption zone ({theirs}) is not that of the place where new files are written ({ours})",
            leave_out,
        )
    if ties.locked:
        return Reason(
            Code.NO_ZONE_KEY,
            f"it lies in the encryption zone {ties.zone}, whose key this user may not use: {ties.locked}",
            f"have the use of the key allowed in the KMS, or {leave_out}",
        )
    if ties.snapshots:
        return Reason(Code.SNAPSHOTTABLE, "snapshots can be made of its directory itself, and would stay with the old files", leave_out)
    if ties.quota:
        return Reason(Code.OWN_QUOTA, "its directory has a quota of its own, which would stay with the old files", leave_out)
    return None


def refuse_unreadable(why: str) -> Reason:
    return Reason(
        Code.UNREADABLE_DIRECTORY, f"its directory may not be read: {why}", "run as a user who may, or leave the unit out with --where"
    )


def writer_at_work(name: str) -> Reason:
    return Reason(
        Code.WRITER_AT_WORK, f"a writer is at work ({name})", "run again when it is done; if nobody is writing, remove what it left"
    )


def refuse_offset_names(files: Iterable[FileInfo]) -> Optional[Reason]:
    """Why files must keep their names: a writer that looks for its offsets in them would write everything again."""
    found = next((file.name for file in files if names.is_offset_file(file.name)), None)
    if found is None:
        return None
    return Reason(
        Code.OFFSETS_IN_NAMES,
        f"Kafka Connect keeps its offsets in the names of its files ({found})",
        "leave the unit out with --where; once the connector is gone, set compact_offset_files to true",
    )


def _refuse_file(entry: FileInfo) -> Optional[Reason]:
    if entry.is_open:
        return Reason(Code.OPEN_FILE, f"a file is open for writing ({entry.name})", "run again when it is closed")
    if entry.name == "_orc_acid_version":
        return Reason(Code.ACID_DIRECTORY, "it has an ACID directory (_orc_acid_version)", "let Hive compact it")
    if names.is_writer_mark(entry.name):
        return writer_at_work(entry.name)
    if names.is_unfinished_file(entry.name):
        return Reason(Code.UNFINISHED_FILE, f"a file looks unfinished ({entry.name})", "rename or remove it")
    if names.is_hidden(entry.name) and entry.length > 0 and entry.name not in SUMMARY_FILES:
        return Reason(Code.HIDDEN_FILE, f"it has an unknown hidden file ({entry.name})", "move it away if it is not needed")
    return None


def too_many_hidden(most: int) -> Reason:
    return Reason(
        Code.TOO_MANY_HIDDEN,
        f"there are more than {most} hidden files or directories above its units",
        "find out who makes them, and remove them",
    )


def find_writer(entries: Iterable[FileInfo], inside: Inside, now_ms: int, leftover_ms: Optional[int]) -> Optional[str]:
    """The first mark of a writer at work in a table's root or above its units; leftovers do not count."""
    for entry in entries:
        if is_mark(entry) and not is_leftover(entry, inside, now_ms, leftover_ms):
            return entry.name
    return None


def is_mark(entry: FileInfo) -> bool:
    """Whether an entry of a directory above the units may belong to a writer: by its name, or as an open file."""
    return names.is_writer_mark(entry.name) or (not entry.is_dir and (entry.is_open or names.is_unfinished_file(entry.name)))


def is_leftover(mark: FileInfo, inside: Inside, now_ms: int, leftover_ms: Optional[int]) -> bool:
    """Whether no writer is at work behind a mark above the units: the mark and everything below it are old, and nothing is open.

    Only above the units, because what is there stays in place when they are swapped. Impala never removes its empty directory.
    """
    below = _list_below(mark, inside)
    if below is None:
        return False
    if is_impala_staging(mark) and not below:
        return True
    return all(_is_old(entry, now_ms, leftover_ms) for entry in (mark, *below))


def _is_old(entry: FileInfo, now_ms: int, leftover_ms: Optional[int]) -> bool:
    return leftover_ms is not None and not entry.is_open and entry.mtime_ms <= now_ms - leftover_ms


def find_unsure(entries: Iterable[FileInfo], now_ms: int, leftover_ms: Optional[int]) -> List[str]:
    """Writers' directories above the units that may be leftovers; only their contents can tell."""
    marks = (entry for entry in entries if entry.is_dir and is_mark(entry))
    return [mark.path for mark in marks if is_impala_staging(mark) or _is_old(mark, now_ms, leftover_ms)]


def _list_below(top: FileInfo, inside: Inside) -> Optional[List[FileInfo]]:
    """Everything below a directory; None if part of it was not observed."""
    found: List[FileInfo] = []
    waiting = [top] if top.is_dir else []
    while waiting:
        seen = inside.get(waiting.pop().path)
        if seen is None or not seen.exists:
            return None
        found += seen.entries
        waiting += [entry for entry in seen.entries if entry.is_dir]
    return found


def without_empty_staging(entries: Sequence[FileInfo], inside: Inside) -> Tuple[FileInfo, ...]:
    """The entries of a unit's directory without Impala's staging directory, if that is empty.

    This is the only leftover accepted inside a unit: a query that starts in it later creates its own directory there, which the next look
    sees. Other writers' directories are not empty while they work, nor afterwards.
    """
    return tuple(entry for entry in entries if not (is_impala_staging(entry) and _list_below(entry, inside) == []))


def is_impala_staging(entry: FileInfo) -> bool:
    return entry.is_dir and entry.name == names.IMPALA_STAGING


def data_files(snapshot: Snapshot) -> Tuple[FileInfo, ...]:
    """The files that hold rows (not hidden, not empty), ordered by name."""
    return tuple(
        sorted(
            (entry for entry in snapshot.entries if not entry.is_dir and not names.is_hidden(entry.name) and entry.length > 0),
            key=lambda f: f.name,
        )
    )


def marker_files(snapshot: Snapshot) -> Tuple[str, ...]:
    """Empty hidden files such as `_SUCCESS`, which schedulers wait for: they are re-created beside the output."""
    return tuple(sorted(entry.name for entry in snapshot.entries if not entry.is_dir and names.is_hidden(entry.name) and entry.length == 0))


def find_summary(snapshot: Snapshot) -> str:
    """The Parquet summary file in a unit's directory, "" if there is none."""
    return next((entry.name for entry in snapshot.entries if entry.name in SUMMARY_FILES and entry.length > 0), "")


def newest_ms(snapshot: Snapshot) -> int:
    """When the directory or any of its files was last written."""
    return max([snapshot.mtime_ms, *(entry.mtime_ms for entry in snapshot.entries)])
