"""verify after compactions by both exchanges and rollbacks, one upon the other: whatever backup is named, a healthy table is told to be
well, and one where rows of that backup are gone from live is not.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.rows import DataFile
from support.world import World

HOUR_MS = 3_600_000
SETTINGS = {"d": "directory", "j": "files"}


class Chain:
    """Three compactions of a partition by these exchanges, with new files and a record after each, and rollbacks of the newest ones; the
    last rollback after each compaction is itself undone where `redo` says so.
    """

    def __init__(self, kinds, backs, redo=False):
        world = World()
        world.add_table(a_table(["dt"], create_time=1_767_200_000), {"dt=1": [1000] * 3})
        self.desk = Desk(world, fewest_joined=2, backup_table=False)
        # By run what live held just before it.
        self.held = {}
        self._do(self.desk.backup)
        for nth, (kind, back) in enumerate(zip(kinds, backs)):
            self.desk.settings = replace(self.desk.settings, exchange=SETTINGS[kind])
            self._do(self.desk.compact)
            self.desk.append("dt=1", f"a{nth}", f"b{nth}")
            self._do(self.desk.backup)
            for _ in range(back):
                self._do(self.desk.rollback)
            if redo and back:
                self._do(lambda: self.desk.rollback(self.desk.runs[-1]))

    def _do(self, command):
        before = self.live_rows()
        command()
        self.held[self.desk.runs[-1]] = before
        self.desk.world.files.namespace.advance(HOUR_MS)

    def live_rows(self):
        return self.desk.world.rows_of(self.desk.table)

    def said(self, level="digest"):
        """What a plain verify says, and one of each run that left something."""
        found = {run: outcomes(self.desk.verify(run, level)).get("dt=1") if self._left(run) else None for run in self.held}
        return {run: one for run, one in {None: outcomes(self.desk.verify(level=level)).get("dt=1"), **found}.items() if one}

    def _left(self, run):
        return self.desk.verify(run, "count").tables[0].problem is None


@pytest.mark.parametrize(
    ("kinds", "backs", "redo"),
    [
        ("ddd", (0, 0, 2), False),
        ("djd", (0, 0, 2), True),
        ("ddj", (0, 0, 1), True),
        ("ddd", (0, 0, 1), True),
        ("djd", (1, 0, 1), False),
        ("jjj", (0, 0, 1), False),
    ],
)
def test_whatever_run_of_a_chain_is_named_a_healthy_table_is_well(kinds, backs, redo):
    said = Chain(kinds, backs, redo).said()
    assert "verified" in said.values()
    assert "differs" not in said.values(), said


@pytest.mark.parametrize(("kinds", "backs"), [("ddd", (0, 0, 2)), ("djd", (1, 0, 1))])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_rollbacks_moved_on_is_missed_in_live(kinds, backs, is_replaced):
    """Each record lists files that live still has after the rollbacks."""
    chain = Chain(kinds, backs)
    desk, path = chain.desk, names.join(chain.desk.live("dt=1"), "a2.parquet")
    length = desk.world.files.stat(path).length
    record = [entry.run for entry in desk.log().runs if entry.operation == "backup"][-1]
    assert chain.said()[record] == "verified"
    desk.world.files.writer.delete(path)
    if is_replaced:
        desk.world.files.writer.add(path, DataFile(("other",)), length)
    assert chain.said()[record] == "differs"


@pytest.mark.parametrize("kinds", ["dj", "jj"])
def test_a_backup_that_stands_below_a_join_that_was_taken_back_is_itself_compared(kinds):
    chain = Chain(kinds, (0, 1))
    desk = chain.desk
    desk.settings = replace(desk.settings, cleanup_requires="verified")
    result = desk.verify()
    assert [(unit.outcome.code, unit.reason) for unit in result.tables[0].units] == [("verified", "")]
    compacted = next(entry.run for entry in desk.log().runs if entry.operation == "compact-swap")
    assert compacted in {run for run, _ in desk.log().verified}


def test_a_joined_file_that_is_gone_is_missed_beside_what_a_later_rollback_put_there():
    chain = Chain("jjd", (0, 1, 1))
    desk = chain.desk
    first = next(entry.run for entry in desk.log().runs if entry.operation == "compact-swap")
    (path,) = [path for path in desk.world.files.contents(desk.live("dt=1")) if first in path]
    desk.world.files.writer.delete(path)
    assert chain.said()[None] == "differs"
