"""Where the parts of one joined unit are, and whether its joined file T is what was planned (concat_exchange.py changes things).

Whoever renames or moves a partition takes along what a run has put there. So T, its tail and their directory are known by their ids.

Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import FrozenSet, Iterable, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Block, FileInfo, Unit
from hivekeeper.plan import eligibility
from hivekeeper.ports import FilesUnavailable
from hivekeeper.runlog import manifests
from hivekeeper.runlog.joins import Join, JoinedFile
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps.places import ask, find_moved
from hivekeeper.steps.put_back import PutBack
from hivekeeper.steps.run_directory import Run, fenced


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
        if not self._is_elsewhere():
            return None
        moved = find_moved(self.run, self.unit, self._is_in)
        if moved or self.run.files.stat(self.unit.live) is not None:
            return moved
        if not ask(self.run, [self.unit]).changed:
            what = "its directory was moved, and the metastore has the partition at its old place; set its location, or move it back"
            raise FilesUnavailable(f"{self.unit.live}: {what}")
        # Perhaps only since it was looked for: a directory is moved first.
        moved = find_moved(self.run, self.unit, self._is_in)
        outside = None if moved else self.find_outside()
        if outside and outside.is_wrong():
            # What is there is rescued before anything else is done, by the next recovery.
            raise FilesUnavailable(f"{self.unit.live}: its directory was moved out of the table just now")
        return moved

    def find_outside(self) -> Optional[JoinedUnit]:
        """The same unit at a partition's place outside the table's directory, where nothing may be changed."""
        if not self._is_elsewhere():
            return None
        outside = find_moved(self.run, self.unit, self._is_in, outside=True)
        return replace(self, unit=replace(self.unit, unit=outside)) if outside else None

    def require_not_moved(self) -> None:
        """Raise FilesUnavailable if live was moved since it was looked for: the next recovery finds it."""
        if self.find_moved():
            raise FilesUnavailable(f"{self.unit.live}: its directory was moved")

    def _is_elsewhere(self) -> bool:
        """Whether what the run had put into live is not there, but exists. Perhaps in a trash. Mostly one call tells: T is there."""
        if self.certificate is None or self._is_in(self.unit.live) or self._is_all_aside():
            return False
        files, directory = self.run.files, self.back.directory_id
        # The file itself exists in any case while it waits to go to live.
        waits = files.stat(names.join(self.ready, self.join.file)) is not None
        parts = [self.made.tail_id] if waits else [self.made.file_id, self.made.tail_id]
        return any(files.is_anywhere(self.run.table.location, known) for known in ([directory] if directory else parts))

    def _is_all_aside(self) -> bool:
        """Whether nothing that the run makes is in live, wherever that was moved, and nothing waits to go back there."""
        if self.back.is_set_aside():
            return True
        ready, aside = self._look_aside()
        parts = {self.join.file: "file", self.join.tail: "tail", self.join.beside: "beside"}
        places = [(names.join(self.ready, name), self.taken(part)) for name, part in parts.items() if name]
        return not ready or all(not aside.isdisjoint(both) for both in places)

    def _is_in(self, directory: str) -> bool:
        """Whether a directory is the one that was at live's place: what the run had put there is in it, or T's copies wait to go back."""
        files = self.run.files
        found = files.stat(names.join(directory, self.join.file))
        if found is not None and found.file_id == self.made.file_id:
            return True
        if self.back.directory_id:
            return self.back.is_from(directory)
        return any(files.stat(names.join(directory, name)) is not None for name in (self.join.tail, self.join.beside) if name)

    # ---- the tail

    def is_aside(self) -> bool:
        """Whether the tail is not in live and was not joined, or what was joined has been put back or set aside."""
        if self.certificate is None:
            return True
        ready, aside = self._look_aside()
        # `ready` stays when its files leave it: without it they were never there, or are given up.
        return not ready or not aside.isdisjoint([names.join(self.ready, self.join.tail), self.taken("tail")])

    def _look_aside(self) -> Tuple[bool, FrozenSet[str]]:
        """Whether the unit's `ready` is there, and the paths in it and in `taken`. Raises Fenced."""
        top, ready, taken = self.run.paths.top, self.ready, self.run.paths.state("taken")
        seen = self.run.files.look([top, ready, taken])
        if not seen[top].exists:
            raise fenced(self.run)
        return seen[ready].exists, frozenset(entry.path for place in (ready, taken) for entry in seen[place].entries)

    def has_sources(self) -> bool:
        """Whether the tail, which is not in live any more, was joined. Else somebody has deleted it."""
        # T goes to live after the tail, so it is in `ready` if it was never there.
        if self.run.files.stat(names.join(self.ready, self.join.file)) is not None:
            return False
        found = self.find_own()
        if found is not None:
            return found.length > self.made.head_bytes or found.file_id != self.made.file_id
        # It was put back, or overwritten: the sources tell.
        _, gone = manifests.find_present(self.unit.manifest, self.entries())
        return bool(gone)

    def entries(self) -> Tuple[FileInfo, ...]:
        return self.run.files.look([self.unit.live])[self.unit.live].entries

    # ---- T

    def find_own(self) -> Optional[FileInfo]:
        """T, if it is in live, or the file that has what was joined, because somebody had put it in T's place before."""
        found = self.run.files.stat(self.in_live(self.join.file))
        return found if found is not None and self.is_own(found) else None

    def find_taken(self) -> Optional[FileInfo]:
        return self.run.files.stat(self.taken("file"))

    def is_own(self, found: FileInfo) -> bool:
        if found.file_id == self.made.file_id:
            return True
        return self._has_taken(self.run.files.blocks(found.path, ids={found.name: found.file_id}).get(found.name, ()))

    def _has_taken(self, blocks: Iterable[Block]) -> bool:
        ours = {block.id for part in (*self.join.blocks, self.made.end) for block in part}
        return any(block.id in ours for block in blocks)

    def has_planned_blocks(self) -> bool:
        return self._blocks() == self.join.planned_blocks(self.made)

    def _blocks(self) -> Tuple[Block, ...]:
        return self.run.files.blocks(self.in_live(self.join.file)).get(self.join.file, ())

    def is_wrong(self) -> bool:
        """Whether T is not what was planned. Concat goes by names, and somebody may have replaced a file since the check; and readers must
        find the copy's rows. A file that somebody has written to since is not ours any more.
        """
        if self.find_taken() is not None:
            return True
        found = self.find_own()
        if found is None:
            return False
        blocks, planned = self._blocks(), self.join.planned_blocks(self.made)
        if blocks == planned:
            return not self._shows_copy(found)
        return self._has_taken(blocks) and not is_changed_later(blocks, planned)

    def _shows_copy(self, file: FileInfo) -> bool:
        assert self.certificate is not None
        groups = self.run.cluster.rows.footers(self._format, {0: [file]}, by_identity=True)[0].groups
        expected = (self.certificate.forms[0].identity, self.certificate.rows)
        return [(group.form.identity, group.row_count) for group in groups] == [expected]


def is_changed_later(blocks: Sequence[Block], planned: Sequence[Block]) -> bool:
    """Whether somebody has written to a file, or cut it, that consisted of the planned blocks.

    Only its end changes then: a block that is written to keeps its id. No concat makes it shorter, because it takes no empty file.
    """
    same = min(len(blocks), len(planned))
    return blocks[: same - 1] == planned[: same - 1] and [block.id for block in blocks[same - 1 : same]] == [planned[same - 1].id]
