"""A pytest plugin that measures coverage in each pytest-xdist process; `coverage combine` merges the results.

Load it before any module of the job (`-p support.measure`), so that lines run at import count too.
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
