"""Run one program in a process of its own, and measure it and all its children: wall and CPU seconds, and memory."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
SAMPLED_EVERY_SECONDS = 0.25
_SESSION = re.compile(r'^session (\d+)$|"started_ms": (\d+)', re.MULTILINE)


class Cost(NamedTuple):
    wall: float
    cpu: float


class Run(NamedTuple):
    """`start`: until the session was there. `peak_mib`: of all processes together."""

    start: Cost
    work: Cost
    peak_mib: int
    output: str


class Failed(Exception):
    """A program ended with an error; the first line of the message names no place of this machine, the others are the end of its log."""


def run(command: Sequence[str], environ: Mapping[str, str], home: Path) -> Run:
    """The command must print when its session was there: `session MS`, or a document with `started_ms`. Raises Failed."""
    begun = time.time()
    stdout, stderr = home / "stdout", home / "stderr"
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=dict(environ), cwd=home)
        watch = Watch(process.pid)
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    ended = time.time()
    watch.stop()
    output = stdout.read_text(errors="replace")
    if process.returncode != 0:
        said = stderr.read_text(errors="replace")
        causes = [line for line in said.splitlines() if line.startswith("Caused by: ")]
        # A message with a path may name places of this machine.
        cause = next((f", {line[:150]}" for line in causes if "/" not in line), "")
        raise Failed(f"{Path(command[0]).name}: exit {process.returncode}{cause}\n{output[-1500:]}{said[-2500:]}")
    found = _SESSION.search(output)
    there = int(found[1] or found[2]) / 1000 if found else begun
    before = watch.cpu_at(there)
    return Run(Cost(there - begun, before), Cost(ended - there, used.ru_utime + used.ru_stime - before), watch.peak_mib, output)


class Watch(threading.Thread):
    """Samples a process and its children from /proc while they run."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root, self._ended = root, threading.Event()
        self._samples: List[Tuple[float, float]] = []
        self.peak_mib = 0

    def run(self) -> None:
        while not self._ended.wait(SAMPLED_EVERY_SECONDS):
            cpu, resident = measure_tree(self._root)
            self._samples.append((time.time(), cpu))
            self.peak_mib = max(self.peak_mib, resident >> 20)

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def cpu_at(self, moment: float) -> float:
        """CPU seconds up to then, by the last sample before it."""
        return max((cpu for at, cpu in self._samples if at <= moment), default=0.0)


def measure_tree(root: int) -> Tuple[float, int]:
    """CPU seconds, with those of children that have ended, and resident bytes of a process and all its descendants."""
    stats = _read_stats()
    family: Set[int] = {root}
    while True:
        more = {pid for pid, fields in stats.items() if int(fields[1]) in family} - family
        if not more:
            break
        family |= more
    found = [stats[pid] for pid in family if pid in stats]
    return sum(int(tick) for fields in found for tick in fields[11:15]) / TICKS, sum(int(fields[21]) for fields in found) * PAGE


def cpu_of(pid: int) -> float:
    """CPU seconds of one process."""
    return sum(int(tick) for tick in _fields(Path(f"/proc/{pid}/stat").read_text())[11:13]) / TICKS


def _read_stats() -> Dict[int, List[str]]:
    """The fields of /proc/PID/stat of every process, from the third (its state) on."""
    stats = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            stats[int(directory.name)] = _fields((directory / "stat").read_text())
        except OSError:
            continue
    return stats


def _fields(stat: str) -> List[str]:
    return stat.rpartition(")")[2].split()
