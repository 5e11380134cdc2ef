"""Every interleaving of runs and writers, one NameNode call at a time, with kills, lost leases and renames that fail.

When only one run is active, its calls to places that nobody else sees are made at once: their order relative to other calls
does not change the outcome. A kill is tried after each change, because a kill after the reads that follow looks the same.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Sequence, Tuple, Union

from hivekeeper.codes import Exit
from hivekeeper.names import ControlPaths
from hivekeeper.ports import FilesUnavailable, LockHeld
from interleavings import writers
from interleavings.promises import ACCEPTED
from interleavings.runners import CHANGES, PORT_ERRORS, Answer, Call, Ended, Point
from interleavings.world import Freezer, Frozen, World, is_below
from interleavings.writers import LIVE, ROOT
from support.fakes.files import FakeFiles
from support.fakes.metastore import FakeMetastore
from support.fakes.rows import FakeRows

CONTROL = ControlPaths.of(ROOT, partitioned=True)
ABOVE_LIVE = (ROOT, LIVE)
ALL_CHANGES = frozenset().union(*CHANGES.values())
MOVES_ROWS = frozenset(["rename_exact", "remove_empty", "delete_tree", "move_to_trash", "write_stage"])
LOCK_TOLD = frozenset(["hold", "check"])
# A refused unit, a lost table or a call that keeps failing is expected here; a bug or a state that needs investigation is not.
EXPECTED = frozenset([Exit.DONE, Exit.REFUSED, Exit.LOCKED, Exit.PARTIAL, Exit.UNUSABLE])


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
    def id(self) -> int:
        return self.number

    @property
    def name(self) -> str:
        return f"{self.job}#{self.number}"


@dataclass(frozen=True)
class Writer:
    number: int
    program: str
    arguments: Tuple[Any, ...]
    results: Tuple[Any, ...] = ()
    status: str = "runs"

    @property
    def id(self) -> int:
        return 50 + self.number

    @property
    def name(self) -> str:
        return f"{self.program}#{self.number}"


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

    def after_turn(self, index: int) -> Budget:
        is_switch = self.turn not in (-1, index)
        return replace(self, turn=index, switches=self.switches - is_switch)


State = Tuple[Frozen, Tuple[Actor, ...], Budget]
Move = Tuple[str, State]
# The hash of each state that was met → that of the state before it, and the move between them; None for the first.
Came = Dict[int, Any]


@dataclass
class Found:
    """What an exploration found: each kind of broken promise with the windows that were hit, how often, and the shortest schedule."""

    states: int = 0
    ends: int = 0
    broken: Dict[Tuple[str, FrozenSet[str]], Tuple[int, Tuple[str, ...]]] = field(default_factory=dict)


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
        self._begun: Dict[Tuple[str, int], Point] = {}
        self._settled: Dict[int, Tuple[str, ...]] = {}

    # ---- moves

    def moves(self, state: State) -> Iterator[Move]:
        frozen, actors, _ = state
        runner = self._lone_runner(actors)
        if runner is not None and self._is_private(runner, self.freezer.thaw(frozen), actors):
            yield from self._moves_of_runner(state, actors.index(runner))
            return
        for index, actor in enumerate(actors):
            if isinstance(actor, Runner):
                yield from self._moves_of_runner(state, index)
            elif actor.status == "runs":
                yield self._move_writer(state, index)

    def _lone_runner(self, actors: Sequence[Actor]) -> Optional[Runner]:
        """The run that is active, if no other run can meet it."""
        at_work = [actor for actor in actors if isinstance(actor, Runner) and actor.status == "runs"]
        return at_work[0] if len(at_work) == 1 and not at_work[0].lapsed else None

    def _is_private(self, runner: Runner, world: World, actors: Sequence[Actor]) -> bool:
        """Whether no writer can see its next call or change the answer to it."""
        assert runner.point is not None
        call = runner.point.next
        acting = [actor for actor in actors if isinstance(actor, Writer) and actor.status == "runs"]
        if not isinstance(call, Call) or not acting:
            return True
        if call.port == "metastore":
            return not any(writer.program in writers.TOUCH_METASTORE for writer in acting)
        if call.port == "rows" or world.namespace.coarse_ms is not None:
            return False
        open_files = [path for path, node in world.files_below(ROOT) if node.is_open and path != CONTROL.lock]
        return all(is_below(path, CONTROL.top) and not any(is_below(one, path) for one in open_files) for path in call.paths())

    def _moves_of_runner(self, state: State, index: int) -> Iterator[Move]:
        frozen, actors, budget = state
        runner = actors[index]
        assert isinstance(runner, Runner)
        if runner.status == "waits" and self._may_begin(frozen, actors, index) and self._may_act(budget, index):
            yield self._begin(state, index)
        if runner.status != "runs" or not self._may_act(budget, index):
            return
        assert runner.point is not None
        call = runner.point.next
        assert isinstance(call, Call)
        if budget.kills and runner.last in ALL_CHANGES:
            yield self._kill(state, index)
        if budget.lapses and frozen[2] == runner.number and runner.last in LOCK_TOLD:
            yield self._lapse(state, index)
        after = budget.after_turn(index)
        for done in (False, True) if budget.errors and call.method == "rename_exact" else ():
            yield self._perform(state, index, replace(after, errors=budget.errors - 1), failing=True, done=done)
        yield self._perform(state, index, after)

    def _may_act(self, budget: Budget, index: int) -> bool:
        """Whether it is this run's turn, or can become so."""
        return budget.switches > 0 or budget.turn in (-1, index)

    def _may_begin(self, frozen: Frozen, actors: Sequence[Actor], index: int) -> bool:
        """Whether the next run may start: the lock is free, and no run is active except one that lost its lease unnoticed."""
        earlier = [actor for actor in actors[:index] if isinstance(actor, Runner)]
        at_work = [actor for actor in actors if isinstance(actor, Runner) and actor.status == "runs" and not actor.lapsed]
        return frozen[2] is None and not at_work and all(actor.status != "waits" for actor in earlier)

    def _begin(self, state: State, index: int) -> Move:
        frozen, actors, budget = state
        runner = actors[index]
        assert isinstance(runner, Runner)
        point = self._first_point(runner.job, runner.number)
        return f"{runner.name} begins", (frozen, put(actors, index, replace(runner, point=point, status="runs")), budget.after_turn(index))

    def _first_point(self, job: str, number: int) -> Point:
        if (job, number) not in self._begun:
            self._begun[job, number] = Point.begin(job, number)
        return self._begun[job, number]

    def _kill(self, state: State, index: int) -> Move:
        frozen, actors, budget = state
        runner, world = actors[index], self.freezer.thaw(frozen)
        assert isinstance(runner, Runner)
        if world.holder == runner.number:
            world.end_lease(CONTROL.lock)
        if not writers.rows_in_live(world)[writers.ORIGINAL[0]]:
            world.facts.add(("killed",))
        actors = put(actors, index, replace(runner, point=None, status="dead"))
        return f"{runner.name} KILLED", (self._frozen_after(world, actors), actors, replace(budget, kills=budget.kills - 1, turn=-1))

    def _lapse(self, state: State, index: int) -> Move:
        """The run pauses until its lease expires, without knowing. Only `check` could tell when, so this happens right after one."""
        frozen, actors, budget = state
        runner, world = actors[index], self.freezer.thaw(frozen)
        assert isinstance(runner, Runner)
        world.end_lease(CONTROL.lock)
        actors = put(actors, index, replace(runner, lapsed=True))
        return f"{runner.name} PAUSED, its lease ends", (self.freezer.freeze(world), actors, replace(budget, lapses=budget.lapses - 1))

    def _perform(self, state: State, index: int, budget: Budget, failing: bool = False, done: bool = False) -> Move:
        frozen, actors, _ = state
        runner, world = actors[index], self.freezer.thaw(frozen)
        assert isinstance(runner, Runner) and runner.point is not None
        call = runner.point.next
        assert isinstance(call, Call)
        answer = Answer(error=FilesUnavailable("connection reset")) if failing else None
        if not failing or done:
            carried_out = perform(world, runner.number, call)
            answer = answer or carried_out
        assert answer is not None
        said = [f"{runner.name} {describe(call)}{' FAILS' if failing else ''}{', but is done' if done else ''}{tell(answer)}"]
        after = self._pass(world, runner, call, answer)
        lone = self._lone_runner(put(actors, index, after)) is after
        while lone and after.status == "runs" and self._is_unwatched(after, world, actors, budget):
            after = self._make_next_call(world, after, said)
        actors = put(actors, index, after)
        budget = budget if after.status == "runs" else replace(budget, turn=-1)
        return "\n".join(said), (self._frozen_after(world, actors), actors, budget)

    def _make_next_call(self, world: World, runner: Runner, said: List[str]) -> Runner:
        assert runner.point is not None
        call = runner.point.next
        assert isinstance(call, Call)
        answer = perform(world, runner.number, call)
        if call.changes:
            said.append(f"{runner.name} {describe(call)}{tell(answer)}")
        return self._pass(world, runner, call, answer)

    def _pass(self, world: World, runner: Runner, call: Call, answer: Answer) -> Runner:
        """The runner after an answer."""
        assert runner.point is not None
        point = runner.point.go_on(answer)
        if isinstance(point.next, Call):
            return replace(runner, point=point, last=call.method)
        note_end(world, runner, point.next)
        return replace(runner, point=None, status="done", last="")

    def _is_unwatched(self, runner: Runner, world: World, actors: Sequence[Actor], budget: Budget) -> bool:
        """Whether nothing can happen between the last call and the next, and no promise needs checking between them."""
        assert runner.point is not None
        call = runner.point.next
        assert isinstance(call, Call)
        may_branch = (
            (budget.kills and runner.last in ALL_CHANGES)
            or (budget.lapses and runner.last in LOCK_TOLD)
            or (budget.errors and call.method == "rename_exact")
        )
        return not may_branch and runner.last not in MOVES_ROWS and self._is_private(runner, world, actors)

    def _frozen_after(self, world: World, actors: Sequence[Actor]) -> Frozen:
        """Without what only finished processes knew."""
        at_work = [actor for actor in actors if actor.status == "runs"]
        if not any(isinstance(actor, Runner) for actor in at_work):
            world.forget_times()
        made = world.namespace.made
        world.namespace.made = {actor.id: made[actor.id] for actor in at_work if actor.id in made}
        return self.freezer.freeze(world)

    def _move_writer(self, state: State, index: int) -> Move:
        frozen, actors, budget = state
        writer, world = actors[index], self.freezer.thaw(frozen)
        assert isinstance(writer, Writer)
        step = next_step(writer.program, writer.arguments, writer.results)
        what, act = step
        world.namespace.actor = writer.id
        result = act(world)
        after = replace(writer, results=(*writer.results, result))
        following = next_step(after.program, after.arguments, after.results)
        if isinstance(following, list):
            world.facts.update(following)
            after = replace(after, results=(), status="done")
        shown = "" if result is True else f" = {result}"
        actors = put(actors, index, after)
        return f"{writer.name} {shorten(what)}{shown}", (self._frozen_after(world, actors), actors, budget)

    # ---- exploring

    def explore(self, first: State, stop_at_first: bool = False) -> Found:
        """Breadth first, so that the first schedule found for something is the shortest; depth first if the first break is enough.

        States that were met are kept as their hashes, as TLC does, because whole ones take much more memory: of ten million states two
        have the same 64 bits with a probability of 3 in a million.
        """
        found, came, queue = Found(), {hash(first): None}, deque([first])  # type: ignore[var-annotated]
        while queue:
            state = queue.pop() if stop_at_first else queue.popleft()
            self._note(found, self.judge_now(self.freezer.thaw(state[0])), state, came, [])
            leaf = True
            for what, following in self.moves(state):
                leaf = False
                if hash(following) not in came:
                    came[hash(following)] = (hash(state), sys.intern(what))
                    queue.append(following)
            if leaf:
                found.ends += 1
                self._note(found, iter(self._judge_leaf(state)), state, came, ["a last recover"])
            if stop_at_first and any(not windows and kind not in ACCEPTED for kind, windows in found.broken):
                break
        found.states = len(came)
        return found

    def _note(self, found: Found, kinds: Iterator[str], state: State, came: Came, after: List[str]) -> None:
        windows = frozenset(fact[1] for fact in state[0][3] if fact[0] == "window")
        for kind in kinds:
            times, schedule = found.broken.get((kind, windows), (0, ()))
            found.broken[kind, windows] = (times + 1, schedule or (*trace(came, hash(state)), *after))

    def _judge_leaf(self, state: State) -> Tuple[str, ...]:
        """After one more undisturbed recover; a second one must change nothing."""
        stuck = [actor.name for actor in state[1] if actor.status in ("runs", "waits")]
        if stuck:
            return (f"deadlock: {', '.join(stuck)}",)
        frozen = state[0]
        if hash(frozen) not in self._settled:
            world = self.freezer.thaw(self.run_alone(frozen, "recover", 90))
            again = self.freezer.thaw(self.run_alone(self.freezer.freeze(world), "recover", 91))
            kinds = [*self.judge_now(world), *self.judge_end(world)]
            if contents(again) != contents(world):
                kinds.append("a second recover changes something")
            self._settled[hash(frozen)] = tuple(kinds)
        return self._settled[hash(frozen)]

    def run_alone(self, frozen: Frozen, job: str, number: int) -> Frozen:
        """The world after one undisturbed run."""
        world, runner, point = self.freezer.thaw(frozen), Runner(number, job), self._first_point(job, number)
        while isinstance(point.next, Call):
            point = point.go_on(perform(world, number, point.next))
        note_end(world, runner, point.next)
        world.forget_times()
        return self.freezer.freeze(world)


def put(actors: Tuple[Actor, ...], index: int, actor: Actor) -> Tuple[Actor, ...]:
    return (*actors[:index], actor, *actors[index + 1 :])


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
    if call.method == "list":
        seen = files.look(call.arguments)[call.arguments[0]]
        return seen.entries if seen.exists else None
    if call.method == "stat" and call.arguments[0] in ABOVE_LIVE:
        node = space.find(call.arguments[0])
        space.remembered.update([node.id] if node is not None else [])
    return getattr(files, call.method)(*call.arguments)


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


def trace(came: Came, state: int) -> List[str]:
    lines: List[str] = []
    while came[state] is not None:
        state, what = came[state]
        lines += what.split("\n")[::-1]
    return lines[::-1]


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
