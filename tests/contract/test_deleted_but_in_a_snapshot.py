"""A directory that was deleted while a snapshot has it: its id leads to what has come to its path. Nothing is moved into or out of that."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import pytest

from cluster.servers.layout import choose_run, read_layout
from hivekeeper.ports import SourceMissing
from support.file_worlds import FilesWorld, look, names_in, texts_below
from support.superuser import open_as_superuser


@pytest.fixture
def delete(request: pytest.FixtureRequest, files_world: FilesWorld) -> Iterator[Callable[[str], None]]:
    """Deletes a directory, of which a snapshot was made just before."""
    files_world.skip_on("local", "no snapshots")
    if files_world.kind == "fake":
        yield files_world.files.namespace.delete_into_snapshot
        return
    gateway: Any = request.getfixturevalue("gateway")
    superuser = open_as_superuser(read_layout(choose_run()), gateway)
    root, made = gateway.jvm.org.apache.hadoop.fs.Path(files_world.root), []

    def delete_after_snapshot(path: str) -> None:
        made.append(f"s{len(made)}")
        superuser.createSnapshot(root, made[-1])
        files_world.writer.delete(path)

    superuser.allowSnapshot(root)
    yield delete_after_snapshot
    for name in made:
        superuser.deleteSnapshot(root, name)
    superuser.disallowSnapshot(root)
    superuser.close()


def test_its_id_leads_to_what_is_at_its_path_which_shows_its_own(files_world, delete):
    """A fact of HDFS: without it, there would be nothing to look for."""
    files, writer, top = files_world.files, files_world.writer, files_world.path("top")
    live, lock = f"{top}/live", files.hold(f"{top}/_lock", "us")
    writer.add(f"{live}/f", "old")
    seen = look(files_world, live)
    delete(live)
    with files.anchored({live: seen.file_id}):
        assert not look(files_world, live).exists
        writer.add(f"{live}/f", "new")
        found = look(files_world, live)
    assert [files.is_anywhere(top, one.file_id) for one in (seen, *seen.entries, found)] == [False, False, True]
    assert names_in(found) == ["f"]
    assert found.file_id not in (0, seen.file_id)
    assert files.attributes([live], {live: seen.file_id})[live].directory_id == found.file_id
    lock.release()


@pytest.mark.parametrize("levels", [1, 2])
def test_nothing_is_moved_into_or_out_of_what_has_come_to_its_path(files_world, delete, levels):
    files, writer, top = files_world.files, files_world.writer, files_world.path("top")
    live, lock = f"{top}/live", files.hold(f"{top}/_lock", "us")
    inner = f"{live}/inner" if levels == 2 else live
    writer.add(f"{inner}/f", "old")
    writer.add(f"{top}/aside/mine", "mine")
    anchors = {live: look(files_world, live).file_id}
    with files.anchored(anchors):
        # As long as it is there, wherever that is.
        files.rename_exact(f"{top}/aside/mine", f"{inner}/mine")
        writer.rename_into(live, f"{top}/moved")
        files.rename_exact(f"{inner}/mine", f"{top}/aside/mine")
        writer.rename_into(f"{top}/moved", live)
    delete(live)
    writer.add(f"{inner}/f", "theirs")
    writer.make_directory(f"{top}/other")
    anchors[f"{top}/other"] = look(files_world, f"{top}/other").file_id
    before = texts_below(files_world, top)
    with files.anchored(anchors):
        moves = [("aside/mine", "/mine"), ("/f", "aside/f"), ("/f", "other/f"), ("other", "/other")]
        for move in moves:
            source, target = (inner + place if place.startswith("/") else f"{top}/{place}" for place in move)
            with pytest.raises(SourceMissing) as missing:
                files.rename_exact(source, target)
            assert ".reserved" not in str(missing.value)
    lock.release()
    assert texts_below(files_world, top) == before
