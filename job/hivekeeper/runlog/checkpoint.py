"""Write and read a checkpoint: all entries of a table's log up to one in a single small file (docs/on-disk.md).

Pure: lines and values in, lines and values out. A checkpoint says nothing that the entries do not say: an unreadable one is not used, and
the entries are read instead. So it names the files whose contents it repeats, and only speaks for exactly these.
"""

from __future__ import annotations

import codecs
import json
import zlib
from dataclasses import dataclass, field, replace
from typing import Any, Container, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import FileInfo
from hivekeeper.runlog import strict
from hivekeeper.runlog.entry_reader import AFTER, BEFORE, EntryReader, action_from
from hivekeeper.runlog.expiry import find_needed
from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.keeper import Keeper
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.replay import FileSet
from hivekeeper.runlog.run_files import BACKUP, files_to_lists
from hivekeeper.runlog.strict import NewerRecord, Node, UnreadableRecord

VERSION = 1
# Files on one line, so that no line is long.
FILES_OF_A_LINE = 1000
GZIP = 16 + zlib.MAX_WBITS
PIECE_BYTES = 2**20

# The actions that are not repeated, and how their lines begin where we wrote them: most lines of a log are these, so they are not parsed.
_LEFT_OUT = frozenset(["remove", "add", "files"])
_LINES_LEFT_OUT = ('{"remove": ', '{"add": ', '{"files":')
# What a text may have when it is unpacked: a kilobyte for each of a million files.
MOST_TEXT = 2**30


class Stale(UnreadableRecord):
    """A checkpoint of other entries than those in the log now, as after a restore."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint says: its entries by number; how many of them, from 0 on, are expired; the files and tombstones after these."""

    runs: Mapping[int, LoggedRun] = field(default_factory=dict)
    expired: int = 0
    base: FileSet = FileSet({}, {})


# -- writing


def lines_of(
    texts: Iterable[Tuple[Mapping[str, int], Iterable[str]]], history: History, expired: int, base: FileSet, where: str
) -> Iterator[str]:
    """The lines of a checkpoint of these entries, oldest first: each its identity and its lines, and what was read from it.

    The lines may also come from an older checkpoint. They are repeated as they are, but for schemas and lists of files: the lists are those
    that the history still has. Of an expired entry only the units remain that `find_needed` names.
    """
    yield _line({"checkpoint": {"version": VERSION, "entries": len(history.runs), "expired": expired}})
    yield from _base_lines(base)
    needed = find_needed(history)
    places = {effect.place for effect in history.effects if effect.key in needed}
    places.update(names.record_place(run.directory) for run in history.runs if run.operation == BACKUP)
    for run, (entry, lines) in zip(history.runs, texts):
        yield _line({"entry": {"version": run.version, **entry}})
        numbers = {effect.number for effect in run.effects if effect.key in needed}
        for action in _without_files(lines, where):
            yield from [action] if run.version >= expired else _of_expired(action, numbers, places)
        for effect in run.effects:
            if run.version >= expired or effect.number in numbers:
                yield from _lists(effect)


def identity(file: FileInfo) -> Dict[str, int]:
    """What distinguishes an entry's file from another of the same number."""
    return {"size": file.length, "modificationTime": file.mtime_ms, "fileId": file.file_id}


def _base_lines(base: FileSet) -> Iterator[str]:
    files = [[path, size] for path, size in base.files.items()]
    tombstones = [[path, size, place] for path, (size, place) in base.tombstones.items()]
    for start in range(0, len(files), FILES_OF_A_LINE):
        yield _line({"base": {"files": files[start : start + FILES_OF_A_LINE], "tombstones": []}})
    for start in range(0, len(tombstones), FILES_OF_A_LINE):
        yield _line({"base": {"files": [], "tombstones": tombstones[start : start + FILES_OF_A_LINE]}})


def _without_files(lines: Iterable[str], where: str) -> Iterator[str]:
    for line in lines:
        if not line or line.startswith(_LINES_LEFT_OUT):
            continue
        action = action_from(line, where).value
        if "metaData" in action:
            yield _line({"metaData": {**action["metaData"], "schemaString": ""}})
        elif not _LEFT_OUT.issuperset(action):
            yield line + "\n"


def _of_expired(line: str, numbers: Container[int], places: Container[str]) -> Iterator[str]:
    """An action of an expired entry, without what is about units of other numbers. `places` are the backups and records of which there is
    still something to say: that they were discarded.
    """
    action = json.loads(line)
    if "commitInfo" in action:
        info = action["commitInfo"]
        yield _line({"commitInfo": {**info, "units": [unit for unit in info["units"] if unit["unit"] in numbers]}})
    elif "discarded" in action:
        yield from [line] if action["discarded"]["place"] in places else []
    elif "discarding" not in action:
        yield line


def _lists(effect: Effect) -> Iterator[str]:
    """A list that was dropped has no line, an empty one has a line."""
    if effect.whole:
        yield from _list(effect, BEFORE, effect.before)
    if effect.whole or effect.after:
        yield from _list(effect, AFTER, effect.after)


def _list(effect: Effect, side: str, files: Sequence[ManifestFile]) -> Iterator[str]:
    for start in range(0, max(1, len(files)), FILES_OF_A_LINE):
        part = files[start : start + FILES_OF_A_LINE]
        yield _line({"files": {"unit": effect.number, "side": side, "files": files_to_lists(part)}})


def _line(action: Mapping[str, Any]) -> str:
    return json.dumps(action, ensure_ascii=False, separators=(",", ":")) + "\n"


