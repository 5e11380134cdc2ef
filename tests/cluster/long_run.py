"""A whole command-line run in its own processes, which tests can stop at a rename, freeze, kill and resume."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, Callable, List, Optional

from cluster.edge import Edge
from cluster.servers.layout import CHECKOUT

# A run on this machine, with all retries of Hadoop's clients.
RUNS_WITHIN_SECONDS = 1200


class LongRun:
    """compact-swap in the background, one partition per batch, stopping once after a rename to a path that contains `stop_after`."""

    def __init__(self, edge: Edge, table: str, stop_after: str = "nowhere") -> None:
        self.edge, self.table = edge, table
        self.process = edge.start("compact-swap", "--table", table, "--set", "batch_units=1", STOP_AFTER=stop_after)

    @property
    def stderr(self) -> str:
        return (self.edge.home / "stderr").read_text()

    @property
    def output(self) -> str:
        """The log, then the answer."""
        return self.stderr + (self.edge.home / "stdout").read_text()

    def wait_for(self, what: str, there: Callable[[], bool]) -> None:
        until = time.monotonic() + RUNS_WITHIN_SECONDS
        while not there():
            assert self.process.poll() is None and time.monotonic() < until, f"no {what}:\n{self.stderr}"
            time.sleep(0.05)

    def wait_for_line(self, text: str) -> None:
        self.wait_for(f"line {text!r}", lambda: text in self.stderr)

    def wait_until_stopped(self) -> None:
        self.wait_for("stop", lambda: self.driver is not None and _stat(self.driver)[0] == "T")

    @property
    def driver(self) -> Optional[int]:
        """The process that stopped itself."""
        mark = self.edge.home / "stopped"
        return int(mark.read_text()) if mark.exists() and mark.read_text() else None

    @property
    def java(self) -> int:
        """The Java process of a stopped driver: its parent."""
        assert self.driver is not None
        return int(_stat(self.driver)[1])

    def freeze(self) -> None:
        """Stop the Java process of a stopped driver too, so that it no longer renews its lease. Undo: go_on."""
        os.kill(self.java, signal.SIGSTOP)

    def kill(self) -> None:
        """Kill a stopped driver and its Java process."""
        assert self.driver is not None
        for pid in (self.java, self.driver):
            os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        """Leave no process behind, wherever the run is."""
        if self.process.poll() is None:
            for pid in (self.driver, self.process.pid):
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()

    def go_on(self) -> int:
        """Resume a stopped run and wait for its end; returns its exit code."""
        self.resume()
        return self.wait()

    def resume(self) -> None:
        assert self.driver is not None
        for pid in (self.java, self.driver):
            os.kill(pid, signal.SIGCONT)

    def wait(self) -> int:
        """Returns its exit code."""
        return self.process.wait(RUNS_WITHIN_SECONDS)


def start_stopping(edge: Edge, table: str, stop_after: str = "nowhere", user: Optional[str] = "etl", **spark: Any) -> LongRun:
    """A run whose driver can stop itself."""
    edge.configure(user, spark={"archive": str(CHECKOUT / "tests" / "cluster" / "stopping.py"), **spark})
    return LongRun(edge, table, stop_after)


def _stat(pid: int) -> List[str]:
    """/proc/PID/stat from field 3 on: state (T if stopped), parent."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
