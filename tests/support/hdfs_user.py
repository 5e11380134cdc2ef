"""A user of HDFS who is not the one that runs the commands, and what the NameNode lets this user do.

The rules are those of FSPermissionChecker: a name is made, renamed or deleted by who may write to the directory around it, whatever is
behind the name; in a directory with the sticky bit only by the owner of that, or of the directory; a tree is deleted by who may write to
all directories in it that are not empty. ACLs are left out: no test gives this user one.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Attributes
from hivekeeper.ports import FilesError, NoPermission, SourceMissing
from support.fakes.files import FakeFiles
from support.fakes.namespace import Namespace, Node, parts

READ, WRITE, PASS = 4, 2, 1
STICKY = 0o1000


class HdfsUser:
    """Each call does one step, or returns False where HDFS refuses it."""

    def __init__(self, space: Namespace, name: str, groups: Sequence[str] = ()) -> None:
        self.space, self.name, self.groups = space, name, groups

    # ---- what this user may do

    def may(self, node: Node, right: int) -> bool:
        known = node.attributes
        shift = 6 if known.owner == self.name else 3 if known.group in self.groups else 0
        return node.mode >> shift & right == right

    def may_pass(self, path: str) -> bool:
        """Through all directories above a path."""
        return all(node is not None and node.is_dir and self.may(node, PASS) for node in self._above(path))

    def may_read(self, path: str) -> bool:
        node = self.space.find(path)
        return node is not None and self.may_pass(path) and self.may(node, READ)

    def may_change_in(self, directory: str) -> bool:
        node = self.space.find(directory)
        return node is not None and node.is_dir and self.may_pass(directory) and self.may(node, WRITE | PASS)

    def may_take(self, path: str) -> bool:
        """Out of the directory around it."""
        node, around = self.space.find(path), self.space.find(names.parent(path))
        if node is None or around is None or not self.may_change_in(names.parent(path)):
            return False
        return not around.mode & STICKY or self.name in (node.attributes.owner, around.attributes.owner)

    def sees(self, path: str) -> bool:
        return self.space.find(path) is not None and self.may_pass(path)

    def paths_below(self, top: str) -> Iterator[Tuple[str, Node]]:
        """What this user finds out by listing."""
        node = self.space.find(top)
        if node is None or not node.is_dir or not self.may_pass(top) or not self.may(node, READ | PASS):
            return
        for name, child in sorted(node.children.items()):
            yield names.join(top, name), child
            yield from self.paths_below(names.join(top, name))

    # ---- what this user does

    def rename(self, source: str, target: str) -> bool:
        """hdfs dfs -mv, of one name to one that is free."""
        is_inside = parts(target)[: len(parts(source))] == parts(source)
        if is_inside or not self.may_take(source) or not self.may_change_in(names.parent(target)):
            return False
        return self._done(lambda: self.space.rename(source, target))

    def exchange(self, one: str, other: str) -> bool:
        """Three renames, which are one act here."""
        between = names.join(names.parent(one), ".between")
        if not self.rename(one, between):
            return False
        if not self.rename(other, one):
            self.rename(between, one)
            return False
        return self.rename(between, other) or not (self.rename(one, other) and self.rename(between, one))

    def delete(self, path: str) -> bool:
        """hdfs dfs -rm -r -skipTrash."""
        below = [node for _, node in self.space.walk(path)]
        trees = [node for node in (self.space.find(path), *below) if node is not None and node.is_dir and node.children]
        if not self.may_take(path) or not all(self.may(node, READ | WRITE | PASS) for node in trees):
            return False
        return self.space.delete(path)

    def make_directory(self, path: str, mode: int = 0o755) -> bool:
        if self.space.find(path) is not None or not self.may_change_in(names.parent(path)):
            return False
        return self._done(lambda: self.space.make_directory(path)) and self._own(path, mode)

    def add(self, path: str, content: Any, length: Optional[int] = None, mode: int = 0o644) -> bool:
        if self.space.find(path) is not None or not self.may_change_in(names.parent(path)):
            return False
        return self._done(lambda: self.space.create(path, content, len(content) if length is None else length)) and self._own(path, mode)

    def copy(self, source: str, target: str) -> bool:
        """Names and texts of a tree, whether this user may read them or knows them otherwise, in files of this user."""
        node = self.space.find(source)
        if node is None or not node.is_dir or not self.make_directory(target):
            return False
        for path, below in list(self.space.walk(source)):
            at = target + path[len(source) :]
            if below.is_dir:
                self.make_directory(at)
            elif isinstance(below.content, str):
                self.add(at, below.content, below.length)
        return True

    def give_mode(self, path: str, mode: int) -> bool:
        """hdfs dfs -chmod, which only the owner may do."""
        node = self.space.find(path)
        if node is None or not self.may_pass(path) or node.attributes.owner != self.name:
            return False
        return self._own(path, mode)

    # ---- inside

    def _above(self, path: str) -> Iterator[Optional[Node]]:
        node: Optional[Node] = self.space.root
        yield node
        for name in parts(path)[:-1]:
            node = node.children.get(name) if node is not None and node.is_dir else None
            yield node

    def _own(self, path: str, mode: int) -> bool:
        node = self.space.find(path)
        if node is None:
            raise SourceMissing(path)
        own(node, self.name, node.attributes.group, mode)
        return True

    def _done(self, change: Any) -> bool:
        try:
            change()
        except FilesError:
            return False
        return True


def own(node: Node, owner: str, group: str, mode: int) -> None:
    """hdfs dfs -chown and -chmod."""
    node.attributes = dataclasses.replace(node.attributes, owner=owner, group=group, mode=mode, file_mode=mode & 0o666)


def own_tree(space: Namespace, top: str, owner: str, group: str, mode: int) -> None:
    for node in (space.find(top), *(node for _, node in space.walk(top))):
        if node is None:
            raise NoPermission(top)
        own(node, owner, group, mode)


def take_no_superuser(files: FakeFiles) -> None:
    """Let the user of the runs give nothing away: on HDFS only a superuser may change an owner."""
    dress = files.dress

    def dress_own(wanted: Mapping[str, Attributes]) -> None:
        if any({one.owner, one.file_owner} - {"", None, files.user} for one in wanted.values()):
            raise NoPermission("only a superuser may change the owner")
        dress(wanted)

    files.dress = dress_own  # type: ignore[method-assign]
