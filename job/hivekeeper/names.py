"""Names that Hivekeeper builds and reads back, always matched in full, never by prefix.

Pure. The disk layout behind these names is described in docs/on-disk.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Container, Dict, Iterator, List, Mapping, NewType, Optional, Sequence, Tuple

# ASCII digits only: `\d` matches digits of every script, and such a name would be read as one of ours.
_RUN = r"[0-9]{8}t[0-9]{6}z-[0-9a-f]{4}"
RUN = re.compile(r"(?P<time>[0-9]{8}t[0-9]{6}z)-(?P<salt>[0-9a-f]{4})")
RUN_DIRECTORY = re.compile(rf"(?P<run>{RUN.pattern})(?:\.t(?P<taken>[1-9][0-9]*))?")
# What a scheduler calls one execution: `0000012-260101-oozie-W@compact`, `%%ORDERID` as Control-M expands it.
RUN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=/%#-]{0,199}")
UNIT = re.compile(r"u(?P<number>[0-9]{5,})")
RECREATED = re.compile(r"u(?P<number>[0-9]{5,})\.(?P<nth>[0-9]+)")
# Beside them: that a unit was away for longer than a moment, or that somebody took its new files out then.
AWAY = re.compile(r"(?:away|taken-out)-u(?P<number>[0-9]{5,})")
# What an exchange by concat took out of live again.
TAKEN = re.compile(r"u(?P<number>[0-9]{5,})\.(?P<part>tail|file|beside)")
# A file that a joined file took, while it waits in `ready` to have its place again.
COPY = re.compile(r"\.hivekeeper\.copy-(?P<nth>[0-9]+)")
# Beside such copies: by which ids live is known again while they go back.
BACK = re.compile(r"\.hivekeeper\.back-(?P<directory>[0-9]+)-(?P<witness>[0-9]+)")
# The last part of a joined file while it waits in live.
JOIN_TAIL = re.compile(rf"\.hivekeeper\.tail-(?P<run>{RUN.pattern})-(?P<nth>[1-9][0-9]*)")
# What the name of a joined file has in it.
_JOINED = re.compile(rf"-{RUN.pattern}-[1-9][0-9]*(\.|$)")
# The same at the end of its stem, and what a file joined beside one has there.
_JOINED_STEM = re.compile(rf"(?:-{{1,2}}{_RUN}-[1-9][0-9]*[-_]?)+$")
CERTIFICATES = re.compile(r"certificates-[1-9][0-9]*\.jsonl")
LOG_ENTRY = re.compile(r"(?P<version>[0-9]{20})\.json")
CHECKPOINT = re.compile(r"(?P<version>[0-9]{20})\.checkpoint\.json\.gz")
TABLE = re.compile(r"(?P<database>[^.\x00-\x1f\x7f]+)\.(?P<table>[^.\x00-\x1f\x7f]+)")
# A table's name and creation time in seconds, as the log has them.
TABLE_ID = re.compile(rf"{TABLE.pattern}@-?[0-9]{{1,10}}")
BACKUP_PLACE = re.compile(rf"runs/(?P<directory>{RUN_DIRECTORY.pattern})/retired/(?P<unit>u[0-9]{{5,}})")

# The closed directory in which a control directory is made. Nobody can guess its name, to have another one there.
NEW = re.compile(r"\.hivekeeper\.new-[0-9a-f]{32}")
# A control directory that is being removed, with the end of its name: nothing, or that of the directory beside which it lay.
REMOVED = re.compile(rf"\.hivekeeper\.removed-{RUN.pattern}(?P<rest>-.+)?", re.DOTALL)

RunId = NewType("RunId", str)
# A unit's number in its run's plan, from 1.
UnitNumber = NewType("UnitNumber", int)

# Where Impala's coordinator stages inserts, in a directory per query; the empty parent is never removed.
IMPALA_STAGING = "_impala_insert_staging"

# Names that writers use in a table while they work, for files and directories: the committers of MapReduce, Spark and S3A, Hive, Spark's
# dynamic overwrite, Impala, Flink, Sqoop, StreamSets, DistCp, HCatalog and Kafka Connect. Kafka Connect's is a complete name; the others
# append ids, HCatalog a random number (FileOutputCommitterContainer).
WRITER_MARK = re.compile(
    r"(?:_temporary|__magic|_task_tmp\.|_tmp[._]|-ext-|\.hive-staging|\.spark-staging-|_impala_insert_staging|\.staging_|_sqoop|\.distcp\.tmp\.)"
    r".*|\+tmp|_(?:DYN|SCRATCH)[0-9.E-]+",
    re.DOTALL,
)
# Names of incomplete files; Flink appends an id to `.inprogress`. In any case: Impala reads neither `x.tmp` nor `x.TMP`
# (FileSystemUtil.isHiddenFile), which Hive and Spark read.
UNFINISHED_FILE = re.compile(r".*(?:\._COPYING_|\.tmp|\.copying|\.pending|\.in-?progress(?:\..*)?)", re.DOTALL | re.IGNORECASE)
# TOPIC+PARTITION+FIRST OFFSET+LAST OFFSET: Kafka Connect's HDFS sink continues after the highest offset that it finds in a name.
OFFSET_FILE = re.compile(r".+\+\d+\+\d+\+\d+(?:\.[^+]*)?", re.DOTALL)

SCHEME_AND_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?")

CONTROL = ".hivekeeper"
# The table property that Spark gives to the tables of its data sources.
SPARK_PROVIDER = "spark.sql.sources.provider"
# What lies in a control directory itself is a directory or hidden: a pattern of Spark's may lead there (`TABLE/*`), which then reads the
# files of that directory, but for these and for what is deeper (DataSource.checkAndGlobPathIfNecessary, InMemoryFileIndex of 3.5).
LOCK = "_lock"
# The empty file that each control directory is made with, and no other directory has.
SEAL = "_hivekeeper"
# Below these names HDFS reaches any file by inode number or without encryption, or contents never change.
RESERVED = frozenset([".reserved", ".snapshot"])
# How the name of a backup table ends.
_BACKUP_TIME = re.compile(r"_[0-9]{8}_[0-9]{6}\Z")
# The table properties that mark one of our backup tables: the table it belongs to, and its own name. Others may have got a copy (Impala's
# CREATE TABLE … LIKE, in CatalogOpExecutor.createTableLike), or keep it under a new name (ALTER TABLE … RENAME).
BACKUP_OF = "hivekeeper.backup-of"
BACKUP_NAME = "hivekeeper.backup-name"
# One more, a random text: the process that made a table knows it again, and nobody can have made another one with it before.
BACKUP_TOKEN = "hivekeeper.backup-token"
# The table property that marks the catalogue's own tables and views.
CATALOGUE = "hivekeeper.catalogue"
# Limits of a name and a path, in characters; HDFS accepts 255 bytes (by default) and 8000 characters.
MOST_NAME, MOST_PATH = 1024, 8000
MOST_NAME_BYTES = 255
# What makes a location a pattern; behind a backslash, a character stands for itself.
PATTERN = re.compile(r"[*?\[{\\]")
# What later runs may need more than this one, for a number with more digits and for the name beside it.
_ROOM_FOR_MARKS = 12
UNIT_COLUMN = "__hivekeeper_unit"


def run_id(now: datetime, salt: str) -> RunId:
    """`20260101t020304z-1f0c`: UTC to the second and four hex digits."""
    return RunId(f"{now.astimezone(timezone.utc):%Y%m%dt%H%M%Sz}-{salt}")


def started_ms(run: RunId) -> Optional[int]:
    """The time in a run's id; None if there is no such time."""
    try:
        return int(datetime.strptime(f"{run.partition('z')[0]}+0000", "%Y%m%dt%H%M%S%z").timestamp() * 1000)
    except ValueError:
        return None


