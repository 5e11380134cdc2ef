"""A stop before every single change of compact-swap, rollback and cleanup: each command ends in good order, and the next run continues."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands.context import Context
from hivekeeper.config.settings import RunSettings
from hivekeeper.names import ControlPaths
from hivekeeper.ports import NeverStops, RowsError
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.stop_conditions import LOOK_EVERY_MS, Watch
from support.builders import a_table
from support.built_once import built_once
from support.desk import Desk, outcomes
from support.world import World

STOP = "hdfs://nn/ops/stop"
UNITS = ["dt=1", "dt=2", "dt=3"]
SHAPES = {"flat": ([], [""]), "partitioned": (["dt"], UNITS)}
DONE = {"compact": "swapped", "rollback": "rolled-back", "cleanup": "discarded"}


@built_once
def build(shape: str, command: str) -> Desk:
    """A table on which the command does one step per unit; compactions work in batches of two."""
    columns, units = SHAPES[shape]
    world = World()
    world.add_table(a_table(columns), {unit: [1000] * 3 for unit in units})
    desk = Desk(world, batch_units=2)
    if command != "compact":
        assert desk.compact().code is Exit.DONE
    world.files.namespace.advance(3_600_000)
    return desk


def watch(desk: Desk) -> None:
    """From here on, commands on this desk look for the stop file."""
    world = desk.world
    fresh = replace(world.cluster, stopping=NeverStops())
    world.cluster = replace(fresh, stopping=Watch(fresh, RunSettings(stop_file=STOP)))


def stop_before(desk: Desk, step: int) -> None:
    """Somebody creates the stop file, and enough time passes for the next look at it."""
    world, begun = desk.world, desk.world.files.steps

    def make(_what: str) -> None:
        if world.files.steps - begun == step:
            world.files.before_step = None
            world.files.writer.add(STOP, "")
            world.clock.elapsed_ms += LOOK_EVERY_MS

    world.files.before_step = make


def count_steps(shape: str, command: str) -> int:
    desk = build(shape, command)
    before = desk.world.files.steps
    assert getattr(desk, command)().code is Exit.DONE
    return desk.world.files.steps - before


def outcomes_of(result, command: str) -> Counter:
    """Of units; for a cleanup, of the backups that stay."""
    (table,) = result.tables
    if command != "cleanup":
        return Counter(unit.outcome.code for unit in table.units)
    (backup,) = table.backups
    left = len(backup.kept_units)
    return +Counter(left=left, discarded=len(backup.backup.effects) - left)


def require_good_order(desk: Desk, rows: Counter) -> None:
    """No row is missing or duplicated, and runs have left only backups and records."""
    assert desk.world.rows_of(desk.table) == rows
    for directory in desk.run_directories():
        paths = desk.control.run(directory)
        for state in ("stage", "ready", "restoring", "held", "discarding", "clock"):
            assert desk.world.files.contents(paths.state(state)) == {}
        assert store.run_of(directory) in desk.log().finished


CASES = [(shape, command, step) for shape in SHAPES for command in DONE for step in range(count_steps(shape, command))]


@pytest.mark.parametrize(("shape", "command", "step"), CASES)
def test_a_stop_at_any_step_leaves_good_order_and_the_next_run_does_the_rest(shape, command, step):
    desk = build(shape, command)
    rows = desk.world.rows_of(desk.table)
    watch(desk)
    stop_before(desk, step)
    result = getattr(desk, command)()
    (table,) = result.tables
    require_good_order(desk, rows)
    if table.problem:
        assert (table.code, table.problem.code) == (Exit.PARTIAL, Code.STOP_ASKED)
        found = Counter()
    else:
        found = outcomes_of(result, command)
        assert set(found) <= {DONE[command], "left"}
        assert sum(found.values()) == len(SHAPES[shape][1])
        assert table.code is (Exit.PARTIAL if found["left"] else Exit.DONE)
    assert all(unit.reason for unit in table.units if unit.outcome.code == "left")

    desk.world.files.writer.delete(STOP)
    watch(desk)
    # The remaining part of a stopped rollback belongs to the run that was named, or was the newest then.
    again = desk.rollback(undo=desk.runs[0]) if command == "rollback" else getattr(desk, command)()
    assert again.tables[0].recovered == ()
    if found[DONE[command]] < len(SHAPES[shape][1]):
        assert again.code is Exit.DONE
        assert outcomes_of(again, command)[DONE[command]] == len(SHAPES[shape][1]) - found[DONE[command]]
    require_good_order(desk, rows)


def test_the_unit_in_hand_is_finished():
    desk = build("partitioned", "compact")
    rows = desk.world.rows_of(desk.table)
    watch(desk)

    def stop(what: str) -> None:
        if "retired/u00001" in what:
            desk.world.files.before_step = None
            desk.world.files.writer.add(STOP, "")
            desk.world.clock.elapsed_ms += LOOK_EVERY_MS

    desk.world.files.before_step = stop
    result = desk.compact()
    assert sorted(outcomes(result).values()) == ["left", "left", "swapped"]
    assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize(("shape", "units"), [("flat", 1), ("partitioned", 2)])
def test_a_cancelled_job_is_no_failure_of_its_units(shape, units):
    desk = build(shape, "compact")
    rows = desk.world.rows_of(desk.table)
    watch(desk)
    jobs = []

    def cancel(batch):
        jobs.append(len(batch.units))
        desk.world.files.writer.add(STOP, "")
        desk.world.clock.elapsed_ms += LOOK_EVERY_MS
        raise RowsError("Job 7 cancelled")

    desk.world.rows.write_stage = cancel
    result = desk.compact()
    assert (set(outcomes(result).values()), jobs) == ({"left"}, [units])
    assert result.code is Exit.PARTIAL
    require_good_order(desk, rows)


def test_a_job_cancelled_before_anything_is_begun_is_no_failure_of_the_table():
    desk = build("partitioned", "compact")
    watch(desk)

    def cancel(*_asked, **_named):
        desk.world.files.writer.add(STOP, "")
        desk.world.clock.elapsed_ms += LOOK_EVERY_MS
        raise RowsError("Job 7 cancelled")

    desk.world.rows.footers = cancel
    (table,) = desk.compact().tables
    assert (table.code, table.problem.code) == (Exit.PARTIAL, Code.STOP_ASKED)
    assert desk.run_directories() == []


def test_tables_that_were_not_begun_say_so():
    world = World()
    world.add_table(a_table([], name="one"), {"": [1000] * 3})
    world.add_table(a_table([], name="two"), {"": [1000] * 3})
    desk = Desk(world, "sales.one")
    one = Desk._context

    def both(*given: object, **more: object) -> Context:
        context = one(desk, *given, **more)
        return replace(context, selection=replace(context.selection, tables=("sales.one", "sales.two")))

    desk._context = both
    watch(desk)

    def stop(what: str) -> None:
        if "retired/u00001" in what:
            world.files.before_step = None
            world.files.writer.add(STOP, "")
            world.clock.elapsed_ms += LOOK_EVERY_MS

    world.files.before_step = stop
    result = desk.compact()
    assert [(table.table, int(table.code)) for table in result.tables] == [("sales.one", 0), ("sales.two", 6)]
    assert result.tables[1].problem.code is Code.STOP_ASKED
    assert world.files.stat(ControlPaths.of(world.table("sales.two").location, False).top) is None
    assert (result.code, result.exit_code) == (Exit.PARTIAL, 6)


@pytest.mark.parametrize("command", DONE)
def test_a_pause_lets_go_of_hives_lock_and_then_all_is_done(command):
    desk = build("partitioned", command)
    world, held, paused = desk.world, [], []
    hold = world.metastore.hold

    def watch_hold(table, timeout_s):
        context = hold(table, timeout_s)
        enter, leave = type(context).__enter__, type(context).__exit__

        class Watched:
            def __enter__(self):
                held.append(True)
                return enter(context)

            def __exit__(self, *error):
                held.pop()
                return leave(context, *error)

        return Watched()

    def end_pause(ms):
        paused.append(list(held))
        world.clock.elapsed_ms += ms
        world.files.writer.delete(STOP)

    def begin_pause(what):
        if names.unit_directory(1) in what and not paused:
            world.files.before_step = None
            world.files.writer.add(STOP, "")
            world.clock.elapsed_ms += LOOK_EVERY_MS

    world.metastore.hold, world.clock.sleep_ms, world.files.before_step = watch_hold, end_pause, begin_pause
    world.cluster = replace(world.cluster, stopping=Watch(world.cluster, RunSettings(pause_file=STOP)))
    result = getattr(desk, command)()
    assert (result.code, outcomes_of(result, command)) == (Exit.DONE, Counter({DONE[command]: 3}))
    assert paused == [[]]


@built_once
def killed_in_the_last_swap(command: str) -> Desk:
    """A run of three units, killed while the last one's live directory was absent."""
    desk = build("partitioned", command)
    words = {"compact": ["/ready/u00003", "/dt="], "rollback": ["/restoring/u00003", "/dt="], "cleanup": ["/discarding/u00003"]}
    desk.kill_before(words[command], getattr(desk, command))
    return desk


