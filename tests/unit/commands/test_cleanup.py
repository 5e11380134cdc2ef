"""cleanup on the fakes: it deletes only what matches a manifest, keeps what is in doubt, and leaves nothing behind."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace

import pytest

from bench import log as bench_log
from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup as cleanup_command
from hivekeeper.config.settings import RunSettings, Settings
from hivekeeper.model import Selection
from hivekeeper.ports import MetastoreUnavailable, NoSpace
from hivekeeper.reasons import Code
from hivekeeper.report import screen
from hivekeeper.report.results import BackupState
from hivekeeper.runlog import store
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.stop_conditions import Watch
from support.builders import PARQUET, a_partition, a_table
from support.contexts import a_context
from support.counting import Counting
from support.desk import EVERYTHING, DatedDesk, Desk, outcomes
from support.fakes.files import TRASH, Killed
from support.fakes.namespace import parts
from support.fakes.rows import DataFile
from support.world import World

DAY_MS = 86_400_000
UNITS = ("dt=1", "dt=2", "dt=3")


def backups(result):
    return {one.backup.run: (one.state.code, one.reason) for one in result.tables[0].backups}


def kept_units(result):
    return {name: why.what for one in result.tables[0].backups for name, why in one.kept_units}


def retired(desk, number, run=None):
    return desk.control.run(run or desk.runs[0]).unit("retired", number)


def without_lock(picture):
    return {path: content for path, content in picture.items() if not path.endswith("/_lock")}


def below_control(desk):
    """Everything below the control directory except the seal, the lock and the log, directories included."""
    top = desk.control.top
    below = [entry.path[len(top) + 1 :] for entry in desk.world.files.tree(top)]
    return [path for path in below if not path.startswith((names.SEAL, "_lock", "log"))]


def backup_tables(world):
    """The tables that have a backup table."""
    return sorted(of for table in world.catalog.tables.values() for of in [table.parameters.get("hivekeeper.backup-of")] if of)


# ---- a partition of the table that lies in a backup


def show(desk, name, place):
    """ALTER TABLE … ADD PARTITION … LOCATION into the control directory."""
    desk.world.catalog.add_partition(desk.table, a_partition(name, place))


def test_a_backup_that_a_partition_shows_is_kept_and_the_others_go(desk, world):
    desk.compact()
    desk.append("dt=1", "late1", "late2")
    desk.compact()
    show(desk, "dt=9", retired(desk, 2))
    before = world.rows_of(desk.table)
    for dry_run in (True, False):
        result = desk.cleanup(dry_run=dry_run)
        found = {one.backup.run: one for one in result.tables[0].backups}
        first, second = found[desk.runs[0]], found[desk.runs[1]]
        assert [(name, why.code) for name, why in first.kept_units] == [("dt=2", Code.BACKUP_SHOWN)]
        assert (first.state, second.state) == ((BackupState.PLANNED,) * 2 if dry_run else (BackupState.TRIMMED, BackupState.DISCARDED))
        assert result.code is Exit.DONE
    assert world.files.namespace.find(retired(desk, 2)) is not None
    assert world.rows_of(desk.table) == before


UNKNOWN = "hdfs://name-of-nn-that-is-not-found:8020"


def by_unknown_name(place):
    return UNKNOWN + place[len(names.server_of(place)) :]


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_backup_that_a_partition_shows_by_a_name_of_the_server_that_is_not_found_is_kept(desk, world, when):
    desk.compact()
    held = world.rows_below(retired(desk, 2))

    def point():
        show(desk, "dt=9", by_unknown_name(retired(desk, 2)))
        # Of another directory with the same name nothing is said.
        show(desk, "dt=8", f"{UNKNOWN}/elsewhere/.hivekeeper/{retired(desk, 1).partition('/.hivekeeper/')[2]}")

    if when == "during":
        meanwhile(desk, point)
    else:
        point()
    assert kept_units(desk.cleanup()) == {"dt=2": "the partition dt=9 lies in it, or around it"}
    assert world.rows_below(retired(desk, 2)) == held
    assert world.files.namespace.find(retired(desk, 1)) is None


def point_into(desk, place):
    show(desk, "dt=9", place)
    return lambda: desk.world.catalog.partitions[desk.table].pop("dt=9")


def leave_a_directory(desk, place):
    desk.world.files.writer.make_directory(f"{place}/_temporary")
    return lambda: desk.world.files.writer.delete(f"{place}/_temporary")


@pytest.mark.parametrize("hold", [point_into, leave_a_directory])
def test_a_backup_that_cannot_go_keeps_the_newer_ones_that_a_rollback_to_it_needs(desk, world, hold):
    rows = world.rows_of(desk.table)
    desk.compact()
    desk.append("dt=1", "late1", "late2")
    desk.compact()
    release = hold(desk, retired(desk, 1))
    desk.cleanup()
    assert {(effect.run, effect.partition) for effect in desk.log().standing} == {(run, "dt=1") for run in desk.runs[:2]}
    release()
    assert outcomes(desk.rollback(desk.runs[0])) == {"dt=1": "rolled-back", "dt=2": "refused", "dt=3": "refused"}
    assert world.rows_of(desk.table) == rows + Counter(["late1", "late2"])


def test_an_interrupted_deletion_is_ended_although_an_older_backup_stays(desk, world):
    desk.compact()
    desk.append("dt=1", "late1", "late2")
    desk.compact()
    desk.kill_before(["delete_tree", "discarding/u00004"], desk.cleanup)
    world.files.writer.delete(next(path for path in world.picture() if "/discarding/u00004/" in path))
    world.files.writer.make_directory(retired(desk, 1))
    assert dict(desk.recover().tables[0].recovered)[desk.runs[2]] == {Outcome.DISCARDED: 3, Outcome.LEFT: 1}


def meanwhile(desk, act):
    """Run act when a cleanup that takes longer than a minute per unit deletes its first unit."""
    files, clock = desk.world.files, desk.world.clock

    def before_step(what):
        if what.startswith("delete_tree") and "discarding" in what:
            files.before_step = None
            clock.elapsed_ms += 61_000
            act()

    files.before_step = before_step


def test_a_partition_that_somebody_points_into_a_backup_during_a_long_cleanup_keeps_it(desk, world):
    desk.compact()
    meanwhile(desk, lambda: show(desk, "dt=9", retired(desk, 2)))
    result = desk.cleanup()
    assert kept_units(result) == {"dt=2": "the partition dt=9 lies in it, or around it"}
    assert world.rows_below(retired(desk, 2)) == world.rows_below(desk.live("dt=2"))


def test_backups_are_kept_while_the_metastore_cannot_say_whether_a_partition_lies_in_them(desk, world):
    desk.compact()
    meanwhile(desk, lambda: world.metastore.fail_next("partitions", MetastoreUnavailable("timeout")))
    # For a minute: else each of thousands would wait for it.
    assert set(kept_units(desk.cleanup()).items()) == {(unit, "whether it may go cannot be asked: timeout") for unit in ("dt=2", "dt=3")}
    assert world.rows_below(retired(desk, 2)) == world.rows_below(desk.live("dt=2"))


def test_backups_are_kept_while_partitions_lie_on_too_many_servers_to_be_asked(desk, world):
    desk.compact()

    def add() -> None:
        for number in range(100, 200):
            world.catalog.add_partition(desk.table, a_partition(f"dt={number}", f"hdfs://host{number}/x", PARQUET))

    meanwhile(desk, add)
    assert "servers" in kept_units(desk.cleanup())["dt=2"]
    assert world.rows_below(retired(desk, 2)) == world.rows_below(desk.live("dt=2"))


def test_an_interrupted_deletion_gives_a_backup_back_that_a_partition_shows_since(desk, world):
    desk.compact()
    desk.kill_before(["delete_tree", "discarding/u00001"], desk.cleanup)
    show(desk, "dt=9", retired(desk, 1))
    result = desk.recover()
    assert dict(result.tables[0].recovered)[desk.runs[1]] == {Outcome.KEPT: 1, Outcome.LEFT: 2}
    assert world.rows_below(retired(desk, 1)) == world.rows_below(desk.live("dt=1"))


def test_a_partition_in_a_control_directory_costs_only_itself(desk):
    desk.compact()
    desk.append("dt=1", "late1", "late2")
    show(desk, "dt=9", retired(desk, 2))
    result = desk.compact()
    found = {unit.name: unit for unit in result.tables[0].units}
    assert (found["dt=1"].outcome.code, found["dt=9"].outcome.code) == ("swapped", "refused")
    assert found["dt=9"].why.code is Code.IN_CONTROL_DIRECTORY
    assert outcomes(desk.backup()) == {**dict.fromkeys(UNITS, "recorded"), "dt=9": "refused"}


# ---- policy, through the command


def test_a_young_backup_stays_and_an_old_one_goes(desk, world):
    desk.compact()
    assert backups(desk.cleanup(Settings())) == {desk.runs[0]: ("kept", "it is younger than min_age (7d)")}
    world.files.namespace.advance(7 * DAY_MS)
    assert backups(desk.cleanup(Settings())) == {desk.runs[0]: ("discarded", "it is older than 7d")}


def compact_three_times(desk):
    for row in "abc":
        desk.compact()
        desk.append("dt=1", *(f"{row}{n}" for n in range(3)))


def test_of_several_backups_the_newest_of_each_unit_stay(desk, world):
    compact_three_times(desk)
    rows = world.rows_of(desk.table)
    result = desk.cleanup(Settings(min_age_ms=0, keep_latest_versions=1))
    found = [(one.state.code, one.reason) for one in result.tables[0].backups]
    why = "it is not the newest of its unit"
    assert found == [("trimmed", f"1 of 3 units: {why}"), ("discarded", why), ("kept", "it is the newest of its unit")]
    assert world.rows_of(desk.table) == rows
    assert desk.run_directories() == [desk.runs[0], desk.runs[2]]
    # dt=1 went back to what it was before the third run, the others to what they were before the first.
    assert [outcomes(desk.rollback(where=f"dt = '{day}'")) for day in (1, 2, 3)] == [{f"dt={day}": "rolled-back"} for day in (1, 2, 3)]
    assert world.rows_of(desk.table) == rows


def test_a_policy_that_contradicts_the_floor_is_refused_and_nothing_goes(desk):
    desk.compact()
    before = desk.world.picture()
    for dry_run in (True, False):
        result = desk.cleanup(Settings(keep_for_ms=DAY_MS), dry_run=dry_run)
        assert (result.code, result.tables[0].problem.code) == (Exit.USAGE, Code.WRONG_CONFIGURATION)
    assert without_lock(desk.world.picture()) == without_lock(before)


def test_between_two_units_it_rests_but_not_after_the_last(desk):
    compact_three_times(desk)
    began_ms = desk.world.clock.monotonic_ms()
    assert desk.cleanup(replace(EVERYTHING, delete_pause_ms=90_000)).code is Exit.DONE
    # Three units of the first run, one of each other.
    assert desk.world.clock.monotonic_ms() - began_ms == 4 * 90_000


def test_a_slow_machine_is_never_asked_to_sleep_for_less_than_no_time(desk):
    compact_three_times(desk)
    clock, slept = desk.world.clock, []
    clock.slowness_ms, clock.sleep_ms = 7.0, slept.append
    assert desk.cleanup(replace(EVERYTHING, delete_pause_ms=10)).code is Exit.DONE
    assert min(slept) > 0


def test_a_pause_ends_when_the_command_is_to_end(desk):
    compact_three_times(desk)
    clock, world = desk.world.clock, desk.world
    began_ms = clock.monotonic_ms()
    world.cluster = replace(world.cluster, stopping=Watch(world.cluster, RunSettings(max_duration_ms=10_000)))
    result = desk.cleanup(replace(EVERYTHING, delete_pause_ms=90_000))
    assert result.code is Exit.PARTIAL
    assert 10_000 <= clock.monotonic_ms() - began_ms <= 11_000
    assert [one.state.code for one in result.tables[0].backups] == ["partly", "left", "left"]


def test_a_pinned_backup_stays_whatever_the_policy(desk):
    desk.compact()
    desk.pin(desk.runs[0])
    assert backups(desk.cleanup()) == {desk.runs[0]: ("kept", "it is pinned")}
    desk.pin(desk.runs[0], pinned=False)
    assert backups(desk.cleanup()) == {desk.runs[0]: ("discarded", "no rule keeps it")}


def rewrite_log(desk, old, new):
    """Another program changes the first log entry."""
    path = names.join(desk.control.log, names.log_entry(0))
    text = desk.world.files.content(path)
    assert old in text
    desk.world.files.writer.delete(path)
    desk.world.files.writer.add(path, text.replace(old, new))


@pytest.mark.parametrize(("date", "reason"), [('"never"', "its date cannot be read"), ("99999999999999", "its date lies in the future")])
def test_a_backup_that_cannot_be_dated_stays(desk, date, reason):
    desk.compact()
    rewrite_log(desk, f'"timestamp": {desk.log().runs[0].timestamp_ms}', f'"timestamp": {date}')
    assert backups(desk.cleanup()) == {desk.runs[0]: ("kept", reason)}
    assert desk.rollback().code is Exit.DONE


# ---- dry run


def test_a_dry_run_gives_every_backup_a_verdict_and_a_reason_and_changes_nothing(desk, world):
    desk.compact()
    desk.append("dt=1", "a", "b", "c")
    desk.compact()
    desk.backup()
    desk.pin(desk.runs[1])
    picture, steps = world.picture(), world.files.steps
    result = desk.cleanup(dry_run=True)
    assert result.code is Exit.DONE
    assert backups(result) == {
        desk.runs[0]: ("planned", "no rule keeps it"),
        desk.runs[1]: ("kept", "it is pinned"),
        desk.runs[2]: ("planned", "no rule keeps it"),
    }
    assert (world.picture(), world.files.steps) == (picture, steps)


# ---- what is deleted


def test_the_old_files_are_gone_and_nothing_is_left_behind(desk, world):
    desk.compact()
    rows, live = world.rows_of(desk.table), world.files.contents(desk.live())
    result = desk.cleanup()
    assert result.code is Exit.DONE
    assert world.rows_of(desk.table) == rows
    assert below_control(desk) == []
    assert backup_tables(world) == []
    assert not [path for path in live if "/retired/" in path and world.files.stat(path)]


def test_a_second_cleanup_finds_nothing_and_writes_nothing(desk, world):
    desk.compact()
    desk.cleanup()
    before, version = world.picture(), desk.log().next_version
    result = desk.cleanup()
    assert (result.code, result.tables[0].backups) == (Exit.DONE, ())
    assert screen.render(result) == "sales.events: no backups"
    assert without_lock(world.picture()) == without_lock(before)
    assert desk.log().next_version == version


def test_a_table_that_was_never_touched_is_left_without_a_trace(desk, world):
    picture, steps = world.picture(), world.files.steps
    result = desk.cleanup()
    assert (result.code, result.tables[0].backups) == (Exit.DONE, ())
    assert (world.picture(), world.files.steps) == (picture, steps)


def test_an_unpartitioned_table(world):
    world.add_table(a_table(name="flat"), {"": [1000] * 3})
    desk = Desk(world, "sales.flat")
    desk.compact()
    rows = world.rows_of("sales.flat")
    assert desk.cleanup().code is Exit.DONE
    assert world.rows_of("sales.flat") == rows
    assert below_control(desk) == []


def spoil_gone(desk, place):
    desk.world.files.writer.delete(f"{place}/part-00001.parquet")
    return "part-00001.parquet is gone"


def spoil_changed(desk, place):
    desk.world.files.writer.delete(f"{place}/part-00001.parquet")
    desk.world.add_file(f"{place}/part-00001.parquet", ["another"])
    return "part-00001.parquet was changed"


def spoil_appended(desk, place):
    node = desk.world.files.writer.open(f"{place}/part-00001.parquet")
    node.content, node.length = DataFile((*node.content.rows, "appended")), node.length + 8
    desk.world.files.writer.close(node)
    return "part-00001.parquet was changed"


def spoil_hidden(desk, place):
    desk.world.add_file(f"{place}/.notes", ["somebody's"])
    return ".notes appeared: a writer is at work"


def spoil_directory(desk, place):
    desk.world.files.writer.make_directory(f"{place}/_temporary/0")
    return "_temporary appeared: a writer is at work"


def spoil_open(desk, place):
    desk.world.files.writer.open(f"{place}/part-00001.parquet")
    return "a writer still has part-00001.parquet open in it"


def spoil_open_late(desk, place):
    desk.world.files.writer.open(f"{place}/new.parquet", DataFile(("half",)))
    return "a writer still has new.parquet open in it"


SPOILERS = [spoil_gone, spoil_changed, spoil_appended, spoil_hidden, spoil_directory, spoil_open, spoil_open_late]


@pytest.mark.parametrize("spoil", SPOILERS)
@pytest.mark.parametrize("how", ["delete", "trash"])
def test_a_backup_that_is_not_what_its_manifest_says_goes_back_and_the_others_go(desk, world, spoil, how):
    desk.compact()
    rows, place = world.rows_of(desk.table), retired(desk, 2)
    why = spoil(desk, place)
    before = world.files.contents(place)
    result = desk.cleanup(how=how)
    assert result.code is Exit.PARTIAL
    assert backups(result) == {desk.runs[0]: ("partly", "no rule keeps it")}
    assert kept_units(result) == {"dt=2": why}
    assert world.files.contents(place) == before
    assert world.rows_of(desk.table) == rows
    assert [e.name for e in world.files.look([names.parent(place)])[names.parent(place)].entries] == ["u00002"]
    assert why in screen.render(result)


def test_what_was_kept_is_tried_again_and_goes_when_the_doubt_is_gone(desk, world):
    desk.compact()
    spoil_hidden(desk, retired(desk, 2))
    desk.cleanup()
    again = desk.cleanup()
    assert (again.code, list(kept_units(again))) == (Exit.PARTIAL, ["dt=2"])
    world.files.writer.delete(f"{retired(desk, 2)}/.notes")
    assert desk.cleanup().code is Exit.DONE
    assert below_control(desk) == []


def test_what_was_kept_can_still_be_rolled_back(desk, world):
    desk.compact()
    rows = world.rows_of(desk.table)
    world.files.writer.make_directory(f"{retired(desk, 2)}/_temporary")
    desk.cleanup()
    world.files.writer.delete(f"{retired(desk, 2)}/_temporary")
    result = desk.rollback(where="dt = '2'")
    assert result.code is Exit.DONE
    assert world.rows_of(desk.table) == rows


def test_a_writer_that_closes_its_file_after_the_swap_loses_no_row(desk, world):
    """An append that was open across the swap follows its inode into the backup."""
    desk.compact()
    node = world.files.writer.open(f"{retired(desk, 1)}/slow.parquet", DataFile(("slow",)), 1000)
    desk.cleanup()
    world.files.writer.close(node)
    assert desk.cleanup().code is Exit.DONE
    assert world.rows_of(desk.table)["slow"] == 1


# ---- late files


def test_a_late_complete_file_goes_to_live_exactly_once(desk, world):
    desk.compact()
    rows = world.rows_of(desk.table)
    world.add_file(f"{retired(desk, 1)}/late.parquet", ["late"])
    result = desk.cleanup()
    assert result.code is Exit.DONE
    assert world.rows_of(desk.table) == rows + Counter(["late"])
    assert result.tables[0].backups[0].late_files == ("late.parquet",)
    assert world.catalog.partitions[desk.table]["dt=1"].parameters["numFiles"] == "2"
    desk.cleanup()
    assert world.rows_of(desk.table) == rows + Counter(["late"])
    assert below_control(desk) == []


def test_a_late_file_whose_name_is_taken_in_live_gets_another(desk, world):
    desk.compact()
    desk.append("dt=1", "later")
    world.add_file(f"{retired(desk, 1)}/later.parquet", ["late"])
    assert desk.cleanup().code is Exit.DONE
    assert world.rows_below(desk.live("dt=1"))["late"] == 1
    assert world.rows_below(desk.live("dt=1"))["later"] == 1


def test_a_late_file_in_an_older_backup_goes_to_live_below_a_newer_run(desk, world):
    desk.compact()
    desk.append("dt=1", "a", "b", "c")
    desk.compact()
    rows = world.rows_of(desk.table)
    world.add_file(f"{retired(desk, 1)}/late.parquet", ["late"])
    assert desk.cleanup().code is Exit.DONE
    assert world.rows_of(desk.table) == rows + Counter(["late"])


def test_a_late_file_goes_to_live_after_a_rollback_too(desk, world):
    desk.compact()
    desk.rollback()
    rows = world.rows_of(desk.table)
    world.add_file(f"{retired(desk, 1, desk.runs[1])}/late.parquet", ["late"])
    assert desk.cleanup().code is Exit.DONE
    assert world.rows_of(desk.table) == rows + Counter(["late"])


def assert_late_file_is_kept(desk, result, picture_of_live):
    assert result.code is Exit.PARTIAL
    assert list(kept_units(result)) == ["dt=1"]
    assert world_rows(desk, retired(desk, 1))["late"] == 1
    assert desk.world.files.contents(desk.live("dt=1")) == picture_of_live
    return kept_units(result)["dt=1"]


def world_rows(desk, place):
    return desk.world.rows_below(place)


def test_a_late_file_does_not_go_to_a_live_that_was_overwritten_since(desk, world):
    desk.compact()
    world.add_file(f"{retired(desk, 1)}/late.parquet", ["late"])
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": DataFile(("theirs",))})
    live = world.files.contents(desk.live("dt=1"))
    assert "late.parquet came into it late" in assert_late_file_is_kept(desk, desk.cleanup(), live)


@pytest.mark.parametrize("files_stay", [pytest.param(True, id="external"), pytest.param(False, id="managed")])
def test_a_late_file_does_not_go_to_a_partition_that_was_dropped(desk, world, files_stay):
    """When a partition of an external table is dropped, its directory stays, but nobody reads it any more."""
    desk.compact()
    world.add_file(f"{retired(desk, 1)}/late.parquet", ["late"])
    world.catalog.drop_partition(desk.table, "dt=1")
    if not files_stay:
        world.files.writer.delete(desk.live("dt=1"))
    assert_late_file_is_kept(desk, desk.cleanup(), world.files.contents(desk.live("dt=1")))


def test_a_late_file_does_not_go_to_a_place_that_the_partition_has_left(desk, world):
    desk.compact()
    world.add_file(f"{retired(desk, 1)}/late.parquet", ["late"])
    world.catalog.put_partition(desk.table, a_partition("dt=1", f"{desk.live()}/elsewhere", PARQUET))
    assert_late_file_is_kept(desk, desk.cleanup(), world.files.contents(desk.live("dt=1")))


def test_a_late_file_does_not_go_to_a_table_that_was_made_anew(desk, world):
    world.catalog.tables[desk.table] = replace(world.catalog.tables[desk.table], create_time=5)
    desk.compact()
    world.add_file(f"{retired(desk, 1)}/late.parquet", ["late"])
    table, partitions = world.catalog.tables[desk.table], dict(world.catalog.partitions[desk.table])
    world.catalog.drop_table(desk.table)
    world.catalog.add_table(replace(table, create_time=table.create_time + 99), partitions.values())
    assert_late_file_is_kept(desk, desk.cleanup(former=True), world.files.contents(desk.live("dt=1")))


# ---- trash


def test_the_trash_takes_the_files_where_it_is_asked_to(desk, world):
    desk.compact()
    old = [path for path in world.picture() if "/retired/" in path]
    assert desk.cleanup(how="trash").code is Exit.DONE
    assert len([path for path in world.picture() if path.startswith(TRASH)]) == len(old) == 9
    assert below_control(desk) == []


def test_with_the_trash_switched_off_nothing_is_deleted_and_the_reason_is_given(desk, world):
    desk.compact()
    world.files.trash_enabled = False
    rows, files = world.rows_of(desk.table), [path for path in world.picture() if "/retired/" in path]
    result = desk.cleanup(how="trash")
    assert result.code is Exit.PARTIAL
    assert set(kept_units(result)) == set(UNITS)
    assert all("the trash is switched off" in reason for reason in kept_units(result).values())
    assert [path for path in world.picture() if "/retired/" in path] == files
    assert desk.rollback().code is Exit.DONE
    assert world.rows_of(desk.table) == rows


def open_for_others(world, directory, **changed):
    """Another user has made it; or what `changed` says."""
    world.files.namespace.make_directory(directory)
    node = world.files.namespace.directory(directory)
    node.attributes = replace(node.attributes, **changed or {"owner": "loader"})


@pytest.mark.parametrize("changed", [{"owner": "loader"}, {"mode": 0o770}, {"mode": 0o707}], ids=str)
@pytest.mark.parametrize("below", ["", "/Current", "/Current{root}"])
def test_nothing_goes_to_a_trash_that_is_in_the_hands_of_others(desk, world, below, changed):
    desk.compact()
    open_for_others(world, names.parent(TRASH) + below.format(root="/" + names.join(*parts(desk.control.top))), **changed)
    rows, files = world.rows_of(desk.table), [path for path in world.picture() if "/retired/" in path]
    world.add_file(f"{retired(desk, 1)}/late.parquet", ["late"])
    result = desk.cleanup(how="trash")
    assert result.code is Exit.PARTIAL
    kept = dict(unit for one in result.tables[0].backups for unit in one.kept_units)
    assert {name: (why.code, why.state) for name, why in kept.items()} == dict.fromkeys(
        UNITS, (Code.TRASH_NOT_OURS, "its old files stay in the backup")
    )
    # What came late goes to live all the same.
    assert result.tables[0].backups[0].late_files == ("late.parquet",)
    assert [path for path in world.picture() if "/retired/" in path] == files
    assert not [path for path in world.picture() if path.startswith(names.parent(TRASH))]
    assert world.rows_of(desk.table) == rows + Counter(["late"])
    # And whoever does not want to wait for an administrator:
    assert desk.cleanup().code is Exit.DONE


def test_a_trash_that_others_take_between_two_units_gets_no_more(desk, world):
    desk.compact()

    def act(what):
        if what.startswith("move_to_trash") and "/held/u00002" in what:
            open_for_others(world, names.join(TRASH, *parts(names.parent(what.split()[1]))))

    world.files.before_step = act
    result = desk.cleanup(how="trash")
    assert result.code is Exit.PARTIAL
    assert set(kept_units(result)) == {"dt=2", "dt=3"}
    assert {names.base(names.parent(path)) for path in world.picture() if path.startswith(TRASH)} == {"u00001"}


def test_a_quota_that_somebody_elses_old_files_have_used_up_keeps_backups_and_nothing_else(desk, world):
    """All tables' old files go to one trash, that of the user of the runs."""
    desk.compact()
    rows, files = world.rows_of(desk.table), [path for path in world.picture() if "/retired/" in path]

    def act(what):
        if what.startswith("move_to_trash"):
            world.files.fail_next("move_to_trash", NoSpace("The DiskSpace quota of /user/us is exceeded"))

    world.files.before_step = act
    result = desk.cleanup(how="trash")
    assert result.code is Exit.PARTIAL
    kept = dict(unit for one in result.tables[0].backups for unit in one.kept_units)
    assert {name: why.code for name, why in kept.items()} == dict.fromkeys(UNITS, Code.TRASH_FULL)
    assert [path for path in world.picture() if "/retired/" in path] == files
    for name in "xyz":
        world.add_file(f"{desk.live('dt=1')}/{name}.parquet", [name])
    world.files.namespace.advance(3_600_000)
    assert outcomes(desk.compact())["dt=1"] == "swapped"
    assert world.rows_of(desk.table) == rows + Counter("xyz")
    world.files.before_step = None
    assert desk.cleanup(how="trash").code is Exit.DONE


