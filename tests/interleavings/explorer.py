"""Every interleaving of runs and writers, one NameNode call at a time, with kills, lost leases and renames that fail.

When only one run is active, its calls to places that nobody else sees are made at once: their order relative to other calls
does not change the outcome. A kill is tried after each change, because a kill after the reads that follow looks the same.

Worlds, actors and budgets are kept once each and known by numbers, and a state is a tuple of numbers. What one actor can do depends on
the world, on itself and on what is `Shown` of the others, so it is worked out once for all states that have these in common.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Callable, Dict, FrozenSet, Generic, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.names import ControlPaths
from hivekeeper.ports import FilesUnavailable, LockHeld, NoSpace, SourceMissing, TargetExists
from interleavings import writers
from interleavings.met import Met, key_of
from interleavings.promises import ACCEPTED
from interleavings.runners import CHANGES, PORT_ERRORS, Answer, Call, Ended, Point
from interleavings.world import FIRST_WRITER, Freezer, Frozen, World, is_below
from interleavings.writers import LIVE, ROOT
from support.fakes.files import FakeFiles
from support.fakes.metastore import FakeMetastore
from support.fakes.namespace import Namespace
from support.fakes.rows import FakeRows

CONTROL = ControlPaths.of(ROOT, partitioned=True)
ABOVE_LIVE = (ROOT, LIVE)
ALL_CHANGES = frozenset().union(*CHANGES.values())
MOVES_ROWS = frozenset(["rename_exact", "remove_empty", "delete_tree", "move_to_trash", "write_stage", "concat"])
MAY_FAIL = frozenset(["rename_exact", "concat"])
LOCK_TOLD = frozenset(["hold", "check"])
# A refused unit, a lost table or a call that keeps failing is expected here; a bug or a state that needs investigation is not.
EXPECTED = frozenset([Exit.DONE, Exit.REFUSED, Exit.LOCKED, Exit.PARTIAL, Exit.UNUSABLE])
# The fact that a quota around live has no room for new files.
FULL = ("full",)
# After so many states an exploration asks whether it may go on.
PATIENCE = 10_000

Value = TypeVar("Value")


class Shown(NamedTuple):
    """What of an actor may matter to the moves of another one. `program` is "" for one of our runs."""

    id: int
    program: str
    status: str
    lapsed: bool


@dataclass(frozen=True)
class Runner:
    """One of our runs: waiting for its turn, stopped at a point, done or dead. `last` is the method of its last call."""

    number: int
    job: str
    point: Optional[Point] = None
    status: str = "waits"
    last: str = ""
    lapsed: bool = False

    @property
    def name(self) -> str:
        return f"{self.job}#{self.number}"

    @property
    def shown(self) -> Shown:
        return Shown(self.number, "", self.status, self.lapsed)


@dataclass(frozen=True)
class Writer:
    number: int
    program: str
    arguments: Tuple[Any, ...]
    results: Tuple[Any, ...] = ()
    status: str = "runs"

    @property
    def id(self) -> int:
        return FIRST_WRITER + self.number

    @property
    def name(self) -> str:
        return f"{self.program}#{self.number}"

    @property
    def shown(self) -> Shown:
        return Shown(self.id, self.program, self.status, False)


Actor = Union[Runner, Writer]


@dataclass(frozen=True)
class Budget:
    """How often a run may be killed, lose its lease or have a rename fail; and, if two runs are active, how often they may switch.

    `turn` is the index of the run that acted last.
    """

    kills: int
    lapses: int
    errors: int
    switches: int
    turn: int = -1

    @cached_property
    def left(self) -> Left:
        return Left(self.kills > 0, self.lapses > 0, self.errors)

    def allows(self, index: int) -> bool:
        """Whether it is this run's turn, or can become so."""
        return self.switches > 0 or self.turn in (-1, index)

    def spend(self, cost: Cost, index: int) -> Budget:
        is_switch = cost.takes_turn and self.turn not in (-1, index)
        turn = -1 if cost.ends_turn else index if cost.takes_turn else self.turn
        return Budget(self.kills - cost.kills, self.lapses - cost.lapses, self.errors - cost.errors, self.switches - is_switch, turn)


