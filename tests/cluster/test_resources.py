"""What runs out or fails while a run writes to a real HDFS: units stay untouched, one clear error, and the next run does everything."""

from __future__ import annotations

import signal
import time
from typing import Any, Callable, Dict, Iterator

import pytest

from cluster.servers import process
from cluster.servers.bring_up import start_server
from cluster.servers.layout import Layout
from cluster.tables import SmallTable
from hivekeeper.codes import Exit
from hivekeeper.report.results import CommandResult
from support.desk import Desk

DAYS = ("1", "2", "3")
# Less than the stage of three units needs.
NAMES_LEFT = 3
# Less than HDFS reserves for one block.
BYTES_LEFT = 4096
NO_QUOTA = (1 << 63) - 1
RESET = -1
WITHIN_SECONDS = 600


class Administrator:
    """What an HDFS administrator does to a table's directories."""

    def __init__(self, gateway: Any, dfs: Any, table: SmallTable) -> None:
        self.jvm, self.dfs, self.table = gateway.jvm, dfs, table

    def leave_names(self, count: int) -> None:
        used = self.dfs.getContentSummary(self._root)
        self.dfs.setQuota(self._root, used.getFileCount() + used.getDirectoryCount() + count, NO_QUOTA)

    def leave_bytes(self, count: int) -> None:
        self.dfs.setQuota(self._root, NO_QUOTA, self.dfs.getContentSummary(self._root).getSpaceConsumed() + count)

    def lift_quotas(self) -> None:
        self.dfs.setQuota(self._root, RESET, RESET)

    def allow(self, mode: str, directory: str = "") -> None:
        path = self.table.path(directory) if directory else self._root
        self.dfs.setPermission(path, self.jvm.org.apache.hadoop.fs.permission.FsPermission(mode))

    def free_lock(self) -> None:
        """What HDFS does a minute after a run that could not release its lock has ended: here that run's process lives on.

        A restarted DataNode reports its blocks a little later, and only then can they be appended to.
        """
        lock, until = self.table.path(f"{self.table.control}/_lock"), time.monotonic() + WITHIN_SECONDS
        while not (self.dfs.recoverLease(lock) and self._is_reported(lock)):
            assert time.monotonic() < until
            time.sleep(0.5)

    def _is_reported(self, path: Any) -> bool:
        status = self.dfs.getFileStatus(path)
        return all(len(block.getHosts()) for block in self.dfs.getFileBlockLocations(status, 0, status.getLen()))

    def give(self, directory: str, owner: str) -> None:
        self.dfs.setOwner(self.table.path(directory), owner, owner)

    def allow_stages(self, mode: str) -> None:
        """The directories for stages, and those of started batches."""
        for below in ("stage", "stage/*"):
            for status in self.dfs.globStatus(self.table.path(f"{self.table.control}/runs/*/{below}")) or ():
                self.allow(mode, status.getPath().toUri().getPath())

    def set_safe_mode(self, on: bool) -> None:
        actions = self.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction
        self.dfs.setSafeMode(actions.SAFEMODE_ENTER if on else actions.SAFEMODE_LEAVE)

    @property
    def _root(self) -> Any:
        return self.table.path(self.table.root)


@pytest.fixture
def table(spark: Any, database: str) -> SmallTable:
    return SmallTable(spark, database, DAYS)


@pytest.fixture
def admin(gateway: Any, superuser: Any, table: SmallTable) -> Iterator[Administrator]:
    """However the test ended, its directories can be removed."""
    found = Administrator(gateway, superuser, table)
    yield found
    found.set_safe_mode(False)
    found.lift_quotas()
    found.allow("755")


def lives(table: SmallTable) -> Dict[str, Dict[str, int]]:
    return {unit: table.ids(table.live(unit)) for unit in table.units}


def run_into(table: SmallTable, desk: Desk, call: str, trouble: Callable[[], None]) -> CommandResult:
    """compact-swap with a fault just before a call; live stays as it was."""
    before = lives(table)
    table.do_before(call, trouble)
    result = desk.compact()
    assert lives(table) == before
    return result


