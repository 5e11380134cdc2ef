"""cleanup --orphans: what dropped tables have left goes after two looks and the proof of any cleanup; everything else is explained."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from hivekeeper import names, ports
from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection, Snapshot
from hivekeeper.names import ControlPaths
from hivekeeper.plan.orphans import OrphanKind, OrphanState
from hivekeeper.ports import FilesUnavailable, MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.report import document, screen
from hivekeeper.runlog import store
from hivekeeper.steps.census import Census
from support.builders import a_partition, a_table, of_spark
from support.contexts import a_context
from support.desk import Desk
from support.fakes.files import FakeFiles
from support.fakes.metastore import FakeMetastore
from support.hive_statements import Hive
from support.leftovers import DAY_MS, HOME, SHAPES, build, clean, drop, leftovers, records, wait


@pytest.fixture(params=list(SHAPES))
def desk(request):
    return build(request.param)


@pytest.fixture
def top(desk):
    return desk.control.top


def backups_in(desk, top):
    return sorted(path for path in desk.world.files.contents(top) if "/retired/" in path)


def drop_and_mark(desk):
    drop(desk)
    assert records(clean(desk)).state is OrphanState.MARKED
    wait(desk, 8)


# ---- a dropped table


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


# ---- rules, and what keeps


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


# ---- what is not certainly a dropped table


def without_mark(picture):
    """A mark goes where it is not certain any more that the table was dropped."""
    return {path: content for path, content in picture.items() if not path.endswith("/_orphan.json")}


@pytest.mark.parametrize("where", ["sales.moved", "fin.elsewhere"])
def test_the_records_of_a_table_that_was_renamed_or_moved_stay(desk, where):
    table = desk.world.table(desk.table)
    drop_and_mark(desk)
    database, _, name = where.partition(".")
    desk.world.add_table(replace(table, database=database, name=name, location=f"hdfs://nn/elsewhere/{name}"), {})
    wait(desk, 1)
    before = desk.world.picture()
    found = records(clean(desk))
    assert found.state is OrphanState.FOUND
    assert f"{where} was created in the same second" in found.why
    # Not even the lock was taken.
    assert desk.world.picture() == without_mark(before)


def test_the_records_of_a_table_that_is_renamed_while_all_tables_are_read_stay(desk, top, monkeypatch):
    """It came back to the metastore after the first look, elsewhere, and is in no answer of one reading: the second one has it."""
    table = desk.world.table(desk.table)
    drop_and_mark(desk)
    world, held = desk.world, backups_in(desk, top)
    world.add_table(replace(table, name="back", location="hdfs://nn/elsewhere/back"), {})
    world.catalog.databases.add("archive")
    names_of, done = world.metastore.table_names, []

    def read_and_rename(database):
        found = names_of(database)
        if database == "archive" and not done:
            done.extend(Hive(world).rename_table("sales.back", "archive.back"))
        return found

    monkeypatch.setattr(world.metastore, "table_names", read_and_rename)
    clean(desk)
    assert done and held and backups_in(desk, top) == held


def test_a_table_that_the_metastore_cannot_read_may_be_the_one(desk):
    drop_and_mark(desk)
    desk.world.catalog.add_table(a_table(name="broken"), [])
    desk.world.catalog.unreadable.add("sales.broken")
    before = desk.world.picture()
    assert "sales.broken" in records(clean(desk)).why
    # That it cannot be read tonight does not make the wait for the other one begin anew.
    assert desk.world.picture() == before


def test_a_log_that_does_not_say_when_its_table_was_created_proves_nothing():
    desk = build("flat")
    desk.world.catalog.tables[desk.table] = replace(desk.world.table(desk.table), create_time=0)
    desk.append("", "x", "y")
    desk.compact()
    drop(desk)
    assert "does not say when" in records(clean(desk)).why


def test_a_metastore_without_any_table_is_not_believed(desk):
    desk.world.catalog.drop_table("sales.other")
    drop(desk)
    for name in list(desk.world.catalog.tables):
        desk.world.catalog.drop_table(name)
    assert "is it the right one?" in records(clean(desk)).why


def test_the_records_of_another_databases_table_are_that_databases_business(desk):
    drop(desk)
    world = desk.world
    world.catalog.homes["fin"] = "hdfs://nn/warehouse/fin"
    place = f"{HOME}/ledger"
    ledger = a_table(["dt"], name="ledger", location="hdfs://nn/warehouse/fin/ledger", create_time=9)
    world.add_table(replace(ledger, database="fin"), {"dt=1": [9] * 3})
    Desk(world, "fin.ledger").compact()
    world.files.writer.make_directory(place)
    world.files.writer.rename_into("hdfs://nn/warehouse/fin/ledger/.hivekeeper", f"{place}/.hivekeeper")
    world.catalog.drop_table("fin.ledger")
    wait(desk, 1)
    (found,) = [one for one in leftovers(clean(desk)) if one.place == f"{place}/.hivekeeper"]
    assert (found.state, "not in the database sales" in found.why) == (OrphanState.FOUND, True)


def expect_interrupted(desk):
    """Nothing is discarded, however long it is waited."""
    before = desk.world.picture()
    for _ in range(2):
        found = records(clean(desk, min_age_ms=0))
        assert (found.state, "was interrupted" in found.why) == (OrphanState.FOUND, True)
        wait(desk, 30)
    assert desk.world.picture() == before


def test_an_interrupted_run_in_them_keeps_everything(desk):
    desk.append("dt=1" if desk.world.table(desk.table).partitioned else "", "a", "b")
    desk.kill_before(["rename_exact", "/ready/u"], desk.compact)
    drop(desk)
    expect_interrupted(desk)


GAPS = {
    "compact": ["rename_exact", "/ready/u00001"],
    "rollback": ["rename_exact", "/restoring/u00001 hdfs"],
    "rollback, begun": ["rename_exact", "/restoring/u00001"],
}


def hide_plan(desk, monkeypatch):
    """As if somebody renamed the control directory away, and back, each time when the interrupted run's plan is asked for."""
    stat, run, top = desk.world.files.stat, desk.runs[-1], desk.control.top
    monkeypatch.setattr(desk.world.files, "stat", lambda path: None if path == f"{top}/runs/{run}/plan.json" else stat(path))


