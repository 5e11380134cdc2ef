"""The catalogue's files: what a reader sees at any moment, with kills, lost answers and several writers."""

import json
import uuid
from contextlib import nullcontext, suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.catalogue import commits
from hivekeeper.catalogue import store as store_module
from hivekeeper.catalogue.columns import VIEWS
from hivekeeper.catalogue.commits import DELETE, EXPIRE, OVERWRITE, PURGE
from hivekeeper.catalogue.store import Part
from hivekeeper.errors import NeedsInvestigation, Refused, Unusable
from hivekeeper.model import Guard
from hivekeeper.ports import FilesError, FilesUnavailable, NoPermission, NoSpace, SourceMissing, TargetExists
from hivekeeper.reasons import Code
from support.catalogues import ROOT, a_store, content, put, short_row
from support.fakes.files import Killed
from support.world import World

DAY = 86_400_000


@pytest.fixture
def world():
    world = World()
    world.files.writer.make_directory(ROOT)
    return world


@pytest.fixture
def store(world):
    return a_store(world.cluster)


class WrongClock:
    """Of a machine that is ahead of the NameNode, or behind."""

    def __init__(self, world, ahead_ms):
        self._world, self._ahead_ms = world, ahead_ms

    def now_ms(self):
        return self._world.clock.now_ms() + self._ahead_ms

    def sleep_ms(self, _ms):
        pass


def data_directories(world, store):
    return {entry.name for entry in world.files.look([store.data])[store.data].entries}


def commits_of(world, store):
    return [entry.name for entry in world.files.look([store.log])[store.log].entries]


def test_a_component_that_was_never_written_is_empty(store):
    assert store.newest() == (-1, None)
    assert content(store) == {}


def test_rows_are_replaced_by_key_and_all_others_stay(store):
    assert put(store, "01", "a", x=1, y=2) == 0
    assert put(store, "01", "b", x=3) == 1
    put(store, "02", "c", x=4)
    assert put(store, "01", "a", y=5, z=6) == 3
    assert content(store) == {("a", "y"): 5, ("a", "z"): 6, ("b", "x"): 3, ("c", "x"): 4}


def test_several_parts_change_in_one_commit(world, store):
    put(store, "01", "a", x=1)
    put(store, "02", "b", x=2)
    without = [("hive", "sales", "a"), ("hive", "sales", "b")]
    store.change(DELETE, lambda _before: [Part("01", without), Part("02", without)])
    assert content(store) == {}
    assert len(commits_of(world, store)) == 3
    assert store.newest()[1].files == ()


def test_a_change_of_nothing_writes_no_commit(world, store):
    put(store, "01", "a", x=1)
    before = world.picture()
    assert store.change(OVERWRITE, lambda _before: [])[0] == 0
    assert world.picture() == before


def test_a_purge_takes_all_rows_and_leaves_history_and_files(world, store):
    put(store, "01", "a", x=1)
    put(store, "02", "b", x=2)
    files = data_directories(world, store)
    version, commit = store.change(PURGE, lambda before: [Part(name, (), is_whole=True) for name in before.by_part])
    assert (version, commit.files, content(store)) == (2, (), {})
    assert data_directories(world, store) == files
    assert set(commit.removed) == {f"data/{name}" for name in files}
    assert len(commits_of(world, store)) == 3
    put(store, "01", "a", x=3)
    assert content(store) == {("a", "x"): 3}


# ---- expiry


@pytest.mark.parametrize("expire_after_ms", [1000, 3 * DAY])
def test_what_was_replaced_goes_after_its_time_and_not_before(world, expire_after_ms):
    store = a_store(world.cluster, expire_after_ms)
    put(store, "01", "a", x=1)
    first = data_directories(world, store)
    put(store, "01", "a", x=2)
    world.files.namespace.advance(expire_after_ms - 500)
    put(store, "02", "b", x=3)
    assert first < data_directories(world, store)
    assert len(commits_of(world, store)) == 3
    world.files.namespace.advance(501)
    put(store, "02", "b", x=4)
    assert not first & data_directories(world, store)
    assert content(store) == {("a", "x"): 2, ("b", "x"): 4}
    assert names.log_entry(3) in commits_of(world, store)
    # Not before a day: a writer may be about to take the next number.
    assert (names.log_entry(0) in commits_of(world, store)) is (expire_after_ms < DAY)


