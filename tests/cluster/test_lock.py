"""The table lock on a real HDFS, between processes: who holds it, how long a dead holder keeps it, what a run that lost it can do."""

from __future__ import annotations

import logging
import re
import time
from typing import Any, Callable

import pytest

from cluster.long_run import LongRun
from cluster.tables import SmallTable
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

Start = Callable[..., LongRun]


@pytest.fixture
def small(spark: Any, database: str) -> SmallTable:
    return SmallTable(spark, database, DAYS)


@pytest.fixture
def table(small: SmallTable) -> str:
    return small.name


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


def sleep_through_a_takeover(run: LongRun, small: SmallTable) -> None:
    """The driver is already stopped; its Java process stops too, another run does everything, then both resume."""
    run.freeze()
    take_over(small.desk())
    require_compacted(small)
    before = small.everything()
    assert run.go_on() == Exit.LOCKED, run.output
    assert re.search(r"another run took over .*\n  state: that run finishes or undoes what this one began", run.output), run.output
    assert small.everything() == before
    require_compacted(small)


def test_a_second_run_is_told_who_holds_the_table_since_when_and_a_sleeper_in_the_gap_renames_nothing_after_a_takeover(
    start: Start, small: SmallTable
):
    run = start(IN_THE_GAP)
    run.wait_until_stopped()
    (told,) = small.desk().compact().tables
    assert told.code is Exit.LOCKED
    assert re.search(HOLDER, told.problem.what), told.problem.what
    sleep_through_a_takeover(run, small)


def test_a_run_that_sleeps_between_its_proof_and_its_first_rename_renames_nothing_after_a_takeover(start: Start, small: SmallTable):
    run = start(BEFORE_THE_FIRST_RENAME)
    run.wait_until_stopped()
    sleep_through_a_takeover(run, small)


def test_a_killed_run_holds_the_table_no_longer_than_its_lease_and_the_next_one_needs_no_hand(start: Start, small: SmallTable):
    run = start(IN_THE_GAP)
    run.wait_until_stopped()
    run.kill()
    take_over(small.desk())
    require_compacted(small)
