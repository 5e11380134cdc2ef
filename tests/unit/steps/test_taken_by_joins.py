"""What the recovery of a join takes out of live because it lies where the run had put something, and is somebody else's; and copies of what
was joined by mistake, which tell that something was, whatever lies there by then.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.steps.joined_unit import JoinedUnit
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import (
    ALL,
    SMALL,
    a_desk,
    at,
    drop_partition,
    files_of,
    joined_name,
    kill_after_strange_concat,
    manage,
    put_strange,
    rename_partition,
    replace_one,
    rows,
    rows_aside,
    survive,
)

TAKE = ["rename_exact", "/taken/", ".file"]


@pytest.fixture
def desk():
    desk = a_desk()
    manage(desk)
    return desk


def compact(desk):
    desk.compact(where="dt = '1'")


def waiting_join(desk):
    desk.kill_before(["concat", "/dt=1/part"], lambda: compact(desk))


def kill_at(desk, words, act, command):
    """Act just before a step, and kill the command just after it."""
    done = []

    def act_then_die():
        done.append(act())
        desk.world.files.die_after(1)

    at(desk, words, act_then_die)
    with suppress(Killed):
        command()
    assert done
    survive(desk)


def join_another_tail(desk):
    """A join that took another file in the tail's place, and was killed before that was put back. Then the tail is back."""
    found = []

    def put_then_wait():
        found.append(tail_name(desk))
        move(desk, found[0], ".kept")
        put(desk, found[0], "strange")
        at(desk, ["copy_part"], lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], put_then_wait)
    with suppress(Killed):
        compact(desk)
    survive(desk)
    move(desk, ".kept", found[0])


def tail_name(desk):
    return next(name for name in files_of(desk) if names.JOIN_TAIL.fullmatch(name))


def move(desk, before, after):
    desk.world.files.writer.rename_into(desk.live(f"dt=1/{before}"), desk.live(f"dt=1/{after}"))


def put(desk, name, row):
    desk.world.files.writer.add(desk.live(f"dt=1/{name}"), DataFile((row,)), 777)


def put_later(desk, kept="kept.parquet"):
    """Another file comes to the place of the joined one, which gets another name."""
    name = joined_name(desk)
    move(desk, name, kept)
    put(desk, name, "later")
    return name


def settle(desk):
    """One recovery may find that something moved meanwhile, and the next one tells where files are that did not go back."""
    desk.recover()
    desk.world.files.before_step = None
    desk.recover()
    (table,) = desk.recover().tables
    assert table.problem is None


def seen(desk, unit="dt=1"):
    return {*rows(desk, unit), *rows_aside(desk)}


def rows_of_hidden(desk):
    return [row for name, (_, of_file) in files_of(desk).items() if names.is_hidden(name) for row in of_file]


# ---- somebody else's files


def test_a_file_that_lies_in_the_tails_place_is_not_deleted(desk):
    waiting_join(desk)
    tail = tail_name(desk)
    move(desk, tail, "kept")
    put(desk, tail, "strange")
    settle(desk)
    assert rows_of_hidden(desk) == ["strange"]
    assert set(ALL) <= set(rows(desk))


def test_a_file_that_comes_to_the_tails_place_after_the_concat_is_not_deleted(desk):
    found = []

    def wait():
        found.append(tail_name(desk))
        at(desk, ["entry.json"], lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], wait)
    with suppress(Killed):
        compact(desk)
    survive(desk)
    put(desk, found[0], "strange")
    settle(desk)
    assert (rows_of_hidden(desk), rows(desk)) == (["strange"], sorted(ALL))


def test_a_file_that_comes_to_the_tails_place_after_that_was_taken_keeps_no_recovery_from_ending(desk):
    join_another_tail(desk)
    tail = tail_name(desk)
    at(desk, ["copy_part"], lambda: desk.world.files.die_after(0))
    with suppress(Killed):
        desk.recover()
    survive(desk)
    put(desk, tail, "again")
    settle(desk)
    assert {"strange", *ALL} <= seen(desk)
    assert rows_of_hidden(desk) == ["again"]


