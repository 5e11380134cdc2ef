"""How old an answer of the metastore may be on which a backup goes."""

from __future__ import annotations

import pytest

from hivekeeper.names import ControlPaths
from hivekeeper.ports import MetastoreUnavailable
from hivekeeper.steps.grounds import MOST_AGE_AT_FIRST_MS, Directories, Grounds
from support.world import World

TOP = "hdfs://nn/warehouse/sales/.hivekeeper-events"
PLACE = "runs/r/retired/u00001"


class Asked:
    """Each answer takes some time, and from the second one on somebody shows the backup."""

    def __init__(self, takes_ms=0):
        self.clock, self.takes_ms, self.times = World().clock, takes_ms, 0
        self.grounds = Grounds(self.clock, ControlPaths(TOP), self.answer)
        self.grounds.begin([PLACE])

    def answer(self):
        self.times += 1
        self.clock.sleep_ms(self.takes_ms)
        return Directories({"dt=1": f"{TOP}/{PLACE}"} if self.times > 1 else {})

    def is_kept_after(self, ms):
        self.clock.sleep_ms(ms)
        return self.grounds.why_kept(PLACE) is not None


# A question that takes longer than a minute would else be all that is done.
@pytest.mark.parametrize(("takes_ms", "good_for_ms"), [(0, 60_000), (50_000, 50_000), (59_000, 59_000), (300_000, 300_000)])
def test_an_answer_counts_from_the_beginning_of_its_asking(takes_ms, good_for_ms):
    asked = Asked(takes_ms)
    assert not asked.is_kept_after(0)
    assert not asked.is_kept_after(good_for_ms)
    assert asked.is_kept_after(1)


# Of a million partitions none would be younger.
@pytest.mark.parametrize("takes_ms", [0, 300_000])
def test_before_the_first_backup_and_after_a_pause_it_must_be_younger(takes_ms):
    asked = Asked(takes_ms)
    assert not asked.is_kept_after(0)
    asked.clock.sleep_ms(MOST_AGE_AT_FIRST_MS)
    asked.grounds.resume()
    assert not asked.is_kept_after(0)
    assert asked.is_kept_after(1)


def test_a_metastore_that_does_not_answer_keeps_all_and_is_not_asked_for_each():
    asked = Asked()
    asked.grounds.directories()

    def fail():
        asked.times += 1
        raise MetastoreUnavailable("timeout")

    asked.grounds._ask = fail
    assert all(asked.is_kept_after(60_001 if nth == 0 else 0) for nth in range(100))
    assert asked.times == 2
    asked.grounds._ask = lambda: Directories({})
    assert asked.is_kept_after(60_000)
    assert not asked.is_kept_after(1)


def test_the_backups_are_those_of_the_plan_also_where_the_answer_came_before_it():
    asked = Asked()
    asked.times = 1
    asked.grounds.begin([])
    asked.grounds.directories()
    asked.grounds.begin([PLACE])
    assert asked.is_kept_after(0)
    assert asked.times == 2