def test_commits_expire_oldest_first_even_if_the_clock_was_set_back(world):
    store = a_store(world.cluster, 1000)
    world.files.namespace.advance(3 * DAY)
    put(store, "01", "a", x=1)
    world.files.namespace.advance(-3 * DAY)
    put(store, "01", "a", x=2)
    world.files.namespace.advance(2 * DAY)
    put(store, "01", "a", x=3)
    # The second one is over, the first one, by the clock, is of tomorrow.
    assert commits_of(world, store) == [names.log_entry(number) for number in range(3)]


def test_without_a_time_nothing_goes(world, store):
    for number in range(5):
        put(store, "01", "a", x=number)
        world.files.namespace.advance(1000 * DAY)
    assert len(data_directories(world, store)) == len(commits_of(world, store)) == 5


@pytest.mark.parametrize("expire_after_ms", [None, 864_000_000], ids=["never", "10d"])
def test_a_commit_never_names_more_than_is_read_again(world, monkeypatch, expire_after_ms):
    """One line for each replaced file until it expires: some hundred commands an hour, or a catalogue whose files never do."""
    monkeypatch.setattr(commits, "MOST_FILES", 10)
    store = a_store(world.cluster, expire_after_ms)
    for number in range(15):
        put(store, "01", f"t{number}", x=number)
        world.wait(60_000)
    (_, commit), directories = store.newest(), world.files.look([store.data])[store.data].entries
    assert len(content(store)) == 15
    assert len(commit.files) + len(commit.removed) == 10
    assert min(commit.removed.values()) > world.clock.now_ms() - 11 * 60_000
    assert len(directories) == (10 if expire_after_ms else 15)


def test_expire_removes_what_is_over_and_commits_nothing_new(world):
    store = a_store(world.cluster, 1000)
    put(store, "01", "a", x=1)
    put(store, "01", "a", x=2)
    world.files.namespace.advance(2000)
    store.change(EXPIRE, lambda _before: ())
    assert len(data_directories(world, store)) == 1
    assert content(store) == {("a", "x"): 2}


def test_only_directories_of_rows_are_ever_removed(world):
    store = a_store(world.cluster, 1)
    put(store, "01", "a", x=1)
    for name in ("notes", str(uuid.uuid4()).upper()):
        world.files.writer.add(f"{store.data}/{name}/file", "somebody's")
    world.files.writer.add(f"{store.top}/commit.json", "somebody's")
    world.files.namespace.advance(9 * DAY)
    put(store, "01", "a", x=2)
    assert {"notes"} < data_directories(world, store)
    assert list(world.picture().values()).count("somebody's") == 3


@pytest.mark.parametrize("fails", [False, True], ids=["expiry", "discard"])
def test_another_directory_that_somebody_puts_at_the_place_of_one_that_goes_is_not_deleted(world, monkeypatch, fails):
    """Whoever may write beside the catalogue, and rename a table's directory, whose rows they may not read."""
    store, files, victim = a_store(world.cluster, 1), world.files, "hdfs://nn/warehouse/sales/events"
    put(store, "01", "a", x=1)
    files.writer.add(f"{victim}/part-0", "rows")
    put(store, "01", "a", x=2)
    files.namespace.advance(9 * DAY)
    if fails:
        files.fail_next("write_new", NoSpace("no space left"))

    def exchange_before(delete):
        def exchanged(path, *more):
            if path.startswith(f"{store.data}/") and files.namespace.find(victim):
                directory = names.join(store.data, path[len(store.data) + 1 :].partition("/")[0])
                files.writer.delete(directory)
                files.another_client().rename_exact(victim, directory)
            delete(path, *more)

        return exchanged

    for name in ("delete_tree", "delete_file"):
        monkeypatch.setattr(files, name, exchange_before(getattr(files, name)))
    with pytest.raises(NoSpace) if fails else nullcontext():
        put(store, "02", "b", x=3)
    assert not files.namespace.find(victim)
    assert "rows" in world.picture().values()


