"""Prints what became of every case, where all of them run."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from foreign.lives import LIVES


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    lives = config.stash.get(LIVES, {})
    if not lives or not os.environ.get("HKTEST_FOREIGN"):
        return
    terminalreporter.section("what became of foreign files")
    for life in lives.values():
        told = f"not tested: {life.unavailable or life.broken}" if life.unavailable or life.broken else life.outcome
        expected = "" if life.unavailable or life.broken or told == life.case.expected else f"  expected: {life.case.expected}"
        changed = f"  changed for: {', '.join(life.changed)}" if life.changed else ""
        terminalreporter.line(f"{life.case.name:60} {told}{expected}{changed}  {life.reason[:120]}".rstrip())
    counted = Counter((life.case.writer, "not tested" if life.unavailable or life.broken else life.outcome) for life in lives.values())
    for (writer, outcome), count in sorted(counted.items()):
        terminalreporter.line(f"{writer:20} {outcome:20} {count}")
