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


def moved_to(place: Place, gateway: Any, mode: str) -> str:
    """A directory of the superuser with this mode, to which `a` was moved; the path of `a` there."""
    hadoop = gateway.jvm.org.apache.hadoop.fs
    away = hadoop.Path(place.path, "away")
    place.superuser.mkdirs(away)
    place.superuser.setPermission(away, hadoop.permission.FsPermission(mode))
    place.superuser.rename(hadoop.Path(place.path, "a"), hadoop.Path(away, "b=1"))
    return place.of("away/b=1")


@pytest.mark.parametrize("mode", ["755", "711", "700"])
def test_where_a_file_is_that_was_moved_is_told_to_whom_its_directory_is_open(place, gateway, mode):
    """HDFS does not tell a path by an id; a directory that may be entered but not listed tells whether it has a name that is known."""
    file = place.files.stat(place.of("a"))
    there = moved_to(place, gateway, mode)
    found = {former: place.files.find_paths(place.root, {file.file_id: former}) for former in (file.path, "x/b=1")}
    is_told = {file.path: mode == "755", "x/b=1": mode != "700"}
    assert found == {former: {file.file_id: there} if told else {} for former, told in is_told.items()}


def test_where_a_file_is_that_a_snapshot_holds_is_told_only_while_it_is_there(place, gateway):
    hadoop = gateway.jvm.org.apache.hadoop.fs
    ids = {place.files.stat(place.of(name)).file_id: name for name in NAMES}
    place.superuser.allowSnapshot(place.path)
    place.superuser.createSnapshot(place.path, "s")
    try:
        place.superuser.mkdirs(hadoop.Path(place.path, "d"))
        place.superuser.rename(hadoop.Path(place.path, "a"), hadoop.Path(place.path, "d/z"))
        place.superuser.delete(hadoop.Path(place.path, "b"), False)
        found = place.files.find_paths(place.root, dict.fromkeys(ids, ""))
        assert {ids[file_id]: path for file_id, path in found.items()} == {"a": place.of("d/z"), "c": place.of("c")}
    finally:
        place.superuser.deleteSnapshot(place.path, "s")
        place.superuser.disallowSnapshot(place.path)
