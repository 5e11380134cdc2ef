"""The text files in a run's directory: plans and certificates (docs/on-disk.md).

Pure: values to JSON and back. Paths in records are relative to the table's location, so that they stay true when a NameNode or nameservice
changes its name. Anyone who may write to the table may have written these files (`runlog/strict.py`), so a file is accepted only if it is
what we write.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from itertools import repeat
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names, quoting
from hivekeeper.model import Column, Digest, FileInfo, Partition, Storage, Table, Unit
from hivekeeper.names import RunId, UnitNumber
from hivekeeper.runlog import manifests, strict
from hivekeeper.runlog.joins import (
    Inside,
    Join,
    JoinedFile,
    inside_from,
    inside_to_dict,
    join_from,
    join_to_dict,
    joined_from,
    joined_to_dict,
    length_of,
)
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.strict import HIGHEST, LOWEST, NewerRecord, Node, file_name_from

# A plan has the lowest version that can hold it: 2 with units that are joined, or about old files inside others, 3 with ids of directories.
PLAN_VERSION = 3

COMPACT_SWAP, ROLLBACK, CLEANUP, BACKUP = "compact-swap", "rollback", "cleanup", "backup"
PIN, UNPIN, VERIFY = "pin", "unpin", "verify"
PLANNED_OPERATIONS = frozenset([COMPACT_SWAP, ROLLBACK, CLEANUP, BACKUP])
OPERATIONS = PLANNED_OPERATIONS | {PIN, UNPIN, VERIFY}
# Operations whose planned units each name another run's backup.
OF_A_BACKUP = frozenset([ROLLBACK, CLEANUP])
# How a cleanup discards (`discard`); other operations have none.
DELETE, TRASH = "delete", "trash"

# The most units and files in one run; also the highest unit number.
MOST_UNITS, MOST_FILES = 1_000_000, 2_000_000
MOST_COLUMNS = 100_000


@dataclass(frozen=True)
class BackupPlace:
    """Where a run put the former files of one unit; `place` is relative to the control directory."""

    run: RunId
    number: UnitNumber
    place: str

    @property
    def key(self) -> Tuple[RunId, UnitNumber]:
        """As that of the effect that has left it."""
        return self.run, self.number


@dataclass(frozen=True)
class PlannedUnit:
    """A unit in a plan file; `live` is absolute here.

    `manifest` holds the files that leave live; for a cleanup, those that the backup must consist of. `backup` is what a
    rollback restores or a cleanup discards. `expected` are the files that live must hold afterwards: what a rollback
    restores; for a cleanup, what the newest run put there, () if live no longer belongs to this table. `digest` is the
    digest in a former run's certificate, valid for both sides of a rollback. `join`: the manifest has only some of live's files, which
    become one; without it live is exchanged as a whole. `inside`: of a backup that lies in a file of live. `directory_id` is that of the
    directory that leaves live, 0 if it is not known, or none does.
    """

    number: UnitNumber
    unit: Unit
    manifest: Tuple[ManifestFile, ...]
    markers: Tuple[str, ...] = ()
    backup: Optional[BackupPlace] = None
    expected: Tuple[ManifestFile, ...] = ()
    digest: Optional[Digest] = None
    join: Optional[Join] = None
    inside: Optional[Inside] = None
    directory_id: int = 0

    @property
    def name(self) -> str:
        return self.unit.name

    @property
    def live(self) -> str:
        return self.unit.live

    @property
    def label(self) -> str:
        return self.unit.label

    @property
    def log_field(self) -> str:
        return self.unit.log_field

    @property
    def data_files(self) -> int:
        """How many files of the manifest hold rows."""
        return sum(1 for file in self.manifest if file.holds_rows)

    @property
    def data_bytes(self) -> int:
        return sum(file.length for file in self.manifest if file.holds_rows)

    @property
    def partition(self) -> Partition:
        """The partition as planned, for re-creating it if auto-discovery dropped it."""
        return Partition(self.unit.name, self.unit.values, self.unit.live, self.unit.storage, self.unit.parameters)

    def knows(self, directory_id: int) -> bool:
        """Whether that is certainly the id of the unit's directory, or certainly not: both are known."""
        return 0 not in (self.directory_id, directory_id)

    def lay_in(self, directory_id: int, entries: Iterable[FileInfo]) -> bool:
        """Whether this is the directory that was planned for: by its id, or, where that is not known, by one of its files. Somebody may
        have put another directory at its path, with files of the unit in it, too.
        """
        return self.directory_id == directory_id if self.knows(directory_id) else manifests.is_of(self.manifest, entries)


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run. `table` is the definition at that time, `backup_table` the table that shows the old files, "" for none.

    `record` is the run whose record describes the units: this one, or an earlier `backup`. `discard` says how a cleanup
    removes files, delete or trash; `records` are the directories of the `backup` runs whose records it drops. `run_key` is the
    scheduler's name for the execution, "" for none.
    """

    run: RunId
    operation: str
    table: Table
    units: Tuple[PlannedUnit, ...]
    backup_table: str = ""
    record: str = ""
    discard: str = ""
    records: Tuple[str, ...] = ()
    run_key: str = ""


@dataclass(frozen=True)
class OutputForm:
    """One form of a unit's output: schema, codec, and the hash of the footer bytes that say how to read it (`model.Form`)."""

    schema: str
    codec: str
    identity: str = ""


