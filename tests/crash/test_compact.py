"""compact-swap, killed and met by writers at every single change; rows are counted afterwards."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.recover import recover
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import ControlPaths
from hivekeeper.runlog import store
from support.builders import a_table
from support.built_once import Mould, built_once
from support.contexts import a_context
from support.every_step import KILLS
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.world import World

SELECTED = Selection(tables=("sales.events",))
SETTINGS = Settings(min_quiet_ms=0)
SMALL = 1000

SHAPES = {
    "flat": ([], {"": [SMALL] * 3}),
    "partitioned": (["dt"], {"dt=1": [SMALL] * 3, "dt=2": [SMALL] * 2}),
}


@built_once
def build(shape: str) -> World:
    columns, units = SHAPES[shape]
    world = World()
    world.add_table(a_table(columns), units)
    for unit in units:
        world.add_file(f"{live_of(world, unit)}/_SUCCESS", (), 0) if unit != "dt=2" else None
    world.files.namespace.advance(3_600_000)
    return world


def live_of(world: World, unit: str) -> str:
    location = world.catalog.tables["sales.events"].location
    return names.join(location, unit) if unit else location


def compact(world: World, run: str, cluster: object = None):
    return compact_swap(a_context(cluster or world.cluster, SELECTED, run))


def run_id(number: int) -> str:
    return f"20260101t0203{number:02d}z-0000"


def count_steps(shape: str) -> int:
    world = build(shape)
    compact(world, run_id(1))
    return world.files.steps


def steps_of(*shapes: str):
    return [(shape, step) for shape in shapes for step in range(count_steps(shape))]


def require_both_copies(world: World, before: Counter, units) -> None:
    """The invariants that hold at every instant: each unit's rows are all in live or all in a retired directory."""
    for unit in units:
        wanted = Counter({row: 1 for row in before if f"/{unit}/" in row})
        live = world.rows_below(live_of(world, unit))
        assert all(count == 1 for count in live.values()), "readers see a row twice"
        retired = [world.rows_below(place) for place in retired_directories(world)]
        assert wanted <= live or any(wanted <= rows for rows in retired), f"rows of {unit!r} are nowhere"


def retired_directories(world: World):
    return {names.parent(path) for path in world.files.contents() if "/retired/u" in path}


def control_of(world: World) -> ControlPaths:
    table = world.catalog.tables["sales.events"]
    return ControlPaths.of(table.location, table.partitioned)


def require_tidy(world: World) -> None:
    """Every run is in the log, and only backups and records are left."""
    control = control_of(world)
    finished = store.read_history(world.cluster, control).finished
    assert {store.run_of(name) for name in store.find_runs(world.files, control)} <= finished
    leftovers = [path for path in world.files.contents(control.top) if "/stage/" in path or "/ready/" in path or "/recreated/" in path]
    assert leftovers == []


@pytest.mark.parametrize("at_once", KILLS)
@pytest.mark.parametrize(("shape", "step"), steps_of("flat", "partitioned"))
def test_a_killed_run_loses_nothing_and_the_next_one_finishes(shape, step, at_once):
    world, units = build(shape), SHAPES[shape][1]
    before = world.rows_of("sales.events")
    world.files.die_after(step, at_once)
    with pytest.raises(Killed):
        compact(world, run_id(1))
        raise Killed("the last step was the lock's release")
    world.files.revive()
    world.files.expire_locks()
    require_both_copies(world, before, units)

    result = compact(world, run_id(2))

    assert result.code is Exit.DONE, result.tables[0].problem
    assert world.rows_of("sales.events") == before
    for unit in units:
        entries = world.files.look([live_of(world, unit)])[live_of(world, unit)].entries
        assert len([entry for entry in entries if not names.is_hidden(entry.name)]) == 1
        assert ("_SUCCESS" in [entry.name for entry in entries]) == (unit != "dt=2")
    require_tidy(world)


def kill_at(world: World, step: int, number: int) -> None:
    world.files.die_after(step)
    with suppress(Killed):
        compact(world, run_id(number))
    world.files.revive()
    world.files.expire_locks()


@pytest.mark.parametrize(("shape", "step"), steps_of("flat"))
def test_a_recovery_that_is_killed_too_is_recovered(shape, step):
    units, killed = SHAPES[shape][1], build(shape)
    before = killed.rows_of("sales.events")
    kill_at(killed, step, 1)
    mould = Mould(killed)
    for second in range(0, 40, 3):
        world = mould.copy()
        require_both_copies(world, before, units)
        kill_at(world, second, 2)
        require_both_copies(world, before, units)
        result = recover(a_context(world.cluster, SELECTED, run_id(3)))
        assert result.code is Exit.DONE, result.tables[0].problem
        assert world.rows_of("sales.events") == before
        require_tidy(world)


def write_at(world: World, step: int, write) -> None:
    """Let a writer act just before one of our steps."""
    seen = [0]

    def act(_what: str) -> None:
        if seen[0] == step:
            write()
        seen[0] += 1

    world.files.before_step = act


@pytest.mark.parametrize(("shape", "step"), steps_of("flat", "partitioned"))
def test_a_file_appended_at_any_moment_is_in_live_exactly_once(shape, step):
    world, unit = build(shape), next(iter(SHAPES[shape][1]))
    before = world.rows_of("sales.events")
    write_at(world, step, lambda: world.files.writer.add(f"{live_of(world, unit)}/late.parquet", DataFile(rows=("late",)), 10))
    compact(world, run_id(1))
    world.files.before_step = None
    recover(a_context(world.cluster, SELECTED, run_id(2)))
    assert world.rows_of("sales.events") == before + Counter(["late"])
    require_tidy(world)