@pytest.mark.parametrize("end", ["/log", "/data", "/data/"])
def test_another_tables_directory_that_somebody_puts_in_the_place_of_a_new_one_is_not_opened(world, store, end):
    """Whoever may write to the base path, and rename a directory of this user, whose rows they may not read."""
    files, victim, done = world.files, "hdfs://nn/warehouse/sales/salaries", []
    files.make_directory(victim)
    files.write_new(f"{victim}/part-0", "rows")
    node = files.namespace.find(victim)

    def exchange(step):
        word, _, path = step.partition(" ")
        if word == "guard" and end in path and not done:
            done.append(path)
            files.writer.rename_into(names.parent(store.top), f"{ROOT}/aside")
            files.writer.make_directory(names.parent(path))
            files.writer.rename_into(victim, path)

    files.before_step = exchange
    with suppress(FilesError, NeedsInvestigation):
        put(store, "01", "a", x=1)
    files.before_step = None
    assert done
    assert files.namespace.find(done[0]) is node
    assert [found.mode for found in (files.stat(done[0]), files.stat(f"{done[0]}/part-0"))] == [0o700, 0o600]


@pytest.mark.parametrize("end", ["/tables", "/log", "/data"])
def test_another_tables_directory_that_is_there_when_a_new_one_is_first_looked_at_is_not_opened(world, store, monkeypatch, end):
    """By its own id: somebody has exchanged the new one just after it was made."""
    files, victim, done = world.files, "hdfs://nn/warehouse/sales/salaries", []
    files.make_directory(victim)
    files.write_new(f"{victim}/part-0", "rows")
    make = files.make_directory

    def exchange_after(path):
        make(path)
        if path.endswith(end) and not done:
            done.append(path)
            files.writer.rename_into(path, f"{ROOT}/aside")
            files.writer.rename_into(victim, path)

    monkeypatch.setattr(files, "make_directory", exchange_after)
    with suppress(FilesError, NeedsInvestigation):
        put(store, "01", "a", x=1)
    assert [found.mode for found in (files.stat(done[0]), files.stat(f"{done[0]}/part-0"))] == [0o700, 0o600]


def test_entries_of_a_tables_log_that_come_to_the_place_of_expired_commits_stay(world, monkeypatch):
    """They have the same names. Whoever may write around the base path exchanges it between the listing and the deletions."""
    of_table = f"{names.parent(ROOT)}/orders/.hivekeeper/log"
    world.files.writer.make_directory(of_table)
    for version in range(3):
        world.files.write_new(f"{of_table}/{names.log_entry(version)}", "{}", 0o600)
    store = a_store(world.cluster, expire_after_ms=DAY)
    for number in range(3):
        put(store, "01", "a", x=number)
    world.files.namespace.advance(9 * DAY)
    delete, stranger = world.files.delete_file, world.files.another_client()

    def exchanged(path, *ids):
        if path.startswith(f"{store.log}/") and stranger.stat(f"{ROOT}.away") is None:
            stranger.rename_exact(ROOT, f"{ROOT}.away")
            stranger.make_directory(store.top)
            stranger.rename_exact(of_table, store.log)
        return delete(path, *ids)

    monkeypatch.setattr(world.files, "delete_file", exchanged)
    put(store, "01", "a", x=9)
    assert [entry.name for entry in stranger.look([store.log])[store.log].entries] == [names.log_entry(version) for version in range(3)]
    expired = [entry.name for entry in stranger.look([f"{ROOT}.away{store.log[len(ROOT) :]}"]).popitem()[1].entries]
    assert names.log_entry(0) not in expired


def test_files_of_a_killed_writer_go_a_day_later(world):
    store = a_store(world.cluster, 1)
    put(store, "01", "a", x=1)
    world.files.before_step = lambda what: world.files.die_after(0) if what.startswith("rename_exact") else None
    with pytest.raises(Killed):
        put(store, "02", "b", x=2)
    world.files.before_step = None
    world.files.revive()
    assert len(data_directories(world, store)) == 2
    put(store, "03", "c", x=3)
    assert len(data_directories(world, store)) == 3
    world.files.namespace.advance(2 * DAY)
    store.change(EXPIRE, lambda _before: ())
    assert len(data_directories(world, store)) == 2
    assert [entry.name for entry in world.files.look([store.top])[store.top].entries] == ["data", "log"]