@dataclass(frozen=True)
class Certificate:
    """The evidence of one unit's proof, and what its output consists of: `files` are those that live gets, with their lengths there."""

    unit: UnitNumber
    partition: str
    files: Mapping[str, int]
    rows: int
    digest: Digest
    source_files: int
    source_bytes: int
    forms: Tuple[OutputForm, ...]
    file_rows: Mapping[str, int] = field(default_factory=dict)
    join: Optional[JoinedFile] = None

    @property
    def total_bytes(self) -> int:
        """Of the output; of a joined file without the old ones inside."""
        return self.join.copy_bytes if self.join else sum(self.files.values())


def is_inside(path: str, root: str) -> bool:
    """Whether a path can be expressed relative to the table's location."""
    return path == root or path.startswith(root + "/")


def may_be_inside(location: str, root: str) -> bool:
    """Whether a location is inside a directory, or, if it is a pattern, what it means may be."""
    return is_inside(names.before_pattern(location), root) or names.may_lead_into(location, root)


def is_recordable(live: str, root: str) -> bool:
    """Whether a record of the table at `root` may hold a unit with this directory."""
    return live == root or (is_inside(live, root) and names.is_place_below(live[len(root) + 1 :]))


def relative(path: str, root: str) -> str:
    """The path relative to the root, `.` for the root itself. Raises ValueError for a path that is not below it."""
    if not is_inside(path, root):
        raise ValueError(f"{path} is not below {root}")
    return path[len(root) + 1 :] or "."


def absolute(path: str, root: str) -> str:
    return root if path == "." else names.join(root, path)


def plan_pieces(plan: RunPlan, created_ms: int) -> Iterator[str]:
    """The text of plan.json, line by line: the run, then each unit. A run may have a million files."""
    version = max((_version_for(unit) for unit in plan.units), default=1)
    run = {
        "version": version,
        "run": plan.run,
        "operation": plan.operation,
        "created": created_ms,
        "table": plan.table.full_name,
        "location": plan.table.location,
        "definition": _table_to_dict(plan.table),
        "backupTable": plan.backup_table,
        "record": plan.record,
        "discard": plan.discard,
        "records": list(plan.records),
        "runKey": plan.run_key,
        "units": len(plan.units),
    }
    yield json.dumps(run, ensure_ascii=False) + "\n"
    yield from (unit_piece(unit, plan.table.location, version) for unit in plan.units)


def _version_for(unit: PlannedUnit) -> int:
    if unit.directory_id:
        return 3
    return 2 if unit.join or unit.inside else 1