def following_run_id(run: RunId) -> RunId:
    """The id of a second run that the same command makes of a table: the same second, the next of the four digits."""
    begins, _, salt = run.rpartition("-")
    return RunId(f"{begins}-{(int(salt, 16) + 1) % 0x10000:04x}")


def trial_directory(run: str) -> str:
    """The scratch directory of a doctor. The dot tells it from every control directory, whatever a table's directory is called."""
    return f"{CONTROL}.doctor-{run}"


# Those of all doctors, as a glob of Hadoop's.
TRIAL_DIRECTORIES = trial_directory("????????t??????z-????")


def unit_directory(number: UnitNumber) -> str:
    return f"u{number:05d}"


def backup_place(directory: str, number: UnitNumber) -> str:
    """Where the former live files are after a swap or a rollback, relative to the control directory."""
    return f"runs/{directory}/retired/{unit_directory(number)}"


def unit_of_place(place: str) -> Optional[Tuple[RunId, UnitNumber]]:
    """The run and the unit whose former live files backup_place puts there."""
    _, _, below = place.partition("runs/")
    directory, _, unit = below.partition("/retired/")
    run, match = run_of(directory), UNIT.fullmatch(unit)
    return (run, UnitNumber(int(match["number"]))) if run and match else None


def join_tail(run: RunId, nth: int) -> str:
    """The hidden name in live of the last part of a run's nth joined file."""
    return f".{CONTROL[1:]}.tail-{run}-{nth}"