class Cost(NamedTuple):
    """What a move takes from the budget."""

    kills: int = 0
    lapses: int = 0
    errors: int = 0
    takes_turn: bool = False
    ends_turn: bool = False
    needs_turn: bool = True


class Left(NamedTuple):
    """What a budget still allows to happen to any run."""

    kills: bool
    lapses: bool
    errors: int


class Act(NamedTuple):
    """What an actor can do: its words in a schedule, the numbers of the world and the actor afterwards, and what it costs."""

    what: str
    world: int
    actor: int
    cost: Cost


class Turn(NamedTuple):
    """All that an actor can do. If it is private, nobody else needs to act before."""

    is_private: bool
    acts: Tuple[Act, ...]


@dataclass(frozen=True)
class Scene:
    """What an actor's moves depend on besides itself: the world, what everybody shows, and what may still happen to a run."""

    world: Frozen
    index: int
    cast: Tuple[Shown, ...]
    left: Left

    def cast_with(self, actor: Actor) -> Tuple[Shown, ...]:
        return (*self.cast[: self.index], actor.shown, *self.cast[self.index + 1 :])


# The numbers of the world, of the budget and of each actor.
State = Tuple[int, ...]
Move = Tuple[str, State]


class Way(NamedTuple):
    """How a state was reached: from the first one, through those that were met, to the key `end`."""

    first: State
    met: Met
    end: int


class Numbers(Generic[Value]):
    """Small numbers for values, and back. Equal values have one number."""

    def __init__(self) -> None:
        self._numbers: Dict[Value, int] = {}
        self.values: List[Value] = []

    def __call__(self, value: Value) -> int:
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number

    def __getitem__(self, number: int) -> Value:
        return self.values[number]


@dataclass
class Found:
    """What an exploration found: each kind of broken promise with the windows that were hit, how often, and the shortest schedule.

    `complete` is False if it was stopped before every state was explored.
    """

    states: int = 0
    ends: int = 0
    complete: bool = True
    broken: Dict[Tuple[str, FrozenSet[str]], Tuple[int, Tuple[str, ...]]] = field(default_factory=dict)

    @property
    def failures(self) -> Dict[str, Tuple[str, ...]]:
        """Broken promises that are not accepted, outside of every window, with the shortest schedule."""
        return {kind: schedule for (kind, windows), (_, schedule) in self.broken.items() if not windows and kind not in ACCEPTED}


@cache
def next_step(program: str, arguments: Tuple[Any, ...], results: Tuple[Any, ...]) -> Any:
    """(description, action) of a writer's next step, or the facts it ends with."""
    steps = writers.PROGRAMS[program](*arguments)
    try:
        step = next(steps)
        for result in results:
            step = steps.send(result)
    except StopIteration as stop:
        return list(stop.value)
    return step


