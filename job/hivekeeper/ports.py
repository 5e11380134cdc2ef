"""The ports between the program and a cluster, as contracts: `Files`, `Metastore`, `Rows` and `RowFiles`. `Cluster` holds them.

Each has a real implementation in `cluster/` and an in-memory fake in `tests/support/fakes/`; `tests/contract/` runs
the same cases on both. No method takes or returns a cluster object, and none makes one gateway call per
file or per partition.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import (
    Any,
    Callable,
    ContextManager,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
)

from hivekeeper.errors import Refused
from hivekeeper.model import (
    OWNER_ONLY,
    Attributes,
    Block,
    CatalogueTable,
    Content,
    Differences,
    Ends,
    Exposed,
    FileInfo,
    FilesByRights,
    FooterGroup,
    Guard,
    Partition,
    Room,
    Snapshot,
    StageBatch,
    Table,
    Ties,
    UnitFooters,
)
from hivekeeper.names import UnitNumber
from hivekeeper.reasons import Code

# As a limit: none.
ALL = 2**31 - 1
# As a limit of a file's length: none.
ANY_LENGTH = 2**63 - 1

# What a listed file takes here, as `max_files` counts; and a character of its path, where one of them is of a rare alphabet.
BYTES_OF_FILE, BYTES_OF_CHARACTER = 1024, 4

# As the ids of directories: what is at their paths.
NO_IDS: Mapping[str, int] = MappingProxyType({})

# A caller's key for each of its sets of files.
Key = TypeVar("Key")
Known = TypeVar("Known")


def counts_as(directory: str) -> int:
    """As how many files each one in a directory counts: its own path has that of the directory in it, which may have 8,000 characters."""
    return max(1, BYTES_OF_CHARACTER * len(directory) // BYTES_OF_FILE)


def most_files(most: int, directories: Iterable[str]) -> int:
    """How many files of some directories take no more than `most` of those that count as one."""
    return most // max(map(counts_as, directories), default=1)


class FilesError(Exception):
    """A file system call failed. Always one of the subclasses, never raised for a success."""

    # The code for the operator if this error ends the work on a table or a command.
    code = Code.FILE_SYSTEM_UNUSABLE


class SourceMissing(FilesError):
    """The source of a rename or read, or the parent of a target, does not exist."""


class SourceReplaced(FilesError):
    """Another file is at the path of the one that was to be read."""


class TargetExists(FilesError):
    """The target of a rename or write already exists; nothing was changed."""


class NoPermission(FilesError):
    """The file system refused for lack of rights; nothing was changed."""

    code = Code.NO_PERMISSION


class ForeignTrash(NoPermission):
    """What goes to this user's trash would be in the hands of others; nothing was moved."""

    code = Code.TRASH_NOT_OURS


class NotPossible(FilesError):
    """The file system does not do this with these files, or at all; nothing was changed."""


class NoSpace(FilesError):
    """No space or quota left; a write may have left a partial file."""

    code = Code.NOT_ENOUGH_SPACE


class FilesUnavailable(FilesError):
    """The call failed and its effect is unknown (connection lost, safe mode, standby): check before going on."""


class NoTicket(FilesUnavailable):
    """There is no Kerberos ticket, or it has expired; whether the call took effect is unknown too."""

    code = Code.NO_TICKET


class LockHeld(FilesError):
    """Another holder has the lock. `holder` is the text it wrote, "" if that cannot be read."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(path)
        self.holder = holder


class Lock(Protocol):
    """A lock that dies with its holder's process."""

    def check(self) -> bool:
        """Whether the lock is still ours, according to the NameNode."""

    def release(self) -> None: ...


