"""What goes by ids: while somebody exchanges directories, the one that was listed or whose lock is held is meant, wherever it is by now."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hivekeeper import names
from hivekeeper.model import Guard, StageBatch, StageOutput, StageUnit
from hivekeeper.ports import (
    SourceMissing,
    SourceReplaced,
    TargetExists,
)
from support.file_worlds import look, mode_of, names_in, texts_below, wait_a_tick


@pytest.mark.parametrize("is_copied", [True, False], ids=["copied", "sorted"])
def test_in_a_directory_whose_lock_is_held_jobs_write_a_stage_where_that_directory_is_by_now(request, files_world, is_copied):
    """At their ends they delete what their attempts left, as trees; with `sort_columns` it is Spark that does."""
    files_world.skip_on("fake", "it has no jobs")
    files_world.skip_on("local", "paths only")
    from hivekeeper.cluster.rows import SparkRows

    files, writer, top, source = files_world.files, files_world.writer, files_world.path("top"), files_world.path("in")
    request.getfixturevalue("spark").range(3).coalesce(1).write.parquet(source)
    rows = SparkRows(request.getfixturevalue("gateway"), files.exact)
    listed = tuple(entry for entry in look(files_world, source).entries if entry.name.endswith(".parquet"))
    form = rows.footers("parquet", {"in": listed})["in"].groups[0].form
    unit = StageUnit(1, (StageOutput(listed, form, "snappy"),))
    batch = StageBatch("parquet", f"{top}/stage/b00001", (unit,), "20260101t020304z-1f0c", () if is_copied else ("id",), is_copied)
    lock, directory = files.hold(f"{top}/_lock", "us"), "__hivekeeper_unit=1"
    files.make_directory(batch.target)
    for below in (["_attempts"], ["_temporary", "0"], [directory, "_temporary", "0"]):
        writer.add(files_world.path("other", "stage", "b00001", *below, "theirs"), "x")
    before = texts_below(files_world, files_world.path("other"))
    writer.rename_into(top, files_world.path("aside"))
    writer.rename_into(files_world.path("other"), top)
    assert rows.write_stage(batch)[1].failed == ""
    assert rows.read_stage(batch)[1].digest.rows == 3
    lock.release()
    assert texts_below(files_world, top) == before
    assert names_in(look(files_world, files_world.path("aside", "stage", "b00001"))) == [directory]
    assert len(names_in(look(files_world, files_world.path("aside", "stage", "b00001", directory)))) == 1


def test_in_a_directory_whose_lock_is_held_rights_and_trees_change_where_that_directory_is_by_now(files_world):
    """Whoever may write to the directory around it can put another one at its path, with any directory at the next path below."""
    files_world.skip_on("local", "paths only")
    files, writer, top = files_world.files, files_world.writer, files_world.path("top")
    lock = files.hold(f"{top}/_lock", "us")
    for place in (f"{top}/runs/a", f"{top}/runs/b", files_world.path("other", "runs", "a"), files_world.path("other", "runs", "b")):
        files.make_directory(place)
        writer.add(f"{place}/f", "x")
    writer.add(files_world.path("other", "runs", "f"), "x")
    files.make_directory(files_world.path("other", "gone"))
    wanted = dataclasses.replace(files.attributes([f"{top}/runs/a"])[f"{top}/runs/a"], mode=0o751, file_mode=0o640)
    writer.rename_into(top, files_world.path("aside"))
    writer.rename_into(files_world.path("other"), top)
    files.dress({f"{top}/runs/a": wanted})
    files.guard({f"{top}/runs": Guard(0o710), f"{top}/runs/b": Guard(0o711, 0o604)})
    files.delete_tree(f"{top}/gone")
    files.delete_file(f"{top}/gone/f")
    files.delete_file(f"{top}/runs/f")
    with pytest.raises(SourceMissing) as missing:
        files.dress({f"{top}/gone": wanted})
    assert ".reserved" not in str(missing.value)
    others = files_world.another_client()
    assert [others.stat(f"{top}/runs{place}").mode for place in ("", "/a", "/a/f", "/b")] == [0o700, 0o700, 0o644, 0o700]
    aside = files_world.path("aside", "runs")
    assert [others.stat(f"{aside}{place}").mode for place in ("", "/a", "/a/f", "/b", "/b/f")] == [0o710, 0o751, 0o640, 0o711, 0o604]
    files.delete_tree(f"{top}/runs/b")
    assert names_in(look(files_world, aside)) == ["a"]
    lock.release()
    assert names_in(look(files_world, f"{top}/runs")) == ["a", "b", "f"]
    files.delete_tree(f"{top}/runs/b")
    assert names_in(look(files_world, f"{top}/runs")) == ["a", "f"]


def test_in_a_directory_whose_lock_is_held_all_is_seen_made_and_renamed_where_that_directory_is_by_now(files_world):
    """A look at another one and an act in this one would take the one's rights or files for the other's."""
    files_world.skip_on("local", "paths only")
    files, writer, top, aside = files_world.files, files_world.writer, files_world.path("top"), files_world.path("aside")
    lock = files.hold(f"{top}/_lock", "us")
    for place in (f"{top}/d", f"{top}/empty", files_world.path("other", "empty"), files_world.path("live")):
        files.make_directory(place)
    files.write_new(f"{top}/d/f", "ours")
    writer.add(files_world.path("other", "d", "theirs"), "x")
    listed, before = look(files_world, f"{top}/d").entries, texts_below(files_world, files_world.path("other"))
    writer.rename_into(top, aside)
    writer.rename_into(files_world.path("other"), top)
    seen = look(files_world, f"{top}/d")
    assert (seen.entries, [entry.path for entry in seen.entries]) == (listed, [f"{top}/d/f"])
    assert names_in(look(files_world, top)) == [names.SEAL, "_lock", "d", "empty"]
    assert names_in(files.look_hidden([top])[top]) == [names.SEAL, "_lock"]
    assert (files.stat(f"{top}/d/f"), files.stat(f"{top}/d/theirs")) == (listed[0], None)
    assert dict(files.read_texts(listed)) == {f"{top}/d/f": "ours"}
    assert ("".join(files.read_pieces(listed[0])), b"".join(files.read_bytes(listed[0]))) == ("ours", b"ours")
    assert files.exposed(top, 2) == ()
    assert list(files.blocks(f"{top}/d")) == ["f"]
    assert files.attributes([f"{top}/d"])[f"{top}/d"].directory_id == seen.file_id
    files.make_directory(f"{top}/new/below")
    files.write_new(f"{top}/new/below/text", "ours, too")
    files.write_new(f"{top}/new/below/long", iter(["x" * 2_000_000, "y"]))
    files.copy_part(listed[0], 0, 2, f"{top}/new/part")
    files.rename_exact(f"{top}/d/f", f"{top}/new/f")
    with pytest.raises(TargetExists) as exists:
        files.rename_exact(f"{top}/new/f", f"{top}/new/part")
    with pytest.raises(SourceMissing) as missing:
        files.rename_exact(f"{top}/d/theirs", f"{top}/new/theirs")
    assert not [error for error in (exists, missing) if ".reserved" in str(error.value)]
    assert files.remove_empty(f"{top}/empty")
    # Not between it and elsewhere: if a table is renamed with both, nothing goes to what comes to its place.
    mark = look(files_world, files_world.path("live"))
    with pytest.raises(SourceMissing):
        files.rename_exact(f"{top}/new", files_world.path("live", "new"))
    with pytest.raises(SourceMissing):
        files.exchange(files_world.path("live"), f"{top}/old", f"{top}/new", mark)
    files.rename_exact(f"{top}/old", files_world.path("live"))
    # The directory itself has its name in another one, where it is not any more.
    assert files.stat(top).file_id != look(files_world, top).file_id
    files.rename_exact(top, files_world.path("theirs"))
    lock.release()
    assert texts_below(files_world, files_world.path("theirs")) == before
    assert names_in(look(files_world, aside)) == [names.SEAL, "_lock", "d", "new"]
    assert sorted(texts_below(files_world, f"{aside}/new").values(), key=len)[:2] == ["ou", "ours"]


def test_below_what_is_pinned_all_is_seen_and_renamed_where_that_directory_is_by_now(files_world):
    """Between a table's live and its control directory: another table at its place gets nothing, and nothing is taken out of that."""
    files_world.skip_on("local", "paths only")
    files, writer, table, moved = files_world.files, files_world.writer, files_world.path("table"), files_world.path("moved")
    live, control = f"{table}/dt=1", f"{table}/.hivekeeper"
    writer.add(f"{live}/old", "old")
    lock = files.hold(f"{control}/_lock", "us")
    for place in ("retired", "ready"):
        files.make_directory(f"{control}/{place}")
    files.write_new(f"{control}/ready/new", "new")
    around, mark = files.id_around(control), look(files_world, live)
    assert around == files.stat(table).file_id
    for place in ("dt=1", ".hivekeeper/ready", ".hivekeeper/retired/late"):
        writer.add(files_world.path("other", place, "theirs"), "x")
    before = texts_below(files_world, files_world.path("other"))
    wait_a_tick(files_world)
    writer.rename_into(table, moved)
    writer.rename_into(files_world.path("other"), table)
    with files.anchored({table: around, files_world.path("elsewhere"): around, live: 0}):
        assert look(files_world, live).entries == mark.entries
        assert files.stat(live).file_id == mark.file_id
        assert files.exchange(live, f"{control}/retired/u", f"{control}/ready", mark) is None
        assert (names_in(look(files_world, live)), names_in(look(files_world, f"{control}/retired"))) == (["new"], ["u"])
        # The nearest counts, for what lies in it, but not for its own name.
        with files.anchored({live: mark.file_id}):
            assert names_in(look(files_world, live)) == ["old"]
            assert files.stat(live).file_id != mark.file_id
            files.rename_exact(f"{live}/old", f"{control}/retired/old")
        with files.anchored({live: files.stat(live).file_id}):
            files.rename_exact(f"{control}/retired/old", f"{live}/old")
        # That of the directory with the lock is its path alone, which shows whether the table is where it was.
        assert files.stat(control).file_id != look(files_world, control).file_id
    assert names_in(look(files_world, live)) == ["theirs"]
    lock.release()
    with files.anchored({table: around}):
        assert names_in(look(files_world, live)) == ["theirs"]
    assert texts_below(files_world, table) == before
    assert (files.id_around(control), names_in(look(files_world, f"{moved}/dt=1"))) == (0, ["new", "old"])


