"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, List

from cluster.servers.artifacts import find_program


def describe() -> Dict[str, Any]:
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    java = subprocess.run([find_program("java"), "-version"], check=True, capture_output=True, text=True).stderr
    import pyspark

    return {
        "processor": model[1] if model else platform.machine(),
        "processors": os.cpu_count(),
        "memory_gib": round(int(memory[1]) / (1 << 20)) if memory else None,
        "system": f"{platform.system()} {platform.release()}",
        "java": [line for line in java.splitlines() if not line.startswith("NOTE")][0],
        "spark": pyspark.__version__,
        "load": load(),
    }


def load() -> List[float]:
    """Of the last 1, 5 and 15 minutes: processes that run or wait to run."""
    return [round(each, 1) for each in os.getloadavg()]
