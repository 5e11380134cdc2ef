"""`MSCK REPAIR TABLE … SYNC PARTITIONS` looks for all directories for minutes, and drops partitions whose directories it did not find. One
that was away longer than a moment is told with 7, whoever had it away: schedulers run a command again after 6, and hear 0 from then on.
"""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from support.desk import desk_by, outcomes
from support.fakes.files import Killed
from support.joined_desk import at, drop_partition, manage, survive

IN_GAP = ["rename_exact", "/ready/u00001 "]


def drop_after(desk, ms, then=lambda: None):
    desk.world.clock.sleep_ms(ms)
    drop_partition(desk)
    then()


@pytest.mark.parametrize("done", [False, True], ids=["without effect", "done"])
def test_a_call_of_the_run_itself_failed_in_the_gap(done):
    """As between a driver and a NameNode that reaches all others."""
    desk = desk_by(["dt"])
    at(desk, IN_GAP, lambda: drop_after(desk, 600_000, lambda: desk.world.fail_call("rename_exact", done)))
    assert desk.compact().code is Exit.INVESTIGATE
    assert desk.compact().code is Exit.DONE


@pytest.mark.parametrize(["ms", "code"], [(20, Exit.PARTIAL), (600_000, Exit.INVESTIGATE)])
def test_the_gap_of_the_run_itself_was_long(ms, code):
    """HDFS's client has waited for a failover, or the machine stood still."""
    desk = desk_by(["dt"])
    at(desk, IN_GAP, lambda: drop_after(desk, ms))
    result = desk.compact()
    assert outcomes(result)["dt=1"] == ("dropped-meanwhile" if code is Exit.PARTIAL else "misplaced")
    assert result.code is code


@pytest.mark.parametrize("is_managed", [False, True], ids=["external", "managed"])
def test_a_recovery_that_had_found_it_there_is_killed(is_managed):
    desk = desk_by(["dt"])
    if is_managed:
        manage(desk)
    desk.kill_before(IN_GAP, desk.compact)

    def drop_and_die():
        drop_partition(desk)
        desk.world.files.die_after(0)

    # It has asked the metastore, brings the new files in, and is killed then.
    at(desk, IN_GAP, lambda: at(desk, ["rename_exact"], drop_and_die))
    with pytest.raises(Killed):
        desk.recover()
    survive(desk)
    assert desk.recover().code is Exit.INVESTIGATE
    assert desk.recover().code is Exit.DONE


def test_a_rollback_was_killed_in_the_gap():
    desk = desk_by(["dt"])
    desk.compact()
    desk.kill_before(["rename_exact", f"/restoring/u00001 {desk.live('dt=1')}"], desk.rollback)
    drop_partition(desk)
    assert desk.recover().code is Exit.INVESTIGATE


def test_one_that_a_killed_run_had_finished_was_dropped_on_purpose():
    desk = desk_by(["dt"])
    desk.kill_before(["rename_exact", "/ready/u00002 "], desk.compact)
    drop_partition(desk)
    assert desk.recover().code is Exit.PARTIAL