def copy(nth: int) -> str:
    """The name in `ready` of a file that a joined file took under its nth name (COPY)."""
    return f".{CONTROL[1:]}.copy-{nth}"


def back(directory: int, witness: int) -> str:
    """The name beside such copies of what tells live, by its id, and a file in it (BACK)."""
    return f".{CONTROL[1:]}.back-{directory}-{witness}"


def joined_name(sources: Sequence[str], taken: Container[str], run: RunId, nth: int) -> Optional[str]:
    """A name for the file that these files become, between two of theirs in the order of names; None if there is none.

    Who opens all that he listed, in the order of names or against it, meets a source that is gone before or after he opens the new file.
    """
    return min((name for name in _joined_names(sources, run, nth) if name not in taken), key=len, default=None)


def may_be_joined(name: str) -> bool:
    """Whether a run may have given a file this name when it joined others."""
    return _JOINED.search(name) is not None


def is_joined_name(name: str, sources: Sequence[str], run: RunId, nth: int) -> bool:
    """Whether joined_name may give these files this name."""
    return name in _joined_names(sources, run, nth)


def joined_alone(source: str, taken: Container[str], run: RunId, nth: int) -> Optional[Tuple[str, str]]:
    """A name for the file that a single one becomes, and one for a file without rows on its other side, so that it lies between two as
    well; None if there are none.
    """
    besides = [beside for beside in _beside_names(source, run, nth) if beside not in taken]
    found = ((joined_name([source, beside], taken, run, nth), beside) for beside in besides)
    return min(((name, beside) for name, beside in found if name), key=lambda both: len(both[0]), default=None)


def is_beside_name(name: str, source: str, run: RunId, nth: int) -> bool:
    """Whether joined_alone may give this name to the file without rows."""
    return name in _beside_names(source, run, nth)


def _beside_names(source: str, run: RunId, nth: int) -> Iterator[str]:
    """Before and behind the name that a joined file gets from this source, with a suffix and without."""
    for mark in (f"--{run}-{nth}", f"-{run}-{nth}-", f"-{run}-{nth}_"):
        yield from _marked(source, mark, MOST_NAME_BYTES)


def output_name(number: int, mark: str, format: str) -> str:
    """`part-00000-MARK.parquet`, the nth output of a unit that a job copies to a stage of this mark."""
    return f"part-{number:05d}-{mark}.{format}"


def stage_mark(run: RunId, target: str, chance: str) -> str:
    """`20260101t020304z-0000-b00001-` and 32 hex digits: what the names of all files have that a job writes to this stage.

    All tables of a command have runs of one name, and a second one may come to the place of the first. `chance`, 128 random bits in hex,
    tells the files of one from those of another, which may be as long: the log knows them by their names and lengths.
    """
    return f"{run}-{base(target)}-{chance}"


def split_suffix(name: str) -> Tuple[str, str]:
    """`part-0.c000.snappy` and `.parquet`."""
    stem, dot, suffix = name.rpartition(".")
    return (stem, dot + suffix) if dot else (name, "")


def _joined_names(sources: Sequence[str], run: RunId, nth: int) -> Iterator[str]:
    for source in sorted(sources):
        for name in _marked(source, f"-{run}-{nth}", MOST_NAME_BYTES - _ROOM_FOR_MARKS):
            if min(sources) < name < max(sources):
                yield name


