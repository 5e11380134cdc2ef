"""Joins whose partition, or table, was renamed, moved, dropped or given again while they, or their recoveries and cleanups, are at work."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.errors import HivekeeperError
from support.desk import outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import (
    ALL,
    BEFORE_TAKEN,
    SMALL,
    a_desk,
    at,
    create_again,
    drop_partition,
    files_of,
    joined_path,
    kill_in_put_back,
    manage,
    move_partition,
    rename_partition,
    replace_one,
    rows,
    rows_aside,
    rows_by_file,
    survive,
    trash_files,
)


def add_again(desk):
    """A new partition by the former name, as of `dt=current` that is renamed to its day."""
    partition = desk.world.partitions(desk.table)["dt=9"]
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    desk.world.catalog.add_partition(desk.table, replace(partition, name="dt=1", values=("1",), location=desk.live("dt=1")))


@pytest.mark.parametrize("words", [["copy_part"], ["dress", "/ready/"], [".back-"], ["rename_exact", "/taken/u00001.file"]])
def test_a_partition_that_is_renamed_and_whose_name_is_given_again_while_copies_are_made_hides_no_row(words):
    """Nobody is killed."""
    desk = a_desk()
    manage(desk)

    def rename_then_add():
        rename_partition(desk)
        add_again(desk)

    def replace_source():
        replace_one(desk)
        at(desk, words, rename_then_add)

    at(desk, ["concat", "/dt=1/part"], replace_source)
    desk.compact(where="dt = '1'")
    desk.world.files.before_step = None
    desk.recover()
    assert "new" in set(rows(desk, "dt=9")) | rows_aside(desk)
    assert SMALL[1] not in rows(desk, "dt=9")


@pytest.mark.parametrize("words", [["concat", "/dt=1/part"], ["rename_exact", "/ready/u00001/part"]])
def test_nothing_hidden_stays_in_a_partition_that_was_renamed_and_whose_name_was_given_again(words):
    desk = a_desk()
    manage(desk)
    desk.kill_before(words, lambda: desk.compact(where="dt = '1'"))
    rename_partition(desk)
    add_again(desk)
    desk.recover()
    found = rows_by_file(desk, "dt=9")
    assert [name for name, of_file in found.items() if names.is_hidden(name) or not of_file] == []


def test_what_was_joined_by_mistake_is_not_hidden_in_a_partition_that_was_renamed_and_whose_name_was_given_again():
    desk = a_desk()
    manage(desk)
    kill_in_put_back(desk, ["copy_part"], lambda: desk.compact(where="dt = '1'"))
    rename_partition(desk)
    add_again(desk)
    desk.recover()
    assert "new" in set(rows(desk, "dt=9")) | rows_aside(desk)


def test_untouched_files_of_an_otherwise_empty_directory_go_back_beside_unclear_ones(monkeypatch):
    desk = a_desk()
    monkeypatch.setattr(type(desk.world.rows), "find_starts", lambda *_: ())
    at(desk, ["concat", "/dt=2/part"], lambda: [replace_other(desk, n) for n in (0, 1)])
    assert outcomes(desk.compact(where="dt = '2'"))["dt=2"] == "misplaced"
    assert rows(desk, "dt=2") == [f"events/dt=2/{n}" for n in (2, 3)]


def replace_other(desk, number):
    path = f"{desk.live('dt=2')}/part-0000{number}.parquet"
    desk.world.files.writer.delete(path)
    desk.world.files.writer.add(path, DataFile((f"new{number}",)), 777)


@pytest.mark.parametrize("words", [["concat", "/dt=1/part"], ["entry.json"]])
def test_a_join_is_settled_after_its_table_was_created_again_with_the_directory_as_another_partition(words):
    desk = a_desk()
    desk.kill_before(words, lambda: desk.compact(where="dt = '1'"))
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
    desk.world.files.writer.rename_into(desk.live("dt=1"), desk.live("dt=9"))
    desk.world.catalog.drop_table(desk.table)
    nine = replace(partitions["dt=1"], name="dt=9", values=("9",), location=f"{table.location}/dt=9")
    desk.world.catalog.add_table(replace(table, create_time=table.create_time + 99), [nine, partitions["dt=2"]])
    with suppress(HivekeeperError):
        desk.recover()
    assert desk.recover().code is Exit.DONE
    assert desk.run_directories() == []


@pytest.mark.parametrize(
    "words",
    [
        # Before anything was put there.
        ["__hivekeeper_unit=1"],
        ["rename_exact", ".tail-"],
        ["rename_exact", "/ready/u00001/part"],
        ["concat", "/moved/part"],
        ["entry.json"],
    ],
)
def test_a_join_of_a_partition_with_a_place_of_its_own_is_settled_where_it_was_moved(words):
    desk = a_desk()
    manage(desk)
    move_partition(desk)
    desk.world.files.namespace.advance(3_600_000)
    desk.kill_before(words, lambda: desk.compact(where="dt = '1'"))
    partition = desk.world.partitions(desk.table)["dt=1"]
    desk.world.files.writer.rename_into(desk.live("moved"), desk.live("again"))
    desk.world.catalog.put_partition(desk.table, replace(partition, location=desk.live("again")))
    desk.recover()
    assert desk.recover().code is Exit.DONE
    assert rows(desk, "again") == ALL


def test_a_tail_is_found_where_its_partition_was_renamed_although_the_file_that_it_waited_for_is_gone():
    """The name was given again between two renames, and that directory was overwritten."""
    desk = a_desk()
    manage(desk)

    def rename_then_add():
        rename_partition(desk)
        add_again(desk)
        at(desk, ["rename_exact", "/taken/"], lambda: desk.world.files.die_after(0))

    at(desk, ["rename_exact", "/ready/u00001/part"], rename_then_add)
    with suppress(Killed):
        desk.compact(where="dt = '1'")
    survive(desk)
    desk.world.files.writer.overwrite(desk.live("dt=1"), {"newer.parquet": DataFile(("newer",))})
    desk.recover()
    assert [name for name in rows_by_file(desk, "dt=9") if names.is_hidden(name)] == []


def test_a_record_is_still_the_same_after_a_join_on_it_was_rolled_back():
    desk = a_desk()
    desk.backup(where="dt = '1'")
    record = desk.runs[-1]
    desk.compact(where="dt = '1'")
    desk.rollback(where="dt = '1'")
    assert outcomes(desk.verify(record)) == {"dt=1": "verified"}


def test_a_file_without_rows_is_found_where_its_partition_was_moved_although_all_others_are_aside():
    """A rollback joins a single file with one beside it. The recovery of that is killed, too."""
    desk = a_desk()
    desk.compact(where="dt = '1'")
    desk.kill_before(["/ready/u00001/part", "-1.parquet"], lambda: desk.rollback(where="dt = '1'"))
    move_partition(desk)
    at(desk, ["/taken/u00001.tail"], lambda: desk.world.files.die_after(1))
    with suppress(Killed):
        desk.recover()
        raise AssertionError("the recovery was not killed")
    survive(desk)
    desk.recover()
    assert [name for name, of_file in rows_by_file(desk, "moved").items() if names.is_hidden(name) or not of_file] == []


def test_a_slow_rename_in_a_directory_that_moves_leaves_nothing_hidden(monkeypatch):
    desk = a_desk()
    manage(desk)
    clock = desk.world.clock
    real, late = type(clock).monotonic_ms, []
    monkeypatch.setattr(type(clock), "monotonic_ms", lambda self: real(self) + sum(late))

    def stepped(what):
        if "rename_exact" in what and "/ready/u00001/part" in what and not late:
            late.append(100)

    desk.world.files.before_step = stepped
    inner = type(desk.world.files).rename_exact

    def rename_then_move(self, source, target):
        inner(self, source, target)
        if late and "/dt=1/part" in target and "/ready/u00001/part" in source and desk.world.files.stat(desk.live("dt=1")):
            rename_partition(desk)

    monkeypatch.setattr(type(desk.world.files), "rename_exact", rename_then_move)
    with suppress(HivekeeperError):
        desk.compact(where="dt = '1'")
    monkeypatch.undo()
    desk.world.files.before_step = None
    assert late
    desk.recover()
    found = rows_by_file(desk, "dt=9")
    assert [name for name, of_file in found.items() if names.is_hidden(name) or not of_file] == []


def test_what_was_joined_by_mistake_is_not_hidden_where_its_partition_was_moved_out_of_the_table():
    desk = a_desk()
    kill_in_put_back(desk, ["copy_part"], lambda: desk.compact(where="dt = '1'"))
    partition = desk.world.partitions(desk.table)["dt=1"]
    desk.world.files.writer.make_directory("hdfs://nn/cold")
    desk.world.files.writer.rename_into(desk.live("dt=1"), "hdfs://nn/cold/dt=1")
    desk.world.catalog.put_partition(desk.table, replace(partition, location="hdfs://nn/cold/dt=1"))
    desk.recover()
    seen = {row for content in desk.world.files.contents("hdfs://nn/cold").values() for row in content.rows}
    assert "new" in seen | rows_aside(desk)


TAIL, FILE, CONCAT = ["rename_exact", "/ready/", "/dt=1/."], ["rename_exact", "/ready/", "/dt=1/part"], ["concat", "/dt=1/part"]


def move_away(desk):
    desk.world.files.namespace.rename(desk.live("dt=1"), "hdfs://nn/warehouse/away")


def require_as_before(desk):
    desk.world.files.namespace.rename("hdfs://nn/warehouse/away", desk.live("dt=1"))
    assert desk.run_directories() == []
    assert rows_by_file(desk) == {"large.parquet": ("large",), **{f"part-0000{n}.parquet": (SMALL[n],) for n in range(3)}}


@pytest.mark.parametrize("words", [TAIL, FILE, CONCAT])
def test_a_partition_that_is_moved_out_of_the_table_before_it_is_joined_does_not_stop_the_table(words):
    desk = a_desk()
    at(desk, words, lambda: move_away(desk))
    result = desk.compact()
    assert (outcomes(result), result.code) == ({"dt=1": "not-swapped", "dt=2": "swapped"}, Exit.PARTIAL)
    require_as_before(desk)


@pytest.mark.parametrize("words", [TAIL, FILE, CONCAT])
def test_a_killed_join_that_has_not_happened_is_given_up_in_a_partition_that_was_moved_out_of_the_table(words):
    desk = a_desk()
    desk.kill_before(words, desk.compact)
    move_away(desk)
    assert desk.recover().code == Exit.DONE
    require_as_before(desk)


@pytest.mark.parametrize("words", BEFORE_TAKEN)
@pytest.mark.parametrize("then", [drop_partition, create_again])
def test_what_was_joined_by_mistake_becomes_a_backup_if_its_partition_went_to_the_trash(words, then):
    """Also if the table was created again."""
    desk = a_desk()
    manage(desk)
    kill_in_put_back(desk, words, lambda: desk.compact(where="dt = '1'"))
    desk.world.files.writer.make_directory("hdfs://nn/trash")
    desk.world.files.writer.rename_into(desk.live("dt=1"), "hdfs://nn/trash/dt=1")
    then(desk)
    desk.recover()
    assert "new" in rows_aside(desk)
    assert desk.recover().code is Exit.DONE


@pytest.mark.parametrize("words", [["cut "], ["entry.json"]])
def test_a_cleanup_that_is_killed_is_settled_if_a_partition_with_a_place_of_its_own_had_been_moved_before(words):
    desk = a_desk()
    manage(desk)
    move_partition(desk)
    desk.world.files.namespace.advance(3_600_000)
    desk.compact()
    partition = desk.world.partitions(desk.table)["dt=1"]
    desk.world.files.writer.rename_into(desk.live("moved"), desk.live("again"))
    desk.world.catalog.put_partition(desk.table, replace(partition, location=desk.live("again")))
    desk.world.files.namespace.advance(3_600_000)
    desk.kill_before(words, desk.cleanup)
    desk.recover()
    assert desk.recover().code is Exit.DONE


def test_a_source_that_got_another_block_since_the_check_comes_back_whole():
    desk = a_desk()

    def grow():
        desk.world.files.writer.add(f"{desk.live('dt=1')}/more.parquet", DataFile(("more",)), 777)
        desk.world.files.namespace.concat(f"{desk.live('dt=1')}/part-00001.parquet", [f"{desk.live('dt=1')}/more.parquet"])

    at(desk, ["concat", "/dt=1/part"], grow)
    desk.compact(where="dt = '1'")
    assert rows_by_file(desk)["part-00001.parquet"] == ("more",)
    assert files_of(desk)["part-00001.parquet"][0] == 1777


def rename_table(desk):
    """ALTER TABLE … RENAME of a managed table, with its directory."""
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
    place = f"{table.location}2"
    desk.world.files.writer.rename_into(table.location, place)
    desk.world.catalog.drop_table(desk.table)
    moved = [replace(one, location=place + one.location[len(table.location) :]) for one in partitions.values()]
    desk.world.catalog.add_table(replace(table, name="events2", location=place), moved)
    desk.table = "sales.events2"


@pytest.mark.parametrize("words", [["copy_part"], ["rename_exact", "/taken/"], ["rename_exact", "copy-2"]])
def test_a_put_back_is_finished_after_its_table_was_renamed(words):
    desk = a_desk()
    manage(desk)
    kill_in_put_back(desk, words, lambda: desk.compact(where="dt = '1'"))
    rename_table(desk)
    desk.recover()
    assert rows(desk) == sorted([SMALL[0], "new", SMALL[2], "large"])


@pytest.mark.parametrize("words", [["cut ", "/dt=1/"], ["entry.json"]])
@pytest.mark.parametrize("others", [False, True])
def test_a_cleanup_that_is_killed_cuts_what_it_calls_discarded_after_its_table_was_renamed(words, others):
    """`others`: the files of another partition of it were replaced since they were joined."""
    desk = a_desk()
    manage(desk)
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    if others:
        desk.world.files.writer.overwrite(desk.live("dt=2"), {"part-00000.parquet": DataFile(("new",))})
    desk.kill_before(words, desk.cleanup)
    rename_table(desk)
    desk.recover()
    assert desk.cleanup().code is Exit.DONE
    assert desk.log().standing == ()
    (length,) = (length for name, (length, _) in files_of(desk).items() if name != "large.parquet")
    assert length == 3000
    assert outcomes(desk.verify())["dt=1"] == "verified"


def test_a_killed_join_whose_file_went_to_the_trash_is_settled_beside_a_partition_that_is_closed():
    desk = a_desk()
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    trash_files(desk, "dt=1")
    desk.world.files.namespace.unreadable.add(desk.live("dt=2"))
    assert desk.recover().code is Exit.DONE
    assert desk.run_directories() == []


@pytest.mark.parametrize("words", [["copy_part"], [".back-"]])
def test_what_was_joined_by_mistake_is_not_hidden_outside_where_the_location_is_set_while_it_is_looked_for(words, monkeypatch):
    desk = a_desk()
    kill_in_put_back(desk, words, lambda: desk.compact(where="dt = '1'"))
    partition = desk.world.partitions(desk.table)["dt=1"]
    desk.world.files.writer.make_directory("hdfs://nn/cold")
    desk.world.files.writer.rename_into(desk.live("dt=1"), "hdfs://nn/cold/dt=1")
    is_anywhere, asked = type(desk.world.files).is_anywhere, []

    def then_set(self, near, file_id):
        asked.append(file_id)
        if len(asked) == 2:
            # Outside was looked for before.
            desk.world.catalog.put_partition(desk.table, replace(partition, location="hdfs://nn/cold/dt=1"))
        return is_anywhere(self, near, file_id)

    monkeypatch.setattr(type(desk.world.files), "is_anywhere", then_set)
    with suppress(HivekeeperError):
        desk.recover()
    monkeypatch.undo()
    desk.recover()
    seen = {row for content in desk.world.files.contents("hdfs://nn/cold").values() for row in content.rows}
    assert "new" in seen | rows_aside(desk)


def test_a_partition_that_is_renamed_after_a_cleanup_had_listed_all_is_still_found(monkeypatch):
    desk = a_desk()
    manage(desk)
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    trash_files(desk, "dt=2")
    joined, stat, waiting = joined_path(desk), type(desk.world.files).stat, [rename_partition]

    def rename_then_stat(self, path):
        if path == joined and waiting:
            waiting.pop()(desk)
        return stat(self, path)

    monkeypatch.setattr(type(desk.world.files), "stat", rename_then_stat)
    desk.cleanup()
    monkeypatch.undo()
    assert [length for name, (length, _) in files_of(desk, "dt=9").items() if names.may_be_joined(name)] == [3000]


@pytest.mark.parametrize("then", [add_again, lambda _: None])
def test_a_partition_that_is_renamed_just_before_its_file_is_cut_keeps_its_backup_until_the_next_cleanup(then):
    desk = a_desk()
    manage(desk)
    desk.compact(where="dt = '1'")
    desk.world.files.namespace.advance(3_600_000)

    def rename():
        rename_partition(desk)
        then(desk)

    at(desk, ["cut ", "/dt=1/"], rename)
    desk.cleanup()
    desk.world.files.before_step = None
    assert [effect.partition for effect in desk.log().standing] == ["dt=1"]
    desk.cleanup()
    assert desk.log().standing == ()
    assert [length for name, (length, _) in files_of(desk, "dt=9").items() if names.may_be_joined(name)] == [3000]