def count_steps_after_a_kill(command: str) -> int:
    desk = killed_in_the_last_swap(command)
    before = desk.world.files.steps
    assert desk.compact().code is Exit.DONE
    return desk.world.files.steps - before


KILLED = [(command, step) for command in DONE for step in range(count_steps_after_a_kill(command))]


@pytest.mark.parametrize(("command", "step"), KILLED)
def test_a_recovery_ends_between_two_units_and_leaves_none_that_readers_miss(command, step):
    desk = killed_in_the_last_swap(command)
    watch(desk)
    stop_before(desk, step)
    (table,) = desk.compact().tables
    assert table.code in (Exit.DONE, Exit.PARTIAL)
    if not table.problem or "not begun" not in table.problem.what:
        assert all(desk.world.files.stat(desk.live(unit)) for unit in UNITS)

    desk.world.files.writer.delete(STOP)
    watch(desk)
    assert desk.compact().code is Exit.DONE
    require_good_order(desk, Counter(f"events/{unit}/{number}" for unit in UNITS for number in range(3)))


def stop_at_takeover(desk: Desk) -> None:
    """Somebody creates the stop file just before the interrupted run is taken over."""

    def stop(what: str) -> None:
        if what.endswith(".t1"):
            desk.world.files.before_step = None
            desk.world.files.writer.add(STOP, "")
            desk.world.clock.elapsed_ms += LOOK_EVERY_MS

    desk.world.files.before_step = stop