def _marked(source: str, mark: str, most_bytes: int) -> Iterator[str]:
    """A file's name with this mark, in place of those that earlier runs gave it, so that names do not grow; else behind them. None that is
    too long.
    """
    stem, suffix = split_suffix(source)
    for own in dict.fromkeys([_JOINED_STEM.sub("", stem), stem]):
        name = f"{own}{mark}{suffix}"
        if len(name.encode()) <= most_bytes:
            yield name


def record_place(directory: str) -> str:
    """Where the record of a `backup` run is, relative to the control directory."""
    return f"runs/{directory}"


def run_of(directory: str) -> Optional[RunId]:
    """The run that a run directory's name belongs to, None for any other name."""
    match = RUN_DIRECTORY.fullmatch(directory)
    return RunId(match["run"]) if match else None


def log_entry(version: int) -> str:
    return f"{version:020d}.json"


def log_version(name: str) -> Optional[int]:
    match = LOG_ENTRY.fullmatch(name)
    return int(match["version"]) if match else None


def checkpoint(version: int) -> str:
    return f"{version:020d}.checkpoint.json.gz"


def checkpoint_version(name: str) -> Optional[int]:
    match = CHECKPOINT.fullmatch(name)
    return int(match["version"]) if match else None


def backup_pattern(prefix: str) -> re.Pattern[str]:
    """Matches the names of backup tables: `PREFIX TABLE _YYYYMMDD_HHMMSS`."""
    return re.compile(rf"{re.escape(prefix)}(?P<table>.+)_(?P<day>\d{{8}})_(?P<time>\d{{6}})")


def backup_name(prefix: str, table: str, run: RunId) -> str:
    """The name of a run's backup table, with the run's time."""
    match = RUN.fullmatch(run)
    if match is None:
        raise ValueError(f"{run} is not a run id")
    day, _, time = match["time"].rstrip("z").partition("t")
    return f"{prefix}{table}_{day}_{time}"


def is_table_name(text: str) -> bool:
    """Whether a text is DATABASE.TABLE. With an @ clients of Hive 3 begin the name of a catalog (MetaStoreUtils.prependCatalogToDbName):
    that would be another name of a table that has one without it.
    """
    return TABLE.fullmatch(text) is not None and not text.startswith("@")


def is_backup(name: str, prefix: str) -> bool:
    return backup_pattern(prefix).fullmatch(name) is not None


def backup_marks(backup_table: str, of: str) -> Dict[str, str]:
    """The properties that mark a backup table. No other table is ever altered or dropped."""
    return {BACKUP_OF: of, BACKUP_NAME: backup_table}


def backed_up(full_name: str, parameters: Mapping[str, str]) -> str:
    """The table that a table with these properties is a backup table of, as we made and named it; "" for none."""
    of = parameters.get(BACKUP_OF, "")
    is_ours = parameters.get(BACKUP_NAME) == full_name and len(of) <= MOST_NAME and TABLE.fullmatch(of)
    return of if is_ours else ""


def may_back_up(name: str, table: str) -> bool:
    """Whether a backup table of a table can have this name, whatever the prefix. Names without a database."""
    stem = _BACKUP_TIME.sub("", name)
    return stem != name and stem.endswith(table)


def late_name(name: str, mark: str = "1") -> str:
    """The name of a file that is moved to where its own is taken."""
    stem, dot, suffix = (name, "", "") if name.startswith(".") else name.partition(".")
    return f"{stem}-late{mark}{dot}{suffix}"


def is_listed_above_units(name: str) -> bool:
    """Whether a listing of a table's root includes the name: hidden names and writers' names, but not partitions."""
    return name.startswith((".", "_", "+", "-"))


def is_writer_mark(name: str) -> bool:
    """Whether a writer creates files or directories of this name while it works, and may leave them behind."""
    return WRITER_MARK.fullmatch(name) is not None


def is_unfinished_file(name: str) -> bool:
    return UNFINISHED_FILE.fullmatch(name) is not None


