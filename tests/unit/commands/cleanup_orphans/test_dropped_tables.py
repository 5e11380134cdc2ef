"""cleanup --orphans: what a dropped table has left goes after two looks, and by the rules and the proof of any cleanup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.names import ControlPaths
from hivekeeper.plan.orphans import OrphanKind, OrphanState
from hivekeeper.ports import FilesUnavailable, MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.report import document, screen
from support.builders import a_table
from support.desk import Desk
from support.leftovers import DAY_MS, HOME, SHAPES, backups_in, clean, drop, drop_and_mark, leftovers, records, wait


def test_a_look_from_another_database_does_not_end_the_wait(desk, top):
    """Of a tenant's table, anywhere, whose location's parent is the directory of the dropped table's database."""
    desk.world.catalog.homes["loader"] = "hdfs://nn/warehouse/loader"
    drop(desk)
    tenants = a_table(name="mine", location=f"{HOME}/no-such-directory", create_time=88)
    desk.world.catalog.add_table(replace(tenants, database="loader"), [])
    states = []
    for _ in range(2):
        states.append(records(clean(desk, databases=("sales", "loader"))).state)
        wait(desk, 8)
    assert states == [OrphanState.MARKED, OrphanState.REMOVED]
    assert not backups_in(desk, top)


def test_the_first_look_only_marks_and_the_second_one_removes_everything_of_ours(desk, top):
    drop(desk)
    live = {path for path in desk.world.picture() if ".hivekeeper" not in path}
    held = backups_in(desk, top)
    marked = clean(desk)
    assert (marked.code, records(marked).state) == (Exit.DONE, OrphanState.MARKED)
    assert "may go from 2026-02-0" in records(marked).why
    assert backups_in(desk, top) == held
    wait(desk, 6)
    young = clean(desk)
    assert records(young).state is OrphanState.MARKED
    assert backups_in(desk, top) == held
    wait(desk, 2)
    result = clean(desk)
    assert (result.code, records(result).state) == (Exit.DONE, OrphanState.REMOVED), result.tables
    assert {one.state.code for one in result.tables[1].backups} == {"discarded"}
    assert set(desk.world.picture()) == live
    assert set(desk.world.catalog.tables) == {"sales.other"}
    assert leftovers(clean(desk)) == []


def test_the_date_on_a_mark_stays_until_it_comes(desk):
    drop(desk)
    first = records(clean(desk)).why.partition("may go")[2]
    wait(desk, 3)
    assert records(clean(desk)).why.partition("may go")[2] == first


def test_no_backup_goes_in_the_run_that_marks_even_without_a_least_age(desk, top):
    drop(desk)
    assert records(clean(desk, min_age_ms=0)).state is OrphanState.MARKED
    assert backups_in(desk, top)
    wait(desk, 1)
    assert records(clean(desk, min_age_ms=0)).state is OrphanState.REMOVED


@pytest.mark.parametrize("age", ["mark", "backup"])
def test_both_the_mark_and_the_backup_must_be_old_enough(desk, top, age):
    desk.world.catalog.drop_table(desk.table)
    wait(desk, 1)
    clean(desk, min_age_ms=0)
    wait(desk, 3)
    result = clean(desk, min_age_ms=(3 if age == "mark" else 2) * DAY_MS + 3_600_000, keep_for_ms=None if age == "mark" else 6 * DAY_MS)
    assert records(result).state is (OrphanState.MARKED if age == "mark" else OrphanState.KEPT)
    assert backups_in(desk, top)


def test_a_mark_of_another_state_of_the_log_is_made_again(desk, top):
    drop_and_mark(desk)
    path = names.join(top, "_orphan.json")
    for text in ('{"version": 1, "table": "sales.events@5", "entry": 0}', '{"version": 1, "table": "sales.x@5", "entry": 1}', "half a ma"):
        before = desk.world.files.stat(path).file_id
        desk.world.files.namespace.file(path).content = text
        assert records(clean(desk)).state is OrphanState.MARKED, text
        assert desk.world.files.stat(path).file_id != before
        wait(desk, 8)
    assert records(clean(desk)).state is OrphanState.REMOVED


