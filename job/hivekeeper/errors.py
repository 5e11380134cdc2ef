"""The errors an operator can meet, each with a reason from the catalogue, which gives its exit code.

An error says three things: what happened, what state the table is in, what to type next. It is raised
once and printed once, by `cli/`.
"""

from __future__ import annotations

from typing import Optional

from hivekeeper.reasons import Code, Reason


class HivekeeperError(Exception):
    """An error with its reason. Subclasses exist to be caught; the exit code comes from the reason's code."""

    usual_code = Code.BUG

    def __init__(self, what: str, *, state: str = "nothing was changed", next: str, code: Optional[Code] = None) -> None:
        self.reason = Reason(code or self.usual_code, what, next, state)
        super().__init__(self.reason.what)

    def __str__(self) -> str:
        return self.reason.what


class UsageError(HivekeeperError):
    """The command line or the configuration is wrong; no table was touched."""

    usual_code = Code.WRONG_USAGE


class Refused(HivekeeperError):
    """A table or unit is not fit: compacting it could lose or change something."""


class Locked(HivekeeperError):
    """Another run holds the table."""


class Stopped(HivekeeperError):
    """The command was told to stop before this work was begun."""

    usual_code = Code.STOP_ASKED


class NeedsInvestigation(HivekeeperError):
    """Recovery does not understand the state: nothing more is touched."""


class Unusable(HivekeeperError):
    """The cluster cannot be used now: no ticket, safe mode, metastore down, no space."""

    usual_code = Code.CLUSTER_UNUSABLE