class Explorer:
    """`judge_now` names the promises that a state breaks, `judge_end` those broken by a state in which nobody acts any more."""

    def __init__(self, judge_now: Callable[[World], Iterator[str]], judge_end: Callable[[World], Iterator[str]]) -> None:
        self.freezer = Freezer()
        self.judge_now, self.judge_end = judge_now, judge_end
        self._worlds: Numbers[Frozen] = Numbers()
        self._actors: Numbers[Actor] = Numbers()
        self._budgets: Numbers[Budget] = Numbers()
        self._shown: Numbers[Shown] = Numbers()
        self._shown_of: List[int] = []
        self._begun: Dict[Tuple[str, int], Point] = {}
        self._turns: Dict[Tuple[Any, ...], Turn] = {}
        self._spent: Dict[Tuple[int, Cost, int], int] = {}
        self._lone: Dict[Tuple[int, ...], Optional[int]] = {}
        self._judged: Dict[int, Tuple[str, ...]] = {}
        self._settled: Dict[int, Tuple[str, ...]] = {}

    def first(self, frozen: Frozen, actors: Sequence[Actor], budget: Budget) -> State:
        return (self._worlds(frozen), self._budgets(budget), *map(self._number_of, actors))

    def world_of(self, state: State) -> Frozen:
        return self._worlds[state[0]]

    def _number_of(self, actor: Actor) -> int:
        number = self._actors(actor)
        if number == len(self._shown_of):
            self._shown_of.append(self._shown(actor.shown))
        return number

    # ---- moves

    def moves(self, state: State) -> Iterator[Move]:
        budget, cast = self._budgets[state[1]], tuple([self._shown_of[actor] for actor in state[2:]])
        lone = self._lone_index(cast)
        if lone is not None and self._turn(state, lone, cast, budget).is_private:
            yield from self._moves_of(state, lone, cast, budget)
            return
        for index in range(len(cast)):
            yield from self._moves_of(state, index, cast, budget)

    def _moves_of(self, state: State, index: int, cast: Tuple[int, ...], budget: Budget) -> Iterator[Move]:
        for act in self._turn(state, index, cast, budget).acts:
            if not act.cost.needs_turn or budget.allows(index):
                spent = self._spend(state[1], act.cost, index)
                yield act.what, (act.world, spent, *state[2 : 2 + index], act.actor, *state[3 + index :])

    def _spend(self, budget: int, cost: Cost, index: int) -> int:
        key = budget, cost, index
        if key not in self._spent:
            self._spent[key] = self._budgets(self._budgets[budget].spend(cost, index))
        return self._spent[key]

    def _lone_index(self, cast: Tuple[int, ...]) -> Optional[int]:
        if cast not in self._lone:
            self._lone[cast] = lone_runner([self._shown[number] for number in cast])
        return self._lone[cast]

    def _turn(self, state: State, index: int, cast: Tuple[int, ...], budget: Budget) -> Turn:
        key = state[0], state[2 + index], index, cast, budget.left
        turn = self._turns.get(key)
        if turn is None:
            shown = tuple(self._shown[number] for number in cast)
            turn = self._turns[key] = self._work_out(
                Scene(self._worlds[state[0]], index, shown, budget.left), self._actors[state[2 + index]]
            )
        return turn

    def _work_out(self, scene: Scene, actor: Actor) -> Turn:
        if isinstance(actor, Writer):
            return Turn(False, (self._move_writer(scene, actor),) if actor.status == "runs" else ())
        if actor.status == "waits":
            return Turn(False, (self._begin(scene, actor),) if may_begin(scene) else ())
        if actor.status != "runs":
            return Turn(False, ())
        return Turn(is_private(actor, self.freezer.thaw(scene.world), scene.cast), tuple(self._acts_of_runner(scene, actor)))

    def _acts_of_runner(self, scene: Scene, runner: Runner) -> Iterator[Act]:
        if scene.left.kills and runner.last in ALL_CHANGES:
            yield self._kill(scene, runner)
        if scene.left.lapses and scene.world[2] == runner.number and runner.last in LOCK_TOLD:
            yield self._lapse(scene, runner)
        for done in (False, True) if scene.left.errors and call_of(runner).method in MAY_FAIL else ():
            yield self._perform(scene, runner, failing=True, done=done)
        yield self._perform(scene, runner)

    def _begin(self, scene: Scene, runner: Runner) -> Act:
        begun = replace(runner, point=self._first_point(runner.job, runner.number), status="runs")
        return Act(f"{runner.name} begins", self._worlds(scene.world), self._number_of(begun), Cost(takes_turn=True))

    def _first_point(self, job: str, number: int) -> Point:
        if (job, number) not in self._begun:
            self._begun[job, number] = Point.begin(job, number)
        return self._begun[job, number]

    def _kill(self, scene: Scene, runner: Runner) -> Act:
        world = self.freezer.thaw(scene.world)
        if world.holder == runner.number:
            world.end_lease(CONTROL.lock)
        if not writers.rows_in_live(world)[writers.ORIGINAL[0]]:
            world.facts.add(("killed",))
        dead = replace(runner, point=None, status="dead")
        return self._act(scene, f"{runner.name} KILLED", world, dead, Cost(kills=1, ends_turn=True))

    def _lapse(self, scene: Scene, runner: Runner) -> Act:
        """The run pauses until its lease expires, without knowing. Only `check` could tell when, so this happens right after one."""
        world = self.freezer.thaw(scene.world)
        world.end_lease(CONTROL.lock)
        number = self._number_of(replace(runner, lapsed=True))
        return Act(f"{runner.name} PAUSED, its lease ends", self._worlds(self.freezer.freeze(world)), number, Cost(lapses=1))

    def _perform(self, scene: Scene, runner: Runner, failing: bool = False, done: bool = False) -> Act:
        world, call = self.freezer.thaw(scene.world), call_of(runner)
        answer = Answer(error=FilesUnavailable("connection reset")) if failing else None
        if not failing or done:
            carried_out = perform(world, runner.number, call)
            answer = answer or carried_out
        assert answer is not None
        said = [f"{runner.name} {describe(call)}{' FAILS' if failing else ''}{', but is done' if done else ''}{tell(answer)}"]
        left = scene.left._replace(errors=scene.left.errors - failing)
        after = pass_on(world, runner, answer)
        if lone_runner(scene.cast_with(after)) == scene.index:
            while after.status == "runs" and is_unwatched(after, world, scene.cast, left):
                after = make_next_call(world, after, said)
        cost = Cost(errors=int(failing), takes_turn=True, ends_turn=after.status != "runs")
        return self._act(scene, "\n".join(said), world, after, cost)

    def _move_writer(self, scene: Scene, writer: Writer) -> Act:
        world = self.freezer.thaw(scene.world)
        what, act = next_step(writer.program, writer.arguments, writer.results)
        world.namespace.actor = writer.id
        result = act(world)
        after = replace(writer, results=(*writer.results, result))
        following = next_step(after.program, after.arguments, after.results)
        if isinstance(following, list):
            world.facts.update(following)
            after = replace(after, results=(), status="done")
        shown = "" if result is True else f" = {result}"
        return self._act(scene, f"{writer.name} {shorten(what)}{shown}", world, after, Cost(needs_turn=False))

    def _act(self, scene: Scene, what: str, world: World, actor: Actor, cost: Cost) -> Act:
        """What is left of the world without what only finished processes knew."""
        at_work = [shown for shown in scene.cast_with(actor) if shown.status == "runs"]
        if not any(not shown.program for shown in at_work):
            world.forget_times()
        made = world.namespace.made
        world.namespace.made = {shown.id: made[shown.id] for shown in at_work if shown.id in made}
        return Act(what, self._worlds(self.freezer.freeze(world)), self._number_of(actor), cost)

    # ---- exploring

    def explore(self, first: State, stop_at_first: bool = False, may_go_on: Callable[[], bool] = lambda: True) -> Found:
        """Breadth first, so that the first schedule found for something is the shortest; depth first if the first break is enough."""
        found, met, queue = Found(), Met(), deque([first])
        met.add(key_of(first), key_of(first))
        for turn in itertools.count(1):
            if not queue or (stop_at_first and found.failures) or (turn % PATIENCE == 0 and not may_go_on()):
                break
            state = queue.pop() if stop_at_first else queue.popleft()
            way, leaf = Way(first, met, key_of(state)), True
            self._note(found, self._judge_now(state[0]), state, way, [])
            for _, following in self.moves(state):
                leaf = False
                if met.add(key_of(following), way.end):
                    queue.append(following)
            if leaf:
                found.ends += 1
                self._note(found, self._judge_leaf(state), state, way, ["a last recover"])
        found.states, found.complete = len(met), not queue
        return found

    def _note(self, found: Found, kinds: Sequence[str], state: State, way: Way, after: List[str]) -> None:
        if not kinds:
            return
        windows = frozenset(fact[1] for fact in self._worlds[state[0]][3] if fact[0] == "window")
        for kind in kinds:
            times, schedule = found.broken.get((kind, windows), (0, ()))
            found.broken[kind, windows] = (times + 1, schedule or (*self._schedule(way), *after))

    def _schedule(self, way: Way) -> List[str]:
        """The words of the moves on the way to a state, found by making them again: only keys of states are kept."""
        lines, state = [], way.first
        for key in way.met.way_to(way.end)[1:]:
            what, state = next(move for move in self.moves(state) if key_of(move[1]) == key)
            lines += what.split("\n")
        return lines

    def _judge_now(self, world: int) -> Tuple[str, ...]:
        if world not in self._judged:
            self._judged[world] = tuple(self.judge_now(self.freezer.thaw(self._worlds[world])))
        return self._judged[world]

    def _judge_leaf(self, state: State) -> Tuple[str, ...]:
        """After one more undisturbed recover; a second one must change nothing."""
        actors = [self._actors[number] for number in state[2:]]
        stuck = [actor.name for actor in actors if actor.status in ("runs", "waits")]
        if stuck:
            return (f"deadlock: {', '.join(stuck)}",)
        if state[0] not in self._settled:
            world = self.freezer.thaw(self.run_alone(self._worlds[state[0]], "recover", 90))
            again = self.freezer.thaw(self.run_alone(self.freezer.freeze(world), "recover", 91))
            kinds = [*self.judge_now(world), *self.judge_end(world)]
            if contents(again) != contents(world):
                kinds.append("a second recover changes something")
            self._settled[state[0]] = tuple(kinds)
        return self._settled[state[0]]

    def run_alone(self, frozen: Frozen, job: str, number: int) -> Frozen:
        """The world after one undisturbed run."""
        world, runner, point = self.freezer.thaw(frozen), Runner(number, job), self._first_point(job, number)
        while isinstance(point.next, Call):
            point = point.go_on(perform(world, number, point.next))
        note_end(world, runner, point.next)
        world.forget_times()
        return self.freezer.freeze(world)