def test_a_mark_from_the_future_proves_nothing(desk, top):
    drop_and_mark(desk)
    desk.world.files.namespace.file(names.join(top, "_orphan.json")).mtime_ms = desk.world.files.namespace.now() + 90 * DAY_MS
    assert records(clean(desk)).state is OrphanState.MARKED
    wait(desk, 8)
    assert records(clean(desk)).state is OrphanState.REMOVED


def test_a_table_that_came_and_went_at_the_same_place_starts_the_wait_again(desk, top):
    table = desk.world.table(desk.table)
    drop_and_mark(desk)
    desk.world.add_table(replace(table, create_time=77), {unit: [] for unit in SHAPES["partitioned" if table.partitioned else "flat"][1]})
    assert leftovers(clean(desk)) == []
    again = Desk(desk.world)
    again.runs = list(desk.runs)
    again.append("dt=1" if table.partitioned else "", "x", "y", "z")
    again.compact()
    drop(desk)
    held = backups_in(desk, top)
    assert records(clean(desk)).state is OrphanState.MARKED
    assert backups_in(desk, top) == held


def test_a_mark_goes_with_the_first_look_that_finds_the_table_elsewhere(desk, top):
    """Else nothing would wait when that table is dropped later."""
    table = desk.world.table(desk.table)
    drop_and_mark(desk)
    desk.world.add_table(replace(table, name="moved", location="hdfs://nn/elsewhere/moved"), {})
    wait(desk, 1)
    before = desk.world.picture()
    assert records(clean(desk, dry_run=True)).state is OrphanState.FOUND
    assert desk.world.picture() == before
    assert records(clean(desk)).state is OrphanState.FOUND
    desk.world.catalog.drop_table("sales.moved")
    wait(desk, 1)
    held = backups_in(desk, top)
    assert records(clean(desk)).state is OrphanState.MARKED
    assert backups_in(desk, top) == held


def test_a_mark_goes_with_the_next_look_at_a_table_that_came_back(desk, top):
    """Nothing else may have happened to it before it is dropped once more."""
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
    drop_and_mark(desk)
    desk.world.catalog.add_table(table, partitions.values())
    mark = names.join(top, "_orphan.json")
    assert leftovers(clean(desk, dry_run=True)) == []
    assert desk.world.files.stat(mark)
    assert leftovers(clean(desk)) == []
    assert desk.world.files.stat(mark) is None
    drop(desk)
    assert records(clean(desk)).state is OrphanState.MARKED


def test_a_mark_goes_with_the_first_command_on_a_table_that_came_back(desk, top):
    """As after a metastore was restored. A compaction with nothing to do leaves no entry that the mark would not fit."""
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
    drop_and_mark(desk)
    desk.world.catalog.add_table(table, partitions.values())
    assert desk.compact().code is Exit.DONE
    desk.world.catalog.drop_table(desk.table)
    wait(desk, 1)
    held = backups_in(desk, top)
    assert records(clean(desk)).state is OrphanState.MARKED
    assert backups_in(desk, top) == held


def test_a_pin_keeps_the_backups_and_says_that_nothing_releases_it(desk, top):
    desk.pin(desk.runs[0])
    desk.pin(desk.runs[1])
    drop_and_mark(desk)
    held = backups_in(desk, top)
    result = clean(desk)
    assert (result.code, records(result).state) == (Exit.DONE, OrphanState.KEPT)
    assert "no command lets go of a pinned" in records(result).next
    assert backups_in(desk, top) == held


@pytest.mark.parametrize(
    ("rule", "option"),
    [
        ({"keep_latest_runs": 9}, "--set keep_latest_runs="),
        ({"keep_latest_versions": 9}, "--set keep_latest_versions="),
        ({"cleanup_requires": "verified"}, "--set cleanup_requires=age"),
    ],
)
def test_a_rule_by_count_keeps_for_ever_and_the_option_that_lets_go_is_said(desk, rule, option):
    drop_and_mark(desk)
    result = clean(desk, **rule)
    assert records(result).state in (OrphanState.KEPT, OrphanState.DISCARDED)
    assert option in records(result).next
    assert records(clean(desk)).state is OrphanState.REMOVED


