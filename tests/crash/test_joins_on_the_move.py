"""A partition is renamed or moved at any call of its join, or of the recovery of that: what the join has taken by mistake is not hidden
anywhere.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.reasons import Code
from support.built_once import built_once
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import (
    ALL,
    SMALL,
    a_desk,
    at,
    create_again,
    delete_then_put,
    drop_partition,
    files_of,
    joined_name,
    kill_after_strange_concat,
    kill_in_put_back,
    manage,
    put_strange,
    rename_partition,
    replace_one,
    rows,
    rows_anywhere,
    rows_aside,
    rows_by_file,
    survive,
)

# More calls than a command makes.
MOST_CALLS = 1000


def some(*values, only_nightly=()):
    """Each takes ten seconds, so not all are tried before each change."""
    return [*values, *(pytest.param(value, marks=pytest.mark.thorough) for value in only_nightly)]


@contextmanager
def at_call(desk, acts):
    """Act just before a command's calls with these numbers; yields the numbers of those that are still to come."""
    files, count, waiting = type(desk.world.files), [0], dict(acts)
    inner = files._require_alive

    def counted(self):
        if self is desk.world.files:
            count[0] += 1
            act = waiting.pop(count[0], None)
            if act:
                act()
        inner(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_require_alive", counted)
        yield waiting


def move(desk, before, after):
    desk.world.files.writer.rename_into(desk.live(before), desk.live(after))


def tell_metastore(desk, before, after):
    partition = desk.world.partitions(desk.table)[before]
    desk.world.catalog.drop_partition(desk.table, before)
    desk.world.catalog.add_partition(desk.table, replace(partition, name=after, values=(after[3:],), location=desk.live(after)))


def is_there(desk):
    return desk.world.files.namespace.find(f"{desk.live('dt=1')}/part-00001.parquet") is not None


def recover(desk):
    (table,) = desk.recover().tables
    assert table.problem is None or table.problem.code is not Code.BUG, table.problem


def shown(desk, unit):
    return set(rows(desk, unit)) | rows_aside(desk)


@built_once
def wrong_join():
    """A join that took another file by mistake, and was killed before that got a place of its own."""
    desk = a_desk()
    manage(desk)
    kill_in_put_back(desk, ["copy_part"], lambda: desk.compact(where="dt = '1'"))
    return desk


@built_once
def waiting_join():
    """A join that was killed just before its concat."""
    desk = a_desk()
    manage(desk)
    desk.kill_before(["concat", "/dt=1/part"], lambda: desk.compact(where="dt = '1'"))
    return desk


@built_once
def strange_join():
    """Somebody had put a file in the place of the joined one, which took its last part; then the join was killed."""
    desk = a_desk()
    manage(desk)
    kill_after_strange_concat(desk, delete_then_put, lambda: desk.compact(where="dt = '1'"))
    return desk


@built_once
def renamed_after_wrong_join():
    desk = wrong_join()
    rename_partition(desk)
    return desk


@built_once
def joined():
    desk = a_desk()
    manage(desk)
    desk.compact(where="dt = '1'")
    desk.world.files.namespace.advance(3_600_000)
    return desk


def every_call(play, first=1, step=1):
    """Play at each call of a command, until there are no more."""
    for number in range(first, MOST_CALLS, step):
        if play(number):
            return
    raise AssertionError(f"more than {MOST_CALLS} calls")


@pytest.mark.parametrize("again", some("dt=1", only_nightly=["dt=9", None]))
def test_what_was_taken_by_mistake_is_not_hidden_in_a_partition_that_is_renamed_twice(again):
    def play(number):
        desk = renamed_after_wrong_join()

        def rename_again():
            move(desk, "dt=9", "dt=10")
            if again:
                desk.world.files.writer.make_directory(desk.live(again))

        with at_call(desk, {number: rename_again}) as waiting:
            recover(desk)
        if not waiting:
            tell_metastore(desk, "dt=9", "dt=10")
        recover(desk)
        assert "new" in shown(desk, "dt=9" if waiting else "dt=10"), number
        return waiting

    every_call(play)


def test_what_was_taken_by_mistake_is_not_hidden_in_a_partition_that_is_renamed():
    def play(number):
        desk = wrong_join()
        with at_call(desk, {number: lambda: move(desk, "dt=1", "dt=9")}) as waiting:
            recover(desk)
        if not waiting:
            tell_metastore(desk, "dt=1", "dt=9")
        recover(desk)
        assert "new" in shown(desk, "dt=1" if waiting else "dt=9"), number
        return waiting

    every_call(play)


@pytest.mark.parametrize("calls", some(1, only_nightly=[2, 3, 5, 8, 13]))
@pytest.mark.parametrize("begin", [wrong_join, waiting_join])
def test_nothing_is_hidden_in_a_directory_that_is_away_for_some_calls(begin, calls):
    def play(number):
        desk = begin()
        acts = {number: lambda: move(desk, "dt=1", "away"), number + calls: lambda: move(desk, "away", "dt=1")}
        with at_call(desk, acts) as waiting:
            recover(desk)
        if len(waiting) == 1:
            move(desk, "away", "dt=1")
        recover(desk)
        recover(desk)
        assert set(ALL if begin is waiting_join else ["new", "large"]) <= shown(desk, "dt=1"), number
        assert [name for name in rows_by_file(desk) if names.is_hidden(name)] == [], number
        return len(waiting) == 2

    every_call(play)


@pytest.mark.parametrize("calls", some(1, only_nightly=[0, 2, 5]))
def test_nothing_is_hidden_in_a_directory_that_is_moved_while_files_of_it_are_joined(calls):
    """One of them is replaced just before. Without `calls` it stays away, and the metastore is told."""

    def play(number):
        desk = a_desk()
        manage(desk)
        away, at_last = ("away", "dt=1") if calls else ("dt=9", "dt=9")
        acts = {number: lambda: move(desk, "dt=1", away)}
        if calls:
            acts[number + calls] = lambda: move(desk, away, "dt=1")
        at(desk, ["concat", "/dt=1/part"], lambda: is_there(desk) and replace_one(desk))
        with at_call(desk, acts) as waiting:
            (table,) = desk.compact(where="dt = '1'").tables
        assert table.problem is None or table.problem.code is not Code.BUG, table.problem
        desk.world.files.before_step = None
        if not calls and not waiting:
            tell_metastore(desk, "dt=1", "dt=9")
        elif len(waiting) == 1 and calls:
            move(desk, away, "dt=1")
        recover(desk)
        recover(desk)
        unit = "dt=1" if waiting else at_last
        # Nothing was replaced if the run ended before.
        missing = {"large", *(SMALL[nth] for nth in (0, 2))} - shown(desk, unit)
        assert not missing, number
        assert {"new", SMALL[1]} & shown(desk, unit), number
        assert [name for name in rows_by_file(desk, unit) if names.is_hidden(name)] == [], number
        return len(waiting) == len(acts)

    every_call(play)


@pytest.mark.parametrize("unit", some("dt=1", only_nightly=["dt=9"]))
def test_what_a_file_in_the_place_of_the_joined_one_has_taken_is_not_hidden_where_it_is_moved(unit):
    """It is renamed in its directory, or its partition is."""

    def play(number):
        desk = strange_join()
        before, after = ("dt=1", "dt=9") if unit == "dt=9" else (f"dt=1/{joined_name(desk)}", "dt=1/other.parquet")
        with at_call(desk, {number: lambda: move(desk, before, after)}) as waiting:
            recover(desk)
        if unit == "dt=9" and not waiting:
            tell_metastore(desk, "dt=1", "dt=9")
        recover(desk)
        recover(desk)
        assert {"strange", SMALL[0], SMALL[2]} <= shown(desk, "dt=1" if waiting else unit), number
        return waiting

    every_call(play)


@pytest.mark.parametrize("where", some("run", "recovery", only_nightly=["recovery of a dropped partition"]))
def test_what_a_file_in_the_place_of_the_joined_one_has_taken_is_not_hidden_when_that_one_comes_back(where):
    """The one that the run had made was only moved away."""
    is_killed = where != "run"

    def play(number):
        desk, made = a_desk(), []
        manage(desk)

        def move_then_put(desk):
            made.append(joined_name(desk))
            move(desk, f"dt=1/{made[0]}", "away.parquet")
            put_strange(desk, made[0])

        def come_back():
            # Not before it has left, nor if all was put back.
            if made and made[0] in files_of(desk):
                move(desk, f"dt=1/{made[0]}", "dt=1/other.parquet")
                move(desk, "away.parquet", f"dt=1/{made[0]}")

        def compact():
            desk.compact(where="dt = '1'")

        if is_killed:
            kill_after_strange_concat(desk, move_then_put, compact)
            if where == "recovery of a dropped partition":
                drop_partition(desk)
        else:
            at(desk, ["concat", "/dt=1/part"], lambda: move_then_put(desk))
        with at_call(desk, {number: come_back}) as waiting:
            (recover if is_killed else lambda _: compact())(desk)
        desk.world.files.before_step = None
        recover(desk)
        recover(desk)
        assert {"strange", SMALL[0], SMALL[2]} <= shown(desk, "dt=1"), number
        return waiting

    every_call(play)


@pytest.mark.parametrize("where", ["dt=1/other.parquet", "parked"])
def test_what_was_taken_by_mistake_is_not_hidden_where_nobody_looks_for_it(where):
    """The joined file has another name; or its directory has one that no partition has, and the partition a new one."""
    desk = wrong_join()
    (joined,) = (path for path in desk.world.files.contents(desk.live("dt=1")) if names.may_be_joined(names.base(path)))
    if where == "parked":
        move(desk, "dt=1", where)
        desk.world.files.writer.make_directory(desk.live("dt=1"))
    else:
        desk.world.files.writer.rename_into(joined, desk.live(where))
    recover(desk)
    recover(desk)
    assert "new" in rows_aside(desk)


@pytest.mark.parametrize("calls", some(2, only_nightly=[3, 5, 8]))
def test_no_old_files_are_called_discarded_in_a_directory_that_is_away_for_some_calls_of_a_cleanup(calls):
    def play(number):
        desk = joined()
        acts = {number: lambda: move(desk, "dt=1", "away"), number + calls: lambda: move(desk, "away", "dt=1")}
        with at_call(desk, acts) as waiting:
            desk.cleanup()
        if len(waiting) == 1:
            move(desk, "away", "dt=1")
        desk.cleanup()
        assert [length for name, (length, _) in files_of(desk).items() if names.may_be_joined(name)] == [3000], number
        assert desk.log().standing == (), number
        return len(waiting) == 2

    every_call(play)


@pytest.mark.parametrize("then", [create_again, drop_partition, rename_partition, recover])
@pytest.mark.parametrize("part", ["file", "tail"])
def test_what_came_to_the_place_of_a_file_that_a_recovery_takes_out_of_live_is_not_deleted_with_that_one(part, then):
    """The directory of what was taken goes as a tree when the run is over."""
    desk = a_desk()
    desk.kill_before(["concat", "/dt=1/part"], desk.compact)

    def put_before(what):
        words = what.split()
        if words[-1].endswith(f"/taken/u00002.{part}"):
            desk.world.files.writer.delete(words[1])
            desk.world.files.writer.add(words[1], DataFile(("strange",)), 128 << 20)
            desk.world.files.die_after(1)

    desk.world.files.before_step = put_before
    with suppress(Killed):
        desk.recover()
    survive(desk)
    assert any(path.endswith(f"/taken/u00002.{part}") for path in desk.world.picture())
    then(desk)
    recover(desk)
    assert not [path for path in desk.world.picture() if "/taken/" in path]
    assert "strange" in rows_anywhere(desk)
