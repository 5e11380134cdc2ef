"""Take units one after the other until a stop is asked for; what was not begun then is left, with the reason.

Touches nothing itself.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from typing import Callable, ContextManager, List, Optional, Sequence

from hivekeeper.ports import Stopping
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.entries import UnitRecord
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import RecordedUnit

Act = Callable[[RecordedUnit], UnitRecord]
Hold = Callable[[], ContextManager[object]]


def take_turns(
    stopping: Stopping,
    units: Sequence[RecordedUnit],
    act: Act,
    leave: Callable[[RecordedUnit, Reason], UnitRecord],
    hold: Hold = nullcontext,
) -> List[UnitRecord]:
    """What became of each unit, in order. `hold` is let go for a pause: readers of the table wait for Hive's lock, too."""
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


def leave_unit(unit: RecordedUnit, why: Optional[Reason]) -> UnitRecord:
    """A unit of which nothing was begun."""
    return UnitRecord(unit, Outcome.LEFT, why=why)
