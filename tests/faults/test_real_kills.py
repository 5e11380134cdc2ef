"""Real processes killed by SIGKILL, Python and JVM, just after a change that lasts; the next command runs in a warm JVM on HDFS.

The test ends the dead process's lease, as an administrator could; one test waits for HDFS to do it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Callable, Iterator

import pytest

from faults import doomed
from faults.checks import require_rows_are_somewhere, require_settled, settle
from faults.matrix import Matrix
from faults.scenarios import Point, all_points, every_name_once, is_most_important
from hivekeeper.codes import Exit
from support.desk import Desk
from support.storage import TEST_FS

pytestmark = pytest.mark.skipif(not TEST_FS, reason="on HDFS: a local file's lock ends with its process, and nothing else differs")

VICTIMS = [point for point in every_name_once(all_points()) if point.scenario.subcommand != "recover"]
if os.environ.get("HKTEST_MATRIX") != "all":
    VICTIMS = [point for point in VICTIMS if is_most_important(point)]
IN_THE_GAP = next(point for point in all_points() if point.name == "live → retired")
STARTS_WITHIN_S = 300
# HDFS expires a dead client's lease after a minute; on a busy machine the NameNode checks a little later.
LEASE_S = range(20, 181)


class Driver:
    """A doomed.py process."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True)
        self._home, self._said = home, home / "stderr"
        with self._said.open("w") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, doomed.__file__, str(home)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=home,
            )

    def die_at(self, desk: Desk, point: Point) -> None:
        """Make it run the scenario's command and kill itself."""
        assert self._process.stdin and self._process.stdout
        assert self._process.stdout.readline() == "ready\n", self._said.read_text()
        order = {
            "scenario": point.scenario.name,
            "shape": point.shape,
            "name": point.name,
            "nth": point.nth,
            "database": desk.world.database,
            "place": desk.world.place,
            "runs": desk.runs,
            "written": desk.world.written,
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.close()
        code = self._process.wait(STARTS_WITHIN_S)
        assert code == -signal.SIGKILL, f"exit code {code}:\n{self._said.read_text()}"
        desk.world.written = Counter(json.loads((self._home / doomed.WRITTEN).read_text()))
        # The killed process used the next id.
        desk._new_run()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()


@pytest.fixture
def doomed_driver(tmp_path: Path) -> Iterator[Driver]:
    """It starts while the test prepares its table."""
    found = Driver(tmp_path / "driver")
    yield found
    found.kill()


@pytest.mark.parametrize("point", VICTIMS, ids=str)
def test_a_process_killed_after_any_change_loses_nothing_and_the_next_command_settles_it(
    make_desk: Callable[[str], Desk], matrix: Matrix, doomed_driver: Driver, point: Point
):
    begin = time.monotonic()
    desk = make_desk(point.shape)
    point.scenario.prepare(desk)
    doomed_driver.die_at(desk, point)
    desk.world.storage.end_lease(desk.control.lock)
    killed = desk.world.picture()
    require_rows_are_somewhere(desk.world, killed)
    settled = settle(desk, point)
    matrix.add(point, "SIGKILL", killed, desk.world.picture(), settled, time.monotonic() - begin)


@pytest.mark.thorough
def test_a_killed_process_keeps_its_lock_for_about_a_minute_and_then_the_next_command_needs_no_hand(
    make_desk: Callable[[str], Desk], doomed_driver: Driver
):
    desk = make_desk(IN_THE_GAP.shape)
    doomed_driver.die_at(desk, IN_THE_GAP)
    begin, result = time.monotonic(), desk.recover()
    while result.code is Exit.LOCKED and time.monotonic() - begin < LEASE_S.stop:
        assert f"run {desk.runs[0]} of" in result.tables[0].problem.what
        time.sleep(1)
        result = desk.recover()
    assert result.code is Exit.DONE, result.tables[0].problem
    assert int(time.monotonic() - begin) in LEASE_S
    require_settled(desk.world, desk.world.picture(), IN_THE_GAP.scenario)
