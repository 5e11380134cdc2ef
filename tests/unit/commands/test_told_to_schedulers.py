"""What only one command tells reaches whoever reads exit codes and properties: schedulers run a command again by these, and are silent once
one has ended with 0 (docs/schedulers.md).
"""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import NeverStops
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import document, properties
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.desk import Desk
from support.world import World

MIB = 2**20
# With these the metastore drops partitions whose directories are missing, and deletes the files of those that are dropped.
DISCOVERED = {"discover.partitions": "true", "external.table.purge": "true"}


class Terminated(NeverStops):
    """TERM reaches a run once the log has what it recovered: systemd's RuntimeMaxSec=, a workflow that is killed, the end of a window."""

    def __init__(self, world: World) -> None:
        self.signal = 0
        world.files.before_step = self._see

    def _see(self, what: str) -> None:
        if what.startswith("rename_exact") and "/entry.json " in what and "/log/" in what:
            self.signal = signal.SIGTERM

    def why(self) -> str:
        return "stopped by SIGTERM" if self.signal else ""

    def is_asked(self) -> bool:
        return bool(self.signal)


def a_desk_with_a_lost_partition(**parameters: str) -> Desk:
    """A run was killed in the gap of a partition, which the metastore has dropped since: no reader sees its rows."""
    world = World()
    world.add_table(a_table(["dt"], parameters=parameters), {"dt=1": [MIB] * 3, "dt=2": [MIB] * 3})
    desk = Desk(world)
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    (gone,) = [name for name, one in world.catalog.partitions[desk.table].items() if world.files.namespace.find(one.location) is None]
    world.catalog.drop_partition(desk.table, gone)
    return desk


def told(result) -> dict:
    read = dict(line.partition("=")[::2] for line in properties.render(result).splitlines())
    return {name: read[f"hivekeeper.{name}"] for name in ("exit_code", "retry")}


@pytest.fixture
def lost():
    return a_desk_with_a_lost_partition(**DISCOVERED)


def test_readers_miss_a_partition_and_only_the_first_command_says_so(lost):
    first, second = lost.compact(), lost.compact()
    assert (first.code, second.code) == (Exit.INVESTIGATE, Exit.DONE)


def test_a_signal_does_not_hide_that_readers_miss_a_partition(lost):
    stopped = lost.compact(cluster=replace(lost.world.cluster, stopping=Terminated(lost.world)))
    assert (stopped.code, stopped.signal) == (Exit.INVESTIGATE, signal.SIGTERM)
    # 143 is success to systemd, and the others run again: the next run ends with 0, and nobody has heard of it.
    assert lost.compact().exit_code == Exit.DONE
    assert stopped.exit_code == document.build(stopped)["exit_code"] == Exit.INVESTIGATE
    assert told(stopped) == {"exit_code": "7", "retry": "manual"}


def test_nor_does_one_that_reaches_a_recovery(lost):
    stopped = lost.recover(replace(lost.world.cluster, stopping=Terminated(lost.world)))
    assert (stopped.exit_code, stopped.signal) == (Exit.INVESTIGATE, signal.SIGTERM)
    assert lost.recover().exit_code == Exit.DONE


def test_a_partition_that_was_dropped_in_the_gap_is_nothing_that_a_retry_cures():
    """MSCK REPAIR TABLE … SYNC PARTITIONS has dropped it because its directory was away."""
    desk = a_desk_with_a_lost_partition()
    first, second = desk.compact(), desk.compact()
    assert second.exit_code == Exit.DONE
    assert told(first)["retry"] == "manual"


def test_nor_does_what_the_signal_did_to_another_table():
    different = TableOutcome("sales.events", units=(UnitOutcome("dt=1", Outcome.DIFFERS, 0, 0),))
    broken = TableOutcome("sales.other", problem=Reason(Code.BUG, "the driver is gone"))
    result = CommandResult("verify", "20260101t020304z-1f0c", 0, 0.0, False, tables=(different, broken), signal=signal.SIGTERM)
    assert (result.code, result.exit_code) == (Exit.BUG, Exit.DIFFERENT)
    assert replace(result, tables=(broken,)).exit_code == 128 + signal.SIGTERM
