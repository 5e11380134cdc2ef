"""Exchange the directory of one unit by renames: live → retired, a check there, incoming → live.

Nothing is deleted. A directory keeps its id and time when it is renamed (measured on HDFS 3.3.6), so the check after the first rename is
one call.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import ContextManager, Optional, Sequence, Tuple, Union

from hivekeeper import names, quoting
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.model import FileInfo, Snapshot, Unit
from hivekeeper.plan import eligibility, listings
from hivekeeper.ports import MetastoreUnavailable, NoPermission, SourceMissing, TargetExists
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.manifests import Expected, ManifestFile
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps import arrivals
from hivekeeper.steps.checks import (
    Checked,
    can_tell_alone,
    check_often,
    find_change_in_metastore,
    find_other_directory,
    look_at_leaving,
    why_too_many,
)
from hivekeeper.steps.exchange import CarriedOver, Exchanged, NotItsPlace, Picture
from hivekeeper.steps.leftovers import without_empty_staging
from hivekeeper.steps.lost_blocks import find_unreadable
from hivekeeper.steps.places import is_alone
from hivekeeper.steps.removed import is_taken_out
from hivekeeper.steps.rows_away import has_left_last
from hivekeeper.steps.run_directory import Run, fenced, is_gone, note_taken_out, was_away
from hivekeeper.steps.unfinished import needs_investigation, too_many

log = logging.getLogger(__name__)

MOST_ASIDES = 100
# How far a NameNode's clock may go back without a file being overlooked.
MOST_MS_BACK = 60_000
# How long after the exchange began a directory in live is taken for a late committer's. In a longer time somebody may have made a copy.
MOST_MS_NEW = 10_000


@dataclass(frozen=True)
class DirectoryExchange:
    """`exchange.Means` by renames: `incoming` is the directory that replaces live, with what is `coming`; `left` is where live goes."""

    run: Run
    unit: PlannedUnit
    incoming: str
    left: str
    coming: Expected

    @classmethod
    def of(cls, run: Run, unit: PlannedUnit, incoming_state: str, coming: Expected) -> DirectoryExchange:
        return cls(run, unit, run.paths.unit(incoming_state, unit.number), run.paths.unit("retired", unit.number), coming)

    def at_place(self) -> ContextManager[None]:
        return self.run.at_place()

    def find_moved(self) -> Optional[Unit]:
        """What was on its way is not in live, so it cannot have gone along."""
        return None

    def rescue(self) -> Tuple[ManifestFile, ...]:
        return ()

    def check(self) -> Checked:
        checked = check_often(self.run, self.unit, self.incoming)
        self.run.incoming_ids[self.unit.number] = checked.incoming_id
        return checked

    def exchange(self, checked: Checked) -> Exchanged:
        """Exchange in one call if the directory's id and time can prove it unchanged. A kill leaves live absent for recovery to settle."""
        live, files = self.unit.live, self.run.files
        if can_tell_alone(self.run, self.unit, checked):
            left = files.exchange(live, self.left, self.incoming, checked.seen[live])
            if left is None:
                return Exchanged(nothing_late=self._is_long_settled(checked))
        else:
            files.rename_exact(live, self.left)
            left = files.stat(self.left)
            if left is None:
                raise SourceMissing(self.left)
        why = look_at_leaving(self.run, self.unit, checked, left)
        if why:
            self._require_none_removed(left, self.incoming)
            self._bring_back(is_own=left.file_id == checked.seen[live].file_id)
        else:
            self._bring(self.incoming)
        return Exchanged(why)

    def _is_long_settled(self, checked: Checked) -> bool:
        """Whether the check saw no late file, and its answer stands even if the NameNode's clock goes back a little.

        HDFS only ever raises the time of a directory (INodeWithAdditionalFields.updateModificationTime, 3.3.6): after its clock went back,
        by a correction or a failover, a new file does not change the time of a directory that is younger than that.
        """
        before = checked.seen[self.unit.live]
        is_old = before.mtime_ms < checked.clock_ms - MOST_MS_BACK
        return is_old and not manifests.find_late(self.unit.manifest, before.entries)

    def picture(self) -> Picture:
        top = self.run.paths.top
        given_up = self.run.paths.given_up(self.unit.number)
        places = [self.unit.live, self.incoming, self.left, top, given_up]
        seen = self.run.files.look(places, 0)
        if seen[self.left].exists:
            # Else nothing has left live, and what it holds decides nothing.
            seen = self.run.look([self.unit], places)
        if not seen[top].exists or is_gone(self.run, self.run.control.top):
            raise fenced(self.run)
        live, waiting, left = seen[self.unit.live], seen[self.incoming], seen[self.left]
        may_be_away = self.run.is_recovered or self.unit.number in self.run.away_since_ms
        copy = self.incoming if waiting.exists else given_up if seen[given_up].exists else ""
        if waiting.exists:
            self.run.incoming_ids.setdefault(self.unit.number, waiting.file_id)
        # Where it is by now somebody may have put any other directory, with the new files in it. Their certificate is hardly younger.
        certified = (entry.file_id for entry in seen[top].entries if names.CERTIFICATES.fullmatch(entry.name))
        self.run.certified_ids[self.unit.number] = max(certified, default=0)
        if left.exists:
            self._require_whole(sum(len(one.entries) for one in seen.values()))
        if copy and may_be_away and not left.exists:
            self._require_not_removed(live, copy)
        if copy and may_be_away and left.exists and not self._are_all_in(left.entries):
            self._require_none_removed(left, copy)
        if left.exists and not (waiting.exists or self.run.is_recovered or manifests.holds(self.coming, live.entries)):
            self._note_if_taken_out()
        departed = without_empty_staging(self.run.files, left.entries)
        lost = self._find_worse(waiting.entries, departed) if left.exists else ""
        entries = live.entries if live.exists else None
        return Picture(left.exists, departed, waiting.exists, entries, left.file_id, waiting.entries, lost)

    def _note_if_taken_out(self) -> None:
        """A recovery has found that out before it began."""
        left, coming = names.parent(self.left), names.parent(self.incoming)
        seen = self.run.files.look([left, coming], 0)
        if is_taken_out(seen[left], seen[coming]):
            note_taken_out(self.run, self.unit.number)

    def _find_worse(self, incoming: Sequence[FileInfo], departed: Sequence[FileInfo]) -> str:
        """One of the new files that cannot be read although all old ones can, "" for none."""
        lost = find_unreadable(self.run, map(ManifestFile.of, incoming), incoming)
        return lost[0].name if lost and not find_unreadable(self.run, self.unit.manifest, departed) else ""

    def holds(self, expected: Expected, entries: Sequence[FileInfo]) -> bool:
        self._require_whole(len(entries))
        return manifests.holds(expected, entries)

    def bring_in(self) -> None:
        self._bring(self.incoming)

    def put_back(self) -> Tuple[ManifestFile, ...]:
        seen = self.run.look([self.unit], [self.left])[self.left]
        # Who overwrites it may have emptied it, or put another one in its place. Or it is another table's, into which nobody brings files
        # who may not write to it.
        is_emptied = all(names.is_hidden(entry.name) for entry in seen.entries)
        is_own = self.unit.lay_in(seen.file_id, seen.entries)
        self._bring_back(is_emptied or is_own, is_sure=is_own)
        return ()

    def keep_departed(self) -> Tuple[ManifestFile, ...]:
        return self.unit.manifest

    def carry_over(self, expected: Expected) -> CarriedOver:
        seen = self.run.look([self.unit], [self.left])[self.left]
        self._require_whole(len(seen.entries))
        # Nothing of another table's directory, which somebody may rename to that path, but not read.
        is_own = self.unit.lay_in(seen.file_id, seen.entries)
        late = manifests.find_late(self.unit.manifest, seen.entries) if is_own else ()
        # Nobody closes live within a moment, and then has others write to what has left it.
        backup = self.left if self.run.is_recovered or was_away(self.run, self.unit) else ""
        carried = arrivals.move_late(self.run, self.unit, late, expected, backup)
        if is_own:
            arrivals.return_staging(self.run, self.unit, seen.entries, expected)
        is_merged = arrivals.merge_recreated(self.run, self.unit, self.unit.live, expected, is_live=True)
        return replace(carried, is_merged=is_merged)

    def find_unmerged(self) -> str:
        return next((aside.path for aside in arrivals.find_asides(self.run, self.unit) if not self._is_removed(aside.path)), "")

    def _is_removed(self, aside: str) -> bool:
        try:
            return self.run.files.remove_empty(aside)
        except NoPermission:
            # It may not be listed, and something may be in it.
            return False

    def settle_live(self, since_ms: Optional[float], expected: Expected) -> Tuple[FileInfo, ...]:
        live = self.unit.live
        seen = self.run.look([self.unit], [live])[live]
        # Known once live was listed: each call before may have waited for a NameNode.
        is_new = since_ms is not None and self.run.cluster.clock.monotonic_ms() - since_ms <= MOST_MS_NEW
        # Another table's directory may be there, in which what lies in directories of its own is no committer's.
        if not arrivals.is_surely_live(self.run, self.unit, expected, seen):
            return seen.entries
        # A table may have become another engine's since it was exchanged first.
        if not is_new or why_too_many(self.run, self.unit, len(seen.entries)) or eligibility.refuse_table(self.run.table):
            return seen.entries
        # Somebody may have added a partition in the outage, or since the check, whose directory lies in this one.
        if listings.find_committed(seen) and not is_alone(self.run, self.unit):
            return seen.entries
        return arrivals.lift_nested(self.run, self.unit, seen)

    def _require_not_removed(self, live: Snapshot, copy: str) -> None:
        """Raise NeedsInvestigation if the unit may have been away, and somebody has removed its old files since: the `copy`, of what was to
        come in, which is given up where nothing had left, may be all that is left of it. A writer may have made `live` again since.

        A partition that is gone from the metastore, too, may have been dropped because its directory was away (discovery, `MSCK REPAIR
        TABLE … SYNC PARTITIONS`).
        """
        if live.exists and find_other_directory(self.unit, live.file_id) is None:
            return
        left, coming = names.parent(self.left), names.parent(self.incoming)
        seen = self.run.files.look([left, coming], 0)
        if not has_left_last(seen[left], seen[coming]):
            return
        if live.exists and self._has_rows_back():
            return
        changed = find_change_in_metastore(self.run, self.unit)
        # What is at its place by now is another table's then.
        if changed is not None and changed.code in (Code.MOVED, Code.TABLE_CREATED_AGAIN):
            return
        raise self._removed(live, copy, f"no old files are in {self.left}")

    def _require_none_removed(self, left: Union[FileInfo, Snapshot], copy: str) -> None:
        """The same if somebody has removed some of the old files since they `left` live. A writer may have done so just before, which is no
        reason: then what is to come in is given up.

        Who removes a file changes the time of its directory; a rename of the directory changes only that of the one around it. What was set
        aside, and is merged into it, changes both, and the former directory's time as well.
        """
        if find_other_directory(self.unit, left.file_id):
            return
        asides = arrivals.find_asides(self.run, self.unit)
        ours = self.run.files.look([names.parent(self.left), self.run.paths.state("recreated")], 0)
        if left.mtime_ms <= max([*(one.mtime_ms for one in ours.values()), *(aside.mtime_ms for aside in asides)]):
            return
        places = [self.unit.live, self.left, *(aside.path for aside in asides)]
        seen = self.run.look([self.unit], places)
        # They may have been moved or copied back.
        if not self._are_all_in([entry for one in seen.values() for entry in one.entries]):
            raise self._removed(seen[self.unit.live], copy, f"not all old files are in {self.left} any more")

    def _are_all_in(self, entries: Sequence[FileInfo]) -> bool:
        """Whether all old files, or copies of them, are among these."""
        return manifests.holds(manifests.without_ids(manifests.expect(self.unit.manifest)), entries)

    def _removed(self, live: Snapshot, copy: str, gone: str) -> NeedsInvestigation:
        where, way = "its directory is gone", f"rename {copy}, which has their rows, to {self.unit.live}"
        if live.exists:
            where = "it has a new directory"
            way = f"move the files of {copy}, which have their rows, to {self.unit.live}, and remove {copy}"
        what = f"{where}, and {gone}: were they removed there?"
        advice = (
            f"get them back (trash, snapshots), or {way}; if they were removed on purpose, remove {copy}, too; then run: "
            f"hivekeeper recover --table {quoting.shell(self.run.table.full_name)}"
        )
        return needs_investigation(self.run, self.unit, Code.OLD_FILES_REMOVED, what, advice)

    def _has_rows_back(self) -> bool:
        """Whether somebody has brought the rows back to another directory: live has copies of all old files, or of all new ones; or the
        former directory is in it, which is told later.
        """
        entries = self.run.look([self.unit], [self.unit.live])[self.unit.live].entries
        if self.unit.directory_id in {entry.file_id for entry in entries if entry.is_dir}:
            return True
        wanted = (manifests.expect(self.unit.manifest), self.coming)
        # Without a certificate nothing is known of the new ones.
        return any(files and manifests.holds(manifests.without_ids(files), entries) for files in wanted)

    def _require_whole(self, entries: int) -> None:
        """Raise NeedsInvestigation if a listing may be only a part: it cannot tell whether live holds what it must."""
        why = why_too_many(self.run, self.unit, entries)
        if why:
            raise too_many(self.run, self.unit, why)

    def _bring_back(self, is_own: bool, is_sure: bool = True) -> None:
        """Rename what left live back to it, after what was set aside is merged into it: a committer that sees only part of its tasks'
        output would commit without an error; one that finds no directory fails. Never merge into `ready`, which a later put-back deletes.

        Nor into one that is not the unit's own: somebody may have renamed another table's directory to live before it left.
        """
        if is_own:
            arrivals.merge_recreated(self.run, self.unit, self.left, self.coming, is_sure=is_sure)
        self._bring(self.left, with_recreated=is_own, is_sure=is_sure)

    def _bring(self, source: str, with_recreated: bool = False, is_sure: bool = True) -> None:
        """Rename to live; a directory that a writer created there meanwhile is set aside, each time under a new name; `with_recreated`, and
        merged into `source`.
        """
        for _ in range(MOST_ASIDES):
            try:
                self.run.files.rename_exact(source, self.unit.live)
                return
            except TargetExists:
                self._require_its_place()
                set_aside(self.run, self.unit)
                if with_recreated:
                    arrivals.merge_recreated(self.run, self.unit, source, self.coming, is_sure=is_sure)
        raise needs_investigation(self.run, self.unit, Code.RE_CREATED_AGAIN, "somebody keeps re-creating its directory")

    def _require_its_place(self) -> None:
        """Raise NotItsPlace if a table without partitions was dropped or renamed, and what is in its place is another table's, or may be.

        A partition that discovery has dropped while its directory was away comes back.
        """
        if self.unit.name:
            return
        try:
            why = find_change_in_metastore(self.run, self.unit)
        except MetastoreUnavailable:
            # As before the exchange; and it is asked again before the log has the run.
            why = None
        why = why or self._why_moved_here()
        if why:
            raise NotItsPlace(why)

    def _why_moved_here(self) -> Optional[Reason]:
        """Why what is in the place of a table without partitions is not what a writer has made there in the gap: it is older than the run.

        A NameNode's ids only grow (INodeId). The metastore tells two tables of one name apart by the second in which they were created
        (HMSHandler.create_table_core), and a script creates several in one. If two exchange their names while live is away, Hive finds no
        directory to move with the first, and moves that of the second here (HiveAlterHandler.alterTable). What somebody has moved here who
        may not write to the table is set aside.
        """
        came, own = self.run.files.stat(self.unit.live), self.run.files.stat(self.run.paths.top)
        if came is None or own is None or not 0 < came.file_id < own.file_id or arrivals.why_strange(self.run, self.unit, came, self.left):
            return None
        return Reason(Code.MOVED, f"{self.unit.live} is older than the run: was the table renamed, and another one to its name?")


def set_aside(run: Run, unit: PlannedUnit) -> None:
    """Move the directory in live's place to recreated/uN.K. Undo: merge_recreated."""
    for nth in range(MOST_ASIDES):
        try:
            run.files.rename_exact(unit.live, run.paths.recreated(unit.number, nth))
            return
        except TargetExists:
            continue
        except SourceMissing:
            return
    raise needs_investigation(run, unit, Code.NO_FREE_NAME, "too many directories were set aside")
