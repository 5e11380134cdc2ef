"""A tenant's own database that is closed to the user of the runs, or has a table that cannot be read: any dropped table may be there, under
another name. So leftovers stay, but each is judged, and is told which table is in the way.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import ports
from hivekeeper.codes import Exit
from hivekeeper.plan.orphans import OrphanState
from hivekeeper.ports import MetastoreRefused
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.leftovers import SHAPES, build, clean, drop, records, wait


@pytest.fixture(params=list(SHAPES))
def desk(request):
    """With a table of a tenant in a database of their own."""
    desk = build(request.param)
    theirs = replace(a_table(["dt"], name="mine", location="hdfs://nn/user/mallory/mine", create_time=77), database="mallory")
    desk.world.catalog.add_table(theirs, [])
    return desk


def refuse(desk, monkeypatch, databases):
    ask = desk.world.metastore.tables

    def tables(database, names):
        if database in databases:
            raise MetastoreRefused(f"{database}: permission denied")
        return ask(database, names)

    monkeypatch.setattr(desk.world.metastore, "tables", tables)


def close(desk, monkeypatch):
    refuse(desk, monkeypatch, ["mallory"])


def make_unreadable(desk, _monkeypatch):
    desk.world.catalog.unreadable.add("mallory.mine")


@pytest.mark.parametrize(("act", "name"), [(close, "mallory.*"), (make_unreadable, "mallory.mine")])
def test_a_leftover_stays_and_is_told_which_table_is_in_the_way(desk, monkeypatch, act, name):
    drop(desk)
    assert records(clean(desk)).state is OrphanState.MARKED
    wait(desk, 8)
    act(desk, monkeypatch)
    found = clean(desk)
    assert (found.code, records(found).state in (OrphanState.FOUND, OrphanState.MARKED)) == (Exit.DONE, True)
    assert f"the metastore does not say when {name} was created" in records(found).why


@pytest.mark.parametrize(("act", "name"), [(close, "mallory.*"), (make_unreadable, "mallory.mine")])
def test_so_do_the_old_files_of_a_former_table(desk, monkeypatch, act, name):
    world, old = desk.world, desk.world.table(desk.table)
    wait(desk, 30)
    world.catalog.drop_table(desk.table)
    world.wait(2 * 3_600_000)
    world.catalog.add_table(replace(old, create_time=world.clock.now_ms() // 1000), [])
    wait(desk, 30)
    act(desk, monkeypatch)
    theirs = Desk(world, desk.table)
    theirs.runs = list(desk.runs)
    (table,) = theirs.cleanup(former=True).tables
    assert (table.problem, {one.state.code for one in table.backups}) == (None, {"kept"})
    assert all(f"the metastore does not say when {name} was created" in one.why.what for one in table.backups)


def test_a_metastore_that_tells_nothing_at_all_is_an_error(desk, monkeypatch):
    drop(desk)
    assert records(clean(desk)).state is OrphanState.MARKED
    wait(desk, 8)
    ask, asked = desk.world.metastore.tables, []

    def tables(database, names):
        asked.append(database)
        # The command itself has asked for those of its database.
        if asked.count("sales") > 1 or database == "mallory":
            raise MetastoreRefused("permission denied")
        return ask(database, names)

    monkeypatch.setattr(desk.world.metastore, "tables", tables)
    (outcome, *more) = clean(desk).tables
    problems = [one.problem for one in (outcome, *more) if one.problem]
    assert [(why.code, "permission denied" in why.what) for why in problems] == [(Code.METASTORE_UNUSABLE, True)]


def test_a_refusal_of_one_night_does_not_begin_the_wait_anew(desk, monkeypatch):
    drop(desk)
    assert records(clean(desk)).state is OrphanState.MARKED
    wait(desk, 8)
    with monkeypatch.context() as patch:
        close(desk, patch)
        clean(desk)
    wait(desk, 1)
    assert records(clean(desk)).state is OrphanState.REMOVED


@pytest.mark.parametrize("is_large", [False, True], ids=["plain", "too large"])
def test_a_table_that_is_called_like_all_tables_of_a_closed_database_keeps_nothing(desk, monkeypatch, is_large):
    """Hive 4 allows `*` as the name of a table."""
    drop(desk)
    assert records(clean(desk)).state is OrphanState.MARKED
    wait(desk, 8)
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 1000)
    theirs = replace(a_table(name="*", location="hdfs://nn/user/mallory/all", create_time=78), database="mallory")
    desk.world.catalog.add_table(replace(theirs, parameters={"x": "y" * 2000 * is_large}), [])
    assert records(clean(desk)).state is OrphanState.REMOVED


@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
def test_a_backup_stays_that_a_new_table_shows_even_if_its_database_may_not_be_read(desk, monkeypatch, is_closed):
    """It comes while partitions are read, which may take minutes."""
    world, top = desk.world, desk.control.top
    drop(desk)
    assert records(clean(desk)).state is OrphanState.MARKED
    wait(desk, 8)
    place = min(path for path in world.files.contents(top) if "/retired/" in path).rpartition("/")[0]
    shown = {path for path in world.files.contents(top) if path.startswith(f"{place}/")}
    ask, read, done = world.metastore.tables, world.metastore.partitions, []

    def tables(database, names):
        if is_closed and done and database == "rescue":
            raise MetastoreRefused(f"{database}: permission denied")
        return ask(database, names)

    def partitions(table):
        if not done:
            done.append(table)
            world.clock.elapsed_ms += 120_000
            world.catalog.add_table(replace(a_table([], name="mine", location=place, create_time=78), database="rescue"), [])
        return read(table)

    monkeypatch.setattr(world.metastore, "tables", tables)
    monkeypatch.setattr(world.metastore, "partitions", partitions)
    clean(desk)
    assert done
    assert shown <= world.files.contents(top).keys()
