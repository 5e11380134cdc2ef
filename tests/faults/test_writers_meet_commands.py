"""Writers between any two calls of a command, on HDFS: named schedules, random ones with counts, and the windows that stay open."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any, Callable, Dict, List, Mapping, Tuple

import pytest

from faults.matrix import Matrix
from faults.scenarios import SHAPES, compact, first_live
from faults.writers import APPENDERS, COMMITTERS, OVERWRITERS, Place, Step, overwrite_directory
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.desk import Desk, outcomes
from support.real_world import RealWorld, spec_of
from support.storage import TEST_FS

pytestmark = pytest.mark.skipif(not TEST_FS, reason="on HDFS: a local file system keeps other promises to writers")

EVERYTHING = os.environ.get("HKTEST_MATRIX") == "all"
# Swaps whose gaps are measured for the page of evidence.
MEASURED = 30 if os.environ.get("HKTEST_MATRIX") else 3
# In parts, which processes may share.
PARTS, SCHEDULES = (3, 100) if EVERYTHING else (1, 40)
# What must have happened in every hundred random schedules: kinds of writers, their moments, outcomes of units.
OFTEN_ENOUGH = {
    **dict.fromkeys(APPENDERS, 8),
    "before the check": 15,
    "between check and rename": 8,
    "in the gap": 8,
    "after the swap": 15,
    "swapped": 20,
    # Rarer than the rest: only a writer between the check and the rename brings it about.
    "put-back": 2,
    "rolled-back": 4,
}
COMMANDS: Mapping[str, Callable[[Desk], Any]] = {"compact": Desk.compact, "rollback": Desk.rollback, "cleanup": Desk.cleanup}
# First what leaves live, then what takes its place or returns to it.
EXCHANGE = {
    "compact": ("live → retired", "ready → live", "retired → live"),
    "rollback": ("live → retired", "restoring → live", "retired → live"),
}

MakeDesk = Callable[[str], Desk]
# This many calls after the one just before the first change of this name.
Moment = Tuple[str, int]
MOMENTS: Dict[str, Moment] = {
    "before the stage": ("write stage", 0),
    "between check and rename": ("live → retired", 0),
    "in the gap before the look": ("live → retired", 1),
    "in the gap after the look": ("ready → live", 0),
    "between promotion and carrying over": ("ready → live", 1),
    "before the log entry": ("entry.json → log", 0),
}
APPENDS = [(kind, moment, is_whole) for kind in APPENDERS for moment in MOMENTS for is_whole in (True, False)]
OVERWRITES = [(kind, moment) for kind in OVERWRITERS for moment in MOMENTS]
IN_THE_METASTORE = [(kind, moment) for kind in ("drop", "move") for moment in list(MOMENTS)[1:5]]


def some(cases: List[Any], every: int, *first: int) -> List[Any]:
    """CI takes a part, in which each kind and each moment is met."""
    return [case for number, case in enumerate(cases) if EVERYTHING or number % every in first]


def act_at(desk: Desk, moment: Moment, act: Step) -> None:
    """Let somebody act once, at this moment of the next command."""
    calls: List[str] = []
    name, later = moment

    def tell(call: str) -> None:
        calls.append(call)
        if name in calls and len(calls) == calls.index(name) + later + 1:
            act()

    desk.world.process.before_call = tell


def recover(desk: Desk) -> None:
    """The next command, which finds nothing else to do."""
    desk.world.revive()
    result = desk.recover()
    assert result.code is Exit.DONE, result.tables[0].problem


def take(steps: List[Step], number: int) -> None:
    """Make the writer's next steps."""
    for step in [steps.pop(0) for _ in range(min(number, len(steps)))]:
        step()


