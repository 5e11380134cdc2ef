"""Somebody has another table's directory, which they may rename but not write to, at the place of a partition for a call or longer
while files of that are joined: no file comes into it, and none goes out of it.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.ports import NoPermission, NoSpace
from support.desk import outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import (
    ALL,
    SMALL,
    a_desk,
    at,
    files_of,
    joined_name,
    kill_after_strange_concat,
    kill_in_put_back,
    manage,
    put_strange,
    rename_partition,
    replace_one,
    rows,
    rows_aside,
    rows_by_file,
    survive,
)

THEIRS = "hdfs://nn/warehouse/fin/payments"
UNCHANGED = {"large.parquet": ("large",), **{f"part-0000{n}.parquet": (SMALL[n],) for n in range(3)}}
REPLACED = sorted([SMALL[0], "new", SMALL[2], "large"])
# As a run renames them.
TAIL, FILE = ["rename_exact", "/ready/", "/dt=1/."], ["rename_exact", "/ready/", "/dt=1/part"]
CONCAT, TAKE = ["concat", "/dt=1/part"], ["rename_exact", "/taken/", ".file"]
TAKEN_BACK = ["rename_exact", "/taken/u00001.file hdfs"]


@pytest.fixture
def desk():
    """The other table's files have the names of the partition's, as Hive gives the same to all."""
    desk = a_desk()
    for number in range(3):
        desk.world.files.writer.add(f"{THEIRS}/part-0000{number}.parquet", DataFile((f"payment {number}",)), 1000)
    desk.world.files.namespace.advance(3_600_000)
    return desk


class Exchange:
    """Has the other table's directory at the partition's place, and puts both back just before or just after calls with these names."""

    def __init__(self, desk, monkeypatch, before=("stat", "look", "rename_exact", "concat"), after=()):
        self.files, self.live, self.aside = desk.world.files, desk.live("dt=1"), desk.live(".aside")
        self.is_there, self.was_there = False, False
        for method in {*before, *after}:
            monkeypatch.setattr(self.files, method, self.wrap(getattr(self.files, method), method in before))

    def wrap(self, call, is_before):
        def wrapped(*words, **more):
            if is_before:
                self.back()
            try:
                return call(*words, **more)
            finally:
                if not is_before:
                    self.back()

        return wrapped

    def forth(self):
        self.files.namespace.rename(self.live, self.aside)
        self.files.namespace.rename(THEIRS, self.live)
        self.is_there = self.was_there = True

    def back(self):
        if self.is_there:
            self.is_there = False
            self.files.namespace.rename(self.live, THEIRS)
            self.files.namespace.rename(self.aside, self.live)


def require_no_other_files(desk, exchange):
    assert exchange.was_there
    exchange.back()
    found = {names.base(path): content.rows for path, content in desk.world.files.contents(THEIRS).items()}
    assert found == {f"part-0000{number}.parquet": (f"payment {number}",) for number in range(3)}


def compact(desk):
    return desk.compact(where="dt = '1'")


@pytest.mark.parametrize("words", [TAIL, FILE])
def test_what_is_to_be_joined_comes_to_no_other_directory(desk, words, monkeypatch):
    exchange = Exchange(desk, monkeypatch)
    at(desk, words, exchange.forth)
    assert outcomes(compact(desk)) == {"dt=1": "swapped"}
    require_no_other_files(desk, exchange)
    assert rows(desk) == ALL


@pytest.mark.parametrize("words", [TAIL, FILE, CONCAT])
def test_files_of_the_same_names_are_not_joined_in_their_place(desk, words, monkeypatch):
    exchange = Exchange(desk, monkeypatch, before=(), after=("concat",))
    at(desk, words, exchange.forth)
    result = compact(desk)
    require_no_other_files(desk, exchange)
    assert (outcomes(result), result.code) == ({"dt=1": "not-swapped"}, Exit.PARTIAL)
    assert rows_by_file(desk) == UNCHANGED
    assert desk.run_directories() == []


@pytest.mark.parametrize("words", [TAIL, FILE, CONCAT])
def test_nor_if_the_other_directory_stays_to_the_end(desk, words, monkeypatch):
    exchange = Exchange(desk, monkeypatch, before=())
    at(desk, words, exchange.forth)
    result = compact(desk)
    require_no_other_files(desk, exchange)
    assert (outcomes(result), result.code) == ({"dt=1": "not-swapped"}, Exit.PARTIAL)
    assert rows_by_file(desk) == UNCHANGED
    assert desk.run_directories() == []


def replace_then(desk, act, words):
    def replace_source():
        replace_one(desk)
        at(desk, words, act)

    at(desk, CONCAT, replace_source)


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_file_that_is_given_back_comes_to_no_other_directory(desk, nth, monkeypatch):
    exchange = Exchange(desk, monkeypatch)
    replace_then(desk, exchange.forth, ["rename_exact", f"copy-{nth} ", "/dt=1/"])
    assert outcomes(compact(desk)) == {"dt=1": "put-back"}
    require_no_other_files(desk, exchange)
    assert rows(desk) == REPLACED


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_where_the_other_directory_stays_what_is_not_back_is_a_backup(desk, nth, monkeypatch):
    exchange = Exchange(desk, monkeypatch, before=())
    replace_then(desk, exchange.forth, ["rename_exact", f"copy-{nth} ", "/dt=1/"])
    result = compact(desk)
    assert (outcomes(result), result.code) == ({"dt=1": "misplaced"}, Exit.INVESTIGATE)
    require_no_other_files(desk, exchange)
    copied = [SMALL[0], "new", SMALL[2]]
    assert rows(desk) == sorted(["large", *copied[: nth - 1]])
    assert rows_aside(desk) == set(copied[nth - 1 :])


@pytest.mark.parametrize("words", [FILE, CONCAT])
def test_a_killed_join_is_given_up_where_its_directory_is_by_then(desk, words, monkeypatch):
    exchange = Exchange(desk, monkeypatch, before=())
    desk.kill_before(words, lambda: compact(desk))
    exchange.forth()
    assert desk.recover().code is Exit.DONE
    require_no_other_files(desk, exchange)
    assert rows_by_file(desk) == UNCHANGED
    assert desk.run_directories() == []


def test_what_a_killed_join_was_to_give_back_is_a_backup(desk, monkeypatch):
    exchange = Exchange(desk, monkeypatch, before=())
    kill_in_put_back(desk, ["rename_exact", "copy-2"], lambda: compact(desk))
    exchange.forth()
    assert desk.recover().code is Exit.INVESTIGATE
    require_no_other_files(desk, exchange)
    assert (rows(desk), rows_aside(desk)) == (sorted([SMALL[0], "large"]), {"new", SMALL[2]})


def put_later(desk):
    name = joined_name(desk)
    desk.world.files.writer.rename_into(desk.live(f"dt=1/{name}"), desk.live("dt=1/kept.parquet"))
    desk.world.files.writer.add(desk.live(f"dt=1/{name}"), DataFile(("later",)), 777)


@pytest.mark.parametrize("stays", [False, True])
def test_what_was_taken_for_the_joined_file_goes_back_to_no_other_directory(desk, stays, monkeypatch):
    manage(desk)
    desk.kill_before(CONCAT, lambda: compact(desk))
    exchange = Exchange(desk, monkeypatch, before=() if stays else ("stat", "look", "rename_exact", "concat"))

    def put_then_exchange():
        put_later(desk)
        at(desk, TAKEN_BACK, exchange.forth)

    at(desk, TAKE, put_then_exchange)
    desk.recover()
    require_no_other_files(desk, exchange)
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == sorted([*ALL, "later"])


@pytest.mark.parametrize("stays", [False, True])
def test_what_makes_room_for_the_joined_file_goes_to_no_other_directory(desk, stays, monkeypatch):
    """Another file took the sources in its place; their names are exchanged just before a recovery takes that one, and again after it."""
    manage(desk)
    name = []

    def move(before, after):
        desk.world.files.writer.rename_into(desk.live(f"dt=1/{before}"), desk.live(f"dt=1/{after}"))

    def take_the_place(desk):
        name.append(joined_name(desk))
        move(name[0], "kept.parquet")
        put_strange(desk, name[0])

    def exchange_names():
        move(name[0], "other.parquet")
        move("kept.parquet", name[0])
        desk.world.files.die_after(1)

    kill_after_strange_concat(desk, take_the_place, lambda: compact(desk))
    at(desk, TAKE, exchange_names)
    with suppress(Killed):
        desk.recover()
    survive(desk)
    move("other.parquet", name[0])
    exchange = Exchange(desk, monkeypatch, before=() if stays else ("stat", "look", "rename_exact", "concat"))
    at(desk, TAKEN_BACK, exchange.forth)
    for _ in range(2):
        desk.recover()
        require_no_other_files(desk, exchange)
    assert {"strange", *ALL} <= {*rows(desk), *rows_aside(desk)}
    (table,) = desk.recover().tables
    assert table.problem is None


# ---- where the directory itself is elsewhere by then


def rows_without_files(desk, unit):
    return [name for name, (_, of_file) in files_of(desk, unit).items() if names.is_hidden(name) or not of_file]


@pytest.mark.parametrize("words", [TAIL, FILE])
def test_a_join_is_given_up_where_its_directory_was_renamed(desk, words):
    manage(desk)
    at(desk, words, lambda: rename_partition(desk))
    result = compact(desk)
    assert (outcomes(result)["dt=1"], result.code) == ("not-swapped", Exit.PARTIAL)
    assert (rows(desk, "dt=9"), rows_without_files(desk, "dt=9")) == (ALL, [])


@pytest.mark.parametrize("words", [TAIL, FILE])
def test_a_join_is_given_up_where_its_directory_went_to_the_trash_and_another_one_came(desk, words):
    trash = "hdfs://nn/user/other/.Trash"

    def overwrite():
        desk.world.files.writer.make_directory(trash)
        desk.world.files.writer.rename_into(desk.live("dt=1"), f"{trash}/dt=1")
        desk.world.files.writer.add(desk.live("dt=1/newest.parquet"), DataFile(("newest",)))

    at(desk, words, overwrite)
    assert outcomes(compact(desk)) == {"dt=1": "not-swapped"}
    assert rows_by_file(desk) == {"newest.parquet": ("newest",)}
    assert {names.base(path): content.rows for path, content in desk.world.files.contents(trash).items()} == UNCHANGED
    assert desk.run_directories() == []


def refuse_takes(desk, error, monkeypatch):
    """From now on nothing may be taken out of a partition."""
    rename = desk.world.files.rename_exact

    def refuse(source, target):
        if "/taken/" in target and desk.world.files.stat(source):
            raise error(source)
        rename(source, target)

    monkeypatch.setattr(desk.world.files, "rename_exact", refuse)


@pytest.mark.parametrize("error", [NoPermission, NoSpace])
def test_a_run_ends_where_nothing_may_be_renamed_out_of_a_directory_that_was_moved(desk, error, monkeypatch):
    """It is closed, or the control directory has a quota."""

    def overwrite():
        desk.world.files.writer.rename_into(desk.live("dt=1"), desk.live("../moved"))
        desk.world.files.writer.add(desk.live("dt=1/newest.parquet"), DataFile(("newest",)))
        refuse_takes(desk, error, monkeypatch)

    at(desk, CONCAT, overwrite)
    assert outcomes(compact(desk)) == {"dt=1": "overwritten"}
    assert desk.recover().code is Exit.DONE
    assert desk.run_directories() == []


def give_theirs_the_same(desk):
    """The same command has joined files of the same names in the other table, so its new file has the same name, too."""
    name = joined_name(desk)
    desk.world.files.writer.add(f"{THEIRS}/{name}", DataFile(("joined payments",)), 5000)
    return name


@pytest.mark.parametrize("is_unchanged", [False, True])
def test_a_joined_file_of_the_same_name_is_not_taken_out_of_the_other_directory(desk, is_unchanged, monkeypatch):
    """By a put-back, or where what has joined nothing is given up."""
    exchange, found = Exchange(desk, monkeypatch), []

    def forth():
        found.append(give_theirs_the_same(desk))
        exchange.forth()

    if is_unchanged:
        desk.kill_before(CONCAT, lambda: compact(desk))
        at(desk, TAKE, forth)
        desk.recover()
    else:
        replace_then(desk, forth, TAKE)
        compact(desk)
    desk.world.files.before_step = None
    assert found
    exchange.back()
    theirs = {names.base(path): content.rows for path, content in desk.world.files.contents(THEIRS).items()}
    assert theirs.get(found[0]) == ("joined payments",)
    desk.recover()
    assert desk.recover().tables[0].problem is None
    assert rows(desk) == (ALL if is_unchanged else REPLACED)


def test_nor_if_the_directory_was_away_just_when_it_was_looked_for(desk, monkeypatch):
    """Its id is not known then, and the joined file is looked at when it is back."""
    desk.kill_before(CONCAT, lambda: compact(desk))
    name, exchange, seen = give_theirs_the_same(desk), Exchange(desk, monkeypatch, before=()), []
    stat, namespace = desk.world.files.stat, desk.world.files.namespace

    def be_away(path):
        seen.extend([path] if path == exchange.live else [])
        if path != exchange.live or len(seen) != 2:
            return stat(path)
        namespace.rename(exchange.live, exchange.aside)
        try:
            return stat(path)
        finally:
            namespace.rename(exchange.aside, exchange.live)

    monkeypatch.setattr(desk.world.files, "stat", be_away)
    at(desk, TAKE, exchange.forth)
    desk.recover()
    assert exchange.was_there
    exchange.back()
    theirs = {names.base(path): content.rows for path, content in desk.world.files.contents(THEIRS).items()}
    assert theirs.get(name) == ("joined payments",)
    desk.recover()
    assert rows(desk) == ALL


@pytest.mark.parametrize("error", [NoPermission, NoSpace])
def test_a_directory_that_is_away_where_nothing_may_be_taken_out_of_it_is_told_as_moved(desk, error, monkeypatch):
    """As in another user's trash, or where the control directory has a quota."""
    live, trash = desk.live("dt=1"), "hdfs://nn/user/other/.Trash"

    def move():
        desk.world.files.writer.make_directory(trash)
        desk.world.files.writer.rename_into(live, f"{trash}/dt=1")
        refuse_takes(desk, error, monkeypatch)

    at(desk, CONCAT, move)
    compact(desk)
    assert "its directory was moved" in desk.recover().tables[0].problem.what