def require_one_error(result: CommandResult, code: Exit, what: str) -> None:
    """Reported for the table, or for each unit that was tried."""
    (outcome,) = result.tables
    said = [outcome.problem.what] if outcome.problem else [unit.reason for unit in outcome.units]
    assert result.code is code, said
    assert said and all(what in text and "\n" not in text for text in said), said


def require_done_by_next_run(table: SmallTable, desk: Desk) -> None:
    result = desk.compact()
    assert result.code is Exit.DONE, result.tables[0].problem
    table.require_every_row_once()
    assert all(len([name for name in found if name.startswith("part-")]) == 1 for found in lives(table).values())
    left = [path for path, _, _ in table.everything() if "/stage" in path or "/ready/" in path]
    assert left == []


@pytest.mark.parametrize(
    ("take", "left", "code"),
    # Without bytes no record can be written, either; without names each unit fails for itself.
    [("leave_bytes", BYTES_LEFT, Exit.UNUSABLE), ("leave_names", NAMES_LEFT, Exit.PARTIAL)],
    ids=["bytes", "names"],
)
def test_a_quota_that_is_reached_while_files_are_staged(table, admin, take, left, code):
    desk = table.desk()
    result = run_into(table, desk, "write stage", lambda: getattr(admin, take)(left))
    require_one_error(result, code, "quota")
    admin.lift_quotas()
    require_done_by_next_run(table, desk)


def test_a_stage_that_may_not_be_written(table, admin):
    desk = table.desk()
    result = run_into(table, desk, "write stage", lambda: admin.allow_stages("555"))
    require_one_error(result, Exit.REFUSED, "Permission denied")
    admin.allow_stages("755")
    require_done_by_next_run(table, desk)


def test_a_table_that_may_not_be_written_any_more_when_its_units_are_swapped(table, admin):
    desk = table.desk()
    result = run_into(table, desk, "live → retired", lambda: admin.allow("555"))
    require_one_error(result, Exit.PARTIAL, "Permission denied")
    admin.allow("755")
    require_done_by_next_run(table, desk)


def test_a_parent_of_an_unpartitioned_table_that_may_not_be_written_refuses_it_and_leaves_nothing(spark, database, gateway, superuser):
    table = SmallTable(spark, database)
    admin = Administrator(gateway, superuser, table)
    parent = table.root.rpartition("/")[0]
    before = lives(table)
    admin.give(parent, "loader")
    try:
        result = table.desk().compact()
    finally:
        admin.give(parent, "etl")
    require_one_error(result, Exit.REFUSED, "Permission denied")
    assert lives(table) == before
    assert table.control not in [f"{parent}/{name}" for name in table.ids(parent)]


def test_safe_mode_at_the_start(table, admin):
    desk = table.desk()
    result = run_into(table, desk, "hold lock", lambda: admin.set_safe_mode(True))
    require_one_error(result, Exit.UNUSABLE, "safe mode")
    admin.set_safe_mode(False)
    require_done_by_next_run(table, desk)


def test_safe_mode_between_stage_and_swap(table, admin):
    desk = table.desk()
    result = run_into(table, desk, "live → retired", lambda: admin.set_safe_mode(True))
    require_one_error(result, Exit.UNUSABLE, "safe mode")
    admin.set_safe_mode(False)
    admin.free_lock()
    require_done_by_next_run(table, desk)


def test_the_only_datanode_killed_while_files_are_staged(spark, database, gateway, superuser, layout: Layout):
    table = SmallTable(spark, database, DAYS[:1])
    admin, desk = Administrator(gateway, superuser, table), table.desk()
    try:
        result = run_into(table, desk, "write stage", lambda: process.stop("datanode", layout.run, signal.SIGKILL))
    finally:
        start_server(layout.run, "datanode")
    require_one_error(result, Exit.UNUSABLE, "datanode")
    admin.free_lock()
    require_done_by_next_run(table, desk)
