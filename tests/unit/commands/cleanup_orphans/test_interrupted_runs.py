"""cleanup --orphans: a dropped table's interrupted runs keep everything; only a cleanup that was killed is finished."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.model import Snapshot
from hivekeeper.names import ControlPaths
from hivekeeper.plan.orphans import OrphanState
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from support.builders import a_partition, a_table
from support.fakes.metastore import FakeMetastore
from support.leftovers import backups_in, build, clean, drop, drop_and_mark, records, wait


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
