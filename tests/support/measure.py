"""A plugin of pytest that measures coverage in each process of pytest-xdist; `coverage combine` joins what they saw.

It is loaded before any module of the job is (`-p support.measure`), so that the lines that define things count as well.
"""

from __future__ import annotations

import atexit
import os

import coverage

measured = coverage.Coverage(data_suffix=True)


def save() -> None:
    measured.stop()
    measured.save()


if "PYTEST_XDIST_WORKER" in os.environ:
    measured.start()
    atexit.register(save)
