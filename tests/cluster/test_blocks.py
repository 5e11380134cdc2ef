"""What HDFS does with the blocks of files that a snapshot holds and under a full quota: facts for an exchange of files by concat."""

from __future__ import annotations

from typing import Any, Iterator, List, NamedTuple

import pytest

from hivekeeper import names
from hivekeeper.ports import NotPossible
from support.drivers import another_cluster

NAMES = ("a", "b", "c")
NO_QUOTA = -1


class Place(NamedTuple):
    files: Any
    superuser: Any
    root: str
    path: Any

    def of(self, name: str) -> str:
        return names.join(self.root, name)

    def concat(self, target: str, *sources: str) -> None:
        self.files.concat(self.of(target), [self.of(source) for source in sources])

    def cut(self, name: str, length: int) -> None:
        self.files.cut(self.files.stat(self.of(name)), length, self.files.blocks(self.of(name))[name])

    def names_in(self) -> List[str]:
        return [entry.name for entry in self.files.look([self.root])[self.root].entries]


@pytest.fixture
def place(request: pytest.FixtureRequest, gateway: Any, superuser: Any) -> Iterator[Place]:
    files = another_cluster().files
    root = files.qualify(f"/user/etl/blocks-{abs(hash(request.node.name)) % 10**8}")
    files.make_directory(root)
    for name in NAMES:
        files.write_new(names.join(root, name), name * 3)
    path = gateway.jvm.org.apache.hadoop.fs.Path(root)
    yield Place(files, superuser, root, path)
    superuser.delete(path, True)


def test_a_source_in_a_snapshot_is_not_taken_and_a_target_in_one_keeps_its_bytes_there(place):
    place.superuser.allowSnapshot(place.path)
    snapshot = place.superuser.createSnapshot(place.path, "s").toString()
    place.files.write_new(place.of("new"), "new")
    for target in ("b", "new"):
        with pytest.raises(NotPossible, match="snapshot"):
            place.concat(target, "a")
    place.concat("a", "new")
    kept, joined = (place.files.stat(path) for path in (names.join(snapshot, "a"), place.of("a")))
    assert ("".join(place.files.read_pieces(kept)), "".join(place.files.read_pieces(joined))) == ("aaa", "aaanew")
    place.superuser.deleteSnapshot(place.path, "s")
    place.concat("b", "a", "c")
    assert place.names_in() == ["b"]
    place.superuser.disallowSnapshot(place.path)


def test_what_a_snapshot_has_of_a_file_stays_when_the_file_is_cut(place):
    place.concat("a", "b", "c")
    place.superuser.allowSnapshot(place.path)
    snapshot = place.superuser.createSnapshot(place.path, "s").toString()
    place.cut("a", 3)
    kept, cut = (place.files.stat(path) for path in (names.join(snapshot, "a"), place.of("a")))
    assert ("".join(place.files.read_pieces(kept)), "".join(place.files.read_pieces(cut))) == ("aaabbbccc", "aaa")
    assert not cut.is_open
    place.superuser.deleteSnapshot(place.path, "s")
    place.superuser.disallowSnapshot(place.path)


def test_a_full_quota_is_no_hindrance(place):
    place.superuser.setQuota(place.path, len(NAMES) + 1, NO_QUOTA)
    place.concat("a", "b", "c")
    place.cut("a", 3)
    assert place.names_in() == ["a"]
