"""The in-memory fake of `cluster/files.py`: our client of a small NameNode (`namespace.py`).

It behaves like HDFS (tests/contract defines how), and tests can kill it, stall it and take its space away.
"""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from hivekeeper import names
from hivekeeper.model import (
    OWNER_ONLY,
    Attributes,
    Block,
    Exposed,
    FileInfo,
    FileRights,
    FilesByRights,
    Guard,
    Room,
    Snapshot,
    Ties,
)
from hivekeeper.names import ControlPaths
from hivekeeper.ports import (
    ALL,
    ANY_LENGTH,
    NO_IDS,
    FilesError,
    FilesUnavailable,
    ForeignTrash,
    LockHeld,
    NoPermission,
    NoSpace,
    NotPossible,
    SourceMissing,
    SourceReplaced,
    TargetExists,
)
from support import step_by_step
from support.fakes.namespace import BLOCK_SIZE, COPIES, ROOT, Namespace, Node, Writer, info, is_foreign, part_of, parts, qualified, size

TRASH = ROOT + "/user/hive/.Trash/Current"
# The size of the pieces in which a text is read: small, so that lines cross their edges.
PIECE = 100


class Killed(BaseException):
    """The process is gone. Not an Exception, so no handler in the program can catch it."""


MOST_XATTRS = 4096


