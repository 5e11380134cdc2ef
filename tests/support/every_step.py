"""A test that does something before each change of a command in turn."""

from __future__ import annotations

from itertools import count
from typing import Callable, List, Optional


def require_nothing_wrong(meet: Callable[[int], Optional[List[str]]]) -> None:
    """`meet` says what is wrong if it happens before this change; None if the command had ended before."""
    wrong: List[str] = []
    for step in count():
        found = meet(step)
        if found is None:
            break
        wrong += found
    assert step > 10
    assert not wrong, "\n".join(wrong)
