"""Joins whose partition was renamed, moved or given again, and other cases in which a run must look for what it had joined."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.errors import HivekeeperError
from hivekeeper.ports import FilesUnavailable
from hivekeeper.reasons import Code
from support.desk import outcomes
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
    joined_path,
    kill_after_strange_concat,
    kill_in_put_back,
    manage,
    move_partition,
    put_strange,
    rename_partition,
    replace_one,
    rows,
    rows_aside,
    rows_by_file,
    survive,
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


# Steps of a put-back before T leaves live.
BEFORE_TAKEN = [["copy_part"], ["dress", "/ready/"], [".back-"], ["rename_exact", "/taken/u00001.file"]]


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


def swap_after_rename(desk):
    """Join the files of a partition, rename it, and swap its directory: the backup of the swap holds the joined file. Returns that run."""
    manage(desk)
    desk.compact()
    rename_partition(desk)
    desk.append("dt=9", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    assert outcomes(desk.compact(where="dt = '9'"))["dt=9"] == "swapped"
    return desk.runs[-1]


def test_a_pinned_backup_stays_whole_that_a_partition_shows_and_that_holds_a_file_of_a_partition_of_another_name():
    desk = a_desk()
    run = swap_after_rename(desk)
    desk.pin(run)
    (held,) = (effect for effect in desk.log().standing if effect.run == run)
    place = names.join(desk.control.top, held.place)
    shown = replace(desk.world.partitions(desk.table)["dt=9"], name="dt=5", values=("5",), location=place)
    desk.world.catalog.add_partition(desk.table, shown)
    desk.cleanup()
    desk.world.catalog.drop_partition(desk.table, "dt=5")
    assert outcomes(desk.rollback(run, where="dt = '9'"))["dt=9"] == "rolled-back"


def test_old_files_in_a_backup_of_a_partition_that_was_renamed_are_cut_off_when_that_is_rolled_back():
    desk = a_desk()
    run = swap_after_rename(desk)
    desk.pin(run)
    desk.cleanup()
    desk.rollback(run)
    desk.world.files.namespace.advance(3_600_000)
    desk.cleanup()
    assert [length for name, (length, _) in files_of(desk, "dt=9").items() if names.may_be_joined(name)] == [3000]


def test_old_files_in_a_backup_of_a_partition_that_was_renamed_stay_with_it_if_it_cannot_be_discarded():
    desk = a_desk()
    run = swap_after_rename(desk)
    (held,) = (effect for effect in desk.log().standing if effect.run == run)
    desk.world.files.writer.open(names.join(desk.control.top, held.place, "late.parquet"))
    desk.cleanup()
    assert [effect.partition for effect in desk.log().standing] == ["dt=1", "dt=9"]


def test_a_record_of_a_renamed_partition_is_still_the_same_after_old_files_were_cut_off_there():
    desk = a_desk()
    manage(desk)
    desk.compact()
    rename_partition(desk)
    desk.backup(where="dt = '9'")
    record = desk.runs[-1]
    desk.pin(record)
    desk.cleanup()
    assert outcomes(desk.verify(record)) == {"dt=9": "verified"}


def test_a_swap_of_a_renamed_partition_can_be_done_again_after_old_files_were_cut_off_there():
    desk = a_desk()
    run = swap_after_rename(desk)
    desk.rollback(run)
    undo = desk.runs[-1]
    desk.pin(undo)
    desk.cleanup()
    assert outcomes(desk.rollback(undo))["dt=9"] == "rolled-back"


def rename_then_join_more(desk):
    """The run that joined files of `dt=1`, which is pinned. Renamed, the partition gets new small files, and these are joined."""
    manage(desk)
    desk.compact(where="dt = '1'")
    run = desk.runs[-1]
    desk.pin(run)
    rename_partition(desk)
    desk.append("dt=9", "a", "b", "c")
    assert outcomes(desk.compact(where="dt = '9'")) == {"dt=9": "swapped"}
    return run


def rename_back(desk):
    partition = desk.world.partitions(desk.table)["dt=9"]
    desk.world.files.writer.rename_into(desk.live("dt=9"), desk.live("dt=1"))
    desk.world.catalog.drop_partition(desk.table, "dt=9")
    desk.world.catalog.add_partition(desk.table, replace(partition, name="dt=1", values=("1",), location=desk.live("dt=1")))


def total_bytes(desk, unit):
    return {one.name: one.sizes.total_bytes for one in desk.analyze().tables[0].observed.units}[unit]


def test_a_pinned_backup_inside_a_file_of_a_renamed_partition_is_not_joined_away():
    desk = a_desk()
    run = rename_then_join_more(desk)
    (inside,) = (effect.inside for effect in desk.log().standing if effect.run == run)
    found = desk.world.files.stat(f"{desk.live('dt=9')}/{inside.file}")
    assert (found.file_id, found.length) == (inside.file_id, inside.length)


def test_a_pinned_backup_inside_a_file_of_a_renamed_partition_can_be_rolled_back_when_the_name_is_back():
    desk = a_desk()
    run = rename_then_join_more(desk)
    desk.cleanup()
    rename_back(desk)
    assert outcomes(desk.rollback(run)) == {"dt=1": "rolled-back"}
    assert rows(desk) == sorted([*ALL, "a", "b", "c"])


def test_old_files_inside_a_file_of_a_renamed_partition_do_not_count():
    desk = a_desk()
    manage(desk)
    desk.compact(where="dt = '1'")
    before = total_bytes(desk, "dt=1")
    rename_partition(desk)
    assert total_bytes(desk, "dt=9") == before


def test_old_files_inside_a_file_of_a_renamed_partition_do_not_count_in_the_metastore():
    desk = a_desk()
    rename_then_join_more(desk)
    copies = {effect.inside.file: effect.inside.copy_bytes for effect in desk.log().standing}
    own = [copies.get(name, length) for name, (length, _) in files_of(desk, "dt=9").items()]
    assert len(copies) == 2
    assert desk.world.partitions(desk.table)["dt=9"].parameters["totalSize"] == str(sum(own))


def test_a_copy_of_a_file_with_old_ones_inside_is_joined_as_any_other():
    desk = a_desk()
    desk.compact(where="dt = '1'")
    name = joined_name(desk)
    length, of_file = files_of(desk)[name]
    desk.world.add_file(f"{desk.live('dt=2')}/{name}", list(of_file), length)
    desk.world.files.namespace.advance(3_600_000)
    assert outcomes(desk.compact(where="dt = '2'")) == {"dt=2": "swapped"}
    assert name not in files_of(desk, "dt=2")
    assert name in files_of(desk)


def trash_files(desk, unit):
    """INSERT OVERWRITE of a table without `auto.purge`: the former files go to the trash, and still exist."""
    desk.world.files.writer.make_directory("hdfs://nn/trash")
    for path in desk.world.files.contents(desk.live(unit)):
        desk.world.files.writer.rename_into(path, f"hdfs://nn/trash/{unit}.{names.base(path)}")
    desk.world.add_file(f"{desk.live(unit)}/new.parquet", [f"new of {unit}"])


def test_a_killed_join_whose_file_went_to_the_trash_is_settled_beside_a_partition_that_is_closed():
    desk = a_desk()
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    trash_files(desk, "dt=1")
    desk.world.files.namespace.unreadable.add(desk.live("dt=2"))
    assert desk.recover().code is Exit.DONE
    assert desk.run_directories() == []


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


def test_a_joined_file_that_somebody_renamed_is_nobodys_backup_any_more():
    desk = a_desk()
    desk.compact(where="dt = '1'")
    desk.world.files.namespace.advance(3_600_000)
    desk.world.files.writer.rename_into(joined_path(desk), f"{desk.live('dt=1')}/other.parquet")
    desk.cleanup()
    assert desk.log().standing == ()
    assert files_of(desk)["other.parquet"][1] == tuple(SMALL)


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


def count_calls(monkeypatch, port, method, calls):
    inner = getattr(port, method)

    def counted(self, *arguments):
        calls.append(method)
        return inner(self, *arguments)

    monkeypatch.setattr(port, method, counted)


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
