"""What is killed: each command in its own situation, on the fakes or a real cluster, with writers that exercise every branch."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.files import Killed
from support.world import World

SHAPES: Mapping[str, Sequence[str]] = {"flat": [""], "partitioned": ["dt=1", "dt=2"]}
LATE, RECREATED = "late row", "row in the gap"

Act = Callable[[Desk], Any]


@dataclass(frozen=True)
class Scenario:
    """A command, what happened before it, and who writes while it runs: an action just before the first change of a name.

    `arrivals` are the rows that writers add to the first unit. `kept` is how many backups each unit has when everything is settled: where
    its files are as before, and where it was compacted.
    """

    name: str
    command: Act
    prepare: Act = lambda _desk: None
    writers: Mapping[str, Act] = field(default_factory=dict)
    arrivals: Tuple[str, ...] = ()
    kept: Tuple[Sequence[int], Sequence[int]] = ((0,), (1,))

    @property
    def subcommand(self) -> str:
        return self.name.partition(",")[0]

    def run(self, desk: Desk) -> Any:
        waiting = dict(self.writers)
        desk.world.watch(desk.table, lambda name: waiting.pop(name, lambda _desk: None)(desk))
        return self.command(desk)


def first_live(desk: Desk) -> str:
    return desk.live(sorted(desk.world.partitions(desk.table) or [""])[0])


def append_late(desk: Desk) -> None:
    desk.world.add_file(f"{first_live(desk)}/late.parquet", [LATE])


def append_in_gap(desk: Desk) -> None:
    desk.world.add_file(f"{first_live(desk)}/gap.parquet", [RECREATED])


def start_committer(desk: Desk) -> None:
    desk.world.start_committer(first_live(desk))


def compact(desk: Desk) -> None:
    done = outcomes(desk.compact())
    assert set(done.values()) == {"swapped"}, done


def compact_and_undo(desk: Desk) -> None:
    """Each unit has its own files again, and a backup of the compacted ones."""
    compact(desk)
    assert set(outcomes(desk.rollback()).values()) == {"rolled-back"}


def with_short_memory(command: Act) -> Act:
    """The command, with a checkpoint after each entry of the log, which keeps no entry longer than it is needed."""

    def act(desk: Desk) -> Any:
        desk.settings = replace(desk.settings, checkpoint_interval=1, log_retention_ms=0)
        return command(desk)

    return act


def compact_then_clean_up(desk: Desk) -> Any:
    desk.settings = replace(desk.settings, cleanup_after=True, min_age_ms=0, keep_latest_versions=1)
    return desk.compact()


def become_old(desk: Desk) -> None:
    """The last checkpoint marks entries as expired."""
    compact_and_undo(desk)
    NIGHTLY.command(desk)


def compact_and_append_to_backup(desk: Desk) -> None:
    """Like a file that was open across the swap and is closed now."""
    compact(desk)
    backup = desk.control.run(desk.runs[-1]).unit("retired", 1)
    desk.world.add_file(f"{backup}/late.parquet", [LATE])


def killed(scenario: Scenario, name: str) -> Act:
    """Prepare: kill a command just after the first change of this name."""

    def prepare(desk: Desk) -> None:
        scenario.prepare(desk)
        waiting = dict(scenario.writers)

        def act(seen: str) -> None:
            waiting.pop(seen, lambda _desk: None)(desk)
            if seen == name:
                desk.world.die_after(1, at_once=True)

        desk.world.watch(desk.table, act)
        with suppress(Killed):
            scenario.command(desk)
            raise AssertionError(f"{scenario.name} does not do: {name}")
        desk.world.revive()

    return prepare


COMPACT = Scenario("compact-swap", Desk.compact, writers={"live → retired": append_late}, arrivals=(LATE,))
PUT_BACK = Scenario(
    "compact-swap, put back",
    Desk.compact,
    writers={"live → retired": start_committer, "retired → live": append_in_gap},
    arrivals=(RECREATED,),
)
ROLLBACK = Scenario("rollback", Desk.rollback, compact, {"live → retired": append_late}, (LATE,))
NIGHTLY = Scenario("compact-swap, then cleanup", with_short_memory(compact_then_clean_up), compact_and_undo, kept=((1,), (1, 2)))
OLD_LOG = Scenario("rollback, of an old log", with_short_memory(Desk.rollback), become_old)
CLEANUP = Scenario("cleanup", Desk.cleanup, compact_and_append_to_backup, arrivals=(LATE,))
TO_TRASH = Scenario("cleanup, to the trash", lambda desk: desk.cleanup(how="trash"), compact_and_append_to_backup, arrivals=(LATE,))

SCENARIOS = (
    COMPACT,
    PUT_BACK,
    ROLLBACK,
    NIGHTLY,
    OLD_LOG,
    CLEANUP,
    TO_TRASH,
    Scenario("recover, after compact-swap", Desk.recover, killed(COMPACT, "live → retired"), arrivals=(LATE,)),
    Scenario("recover, after rollback", Desk.recover, killed(ROLLBACK, "live → retired"), arrivals=(LATE,)),
    Scenario("recover, after cleanup", Desk.recover, killed(replace(CLEANUP, prepare=compact), "retired → held")),
)


def changes_on_fakes(scenario: Scenario, shape: str) -> List[str]:
    """The changes the command makes, in order: recorded from one run, undisturbed except by the writers."""
    world = World()
    units = SHAPES[shape]
    world.add_table(a_table(["dt"] if units[0] else []), {unit: [1000] * 3 for unit in units})
    desk = Desk(world)
    scenario.prepare(desk)
    found: List[str] = []
    waiting = dict(scenario.writers)

    def note(name: str) -> None:
        waiting.pop(name, lambda _desk: None)(desk)
        found.append(name)

    world.watch(desk.table, note)
    scenario.command(desk)
    world.files.before_step = None
    return found


@dataclass(frozen=True)
class Point:
    """A moment: just after, or at, the nth change of a name."""

    scenario: Scenario
    shape: str
    name: str
    nth: int

    def __str__(self) -> str:
        return f"{self.scenario.name}, {self.shape}: {self.name} {self.nth}"


def all_points() -> List[Point]:
    """Every change of every scenario on every shape."""
    points = []
    for scenario in SCENARIOS:
        for shape in SHAPES:
            seen: Dict[str, int] = {}
            for name in changes_on_fakes(scenario, shape):
                seen[name] = seen.get(name, 0) + 1
                points.append(Point(scenario, shape, name, seen[name]))
    return points


def every_name_once(points: Sequence[Point]) -> List[Point]:
    """Each change of a subcommand once, on one shape and then on the other; of several with the same name, the last.

    A recovery counts as one subcommand per command to recover, because these share change names.
    """
    by_name: Dict[Tuple[str, str], Dict[str, Point]] = {}
    for point in points:
        scenario = point.scenario
        key = scenario.name if scenario.subcommand == "recover" else scenario.subcommand
        found = by_name.setdefault((key, point.name), {})
        # If a subcommand makes the same change in two situations, take the first.
        if point.shape not in found or found[point.shape].scenario is point.scenario:
            found[point.shape] = point
    shapes = list(SHAPES)
    return [found.get(shapes[number % 2]) or next(iter(found.values())) for number, found in enumerate(by_name.values())]


def share_out(points: Sequence[Point]) -> List[Point]:
    """Each change once, of the scenario that has the fewest so far, so that each scenario has a part; and each change of live in every
    scenario, because it is what readers see.
    """
    by_name: Dict[str, List[Point]] = {}
    for point in points:
        by_name.setdefault(point.name, []).append(point)
    taken = [point for point in points if is_exchange(point.name)]
    for name in sorted(by_name, key=lambda name: len(by_name[name])):
        if not is_exchange(name):
            counts = Counter(point.scenario.name for point in taken)
            taken.append(min(by_name[name], key=lambda point: counts[point.scenario.name]))
    return sorted(taken, key=points.index)


def is_exchange(name: str) -> bool:
    """Whether a whole directory becomes live, or leaves it."""
    return name.startswith("live →") or (name.endswith("→ live") and "/FILE" not in name)


# Where a real process is killed too.
MOST_IMPORTANT = {
    ("compact-swap", "stage → ready"),
    ("compact-swap", "live → retired"),
    ("compact-swap", "ready → live"),
    ("rollback", "live → retired"),
    ("rollback", "entry.json → log"),
    ("cleanup", "held → discarding"),
}


def is_most_important(point: Point) -> bool:
    return (point.scenario.subcommand, point.name) in MOST_IMPORTANT
