"""Prints what became of every case, where all of them run, and writes it to docs/evidence/foreign-files.md."""

from __future__ import annotations

import os
import platform
from collections import Counter
from datetime import datetime, timezone
from typing import Any

import pyspark
import pytest

from foreign import page
from foreign.lives import LIVES
from foreign.writers import CASES


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The page claims that readers found the same, so it is written only if every test passed."""
    lives = session.config.stash.get(LIVES, {})
    if os.environ.get("HKTEST_FOREIGN") and len(lives) == len(CASES) and not session.testsfailed:
        run = f"{datetime.now(timezone.utc):%Y-%m-%d}, Python {platform.python_version()}"
        page.replace_column(page.describe(lives.values(), pyspark.__version__, run))


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    lives = config.stash.get(LIVES, {})
    if not lives or not os.environ.get("HKTEST_FOREIGN"):
        return
    terminalreporter.section("what became of foreign files")
    for life in lives.values():
        untested, wanted = life.unavailable or life.broken, life.case.expected_with(pyspark.__version__)
        told = f"not tested: {untested}" if untested else life.outcome
        expected = "" if untested or told == wanted else f"  expected: {wanted}"
        changed = f"  changed for: {', '.join(life.changed)}" if life.changed else ""
        terminalreporter.line(f"{life.case.name:60} {told}{expected}{changed}  {life.reason[:120]}".rstrip())
    counted = Counter((life.case.writer, "not tested" if life.unavailable or life.broken else life.outcome) for life in lives.values())
    for (writer, outcome), count in sorted(counted.items()):
        terminalreporter.line(f"{writer:20} {outcome:20} {count}")