def unit_piece(unit: PlannedUnit, root: str, version: int = PLAN_VERSION) -> str:
    """One unit's line of plan.json, in a plan of this version."""
    piece = _unit_to_dict(unit, root)
    if version > 1:
        piece.update({"join": join_to_dict(unit.join), "inside": inside_to_dict(unit.inside)})
    if version > 2:
        piece["directoryId"] = unit.directory_id
    return json.dumps(piece, ensure_ascii=False) + "\n"


def _unit_to_dict(unit: PlannedUnit, root: str) -> Dict[str, Any]:
    return {
        "unit": unit.number,
        "partition": unit.name,
        "values": list(unit.unit.values),
        "live": relative(unit.live, root),
        "storage": _storage_to_dict(unit.unit.storage),
        "parameters": dict(unit.unit.parameters),
        "markers": list(unit.markers),
        "files": files_to_lists(unit.manifest),
        "backup": {"run": unit.backup.run, "unit": unit.backup.number, "place": unit.backup.place} if unit.backup else None,
        "expected": files_to_lists(unit.expected),
        "digest": asdict(unit.digest) if unit.digest else None,
    }


def files_to_lists(files: Iterable[ManifestFile]) -> Any:
    return [[file.name, file.length, file.mtime_ms, file.file_id] for file in files]


_HEAD_KEYS = frozenset(
    [
        *("version", "run", "operation", "created", "table", "location", "definition", "backupTable"),
        *("record", "discard", "records", "runKey", "units"),
    ]
)
_UNIT_KEYS = frozenset(["unit", "partition", "values", "live", "storage", "parameters", "markers", "files", "backup", "expected", "digest"])
_KEYS_BY_VERSION = {1: _UNIT_KEYS, 2: _UNIT_KEYS | {"join", "inside"}, 3: _UNIT_KEYS | {"join", "inside", "directoryId"}}


def plan_from_lines(lines: Iterable[str], root: str, where: str, run: RunId) -> RunPlan:
    """Read the plan of `run` for the table at `root`; `where` names the file. Raises UnreadableRecord."""
    plan, units = _open_plan(iter(lines), root, where, run)
    return replace(plan, units=tuple(units))


def planned_table(lines: Iterable[str], root: str, where: str, run: RunId) -> Table:
    """As plan_from_lines, only the table as it was; no line of a unit is read."""
    return _open_plan(iter(lines), root, where, run)[0].table


def check_plan(plan: RunPlan, created_ms: int, where: str, run: RunId) -> None:
    """Raise UnreadableRecord unless plan_from_lines accepts what plan_pieces writes; unit by unit, without a copy of the whole."""
    _, units = _open_plan(plan_pieces(plan, created_ms), plan.table.location, where, run)
    for _ in units:
        pass


def _open_plan(lines: Iterator[str], root: str, where: str, run: RunId) -> Tuple[RunPlan, Iterator[PlannedUnit]]:
    """The plan without its units, and the units as they are read."""
    head = Node(strict.parse(next(lines, ""), where), where)
    version = head["version"].whole(1)
    if version > PLAN_VERSION:
        raise NewerRecord(f"{where} was written by a newer Hivekeeper (plan version {version})")
    head.only(_HEAD_KEYS)
    head["run"].refuse_where(head["run"].value != run, f"it is not {run}, the run whose directory holds it")
    head["created"].whole()
    operation = head["operation"].one_of(PLANNED_OPERATIONS)
    table = _table_from(head["definition"], root)
    head["table"].refuse_where(head["table"].value != table.full_name, f"it is not {table.full_name}, as in `definition`")
    stored = head["definition"]["location"].value
    head["location"].refuse_where(head["location"].value != stored, "it is not that of `definition`")
    discard = head["discard"].one_of([DELETE, TRASH] if operation == CLEANUP else [""])
    plan = RunPlan(
        run,
        operation,
        table,
        (),
        table_name_from(head["backupTable"]),
        run_id_from(head["record"]) if head["record"].value != "" else "",
        discard,
        tuple(directory_from(item) for item in head["records"].each()),
        run_key_from(head["runKey"]) if head["runKey"].value != "" else "",
    )
    return plan, _Units(table, operation, run, version).read(lines, head["units"])


