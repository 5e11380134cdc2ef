"""Tests that do something before each change of a command in turn, or kill it there."""

from __future__ import annotations

from itertools import count
from typing import Callable, List, Optional

import pytest

# Whether a command is killed after a change, or before its next one. What others see is the same, on which the explorer rests
# (tests/interleavings/explorer.py), so the second is tried nightly.
KILLS = [pytest.param(True, id="after the change"), pytest.param(False, id="before the next", marks=pytest.mark.thorough)]


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
