"""The commits of a component of the catalogue: JSON actions in the shape of a table's log, one file each, numbered without gaps.

Pure. A commit names all files that hold the component's rows at that moment, so the newest one is all that a reader needs: it is its own
checkpoint. docs/catalogue.md describes the format.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from hivekeeper import __version__
from hivekeeper.runlog import strict
from hivekeeper.runlog.strict import NewerRecord, Node

READER_VERSION = 1
# One directory for each file, so that a partition of the component's table can point at it.
PLACE = re.compile(r"data/(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
PART = re.compile(r"[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2}")
UNFINISHED = re.compile(r"commit-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.json")
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Files of a component, and files that wait to be removed.
MOST_FILES = 100_000

OVERWRITE, DELETE, PURGE, EXPIRE = OPERATIONS = ("overwrite", "delete", "purge", "expire")


@dataclass(frozen=True)
class DataFile:
    """The file with the rows of one part; `place` is its directory, relative to the component's."""

    part: str
    place: str
    size: int
    rows: int
    mtime_ms: int

    @property
    def path(self) -> str:
        return f"{self.place}/{self.place.rpartition('/')[2]}.parquet"


@dataclass(frozen=True)
class Commit:
    """The state of a component. `id` tells a commit from that of another writer under the same number. `removed` maps the directories of
    files that are no longer part of it, and may still be read, to the time when they were removed.
    """

    id: str
    operation: str
    run: str
    timestamp_ms: int
    files: Tuple[DataFile, ...] = ()
    removed: Mapping[str, int] = field(default_factory=dict)

    @property
    def by_part(self) -> Dict[str, DataFile]:
        return {file.part: file for file in self.files}


def to_text(commit: Commit, component: str, part_column: str, user: str, host: str) -> str:
    actions: List[Dict[str, Any]] = [
        {"protocol": {"minReaderVersion": READER_VERSION, "minWriterVersion": READER_VERSION}},
        {"metaData": {"name": component, "format": {"provider": "parquet"}, "partitionColumns": [part_column]}},
        {
            "commitInfo": {
                "id": commit.id,
                "timestamp": commit.timestamp_ms,
                "operation": commit.operation,
                "run": commit.run,
                "userName": user,
                "host": host,
                "engineInfo": f"hivekeeper {__version__}",
            }
        },
    ]
    actions += [
        {
            "add": {
                "path": file.path,
                "partitionValues": {part_column: file.part},
                "size": file.size,
                "modificationTime": file.mtime_ms,
                "dataChange": True,
                "stats": json.dumps({"numRecords": file.rows}),
            }
        }
        for file in commit.files
    ]
    actions += [{"remove": {"path": place, "deletionTimestamp": removed_ms}} for place, removed_ms in sorted(commit.removed.items())]
    return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def from_lines(lines: Iterable[str], where: str, part_column: str) -> Commit:
    """Read a commit. Raises UnreadableRecord, ForeignRecord, NewerRecord."""
    info: Dict[str, Any] = {}
    files: List[DataFile] = []
    removed: Dict[str, int] = {}
    for line in lines:
        if not line:
            continue
        action = Node(strict.parse(line, where), where)
        for kind in list(action.plain(depth=6)):
            known = action[kind]
            if kind == "protocol":
                if known["minReaderVersion"].whole() > READER_VERSION:
                    raise NewerRecord(f"{where} was written by a newer version of Hivekeeper")
            elif kind == "commitInfo":
                info = {
                    "id": known["id"].matching(ID, "an id"),
                    "operation": known["operation"].one_of(OPERATIONS),
                    "run": known["run"].text(),
                    "timestamp_ms": known["timestamp"].whole(),
                }
            elif kind == "add":
                files.append(_file_from(known, part_column))
            elif kind == "remove":
                removed[known["path"].matching(PLACE, "a directory of rows")] = known["deletionTimestamp"].whole()
        if len(files) + len(removed) > MOST_FILES:
            raise strict.foreign(where, "", f"it names more than {MOST_FILES} files")
    if not info:
        raise strict.foreign(where, "", "it has no commitInfo")
    _refuse_twice(files, removed, where)
    return Commit(files=tuple(files), removed=removed, **info)


def _file_from(node: Node, part_column: str) -> DataFile:
    place, _, name = node["path"].text().rpartition("/")
    match = PLACE.fullmatch(place)
    if match is None or name != f"{match['id']}.parquet":
        node["path"].refuse(f"{node['path'].quoted()} is not a file of rows")
    stats = Node(strict.parse(node["stats"].text(), node.where), node.where)
    part = node["partitionValues"][part_column].matching(PART, "a part")
    return DataFile(part, place, node["size"].whole(), stats["numRecords"].whole(), node["modificationTime"].whole())


def _refuse_twice(files: List[DataFile], removed: Mapping[str, int], where: str) -> None:
    """A directory that is both in use and removed would be deleted with the rows in it."""
    places = [file.place for file in files]
    if len({*places}) < len(places) or len({file.part for file in files}) < len(files) or not removed.keys().isdisjoint(places):
        raise strict.foreign(where, "", "it names a part or a directory twice")