@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_the_only_unit_of_an_interrupted_run_is_settled_in_any_case(command):
    desk = build("flat", command)
    word = {"compact": "/ready/u00001", "rollback": "/restoring/u00001"}[command]
    desk.kill_before([f"{word} {desk.live()}"], getattr(desk, command))
    assert desk.world.files.stat(desk.live()) is None
    watch(desk)
    stop_at_takeover(desk)
    assert desk.compact().code in (Exit.DONE, Exit.PARTIAL)
    assert desk.world.files.stat(desk.live())
    assert desk.runs[-2] in desk.log().finished


@pytest.mark.parametrize("removed", [0, 1])
@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_a_stopped_recovery_has_settled_every_unit_that_readers_miss_and_says_how_many(command, removed):
    desk = killed_in_the_last_swap(command)
    for unit in UNITS[:removed]:
        desk.world.files.writer.delete(desk.live(unit))
    watch(desk)
    stop_at_takeover(desk)
    (table,) = desk.compact().tables
    said = (
        f"sales.events: {1 + removed} of 3 units of the interrupted run {desk.runs[-2]} were settled: the stop file {STOP} of hive is there"
    )
    assert (table.code, table.problem.what) == (Exit.PARTIAL, said)
    assert desk.runs[-2] not in desk.log().finished
