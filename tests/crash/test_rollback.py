"""rollback, killed and met by writers at every single change; rows are counted afterwards."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Callable, List, Mapping, Optional

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.built_once import Mould, built_once
from support.desk import Desk, outcomes
from support.every_step import KILLS
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.world import World

SMALL = 1000
SHAPES = {"flat": ([], {"": 3}), "partitioned": (["dt"], {"dt=1": 3, "dt=2": 2})}
SAFE = ("retired", "restoring")


@built_once
def build(shape: str, stacked: bool = False) -> Desk:
    """A compacted table; `stacked`: files were appended and compacted once more."""
    columns, units = SHAPES[shape]
    world = World()
    world.add_table(a_table(columns), {unit: [SMALL] * files for unit, files in units.items()})
    desk = Desk(world, backup_table=False)
    desk.compact()
    if stacked:
        for unit in units:
            for nth in range(2):
                world.add_file(f"{desk.live(unit)}/more{nth}.parquet", [f"events/{unit}/more{nth}"])
        world.files.namespace.advance(3_600_000)
        desk.compact()
        assert set(outcomes_of_log(desk)) == {"swapped"}
    return desk


def outcomes_of_log(desk: Desk):
    return [unit.outcome.code for run in desk.log().runs for unit in run.units]


def undo(desk: Desk) -> object:
    return desk.rollback(desk.runs[0])


def count_steps(shape: str, stacked: bool) -> int:
    desk = build(shape, stacked)
    before = desk.world.files.steps
    undo(desk)
    return desk.world.files.steps - before


CASES = [
    (shape, stacked, step)
    for shape, stacked in (("flat", False), ("partitioned", False), ("flat", True))
    for step in range(count_steps(shape, stacked))
]


def kill_at(desk: Desk, step: int, at_once: bool, act: Callable[[Desk], object]) -> None:
    desk.world.files.die_after(step, at_once)
    with suppress(Killed):
        act(desk)
    desk.world.files.revive()
    desk.world.files.expire_locks()


def require_rows_somewhere(desk: Desk, rows: Mapping[str, int], units) -> None:
    """At every instant: no row twice in live, and all rows of a unit together in live or in one of our directories."""
    for unit in units:
        wanted = Counter({row: count for row, count in rows.items() if f"/{unit}/" in row})
        live = desk.world.rows_below(desk.live(unit))
        assert all(count == 1 for count in live.values()), "readers see a row twice"
        places = {names.parent(path) for path in desk.world.files.contents(desk.control.top) if any(f"/{state}/" in path for state in SAFE)}
        assert wanted <= live or any(wanted <= desk.world.rows_below(place) for place in places), f"rows of {unit!r} are nowhere"


def require_tidy(desk: Desk) -> None:
    finished = desk.log().finished
    assert {name[:21] for name in desk.run_directories()} <= finished
    left = [path for path in desk.world.files.contents(desk.control.top) if "/restoring/" in path or "/recreated/" in path]
    assert left == []


@pytest.mark.parametrize("at_once", KILLS)
@pytest.mark.parametrize(("shape", "stacked", "step"), CASES)
def test_a_killed_rollback_loses_nothing_and_the_next_run_finishes(shape, stacked, step, at_once):
    desk, units = build(shape, stacked), SHAPES[shape][1]
    rows = desk.world.rows_of(desk.table)
    kill_at(desk, step, at_once, undo)
    require_rows_somewhere(desk, rows, units)
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == rows
    require_tidy(desk)

    result = undo(desk)

    assert result.code is Exit.DONE, result.tables[0]
    assert desk.world.rows_of(desk.table) == rows
    for unit, files in units.items():
        entries = desk.world.files.look([desk.live(unit)])[desk.live(unit)].entries
        assert len([entry for entry in entries if entry.name.startswith("part-0000") and "z-0000" not in entry.name]) == files
    require_tidy(desk)


def killed_once(stacked: bool, step: int) -> Mould:
    desk = build("flat", stacked)
    kill_at(desk, step, True, undo)
    return Mould(desk)


@pytest.mark.parametrize(("stacked", "step"), [(stacked, step) for shape, stacked, step in CASES if shape == "flat"])
def test_a_recovery_of_a_rollback_that_is_killed_too_is_recovered(stacked, step):
    rows, killed = build("flat", stacked).world.rows_of("sales.events"), killed_once(stacked, step)
    for second in range(0, 40, 3):
        desk = killed.copy()
        kill_at(desk, second, True, Desk.recover)
        require_rows_somewhere(desk, rows, [""])
        assert desk.recover().code is Exit.DONE
        assert desk.world.rows_of(desk.table) == rows
        require_tidy(desk)


@pytest.mark.parametrize("done", [True, False], ids=["done all the same", "not done"])
@pytest.mark.parametrize(("shape", "stacked", "step"), CASES)
def test_a_call_that_fails_anywhere_in_a_rollback_loses_nothing(shape, stacked, step, done):
    desk = build(shape, stacked)
    rows = desk.world.rows_of(desk.table)
    desk.world.fail_at(step, done)
    undo(desk)
    desk.world.files.before_step = None
    desk.world.files.expire_locks()
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows
    assert undo(desk).code is Exit.DONE
    assert desk.world.rows_of(desk.table) == rows
    require_tidy(desk)


def write_at(desk: Desk, step: int, write: Callable[[], None], step_in_hand: Optional[List[str]] = None) -> None:
    """Let a writer act just before one step of the rollback."""
    seen = [0]

    def act(what: str) -> None:
        if step_in_hand:
            step_in_hand[0] = what
        if seen[0] == step:
            write()
        seen[0] += 1

    desk.world.files.before_step = act


@pytest.mark.parametrize(("shape", "stacked", "step"), CASES)
def test_a_file_appended_at_any_moment_of_a_rollback_is_in_live_exactly_once(shape, stacked, step):
    desk, unit = build(shape, stacked), next(iter(SHAPES[shape][1]))
    rows = desk.world.rows_of(desk.table)
    write_at(desk, step, lambda: desk.world.files.writer.add(f"{desk.live(unit)}/late.parquet", DataFile(rows=("late",)), 10))
    undo(desk)
    desk.world.files.before_step = None
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows + Counter(["late"])
    require_tidy(desk)


@pytest.mark.parametrize(("stacked", "step"), [(stacked, step) for shape, stacked, step in CASES if shape == "flat"])
def test_a_committer_with_committed_tasks_keeps_them_through_a_rollback(stacked, step):
    desk = build("flat", stacked)
    rows, live = desk.world.rows_of(desk.table), desk.live()

    def set_up_and_commit_a_task() -> None:
        desk.world.files.writer.start_committer(live)
        desk.world.files.writer.commit_task(live, "task.parquet", DataFile(rows=("task",)), 10)

    write_at(desk, step, set_up_and_commit_a_task)
    undo(desk)
    desk.world.files.before_step = None
    desk.world.files.writer.commit_job(live)
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows + Counter(["task"])


@pytest.mark.parametrize(("shape", "stacked", "step"), CASES)
def test_rows_that_an_overwriter_replaced_do_not_come_back_by_a_rollback(shape, stacked, step):
    desk, unit = build(shape, stacked), next(iter(SHAPES[shape][1]))
    rows, live = desk.world.rows_of(desk.table), desk.live(unit)
    wrote, step_in_hand = [], [""]

    def overwrite() -> None:
        # A deletion between the look at live and the rename of a late file is not noticed (docs/swap.md).
        carrying = "/retired/" in step_in_hand[0] and step_in_hand[0].endswith(".parquet")
        if desk.world.files.namespace.find(live) is not None and not carrying:
            desk.world.files.writer.overwrite(live, {"new.parquet": DataFile(rows=("new",))})
            wrote.append(True)

    write_at(desk, step, overwrite, step_in_hand)
    undo(desk)
    desk.world.files.before_step = None
    desk.recover()
    others = Counter({row: 1 for row in rows if f"/{unit}/" not in row})
    assert desk.world.rows_of(desk.table) == (others + Counter(["new"]) if wrote else rows)


@pytest.mark.parametrize("step", range(count_steps("flat", False)))
def test_a_rollback_that_was_taken_over_in_its_sleep_changes_nothing_any_more(step):
    desk = build("flat")
    rows = desk.world.rows_of(desk.table)
    other = desk.world.another_process()
    slept = []

    def take_over(_what: str) -> None:
        if len(slept) == step:
            desk.world.files.before_step = None
            desk.world.files.expire_locks()
            assert desk.compact(cluster=other).code is Exit.DONE
        slept.append(True)

    desk.world.files.before_step = take_over
    result = undo(desk)
    desk.world.files.before_step = None
    desk.world.files.expire_locks()
    assert result.code in (Exit.LOCKED, Exit.UNUSABLE, Exit.PARTIAL, Exit.DONE)
    desk.recover()
    assert desk.world.rows_of(desk.table) == rows
    require_tidy(desk)


def test_a_partition_that_discovery_dropped_in_the_gap_of_a_rollback_is_put_back():
    desk = build("partitioned")
    desk.world.set_property(desk.table, **{"discover.partitions": "true"})

    def drop(what: str) -> None:
        if "/restoring/u00001" in what and what.startswith("rename_exact") and what.endswith(desk.live("dt=1")):
            desk.world.catalog.drop_partition(desk.table, "dt=1")

    desk.world.files.before_step = drop
    result = undo(desk)
    assert outcomes(result)["dt=1"] == "rolled-back"
    assert "dt=1" in desk.world.catalog.partitions[desk.table]


def once_before(desk: Desk, moment: Callable[[str], bool], act: Callable[[], None]) -> None:
    """Let a writer act just before the first step that matches `moment`."""
    waiting = [act]
    former = desk.world.files.before_step

    def step(what: str) -> None:
        if former is not None:
            former(what)
        if waiting and moment(what):
            waiting.pop()()

    desk.world.files.before_step = step


def test_what_came_to_lives_place_in_the_gap_is_kept_when_a_rollback_is_put_back():
    desk = build("flat")
    rows, live, writer = desk.world.rows_of(desk.table), desk.live(), desk.world.files.writer
    once_before(desk, lambda what: what.startswith(f"rename_exact {live} "), lambda: writer.start_committer(live))
    once_before(
        desk,
        lambda what: what.startswith("rename_exact") and what.endswith(f"/retired/u00001 {live}"),
        lambda: (
            writer.add(f"{live}/late.parquet", DataFile(rows=("late",))),
            writer.add(f"{live}/attempt/nested.parquet", DataFile(("nested",))),
        ),
    )
    result = undo(desk)
    desk.world.files.before_step = None
    assert outcomes(result) == {"": "misplaced"}
    assert f"{live}/attempt" in result.tables[0].units[0].why.what
    assert desk.world.rows_of(desk.table) == rows + Counter(["late"])
    assert f"{live}/attempt/nested.parquet" in desk.world.files.contents(live)
    require_tidy(desk)


def test_a_backup_that_is_spoiled_after_the_plan_was_made_is_not_restored():
    desk = build("flat")
    rows, backup = desk.world.rows_of(desk.table), desk.control.run(desk.runs[0]).unit("retired", 1)
    once_before(
        desk,
        lambda what: what.startswith(f"rename_exact {backup} "),
        lambda: desk.world.files.writer.delete(f"{backup}/part-00001.parquet"),
    )
    result = undo(desk)
    desk.world.files.before_step = None
    assert [(unit.outcome, unit.why.code) for unit in result.tables[0].units] == [(Outcome.GIVEN_UP, Code.CHANGED_MEANWHILE)]
    assert desk.world.rows_of(desk.table) == rows
    assert desk.world.files.look([backup])[backup].exists


def test_where_the_newer_run_cannot_be_undone_the_older_one_is_not_tried():
    desk = build("flat", stacked=True)
    rows, live = desk.world.rows_of(desk.table), desk.live()
    claimed = []

    def watch(what: str) -> None:
        if what.startswith("rename_exact") and "/restoring/" in what.split()[2]:
            claimed.append(what)
            desk.world.files.writer.start_committer(live)

    desk.world.files.before_step = watch
    result = undo(desk)
    desk.world.files.before_step = None
    assert [unit.outcome.code for unit in result.tables[0].units] == ["given-up", "given-up"]
    assert result.tables[0].units[1].why.code is Code.NEWER_RUN_STAYS
    assert len(claimed) == 1
    assert desk.world.rows_of(desk.table) == rows
