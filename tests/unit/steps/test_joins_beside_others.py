"""Joined files, their backups and interrupted runs beside what others do to the table: replace, move, drop, pin, swap."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.errors import HivekeeperError
from hivekeeper.ports import SourceMissing
from support.desk import EVERYTHING, outcomes
from support.fakes.rows import DataFile
from support.joined_desk import (
    ALL,
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
    rows_by_file,
)

DAY_MS = 86_400_000


def rows_aside(desk):
    """The rows in backups of the log that lie at a place of their own."""
    found = set()
    for effect in desk.log().standing:
        for path, content in desk.world.files.contents(names.join(desk.control.top, effect.place)).items():
            assert path
            found.update(content.rows)
    return found


def is_there(desk, effect):
    """Whether the file that has the old ones of a join inside is anywhere, and as long as it was."""
    nodes = [node for _, node in desk.world.files.namespace.walk("hdfs://nn") if not node.is_dir]
    return (effect.inside.file_id, effect.inside.length) in {(node.id, node.length) for node in nodes}


def a_joined_desk(**settings):
    desk = a_desk(**settings)
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    return desk


# ---- rows that nobody sees any more


@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_a_file_that_replaced_the_joined_one_itself_does_not_vanish_in_the_concat(command):
    """The target of a concat goes by name, too: the rows of who replaced it are inside, unseen. On HDFS the tail's offsets do not fit
    that file's bytes, so the rows of all sources are gone with them.
    """
    desk = a_joined_desk() if command == "rollback" else a_desk()

    def replace_joined():
        (name,) = (name for name, of_file in rows_by_file(desk).items() if not of_file and not names.split_suffix(name)[0].endswith("_"))
        replace_one(desk, name)

    at(desk, ["concat", "/dt=1/part"], replace_joined)
    getattr(desk, command)(where="dt = '1'")
    desk.world.files.before_step = None
    assert set(rows(desk)) | rows_aside(desk) >= {*ALL, "new"}


@pytest.mark.parametrize("words", [["copy_part"], [".back-"], ["rename_exact", "/taken/u00001.file"]])
@pytest.mark.parametrize("change", [rename_partition, move_partition])
def test_a_directory_that_moves_while_copies_are_made_takes_no_row_along_unseen(words, change):
    """Nobody is killed. The run has looked for its file at the old place only."""
    desk = a_desk()
    manage(desk)

    def replace_then_move():
        replace_one(desk)
        at(desk, words, lambda: change(desk))

    at(desk, ["concat", "/dt=1/part"], replace_then_move)
    desk.compact(where="dt = '1'")
    desk.world.files.before_step = None
    desk.recover()
    seen = set(rows(desk, "dt=9" if change is rename_partition else "moved"))
    assert "new" in seen | rows_aside(desk)
    # What it had replaced.
    assert SMALL[1] not in seen


def test_a_file_that_was_replaced_twice_comes_back_once():
    """The second time while its copy waited in `ready`: the older rows are brought back beside the newer ones."""
    desk = a_desk()
    kill_in_put_back(desk, ["rename_exact", "copy-2"], lambda: desk.compact(where="dt = '1'"))
    desk.world.files.writer.add(f"{desk.live('dt=1')}/part-00001.parquet", DataFile(("newer",)), 888)
    desk.world.files.namespace.advance(3_600_000)
    desk.recover()
    assert rows(desk) == sorted([SMALL[0], "newer", SMALL[2], "large"])


@pytest.mark.parametrize("before", [[], ["rename_exact", "/taken/u00001.beside"]])
def test_what_came_to_the_place_of_the_file_without_rows_is_not_deleted_with_a_join_that_is_given_up(before):
    """A rollback joins a single file with one beside it. Replaced before the recovery, or just when that takes it out of live."""
    desk = a_joined_desk()
    desk.kill_before(["concat", "/dt=1/part"], lambda: desk.rollback(where="dt = '1'"))
    (beside,) = (name for name in files_of(desk) if name.endswith("_.parquet"))
    if before:
        at(desk, before, lambda: replace_one(desk, beside))
    else:
        replace_one(desk, beside)
    desk.recover()
    desk.recover()
    assert rows(desk) == sorted([*ALL, "new"])


# ---- backups that the log has and nobody else


def test_a_pinned_backup_inside_a_file_is_not_discarded_with_the_backup_that_holds_that_file():
    """A rollback's backup, and a swap on top of it: the swap ends what could be redone, so nothing keeps it for the pin."""
    desk = a_joined_desk()
    desk.rollback()
    undo = desk.runs[-1]
    desk.pin(undo)
    desk.append("dt=1", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    assert outcomes(desk.compact(where="dt = '1'"))["dt=1"] == "swapped"
    desk.cleanup()
    pinned = [effect for effect in desk.log().standing if effect.run == undo]
    assert len(pinned) == 2
    assert all(is_there(desk, effect) for effect in pinned)


def test_a_pinned_backup_of_a_former_table_is_not_discarded_with_the_backup_that_holds_its_file():
    desk = a_joined_desk()
    first = desk.runs[0]
    desk.pin(first)
    desk.append("dt=1", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    desk.compact(where="dt = '1'")
    create_again(desk)
    desk.append("dt=1", "d", "e", "f")
    assert outcomes(desk.compact(where="dt = '1'"))["dt=1"] == "swapped"
    desk.cleanup(former=True)
    pinned = [effect for effect in desk.log().standing if effect.run == first]
    assert len(pinned) == 2
    assert all(is_there(desk, effect) for effect in pinned)


def test_a_cleanup_while_a_partition_is_elsewhere_does_not_call_its_backup_discarded():
    """An operator moves it away and back: what is inside the file stays for ever, and verify says that somebody replaced it."""
    desk = a_joined_desk()
    back = desk.world.partitions(desk.table)["dt=1"]
    move_partition(desk)
    desk.cleanup()
    desk.world.files.writer.rename_into(desk.live("moved"), desk.live("dt=1"))
    desk.world.catalog.put_partition(desk.table, back)
    assert outcomes(desk.verify())["dt=1"] == "verified"
    desk.cleanup()
    (length,) = (length for name, (length, _) in files_of(desk).items() if name != "large.parquet")
    assert length == 3000


def test_a_file_that_a_cut_did_not_find_although_it_is_there_keeps_its_backup():
    """A router looks for an inode's path in its default namespace, and finds no such file."""
    desk = a_joined_desk()
    length = desk.world.files.stat(joined_path(desk)).length
    at(desk, ["cut ", "/dt=1/"], lambda: desk.world.files.fail_next("cut", SourceMissing("/.reserved/.inodes/16413")))
    desk.cleanup()
    assert desk.world.files.stat(joined_path(desk)).length == length
    assert [effect.partition for effect in desk.log().standing] == ["dt=1"]


def test_old_files_that_are_gone_with_the_file_around_them_are_not_kept_for_not_going_to_the_trash():
    """Overwritten in one partition; in the other one in the backup of a swap, which this cleanup moves to the trash."""
    desk = a_joined_desk()
    desk.world.files.writer.overwrite(desk.live("dt=2"), {"new.parquet": DataFile(("new",))})
    desk.append("dt=1", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    assert outcomes(desk.compact(where="dt = '1'"))["dt=1"] == "swapped"
    assert desk.cleanup(how="trash").code is Exit.DONE
    assert desk.log().standing == ()


# ---- verify


def test_a_rollback_of_files_that_a_swap_had_written_is_no_difference():
    """They come back as one file, under another name; so nothing can be verified any more, and the exit code is 5."""
    desk = a_desk(exchange="directory")
    desk.compact(where="dt = '2'")
    desk.append("dt=2", "a", "b")
    desk.settings = replace(desk.settings, exchange="files")
    assert outcomes(desk.compact(where="dt = '2'"))["dt=2"] == "swapped"
    assert outcomes(desk.rollback(where="dt = '2'"))["dt=2"] == "rolled-back"
    result = desk.verify()
    assert (outcomes(result)["dt=2"], result.code) == ("verified", Exit.DONE)


def test_a_record_is_still_the_same_after_the_entries_of_a_join_before_it_are_expired():
    """`expiry.find_needed` ends at a join, which leaves other files of the unit."""
    rules = {"checkpoint_interval": 1, "log_retention_ms": 3 * DAY_MS}
    desk = a_desk(**rules)
    desk.compact()
    desk.backup(where="dt = '1'")
    record = desk.runs[-1]
    desk.pin(record)
    desk.append("dt=1", "a", "b")
    desk.compact(where="dt = '1'")
    desk.cleanup(replace(EVERYTHING, **rules))
    assert outcomes(desk.verify(record)) == {"dt=1": "verified"}
    for number in range(3):
        desk.world.files.namespace.advance(3 * DAY_MS)
        desk.append("dt=2", f"x{number}", f"y{number}")
        desk.compact(where="dt = '2'")
    assert desk.log().runs[0].expired
    assert outcomes(desk.verify(record)) == {"dt=1": "verified"}


# ---- runs that cannot be settled, and what they leave


@pytest.mark.parametrize("words", [["concat", "/dt=1/part"], ["entry.json"]])
def test_a_join_is_settled_where_its_partition_was_moved_out_of_the_table(words):
    """As `hdfs dfs -mv` to cold storage. Every command of the table ends with 7 until it is moved back."""
    desk = a_desk()
    desk.kill_before(words, lambda: desk.compact(where="dt = '1'"))
    partition = desk.world.partitions(desk.table)["dt=1"]
    desk.world.files.writer.make_directory("hdfs://nn/cold")
    desk.world.files.writer.rename_into(desk.live("dt=1"), "hdfs://nn/cold/dt=1")
    desk.world.catalog.put_partition(desk.table, replace(partition, location="hdfs://nn/cold/dt=1"))
    desk.recover()
    assert desk.recover().code is Exit.DONE
    assert desk.run_directories() == []


@pytest.mark.parametrize("command", ["compact", "cleanup", "rollback"])
def test_a_killed_run_is_settled_after_a_partition_with_a_place_of_its_own_was_dropped_with_its_files(command):
    """A swap, and its cleanup, have the same fault."""
    desk = a_desk()
    manage(desk)
    move_partition(desk)
    desk.world.files.namespace.advance(3_600_000)
    if command != "compact":
        desk.compact()
        desk.world.files.namespace.advance(3_600_000)
    desk.kill_before(["cut "] if command == "cleanup" else ["ready/u"], getattr(desk, command))
    desk.world.files.writer.delete(desk.live("moved"))
    drop_partition(desk)
    desk.recover()
    assert desk.recover().code is Exit.DONE


@pytest.mark.parametrize("words", [["rename_exact", "/ready/u00001/part"], ["concat", "/dt=1/part"]])
@pytest.mark.parametrize("change", [rename_partition, move_partition])
@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_nothing_hidden_stays_in_a_directory_that_moves_before_the_concat(words, change, command):
    """Nobody is killed. The hidden tail looks like a writer's file from then on: this partition is never compacted again."""
    desk = a_joined_desk() if command == "rollback" else a_desk()
    manage(desk)
    at(desk, words, lambda: change(desk))
    with suppress(HivekeeperError):
        getattr(desk, command)(where="dt = '1'")
    desk.recover()
    found = rows_by_file(desk, "dt=9" if change is rename_partition else "moved")
    assert [name for name, of_file in found.items() if names.is_hidden(name) or not of_file] == []


def test_a_run_that_was_stalled_before_it_set_files_aside_leaves_no_directory(monkeypatch):
    """`make_directory` makes a directory of its run again that the recovery has renamed; no sweep ever removes it."""
    desk = a_desk()
    monkeypatch.setattr(type(desk.world.rows), "find_starts", lambda *_: ())

    def recover_meanwhile():
        desk.world.files.expire_locks()
        desk.recover(cluster=desk.world.another_process())

    def replace_two():
        for number in range(2):
            replace_one(desk, f"part-0000{number}.parquet", f"new{number}")
        at(desk, ["rename_exact", "/ready/u00001", "/retired/u"], recover_meanwhile)

    at(desk, ["concat", "/dt=1/part"], replace_two)
    with suppress(HivekeeperError):
        desk.compact(where="dt = '1'")
    desk.world.files.before_step = None
    desk.recover()
    assert [directory for directory in desk.run_directories() if ".t" not in directory] == []
