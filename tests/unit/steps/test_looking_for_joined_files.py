"""How much a run looks for joined files that are not where it had left them: whoever keeps moving them has it neither wait nor call for
each of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable
from hivekeeper.reasons import Code
from support.joined_desk import (
    a_desk,
    at,
    drop_partition,
    files_of,
    joined_path,
    kill_in_put_back,
    manage,
    rename_partition,
    rows_aside,
    trash_files,
)


def count_calls(monkeypatch, port, method, calls):
    inner = getattr(port, method)

    def counted(self, *arguments):
        calls.append(method)
        return inner(self, *arguments)

    monkeypatch.setattr(port, method, counted)


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


def drop_to_trash(desk, unit):
    """DROP PARTITION of a managed table: its directory goes to the trash."""
    desk.world.files.writer.make_directory("hdfs://nn/trash")
    desk.world.files.writer.rename_into(desk.live(unit), f"hdfs://nn/trash/{unit}")
    desk.world.catalog.drop_partition(desk.table, unit)


@pytest.mark.parametrize("lose", [trash_files, drop_to_trash])
def test_a_cleanup_after_many_partitions_went_to_the_trash_does_not_look_for_each_file_in_each_partition(lose, monkeypatch):
    desk = a_desk()
    manage(desk)
    partition = desk.world.partitions(desk.table)["dt=1"]
    units = [f"dt={number}" for number in range(100, 140)]
    for unit in units:
        desk.world.files.writer.make_directory(desk.live(unit))
        desk.world.catalog.add_partition(desk.table, replace(partition, name=unit, values=(unit[3:],), location=desk.live(unit)))
        desk.append(unit, f"{unit}.a", f"{unit}.b")
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    for unit in units[1:]:
        lose(desk, unit)
    calls = []
    for port, method in ((type(desk.world.files), "stat"), (type(desk.world.metastore), "partitions")):
        count_calls(monkeypatch, port, method, calls)
    desk.cleanup()
    monkeypatch.undo()
    assert desk.log().standing == ()
    assert len(calls) < 10 * len(units)
    assert calls.count("partitions") < 10


def many_joined(desk):
    """Forty more partitions, and two to which their joined files are moved."""
    manage(desk)
    partition = desk.world.partitions(desk.table)["dt=1"]
    units = [f"dt={number}" for number in range(100, 140)]
    for unit in [*units, "dt=8", "dt=9"]:
        desk.world.files.writer.make_directory(desk.live(unit))
        desk.world.catalog.add_partition(desk.table, replace(partition, name=unit, values=(unit[3:],), location=desk.live(unit)))
    for unit in units:
        desk.append(unit, f"{unit}.a", f"{unit}.b")
    return units


def move_joined(desk, units):
    for unit in units:
        (joined,) = (file for file in files_of(desk, unit) if names.may_be_joined(file))
        desk.world.files.writer.rename_into(f"{desk.live(unit)}/{joined}", f"{desk.live('dt=8')}/{joined}")


def keep_moving(desk, units, monkeypatch, listings):
    """Move the joined files of these partitions to another one, and on to the next whenever one is looked for where it was listed. To list
    all takes long: there may be a million files.
    """
    stat, next_of = type(desk.world.files).stat, {"dt=8": "dt=9", "dt=9": "dt=8"}
    for unit in units:
        (joined,) = (name for name in files_of(desk, unit) if names.may_be_joined(name))
        desk.world.files.writer.rename_into(f"{desk.live(unit)}/{joined}", f"{desk.live('dt=8')}/{joined}")
        desk.world.add_file(f"{desk.live(unit)}/new.parquet", [f"new of {unit}"])

    def move_then_stat(self, path):
        unit, name = path.split("/")[-2:]
        if unit in next_of and names.may_be_joined(name) and stat(self, path):
            desk.world.files.writer.rename_into(path, f"{desk.live(next_of[unit])}/{name}")
        return stat(self, path)

    monkeypatch.setattr(type(desk.world.files), "stat", move_then_stat)
    partitions = type(desk.world.metastore).partitions

    def list_slowly(self, table):
        listings.append(table)
        desk.world.clock.sleep_ms(55_000)
        return partitions(self, table)

    monkeypatch.setattr(type(desk.world.metastore), "partitions", list_slowly)


def test_what_was_taken_by_mistake_is_not_given_up_with_a_file_that_is_moved_again_just_when_it_was_found(monkeypatch):
    desk = a_desk()
    manage(desk)
    kill_in_put_back(desk, ["rename_exact", "/taken/u00001.file"], lambda: desk.compact(where="dt = '1'"))
    writer, find_paths, waiting = desk.world.files.writer, type(desk.world.files).find_paths, []
    joined, other, again = joined_path(desk), desk.live("dt=1/other.parquet"), desk.live("dt=1/again.parquet")

    def rename_first():
        writer.rename_into(joined, other)
        waiting.append(again)

    def find_then_rename(files, near, former):
        found = find_paths(files, near, former)
        if waiting:
            writer.rename_into(other, waiting.pop())
        return found

    monkeypatch.setattr(type(desk.world.files), "find_paths", find_then_rename)
    at(desk, ["/dt=1/.hivekeeper.tail", "/taken/"], rename_first)
    desk.recover()
    assert not waiting
    desk.recover()
    assert "new" in rows_aside(desk)


def test_a_joined_file_that_keeps_being_moved_keeps_no_other_backup_and_no_later_run_waiting(monkeypatch):
    desk = a_desk()
    manage(desk)
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    restless, find_paths = desk.world.files.stat(joined_path(desk)).file_id, type(desk.world.files).find_paths
    rename_partition(desk)

    def find_in_vain(files, near, former):
        if restless in former:
            raise FilesUnavailable("it keeps being moved")
        return find_paths(files, near, former)

    with monkeypatch.context() as patch:
        patch.setattr(type(desk.world.files), "find_paths", find_in_vain)
        desk.cleanup()
        assert [effect.partition for effect in desk.log().standing] == ["dt=1"]
        assert desk.compact().code is Exit.DONE
    desk.cleanup()
    assert desk.log().standing == ()


def test_whoever_keeps_moving_joined_files_does_not_have_a_cleanup_list_all_partitions_for_each(monkeypatch):
    desk, listings = a_desk(), []
    units = many_joined(desk)
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    keep_moving(desk, units, monkeypatch, listings)
    desk.cleanup()
    monkeypatch.undo()
    assert len(listings) < 30
    # They are kept until a cleanup finds them.
    assert {effect.partition for effect in desk.log().standing} == set(units)
    desk.cleanup()
    assert desk.log().standing == ()


@pytest.mark.parametrize("slow", ["find_paths", "partitions"])
def test_what_takes_more_than_a_minute_is_not_read_again_for_each_joined_file(slow, monkeypatch):
    """Half of these files are gone, the others in a directory of the table that is no partition's."""
    desk, calls = a_desk(), []
    units = many_joined(desk)
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    desk.world.files.writer.make_directory(desk.live("deep"))
    for number, unit in enumerate(units):
        (joined,) = (name for name in files_of(desk, unit) if names.may_be_joined(name))
        if number % 2:
            desk.world.files.writer.delete(f"{desk.live(unit)}/{joined}")
        else:
            desk.world.files.writer.rename_into(f"{desk.live(unit)}/{joined}", f"{desk.live('deep')}/{joined}")
    port = type(desk.world.files if slow == "find_paths" else desk.world.metastore)
    inner = getattr(port, slow)

    def take_long(self, *arguments):
        # To find one is quick.
        if slow == "partitions" or len(arguments[1]) > 1:
            calls.append(slow)
            desk.world.clock.sleep_ms(70_000)
        return inner(self, *arguments)

    monkeypatch.setattr(port, slow, take_long)
    desk.cleanup()
    assert 0 < len(calls) < 5