# ---- what a runner may do


def lone_runner(cast: Sequence[Shown]) -> Optional[int]:
    """The index of the run that is active, if no other run can meet it."""
    at_work = [index for index, shown in enumerate(cast) if not shown.program and shown.status == "runs"]
    return at_work[0] if len(at_work) == 1 and not cast[at_work[0]].lapsed else None


def may_begin(scene: Scene) -> bool:
    """Whether the next run may start: the lock is free, and no run is active except one that lost its lease unnoticed."""
    earlier = [shown for shown in scene.cast[: scene.index] if not shown.program]
    at_work = [shown for shown in scene.cast if not shown.program and shown.status == "runs" and not shown.lapsed]
    return scene.world[2] is None and not at_work and all(shown.status != "waits" for shown in earlier)


def is_private(runner: Runner, world: World, cast: Sequence[Shown]) -> bool:
    """Whether no writer can see its next call or change the answer to it."""
    call = call_of(runner)
    acting = [shown for shown in cast if shown.program and shown.status == "runs"]
    if not acting:
        return True
    if call.port == "metastore":
        return not any(shown.program in writers.TOUCH_METASTORE for shown in acting)
    if call.port == "rows" or world.namespace.coarse_ms is not None:
        return False
    open_files = [path for path, node in world.files_below(ROOT) if node.is_open and path != CONTROL.lock]
    return all(is_below(path, CONTROL.top) and not any(is_below(one, path) for one in open_files) for path in call.paths())


