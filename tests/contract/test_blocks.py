"""What `ports.Files` promises about the blocks of files: they are moved to the end of another file, and cut off again, in one step."""

from __future__ import annotations

import pytest

from hivekeeper.ports import NotPossible, SourceMissing, SourceReplaced, TargetExists
from support.file_worlds import look, names_in


@pytest.fixture
def world(files_world):
    files_world.skip_on("local", "it has no blocks")
    for name in ("a", "b", "c"):
        files_world.writer.add(files_world.path("d", name), name * 3)
    return files_world


def entry(world, name):
    return world.files.stat(world.path("d", name))


def text(world, name):
    return "".join(world.files.read_pieces(entry(world, name)))


def concat(world, target, *sources):
    world.files.concat(world.path("d", target), [world.path("d", source) for source in sources])


def picture(world):
    return {name: text(world, name) for name in names_in(look(world, world.path("d")))}


def test_a_concat_moves_whole_files_in_the_order_asked_and_their_blocks_keep_their_numbers(world):
    blocks, target = world.files.blocks(world.path("d")), entry(world, "a")
    assert [len(one) for one in blocks.values()] == [1, 1, 1]
    assert {block.length for one in blocks.values() for block in one} == {3}
    concat(world, "a", "c", "b")
    assert picture(world) == {"a": "aaacccbbb"}
    assert world.files.blocks(world.path("d")) == {"a": (*blocks["a"], *blocks["c"], *blocks["b"])}
    assert (entry(world, "a").file_id, entry(world, "a").length) == (target.file_id, 9)
    assert entry(world, "a").mtime_ms >= target.mtime_ms


def test_a_file_that_was_written_to_again_or_replaced_has_another_block(world):
    before = world.files.blocks(world.path("d"))
    world.writer.delete(world.path("d", "b"))
    world.writer.add(world.path("d", "b"), "bbb")
    assert world.files.blocks(world.path("d"))["b"] != before["b"]
    assert {name: before[name] for name in "ac"} == {name: world.files.blocks(world.path("d"))[name] for name in "ac"}


def test_another_file_than_the_listed_one_has_no_blocks(world):
    before, known = world.files.blocks(world.path("d")), {name: entry(world, name).file_id for name in "abc"}
    world.writer.delete(world.path("d", "b"))
    world.writer.add(world.path("d", "b"), "bbb")
    world.writer.add(world.path("d", "new"), "new")
    assert world.files.blocks(world.path("d"), ids=known) == {name: before[name] for name in "ac"}
    assert world.files.blocks(world.path("d"), ids={}) == {}
    assert world.files.blocks(world.path("d", "b"), ids=known) == {}
    assert world.files.blocks(world.path("d", "a"), ids=known) == {"a": before["a"]}


def test_blocks_of_several_files_are_not_told_above_a_number_and_those_of_one_are(world):
    directory = world.path("d")
    assert len(world.files.blocks(directory, most=3)) == 3
    with pytest.raises(NotPossible, match="more than 2 blocks together"):
        world.files.blocks(directory, most=2)
    assert list(world.files.blocks(directory, ids={"a": entry(world, "a").file_id}, most=0)) == ["a"]
    concat(world, "a", "c", "b")
    assert [len(blocks) for blocks in world.files.blocks(directory, most=2).values()] == [3]


def test_a_directory_that_is_gone_has_no_blocks(world):
    assert world.files.blocks(world.path("gone")) == {}


@pytest.mark.parametrize("missing", ["a source", "the target"])
def test_a_concat_of_a_missing_file_changes_nothing(world, missing):
    before = picture(world)
    with pytest.raises(SourceMissing):
        concat(world, *(("a", "b", "gone") if missing == "a source" else ("gone", "b")))
    assert picture(world) == before


@pytest.mark.parametrize("why", ["open source", "open target", "empty source", "twice", "onto itself", "another directory"])
def test_a_concat_that_is_not_possible_changes_nothing(world, why):
    stream = world.writer.open(world.path("d", "open"), "x") if why.startswith("open") else None
    world.writer.add(world.path("d", "empty"), "")
    world.writer.add(world.path("other", "x"), "x")
    names = {
        "open source": ("a", "b", "open"),
        "open target": ("open", "a"),
        "empty source": ("a", "b", "empty"),
        "twice": ("a", "b", "b"),
        "onto itself": ("a", "b", "a"),
        "another directory": ("a", "b", "../other/x"),
    }
    before = names_in(look(world, world.path("d")))
    with pytest.raises(NotPossible):
        world.files.concat(world.path("d", names[why][0]), [world.files.qualify(world.path("d", name)) for name in names[why][1:]])
    assert names_in(look(world, world.path("d"))) == before
    assert (text(world, "a"), text(world, "b")) == ("aaa", "bbb")
    if stream is not None:
        world.writer.close(stream)


def cut(world, file, length):
    """As its blocks are now."""
    world.files.cut(file, length, world.files.blocks(file.path).get(file.name, ()))


def test_a_file_with_other_blocks_is_not_cut(world):
    """Somebody has written to it since these were asked for."""
    concat(world, "a", "b")
    joined, blocks = entry(world, "a"), world.files.blocks(world.path("d"))["a"]
    last = blocks[-1]
    for other in (last._replace(id=last.id + 1), last._replace(stamp=last.stamp + 1), last._replace(length=last.length + 1)):
        for expected in ((*blocks[:-1], other), blocks[:-1], (*blocks, other)):
            with pytest.raises(NotPossible):
                world.files.cut(joined, 3, expected)
    assert picture(world) == {"a": "aaabbb", "c": "ccc"}


