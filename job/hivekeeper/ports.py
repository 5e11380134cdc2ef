"""The three ports between the program and a cluster, as contracts.

Each has a real implementation in `cluster/` and an in-memory fake in `tests/support/fakes/`; `tests/contract/` runs
the same cases on both. No method takes or returns a cluster object, and none makes one gateway call per
file or per partition.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ContextManager, Dict, Iterable, Mapping, Optional, Protocol, Sequence, Tuple, TypeVar

from hivekeeper.model import (
    Attributes,
    Differences,
    Digest,
    FileInfo,
    FooterGroup,
    Partition,
    Room,
    Snapshot,
    StageBatch,
    StageDigests,
    StageResult,
    Table,
    Ties,
    UnitFooters,
)

# What a caller tells its sets of files by.
Key = TypeVar("Key")


class FilesError(Exception):
    """A file system call that did not do what was asked. Always one of the subclasses, never raised for a success."""


class SourceMissing(FilesError):
    """The source of a rename or read, or the parent of a target, is not there."""


class TargetExists(FilesError):
    """The target of a rename or write exists already; nothing was changed."""


class NoPermission(FilesError):
    """The file system refused for lack of rights; nothing was changed."""


class NoSpace(FilesError):
    """No space or quota left; a write may have left a partial file."""


class FilesUnavailable(FilesError):
    """The call failed and its effect is unknown (connection lost, safe mode, standby): look before going on."""


class LockHeld(FilesError):
    """Another holder has the lock. `holder` is the text it wrote, "" where that cannot be read."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(path)
        self.holder = holder


class Lock(Protocol):
    """A lock that dies with its holder's process."""

    def check(self) -> bool:
        """Whether the lock is still ours; asks the NameNode."""

    def release(self) -> None: ...


