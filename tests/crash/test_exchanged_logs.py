"""Somebody exchanges the control directories of two tables while entries of a log are deleted. They have the same names in every table, and
nothing of the other table's log goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, List, Sequence

import pytest

from hivekeeper.codes import Exit
from hivekeeper.model import FileInfo
from hivekeeper.ports import SourceMissing
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import EVERYTHING, Desk
from support.fakes.files import Killed
from support.world import World

DAY_MS = 86_400_000


def build(name: str, world: World) -> Desk:
    world.add_table(a_table(["dt"], name=name, create_time=len(name)), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    return Desk(world, f"sales.{name}", checkpoint_interval=1, log_retention_ms=2 * DAY_MS, backup_table=False)


def compact(desk: Desk) -> None:
    desk.append("dt=1", f"a{len(desk.runs)}", f"b{len(desk.runs)}")
    desk.compact()


class Exchange:
    """What whoever may rename both control directories does. `log`: the other table's, wherever it lies."""

    def __init__(self, desk: Desk, other: Desk) -> None:
        self.files, self.other, self.aside = desk.world.files, other.control.top, f"{other.live()}/.aside"
        self.place = desk.control.top
        self.is_begun = False
        self.log = self.files.namespace.directory(other.control.log).children
        self.log_before = dict(self.log)

    def begin(self, place: str) -> None:
        self.place, self.is_begun = place, True
        self.files.namespace.rename(place, self.aside)
        self.files.namespace.rename(self.other, place)

    def end(self) -> None:
        self.is_begun = False
        self.files.namespace.rename(self.place, self.other)
        self.files.namespace.rename(self.aside, self.place)

    def before(self, words: Sequence[str], place: Callable[[str], str]) -> None:
        """Begin before the first step with these words. `place`: from the step's path to the control directory."""

        def step(what: str) -> None:
            if all(word in what for word in words):
                self.files.before_step = None
                self.begin(place(what.split()[1]))

        self.files.before_step = step


def two_with_expired_entries() -> Any:
    world = World()
    desks = [build("events", world), build("other", world)]
    for days in (3, 3):
        for desk in desks:
            for _ in range(3):
                compact(desk)
            desk.cleanup(EVERYTHING)
        world.files.namespace.advance(days * DAY_MS)
        for desk in desks:
            compact(desk)
    return desks[0], Exchange(*desks)


@pytest.mark.parametrize("finds_locks", [True, False], ids=["", "behind a mount, where a lock has no id"])
def test_an_exchange_before_expired_entries_are_deleted_costs_the_other_log_nothing(finds_locks: bool) -> None:
    desk, exchange = two_with_expired_entries()

    def place(path: str) -> str:
        if not finds_locks:
            exchange.files._held.clear()
        return path.partition("/log/")[0]

    exchange.before(["delete_file", "/log/"], place)
    compact(desk)
    assert exchange.is_begun
    assert exchange.log == exchange.log_before


@pytest.mark.parametrize("is_same_command", [False, True], ids=["", "of a table of the same command"])
def test_another_log_that_is_listed_after_a_run_has_ended_keeps_its_expired_entries(is_same_command: bool) -> None:
    desk, exchange = two_with_expired_entries()
    other = Desk(desk.world, "sales.other", checkpoint_interval=100, backup_table=False)
    other.runs.extend(desk.runs * (1 if is_same_command else 2))
    compact(other)
    exchange.log_before = dict(exchange.log)
    files, log, entry = exchange.files, desk.control.log, f"{len(desk.log().runs):020d}.json"
    look, asked = files.look, []  # type: Any, List[str]

    def look_there(places: Any, *most: int) -> Any:
        if places == [log] and not exchange.is_begun and entry in files.namespace.directory(log).children:
            asked.append(log)
            # The first time, the run looks whether its own entry is there.
            if len(asked) == 2:
                exchange.begin(desk.control.top)
        return look(places, *most)

    files.look = look_there  # type: ignore[method-assign]
    files.before_step = lambda _: exchange.end() if exchange.is_begun else None
    compact(desk)
    assert len(asked) > 1
    assert (desk.runs[-1] == other.runs[-1]) is is_same_command
    assert exchange.log == exchange.log_before