def test_what_was_added_is_cut_off_again(world):
    before = world.files.blocks(world.path("d"))["a"]
    concat(world, "a", "b", "c")
    joined = entry(world, "a")
    cut(world, joined, 3)
    assert picture(world) == {"a": "aaa"}
    assert world.files.blocks(world.path("d")) == {"a": before}
    assert entry(world, "a").file_id == joined.file_id
    assert not entry(world, "a").is_open
    cut(world, entry(world, "a"), 3)
    assert picture(world) == {"a": "aaa"}


def test_a_file_is_cut_between_blocks_only_and_only_the_one_that_was_listed(world):
    concat(world, "a", "b")
    joined = entry(world, "a")
    for length in (2, 4, 7):
        with pytest.raises(NotPossible):
            cut(world, joined, length)
    with pytest.raises(SourceReplaced):
        cut(world, joined._replace(file_id=joined.file_id + 1), 3)
    with pytest.raises(SourceMissing):
        cut(world, joined._replace(path=world.path("d", "gone")), 3)
    assert picture(world) == {"a": "aaabbb", "c": "ccc"}


def test_an_open_file_is_not_cut(world):
    stream = world.writer.open(world.path("d", "open"), "x")
    with pytest.raises(NotPossible):
        cut(world, entry(world, "open"), 0)
    world.writer.close(stream)
    assert text(world, "open") == "x"


def test_local_files_have_no_blocks(files_world):
    for kind in ("fake", "hdfs"):
        files_world.skip_on(kind, "it has blocks")
    files_world.writer.add(files_world.path("d", "a"), "a")
    with pytest.raises(NotPossible):
        files_world.files.blocks(files_world.path("d"))
    with pytest.raises(NotPossible):
        files_world.files.concat(files_world.path("d", "a"), [files_world.path("d", "b")])
    with pytest.raises(NotPossible):
        files_world.files.cut(files_world.files.stat(files_world.path("d", "a")), 0, ())


def test_the_blocks_of_one_file_are_told_by_its_name(world):
    concat(world, "a", "b")
    assert world.files.blocks(world.path("d", "a")) == {"a": world.files.blocks(world.path("d"))["a"]}
    assert world.files.blocks(world.path("d", "gone")) == {}


def test_a_part_of_a_file_is_copied_to_a_new_one(world):
    concat(world, "a", "b", "c")
    joined = entry(world, "a")
    world.files.copy_part(joined, 3, 3, world.path("d", "copy"))
    assert picture(world) == {"a": "aaabbbccc", "copy": "bbb"}
    assert (entry(world, "copy").mode, entry(world, "copy").is_open) == (0o600, False)


def test_a_part_is_only_copied_of_the_file_that_was_listed_and_over_no_other(world):
    before = picture(world)
    with pytest.raises(TargetExists):
        world.files.copy_part(entry(world, "a"), 0, 3, world.path("d", "b"))
    with pytest.raises(SourceReplaced):
        world.files.copy_part(entry(world, "a")._replace(file_id=entry(world, "b").file_id), 0, 3, world.path("d", "copy"))
    with pytest.raises(SourceMissing):
        world.files.copy_part(entry(world, "a")._replace(path=world.path("d", "gone")), 0, 3, world.path("d", "copy"))
    with pytest.raises(SourceMissing):
        world.files.copy_part(entry(world, "a"), 0, 3, world.path("gone", "copy"))
    assert picture(world) == before


def test_a_file_is_found_by_its_id_wherever_it_was_moved(world):
    file, directory = entry(world, "a"), world.files.stat(world.path("d"))
    world.files.rename_exact(world.path("d"), world.path("e"))
    assert world.files.stat(world.path("d", "a")) is None
    assert all(world.files.is_anywhere(world.path(), one.file_id) for one in (file, directory))
    world.writer.delete(world.path("e", "a"))
    assert not world.files.is_anywhere(world.path(), file.file_id)
    assert world.files.is_anywhere(world.path(), directory.file_id)


def test_paths_are_found_by_ids_wherever_something_was_moved(world):
    near, file, directory = world.path("d"), entry(world, "a"), world.files.stat(world.path("d"))
    ids = {file.file_id: file.path, directory.file_id: ""}
    assert world.files.find_paths(near, ids) == {file.file_id: file.path, directory.file_id: directory.path}
    world.files.make_directory(world.path("deep", "er"))
    world.files.rename_exact(file.path, world.path("deep", "er", "b = 1"))
    world.files.rename_exact(near, world.path("e"))
    moved = world.files.qualify(world.path("deep", "er", "b = 1"))
    for near in (world.path(), world.path("deep"), moved, world.path("e"), world.path("gone")):
        assert world.files.find_paths(near, ids) == {file.file_id: moved, directory.file_id: world.files.qualify(world.path("e"))}
    world.writer.delete(moved)
    assert world.files.find_paths(world.path(), {**ids, 0: "", -1: "", 2**62: ""}) == {directory.file_id: entry_of(world, "e").path}


def entry_of(world, *parts):
    return world.files.stat(world.path(*parts))


def test_paths_of_many_are_found_at_once(world):
    for number in range(30):
        world.writer.add(world.path(f"p={number % 3}", f"q={number}", "f"), "x")
    entries = [entry_of(world, f"p={number % 3}", f"q={number}", "f") for number in range(30)]
    for former in ("", "q=1/f", "p=0/q=0/f", "../f", "//"):
        found = world.files.find_paths(world.path(), {one.file_id: former for one in entries})
        assert found == {one.file_id: one.path for one in entries}