class FakeFiles:
    """`ports.Files` in memory, as one client (process) of a namespace. `another_client()` is a second process.

    Every changing call is one step; write_new is two (the file exists, incomplete and open; then it is
    complete), dress is one per directory. `steps` counts them. Fakes of other ports call `step()` for their
    own changes, so kills fall between those too. `trash_enabled` stands for fs.trash.interval.
    """

    clock_grain_ms = 1
    # The user of this client.
    user = "hive"

    def __init__(self, files: Optional[Mapping[str, Any]] = None, namespace: Optional[Namespace] = None) -> None:
        self.namespace = namespace or Namespace()
        self.steps = 0
        self.trash_enabled = True
        # Not behind a router or a mount.
        self.finds_by_id = True
        # Behind a router that asks the NameNode of another nameservice for ids.
        self.asks_another_for_ids = False
        self.before_step: Optional[Callable[[str], None]] = None
        self._left: Optional[int] = None
        self._at_once = True
        self._dead = False
        self._failures: Dict[str, Tuple[Exception, bool]] = {}
        # The directories with locks of this client.
        self._held: Dict[str, Node] = {}
        # The ids of those around them, and of directories that are anchored.
        self._around: Dict[str, int] = {}
        self._anchors: Dict[str, int] = {}
        for path, content in (files or {}).items():
            self.writer.add(path, content)

    # ---- what tests may do to it

    @property
    def writer(self) -> Writer:
        """Another program, which survives when this client is killed."""
        return Writer(self.namespace)

    def another_client(self) -> FakeFiles:
        return FakeFiles(namespace=self.namespace)

    def die_after(self, steps: int, at_once: bool = True) -> None:
        """Kill this client after this many more steps: at once, or only when the next step would begin. 0 is before the first."""
        self._left, self._at_once = steps, at_once

    def revive(self) -> None:
        """Restart the same program. Its old locks stay held until `expire_locks`."""
        self._dead, self._left = False, None
        for known in (self._held, self._around, self._anchors):
            known.clear()

    def fail_next(self, method: str, error: Exception, done: bool = False) -> None:
        """Make the next call of this method raise; with `done` it takes effect all the same, as when a connection breaks."""
        self._failures[method] = (error, done)

    def expire_locks(self) -> None:
        """Expire every lease: of dead holders, and of live ones that paused too long."""
        for node, lock in self.namespace.leases.items():
            self.namespace.close(node)
            if lock is not None:
                lock.lost = True
        self.namespace.leases.clear()

    def step(self, what: str) -> None:
        """Count one change that is about to happen."""
        self._require_alive()
        if self.before_step is not None:
            self.before_step(what)
        if self._left == 0:
            self._die(what)
        if self._left is not None:
            self._left -= 1
        self.steps += 1
        self.namespace.advance(self.namespace.tick_ms)

    def stepped(self, what: str) -> None:
        """Report that a change has been made: a kill set to come at once falls here."""
        if self._left == 0 and self._at_once:
            self._die(what)

    def content(self, path: str) -> Any:
        self._require_alive()
        return self.namespace.file(self.qualify(path)).content

    def part(self, path: str, begin: int, length: int) -> Any:
        """The content of a file that lies in another one; for the rows fake."""
        self._require_alive()
        return part_of(self.namespace.file(self.qualify(path)), begin, length)

    def is_at_path(self, file: FileInfo) -> bool:
        """Whether the file that was listed is still at its path; for the rows fake."""
        return self.namespace.file(self.qualify(file.path)).id == file.file_id

    def contents(self, top: str = ROOT) -> Dict[str, Any]:
        """Path → content of every file below `top`, for a test's assertion."""
        return {path: node.content for path, node in self.namespace.walk(self.qualify(top)) if not node.is_dir}

    def put(self, path: str, content: Any, length: Optional[int] = None, step: str = "put") -> None:
        """Write a whole data file in one step of this client; for the rows fake. Only a job, which knows the directory with the lock by its
        id, makes the directories around it.
        """
        path = self.qualify(path)

        def create() -> None:
            place = self._named(path)
            if step != "put":
                self.namespace.directory(names.parent(place))
            self.namespace.create(place, content, self._fitting(content, length))

        self._change(step, [path], create)

    def exact(self, path: str) -> str:
        """Where a directory is by now that was in one with a lock of ours; for the rows fake."""
        return self._exact(self.qualify(path))

    def tree(self, top: str) -> Tuple[FileInfo, ...]:
        """Everything below a directory, for a test's assertion and the rows fake."""
        self._require_alive()
        return tuple(info(path, node) for path, node in self.namespace.walk(self.qualify(top)))

    # ---- ports.Files

    def qualify(self, path: str) -> str:
        self._require_alive()
        # A server without a scheme leads nowhere.
        return path if path.startswith("//") and path.strip("/") else qualified(path)

    def is_foreign(self, location: str) -> bool:
        return not names.is_location(location) or is_foreign(location)

    def look(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        self._require_alive()
        return _end_at(most, {directory: self._snapshot(self.qualify(directory)) for directory in directories})

    def look_hidden(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        seen = self.look(directories)
        return _end_at(most, {path: _only(one, _is_hidden) for path, one in seen.items()})

    def look_hidden_directories(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        self._require_alive()
        seen = {directory: self._snapshot(self.qualify(directory)) for directory in directories}
        return _end_at(most, {path: _only(one, lambda entry: entry.is_dir and _is_hidden(entry)) for path, one in seen.items()})

    def stat(self, path: str) -> Optional[FileInfo]:
        self._require_alive()
        path = self.qualify(path)
        if not self.namespace.unreadable.isdisjoint(names.with_above(names.parent(path))):
            raise NoPermission(f"{path}: permission denied")
        node = self.namespace.find(self._named(path))
        return info(path, node) if node else None

    def id_around(self, directory: str) -> int:
        return self._around.get(directory, 0)

    @contextmanager
    def anchored(self, directories: Mapping[str, int]) -> Iterator[None]:
        around = [names.parent(held) for held in self._held]
        anchors = {path: id for path, id in directories.items() if id and any(f"{path}/".startswith(f"{top}/") for top in around)}
        before = self._anchors
        self._anchors = {**before, **anchors}
        try:
            yield
        finally:
            self._anchors = before

    def make_directory(self, path: str) -> None:
        path = self.qualify(path)
        self._change("make_directory", [path], lambda: self._make_directory(self._named(path)))

    def rename_exact(self, source: str, target: str) -> None:
        source, target = self.qualify(source), self.qualify(target)
        self._change("rename_exact", [source, target], lambda: self._rename(source, target))

    def exchange(self, live: str, aside: str, incoming: str, mark: Snapshot) -> Optional[FileInfo]:
        return step_by_step.exchange(self, live, aside, incoming, mark)

    def blocks(
        self, path: str, below: int = ANY_LENGTH, ids: Optional[Mapping[str, int]] = None, most: int = ALL
    ) -> Mapping[str, Tuple[Block, ...]]:
        self._require_alive()
        node = self._find(self.qualify(path))
        children = {} if node is None else node.children if node.is_dir else {names.base(path): node}
        known = {node.id for node in children.values()} if ids is None else set(ids.values())
        listed = {} if ids is None else ids
        files = {name: child for name, child in children.items() if not child.is_dir and child.id in known and child.length < below}
        if len(files) > 1 and sum(len(file.blocks) for file in files.values()) > most:
            raise NotPossible(f"{path}: these files have more than {most} blocks together")
        return {name: file.blocks for name, file in files.items() if listed.get(name, file.id) == file.id}

    def is_anywhere(self, near: str, file_id: int) -> bool:
        self._require_alive()
        self._require_ids(near)
        return any(node.id == file_id for _, node in self.namespace.walk(ROOT))

    def find_paths(self, near: str, former: Mapping[int, str]) -> Mapping[int, str]:
        self._require_alive()
        self._require_ids(near)
        found = ((node.id, path) for path, node in self.namespace.walk(ROOT) if node.id in former)
        return {file_id: path for file_id, path in found if self.namespace.unreadable.isdisjoint(names.with_above(names.parent(path)))}

    def _require_ids(self, near: str) -> None:
        if self.asks_another_for_ids:
            raise NotPossible(f"{near}: it is not found by ids: is there a router?")

    def concat(self, target: str, sources: Sequence[str]) -> None:
        target, *sources = paths = [self.qualify(path) for path in (target, *sources)]
        self._change("concat", paths, lambda: self.namespace.concat(target, sources))

    def copy_part(self, file: FileInfo, begin: int, length: int, target: str) -> None:
        target = self.qualify(target)

        def copy() -> None:
            node = self._listed(file)
            if node is None:
                raise SourceMissing(file.path)
            place = self._named(target)
            self.namespace.directory(names.parent(place))
            self._own(self.namespace.create(place, part_of(node, begin, length), length), OWNER_ONLY)

        self._change("copy_part", [target], copy)

    def cut(self, file: FileInfo, length: int, blocks: Sequence[Block]) -> None:
        path = self.qualify(file.path)

        def cut() -> None:
            node = self._listed(file)
            if node is None:
                raise SourceMissing(path)
            if node.blocks != tuple(blocks):
                raise NotPossible(f"{path}: somebody has written to it")
            self.namespace.cut(path, length)

        self._change("cut", [path], cut)

    def remove_empty(self, path: str) -> bool:
        path = self.qualify(path)

        def remove() -> bool:
            place = self._named(path)
            node = self.namespace.find(place)
            if node is not None and not self.namespace.unreadable.isdisjoint(names.with_above(place)):
                # It is listed first.
                raise NoPermission(f"{path}: permission denied")
            return node is not None and node.is_dir and not node.children and self.namespace.delete(place)

        return bool(self._change("remove_empty", [path], remove))

    def delete_tree(self, path: str) -> None:
        path = self.qualify(path)
        self._change("delete_tree", [path], lambda: self.namespace.delete(self._exact(path)))

    def delete_file(self, path: str, directory_id: int = 0, file_id: int = 0) -> None:
        path = self.qualify(path)

        def delete() -> None:
            exact = names.join(self._place_of(directory_id), names.base(path)) if directory_id else self._exact(path)
            node = self.namespace.find(exact)
            if node is not None and file_id not in (0, node.id):
                return
            if node is not None and node.children:
                raise FilesUnavailable(f"{path} is non empty: Directory is not empty")
            self.namespace.delete(exact)

        self._change("delete_file", [path], delete)

    def move_to_trash(self, path: str) -> bool:
        self._require_alive()
        path = self.qualify(path)
        if self.namespace.find(self._exact(path)) is None:
            raise SourceMissing(path)
        if self.trash_enabled:
            self._change("move_to_trash", [path], lambda: self._move_to_trash(path))
        return self.trash_enabled

    def read_pieces(self, file: FileInfo) -> Iterator[str]:
        node = self._listed(file)
        if node is None:
            raise SourceMissing(file.path)
        text = str(node.content)
        return (text[start : start + PIECE] for start in range(0, len(text), PIECE))

    def read_bytes(self, file: FileInfo) -> Iterator[bytes]:
        node = self._listed(file)
        if node is None:
            raise SourceMissing(file.path)
        content: bytes = node.content if isinstance(node.content, bytes) else str(node.content).encode()
        return (content[start : start + PIECE] for start in range(0, max(1, len(content)), PIECE))

    def read_texts(self, files: Sequence[FileInfo]) -> Mapping[str, str]:
        found = {file.path: self._listed(file) for file in files}
        return {path: node.content for path, node in found.items() if node is not None}

    def user_at(self, path: str) -> str:  # noqa: ARG002
        return self.user

    def write_new(self, path: str, content: Union[str, bytes, Iterable[str]], mode: int = OWNER_ONLY) -> None:
        whole = content if isinstance(content, bytes) else "".join(content)
        path, half = self.qualify(path), whole[: len(whole) // 2]
        self._change("write_new", [path], lambda: self._begin(self._named(path), half, mode))
        self.namespace.require_disk(path, size(whole))
        self._fitting(whole, size(whole) - size(half))
        self._change("write_new.close", [path], lambda: self._complete(self._named(path), whole))

    def require_lockable(self, path: str) -> None:
        """Everything is on one HDFS."""

    def hold(self, path: str, holder: str) -> FakeLock:
        path = self.qualify(path)
        self._require_sealed(names.parent(path))
        lock: FakeLock = self._change("hold", [path], lambda: self._hold(path, " ".join(holder.split())))
        return lock

    def attributes(self, directories: Sequence[str], ids: Mapping[str, int] = NO_IDS) -> Mapping[str, Attributes]:
        found = {directory: self._directory(directory, ids.get(directory, 0)) for directory in directories}
        return {directory: self._attributes(directory, node) for directory, node in found.items() if node is not None}

    def file_rights(self, directories: Mapping[str, int], most: int) -> Mapping[str, FilesByRights]:
        found = {directory: self._directory(directory, file_id) for directory, file_id in directories.items()}
        return {directory: rights_in(node, most) for directory, node in found.items() if node is not None}

    def dress(self, wanted: Mapping[str, Attributes]) -> None:
        for directory, attributes in wanted.items():
            path = self.qualify(directory)
            self._change("dress", [path], lambda path=path, attributes=attributes: self._dress(self._exact(path), attributes))

    def exposed(self, top: str, levels: int) -> Tuple[Exposed, ...]:
        self._require_alive()
        top = self.qualify(top)
        place = self._exact(top)
        found = self.namespace.find(place)
        below = [] if found is None else [(top, found), *((top + path[len(place) :], node) for path, node in self.namespace.walk(place))]
        shown = [(path, node) for path, node in below if len(parts(path)) - len(parts(top)) <= levels]
        return tuple(self._exposed(path, node) for path, node in shown if node.attributes.owner != self.user or node.mode & 0o022)

    def way_to(self, directory: str) -> Tuple[Exposed, ...]:
        self._require_alive()
        down = [(path, self.namespace.find(path)) for path in reversed(names.with_above(self.qualify(directory)))]
        return tuple(self._exposed(path, node) for path, node in down if node is not None)

    def guard(self, wanted: Mapping[str, Guard]) -> None:
        for directory, guard in wanted.items():
            path = self.qualify(directory)
            self._change("guard", [path], lambda path=path, guard=guard: self._guard(self._meant(path, guard.file_id), guard))

    def ties(self, directories: Sequence[str], around: str = "") -> Mapping[str, Ties]:
        self._require_alive()
        paths = {directory: self.qualify(directory) for directory in [*directories, *filter(None, [around])]}
        found = {directory: self._ties(path) for directory, path in paths.items() if self.namespace.find(path) is not None}
        return {directory: dataclasses.replace(ties, quota=ties.quota and directory != around) for directory, ties in found.items()}

    def room(self, path: str, quotas_at: Sequence[str]) -> Room:
        self.qualify(path)
        limit = self.namespace.space_bytes
        free = None if limit is None else max(0, limit - self.namespace.used_bytes())
        quotas = [self.namespace.quota_left(place) for place in map(self.qualify, quotas_at) if place in self.namespace.quotas]
        return Room(free, COPIES, BLOCK_SIZE, tuple(quotas))

    # ---- inside

    def _exact(self, path: str) -> str:
        """Where a path is by now that was, or was in, a directory with a lock of ours or one that is anchored."""
        return self._moved(path, path)

    def _moved(self, path: str, near: str) -> str:
        """Where a path is by now, by the nearest such directory that is `near` or around it."""
        nearest = self._nearest(near)
        if not nearest:
            return path
        id = self._ids()[nearest]
        present = self.namespace.find(nearest)
        if present is not None and present.id == id:
            return path
        return (self._place_of(id) or f"{nearest}.gone") + path[len(nearest) :]

    def _ids(self) -> Mapping[str, int]:
        return {**{held: node.id for held, node in self._held.items()}, **self._anchors}

    def _nearest(self, near: str) -> str:
        return max((one for one in self._ids() if f"{near}/".startswith(f"{one}/")), key=len, default="")

    def _named(self, path: str) -> str:
        """The same for a name in a directory; that of a directory with a lock is its path alone."""
        return path if path in self._held else self._moved(path, names.parent(path))

    def _rename(self, source: str, target: str) -> None:
        """By ids only if both are in directories that are found so."""
        are_inside = all(path not in self._held and self._nearest(names.parent(path)) for path in (source, target))
        for path in (source, target) if are_inside else ():
            anchor = self._nearest(names.parent(path))
            found = self.namespace.find(self._exact(anchor))
            if found is not None and found.id != self._ids()[anchor]:
                raise SourceMissing(f"{path}: another directory came to its place")
        self.namespace.rename(*(self._named(path) if are_inside else path for path in (source, target)))

    def _find(self, path: str) -> Optional[Node]:
        return self.namespace.find(self._exact(path))

    def _meant(self, path: str, id: int) -> str:
        node = self.namespace.find(path)
        if id and (node is None or node.id != id):
            raise SourceMissing(f"{path}: another one is there")
        return path if id else self._exact(path)

    def _place_of(self, id: int) -> str:
        """Where the directory with this id is by now, or was when it was deleted, if a snapshot has it; "" if it is gone."""
        around, name = self.namespace.only_in_snapshots.get(id, (0, ""))
        if around:
            place = self._place_of(around)
            return names.join(place, name) if place else ""
        return next((place for place, node in self.namespace.walk(ROOT) if node.id == id), "")

    def _directory(self, path: str, file_id: int) -> Optional[Node]:
        """The directory with this id while a lock is held, else the one at the path."""
        self._require_alive()
        place = self._place_of(file_id) if file_id and self._held else self._exact(self.qualify(path))
        return self.namespace.find(place) if place else None

    def _listed(self, file: FileInfo) -> Optional[Node]:
        """The file with the id that was listed; None if nothing is at its path."""
        self._require_alive()
        node = self._find(self.qualify(file.path))
        if node is not None and node.id != file.file_id:
            raise SourceReplaced(f"{file.path}: another file is there")
        return node

    def _require_alive(self) -> None:
        if self._dead:
            raise Killed("a killed process does nothing more")

    def _die(self, what: str) -> None:
        self._dead = True
        raise Killed(what)

    def _change(self, method: str, paths: List[str], effect: Callable[[], Any]) -> Any:
        what = f"{method} {' '.join(paths)}"
        self.step(what)
        error, done = self._failures.pop(method, (None, True))
        if not done:
            raise error
        for path in paths:
            if self._is_denied(path):
                raise NoPermission(f"{path}: permission denied")
        with self.namespace.one_step:
            result = effect()
        self.stepped(what)
        if error is not None:
            raise error
        return result

    def _is_denied(self, path: str) -> bool:
        return any(path == denied or path.startswith(denied + "/") for denied in self.namespace.denied)

    def _ties(self, path: str) -> Ties:
        known = self.namespace.ties.get(path, Ties())
        return dataclasses.replace(known, denied=f"{path}: permission denied") if self._is_denied(names.parent(path)) else known

    def _snapshot(self, path: str) -> Snapshot:
        for closed in self.namespace.unreadable:
            if path == closed or path.startswith(closed + "/"):
                raise NoPermission(f"{closed}: permission denied")
        node, made = self._find(path), self.namespace.snapshots.get(names.parent(path))
        if made is not None and names.base(path) == ".snapshot":
            return Snapshot(True, entries=tuple(FileInfo(names.join(path, name), 0, 0, is_dir=True, file_id=0) for name in made))
        if node is None or not node.is_dir:
            return Snapshot(exists=False)
        entries = (info(f"{path}/{name}", child) for name, child in sorted(node.children.items()))
        return Snapshot(True, node.id, node.mtime_ms, tuple(entries), node.mode)

    def _fitting(self, content: Any, length: Optional[int]) -> int:
        """The length, if there is room for it."""
        length = size(content) if length is None else length
        limit = self.namespace.space_bytes
        if limit is not None and self.namespace.used_bytes() + length > limit:
            raise NoSpace("the quota is exceeded")
        return length

    def _move_to_trash(self, path: str) -> None:
        """Its whole path below the trash; if that is taken, with the time appended."""
        target = wanted = names.join(TRASH, *parts(path))
        now = self.namespace.now()
        while self.namespace.find(target) is not None:
            target, now = f"{wanted}{now}", now + 1
        self._require_own_trash(names.parent(target))
        self._make_directory(names.parent(target))
        self.namespace.rename(self._exact(path), target)

    def _require_own_trash(self, directory: str) -> None:
        """All that exists from the user's trash down to there is this user's alone to write to, and the last one to pass."""
        last = self.namespace.find(directory)
        if last is not None and last.mode & 0o077:
            raise ForeignTrash(f"{directory}: open for others")
        while f"{directory}/".startswith(f"{names.parent(TRASH)}/"):
            node = self.namespace.find(directory)
            if node is not None and (node.attributes.owner != self.user or node.mode & 0o022 or not node.is_dir):
                raise ForeignTrash(f"{directory}: not the user's own")
            directory = names.parent(directory)

    def _make_directory(self, path: str) -> None:
        """Creates each missing directory for its owner alone."""
        components, present = parts(path), self.namespace.root
        depth = 0
        while depth < len(components) and present.is_dir and components[depth] in present.children:
            present, depth = present.children[components[depth]], depth + 1
        self.namespace.make_directory(path)
        for length in range(depth + 1, len(components) + 1):
            self._own(self.namespace.directory(names.join(ROOT, *components[:length])), 0o700)

    def _own(self, node: Node, mode: int) -> Node:
        node.attributes = dataclasses.replace(node.attributes, owner=self.user, mode=mode, file_mode=mode & 0o666)
        return node

    def _exposed(self, path: str, node: Node) -> Exposed:
        known = node.attributes
        acl = (known.acl if node.is_dir else known.file_acl) if node.mode & 0o022 else ()
        return Exposed(path, node.is_dir, known.owner, known.group, node.mode, known.owner == self.user, acl)

    def _guard(self, path: str, guard: Guard) -> None:
        node = self.namespace.find(path)
        if node is None:
            raise SourceMissing(path)
        if node.attributes.owner != self.user:
            raise NoPermission(f"{path}: belongs to {node.attributes.owner}")
        self._give(node, guard, guard.mode, guard.acl)
        for child in node.children.values():
            if not child.is_dir and guard.file_mode is not None:
                self._give(child, guard, guard.file_mode, ())

    def _give(self, node: Node, guard: Guard, mode: int, acl: Tuple[str, ...]) -> None:
        known = dataclasses.replace(node.attributes, group=guard.group or node.attributes.group)
        dressed = {"mode": mode, "acl": acl} if node.is_dir else {"file_mode": mode, "file_acl": acl}
        node.attributes = dataclasses.replace(known, **dressed)

    def _begin(self, path: str, content: Union[str, bytes], mode: int) -> None:
        self.namespace.directory(names.parent(path))
        node = self._own(self.namespace.create(path, content, size(content), is_open=True), mode)
        self.namespace.leases[node] = None

    def _complete(self, path: str, content: Union[str, bytes]) -> None:
        node = self.namespace.file(path)
        node.content, node.length = content, size(content)
        self.namespace.leases.pop(node, None)
        self.namespace.close(node)

    def _require_sealed(self, directory: str) -> None:
        """The steps in which a NameNode makes the directory of a lock with the seal in it."""
        if self.namespace.find(directory) is not None:
            return
        new = ControlPaths(directory).new(f"{self.namespace.now():032x}")
        closed = names.parent(new)

        def make() -> None:
            self.namespace.directory(names.parent(closed))
            self._make_directory(closed)

        def make_with_seal() -> int:
            node = self.namespace.directory(closed)
            if self.finds_by_id and (node.attributes.owner != self.user or node.mode != 0o700 or node.children):
                raise FilesUnavailable(f"{closed}: another directory was put in its place")
            self._make_directory(new)
            self._own(self.namespace.create(ControlPaths(new).seal, "", 0), OWNER_ONLY)
            return node.id

        def by_id(path: str) -> str:
            return (self._place_of(id) or f"{closed}.gone") + path[len(closed) :] if self.finds_by_id else path

        def discard(*paths: str) -> None:
            for path in map(by_id, paths):
                node = self.namespace.find(path)
                if node is not None and not node.children:
                    self.namespace.delete(path)

        self._change("hold.make", [closed], make)
        id = self._change("hold.seal", [new], make_with_seal)
        try:
            self._change("hold.rename", [new, directory], lambda: self.namespace.rename(by_id(new), directory))
        except TargetExists:
            discard(ControlPaths(new).seal, new)
        except FilesError:
            discard(ControlPaths(new).seal, new, closed)
            raise
        self._change("hold.tidy", [closed], lambda: discard(closed))

    def _hold(self, path: str, line: str) -> FakeLock:
        node = self.namespace.find(path)
        if node is None:
            self.namespace.directory(names.parent(path))
            node = self._own(self.namespace.create(path, "", 0), OWNER_ONLY)
        if node.is_open:
            lines = str(node.content).splitlines()
            raise LockHeld(path, lines[-1] if lines else "")
        node.is_open = True
        # A data file that somebody has put there begins with its rows still.
        if isinstance(node.content, str):
            node.content += line + "\n"
        node.length += size(line) + 1
        lock = FakeLock(self, path, node)
        self.namespace.leases[node] = lock
        if self.finds_by_id:
            directory = names.parent(path)
            self._held[directory] = self.namespace.directory(directory)
            self._around[directory] = self.namespace.directory(names.parent(directory)).id
        return lock

    def _attributes(self, directory: str, node: Node) -> Attributes:
        """Each directory keeps its own policies: nothing is inherited here, so a rename loses nothing either."""
        parent = self.namespace.find(names.parent(self.qualify(directory)))
        known = attributes_of(node)
        above = parent.attributes if parent is not None else known
        has_more = sum(len(name) + len(value) for name, value in known.xattrs) > MOST_XATTRS
        return dataclasses.replace(
            known,
            xattrs=() if has_more else known.xattrs,
            has_more_xattrs=has_more,
            directory_id=node.id,
            own_storage_policy=known.storage_policy != above.storage_policy,
            own_ec_policy=known.ec_policy != above.ec_policy,
        )

    def _dress(self, path: str, wanted: Attributes) -> None:
        directory = self.namespace.directory(path)
        xattrs = {**dict(directory.attributes.xattrs), **dict(wanted.xattrs)}
        present = directory.attributes
        wanted = dataclasses.replace(
            wanted,
            xattrs=tuple(sorted(xattrs.items())),
            owner=wanted.owner or present.owner,
            group=wanted.group or present.group,
            storage_policy=wanted.storage_policy or present.storage_policy,
        )
        directory.attributes = dataclasses.replace(wanted, file_owner=None, file_group=None)
        for child in directory.children.values():
            if not child.is_dir:
                owner = present_owner(child, wanted.owner, wanted.file_owner)
                group = wanted.group if wanted.file_group is None else wanted.file_group or child.attributes.group
                child.attributes = dataclasses.replace(wanted, owner=owner, group=group, file_owner=None, file_group=None)


class FakeLock:
    """A file that a client holds open."""

    def __init__(self, files: FakeFiles, path: str, node: Node) -> None:
        self._files, self._path, self._node = files, path, node
        self.lost = False

    def check(self) -> bool:
        self._files._require_alive()
        error, _ = self._files._failures.pop("check", (None, True))
        if error is not None:
            raise error
        return not self.lost and self._files.namespace.find(self._path) is self._node

    def release(self) -> None:
        self._files._change("release", [self._path], self._close)

    def _close(self) -> None:
        if not self.lost:
            self._files.namespace.close(self._node)
            self._files.namespace.leases.pop(self._node, None)
        for known in (self._files._held, self._files._around):
            known.pop(names.parent(self._path), None)


def _end_at(most: int, seen: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
    ended = {}
    for path, one in seen.items():
        ended[path] = one if len(one.entries) <= most else dataclasses.replace(one, entries=one.entries[:most])
        most -= len(ended[path].entries)
    return ended


def _is_hidden(entry: FileInfo) -> bool:
    return names.is_listed_above_units(entry.name)


def _only(seen: Snapshot, is_wanted: Callable[[FileInfo], bool]) -> Snapshot:
    return dataclasses.replace(seen, entries=tuple(filter(is_wanted, seen.entries)))


def present_owner(file: Node, of_directory: str, wanted: Optional[str]) -> str:
    """Of a file that gets this owner: "" leaves it as it is."""
    return of_directory if wanted is None else wanted or file.attributes.owner


def rights_in(directory: Node, most: int) -> FilesByRights:
    found: Dict[FileRights, List[int]] = {}
    for name, child in sorted(directory.children.items()):
        if not child.is_dir and not names.is_hidden(name) and child.length and len(found) <= most:
            of = child.attributes
            found.setdefault(FileRights(of.owner, of.group, of.file_mode, of.file_acl), []).append(child.id)
    return found


def attributes_of(node: Node) -> Attributes:
    """File attributes from the first data file, as the real implementation reads them."""
    visible = [child for name, child in sorted(node.children.items()) if not child.is_dir and not names.is_hidden(name)]
    known = node.attributes
    if not visible:
        return dataclasses.replace(known, file_mode=known.mode & 0o666, file_acl=())
    return dataclasses.replace(known, file_mode=visible[0].attributes.file_mode, file_acl=visible[0].attributes.file_acl)