def test_another_log_that_was_read_before_and_is_listed_at_the_end_keeps_its_expired_entries() -> None:
    """And the run's own log is there in between, so that the run is the last in it."""
    desk, exchange = two_with_expired_entries()
    other = Desk(desk.world, "sales.other", checkpoint_interval=100, backup_table=False)
    other.runs.extend(desk.runs * 2)
    desk.cleanup(EVERYTHING)
    for days in (0, 3):
        compact(other)
        exchange.files.namespace.advance(days * DAY_MS)
    compact(other)
    exchange.log_before = dict(exchange.log)
    files, log, entry = exchange.files, desk.control.log, f"{len(desk.log().runs):020d}.json"
    ids, own_entries = {node.id for node in exchange.log.values()}, files.namespace.directory(log).children
    looks: List[bool] = []

    def exchanged(call: Callable[..., Any], is_meant: Callable[[Any], bool]) -> Callable[..., Any]:
        def called(asked: Any, *more: Any) -> Any:
            if not is_meant(asked):
                return call(asked, *more)
            exchange.begin(desk.control.top)
            try:
                found = call(asked, *more)
                return found if isinstance(found, dict) else list(found)
            finally:
                exchange.end()

        return called

    def is_first_or_last(places: Any) -> bool:
        if places != [log]:
            return False
        looks.append(entry in own_entries)
        return len(looks) == 1 or (looks[-1] and sum(looks) == 2)

    def is_of_other(asked: Any) -> bool:
        return any(file.file_id in ids for file in (asked if isinstance(asked, list) else [asked]))

    def replace_a_file(what: str) -> None:
        """So that the run has no backup, of which the other log would say nothing."""
        if what.startswith(f"rename_exact {desk.live('dt=1')} "):
            files.before_step = None
            live = files.namespace.directory(desk.live("dt=1"))
            files.namespace.delete(f"{desk.live('dt=1')}/{min(live.children)}")

    desk.world.cluster.log_entries.clear()
    files.before_step = replace_a_file
    files.look = exchanged(files.look, is_first_or_last)  # type: ignore[method-assign]
    for method in ("read_texts", "read_bytes"):
        setattr(files, method, exchanged(getattr(files, method), is_of_other))
    compact(desk)
    assert sum(looks) > 1
    assert exchange.log == exchange.log_before


def two_without_backups() -> Any:
    world = World()
    desks = [build("events", world), build("other", world)]
    for desk in desks:
        desk.compact()
        desk.cleanup(EVERYTHING)
    return desks[0], Exchange(*desks)


def kill_forget(desk: Desk, nth_deletion: int) -> None:
    """Before it deletes its nth record: the first is the lock."""
    deletions: List[str] = []

    def die(what: str) -> None:
        deletions.extend([what] if what.startswith("delete_file") else [])
        if len(deletions) == nth_deletion:
            desk.world.files.die_after(0)

    desk.world.files.before_step = die
    with pytest.raises(Killed):
        desk.forget()
    desk.world.files.before_step = None
    desk.world.files.revive()
    desk.world.files.expire_locks()


@pytest.mark.parametrize("is_second", [False, True], ids=["at once", "by the next one"])
def test_an_exchange_before_records_are_deleted_costs_the_other_log_nothing(is_second: bool) -> None:
    desk, exchange = two_without_backups()
    if is_second:
        kill_forget(desk, 1)
    exchange.before(["delete_file", ".removed-", "/_lock"], lambda path: path.partition("/_lock")[0])
    assert desk.forget().code is Exit.DONE
    assert exchange.is_begun
    assert exchange.log == exchange.log_before
    exchange.end()
    assert not [path for path in desk.world.picture() if path.startswith(f"{desk.live()}/.hivekeeper")]