class Files(Protocol):
    """A Hadoop file system. Each method that changes something is one atomic NameNode step, unless stated otherwise.

    While a lock is held, what lies in the directory with its file is found by that directory's id, though another one may come to its path,
    and is told by its path: by all methods but `concat`, which goes by names (and `ties` and `room`). Not on local files, behind a
    router or a mount table of ViewFs: there is only the path. The name of that directory itself, for `stat` and the methods that make,
    rename or remove, is one in the directory around it.
    """

    # A directory time closer than this to a time of the same clock cannot prove that nothing was added later.
    clock_grain_ms: int

    # ---- locations

    def qualify(self, path: str) -> str:
        """The canonical spelling of a location: scheme and authority filled in, no trailing or double slash. A text that is no location
        stays none, and is foreign.
        """

    def is_foreign(self, location: str) -> bool:
        """Whether a location, which is qualified, is on a server that no configuration names: no other method may be called for it, as
        that may never return. Neither this nor `qualify` calls a server.
        """

    # ---- what is there

    def look(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        """Snapshot of each directory in bulk: own file id and time first, then the raw listing, hidden names included.

        A missing directory gives `Snapshot(exists=False)`. One gateway call, whatever the number. Ends at `most` entries of all directories
        together: so many may be only a part. While the lock of its table is held, the listing is of the directory with that id, though
        another one may come to its path meanwhile; with the exceptions of the ids of locks.
        """

    def look_hidden(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        """Like look, but returns only entries whose names begin with one of `._+-`, as hidden files and writers' files do.

        A table's root may hold tens of thousands of partitions besides them.
        """

    def look_hidden_directories(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        """Like look_hidden, but returns only directories. No file is looked at, of whose blocks somebody may have made a million: whoever
        looks for directories beside other tables uses this.
        """

    def stat(self, path: str) -> Optional[FileInfo]:
        """The status of a path; None if it does not exist."""

    # ---- what has an id, wherever it is by now

    def id_around(self, directory: str) -> int:
        """The id of the directory in which this one, whose lock is held, was when the lock was taken; 0 where none is found by its id."""

    def anchored(self, directories: Mapping[str, int]) -> ContextManager[None]:
        """Until this ends, what lies below one of these paths is what lies below the directory with this id, as in one whose lock is held.
        The nearest one around a path counts. Only below the directory around one whose lock is held; elsewhere, and for an id of 0, there
        is only the path.
        """

    def is_anywhere(self, near: str, file_id: int) -> bool:
        """Whether a file or directory with this id is on the file system of a path, wherever it was moved; True if this user may not see
        it. Raises NotPossible on a file system that does not find files by their ids, and behind a router that looks for ids in another
        nameservice than that of the path.
        """

    def find_paths(self, near: str, former: Mapping[int, str]) -> Mapping[int, str]:
        """Where the files and directories with these ids are on the file system of a path, wherever they were moved: each was at its path
        at one moment during the call. Those are left out that do not exist, or whose places this user may not find out. One gateway call.

        `former`: by id the path that it had, or "". A directory on the way, up to `near` or else to the root, is listed only if what it
        contains is not called as it was. Raises NotPossible like is_anywhere, and FilesUnavailable for one that keeps being moved.
        """

    # ---- making and renaming

    def make_directory(self, path: str) -> None:
        """Like mkdir -p, for this user alone (mode 700) whatever umask and default ACLs say; no error if it exists."""

    def rename_exact(self, source: str, target: str) -> None:
        """Rename, never over an existing target and never into one, not even an empty directory.

        By the id of an anchored directory that was deleted while a snapshot has it, HDFS finds what has come to its path: nothing is moved
        into or out of that, or it is taken back at once (SourceMissing).

        Raises SourceMissing (source, or the target's parent), TargetExists, NoPermission, FilesUnavailable.
        (FileContext.rename without OVERWRITE; plain FileSystem.rename moves into an existing directory.)
        """

    def exchange(self, live: str, aside: str, incoming: str, mark: Snapshot) -> Optional[FileInfo]:
        """Rename live to aside, then incoming to live if aside has the id and time of `mark`. Returns None if both were done.

        Else returns the status of aside, which holds the old directory: it differs, or somebody has re-created live. Three NameNode
        steps in one gateway call, because readers find nothing at live in between. Raises like rename_exact, after any of them.
        """

    # ---- joining files, and taking them apart

    def blocks(
        self, path: str, below: int = ANY_LENGTH, ids: Optional[Mapping[str, int]] = None, most: int = ALL
    ) -> Mapping[str, Tuple[Block, ...]]:
        """The blocks of each file in a directory, or of one file, in their order, by its name; none if there is nothing. Files of `below`
        bytes or more are left out, and those for whose names `ids` has another id, or that have none of these ids. Raises NotPossible on
        a file system without blocks, and where several of these files have more than `most` together.

        `ids` are a bound, too: somebody may put a directory of millions of files in the place of the one that was listed.

        In a concat blocks keep ids and stamps, so they tell afterwards whose bytes a file took.
        """

    def concat(self, target: str, sources: Sequence[str]) -> None:
        """Move the blocks of files to the end of another one in the same directory, in this order; the files are gone then.

        All or nothing. It goes by name: a file that has replaced a source is taken in its place, so look at the blocks afterwards. Raises
        SourceMissing, and NotPossible: a file is open, a source is empty or in a snapshot or has larger blocks than the target, or the
        directory is in an encryption zone (HDFS 3.3, FSDirConcatOp).
        """

    def copy_part(self, file: FileInfo, begin: int, length: int, target: str) -> None:
        """Write these bytes of a listed file to a new file, for this user alone, and sync it to disk. Not atomic: a kill may leave a part.
        Raises SourceMissing (or the target's parent is), SourceReplaced, TargetExists.
        """

    def cut(self, file: FileInfo, length: int, blocks: Sequence[Block]) -> None:
        """Take the blocks behind `length` from a listed file that consists of these blocks. They are looked at just before: HDFS knows no
        condition. Raises SourceMissing, SourceReplaced, and NotPossible: it has other blocks or is open, or no block ends there.
        """

    # ---- deleting

    def remove_empty(self, path: str) -> bool:
        """Delete a directory only if it is empty. Returns False if it is not empty or does not exist.

        Raises NoPermission, also where it may not be listed.
        """

    def delete_tree(self, path: str) -> None:
        """Delete a directory and everything below it; no error if it is missing. Only for what is proved superfluous."""

    def delete_file(self, path: str, directory_id: int = 0, file_id: int = 0) -> None:
        """Delete a file; no error if it is missing. Raises FilesError, and deletes nothing, for a directory that is not empty: somebody may
        have put one at this path.

        With the ids of a listing, its own and that of the directory which showed it, just that file is deleted, as long as it is in that
        directory, wherever this is by now; where the file system does not find directories by their ids, as long as that is at its path.
        """

    def move_to_trash(self, path: str) -> bool:
        """Move a directory to the user's trash, by the file system's own policy (fs.trash.interval, encryption zones).

        Returns False if the trash is switched off; nothing was changed then. Raises SourceMissing, FilesUnavailable if the trash cannot
        be created, and ForeignTrash if the user's trash, or a directory in it on the way, belongs to another user or is open for others
        to write to. Not atomic if the trash is on another file system.
        """

    # ---- contents

    def read_pieces(self, file: FileInfo) -> Iterator[str]:
        """The text of a listed file in pieces of bounded size, one call each. Raises SourceMissing and SourceReplaced, possibly in the
        middle.

        Exactly this file is read, by its id: whoever wrote what is read is the owner that the listing showed.
        """

    def read_bytes(self, file: FileInfo) -> Iterator[bytes]:
        """Like read_pieces, for what is no text."""

    def read_texts(self, files: Sequence[FileInfo]) -> Mapping[str, str]:
        """The texts of many small listed files by path, in one gateway call; a missing file is left out. Raises SourceReplaced."""

    def write_new(self, path: str, content: Union[str, bytes, Iterable[str]], mode: int = OWNER_ONLY) -> None:
        """Create with a mode (a umask may narrow it), write, sync to disk, close. Not atomic: a kill may leave a partial file. A text given
        in pieces is written in several calls, so that memory holds no more than one call's part.

        Raises TargetExists, and SourceMissing if the parent is missing: a run whose directory was taken over must not re-create it
        (FileSystem.createNonRecursive).
        """

    # ---- the lock

    def require_lockable(self, path: str) -> None:
        """Raise Refused where `hold` would, because of the file system that the path is on. Changes nothing."""

    def hold(self, path: str, holder: str) -> Lock:
        """Take the lock file and keep it; creates it and its parent, if missing, for this user alone. The parent comes to its place with a
        seal in it (names.SEAL), from a name that nobody can guess, and one that is there gets none. Raises LockHeld, and Refused on file
        systems without a lock that dies with its holder, and on this machine's own if the cluster's is another; SourceMissing if the
        directory around the parent is missing, which is somebody else's to make.

        Never breaks a living holder's lock.
        """

    # ---- owners and rights

    def attributes(self, directories: Sequence[str], ids: Mapping[str, int] = NO_IDS) -> Mapping[str, Attributes]:
        """Attributes of existing directories in bulk (file attributes from their first data file).

        `ids`: those that a listing showed. This and file_rights ask the directory with that id, wherever it is by now, while the lock of
        its table is held, with the same exceptions. Of any other, the rights are at least those of one directory then. One that is
        not at its path while it is asked may be left out.
        """

    def file_rights(self, directories: Mapping[str, int], most: int) -> Mapping[str, FilesByRights]:
        """The rights that occur among the data files of each existing directory, in order of their names, and the ids of the files that
        have them; rights are cut off after `most`. `directories`: with the id that a listing showed, or 0.

        Each ACL costs a request, so it may take as long as opening the files. One gateway call.
        """

    def dress(self, wanted: Mapping[str, Attributes]) -> None:
        """Give each directory and the files in it these attributes, in bulk; raises NoPermission if that is not allowed.

        Storage policy and erasure coding apply when a file is created, so call it before a write too. Not atomic.
        """

    def user_at(self, path: str) -> str:
        """This user's name as the owner of files there."""

    def exposed(self, top: str, levels: int) -> Tuple[Exposed, ...]:
        """What another user owns or others may write to: the directory itself, and entries down to `levels` levels below it.

        () if the directory is missing. Contents of an unreadable directory are left out. One gateway call. Raises NotPossible if they are
        too many: others choose that number.
        """

    def way_to(self, directory: str) -> Tuple[Exposed, ...]:
        """A directory and all above it, whoever owns them, the root first: behind a mount the real ones. Ends where one is missing.

        Each is looked at after that around it. One gateway call.
        """

    def guard(self, wanted: Mapping[str, Guard]) -> None:
        """Set mode, group and ACL of directories and the files in them, or of a single file, in bulk. Not atomic.

        A directory whose id is given is found by it, if it was at its path during the call: so nothing else is changed that comes there.
        Where the file system does not find directories by their ids, as long as it is at its path. Raises NoPermission, and SourceMissing.
        """

    # ---- what stands in the way of a rename or a write

    def ties(self, directories: Sequence[str], around: str = "") -> Mapping[str, Ties]:
        """What ties each existing directory to its place, in bulk; missing ones are left out. A directory without a quota is counted for
        that, with everything below it.

        `around`: one more, which may be as large as a database, whose own quota and key do not matter, and are not told.
        """

    def room(self, path: str, quotas_at: Sequence[str]) -> Room:
        """The space left at this place, which need not exist yet, according to the file system and quotas.

        The answer contains the directories in `quotas_at` that have a quota which this user may read. For a directory without
        a quota HDFS counts everything below it before answering, so each is queried only once.
        """


# Of a table's whole definition; and of the properties of all its partitions, with what is long of their locations and values. A hundred
# thousand partitions with a kilobyte of properties each take 0.4 GB here. A character counts as the bytes that it takes on its way here:
# one if it is ASCII; a property as 24 at least.
MOST_OF_TABLE = 2**24
MOST_OF_PARTITIONS = 2**27
# Of one table, however little each says: here it takes a kilobyte, as a file does.
MOST_PARTITIONS = 2_000_000
# Of all tables that one call returns: ten thousand of 25 KB each.
MOST_OF_TABLES = 2**28
# Of one database, in which some may create tables: of these; and of the names and locations of all of them together. Those of all
# databases are held at once, a kilobyte for each.
MOST_TABLES = 1_000_000
MOST_OF_PLACES = 2**27
# Of all databases together: three million tables of 150 characters.
MOST_OF_ALL_PLACES = 2**29
# Of each piece in which they come: while one is made, Java holds it several times.
MOST_OF_ANSWER = 2**25


class MetastoreUnavailable(Exception):
    """The metastore did not answer, or speaks another protocol version."""

    code = Code.METASTORE_UNUSABLE


class MetastoreNoTicket(MetastoreUnavailable):
    """The metastore client has no Kerberos ticket."""

    code = Code.NO_TICKET


class MetastoreRefused(MetastoreUnavailable):
    """The metastore answered and refused: missing permission, or the table is gone."""


# ---- errors that have the same words wherever they are raised


def why_heavy(weight: int) -> str:
    """Why a table of this weight was not read."""
    own = f"its definition has {weight} characters"
    if weight > MOST_OF_TABLE:
        return f"{own}, more than {MOST_OF_TABLE}"
    return f"{own}, and those of all tables that were asked for with it more than {MOST_OF_TABLES}"


def heavy_partitions(table: Table) -> Refused:
    return Refused(
        f"{table.full_name}: it has more than {MOST_PARTITIONS} partitions, or their properties and long names have more than "
        f"{MOST_OF_PARTITIONS} characters together",
        code=Code.UNREADABLE_DEFINITION,
        next="find out who gave it so many partitions, or such properties or locations, and remove them",
    )


def renamed_meanwhile(gone: str) -> MetastoreUnavailable:
    return MetastoreUnavailable(
        f"{gone}, which lay in the same directory, was dropped or renamed since all tables were read, and may lie there under another "
        "name: where all tables are will be asked again a little later"
    )


def moved_meanwhile() -> MetastoreUnavailable:
    return MetastoreUnavailable(
        "it is elsewhere than when the command read where all tables are, and another one may have come to the same place: so many have "
        "moved since that this is asked again only some minutes later"
    )


def local_table(what: str) -> Refused:
    return Refused(
        f"{what}: it is on the local file system of this machine, and the tables of this cluster are not",
        code=Code.LOCAL_TABLE,
        state="nothing was changed",
        next="leave this table out, and find out who gave it this location",
    )


def require_readable(table: Optional[Table]) -> Optional[Table]:
    """The table, None if there is none. Raises MetastoreRefused if its definition could not be read, which says nothing about it."""
    if table is not None and table.unreadable:
        raise MetastoreRefused(f"{table.full_name}: {table.unreadable}")
    return table


class Metastore(Protocol):
    """The Hive Metastore through its own client. Names are returned in the metastore's spelling.

    Any method may raise MetastoreUnavailable.
    """

    # ---- tables and partitions

    def databases(self) -> Tuple[str, ...]: ...

    def table_names(self, database: str) -> Tuple[str, ...]:
        """The names of a database's tables; raises KeyError if the database does not exist, and MetastoreRefused above MOST_TABLES."""

    def tables(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        """Tables in bulk; a missing one is left out. Locations are as stored: qualify them. A view (VIRTUAL_VIEW) has none.

        One that cannot be read, or is larger than MOST_OF_TABLE, is `unreadable` and does not fail the others. If all together are larger
        than MOST_OF_TABLES, so are the largest.
        """

    def partitions(self, table: Table) -> Tuple[Partition, ...]:
        """All partitions, ordered by name; locations as stored. Raises Refused above MOST_PARTITIONS and MOST_OF_PARTITIONS.

        One that is renamed meanwhile may be there under both names, and is not missing: if it might be, MetastoreUnavailable is raised.
        """

    def partitions_named(self, table: Table, names: Sequence[str]) -> Mapping[str, Partition]:
        """The named partitions that exist, in bulk. Raises Refused like partitions."""

    # ---- changing them

    def update_sizes(
        self,
        table: Table,
        sizes: Mapping[str, Tuple[int, int]],
        lives: Optional[Mapping[str, str]] = None,
        rows: Optional[Mapping[str, int]] = None,
    ) -> None:
        """Set numFiles and totalSize, by partition name ("" for an unpartitioned table), and numRows of those in `rows`.

        Where Spark keeps a size of its own, its numbers follow. Keeps everything else, including COLUMN_STATS_ACCURATE, and lets the
        metastore emit its event. Re-reads, then alters in bulk; a partition that has gone meanwhile, or is not at its place in `lives`
        (by name), is left out.
        """

    def add_partition(self, table: Table, partition: Partition) -> bool:
        """Put a dropped partition back from the record; creates its directory if missing. Returns False if the partition exists.

        Raises MetastoreRefused if another table has the name by now, by its owner and creation time.
        """

    # ---- backup tables

    def why_no_backup_tables(self) -> str:
        """Why none may be made or dropped, "" if they may: to do so raises MetastoreRefused. The metastore is asked once."""

    def make_backup_table(self, table: Table, name: str, location: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        """Create the external table `name` (database.table) with the definition of another table and, of its partitions, the named ones.

        The table and all partitions lie at `location`, which must exist, until they are pointed elsewhere: the metastore makes the
        directory of whatever it is given as new. `parameters` override the table's own. external.table.purge and discover.partitions are
        false, a SerDe `path` property that Spark set follows the location. No data is read, moved or created. Raises MetastoreRefused if
        the name is taken, or if that of the other table has another one by now, by its owner, creation time and location; a partition that
        has gone meanwhile is left out.
        """

    def point_backup_table(self, name: str, parameters: Mapping[str, str], places: Mapping[str, str]) -> None:
        """Point partitions ("" for an unpartitioned table) of a backup table at other directories, in bulk. Makes none of these.

        Does nothing if the table is gone, lacks any of `parameters`, or is not external or such that its files go with it, nor for
        partitions that it does not have.
        """

    def trim_backup_table(self, name: str, parameters: Mapping[str, str], partitions: Sequence[str]) -> None:
        """Drop partitions of a backup table, their files untouched; under the same conditions as point_backup_table."""

    def drop_backup_table(self, name: str, parameters: Mapping[str, str]) -> bool:
        """Drop a backup table, its files untouched. Returns False if it is gone, or is not ours under the conditions of
        point_backup_table. Raises MetastoreRefused if it has an index, with which another table would go.
        """

    # ---- the catalogue

    def make_database(self, name: str, comment: str) -> None:
        """Create a database at the place that the metastore chooses; no error if it exists."""

    def make_catalogue_table(self, table: CatalogueTable) -> bool:
        """Create the table, or give ours these columns. Returns False, and changes nothing, if one of its name is not ours."""

    def make_catalogue_view(
        self, name: str, text: str, columns: Mapping[str, str], parameters: Mapping[str, str], owners: Sequence[str]
    ) -> bool:
        """Create a view, or give ours this text. Returns False, and changes nothing, if there is a table, or a view that lacks any of
        `parameters` or belongs to neither this user nor any of `owners`.
        """

    def point_catalogue_table(self, table: CatalogueTable, places: Mapping[str, str]) -> bool:
        """Let a table have exactly these partitions, by their value, in these directories. Those that move change in one request. Touches
        no file. Returns False if the table is gone or not ours.
        """

    # ---- Hive's lock

    def hold(self, table: Table, timeout_s: float) -> ContextManager[str]:
        """Hold Hive's own exclusive lock, best effort: yields "" if it is held, else the reason why not; never raises.

        Hive's readers wait for it too, so hold it for a swap, not for a run. With a timeout of 0 it is not requested.
        """

    # ---- where all tables and databases are

    def locations_below(self, locations: Sequence[str]) -> Mapping[str, Tuple[str, ...]]:
        """Full names of the tables of any database one of whose places equals one of these or is inside it, or whose location contains one,
        including the table itself. That Spark's path contains one is no reason: whoever may alter a table may set it to anything.

        The places of all tables are read once and cached for an hour. One that was renamed since is there under its former name, and one
        that was dropped, but by this client. Raises MetastoreUnavailable if those of one database cannot be told, or are more than
        MOST_TABLES and MOST_OF_PLACES: no table could be compared with them.
        """

    def read_places_again(self, gone: str) -> None:
        """Read the places of all tables and databases again: a table of this full name is in the cache, but not there any more. Raises
        MetastoreUnavailable if that was done so lately that a command would do little else.
        """

    def read_newer_places(self, table: Table) -> None:
        """Read the places again: a table (location qualified) is elsewhere than in the cache, or not in it, so another one may be there,
        too, that came since. Where all were read again lately, only those of names that are new, and of the databases of this table and
        around its location. Raises MetastoreUnavailable if that has taken so long since that a command would do little else.
        """

    def paths_around(self, location: str) -> Mapping[str, Tuple[Tuple[str, str], ...]]:
        """The directories around a location (qualified) in which tables of Spark have files by a path that is not their location, each with
        the full names and the owners of these tables; from the same cache. Whoever may alter a table may set its path to anything.
        """

    def table_locations(self) -> Mapping[str, str]:
        """The location of each table of any database that has one, by full name, spelled as by `Files.qualify`; from the same cache,
        and the same mapping until that is read again.
        """

    def table_places(self) -> Mapping[str, Tuple[str, ...]]:
        """The directories in which each of these tables may have files (`Table.places`), spelled in the same way; from the same cache."""

    def database_locations(self) -> Mapping[str, str]:
        """Each database's directory, if it has one, spelled as by `Files.qualify`; cached like the tables' locations."""


class Rows(Protocol):
    """Reading and writing of data files. No row passes through Python."""

    def warm_up(self) -> None:
        """Begin to start whatever reads and writes rows, without waiting for it. A failure is raised by the first call that needs it."""

    def require_started(self) -> None:
        """Wait until rows can be read and written. Raises Unusable, and RowsError if the command was asked to stop meanwhile."""

    def footers(
        self,
        format: str,
        sets: Mapping[Key, Sequence[FileInfo]],
        by_identity: bool = False,
        most_row_groups: int = 0,
        most_characters: Optional[int] = None,
    ) -> Mapping[Key, UnitFooters]:
        """Read all footers of some sets of files, in bulk, each set grouped by form; zero-byte files are not in any group. Another file at
        the path of a listed one is unreadable.

        With `by_identity` files are of one form only if they have the same `Form.identity`. `most_row_groups`: of so many row groups of all
        files together it is told where they are. Of a file all are told or none: none also if its footer
        claims one outside it, or in another one.

        `most_characters`: returns only the first sets, as many as have no more of these in their forms and columns together; perhaps none.
        """

    def write_stage(self, batch: StageBatch) -> Mapping[UnitNumber, Content]:
        """Write the batch's outputs below `batch.target` in one job. Returns what was read from each unit's files, which are known by their
        ids: a unit fails if another file lies at the path of one.

        A unit that could not be read or written does not fail the others if the batch is copied. Raises RowsError.
        """

    def read_stage(self, batch: StageBatch) -> Mapping[UnitNumber, Content]:
        """Read the whole output of a batch back, as it lies on the file system."""

    def digests(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, Content]:
        """Read any sets of files in full, of any form, and compute their digests, which are comparable with those of write_stage and
        read_stage. A set that cannot be read does not fail the others; nor one where another file lies at the path of a listed one, unless
        that has no id.
        """

    def write_ends(self, format: str, wanted: Mapping[Key, Ends]) -> Mapping[Key, str]:
        """Write new files for this user alone. Returns why not all could be written, of those where one could not. Raises RowsError."""

    def find_unlike(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, str]:
        """Why files of some sets could not be restored as one: their footers differ in more than their rows, or are together too long to be
        read. Raises RowsError.
        """

    def write_restored(self, format: str, file: FileInfo, begin: int, lengths: Sequence[int], target: str) -> None:
        """Write a new file for this user alone: the bytes of files of these lengths that lie in another one, one after the other from
        `begin` on, and behind them a footer over the rows of all. Raises RowsError.
        """

    def find_starts(self, format: str, file: FileInfo, offsets: Sequence[int]) -> Tuple[int, ...]:
        """Those of the offsets at which one data file ends and another begins, by their first and last bytes. Raises RowsError."""

    def ends_like_whole(self, format: str, file: FileInfo, length: int) -> bool:
        """Whether the first `length` bytes of a listed file are a data file with the same footer, byte for byte, as the whole. Raises
        RowsError.
        """

    def differences(self, format: str, one: Sequence[FooterGroup], other: Sequence[FooterGroup], limit: int) -> Differences:
        """The rows that two sets of files do not share, counted with multiplicity, and up to `limit` examples of each side.

        Rows are equal if their digests are; a column missing from a file is NULL in its rows. An example stands for all of its
        copies. Raises RowsError if other numbers of rows were read than the footers declare. On HDFS files are known by their ids.
        """

    def hazards(self, format: str, groups: Mapping[str, FooterGroup]) -> Mapping[str, str]:
        """Reasons, by unit, why rows cannot be rewritten faithfully that only the data show (nanoseconds).

        Scans only the columns concerned, of files that a digest could read.
        """


class RowsError(Exception):
    """A job that read or wrote rows failed; live is unchanged. The message is the cause in one line."""

    code = Code.SPARK_JOB_FAILED


# A row of the catalogue: its cells in the order of the columns.
Cell = Union[str, int, float, None]
Row = Sequence[Cell]


class RowFiles(Protocol):
    """The catalogue's Parquet files of flat rows, which the driver writes and reads without a Spark application.

    Columns are {name: type}, in the order of the cells; a type is string, bigint or double. Methods raise FilesError.
    """

    def write(
        self,
        path: str,
        columns: Mapping[str, str],
        rows: Iterable[Row],
        source: str = "",
        keys: Sequence[str] = (),
        without: Iterable[Sequence[str]] = (),
    ) -> int:
        """Write a new file: the rows of another one, "" for none, then these; returns how many it has.

        The other's rows are left out whose cells in the columns `keys` begin with one of the lists in `without`. Raises TargetExists. Not
        atomic: a kill may leave a partial file.
        """

    def read(self, path: str, columns: Mapping[str, str], only: Mapping[str, str] = MappingProxyType({})) -> Iterator[Row]:
        """The rows of a file that have these texts in these string columns, in the given columns; a column that the file does not have is
        None. Parts of the file that cannot have such rows are not read.
        """


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970."""

    def monotonic_ms(self) -> float:
        """For durations only."""

    def sleep_ms(self, ms: float) -> None:
        """Wait."""


class Stopping(Protocol):
    """Whether a command should stop early: checked between units and tables, so that the current one is finished first.

    Once there is a reason it stays.
    """

    @property
    def signal(self) -> int:
        """Number of the signal that requested the stop, 0 if none did."""

    @property
    def is_limited(self) -> bool:
        """Whether a time limit or a stop file is set, by which runs may end before all tables had their turn. Signals do not count."""

    def why(self) -> str:
        """Why nothing more may be started, "" if there is no reason. Waits for the end of a pause."""

    def is_asked(self) -> bool:
        """Whether `why` would wait or give a reason. Never waits."""

    def at_once(self) -> ContextManager[None]:
        """Let a signal end the process at once while the body runs: it waits for the operator, and nothing is in progress."""


class NeverStops:
    """For when no stop condition is configured."""

    signal = 0
    is_limited = False

    def why(self) -> str:
        return ""

    def is_asked(self) -> bool:
        return False

    def at_once(self) -> ContextManager[None]:
        return nullcontext()


# What a job returns.
Result = TypeVar("Result")


class Beside:
    """Work of a command on other tables that can be done at any time, best while a job is waited for; see `run`.

    It is done by the thread that waits: files and metastore are only called by one. This kind has no other thread, and does the work
    before the job.
    """

    def __init__(self) -> None:
        self._waiting: List[Callable[[], None]] = []

    def add(self, work: Callable[[], None]) -> None:
        self._waiting.append(work)

    def do(self) -> None:
        """Do all that waits, in order."""
        while self._waiting:
            self._waiting.pop(0)()

    def run(self, job: Callable[[], Result]) -> Result:
        """The result of a job that calls nothing but `Rows`; what waits is done meanwhile. Raises what the job raises."""
        if not self._waiting:
            return job()
        return self._run(job)

    def _run(self, job: Callable[[], Result]) -> Result:
        self.do()
        return job()


class Memory:
    """What a command knows from one table to the next: each module that remembers something has a class of its own for it."""

    def __init__(self) -> None:
        self._known: Dict[type, object] = {}

    def of(self, kind: Type[Known]) -> Known:
        """The one object of this class, made without arguments when it is first asked for."""
        if kind not in self._known:
            self._known[kind] = kind()
        found = self._known[kind]
        assert isinstance(found, kind)
        return found

    def clear(self) -> None:
        self._known.clear()


@dataclass(frozen=True)
class Cluster:
    """The ports, and our identity on the cluster."""

    files: Files
    metastore: Metastore
    rows: Rows
    row_files: RowFiles
    clock: Clock
    # As HDFS and the metastore know it, without a realm.
    user: str
    host: str
    # The Spark application that works for us, or this process while there is none.
    application: Callable[[], str]
    spark_version: str
    time_zone: str
    # Whose records are read besides our own.
    trusted_owners: Tuple[str, ...] = ()
    # Where the catalogue's files are, or are to be, as it is written; "" for none. The metastore may not know of it.
    catalogue_at: str = ""
    # A step of a run lists no more of the table's directories at once: by then somebody may have put millions of files there.
    most_listed: int = ALL
    # Cache of parsed log entries, by listed file: entries never change.
    log_entries: Dict[FileInfo, Any] = field(default_factory=dict, repr=False, compare=False)
    # Seconds that each step of the current table has taken (steps/timing.py).
    spent: Dict[str, float] = field(default_factory=dict, repr=False, compare=False)
    # Interrupted runs of the current table that were settled: each run, and the number of its units by outcome (commands/open_table.py).
    recovered: List[Any] = field(default_factory=list, repr=False, compare=False)
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)
    beside: Beside = field(default_factory=Beside, repr=False, compare=False)
    stopping: Stopping = field(default_factory=NeverStops, compare=False)
    # Why no port can answer any more, "" if they can. It calls the session, so it is used only after a failure.
    lost: Callable[[], str] = field(default=lambda: "", repr=False, compare=False)
