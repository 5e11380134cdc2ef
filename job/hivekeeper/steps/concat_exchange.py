"""Exchange some files of a unit by HDFS's concat, one atomic step: they become parts of a file that shows their proved copy from then on.

That file T stands in live with a footer without rows behind the copy, so to every reader it has no rows. `concat(T, [sources, tail])`, the
tail being the copy's own footer, makes the sources vanish and the rows of T appear. Live is never absent and never shows fewer rows. The
tail is needed for that, so who takes it out of live knows that the concat has not happened and never will: that is how every recovery
begins. A name of T or of a tail is never used twice.

Deletes only copies of what is in live.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import FrozenSet, Iterable, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Block, FileInfo, Unit
from hivekeeper.plan import eligibility
from hivekeeper.ports import FilesUnavailable, SourceMissing
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.joins import Join, JoinedFile
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps.checks import Checked, check_often
from hivekeeper.steps.directory_exchange import move_file
from hivekeeper.steps.exchange import Exchanged, Picture
from hivekeeper.steps.places import ask, find_moved
from hivekeeper.steps.put_back import PutBack
from hivekeeper.steps.run_directory import Run, fenced, require_own_directory

# Who lists live while it has both T and its sources, and opens T last, may read their rows twice. Few readers list and open all within
# this time, but a run may stall.
MOST_MS_BESIDE = 50


@dataclass(frozen=True)
class ConcatExchange:
    """`exchange.Means` by concat. Without a certificate nothing was made that could have come to live."""

    run: Run
    unit: PlannedUnit
    certificate: Optional[Certificate]

    @property
    def _join(self) -> Join:
        assert self.unit.join is not None
        return self.unit.join

    @property
    def _made(self) -> JoinedFile:
        assert self.certificate is not None
        assert self.certificate.join is not None
        return self.certificate.join

    @property
    def _ready(self) -> str:
        return self.run.paths.unit("ready", self.unit.number)

    def _in_live(self, name: str) -> str:
        return names.join(self.unit.live, name)

    def _taken(self, part: str) -> str:
        return self.run.paths.taken(self.unit.number, part)

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
        return find_moved(self.run, self.unit, self._is_in)

    def rescue(self) -> Tuple[ManifestFile, ...]:
        if not self._is_elsewhere():
            return ()
        outside = find_moved(self.run, self.unit, self._is_in, outside=True)
        there = replace(self, unit=replace(self.unit, unit=outside)) if outside else None
        return there.keep_departed() if there and there._is_wrong() else ()

    def _is_elsewhere(self) -> bool:
        """Whether what the run had put into live is not there, but exists. Perhaps in a trash. Mostly one call tells: T is there."""
        if self.certificate is None or self._is_in(self.unit.live) or self._is_all_aside():
            return False
        files, directory = self.run.files, self._put_back.directory_id
        # The file itself exists in any case while it waits to go to live.
        waits = files.stat(names.join(self._ready, self._join.file)) is not None
        parts = [self._made.tail_id] if waits else [self._made.file_id, self._made.tail_id]
        return any(files.is_anywhere(self.run.table.location, known) for known in ([directory] if directory else parts))

    def _is_all_aside(self) -> bool:
        """Whether nothing that the run makes is in live, wherever that was moved, and nothing waits to go back there."""
        if self._put_back.is_set_aside():
            return True
        ready, aside = self._look_aside()
        parts = {self._join.file: "file", self._join.tail: "tail", self._join.beside: "beside"}
        places = [(names.join(self._ready, name), self._taken(part)) for name, part in parts.items() if name]
        return not ready or all(not aside.isdisjoint(both) for both in places)

    def _is_in(self, directory: str) -> bool:
        """Whether a directory is the one that was at live's place: what the run had put there is in it, or T's copies wait to go back."""
        files = self.run.files
        found = files.stat(names.join(directory, self._join.file))
        if found is not None and found.file_id == self._made.file_id:
            return True
        if self._put_back.directory_id:
            return self._put_back.is_from(directory)
        return any(files.stat(names.join(directory, name)) is not None for name in (self._join.tail, self._join.beside) if name)

    def _require_not_moved(self) -> None:
        """Raise FilesUnavailable if live was moved since it was looked for: the next recovery finds it."""
        if self.find_moved():
            raise FilesUnavailable(f"{self.unit.live}: its directory was moved")

    def check(self) -> Checked:
        return check_often(self.run, self.unit, self._ready)

    def exchange(self, checked: Checked) -> Exchanged:  # noqa: ARG002
        files, clock, file = self.run.files, self.run.cluster.clock, self._in_live(self._join.file)
        sources = [self._in_live(source.name) for source in self.unit.manifest]
        # The tail first: until it is in live, recovery need not look there for anything.
        waiting = [self._in_live(name) for name in filter(None, [self._join.tail, self._join.beside])]
        for path in waiting:
            files.rename_exact(names.join(self._ready, names.base(path)), path)
        began_ms = clock.monotonic_ms()
        files.rename_exact(names.join(self._ready, self._join.file), file)
        if clock.monotonic_ms() - began_ms > MOST_MS_BESIDE:
            return Exchanged(Reason(Code.KEEPS_CHANGING, f"the file system needs more than {MOST_MS_BESIDE} ms for one rename"))
        files.concat(file, [*sources, *reversed(waiting)])
        if not self._is_wrong():
            self._require_not_moved()
            return Exchanged(nothing_late=True)
        why = Reason(Code.CHANGED_MEANWHILE, "a file was replaced while it was joined, or the result cannot be read")
        return Exchanged(why, aside=self.put_back())

    def picture(self) -> Picture:
        """Takes the tail away first, if it is in live. `incoming` with `left`: T is not what was planned."""
        # What T took is set aside: `ready`, which tells about the tail, may be gone.
        is_aside = self.certificate is not None and self._put_back.is_set_aside()
        left = is_aside or (not self._is_withdrawn() and self._has_sources())
        incoming = not left or is_aside or self._is_wrong()
        self._require_not_moved()
        seen = self.run.files.look([self.unit.live])[self.unit.live]
        return Picture(left, (), incoming, seen.entries if seen.exists else None)

    def holds(self, expected: Mapping[str, int], entries: Sequence[FileInfo]) -> bool:
        return manifests.holds(expected, entries) and self._blocks() == self._planned_blocks()

    def bring_in(self) -> None:
        raise AssertionError("the files of a join come in when the others leave, in one step")

    def put_back(self) -> Tuple[ManifestFile, ...]:
        """Give each file that T took a file of its own again, under its old name; T goes when all are complete aside.

        For a few milliseconds their rows are absent: whoever replaced them does not do that in one step either.
        """
        back = self._put_back
        if not back.is_set_aside():
            joined = self._find_own()
            if joined is not None:
                back.copy_out(joined)
                self._take(joined.path, "file")
            taken = self._find_taken()
            if taken is not None and self._is_own(taken):
                return back.give_back()
            if taken is None:
                # Whoever removed T has removed what it took, unless it went with its directory.
                self._require_not_moved()
                if self.run.files.stat(self.unit.live):
                    return ()
        aside = back.set_aside()
        self._return_strange()
        return aside

    def keep_departed(self) -> Tuple[ManifestFile, ...]:
        """The files that T took become a backup of the run; T, if it is in live, stays there."""
        back, joined = self._put_back, self._find_own()
        if joined is not None and not back.is_set_aside():
            back.copy_out(joined)
        return back.set_aside()

    @property
    def _put_back(self) -> PutBack:
        return PutBack(self.run, self.unit, self._join, self._made, self._format)

    def _find_own(self) -> Optional[FileInfo]:
        """T, if it is in live, or the file that has what was joined, because somebody had put it in T's place before."""
        found = self.run.files.stat(self._in_live(self._join.file))
        return found if found is not None and self._is_own(found) else None

    def _is_own(self, found: FileInfo) -> bool:
        return found.file_id == self._made.file_id or self._has_taken(self.run.files.blocks(found.path).get(found.name, ()))

    def _find_taken(self) -> Optional[FileInfo]:
        return self.run.files.stat(self._taken("file"))

    def _return_strange(self) -> None:
        """Return to live what somebody put in T's place just before it was taken out of there: nothing else shows its rows."""
        found = self._find_taken()
        if found is not None and not self._is_own(found):
            move_file(self.run.files, found.path, self.unit.live, self._join.file)

    def _has_taken(self, blocks: Iterable[Block]) -> bool:
        ours = {block.id for part in (*self._join.blocks, self._made.end) for block in part}
        return any(block.id in ours for block in blocks)

    def carry_over(self, expected: Mapping[str, int]) -> Tuple[str, ...]:  # noqa: ARG002
        """Other files of live were never away."""
        return ()

    def settle_live(self) -> Tuple[FileInfo, ...]:
        return self.run.files.look([self.unit.live])[self.unit.live].entries

    def give_up(self) -> None:
        """Take out of live what has no rows there, the tail first."""
        if self.certificate is None or (not self._is_withdrawn() and self._has_sources()):
            self._require_not_moved()
            return
        found, made = self.run.files.stat(self._in_live(self._join.file)), self._made
        if self._join.beside:
            # Before T, which tells a recovery that there is something to give up.
            self._take(self._in_live(self._join.beside), "beside")
        if found is not None and (found.file_id, found.length) == (made.file_id, made.head_bytes):
            self._take(found.path, "file")
        self._return_strange()
        self._require_not_moved()
        self.run.files.delete_tree(self._ready)

    def _take(self, path: str, part: str) -> bool:
        """Whether it was there. Raises Fenced if another run took this one over."""
        try:
            self.run.files.rename_exact(path, self._taken(part))
        except SourceMissing:
            require_own_directory(self.run)
            return False
        return True

    def _is_withdrawn(self) -> bool:
        """Whether the tail is aside; takes it out of live if it is there."""
        return self._is_aside() or self._take(self._in_live(self._join.tail), "tail")

    def _is_aside(self) -> bool:
        """Whether the tail is not in live and was not joined, or what was joined has been put back or set aside."""
        if self.certificate is None:
            return True
        ready, aside = self._look_aside()
        # `ready` stays when its files leave it: without it they were never there, or are given up.
        return not ready or not aside.isdisjoint([names.join(self._ready, self._join.tail), self._taken("tail")])

    def _look_aside(self) -> Tuple[bool, FrozenSet[str]]:
        """Whether the unit's `ready` is there, and the paths in it and in `taken`. Raises Fenced."""
        top, ready, taken = self.run.paths.top, self._ready, self.run.paths.state("taken")
        seen = self.run.files.look([top, ready, taken])
        if not seen[top].exists:
            raise fenced(self.run)
        return seen[ready].exists, frozenset(entry.path for place in (ready, taken) for entry in seen[place].entries)

    def _has_sources(self) -> bool:
        """Whether the tail, which is not in live any more, was joined. Else somebody has deleted it."""
        # T goes to live after the tail, so it is in `ready` if it was never there.
        if self.run.files.stat(names.join(self._ready, self._join.file)) is not None:
            return False
        found = self._find_own()
        if found is not None:
            return found.length > self._made.head_bytes or found.file_id != self._made.file_id
        # It was put back, or overwritten: the sources tell.
        _, gone = manifests.find_present(self.unit.manifest, self.settle_live())
        return bool(gone)

    def _blocks(self) -> Tuple[Block, ...]:
        return self.run.files.blocks(self._in_live(self._join.file)).get(self._join.file, ())

    def _planned_blocks(self) -> Tuple[Block, ...]:
        return self._join.planned_blocks(self._made)

    def _is_wrong(self) -> bool:
        """Whether T is not what was planned. Concat goes by names, and somebody may have replaced a file since the check; and readers must
        find the copy's rows. A file that somebody has written to since is not ours any more.
        """
        if self._find_taken() is not None:
            return True
        found = self._find_own()
        if found is None:
            return False
        blocks, planned = self._blocks(), self._planned_blocks()
        if blocks == planned:
            return not self._shows_copy(found)
        return self._has_taken(blocks) and not is_changed_later(blocks, planned)

    def _shows_copy(self, file: FileInfo) -> bool:
        assert self.certificate is not None
        groups = self.run.cluster.rows.footers(self._format, {0: [file]}, by_identity=True)[0].groups
        expected = (self.certificate.forms[0].identity, self.certificate.rows)
        return [(group.form.identity, group.row_count) for group in groups] == [expected]

    @property
    def _format(self) -> str:
        return eligibility.format_of(self.run.table.storage) or ""


def is_changed_later(blocks: Sequence[Block], planned: Sequence[Block]) -> bool:
    """Whether somebody has written to a file, or cut it, that consisted of the planned blocks.

    Only its end changes then: a block that is written to keeps its id. No concat makes it shorter, because it takes no empty file.
    """
    same = min(len(blocks), len(planned))
    return blocks[: same - 1] == planned[: same - 1] and [block.id for block in blocks[same - 1 : same]] == [planned[same - 1].id]
