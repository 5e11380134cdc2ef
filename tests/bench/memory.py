"""Measures how much memory an act takes, in this process and in the driver's JVM."""

from __future__ import annotations

import gc
import resource
import time
from pathlib import Path
from typing import Any, Callable

from hivekeeper.cluster.gateway import Gateway

MIB = 2**20


class Meter:
    """The peak memory since the last reading."""

    def __init__(self, gateway: Gateway) -> None:
        self._management = gateway.jvm.java.lang.management.ManagementFactory
        self._system = gateway.jvm.java.lang.System

    def measure(self, what: str, act: Callable[[], Any]) -> Any:
        gc.collect()
        self._system.gc()
        for pool in self._management.getMemoryPoolMXBeans():
            pool.resetPeakUsage()
        Path("/proc/self/clear_refs").write_text("5")
        before, began, at = self._resident(), time.process_time(), time.monotonic()
        result = act()
        seconds, wall = time.process_time() - began, time.monotonic() - at
        heap = sum(
            pool.getPeakUsage().getUsed() for pool in self._management.getMemoryPoolMXBeans() if pool.getType().toString() == "Heap memory"
        )
        print(
            f"{what}: {wall:.1f} s, {seconds:.1f} s of Python's CPU, "
            f"Python {before} → {self._peak()} MiB at most, JVM heap {heap // MIB} MiB at most",
            flush=True,
        )
        return result

    @staticmethod
    def _resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // MIB

    @staticmethod
    def _peak() -> int:
        (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) // 1024