def test_a_joined_file_that_came_back_after_another_one_was_taken_while_it_was_put_back_keeps_no_recovery_from_ending(desk):
    names_of_it = []

    def replace_then_wait():
        replace_one(desk)
        at(desk, TAKE, lambda: [names_of_it.append(put_later(desk)), desk.world.files.die_after(1)])

    at(desk, ["concat", "/dt=1/part"], replace_then_wait)
    with suppress(Killed):
        compact(desk)
    survive(desk)
    move(desk, "kept.parquet", names_of_it[0])
    settle(desk)
    assert {"new", "later", SMALL[0], SMALL[2], "large"} <= set(rows(desk))


@pytest.mark.parametrize("steps", [1, 2])
def test_what_took_the_place_of_the_joined_file_is_settled_if_it_comes_back_after_that_one_was_taken_instead(desk, steps):
    """Before the concat, and their names are exchanged just before a recovery takes it out. `steps`: of that until it is killed."""
    name = []

    def take_the_place(desk):
        name.append(joined_name(desk))
        move(desk, name[0], "kept.parquet")
        put_strange(desk, name[0])

    def exchange_names():
        move(desk, name[0], "other.parquet")
        move(desk, "kept.parquet", name[0])
        desk.world.files.die_after(steps)

    kill_after_strange_concat(desk, take_the_place, lambda: compact(desk))
    at(desk, TAKE, exchange_names)
    with suppress(Killed):
        desk.recover()
    survive(desk)
    move(desk, "other.parquet", name[0])
    settle(desk)
    assert {"strange", *ALL} <= seen(desk)


def overwrite(desk):
    desk.world.files.writer.overwrite(desk.live("dt=1"), {"fresh.parquet": DataFile(("fresh",))})


def remove(desk):
    desk.world.files.writer.delete(desk.live("dt=1"))


def drop(desk):
    drop_partition(desk)
    remove(desk)


@pytest.mark.parametrize("put_back", [False, True])
@pytest.mark.parametrize("change", [overwrite, remove, drop])
def test_what_was_taken_from_a_directory_that_is_gone_becomes_a_backup(desk, put_back, change):
    """It belongs to no other one that has come to its place."""
    if put_back:
        join_another_tail(desk)
    else:
        waiting_join(desk)
    kill_at(desk, TAKE, lambda: put_later(desk), desk.recover)
    change(desk)
    settle(desk)
    assert rows(desk) == (["fresh"] if change is overwrite else [])
    assert "later" in rows_aside(desk)


def test_what_was_taken_for_a_joined_file_that_is_elsewhere_comes_to_no_other_directory(desk):
    join_another_tail(desk)
    kill_at(desk, TAKE, lambda: put_later(desk, "../kept.parquet"), desk.recover)
    overwrite(desk)
    settle(desk)
    assert rows(desk) == ["fresh"]
    assert {"strange", "later", *SMALL} <= rows_aside(desk)


def test_what_was_taken_goes_back_to_its_partition_where_that_was_renamed_and_its_name_given_again(desk):
    waiting_join(desk)
    kill_at(desk, TAKE, lambda: put_later(desk), desk.recover)
    rename_partition(desk)
    partition = desk.world.partitions(desk.table)["dt=9"]
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    desk.world.catalog.add_partition(desk.table, replace(partition, name="dt=1", values=("1",), location=desk.live("dt=1")))
    settle(desk)
    assert (rows(desk), rows(desk, "dt=9")) == ([], sorted([*ALL, "later"]))


# ---- copies


@pytest.mark.parametrize("deleted", [False, True])
def test_copies_are_not_given_up_where_the_tail_is_back_and_another_file_was_taken_for_the_joined_one(desk, deleted):
    join_another_tail(desk)
    kill_at(desk, TAKE, lambda: put_later(desk), desk.recover)
    if deleted:
        desk.world.files.writer.delete(desk.live("dt=1/kept.parquet"))
    settle(desk)
    assert {"strange", "later", *ALL} <= seen(desk)


