"""The values that the program passes around: frozen, printable, without any cluster object.

Paths are Hadoop paths as returned by `Path.toString()`: fully qualified, not URI-encoded, without a
trailing slash (`hdfs://nn:8020/a b/dt=x%2Fy`, `file:/a b`). Times are milliseconds since 1970 in UTC.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from typing import Collection, ItemsView, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from urllib.parse import quote

from hivekeeper import names, quoting
from hivekeeper.names import RunId, UnitNumber

# Mode of a new file that only its owner may read.
OWNER_ONLY = 0o600
# Characters of any text that a table's owner chooses, such as its columns or the query of a view, that are told of it.
MOST_TOLD = 2**16
# The same in an answer that would otherwise become too large.
MOST_TOLD_IN_SHORT = 200


class FileInfo(NamedTuple):
    """One entry of a directory listing. A tuple, because a run may hold a million of them.

    `file_id` is the inode: on HDFS and local file systems it survives a rename and no two files have the
    same one at the same time. `is_open`: the file is open for writing (always False if the file system cannot tell). `has_acl`: it has an
    ACL (known only on HDFS); of a file the group bits of the mode are its mask then. From `lost_from` to
    `lost_to` are all of its blocks that no DataNode has, or has only bad copies of (0 and 0 for none; known only in a listing of HDFS).
    `begin` is not 0 for a file that lies in the one at this path, from there on, and was called `inner`; only `Rows` reads it.
    """

    path: str
    length: int
    mtime_ms: int
    is_dir: bool
    file_id: int
    block_size: int = 0
    replication: int = 1
    owner: str = ""
    group: str = ""
    mode: int = 0
    is_open: bool = False
    has_acl: bool = False
    lost_from: int = 0
    lost_to: int = 0
    begin: int = 0
    inner: str = ""

    def __hash__(self) -> int:
        """Of texts alone: the hash of a tuple has no secret, so whoever chooses one number in it, such as a time, chooses the hash."""
        return hash((self.path, self.inner))

    @property
    def name(self) -> str:
        return self.inner or self.path.rpartition("/")[2]

    @property
    def is_lost(self) -> bool:
        """Whether some of its blocks are."""
        return self.lost_to > 0

    @property
    def key(self) -> str:
        """The path, and where in it: several files may lie in the one at a path."""
        return f"{self.path}+{self.begin}" if self.begin else self.path


class Block(NamedTuple):
    """One block of a file on HDFS, by which its bytes are known wherever they are. `stamp` changes when it is written to again."""

    id: int
    stamp: int
    length: int


@dataclass(frozen=True)
class Attributes:
    """The metadata of a directory or file; None or empty if the file system has none.

    `file_mode` and `file_acl` are those of the first data file, or of copies. Copies have the owner and the group of the directory,
    unless `file_owner` or `file_group` names another one; "" leaves them to the user of the run. `acl` holds the entries as Hadoop
    prints them (`user::rwx`, `default:group:etl:r-x`), base entries included, empty if there is no extended ACL. Policies are those in
    effect, including inherited ones; `own_storage_policy` and `own_ec_policy` mean that the directory's parent has another one, so that
    it must be set on the directory itself.
    `has_more_xattrs`: those of the user namespace have more than 4 KiB, and are left out. `directory_id`: of the directory that was read.
    """

    owner: str
    group: str
    mode: int
    file_mode: int
    acl: Tuple[str, ...] = ()
    file_acl: Tuple[str, ...] = ()
    xattrs: Tuple[Tuple[str, str], ...] = ()
    storage_policy: Optional[str] = None
    ec_policy: Optional[str] = None
    own_storage_policy: bool = False
    own_ec_policy: bool = False
    file_owner: Optional[str] = None
    file_group: Optional[str] = None
    has_more_xattrs: bool = False
    directory_id: int = field(default=0, compare=False)


class FileRights(NamedTuple):
    """Who may read a file. `acl` is as in Attributes."""

    owner: str
    group: str
    mode: int
    acl: Tuple[str, ...] = ()


# The rights that occur among files, and the ids of those that have them.
FilesByRights = Mapping[FileRights, Collection[int]]


@dataclass(frozen=True)
class Exposed:
    """A file or directory that another user owns or that others may write to; or one on the way to another.

    `is_ours`: this user owns it. `acl` is as in Attributes, read only if others may write.
    """

    path: str
    is_dir: bool
    owner: str
    group: str
    mode: int
    is_ours: bool
    acl: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Guard:
    """Mode, group ("" to keep it) and complete ACL of a directory; default entries that it does not have are removed.

    `file_mode` is for the files in it, which get no ACL; None leaves them as they are. `file_id`: of the only directory that is meant; 0
    for whichever is at the path.
    """

    mode: int
    file_mode: Optional[int] = None
    group: str = ""
    acl: Tuple[str, ...] = ()
    file_id: int = 0


@dataclass(frozen=True)
class Ties:
    """What ties a directory to its place: a rename would fail, or carry away something that belongs to the place.

    `zone` is the root of the encryption zone that contains it, "" if none. `snapshots`: this directory itself is snapshottable.
    `quota`: it has a quota of its own. `denied` says why this user may not rename it, `locked` why they may not use the zone's key;
    "" if they may.
    """

    zone: str = ""
    snapshots: bool = False
    quota: bool = False
    denied: str = ""
    locked: str = ""


@dataclass(frozen=True)
class Quota:
    """What a directory's quota still allows below it; None for no limit.

    `disk_left` counts every copy.
    """

    path: str
    names_left: Optional[int] = None
    disk_left: Optional[int] = None


@dataclass(frozen=True)
class Room:
    """The space left at a place. `free_bytes` is that of the file system divided by the copies; None if unknown.

    `copies` is how many bytes of disk one byte takes, `block_bytes` what a quota must have left to create a file of any size.
    """

    free_bytes: Optional[int] = None
    copies: float = 1.0
    block_bytes: int = 0
    quotas: Tuple[Quota, ...] = ()


@dataclass(frozen=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True)
class Storage:
    """How to read the files, according to the metastore. `layout`: of a partition, what is promised of its files besides (`bucketed`,
    `skewed`, `sorted`), whatever its table says; "" for nothing.
    """

    input_format: str
    output_format: str
    serde: str
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    layout: str = ""


# For units whose definition was judged; shared, because there may be a million of them.
NOT_TOLD: Mapping[str, str] = {}
STORAGE_NOT_TOLD = Storage("", "", "")


@dataclass(frozen=True)
class CatalogueTable:
    """A table of the catalogue, `database.table`, as the metastore must have it: external, in Parquet, at `location`.

    `columns`: Hive's types. One that differs in anything but its columns, lacks any of `parameters`, or belongs to neither this user nor
    any of `owners` is somebody else's.
    """

    name: str
    location: str
    columns: Mapping[str, str]
    partition_column: str
    parameters: Mapping[str, str]
    owners: Tuple[str, ...] = ()


# For whether a table has partitions.
SOME_COLUMN = Column("", "")


@dataclass(frozen=True)
class Table:
    """A table of the metastore. `kind` is its `tableType`: EXTERNAL_TABLE, MANAGED_TABLE, VIRTUAL_VIEW, …

    `unreadable`: why its definition could not be read; then only its name is right, and kind and creation time if they are known.
    `view_text`: the query of a view. `told`: of a table that is done, its columns and those of its partitions, as they are told.
    """

    database: str
    name: str
    kind: str
    location: str
    storage: Storage
    columns: Tuple[Column, ...]
    partition_columns: Tuple[Column, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    bucket_columns: Tuple[str, ...] = ()
    buckets: int = -1
    sort_columns: Tuple[str, ...] = ()
    skewed_columns: Tuple[str, ...] = ()
    owner: str = ""
    create_time: int = 0
    unreadable: str = ""
    view_text: str = ""
    told: Optional[Tuple[str, str]] = None

    @classmethod
    def without_definition(cls, database: str, name: str, why: str, kind: str = "", create_time: int = 0) -> Table:
        return cls(database, name, kind, "", Storage("", "", ""), (), create_time=create_time, unreadable=why)

    def bare(self) -> Table:
        """Its name, kind, place and creation time, and whether it has partitions: what others may be held with, however large it is."""
        bare = Table.without_definition(self.database, self.name, self.unreadable, self.kind, self.create_time)
        return replace(bare, location=self.location, partition_columns=(SOME_COLUMN,) if self.partitioned else ())

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def log_field(self) -> str:
        """Its full name in a line of the log."""
        return quoting.log_field(self.full_name)

    @property
    def backup_of(self) -> str:
        """The full name of the table that it is a backup table of, by its marks; "" if it is none."""
        return names.backed_up(self.full_name, self.parameters)

    @property
    def spark_paths(self) -> Mapping[str, str]:
        """Where Spark finds its files, by the property of its SerDe that says so: `path`, in any case.

        Of a data source's table, Spark uses nothing else (`HiveExternalCatalog.restoreDataSourceTable`). Hive's SET LOCATION does not
        change it, and the location of a table that Hive cannot read is a placeholder (SPARK-15269). Others have a copy of it (Hive's
        CREATE TABLE … LIKE), which Spark reads no more (3.2, SPARK-28266). None is longer than a path on HDFS can be.
        """
        if names.SPARK_PROVIDER not in self.parameters:
            return {}
        known = self.storage.serde_parameters.items()
        return {key: path for key, path in known if key.lower() == "path" and 0 < len(path) <= names.MOST_PATH}

    @property
    def places(self) -> Tuple[str, ...]:
        """The directories in which it may have files, spelled as in its definition: those of its location, and of Spark's `path`."""
        return tuple(dict.fromkeys(names.before_pattern(place) for place in (self.location, *self.spark_paths.values()) if place))

    @property
    def partitioned(self) -> bool:
        return bool(self.partition_columns)

    @property
    def column_lists(self) -> Tuple[str, str]:
        """Its columns, and those of its partitions, as they are told."""
        return self.told or (_list_columns(self.columns), _list_columns(self.partition_columns))

    def outlined(self) -> Table:
        """What is told of a table that is done. A command over many tables keeps that of all, and their owners choose the rest. Its columns
        are kept as texts: as objects, those of short names take thirty times as much.
        """
        return replace(
            self,
            storage=replace(self.storage, serde_parameters={}),
            columns=(),
            partition_columns=(SOME_COLUMN,) if self.partitioned else (),
            parameters={},
            bucket_columns=(),
            sort_columns=(),
            skewed_columns=(),
            view_text=self.view_text[: MOST_TOLD + 1],
            told=self.column_lists,
        )

    @property
    def dispensable(self) -> int:
        """How many characters `shortened` takes away."""
        return sum(max(0, len(text) - MOST_TOLD_IN_SHORT) for text in (*(self.told or ()), self.view_text))

    def shortened(self) -> Table:
        """The same with the beginnings of what is told of a table that is done."""
        of_table, of_partitions = self.column_lists
        return replace(self, view_text=_begin(self.view_text), told=(_begin(of_table), _begin(of_partitions)))