def is_offset_file(name: str) -> bool:
    """Whether the name of a data file holds the offsets of Kafka Connect's HDFS sink."""
    return OFFSET_FILE.fullmatch(name) is not None


def is_hive_subdirectory(name: str) -> bool:
    """Whether Hive itself creates such a directory inside a unit (Tez UNION ALL, list bucketing): it is never lifted."""
    return name.startswith("HIVE_UNION_SUBDIR_") or "=" in name


def is_hidden(name: str) -> bool:
    """Whether Hive, Impala and Spark hide a name: a leading dot or underscore.

    Spark does show `_a=b`, because it might be a partition (hazards 3), but never inside a unit's
    directory, where this is used.
    """
    return name.startswith((".", "_"))


def is_file_name(name: str) -> bool:
    """Whether this can only name an entry of a directory: joined to the directory, it leads nowhere else."""
    return 0 < len(name) <= MOST_NAME and name not in (".", "..") and "/" not in name and "\0" not in name


def are_file_names(found: Sequence[str]) -> bool:
    """Whether all of these are file names, and no two the same."""
    different, together = set(found), "".join(found)
    is_short = min(map(len, found)) > 0 and max(map(len, found)) <= MOST_NAME
    return is_short and "/" not in together and "\0" not in together and len(different) == len(found) and different.isdisjoint((".", ".."))


def is_place_below(path: str) -> bool:
    """Whether a relative path, joined to a table's location, is below it, not in a control directory, and in normal form."""
    return len(path) <= MOST_PATH and not is_in_control(path) and all(map(is_file_name, path.split("/")))


def is_in_control(path: str) -> bool:
    """Whether a path is a control directory or inside one."""
    return any(_is_control(part) for part in path.split("/"))


def is_reserved(path: str) -> bool:
    """Whether a path leads through a name that HDFS reserves: nothing can be changed there, or what it leads to has another path."""
    return not RESERVED.isdisjoint(path.split("/"))


def _is_control(name: str) -> bool:
    return name == CONTROL or name.startswith(f"{CONTROL}-")


def server_of(location: str) -> str:
    """Scheme and authority of a location as they are written, "" without a scheme."""
    prefix = SCHEME_AND_AUTHORITY.match(location)
    return prefix[0] if prefix else ""


def may_lead_into(location: str, directory: str) -> bool:
    """Whether a location that is a pattern may find something in a directory below the one before the pattern: `events/batch[7]` finds
    nothing in `events/.hivekeeper`.
    """
    pattern = PATTERN.search(location, len(server_of(location)))
    return pattern is not None and f"{directory}/".startswith(location[: pattern.start()])


def before_pattern(location: str) -> str:
    """The directory that holds all that a location may mean: Hive (`FileInputFormat`) and Spark (`DataSource`) take one with any of these
    characters for a pattern of Hadoop. A location without them means itself. The root of a server has no slash behind it.
    """
    server = server_of(location)
    pattern = PATTERN.search(location, len(server))
    return location[: max(len(server), location.rfind("/", 0, pattern.start()))] if pattern else location


def is_location(text: str) -> bool:
    """Whether a qualified text has what every location has: a scheme and an absolute path, or a server alone."""
    server = server_of(text)
    path = text[len(server) :]
    return bool(server) and (path.startswith("/") or not path and "//" in server)


def base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def parent(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0]


def with_above(path: str) -> List[str]:
    """A directory and all above it, up to the root of its server, which has no slash behind it."""
    server, found = server_of(path), []
    while path and path != server:
        found.append(path)
        path = parent(path)
    return [*found, server]


def join(*parts: str) -> str:
    return "/".join([parts[0].rstrip("/"), *(part.strip("/") for part in parts[1:])])


