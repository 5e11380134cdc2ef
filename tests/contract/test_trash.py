"""What goes to the trash, and to whose: on the fake and on Hadoop."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable
from urllib.parse import urlsplit

import pytest

from hivekeeper import names
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.model import Guard
from hivekeeper.ports import (
    FilesUnavailable,
    ForeignTrash,
    SourceMissing,
)
from support.fakes.files import TRASH
from support.file_worlds import look, texts_below


@dataclasses.dataclass
class Trash:
    """`client` returns a client with the trash on or off; `current` is the directory that receives what it deletes."""

    client: Callable[[bool], Any]
    current: str

    def place_of(self, path):
        return self.current + urlsplit(path).path


@pytest.fixture
def trash(files_world, request):
    if files_world.kind == "fake":
        yield Trash(lambda enabled: fake_with_trash(files_world, enabled), TRASH)
        return
    gateway = request.getfixturevalue("gateway")
    home = request.getfixturevalue("tmp_path_factory").mktemp("home")
    system, path = gateway.jvm.java.lang.System, gateway.jvm.org.apache.hadoop.fs.Path(files_world.root)
    fs = path.getFileSystem(gateway.hadoop_conf)
    home_before = system.setProperty("user.home", str(home))
    try:
        root = fs.getTrashRoot(path).toString()
        assert files_world.kind == "hdfs" or root == f"file:{home}/.Trash"
        found = Trash(lambda enabled: hadoop_with_trash(gateway, fs.getServerDefaults(path).getTrashInterval(), enabled), f"{root}/Current")
        yield found
        files_world.files.delete_tree(found.place_of(files_world.root))
    finally:
        system.setProperty("user.home", home_before)


def fake_with_trash(world, enabled):
    client = world.another_client()
    client.trash_enabled = enabled
    return client


def hadoop_with_trash(gateway, interval_of_server, enabled):
    if interval_of_server and not enabled:
        pytest.skip("the NameNode has switched the trash on for everybody")
    own = Gateway(gateway.driver)
    own.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    own.hadoop_conf.set("fs.trash.interval", "60" if enabled else "0")
    return HadoopFiles(own)


def test_a_directory_is_moved_to_the_trash_whole(files_world, trash):
    directory = files_world.path("t", "u a=%20")
    for name in ("f", ".hidden", "sub/g"):
        files_world.writer.add(f"{directory}/{name}", name)
    assert trash.client(True).move_to_trash(directory)
    assert texts_below(files_world, trash.place_of(directory)) == {name: name for name in ("f", ".hidden", "sub/g")}
    assert files_world.files.stat(directory) is None
    assert look(files_world, files_world.path("t")).exists


def test_the_trash_keeps_every_directory_that_lay_at_one_place(files_world, trash):
    for text in ("first", "second", "third"):
        files_world.writer.add(files_world.path("t", "u", "f"), text)
        assert trash.client(True).move_to_trash(files_world.path("t", "u"))
    kept = texts_below(files_world, trash.place_of(files_world.path("t")))
    assert sorted(kept.values()) == ["first", "second", "third"]
    assert kept["u/f"] == "first"
    assert all(path.startswith("u") and path.endswith("/f") for path in kept)


def test_nothing_is_moved_where_the_trash_is_switched_off(files_world, trash):
    files_world.writer.add(files_world.path("t", "f"), "x")
    before = files_world.files.stat(files_world.path("t"))
    assert not trash.client(False).move_to_trash(files_world.path("t"))
    assert files_world.files.stat(files_world.path("t")) == before
    assert texts_below(files_world, files_world.path("t")) == {"f": "x"}
    assert files_world.files.stat(trash.place_of(files_world.path("t"))) is None


@pytest.mark.parametrize("enabled", [True, False])
def test_a_missing_directory_cannot_be_moved_to_the_trash(files_world, trash, enabled):
    with pytest.raises(SourceMissing):
        trash.client(enabled).move_to_trash(files_world.path("missing"))


def test_what_goes_to_the_trash_is_what_lies_in_the_directory_whose_lock_is_held(files_world, trash):
    files_world.skip_on("local", "paths only")
    client, writer, top = trash.client(True), files_world.writer, files_world.path("top")
    lock = client.hold(f"{top}/_lock", "us")
    for text, place in (("ours", f"{top}/runs/u"), ("theirs", files_world.path("other", "runs", "u"))):
        files_world.files.make_directory(place)
        writer.add(f"{place}/f", text)
    writer.rename_into(top, files_world.path("aside"))
    writer.rename_into(files_world.path("other"), top)
    assert client.move_to_trash(f"{top}/runs/u")
    assert texts_below(files_world, f"{top}/runs") == {"u/f": "theirs"}
    assert texts_below(files_world, trash.place_of(f"{top}/runs")) == {"u/f": "ours"}
    with pytest.raises(SourceMissing) as missing:
        client.move_to_trash(f"{top}/runs/u")
    assert ".reserved" not in str(missing.value)
    lock.release()
    assert client.move_to_trash(f"{top}/runs/u")
    assert sorted(texts_below(files_world, trash.place_of(f"{top}/runs")).values()) == ["ours", "theirs"]


@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
@pytest.mark.parametrize("depth", [0, 1, -1])
def test_nothing_goes_to_a_trash_that_others_may_write_to(files_world, trash, depth, mode, locked):
    client, writer, top = trash.client(True), files_world.writer, files_world.path("top")
    lock = client.hold(f"{top}/_lock", "us") if locked else None
    for name in ("first", "second"):
        writer.add(f"{top}/runs/{name}/f", name)
    assert client.move_to_trash(f"{top}/runs/first")
    # The trash itself; in it that of today; what is around the first one there.
    root = names.parent(trash.current)
    opened = {0: root, 1: trash.current, -1: trash.place_of(f"{top}/runs")}[depth]
    before = client.stat(opened).mode
    client.guard({opened: Guard(mode)})
    try:
        with pytest.raises(ForeignTrash) as refused:
            client.move_to_trash(f"{top}/runs/second")
        assert opened in str(refused.value)
        assert ".reserved" not in str(refused.value)
        assert texts_below(files_world, f"{top}/runs") == {"second/f": "second"}
    finally:
        client.guard({opened: Guard(before)})
    assert client.move_to_trash(f"{top}/runs/second")
    assert texts_below(files_world, trash.place_of(f"{top}/runs")) == {"first/f": "first", "second/f": "second"}
    if lock:
        lock.release()


@pytest.mark.parametrize("mode", [0o750, 0o701])
def test_nothing_goes_to_a_directory_of_the_trash_that_others_may_pass(files_world, trash, mode):
    """A directory of this user that somebody else has put there, with others in it, may be any: what they may pass shows old files."""
    client, writer, top = trash.client(True), files_world.writer, files_world.path("top")
    lock = client.hold(f"{top}/_lock", "us")
    for name in ("first", "second"):
        writer.add(f"{top}/runs/{name}/f", name)
    assert client.move_to_trash(f"{top}/runs/first")
    around = trash.place_of(f"{top}/runs")
    client.guard({around: Guard(mode)})
    with pytest.raises(ForeignTrash, match=around):
        client.move_to_trash(f"{top}/runs/second")
    assert texts_below(files_world, f"{top}/runs") == {"second/f": "second"}
    # What is above it may be open: nobody gets through the last one.
    client.guard({around: Guard(0o700), names.parent(around): Guard(mode)})
    assert client.move_to_trash(f"{top}/runs/second")
    lock.release()


@pytest.mark.parametrize(("mode", "is_fixed"), [(0o777, False), (0o1777, True), (0o755, True)])
def test_a_trash_is_used_in_a_home_where_others_may_write_if_they_cannot_exchange_it(files_world, trash, mode, is_fixed):
    """On HDFS it is found by its id, so it does not matter what they can rename."""
    files_world.skip_on("fake", "it looks at no homes")
    client, top, home = trash.client(True), files_world.path("top"), names.parent(names.parent(trash.current))
    lock = client.hold(f"{top}/_lock", "us")
    files_world.writer.add(f"{top}/u/f", "x")
    before = client.stat(home).mode
    client.guard({home: Guard(mode)})
    try:
        if is_fixed or files_world.kind == "hdfs":
            assert client.move_to_trash(f"{top}/u")
        else:
            with pytest.raises(ForeignTrash, match=home):
                client.move_to_trash(f"{top}/u")
            assert texts_below(files_world, f"{top}/u") == {"f": "x"}
            # For what the fixture deletes.
            files_world.files.make_directory(trash.place_of(files_world.root))
    finally:
        client.guard({home: Guard(before)})
    lock.release()


def test_the_directories_of_the_trash_are_for_its_user_alone(files_world, trash):
    writer, directory = files_world.writer, files_world.path("t", "a b=%20", "u")
    writer.add(f"{directory}/f", "x")
    assert trash.client(True).move_to_trash(directory)
    above = [trash.place_of(names.parent(directory))]
    while above[-1] != trash.place_of(files_world.root):
        above.append(names.parent(above[-1]))
    assert {path: files_world.files.stat(path).mode for path in above} == dict.fromkeys(above, 0o700)


def test_a_trash_that_cannot_be_made_is_an_error_and_not_taken_for_one_that_is_off(files_world, trash, request, tmp_path):
    files_world.skip_on("fake", "its trash can always be made")
    files_world.skip_on("hdfs", "its trash can always be made by its user")
    files_world.writer.add(files_world.path("t", "f"), "x")
    system = request.getfixturevalue("gateway").jvm.java.lang.System
    system.setProperty("user.home", f"{tmp_path}/{'longer than a name may be' * 20}")
    with pytest.raises(FilesUnavailable, match="File name too long"):
        trash.client(True).move_to_trash(files_world.path("t"))
    assert texts_below(files_world, files_world.path("t")) == {"f": "x"}
