"""Exchange some files of a unit by HDFS's concat, one atomic step: they become parts of a file that shows their proved copy from then on.

That file T stands in live with a footer without rows behind the copy, so to every reader it has no rows. `concat(T, [sources, tail])`, the
tail being the copy's own footer, makes the sources vanish and the rows of T appear. Live is never absent and never shows fewer rows. The
tail is needed for that, so who takes it out of live knows that the concat has not happened and never will: that is how every recovery
begins. A name of T or of a tail is never used twice.

Deletes only copies of what is in live.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import ContextManager, Iterator, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import FileInfo, Unit
from hivekeeper.ports import FilesUnavailable, NoPermission, NoSpace, SourceMissing, TargetExists
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.joins import length_of
from hivekeeper.runlog.manifests import Expected, ManifestFile
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps.arrivals import move_file
from hivekeeper.steps.checks import Checked, check_often
from hivekeeper.steps.exchange import NOTHING_LATE, CarriedOver, Exchanged, Picture
from hivekeeper.steps.joined_unit import JoinedUnit
from hivekeeper.steps.run_directory import Run, require_own_directory
from hivekeeper.steps.unfinished import look_whole

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
    def joined(self) -> JoinedUnit:
        return JoinedUnit(self.run, self.unit, self.certificate)

    def at_place(self) -> ContextManager[None]:
        """Each file is known by its id here, and a concat goes by paths alone. What comes to live is renamed by live's id."""
        return nullcontext()

    def find_moved(self) -> Optional[Unit]:
        try:
            return self.joined.find_moved()
        except FilesUnavailable:
            # It is where nobody may finish a join. One that has not happened is given up: the table need not wait until it is back.
            self.give_up()
            return self.joined.find_moved()

    def rescue(self) -> Tuple[ManifestFile, ...]:
        strayed = self.joined.find_strayed()
        # Not if another file has what was joined, which may be aside: T has no more than it had before then.
        kept = keep(strayed) if strayed and strayed.is_file_wrong(strayed.find_own()) else ()
        return self._keep_strange() or kept

    def check(self) -> Checked:
        checked = check_often(self.run, self.unit, self.joined.ready)
        if checked.why or checked.seen[self.unit.live].file_id == self.joined.made.directory_id:
            return checked
        # Recovery looks for what is joined where that directory is.
        return replace(checked, why=Reason(Code.CHANGED_MEANWHILE, "its files were moved to another directory"))

    def exchange(self, checked: Checked) -> Exchanged:  # noqa: ARG002
        files, clock, joined = self.run.files, self.run.cluster.clock, self.joined
        file, sources = joined.in_live(joined.join.file), [joined.in_live(source.name) for source in self.unit.manifest]
        # The tail first: until it is in live, recovery need not look there for anything.
        waiting = [joined.in_live(name) for name in filter(None, [joined.join.tail, joined.join.beside])]
        # To the directory that was checked, or nowhere: another table's may come to its path. The concat finds none of them there.
        with files.anchored({self.unit.live: joined.made.directory_id}):
            for path in waiting:
                files.rename_exact(names.join(joined.ready, names.base(path)), path)
            began_ms = clock.monotonic_ms()
            files.rename_exact(names.join(joined.ready, joined.join.file), file)
        if clock.monotonic_ms() - began_ms > MOST_MS_BESIDE:
            return Exchanged(Reason(Code.KEEPS_CHANGING, f"the file system needs more than {MOST_MS_BESIDE} ms for one rename"))
        files.concat(file, [*sources, *reversed(waiting)])
        own = joined.find_own()
        if own is None:
            joined.require_gone()
        else:
            joined.require_joined(own)
        if not joined.is_wrong(own):
            joined.require_not_moved()
            return Exchanged(nothing_late=True)
        why = Reason(Code.CHANGED_MEANWHILE, "a file was replaced while it was joined, or the result cannot be read")
        return Exchanged(why, aside=self.put_back())

    def picture(self) -> Picture:
        """Takes the tail away first, if it is in live. `incoming` with `left`: T is not what was planned.

        That something is absent is believed only if it is not there by its id either: live may be away for a moment.
        """
        joined = self.joined
        # What T took is set aside: `ready`, which tells about the tail, may be gone.
        is_aside = self.certificate is not None and joined.back.is_set_aside()
        is_withdrawn = is_aside or self._is_withdrawn()
        own = None if is_withdrawn else joined.find_own()
        left = is_aside or (not is_withdrawn and joined.has_sources(own))
        incoming = not left or is_aside or joined.is_wrong(own)
        joined.require_not_moved()
        if not incoming:
            # Only out of the tail's place: T stays.
            self._return_strange()
        if not left and own is None:
            # Nothing was joined, whatever live holds by now.
            return Picture(left, (), incoming, None)
        seen = look_whole(self.run, self.unit, self.unit.live)
        if not incoming and own is None:
            joined.require_gone()
            joined.require_tail_gone()
        elif own is not None and own.file_id not in {entry.file_id for entry in seen.entries}:
            raise FilesUnavailable(f"{own.path}: it was moved just now")
        return Picture(left, (), incoming, seen.entries if seen.exists else None)

    def holds(self, expected: Expected, entries: Sequence[FileInfo]) -> bool:
        return manifests.holds(expected, entries) and self.joined.has_planned_blocks()

    def bring_in(self) -> None:
        raise AssertionError("the files of a join come in when the others leave, in one step")

    def put_back(self) -> Tuple[ManifestFile, ...]:
        """Give each file that T took a file of its own again, under its old name; T goes when all are complete aside.

        For a few milliseconds their rows are absent: whoever replaced them does not do that in one step either.
        """
        joined, back = self.joined, self.joined.back
        if not back.is_set_aside():
            # T may have come back to live after its substitute was taken.
            own = None if joined.has_joined(joined.find_taken()) else joined.find_own()
            if own is not None:
                joined.require_joined(own)
                back.copy_out(own)
                self._make_room()
                with self.run.files.anchored({self.unit.live: joined.require_in_place()}):
                    self._take(own.path, "file")
                # If it was moved just now, what is needed is complete aside: the next recovery brings it back.
                joined.require_in_place()
            taken = joined.find_taken()
            # Not if that is T without the sources, which came to the place of its substitute just now.
            if joined.has_joined(taken):
                self._return_strange()
                return back.give_back()
            if taken is None:
                # Whoever removed T has removed what it took, unless it went with its directory.
                joined.require_not_moved()
                joined.require_gone()
                if self.run.files.stat(self.unit.live):
                    return ()
        aside = back.set_aside()
        self._return_strange()
        return aside

    def _make_room(self) -> None:
        """What has the sources may come back to T's place after another file was taken out of there: that one goes back to live, too."""
        taken = self.joined.find_taken()
        if taken is not None:
            self._return(taken, self.joined.join.file)

    def keep_departed(self) -> Tuple[ManifestFile, ...]:
        return keep(self.joined)

    def _keep_strange(self) -> Tuple[ManifestFile, ...]:
        """Make a backup of what `_return_strange` is to return to live, if live is another directory by now, or gone."""
        strange = self.joined.find_strange() if self.certificate is not None else {}
        return self.joined.back.set_aside(strange) if strange and self.joined.is_left() else ()

    def _return_strange(self) -> None:
        """Return to live what somebody put in the place of T, of the tail or of the file beside it, just before it was taken out of there:
        nothing else shows its rows.
        """
        joined = self.joined
        for part, file in joined.find_strange().items():
            # Not in the tail's place: a late concat must not find it there.
            name = f"{joined.join.tail}-late" if part == "tail" else joined.parts[part]
            self._return(file, name)

    def _return(self, file: FileInfo, name: str) -> None:
        """Move a file to the directory whose files are joined: another table's may come to live's path."""
        with self.run.files.anchored({self.unit.live: self.joined.require_in_place()}):
            move_file(self.run.files, file.path, self.unit.live, name)

    def carry_over(self, expected: Expected) -> CarriedOver:  # noqa: ARG002
        """Other files of live were never away."""
        return NOTHING_LATE

    def find_unmerged(self) -> str:
        return ""

    def settle_live(self, since_ms: Optional[float], expected: Expected) -> Tuple[FileInfo, ...]:  # noqa: ARG002
        """Only T: there may be thousands of other files."""
        found = self.run.files.stat(self.joined.in_live(self.joined.join.file))
        return (found,) if found is not None else ()

    def give_up(self) -> None:
        """Take out of live what has no rows there, the tail first."""
        joined = self.joined
        if joined.is_given_up():
            # What it was to join may be in the file of another set, which is no substitute of T.
            return
        if self.certificate is None or (not self._is_withdrawn() and joined.has_sources(joined.find_own())):
            joined.require_not_moved()
            return
        self._require_not_joined()
        if joined.join.beside:
            # Before T, which tells a recovery that there is something to give up.
            self._take_unchanged(joined.join.beside, "beside", joined.made.beside_id, length_of(joined.made.beside))
        if not self._take_unchanged(joined.join.file, "file", joined.made.file_id, joined.made.head_bytes):
            joined.require_gone()
        self._return_strange()
        joined.require_not_moved()
        self.run.files.delete_tree(joined.ready)

    def _require_not_joined(self) -> None:
        """Also in the directory whose files were to be joined, wherever it is by now: T may have come back to it after its substitute."""
        joined, own = self.joined, None
        joined.require_not_joined()
        with self._elsewhere():
            own = joined.find_own()
        if own is not None:
            # Not where it may not be listed: T could be taken there all the same.
            with self.run.files.anchored({self.unit.live: joined.made.directory_id}):
                joined.require_not_joined()

    def _take_unchanged(self, name: str, part: str, file_id: int, length: int) -> bool:
        """Take a file out of live unless somebody has written to it; whether it was there, and not another one in its place."""

        def take() -> bool:
            found = self.run.files.stat(self.joined.in_live(name))
            if found is None or found.file_id != file_id:
                return False
            if found.length == length:
                # What came back after another one was taken in its place stays: it shows no rows.
                with suppress(TargetExists):
                    self._take(found.path, part)
            return True

        with self._in_one_directory() as directory_id:
            if directory_id is not None and take():
                return True
        with self._elsewhere():
            return take()
        return False

    def _is_withdrawn(self) -> bool:
        """Whether nothing was joined, because the tail is aside; takes it out of live if it is there."""
        joined = self.joined
        if joined.is_aside():
            return True
        path = joined.in_live(joined.join.tail)
        # What comes to the tail's place after that was taken stays.
        with suppress(TargetExists):
            with self._in_one_directory() as directory_id:
                found = self.run.files.stat(path) if directory_id is not None else None
                is_own = found is not None and found.file_id == joined.made.tail_id
                is_taken = (is_own or joined.is_directory(directory_id)) and self._take(path, "tail")
            if is_taken and joined.is_aside():
                return True
            with self._elsewhere():
                found = self.run.files.stat(path)
                if found is not None and found.file_id == joined.made.tail_id and not joined.has_joined(joined.find_own()):
                    return self._take(path, "tail") and joined.is_aside()
        return False

    @contextmanager
    def _in_one_directory(self) -> Iterator[Optional[int]]:
        """While it lasts, live's path leads to what is there now, whose id it gives, None if nothing is: what is looked at is taken out of
        that, or nothing.
        Another table's directory may come to the path, with files of the same names: one command joins those of both.
        """
        live = self.run.files.stat(self.unit.live)
        with nullcontext() if live is None else self.run.files.anchored({self.unit.live: live.file_id}):
            yield live.file_id if live is not None else None

    @contextmanager
    def _elsewhere(self) -> Iterator[None]:
        """While it lasts, live's path leads to the directory whose files were to be joined, wherever it is by now. If that is closed, or a
        quota keeps anything from coming back from there, it stays as it is.
        """
        with self.run.files.anchored({self.unit.live: self.joined.made.directory_id}), suppress(NoPermission, NoSpace):
            yield

    def _take(self, path: str, part: str) -> bool:
        """Whether it was there. Raises Fenced if another run took this one over."""
        try:
            self.run.files.rename_exact(path, self.joined.taken(part))
        except SourceMissing:
            require_own_directory(self.run)
            return False
        return True


def keep(joined: JoinedUnit) -> Tuple[ManifestFile, ...]:
    """The files that T took become a backup of the run; T, if it is in live, stays there."""
    # Copies of what is aside are complete.
    if not joined.back.is_set_aside() and not joined.has_joined(joined.find_taken()):
        own = joined.find_own()
        if own is None:
            joined.require_gone()
        else:
            joined.require_joined(own)
            joined.back.copy_out(own)
    return joined.back.set_aside()