# ---- other kinds of backups, other tables


def test_the_files_that_a_rollback_set_aside_are_a_backup_too(desk, world):
    desk.compact()
    desk.rollback()
    rows = world.rows_of(desk.table)
    result = desk.cleanup()
    assert [(one.backup.run, one.backup.operation, one.state.code) for one in result.tables[0].backups] == [
        (desk.runs[1], "rollback", "discarded")
    ]
    assert world.rows_of(desk.table) == rows
    assert below_control(desk) == []


def test_the_record_of_a_backup_command_goes_too(desk, world):
    desk.backup()
    rows = world.rows_of(desk.table)
    assert desk.run_directories() == [desk.runs[0]]
    result = desk.cleanup()
    assert backups(result) == {desk.runs[0]: ("discarded", "no rule keeps it")}
    assert world.rows_of(desk.table) == rows
    assert below_control(desk) == []
    assert desk.cleanup().tables[0].backups == ()


def test_cleaning_one_table_leaves_the_backups_of_tables_with_longer_names(world):
    desks = []
    for index, name in enumerate(("short", "short_archive", "short_2")):
        world.add_table(a_table(["dt"] if index == 1 else (), name=name), {"dt=1" if index == 1 else "": [1000] * 3})
        desks.append(Desk(world, f"sales.{name}"))
        desks[-1].compact()
    held = [{path for path in world.picture() if path.startswith(desk.control.top + "/runs")} for desk in desks]
    assert desks[0].cleanup().code is Exit.DONE
    assert [bool(held[n] & set(world.picture())) for n in range(3)] == [False, True, True]
    assert held[1] | held[2] <= set(world.picture())
    assert backup_tables(world) == ["sales.short_2", "sales.short_archive"]
    assert all(desk.rollback().code is Exit.DONE for desk in desks[1:])


