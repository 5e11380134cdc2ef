"""Old files inside the joined file of a partition that was renamed or moved since: they stay backups, and do not count as its data."""

from __future__ import annotations

from dataclasses import replace

from hivekeeper import names
from hivekeeper.codes import Exit
from support.desk import outcomes
from support.joined_desk import (
    ALL,
    a_desk,
    files_of,
    joined_name,
    manage,
    move_partition,
    rename_partition,
    rows,
)


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


def test_a_partition_that_was_renamed_after_a_join_is_cleaned_up_without_an_error_for_ever():
    desk = a_desk()
    manage(desk)
    desk.compact(where="dt = '1'")
    rename_partition(desk)
    desk.world.files.namespace.advance(3_600_000)
    desk.cleanup()
    assert desk.cleanup().code is Exit.DONE


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
