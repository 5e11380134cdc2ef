"""Two runs on one table, stepped in turn: one loses its lease, the other takes over, the first wakes up in the middle."""

from __future__ import annotations

import threading
from typing import Callable, Optional

import pytest

from crash.test_compact import SELECTED, build, compact, count_steps, require_both_copies, require_tidy, run_id
from hivekeeper.codes import Exit
from hivekeeper.commands.recover import recover
from support.contexts import a_context


class Stepper:
    """A command in its own thread, which makes a step only when told to."""

    def __init__(self, files, work: Callable[[], object]) -> None:
        self._granted = threading.Semaphore(0)
        self._waiting = threading.Semaphore(0)
        self._free = False
        self.error: Optional[BaseException] = None
        self.ended = False
        files.before_step = self._wait
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()
        self._waiting.acquire()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - shown by finish()
            self.error = error
        self.ended = True
        self._waiting.release()

    def _wait(self, _what: str) -> None:
        if not self._free:
            self._waiting.release()
            self._granted.acquire()

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            if self.ended:
                return
            self._granted.release()
            self._waiting.acquire()

    def finish(self) -> None:
        self._free = True
        self._granted.release()
        self._thread.join(20)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error


SLEEPS = list(range(2, count_steps("flat")))


# A second each: of every fourth moment daily, of two that follow one another by turns.
@pytest.mark.parametrize("is_daily", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["daily", "nightly"])
@pytest.mark.parametrize("slept_at", SLEEPS)
def test_a_sleeper_that_wakes_up_at_any_moment_of_the_takeover_harms_nothing(slept_at, is_daily):
    for woken_at in range(1 if is_daily == bool(slept_at % 2) else 3, 45, 4):
        world = build("flat")
        before = world.rows_of("sales.events")
        other = world.another_process()
        sleeper = Stepper(world.files, lambda world=world: compact(world, run_id(1)))
        sleeper.advance(slept_at)
        world.files.expire_locks()
        taker = Stepper(other.files, lambda world=world, other=other: compact(world, run_id(2), other))
        taker.advance(woken_at)
        sleeper.finish()
        require_both_copies(world, before, [""])
        taker.finish()
        require_both_copies(world, before, [""])
        world.files.before_step = None
        world.files.expire_locks()
        result = recover(a_context(world.cluster, SELECTED, run_id(3)))
        assert result.code is Exit.DONE, (slept_at, woken_at, result.tables[0].problem)
        assert world.rows_of("sales.events") == before, (slept_at, woken_at)
        require_tidy(world)