@pytest.mark.parametrize(("shape", "step"), steps_of("flat", "partitioned"))
def test_an_append_and_a_kill_at_the_same_moment_lose_nothing(shape, step):
    world, unit = build(shape), next(iter(SHAPES[shape][1]))
    before = world.rows_of("sales.events")
    write_at(world, step, lambda: world.files.writer.add(f"{live_of(world, unit)}/late.parquet", DataFile(rows=("late",)), 10))
    world.files.die_after(step + 1)
    with suppress(Killed):
        compact(world, run_id(1))
    world.files.before_step = None
    world.files.revive()
    world.files.expire_locks()
    result = compact(world, run_id(2))
    assert result.code is Exit.DONE, result.tables[0].problem
    assert world.rows_of("sales.events") == before + Counter(["late"])
    require_tidy(world)


@pytest.mark.parametrize(("shape", "step"), steps_of("flat"))
def test_a_committer_with_committed_tasks_keeps_them(shape, step):
    """Spark's committer: a task's file is in _temporary when we start, and is moved into the table afterwards."""
    world, unit = build(shape), ""
    before, live = world.rows_of("sales.events"), live_of(world, unit)

    def set_up_and_commit_a_task() -> None:
        world.files.writer.start_committer(live)
        world.files.writer.commit_task(live, "task.parquet", DataFile(rows=("task",)), 10)

    write_at(world, step, set_up_and_commit_a_task)
    compact(world, run_id(1))
    world.files.before_step = None
    world.files.writer.commit_job(live)
    recover(a_context(world.cluster, SELECTED, run_id(2)))
    assert world.rows_of("sales.events") == before + Counter(["task"])


def overwrite_files(world: World, live: str) -> None:
    """Replace a directory's files and keep the directory, as Spark's INSERT OVERWRITE into a static partition does."""
    for entry in world.files.namespace.find(live).children.copy():
        world.files.writer.delete(f"{live}/{entry}")
    world.files.writer.add(f"{live}/new.parquet", DataFile(rows=("new",)))


def overwrite_directory(world: World, live: str) -> None:
    world.files.writer.overwrite(live, {"new.parquet": DataFile(rows=("new",))})


@pytest.mark.parametrize("overwrite_unit", [overwrite_files, overwrite_directory])
@pytest.mark.parametrize(("shape", "step"), steps_of("flat", "partitioned"))
def test_rows_that_an_overwriter_replaced_never_come_back(shape, step, overwrite_unit):
    world, unit = build(shape), next(iter(SHAPES[shape][1]))
    before, live = world.rows_of("sales.events"), live_of(world, unit)
    wrote = []

    def overwrite() -> None:
        if world.files.namespace.find(live) is None:
            return  # in the gap: an overwriter does not replace what it cannot list (docs/swap.md)
        overwrite_unit(world, live)
        wrote.append(True)

    write_at(world, step, overwrite)
    compact(world, run_id(1))
    world.files.before_step = None
    recover(a_context(world.cluster, SELECTED, run_id(2)))
    others = Counter({row: 1 for row in before if f"/{unit}/" not in row})
    assert world.rows_of("sales.events") == (others + Counter(["new"]) if wrote else before)


@pytest.mark.parametrize(("shape", "step"), steps_of("flat", "partitioned"))
@pytest.mark.parametrize("done", [False, True], ids=["not done", "done all the same"])
def test_a_call_that_fails_anywhere_is_settled_by_what_is_there(shape, step, done):
    """A connection breaks: the client cannot know whether the change was made."""
    world = build(shape)
    before = world.rows_of("sales.events")
    world.fail_at(step, done)
    assert compact(world, run_id(1)).code in (Exit.DONE, Exit.PARTIAL, Exit.UNUSABLE)
    world.files.before_step = None
    assert world.rows_of("sales.events") == before
    world.files.expire_locks()
    result = compact(world, run_id(2))
    assert result.code is Exit.DONE, result.tables[0].problem
    assert world.rows_of("sales.events") == before
    require_tidy(world)


def test_a_second_run_is_refused_while_the_first_holds_the_table():
    world = build("flat")
    outcome = []
    write_at(world, 5, lambda: outcome.append(compact(world, run_id(2), world.another_process())))
    result = compact(world, run_id(1))
    assert result.code is Exit.DONE
    assert outcome[0].code is Exit.LOCKED
    assert run_id(1) in outcome[0].tables[0].problem.what


@pytest.mark.parametrize(("shape", "step"), steps_of("flat", "partitioned"))
def test_a_run_that_slept_through_a_takeover_changes_nothing_more(shape, step):
    """A paused run's lease expires; another run takes over and finishes; then the paused run wakes up."""
    world = build(shape)
    before = world.rows_of("sales.events")
    other = world.another_process()

    def take_over() -> None:
        world.files.expire_locks()
        compact(world, run_id(2), other)

    write_at(world, step, take_over)
    compact(world, run_id(1))
    world.files.before_step = None
    world.files.expire_locks()
    result = recover(a_context(world.cluster, SELECTED, run_id(3)))
    assert result.code is Exit.DONE, result.tables[0].problem
    assert world.rows_of("sales.events") == before
    require_tidy(world)
