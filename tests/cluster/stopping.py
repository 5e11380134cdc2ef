"""Hivekeeper's driver for spark-submit, but it stops itself once: right after the first rename to a path that contains STOP_AFTER.

The file `stopped` in the working directory then holds its process id; SIGCONT resumes it. Its Java process never stops.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT / "job"), str(CHECKOUT / "tests")]

from hivekeeper.cli.main import main  # noqa: E402
from hivekeeper.cluster.files import HadoopFiles  # noqa: E402
from support import step_by_step  # noqa: E402

MARK = Path("stopped")
_rename = HadoopFiles.rename_exact


def rename_and_stop(files: HadoopFiles, source: str, target: str) -> None:
    _rename(files, source, target)
    if os.environ["STOP_AFTER"] in target and not MARK.exists():
        MARK.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    HadoopFiles.rename_exact = rename_and_stop  # type: ignore[method-assign]
    HadoopFiles.exchange = step_by_step.exchange  # type: ignore[method-assign,assignment]
    sys.exit(main())
