"""Does a command's waiting work while a Spark job runs in a thread of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Callable

from hivekeeper.ports import Beside, Result


class BesideJobs(Beside):
    """`ports.Beside` with another thread for the job, always the same one: each thread keeps its own connection to the JVM."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = ThreadPoolExecutor(1, "hivekeeper-job")

    def _run(self, job: Callable[[], Result]) -> Result:
        running = self._thread.submit(job)
        try:
            self.do()
        finally:
            # Also if the work fails: nobody else would notice what the job writes.
            wait([running])
        return running.result()
