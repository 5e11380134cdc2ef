"""Joined files and their sources that were moved alone, renamed, or have others in their places."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.steps import joined_unit
from support.fakes.files import FakeFiles, Killed
from support.fakes.rows import DataFile
from support.joined_desk import (
    ALL,
    BEFORE_TAKEN,
    SMALL,
    a_desk,
    at,
    delete_then_put,
    drop_partition,
    files_of,
    joined_name,
    joined_path,
    kill_after_strange_concat,
    kill_in_put_back,
    manage,
    put_strange,
    rename_partition,
    rows,
    rows_aside,
    survive,
)


@pytest.mark.parametrize("words", BEFORE_TAKEN)
def test_what_was_joined_by_mistake_is_not_hidden_if_the_joined_file_alone_went_to_another_partition(words):
    desk = a_desk()
    kill_in_put_back(desk, words, lambda: desk.compact(where="dt = '1'"))
    desk.world.files.writer.rename_into(joined_path(desk), desk.live("dt=2"))
    desk.recover()
    assert "new" in set(rows(desk, "dt=2")) | rows_aside(desk)
    assert desk.recover().code is Exit.DONE


def test_a_joined_file_that_somebody_moved_to_another_partition_under_another_name_says_nothing_about_that():
    desk = a_desk()
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    desk.world.files.writer.rename_into(joined_path(desk), f"{desk.live('dt=2')}/other.parquet")
    desk.recover()
    assert [effect.partition for effect in desk.log().effects] == ["dt=1"]


def take_other(desk, place):
    """Move the file that waits for its sources away, and put another one there, which takes them."""
    (joined,) = (name for name in files_of(desk) if names.may_be_joined(name) and not names.is_hidden(name))
    desk.world.files.writer.rename_into(f"{desk.live('dt=1')}/{joined}", place)
    desk.world.files.writer.add(f"{desk.live('dt=1')}/{joined}", DataFile(("strange",)))


@pytest.mark.parametrize("place", ["dt=1/other.parquet", "other.parquet", "dt=2"])
@pytest.mark.parametrize("words", [*BEFORE_TAKEN, ["rename_exact", "copy-1"], ["rename_exact", "copy-3"]])
def test_no_row_is_lost_that_another_file_took_in_the_place_of_the_joined_one_while_that_is_elsewhere(place, words):
    desk = a_desk()

    def take_other_then_wait():
        take_other(desk, desk.live(place))
        at(desk, words, lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], take_other_then_wait)
    with suppress(Killed):
        desk.compact(where="dt = '1'")
    survive(desk)
    desk.recover()
    assert desk.recover().code is Exit.DONE
    assert {*ALL, "strange"} <= set(rows(desk)) | rows_aside(desk)


def test_a_joined_file_that_somebody_renamed_is_nobodys_backup_any_more():
    desk = a_desk()
    desk.compact(where="dt = '1'")
    desk.world.files.namespace.advance(3_600_000)
    desk.world.files.writer.rename_into(joined_path(desk), f"{desk.live('dt=1')}/other.parquet")
    desk.cleanup()
    assert desk.log().standing == ()
    assert files_of(desk)["other.parquet"][1] == tuple(SMALL)


def move_then_put(desk):
    name = joined_name(desk)
    desk.world.files.writer.rename_into(desk.live(f"dt=1/{name}"), desk.live(f"dt=2/{name}"))
    put_strange(desk, name)


def put_a_source(desk):
    """It is known by its id, and takes another file by its former name."""
    name = joined_name(desk)
    desk.world.files.writer.delete(desk.live(f"dt=1/{name}"))
    desk.world.files.writer.rename_into(desk.live("dt=1/part-00001.parquet"), desk.live(f"dt=1/{name}"))
    put_strange(desk, "part-00001.parquet")


def rename_joined(desk):
    desk.world.files.writer.rename_into(desk.live(f"dt=1/{joined_name(desk)}"), desk.live("dt=1/other.parquet"))


def rename_both(desk):
    rename_joined(desk)
    rename_partition(desk)


def drop_then_park(desk):
    drop_partition(desk)
    desk.world.files.writer.rename_into(desk.live("dt=1"), desk.live("parked"))


@pytest.mark.parametrize("put", [delete_then_put, move_then_put, put_a_source])
@pytest.mark.parametrize(
    ("act", "unit"),
    [(rename_joined, "dt=1"), (rename_partition, "dt=9"), (rename_both, "dt=9"), (drop_then_park, "parked")],
)
def test_a_file_that_took_the_place_of_the_joined_one_and_was_joined_is_found_where_it_was_moved(act, unit, put):
    desk = a_desk()
    manage(desk)
    kill_after_strange_concat(desk, put, lambda: desk.compact(where="dt = '1'"))
    act(desk)
    desk.recover()
    desk.recover()
    assert {"strange", SMALL[0], SMALL[2]} <= {*rows(desk, unit), *rows_aside(desk)}


def test_a_file_that_took_the_place_of_the_joined_one_is_found_among_files_of_very_many_blocks(monkeypatch):
    desk = a_desk()
    manage(desk)
    kill_after_strange_concat(desk, delete_then_put, lambda: desk.compact(where="dt = '1'"))
    rename_joined(desk)
    monkeypatch.setattr(joined_unit, "MOST_BLOCKS_AT_ONCE", 3)
    answers, blocks = [], FakeFiles.blocks

    def note(*arguments, **named):
        answers.append(blocks(*arguments, **named))
        return answers[-1]

    monkeypatch.setattr(FakeFiles, "blocks", note)
    desk.recover()
    desk.recover()
    assert {"strange", SMALL[0], SMALL[2]} <= {*rows(desk), *rows_aside(desk)}
    assert {"other.parquet"} in [set(answer) for answer in answers]
    assert all(len(answer) == 1 or sum(map(len, answer.values())) <= 3 for answer in answers)


def test_a_file_that_took_the_place_of_the_joined_one_of_a_rollback_is_found_where_it_was_moved():
    desk = a_desk()
    manage(desk)
    desk.compact(where="dt = '1'")
    kill_after_strange_concat(desk, delete_then_put, desk.rollback)
    rename_both(desk)
    desk.recover()
    desk.recover()
    assert {"strange", *SMALL} <= {*rows(desk, "dt=9"), *rows_aside(desk)}


def test_a_file_that_was_joined_in_place_of_the_joined_one_is_found_when_that_one_is_back():
    """The one that the run had made was only moved away, and is at its place again: without rows, and without a tail."""
    desk = a_desk()
    writer, made = desk.world.files.writer, []

    def move_then_put(desk):
        made.append(joined_name(desk))
        writer.rename_into(desk.live(f"dt=1/{made[0]}"), desk.live("dt=2/away.parquet"))
        put_strange(desk, made[0])

    kill_after_strange_concat(desk, move_then_put, lambda: desk.compact(where="dt = '1'"))
    writer.rename_into(desk.live(f"dt=1/{made[0]}"), desk.live("dt=1/other.parquet"))
    writer.rename_into(desk.live("dt=2/away.parquet"), desk.live(f"dt=1/{made[0]}"))
    desk.recover()
    assert {"strange", SMALL[0], SMALL[2]} <= {*rows(desk), *rows_aside(desk)}
    assert made[0] not in files_of(desk)


def kill_in_put_back_of_replaced(desk, words, command, sources):
    """Somebody moves all sources away just before a concat and puts others there; the command is killed before the step of these words."""

    def replace_then_wait():
        for name in sources:
            desk.world.files.writer.rename_into(desk.live(f"dt=1/{name}"), desk.live(f"dt=2/former-{name}"))
            desk.world.files.writer.add(desk.live(f"dt=1/{name}"), DataFile((f"new in {name}",)), 777)
        at(desk, words, lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], replace_then_wait)
    with suppress(Killed):
        command()
        raise AssertionError("nothing was put back")
    survive(desk)


@pytest.mark.parametrize("words", [["rename_exact", "copy-1 "], ["delete_tree", "ready/u"]])
@pytest.mark.parametrize("is_rollback", [True, False])
def test_what_came_to_the_place_of_sources_is_not_lost_where_these_come_back_while_it_is_put_back(is_rollback, words):
    """All sources are there, as if nothing had been joined, but the joined file is aside with what it took instead of them."""
    desk = a_desk()
    if is_rollback:
        desk.compact(where="dt = '1'")
    sources = [name for name in files_of(desk) if name != "large.parquet"]
    kill_in_put_back_of_replaced(desk, words, desk.rollback if is_rollback else lambda: desk.compact(where="dt = '1'"), sources)
    for name in sources:
        there = desk.live(f"dt=1/{name}")
        if name in files_of(desk):
            desk.world.files.writer.rename_into(there, desk.live(f"dt=2/new-{name}"))
        desk.world.files.writer.rename_into(desk.live(f"dt=2/former-{name}"), there)
    desk.recover()
    assert {f"new in {name}" for name in sources} <= {*rows(desk), *rows(desk, "dt=2"), *rows_aside(desk)}
    assert set(ALL) <= set(rows(desk))


def test_a_source_at_the_place_of_the_joined_file_is_not_put_back_in_its_place():
    """The joined file, which took another one by mistake, has another name. Else no recovery ever ended."""
    desk = a_desk()
    desk.compact(where="dt = '1'")
    (source,) = (name for name in files_of(desk) if names.may_be_joined(name))
    kill_in_put_back_of_replaced(desk, ["dress", "/ready/u"], desk.rollback, [source])
    name = joined_name(desk)
    desk.world.files.writer.rename_into(desk.live(f"dt=1/{name}"), desk.live("dt=1/other.parquet"))
    desk.world.files.writer.rename_into(desk.live(f"dt=2/former-{source}"), desk.live(f"dt=1/{name}"))
    desk.recover()
    (table,) = desk.recover().tables
    assert table.problem is None
    assert f"new in {source}" in rows_aside(desk)
    assert name in files_of(desk)


@pytest.mark.parametrize("words", [["copy_part"], ["rename_exact", "copy-"], ["delete_tree", "ready/u"]])
@pytest.mark.parametrize("is_rollback", [True, False])
def test_no_rows_are_lost_where_the_tail_was_joined_under_another_name_and_is_back(is_rollback, words):
    """Another file was at its place in the concat. That it is in live says nothing then."""
    desk = a_desk()
    if is_rollback:
        desk.compact(where="dt = '1'")
    writer, tails = desk.world.files.writer, []

    def replace_tail():
        (tail,) = (name for name in files_of(desk) if names.is_hidden(name))
        tails.append(tail)
        writer.rename_into(desk.live(f"dt=1/{tail}"), desk.live("dt=2/away"))
        writer.add(desk.live(f"dt=1/{tail}"), DataFile(("strange",)), 777)
        at(desk, words, lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], replace_tail)
    with suppress(Killed):
        (desk.rollback if is_rollback else lambda: desk.compact(where="dt = '1'"))()
        raise AssertionError("nothing was put back")
    survive(desk)
    writer.rename_into(desk.live("dt=2/away"), desk.live(f"dt=1/{tails[0]}"))
    desk.recover()
    desk.recover()
    assert {"strange", *ALL} <= {*rows(desk), *rows_aside(desk)}
    assert [name for name in files_of(desk) if names.is_hidden(name)] == []


def test_a_source_that_was_renamed_is_no_file_that_was_joined():
    """The joined file and its tail were deleted before the concat, and the sources have other names."""
    desk = a_desk()
    desk.kill_before(["concat", "/dt=1/part"], lambda: desk.compact(where="dt = '1'"))
    for name in files_of(desk):
        if names.may_be_joined(name):
            desk.world.files.writer.delete(desk.live(f"dt=1/{name}"))
    desk.world.files.writer.rename_into(desk.live("dt=1/part-00001.parquet"), desk.live("dt=1/other.parquet"))
    desk.recover()
    assert rows(desk) == sorted(ALL)
    assert rows_aside(desk) == set()


def test_files_that_were_moved_to_another_directory_since_they_were_copied_are_not_joined():
    desk = a_desk()
    writer = desk.world.files.writer

    def move_all():
        writer.rename_into(desk.live("dt=1"), desk.live("former"))
        writer.make_directory(desk.live("dt=1"))
        for name in files_of(desk, "former"):
            writer.rename_into(desk.live(f"former/{name}"), desk.live(f"dt=1/{name}"))

    at(desk, ["rename_exact", "/ready/u00001"], move_all)
    (table,) = desk.compact(where="dt = '1'").tables
    assert [unit.why.what for unit in table.units] == ["its files were moved to another directory"]
    assert rows(desk) == sorted(ALL)


def test_a_joined_file_that_was_moved_alone_to_another_partition_is_not_recorded_there():
    """A right one, under its own name: the rows are where somebody has moved them, but that partition is not what was compacted."""
    desk = a_desk()
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    name = joined_name(desk)
    desk.world.files.writer.rename_into(desk.live(f"dt=1/{name}"), desk.live(f"dt=2/{name}"))
    desk.recover()
    assert [effect.partition for effect in desk.log().standing if effect.partition == "dt=2"] == []
    assert set(SMALL) <= set(rows(desk, "dt=2"))


def exchange_names(desk, name, row):
    """Another file comes to the place of one, which gets another name."""
    desk.world.files.writer.rename_into(desk.live(f"dt=1/{name}"), desk.live(f"dt=1/kept-{row}.parquet"))
    desk.world.files.writer.add(desk.live(f"dt=1/{name}"), DataFile((row,)), 777)


def test_copies_are_not_given_up_where_the_joined_file_is_renamed_during_a_recovery_and_all_sources_are_there():
    desk = a_desk()
    manage(desk)
    desk.compact(where="dt = '1'")
    source = joined_name(desk)
    kill_after_strange_concat(desk, lambda desk: exchange_names(desk, source, "strange"), desk.rollback)
    at(desk, ["rename_exact", "/dt=1/.hivekeeper.tail"], lambda: exchange_names(desk, joined_name(desk), "later"))
    desk.recover()
    desk.world.files.before_step = None
    desk.recover()
    desk.recover()
    assert {"strange", "later", *SMALL} <= {*rows(desk), *rows_aside(desk)}


@pytest.mark.parametrize("act", [drop_partition, rename_partition, None], ids=["drop", "rename", "stay"])
def test_a_joined_file_that_came_back_after_another_one_was_taken_in_its_place_keeps_no_recovery_from_ending(act):
    desk = a_desk()
    manage(desk)
    joined = []

    def put_then_wait():
        joined.append(joined_name(desk))
        exchange_names(desk, joined[0], "strange")
        at(desk, ["rename_exact", ".hivekeeper.copy-"], lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], put_then_wait)
    with suppress(Killed):
        desk.compact(where="dt = '1'")
    survive(desk)
    assert joined[0] not in files_of(desk)
    desk.world.files.writer.rename_into(desk.live("dt=1/kept-strange.parquet"), desk.live(f"dt=1/{joined[0]}"))
    if act:
        act(desk)
    desk.recover()
    (table,) = desk.recover().tables
    assert table.problem is None
    unit = "dt=9" if act is rename_partition else "dt=1"
    assert {"strange", *ALL} <= {*rows(desk, unit), *rows_aside(desk)}