@pytest.mark.parametrize("how", GAPS)
def test_an_interrupted_run_of_which_the_plan_is_hidden_keeps_everything(desk, monkeypatch, how):
    desk.append("dt=1" if desk.world.table(desk.table).partitioned else "", "a", "b")
    desk.kill_before(GAPS[how], getattr(desk, how.partition(",")[0]))
    hide_plan(desk, monkeypatch)
    drop(desk)
    expect_interrupted(desk)


def test_a_run_of_which_the_plan_is_seen_only_at_its_settling_is_not_settled_as_a_cleanup(desk, monkeypatch):
    desk.append("dt=1" if desk.world.table(desk.table).partitioned else "", "a", "b")
    desk.kill_before(GAPS["rollback"], desk.rollback)
    table, rows, entries = desk.world.table(desk.table), desk.world.rows_anywhere(), len(desk.log().runs)
    hide_plan(desk, monkeypatch)
    look, own = desk.world.files.look, f"{desk.control.top}/runs/{desk.runs[-1]}"
    hidden = Snapshot(exists=False)
    monkeypatch.setattr(
        desk.world.files, "look", lambda asked, *most: {**look(asked, *most), **{path: hidden for path in asked if path == own}}
    )
    drop(desk)
    clean(desk, min_age_ms=0)
    wait(desk, 8)
    result = clean(desk, min_age_ms=0)
    assert [one.problem.code for one in result.tables if one.problem] == [Code.UNKNOWN_FILES]
    desk.world.catalog.add_table(table, [])
    assert (desk.world.rows_anywhere(), len(desk.log().runs)) == (rows, entries)


def test_a_table_that_comes_back_gets_the_rows_of_its_interrupted_rollback(monkeypatch):
    """It was dropped by mistake, and restored from a backup of the metastore."""
    desk = build("flat")
    desk.append("", "a", "b")
    rows = desk.world.rows_of(desk.table)
    desk.kill_before(GAPS["rollback"], desk.rollback)
    table = desk.world.table(desk.table)
    with monkeypatch.context() as hidden:
        hide_plan(desk, hidden)
        drop(desk)
        clean(desk, min_age_ms=0)
        wait(desk, 8)
        clean(desk, min_age_ms=0)
    desk.world.catalog.add_table(table, [])
    wait(desk, 1)
    result = desk.recover()
    assert set(desk.world.rows_of(desk.table)) == set(rows), (result.code, result.tables)


def test_what_a_run_left_that_was_killed_before_its_plan_keeps_nothing(desk, top):
    desk.append("dt=1" if desk.world.table(desk.table).partitioned else "", "a", "b", "c")
    desk.kill_before(["rename_exact", "plan.json"], desk.compact)
    drop_and_mark(desk)
    result = clean(desk)
    assert records(result).state is OrphanState.REMOVED, result.tables
    assert not desk.world.files.contents(top)


INSIDE = ("backup", "beside", "in the root")


@pytest.mark.parametrize(("of_whom", "place"), [("", "around"), *product(("", "of spark"), INSIDE)])
def test_a_table_that_came_into_the_directory_since_keeps_all_of_it(desk, top, of_whom, place):
    backup = names.join(top, desk.log().standing[0].place)
    drop_and_mark(desk)
    # The cached locations of tables do not have it yet.
    clean(desk, dry_run=True)
    location = {"backup": backup, "beside": names.join(top, "x"), "in the root": f"{HOME}/events/x", "around": HOME}[place]
    rescue = a_table(name="rescue", location=location, create_time=88)
    desk.world.catalog.add_table(of_spark(rescue, location) if of_whom else rescue, [])
    desk.world.clock.elapsed_ms += 61_000
    held = backups_in(desk, top)
    found = [one for one in leftovers(clean(desk)) if one.kind is OrphanKind.RECORDS]
    assert all(one.state is OrphanState.FOUND and "sales.rescue lies at" in one.why for one in found)
    assert backups_in(desk, top) == held


def test_old_files_that_a_partition_of_any_table_shows_stay(desk, top):
    effect = desk.log().standing[0]
    drop_and_mark(desk)
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    desk.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1", names.join(top, effect.place))])
    result = clean(desk)
    kept = [name for one in result.tables[1].backups for name in one.kept_units or ()]
    assert any(why.code is Code.BACKUP_SHOWN and "fin.rescue/dt=1" in why.what for _, why in kept) or any(
        one.why.code is Code.BACKUP_SHOWN for one in result.tables[1].backups
    )
    assert [path for path in backups_in(desk, top) if effect.place in path]
    assert records(result).state in (OrphanState.KEPT, OrphanState.DISCARDED)


