"""The table lock on a real HDFS, between processes: who holds it, how long a dead holder keeps it, what a run that lost it can do."""

from __future__ import annotations

import logging
import re
import time
from contextlib import ExitStack
from typing import Any, Dict, Iterator, NamedTuple, Tuple

import pytest

from cluster.edge import Edge
from cluster.long_run import LongRun, start_stopping
from cluster.servers.layout import Layout
from cluster.tables import SmallTable, making_database
from hivekeeper.codes import Exit
from support.desk import Desk

log = logging.getLogger(__name__)

DAYS = ("1", "2", "3")
IN_THE_GAP = "/retired/u"
BEFORE_THE_FIRST_RENAME = "/ready/u"
HOLDER = r"another run holds the table \(run \d{8}t\d{6}z-[0-9a-f]{4} of etl\S* on \S+ \([^)]+\) since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)"
# HDFS gives the file of a holder silent for 60 s to the next client that requests it, after recovery: seconds, minutes on a busy machine.
LEASE_SECONDS = 60
RECOVERY_SECONDS = 240

# Where each run stops, and what becomes of it there.
STOPS = {"asleep in the gap": IN_THE_GAP, "asleep before the first rename": BEFORE_THE_FIRST_RENAME, "killed": IN_THE_GAP}


class Holder(NamedTuple):
    """A stopped run that holds its table, and what another run was told meanwhile."""

    run: LongRun
    small: SmallTable
    told: Any


@pytest.fixture(scope="module")
def holders(layout: Layout, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dict[str, Holder]]:
    """They have stopped before the first of them is taken over, so that their leases expire together: a minute, and not one for each."""
    with ExitStack() as made:
        runs: Dict[str, Tuple[LongRun, SmallTable]] = {}
        for name, stop in STOPS.items():
            home = tmp_path_factory.mktemp("holder")
            small = SmallTable(spark, made.enter_context(making_database(layout, spark, home)), DAYS)
            runs[name] = start_stopping(Edge(layout, home), small.name, stop), small
            made.callback(runs[name][0].end)
        for run, _ in runs.values():
            run.wait_until_stopped()
        found = {name: Holder(run, small, small.desk().compact().tables[0]) for name, (run, small) in runs.items()}
        for name, holder in found.items():
            holder.run.kill() if name == "killed" else holder.run.freeze()
        yield found


def take_over(desk: Desk) -> None:
    """Run again and again, as a scheduler does, until the table is free. That run does everything there is to do."""
    begin = time.monotonic()
    while True:
        asked = time.monotonic() - begin
        (outcome,) = desk.compact().tables
        if outcome.code is not Exit.LOCKED:
            log.info("the table was free after %.0f s", asked)
            assert outcome.code is Exit.DONE, outcome.problem
            return
        assert asked < LEASE_SECONDS + RECOVERY_SECONDS, outcome.problem
        time.sleep(1)


def require_compacted(small: SmallTable) -> None:
    small.require_every_row_once()
    assert all(len([name for name in small.ids(small.live(unit)) if name.startswith("part-")]) == 1 for unit in small.units)


@pytest.mark.parametrize("name", STOPS)
def test_a_second_run_is_told_who_holds_the_table_since_when(holders: Dict[str, Holder], name: str):
    told = holders[name].told
    assert told.code is Exit.LOCKED
    assert re.search(HOLDER, told.problem.what), told.problem.what


@pytest.mark.parametrize("name", [name for name in STOPS if name.startswith("asleep")])
def test_a_sleeper_renames_nothing_after_a_takeover(holders: Dict[str, Holder], name: str):
    """The driver stopped, and then its Java process, so that it did not renew its lease; another run does everything, then both resume."""
    run, small, _ = holders[name]
    take_over(small.desk())
    require_compacted(small)
    before = small.everything()
    assert run.go_on() == Exit.LOCKED, run.output
    assert re.search(r"another run took over .*\n  state: that run finishes or undoes what this one began", run.output), run.output
    assert small.everything() == before
    require_compacted(small)


def test_a_killed_run_holds_the_table_no_longer_than_its_lease_and_the_next_one_needs_no_hand(holders: Dict[str, Holder]):
    small = holders["killed"].small
    take_over(small.desk())
    require_compacted(small)
