"""Files that are joined by concat, as the records of a run tell of them: what is planned, what was made, and what lies inside.

Pure: values to JSON and back (docs/concat.md).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Block
from hivekeeper.names import RunId
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.strict import LOWEST, Node, file_name_from

# Blocks of a file, and files of a join, in a record.
_MOST = 2_000_000
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Join:
    """How the files of a manifest become one file of live, by concat: its name, the hidden name under which its last part waits in live,
    and the blocks of each file of the manifest, in its order.

    `beside`: a file without rows that is joined with them, "" for none. A single file needs one, so that the new name is between two.
    """

    file: str
    tail: str
    blocks: Tuple[Tuple[Block, ...], ...]
    beside: str = ""

    def parts_aside(self, made: JoinedFile) -> Mapping[str, int]:
        """The files that wait outside live to become one with the sources, by name, with their lengths."""
        parts = {self.file: made.head_bytes, self.tail: made.tail_bytes}
        return {**parts, self.beside: length_of(made.beside)} if self.beside else parts

    def planned_blocks(self, made: JoinedFile) -> Tuple[Block, ...]:
        """What the joined file consists of."""
        return (*made.head, *(block for blocks in self.blocks for block in blocks), *made.end)


@dataclass(frozen=True)
class JoinedFile:
    """A file before it is joined with its sources: a proved copy and a footer without rows behind it.

    `copy_bytes` is the length of the copy, `file_id` the file's own, `head` are its blocks; `tail_id` and `tail` are id and blocks of the
    file that waits with the copy's footer, `beside` and `beside_id` those of `Join.beside`. `directory_id`: of live,
    where all are joined.
    """

    copy_bytes: int
    file_id: int
    tail_id: int
    directory_id: int
    head: Tuple[Block, ...]
    tail: Tuple[Block, ...]
    beside: Tuple[Block, ...] = ()
    beside_id: int = 0

    @property
    def end(self) -> Tuple[Block, ...]:
        """What comes behind the sources."""
        return (*self.beside, *self.tail)

    @property
    def head_bytes(self) -> int:
        return length_of(self.head)

    @property
    def tail_bytes(self) -> int:
        return length_of(self.tail)


def length_of(blocks: Iterable[Block]) -> int:
    return sum(block.length for block in blocks)


def fingerprint(blocks: Iterable[Block]) -> str:
    """Tells whether a file has the same blocks as before: ids, generation stamps and lengths. A joined file has thousands."""
    return hashlib.sha256(json.dumps([list(block) for block in blocks]).encode()).hexdigest()


@dataclass(frozen=True)
class Inside:
    """The file of live that has a unit's old files inside, because a run joined them: one after the other from `begin` on, in the order of
    the manifest. Without them its first `copy_bytes` are the whole file. `blocks` is a fingerprint.
    """

    file: str
    length: int
    file_id: int
    copy_bytes: int
    begin: int
    blocks: str

    @classmethod
    def of(cls, join: Join, made: JoinedFile) -> Inside:
        blocks = join.planned_blocks(made)
        return cls(join.file, length_of(blocks), made.file_id, made.copy_bytes, made.head_bytes, fingerprint(blocks))


def join_to_dict(join: Optional[Join]) -> Optional[Dict[str, Any]]:
    return {"file": join.file, "tail": join.tail, "blocks": join.blocks, "beside": join.beside} if join else None


def join_from(node: Node, manifest: Sequence[ManifestFile], inside: Optional[Inside], run: RunId) -> Join:
    """`manifest` is the unit's, `inside` is set if its only file has old ones inside."""
    node.only(frozenset(["file", "tail", "blocks", "beside"]))
    file, match = file_name_from(node["file"]), names.JOIN_TAIL.fullmatch(node["tail"].text())
    if match is None or match["run"] != run:
        node["tail"].refuse(f"{node['tail'].quoted()} is no name of run {run}")
    sources, nth, beside = [source.name for source in manifest], int(match["nth"]), node["beside"].text()
    is_beside = len(sources) == 1 and inside is not None and names.is_beside_name(beside, sources[0], run, nth)
    node["beside"].refuse_where(beside != "" and not is_beside, f"{node['beside'].quoted()} is no name that run {run} gives")
    together = [*sources, beside] if beside else sources
    is_ours = len(together) > 1 and names.is_joined_name(file, together, run, nth)
    node["file"].refuse_where(not is_ours, f"{node['file'].quoted()} is no name that run {run} gives to these files together")
    if inside is not None:
        is_that = [file[:2] for file in manifest] == [(inside.file, inside.length)]
        node.refuse_where(not is_that, "it is not of the file in `inside`")
    blocks = tuple(blocks_from(item) for item in node["blocks"].each(_MOST))
    lengths = [length_of(each) for each in blocks]
    node["blocks"].refuse_where(lengths != [source.length for source in manifest], "they are not those of the files")
    return Join(file, match[0], blocks, beside)


def blocks_from(node: Node) -> Tuple[Block, ...]:
    """Reads `[id, generation stamp, length]` of each block; before Hadoop 2 ids were negative, too."""
    found = []
    for item in node.each(_MOST):
        numbers = [part.whole(LOWEST) for part in item.each(3)]
        item.refuse_where(len(numbers) != 3 or numbers[2] < 0, "it is not [id, generation stamp, length] of a block")
        found.append(Block(*numbers))
    return tuple(found)


def joined_to_dict(join: Optional[JoinedFile]) -> Dict[str, Any]:
    if join is None:
        return {}
    ids = {"fileId": join.file_id, "tailId": join.tail_id, "besideId": join.beside_id, "directoryId": join.directory_id}
    return {"join": {"copyBytes": join.copy_bytes, **ids, "head": join.head, "tail": join.tail, "beside": join.beside}}


def joined_from(node: Node) -> JoinedFile:
    node.only(frozenset(["copyBytes", "fileId", "tailId", "besideId", "directoryId", "head", "tail", "beside"]))
    head, tail, beside = (blocks_from(node[key]) for key in ("head", "tail", "beside"))
    file_id, tail_id, beside_id, directory_id = (node[key].whole(LOWEST) for key in ("fileId", "tailId", "besideId", "directoryId"))
    copy_bytes = node["copyBytes"].whole()
    # It is cut there one day.
    edges = accumulate(block.length for block in head[:-1])
    node["copyBytes"].refuse_where(copy_bytes == 0 or copy_bytes not in edges, "no block of its head ends there")
    node["tail"].refuse_where(length_of(tail) == 0, "it is empty")
    return JoinedFile(copy_bytes, file_id, tail_id, directory_id, head, tail, beside, beside_id)


def inside_to_dict(inside: Optional[Inside]) -> Optional[Dict[str, Any]]:
    if inside is None:
        return None
    return {
        "file": inside.file,
        "length": inside.length,
        "fileId": inside.file_id,
        "copyBytes": inside.copy_bytes,
        "begin": inside.begin,
        "blocks": inside.blocks,
    }


def inside_from(node: Node, files: Sequence[ManifestFile]) -> Inside:
    """`files` are the old files, as far as they are known."""
    node.only(frozenset(["file", "length", "fileId", "copyBytes", "begin", "blocks"]))
    copy_bytes, begin, length = (node[key].whole() for key in ("copyBytes", "begin", "length"))
    is_in = 0 < copy_bytes < begin and begin + sum(file.length for file in files) < length
    node.refuse_where(not is_in, "its parts are not in the file")
    blocks = node["blocks"].matching(_FINGERPRINT, "a fingerprint of blocks")
    return Inside(file_name_from(node["file"]), length, node["fileId"].whole(LOWEST), copy_bytes, begin, blocks)
