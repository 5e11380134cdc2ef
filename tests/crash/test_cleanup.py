"""cleanup, killed and met by late files at every single change; rows are counted afterwards."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from support.builders import a_table
from support.built_once import built_once
from support.desk import Desk
from support.every_step import KILLS
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.world import World

SMALL = 1000
SHAPES = {"flat": ([], [""]), "partitioned": (["dt"], ["dt=1", "dt=2"])}
WAYS = ["delete", "trash"]


@built_once
def build(shape: str) -> Desk:
    """A table with the backups of two compactions and a rollback, and a record; one backup holds a late file."""
    columns, units = SHAPES[shape]
    world = World()
    world.add_table(a_table(columns), {unit: [SMALL] * 3 for unit in units})
    desk = Desk(world)
    desk.backup()
    desk.compact()
    for unit in units:
        for nth in range(3):
            world.add_file(f"{desk.live(unit)}/more{nth}.parquet", [f"events/{unit}/more{nth}"])
    world.files.namespace.advance(3_600_000)
    desk.compact()
    desk.rollback(where="dt = '1'" if columns else None)
    late = desk.control.run(desk.runs[1]).unit("retired", 1)
    world.add_file(f"{late}/closed-late.parquet", [f"events/{units[0]}/closed-late"])
    return desk


def all_rows(desk: Desk, shape: str) -> Counter:
    return desk.world.rows_of(desk.table) + Counter([f"events/{SHAPES[shape][1][0]}/closed-late"])


def count_steps(shape: str, how: str) -> int:
    desk = build(shape)
    before = desk.world.files.steps
    assert desk.cleanup(how=how).code is Exit.DONE
    return desk.world.files.steps - before


# Each shape and each way has one; the others are tried nightly.
DAILY = [("flat", "trash"), ("partitioned", "delete")]
CASES = [
    pytest.param(shape, how, step, marks=[] if (shape, how) in DAILY else pytest.mark.thorough)
    for shape in SHAPES
    for how in WAYS
    for step in range(count_steps(shape, how))
]


def require_clean(desk: Desk, rows: Counter) -> None:
    assert desk.world.rows_of(desk.table) == rows
    assert desk.run_directories() == []
    left = {names.base(path) for path in desk.world.files.contents(desk.control.top) if "/log/" not in path}
    assert left <= {names.SEAL, "_lock"}
    assert list(desk.world.catalog.tables) == [desk.table]


@pytest.mark.parametrize("at_once", KILLS)
@pytest.mark.parametrize(("shape", "how", "step"), CASES)
def test_a_killed_cleanup_deletes_only_what_it_had_proved_and_the_next_run_finishes(shape, how, step, at_once):
    desk = build(shape)
    rows = all_rows(desk, shape)
    desk.world.files.die_after(step, at_once)
    with suppress(Killed):
        desk.cleanup(how=how)
    desk.world.files.revive()
    desk.world.files.expire_locks()
    places = {names.parent(path) for path in desk.world.picture()}
    seen = sum((desk.world.rows_below(place) for place in places), Counter())
    assert set(rows) <= set(seen), "rows are nowhere"

    result = desk.cleanup(how=how)

    assert result.code is Exit.DONE, result.tables[0]
    require_clean(desk, rows)


@pytest.mark.parametrize("done", [True, False], ids=["done all the same", "not done"])
@pytest.mark.parametrize(("shape", "how", "step"), CASES)
def test_a_call_that_fails_anywhere_in_a_cleanup_loses_nothing(shape, how, step, done):
    desk = build(shape)
    rows = all_rows(desk, shape)
    desk.world.fail_at(step, done)
    desk.cleanup(how=how)
    desk.world.files.before_step = None
    desk.world.files.expire_locks()
    assert desk.cleanup(how=how).code is Exit.DONE
    assert desk.world.rows_of(desk.table) == rows
    assert desk.run_directories() == []


@pytest.mark.parametrize("kind", ["a new file", "an old file"])
@pytest.mark.parametrize(("shape", "how", "step"), CASES)
def test_a_file_open_across_the_swap_and_closed_during_a_cleanup_is_not_deleted(shape, how, step, kind):
    """Nobody can reach a backup by its old path, but a stream follows its inode and is closed whenever its writer ends."""
    desk, seen = build(shape), [0]
    rows = all_rows(desk, shape)
    writer, place = desk.world.files.writer, desk.control.run(desk.runs[1]).unit("retired", 1)
    name = "open.parquet" if kind == "a new file" else "part-00000.parquet"
    node = writer.open(f"{place}/{name}", DataFile(rows=("open",)), 10)

    def close() -> None:
        writer.append_open(node, DataFile(rows=("closed now",)), 20)
        writer.close(node)

    def act(_what: str) -> None:
        if seen[0] == step:
            close()
        seen[0] += 1

    desk.world.files.before_step = act
    desk.cleanup(how=how)
    desk.world.files.before_step = None
    if node.is_open:
        close()
    desk.cleanup(how=how)
    live = desk.world.rows_of(desk.table)
    kept = [content for path, content in desk.world.files.contents(desk.control.top).items() if path.endswith("/part-00000.parquet")]
    assert rows <= live
    if kind == "a new file":
        assert live - rows == Counter(node.content.rows)
    else:
        assert any("closed now" in content.rows for content in kept), "what was appended to an old file is nowhere"