def test_a_partition_that_is_called_like_another_one_does_not_hide_what_that_one_shows(desk, top):
    """Hive 4 allows blanks, `=`, `/`, `*`, `.` and others in the names of tables (`MetaStoreUtils.SPECIAL_CHARACTERS_IN_TABLE_NAMES`)."""
    place = names.join(top, desk.log().standing[0].place)
    drop_and_mark(desk)
    rescue = a_table(["dt", "hour"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    desk.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1/hour=2", place)])
    evil = a_table(["hour"], name="rescue/dt=1", location="hdfs://nn/home/mallory/t", create_time=99)
    desk.world.catalog.add_table(replace(evil, database="fin"), [a_partition("hour=2", names.join(top, "log/x"))])
    clean(desk)
    assert [path for path in backups_in(desk, top) if path.startswith(place)]


@pytest.mark.parametrize("by", [[], ["dt"]], ids=["a table", "a partition"])
def test_what_a_table_shows_that_is_renamed_while_all_are_read_stays(desk, top, monkeypatch, by):
    """It was there long before, and is there after: only one reading of all tables, or of all partitions, has met neither name."""
    place = names.join(top, desk.log().standing[0].place)
    drop_and_mark(desk)
    world, done = desk.world, []
    rescue = a_table(by, name="rescue", location="hdfs://nn/elsewhere/rescue" if by else place, create_time=88)
    world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1", place)] if by else [])
    names_of, partitions_of = world.metastore.table_names, world.metastore.partitions

    def rename(new):
        if not done:
            done.extend(Hive(world).rename_table("fin.rescue", new))

    def read_names(database):
        found = names_of(database)
        if database == "default" and not by:
            rename("default.rescued")
        return found

    def read_partitions(table):
        if table.full_name == "fin.rescue":
            rename("fin.rescued")
        return partitions_of(table)

    monkeypatch.setattr(world.metastore, "table_names", read_names)
    monkeypatch.setattr(world.metastore, "partitions", read_partitions)
    clean(desk)
    assert done and [path for path in backups_in(desk, top) if path.startswith(place)]


def test_old_files_in_which_partitions_on_many_servers_may_lie_by_their_paths_stay(desk, top):
    effect = desk.log().standing[0]
    drop_and_mark(desk)
    path = names.join(top, effect.place)[len(names.server_of(top)) :]
    partitions = [a_partition(f"dt={number}", f"hdfs://n{number}.mallory:8020{path}") for number in range(100)]
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    desk.world.catalog.add_table(replace(rescue, database="fin"), partitions)
    clean(desk)
    assert [file for file in backups_in(desk, top) if effect.place in file]


@pytest.mark.parametrize("server", ["hdfs://name-of-nn-that-is-not-found:8020", "webhdfs://gateway:14000"])
@pytest.mark.parametrize("who", ["a partition", "a table", "a table of spark"])
def test_old_files_that_somebody_shows_by_a_name_of_the_server_that_is_not_found_stay(desk, top, server, who):
    effect = desk.log().standing[0]
    drop_and_mark(desk)
    place = server + names.join(top, effect.place)[len(names.server_of(top)) :]
    rescue = a_table(["dt"] if who == "a partition" else [], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    rescue = {"a partition": rescue, "a table": replace(rescue, location=place), "a table of spark": of_spark(rescue, place)}[who]
    desk.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1", place)] if rescue.partitioned else [])
    result = clean(desk)
    assert [path for path in backups_in(desk, top) if effect.place in path]
    assert records(result).state in (OrphanState.KEPT, OrphanState.DISCARDED)


def test_old_files_go_though_somebody_shows_others_of_that_path_on_a_server_that_is_known(desk, top, monkeypatch):
    effect = desk.log().standing[0]
    drop_and_mark(desk)
    is_foreign = FakeFiles.is_foreign
    monkeypatch.setattr(FakeFiles, "is_foreign", lambda self, place: not place.startswith("hdfs://away/") and is_foreign(self, place))
    place = "hdfs://away" + names.join(top, effect.place)[len(names.server_of(top)) :]
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    desk.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1", place)])
    clean(desk)
    assert not [path for path in backups_in(desk, top) if effect.place in path]


@pytest.mark.parametrize("place", ["{top}/ru*/*/retired/*", "{top}*/runs/*/retired/*", "{beside}/*/runs/*/retired/*"])
def test_old_files_that_a_partition_at_a_pattern_may_show_stay(desk, top, place):
    drop_and_mark(desk)
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/sales/rescue", create_time=88)
    desk.world.catalog.add_table(rescue, [a_partition("dt=1", place.format(top=top, beside=names.parent(top)))])
    held = backups_in(desk, top)
    assert records(clean(desk)).state is OrphanState.KEPT
    assert backups_in(desk, top) == held


def test_a_partition_of_another_database_at_a_pattern_around_all_keeps_nobodys_old_files(desk, top):
    drop_and_mark(desk)
    evil = replace(a_table(["dt"], name="evil", location="hdfs://nn/warehouse/fin/evil", create_time=88), database="fin")
    desk.world.catalog.add_table(evil, [a_partition("dt=1", "hdfs://nn/warehouse/*/*")])
    clean(desk)
    assert not backups_in(desk, top)


@pytest.mark.parametrize("how", ["a table", "a table of spark", "a table that spark has in another place there", "a partition"])
def test_old_files_that_somebody_makes_a_table_of_while_others_go_stay(desk, top, how):
    drop_and_mark(desk)
    rescued = backups_in(desk, top)[-1].rpartition("/")[0]

    def rescue(what):
        if what.startswith("delete_tree") and "/discarding/" in what:
            desk.world.files.before_step = None
            place = rescued if how == "a table" else "hdfs://nn/elsewhere/rescue"
            table = a_table(["dt"] if how == "a partition" else [], name="rescue", location=place, create_time=88)
            table = of_spark(table, rescued) if how == "a table of spark" else table
            if how == "a table that spark has in another place there":
                table = replace(of_spark(table, names.join(top, "rescued")), location=rescued)
            desk.world.catalog.add_table(table, [a_partition("dt=1", rescued)] if table.partitioned else [])
            # All partitions are read once an hour.
            desk.world.clock.elapsed_ms += 3_660_000 if how == "a partition" else 61_000

    desk.world.files.before_step = rescue
    result = clean(desk)
    assert (result.code, records(result).state) == (Exit.PARTIAL, OrphanState.DISCARDED)
    left = {path.rpartition("/")[0] for path in backups_in(desk, top)}
    # Where a table lies nothing goes any more, as before the first one.
    assert rescued in left and (how != "a partition" or left == {rescued})


def before_first(desk, words, act):
    """Let somebody act just before the first step of a command that contains all these words."""

    def watch(what):
        if all(word in what for word in words):
            desk.world.files.before_step = None
            act()
            desk.world.clock.elapsed_ms += 61_000

    desk.world.files.before_step = watch


def test_what_came_between_the_first_look_and_the_lock_is_seen(desk, top):
    drop_and_mark(desk)
    rescue = a_table(name="rescue", location=names.join(top, "x"), create_time=88)
    before_first(desk, ["hold ", top], lambda: desk.world.catalog.add_table(rescue, []))
    held = backups_in(desk, top)
    assert "sales.rescue lies at" in records(clean(desk)).why
    assert backups_in(desk, top) == held
    assert not desk.world.files.stat(names.join(top, "_orphan.json"))


def test_a_table_that_came_and_went_between_the_first_look_and_the_lock_starts_the_wait_again(desk, top):
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
    unit = "dt=1" if table.partitioned else ""
    drop_and_mark(desk)

    def come_and_go():
        desk.world.catalog.add_table(replace(table, create_time=77), partitions.values())
        desk.append(unit, "x", "y")
        assert desk.compact(cluster=desk.world.another_process()).code is Exit.DONE
        desk.world.catalog.drop_table(desk.table)

    before_first(desk, ["hold ", top], come_and_go)
    assert records(clean(desk)).state is OrphanState.MARKED
    assert len({path.rpartition("/")[0] for path in backups_in(desk, top)}) == 2 * (1 + table.partitioned) + 1


def test_a_table_that_came_and_moved_on_between_the_first_look_and_the_lock_keeps_its_records(desk, top):
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
    drop_and_mark(desk)

    def come_and_move():
        desk.world.catalog.add_table(replace(table, create_time=77), partitions.values())
        desk.append("dt=1" if table.partitioned else "", "x", "y")
        assert desk.compact(cluster=desk.world.another_process()).code is Exit.DONE
        desk.world.catalog.drop_table(desk.table)
        desk.world.catalog.add_table(replace(table, create_time=77, name="moved", location="hdfs://nn/elsewhere/moved"))

    before_first(desk, ["hold ", top], come_and_move)
    assert "sales.moved was created in the same second" in records(clean(desk)).why


def test_a_table_that_comes_while_backups_go_keeps_the_directory(desk, top):
    drop_and_mark(desk)
    rescue = a_table(name="rescue", location=names.join(top, "x"), create_time=88)
    before_first(desk, ["delete_tree", "/discarding/"], lambda: desk.world.catalog.add_table(rescue, []))
    result = clean(desk)
    assert records(result).state is OrphanState.DISCARDED
    whys = {why.what for one in result.tables[1].backups for _, why in one.kept_units}
    assert whys == {f"sales.events: sales.rescue lies at {rescue.location}"}
    assert desk.world.files.stat(names.join(top, "log")) and backups_in(desk, top)


def test_a_dry_run_does_not_promise_what_a_partition_shows(desk, top):
    effects = desk.log().standing
    drop_and_mark(desk)
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    shown = [a_partition(f"dt={number}", names.join(top, effect.place)) for number, effect in enumerate(effects)]
    desk.world.catalog.add_table(replace(rescue, database="fin"), shown)
    result = clean(desk, dry_run=True)
    assert (records(result).state, {one.state.code for one in result.tables[1].backups}) == (OrphanState.KEPT, {"kept"})


def test_rules_that_contradict_each_other_are_refused(desk, top):
    drop_and_mark(desk)
    held = backups_in(desk, top)
    assert clean(desk, keep_for_ms=DAY_MS).tables[1].problem.code is Code.WRONG_CONFIGURATION
    assert backups_in(desk, top) == held


def test_a_database_inside_the_directory_keeps_it():
    desk = build("partitioned")
    drop_and_mark(desk)
    desk.world.catalog.databases.add("fin")
    desk.world.catalog.homes["fin"] = f"{HOME}/events/fin"
    before = desk.world.picture()
    assert "the directory of the database fin" in records(clean(desk)).why
    assert desk.world.picture() == without_mark(before)


# ---- hostile tenants


def test_a_control_directory_of_another_table_that_was_moved_here_is_not_touched(desk):
    """Whoever may write to two tables' roots can move one's records; its table is still there."""
    drop(desk)
    Desk(desk.world, "sales.other").compact()
    home = f"{HOME}/fake/.hivekeeper"
    desk.world.files.writer.make_directory(f"{HOME}/fake")
    desk.world.files.writer.rename_into(f"{HOME}/other/.hivekeeper", home)
    before = {path for path in desk.world.picture() if path.startswith(home)}
    for _ in range(2):
        (found,) = [one for one in leftovers(clean(desk, min_age_ms=0)) if one.place == home]
        assert (found.state, "sales.other was created in the same second" in found.why) == (OrphanState.FOUND, True)
        wait(desk, 30)
    assert {path for path in desk.world.picture() if path.startswith(home)} == before


def test_the_rules_are_those_of_the_table_that_the_records_are_about(monkeypatch):
    """Whoever may rename both, but not read them, has them exchanged for a moment: those of a table for which shorter rules are configured
    were looked at first.
    """
    desk = build("flat")
    world = desk.world
    world.add_table(a_table(name="tmp_mine", create_time=7), {"": [1000] * 3})
    mine = Desk(world, "sales.tmp_mine")
    mine.compact()
    tops = desk.control.top, mine.control.top
    held = backups_in(desk, tops[0])
    # As with `backup_table: false`.
    for name in [name for name in world.tables() if "__bkp_" in name or name == "sales.tmp_mine"]:
        world.catalog.drop_table(name)
    drop(desk)
    act = cleanup_orphans._clean_up_database

    def exchange():
        for source, target in ((tops[0], f"{HOME}/aside"), (tops[1], tops[0]), (f"{HOME}/aside", tops[1])):
            if world.files.namespace.find(source) is not None:
                world.files.namespace.rename(source, target)

    def act_exchanged(*arguments):
        exchange()
        found = act(*arguments)
        exchange()
        return found

    def settings_for(name):
        return Settings(min_age_ms=0) if name == "sales.tmp_mine" else Settings()

    monkeypatch.setattr(cleanup_orphans, "_clean_up_database", act_exchanged)
    for number in range(2):
        selected, run = Selection(databases=("sales",)), f"20260901t02030{number}z-0000"
        context = a_context(world.cluster, selected, run)
        cleanup_orphans.clean_up_orphans(replace(context, settings_for=settings_for))
        wait(desk, 1)
    assert held and backups_in(desk, tops[0]) == held


def test_records_of_somebody_else_are_named_and_nothing_in_them_is_believed(desk, top):
    drop(desk)
    node = desk.world.files.namespace.directory(names.join(top, "log"))
    node.attributes = replace(node.attributes, owner="mallory")
    before = desk.world.picture()
    for _ in range(2):
        result = clean(desk, min_age_ms=0)
        assert (result.code, records(result).state) == (Exit.DONE, OrphanState.FOUND)
        wait(desk, 30)
    assert desk.world.picture() == before


@pytest.mark.parametrize("way", ["owner", "mode"])
def test_a_mark_that_others_may_have_written_discards_nothing(desk, top, way):
    drop_and_mark(desk)
    node = desk.world.files.namespace.file(names.join(top, "_orphan.json"))
    node.attributes = replace(node.attributes, **({"owner": "mallory"} if way == "owner" else {"file_mode": 0o666}))
    held = backups_in(desk, top)
    assert records(clean(desk)).state is OrphanState.FOUND
    assert backups_in(desk, top) == held


def test_a_name_for_removed_records_proves_nothing(desk, top):
    """Whoever may write beside it can give a directory with backups this name."""
    drop(desk)
    removed = ControlPaths(top).removed("20260101t000000z-0000")
    desk.world.files.namespace.rename(top, removed)
    held = len(backups_in(desk, removed))
    (found,) = [one for one in leftovers(clean(desk, min_age_ms=0)) if one.kind is OrphanKind.REMOVED]
    assert (found.state, "it holds more than records" in found.why) == (OrphanState.FOUND, True)
    assert len(backups_in(desk, top)) == held > 0


def test_a_directory_with_that_name_that_holds_nothing_of_ours_stays(desk, top):
    """It belongs to the user of the runs, and nobody else may write to it."""
    removed = ControlPaths(top).removed("20260101t000000z-0000")
    drop(desk)
    desk.world.add_file(f"{removed}/rows.parquet", ["rows"])
    for node in [desk.world.files.namespace.directory(removed), desk.world.files.namespace.file(f"{removed}/rows.parquet")]:
        node.attributes = replace(node.attributes, owner="hive", mode=0o700, file_mode=0o600)
    before = {path for path in desk.world.picture() if path.startswith(removed)}
    result = clean(desk)
    assert result.code is Exit.INVESTIGATE
    assert {path for path in desk.world.picture() if path.startswith(removed)} == before


@pytest.mark.parametrize("change", [{"owner": "mallory"}, {"owner": "hive", "mode": 0o777}], ids=["somebody else's", "open"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_directory_that_others_have_given_that_name_does_not_end_it(desk, top, change, dry_run):
    """Anybody may who may make names there."""
    removed = ControlPaths(top).removed("20260101t000000z-0000")
    drop(desk)
    desk.world.add_file(f"{removed}/log/00000000000000000000.json", ["x"])
    node = desk.world.files.namespace.directory(removed)
    node.attributes = replace(node.attributes, **change)
    before = {path for path in desk.world.picture() if path.startswith(removed)}
    result = clean(desk, dry_run=dry_run)
    assert result.code is Exit.DONE
    (found,) = [one for one in leftovers(result) if one.kind is OrphanKind.REMOVED]
    assert (found.state, "Nothing is discarded: " in found.why) == (OrphanState.FOUND, True)
    assert {path for path in desk.world.picture() if path.startswith(removed)} == before


def test_a_file_with_that_name_is_no_leftover(desk, top):
    removed = ControlPaths(top).removed("20260101t000000z-0000")
    desk.world.add_file(removed, ["x"])
    drop_and_mark(desk)
    assert not [one for one in leftovers(clean(desk)) if one.kind is OrphanKind.REMOVED]
    assert desk.world.files.stat(removed)


def test_the_command_can_change_nothing_but_this_directory(desk, top, monkeypatch):
    seen = []
    original = cleanup_orphans.confine

    def confine(cluster, jail):
        seen.append(jail)
        return original(cluster, jail)

    monkeypatch.setattr(cleanup_orphans, "confine", confine)
    drop_and_mark(desk)
    clean(desk)
    jails = [jail for jail in seen if jail.places]
    assert {jail.table for jail in jails} == {"sales.events"}
    assert all(set(jail.places) <= {top, ControlPaths(top).removed(desk.runs[-1]), *jail.places[1:]} for jail in jails)
    assert all(place == top or "/.hivekeeper.removed-" in place for jail in jails for place in jail.places)


# ---- backup tables


def a_backup_table(**more):
    location = more.pop("location", f"{HOME}/gone/.hivekeeper/runs/20260101t020304z-0000/backup_table")
    made_as = more.pop("made_as", "__bkp_gone_20260101_020304")
    marks = names.backup_marks(f"sales.{made_as}", "sales.gone")
    parameters = {**marks, "external.table.purge": "false", **more.pop("parameters", {})}
    known = {"name": made_as, "kind": "EXTERNAL_TABLE", **more}
    return a_table(["dt"], location=location, parameters=parameters, create_time=50, **known)


def backup_table_of(desk, table, partitions=()):
    desk.world.catalog.add_table(table, partitions)
    (found,) = [one for one in leftovers(clean(desk)) if one.kind is OrphanKind.BACKUP_TABLE]
    return found


def test_a_backup_table_that_shows_nothing_any_more_goes(desk):
    table = a_backup_table()
    partition = a_partition("dt=1", f"{HOME}/gone/.hivekeeper/runs/20260101t020304z-0000/retired/u00001")
    assert backup_table_of(desk, table, [partition]).state is OrphanState.REMOVED
    assert table.full_name not in desk.world.catalog.tables


def test_a_backup_table_with_partitions_on_many_servers_stays_and_they_are_not_looked_for(desk, monkeypatch):
    asked, qualify = [], FakeFiles.qualify
    monkeypatch.setattr(FakeFiles, "qualify", lambda self, path: asked.append(path) or qualify(self, path))
    partitions = [a_partition(f"dt={number}", f"hdfs://n{number}.mallory:8020/x") for number in range(100)]
    found = backup_table_of(desk, a_backup_table(), partitions)
    assert (found.state, "100 servers" in found.why) == (OrphanState.FOUND, True)
    assert not [path for path in asked if "mallory" in path]


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "MANAGED_TABLE"},
        {"parameters": {"external.table.purge": "true"}},
        {"parameters": {"TRANSLATED_TO_EXTERNAL": "TRUE"}},
        {"made_as": "mine"},
        {"made_as": "__bkp_gone_20260101_020305"},
        {"made_as": "mine", "name": "__bkp_gone_20260101_020304"},
        {"location": f"{HOME}/mine"},
        {"location": f"{HOME}/gone/.hivekeeper.doctor-x/runs/20260101t020304z-0000/backup_table"},
        {"location": f"{HOME}/gone/.hivekeeper/runs/20260101t020304z-0000/other"},
    ],
    ids=str,
)
def test_a_backup_table_that_is_not_exactly_as_we_make_them_stays(desk, more):
    table = a_backup_table(**more)
    assert backup_table_of(desk, table).state is OrphanState.FOUND
    assert table.full_name in desk.world.catalog.tables


@pytest.mark.parametrize("shows", ["itself", "a partition", "a partition at a pattern", "to spark"])
def test_a_backup_table_that_still_shows_something_stays(desk, shows):
    table = a_backup_table()
    place = table.location if shows == "itself" else f"{HOME}/rows/dt=1"
    desk.world.files.writer.make_directory(place)
    place = place.replace("1", "*") if shows == "a partition at a pattern" else place
    if shows == "to spark":
        table = replace(of_spark(table, place), location=table.location)
    found = backup_table_of(desk, table, [] if shows == "to spark" else [a_partition("dt=1", place)])
    assert (found.state, f"it still shows {place}" in found.why) == (OrphanState.FOUND, True)


@pytest.mark.parametrize("change", ["its table is back", "it is another table's"])
def test_a_backup_table_that_changes_after_the_first_look_stays(desk, top, change):
    drop_and_mark(desk)
    table = a_backup_table()
    desk.world.catalog.add_table(table)

    def act():
        if change == "its table is back":
            desk.world.catalog.add_table(a_table(["dt"], name="gone", location=f"{HOME}/gone", create_time=51))
        else:
            desk.world.catalog.put_table(replace(table, parameters={**table.parameters, names.BACKUP_OF: "sales.other"}))

    before_first(desk, ["hold ", top], act)
    (found,) = [one for one in leftovers(clean(desk)) if one.place == table.full_name]
    assert found.state is OrphanState.FOUND
    assert table.full_name in desk.world.catalog.tables


def test_a_backup_table_that_shows_a_directory_on_an_unknown_server_stays_and_that_is_not_called(desk):
    found = backup_table_of(desk, a_backup_table(), [a_partition("dt=1", "hdfs://elsewhere/dt=1")])
    assert (found.state, "it still shows hdfs://elsewhere/dt=1" in found.why) == (OrphanState.FOUND, True)


# ---- the others, and how it is shown


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


def test_what_a_killed_cleanup_of_the_table_had_begun_is_finished(desk, top, monkeypatch):
    # The places of all tables are not doubted because a table that is gone has none: a database may have left a thousand of them.
    monkeypatch.setattr(FakeMetastore, "read_newer_places", pytest.fail)
    desk.kill_before(["rename_exact", "/discarding/u"], desk.cleanup)
    drop(desk)
    assert records(clean(desk)).state is OrphanState.MARKED
    assert store.find_runs(desk.world.files, ControlPaths(top))
    wait(desk, 8)
    result = clean(desk)
    assert records(result).state is OrphanState.REMOVED, result.tables
    assert len(result.tables[1].recovered) == 1


def test_a_late_file_in_what_a_killed_cleanup_had_begun_stays_and_so_does_the_backup(desk, top):
    desk.kill_before(["rename_exact", "/discarding/u"], desk.cleanup)
    (held,) = {path.rpartition("/")[0] for path in desk.world.files.contents(top) if "/held/" in path}
    desk.world.add_file(f"{held}/late.parquet", ["late"])
    drop_and_mark(desk)
    assert records(clean(desk)).state is OrphanState.DISCARDED
    assert [path for path in backups_in(desk, top) if path.endswith("/late.parquet")]


def test_a_killed_cleanup_beside_a_record_that_stays_is_finished(desk, top):
    desk.append("dt=1" if desk.world.table(desk.table).partitioned else "", "a", "b")
    desk.backup()
    desk.pin(desk.runs[-1])
    desk.compact()
    desk.kill_before(["rename_exact", "/discarding/u"], desk.cleanup)
    drop_and_mark(desk)
    result = clean(desk)
    assert result.code is Exit.DONE, result.tables
    assert not backups_in(desk, top)


def test_a_table_on_an_unknown_server_is_no_reason(desk):
    drop_and_mark(desk)
    desk.world.catalog.add_table(a_table(name="far", location="hdfs://elsewhere/far", create_time=99))
    assert records(clean(desk)).state is OrphanState.REMOVED


def test_what_a_partition_shows_of_what_a_killed_cleanup_had_begun_stays(desk, top):
    place = names.join(top, desk.log().standing[0].place)
    desk.kill_before(["rename_exact", "/held/u"], desk.cleanup)
    drop_and_mark(desk)
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    desk.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1", place)])
    clean(desk)
    assert [path for path in backups_in(desk, top) if path.startswith(place)]


def test_what_nobody_understands_in_a_killed_cleanup_keeps_everything(desk, top):
    desk.kill_before(["rename_exact", "/discarding/u"], desk.cleanup)
    (run,) = {path.partition("/held/")[0] for path in desk.world.files.contents(top) if "/held/" in path}
    desk.world.add_file(f"{run}/notes.txt", ["x"])
    drop_and_mark(desk)
    result = clean(desk)
    assert result.tables[1].problem.code is Code.UNKNOWN_FILES
    assert [path for path in desk.world.files.contents(top) if "/held/" in path]


@pytest.mark.parametrize(("database", "stays"), [("loader", False), ("sales", True)])
def test_a_table_whose_partitions_are_too_many_to_be_read_keeps_only_what_is_left_in_its_own_database(
    desk, top, monkeypatch, database, stays
):
    drop_and_mark(desk)
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 1000)
    heavy = replace(a_table(["dt"], name="heavy", location="hdfs://nn/elsewhere/heavy", create_time=88), database=database)
    partition = replace(a_partition("dt=1", "hdfs://nn/elsewhere/heavy/dt=1"), parameters={"x": "y" * 2000})
    desk.world.catalog.add_table(heavy, [partition])
    result = clean(desk)
    assert (records(result).state, bool(backups_in(desk, top))) == ((OrphanState.KEPT, True) if stays else (OrphanState.REMOVED, False))


@pytest.mark.parametrize(("database", "stays"), [("loader", False), ("sales", True)])
def test_a_table_too_large_to_be_read_may_show_what_is_left_in_its_own_database(desk, top, monkeypatch, database, stays):
    place = f"{top}/{desk.log().standing[0].place}"
    drop_and_mark(desk)
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 1000)
    heavy = replace(a_table(["dt"], name="heavy", location="hdfs://nn/elsewhere/heavy", create_time=88), database=database)
    desk.world.catalog.add_table(replace(heavy, parameters={"x": "y" * 2000}), [a_partition("dt=1", place)])
    result = clean(desk)
    assert (records(result).state, bool(backups_in(desk, top))) == ((OrphanState.KEPT, True) if stays else (OrphanState.REMOVED, False))