# The parent of each unit's line, for the names of fields in messages.
_LINES = Node(None, "", None, "units")


class _Units:
    """Reads the units of a plan of this version, each on a line of its own."""

    def __init__(self, table: Table, operation: str, run: RunId, version: int) -> None:
        self._table, self._operation, self._run, self._version = table, operation, run, version
        self._numbers: Set[int] = set()
        self._partitions: Set[str] = set()
        self._files = 0

    def read(self, lines: Iterable[str], number: Node) -> Iterator[PlannedUnit]:
        """`number` says how many there must be: a text cut off at the end of a line is no shorter plan."""
        promised = number.whole(0, MOST_UNITS)
        found = 0
        for line in filter(None, lines):
            number.refuse_where(found == promised, "more units follow")
            yield self._take(Node(strict.parse(line, number.where), number.where, _LINES, found))
            found += 1
        number.refuse_where(found < promised, f"only {found} units follow")

    def _take(self, item: Node) -> PlannedUnit:
        unit = _unit_from(item.only(_KEYS_BY_VERSION[self._version]), self._table, self._operation)
        if self._version > 1:
            unit = _with_join(unit, item, self._operation, self._run)
        if self._version > 2:
            unit = replace(unit, directory_id=item["directoryId"].whole())
        item["unit"].refuse_where(unit.number in self._numbers, "another unit has this number")
        # Only rollback and cleanup, whose units are backups, and joins, each of some files, may have several units of one partition.
        is_again = unit.name in self._partitions and self._operation not in OF_A_BACKUP and not unit.join
        item["partition"].refuse_where(is_again, "another unit is about this partition")
        self._numbers.add(unit.number)
        self._partitions.add(unit.name)
        self._files += len(unit.manifest) + len(unit.expected)
        item.refuse_where(self._files > MOST_FILES, f"with it there are more than {MOST_FILES} files")
        return unit


def _unit_from(node: Node, table: Table, operation: str) -> PlannedUnit:
    columns = [column.name for column in table.partition_columns]
    # A cleanup that may move files to live is about a partition of today's table.
    is_former = operation == CLEANUP and node["expected"].value == []
    name = former_partition_from(node["partition"], columns) if is_former else partition_from(node["partition"], columns)
    values = node["values"].texts()
    node["values"].refuse_where(values != () and not name, "an unpartitioned table has none")
    if name:
        # The metastore keeps an empty value as it is, but uses Hive's word for NULL in the partition's name.
        told = tuple(value or quoting.HIVE_NULL for value in values)
        node["values"].refuse_where(told != tuple(quoting.partition_values(name).values()), f"they are not those of {name!r}")
    live = live_from(node["live"], name)
    # A `backup` run may record a partition that cannot be swapped.
    node["live"].refuse_where(live == "." and name != "" and operation != BACKUP, "a partition is not the table's own directory")
    unit = Unit(
        table.full_name, name, values, absolute(live, table.location), _storage_from(node["storage"]), node["parameters"].properties()
    )
    backup = node.get("backup")
    node["backup"].refuse_where((backup is not None) is not (operation in OF_A_BACKUP), f"a {operation} has {'none' if backup else 'one'}")
    return PlannedUnit(
        number_from(node["unit"]),
        unit,
        files_from(node["files"]),
        tuple(file_name_from(item) for item in node["markers"].each()),
        _backup_from(backup) if backup else None,
        files_from(node["expected"]),
        digest_from(node.get("digest")),
    )


