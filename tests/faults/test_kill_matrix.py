"""Every command killed after every change that lasts, on real files and a real metastore; pyarrow counts the rows afterwards.

The process dies by an exception between two calls of a warm JVM; test_real_kills.py kills real processes.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress

import pytest

from faults.checks import require_rows_are_somewhere, settle
from faults.matrix import Matrix
from faults.scenarios import SCENARIOS, SHAPES, Point, all_points, changes_on_fakes, every_name_once, is_most_important, share_out
from hivekeeper.codes import Exit
from support.desk import Desk
from support.fakes.files import Killed
from support.real_world import FAILED, KILLED, LOST_ANSWER, Fault

ASKED = os.environ.get("HKTEST_MATRIX", "")
EVERYTHING = ASKED == "all"
POINTS = all_points()


def is_seen(name: str) -> bool:
    """Whether a change shows readers or the next command a different picture: a rename, deleted rows, a record, the metastore.

    The rest is empty directories created or removed, files still being written, and the cleaning up after everything is recorded.
    """
    is_swept = name.endswith((".json → nothing", ".jsonl → nothing", "clock → nothing", " directory → nothing"))
    is_moved = " → " in name and not is_swept
    return is_moved or name in ("plan.json", "certificates-N.jsonl", "update sizes") or name.endswith("backup table")


ONCE = every_name_once(POINTS)
# CI takes only the visible changes, each of one command: on the fakes every command is killed after every step (tests/crash), and the tests
# below show that the real ports make the same changes in the same order. Where test_real_kills.py kills a real process, that is enough.
FEW = [point for point in share_out([point for point in ONCE if is_seen(point.name)]) if not is_most_important(point)]
TAKEN = POINTS if EVERYTHING else ONCE if ASKED else FEW
# A failing call: what a client sees when a connection breaks, before its request arrives or after.
# Once for each change: on the fakes every single step of compact-swap, rollback and cleanup fails (tests/crash).
ERRORS = [(point, kind) for point in ONCE for kind in (LOST_ANSWER, FAILED)]
# CI takes a few, and everything a metastore fails to do for a backup table: no other part of a run would notice that.
MISSED = {point.name: number for number, (point, kind) in enumerate(ERRORS) if kind == FAILED and point.name.endswith("backup table")}
FEW_ERRORS = [case for number, case in enumerate(ERRORS) if number % (9 if ASKED else 21) == 0 or number in MISSED.values()]
PAIRS = 100 if EVERYTHING else 6 if ASKED else 3
SITUATIONS = [
    (scenario, shape)
    for number, scenario in enumerate(SCENARIOS)
    for shape in (SHAPES if EVERYTHING else [list(SHAPES)[number % len(SHAPES)]])
]
SANE = {Exit.DONE, Exit.PARTIAL, Exit.UNUSABLE}
# The first unit's committer is still at work: LOCKED if that is the only unit, PARTIAL if others were done.
BESIDE_A_WRITER = {Exit.DONE, Exit.LOCKED, Exit.PARTIAL}


def run_again(desk: Desk, point: Point) -> None:
    """The same command again, as a scheduler starts it the next night."""
    result = point.scenario.command(desk)
    assert result.code in (BESIDE_A_WRITER if "put back" in point.scenario.name else {Exit.DONE}), result.tables[0]
    seen = desk.world.picture()
    assert seen.rows == desk.world.written
    if point.scenario.subcommand == "cleanup":
        assert seen.held == {}


def test_what_ci_takes_has_each_visible_change_and_a_part_of_each_command():
    """With the real processes that test_real_kills.py kills."""
    seen = [point for point in ONCE if is_seen(point.name)]
    killed = [*FEW, *(point for point in seen if is_most_important(point))]
    assert {point.name for point in killed} == {point.name for point in seen}
    assert {point.scenario.name for point in killed} == {point.scenario.name for point in seen}


@pytest.mark.parametrize(("scenario", "shape"), SITUATIONS, ids=lambda value: getattr(value, "name", value))
def test_the_real_ports_make_the_same_changes_in_the_same_order_as_the_fakes(make_desk, scenario, shape):
    desk = make_desk(shape)
    scenario.prepare(desk)
    desk.world.revive()
    scenario.run(desk)
    assert desk.world.process.changed == changes_on_fakes(scenario, shape)


@pytest.mark.parametrize("point", TAKEN, ids=str)
def test_a_command_killed_after_any_change_loses_nothing_and_the_next_one_settles_it(make_desk, matrix: Matrix, point: Point):
    begin = time.monotonic()
    desk = make_desk(point.shape)
    point.scenario.prepare(desk)
    desk.world.process.fault = fault = Fault(point.name, point.nth, KILLED)
    with suppress(Killed):
        point.scenario.run(desk)
    assert fault.happened
    killed = desk.world.picture()
    require_rows_are_somewhere(desk.world, killed)
    settled = settle(desk, point)
    if EVERYTHING or point.scenario.subcommand == "cleanup" or TAKEN.index(point) % 4 == 0:
        run_again(desk, point)
    matrix.add(point, KILLED, killed, desk.world.picture(), settled, time.monotonic() - begin)


@pytest.mark.parametrize(("point", "kind"), ERRORS if EVERYTHING else FEW_ERRORS, ids=str)
def test_a_call_that_fails_anywhere_loses_nothing(make_desk, matrix: Matrix, point: Point, kind: str):
    begin = time.monotonic()
    desk = make_desk(point.shape)
    point.scenario.prepare(desk)
    desk.world.process.fault = fault = Fault(point.name, point.nth, kind)
    result = point.scenario.run(desk)
    assert fault.happened
    assert result.code in SANE, result.tables[0]
    failed = desk.world.picture()
    require_rows_are_somewhere(desk.world, failed)
    settled = settle(desk, point)
    matrix.add(point, kind, failed, desk.world.picture(), settled, time.monotonic() - begin)


@pytest.mark.parametrize("seed", range(PAIRS))
def test_a_recovery_that_is_killed_too_is_settled_by_the_one_after(make_desk, matrix: Matrix, seed: int):
    begin, chance = time.monotonic(), random.Random(seed)
    point = chance.choice(POINTS)
    desk = make_desk(point.shape)
    point.scenario.prepare(desk)
    desk.world.process.fault = Fault(point.name, point.nth, KILLED)
    with suppress(Killed):
        point.scenario.run(desk)
    desk.world.revive()
    desk.world.die_after(chance.randint(1, 16), chance.random() < 0.5)
    with suppress(Killed):
        desk.recover()
    killed = desk.world.picture()
    require_rows_are_somewhere(desk.world, killed)
    settled = settle(desk, point)
    matrix.add(point, f"{KILLED} twice", killed, desk.world.picture(), settled, time.monotonic() - begin)
