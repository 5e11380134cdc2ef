"""Enums whose members are known outside the program by a stable code.

Pure. Whoever reads a log or a result document goes by the code; the words that people read may change.
"""

from __future__ import annotations

from enum import Enum
from typing import Type, TypeVar

Member = TypeVar("Member", bound="Coded")


class Coded(Enum):
    """The code is the member's name: `PUT_BACK` is `put-back` in logs and JSON, and `put back` where people read it."""

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")

    @property
    def text(self) -> str:
        return self.name.lower().replace("_", " ")

    @classmethod
    def of_code(cls: Type[Member], code: str) -> Member:
        """Raises ValueError for a code that no member has."""
        member = cls.__members__.get(code.upper().replace("-", "_"))
        if member is None or member.code != code:
            raise ValueError(f"{code!r} is not one of {', '.join(member.code for member in cls)}")
        return member