def compress(lines: Iterable[str]) -> bytes:
    packer = zlib.compressobj(wbits=GZIP)
    return b"".join([*(packer.compress(line.encode("utf-8")) for line in lines), packer.flush()])


# -- reading


def decompress(pieces: Iterable[bytes], where: str) -> Iterator[str]:
    """The text, in pieces of bounded size. Raises UnreadableRecord; gzip's own checksum and length are compared."""
    unpacker, length = zlib.decompressobj(wbits=GZIP), 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for packed in pieces:
            piece = packed
            while piece and not unpacker.eof:
                unpacked = unpacker.decompress(piece, PIECE_BYTES)
                length += len(unpacked)
                if length > MOST_TEXT:
                    raise strict.foreign(where, "", f"it has more than {MOST_TEXT} bytes when it is unpacked")
                yield decoder.decode(unpacked)
                piece = unpacker.unconsumed_tail
        yield decoder.decode(unpacker.flush(), final=True)
    except (zlib.error, UnicodeDecodeError) as error:
        raise UnreadableRecord(f"{where} cannot be read ({error})") from error
    if not unpacker.eof or unpacker.unused_data:
        raise UnreadableRecord(f"{where} cannot be read (it is cut off, or something follows)")


def entries_in(lines: Iterable[str], where: str) -> Iterator[Tuple[Node, List[str]]]:
    """The first line with the base, then each entry: what the checkpoint says of its file, and its lines.

    Raises UnreadableRecord; NewerRecord for a checkpoint of a newer version.
    """
    lines = iter(lines)
    head = Node(strict.parse(next(lines, ""), where), where)["checkpoint"]
    if head["version"].whole(1) > VERSION:
        raise NewerRecord(f"{where} was written by a newer Hivekeeper (checkpoint version {head['version'].value})")
    promised, found = head["entries"].whole(1), 0
    about: Node = head
    own: List[str] = []
    for line in filter(None, lines):
        if not line.startswith('{"entry":'):
            own.append(line)
            continue
        yield about, own
        about, own = Node(strict.parse(line, where), where)["entry"], []
        about["version"].refuse_where(about["version"].value != found, f"it is not {found}, the next one")
        found += 1
    if found != promised:
        raise UnreadableRecord(f"{where} cannot be read (it has {found} entries, not {promised})")
    yield about, own


def read(lines: Iterable[str], where: str, listed: Mapping[int, FileInfo], exact: bool = True) -> Checkpoint:
    """A checkpoint of the entries that are listed, and perhaps of expired ones. Raises like entries_in, and Stale.

    If not `exact`, entries of the same sizes are enough, and only the expired ones are returned.
    """
    parts = entries_in(lines, where)
    expired, base = _head_from(*next(parts), where)
    return Checkpoint(dict(_runs_from(parts, where, listed, expired, exact)), expired, base)


def read_runs(lines: Iterable[str], where: str, listed: Mapping[int, FileInfo]) -> Iterator[Tuple[int, LoggedRun]]:
    """The entries of a checkpoint, one by one, with their numbers; raises like read."""
    parts = entries_in(lines, where)
    expired, _ = _head_from(*next(parts), where)
    return _runs_from(parts, where, listed, expired, exact=True)


def _head_from(head: Node, lines: Iterable[str], where: str) -> Tuple[int, FileSet]:
    return head["expired"].whole(0, head["entries"].value - 1), _base_from(lines, where)


def _runs_from(
    parts: Iterable[Tuple[Node, List[str]]], where: str, listed: Mapping[int, FileInfo], expired: int, exact: bool
) -> Iterator[Tuple[int, LoggedRun]]:
    for number, (entry, lines) in enumerate(parts):
        file = listed.get(number)
        if (file is None and number >= expired) or (file is not None and not _is_same(entry, file, exact)):
            raise Stale(f"{where} is of another entry {number} than the log has now")
        if exact or number < expired:
            yield number, replace(_entry_from(lines, number, where), expired=number < expired)


def _is_same(entry: Node, file: FileInfo, exact: bool) -> bool:
    if not exact:
        return entry["size"].whole() == file.length
    return bool(entry.value == {"version": entry["version"].value, **identity(file)})


def _base_from(lines: Iterable[str], where: str) -> FileSet:
    files: Dict[str, int] = {}
    tombstones: Dict[str, Tuple[int, str]] = {}
    for line in lines:
        base = Node(strict.parse(line, where), where)["base"]
        for item in base["files"].each(FILES_OF_A_LINE):
            path, size = _values(item, 2)
            files[path.text(names.MOST_PATH)] = size.whole()
        for item in base["tombstones"].each(FILES_OF_A_LINE):
            path, size, place = _values(item, 3)
            tombstones[path.text(names.MOST_PATH)] = size.whole(), place.text(names.MOST_PATH)
    return FileSet(files, tombstones)


def _values(item: Node, count: int) -> List[Node]:
    found = list(item.each(count))
    item.refuse_where(len(found) != count, f"it has {len(found)} values, not {count}")
    return found


def _entry_from(lines: Iterable[str], number: int, where: str) -> LoggedRun:
    reader = EntryReader(number, where, Keeper(keeps=False))
    for line in lines:
        action = action_from(line, where)
        if "files" in action.value:
            reader.take_files(action["files"])
        else:
            action.refuse_where("remove" in action.value or "add" in action.value, "a checkpoint has lists of files instead")
            reader.take(action)
    return reader.as_run()
