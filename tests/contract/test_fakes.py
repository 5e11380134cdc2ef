"""What the fakes alone can do: die, fail, starve, and let others act in between."""

from __future__ import annotations

import pytest

from hivekeeper.ports import (
    FilesUnavailable,
    LockHeld,
    MetastoreUnavailable,
    NoPermission,
    NoSpace,
    TargetExists,
)
from support.fakes.files import TRASH, FakeFiles, Killed
from support.fakes.metastore import FakeMetastore
from support.file_worlds import names_in, text_of
from support.metastore_worlds import MARKS, FakeWorld, add_partitions, backup_of, make_backup, partition_of, place, shown_by

# ---- files


@pytest.mark.parametrize("at_once", [True, False])
def test_a_killed_client_has_made_so_many_steps_and_makes_no_more(at_once):
    files = FakeFiles()
    files.die_after(2, at_once)
    with pytest.raises(Killed):
        for name in "abc":
            files.make_directory(f"/{name}")
    for call in (lambda: files.look(["/a"]), lambda: files.delete_tree("/a"), lambda: files.hold("/_lock", "x")):
        with pytest.raises(Killed):
            call()
    files.revive()
    assert names_in(files.look(["/"])["/"]) == ["a", "b"]
    assert files.steps == 2


def test_a_text_whose_writer_is_killed_stays_in_part_and_open_until_its_lease_ends():
    files = FakeFiles()
    files.die_after(1)
    with pytest.raises(Killed):
        files.write_new("/plan", "whole text")
    files.revive()
    assert text_of(files, "/plan") == "whole"
    assert files.stat("/plan").is_open
    files.expire_locks()
    assert not files.stat("/plan").is_open


def test_a_dead_clients_lock_is_held_until_its_lease_ends():
    files = FakeFiles()
    files.hold("/_lock", "dead")
    files.die_after(0)
    with pytest.raises(Killed):
        files.make_directory("/a")
    with pytest.raises(LockHeld):
        files.another_client().hold("/_lock", "next")
    files.expire_locks()
    assert files.another_client().hold("/_lock", "next").check()


@pytest.mark.parametrize("done", [True, False])
def test_an_injected_error_may_hide_a_change_that_was_made(done):
    files = FakeFiles({"/a/f": "x"})
    files.fail_next("rename_exact", FilesUnavailable("connection lost"), done=done)
    with pytest.raises(FilesUnavailable):
        files.rename_exact("/a", "/b")
    assert names_in(files.look(["/"])["/"]) == (["b"] if done else ["a"])
    files.rename_exact(*(("/b", "/a") if done else ("/a", "/b")))


def test_another_program_may_act_before_each_step():
    files = FakeFiles({"/a/f": "x"})
    seen = []

    def interleave(what):
        seen.append(what.split()[0])
        if what.startswith("rename_exact"):
            files.writer.add("/b/late", "y")

    files.before_step = interleave
    files.make_directory("/c")
    with pytest.raises(TargetExists):
        files.rename_exact("/a", "/b")
    assert seen == ["make_directory", "rename_exact"]


def test_a_denied_place_cannot_be_changed_and_a_full_one_not_written_to():
    files = FakeFiles({"/a/f": "x", "/ab/f": "x"})
    files.namespace.denied.add(files.qualify("/a"))
    with pytest.raises(NoPermission):
        files.rename_exact("/a/f", "/c")
    files.rename_exact("/ab/f", "/c")
    files.namespace.space_bytes = 8
    assert files.room("/", []).free_bytes == 6
    with pytest.raises(NoSpace):
        files.write_new("/big", "0123456789")
    assert files.contents() == {files.qualify("/a/f"): "x", files.qualify("/c"): "x", files.qualify("/big"): "01234"}


def test_a_move_to_the_trash_is_one_step_and_needs_a_right():
    files = FakeFiles({"/t/u/f": "x"})
    files.die_after(1)
    with pytest.raises(Killed):
        files.move_to_trash("/t/u")
    files.revive()
    assert files.contents() == {TRASH + "/t/u/f": "x"}
    files.writer.add("/t/u/f", "y")
    files.namespace.denied.add(files.qualify("/t"))
    with pytest.raises(NoPermission):
        files.move_to_trash("/t/u")
    assert text_of(files, "/t/u/f") == "y"


def test_a_coarse_clock_gives_two_changes_one_time():
    files = FakeFiles({"/a/f": "x"})
    files.namespace.tick_ms = 0
    before = files.stat("/a").mtime_ms
    files.writer.add("/a/g", "x")
    assert files.stat("/a").mtime_ms == before
    files.namespace.advance(1)
    files.writer.add("/a/h", "x")
    assert files.stat("/a").mtime_ms == before + 1


def test_a_committer_that_is_left_alone_brings_its_rows_and_one_whose_directory_is_swapped_loses_them():
    files = FakeFiles({"/live/f": "x", "/ready/c": "x"})
    files.writer.start_committer("/live")
    files.writer.commit_task("/live", "p1", "one")
    files.rename_exact("/live", "/retired")
    files.rename_exact("/ready", "/live")
    files.writer.commit_task("/live", "p2", "two")
    files.writer.commit_job("/live")
    assert names_in(files.look(["/live"])["/live"]) == ["c", "p2"]
    assert list(files.contents("/retired/_temporary").values()) == ["one"]


# ---- the metastore


@pytest.mark.parametrize(("steps", "changed"), [(0, False), (1, True)])
def test_a_kill_falls_before_or_after_a_change_and_the_killed_client_does_nothing_more(steps, changed):
    files = FakeFiles()
    world = FakeWorld(FakeMetastore(files), files, "contract")
    table = world.add_table("events")
    files.die_after(steps)
    with pytest.raises(Killed):
        world.metastore.add_partition(table, partition_of(table, "a"))
    with pytest.raises(Killed):
        world.metastore.partitions(table)
    assert ("dt=a" in world.metastore.catalog.partitions[table.full_name]) is changed


def test_an_injected_failure_comes_with_or_without_its_effect():
    files = FakeFiles()
    world = FakeWorld(FakeMetastore(files), files, "contract")
    table = world.add_table("events")
    for value, done in (("a", False), ("b", True)):
        world.metastore.fail_next("add_partition", MetastoreUnavailable("connection lost"), done=done)
        with pytest.raises(MetastoreUnavailable):
            world.metastore.add_partition(table, partition_of(table, value))
    assert [partition.name for partition in world.metastore.partitions(table)] == ["dt=b"]


def test_a_kill_between_a_backup_table_and_its_partitions_leaves_one_that_can_be_dropped():
    files = FakeFiles()
    world = FakeWorld(FakeMetastore(files), files, "contract")
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    files.die_after(1)
    with pytest.raises(Killed):
        make_backup(world, table, {"dt=a": place(world, 1)})
    files.revive()
    assert shown_by(world, backup_of(world)) == {}
    assert world.metastore.drop_backup_table(backup_of(world), MARKS)