def test_a_whole_database_is_cleaned_table_by_table(world, desk):
    world.add_table(a_table(name="events_2"), {"": [1000] * 3})
    world.add_table(a_table(name="events_archive"), {"": [1000] * 3})
    other = Desk(world, "sales.events_2")
    desk.compact()
    other.compact()
    result = cleanup_command.clean_up(a_context(world.cluster, Selection(databases=("sales",)), "20270101t000000z-0000", EVERYTHING))
    found = {table.table: [one.state.code for one in table.backups] for table in result.tables}
    assert result.code is Exit.DONE
    assert found == {"sales.events": ["discarded"], "sales.events_2": ["discarded"], "sales.events_archive": []}
    assert below_control(desk) == below_control(other) == []


# ---- kills


@pytest.mark.repeating
def test_a_cleanup_killed_at_any_step_is_finished_by_the_next_command_and_loses_no_row():
    for steps in range(200):
        world = World()
        world.add_table(a_table(["dt"]), {unit: [1000] * 3 for unit in ("dt=1", "dt=2")})
        desk = Desk(world)
        desk.compact()
        world.add_file(f"{retired(desk, 1)}/late.parquet", ["late"])
        rows = world.rows_of(desk.table) + Counter(["late"])
        world.files.die_after(steps)
        try:
            desk.cleanup()
        except Killed:
            world.files.revive()
            world.files.expire_locks()
            assert desk.recover().code is Exit.DONE
            assert desk.cleanup().code is Exit.DONE
            assert world.rows_of(desk.table) == rows, steps
            assert below_control(desk) in ([], ["runs"]), steps
        else:
            break
    assert 10 < steps < 199


