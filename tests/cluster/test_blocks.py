"""What HDFS promises of files and their blocks where only its superuser, or a client of short answers, can tell: exchanges by concat with
snapshots and a full quota, where a file that was moved is found again, and listings that are too long for one answer with all blocks.
"""

from __future__ import annotations

import time
from typing import Any, Iterator, List, NamedTuple

import pytest

from bench.whole.namenode import read_counters
from cluster.servers.layout import Layout
from hivekeeper import names
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.ports import FilesError, NotPossible
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


def test_a_joined_file_has_another_checksum_than_a_copy_of_it_until_it_is_cut(place, gateway):
    """HDFS's default one is made of those of the blocks; DistCp compares them, and fails."""

    def checksum(name):
        return place.superuser.getFileChecksum(gateway.jvm.org.apache.hadoop.fs.Path(place.of(name))).toString()

    place.files.write_new(place.of("whole"), "aaabbb")
    place.files.write_new(place.of("own"), "aaa")
    place.concat("a", "b")
    assert checksum("a") != checksum("whole")
    place.cut("a", 3)
    assert checksum("a") == checksum("own")


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


# A file of so many blocks takes a longer answer than the other files of a test together.
MANY_BLOCKS, SHORT_BYTES = 300, 20_000


@pytest.fixture
def wide(place: Place) -> Place:
    """With a file of very many blocks, a hidden one, and one of each that is open."""
    for directory in ("", "other/", ".staging/"):
        place.files.make_directory(place.of(directory.rstrip("/")) if directory else place.root)
        for name in ("open", ".open", "closed"):
            place.files.write_new(place.of(f"{directory}{name}"), "x")
    for name in ("wide", ".wide"):
        place.files.write_new(place.of(name), "x")
        for number in range(MANY_BLOCKS - 1):
            place.files.write_new(place.of(f"{name}{number}"), "x")
        place.concat(name, *(f"{name}{number}" for number in range(MANY_BLOCKS - 1)))
    return place


def client_of_short_answers(gateway: Any, **settings: Any) -> HadoopFiles:
    """With connections of its own, because of another time for which an idle one is kept."""
    another = Gateway(gateway.driver)
    another.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    for key, value in {"ipc.maximum.response.length": SHORT_BYTES, **settings}.items():
        another.hadoop_conf.set(key, str(value))
    return HadoopFiles(another)


ALL_SHORT = {"fs.hdfs.impl.disable.cache": "true", "ipc.client.connection.maxidletime": 12_345}


def test_a_listing_that_is_too_long_with_all_blocks_tells_the_same(wide, gateway):
    everywhere = client_of_short_answers(gateway, **ALL_SHORT)
    with pytest.raises(FilesError):
        everywhere.blocks(wide.root)
    jvm = gateway.jvm
    writer = jvm.org.apache.hadoop.fs.FileSystem.newInstance(wide.path.toUri(), gateway.hadoop_conf)
    streams = [writer.append(jvm.org.apache.hadoop.fs.Path(wide.of(name))) for name in ("open", ".open", "other/open")]
    for files in (everywhere, client_of_short_answers(gateway)):
        asked = [wide.root, wide.of("other"), wide.of("gone")] * 8
        for method in ("look", "look_hidden", "look_hidden_directories"):
            seen = getattr(files, method)(asked)
            assert seen == getattr(wide.files, method)(asked)
            found_open = [entry.name for entry in seen[wide.root].entries if entry.is_open]
            assert found_open == {"look": [".open", "open"], "look_hidden": [".open"]}.get(method, [])
    for stream in streams:
        stream.close()
    writer.close()
    seen = everywhere.look([wide.root])[wide.root].entries
    assert {entry.name: entry.is_open for entry in seen} == dict.fromkeys(
        ("open", ".open", "closed", "wide", ".wide", "other", ".staging", *NAMES), False
    )


def files_asked_alone(layout: Layout) -> int:
    """Since the NameNode started. Its counters are ten seconds old at most, and a client shares no connection that was idle for so long."""
    time.sleep(11)
    return read_counters(layout)["IsFileClosed"]


def test_only_where_the_answer_is_too_long_each_file_is_asked_for_and_other_answers_may_be_as_long_as_before(wide, gateway, layout):
    files, before = client_of_short_answers(gateway), files_asked_alone(layout)
    files.look([wide.root])
    assert len(files.blocks(wide.of("wide"))["wide"]) == MANY_BLOCKS
    asked = files_asked_alone(layout)
    assert asked - before == len(NAMES) + 5
    wide.files.look([wide.root])
    assert files_asked_alone(layout) == asked


def test_directories_are_told_without_any_block(wide, gateway):
    files = client_of_short_answers(gateway, **ALL_SHORT)
    assert [entry.name for entry in files.look_hidden_directories([wide.root])[wide.root].entries] == [".staging"]


def test_a_listing_tells_of_which_file_no_datanode_has_a_good_copy(place, layout):
    (block,) = place.files.blocks(place.of("b"))["b"]
    (stored,) = (layout.run / "datanode").rglob(f"blk_{block.id}")
    stored.write_bytes(b"x" * block.length)
    with pytest.raises(FilesError):
        # Its reader tells the NameNode of a bad copy.
        list(place.files.read_pieces(place.files.stat(place.of("b"))))
    assert [entry.name for entry in place.files.look([place.root])[place.root].entries if entry.is_lost] == ["b"]


def test_a_listing_tells_where_in_a_joined_file_blocks_are_lost(place, layout):
    place.concat("a", "b", "c")
    blocks = place.files.blocks(place.of("a"))["a"]
    (stored,) = (layout.run / "datanode").rglob(f"blk_{blocks[1].id}")
    stored.write_bytes(b"x" * blocks[1].length)
    with pytest.raises(FilesError):
        list(place.files.read_pieces(place.files.stat(place.of("a"))))
    (found,) = (entry for entry in place.files.look([place.root])[place.root].entries if entry.is_lost)
    assert (found.name, found.lost_from, found.lost_to) == ("a", blocks[0].length, blocks[0].length + blocks[1].length)
