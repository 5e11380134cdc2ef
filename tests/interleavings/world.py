"""The cluster of an exploration: the fakes' NameNode and metastore as a value that can be frozen, compared and thawed.

Two worlds that no program can tell apart are equal: ids do not reveal in which order several programs acted, and a directory's time
counts its changes since a run remembered it, because times are only ever compared for equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

from hivekeeper import names
from hivekeeper.model import Attributes, Block
from support.fakes.metastore import Catalog
from support.fakes.namespace import ROOT, Namespace, Node, parts, size

PLAIN = Attributes("hive", "hive", 0o755, 0o644, storage_policy="HOT")
# The NameNode's time as read by a run: later than everything so far, unless the clock is coarse.
LATE_MS = 10**9
# That of all machines, which a cleanup compares with the NameNode's, as of this file of its own.
NOW_MS = 1_767_225_600_000
ASKED_FOR_TIME = names.base(names.ControlPaths("").new_mark)
TICK_MS = 10
# The ids that each actor may use, and the first actor that is no command.
EACH, FIRST_WRITER = 100_000, 50

Entry = Tuple[str, int, bool, int, Any, int, bool, Tuple[Block, ...]]
Frozen = Tuple[Tuple[Entry, ...], Any, Optional[int], FrozenSet[tuple], Optional[int], FrozenSet[int], FrozenSet[Tuple[int, int]]]


class CountingNamespace(Namespace):
    """A NameNode whose ids and times reveal no more than a program may conclude from them.

    `actor` is the caller of the current call, 0 for the initial state; `made` counts the ids each has used. `remembered` holds
    the ids of directories whose changes count. `coarse_ms` is the clock's time if it is coarse, else None.
    """

    def __init__(self) -> None:
        self.actor = 0
        self.made: Dict[int, int] = {}
        self.remembered: Set[int] = set()
        self.coarse_ms: Optional[int] = None
        super().__init__(clock=lambda: 0)

    def new_node(self, is_dir: bool, group: str) -> Node:  # noqa: ARG002
        number = self._next_number()
        mtime_ms = 0 if is_dir and self.coarse_ms is None else number if self.coarse_ms is None else self.coarse_ms
        # A writer's directory is older than what commands make after it, which only ids tell: older than all that they make.
        before = self.actor * EACH - EACH // 2 - (self.actor - FIRST_WRITER) * EACH // 100 if is_dir and self.actor >= FIRST_WRITER else 0
        return Node(number - before, is_dir, mtime_ms, attributes=PLAIN)

    def create(self, path: str, content: Any, length: int, is_open: bool = False) -> Node:
        node = super().create(path, content, length, is_open)
        if names.base(path) == "clock" and self.coarse_ms is None:
            node.mtime_ms = LATE_MS
        if names.base(path) == ASKED_FOR_TIME:
            node.mtime_ms = NOW_MS
        return node

    def touch(self, node: Node) -> None:
        if node.mtime_ms == NOW_MS:
            return
        if self.coarse_ms is not None:
            node.mtime_ms = self.coarse_ms
        elif not node.is_dir:
            node.mtime_ms = self._next_number()
        elif node.id in self.remembered:
            node.mtime_ms += TICK_MS

    def walk(self, top: str) -> Iterator[Tuple[str, Node]]:
        """Faster than the fake's, because it runs in every state; parents still come before children."""
        found = self.find(top)
        waiting = [(top, found)] if found is not None and found.is_dir else []
        while waiting:
            path, node = waiting.pop()
            for name, child in sorted(node.children.items()):
                yield f"{path}/{name}", child
                if child.children:
                    waiting.append((f"{path}/{name}", child))

    def _next_number(self) -> int:
        number = self.made.get(self.actor, 0) + 1
        self.made[self.actor] = number
        return self.actor * EACH + number


@dataclass
class World:
    """What all programs of an exploration act on. `holder` has the lock; hardly anybody but the promises reads `facts`."""

    namespace: CountingNamespace = field(default_factory=CountingNamespace)
    catalog: Catalog = field(default_factory=Catalog)
    holder: Optional[int] = None
    facts: Set[tuple] = field(default_factory=set)

    def exists(self, path: str) -> bool:
        return self.namespace.find(path) is not None

    def files_below(self, top: str) -> List[Tuple[str, Node]]:
        return [(path, node) for path, node in self.namespace.walk(top) if not node.is_dir]

    def forget_times(self) -> None:
        """No run remembers a directory's time any more."""
        if self.namespace.coarse_ms is None:
            for _, node in self.namespace.walk(ROOT):
                if node.id in self.namespace.remembered:
                    node.mtime_ms = 0
        self.namespace.remembered.clear()

    def end_lease(self, lock: str) -> None:
        node = self.namespace.find(lock)
        if self.holder is not None and node is not None:
            node.is_open = False
        self.holder = None


class Freezer:
    """Worlds as values. Equal entries and catalogs are stored once."""

    def __init__(self) -> None:
        self._entries: Dict[Entry, Entry] = {}
        self._catalogs: Dict[tuple, Catalog] = {}

    def freeze(self, world: World) -> Frozen:
        space = world.namespace
        return (
            tuple(self._entries_of(space)),
            self._freeze_catalog(world.catalog),
            world.holder,
            frozenset(world.facts),
            space.coarse_ms,
            frozenset(space.remembered),
            frozenset(space.made.items()),
        )

    def _entries_of(self, space: Namespace) -> Iterator[Entry]:
        kept = self._entries
        for path, node in space.walk(ROOT):
            entry = (path, node.id, node.is_dir, node.mtime_ms, node.content, node.length, node.is_open, node.joined)
            yield kept.setdefault(entry, entry)

    def _freeze_catalog(self, catalog: Catalog) -> tuple:
        """Everything in it that the programs change: parameters of tables, and partitions with locations and parameters."""
        key = tuple(
            (name, table.location, tuple(sorted(table.parameters.items())), tuple(_partition_key(one) for one in sorted_partitions))
            for name, table in sorted(catalog.tables.items())
            for sorted_partitions in [sorted(catalog.partitions[name].values(), key=lambda one: one.name)]
        )
        self._catalogs.setdefault(key, catalog)
        return key

    def thaw(self, frozen: Frozen) -> World:
        entries, catalog, holder, facts, coarse_ms, remembered, made = frozen
        world = World(holder=holder, facts=set(facts))
        space = world.namespace
        space.coarse_ms, space.remembered, space.made = coarse_ms, set(remembered), dict(made)
        nodes = {ROOT: space.root}
        for path, number, is_dir, mtime_ms, content, length, is_open, joined in entries:
            node = Node(number, is_dir, mtime_ms, content, length, is_open, attributes=PLAIN, joined=joined)
            nodes[path] = node
            above, _, name = path.rpartition("/")
            nodes[above].children[name] = node
        stored = self._catalogs[catalog]
        world.catalog = Catalog(set(stored.databases), dict(stored.tables), {name: dict(of) for name, of in stored.partitions.items()})
        return world


def _partition_key(partition: Any) -> tuple:
    return partition.name, partition.location, tuple(sorted(partition.parameters.items()))


def add_file(world: World, path: str, content: Any) -> Node:
    return world.namespace.create(path, content, size(content))


def is_below(path: str, top: str) -> bool:
    return parts(path)[: len(parts(top))] == parts(top)
