"""A whole run of the command line in processes of its own, which can be stopped at a rename, frozen, killed and let go on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Callable, List, Optional

from cluster.edge import Edge

# A run on this machine, with all that Hadoop's clients try again.
RUNS_WITHIN_SECONDS = 1200


class LongRun:
    """compact-swap in the background, a batch a partition, that stops once after a rename to a path that holds `stop_after`."""

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
        """The process that has stopped itself."""
        mark = self.edge.home / "stopped"
        return int(mark.read_text()) if mark.exists() and mark.read_text() else None

    @property
    def java(self) -> int:
        """The Java process of a stopped driver: its parent."""
        assert self.driver is not None
        return int(_stat(self.driver)[1])

    def freeze(self) -> None:
        """Stop the Java process of a stopped driver too: it renews no lease any more. Undo: go_on."""
        os.kill(self.java, signal.SIGSTOP)

    def kill(self) -> None:
        """A stopped driver with its Java process, at once."""
        assert self.driver is not None
        for pid in (self.java, self.driver):
            os.kill(pid, signal.SIGKILL)

    def go_on(self) -> int:
        """Let a stopped run go on, to its end; its exit code."""
        self.resume()
        return self.wait()

    def resume(self) -> None:
        assert self.driver is not None
        for pid in (self.java, self.driver):
            os.kill(pid, signal.SIGCONT)

    def wait(self) -> int:
        """Its exit code."""
        return self.process.wait(RUNS_WITHIN_SECONDS)


def _stat(pid: int) -> List[str]:
    """/proc/PID/stat from its field 3 on: state (T where it is stopped), parent."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