def test_a_file_is_deleted_in_the_directory_that_was_listed_and_not_in_another_at_its_place(files_world):
    listed, other, aside = (files_world.path(name) for name in ("listed", "other", "aside"))
    for place in (listed, other):
        for name in "abc":
            files_world.writer.add(f"{place}/{name}", "x")
    seen = look(files_world, listed)
    known = {entry.name: (seen.file_id, entry.file_id) for entry in seen.entries}
    files_world.files.delete_file(f"{listed}/a", *known["a"])
    files_world.files.delete_file(f"{listed}/a", *known["a"])
    files_world.writer.rename_into(listed, aside)
    files_world.writer.rename_into(other, listed)
    files_world.files.delete_file(f"{listed}/b", *known["b"])
    assert names_in(look(files_world, listed)) == ["a", "b", "c"]
    # Local files are not found by the id of their directory.
    assert names_in(look(files_world, aside)) == (["b", "c"] if files_world.kind == "local" else ["c"])
    # As a router would do with an id of another NameNode.
    files_world.files.delete_file(f"{listed}/c", seen.file_id, seen.file_id)
    assert "c" in names_in(look(files_world, aside))
    files_world.files.delete_tree(aside)
    files_world.files.delete_file(f"{listed}/c", *known["c"])
    assert names_in(look(files_world, listed)) == ["a", "b", "c"]