def _with_join(unit: PlannedUnit, node: Node, operation: str, run: RunId) -> PlannedUnit:
    """A compaction joins files; a rollback joins the file that has the old ones inside; a cleanup only cuts that."""
    join, inside = node.get("join"), node.get("inside")
    for known, never in ((join, (CLEANUP, BACKUP)), (inside, (COMPACT_SWAP, BACKUP))):
        if known:
            known.refuse_where(operation in never, f"a {operation} has none")
    node.refuse_where(operation == ROLLBACK and (join is None) is not (inside is None), "it has one of join and inside, without the other")
    if inside:
        unit = replace(unit, inside=inside_from(inside, unit.expected if operation == ROLLBACK else unit.manifest))
    if join:
        unit = replace(unit, join=join_from(join, unit.manifest, unit.inside, run))
    return unit


def _backup_from(node: Node) -> BackupPlace:
    node.only(frozenset(["run", "unit", "place"]))
    run, number = run_id_from(node["run"]), number_from(node["unit"])
    place = node["place"].text()
    found = names.BACKUP_PLACE.fullmatch(place)
    is_of_run = found is not None and (found["run"], found["unit"]) == (run, names.unit_directory(number))
    node["place"].refuse_where(not is_of_run, f"{node['place'].quoted()} is no place of a backup of unit {number} of run {run}")
    return BackupPlace(run, number, place)


def files_from(node: Node) -> Tuple[ManifestFile, ...]:
    """Reads `[name, length, modification time, id]` of each file; runs for millions of them."""
    node.refuse_where(type(node.value) is not list or len(node.value) > MOST_FILES, "it is no list of files, or too long")
    if node.value and _are_files(node.value):
        return tuple(map(tuple.__new__, repeat(ManifestFile), node.value))
    found: List[ManifestFile] = []
    known: Set[str] = set()
    for index, item in enumerate(node.value):
        if type(item) is not list or len(item) != 4 or not is_file(*item):
            Node(item, node.where, node, index).refuse("it is not [name, length, modification time, id] of a file")
        if item[0] in known:
            Node(item, node.where, node, index).refuse("the file stands there twice")
        known.add(item[0])
        found.append(ManifestFile(*item))
    return tuple(found)


def _are_files(items: List[Any]) -> bool:
    """Whether `is_file` holds for each, and no name is there twice; in calls for all of them together, which take a third of the time."""
    if set(map(type, items)) != {list} or set(map(len, items)) != {4}:
        return False
    found, *numbers = zip(*items)
    if set(map(type, found)) != {str} or any(set(map(type, column)) != {int} for column in numbers):
        return False
    lengths, *signed = numbers
    in_range = min(lengths) >= 0 and max(lengths) <= HIGHEST and all(min(column) >= LOWEST and max(column) <= HIGHEST for column in signed)
    return in_range and names.are_file_names(found)


def is_file(name: Any, length: Any, mtime_ms: Any, file_id: Any) -> bool:
    """Whether a manifest may hold these values. Inode numbers of local disks are unsigned, but Java makes them signed."""
    if type(name) is not str or type(length) is not int or type(mtime_ms) is not int or type(file_id) is not int:
        return False
    return names.is_file_name(name) and 0 <= length <= HIGHEST and LOWEST <= mtime_ms <= HIGHEST and LOWEST <= file_id <= HIGHEST


def live_from(node: Node, partition: str) -> str:
    """A unit's directory, relative to the table's location, in normal form. Only the metastore knows whether it is this partition's."""
    text = node.text(names.MOST_PATH)
    node.refuse_where(text != "." and not names.is_place_below(text), f"{node.quoted()} is no directory below the table's")
    node.refuse_where(text != "." and not partition, "an unpartitioned table lies in its own directory")
    return text


def partition_from(node: Node, columns: Sequence[str]) -> str:
    """Hive's name of a partition of a table with these partition columns; "" for an unpartitioned table."""
    text = node.text(names.MOST_PATH)
    told = _columns_in(text)
    if told != [column.lower() for column in columns] or not all(told):
        node.refuse(f"{node.quoted()} is no partition by {', '.join(columns[:5])[:200] or 'nothing'}")
    return text