@pytest.mark.parametrize(("kind", "moment", "is_whole"), some(APPENDS, 7, 2))
def test_a_row_appended_at_any_moment_is_in_live_exactly_once(make_desk: MakeDesk, kind: str, moment: str, is_whole: bool):
    """A writer of several steps makes all of them at once, or half of them, and the rest after our command has ended."""
    shape = list(SHAPES)[(list(MOMENTS).index(moment) + is_whole) % 2]
    desk = make_desk(shape)
    steps = APPENDERS[kind](Place(desk.world, SHAPES[shape][0], "appended"))
    act_at(desk, MOMENTS[moment], lambda: take(steps, len(steps) if is_whole else (len(steps) + 1) // 2))
    assert desk.compact().code in (Exit.DONE, Exit.PARTIAL)
    recover(desk)
    take(steps, len(steps))
    recover(desk)
    missing = desk.world.written - desk.world.picture().rows
    if kind == "renames a directory" and moment.startswith("in the gap") and not is_whole:
        # It met the unit away, and renames its directory into live after the run has ended, which the next compaction tells.
        assert missing == Counter(["appended"])
        assert is_nested(desk.world, "appended")
        assert Code.SUBDIRECTORY in [unit.why.code for unit in desk.compact().tables[0].units if unit.why]
    else:
        assert not missing
    assert not desk.world.picture().rows - desk.world.written
    assert not desk.world.unpromised


def is_nested(world: RealWorld, row: str) -> bool:
    """Whether a row is in a directory of live, into which its writer has renamed it."""
    return any(found.location.endswith(f"/{row}/{row}.parquet") for found in world.storage.tree(world.live("")))


@pytest.mark.parametrize(("kind", "moment"), some(OVERWRITES, 7, 0, 3))
def test_rows_that_an_overwriter_found_and_replaced_never_come_back(make_desk: MakeDesk, kind: str, moment: str):
    """In the gap it finds nothing to replace: then the old rows stay beside the new ones, as docs/swap.md says."""
    desk = make_desk("partitioned")
    steps = OVERWRITERS[kind](Place(desk.world, "dt=1", "new"))
    act_at(desk, MOMENTS[moment], lambda: take(steps, len(steps)))
    result = desk.compact()
    take(steps, len(steps))
    recover(desk)
    assert desk.world.picture().rows == desk.world.written
    assert outcomes(result)["dt=2"] == "swapped"
    assert "events/dt=1/0" not in desk.world.written or moment.startswith("in the gap")


@pytest.mark.parametrize(("kind", "moment"), some(IN_THE_METASTORE, 3, 0))
def test_a_partition_dropped_or_moved_meanwhile_is_not_made_again_and_its_rows_are_kept(make_desk: MakeDesk, kind: str, moment: str):
    desk = make_desk("partitioned")
    world = desk.world
    elsewhere = f"{world.place}/elsewhere"

    def act() -> None:
        if kind == "drop":
            world.drop_partition(desk.table, "dt=1", purge=False)
        else:
            world.spark.sql(f"ALTER TABLE {desk.table} PARTITION ({spec_of('dt=1')}) SET LOCATION '{elsewhere}'")

    act_at(desk, MOMENTS[moment], act)
    desk.compact()
    recover(desk)
    there = world.partitions(desk.table).get("dt=1")
    assert (there.location if there else None) == (None if kind == "drop" else world.files.qualify(elsewhere))
    assert world.picture().rows == world.written


@pytest.mark.parametrize("closed", ["before the cleanup", "during the cleanup", "after the cleanup"])
def test_an_old_file_that_was_open_for_append_across_the_swap_is_never_deleted(make_desk: MakeDesk, closed: str):
    """Appending to a file does not change its directory, so nobody notices; the stream follows the file into the backup."""
    desk = make_desk("flat")
    storage, opened = desk.world.storage, []

    def begin() -> None:
        opened.append(storage.append(f"{first_live(desk)}/part-00000.parquet"))
        opened[0].write(bytearray(b"first"))
        opened[0].hflush()

    def end() -> None:
        opened[0].write(bytearray(b"second"))
        opened[0].close()

    act_at(desk, MOMENTS["between check and rename"], begin)
    assert outcomes(desk.compact()) == {"": "swapped"}
    end() if closed == "before the cleanup" else act_at(desk, ("retired → held", 1 if closed == "during the cleanup" else 999), end)
    backup = f"{desk.control.run(desk.runs[0]).unit('retired', 1)}/part-00000.parquet"
    assert [found.state.code for found in desk.cleanup().tables[0].backups] == ["partly"]
    if closed == "after the cleanup":
        end()
    desk.world.revive()
    assert [found.state.code for found in desk.cleanup().tables[0].backups] == ["partly"]
    assert storage.copy(backup).read_bytes().endswith(b"firstsecond")


def test_an_overwriter_that_comes_in_the_gap_leaves_the_old_rows_beside_its_own_and_the_gap_is_measured(
    make_desk: MakeDesk, matrix: Matrix
):
    """The window that stays open: the overwriter leaves no trace, because it found nothing to replace."""
    desk = make_desk("partitioned")
    steps = overwrite_directory(Place(desk.world, "dt=1", "new"))
    act_at(desk, MOMENTS["in the gap after the look"], lambda: take(steps, 1))
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert desk.world.picture().live["dt=1"] == Counter(["new", *(f"events/dt=1/{nth}" for nth in range(3))])
    desk.world.revive()
    for number in range(MEASURED):
        desk.world.make_partition(desk.table, f"dt=more{number}")
        for nth in range(2):
            desk.world.add_file(f"{desk.live(f'dt=more{number}')}/{nth}.parquet", [f"{number}/{nth}"])
    result = desk.compact("dt > 'more'")
    gaps = [unit.gap_ms for unit in result.tables[0].units if unit.gap_ms is not None]
    assert len(gaps) == MEASURED
    matrix.gaps_ms += gaps


class Schedule:
    """Writers' steps, keyed by the number of our call that they precede; those with later numbers run after the command."""

    def __init__(self, world: RealWorld, steps: Mapping[int, List[Step]]) -> None:
        self._steps = dict(steps)
        self.calls: List[str] = []
        world.process.before_call = self._tell

    def _tell(self, name: str) -> None:
        for step in self._steps.pop(len(self.calls), []):
            step()
        self.calls.append(name)

    def finish(self) -> None:
        for number in sorted(self._steps):
            for step in self._steps[number]:
                step()

    def moment_of(self, number: int, command: str) -> str:
        """When a call was made, relative to the exchange of the first unit; "" if there was none."""
        leaving, *coming = EXCHANGE.get(command, ("",))
        if leaving not in self.calls:
            return ""
        leaves = self.calls.index(leaving)
        of_others = self.calls[leaves + 1 :].index(leaving) if leaving in self.calls[leaves + 1 :] else len(self.calls)
        # It comes back at the second attempt if a writer has re-created live.
        comes = max([leaves, *(at for at, name in enumerate(self.calls) if name in coming and leaves < at <= leaves + of_others)])
        checked = len(self.calls[:leaves]) - self.calls[:leaves][::-1].index("write clock")
        if number <= checked:
            return "before the check"
        return "between check and rename" if number <= leaves else "in the gap" if number <= comes else "after the swap"


def calls_of(make_desk: MakeDesk, command: str, shape: str) -> List[str]:
    """All calls of an undisturbed command."""
    desk = begin(make_desk, command, shape)
    schedule = Schedule(desk.world, {})
    assert COMMANDS[command](desk).code is Exit.DONE
    return schedule.calls


def begin(make_desk: MakeDesk, command: str, shape: str) -> Desk:
    desk = make_desk(shape)
    if command != "compact":
        compact(desk)
    desk.world.revive()
    return desk


def choose_number(chance: random.Random, calls: List[str], command: str) -> int:
    """Most moments are near the exchange, the others anywhere, including after the end."""
    if command in EXCHANGE and chance.random() < 0.7:
        return calls.index(EXCHANGE[command][0]) + chance.randint(-2, 3)
    return chance.randint(0, len(calls) + 5)


def choose_writers(chance: random.Random) -> List[str]:
    chosen = chance.choices(list(APPENDERS), k=chance.randint(1, 3))
    committers = [kind for kind in chosen if kind in COMMITTERS]
    return [kind for kind in chosen if kind not in COMMITTERS] + committers[:1]


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
def test_random_schedules_of_appending_writers_lose_and_double_nothing(make_desk: MakeDesk, part: int):
    happened: Counter = Counter()
    known = {(command, shape): calls_of(make_desk, command, shape) for command in COMMANDS for shape in SHAPES}
    for seed in range(part * SCHEDULES, (part + 1) * SCHEDULES):
        chance = random.Random(seed)
        command, shape = chance.choices(list(COMMANDS), [6, 2, 1])[0], chance.choice(list(SHAPES))
        desk = begin(make_desk, command, shape)
        steps: Dict[int, List[Step]] = {}
        jobs: Dict[str, int] = {}
        for nth, kind in enumerate(choose_writers(chance)):
            happened[kind] += 1
            made = APPENDERS[kind](Place(desk.world, chance.choice(SHAPES[shape]), f"row_{nth}"))
            numbers = sorted(choose_number(chance, known[command, shape], command) for _ in made)
            if kind in COMMITTERS:
                jobs[f"row_{nth}"] = numbers[-1]
            for number, step in zip(numbers, made):
                steps.setdefault(number, []).append(step)
        schedule = Schedule(desk.world, steps)
        result = COMMANDS[command](desk)
        happened.update(schedule.moment_of(number, command) for number in steps)
        happened.update(unit.outcome.code for unit in result.tables[0].units)
        schedule.finish()
        recover(desk)
        seen, world = desk.world.picture().rows, desk.world
        nested = {row for row in world.written - seen if is_nested(world, row)}
        codes = (Exit.DONE, Exit.PARTIAL, Exit.REFUSED, Exit.LOCKED, *([Exit.INVESTIGATE] if nested else []))
        assert result.code in codes, (seed, result.tables[0])
        happened["in a directory of live"] += len(nested)
        for row in set(world.written - seen) - nested:
            # The window that stays open: a job that commits in the gap, over the directory that one of its own tasks re-created.
            assert schedule.moment_of(jobs.get(row[:5], 0), command) == "in the gap", f"seed {seed} lost {row}"
            assert any(found.location.endswith(f"/{row}.parquet") for found in world.storage.tree(world.live(""))), (
                f"seed {seed}: {row} is gone"
            )
            happened["in the open window"] += 1
        assert not seen - world.written - world.unpromised, f"seed {seed} doubled rows"
        happened["failed"] += bool(world.unpromised)
    rare = {what: happened[what] for what, wanted in OFTEN_ENOUGH.items() if happened[what] * 100 < wanted * SCHEDULES}
    assert happened["failed"] <= SCHEDULES // 10, "writers that fail prove nothing"
    assert happened["in the open window"] <= 2 + SCHEDULES // 50, "more than a window's worth"
    assert not rare, f"too seldom to prove anything: {rare} of {happened}"