# ---- kills, lost answers, other writers


def test_killed_at_any_step_a_reader_sees_all_of_a_change_or_nothing(world):
    old, new = {("a", "x"): 1, ("b", "x"): 2}, {("a", "x"): 3, ("b", "x"): 4}
    seen = []
    for step in range(100):
        world = World()
        world.files.writer.make_directory(ROOT)
        store = a_store(world.cluster, expire_after_ms=1)
        put(store, "01", "a", x=1)
        put(store, "02", "b", x=2)
        world.files.namespace.advance(10)
        world.files.die_after(step)
        rows = {"01": ("a", 3), "02": ("b", 4)}

        def parts(_before, rows=rows):
            return [
                Part(part, [("hive", "sales", table)], lambda t=table, f=files: [short_row(t, "x", f)])
                for part, (table, files) in rows.items()
            ]

        try:
            store.change(OVERWRITE, parts)
            break
        except Killed:
            world.files.revive()
        seen.append(content(store))
        assert seen[-1] in (old, new)
        put(store, "01", "a", x=5)
        assert content(store)[("a", "x")] == 5
    assert old in seen
    assert new in seen
    assert content(store) == new


def test_two_writers_lose_nothing_whenever_the_second_one_commits(world):
    steps = []
    for step in range(100):
        world = World()
        world.files.writer.make_directory(ROOT)
        put(a_store(world.cluster), "01", "a", x=1)
        other, count = world.another_process(), [0]

        def interrupt(_what, step=step, other=other, count=count):
            if count[0] == step:
                put(a_store(other, expire_after_ms=1), "01", "b", x=2)
                put(a_store(other, expire_after_ms=1), "02", "c", x=3)
            count[0] += 1

        world.files.before_step = interrupt
        put(a_store(world.cluster, expire_after_ms=1), "01", "d", x=4)
        world.files.before_step = None
        steps.append(count[0])
        if count[0] <= step:
            break
        assert content(a_store(world.cluster)) == {("a", "x"): 1, ("b", "x"): 2, ("c", "x"): 3, ("d", "x"): 4}
        named = {file.place for file in a_store(world.cluster).newest()[1].files}
        assert {f"data/{name}" for name in data_directories(world, a_store(world.cluster))} >= named
    assert len(steps) > 5


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("method", ["rename_exact", "write_new", "make_directory", "guard", "put"])
def test_an_answer_that_is_lost_leaves_all_or_nothing(world, store, method, done):
    put(store, "01", "a", x=1)
    world.files.fail_next(method, FilesUnavailable("connection reset"), done)
    if method == "rename_exact" and done:
        assert put(store, "01", "a", x=2) == 1
        assert content(store) == {("a", "x"): 2}
        return
    with pytest.raises(FilesUnavailable):
        put(store, "01", "a", x=2)
    assert content(store) == {("a", "x"): 1}
    put(store, "01", "a", x=3)
    assert content(store) == {("a", "x"): 3}


class Interrupted:
    """Files of which one method fails once, after what it did."""

    def __init__(self, files, method, error, after):
        self._files, self._method, self._error, self._after = files, method, error, after

    def __getattr__(self, name):
        real = getattr(self._files, name)
        if name != self._method:
            return real

        def fail(*arguments):
            result = real(*arguments)
            if self._after(*arguments) and self._error:
                error, self._error = self._error, None
                raise error
            return result

        return fail


def is_entry(path, *_):
    return "/log/" in path


@pytest.mark.parametrize("error", [FilesUnavailable("no answer"), NoPermission("no answer")])
def test_after_the_commit_may_be_in_place_no_error_takes_the_files_that_it_names(world, error):
    put(a_store(world.cluster), "01", "a", x=1)
    files = Interrupted(world.files, "stat", error, is_entry)
    with pytest.raises(type(error)):
        put(a_store(replace(world.cluster, files=files)), "01", "b", x=2)
    assert content(a_store(world.cluster)) == {("a", "x"): 1, ("b", "x"): 2}