def test_some_backups_may_go_and_the_others_stay_with_the_directory(desk, top):
    desk.pin(desk.runs[1])
    drop_and_mark(desk)
    result = clean(desk)
    assert records(result).state is OrphanState.DISCARDED
    assert {one.state.code for one in result.tables[1].backups} == {"discarded", "kept"}
    assert backups_in(desk, top)
    # The mark stands although the cleanup has written to the log.
    assert records(clean(desk)).state is OrphanState.KEPT


def test_the_backup_table_of_a_record_that_stays_is_not_pointed_at_the_place_of_the_table(desk, top):
    """As it is where the table is there: old files of an unpartitioned one that go are shown from live."""
    desk.append("dt=1" if desk.world.table(desk.table).partitioned else "", "a", "b")
    desk.backup()
    record = desk.runs[-1]
    desk.compact()
    (shown,) = {run.backup_table for run in desk.log().records}
    desk.pin(record)
    drop_and_mark(desk)
    result = clean(desk)
    assert (result.code, records(result).state) == (Exit.DONE, OrphanState.DISCARDED), result.tables
    assert not backups_in(desk, top)
    assert shown in desk.world.catalog.tables


@pytest.mark.parametrize("damage", ["changed", "late", "gone"])
def test_only_what_matches_its_manifest_is_deleted(desk, top, damage):
    effect = desk.log().standing[0]
    place = names.join(top, effect.place)
    drop_and_mark(desk)
    path = names.join(place, effect.before[0].name)
    if damage == "changed":
        desk.world.files.namespace.file(path).length += 1
    elif damage == "gone":
        desk.world.files.writer.delete(path)
    else:
        desk.world.add_file(names.join(place, "late.parquet"), ["late"])
    held = [one for one in backups_in(desk, top) if one.startswith(place)]
    result = clean(desk)
    assert result.code is Exit.PARTIAL
    assert records(result).state is OrphanState.DISCARDED
    assert [one for one in backups_in(desk, top) if one.startswith(place)] == held


def test_a_cleanup_that_takes_hours_asks_again_for_the_partitions_that_show_old_files(desk):
    """And not for those of the table, which is gone."""
    drop_and_mark(desk)
    desk.world.clock.slowness_ms = 61_000
    assert records(clean(desk)).state is OrphanState.REMOVED


def test_to_the_trash_if_that_is_configured(desk, top):
    drop_and_mark(desk)
    held = len(backups_in(desk, top))
    assert records(clean(desk, discard="trash")).state is OrphanState.REMOVED
    assert len([path for path in desk.world.picture() if "/.Trash/" in path]) == held


def test_a_file_that_we_do_not_write_stays_and_is_named(desk, top):
    desk.world.add_file(names.join(top, "notes.txt"), ["somebody's"])
    drop_and_mark(desk)
    result = clean(desk)
    assert records(result).state is OrphanState.DISCARDED
    assert f"{top}/notes.txt" in records(result).why
    assert desk.world.files.stat(names.join(top, "notes.txt"))
    assert desk.world.files.stat(names.join(top, "log"))


def test_rules_that_contradict_each_other_are_refused(desk, top):
    drop_and_mark(desk)
    held = backups_in(desk, top)
    assert clean(desk, keep_for_ms=DAY_MS).tables[1].problem.code is Code.WRONG_CONFIGURATION
    assert backups_in(desk, top) == held


def test_backups_deleted_by_hand_and_interrupted_runs_of_a_table_are_only_explained(desk):
    world = desk.world
    other = Desk(world, "sales.other")
    other.compact()
    world.files.writer.delete(names.join(other.control.top, other.log().effects[0].place))
    other.append("dt=1", "a", "b")
    other.kill_before(["rename_exact", "/ready/u"], other.compact)
    before = world.picture()
    found = leftovers(clean(desk, min_age_ms=0))
    assert {(one.kind, one.state) for one in found} == {(OrphanKind.BACKUP, OrphanState.FOUND), (OrphanKind.RUN, OrphanState.FOUND)}
    assert world.picture() == before


