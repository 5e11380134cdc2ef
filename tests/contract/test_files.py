"""What `ports.Files` promises of listings, renames and removals, with each row of "HDFS facts measured": on the fake and on Hadoop."""

from __future__ import annotations

import dataclasses

import pytest

from hivekeeper.model import Snapshot
from hivekeeper.ports import (
    FilesUnavailable,
    SourceMissing,
    TargetExists,
)
from support.file_worlds import look, names_in, text_of, wait_a_tick

NASTY = ["a b", "p%20q", "it's", 'q"t', "[x]*?{}", "k=v", "ü-日本", ".hidden", "_hidden", "#h", "a+b&c;d,e", "~!$()@"]


# ---- looking


def test_a_missing_directory_is_reported_not_raised(files_world):
    missing = files_world.path("missing")
    assert files_world.files.look([missing]) == {missing: Snapshot(exists=False)}
    assert files_world.files.stat(missing) is None


def test_a_file_is_not_taken_for_a_directory(files_world):
    files_world.writer.add(files_world.path("f"), "x")
    assert look(files_world, files_world.path("f")) == Snapshot(exists=False)


def test_an_empty_directory_exists_and_has_no_entries(files_world):
    files_world.files.make_directory(files_world.path("d"))
    seen = look(files_world, files_world.path("d"))
    assert (seen.exists, seen.entries) == (True, ())
    assert seen.file_id != 0


def test_nasty_and_hidden_names_are_listed_and_lead_back_to_their_files(files_world):
    for name in NASTY:
        files_world.writer.add(files_world.path("d", name), name)
    seen = look(files_world, files_world.path("d"))
    assert sorted(names_in(seen)) == sorted(NASTY)
    assert [entry.path for entry in seen.entries] == [files_world.path("d", name) for name in names_in(seen)]
    assert {text_of(files_world.files, entry.path) for entry in seen.entries} == set(NASTY)


def test_many_directories_are_looked_at_under_the_names_that_were_asked_for(files_world):
    paths = [files_world.path(f"d{number}") for number in range(40)]
    for number, path in enumerate(paths[:39]):
        files_world.writer.add(f"{path}/f{number}", "x")
    seen = files_world.files.look([path + "/" for path in paths])
    assert [names_in(seen[path + "/"]) for path in paths[:39]] == [[f"f{number}"] for number in range(39)]
    assert not seen[paths[39] + "/"].exists


