"""Decide by the listing of a directory whether a unit is fit for compaction, whether a writer is at work, and which files are its data.

Pure. Each answer is None or a reason; in doubt it is a reason (docs/refusals.md).
"""

from __future__ import annotations

from typing import Container, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Attributes, FileInfo, Snapshot, Ties
from hivekeeper.plan import ownership
from hivekeeper.reasons import Code, Reason

# Snapshots of writers' directories and everything below them, by path. A missing path was not observed.
Inside = Mapping[str, Snapshot]
DELTA_LOG = "_delta_log"
FOREIGN_LOGS = frozenset(["_spark_metadata", DELTA_LOG, ".hoodie", "metadata", "_hudi_metadata"])

# Directories with files of Hive's transactional tables.
ACID_DIRECTORIES = ("base_", "delta_", "delete_delta_")

# What other engines have beside their files, and the directory in which Iceberg has those.
_FOREIGN = frozenset([*FOREIGN_LOGS, "data", ".hoodie_partition_metadata", "_orc_acid_version"])

# Of hidden entries above one unit, which are listed before each swap. A healthy table has a handful, or a few in each directory.
MOST_HIDDEN = 10_000

# Of hidden directories in the directory around a table, where a control directory may lie beside it. With long paths fewer are listed.
MOST_BESIDE = 200_000

# Of a unit's markers. A swap makes each again beside the output, one call after the other.
MOST_MARKERS = 100

# Parquet summary files describe the old files; readers take the schema from them, so they must not stay (hazards 2.1).
SUMMARY_FILES = frozenset(["_metadata", "_common_metadata"])


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
        return refuse_log(entry.name)
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
    return refuse_log(found.name) if found else None


def refuse_log(name: str) -> Reason:
    return Reason(Code.OTHER_ENGINE, f"it has a commit log of another engine ({name})", "use that engine's own maintenance")


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


def is_as_open(directory: Attributes, live: Attributes) -> bool:
    """Whether whoever reaches files in a unit reaches those of a directory in it: moved up, they must not become known to more users.

    The directory may be another table's, which somebody may rename but not read.
    """
    return directory.owner == live.owner and not ownership.is_narrower(directory, live)


def find_open(entries: Sequence[FileInfo], directory: Attributes, target: Attributes) -> Sequence[FileInfo]:
    """The entries of a directory that no more users could reach in `target`: all of one that is as open; of one with the same owner those
    that no more users could read there; of another owner none, as whoever may write to `target` could delete them.
    """
    if ownership.lets_all_pass(directory) or is_as_open(directory, target):
        return entries
    return [entry for entry in entries if directory.owner == target.owner and not is_shielded(entry, directory)]


def is_as_guarded(directory: Attributes, live: Attributes) -> bool:
    """Whether whoever may write to a unit may write to a directory whose files are to come to it: else they could delete these then."""
    is_alike = (directory.owner, directory.acl) == (live.owner, live.acl) and (directory.group == live.group or not live.mode & 0o020)
    is_sticky = directory.mode & 0o1000 and not live.mode & 0o1000
    return is_alike and not is_sticky and not live.mode & ~directory.mode & 0o022


def may_have_made(directory: FileInfo, owners: Container[str], live: FileInfo) -> bool:
    """Whether whoever made a directory at the place of a unit, beside which others may make names but not rename it, may write to the unit.
    Of the group that may, nobody can tell. Nor does its owner tell who has put it there, and files into it, if more users may write to it.
    """
    is_as_closed = not directory.mode & ~live.mode & 0o022 and (directory.group == live.group or not directory.mode & 0o020)
    return (directory.owner in owners and is_as_closed) or bool(live.mode & 0o002)


def is_shielded(entry: FileInfo, directory: Attributes) -> bool:
    """Whether a directory may keep users away from an entry of it that they could read in another one. An ACL of the entry may name
    anybody, with the rights of its group.
    """
    for_group, for_all = ownership.lets_group_pass(directory), ownership.lets_all_pass(directory)
    is_of_group = not entry.mode & 0o005 and entry.group == directory.group and not entry.has_acl
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
        f"there are more than {most} hidden files or directories above its units (fewer may have long paths)",
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
    """Empty hidden files such as `_SUCCESS`, which schedulers wait for: they are re-created beside the output. Not one that has the name of
    a seal: made by us, it would show that the unit's directory is a control directory.
    """
    empty = (entry.name for entry in snapshot.entries if not entry.is_dir and names.is_hidden(entry.name) and entry.length == 0)
    return tuple(sorted(name for name in empty if name != names.SEAL))


def find_summary(snapshot: Snapshot) -> str:
    """The Parquet summary file in a unit's directory, "" if there is none."""
    return next((entry.name for entry in snapshot.entries if entry.name in SUMMARY_FILES and entry.length > 0), "")


def newest_ms(snapshot: Snapshot) -> int:
    """When the directory or any of its files was last written."""
    return max([snapshot.mtime_ms, *(entry.mtime_ms for entry in snapshot.entries)])
