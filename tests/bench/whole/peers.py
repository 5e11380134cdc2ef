"""Get the programs to compare with: from the package index and from Maven, into .cluster, never into the product."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import List

from cluster.servers.artifacts import JARS, Missing, fetch_jars

HERE = Path(__file__).resolve().parent
LAKEKEEPER = "lakekeeper==0.0.6"
LAKEKEEPER_VENV = JARS.parent / "lakekeeper"


def fetch_lakekeeper() -> Path:
    """The Python of a virtual environment of its own; spark-submit brings its pyspark. Raises Missing."""
    python, mark = LAKEKEEPER_VENV / "bin" / "python", LAKEKEEPER_VENV / "pins"
    if not mark.exists() or mark.read_text() != LAKEKEEPER:
        _run([sys.executable, "-m", "venv", "--clear", str(LAKEKEEPER_VENV)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", LAKEKEEPER])
        mark.write_text(LAKEKEEPER)
    return python


def _run(command: List[str]) -> None:
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        raise Missing(f"{LAKEKEEPER} cannot be installed:\n" + "\n".join(result.stderr.splitlines()[-5:]))


def fetch_library(name: str) -> str:
    """The jars of pom-NAME.xml, as --jars takes them. Raises Missing."""
    fetch_jars([name], HERE)
    return ",".join(sorted(str(jar) for jar in (JARS / name).glob("*.jar")))