def test_tables_that_are_large_together_do_not_hide_one_that_shows_old_files(desk, top, monkeypatch):
    place = f"{top}/{desk.log().standing[0].place}"
    drop_and_mark(desk)
    monkeypatch.setattr(ports, "MOST_OF_TABLES", 10_000)
    for number in range(20):
        other = a_table(name=f"other{number}", location=f"hdfs://nn/loader/{number}", create_time=88)
        desk.world.catalog.add_table(replace(other, database="loader", parameters={"x": "y" * 900}))
    rescue = replace(a_table(["dt"], name="rescue", location="hdfs://nn/elsewhere/rescue", create_time=88), database="loader")
    desk.world.catalog.add_table(replace(rescue, parameters={"x": "y" * 1000}), [a_partition("dt=1", place)])
    clean(desk)
    assert [path for path in backups_in(desk, top) if path.startswith(place)]


REFUSED, FAILED = MetastoreRefused("permission denied"), MetastoreUnavailable("Internal error processing get_partitions_by_names")


def refuse_partitions(desk, monkeypatch, *names, why=REFUSED, times=99):
    """Let the metastore refuse the partitions of these tables, or of all, so many times; returns how often it was asked for each."""
    partitions, asked = desk.world.metastore.partitions, Counter()

    def refuse(table):
        asked[table.name] += 1
        if table.name in (names or [table.name]) and asked[table.name] <= times:
            raise why
        return partitions(table)

    monkeypatch.setattr(desk.world.metastore, "partitions", refuse)
    return asked