def _list_columns(columns: Sequence[Column]) -> str:
    """No more of them than is told."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)[: MOST_TOLD + 1]


def _begin(text: str) -> str:
    return text if len(text) <= MOST_TOLD_IN_SHORT else f"{text[: MOST_TOLD_IN_SHORT - 1]}…"


@dataclass(frozen=True)
class Partition:
    """A partition of the metastore; `name` is Hive's escaped name, `dt=2026-01-01/ref=F R`."""

    name: str
    values: Tuple[str, ...]
    location: str
    storage: Storage
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Unit:
    """What is swapped as a whole: a partition, or an unpartitioned table (name and values empty)."""

    table: str
    name: str
    values: Tuple[str, ...]
    live: str
    storage: Storage
    parameters: Mapping[str, str] = field(default_factory=dict)

    def outlined(self) -> Unit:
        """As `Table.outlined`."""
        return replace(self, values=(), storage=STORAGE_NOT_TOLD, parameters=NOT_TOLD)

    @property
    def label(self) -> str:
        """What only this unit is called, whatever its table's owner calls that."""
        table = quoting.log_field(self.table)
        return f"{table}/{self.name}" if self.name else table

    @property
    def log_field(self) -> str:
        """The label without blanks, which separate the fields of a log line; escaped like the characters that Hive escapes."""
        return "".join(quote(character) if character.isspace() else character for character in self.label)