def test_a_kept_file_is_said_to_have_gone_to_live_although_its_backup_stays(desk, world):
    """With the trash off, the late file still moves to live; the operator is told."""
    desk.compact()
    world.files.trash_enabled = False
    world.add_file(f"{retired(desk, 1)}/late.parquet", ["late"])
    result = desk.cleanup(how="trash")
    assert result.tables[0].backups[0].late_files == ("late.parquet",)
    assert world.rows_below(desk.live("dt=1"))["late"] == 1


def test_a_run_that_still_holds_the_table_is_waited_for(desk, world):
    desk.compact()
    other = world.another_process()
    lock = other.files.hold(desk.control.lock, "another run")
    before = world.picture()
    assert desk.cleanup().code is Exit.LOCKED
    assert world.picture() == before
    lock.release()


def test_the_log_names_what_is_to_go_before_anything_goes(desk):
    desk.compact()
    places = {effect.place for effect in desk.log().effects}
    desk.cleanup()
    begun, ended = desk.log().runs[-2:]
    assert (begun.finished, set(begun.discarding), begun.discarded) == (False, places, ())
    assert (ended.finished, ended.discarding, set(ended.discarded)) == (True, (), places)


def clean_up_with_nothing_to_do(runs):
    """What a cleanup calls on a table with the backups of so many runs, a checkpoint and one later entry."""
    world = World()
    desk = Desk(world)
    table = a_table(["dt"], create_time=5)
    world.add_table(table, {bench_log.UNIT: [1000]})
    desk.append(bench_log.UNIT, "a")
    world.files.make_directory(desk.control.log)
    bench_log.write_entries(world.files, table, desk.control, argparse.Namespace(entries=runs, files=2, kept=runs))
    listed = store.list_log(world.files, desk.control)
    first = replace(listed, entries={version: file for version, file in listed.entries.items() if version < runs})
    made = store.make_checkpoint(world.cluster, desk.control, first, bench_log.RETENTION_MS)
    world.files.write_new(names.join(desk.control.log, names.checkpoint(runs - 1)), made.content)
    for version in range(runs):
        for name in ("a", "b"):
            world.add_file(f"{desk.control.run(bench_log.run_of(version)).unit('retired', 1)}/{name}.parquet", [name])
    files, metastore = Counting(world.files), Counting(world.metastore)
    cluster = replace(world.another_process(), files=files, metastore=metastore)
    result = cleanup_command.clean_up(a_context(cluster, Selection(tables=(desk.table,)), "20280101t020304z-0000", Settings()))
    assert [one.state for one in result.tables[0].backups] == [BackupState.KEPT] * runs
    return files.calls, metastore.calls, files.looked_at