def test_copies_are_not_given_up_where_the_joined_file_is_replaced_and_the_tail_comes_back_while_they_are_made(desk):
    join_another_tail(desk)
    tail = tail_name(desk)
    move(desk, tail, ".kept")

    def replace_then_bring_back():
        put_later(desk)
        move(desk, ".kept", tail)

    at(desk, ["copy_part"], replace_then_bring_back)
    settle(desk)
    assert {"strange", "later", *ALL} <= seen(desk)


def join_both_others(desk):
    """A join that took other files in the places of T and of its tail, and was killed before these were put back; returns both names."""
    found = []

    def put_then_wait():
        found[:] = tail_name(desk), joined_name(desk)
        for name, kept in zip(found, [".tail", ".file"]):
            move(desk, name, kept)
        put(desk, found[0], "for the tail")
        put_strange(desk, found[1])
        at(desk, ["copy_part"], lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], put_then_wait)
    with suppress(Killed):
        compact(desk)
    survive(desk)
    return found


@pytest.mark.parametrize("when", ["before", "copy_part"])
def test_a_file_that_was_joined_in_place_of_the_joined_one_is_found_when_that_one_and_the_tail_are_back(desk, when):
    """Before a recovery, or while that makes copies."""
    tail, file = join_both_others(desk)
    move(desk, ".tail", tail)

    def exchange_names():
        move(desk, file, "other.parquet")
        move(desk, ".file", file)

    if when == "before":
        exchange_names()
    else:
        at(desk, [when], exchange_names)
    settle(desk)
    assert {"strange", "for the tail", *ALL} <= seen(desk)


def test_a_join_of_other_files_is_not_given_up_where_their_directory_is_out_of_the_table(desk, monkeypatch):
    """The joined file and its tail come back to their names just after what has the sources was found."""
    tail, file = join_both_others(desk)
    away, find, waiting = "hdfs://nn/warehouse/away", JoinedUnit.find_strayed, [tail]
    desk.world.files.writer.rename_into(desk.live("dt=1"), away)

    def find_then_exchange(joined):
        found = find(joined)
        if waiting:
            waiting.clear()
            for before, after in ((".tail", tail), (file, "other.parquet"), (".file", file)):
                desk.world.files.writer.rename_into(f"{away}/{before}", f"{away}/{after}")
        return found

    monkeypatch.setattr(JoinedUnit, "find_strayed", find_then_exchange)
    desk.recover()
    assert not waiting
    desk.world.files.writer.rename_into(away, desk.live("dt=1"))
    settle(desk)
    assert {"strange", "for the tail", *ALL} <= seen(desk)


def test_a_set_that_was_given_up_does_not_wait_for_the_file_of_another_set_that_has_a_source_of_its():
    desk = a_desk(files=4, block_bytes=2500, ratio_threshold=2.0)
    live, move = desk.live("dt=1"), desk.world.files.writer.rename_into

    def exchange_sources():
        """The first set joins part-00000 and part-00001, the second one the others."""
        move(f"{live}/part-00001.parquet", f"{live}/between")
        move(f"{live}/part-00003.parquet", f"{live}/part-00001.parquet")
        move(f"{live}/between", f"{live}/part-00003.parquet")
        at(desk, ["copy_part"], lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], exchange_sources)
    with suppress(Killed):
        compact(desk)
    survive(desk)
    move(f"{live}/{joined_name(desk)}", f"{live}/other.parquet")
    desk.kill_before(["/entry.json"], desk.recover)
    desk.recover()
    assert desk.recover().tables[0].problem is None
    assert set(rows(desk)) | rows_aside(desk) == {"large", *(f"events/dt=1/{nth}" for nth in range(4))}
