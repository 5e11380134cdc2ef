"""Decide from a listing what happened to a unit's directory since it was recorded.

Pure. Steps 4 and 5 of the safe order and the recovery table share this judgement.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Iterable, Mapping, NamedTuple, NewType, Optional, Protocol, Tuple, TypeVar, Union

from hivekeeper import names
from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.reasons import Code, Reason


class Seen(Enum):
    SAME = "same"
    LATE = "late files"
    SPOILED = "spoiled"


class ManifestFile(NamedTuple):
    """A file in a manifest. A run may have a million of these in memory, so it is kept small."""

    name: str
    length: int
    mtime_ms: int
    file_id: int

    def __hash__(self) -> int:
        """As that of FileInfo; the id is the file system's choice."""
        return hash((self.name, self.file_id))

    @classmethod
    def of(cls, entry: FileInfo) -> ManifestFile:
        return cls(entry.name, entry.length, entry.mtime_ms, entry.file_id)

    @property
    def holds_rows(self) -> bool:
        return self.length > 0 and not names.is_hidden(self.name)


@dataclass(frozen=True)
class Extent:
    """A cheap test whether a unit's files are unchanged: their number, bytes and newest time."""

    files: int
    size_bytes: int
    newest_ms: int

    @classmethod
    def of(cls, files: Iterable[Found]) -> Extent:
        files = list(files)
        newest_ms = max((file.mtime_ms for file in files), default=0)
        return cls(len(files), sum(file.length for file in files), newest_ms)


def is_marker(file: ManifestFile) -> bool:
    """Whether a file is an empty hidden one such as _SUCCESS: it holds no rows, and every writer creates its own."""
    return file.length == 0 and names.is_hidden(file.name)


@dataclass(frozen=True)
class Judgement:
    """A listing compared with a manifest. `late` holds the new complete files; `why` is the first reason for SPOILED."""

    seen: Seen
    late: Tuple[FileInfo, ...] = ()
    why: Optional[Reason] = None


def judge(manifest: Iterable[ManifestFile], entries: Iterable[FileInfo]) -> Judgement:
    """SAME: exactly the manifest. LATE: the manifest and new complete files. SPOILED: anything else.

    Anything else is a missing or changed file, a directory (a committer's), a hidden, an open or an unfinished file: its
    writer is not done, and needs the directory in its place. One that has just closed `x._COPYING_` renames it next.
    """
    expected: Mapping[str, ManifestFile] = {file.name: file for file in manifest}
    late, present = [], set()
    for entry in entries:
        recorded = expected.get(entry.name)
        if recorded is not None and not entry.is_dir:
            if ManifestFile.of(entry) != recorded:
                return _spoiled(Code.CHANGED_MEANWHILE, f"{entry.name} was changed")
            if entry.is_open:
                return _spoiled(Code.OPEN_FILE, f"{entry.name} is open for writing")
            present.add(entry.name)
        elif entry.is_dir or names.is_hidden(entry.name) or entry.is_open or names.is_unfinished_file(entry.name):
            return _spoiled(Code.WRITER_AT_WORK, f"{entry.name} appeared: a writer is at work")
        else:
            late.append(entry)
    missing = sorted(set(expected) - present)
    if missing:
        return _spoiled(Code.CHANGED_MEANWHILE, f"{missing[0]} is gone")
    return Judgement(Seen.LATE if late else Seen.SAME, late=tuple(late))


def _spoiled(code: Code, what: str) -> Judgement:
    return Judgement(Seen.SPOILED, why=Reason(code, what))


class Found(Protocol):
    """A file in a listing or a manifest."""

    @property
    def name(self) -> str: ...

    @property
    def length(self) -> int: ...

    @property
    def mtime_ms(self) -> int: ...

    @property
    def file_id(self) -> int: ...


Present = TypeVar("Present", bound=Found)

# Files by name that a directory must hold, each with its length and its id, 0 if that is not known.
Expected = Mapping[str, Tuple[int, int]]


class Cut(Protocol):
    """A file that was cut: its id, and its length since."""

    @property
    def file_id(self) -> int: ...

    @property
    def copy_bytes(self) -> int: ...


# A file in a list as another list may name it, too.
FileKey = NewType("FileKey", str)


def key_of(name: str, *numbers: int) -> FileKey:
    """As a text: whoever chooses a number in a tuple chooses the hash, and could give all files the same one. No name has a `/`."""
    return FileKey("/".join((name, *map(str, numbers))))


