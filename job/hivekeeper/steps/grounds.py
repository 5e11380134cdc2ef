"""What must be true for the backups of a table to go. It is asked again as long as they do: that may take hours, and an operator may pause
it. Reads only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import Callable, Dict, Iterable, Mapping, Optional, Sequence, Union

from hivekeeper.errors import Refused
from hivekeeper.model import Table, Unit
from hivekeeper.names import ControlPaths
from hivekeeper.plan.retention import NamedPlace, find_shown, why_shown
from hivekeeper.ports import Clock, MetastoreUnavailable
from hivekeeper.reasons import Code, Reason
from hivekeeper.steps.whereabouts import usable_until

# How old an answer may be when a cleanup begins, or goes on after a pause, besides what its asking took: as much would a new one. While it
# is at work: see usable_until.
MOST_AGE_AT_FIRST_MS = 10_000

_CREATED_AGAIN = Reason(Code.TABLE_CREATED_AGAIN, "it was dropped and created again meanwhile")


@dataclass(frozen=True)
class Directories:
    """Where the metastore has things: the units of the table, by name, none of one that is gone; and what others have among its backups.

    `why_uncut`: why no file of the table may get another length.
    """

    lives: Mapping[str, str]
    others: Sequence[NamedPlace] = ()
    why_uncut: Optional[Reason] = None

    @property
    def all(self) -> Iterable[NamedPlace]:
        """No backup may lie in one of them, or around one."""
        return chain(self.lives.items(), self.others)


@dataclass(frozen=True)
class CreatedAgain:
    """The table was dropped, and this one has its name and place: all backups are a former table's, and none of them goes."""

    table: Table

    @property
    def refusal(self) -> Refused:
        what, state = f"{self.table.full_name}: {_CREATED_AGAIN.what}", "nothing more was discarded"
        return Refused(what, code=_CREATED_AGAIN.code, state=state, next="run cleanup again")


Answer = Union[Directories, CreatedAgain]
# Raises Refused where no backup may go any more: the table is gone, or one that was gone is there.
Ask = Callable[[], Answer]


class Grounds:
    """Asks once for many backups. An answer counts from when its asking began; so does a failure, whatever waits for it.

    `is_gone`: the table does not exist any more.
    """

    def __init__(self, clock: Clock, control: ControlPaths, ask: Ask, is_gone: bool = False) -> None:
        self.is_gone = is_gone
        self._clock, self._control, self._ask = clock, control, ask
        self._answer: Union[Answer, Refused, MetastoreUnavailable, None] = None
        self._ended_ms, self._until_ms = -math.inf, -math.inf
        self._places: Sequence[str] = ()
        self._shown: Dict[str, str] = {}

    def ask(self) -> Answer:
        """How it is now. Raises Refused, and MetastoreUnavailable: nothing may go then."""
        if self._answer is None or self._clock.monotonic_ms() > self._until_ms:
            # A table may have a million partitions, which are not needed twice.
            self._answer, began_ms = None, self._clock.monotonic_ms()
            try:
                self._answer = self._ask()
                self._find_shown()
            except (Refused, MetastoreUnavailable) as error:
                self._answer = error
            self._ended_ms, self._until_ms = self._clock.monotonic_ms(), usable_until(self._clock, began_ms)
        if isinstance(self._answer, (Refused, MetastoreUnavailable)):
            # Else it would get longer with each backup that stays.
            raise self._answer.with_traceback(None)
        return self._answer

    def directories(self) -> Directories:
        """As they are now. Raises like `ask`, and Refused if the table was created again."""
        answer = self.ask()
        if isinstance(answer, CreatedAgain):
            raise answer.refusal
        return answer

    def begin(self, places: Sequence[str]) -> None:
        """Say which backups are to go, by their places below the control directory."""
        self._places = places
        self._find_shown()

    def _find_shown(self) -> None:
        if isinstance(self._answer, Directories):
            self._shown = find_shown(self._control, self._places, self._answer.all)

    def resume(self) -> None:
        """To be called before the first backup, and after each pause."""
        self._until_ms = min(self._until_ms, self._ended_ms + MOST_AGE_AT_FIRST_MS)

    def why_kept(self, place: str) -> Optional[Reason]:
        """Why a backup, one of those of `begin`, must stay; None if it may go now."""
        try:
            self.directories()
        except Refused as refused:
            return refused.reason
        except MetastoreUnavailable as error:
            return Reason(error.code, f"whether it may go cannot be asked: {error}")
        return why_shown(self._shown[place]) if place in self._shown else None

    @property
    def why_uncut(self) -> Optional[Reason]:
        """Why no file of live may be cut, by the last answer."""
        return self._answer.why_uncut if isinstance(self._answer, Directories) else None

    def is_at(self, unit: Unit, live: str) -> bool:
        """Whether a unit of the table has this directory, by the last answer."""
        return isinstance(self._answer, Directories) and self._answer.lives.get(unit.name) == live
