"""Where the parts of one joined unit are, and whether its joined file T is what was planned (concat_exchange.py changes things).

Whoever renames or moves a partition takes along what a run has put there. So T, its tail and their directory are known by their ids.

Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterable, Iterator, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Block, FileInfo, Unit
from hivekeeper.plan import eligibility
from hivekeeper.plan.own_place import is_below
from hivekeeper.ports import Files, FilesUnavailable, NoPermission, NotPossible
from hivekeeper.runlog import manifests
from hivekeeper.runlog.joins import Join, JoinedFile
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps.checks import why_too_many
from hivekeeper.steps.places import find_at, is_left
from hivekeeper.steps.put_back import PutBack, blocks_of
from hivekeeper.steps.run_directory import Run, fenced
from hivekeeper.steps.unfinished import look_whole

# Asked for in one answer, of several files. Whoever may write to live can make files of a block for each byte.
MOST_BLOCKS_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class JoinedUnit:
    """One unit of a run. Without a certificate nothing was made that could have come to live."""

    run: Run
    unit: PlannedUnit
    certificate: Optional[Certificate]

    @property
    def join(self) -> Join:
        assert self.unit.join is not None
        return self.unit.join

    @property
    def made(self) -> JoinedFile:
        assert self.certificate is not None
        assert self.certificate.join is not None
        return self.certificate.join

    @property
    def ready(self) -> str:
        return self.run.paths.unit("ready", self.unit.number)

    def in_live(self, name: str) -> str:
        return names.join(self.unit.live, name)

    def taken(self, part: str) -> str:
        return self.run.paths.taken(self.unit.number, part)

    @property
    def back(self) -> PutBack:
        return PutBack(self.run, self.unit, self.join, self.made, self._format)

    @property
    def _format(self) -> str:
        return eligibility.format_of(self.run.table.storage) or ""

    # ---- where live is

    def find_moved(self) -> Optional[Unit]:
        """Raises FilesUnavailable if live was moved and the metastore does not know that yet."""
        place = self._find_place()
        moved = find_at(self.run, self.unit, place) if place else None
        if place is None or moved or self.run.files.stat(self.unit.live) is not None:
            return moved
        if not is_left(self.run, self.unit):
            what = "its directory was moved, and the metastore has the partition at its old place; set its location, or move it back"
            raise FilesUnavailable(f"{self.unit.live}: {what}")
        # Perhaps only since it was looked for: a directory is moved first.
        place = self._find_place()
        return find_at(self.run, self.unit, place) if place else None

    def is_left(self) -> bool:
        """Whether live is not the directory any more whose files were to be joined, and that is no partition of the table either."""
        live = self.run.files.stat(self.unit.live)
        return (live is None or live.file_id != self._directory_id) and self.find_moved() is None

    def require_not_moved(self) -> None:
        """Raise FilesUnavailable if live was moved since it was looked for: the next recovery finds it."""
        if self.find_moved():
            raise FilesUnavailable(f"{self.unit.live}: its directory was moved")

    def require_in_place(self) -> int:
        """The id of the directory whose files are joined. Raises FilesUnavailable if it is not live: the next recovery finds it."""
        live, directory_id = self.run.files.stat(self.unit.live), self._directory_id
        if live is None or live.file_id != directory_id:
            raise FilesUnavailable(f"{self.unit.live}: its directory was moved")
        return directory_id

    def is_directory(self, directory_id: Optional[int]) -> bool:
        """Whether it is the one whose files are joined."""
        return directory_id == self._directory_id

    def find_strayed(self) -> Optional[JoinedUnit]:
        """The same unit where the file is that has what was joined, if nothing may be changed there, because that is no partition's place
        in the table; or live itself, if the file has another name there.
        """
        if self.certificate is None or self._is_known_in_live() or self.back.is_set_aside() or self._is_all_aside():
            return None
        path = self._find_joined()
        if path is None or is_below(path, self.run.control.top):
            return None
        place, name = names.parent(path), names.base(path)
        if name == self.join.file and (place == self.unit.live or self._is_moved_to(place)):
            return None
        return self._at(place, name)

    def _is_known_in_live(self) -> bool:
        """Whether what live has at T's place tells all: it was joined, or the tail still waits for that. T may have come back there after a
        substitute was joined, and so may the tail after another file was joined in its place: then the sources are gone.
        """
        own = self.find_own()
        if own is None or self._is_joined(own):
            return own is not None
        is_waiting = self.run.files.stat(self.in_live(self.join.tail)) is not None or self.is_aside()
        return is_waiting and not self._is_source_gone()

    def _is_source_gone(self) -> bool:
        """Not asked where so much has come to live that a listing may be only a part."""
        entries = self.run.files.look([self.unit.live], self.run.most_listed([self.unit]))[self.unit.live].entries
        _, gone = manifests.find_present(self.unit.manifest, entries)
        return bool(gone) and not why_too_many(self.run, self.unit, len(entries))

    def _is_moved_to(self, place: str) -> bool:
        """Whether find_moved finds live there: not if T alone went to another partition."""
        return place == self._find_place() and find_at(self.run, self.unit, place) is not None

    def require_gone(self) -> None:
        """Raise FilesUnavailable if T or its substitute, which was not found in live, is there, or somewhere else with what it was not to
        take: live was away just when it was looked at, or was moved since. The next recovery finds that.
        """
        path = self._find_joined()
        if path is None or is_below(path, self.run.control.top) or self.back.is_set_aside():
            return
        there = self._at(names.parent(path), names.base(path))
        own = there.find_own()
        if path == self.in_live(self.join.file) or own is None or there.is_file_wrong(own):
            raise FilesUnavailable(f"{path}: it was moved just now")

    def require_tail_gone(self) -> None:
        """Raise FilesUnavailable if the tail, which was not found in live, is there."""
        path = self.in_live(self.join.tail)
        if self._find_path(self.made.tail_id, self.join.tail) == path:
            raise FilesUnavailable(f"{path}: it was moved just now")

    def _at(self, place: str, name: str) -> JoinedUnit:
        unit = replace(self.unit, unit=replace(self.unit.unit, live=place), join=replace(self.join, file=name))
        return replace(self, unit=unit)

    def _find_place(self) -> Optional[str]:
        """Where the directory is that live was, if what the run had put there is neither in live nor aside; perhaps in a trash. Mostly one
        call tells: T is in live.
        """
        if self.certificate is None or self._is_in_live() or self._is_all_aside():
            return None
        place = self._find_directory()
        return place if place != self.unit.live else None

    def _find_directory(self) -> Optional[str]:
        return self.run.find_path(self._directory_id, self.unit.live)

    @property
    def _directory_id(self) -> int:
        return self.back.directory_id or self.made.directory_id

    def _find_joined(self) -> Optional[str]:
        """The path of T, or of its substitute: a file that somebody had put in T's place before the concat, which joined that one."""
        path = self._find_path(self.made.file_id, self.join.file)
        if path is not None and is_below(path, self.run.control.top):
            return path
        return self._find_taker(path) or path

    def _find_taker(self, path: Optional[str]) -> Optional[str]:
        """The path of T, which is at `path` if it is anywhere, or of its substitute, if that one has what was joined."""
        found = self.run.files.stat(path) if path is not None else None
        is_joined = found is not None and found.file_id == self.made.file_id and self._has_taken(found)
        return path if is_joined else self._find_substitute()

    def _find_substitute(self) -> Optional[str]:
        """It is known only by its blocks, so it is looked for nowhere but in the directory that live was."""
        place, files = self._find_directory(), self.run.files
        if place is None:
            return None
        try:
            seen = look_whole(self.run, self.unit, place)
        except NoPermission:
            # Like one that was moved where this user may not go.
            return None
        if seen.file_id != self._directory_id:
            raise FilesUnavailable(f"{place}: it was moved just now")
        ids, owners = {entry.name: entry.file_id for entry in seen.entries}, self._find_owners()
        found = _blocks_of_some(files, place, ids)
        return next((names.join(place, name) for name, blocks in found if _has_others(ids.get(name, 0), blocks, owners)), None)

    def _find_owners(self) -> Mapping[int, int]:
        """For each block that T was to take, by its id, the id of the file that has it until then."""
        parts = [*zip((source.file_id for source in self.unit.manifest), self.join.blocks)]
        parts += [(self.made.tail_id, self.made.tail), (self.made.beside_id, self.made.beside)]
        return {block.id: file_id for file_id, blocks in parts for block in blocks}

    def require_joined(self, own: FileInfo) -> None:
        """Raise FilesUnavailable if this is T without the sources, though they were joined: it came back just now to the place of its
        substitute, which the next recovery finds.
        """
        if not self._is_joined(own):
            raise FilesUnavailable(f"{own.path}: it was moved just now")

    def require_not_joined(self) -> None:
        """Raise FilesUnavailable if T is in live, but the sources are in its substitute, whatever the tail tells. The next recovery finds
        that.
        """
        if self.find_own() is not None and not self.back.is_set_aside() and self._is_source_gone():
            self._require_no_substitute()

    def _require_no_substitute(self) -> None:
        """Raise FilesUnavailable if one was joined, though T is in live: T came back just now. The next recovery finds that."""
        path = self._find_substitute()
        if path is not None:
            raise FilesUnavailable(f"{path}: it was moved just now")

    def _find_path(self, file_id: int, name: str) -> Optional[str]:
        return self.run.find_path(file_id, self.in_live(name))

    def _is_all_aside(self) -> bool:
        """Whether nothing that the run makes is in live, wherever that was moved, and nothing waits to go back there."""
        ready, aside = self._look_aside()
        if self._choose_strange(aside):
            return False
        if not ready or self.back.is_set_aside():
            return True
        places = [(names.join(self.ready, name), self.taken(part)) for part, name in self.parts.items()]
        return not _are_copied(aside) and all(not aside.keys().isdisjoint(both) for both in places)

    def _is_in_live(self) -> bool:
        """Whether live is the directory that the run knows: what it had put there is in it, or T's copies wait to go back to it."""
        files = self.run.files
        if self.find_own() is not None:
            return True
        live = files.stat(self.unit.live)
        if live is not None and live.file_id == self._directory_id:
            return True
        if self.back.directory_id:
            return False
        # They came to another one if live was exchanged just before.
        return any(files.stat(self.in_live(name)) is not None for name in (self.join.tail, self.join.beside) if name)

    # ---- the tail

    def is_aside(self) -> bool:
        """Whether the tail is not in live and nothing was joined, or what was joined has been put back or set aside."""
        if self.certificate is None:
            return True
        ready, aside = self._look_aside()
        # `ready` stays when its files leave it: without it they were never there, or are given up.
        if not ready:
            return True
        if _are_copied(aside) or aside.keys().isdisjoint([names.join(self.ready, self.join.tail), self.taken("tail")]):
            return False
        # Another file may have been joined in the tail's place; not while T waits.
        waits = names.join(self.ready, self.join.file) in aside
        return waits or not any(map(self.has_joined, [self.find_own(), self.find_taken()]))

    def is_given_up(self) -> bool:
        """Whether all that the run makes was taken out of live, if it was there, and deleted."""
        ready, _ = self._look_aside()
        return self.certificate is not None and not ready and not self.back.is_set_aside()

    @property
    def parts(self) -> Mapping[str, str]:
        """What the run puts into live, and its names there."""
        parts = {"file": self.join.file, "tail": self.join.tail, "beside": self.join.beside}
        return {part: name for part, name in parts.items() if name}

    def find_strange(self) -> Mapping[str, FileInfo]:
        """What was taken as T, the tail or the file beside it, because somebody had just put it in their place."""
        return self._choose_strange(self._look_aside()[1])

    def _choose_strange(self, aside: Mapping[str, FileInfo]) -> Mapping[str, FileInfo]:
        taken = {part: aside[self.taken(part)] for part in self.parts if self.taken(part) in aside}
        ids = {"tail": self.made.tail_id, "beside": self.made.beside_id}
        return {part: file for part, file in taken.items() if ids.get(part) != file.file_id and not (part == "file" and self.is_own(file))}

    def _look_aside(self) -> Tuple[bool, Mapping[str, FileInfo]]:
        """Whether the unit's `ready` is there, and what is in it and in `taken`, by path. Raises Fenced."""
        top, ready, taken = self.run.paths.top, self.ready, self.run.paths.state("taken")
        seen = self.run.files.look([top, ready, taken])
        if not seen[top].exists:
            raise fenced(self.run)
        return seen[ready].exists, {entry.path: entry for place in (ready, taken) for entry in seen[place].entries}

    def has_sources(self, own: Optional[FileInfo]) -> bool:
        """Whether the tail, which is not in live any more, was joined. Else somebody has deleted it. `own`: what find_own has found."""
        # T goes to live after the tail, so it is in `ready` if it was never there.
        _, aside = self._look_aside()
        if names.join(self.ready, self.join.file) in aside:
            return False
        if self.has_joined(self.find_taken()):
            # It is being put back. Sources that are there came back, or are copies of what it had; so may T be, after its substitute.
            return True
        if own is not None and self._is_joined(own):
            return True
        if own is not None:
            self._require_no_substitute()
            return False
        if _are_copied(aside):
            return True
        # It was put back, or overwritten: the sources tell.
        _, gone = manifests.find_present(self.unit.manifest, self.entries())
        # Those that others took the place of just before the concat are all there.
        return bool(gone) or self._find_taker(self._find_path(self.made.file_id, self.join.file)) is not None

    def entries(self) -> Tuple[FileInfo, ...]:
        return look_whole(self.run, self.unit, self.unit.live).entries

    # ---- T

    def find_own(self) -> Optional[FileInfo]:
        """T, if it is in live, or the file that has what was joined, because somebody had put it in T's place before."""
        found = self.run.files.stat(self.in_live(self.join.file))
        return found if found is not None and self.is_own(found) else None

    def _is_joined(self, own: FileInfo) -> bool:
        return own.length > self.made.head_bytes or own.file_id != self.made.file_id

    def has_joined(self, file: Optional[FileInfo]) -> bool:
        return file is not None and self.is_own(file) and self._is_joined(file)

    def find_taken(self) -> Optional[FileInfo]:
        return self.run.files.stat(self.taken("file"))

    def is_own(self, found: FileInfo) -> bool:
        return found.file_id == self.made.file_id or self._has_taken(found)

    def _has_taken(self, file: FileInfo) -> bool:
        """Whether it has what only the concat can have brought there: a source that somebody has moved to T's place is none of these."""
        return _has_others(file.file_id, blocks_of(self.run.files, file), self._find_owners())

    def has_planned_blocks(self) -> bool:
        path, ids = self.in_live(self.join.file), {self.join.file: self.made.file_id}
        return self.run.files.blocks(path, ids=ids).get(self.join.file, ()) == self.join.planned_blocks(self.made)

    def is_wrong(self, own: Optional[FileInfo]) -> bool:
        """Whether T is not what was planned, or is aside for that. `own`: what find_own has found."""
        return self.find_taken() is not None or self.is_file_wrong(own)

    def is_file_wrong(self, own: Optional[FileInfo]) -> bool:
        """Concat goes by names, and somebody may have replaced a file since the check; and readers must find the copy's rows. A file that
        somebody has written to since is not ours any more.
        """
        if own is None:
            return False
        blocks, planned = blocks_of(self.run.files, own), self.join.planned_blocks(self.made)
        if blocks == planned:
            return not self._shows_copy(own)
        return _has_others(own.file_id, blocks, self._find_owners()) and not is_changed_later(blocks, planned)

    def _shows_copy(self, file: FileInfo) -> bool:
        assert self.certificate is not None
        groups = self.run.cluster.rows.footers(self._format, {0: [file]}, by_identity=True)[0].groups
        expected = (self.certificate.forms[0].identity, self.certificate.rows)
        return [(group.form.identity, group.row_count) for group in groups] == [expected]