@pytest.mark.parametrize("error", [FilesUnavailable("no answer"), SourceMissing("the client asked twice")])
def test_a_commit_whose_answer_was_lost_is_found_although_another_follows_it(world, error):
    put(a_store(world.cluster), "01", "a", x=1)

    def overtaken(_source, target):
        if is_entry(target):
            put(a_store(world.another_process()), "02", "c", x=3)
        return is_entry(target)

    files = Interrupted(world.files, "rename_exact", error, overtaken)
    assert put(a_store(replace(world.cluster, files=files)), "01", "b", x=2) == 1
    assert content(a_store(world.cluster)) == {("a", "x"): 1, ("b", "x"): 2, ("c", "x"): 3}


def test_a_commit_of_another_writer_is_not_taken_for_the_own_one(world):
    put(a_store(world.cluster), "01", "a", x=1)

    def overtaken(_source, target):
        put(a_store(world.another_process()), "02", "c", x=3)
        return is_entry(target)

    class Lost(Interrupted):
        """The answer is lost, and nothing was done."""

        def rename_exact(self, source, target):
            if overtaken(source, target):
                raise FilesUnavailable("no answer")

    files = Lost(world.files, "", None, None)
    with pytest.raises(FilesUnavailable):
        put(a_store(replace(world.cluster, files=files)), "01", "b", x=2)
    assert content(a_store(world.cluster)) == {("a", "x"): 1, ("c", "x"): 3}


def test_a_directory_that_another_writer_has_just_made_stays_whatever_this_machines_clock_says(world):
    store, fresh = a_store(replace(world.cluster, clock=WrongClock(world, 40 * DAY)), expire_after_ms=DAY), str(uuid.uuid4())

    def make_another(what):
        if what.startswith("rename_exact"):
            world.files.writer.make_directory(f"{store.data}/{fresh}")

    world.files.before_step = make_another
    put(store, "01", "a", x=1)
    assert fresh in data_directories(world, store)


def test_rows_that_expire_while_they_are_written_again_leave_nothing_behind(world):
    store = a_store(world.cluster)
    put(store, "01", "a", x=1)
    put(store, "02", "b", x=2)
    source = next(file for file in store.newest()[1].files if file.part == "02")
    aside = f"{ROOT}/aside"
    tries = []

    def parts(_before):
        tries.append(1)
        yield Part("01", [("hive", "sales", "a")], lambda: [short_row("a", "x", 3)])
        place = names.join(store.top, source.place)
        world.files.writer.rename_into(*((place, aside) if len(tries) == 1 else (aside, place)))
        yield Part("02", [], lambda: [short_row("b", "y", 4)])

    store.change(OVERWRITE, parts)
    assert len(tries) == 2
    assert content(store) == {("a", "x"): 3, ("b", "x"): 2, ("b", "y"): 4}
    # Of the first try nothing is left: two files of now, two of before.
    assert len(data_directories(world, store)) == 4


@pytest.mark.parametrize("ahead_ms", [-40 * DAY, 40 * DAY])
def test_a_wrong_clock_of_this_machine_takes_nothing_that_another_writer_is_about_to_commit(world, ahead_ms):
    store = a_store(replace(world.cluster, clock=WrongClock(world, ahead_ms)), expire_after_ms=DAY)
    other = a_store(world.another_process(), DAY)
    put(store, "01", "a", x=1)
    made = []

    def write_meanwhile(_before):
        made.append(1)
        yield Part("02", [], lambda: [short_row("b", "x", 2)])
        if len(made) == 1:
            # The other one has written its file, and has not committed it yet.
            put(store, "03", "c", x=3)

    other.change(OVERWRITE, write_meanwhile)
    assert content(store) == {("a", "x"): 1, ("b", "x"): 2, ("c", "x"): 3}