def test_a_table_that_is_renamed_again_while_a_cleanup_uses_its_new_name_is_found():
    desk = a_desk()
    units = many_joined(desk)
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    move_joined(desk, units)

    def rename(what):
        if what.startswith("cut ") and "/dt=8/" in what:
            table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
            desk.world.catalog.drop_table(desk.table)
            desk.world.catalog.add_table(replace(table, name=f"{table.name}x"), partitions.values())
            desk.table = f"sales.{table.name}x"

    desk.world.files.before_step = rename
    desk.cleanup()
    desk.world.files.before_step = None
    assert desk.log().standing == ()
    assert {length for name, (length, _) in files_of(desk, "dt=8").items() if names.may_be_joined(name)} == {2000}


@pytest.mark.parametrize("name", ["events2", None])
def test_a_table_that_is_renamed_or_dropped_during_a_cleanup_is_not_looked_for_among_all_for_each_joined_file(name, monkeypatch):
    """All definitions of its database are read for that, which may be many."""
    desk, calls = a_desk(), []
    units = many_joined(desk)
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    move_joined(desk, units)

    def rename(what):
        if what.startswith("cut "):
            desk.world.files.before_step = None
            table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
            desk.world.catalog.drop_table(desk.table)
            if name:
                desk.world.catalog.add_table(replace(table, name=name), partitions.values())
                desk.table = f"sales.{name}"
            count_calls(monkeypatch, type(desk.world.metastore), "table_names", calls)

    desk.world.files.before_step = rename
    desk.cleanup()
    monkeypatch.undo()
    assert 0 < len(calls) < 5
    if name:
        desk.cleanup()
        assert desk.log().standing == ()


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


def calls_of_recovery(lose, count, monkeypatch):
    """A run that joined files in so many partitions was killed before its record, and all these files or partitions went to a trash."""
    desk = a_desk()
    manage(desk)
    partition = desk.world.partitions(desk.table)["dt=1"]
    units = [f"dt={number}" for number in range(100, 100 + count)]
    for unit in units:
        desk.world.files.writer.make_directory(desk.live(unit))
        desk.world.catalog.add_partition(desk.table, replace(partition, name=unit, values=(unit[3:],), location=desk.live(unit)))
        desk.append(unit, f"{unit}.a", f"{unit}.b")
    desk.kill_before(["entry.json"], desk.compact)
    for unit in units:
        lose(desk, unit)
    calls = []
    for port, names_of in ((desk.world.files, ("stat", "look", "find_paths", "is_anywhere")), (desk.world.metastore, ("partitions",))):
        for method in names_of:
            count_calls(monkeypatch, type(port), method, calls)
    desk.recover()
    monkeypatch.undo()
    assert desk.run_directories() == []
    return calls


@pytest.mark.repeating
@pytest.mark.parametrize("lose", [trash_files, drop_to_trash])
def test_a_recovery_after_many_partitions_went_to_the_trash_does_not_look_for_each_file_in_each_partition(lose, monkeypatch):
    few, many = (calls_of_recovery(lose, count, monkeypatch) for count in (40, 80))
    assert len(many) < 2.2 * len(few)
    assert many.count("partitions") < 10


def test_a_directory_that_was_closed_after_it_was_moved_away_is_not_looked_into():
    """A recovery would never end, though another one is at its place."""
    desk = a_desk()
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    desk.world.files.writer.rename_into(desk.live("dt=1"), desk.live("parked"))
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    desk.world.files.namespace.unreadable.add(desk.live("parked"))
    (table,) = desk.recover().tables
    assert table.problem is None
    assert desk.run_directories() == []