def add_partitioned(desk, name, database, *partitions):
    table = replace(a_table(["dt"], name=name, location=f"hdfs://nn/elsewhere/{name}", create_time=88), database=database)
    desk.world.catalog.add_table(table, partitions)


@pytest.mark.parametrize("why", [REFUSED, FAILED])
def test_a_metastore_that_refuses_all_partitions_is_asked_for_them_twice_and_not_for_each_leftover(desk, top, monkeypatch, why):
    """Reading all partitions takes minutes, and a database may have hundreds of leftovers."""
    drop_and_mark(desk)
    kept = backups_in(desk, top)
    asked = refuse_partitions(desk, monkeypatch, why=why)
    add_partitioned(desk, "closed", "a")
    census = Census(desk.world.cluster)
    for _ in range(3):
        with pytest.raises(type(why)):
            census.partitions_inside(top, (), "sales")
    assert asked["closed"] == 2
    assert (clean(desk).code, backups_in(desk, top)) == (Exit.UNUSABLE, kept)


@pytest.mark.parametrize(("why", "database", "stays"), [(REFUSED, "loader", False), (REFUSED, "sales", True), (FAILED, "loader", True)])
def test_one_table_whose_partitions_are_refused_keeps_only_what_is_left_in_its_own_database(desk, top, monkeypatch, why, database, stays):
    """One at which the metastore fails may show anything, and is named; it ends nothing."""
    drop_and_mark(desk)
    refuse_partitions(desk, monkeypatch, "odd", why=why)
    add_partitioned(desk, "odd", database)
    add_partitioned(desk, "plain", "z")
    result = clean(desk)
    assert (records(result).state, bool(backups_in(desk, top))) == ((OrphanState.KEPT, True) if stays else (OrphanState.REMOVED, False))