def former_partition_from(node: Node, columns: Sequence[str]) -> str:
    """As partition_from, for a backup that a cleanup discards: the table may have been created again with other partition columns since.

    Its place follows from its run and unit, not from this name.
    """
    told = _columns_in(node.text(names.MOST_PATH))
    return partition_from(node, told if columns and told else columns)


def _columns_in(partition: str) -> List[str]:
    """The columns in a partition's name, "" for a part that is not `column=value`."""
    pairs = [part.partition("=") for part in partition.split("/")] if partition else []
    return [quoting.unescape(column).lower() if value else "" for column, _, value in pairs]


def run_id_from(node: Node) -> RunId:
    return RunId(node.matching(names.RUN, "the id of a run"))


def run_key_from(node: Node) -> str:
    return node.matching(names.RUN_KEY, "a run key")


def directory_from(node: Node) -> str:
    return node.matching(names.RUN_DIRECTORY, "the name of a run's directory")


def number_from(node: Node) -> UnitNumber:
    return UnitNumber(node.whole(1, MOST_UNITS))


def table_name_from(node: Node) -> str:
    """`database.table`, or "" for none."""
    return node.matching(names.TABLE, "database.table") if node.value != "" else ""


def digest_from(node: Optional[Node]) -> Optional[Digest]:
    if node is None:
        return None
    node.only(frozenset(["rows", "high", "low"]))
    return Digest(node["rows"].whole(), node["high"].whole(LOWEST), node["low"].whole(LOWEST))


def _table_to_dict(table: Table) -> Dict[str, Any]:
    return {
        "database": table.database,
        "name": table.name,
        "kind": table.kind,
        "location": table.location,
        "storage": _storage_to_dict(table.storage),
        "columns": [asdict(column) for column in table.columns],
        "partitionColumns": [asdict(column) for column in table.partition_columns],
        "parameters": dict(table.parameters),
        "bucketColumns": list(table.bucket_columns),
        "buckets": table.buckets,
        "sortColumns": list(table.sort_columns),
        "skewedColumns": list(table.skewed_columns),
        "owner": table.owner,
        "createTime": table.create_time,
    }


_DEFINITION_KEYS = frozenset(
    [
        *("database", "name", "kind", "location", "storage", "columns", "partitionColumns", "parameters"),
        *("bucketColumns", "buckets", "sortColumns", "skewedColumns", "owner", "createTime"),
    ]
)
_MOST_INT = 2**31 - 1


def _table_from(node: Node, root: str) -> Table:
    node.only(_DEFINITION_KEYS)
    full_name = f"{node['database'].text()}.{node['name'].text()}"
    node["name"].refuse_where(names.TABLE.fullmatch(full_name) is None, f"{full_name[:100]!r} is no name of a table")
    stored = node["location"].text(names.MOST_PATH)
    node["location"].refuse_where(not stored or "/" not in stored, "it is no location")
    return Table(
        database=node["database"].text(),
        name=node["name"].text(),
        kind=node["kind"].text(),
        location=root,
        storage=_storage_from(node["storage"]),
        columns=_columns_from(node["columns"]),
        partition_columns=_columns_from(node["partitionColumns"]),
        parameters=node["parameters"].properties(),
        bucket_columns=node["bucketColumns"].texts(MOST_COLUMNS),
        buckets=node["buckets"].whole(-_MOST_INT, _MOST_INT),
        sort_columns=node["sortColumns"].texts(MOST_COLUMNS),
        skewed_columns=node["skewedColumns"].texts(MOST_COLUMNS),
        owner=node["owner"].text(),
        create_time=node["createTime"].whole(-_MOST_INT, _MOST_INT),
    )


def _columns_from(node: Node) -> Tuple[Column, ...]:
    of_column = frozenset(["name", "type"])
    return tuple(Column(item.only(of_column)["name"].text(), item["type"].text(strict.MOST_TEXT)) for item in node.each(MOST_COLUMNS))


