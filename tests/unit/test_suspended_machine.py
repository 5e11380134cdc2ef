"""A machine is suspended while a command is at work, and resumed hours later: what it was told before is hours old then."""

from __future__ import annotations

import time

import pytest

from hivekeeper.cluster import uptime
from hivekeeper.cluster.connect import WallClock
from unit.test_places_that_fail_once import Reader, metastore_of

HOUR_S = 3600


@pytest.fixture
def suspend(monkeypatch):
    """The clock of Linux that goes on meanwhile, and the one that does not."""
    slept = [0]
    clocks = {time.CLOCK_BOOTTIME: lambda: 1000.0 + sum(slept), time.CLOCK_MONOTONIC: lambda: 1000.0}
    monkeypatch.setattr(time, "clock_gettime", lambda clock: clocks[clock]())
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    return slept.append


def test_the_clock_goes_on(suspend):
    clock = WallClock()
    began = clock.monotonic_ms()
    suspend(HOUR_S)
    assert clock.monotonic_ms() - began == HOUR_S * 1000


def test_where_the_tables_are_is_asked_again(suspend):
    reader = Reader(0)
    metastore = metastore_of(reader)
    metastore.table_locations()
    asked = reader.asked
    metastore.table_locations()
    assert reader.asked == asked
    suspend(HOUR_S + 1)
    metastore.table_locations()
    assert reader.asked > asked


@pytest.mark.parametrize("error", [AttributeError, OSError])
def test_where_there_is_no_such_clock_the_other_one_counts(monkeypatch, error):
    def refuse(clock):
        raise error(clock)

    monkeypatch.setattr(time, "clock_gettime", refuse)
    assert uptime._find_clock() == time.CLOCK_MONOTONIC
