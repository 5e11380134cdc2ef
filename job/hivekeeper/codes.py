"""Exit codes, and enums whose members have a stable code outside the program.

Pure. Programs that read a log or a result document use the code; the text for people may change.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Type, TypeVar

Member = TypeVar("Member", bound="Coded")


class Exit(IntEnum):
    """Exit codes, grouped by what the operator does next (README.md has the table)."""

    DONE = 0
    BUG = 1
    USAGE = 2
    REFUSED = 3
    LOCKED = 4
    DIFFERENT = 5
    PARTIAL = 6
    INVESTIGATE = 7
    UNUSABLE = 8


class Coded(Enum):
    """An enum whose code is the member's name: `PUT_BACK` is `put-back` in logs and JSON, and `put back` in text for people."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")

    @property
    def text(self) -> str:
        return self.name.lower().replace("_", " ")

    @classmethod
    def of_code(cls: Type[Member], code: str) -> Member:
        """The member with a code. Raises ValueError for an unknown code."""
        member = cls.__members__.get(code.upper().replace("-", "_"))
        if member is None or member.code != code:
            raise ValueError(f"{code!r} is not one of {', '.join(member.code for member in cls)}")
        return member