@pytest.mark.parametrize("ahead_ms", [-40 * DAY, 40 * DAY])
def test_a_wrong_clock_of_this_machine_takes_nothing_that_readers_of_an_older_state_need(world, ahead_ms):
    right = a_store(world.another_process(), 3 * DAY)
    wrong = a_store(replace(world.cluster, clock=WrongClock(world, ahead_ms)), 3 * DAY)
    put(right, "01", "a", x=1)
    put(right, "01", "a", x=2)
    put(wrong, "01", "a", x=3)
    put(wrong, "01", "a", x=4)
    put(right, "02", "b", x=5)
    assert len(data_directories(world, right)) == 5
    world.files.namespace.advance(4 * DAY)
    put(wrong, "02", "c", x=6)
    # Those in use, and the one that has just been replaced.
    assert len(data_directories(world, right)) == 3


def test_nothing_is_written_where_somebody_else_waits_for_it(world, store):
    world.files.writer.make_directory(store.top)
    world.files.namespace.find(store.top).attributes = replace(world.files.namespace.find(store.top).attributes, owner="mallory")
    before = world.picture()
    with pytest.raises(NeedsInvestigation) as stopped:
        put(store, "01", "a", x=1)
    assert stopped.value.reason.code is Code.RECORDS_OF_ANOTHER
    assert world.picture() == before


class Sleeping:
    """Files of a process that sleeps for days before or after its commit gets its number, or after that was looked at, while another one
    commits.
    """

    def __init__(self, world, when):
        self._files, self._when, self._other = world.files, when, a_store(world.another_process(), 1000)
        self._advance = world.files.namespace.advance

    def __getattr__(self, name):
        return getattr(self._files, name)

    def rename_exact(self, source, target):
        if self._when == "before":
            self._sleep()
        self._files.rename_exact(source, target)
        if self._when == "after":
            self._sleep()

    def stat(self, path):
        found = self._files.stat(path)
        if self._when == "at last" and is_entry(path):
            self._sleep()
        return found

    def _sleep(self):
        for number in range(3):
            self._advance(3 * DAY)
            put(self._other, f"0{number + 3}", f"c{number}", x=number)


@pytest.mark.parametrize("when", ["before", "after", "at last"])
def test_a_writer_that_slept_for_days_says_so_and_takes_nothing_that_others_name(world, when):
    store = a_store(world.cluster, 1000)
    for number in range(3):
        put(store, "01", "a", x=number)
    sleeper = a_store(replace(world.cluster, files=Sleeping(world, when)), 1000)
    # Its own unfinished commit has gone meanwhile, so it cannot take a number that is free again.
    errors = {"before": pytest.raises(SourceMissing), "after": pytest.raises(Unusable), "at last": nullcontext()}
    with errors[when]:
        put(sleeper, "02", "b", x=2)
    others = {("a", "x"): 2, ("c0", "x"): 0, ("c1", "x"): 1, ("c2", "x"): 2}
    assert content(store) == (others if when == "before" else {**others, ("b", "x"): 2})
    put(store, "02", "b", x=3)
    assert content(store) == {**others, ("b", "x"): 3}


def test_without_space_nothing_changes_and_nothing_is_left(world, store):
    put(store, "01", "a", x=1)
    files = data_directories(world, store)
    world.files.fail_next("write_new", NoSpace("quota"))
    with pytest.raises(NoSpace):
        put(store, "01", "a", x=2)
    assert data_directories(world, store) == files
    assert content(store) == {("a", "x"): 1}


def test_a_writer_that_always_loses_gives_up(world, store, monkeypatch):
    put(store, "01", "a", x=1)
    other = a_store(world.another_process())
    monkeypatch.setattr(store_module, "MOST_TRIES", 3)

    def win(what):
        if what.startswith("rename_exact"):
            put(other, "02", "b", x=1)

    world.files.before_step = win
    with pytest.raises(Unusable):
        put(store, "01", "a", x=2)
    assert content(other) == {("a", "x"): 1, ("b", "x"): 1}
    assert len(other.newest()[1].files) == 2


