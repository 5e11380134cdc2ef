"""Process units one after the other until a stop is requested; the remaining units are left, with the reason.

Touches nothing itself.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from typing import Callable, ContextManager, List, Optional, Sequence

from hivekeeper.ports import Stopping
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import PlannedUnit

Act = Callable[[PlannedUnit], UnitResult]
Hold = Callable[[], ContextManager[object]]


def take_turns(
    stopping: Stopping,
    units: Sequence[PlannedUnit],
    act: Act,
    leave: Callable[[PlannedUnit, Reason], UnitResult],
    hold: Hold = nullcontext,
) -> List[UnitResult]:
    """The result of each unit, in order. `hold` is released during a pause, because readers of the table wait for Hive's lock too."""
    waiting, done = deque(units), []  # type: ignore[var-annotated]
    while waiting:
        why = stopping.why()
        if why:
            done.extend(leave(unit, Reason(Code.STOP_ASKED, why)) for unit in waiting)
            break
        with hold():
            done.append(act(waiting.popleft()))
            while waiting and not stopping.is_asked():
                done.append(act(waiting.popleft()))
    return done


def leave_unit(unit: PlannedUnit, why: Optional[Reason]) -> UnitResult:
    """The result of a unit that was not begun."""
    return UnitResult(unit, Outcome.LEFT, why=why)
