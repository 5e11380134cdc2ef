"""How much a driver's JVM has computed."""

from __future__ import annotations

import os
from pathlib import Path

from hivekeeper.cluster.gateway import Gateway


def cpu_seconds(gateway: Gateway) -> float:
    """Of the driver's JVM: what else the machine does must not count."""
    ticks = Path(f"/proc/{gateway.java_gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