def test_hidden_names_are_found_wherever_they_sort_among_many_others(files_world):
    """A NameNode returns a limited number of names at a time (dfs.ls.limit), in byte order; a local directory is read whole."""
    share = 10 if files_world.kind == "local" else 1
    hidden = [".hivekeeper", "._", "_", "_temporary", "_x", "-", "-ext-10000", "+tmp"]
    many = [*(f"DT={number}" for number in range(300 // share)), *(f"dt={number}" for number in range(250 // share))]
    many += [f"{first}{number}" for first in ("*", ",", "^", "\u00e9") for number in range(100 // share)]
    others = [*many, "0", "^", "*", ",", "`", "~", "\u00e9", "ZZ"]
    for name in [*hidden, *others]:
        files_world.writer.make_directory(files_world.path("d", name))
    files_world.writer.add(files_world.path("d", ".done"), "x")
    whole = files_world.files.look([files_world.path("d")])[files_world.path("d")]
    places = [files_world.path("d"), files_world.path("absent")]
    directories = files_world.files.look_hidden_directories(places)
    seen = files_world.files.look_hidden(places)
    assert sorted(names_in(seen[files_world.path("d")])) == sorted([*hidden, ".done"])
    assert (seen[files_world.path("d")].file_id, seen[files_world.path("d")].mtime_ms) == (whole.file_id, whole.mtime_ms)
    assert {entry.path for entry in seen[files_world.path("d")].entries} <= {entry.path for entry in whole.entries}
    assert not seen[files_world.path("absent")].exists
    wanted = tuple(entry for entry in seen[places[0]].entries if entry.is_dir)
    assert len(wanted) == len(hidden)
    assert directories == {places[0]: dataclasses.replace(seen[places[0]], entries=wanted), places[1]: Snapshot(exists=False)}


def test_a_listing_ends_at_the_most_entries_that_were_asked_for(files_world):
    """So that a caller who allows fewer than these knows that there are too many."""
    for directory in ("d", "e"):
        files_world.writer.make_directory(files_world.path(directory, "_x"))
        for number in range(20):
            files_world.writer.add(files_world.path(directory, f"_{number}"), "x")
            files_world.writer.make_directory(files_world.path(directory, f"dt={number}"))
    places = [files_world.path("d"), files_world.path("e"), files_world.path("absent")]
    files = files_world.files
    for list_up_to, all_of in ((files.look, 82), (files.look_hidden, 42), (files.look_hidden_directories, 2)):
        for most in (0, 1, 30, all_of, all_of + 1):
            seen = list_up_to(places, most)
            assert sum(len(one.entries) for one in seen.values()) == min(most, all_of)
            assert [one.exists for one in seen.values()] == [True, True, False]


def test_an_entry_tells_length_time_and_id(files_world):
    before = files_world.files.stat(files_world.root)
    wait_a_tick(files_world)
    files_world.writer.add(files_world.path("d", "f"), "four")
    (entry,) = look(files_world, files_world.path("d")).entries
    assert (entry.length, entry.is_dir, entry.is_open) == (4, False, False)
    assert entry.mtime_ms > before.mtime_ms
    assert entry.block_size > 0
    assert entry.owner
    assert entry.file_id not in (0, before.file_id)
    assert files_world.files.stat(entry.path) == entry


def test_a_file_being_written_is_seen_as_open(files_world):
    files_world.skip_on("local", "a kernel does not tell who has a file open")
    stream = files_world.writer.open(files_world.path("d", "f"), "begun")
    hidden = files_world.writer.open(files_world.path("h", ".f"), "begun")
    look_hidden = lambda: files_world.files.look_hidden([files_world.path("h")])[files_world.path("h")].entries  # noqa: E731
    assert [entry.is_open for entry in look_hidden()] == [True]
    files_world.writer.close(hidden)
    assert [entry.is_open for entry in look_hidden()] == [False]
    assert [entry.is_open for entry in look(files_world, files_world.path("d")).entries] == [True]
    assert files_world.files.stat(files_world.path("d", "f")).is_open
    files_world.writer.close(stream)
    assert [entry.is_open for entry in look(files_world, files_world.path("d")).entries] == [False]
    assert not files_world.files.stat(files_world.path("d", "f")).is_open


# ---- renaming: the facts that the swap stands on


@pytest.mark.parametrize("content", [[], ["x"]], ids=["empty", "full"])
def test_a_rename_onto_a_directory_is_refused_and_does_not_move_into_it(files_world, content):
    files_world.writer.add(files_world.path("a", "f"), "x")
    files_world.files.make_directory(files_world.path("b"))
    for name in content:
        files_world.writer.add(files_world.path("b", name), "y")
    with pytest.raises(TargetExists):
        files_world.files.rename_exact(files_world.path("a"), files_world.path("b"))
    assert names_in(look(files_world, files_world.path("b"))) == content
    assert names_in(look(files_world, files_world.path("a"))) == ["f"]


@pytest.mark.parametrize(("source", "target"), [("f", "g"), ("f", "d"), ("d", "f"), ("f", "f"), ("d", "d")])
def test_a_rename_onto_anything_that_exists_is_refused(files_world, source, target):
    files_world.writer.add(files_world.path("f"), "f")
    files_world.writer.add(files_world.path("g"), "g")
    files_world.files.make_directory(files_world.path("d"))
    with pytest.raises(TargetExists):
        files_world.files.rename_exact(files_world.path(source), files_world.path(target))
    assert files_world.files.read_texts([files_world.files.stat(files_world.path(name)) for name in "fg"]) == {
        files_world.path("f"): "f",
        files_world.path("g"): "g",
    }


def test_a_rename_without_source_or_without_the_targets_parent_says_so(files_world):
    files_world.writer.add(files_world.path("a", "f"), "x")
    files_world.writer.add(files_world.path("g"), "x")
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("missing"), files_world.path("b"))
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("a"), files_world.path("gone", "b"))
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("a"), files_world.path("g", "b"))
    assert names_in(look(files_world, files_world.path("a"))) == ["f"]


def test_another_programs_plain_rename_moves_into_a_directory_that_exists(files_world):
    files_world.skip_on("local", "a kernel's rename takes the place of an empty directory")
    files_world.writer.add(files_world.path("a", "f"), "x")
    files_world.files.make_directory(files_world.path("b"))
    files_world.writer.rename_into(files_world.path("a"), files_world.path("b"))
    assert names_in(look(files_world, files_world.path("b"))) == ["a"]


def test_a_renamed_directory_keeps_its_id_its_time_and_its_files(files_world):
    files_world.writer.add(files_world.path("live", "f"), "x")
    before = look(files_world, files_world.path("live"))
    wait_a_tick(files_world)
    files_world.files.make_directory(files_world.path("retired"))
    files_world.files.rename_exact(files_world.path("live"), files_world.path("retired", "u"))
    after = look(files_world, files_world.path("retired", "u"))
    assert (after.file_id, after.mtime_ms) == (before.file_id, before.mtime_ms)
    assert [(entry.file_id, entry.mtime_ms, entry.length) for entry in after.entries] == [
        (entry.file_id, entry.mtime_ms, entry.length) for entry in before.entries
    ]
    assert not look(files_world, files_world.path("live")).exists


def test_whatever_happens_in_a_directory_changes_its_time(files_world):
    directory = files_world.path("d")
    files_world.writer.add(directory + "/f", "x")
    times = [look(files_world, directory).mtime_ms]
    for change in (
        lambda: files_world.writer.add(directory + "/g", "x"),
        lambda: files_world.files.rename_exact(directory + "/g", directory + "/h"),
        lambda: files_world.writer.delete(directory + "/h"),
        lambda: files_world.files.make_directory(directory + "/sub"),
    ):
        wait_a_tick(files_world)
        change()
        times.append(look(files_world, directory).mtime_ms)
    assert times == sorted(set(times))


def test_a_change_further_down_leaves_a_directorys_time_alone(files_world):
    files_world.files.make_directory(files_world.path("d", "sub"))
    before = look(files_world, files_world.path("d")).mtime_ms
    wait_a_tick(files_world)
    files_world.writer.add(files_world.path("d", "sub", "f"), "x")
    assert look(files_world, files_world.path("d")).mtime_ms == before


def test_a_file_that_is_being_written_follows_its_directory(files_world):
    stream = files_world.writer.open(files_world.path("live", "f"), "before ")
    files_world.files.rename_exact(files_world.path("live"), files_world.path("retired"))
    files_world.writer.append_open(stream, "after")
    files_world.writer.close(stream)
    assert text_of(files_world.files, files_world.path("retired", "f")) == "before after"
    assert not look(files_world, files_world.path("live")).exists


def test_a_rename_out_of_a_directory_that_was_renamed_away_fails(files_world):
    files_world.writer.add(files_world.path("runs", "R", "ready", "f"), "x")
    files_world.files.rename_exact(files_world.path("runs", "R"), files_world.path("runs", "R.t1"))
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("runs", "R", "ready"), files_world.path("live"))


def test_a_rename_into_a_directory_that_was_renamed_away_fails(files_world):
    files_world.writer.add(files_world.path("live", "f"), "x")
    files_world.files.make_directory(files_world.path("runs", "R", "retired"))
    files_world.files.rename_exact(files_world.path("runs", "R"), files_world.path("runs", "R.t1"))
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("live"), files_world.path("runs", "R", "retired", "u"))
    assert names_in(look(files_world, files_world.path("live"))) == ["f"]


