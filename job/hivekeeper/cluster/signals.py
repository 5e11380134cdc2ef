"""Turns TERM, INT and HUP into a stop request that a run checks between units, while a cluster is open.

Under spark-submit most of them reach only the JVM, which relays them to us: if it died of them, nothing could be finished.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
import time
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional

if TYPE_CHECKING:
    from hivekeeper.cluster.driver import Driver

log = logging.getLogger(__name__)

HEEDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# Terminals and systemd signal the JVM and us at once; a second signal within 2 s is the same request.
SAME_WISH_S = 2.0
CANCEL_EVERY_S = 0.5


class Signals:
    """The signals of one command. A patient command stops by itself on request, any other is ended by the first signal."""

    is_limited = False

    def __init__(self, patient: bool, now_s: Callable[[], float] = time.monotonic) -> None:
        self.signal = 0
        self._patient = patient
        self._now_s = now_s
        self._received_s = 0.0
        # Read before PySpark installs a handler of its own.
        self._heeded = [number for number in HEEDED if signal.getsignal(number) is not signal.SIG_IGN]
        self._before: Dict[int, Any] = {}
        self._wishes: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._canceller: Optional[threading.Thread] = None

    def __enter__(self) -> Signals:
        self._before = {number: signal.getsignal(number) for number in self._heeded}
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the handlers, unless a signal was received: the same request may still arrive a second time."""
        if not self.signal:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def why(self) -> str:
        return f"stopped by {signal.Signals(self.signal).name}" if self.signal else ""

    def is_asked(self) -> bool:
        return self.signal != 0

    @contextmanager
    def at_once(self) -> Iterator[None]:
        patient, self._patient = self._patient, False
        try:
            yield
        finally:
            self._patient = patient

    @contextmanager
    def heeded_by(self, driver: Driver) -> Iterator[None]:
        """Handle signals ourselves during the body instead of PySpark; a request cancels Spark's jobs, which may take hours."""
        if driver.is_in_cluster:
            # YARN kills the container a quarter of a second after the signal, and the JVM needs that time to unregister.
            yield
            return
        self._divert(driver)
        self._canceller = threading.Thread(target=self._cancel_jobs, args=(driver,), daemon=True)
        self._canceller.start()
        try:
            yield
        finally:
            self._ended.set()
            self._wishes.put(0)
            self._canceller.join()

    def _divert(self, driver: Driver) -> None:
        from hivekeeper.cluster.gateway import Gateway

        gateway = Gateway(driver)
        names = [signal.Signals(number).name[len("SIG") :] for number in self._heeded]
        for number in self._heeded:
            signal.signal(number, self._receive)
        gateway.helper("SignalRelay").handOn(os.getpid(), gateway.strings(names))

    def _receive(self, number: int, _frame: Optional[FrameType]) -> None:
        """Record a signal. No log line and no call to the JVM here: this thread may be in the middle of one."""
        if not self.signal:
            if not self._patient:
                raise SystemExit(128 + number)
            self.signal, self._received_s = number, self._now_s()
            self._wishes.put(number)
        elif self._now_s() - self._received_s > SAME_WISH_S:
            # The operator does not want to wait: the next run recovers.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _cancel_jobs(self, driver: Driver) -> None:
        """Cancel repeatedly, because a job may be about to start; in its own thread, because PySpark has one connection per thread."""
        from hivekeeper.cluster.java_errors import CALL_ERRORS

        number = self._wishes.get()
        if number:
            log.warning("step=stop begin signal=%s", signal.Signals(number).name)
        while number and not self._ended.is_set():
            try:
                driver.cancel_jobs()
            except CALL_ERRORS as error:
                # Java has ended: the run's next call to it fails and reports it.
                log.warning("step=cancel-jobs failed reason=%r", str(error))
                return
            self._ended.wait(CANCEL_EVERY_S)
