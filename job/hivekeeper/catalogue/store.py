"""The files of the catalogue: read its newest state, and replace parts of it in one commit.

A change writes new files first, each under a name of its own, then one commit that names all files of the component: readers of the
commit see all of a change or nothing. Two writers never put in place the same number; the second one begins again from the other's state.
Changes nothing outside the catalogue's directory.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, field, replace
from itertools import takewhile
from types import MappingProxyType
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.catalogue import commits
from hivekeeper.catalogue.columns import Component
from hivekeeper.catalogue.commits import DELETE, OVERWRITE, PURGE, Commit, DataFile
from hivekeeper.errors import NeedsInvestigation, Refused, Unusable
from hivekeeper.model import FileInfo, Guard, Snapshot
from hivekeeper.names import RunId
from hivekeeper.plan import ownership
from hivekeeper.ports import Cluster, FilesError, FilesUnavailable, Row, SourceMissing, SourceReplaced, TargetExists
from hivekeeper.reasons import Code
from hivekeeper.runlog import strict
from hivekeeper.runlog.namenode_time import ask_time
from hivekeeper.runlog.store import why_not_trusted
from hivekeeper.runlog.strict import NewerRecord, UnreadableRecord

log = logging.getLogger(__name__)

# Writers of the same component that end at the same time wait for each other's commits.
MOST_TRIES = 20
LONGEST_WAIT_MS = 500
# A line for each file, of about 300 bytes.
MOST_COMMIT_BYTES = 64 * 2**20
# The group reads: who may is decided by the group of the base path, which HDFS gives to everything below it.
READABLE = Guard(0o750, 0o640)
# A directory that no commit names, and that no writer can still be about to name. Commits stay as long, too: a number must not become free
# again while a writer that is to take it works.
ABANDONED_AFTER_MS = 86_400_000


@dataclass(frozen=True)
class Part:
    """The new content of a part: the rows there were, without those that `without` names, then `rows`."""

    name: str
    without: Sequence[Tuple[str, ...]]
    rows: Callable[[], Iterable[Row]] = field(default=tuple)
    # None of the rows that there were.
    is_whole: bool = False


@dataclass(frozen=True)
class Store:
    """One component at its place. The cluster is in the catalogue's jail."""

    cluster: Cluster
    component: Component
    top: str
    run: RunId
    trusted: Tuple[str, ...] = ()
    expire_after_ms: Optional[int] = None
    # The places that nobody else can exchange, as was found by this or another component of the same catalogue.
    fixed: Set[str] = field(default_factory=set, compare=False)

    @property
    def log(self) -> str:
        return names.join(self.top, "log")

    @property
    def data(self) -> str:
        return names.join(self.top, "data")

    # ---- reading

    def newest(self) -> Tuple[int, Optional[Commit]]:
        """The number and content of the newest commit; -1 and None where there is none. Raises Refused, NeedsInvestigation, FilesError."""
        for _ in range(MOST_TRIES):
            found = _versions(self._look())
            if not found:
                return -1, None
            version = max(found)
            try:
                return version, self._read(found[version])
            except SourceMissing:
                # It expired since it was listed: there is a newer one.
                continue
        raise Unusable(f"{self.log}: commits disappear while they are read", next="find out who removes them")

    def is_there(self) -> bool:
        """Whether it has a commit. Raises NeedsInvestigation if others may have put it there."""
        if not _versions(self._look()):
            return False
        self._require_own()
        return True

    def _look(self) -> Snapshot:
        """The directory of the commits."""
        return self.cluster.files.look([self.log])[self.log]

    def _read(self, file: FileInfo) -> Commit:
        self._require_own()
        # What was listed before may lie in another directory, which somebody had put here and taken away again.
        self._require_trusted(file)
        try:
            if file.length > MOST_COMMIT_BYTES:
                raise strict.foreign(file.path, "", f"it has {file.length} bytes, more than {MOST_COMMIT_BYTES}")
            lines = strict.lines_of(self.cluster.files.read_pieces(file), file.path)
            return commits.from_lines(lines, file.path, self.component.part)
        except NewerRecord as error:
            raise Refused(str(error), code=Code.NEWER_LOG, state=_UNTOUCHED, next="use that version, or a later one") from error
        except (UnreadableRecord, SourceReplaced) as error:
            raise NeedsInvestigation(
                str(error), code=Code.CATALOGUE_UNREADABLE, state=_UNTOUCHED, next=f"look at the file; {BEGIN_ANEW}"
            ) from error

    def _require_trusted(self, file: FileInfo) -> None:
        """Raise NeedsInvestigation if others may have written this file."""
        why = why_not_trusted(self.cluster.files, file, self.trusted)
        if why:
            raise NeedsInvestigation(
                f"{why}: it was put in the place of a commit that had been checked",
                code=Code.RECORDS_OF_ANOTHER,
                state="no table was touched, and nothing that lies there was believed",
                next="find out who exchanges directories beside the catalogue",
            )

    def _require_own(self) -> None:
        """Raise NeedsInvestigation if others may have written anything here."""
        files, place = self.cluster.files, names.parent(self.top)
        self._require_fixed(place)
        # Only who may exchange it could give that right to others now.
        self.fixed.add(place)
        for one in (*files.exposed(place, 0), *files.exposed(self.top, 2)):
            others = ownership.writers(one, self.trusted)
            if not one.is_ours and one.owner not in self.trusted:
                others = [one.owner, *others]
            if others:
                raise NeedsInvestigation(
                    f"{one.path} belongs to {one.owner} and may be written by {', '.join(others)}",
                    code=Code.RECORDS_OF_ANOTHER,
                    state="no table was touched, and nothing that lies there was believed",
                    next="give the catalogue a directory where nobody else may write, or name its owner in trusted_owners",
                )

    def _require_fixed(self, place: str) -> None:
        """Raise NeedsInvestigation if others may exchange this directory. What is not there yet has to be looked at again."""
        if place in self.fixed:
            return
        files = self.cluster.files
        why = ownership.why_exchangeable(files.way_to(names.parent(place)), files.user_at(place), self.trusted)
        if why:
            raise NeedsInvestigation(
                f"catalogue.base_path: {why.what}",
                code=why.code,
                state="no table was touched, and nothing that lies there was believed",
                next=why.next,
            )

    def rows(self, columns: Sequence[str], only: Mapping[str, str] = MappingProxyType({})) -> Iterator[Row]:
        """The rows of the newest state that have these texts in these columns, in the columns asked for. Both may name the part's."""
        commit = self.newest()[1]
        wanted = {column: self.component.columns[column] for column in columns if column != self.component.part}
        filters = {column: text for column, text in only.items() if column != self.component.part}
        for file in commit.files if commit else ():
            if file.part == only.get(self.component.part, file.part):
                for row in self.cluster.row_files.read(names.join(self.top, file.path), wanted, filters):
                    cells = {**dict(zip(wanted, row)), self.component.part: file.part}
                    yield tuple(cells[column] for column in columns)

    # ---- changing

    def change(self, operation: str, parts: Callable[[Optional[Commit]], Iterable[Part]]) -> Tuple[int, Commit]:
        """Commit new contents of some parts; all other parts stay. `parts` is asked again if another writer was faster.

        Returns the newest state and its number. Raises Refused, NeedsInvestigation, Unusable, FilesError.
        """
        self._prepare()
        for number in range(MOST_TRIES):
            version, before = self._before(operation)
            made = self._write_all(operation, before, parts)
            if made is not None:
                commit, written, is_new = made
                if not is_new:
                    return version, commit
                own = self._write_commit(commit, written)
                if self._put(version + 1, commit, own):
                    self._remove_expired(version + 1, commit, before)
                    return version + 1, commit
                self._discard(written)
            self.cluster.clock.sleep_ms(min(LONGEST_WAIT_MS, 10 * 2**number))
        raise Unusable(f"{self.log}: other runs commit all the time", state=_UNTOUCHED, next="run again later")

    def _before(self, operation: str) -> Tuple[int, Optional[Commit]]:
        """A purge needs no readable state."""
        if operation != PURGE:
            return self.newest()
        try:
            return self.newest()
        except (Refused, NeedsInvestigation):
            return max(_versions(self._look())), None

    def _prepare(self) -> None:
        files = self.cluster.files
        places = [names.parent(self.top), self.top, self.log, self.data]
        self._require_fixed(places[0])
        for place in [place for place, seen in files.look(places, 0).items() if not seen.exists]:
            made = self._make(place)
            if made:
                files.guard({place: replace(made, file_mode=None)})
        self._require_own()

    def _make(self, directory: str) -> Optional[Guard]:
        """Make a directory, and say what the group is to read: just the one that was made. Whoever may write around it can put another
        table's in its place. None if there is something in it: another run has made it.
        """
        self.cluster.files.make_directory(directory)
        made = self.cluster.files.look([directory], 1)[directory]
        return None if made.entries else replace(READABLE, file_id=made.file_id)

    def _write_all(
        self, operation: str, before: Optional[Commit], parts: Callable[[Optional[Commit]], Iterable[Part]]
    ) -> Optional[Tuple[Commit, List[DataFile], bool]]:
        """The commit to put in place, the new files that it names, and whether it changes anything. None if the state that was read has
        expired meanwhile. Whatever fails leaves no new file: nobody knows of them yet.
        """
        known = before.by_part if before else {}
        replaced: Set[str] = set()
        written: List[DataFile] = []
        try:
            for part in parts(before):
                file = self._write(part, None if part.is_whole else known.get(part.name))
                written += [file] if file else []
                replaced.add(part.name)
            if before is not None and not replaced and operation in (OVERWRITE, DELETE):
                return before, [], False
            return self._after(operation, before, replaced, written), written, True
        except SourceMissing as error:
            log.info("step=catalogue component=%s again reason=%r", self.component.name, str(error))
            self._discard(written)
            return None
        except BaseException:
            self._discard(written)
            raise

    def _write(self, part: Part, source: Optional[DataFile]) -> Optional[DataFile]:
        """The file of a part; None if it would have no row."""
        files, name = self.cluster.files, str(uuid.uuid4())
        directory = names.join(self.data, name)
        if files.stat(directory) is not None:
            raise TargetExists(f"{directory}: the name of a new file is taken")
        made = self._make(directory)
        if made is None:
            raise TargetExists(f"{directory}: there is something in a new directory")
        path = names.join(directory, f"{name}.parquet")
        try:
            old = names.join(self.top, source.path) if source else ""
            rows = self.cluster.row_files.write(path, self.component.columns, part.rows(), old, self.component.found_by, part.without)
            files.guard({directory: made})
            told = files.stat(path)
        except BaseException:
            self._discard_directory(directory)
            raise
        if not rows or told is None:
            self._discard_directory(directory)
            return None
        return DataFile(part.name, f"data/{name}", told.length, rows, told.mtime_ms)

    def _after(self, operation: str, before: Optional[Commit], replaced: Iterable[str], written: Iterable[DataFile]) -> Commit:
        now_ms, gone = self._ask_time(), set(replaced)
        known = before.files if before else ()
        removed = {place: since for place, since in (before.removed if before else {}).items() if not self._is_expired(since, now_ms)}
        removed.update({file.place: now_ms for file in known if file.part in gone})
        staying = (file for file in known if file.part not in gone)
        files = tuple(sorted((*staying, *written), key=lambda file: file.part))
        removed = self._forget_oldest(removed, commits.MOST_FILES - len(files))
        return Commit(str(uuid.uuid4()), operation, self.run, now_ms, files, removed)

    def _ask_time(self) -> int:
        """The NameNode's, as all writers share it. Raises SourceMissing if somebody takes away the file that is made for that."""
        waiting = self._unfinished(str(uuid.uuid4()))
        now_ms = ask_time(self.cluster.files, waiting)
        self.cluster.files.delete_file(waiting)
        if now_ms is None:
            raise SourceMissing(f"{waiting}: it is gone just after it was made")
        return now_ms

    def _unfinished(self, commit_id: str) -> str:
        """Where a commit waits for its number."""
        return names.join(self.top, f"commit-{commit_id}.json")

    def _forget_oldest(self, removed: Dict[str, int], most: int) -> Dict[str, int]:
        """What was removed, without the oldest if a commit would name more than any command reads. They go early, after this commit; or are
        left for ever, where nothing expires.
        """
        if len(removed) <= most:
            return removed
        oldest = set(sorted(removed, key=lambda place: (removed[place], place))[: len(removed) - most])
        log.warning("step=catalogue component=%s reason='too many replaced files: %d go early'", self.component.name, len(oldest))
        return {place: since for place, since in removed.items() if place not in oldest}

    def _write_commit(self, commit: Commit, written: Iterable[DataFile]) -> str:
        """Returns where it waits."""
        own = self._unfinished(commit.id)
        text = commits.to_text(commit, self.component.name, self.component.part, self.cluster.user, self.cluster.host)
        try:
            self.cluster.files.write_new(own, text, READABLE.file_mode or 0)
        except BaseException:
            self._discard(written)
            raise
        return own

    def _put(self, version: int, commit: Commit, own: str) -> bool:
        """Put a commit in place; False if another writer had this number. After any error it may be in place, and so the files that it
        names stay.
        """
        files, target = self.cluster.files, self._entry(version)
        try:
            files.rename_exact(own, target)
        except TargetExists:
            files.delete_file(own)
            return False
        except (FilesUnavailable, SourceMissing):
            # It may have been done although its answer was lost, also if the client has asked twice.
            if not self._is_in_place(target, commit):
                raise
        # The number is also free if it was taken, and has expired since. They expire oldest first, and not before a day.
        if version > 0 and files.stat(self._entry(version - 1)) is None:
            raise Unusable(
                f"{target}: this run has slept so long that its commit may have come too late",
                state="no table was touched, and no other commit; nothing was removed",
                next="run again",
            )
        return True

    def _is_in_place(self, target: str, commit: Commit) -> bool:
        file = self.cluster.files.stat(target)
        return file is not None and self._read(file).id == commit.id

    def _entry(self, version: int) -> str:
        return names.join(self.log, names.log_entry(version))

    def _discard(self, written: Iterable[DataFile]) -> None:
        for file in written:
            self._discard_directory(names.join(self.top, file.place))

    def _discard_directory(self, directory: str) -> None:
        """Remove a directory of rows with the one file that it has, never as a tree: whoever may write beside the catalogue may have put
        another one in its place.
        """
        files = self.cluster.files
        try:
            files.delete_file(names.join(directory, f"{names.base(directory)}.parquet"))
            files.delete_file(directory)
        except FilesError as error:
            log.warning("step=catalogue component=%s left=%r reason=%r", self.component.name, directory, str(error))

    # ---- expiry

    def _is_expired(self, since_ms: int, now_ms: int) -> bool:
        return self.expire_after_ms is not None and now_ms - since_ms > self.expire_after_ms

    def _remove_expired(self, version: int, commit: Commit, before: Optional[Commit]) -> None:
        """Remove, after a commit, what it and its readers need no more: rows that were removed long ago, older commits, and what a killed
        writer left. A writer that reads rows which go meanwhile begins again.

        A failure leaves them for the next change.
        """
        if self.expire_after_ms is None:
            return
        try:
            for entry, directory in self._find_expired(version, commit, before):
                if entry.is_dir:
                    self._discard_directory(entry.path)
                else:
                    # Every table's log has entries of the same names as the commits, and may come to this path.
                    self.cluster.files.delete_file(entry.path, directory.file_id, entry.file_id)
        except FilesError as error:
            log.warning("step=expire-catalogue failed component=%s reason=%r", self.component.name, str(error))

    def _find_expired(self, version: int, commit: Commit, before: Optional[Commit]) -> List[Tuple[FileInfo, Snapshot]]:
        """What goes after a commit, each with the directory that has shown it."""
        log_directory = self._look()
        listed = _versions(log_directory)
        if version not in listed:
            # This run has slept so long that its own commit has expired.
            return []
        # All times are the NameNode's: what later commits name is younger than this one, whenever this run goes on.
        now_ms = listed[version].mtime_ms
        older = [entry for number, entry in sorted(listed.items()) if number < version]
        # None before an older one: see _put.
        expired = [(entry, log_directory) for entry in takewhile(lambda entry: self._is_abandoned(entry, now_ms), older)]
        named = {file.place for file in commit.files} | commit.removed.keys()
        dropped = before.removed.keys() - named if before else frozenset()
        found = self.cluster.files.look([self.data, self.top])
        for entry in found[self.data].entries:
            place = f"data/{entry.name}"
            is_over = place in dropped or self._is_abandoned(entry, now_ms)
            if commits.PLACE.fullmatch(place) and place not in named and is_over:
                expired.append((entry, found[self.data]))
        for entry in found[self.top].entries:
            if commits.UNFINISHED.fullmatch(entry.name) and self._is_abandoned(entry, now_ms):
                expired.append((entry, found[self.top]))
        return expired

    def _is_abandoned(self, entry: FileInfo, now_ms: int) -> bool:
        """Whether something has been there so long that no writer, and no reader, is about to use it."""
        return now_ms - entry.mtime_ms > ABANDONED_AFTER_MS and self._is_expired(entry.mtime_ms, now_ms)


def _versions(log_directory: Snapshot) -> Dict[int, FileInfo]:
    """The commits by their numbers."""
    found = {names.log_version(entry.name): entry for entry in log_directory.entries if not entry.is_dir}
    return {version: entry for version, entry in found.items() if version is not None}


_UNTOUCHED = "no table was touched"
BEGIN_ANEW = "`hivekeeper catalogue purge` begins anew"