@dataclass(frozen=True)
class ControlPaths:
    """The control directory, where Hivekeeper keeps its records of one table."""

    top: str

    @classmethod
    def of(cls, location: str, partitioned: bool) -> ControlPaths:
        """Inside the root of a partitioned table; beside that of an unpartitioned one, whose root itself is swapped."""
        if partitioned:
            return cls(join(location, CONTROL))
        return cls(join(parent(location), f"{CONTROL}-{base(location)}"))

    @property
    def is_inside(self) -> bool:
        """Whether it is inside the table's directory, as that of a partitioned table is."""
        return base(self.top) == CONTROL

    @property
    def home(self) -> str:
        """The table's directory."""
        return parent(self.top) if self.is_inside else join(parent(self.top), base(self.top)[len(CONTROL) + 1 :])

    def removed(self, run: str) -> str:
        """Where the control directory is while a run removes it. The dot tells it from every control directory."""
        return join(parent(self.top), f"{CONTROL}.removed-{run}{base(self.top)[len(CONTROL) :]}")

    @classmethod
    def of_removed(cls, path: str) -> Optional[ControlPaths]:
        """Where a control directory was before a run began to remove it, None if this is no such directory."""
        match = REMOVED.fullmatch(base(path))
        return cls(join(parent(path), CONTROL + (match["rest"] or ""))) if match else None

    def new(self, token: str) -> str:
        """Where a control directory is made, with these 32 hex digits, before it comes to its place; whatever that is called, which may be
        as long as names can be. The dot tells the directory around it from every control directory.
        """
        return join(parent(self.top), f"{CONTROL}.new-{token}", CONTROL)

    @property
    def seal(self) -> str:
        """An empty file that shows that a run of ours has made this directory."""
        return join(self.top, SEAL)

    @property
    def lock(self) -> str:
        return join(self.top, LOCK)

    @property
    def mark(self) -> str:
        """Since when the directory is known to belong to no table."""
        return join(self.top, "_orphan.json")

    @property
    def new_mark(self) -> str:
        """A mark before it is in place; also a file by which the NameNode's time is read before there is a run."""
        return f"{self.mark}.part"

    @property
    def log(self) -> str:
        return join(self.top, "log")

    @property
    def runs(self) -> str:
        return join(self.top, "runs")

    def run(self, directory: str) -> RunPaths:
        return RunPaths(join(self.runs, directory))


@dataclass(frozen=True)
class RunPaths:
    """The directories of one run. The location of a unit's directory is its state."""

    top: str

    @property
    def plan(self) -> str:
        return join(self.top, "plan.json")

    @property
    def entry(self) -> str:
        """The log entry, written here before it is renamed to its number."""
        return join(self.top, "entry.json")

    @property
    def checkpoint(self) -> str:
        """A checkpoint of the log, written here before it is renamed to its number."""
        return join(self.top, "checkpoint.json.gz")

    @property
    def clock(self) -> str:
        """A file re-created each time that a run reads the NameNode's time."""
        return join(self.top, "clock")

    def certificates(self, batch: int) -> str:
        return join(self.top, f"certificates-{batch}.jsonl")

    @property
    def stages(self) -> str:
        return join(self.top, "stage")

    def stage(self, batch: int) -> str:
        """What one Spark job writes: `stage/b00003/__hivekeeper_unit=42/part-….parquet`."""
        return join(self.stages, f"b{batch:05d}")

    def given_up(self, number: UnitNumber) -> str:
        """A proved copy that a recovery has given up: `stage/u00042`."""
        return join(self.stages, unit_directory(number))

    def staged(self, batch: int, number: UnitNumber) -> str:
        return join(self.stage(batch), f"{UNIT_COLUMN}={number}")

    def state(self, state: str) -> str:
        return join(self.top, state)

    def unit(self, state: str, number: UnitNumber) -> str:
        """`ready/u00042`: one unit's directory in one state."""
        return join(self.top, state, unit_directory(number))

    def taken(self, number: UnitNumber, part: str) -> str:
        """`taken/u00042.tail`: what an exchange by concat took out of live again (TAKEN)."""
        return join(self.top, "taken", f"{unit_directory(number)}.{part}")

    def away(self, number: UnitNumber) -> str:
        """An empty file: the unit was away for longer than a moment (AWAY)."""
        return join(self.top, f"away-{unit_directory(number)}")

    def taken_out(self, number: UnitNumber) -> str:
        """An empty file: somebody took the unit's new files out before live had them (AWAY)."""
        return join(self.top, f"taken-out-{unit_directory(number)}")

    def recreated(self, number: UnitNumber, nth: int) -> str:
        return join(self.top, "recreated", f"{unit_directory(number)}.{nth}")