def is_unwatched(runner: Runner, world: World, cast: Sequence[Shown], left: Left) -> bool:
    """Whether nothing can happen between the last call and the next, and no promise needs checking between them."""
    may_branch = (
        (left.kills and runner.last in ALL_CHANGES)
        or (left.lapses and runner.last in LOCK_TOLD)
        or (left.errors and call_of(runner).method in MAY_FAIL)
    )
    return not may_branch and runner.last not in MOVES_ROWS and is_private(runner, world, cast)


def call_of(runner: Runner) -> Call:
    assert runner.point is not None
    assert isinstance(runner.point.next, Call)
    return runner.point.next


def make_next_call(world: World, runner: Runner, said: List[str]) -> Runner:
    call = call_of(runner)
    answer = perform(world, runner.number, call)
    if call.changes:
        said.append(f"{runner.name} {describe(call)}{tell(answer)}")
    return pass_on(world, runner, answer)


def pass_on(world: World, runner: Runner, answer: Answer) -> Runner:
    """The runner after an answer."""
    assert runner.point is not None
    point = runner.point.go_on(answer)
    if isinstance(point.next, Call):
        return replace(runner, point=point, last=call_of(runner).method)
    note_end(world, runner, point.next)
    return replace(runner, point=None, status="done", last="")


