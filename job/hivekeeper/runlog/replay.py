"""Replay a table's log: the files it held at a version, as far as runs know them.

Pure: lines in, values out; the rules are in docs/on-disk.md. Raises UnreadableRecord like `runlog/entry_reader.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Container, Dict, Iterable, List, Mapping, Set, Tuple

from hivekeeper import names
from hivekeeper.runlog.entry_reader import EntryReader, take_actions
from hivekeeper.runlog.history import UnitKey
from hivekeeper.runlog.keeper import Keeper
from hivekeeper.runlog.strict import Node


@dataclass(frozen=True)
class FileSet:
    """The files of a table at a version of its log, as far as runs know them; other writers do not report theirs.

    Path to size, and for tombstones also where the file is, relative to the control directory.
    """

    files: Mapping[str, int]
    tombstones: Mapping[str, Tuple[int, str]]


class _Replay:
    """The files and tombstones so far. Paths are unique: the newest action wins."""

    def __init__(self, base: FileSet) -> None:
        self.files: Dict[str, int] = dict(base.files)
        self.tombstones: Dict[str, Tuple[int, str]] = dict(base.tombstones)
        self._at_place: Dict[str, Set[str]] = {}
        for path, (_, where) in base.tombstones.items():
            self._at_place.setdefault(names.parent(where), set()).add(path)

    def take(self, action: Mapping[str, Any]) -> None:
        if "remove" in action:
            path, where = action["remove"]["path"], action["remove"]["retired"]
            self.files.pop(path, None)
            self._rise(path)
            self.tombstones[path] = action["remove"]["size"], where
            self._at_place.setdefault(names.parent(where), set()).add(path)
        elif "add" in action:
            self._rise(action["add"]["path"])
            self.files[action["add"]["path"]] = action["add"]["size"]
        elif "commitInfo" in action:
            undone = [unit["backup"] for unit in action["commitInfo"]["units"] if unit.get("backup") and unit.get("place")]
            for place in self._find_places({(backup["run"], backup["unit"]) for backup in undone}):
                self._clear(place)
        elif "discarded" in action:
            self._clear(action["discarded"]["place"])
            if action["discarded"].get("path") in self.files:
                self.files[action["discarded"]["path"]] = action["discarded"]["pathSize"]

    def _find_places(self, backups: Container[UnitKey]) -> List[str]:
        """Where these backups are, of which files came back under other names."""
        return [place for place in self._at_place if names.unit_of_place(place) in backups] if backups else []

    def _clear(self, place: str) -> None:
        for path in self._at_place.pop(place, ()):
            del self.tombstones[path]

    def _rise(self, path: str) -> None:
        buried = self.tombstones.pop(path, None)
        if buried:
            self._at_place[names.parent(buried[1])].discard(path)


def files_at(entries: Iterable[Tuple[str, Iterable[str]]], base: FileSet = FileSet({}, {})) -> FileSet:
    """Replay entries, each given as the name of its file and its lines, on what there was before them.

    Adds and removes are unique by path; a discarded place drops its tombstones.
    """
    replay = _Replay(base)
    for version, (where, lines) in enumerate(entries):
        entry = EntryReader(version, where, Keeper(keeps=False))

        def take(action: Node, entry: EntryReader = entry) -> None:
            entry.take(action)
            replay.take(action.value)

        take_actions(lines, where, take)
    return FileSet(replay.files, replay.tombstones)
