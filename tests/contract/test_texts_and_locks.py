"""What `ports.Files` promises of texts, of a number that exactly one committer gets, and of the lock: on the fake and on Hadoop."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hivekeeper import names
from hivekeeper.ports import (
    FilesError,
    LockHeld,
    SourceMissing,
    TargetExists,
)
from support.fakes.files import FakeFiles
from support.file_worlds import look, names_in, text_of, texts_below

# ---- texts


def test_a_text_is_written_once_and_read_back(files_world):
    text = 'line\n"quoted" ü 日本 \\ \t\n'
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.files.write_new(files_world.path("a", "b", "t"), text)
    assert text_of(files_world.files, files_world.path("a", "b", "t")) == text
    with pytest.raises(TargetExists):
        files_world.files.write_new(files_world.path("a", "b", "t"), "other")
    assert text_of(files_world.files, files_world.path("a", "b", "t")) == text


def test_a_text_of_any_length_is_written_and_read_in_pieces(files_world):
    # Three-byte characters and two-byte line ends, so that some of them cross the edge of a piece.
    lines = [f"{number} 日本\r\n" * 50_000 for number in range(10)]
    files_world.files.write_new(files_world.path("t"), iter(lines))
    assert text_of(files_world.files, files_world.path("t")) == "".join(lines)
    with pytest.raises(TargetExists):
        files_world.files.write_new(files_world.path("t"), iter(lines))


@pytest.mark.parametrize("size", [1, 1000, 9_000_000])
def test_bytes_are_written_and_read_as_they_are(files_world, size):
    content = random.Random(size).randbytes(size)
    files_world.files.write_new(files_world.path("t"), content, 0o600)
    listed = files_world.files.stat(files_world.path("t"))
    assert (listed.length, listed.mode) == (size, 0o600)
    assert b"".join(files_world.files.read_bytes(listed)) == content
    with pytest.raises(TargetExists):
        files_world.files.write_new(files_world.path("t"), content)
    files_world.writer.delete(files_world.path("t"))
    with pytest.raises(SourceMissing):
        list(files_world.files.read_bytes(listed))


@pytest.mark.parametrize("text", ["", "a", "日本"])
def test_a_short_text_has_its_pieces_too(files_world, text):
    files_world.files.write_new(files_world.path("t"), iter(text))
    assert text_of(files_world.files, files_world.path("t")) == text


def test_who_holds_a_lock_is_the_end_of_a_file_of_any_length(files_world):
    files_world.writer.add(files_world.path("c", "lock"), "日" * 3_000_000 + "\n")
    lock = files_world.files.hold(files_world.path("c", "lock"), "run one")
    with pytest.raises(LockHeld) as held:
        files_world.another_client().hold(files_world.path("c", "lock"), "run two")
    assert held.value.holder == "run one"
    lock.release()


def test_a_text_is_not_written_below_a_directory_that_was_taken_away(files_world):
    files_world.files.make_directory(files_world.path("runs", "R"))
    files_world.files.rename_exact(files_world.path("runs", "R"), files_world.path("runs", "R.t1"))
    with pytest.raises(SourceMissing):
        files_world.files.write_new(files_world.path("runs", "R", "entry.json"), "late")
    assert names_in(look(files_world, files_world.path("runs"))) == ["R.t1"]


def test_a_missing_text_is_an_error_alone_and_left_out_among_many(files_world):
    for name in "gt":
        files_world.files.write_new(files_world.path(name), "text")
    gone, there = (files_world.files.stat(files_world.path(name)) for name in "gt")
    files_world.writer.delete(files_world.path("g"))
    with pytest.raises(SourceMissing):
        list(files_world.files.read_pieces(gone))
    assert files_world.files.read_texts([gone, there]) == {there.path: "text"}
    assert files_world.files.read_texts([]) == {}


def test_the_owner_of_a_file_that_this_user_has_made_is_this_user(files_world):
    files_world.files.write_new(files_world.path("t"), "text")
    assert files_world.files.stat(files_world.path("t")).owner == files_world.files.user_at(files_world.path("t"))


ROUNDS = 100


@pytest.fixture
def impatient_threads():
    """Threads switch at every opportunity, not every few milliseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("impatient_threads")
def test_of_two_committers_at_once_exactly_one_gets_the_number(files_world):
    files_world.files.make_directory(files_world.path("log"))
    start = threading.Barrier(2, timeout=600)

    def commit(client, name):
        """The numbers that this committer got."""
        won = []
        for number in range(ROUNDS):
            client.write_new(files_world.path("log", f".{number}.{name}"), f"{name} {number}")
            start.wait()
            try:
                client.rename_exact(files_world.path("log", f".{number}.{name}"), files_world.path("log", str(number)))
                won.append(number)
            except TargetExists:
                pass
        return won

    with ThreadPoolExecutor(2) as pool:
        won = dict(zip("ab", pool.map(commit, [files_world.another_client(), files_world.another_client()], "ab")))
    assert sorted(won["a"] + won["b"]) == list(range(ROUNDS))
    expected = {str(number): f"{name} {number}" for name in "ab" for number in won[name]}
    lost = {f".{number}.{name}": f"{name} {number}" for name in "ab" for number in range(ROUNDS) if number not in won[name]}
    assert texts_below(files_world, files_world.path("log")) == {**expected, **lost}