def find_present(
    wanted: Iterable[ManifestFile], present: Iterable[Present], cut: Mapping[FileKey, Cut] = MappingProxyType({})
) -> Tuple[Tuple[Present, ...], str]:
    """The files of a manifest that are present, without markers, and what happened to the first missing one: "x is gone".

    Matched by id if known, because moving files over may have renamed one; else by name, which contains the run's id. `cut`: those that
    may have become shorter since (`History.cut`).
    """
    present = list(present)
    by_id = {file.file_id: file for file in present if file.file_id}
    by_name = {file.name: file for file in present}
    found, why = [], ""
    for file in wanted:
        if is_marker(file):
            continue
        shorter = cut.get(key_of(file.name, file.length)) if cut else None
        if shorter and shorter.file_id in by_id and by_id[shorter.file_id].length == shorter.copy_bytes:
            found.append(by_id[shorter.file_id])
            continue
        now = by_id.get(file.file_id) if file.file_id else by_name.get(file.name)
        if now is None or now.length != file.length or (file.file_id and now.mtime_ms != file.mtime_ms):
            why = why or f"{file.name} {'is gone' if now is None else 'was changed'}"
        else:
            found.append(now)
    return tuple(found), why


def find_late(manifest: Iterable[ManifestFile], entries: Iterable[FileInfo]) -> Tuple[FileInfo, ...]:
    """The new complete files, whatever else happened to the directory; none of them may be left behind. One of the manifest that somebody
    has renamed is not new, unless it was changed: the copy has its rows. Those of local files are told by their names alone: their ids are
    given again.
    """
    manifest = list(manifest)
    known, same = {file.name for file in manifest}, {(file.file_id, file.length, file.mtime_ms) for file in manifest if file.file_id}
    complete = (e for e in entries if not (e.is_dir or e.is_open or names.is_hidden(e.name) or e.name in known))
    return tuple(e for e in complete if (e.file_id, e.length, e.mtime_ms) not in same or e.path.startswith("file:"))


def is_of(manifest: Iterable[ManifestFile], entries: Iterable[FileInfo]) -> bool:
    """Whether a listing can be that of the manifest's directory: it has one of its files, by id. Somebody may have put another directory at
    its path.
    """
    known = {(file.name, file.file_id) for file in manifest}
    return not known or any((entry.name, entry.file_id) in known for entry in entries)


def can_tell(mark: Snapshot, clock_ms: int, grain_ms: int) -> bool:
    """Whether an unchanged id and time of the directory prove that nothing was added meanwhile: not if it is too young.

    `clock_ms` is a time from the same NameNode, taken before the directory was listed, so only one clock is
    involved.
    """
    return mark.file_id != 0 and mark.mtime_ms < clock_ms - grain_ms


def is_untouched(mark: Snapshot, now: Union[FileInfo, Snapshot], clock_ms: int, grain_ms: int) -> bool:
    """Whether the directory, renamed since, is certainly unchanged since `mark` was taken.

    HDFS keeps a directory's id and time when the directory is renamed, and any file created, renamed or deleted
    in it changes the time (measured on 3.3.6).
    """
    same = now.file_id == mark.file_id and now.mtime_ms == mark.mtime_ms
    return same and can_tell(mark, clock_ms, grain_ms)


def expect(files: Iterable[ManifestFile]) -> Expected:
    return {file.name: (file.length, file.file_id) for file in files}


def expect_new(lengths: Mapping[str, int]) -> Expected:
    """Files that a run has made, by name, of which the ids are not known."""
    return {name: (length, 0) for name, length in lengths.items()}


def without_ids(expected: Expected) -> Expected:
    """Copies of these files, too."""
    return {name: (length, 0) for name, (length, _) in expected.items()}


def holds(expected: Expected, entries: Iterable[FileInfo]) -> bool:
    """Whether all these files are present; others may be present too. By their ids where those are known: the files of another table, which
    somebody may rename to this place, may have the same names and lengths.

    Markers do not count: any writer may create or remove them, and they hold no rows.
    """
    present = {entry.name: (entry.length, entry.file_id) for entry in entries if not entry.is_dir}
    return all(
        _is_expected(present.get(name), length, file_id)
        for name, (length, file_id) in expected.items()
        if length or not names.is_hidden(name)
    )


def tells(expected: Expected) -> bool:
    """Whether these files tell the directory that must hold them from others: nothing but markers does not."""
    return any(length or not names.is_hidden(name) for name, (length, _) in expected.items())


def _is_expected(found: Optional[Tuple[int, int]], length: int, file_id: int) -> bool:
    return found is not None and found[0] == length and file_id in (0, found[1])


def holds_exactly(expected: Mapping[str, int], entries: Iterable[FileInfo]) -> bool:
    return {entry.name: entry.length for entry in entries} == dict(expected)