def test_a_table_whose_partitions_fail_is_asked_for_them_twice_and_not_for_each_leftover(desk, top, monkeypatch):
    asked = refuse_partitions(desk, monkeypatch, "odd", why=FAILED)
    add_partitioned(desk, "odd", "loader")
    add_partitioned(desk, "plain", "z")
    census = Census(desk.world.cluster)
    for _ in range(3):
        census.partitions_inside(top, (), "sales")
    assert asked["odd"] == 2


def test_a_metastore_that_goes_away_while_partitions_are_read_keeps_everything(desk, top, monkeypatch):
    drop_and_mark(desk)
    kept, metastore = backups_in(desk, top), desk.world.metastore
    add_partitioned(desk, "odd", "loader")
    add_partitioned(desk, "plain", "z")
    partitions = metastore.partitions

    def go_away(table):
        if table.name != "odd":
            return partitions(table)
        metastore.fail_next("databases", FAILED)
        raise FAILED

    monkeypatch.setattr(metastore, "partitions", go_away)
    assert (clean(desk).code, backups_in(desk, top)) == (Exit.UNUSABLE, kept)


@pytest.mark.parametrize("why", [REFUSED, FAILED])
def test_a_refusal_that_passes_does_not_hide_what_a_partition_shows(desk, top, monkeypatch, why):
    place = f"{top}/{desk.log().standing[0].place}"
    drop_and_mark(desk)
    refuse_partitions(desk, monkeypatch, "rescue", why=why, times=1)
    add_partitioned(desk, "plain", "z")
    add_partitioned(desk, "rescue", "loader", a_partition("dt=1", place))
    clean(desk)
    assert [path for path in backups_in(desk, top) if path.startswith(place)]