# ---- the lock


def test_a_lock_makes_its_directory_and_none_around_it(files_world):
    """That may be away for a moment: a rename of another one to its place would go into it (FileSystem.rename)."""
    table = files_world.path("away")
    with pytest.raises(SourceMissing):
        files_world.files.hold(f"{table}/c/lock", "us")
    assert files_world.files.stat(table) is None
    files_world.writer.make_directory(table)
    files_world.files.hold(f"{table}/c/lock", "us").release()
    made = files_world.files.stat(f"{table}/c")
    assert made is not None
    assert made.mode == 0o700
    # It may be there already, of an earlier run.
    files_world.files.hold(f"{table}/c/lock", "us").release()
    assert names_in(look(files_world, table)) == ["c"]


def test_a_directory_that_a_lock_makes_has_the_seal_and_one_that_is_there_gets_none(files_world):
    files, there = files_world.files, files_world.path("there")
    files.make_directory(there)
    files.hold(f"{there}/lock", "us").release()
    assert names_in(look(files_world, there)) == ["lock"]
    made = files_world.path("made, with a name of its own")
    files.hold(f"{made}/lock", "us").release()
    seal = look(files_world, made).entries[0]
    assert (seal.name, seal.is_dir, seal.length, seal.mode, seal.owner) == (names.SEAL, False, 0, 0o600, files.user_at(seal.path))


def test_a_file_at_the_place_of_the_directory_of_a_lock_stays(files_world):
    files_world.writer.add(files_world.path("c"), "theirs")
    with pytest.raises(FilesError):
        files_world.files.hold(files_world.path("c", "lock"), "us")
    assert names_in(look(files_world, files_world.root)) == ["c"]


def test_a_held_lock_is_refused_to_others_and_to_its_own_holder(files_world):
    lock = files_world.files.hold(files_world.path("c", "lock"), "run one\non host")
    for client in (files_world.another_client(), files_world.files):
        with pytest.raises(LockHeld) as held:
            client.hold(files_world.path("c", "lock"), "run two")
        assert held.value.holder == "run one on host"
    assert lock.check()
    lock.release()


def test_a_released_lock_can_be_taken_and_shows_its_new_holder(files_world):
    files_world.files.hold(files_world.path("c", "lock"), "run one").release()
    other = files_world.another_client()
    lock = other.hold(files_world.path("c", "lock"), "run two")
    with pytest.raises(LockHeld) as held:
        files_world.files.hold(files_world.path("c", "lock"), "run three")
    assert held.value.holder == "run two"
    assert lock.check()
    lock.release()


def test_the_lock_file_taken_by_another_program_is_noticed(files_world):
    lock = files_world.files.hold(files_world.path("c", "lock"), "run one")
    files_world.writer.delete(files_world.path("c", "lock"))
    assert not lock.check()
    files_world.writer.add(files_world.path("c", "lock"), "somebody else")
    assert not lock.check()
    lock.release()
    assert text_of(files_world.files, files_world.path("c", "lock")) == "somebody else"


def test_a_lock_whose_directory_was_renamed_away_is_lost(files_world):
    lock = files_world.files.hold(files_world.path("c", "lock"), "run one")
    files_world.files.rename_exact(files_world.path("c"), files_world.path("moved"))
    assert not lock.check()
    lock.release()


def test_the_lock_of_a_dead_holder_can_be_taken(files_world):
    files_world.skip_on("hdfs", "a lease takes a minute to end, and its holder has to be killed: done in the cluster suite")
    path = files_world.path("c", "lock")
    if files_world.kind == "fake":
        files_world.another_client().hold(path, "dead run")
        files_world.files.expire_locks()
    else:
        files_world.files.make_directory(files_world.path("c"))
        code = "import fcntl, os, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); os.kill(os.getpid(), 9)"
        subprocess.run([sys.executable, "-c", code, path.partition(":")[2]], check=False)
    lock = files_world.files.hold(path, "next run")
    assert lock.check()
    lock.release()


def test_a_lost_lease_is_noticed_by_its_holder():
    files = FakeFiles()
    lock = files.hold("/c/_lock", "sleeper")
    files.expire_locks()
    taken = files.another_client().hold("/c/_lock", "taker")
    assert not lock.check()
    assert taken.check()