@pytest.mark.parametrize(("finds_by_id", "code"), [(True, Code.OTHER_TABLE), (False, Code.UNKNOWN_FILES)])
def test_another_directory_that_lies_there_while_it_is_set_aside_but_not_while_its_log_is_read_comes_back(finds_by_id, code) -> None:
    """So the lock is one of that directory; without ids its log is asked for only where it lies then."""
    desk, exchange = two_without_backups()
    files, own = desk.world.files, desk.control
    files.finds_by_id = finds_by_id

    def with_own(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(asked: Any, *more: Any) -> Any:
            paths = [getattr(one, "path", one) for one in (asked if isinstance(asked, list) else [asked])]
            if not exchange.is_begun or not any(f"{path}/".startswith(f"{own.top}/") for path in paths):
                return call(asked, *more)
            exchange.end()
            try:
                found = call(asked, *more)
                return found if isinstance(found, dict) else list(found)
            finally:
                exchange.begin(own.top)

        return called

    for method in ("look", "read_texts", "read_bytes", "exposed"):
        setattr(files, method, with_own(getattr(files, method)))
    exchange.before(["hold"], lambda _: own.top)
    result = desk.forget()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, code)
    assert exchange.log == exchange.log_before


def test_a_log_that_is_listed_where_the_rest_is_deleted_already_is_of_that_directory() -> None:
    """What is left of a log is not read any more."""
    desk, exchange = two_without_backups()
    kill_forget(desk, 2)
    look = exchange.files.look

    def look_one_by_one(places: Any, *most: int) -> Any:
        found = {}
        for place in places:
            is_meant = ".removed-" in place and place.endswith("/log")
            if is_meant:
                exchange.begin(place[: -len("/log")])
            found.update(look([place], *most))
            if is_meant:
                exchange.end()
        return found

    exchange.files.look = look_one_by_one  # type: ignore[method-assign]
    result = desk.forget()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.RECORDS_OF_ANOTHER)
    assert exchange.log == exchange.log_before


def test_an_entry_that_is_not_there_when_it_is_read_does_not_count_as_none() -> None:
    """It may be the only one that knows of a backup."""
    desk, exchange = two_without_backups()
    kill_forget(desk, 1)
    desk.world.cluster.log_entries.clear()
    before = desk.world.picture()

    def read_nothing(file: FileInfo) -> Any:
        raise SourceMissing(file.path)

    exchange.files.read_texts, exchange.files.read_bytes = lambda _: {}, read_nothing  # type: ignore[method-assign, assignment]
    result = desk.forget()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.RECORDS_OF_ANOTHER)
    assert desk.world.picture() == before


def test_files_of_others_that_lie_there_after_the_check_of_their_owners_stay() -> None:
    desk, exchange = two_without_backups()
    kill_forget(desk, 2)
    files, (aside,) = exchange.files, {path.rpartition("/")[0] for path in desk.world.picture() if ".removed-" in path and "/log/" in path}
    checked = {levels: files.exposed(aside[: -len("/log")], levels) for levels in range(4)}
    for node in files.namespace.directory(aside).children.values():
        node.attributes = replace(node.attributes, owner="loader")
    before = desk.world.picture()
    files.exposed = lambda _, levels: checked[levels]  # type: ignore[method-assign]
    result = desk.forget()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.UNKNOWN_FILES)
    assert desk.world.picture() == before


def test_a_control_directory_that_is_exchanged_just_before_it_is_set_aside_comes_back_though_neither_has_an_entry() -> None:
    world = World()
    desks = [build("events", world), build("other", world)]
    for desk in desks:
        world.files.hold(desk.control.lock, "us").release()
        world.files.make_directory(desk.control.log)
    (desk, other), files = desks, world.files
    before = {path: node.id for path, node in files.namespace.walk(other.control.top)}
    exchange = Exchange(desk, other)
    exchange.before(["rename_exact", ".removed-"], lambda path: path)
    assert desk.forget().tables[0].problem is not None
    assert exchange.is_begun
    exchange.end()
    assert {path: node.id for path, node in files.namespace.walk(other.control.top)} == before