def test_another_file_of_that_name_in_the_directory_that_was_listed_stays(files_world):
    listed = files_world.path("listed")
    for name in "ab":
        files_world.writer.add(f"{listed}/{name}", "x")
    seen = look(files_world, listed)
    known = {entry.name: entry.file_id for entry in seen.entries}
    files_world.files.delete_file(f"{listed}/b", seen.file_id, known["a"])
    assert names_in(look(files_world, listed)) == ["a", "b"]
    files_world.files.delete_file(f"{listed}/b", seen.file_id, known["b"])
    assert names_in(look(files_world, listed)) == ["a"]


def test_exactly_the_file_that_was_listed_is_read_and_none_that_somebody_put_in_its_place(files_world):
    listed = {}
    for name, text in (("ours", "true"), ("theirs", "forged")):
        files_world.files.make_directory(files_world.path(name))
        files_world.files.write_new(files_world.path(name, "t"), text)
        listed[name] = files_world.files.stat(files_world.path(name, "t"))
    for source, target in (("ours", "aside"), ("theirs", "ours")):
        files_world.files.rename_exact(files_world.path(source), files_world.path(target))
    for read in (files_world.files.read_pieces, lambda file: files_world.files.read_texts([file])):
        with pytest.raises(SourceReplaced):
            list(read(listed["ours"]))
    for source, target in (("ours", "theirs"), ("aside", "ours")):
        files_world.files.rename_exact(files_world.path(source), files_world.path(target))
    assert set(files_world.files.read_texts(list(listed.values())).values()) == {"true", "forged"}