def _blocks_of_some(files: Files, place: str, ids: Mapping[str, int]) -> Iterator[Tuple[str, Tuple[Block, ...]]]:
    """Of these files of a directory, by name; in answers that are not much larger than for a single one, however many blocks they have."""
    try:
        yield from files.blocks(place, ids=ids, most=MOST_BLOCKS_AT_ONCE).items()
    except NotPossible:
        if len(ids) < 2:
            raise
        some = list(ids.items())
        for half in (some[: len(some) // 2], some[len(some) // 2 :]):
            yield from _blocks_of_some(files, place, dict(half))


def _are_copied(aside: Iterable[str]) -> bool:
    """Whether what T took is copied, as far as the paths in `ready` tell: then it was joined, whatever came to its place or the tail's."""
    return any(names.BACK.fullmatch(names.base(path)) for path in aside)


def _has_others(file_id: int, blocks: Iterable[Block], owners: Mapping[int, int]) -> bool:
    """Whether a file has blocks that another one had before the concat."""
    return any(owners.get(block.id, file_id) != file_id for block in blocks)


def is_changed_later(blocks: Sequence[Block], planned: Sequence[Block]) -> bool:
    """Whether somebody has written to a file, or cut it, that consisted of the planned blocks.

    Only its end changes then: a block that is written to keeps its id. No concat makes it shorter, because it takes no empty file.
    """
    same = min(len(blocks), len(planned))
    return blocks[: same - 1] == planned[: same - 1] and [block.id for block in blocks[same - 1 : same]] == [planned[same - 1].id]