class Files(Protocol):
    """A Hadoop file system. Each method that changes something is one atomic NameNode step, except where said."""

    # Directory times nearer than this to a time of the same clock cannot prove that nothing came after them.
    clock_grain_ms: int

    def qualify(self, path: str) -> str:
        """The one spelling of a location: scheme and authority filled in, no trailing or double slash."""

    def look(self, directories: Sequence[str]) -> Mapping[str, Snapshot]:
        """Snapshot of each directory in bulk: own file id and time first, then the raw listing, hidden names included.

        A missing directory gives `Snapshot(exists=False)`. One gateway call, whatever the number.
        """

    def look_hidden(self, directories: Sequence[str]) -> Mapping[str, Snapshot]:
        """As look, of the entries only those with a hidden name: beside them a table's root may hold tens of thousands of partitions."""

    def tree(self, top: str) -> Tuple[FileInfo, ...]:
        """Everything below a directory, at any depth, parents before children; () where it is missing."""

    def stat(self, path: str) -> Optional[FileInfo]:
        """None where nothing is there."""

    def make_directory(self, path: str) -> None:
        """Like mkdir -p; no error where it exists."""

    def rename_exact(self, source: str, target: str) -> None:
        """Rename, never over an existing target and never into one, not even an empty directory.

        Raises SourceMissing (source, or the target's parent), TargetExists, NoPermission, FilesUnavailable.
        (FileContext.rename without OVERWRITE; plain FileSystem.rename moves into an existing directory.)
        """

    def exchange(self, live: str, aside: str, incoming: str, mark: Snapshot) -> Optional[FileInfo]:
        """Rename live to aside; and incoming to live, if aside has the id and the time of `mark`. Gives None where both were done.

        Else the status of aside, with the old directory there: it differs, or somebody has created live again. Three NameNode steps, in one
        gateway call because readers find nothing at live in between. Raises as rename_exact does, after any of them.
        """

    def remove_empty(self, path: str) -> bool:
        """Delete a directory only if it is empty. False where it is not empty or not there."""

    def delete_tree(self, path: str) -> None:
        """Delete a directory and all below it; no error where it is missing. Only for what is proved to be superfluous."""

    def move_to_trash(self, path: str) -> bool:
        """Move a directory to the user's trash, as the file system's own policy has it (fs.trash.interval, encryption zones).

        False where the trash is switched off; nothing was changed then. Raises SourceMissing, and FilesUnavailable for a
        trash that cannot be made. Not atomic where the trash
        lies on another file system.
        """

    def read_text(self, path: str) -> str:
        """Raises SourceMissing."""

    def read_texts(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Many small files in one gateway call; a missing one is left out."""

    def write_new(self, path: str, text: str) -> None:
        """Create, write, sync to disk, close. Not atomic: a kill may leave a part of the file.

        Raises TargetExists, and SourceMissing where the parent is missing: a run whose directory was taken
        from it must not create it again (FileSystem.createNonRecursive).
        """

    def hold(self, path: str, holder: str) -> Lock:
        """Take the lock file and keep it; the parent is made. Raises LockHeld. Never breaks a living holder's lock."""

    def attributes(self, directories: Sequence[str]) -> Mapping[str, Attributes]:
        """Attributes of existing directories in bulk (file attributes from their first data file)."""

    def dress(self, wanted: Mapping[str, Attributes]) -> None:
        """Give each directory and the files in it these attributes, in bulk; raises NoPermission where that is not allowed.

        Storage policy and erasure coding act when a file is made, so call it before a write too. Not atomic.
        """

    def ties(self, directories: Sequence[str]) -> Mapping[str, Ties]:
        """What ties each existing directory to its place, in bulk; missing ones are left out."""

    def room(self, path: str, quotas_at: Sequence[str]) -> Room:
        """What may still be written at this place, which need not exist yet, as far as the file system and quotas say.

        Of `quotas_at` those directories are in the answer that have a quota, which this user may read. HDFS counts all that lies
        below one without a quota before it says so: each is asked only once.
        """


class MetastoreUnavailable(Exception):
    """The metastore did not answer, or speaks another protocol version."""


class MetastoreRefused(MetastoreUnavailable):
    """The metastore answered and declined: no right to do it, or the table is gone."""


class Metastore(Protocol):
    """The Hive Metastore through its own client. Names come back as the metastore spells them.

    Any method may raise MetastoreUnavailable.
    """

    def databases(self) -> Tuple[str, ...]: ...

    def table_names(self, database: str) -> Tuple[str, ...]:
        """() for a database without tables; raises KeyError for one that does not exist."""

    def tables(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        """In bulk; a missing one is left out. Locations are as stored: qualify them."""

    def partitions(self, table: Table) -> Tuple[Partition, ...]:
        """All partitions, ordered by name; locations as stored."""

    def partitions_named(self, table: Table, names: Sequence[str]) -> Mapping[str, Partition]:
        """Those of the named partitions that exist, in bulk."""

    def update_sizes(self, table: Table, sizes: Mapping[str, Tuple[int, int]], lives: Optional[Mapping[str, str]] = None) -> None:
        """Set numFiles and totalSize, by partition name ("" for an unpartitioned table); keep all else, numRows and
        COLUMN_STATS_ACCURATE included, and let the metastore emit its event. Re-reads, alters in bulk; a
        partition that is gone meanwhile, or lies elsewhere than `lives` says (by name), is left out.
        """

    def add_partition(self, table: Table, partition: Partition) -> bool:
        """Put a dropped partition back from the record; makes its directory where that is missing. False where it exists."""

    def make_backup_table(self, table: Table, name: str, location: str, parameters: Mapping[str, str], places: Mapping[str, str]) -> None:
        """Create the external table `name` (database.table) with the definition of another, over files that lie elsewhere.

        `places` maps partition names to the directories of their files; for an unpartitioned table it maps "" to it, and
        `location` is not used. `parameters` are set over the table's own. external.table.purge and discover.partitions are
        false, a SerDe `path` property that Spark set follows the location. No data is read, moved or made. Raises
        MetastoreRefused where the name is taken; a partition that is gone meanwhile is left out.
        """

    def point_backup_table(self, name: str, parameters: Mapping[str, str], places: Mapping[str, str]) -> None:
        """Let partitions ("" for an unpartitioned table) of a backup table show other directories, in bulk.

        Nothing is done where the table is gone or does not carry all of `parameters`, nor for partitions that it does not have.
        """

    def trim_backup_table(self, name: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        """Drop partitions of a backup table, their files untouched; under the same conditions as point_backup_table."""

    def drop_backup_table(self, name: str, parameters: Mapping[str, str]) -> bool:
        """Drop a backup table, its files untouched. False where it is gone or does not carry all of `parameters`: then it is not ours."""

    def hold(self, table: Table, timeout_s: float) -> ContextManager[str]:
        """Hive's own exclusive lock, best effort: yields "" where it is held, else the reason why not; never raises.

        Hive's readers wait for it too, so keep it for a swap, not for a run. It is not asked for with a timeout of 0.
        """

    def locations_below(self, locations: Sequence[str], database: str = "") -> Mapping[str, Tuple[str, ...]]:
        """Full names of the tables whose location equals, contains or lies inside one of these, the asking one included.

        Only tables of this database where one is named, else of all; what was read is kept for a few minutes.
        """

    def analyze(self, table: Table, partitions: Iterable[str]) -> None:
        """Recompute statistics with Spark's ANALYZE TABLE: the named partitions, then the table."""


class Rows(Protocol):
    """Reading and writing of data files. No row passes through Python."""

    def footers(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, UnitFooters]:
        """Read every footer of some sets of files, in bulk, each set grouped by form; zero-byte files are left out of the groups."""

    def write_stage(self, batch: StageBatch) -> StageResult:
        """Rewrite the batch's files into `batch.target` in one job, by the form's own file schema. Raises RowsError."""

    def read_stage(self, batch: StageBatch) -> StageDigests:
        """Read the whole output of a batch back."""

    def digests(self, format: str, groups: Mapping[Key, FooterGroup]) -> Mapping[Key, Digest]:
        """Content digests of any files, per key; comparable with those of read_stage."""

    def differences(self, format: str, one: Sequence[FooterGroup], other: Sequence[FooterGroup], limit: int) -> Differences:
        """Which rows two sets of files do not share, counted with multiplicity, and up to `limit` examples of each side.

        Rows are the same where their digests are; a column that a file lacks is NULL in its rows. An example stands for all
        of its copies. Raises RowsError where fewer rows were read than the footers tell.
        """

    def hazards(self, format: str, groups: Mapping[str, FooterGroup]) -> Mapping[str, str]:
        """Reasons, by unit, that only the data can tell why its rows cannot be rewritten faithfully (nanoseconds).

        Scans the columns concerned only.
        """


class RowsError(Exception):
    """A job that read or wrote rows failed; live is as it was. The message is the cause in one line."""


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970."""

    def monotonic_ms(self) -> float:
        """For durations only."""

    def sleep_ms(self, ms: float) -> None:
        """Wait."""


class Stopping(Protocol):
    """Whether a command is to end before all is done: asked between units and tables, so that what is in hand is finished first.

    Once there is a reason it stays.
    """

    @property
    def signal(self) -> int:
        """Number of the signal that asked for it, 0 where none did."""

    def why(self) -> str:
        """Why nothing more may be started, "" where there is no reason. Waits for the end of a pause."""

    def is_asked(self) -> bool:
        """Whether `why` would wait or give a reason. Never waits."""

    def at_once(self) -> ContextManager[None]:
        """Let a signal end the process at once while the body runs: an operator is asked, and nothing is in progress."""


class NeverStops:
    """Nothing was configured."""

    signal = 0

    def why(self) -> str:
        return ""

    def is_asked(self) -> bool:
        return False

    def at_once(self) -> ContextManager[None]:
        return nullcontext()


@dataclass(frozen=True)
class Cluster:
    """The ports together, and who we are on the cluster."""

    files: Files
    metastore: Metastore
    rows: Rows
    clock: Clock
    user: str
    host: str
    application_id: str
    spark_version: str
    time_zone: str
    # What was read of tables' logs, by the listed file: entries never change.
    log_entries: Dict[FileInfo, Any] = field(default_factory=dict, repr=False, compare=False)
    stopping: Stopping = field(default_factory=NeverStops, compare=False)