@pytest.mark.parametrize("what", ["a database", "a table"])
def test_what_is_dropped_while_all_tables_are_read_costs_nothing(desk, monkeypatch, what):
    drop_and_mark(desk)
    metastore = desk.world.metastore
    desk.world.catalog.add_table(a_table(["dt"], name="brief", create_time=99))
    databases, partitions = metastore.databases, metastore.partitions

    def read(table):
        if table.name == "brief":
            desk.world.catalog.drop_table("sales.brief")
        return partitions(table)

    if what == "a database":
        monkeypatch.setattr(metastore, "databases", lambda: (*databases(), "brief"))
    else:
        monkeypatch.setattr(metastore, "partitions", read)
    assert records(clean(desk)).state is OrphanState.REMOVED


def test_the_records_of_a_table_elsewhere_do_not_go_as_an_interrupted_removal():
    """Whoever may rename them, but not read them, can give them that name beside a table of their own."""
    desk = build("flat")
    desk.world.add_table(a_table(["dt"], name="theirs", create_time=6), {"dt=1": [1000] * 3})
    other, removed = Desk(desk.world, "sales.theirs"), desk.control.removed("20260101t000000z-0000")
    other.compact()
    other.cleanup()
    desk.world.files.namespace.rename(other.control.top, removed)
    held = {path for path in desk.world.picture() if path.startswith(removed)}
    (found,) = [one for one in leftovers(clean(desk, min_age_ms=0)) if one.kind is OrphanKind.REMOVED]
    assert (found.state, "its log is about sales.theirs" in found.why) == (OrphanState.FOUND, True)
    assert held <= set(desk.world.picture())


