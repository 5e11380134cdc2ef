"""Explore, and print what was found: `make interleavings`, or `python -m interleavings [NAME…] [--traces]` in tests/."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from interleavings.configurations import CONFIGURATIONS, begin
from interleavings.explorer import Found
from interleavings.promises import ACCEPTED


def main() -> int:
    parser = argparse.ArgumentParser(prog="interleavings", description=__doc__)
    parser.add_argument("names", nargs="*", help="of configurations; all if none is given")
    parser.add_argument("--most", type=int, default=9, help="at most so many kills, lost leases, and failures each")
    parser.add_argument("--first", action="store_true", help="stop at the first broken promise")
    parser.add_argument("--traces", action="store_true", help="with the shortest schedule for each")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    began, states, broken = time.perf_counter(), 0, 0
    for name, configuration in CONFIGURATIONS.items():
        if asked.names and name not in asked.names:
            continue
        since = time.perf_counter()
        explorer, first = begin(configuration.limited(asked.most))
        found = explorer.explore(first, asked.first)
        print(f"{name:30} {found.states:8} states {found.ends:6} ends {time.perf_counter() - since:6.1f} s", flush=True)
        states += found.states
        broken += show(found, asked.traces)
    print(f"{states} states, {time.perf_counter() - began:.0f} s, {broken} broken promises")
    return 1 if broken else 0


def show(found: Found, with_traces: bool) -> int:
    """Print broken promises first, then the windows, only the smallest sets of them; return the number of broken promises."""
    broken = 0
    for (kind, windows), (times, schedule) in sorted(
        found.broken.items(), key=lambda item: (bool(item[0][1]), item[0][0], sorted(item[0][1]))
    ):
        if any(other == kind and fewer < windows for other, fewer in found.broken):
            continue
        is_broken = not windows and kind not in ACCEPTED
        broken += is_broken
        mark = "BROKEN " if is_broken else ""
        print(f"    {mark}{kind}{' [' + ', '.join(sorted(windows)) + ']' if windows else ''}  ({times} states, {len(schedule)} steps)")
        for line in schedule if with_traces or is_broken else ():
            print(f"        {line}")
    return broken


if __name__ == "__main__":
    sys.exit(main())