@dataclass(frozen=True)
class Snapshot:
    """The state of a unit's directory at one moment.

    `file_id`, `mtime_ms` and `mode` are the directory's own, read before its listing. `entries` is the raw
    listing, hidden names included; empty where the directory is missing (`exists` is False then).
    """

    exists: bool
    file_id: int = 0
    mtime_ms: int = 0
    entries: Tuple[FileInfo, ...] = ()
    mode: int = field(default=0, compare=False)

    def lasting_id(self, path: str) -> int:
        """The directory's own id if no other one gets it later, else 0: those of local files are given again."""
        return 0 if path.startswith("file:") else self.file_id


@dataclass(frozen=True)
class Form:
    """What all files of a rewrite must share, so that one schema and one set of writer settings fit them all.

    `schema` is the physical schema as the format's own library prints it, with `required` treated as
    `optional`. `calendar` is none, unknown, corrected or legacy. `writer` is the kind of writer (spark,
    parquet-mr, impala, arrow, hive, …). `codec` is a lower-case name (`snappy`, `zlib`, `none`) or, if
    the row groups of one file differ, all of them joined by `+`. `zone` is the writer's time zone for ORC
    files with timestamps. `keys` are the names of the footers' key-value metadata. `blooms` are the
    columns with bloom filters. `undecodable` lists what this cluster's libraries cannot decode.
    `identity` is a hash of the bytes with which a footer says how to read its values: schema, key-value metadata and
    created_by of Parquet; types with attributes, user metadata, calendar and time zone of ORC. It is empty where files
    are grouped by meaning instead of bytes. So is `layout`, a hash of all that the end of a file says but of its rows: only row groups or
    stripes of files where it is equal can stand in one footer. `single`: a footer says something of its own rows that would not be true of
    them together with those of another file, whose footer may have the same bytes.
    """

    schema: str
    codec: str
    writer: str
    calendar: str = "none"
    zone: str = ""
    keys: Tuple[str, ...] = ()
    blooms: Tuple[str, ...] = ()
    undecodable: Tuple[str, ...] = ()
    identity: str = ""
    layout: str = ""
    single: bool = False


