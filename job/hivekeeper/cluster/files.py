"""Accesses Hadoop file systems through Java helpers: one gateway call per method, whatever the number of paths.

It decides nothing, and never overwrites: not by a rename, not by a write, not to get a lock.
"""

from __future__ import annotations

import base64
import codecs
import fcntl
import itertools
import json
import os
import pwd
import re
import secrets
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from hivekeeper import names
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_errors import BEING_RECOVERED, HELD_BY_ANOTHER, JAVA_ERRORS, files_error, java_causes
from hivekeeper.errors import Refused
from hivekeeper.model import (
    OWNER_ONLY,
    Attributes,
    Block,
    Exposed,
    FileInfo,
    FileRights,
    FilesByRights,
    Guard,
    Quota,
    Room,
    Snapshot,
    Ties,
)
from hivekeeper.names import ControlPaths
from hivekeeper.ports import ALL, ANY_LENGTH, NO_IDS, FilesError, Lock, LockHeld, local_table
from hivekeeper.reasons import Code

AUTHORITY = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/]*(?=/)|(?=/(?!/)))")
NEEDS_HADOOP = re.compile(r"/(?:\.{1,2}|\.reserved)(?:/|$)")

# The size of one call when a long text is read or written. Py4J holds several copies of it, as text and in its own lines.
PIECE_BYTES = 4 * 2**20
PIECE_CHARACTERS = 2**20
# How much of the end of a lock file is read; its last line is about a hundred bytes long.
LAST_BYTES = 4096

# Where Spark's documentation has sites name the other file systems that a job may use.
TRUSTED_FILE_SYSTEMS = (
    "spark.kerberos.access.hadoopFileSystems",
    "spark.yarn.access.hadoopFileSystems",
    "spark.yarn.access.namenodes",
)

# As Java names a user id, which in a container may have no name.
try:
    _LOCAL_USER = pwd.getpwuid(os.getuid()).pw_name
except KeyError:
    _LOCAL_USER = str(os.getuid())

# HDFS recovers the lease on the first request after it expires; DataNodes learn of it with their next heartbeat (3 s).
RECOVERY_S = 10.0


# Of which it is remembered what they are; a name of the domain name system has up to 253 characters.
MOST_SERVERS, LONGEST_SERVER = 1000, 300
Known = TypeVar("Known")


