"""Joins whose partition was renamed, moved or given again, and other cases in which a run must look for what it had joined."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.errors import HivekeeperError
from hivekeeper.reasons import Code
from support.desk import outcomes
from support.fakes.rows import DataFile
from support.joined_desk import (
    ALL,
    SMALL,
    a_desk,
    at,
    drop_partition,
    files_of,
    kill_in_put_back,
    manage,
    move_partition,
    rename_partition,
    rows,
    rows_by_file,
)


def add_again(desk):
    """A new partition by the former name, as of `dt=current` that is renamed to its day."""
    partition = desk.world.partitions(desk.table)["dt=9"]
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    desk.world.catalog.add_partition(desk.table, replace(partition, name="dt=1", values=("1",), location=desk.live("dt=1")))


def rows_aside(desk):
    found = set()
    for effect in desk.log().standing:
        for content in desk.world.files.contents(names.join(desk.control.top, effect.place)).values():
            found.update(content.rows)
    return found


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


@pytest.mark.parametrize("words", [["rename_exact", "/ready/u00001/part"], ["concat", "/moved/part"], ["entry.json"]])
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


def test_a_record_is_still_the_same_after_a_join_on_it_was_rolled_back():
    desk = a_desk()
    desk.backup(where="dt = '1'")
    record = desk.runs[-1]
    desk.compact(where="dt = '1'")
    desk.rollback(where="dt = '1'")
    assert outcomes(desk.verify(record)) == {"dt=1": "verified"}


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


def test_backups_of_a_partition_that_was_moved_after_a_join_do_not_stay_for_ever():
    desk = a_desk()
    desk.compact(where="dt = '1'")
    move_partition(desk)
    for number in range(3):
        desk.append("moved", f"a{number}", f"b{number}", f"c{number}")
        desk.compact(where="dt = '1'")
        desk.world.files.namespace.advance(3_600_000)
        desk.cleanup()
    assert [effect.run for effect in desk.log().standing][1:] == []


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


def test_a_partition_that_was_renamed_after_a_join_is_cleaned_up_without_an_error_for_ever():
    desk = a_desk()
    manage(desk)
    desk.compact(where="dt = '1'")
    rename_partition(desk)
    desk.world.files.namespace.advance(3_600_000)
    desk.cleanup()
    assert desk.cleanup().code is Exit.DONE


def test_a_run_looks_for_partitions_that_were_dropped_without_a_call_for_each_other_one():
    desk = a_desk()
    manage(desk)
    partition = desk.world.partitions(desk.table)["dt=1"]
    for number in range(100, 400):
        live = desk.live(f"dt={number}")
        desk.world.files.writer.make_directory(live)
        desk.world.catalog.add_partition(desk.table, replace(partition, name=f"dt={number}", values=(str(number),), location=live))
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    desk.world.files.writer.delete(desk.live("dt=1"))
    drop_partition(desk)
    calls, stat = [], type(desk.world.files).stat

    def count(self, path):
        calls.append(path)
        return stat(self, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(desk.world.files), "stat", count)
        desk.recover()
    assert len(calls) < 300


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


@pytest.mark.parametrize("words", [["concat", "/dt=1/part"], ["entry.json"]])
def test_no_foreign_server_is_called_where_a_partition_whose_files_were_joined_is_looked_for(words):
    """It was moved out of the table, and others were pointed at a server that may never answer."""
    desk = a_desk()
    desk.kill_before(words, lambda: desk.compact(where="dt = '1'"))
    partition = desk.world.partitions(desk.table)["dt=1"]
    desk.world.files.writer.make_directory("hdfs://nn/elsewhere")
    desk.world.files.writer.rename_into(desk.live("dt=1"), "hdfs://nn/elsewhere/moved")
    desk.world.catalog.drop_partition(desk.table, "dt=1")
    for name, location in (("dt=0", "hdfs://silent:2121/x"), ("dt=9", "hdfs://nn/elsewhere/moved")):
        desk.world.catalog.add_partition(desk.table, replace(partition, name=name, values=(name[3:],), location=location))
    (table,) = desk.recover().tables
    assert table.problem is None or table.problem.code is not Code.BUG, table.problem