@dataclass(frozen=True)
class ColumnFacts:
    """Footer statistics of one leaf column over many files.

    `values` counts entries, nulls included. Each is None if any file lacks it; bounds are merged
    by the column's own order and printed by the format's library.
    """

    values: Optional[int]
    nulls: Optional[int] = None
    low: Optional[str] = None
    high: Optional[str] = None


class ValueCounts(Mapping[str, ColumnFacts]):
    """The facts of columns of which only the numbers of values are told, in eight bytes each; many can share `names`."""

    def __init__(self, names: Tuple[str, ...], counts: array[int]) -> None:
        """`counts`: of values, in the order of `names`; -1 where there is none."""
        self.names, self.counts = names, counts

    def __getitem__(self, name: str) -> ColumnFacts:
        return dict(self.items())[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def items(self) -> ItemsView[str, ColumnFacts]:
        return {name: ColumnFacts(None if count < 0 else count) for name, count in zip(self.names, self.counts)}.items()


@dataclass(frozen=True)
class FooterGroup:
    """The files of a unit that share one form, and their footers' totals. `rows` maps a file's key to its row count; `files` are at least
    these, as they were listed.
    """

    form: Form
    rows: Mapping[str, int]
    columns: Mapping[str, ColumnFacts]
    files: Tuple[FileInfo, ...]

    @property
    def counted_files(self) -> List[FileInfo]:
        """Those in `rows`."""
        return [file for file in self.files if file.key in self.rows]

    @property
    def row_count(self) -> int:
        return sum(self.rows.values())


class RowGroup(NamedTuple):
    """One row group of a Parquet file, or one stripe of an ORC file, as the footer claims it: its first byte, its length, its rows."""

    start: int
    length: int
    rows: int


class FileRowGroups(NamedTuple):
    """All row groups of one file that have rows, in the order of its footer."""

    file: FileInfo
    groups: Tuple[RowGroup, ...]


# Values that a byte of a file may stand for: a table of which nearly all columns are NULL has a hundred. As in WorkLimit.java.
VALUES_PER_BYTE = 1000
# Read in about the time that a file takes anyway.
VALUES_PER_FILE = 2**20
# With so many more, a single file is not read. As in WorkLimit.java.
MOST_VALUES_OF_FILE = 2**30


def expect_values(files: Collection[FileInfo]) -> int:
    """So many rows and values at most, of columns of one value mostly, are covered by the files' bytes and their number. A run of one value
    takes a few bytes however long it is.
    """
    return VALUES_PER_BYTE * sum(file.length for file in files) + VALUES_PER_FILE * len(files)


@dataclass(frozen=True)
class UnitFooters:
    """The footers of a unit's files. `unreadable` holds (path, reason). `row_groups` are those of files that were asked for and told.
    `values`: the rows of all files, and the values of all their columns.
    """

    groups: Tuple[FooterGroup, ...] = ()
    unreadable: Tuple[Tuple[str, str], ...] = ()
    row_groups: Tuple[FileRowGroups, ...] = ()
    values: int = 0

    @property
    def row_group_count(self) -> int:
        return sum(len(one.groups) for one in self.row_groups)


@dataclass(frozen=True)
class Digest:
    """An order-insensitive fingerprint of rows: their number and two sums over a 64-bit hash of each row."""

    rows: int
    high: int
    low: int

    def __add__(self, other: Digest) -> Digest:
        """The digest of both sets of rows. Sums wrap at 64 bits, signed, so that every reader of the log can hold them."""
        return Digest(self.rows + other.rows, _wrap(self.high + other.high), _wrap(self.low + other.low))


def _wrap(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


@dataclass(frozen=True)
class Content:
    """What a full read of some files found. `failed`: why they could not be read or written, in one line; nothing is counted then."""

    digest: Digest = Digest(0, 0, 0)
    failed: str = ""


@dataclass(frozen=True)
class Differences:
    """The rows that two sets of files do not share, with multiplicity.

    `columns` are the top-level columns whose values, taken as a multiset, differ. Examples map column to its value as text
    (None for NULL), in the order of the columns.
    """

    only_in_one: int
    only_in_other: int
    columns: Tuple[str, ...] = ()
    examples_of_one: Tuple[Mapping[str, Optional[str]], ...] = ()
    examples_of_other: Tuple[Mapping[str, Optional[str]], ...] = ()

    @property
    def examples(self) -> Tuple[Mapping[str, Optional[str]], ...]:
        return self.examples_of_one + self.examples_of_other

    def without_examples(self) -> Differences:
        return replace(self, examples_of_one=(), examples_of_other=())


@dataclass(frozen=True)
class StageOutput:
    """One file to write: its sources in reading order, their common form, and the codec to write, already resolved.

    `may_grow`: it may become as large as it gets, because the site wants no compression. `block_bytes` and `copies`: the size of its blocks
    and their number on disk, at least.
    """

    files: Tuple[FileInfo, ...]
    form: Form
    codec: str
    may_grow: bool = False
    block_bytes: int = 0
    copies: int = 0


class Ends(NamedTuple):
    """New files with ends of a data file, by their paths. Behind any bytes `without_rows` makes a file of its schema without rows, `own`
    one of its rows if that begins with its bytes. `alone`, if it is asked for: a whole file of its schema without rows.
    """

    file: FileInfo
    without_rows: str
    own: str
    alone: Optional[str] = None


@dataclass(frozen=True)
class StageUnit:
    """The part of a stage batch that is one unit. `bare_values`: how many its files claim beyond `expect_values`."""

    number: UnitNumber
    outputs: Tuple[StageOutput, ...]
    bare_values: int = 0

    @property
    def forms(self) -> int:
        """How many kinds of files it will have, none of which can be merged with another."""
        alone = sum(output.form.single for output in self.outputs)
        return alone + len({(one.form.identity, one.form.blooms, one.codec) for one in self.outputs if not one.form.single})

    @property
    def files(self) -> Tuple[FileInfo, ...]:
        return tuple(file for output in self.outputs for file in output.files)


@dataclass(frozen=True)
class StageBatch:
    """One Spark job: units written to `target`, one directory `__hivekeeper_unit=N` per unit. `run` goes into the output names.

    With `is_copied` the values are copied as they are stored, and the outputs may differ in form. Otherwise Spark SQL reads and writes
    rows, and all outputs have one form and one codec.
    """

    format: str
    target: str
    units: Tuple[StageUnit, ...]
    run: RunId
    sort_columns: Tuple[str, ...] = ()
    is_copied: bool = False

    @property
    def first(self) -> StageOutput:
        return self.units[0].outputs[0]


@dataclass(frozen=True)
class Selection:
    """The tables that a command line names; `where` is the text of --where."""

    databases: Tuple[str, ...] = ()
    tables: Tuple[str, ...] = ()
    exclude: Tuple[str, ...] = ()
    where: Optional[str] = None

    @property
    def named(self) -> bool:
        """Whether tables were named one by one, so that a refusal is an error."""
        return bool(self.tables)

    def names(self, full_name: str) -> bool:
        """Whether this table was named, be it among others."""
        return any(name.lower() == full_name.lower() for name in self.tables)

    @property
    def names_one(self) -> bool:
        """Whether one table was named, and nothing else."""
        return len(self.tables) == 1 and not self.databases
