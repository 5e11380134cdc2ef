"""Before Hive 3 a metastore drops with a table whatever table an index of it names, and its files. Anybody adds one, at any time."""

from __future__ import annotations

import logging

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.cleanup_orphans import LOOK_FOR_INDEX
from hivekeeper.plan.orphans import OrphanKind, OrphanState
from support.builders import a_table
from support.desk import EVERYTHING, Desk
from support.leftovers import SHAPES, build, clean, drop_and_mark, leftovers, wait
from support.world import World

NAME = "sales.__bkp_events"


def made(world):
    return [name for name in world.tables() if name.startswith(NAME)]


@pytest.mark.parametrize("shape", list(SHAPES))
def test_nothing_but_the_backup_table_is_missing_there(shape, caplog):
    columns, units = SHAPES[shape]
    world = World()
    world.catalog.has_indexes = True
    world.add_table(a_table(columns, create_time=5), {unit: [1000] * 3 for unit in units})
    desk = Desk(world)
    with caplog.at_level(logging.WARNING):
        assert desk.backup().code is Exit.DONE
        assert desk.compact().code is Exit.DONE
    assert made(world) == []
    assert "make-backup-table failed" in caplog.text
    assert "before 3.0" in caplog.text
    assert {run.backup_table for run in desk.log().runs} == {""}
    wait(desk, 30)
    assert desk.cleanup(EVERYTHING).code is Exit.DONE
    assert not desk.log().standing


def test_no_plan_names_one_there():
    """A table that somebody makes of that name would be taken for the killed run's."""
    world = World()
    world.catalog.has_indexes = True
    world.add_table(a_table(create_time=5), {"": [1000] * 3})
    desk = Desk(world)
    desk.kill_before(["rename_exact", "/ready/u00001"], desk.compact)
    plans = [text for path, text in world.files.contents(desk.control.top).items() if path.endswith("/plan.json")]
    assert plans
    assert not any("__bkp" in str(text) for text in plans)


@pytest.mark.parametrize("why", ["server", "index"])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_one_that_is_there_stays_and_nothing_else_does(shape, why):
    desk = build(shape, compactions=1)
    world = desk.world
    (name,) = before = made(world)
    forbid(world, why, name)
    wait(desk, 30)
    assert desk.cleanup(EVERYTHING).code is Exit.DONE
    assert not desk.log().standing
    assert made(world) == before


@pytest.mark.parametrize("shape", list(SHAPES))
def test_so_does_one_of_a_dropped_table(shape):
    desk = build(shape, compactions=1)
    world = desk.world
    (name,) = before = made(world)
    forbid(world, "server", name)
    drop_and_mark(desk)
    clean(desk)
    wait(desk, 400)
    results = [clean(desk, dry_run) for dry_run in (True, False)]
    assert made(world) == before
    (told,) = (one for one in leftovers(results[-1]) if one.kind is OrphanKind.BACKUP_TABLE)
    assert (told.state, told.place, told.next) == (OrphanState.FOUND, name, LOOK_FOR_INDEX)
    assert "before 3.0" in told.why
    assert [result.code for result in results] == [Exit.DONE] * 2


def test_if_it_alone_has_an_index_the_command_says_so():
    desk = build("flat", compactions=1)
    (name,) = before = made(desk.world)
    forbid(desk.world, "index", name)
    drop_and_mark(desk)
    results = [clean(desk) for _ in range(2)]
    assert made(desk.world) == before
    assert "an index" in " ".join(table.problem.what for table in results[-1].tables if table.problem)


def forbid(world, why, name):
    if why == "server":
        world.catalog.has_indexes = True
    else:
        world.catalog.indexed.add(name)
