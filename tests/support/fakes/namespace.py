"""A small NameNode in memory: inodes, leases, directory times, quotas, a clock; and the other programs that write to it."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.model import Attributes, Block, FileInfo, Quota, Ties
from hivekeeper.ports import FilesUnavailable, NoSpace, NotPossible, SourceMissing, TargetExists

ROOT = "hdfs://nn"
BLOCK_SIZE = 128 << 20
COPIES = 3
FIRST_BLOCK = 1 << 30
# Of the root of a NameNode (INodeId.ROOT_INODE_ID).
FIRST_ID = 16385


@dataclass(eq=False)
class Node:
    """An inode. `content` is text, or whatever the rows fake stores in a data file."""

    id: int
    is_dir: bool
    mtime_ms: int
    content: Any = ""
    length: int = 0
    is_open: bool = False
    # Between these bytes are all blocks that no DataNode has.
    lost: Tuple[int, int] = (0, 0)
    attributes: Attributes = field(default_factory=lambda: Attributes("hive", "hive", 0o755, 0o644, storage_policy="HOT"))
    children: Dict[str, Node] = field(default_factory=dict)
    # The blocks that a file got by concat; its last one is what it has beyond them.
    joined: Tuple[Block, ...] = ()
    # How often a writer has opened it again.
    appends: int = 0

    @property
    def blocks(self) -> Tuple[Block, ...]:
        known = sum(block.length for block in self.joined)
        if self.length < known:
            raise AssertionError("a file is shorter than its blocks")
        last = Block(FIRST_BLOCK + self.id, 1001 + self.appends, self.length - known)
        return (*self.joined, last) if last.length else self.joined

    @property
    def mode(self) -> int:
        return self.attributes.mode if self.is_dir else self.attributes.file_mode


class Namespace:
    """The NameNode: every method is one atomic step, whichever client calls it.

    The clock is a number that tests may set (`clock_ms`) and that every change advances by `tick_ms`, so
    `tick_ms=0` is a coarse clock; or it is a function (`clock`), such as the wall clock.
    """

    def __init__(self, clock: Optional[Callable[[], int]] = None) -> None:
        self.clock = clock
        self.clock_ms = 1_767_225_600_000
        self.tick_ms = 1
        # Clients run in several threads; each takes this for one step.
        self.one_step = threading.RLock()
        self.space_bytes: Optional[int] = None
        # Directories with a quota: names, and disk bytes including replicas; None if not limited.
        self.quotas: Dict[str, Tuple[Optional[int], Optional[int]]] = {}
        # Paths at and below which changes are denied, and directories at and below which nothing can be read.
        self.denied: Set[str] = set()
        self.unreadable: Set[str] = set()
        # What an administrator has set on a directory, by its path, and the names of its snapshots.
        self.ties: Dict[str, Ties] = {}
        self.snapshots: Dict[str, List[str]] = {}
        # Of what was deleted while a snapshot has it, by its id: that of the directory around it, and its name there.
        self.only_in_snapshots: Dict[int, Tuple[int, str]] = {}
        # Files that our clients hold open: a lock, or None for a file being written.
        self.leases: Dict[Node, Any] = {}
        self._last_id = FIRST_ID
        self.root = Node(self._last_id, True, self.now())

    def now(self) -> int:
        return self.clock() if self.clock else self.clock_ms

    @property
    def last_id(self) -> int:
        """Of what was made last."""
        return self._last_id

    def advance(self, ms: int) -> None:
        self.clock_ms += ms

    def find(self, path: str) -> Optional[Node]:
        node: Optional[Node] = self.root
        for name in parts(path):
            node = node.children.get(name) if node is not None and node.is_dir else None
        return node

    def directory(self, path: str) -> Node:
        node = self.find(path)
        if node is None or not node.is_dir:
            raise SourceMissing(f"{path}: no such directory")
        return node

    def file(self, path: str) -> Node:
        node = self.find(path)
        if node is None or node.is_dir:
            raise SourceMissing(f"{path}: no such file")
        return node

    def make_directory(self, path: str) -> None:
        node, components = self.root, parts(path)
        for depth, name in enumerate(components):
            if name not in node.children:
                self._require_names(names.join(ROOT, *components[: depth + 1]))
                self._put(node, name, self.new_node(is_dir=True, group=node.attributes.group))
            node = node.children[name]
            if not node.is_dir:
                last = depth == len(components) - 1
                raise (TargetExists if last else SourceMissing)(f"{path}: {name} is a file")

    def create(self, path: str, content: Any, length: int, is_open: bool = False) -> Node:
        if self.find(path) is not None:
            raise TargetExists(path)
        self.make_directory(names.parent(path))
        self._require_names(path)
        self.require_disk(path, length)
        node = self.new_node(is_dir=False, group=self.directory(names.parent(path)).attributes.group)
        node.content, node.length, node.is_open = content, length, is_open
        self._put(self.directory(names.parent(path)), names.base(path), node)
        return node

    def rename(self, source: str, target: str) -> None:
        """Like FileContext.rename without OVERWRITE: the node keeps its id and time, both parents' times change."""
        node = self.find(source)
        if node is None:
            raise SourceMissing(source)
        if self.find(target) is not None:
            raise TargetExists(target)
        if parts(target)[: len(parts(source))] == parts(source):
            raise FilesUnavailable(f"{target}: lies below the source")
        into = self.directory(names.parent(target))
        self._require_room(source, target)
        self.delete(source)
        self._put(into, names.base(target), node)

    def concat(self, target: str, sources: Sequence[str]) -> None:
        """FSDirConcatOp: everything is checked before anything is changed."""
        into, taken = self.file(target), [self.file(source) for source in sources]
        if any(target.startswith(f"{directory}/") for directory, made in self.snapshots.items() if made):
            raise NotPossible(f"{target}: the sources are in a snapshot")
        if any(names.parent(source) != names.parent(target) for source in sources):
            raise NotPossible(f"{target}: the sources are in another directory")
        if len({id(node) for node in (into, *taken)}) <= len(taken):
            raise NotPossible(f"{target}: a file is named twice")
        if into.is_open or any(node.is_open or not node.length for node in taken):
            raise NotPossible(f"{target}: a file is open or empty")
        into.joined = tuple(block for node in (into, *taken) for block in node.blocks)
        into.content = joined([into.content, *(node.content for node in taken)])
        into.length += sum(node.length for node in taken)
        for source in sources:
            self.delete(source)
        self.touch(into)

    def cut(self, path: str, length: int) -> None:
        node = self.file(path)
        ends = [sum(block.length for block in node.blocks[:number]) for number in range(len(node.blocks) + 1)]
        if node.is_open or length not in ends:
            raise NotPossible(f"{path}: it is open, or no block ends at {length}")
        if length == node.length:
            return
        node.joined = node.blocks[: ends.index(length)]
        node.content, node.length = part_of(node, 0, length), length
        self.touch(node)

    def delete(self, path: str) -> bool:
        if self.find(path) is None:
            return False
        parent = self.directory(names.parent(path))
        del parent.children[names.base(path)]
        self.touch(parent)
        return True

    def delete_into_snapshot(self, path: str) -> None:
        """Delete what a snapshot has: its ids lead to whatever is at its paths then (INode.getPathComponents)."""
        for one, node in [(path, self.directory(path)), *self.walk(path)]:
            self.only_in_snapshots[node.id] = (self.directory(names.parent(one)).id, names.base(one))
        self.delete(path)

    def close(self, node: Node) -> None:
        node.is_open = False
        self.touch(node)

    def touch(self, node: Node) -> None:
        """Something in a directory changed, or a file was closed."""
        node.mtime_ms = self.now()

    def used_bytes(self) -> int:
        return sum(node.length for _, node in self.walk(ROOT))

    def quota_left(self, directory: str) -> Quota:
        """A directory counts as one of its own names; every replica of a file counts."""
        below = [node for _, node in self.walk(directory)]
        most_names, most_disk = self.quotas[directory]
        disk = sum(node.length for node in below) * COPIES
        return Quota(
            directory,
            None if most_names is None else max(0, most_names - len(below) - 1),
            None if most_disk is None else max(0, most_disk - disk),
        )

    def require_disk(self, path: str, length: int) -> None:
        """A new file is charged whole blocks, whatever it will hold."""
        charged = -(-length // BLOCK_SIZE) * BLOCK_SIZE * COPIES
        for quota in self._quotas_above(path):
            if quota.disk_left is not None and quota.disk_left < charged:
                raise NoSpace(f"the quota of {quota.path} is exceeded")

    def _require_names(self, path: str) -> None:
        for quota in self._quotas_above(path):
            if quota.names_left == 0:
                raise NoSpace(f"the quota of {quota.path} is exceeded")

    def _require_room(self, source: str, target: str) -> None:
        """As FSDirRenameOp.verifyQuotaForRename: by the quotas above the target that are not above the source, too."""
        quotas = [quota for quota in self._quotas_above(target) if not source.startswith(quota.path + "/")]
        moved = [self.find(source), *(node for _, node in self.walk(source))] if quotas else []
        disk = sum(node.length for node in moved if node is not None) * COPIES
        for quota in quotas:
            has_names = quota.names_left is None or len(moved) <= quota.names_left
            if not has_names or (quota.disk_left is not None and disk > quota.disk_left):
                raise NoSpace(f"the quota of {quota.path} is exceeded")

    def _quotas_above(self, path: str) -> List[Quota]:
        return [self.quota_left(directory) for directory in self.quotas if path.startswith(directory + "/")]

    def walk(self, top: str) -> Iterator[Tuple[str, Node]]:
        """Everything below, level by level, so that parents come before children."""
        found = self.find(top)
        level = [(top, found)] if found is not None and found.is_dir else []
        while level:
            below = [(f"{path}/{name}", child) for path, node in level for name, child in sorted(node.children.items())]
            yield from below
            level = [(path, node) for path, node in below if node.is_dir]

    def new_node(self, is_dir: bool, group: str) -> Node:
        """Takes its group from its parent directory, as in HDFS."""
        self._last_id += 1
        node = Node(self._last_id, is_dir, self.now())
        if group != node.attributes.group:
            node.attributes = dataclasses.replace(node.attributes, group=group)
        return node

    def _put(self, parent: Node, name: str, node: Node) -> None:
        parent.children[name] = node
        self.touch(parent)


class Writer:
    """Other programs, by the calls they make: Spark and Hive with their committers, and anything that appends."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace

    def add(self, path: str, content: Any, length: Optional[int] = None) -> None:
        """Add a finished file; create missing parents, as every writer's client does."""
        self._tick()
        self.namespace.create(normal(path), content, size(content) if length is None else length)

    def open(self, path: str, content: Any = "", length: Optional[int] = None) -> Node:
        """Open a file for writing: a new one, or an existing one for append."""
        self._tick()
        node = self.namespace.find(normal(path))
        if node is None:
            return self.namespace.create(normal(path), content, size(content) if length is None else length, is_open=True)
        if node.is_open:
            raise TargetExists(f"{path}: open already")
        node.is_open = True
        node.appends += 1
        return node

    def append_open(self, node: Node, more: Any, length: Optional[int] = None) -> None:
        """Write more: the stream follows its inode, wherever the file is by now."""
        node.content += more
        node.length += size(more) if length is None else length

    def close(self, node: Node) -> None:
        self._tick()
        self.namespace.close(node)

    def make_directory(self, path: str) -> None:
        self._tick()
        self.namespace.make_directory(normal(path))

    def delete(self, path: str) -> None:
        self._tick()
        self.namespace.delete(normal(path))

    def rename_into(self, source: str, target: str) -> None:
        """FileSystem.rename: moves below the target if that is a directory."""
        self._tick()
        there = self.namespace.find(normal(target))
        below = names.join(target, names.base(source)) if there is not None and there.is_dir else target
        self.namespace.rename(normal(source), normal(below))

    def overwrite(self, directory: str, files: Mapping[str, Any]) -> None:
        """The end of an INSERT OVERWRITE: delete the directory and create it again."""
        self.delete(directory)
        for name, content in files.items():
            self.add(names.join(directory, name), content)

    def start_committer(self, directory: str) -> None:
        self.make_directory(names.join(directory, "_temporary", "0"))

    def commit_task(self, directory: str, name: str, content: Any, length: Optional[int] = None) -> None:
        """Committer version 1: a task's file waits below `_temporary`, whose parents are re-created if they are gone."""
        self.add(names.join(directory, "_temporary", "0", f"task_{name}", name), content, length)

    def commit_job(self, directory: str) -> None:
        """Move what the tasks committed, replacing files of the same name, and remove `_temporary`."""
        temporary = normal(names.join(directory, "_temporary"))
        for task in sorted(self.namespace.directory(names.join(temporary, "0")).children):
            for name in sorted(self.namespace.directory(names.join(temporary, "0", task)).children):
                self.delete(names.join(directory, name))
                self.rename_into(names.join(temporary, "0", task, name), names.join(directory, name))
        self.delete(temporary)

    def _tick(self) -> None:
        self.namespace.advance(self.namespace.tick_ms)


def joined(contents: Sequence[Any]) -> Any:
    """A text, or a data file that shows the last of them."""
    return "".join(contents) if isinstance(contents[0], str) else contents[-1].behind(contents[:-1])


def part_of(node: Node, begin: int, length: int) -> Any:
    """A part of a file's content; of a data file from one edge between those that it was joined from to another."""
    if isinstance(node.content, str):
        return node.content.encode()[begin : begin + length].decode()
    edges = [0, *itertools.accumulate(block.length for block in node.blocks)]
    if begin not in edges or begin + length not in edges:
        raise NotPossible("no file lies there in it")
    there = node.content.parts[edges.index(begin) : edges.index(begin + length)]
    if not there:
        raise NotPossible("what lay there was overwritten")
    return joined(there)


def is_foreign(path: str) -> bool:
    return names.server_of(path) not in ("", "hdfs:", "hdfs://", ROOT)


@lru_cache(maxsize=100_000)
def parts(path: str) -> Tuple[str, ...]:
    # A real one might never answer.
    assert not is_foreign(path), f"a foreign server is called: {path}"
    for prefix in (ROOT, "hdfs:"):
        if path.startswith(prefix + "/") or path == prefix:
            path = path[len(prefix) :]
            break
    found: List[str] = []
    for part in path.split("/"):
        # Hadoop's Path resolves these before any file system is called.
        if part == "..":
            found = found[:-1]
        elif part not in ("", "."):
            found.append(part)
    return tuple(found)


@lru_cache(maxsize=100_000)
def qualified(path: str) -> str:
    server = names.server_of(path)
    return "/".join([server if is_foreign(path) else ROOT, *parts(path[len(server) :])])


def normal(path: str) -> str:
    return "/".join([ROOT, *parts(path)])


def size(content: Any) -> int:
    return len(content.encode()) if isinstance(content, str) else len(content)


def info(path: str, node: Node) -> FileInfo:
    return FileInfo(
        path=path,
        length=node.length,
        mtime_ms=node.mtime_ms,
        is_dir=node.is_dir,
        file_id=node.id,
        block_size=0 if node.is_dir else BLOCK_SIZE,
        replication=0 if node.is_dir else 3,
        owner=node.attributes.owner,
        group=node.attributes.group,
        mode=node.mode,
        is_open=node.is_open,
        has_acl=bool(node.attributes.acl if node.is_dir else node.attributes.file_acl),
        lost_from=node.lost[0],
        lost_to=node.lost[1],
    )