def note_end(world: World, runner: Runner, ended: Ended) -> None:
    if ended.code not in EXPECTED:
        world.facts.add(("ended", runner.job, ended.code, ended.why))


def perform(world: World, number: int, call: Call) -> Answer:
    """Carry out one call on the fakes."""
    space = world.namespace
    space.actor = number
    files = FakeFiles(namespace=space)
    try:
        if call.port == "files":
            return Answer(_perform_on_files(world, files, number, call))
        port = FakeRows(files) if call.port == "rows" else FakeMetastore(files, world.catalog)
        return Answer(getattr(port, call.method)(*call.arguments))
    except PORT_ERRORS as error:
        return Answer(error=error)


def _perform_on_files(world: World, files: FakeFiles, number: int, call: Call) -> Any:
    space = world.namespace
    if call.method == "hold":
        return _hold(world, files, number, *call.arguments)
    if call.method == "check":
        return world.holder == number
    if call.method == "release":
        return world.end_lease(CONTROL.lock) if world.holder == number else None
    if call.method in ("read_pieces", "read_bytes"):
        # An answer may be given again.
        return tuple(getattr(files, call.method)(*call.arguments))
    if call.method == "list":
        seen = files.look(call.arguments)[call.arguments[0]]
        if call.arguments[0] == LIVE and ("nested",) in world.facts and any(entry.is_dir for entry in seen.entries):
            world.facts.add(("met what is nested",))
        return seen.entries if seen.exists else None
    if call.method == "stat" and call.arguments[0] in ABOVE_LIVE:
        node = space.find(call.arguments[0])
        space.remembered.update([node.id] if node is not None else [])
    if call.method == "rename_exact" and FULL in world.facts and is_new(*call.arguments):
        _require_free(space, *call.arguments)
        raise NoSpace("the quota around live is exceeded")
    return getattr(files, call.method)(*call.arguments)


def is_new(source: str, target: str) -> bool:
    return target == LIVE and names.base(names.parent(source)) in ("ready", "restoring")


def _require_free(space: Namespace, source: str, target: str) -> None:
    """What a NameNode checks before quotas."""
    if space.find(source) is None:
        raise SourceMissing(source)
    if space.find(target) is not None:
        raise TargetExists(target)


def _hold(world: World, files: FakeFiles, number: int, path: str, holder: str) -> None:
    if world.holder is not None:
        raise LockHeld(path, "")
    files.hold(path, holder)
    # The list of its holders is only read for a message.
    lock = world.namespace.file(path)
    lock.content, lock.length = "", 0
    world.namespace.leases.clear()
    world.holder = number


def contents(world: World) -> Dict[str, Any]:
    """Which files are where, without the lock's list of holders."""
    return {path: node.content for path, node in world.files_below("hdfs://nn") if path != CONTROL.lock}


# ---- words of a schedule


def shorten(text: str) -> str:
    return text.replace(f"{CONTROL.runs}/", "").replace(LIVE, "live").replace(CONTROL.top, "control").replace(ROOT, "root")


def describe(call: Call) -> str:
    words = [shorten(path) for path in call.paths()]
    return " ".join([call.method if call.port == "files" else f"{call.port}.{call.method}", *words[:3]])


def tell(answer: Answer) -> str:
    if answer.error is not None:
        return f" = {type(answer.error).__name__}"
    if answer.value is None or isinstance(answer.value, bool):
        return f" = {answer.value}"
    return ""
