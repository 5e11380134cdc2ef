"""A pytest plugin that measures coverage in each pytest-xdist process; `coverage combine` merges the results.

Load it before any module of the job (`-p support.measure`), so that lines run at import count too. What plays the same steps over and over
is not measured: that would take three times as long, and says nothing that its first turns, and other tests, do not say.
"""

from __future__ import annotations

import atexit
import os
from typing import Iterator

import coverage
import pytest

# Hypothesis marks its tests by itself.
REPEATING = ("repeating", "hypothesis")

measured = coverage.Coverage(data_suffix=True)
is_measuring = "PYTEST_XDIST_WORKER" in os.environ


def save() -> None:
    measured.stop()
    measured.save()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    is_paused = is_measuring and any(item.get_closest_marker(name) for name in REPEATING)
    if is_paused:
        measured.stop()
    yield
    if is_paused:
        measured.start()


if is_measuring:
    measured.start()
    atexit.register(save)