def test_a_cleanup_with_nothing_to_do_asks_as_much_on_many_kept_runs_as_on_few():
    """The directories of kept runs are not looked through again: the run before has left nothing needless there."""
    few, *many = (clean_up_with_nothing_to_do(runs) for runs in (3, 30, 300))
    assert many == [few, few]
    assert few[1] == {"tables": 1}


def test_what_a_cleanup_emptied_before_it_was_killed_goes_with_the_next_command(world):
    dated = DatedDesk(world)
    for _ in range(2):
        dated.append("dt=1", f"a{_}", f"b{_}")
        dated.compact()
        world.wait(7 * DAY_MS)
    dated.kill_before(["remove_empty", dated.runs[0]], lambda: dated.cleanup(Settings(min_age_ms=8 * DAY_MS)))
    assert dated.log().runs[-1].discarded
    assert dated.runs[0] in dated.run_directories()
    dated.pin(dated.runs[1])
    assert dated.run_directories() == [dated.runs[1]]


def test_a_backup_that_was_deleted_by_hand_leaves_its_directory_until_recover_looks_at_all_of_them(world):
    dated = DatedDesk(world)
    for week in range(3):
        dated.append("dt=1", f"a{week}", f"b{week}")
        dated.compact()
        if week:
            for number in (1, 2, 3):
                world.files.writer.delete(retired(dated, number, dated.runs[0]))
            assert dated.runs[0] in dated.run_directories()
        world.wait(7 * DAY_MS)
    dated.recover()
    assert dated.runs[0] not in dated.run_directories()
    assert set(dated.runs[1:3]) <= set(dated.run_directories())
