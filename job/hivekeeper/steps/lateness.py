"""Which directories in a unit may be those of a committer that had met it away: it found no directory, and renamed its own to live just
after live was back, which HDFS takes for a rename *into* live.

Others are anybody's, such as a copy of the unit's own files, which would be read twice. Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import FrozenSet, Iterable, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.names import ControlPaths
from hivekeeper.ports import Cluster
from hivekeeper.runlog import manifests, store
from hivekeeper.runlog.history import History
from hivekeeper.runlog.manifests import FileKey, Found


@dataclass(frozen=True)
class Late:
    """`before`: a file that is younger than such a directory; None if live was away just now, and had no sub-directory before.
    `known`: files that the unit has had; copies of these are no committer's, whenever they were made. `holding`: the files (name to length)
    that live had then: where others have replaced them since, they have replaced what came beside them, too.

    A NameNode's ids only grow (INodeId). Elsewhere the times of its files count, which copies may keep; the directory's own changes when a
    command that is killed has moved some of them up.
    """

    before: Optional[FileInfo] = None
    known: Tuple[Found, ...] = ()
    holding: Mapping[str, int] = field(default_factory=dict)

    def may_be(self, directory: FileInfo) -> bool:
        """As far as a listing of live tells."""
        return self.before is None or not _have_order(directory.file_id, self.before) or directory.file_id < self.before.file_id

    def is_of(self, live: Snapshot) -> bool:
        """Whether live is still what such a directory came to."""
        return manifests.holds(self.holding, live.entries)

    def knowing(self, files: Iterable[Found]) -> Late:
        return replace(self, known=(*self.known, *files))

    def may_have_left(self, inside: Snapshot) -> bool:
        """As far as what is in it tells."""
        return self._was_complete(inside) and not self._are_copies(inside)

    @cached_property
    def _keys(self) -> FrozenSet[FileKey]:
        return frozenset((file.name, file.length) for file in self.known)

    def _are_copies(self, inside: Snapshot) -> bool:
        return bool(inside.entries) and all((entry.name, entry.length) in self._keys for entry in inside.entries)

    def _was_complete(self, inside: Snapshot) -> bool:
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
        self._cluster, self._control, self._known = cluster, control, history

    @cached_property
    def _history(self) -> History:
        return self._known or store.read_history(self._cluster, self._control)

    @cached_property
    def _entries(self) -> Mapping[int, FileInfo]:
        return store.list_log(self._cluster.files, self._control).entries

    def find(self, unit: str) -> Optional[Late]:
        """None if the unit was not away, if the entry has expired, or if not all files that the unit has had are known any more."""
        effect = self._history.away.get(unit)
        entry = None if effect is None else self._entries.get(effect.version)
        had = self._history.find_files(unit)
        if effect is None or entry is None or had is None:
            return None
        return Late(entry, had, {file.name: file.length for file in effect.after})
