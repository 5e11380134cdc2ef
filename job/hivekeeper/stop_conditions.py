"""Tells a command when to stop early or pause: a signal, a time limit, a stop file or a pause file.

Only checks whether the two files exist and whose they are, at most once a second however often it is called.
"""

from __future__ import annotations

import logging
import os
from typing import ContextManager, Optional

from hivekeeper.config.settings import RunSettings
from hivekeeper.config.value_types import write_duration
from hivekeeper.errors import UsageError
from hivekeeper.launch import output_files
from hivekeeper.launch.trusted_files import user_name
from hivekeeper.ports import Cluster, FilesError
from hivekeeper.reasons import Code

log = logging.getLogger(__name__)

# Commands that stop in good order when told to. The others only read, are short, or finish interrupted work.
HEEDFUL = frozenset(["compact-swap", "compact", "rollback", "cleanup"])
# The same by a signal alone: all of them settle interrupted runs, and what readers may miss of one is told only once.
PATIENT = HEEDFUL | {"backup", "forget", "pin", "recover", "unpin"}

LOOK_EVERY_MS = 1000
SAY_EVERY_MS = 60_000


def refuse_local_files(settings: RunSettings) -> None:
    """Raise UsageError for a local stop or pause file, which a driver on another machine could not see."""
    for key, path in (("stop_file", settings.stop_file), ("pause_file", settings.pause_file)):
        if path and not output_files.is_remote(path):
            raise UsageError(
                f"{key} is {path}, a file of this machine, but spark.deploy_mode is cluster",
                code=Code.LOCAL_FILE,
                next=f"name one on HDFS: hdfs://{path}",
            )


class Watch:
    """Adds max_duration and the two files to a cluster's stop conditions (signals). The time limit starts when this is created."""

    def __init__(self, cluster: Cluster, settings: RunSettings) -> None:
        self._files = cluster.files
        self._clock = cluster.clock
        self._signals = cluster.stopping
        self._settings = settings
        self._began_ms = cluster.clock.monotonic_ms()
        self._looked_ms: Optional[float] = None
        self._stop_owner: Optional[str] = None
        self._pause_owner: Optional[str] = None
        self._reason = ""
        self._warned = False

    @property
    def signal(self) -> int:
        return self._signals.signal

    @property
    def is_limited(self) -> bool:
        return self._settings.max_duration_ms is not None or bool(self._settings.stop_file)

    def at_once(self) -> ContextManager[None]:
        return self._signals.at_once()

    def why(self) -> str:
        said_ms: Optional[float] = None
        while not self._find_reason() and self._pause_owner is not None:
            now_ms = self._clock.monotonic_ms()
            if said_ms is None or now_ms - said_ms >= SAY_EVERY_MS:
                log.info("step=pause waiting pause_file=%s owner=%s", self._settings.pause_file, self._pause_owner)
                said_ms = now_ms
            self._clock.sleep_ms(LOOK_EVERY_MS)
        if said_ms is not None:
            log.info("step=pause done stopped=%r", self._reason)
        return self._reason

    def is_asked(self) -> bool:
        return bool(self._find_reason()) or self._pause_owner is not None

    def _find_reason(self) -> str:
        if not self._reason:
            self._look()
            self._reason = self._signals.why() or self._find_limit()
            if self._reason:
                log.warning("step=stop begin reason=%r", self._reason)
        return self._reason

    def _find_limit(self) -> str:
        longest_ms = self._settings.max_duration_ms
        if longest_ms is not None and self._clock.monotonic_ms() - self._began_ms >= longest_ms:
            return f"max_duration is over ({write_duration(longest_ms)})"
        return f"the stop file {self._settings.stop_file} of {self._stop_owner} is there" if self._stop_owner is not None else ""

    def _look(self) -> None:
        """Check the two files, unless they were checked within the last second."""
        if not self._settings.stop_file and not self._settings.pause_file:
            return
        now_ms = self._clock.monotonic_ms()
        if self._looked_ms is not None and now_ms - self._looked_ms < LOOK_EVERY_MS:
            return
        self._looked_ms = now_ms
        self._stop_owner = self._find_owner(self._settings.stop_file)
        self._pause_owner = self._find_owner(self._settings.pause_file)

    def _find_owner(self, path: Optional[str]) -> Optional[str]:
        """Whose file is there; None if there is none. Anyone's counts: it may only make a run end early or wait."""
        if not path:
            return None
        if not output_files.is_remote(path):
            return _find_owner_here(path)
        try:
            found = self._files.stat(self._files.qualify(path))
            return found.owner if found is not None else None
        except FilesError as error:
            # A failed check must not end the run; if something is wrong with the cluster, the next step will find out.
            if not self._warned:
                log.warning("step=look-for-stop failed path=%s reason=%r", path, str(error))
            self._warned = True
            return None


def _find_owner_here(path: str) -> Optional[str]:
    try:
        return user_name(os.stat(path).st_uid)
    except OSError:
        return None
