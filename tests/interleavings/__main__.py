"""Explore, print what was found, and keep it in docs/evidence/: `make interleavings`, or `python -m interleavings [NAME…]` in tests/."""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import resource
import sys
import time
from datetime import date
from typing import Iterator, List, Tuple

from interleavings.configurations import CONFIGURATIONS, Configuration, begin
from interleavings.explorer import Found
from interleavings.page import Result, record
from interleavings.promises import ACCEPTED


def main() -> int:
    asked = parse_arguments()
    states = broken = 0
    for name in asked.names or CONFIGURATIONS:
        results: List[Result] = []
        for limits in fewer_and_fewer(CONFIGURATIONS[name], asked.most):
            # A process of its own, whose memory is its own.
            with multiprocessing.get_context("fork").Pool(1) as pool:
                found, result = pool.apply(explore, (name, limits, asked))
            results.append(result)
            states, broken = states + found.states, broken + len(result.broken)
            show(found, result, asked.traces)
            if found.complete or asked.first:
                break
        if asked.record:
            record(results)
    print(f"{states} states, {broken} broken promises")
    return 1 if broken else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="interleavings", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of configurations; all if none is given")
    parser.add_argument("--most", type=int, default=9, help="at most so many kills, lost leases, and failures each")
    parser.add_argument("--first", action="store_true", help="stop at the first broken promise")
    parser.add_argument("--traces", action="store_true", help="with the shortest schedule for each")
    parser.add_argument("--record", action="store_true", help="write the results to docs/evidence/interleavings.md")
    parser.add_argument("--memory", type=int, default=8000, help="stop a configuration at so many MB, and explore it with fewer kills")
    parser.add_argument("--minutes", type=int, default=24 * 60, help="stop it after so many CPU minutes, likewise")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(CONFIGURATIONS)
    if unknown:
        parser.error(f"no such configuration: {', '.join(sorted(unknown))}")
    return asked


def fewer_and_fewer(configuration: Configuration, most: int) -> Iterator[Configuration]:
    """The configuration, and what it is with ever fewer kills, lost leases and switches."""
    before = None
    for fewer in range(most, -1, -1):
        limited = configuration.limited(fewer)
        if limited != before:
            yield limited
        before = limited


def explore(name: str, limits: Configuration, asked: argparse.Namespace) -> Tuple[Found, Result]:
    logging.disable(logging.CRITICAL)

    def may_go_on() -> bool:
        return peak_mb() < asked.memory and time.process_time() < 60 * asked.minutes

    explorer, first = begin(limits)
    found = explorer.explore(first, asked.first, may_go_on)
    windows = {", ".join(sorted(windows)) for _, windows in smallest(found) if windows}
    result = Result(
        name,
        limits,
        found.states,
        found.ends,
        found.complete,
        time.process_time(),
        peak_mb(),
        date.today().isoformat(),
        tuple(sorted(found.failures)),
        tuple(sorted(windows)),
    )
    return found, result


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def smallest(found: Found) -> List[Tuple[str, frozenset[str]]]:
    """Each broken promise with the smallest sets of windows in which it is broken; those outside of all windows first."""
    keys = sorted(found.broken, key=lambda key: (bool(key[1]), key[0], sorted(key[1])))
    return [(kind, windows) for kind, windows in keys if not any(other == kind and fewer < windows for other, fewer in keys)]


def show(found: Found, result: Result, with_traces: bool) -> None:
    end = "" if found.complete else "  STOPPED before the end"
    print(f"{result.name:30} {found.states:8} states {found.ends:6} ends {result.cpu_s:6.1f} CPU s {result.peak_mb:6} MB{end}", flush=True)
    for kind, windows in smallest(found):
        times, schedule = found.broken[kind, windows]
        is_broken = not windows and kind not in ACCEPTED
        mark = "BROKEN " if is_broken else ""
        print(f"    {mark}{kind}{' [' + ', '.join(sorted(windows)) + ']' if windows else ''}  ({times} states, {len(schedule)} steps)")
        for line in schedule if with_traces or is_broken else ():
            print(f"        {line}")


if __name__ == "__main__":
    sys.exit(main())
