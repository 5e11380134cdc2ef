"""Which directories in a unit may be those of a committer that had met it away: it found no directory, and renamed its own to live just
after live was back, which HDFS takes for a rename *into* live.

Others are anybody's, such as a copy of the unit's own files, which would be read twice. Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Mapping, Optional

from hivekeeper import names
from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.names import ControlPaths
from hivekeeper.ports import Cluster
from hivekeeper.runlog import store
from hivekeeper.runlog.history import History


@dataclass(frozen=True)
class Late:
    """`before`: a file that is younger than such a directory; None if live was away just now, and had no sub-directory before.

    A NameNode's ids only grow (INodeId). Elsewhere the times of its files count, which copies may keep; the directory's own changes when a
    command that is killed has moved some of them up.
    """

    before: Optional[FileInfo] = None

    def may_be(self, directory: FileInfo) -> bool:
        """As far as a listing of live tells."""
        return self.before is None or not _have_order(directory.file_id, self.before) or directory.file_id < self.before.file_id

    def was_complete(self, inside: Snapshot) -> bool:
        """As far as what is in it tells."""
        if self.before is None or _have_order(inside.file_id, self.before):
            return True
        times = [entry.mtime_ms for entry in inside.entries] or [inside.mtime_ms]
        return max(times) <= self.before.mtime_ms


def _have_order(file_id: int, file: FileInfo) -> bool:
    """Whether the ids say which of two files is older."""
    return names.server_of(file.path).startswith("hdfs:") and bool(file_id and file.file_id)


ANYTHING = Late()


class Earlier:
    """Of runs that are over: what was made before the run wrote its log entry."""

    def __init__(self, cluster: Cluster, control: ControlPaths, history: Optional[History] = None) -> None:
        self._cluster, self._control, self._history = cluster, control, history

    @cached_property
    def _away(self) -> Mapping[str, int]:
        return (self._history or store.read_history(self._cluster, self._control)).away

    @cached_property
    def _entries(self) -> Mapping[int, FileInfo]:
        return store.list_log(self._cluster.files, self._control).entries

    def find(self, unit: str) -> Optional[Late]:
        """None if the unit was not away, or the entry has expired."""
        version = self._away.get(unit)
        entry = None if version is None else self._entries.get(version)
        return None if entry is None else Late(before=entry)