def test_a_name_that_is_taken_fails_the_change(store, monkeypatch):
    put(store, "01", "a", x=1)
    taken = uuid.UUID(store.newest()[1].files[0].place.partition("/")[2])
    monkeypatch.setattr(uuid, "uuid4", lambda: taken)
    with pytest.raises(TargetExists):
        put(store, "01", "a", x=2)
    monkeypatch.undo()
    assert content(store) == {("a", "x"): 1}


# ---- what lies there is a stranger's


def rewrite_newest(world, store, change):
    version, _ = store.newest()
    path = names.join(store.log, names.log_entry(version))
    text = change(world.files.content(path))
    world.files.delete_tree(path)
    world.files.write_new(path, text)


def test_a_commit_that_is_cut_off_is_not_believed_and_a_purge_begins_anew(world, store):
    put(store, "01", "a", x=1)
    rewrite_newest(world, store, lambda text: text[: len(text) // 2])
    with pytest.raises(NeedsInvestigation) as stopped:
        content(store)
    assert stopped.value.reason.code is Code.CATALOGUE_UNREADABLE
    with pytest.raises(NeedsInvestigation):
        put(store, "01", "a", x=2)
    version, commit = store.change(PURGE, lambda before: [Part(name, (), is_whole=True) for name in (before.by_part if before else ())])
    assert (version, commit.files) == (1, ())
    put(store, "01", "a", x=3)
    assert content(store) == {("a", "x"): 3}


def test_a_commit_that_is_longer_than_any_is_not_read(store, monkeypatch):
    put(store, "01", "a", x=1)
    monkeypatch.setattr(store_module, "MOST_COMMIT_BYTES", 100)
    with pytest.raises(NeedsInvestigation, match="more than 100"):
        store.newest()


def test_a_commit_of_a_newer_version_is_not_believed(world, store):
    put(store, "01", "a", x=1)
    rewrite_newest(world, store, lambda text: text.replace('"minReaderVersion":1', '"minReaderVersion":2'))
    with pytest.raises(Refused) as refused:
        content(store)
    assert refused.value.reason.code is Code.NEWER_LOG


@pytest.mark.parametrize("place", ["data/../../../warehouse/sales", "/warehouse/sales", "data", "data/.", "log", ""])
@pytest.mark.parametrize("action", ["add", "remove"])
def test_a_commit_cannot_name_anything_but_rows(world, store, place, action):
    put(store, "01", "a", x=1)
    put(store, "01", "a", x=2)

    def forge(text):
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            if action in line:
                line[action]["path"] = f"{place}/x.parquet" if action == "add" else place
        return "".join(json.dumps(line) + "\n" for line in lines)

    rewrite_newest(world, store, forge)
    with pytest.raises(NeedsInvestigation):
        content(store)


@pytest.mark.parametrize("below", ["..", "", "log", "data", f"log/{names.log_entry(0)}"])
def test_what_others_own_or_may_write_is_not_believed(world, store, below):
    put(store, "01", "a", x=1)
    path = {"..": names.parent(store.top), "": store.top}.get(below) or names.join(store.top, below)
    world.files.guard({path: Guard(0o772, 0o646)})
    with pytest.raises(NeedsInvestigation) as stopped:
        content(store)
    assert stopped.value.reason.code is Code.RECORDS_OF_ANOTHER


def give(world, path, **attributes):
    node = world.files.namespace.find(path)
    node.attributes = replace(node.attributes, **attributes)


@pytest.mark.parametrize("place", ["hdfs://nn/data", "hdfs://nn/data/catalogue"], ids=["above", "base"])
@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"mode": 0o757}, Code.RECORDS_WRITABLE),
        ({"mode": 0o775}, Code.RECORDS_WRITABLE),
        ({"mode": 0o775, "acl": ("user::rwx", "user:mallory:rwx", "group::r-x", "mask::rwx", "other::r-x")}, Code.RECORDS_WRITABLE),
        ({"owner": "mallory"}, Code.RECORDS_OF_ANOTHER),
        ({"owner": "mallory", "mode": 0o1777}, Code.RECORDS_OF_ANOTHER),
    ],
    ids=["everybody", "group", "acl", "owner", "owner-of-sticky"],
)
def test_where_others_may_exchange_the_base_path_nothing_is_made_or_believed(world, place, attributes, code):
    base = "hdfs://nn/data/catalogue"
    world.files.writer.make_directory(base)
    store, before = a_store(world.cluster, base=base), world.files.namespace.find(place).attributes
    give(world, place, **attributes)
    with pytest.raises(NeedsInvestigation) as stopped:
        put(store, "01", "a", x=1)
    assert stopped.value.reason.code is code
    assert place in stopped.value.reason.what
    assert "hdfs dfs -ch" in stopped.value.reason.next
    assert world.files.stat(names.parent(store.top)) is None
    world.files.namespace.find(place).attributes = before
    put(store, "01", "a", x=1)
    give(world, place, **attributes)
    for believe in (content, type(store).is_there):
        with pytest.raises(NeedsInvestigation):
            believe(a_store(world.cluster, base=base))