def _storage_to_dict(storage: Storage) -> Dict[str, Any]:
    return {
        "inputFormat": storage.input_format,
        "outputFormat": storage.output_format,
        "serde": storage.serde,
        "serdeParameters": dict(storage.serde_parameters),
    }


def _storage_from(node: Node) -> Storage:
    node.only(frozenset(["inputFormat", "outputFormat", "serde", "serdeParameters"]))
    return Storage(node["inputFormat"].text(), node["outputFormat"].text(), node["serde"].text(), node["serdeParameters"].properties())


def certificates_to_text(certificates: Iterable[Certificate]) -> str:
    return "".join(json.dumps(_certificate_to_dict(certificate), ensure_ascii=False) + "\n" for certificate in certificates)


def _certificate_to_dict(certificate: Certificate) -> Dict[str, Any]:
    return {
        "unit": certificate.unit,
        "partition": certificate.partition,
        "files": dict(certificate.files),
        "fileRows": dict(certificate.file_rows),
        "rows": certificate.rows,
        "digest": asdict(certificate.digest),
        "forms": [asdict(form) for form in certificate.forms],
        "sourceFiles": certificate.source_files,
        "sourceBytes": certificate.source_bytes,
        **joined_to_dict(certificate.join),
    }


_CERTIFICATE_KEYS = frozenset(["unit", "partition", "files", "fileRows", "rows", "digest", "forms", "sourceFiles", "sourceBytes"])
_FORM_KEYS = frozenset(["schema", "codec", "identity"])


def certificates_from_lines(lines: Iterable[str], where: str) -> Tuple[Certificate, ...]:
    """Read certificates; `where` names the file. Raises UnreadableRecord."""
    return tuple(_certificate_from(Node(strict.parse(line, where), where)) for line in lines if line)


def why_not_of_plan(certificate: Certificate, units: Mapping[UnitNumber, PlannedUnit]) -> str:
    """Why a certificate cannot be that of a unit of the plan; "" if it can."""
    unit, made = units.get(certificate.unit), certificate.join
    if unit is None:
        return f"the plan has no unit {certificate.unit}"
    join = unit.join
    if join is None or made is None:
        return "" if join is None and made is None else f"unit {unit.number} is joined by one of both only"
    if bool(join.beside) != bool(made.beside) or certificate.files != {join.file: length_of(join.planned_blocks(made))}:
        return f"the file of unit {unit.number} is not made of its blocks"
    return "" if len(certificate.forms) == 1 else f"the file of unit {unit.number} has not one form"


def _certificate_from(node: Node) -> Certificate:
    join = node.get("join")
    node.only(_CERTIFICATE_KEYS | {"join"} if join else _CERTIFICATE_KEYS)
    digest = digest_from(node["digest"])
    if digest is None:
        node["digest"].refuse("it is missing")
    return Certificate(
        unit=number_from(node["unit"]),
        partition=node["partition"].text(names.MOST_PATH),
        files=_counts_from(node["files"]),
        rows=node["rows"].whole(),
        digest=digest,
        source_files=node["sourceFiles"].whole(),
        source_bytes=node["sourceBytes"].whole(),
        forms=tuple(_form_from(item) for item in node["forms"].each(MOST_FILES)),
        file_rows=_counts_from(node["fileRows"]),
        join=joined_from(join) if join else None,
    )


def _form_from(node: Node) -> OutputForm:
    node.only(_FORM_KEYS)
    return OutputForm(node["schema"].text(strict.MOST_TEXT), node["codec"].text(), node["identity"].text())


def _counts_from(node: Node) -> Dict[str, int]:
    """A number for each file name."""
    node.refuse_where(type(node.value) is not dict or len(node.value) > MOST_FILES, "it is no object by file names, or too long")
    for name in node.value:
        node.refuse_where(not names.is_file_name(name), f"{name[:100]!r} is no file name")
    return {name: node[name].whole() for name in node.value}