class HadoopFiles:
    """`ports.Files` on the Hadoop file system of each path."""

    def __init__(self, gateway: Gateway) -> None:
        self._locations, self._listing, self._renames, self._directories, self._texts, self._locks, self._attributes = (
            gateway.helper(name, gateway.hadoop_conf)
            for name in ("Locations", "Listing", "Renames", "Directories", "TextFiles", "LeaseLock", "Attributes")
        )
        self._placement, self._room, self._rights, self._blocks, self._whereabouts = (
            gateway.helper(name, gateway.hadoop_conf) for name in ("Placement", "Room", "Rights", "Blocks", "Whereabouts")
        )
        self._user = str(_ask(self._rights.user))
        # The NameNode records milliseconds; a local kernel stamps files with its last clock tick.
        self.clock_grain_ms = 20 if self._locations.defaultScheme() == "file" else 1
        self._spelling: Dict[str, str] = {}
        # The ids of directories with a lock that is held.
        self._held: Dict[str, int] = {}
        # Of the directories that these were in.
        self._around: Dict[str, int] = {}
        # Of those that are anchored, by each block that anchors some: the last one counts.
        self._anchors: Dict[object, Mapping[str, int]] = {}
        self._trusted = json.dumps(_trusted_file_systems(gateway))
        self._foreign: Dict[str, bool] = {}

    def qualify(self, path: str) -> str:
        """Qualify a path, calling Hadoop once per scheme and authority: a table may have a hundred thousand locations."""
        prefix = AUTHORITY.match(path)
        if prefix is None or NEEDS_HADOOP.search(path):
            return str(_ask(self._locations.qualify, path))
        server = _remembered(self._spelling, prefix[0], lambda: str(_ask(self._locations.qualify, prefix[0] + "/")).rstrip("/"))
        return server + (re.sub("/+", "/", path[prefix.end() :]).rstrip("/") or "/")

    def is_foreign(self, location: str) -> bool:
        if not names.is_location(location):
            return True
        server = names.server_of(location)
        return _remembered(self._foreign, server, lambda: bool(_ask(self._locations.isForeign, f"{server}/", self._trusted)))

    def look(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        return self._look(self._listing.look, directories, most)

    def look_hidden(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        return self._look(self._listing.lookHidden, directories, most)

    def look_hidden_directories(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        return self._look(self._listing.lookHiddenDirectories, directories, most)

    def _look(self, look: Callable[..., Any], directories: Sequence[str], most: int) -> Mapping[str, Snapshot]:
        if not directories:
            return {}
        by_id, exact = all(map(self._is_found_by_id, directories)), {self.exact(directory): directory for directory in directories}
        with _told_by(exact):
            seen = json.loads(_ask(look, json.dumps(list(exact)), most, by_id))
        return {exact[found["asked"]]: _snapshot(found, exact[found["asked"]]) for found in seen}

    def _is_found_by_id(self, path: str) -> bool:
        """Whether a directory is found by its id: the one beside or around it with a lock of ours was. Not any on the same server: a router
        may ask another NameNode for another table.
        """
        # A job that asks may run beside a cleanup, which takes and releases the locks of other tables.
        found = {names.parent(held): file_id != 0 for held, file_id in list(self._held.items())}
        return path.startswith("hdfs:") and found.get(_find_nearest(path, found), False)

    def stat(self, path: str) -> Optional[FileInfo]:
        exact = self._named(path)
        return _found(self._ask_named(self._listing.stat, path), {exact: path})

    def id_around(self, directory: str) -> int:
        return self._around.get(directory, 0)

    @contextmanager
    def anchored(self, directories: Mapping[str, int]) -> Iterator[None]:
        block = object()
        self._anchors[block] = {path: file_id for path, file_id in directories.items() if file_id and self._is_found_by_id(path)}
        try:
            yield
        finally:
            del self._anchors[block]

    def make_directory(self, path: str) -> None:
        self._ask_named(self._directories.make, path)

    def rename_exact(self, source: str, target: str) -> None:
        """Rename in one step on HDFS. For a local directory the target is checked first, so two writers could race."""
        named = self._all_named(source, target)
        may_be_gone = [named[path] != path and self._may_be_deleted(path) for path in (source, target)]
        with _told_by({one: path for path, one in named.items()}):
            if any(may_be_gone):
                _ask(self._renames.renameBelowIds, named[source], named[target], *may_be_gone)
            else:
                _ask(self._renames.rename, named[source], named[target])

    def _may_be_deleted(self, path: str) -> bool:
        """Whether others may delete the directory by whose id a name is found. Not one with a lock of ours, nor one around that: as long as
        it holds what is closed to them, they may only rename it.
        """
        nearest = _find_nearest(names.parent(path), self._ids())
        return nearest not in self._held and nearest not in map(names.parent, list(self._held))

    def exchange(self, live: str, aside: str, incoming: str, mark: Snapshot) -> Optional[FileInfo]:
        named = self._all_named(live, aside, incoming)
        asked = {one: path for path, one in named.items()}
        with _told_by(asked):
            answer = _ask(self._renames.exchange, named[live], named[aside], named[incoming], mark.file_id, mark.mtime_ms)
        return _found(answer, asked)

    def blocks(
        self, path: str, below: int = ANY_LENGTH, ids: Optional[Mapping[str, int]] = None, most: int = ALL
    ) -> Mapping[str, Tuple[Block, ...]]:
        wanted = None if ids is None else list(ids.values())
        found = json.loads(self._ask_below(self._blocks.of, path, below, json.dumps(wanted), most)) or {}
        known = {name: blocks for name, (file_id, blocks) in found.items() if ids is None or ids.get(name, file_id) == file_id}
        return {name: tuple(Block(*block) for block in blocks) for name, blocks in known.items()}

    def is_anywhere(self, near: str, file_id: int) -> bool:
        return bool(_ask(self._blocks.isAnywhere, near, file_id))

    def find_paths(self, near: str, former: Mapping[int, str]) -> Mapping[int, str]:
        if not former:
            return {}
        found = json.loads(_ask(self._whereabouts.find, near, json.dumps(former)))
        return {int(file_id): path for file_id, path in found.items()}

    def concat(self, target: str, sources: Sequence[str]) -> None:
        _ask(self._blocks.concat, target, json.dumps(list(sources)))

    def copy_part(self, file: FileInfo, begin: int, length: int, target: str) -> None:
        exact = {self.exact(file.path): file.path, self._named(target): target}
        with _told_by(exact):
            _ask(self._texts.copyPart, self.exact(file.path), file.file_id, begin, length, self._named(target))

    def cut(self, file: FileInfo, length: int, blocks: Sequence[Block]) -> None:
        _ask(self._blocks.cut, file.path, file.file_id, length, json.dumps(blocks))

    def remove_empty(self, path: str) -> bool:
        return bool(self._ask_named(self._directories.deleteEmpty, path))

    def delete_tree(self, path: str) -> None:
        self._ask_below(self._directories.deleteTree, path)

    def delete_file(self, path: str, directory_id: int = 0, file_id: int = 0) -> None:
        if directory_id:
            _ask(self._directories.deleteListed, path, directory_id, file_id)
        else:
            self._ask_below(self._directories.deleteFile, path)

    def move_to_trash(self, path: str) -> bool:
        exact = self.exact(path)
        with _told_by({exact: path}):
            return bool(_ask(self._directories.moveToTrash, path, exact))

    def read_pieces(self, file: FileInfo) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for piece in self.read_bytes(file):
            yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)

    def read_bytes(self, file: FileInfo) -> Iterator[bytes]:
        offset, piece = 0, b""
        while not offset or len(piece) == PIECE_BYTES:
            piece = base64.b64decode(self._ask_below(self._texts.readPiece, file.path, file.file_id, offset, PIECE_BYTES))
            offset += len(piece)
            yield piece
            if not piece:
                break

    def read_texts(self, files: Sequence[FileInfo]) -> Mapping[str, str]:
        if not files:
            return {}
        exact = {self.exact(file.path): file for file in files}
        with _told_by({one: file.path for one, file in exact.items()}):
            found = json.loads(_ask(self._texts.readAll, json.dumps({one: file.file_id for one, file in exact.items()})))
        return {exact[one].path: text for one, text in found.items()}

    def user_at(self, path: str) -> str:
        return _LOCAL_USER if path.startswith("file:") else self._user

    def write_new(self, path: str, content: Union[str, bytes, Iterable[str]], mode: int = OWNER_ONLY) -> None:
        """Write a new file. Local files are only as durable as in Hadoop's local file system: flushed, not synced."""
        if isinstance(content, bytes):
            self._write_pieces(path, (content[start : start + PIECE_BYTES] for start in range(0, len(content), PIECE_BYTES)), mode)
            return
        pieces = _pieces_of([content] if isinstance(content, str) else content)
        first, second = next(pieces, ""), next(pieces, None)
        if second is None:
            self._ask_named(self._texts.writeNew, path, first, mode)
        else:
            self._write_pieces(path, itertools.chain([first, second], pieces), mode)

    def _write_pieces(self, path: str, pieces: Union[Iterable[str], Iterable[bytes]], mode: int) -> None:
        number, is_whole = int(self._ask_named(self._texts.begin, path, mode)), False
        try:
            for piece in pieces:
                _ask(self._texts.appendBytes if isinstance(piece, bytes) else self._texts.append, number, piece)
            is_whole = True
        finally:
            if not is_whole:
                self._texts.abandon(number)
        _ask(self._texts.finish, number)

    def require_lockable(self, path: str) -> None:
        self._lockable_scheme(path)

    def hold(self, path: str, holder: str) -> Lock:
        """Take the lock. HDFS: keep the file open for append. Local files: flock, which also dies with the process.

        Other file systems have no lock that dies with its holder, so tables there are refused.
        """
        scheme, directory = self._lockable_scheme(path), names.parent(path)
        # Not the one around it, which may be away for a moment: who renames another one to its place would find it there.
        new = ControlPaths(directory).new(secrets.token_hex(16))
        self._ask_named(self._directories.makeSealed, directory, names.base(names.parent(new)), names.base(new), names.SEAL)
        line = " ".join(holder.split())
        if scheme == "file":
            return _LocalLock(_local(self.qualify(path)), line)
        return self._hold_hdfs(directory, path, line)

    def _lockable_scheme(self, path: str) -> str:
        """The scheme behind the path, hdfs or file."""
        scheme = str(_ask(self._locations.schemeBehind, names.parent(path)))
        if scheme == "file" and str(self._locations.defaultScheme()) != "file":
            raise local_table(path)
        if scheme not in ("hdfs", "file"):
            raise Refused(
                f"{path}: a {scheme} file system has no lock that ends with the process that holds it",
                code=Code.NO_LOCK,
                next="leave this table out: only tables on HDFS can be compacted",
            )
        return scheme

    def _hold_hdfs(self, directory: str, path: str, line: str) -> Lock:
        give_up = time.monotonic() + RECOVERY_S
        while True:
            try:
                number = int(self._locks.hold(directory, names.base(path), line))
                return self._held_by_id(directory, number)
            except JAVA_ERRORS as error:
                causes = java_causes(error)
            seen = {cause.short_name for cause in causes}
            if BEING_RECOVERED in seen and time.monotonic() < give_up:
                time.sleep(0.5)
            elif seen & HELD_BY_ANOTHER:
                raise LockHeld(path, self._last_line(path))
            else:
                raise files_error(causes)

    def _held_by_id(self, directory: str, number: int) -> Lock:
        """The lock that was taken, and where its file is."""

        def forget() -> None:
            self._held.pop(directory, None)
            self._around.pop(directory, None)

        lock = _HdfsLock(self._locks, number, forget)
        try:
            self._held[directory], self._around[directory] = json.loads(str(_ask(self._locks.directoryIds, number)))
        except FilesError:
            lock.release()
            raise
        return lock

    def _last_line(self, path: str) -> str:
        """The last line of a file of any length: each holder adds a line, and anyone who may write to the file may write anything."""
        try:
            return last_line(bytes(_ask(self._texts.readEnd, path, LAST_BYTES)))
        except FilesError:
            return ""

    def _ask_below(self, method: Callable[..., Any], wanted: Union[str, Mapping[str, Any]], *more: Any) -> Any:
        """Call a method with a path, or with values by path in JSON. In a directory whose lock is held, paths begin with its id."""
        exact = {path: self.exact(path) for path in ([wanted] if isinstance(wanted, str) else wanted)}
        asked = exact[wanted] if isinstance(wanted, str) else json.dumps({exact[path]: value for path, value in wanted.items()})
        with _told_by({one: path for path, one in exact.items()}):
            return _ask(method, asked, *more)

    def _ask_named(self, method: Callable[..., Any], path: str, *more: Any) -> Any:
        """The same for the name that something has, gets or had in its directory."""
        exact = self._named(path)
        with _told_by({exact: path}):
            return _ask(method, exact, *more)

    def _named(self, path: str) -> str:
        """Like exact, for the name of something in the directory around it. That of a directory whose lock is held is its path alone."""
        return path if path in self._held else self._find(path, names.parent(path))

    def _all_named(self, *paths: str) -> Mapping[str, str]:
        """The same for several names, by each path. All are paths unless all begin with an id: two directories that were found at one time
        are below the table's place then, so that nothing is moved to what has come to that place since the table was renamed.
        """
        named = {path: self._named(path) for path in paths}
        return {path: path for path in paths} if any(named[path] == path for path in paths) else named

    def exact(self, path: str) -> str:
        """The path from the id of the directory whose lock is held, or that is anchored, if it is or is in one: whoever may write to the
        directory around it can put another one at its path.
        """
        return self._find(path, path)

    def _find(self, path: str, near: str) -> str:
        """The path from the id of the nearest directory that is `near` or around it."""
        server, ids = names.server_of(path), self._ids()
        nearest = _find_nearest(near, ids)
        if not nearest or not server.startswith("hdfs:"):
            return path
        return f"{server}/.reserved/.inodes/{ids[nearest]}{path[len(nearest) :]}"

    def _ids(self) -> Mapping[str, int]:
        """Of the directories that are found by their ids."""
        ids = dict(self._held)
        for anchors in list(self._anchors.values()):
            ids.update(anchors)
        return {directory: file_id for directory, file_id in ids.items() if file_id}

    def _by_id(self, directory: str, file_id: int) -> str:
        """The path that is the directory's id, if that is known and directories are found so."""
        is_found = file_id and self._is_found_by_id(directory)
        return f"{names.server_of(directory)}/.reserved/.inodes/{file_id}" if is_found else self.exact(directory)

    def attributes(self, directories: Sequence[str], ids: Mapping[str, int] = NO_IDS) -> Mapping[str, Attributes]:
        if not directories:
            return {}
        asked = {directory: self._by_id(directory, ids.get(directory, 0)) for directory in directories}
        found = json.loads(_ask(self._attributes.read, json.dumps(asked), all(map(self._is_found_by_id, directories))))
        return {directory: _read_attributes(known) for directory, known in found.items()}

    def file_rights(self, directories: Mapping[str, int], most: int) -> Mapping[str, FilesByRights]:
        if not directories:
            return {}
        asked = {directory: self._by_id(directory, file_id) for directory, file_id in directories.items()}
        found = json.loads(_ask(self._attributes.fileRights, json.dumps(asked), most))
        return {
            place: {
                FileRights(sys.intern(one["owner"]), sys.intern(one["group"]), one["mode"], _entries(one["acl"])): tuple(one["ids"])
                for one in some
            }
            for place, some in found.items()
        }

    def dress(self, wanted: Mapping[str, Attributes]) -> None:
        if wanted:
            self._ask_below(self._attributes.give, {path: _as_json(attributes) for path, attributes in wanted.items()})

    def exposed(self, top: str, levels: int) -> Tuple[Exposed, ...]:
        exact = self.exact(top)
        with _told_by({exact: top}):
            found = json.loads(_ask(self._rights.exposed, exact, levels))
        return tuple(Exposed(**{**one, "path": _as_asked(one["path"], {exact: top}), "acl": tuple(one["acl"])}) for one in found)

    def way_to(self, directory: str) -> Tuple[Exposed, ...]:
        found = json.loads(_ask(self._rights.wayTo, directory))
        return tuple(Exposed(**{**one, "acl": tuple(one["acl"])}) for one in found)

    def guard(self, wanted: Mapping[str, Guard]) -> None:
        if wanted:
            self._ask_below(self._rights.give, {path: {**vars(guard), "group": guard.group or None} for path, guard in wanted.items()})

    def ties(self, directories: Sequence[str], around: str = "") -> Mapping[str, Ties]:
        asked = [*directories, *filter(None, [around])]
        if not asked:
            return {}
        found = json.loads(_ask(self._placement.ties, json.dumps(asked), around))
        return {directory: Ties(**known) for directory, known in found.items()}

    def room(self, path: str, quotas_at: Sequence[str]) -> Room:
        found = json.loads(_ask(self._room.at, path, json.dumps(list(quotas_at))))
        return Room(**{**found, "quotas": tuple(Quota(**quota) for quota in found["quotas"])})


class _HdfsLock:
    """A file held open for append, with a line per holder. It is never deleted, so a late release cannot take it from a new holder."""

    def __init__(self, locks: Any, number: int, forget: Callable[[], object]) -> None:
        self._locks = locks
        self._number = number
        self._forget = forget

    def check(self) -> bool:
        return bool(_ask(self._locks.isHeld, self._number))

    def release(self) -> None:
        self._forget()
        _ask(self._locks.release, self._number)


class _LocalLock:
    """An flock. The file is not removed: another process may have just locked it."""

    def __init__(self, path: str, line: str) -> None:
        self._path = path
        self._file = open(path, "a+", encoding="utf-8", opener=_for_owner_only)  # noqa: SIM115  (open as long as the lock is held)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise LockHeld(path, _end_of_local(path)) from None
        self._file.write(line + "\n")
        self._file.flush()

    def check(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        self._file.close()


def last_line(end: bytes) -> str:
    """The last line in the end of a file, which may start in the middle of a line or a character."""
    lines = end.decode("utf-8", "replace").splitlines()
    return lines[-1] if lines else ""


def _end_of_local(path: str) -> str:
    with open(path, "rb") as file:
        file.seek(-min(LAST_BYTES, os.fstat(file.fileno()).st_size), os.SEEK_END)
        return last_line(file.read())


def _trusted_file_systems(gateway: Gateway) -> List[str]:
    values = (str(gateway.driver.conf.get(key, "")) for key in TRUSTED_FILE_SYSTEMS)
    return [place.strip() for value in values for place in value.split(",") if place.strip()]


def _pieces_of(texts: Iterable[str]) -> Iterator[str]:
    """Regroup a text into pieces of about the same size: short ones are joined, long ones cut."""
    waiting: List[str] = []
    length = 0
    for text in texts:
        for start in range(0, len(text), PIECE_CHARACTERS):
            waiting.append(text[start : start + PIECE_CHARACTERS])
            length += len(waiting[-1])
            if length >= PIECE_CHARACTERS:
                yield "".join(waiting)
                waiting, length = [], 0
    if waiting:
        yield "".join(waiting)


def _ask(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except JAVA_ERRORS as error:
        raise files_error(java_causes(error)) from None


def _remembered(known: Dict[str, Known], server: str, ask: Callable[[], Known]) -> Known:
    """The answer about a server, which is asked for once if it is one of few: strangers may name millions of long ones."""
    if server in known:
        return known[server]
    answer = ask()
    if len(known) < MOST_SERVERS and len(server) <= LONGEST_SERVER:
        known[server] = answer
    return answer


@contextmanager
def _told_by(paths: Mapping[str, str]) -> Iterator[None]:
    """Errors with the paths that an operator knows, by those that begin with an id."""
    try:
        yield
    except FilesError as error:
        message = str(error)
        for exact, path in paths.items():
            message = message.replace(exact, path).replace(exact[len(names.server_of(exact)) :], path[len(names.server_of(path)) :])
        raise type(error)(message) from error


def _find_nearest(near: str, directories: Iterable[str]) -> str:
    """The nearest of these directories that is `near` or around it, "" for none."""
    return max((directory for directory in directories if f"{near}/".startswith(f"{directory}/")), key=len, default="")


def _for_owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, OWNER_ONLY)


def _local(path: str) -> str:
    return path[len("file:") :]


def _as_asked(path: str, asked: Mapping[str, str]) -> str:
    """The path that an operator knows, of one at or below those that begin with an id. All others are as the file system spells them."""
    for exact, known in asked.items():
        if exact != known and f"{path}/".startswith(f"{exact}/"):
            return known + path[len(exact) :]
    return path


def _snapshot(found: Mapping[str, Any], asked: str) -> Snapshot:
    """`asked`: the path that was asked for, perhaps by one that begins with an id."""
    if not found["exists"]:
        return Snapshot(exists=False)
    below = _as_asked(found["path"], {found["asked"]: asked}).rstrip("/") + "/"
    infos = []
    last: Mapping[str, int] = {}
    for entry in found["entries"]:
        # There may be a million files alike, and each value that is read is an object of its own. No dict of numbers: whoever creates files
        # chooses the sizes of their blocks, and so where they lie in it.
        entry["owner"], entry["group"] = sys.intern(entry["owner"]), sys.intern(entry["group"])
        for alike in ("block_size", "mode"):
            entry[alike] = last[alike] if last.get(alike) == entry[alike] else entry[alike]
        last = entry
        infos.append(FileInfo(below + entry.pop("name"), **entry))
    return Snapshot(True, found["file_id"], found["mtime_ms"], tuple(infos), found["mode"])


def _found(answer: str, asked: Mapping[str, str]) -> Optional[FileInfo]:
    """A FileInfo from a path and a listing entry, without the entry's own name."""
    found = json.loads(answer)
    if found is None:
        return None
    entry = {key: value for key, value in found["entry"].items() if key != "name"}
    return FileInfo(_as_asked(found["path"], asked), **entry)


def _read_attributes(known: Mapping[str, Any]) -> Attributes:
    names_of = {"owner": sys.intern(known["owner"]), "group": sys.intern(known["group"])}
    lists = {"acl": _entries(known["acl"]), "file_acl": _entries(known["file_acl"]), "xattrs": tuple(known["xattrs"].items())}
    return Attributes(**{**known, **names_of, **lists})


def _entries(acl: Sequence[str]) -> Tuple[str, ...]:
    """Those of a million directories may be alike, and are held for each."""
    return tuple(map(sys.intern, acl))


def _as_json(wanted: Attributes) -> Mapping[str, Any]:
    return {**vars(wanted), "owner": wanted.owner or None, "group": wanted.group or None, "xattrs": dict(wanted.xattrs)}
