"""Exchange some files of a unit by HDFS's concat, one atomic step: they become parts of a file that shows their proved copy from then on.

That file T stands in live with a footer without rows behind the copy, so to every reader it has no rows. `concat(T, [sources, tail])`, the
tail being the copy's own footer, makes the sources vanish and the rows of T appear. Live is never absent and never shows fewer rows. The
tail is needed for that, so who takes it out of live knows that the concat has not happened and never will: that is how every recovery
begins. A name of T or of a tail is never used twice.

Deletes only copies of what is in live.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Block, FileInfo
from hivekeeper.plan import eligibility
from hivekeeper.ports import SourceMissing
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.joins import Join, JoinedFile, length_of
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps.attributes import dress, like
from hivekeeper.steps.checks import Checked, check_often
from hivekeeper.steps.directory_exchange import move_file
from hivekeeper.steps.exchange import Exchanged, Picture
from hivekeeper.steps.run_directory import Run, fenced, require_own_directory

# Who lists live while it has both T and its sources, and opens T last, may read their rows twice. Few readers list and open all within
# this time, but a run may stall.
MOST_MS_BESIDE = 50


@dataclass(frozen=True)
class Part:
    """Bytes of a joined file."""

    begin: int
    length: int


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
            return Exchanged(nothing_late=True)
        self.put_back()
        return Exchanged(Reason(Code.CHANGED_MEANWHILE, "a file was replaced while it was joined, or the result cannot be read"))

    def picture(self) -> Picture:
        """Takes the tail away first, if it is in live. `incoming` with `left`: T is not what was planned."""
        left = not self._is_withdrawn() and self._has_sources()
        incoming = not left or self._is_wrong()
        seen = self.run.files.look([self.unit.live])[self.unit.live]
        return Picture(left, (), incoming, seen.entries if seen.exists else None)

    def holds(self, expected: Mapping[str, int], entries: Sequence[FileInfo]) -> bool:
        return manifests.holds(expected, entries) and self._blocks() == self._planned_blocks()

    def bring_in(self) -> None:
        raise AssertionError("the files of a join come in when the others leave, in one step")

    def put_back(self) -> None:
        """Give each file that T took a file of its own again, under its old name; T goes when all are complete aside.

        For a few milliseconds their rows are absent: whoever replaced them does not do that in one step either.
        """
        files, copies = self.run.files, self._ready
        found = files.stat(self._in_live(self._join.file))
        if found is not None and found.file_id == self._made.file_id:
            for nth, part in self._find_parts(found).items():
                copy = names.join(copies, f"copy{nth}")
                files.delete_tree(copy)
                files.copy_part(found, part.begin, part.length, copy)
            dress(files, {copies: like(files, found)}, "try")
            if not self._take(found.path, "file"):
                return
        for entry in files.look([copies])[copies].entries:
            match = names.COPY.fullmatch(entry.name)
            # If live is gone, somebody has removed all that was in it.
            if match and files.stat(self.unit.live) is not None:
                move_file(files, entry.path, self.unit.live, self._name_of(int(match["nth"])))

    def _name_of(self, nth: int) -> str:
        """The name that a file gets back; one of its own where it is not clear which one it is."""
        if nth < len(self.unit.manifest):
            return self.unit.manifest[nth].name
        return f"-{nth}".join(names.split_suffix(self._join.file))

    def carry_over(self, expected: Mapping[str, int]) -> Tuple[str, ...]:  # noqa: ARG002
        """Other files of live were never away."""
        return ()

    def settle_live(self) -> Tuple[FileInfo, ...]:
        return self.run.files.look([self.unit.live])[self.unit.live].entries

    def give_up(self) -> None:
        """Take out of live what has no rows there, the tail first."""
        if self.certificate is None or (not self._is_withdrawn() and self._has_sources()):
            return
        found, made = self.run.files.stat(self._in_live(self._join.file)), self._made
        if self._join.beside:
            # Before T, which tells a recovery that there is something to give up.
            self._take(self._in_live(self._join.beside), "beside")
        if found is not None and (found.file_id, found.length) == (made.file_id, made.head_bytes):
            self._take(found.path, "file")
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
        if self.certificate is None:
            return True
        top, ready, taken = self.run.paths.top, self._ready, self.run.paths.state("taken")
        seen = self.run.files.look([top, ready, taken])
        if not seen[top].exists:
            raise fenced(self.run)
        aside = {entry.path for place in (ready, taken) for entry in seen[place].entries}
        # `ready` stays when its files leave it: without it they were never there, or are given up.
        if not seen[ready].exists or not aside.isdisjoint([names.join(ready, self._join.tail), self._taken("tail")]):
            return True
        return self._take(self._in_live(self._join.tail), "tail")

    def _has_sources(self) -> bool:
        """Whether the tail, which is not in live any more, was joined. Else somebody has deleted it."""
        found = self.run.files.stat(self._in_live(self._join.file))
        if found is not None and found.file_id == self._made.file_id:
            return found.length > self._made.head_bytes
        # T goes to live after the tail, so it is in `ready` if it was never there. Else it was put back, or overwritten: the sources tell.
        if self.run.files.stat(names.join(self._ready, self._join.file)) is not None:
            return False
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
        if self.run.files.stat(self._taken("file")) is not None:
            return True
        found = self.run.files.stat(self._in_live(self._join.file))
        if found is None or found.file_id != self._made.file_id:
            return False
        blocks, head, end = self._blocks(), self._made.head, self._made.end
        if blocks[: len(head)] != head or blocks[-len(end) :] != end:
            return False
        return blocks != self._planned_blocks() or not self._shows_copy(found)

    def _shows_copy(self, file: FileInfo) -> bool:
        assert self.certificate is not None
        groups = self.run.cluster.rows.footers(self._format, {0: [file]}, by_identity=True)[0].groups
        expected = (self.certificate.forms[0].identity, self.certificate.rows)
        return [(group.form.identity, group.row_count) for group in groups] == [expected]

    @property
    def _format(self) -> str:
        return eligibility.format_of(self.run.table.storage) or ""

    def _find_parts(self, file: FileInfo) -> Mapping[int, Part]:
        """Where in T the files are that it took, by their number in the manifest; by higher ones if it is not clear which is which."""
        edges = find_edges(self._blocks(), self._made.head, self._join.blocks, self._made.end)
        sure = {edge for edge, is_sure in edges.items() if is_sure}
        bounds = sorted(sure.union(self.run.cluster.rows.find_starts(self._format, file, sorted(edges.keys() - sure))))
        first = 0 if len(bounds) == len(self._join.blocks) + 1 else len(self._join.blocks)
        return {first + nth: Part(begin, end - begin) for nth, (begin, end) in enumerate(zip(bounds, bounds[1:]))}


def find_edges(blocks: Sequence[Block], head: Sequence[Block], sources: Sequence[Sequence[Block]], end: Sequence[Block]) -> Dict[int, bool]:
    """The offsets of the edges between blocks in the middle of a joined file, and whether it is sure that a file begins or ends there.

    A planned source is known by its blocks. Of what lies between these, only the first and the last edge is sure.
    """
    waiting, at, position = deque(map(tuple, sources)), len(head), length_of(head)
    last, edges = len(blocks) - len(end), {position: True}
    while at < last:
        known = next((number for number, source in enumerate(waiting) if tuple(blocks[at : at + len(source)]) == source), None)
        if known is None:
            position, at = position + blocks[at].length, at + 1
            edges[position] = at == last
            continue
        source = waiting[known]
        for _ in range(known + 1):
            waiting.popleft()
        edges[position] = True
        position, at = position + length_of(source), at + len(source)
        edges[position] = True
    return edges