def test_a_dry_run_says_what_would_become_of_it_and_changes_nothing(desk):
    drop(desk)
    before = desk.world.picture()
    assert "a run would mark it now" in records(clean(desk, dry_run=True)).why
    assert desk.world.picture() == before
    clean(desk)
    assert "it is marked, and may go" in records(clean(desk, dry_run=True)).why
    wait(desk, 8)
    before = desk.world.picture()
    result = clean(desk, dry_run=True)
    assert (result.dry_run, records(result).state) == (True, OrphanState.PLANNED)
    assert {one.state.code for one in result.tables[1].backups} == {"planned"}
    assert desk.world.picture() == before


def test_another_run_that_holds_the_directory_is_waited_for(desk):
    drop_and_mark(desk)
    control = ControlPaths(records(clean(desk, dry_run=True)).place)
    lock = desk.world.another_process().files.hold(control.lock, "run x")
    result = clean(desk)
    assert result.tables[1].problem.code is Code.TABLE_LOCKED
    lock.release()
    assert records(clean(desk)).state is OrphanState.REMOVED


def test_it_is_shown_as_text_and_json(desk):
    drop_and_mark(desk)
    result = clean(desk)
    shown = screen.render(result)
    assert "sales: " in shown and "removed: records " in shown
    assert "sales.events: discarded" in shown
    told = document.build(result)
    assert {one["outcome"] for one in told["tables"][0]["orphans"] if one["kind"] == "records"} == {"removed"}
    assert [one["table"] for one in told["tables"]] == ["sales", "sales.events"]


def test_a_run_that_has_lost_its_lock_does_not_set_the_directory_aside(desk, top):
    drop_and_mark(desk)

    def lose(what):
        if what == f"remove_empty {top}/runs" and not backups_in(desk, top):
            desk.world.files.expire_locks()

    desk.world.files.before_step = lose
    assert clean(desk).tables[1].problem.code is Code.RUN_TAKEN_OVER
    assert desk.world.files.stat(names.join(top, "log"))


def test_a_directory_without_a_log_goes_too(desk):
    """A second cleanup that waited for the lock of a first one re-creates the directory that this one has removed."""
    empty = ControlPaths.of(f"{HOME}/nothing", partitioned=False)
    desk.world.another_process().files.hold(empty.lock, "run x").release()
    assert records(clean(desk)).state is OrphanState.MARKED
    wait(desk, 8)
    assert records(clean(desk)).state is OrphanState.REMOVED
    assert desk.world.files.stat(empty.top) is None


def test_a_database_that_does_not_exist_is_one_clear_error(desk):
    desk.world.catalog.databases.discard("sales")
    result = clean(desk)
    assert [table.problem.code for table in result.tables] == [Code.NO_SUCH_DATABASE]


@pytest.mark.parametrize("broken", ["its directory", "the metastore"])
def test_a_database_that_cannot_be_looked_through_costs_only_itself(desk, monkeypatch, broken):
    desk.world.catalog.databases.add("fin")
    desk.world.catalog.homes["fin"] = "hdfs://nn/warehouse/fin"
    drop_and_mark(desk)
    owner, method, error = {
        "its directory": (desk.world.files, "look", FilesUnavailable("timeout")),
        "the metastore": (desk.world.metastore, "table_names", MetastoreUnavailable("timeout")),
    }[broken]
    call = getattr(owner, method)

    def fail(what, *more):
        if what in ("fin", [desk.world.catalog.homes["fin"]]):
            raise error
        return call(what, *more)

    monkeypatch.setattr(owner, method, fail)
    for_fin, for_sales = clean(desk, databases=("fin", "sales")).tables[:2]
    assert (for_fin.table, for_fin.problem.code, for_fin.problem.state) == ("fin", error.code, "nothing was changed")
    assert for_sales.table == "sales"
    # As long as the metastore does not say which tables it has, nothing goes.
    removed = OrphanState.REMOVED if broken == "its directory" else OrphanState.FOUND
    assert {one.state for one in for_sales.orphans if one.kind is OrphanKind.RECORDS} == {removed}