def test_nor_do_those_of_a_table_that_is_renamed_while_all_tables_are_read(monkeypatch):
    desk = build("flat")
    world = desk.world
    world.add_table(a_table(["dt"], name="theirs", create_time=77), {"dt=1": [1000] * 3})
    other, removed = Desk(world, "sales.theirs"), desk.control.removed("20260101t000000z-0000")
    other.compact()
    other.cleanup()
    world.files.namespace.rename(other.control.top, removed)
    held = {path for path in world.picture() if path.startswith(removed)}
    world.catalog.databases.add("archive")
    names_of, done = world.metastore.table_names, []

    def read_and_rename(database):
        found = names_of(database)
        if database == "archive" and not done:
            done.extend(Hive(world).rename_table("sales.theirs", "archive.theirs"))
        return found

    monkeypatch.setattr(world.metastore, "table_names", read_and_rename)
    clean(desk, min_age_ms=0)
    assert done and held <= set(world.picture())


@pytest.mark.parametrize("mode", [0o770, 0o775])
def test_rows_in_what_a_killed_forget_had_set_aside_come_back_though_others_may_write_there(mode):
    """By mistake (`hdfs dfs -chmod -R g+w`). Its seal tells that it is ours."""
    desk = build("flat")
    desk.append("", "a", "b")
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    removed = ControlPaths(desk.control.top).removed("20260101t000000z-0000")
    desk.world.files.namespace.rename(desk.control.top, removed)
    node = desk.world.files.namespace.directory(removed)
    node.attributes = replace(node.attributes, mode=mode)
    assert clean(desk).code is Exit.DONE
    assert not any(path.startswith(removed) for path in desk.world.picture())
    assert desk.recover().code is Exit.DONE
