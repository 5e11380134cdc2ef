"""Write and read a checkpoint: all entries of a table's log up to one in a single small file (docs/on-disk.md).

Pure: lines and values in, lines and values out. A checkpoint says nothing that the entries do not say: an unreadable one is not used, and
the entries are read instead. So it names the files whose contents it repeats, and only speaks for exactly these.
"""

from __future__ import annotations

import codecs
import json
import zlib
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.model import FileInfo
from hivekeeper.runlog import strict
from hivekeeper.runlog.entry_reader import AFTER, BEFORE, EntryReader, action_from
from hivekeeper.runlog.history import Effect, LoggedRun
from hivekeeper.runlog.keeper import Keeper
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import files_to_lists
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


# -- writing


def lines_of(texts: Iterable[Tuple[FileInfo, Iterable[str]]], runs: Sequence[LoggedRun]) -> Iterator[str]:
    """The lines of a checkpoint of these entries, oldest first: each its listed file and its lines, and what was read from it.

    The lines may also come from an older checkpoint. They are repeated as they are, but for schemas and lists of files: the lists are those
    that `runs` still have.
    """
    yield _line({"checkpoint": {"version": VERSION, "entries": len(runs)}})
    for run, (file, lines) in zip(runs, texts):
        yield _line({"entry": _identity(run.version, file)})
        yield from _without_files(lines, file.path)
        for effect in run.effects:
            yield from _lists(effect)


def _identity(version: int, file: FileInfo) -> Dict[str, int]:
    return {"version": version, "size": file.length, "modificationTime": file.mtime_ms, "fileId": file.file_id}


def _without_files(lines: Iterable[str], where: str) -> Iterator[str]:
    for line in lines:
        if not line or line.startswith(_LINES_LEFT_OUT):
            continue
        action = action_from(line, where).value
        if "metaData" in action:
            yield _line({"metaData": {**action["metaData"], "schemaString": ""}})
        elif not _LEFT_OUT.issuperset(action):
            yield line + "\n"


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
    """Each entry: what the checkpoint says of its file, and its lines. Raises UnreadableRecord; NewerRecord for one of a newer version."""
    lines = iter(lines)
    head = Node(strict.parse(next(lines, ""), where), where)["checkpoint"]
    if head["version"].whole(1) > VERSION:
        raise NewerRecord(f"{where} was written by a newer Hivekeeper (checkpoint version {head['version'].value})")
    promised, found = head["entries"].whole(1), 0
    entry: Optional[Node] = None
    own: List[str] = []
    for line in filter(None, lines):
        if not line.startswith('{"entry":'):
            own.append(line)
            continue
        if entry is not None:
            yield entry, own
        entry, own = Node(strict.parse(line, where), where)["entry"], []
        entry["version"].refuse_where(entry["version"].value != found, f"it is not {found}, the next one")
        found += 1
    if entry is None or found != promised:
        raise UnreadableRecord(f"{where} cannot be read (it has {found} entries, not {promised})")
    yield entry, own


def read(lines: Iterable[str], where: str, listed: Mapping[int, FileInfo]) -> Dict[int, LoggedRun]:
    """The entries of a checkpoint, by number, if it is one of the entries that are listed. Raises like entries_in, and Stale."""
    runs: Dict[int, LoggedRun] = {}
    for number, (entry, own) in enumerate(entries_in(lines, where)):
        _require_same(entry, number, listed.get(number), where)
        reader = EntryReader(number, where, Keeper(keeps=False))
        for line in own:
            action = action_from(line, where)
            if "files" in action.value:
                reader.take_files(action["files"])
            else:
                action.refuse_where("remove" in action.value or "add" in action.value, "a checkpoint has lists of files instead")
                reader.take(action)
        runs[number] = reader.as_run()
    return runs


def _require_same(entry: Node, number: int, file: Optional[FileInfo], where: str) -> None:
    if file is None or entry.value != _identity(number, file):
        raise Stale(f"{where} is of another entry {number} than the log has now")