@pytest.mark.jvm
def test_renames_are_made_by_the_client_that_reads(request, files_world):
    """Observers tell each client no less than it has changed itself, so another client's rename may look as if it had not happened."""
    if files_world.kind != "hdfs":
        pytest.skip("only HDFS has observers")
    statistics = request.getfixturevalue("gateway").jvm.org.apache.hadoop.fs.GlobalStorageStatistics.INSTANCE
    # A FileContext, whose client is another one, is not counted.
    before = statistics.get("DFSOpsCountStatistics").getLong("op_rename")
    files_world.files.make_directory(files_world.path("a"))
    files_world.files.rename_exact(files_world.path("a"), files_world.path("b"))
    assert statistics.get("DFSOpsCountStatistics").getLong("op_rename") == before + 1


# ---- making and removing


def test_a_directory_may_be_made_twice_but_not_over_a_file(files_world):
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.writer.add(files_world.path("f"), "x")
    with pytest.raises(TargetExists):
        files_world.files.make_directory(files_world.path("f"))
    with pytest.raises(SourceMissing):
        files_world.files.make_directory(files_world.path("f", "below"))


def test_only_an_empty_directory_is_removed_as_empty(files_world):
    files_world.writer.add(files_world.path("full", ".hidden"), "x")
    files_world.files.make_directory(files_world.path("empty"))
    files_world.writer.add(files_world.path("f"), "x")
    assert files_world.files.remove_empty(files_world.path("empty"))
    assert not files_world.files.remove_empty(files_world.path("full"))
    assert not files_world.files.remove_empty(files_world.path("missing"))
    assert not files_world.files.remove_empty(files_world.path("f"))
    assert names_in(look(files_world, files_world.root)) == ["f", "full"]


def test_a_deleted_tree_is_gone_and_may_be_deleted_again(files_world):
    files_world.writer.add(files_world.path("t", "a", "f"), "x")
    files_world.writer.add(files_world.path("t2", "f"), "x")
    files_world.files.delete_tree(files_world.path("t"))
    files_world.files.delete_tree(files_world.path("t"))
    assert names_in(look(files_world, files_world.root)) == ["t2"]


def test_a_file_is_deleted_and_may_be_deleted_again_but_not_a_directory_with_files_at_its_path(files_world):
    files_world.writer.add(files_world.path("f"), "x")
    files_world.writer.add(files_world.path("t", "f"), "x")
    files_world.files.delete_file(files_world.path("f"))
    files_world.files.delete_file(files_world.path("f"))
    with pytest.raises(FilesUnavailable):
        files_world.files.delete_file(files_world.path("t"))
    assert names_in(look(files_world, files_world.root)) == ["t"]
    assert names_in(look(files_world, files_world.path("t"))) == ["f"]