def test_a_listing_is_of_the_directory_whose_id_it_shows_while_others_come_to_its_path(files_world):
    """If a lock is held there. It takes several calls: a NameNode tells a thousand names at once."""
    files_world.skip_on("local", "paths only")
    files_world.skip_on("fake", "it lists at once")
    top = files_world.path("top")
    one, other, aside = (files_world.path("top", name) for name in ("one", "other", "aside"))
    with ThreadPoolExecutor(8) as pool:
        places = (f"{place}/{nth}-{names.base(place)}" for nth in range(2500) for place in (one, other))
        list(pool.map(files_world.files.make_directory, places))
    own = {look(files_world, place).file_id: f"-{names.base(place)}" for place in (one, other)}
    lock, done = files_world.files.hold(f"{top}/_lock", "us"), threading.Event()

    def exchange():
        while not done.is_set():
            for source, target in ((one, aside), (other, one), (aside, other)):
                files_world.writer.rename_into(source, target)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        seen = [snapshot for _ in range(100) for snapshot in [look(files_world, one)] if snapshot.exists]
    finally:
        done.set()
        thread.join()
        lock.release()
    assert seen
    assert all(len(snapshot.entries) == 2500 for snapshot in seen)
    assert all(entry.name.endswith(own[snapshot.file_id]) for snapshot in seen for entry in snapshot.entries)


def test_rights_are_those_of_the_directory_that_was_listed_while_a_lock_is_held_there(files_world):
    """Whoever may rename it can put another one at its path, whose files have the same owner, group and mode."""
    files_world.skip_on("local", "paths only")
    files, top = files_world.files, files_world.path("top")
    listed, other, aside = (files_world.path("top", name) for name in ("listed", "other", "aside"))
    groups = {listed: "etl", other: "hr"}
    acls = {place: ("group::r--", f"group:{group}:rw-", "mask::rw-", "other::---", "user::rw-") for place, group in groups.items()}
    for place, mode in ((listed, 0o700), (other, 0o755)):
        files_world.writer.add(f"{place}/f", "x")
        files.dress({place: dataclasses.replace(files.attributes([place])[place], mode=mode, file_mode=0o660, file_acl=acls[place])})
    ids = {place: look(files_world, place).file_id for place in (listed, other)}
    of_file = files.stat(f"{listed}/f").file_id
    files_world.writer.rename_into(listed, aside)
    files_world.writer.rename_into(other, listed)

    def ask():
        known = files.attributes([listed, top], ids)
        rights = files.file_rights({listed: ids[listed]}, 10)[listed]
        return known[listed].directory_id == ids[listed], known[listed].mode, known[listed].file_acl, [one.acl for one in rights]

    lock = files.hold(f"{top}/_lock", "us")
    assert ask() == (True, 0o700, acls[listed], [acls[listed]])
    assert [list(found) for found in files.file_rights({listed: ids[listed]}, 10)[listed].values()] == [[of_file]]
    files_world.writer.delete(aside)
    assert listed not in files.attributes([listed, top], ids)
    assert files.file_rights({listed: ids[listed]}, 10) == {}
    lock.release()
    assert ask() == (False, 0o755, acls[other], [acls[other]])


def test_a_directory_that_was_renamed_while_rights_are_read_is_no_error(files_world):
    """Its policies are asked for by its path."""
    files_world.skip_on("local", "paths only")
    files, top, listed = files_world.files, files_world.path("top"), files_world.path("top", "listed")
    files_world.writer.add(f"{listed}/f", "x")
    ids = {listed: look(files_world, listed).file_id}
    lock = files.hold(f"{top}/_lock", "us")
    files_world.writer.rename_into(listed, files_world.path("aside"))
    known = files.attributes([listed], ids)
    lock.release()
    assert {one.directory_id for one in known.values()} <= {ids[listed]}


def test_rights_are_given_to_the_directory_that_is_meant_and_to_no_other_at_its_path(files_world):
    meant, other, aside = (files_world.path(name) for name in ("meant", "other", "aside"))
    for place in (meant, other):
        files_world.files.make_directory(place)
        files_world.files.write_new(f"{place}/f", "x")
    readable = Guard(0o750, 0o640, file_id=files_world.files.stat(meant).file_id)
    files_world.files.rename_exact(meant, aside)
    files_world.files.rename_exact(other, meant)
    with contextlib.suppress(SourceMissing):
        files_world.files.guard({meant: readable})
    assert [mode_of(files_world, "meant"), mode_of(files_world, "meant", "f")] == [0o700, 0o600]
    files_world.files.guard({aside: readable})
    assert [mode_of(files_world, "aside"), mode_of(files_world, "aside", "f")] == [0o750, 0o640]
    assert [mode_of(files_world, "meant"), mode_of(files_world, "meant", "f")] == [0o700, 0o600]
