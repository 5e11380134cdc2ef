"""How long ago something was: by a clock that nobody sets, and that goes on while the machine is suspended, as time.monotonic does not."""

from __future__ import annotations

import time


def _find_clock() -> int:
    try:
        time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        # Not on Linux, or before 2.6.39.
        return time.CLOCK_MONOTONIC
    return time.CLOCK_BOOTTIME


_CLOCK = _find_clock()


def uptime_s() -> float:
    """Seconds since the machine started."""
    return time.clock_gettime(_CLOCK)
