"""pin and unpin on the fakes: a pinned backup survives every cleanup, and only a log entry is written."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.config.settings import Settings
from hivekeeper.ports import NotPossible
from hivekeeper.reasons import Code
from hivekeeper.report import screen
from support.builders import a_table
from support.desk import Desk
from support.joined_desk import a_desk, joined_name, joined_path, manage, rename_partition
from support.world import World


@pytest.fixture
def world():
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    return world


@pytest.fixture
def desk(world):
    desk = Desk(world)
    desk.compact()
    return desk


def test_a_pinned_backup_can_be_rolled_back_after_any_cleanup(desk, world):
    rows = world.rows_of(desk.table)
    assert desk.pin(desk.runs[0]).code is Exit.DONE
    for policy in (Settings(min_age_ms=0), Settings(min_age_ms=0, keep_for_ms=1, keep_latest_runs=1, keep_latest_versions=1)):
        assert [one.state.code for one in desk.cleanup(policy).tables[0].backups] == ["kept"]
    assert desk.rollback().code is Exit.DONE
    assert world.rows_of(desk.table) == rows


def test_unpinned_it_goes_again(desk):
    desk.pin(desk.runs[0])
    assert desk.pin(desk.runs[0], pinned=False).code is Exit.DONE
    assert [one.state.code for one in desk.cleanup().tables[0].backups] == ["discarded"]


@pytest.mark.parametrize("pinned", [True, False])
def test_saying_it_twice_is_no_error_and_writes_no_second_entry(desk, pinned):
    desk.pin(desk.runs[0], pinned=not pinned)
    desk.pin(desk.runs[0], pinned)
    versions = desk.log().next_version
    again = desk.pin(desk.runs[0], pinned)
    assert again.code is Exit.DONE
    assert desk.log().next_version == versions
    assert screen.render(again) == f"sales.events: the backup of run {desk.runs[0]} is {'pinned' if pinned else 'not pinned'}"


def test_unpinning_what_was_never_pinned_writes_nothing(desk):
    assert desk.pin(desk.runs[0], pinned=False).code is Exit.DONE
    assert desk.log().next_version == 1


def test_only_a_log_entry_is_written(desk, world):
    before = {path for path in world.picture() if not path.endswith("/_lock")}
    desk.pin(desk.runs[0])
    assert {path for path in world.picture() if not path.endswith("/_lock")} - before == {f"{desk.control.log}/{1:020d}.json"}
    assert desk.run_directories() == [desk.runs[0]]


def refused(result, run):
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NO_SUCH_RUN
    assert run in result.tables[0].problem.what


@pytest.mark.parametrize("pinned", [True, False])
def test_an_unknown_backup_is_refused(desk, pinned):
    refused(desk.pin("20990101t000000z-ffff", pinned), "20990101t000000z-ffff")
    assert desk.log().next_version == 1


def test_a_discarded_backup_is_refused(desk):
    desk.cleanup()
    refused(desk.pin(desk.runs[0]), desk.runs[0])


def test_a_backup_that_was_restored_is_refused(desk):
    desk.rollback()
    refused(desk.pin(desk.runs[0]), desk.runs[0])


def test_a_run_without_a_backup_is_refused(desk):
    desk.pin(desk.runs[0])
    refused(desk.pin(desk.runs[1]), desk.runs[1])


def test_a_table_that_was_never_touched_is_left_without_a_trace(world):
    world.add_table(a_table(name="other"), {"": [1000]})
    other = Desk(world, "sales.other")
    picture, steps = world.picture(), world.files.steps
    assert other.pin("20990101t000000z-ffff").code is Exit.REFUSED
    assert (world.picture(), world.files.steps) == (picture, steps)


def test_the_files_that_a_rollback_set_aside_can_be_pinned(desk, world):
    desk.rollback()
    desk.pin(desk.runs[1])
    rows = world.rows_of(desk.table)
    assert [one.state.code for one in desk.cleanup().tables[0].backups] == ["kept"]
    assert desk.rollback(desk.runs[1]).code is Exit.DONE
    assert world.rows_of(desk.table) == rows


def test_a_record_can_be_pinned(world):
    world.add_table(a_table(name="other"), {"": [1000] * 3})
    other = Desk(world, "sales.other")
    other.backup()
    other.pin(other.runs[0])
    assert [one.state.code for one in other.cleanup().tables[0].backups] == ["kept"]
    other.compact()
    assert other.log().runs[-1].operation == "compact-swap"


def test_a_pin_lets_go_when_its_backup_is_rolled_back(desk):
    """What the rollback sets aside is a separate backup, which nobody pinned."""
    desk.pin(desk.runs[0])
    desk.rollback()
    assert [(one.backup.run, one.state.code) for one in desk.cleanup().tables[0].backups] == [(desk.runs[2], "discarded")]


def remove_old_files(desk, effect):
    place = desk.live(f"{effect.partition}/{effect.inside.file}") if effect.inside else f"{desk.control.top}/{effect.place}"
    desk.world.files.delete_tree(place)


@pytest.mark.parametrize("was_pinned", [False, True])
@pytest.mark.parametrize("exchange", ["directory", "files"])
def test_a_backup_of_which_nothing_is_left_is_not_said_to_be_pinned(exchange, was_pinned):
    desk = a_desk(exchange=exchange)
    desk.compact(where="dt = '1'")
    run = desk.runs[-1]
    if was_pinned:
        desk.pin(run)
    (effect,) = desk.log().standing
    remove_old_files(desk, effect)
    before, result = desk.log().next_version, desk.pin(run)
    assert (result.code, result.tables[0].problem.code, desk.log().next_version) == (Exit.REFUSED, Code.NOTHING_OF_THIS_RUN, before)
    assert desk.pin(run, pinned=False).code is Exit.DONE


@pytest.mark.parametrize("exchange", ["directory", "files"])
def test_of_a_backup_that_is_partly_gone_the_rest_is_pinned(exchange):
    desk = a_desk(exchange=exchange)
    desk.compact()
    run = desk.runs[-1]
    remove_old_files(desk, desk.log().standing[0])
    result = desk.pin(run)
    assert (result.code, run in desk.log().pinned) == (Exit.DONE, True)
    said = "is pinned; old files of 1 of its 2 units are gone: somebody removed them"
    assert screen.render(result) == f"sales.events: the backup of run {run} {said}"


def test_old_files_inside_a_file_that_was_moved_can_be_pinned():
    desk = a_desk()
    manage(desk)
    desk.compact(where="dt = '1'")
    rename_partition(desk)
    assert desk.pin(desk.runs[-1]).code is Exit.DONE


@pytest.mark.parametrize("exchange", ["directory", "files"])
def test_old_files_that_may_not_be_seen_can_be_pinned(exchange):
    desk = a_desk(exchange=exchange)
    desk.compact(where="dt = '1'")
    (effect,) = desk.log().standing
    place = desk.live("dt=1") if effect.inside else f"{desk.control.top}/{effect.place}"
    desk.world.files.namespace.unreadable.add(place)
    assert desk.pin(desk.runs[-1]).code is Exit.DONE
    assert desk.log().pinned == {effect.run}


def test_old_files_inside_a_file_can_be_pinned_where_files_are_not_found_by_their_ids(monkeypatch):
    """As by way of a router."""
    desk = a_desk()
    desk.compact(where="dt = '1'")

    def refuse(*_args):
        raise NotPossible("a router has no place for ids")

    for method in ("is_anywhere", "find_paths"):
        monkeypatch.setattr(type(desk.world.files), method, refuse)
    run = desk.runs[-1]
    assert desk.pin(run).code is Exit.DONE
    assert run in desk.log().pinned


def test_old_files_inside_a_file_in_the_trash_are_not_said_to_be_pinned():
    desk = a_desk()
    desk.compact(where="dt = '1'")
    trash = f"hdfs://nn/user/hive/.Trash/Current{desk.live('dt=1').replace('hdfs://nn', '')}"
    desk.world.files.writer.make_directory(trash)
    desk.world.files.writer.rename_into(joined_path(desk), f"{trash}/{joined_name(desk)}")
    assert desk.pin(desk.runs[-1]).code is Exit.REFUSED


def test_a_pin_of_many_joined_files_does_not_ask_for_each(monkeypatch):
    desk = a_desk()
    desk.compact()
    calls = []
    monkeypatch.setattr(type(desk.world.files), "is_anywhere", lambda *args: calls.append(args) or True)
    assert desk.pin(desk.runs[-1]).code is Exit.DONE
    assert calls == []
