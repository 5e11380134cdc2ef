"""The errors an operator can meet, each with its exit code.

An error says three things: what happened, what state the table is in, what to type next. It is raised
once and printed once, by `cli/`.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes, grouped by what the operator does next (README.md has the table)."""

    DONE = 0
    BUG = 1
    USAGE = 2
    REFUSED = 3
    LOCKED = 4
    DIFFERENT = 5
    PARTIAL = 6
    ASK = 7
    UNUSABLE = 8


class HivekeeperError(Exception):
    """An error with state and next step.

    The subclass fixes the exit code. `unit` is filled in by whoever knows which unit was in hand.
    """

    code = Exit.BUG

    def __init__(self, what: str, *, state: str = "nothing was changed", next: str) -> None:
        super().__init__(what)
        self.what = what
        self.state = state
        self.next = next

    def __str__(self) -> str:
        return self.what


class UsageError(HivekeeperError):
    """The command line or the configuration is wrong; no cluster was contacted."""

    code = Exit.USAGE


class Refused(HivekeeperError):
    """Not fit for us: compacting it could lose or change something."""

    code = Exit.REFUSED


class Locked(HivekeeperError):
    """Another run holds the table."""

    code = Exit.LOCKED


class Stopped(HivekeeperError):
    """The command was asked to end before this was begun."""

    code = Exit.PARTIAL


class AskAPerson(HivekeeperError):
    """A state that recovery does not understand: nothing more is touched."""

    code = Exit.ASK


class Unusable(HivekeeperError):
    """The cluster cannot be used now: no ticket, safe mode, metastore down, no space."""

    code = Exit.UNUSABLE