def test_below_directories_of_the_superuser_and_a_sticky_one_a_catalogue_is_made(world):
    base = "hdfs://nn/tmp/catalogue"
    world.files.writer.make_directory(base)
    give(world, "hdfs://nn", owner="hdfs")
    give(world, "hdfs://nn/tmp", owner="hdfs", mode=0o1777)
    put(a_store(world.cluster, base=base), "01", "a", x=1)
    assert content(a_store(world.cluster, base=base)) == {("a", "x"): 1}


def test_a_base_path_that_somebody_else_makes_first_in_a_sticky_directory_is_not_used(world):
    """Between the look at what is above it and the moment when it is made."""
    base = "hdfs://nn/tmp/catalogue"
    world.files.writer.make_directory("hdfs://nn/tmp")
    give(world, "hdfs://nn/tmp", mode=0o1777)
    store = a_store(world.cluster, base=base)

    def come_first(step):
        if step.startswith("make_directory") and world.files.namespace.find(base) is None:
            world.files.writer.make_directory(base)
            give(world, base, owner="mallory", mode=0o777)

    world.files.before_step = come_first
    with pytest.raises(NeedsInvestigation) as stopped:
        put(store, "01", "a", x=1)
    assert stopped.value.reason.code is Code.RECORDS_OF_ANOTHER
    assert "belongs to mallory" in stopped.value.reason.what
    assert not world.picture()


def test_a_commit_of_somebody_else_that_is_there_only_while_it_is_listed_and_read_is_not_believed(world, store, monkeypatch):
    """Whoever may write beside the catalogue exchanges its directory for a copy with other rows, and back, around each of these calls."""
    put(store, "01", "a", x=1)
    space, files, top, mine, aside = world.files.namespace, world.files, names.parent(store.top), f"{ROOT}/mine", f"{ROOT}/aside"
    for path, node in list(space.walk(top)):
        copy = mine + path[len(top) :]
        space.make_directory(copy) if node.is_dir else space.create(copy, node.content, node.length)
    for _, node in space.walk(mine):
        node.attributes = replace(node.attributes, owner="loader")

    def exchange():
        for source, target in ((top, aside), (mine, top), (aside, mine)):
            space.rename(source, target)

    def seen_with_theirs(call):
        def called(*asked):
            exchange()
            found = call(*asked)
            found = found if isinstance(found, dict) else list(found)
            exchange()
            return found

        return called

    monkeypatch.setattr(files, "look", seen_with_theirs(files.look))
    monkeypatch.setattr(files, "read_pieces", seen_with_theirs(files.read_pieces))
    with pytest.raises(NeedsInvestigation) as refused:
        store.newest()
    assert refused.value.reason.code is Code.RECORDS_OF_ANOTHER


def test_the_group_may_read_and_nobody_else_may(world, store):
    put(store, "01", "a", x=1)
    below = [entry for entry in world.files.tree(ROOT) if entry.path.startswith(store.top)]
    assert {(entry.is_dir, entry.mode) for entry in below} == {(True, 0o750), (False, 0o640)}


def test_components_do_not_see_each_other(world, store):
    put(store, "01", "a", x=1)
    assert list(a_store(world.cluster, component=VIEWS).rows(("table_name",))) == []
