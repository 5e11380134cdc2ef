"""What comes to a unit while its files are exchanged, and goes to live: files that came late to the old ones, what others put at live's
place meanwhile, and directories that a committer renamed into live.

Each file is moved from and to directories that were looked at, by their ids: another table's may come to their paths. Files are only
renamed, never over another one; only empty directories are deleted.
"""

from __future__ import annotations

import itertools
import logging
import secrets
from contextlib import contextmanager, nullcontext, suppress
from typing import Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.plan import file_rights, listings, ownership
from hivekeeper.ports import Files, NoPermission, SourceMissing, TargetExists
from hivekeeper.reasons import Code
from hivekeeper.runlog import manifests
from hivekeeper.runlog.manifests import Expected, Found, ManifestFile
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.checks import why_too_many
from hivekeeper.steps.exchange import CarriedOver
from hivekeeper.steps.late_directories import are_copies, has_copies
from hivekeeper.steps.older import Older
from hivekeeper.steps.outsiders import Outsiders
from hivekeeper.steps.run_directory import Run, was_away

log = logging.getLogger(__name__)

# In all units of a run together, of what is looked at to be moved. Each costs two calls or one, without a pause, and anyone who may write
# to the table may have made a million, or may move one tree from unit to unit.
MOST_LIFTED_DIRECTORIES, MOST_LIFTED = 10_000, 100_000
# Of the directories that are left where they are.
MOST_TOLD = 3
# That are tried for a file.
MOST_NAMES = 8
# By default a NameNode tells so many names at once (dfs.ls.limit).
LISTED_IN_ONE_CALL = 1000


def move_file(files: Files, source: str, directory: str, name: str = "") -> str:
    """Rename a file into a directory, under its own name or another one, and under a new one if that is taken; returns the name.

    A hidden one stays hidden. Many files of one name cost no more calls each than few.
    """
    name = name or names.base(source)
    for nth in range(MOST_NAMES):
        candidate = name if nth == 0 else names.late_name(name, "1" if nth == 1 else secrets.token_hex(4))
        try:
            files.rename_exact(source, names.join(directory, candidate))
            return candidate
        except TargetExists:
            continue
    raise NeedsInvestigation(
        f"{source}: no name is free in {directory}", code=Code.NO_FREE_NAME, state="the file is where it was", next="move it by hand"
    )


def is_surely_live(run: Run, unit: PlannedUnit, expected: Expected, live: Snapshot) -> bool:
    """Whether the unit's new files are in this directory; if they tell nothing, whether it is the one that this run has brought in."""
    if not manifests.tells(expected) and live.file_id != run.incoming_ids.get(unit.number, 0):
        return False
    return manifests.holds(expected, live.entries)


def move_late(run: Run, unit: PlannedUnit, late: Sequence[FileInfo], expected: Expected, backup: str = "") -> CarriedOver:
    """Move complete files that the manifest does not know from the directory that has left live into live, unless others could reach them
    there. `backup`: where that directory was for longer than a moment; who could write to it there, and may not write to live, may have
    put them into it (Outsiders).

    Only while live still holds the expected files: a later overwrite has replaced these rows as well. That is looked at before each file.
    Where one look takes many calls, it serves for as many files, because anyone may have added a hundred thousand. If live has too many
    by now, the others stay where they are.
    """
    if not late:
        return CarriedOver()
    moved: List[str] = []
    with _staying(run, unit, expected) as still:
        kept = _find_kept(run, unit, late, still.directory_id, backup)
        stay = {file.path for file in kept}
        wanted = [file for file in late if file.path not in stay]
        for file in wanted:
            if not still.holds() or not _is_carried(run, unit, file):
                break
            try:
                moved.append(move_file(run.files, file.path, unit.live))
            except NoPermission as error:
                # To rename a directory takes no right on it, to move a file out of it or into it does.
                log.warning("unit=%s step=carry-over left=%d reason=%r", unit.log_field, len(wanted) - len(moved), str(error))
                break
    return CarriedOver(tuple(moved), tuple(file.name for file in (*wanted[len(moved) :], *kept)))


def _find_kept(run: Run, unit: PlannedUnit, late: Sequence[FileInfo], live_id: int, backup: str) -> Sequence[FileInfo]:
    """The files that others may reach in live now, or delete, and not in the directory that has left it: it was closed, or given to another
    owner, since its copy was made or since a run that is rolled back, or is another one than the unit had then. And all of a backup into
    which others may have put them. All of them, too, where the rights of one of the two cannot be told: they go to the directory with this
    id, and what is at its place for a moment tells nothing.
    """
    left = names.parent(late[0].path)
    outsiders = Outsiders(run, unit, backup) if backup else None
    try:
        known = {**(outsiders.ask() if outsiders else {}), **run.files.attributes([left, unit.live], {unit.live: live_id})}
    except NoPermission:
        return late
    if left not in known or unit.live not in known or known[unit.live].directory_id not in (0, live_id):
        return late
    if outsiders and outsiders.may_have_written(known, known[left], known[unit.live]):
        reason = "whoever put them there may not be one who may write to live"
        log.warning("unit=%s step=carry-over left=%d path=%r reason=%r", unit.log_field, len(late), left, reason)
        return late
    return file_rights.find_kept_from_others(known[unit.live], known[left], late, run.users_at(unit.live))


def _is_carried(run: Run, unit: PlannedUnit, file: FileInfo) -> bool:
    """Whether a late file is still to be moved: somebody may give each unit in turn the same thousands of files, just before it is
    exchanged.
    """
    known = run.moved_up
    if known.late.get(file.file_id, unit.live) != unit.live:
        known.again += 1
    known.late[file.file_id] = unit.live
    return known.again <= MOST_LIFTED


@contextmanager
def _staying(run: Run, unit: PlannedUnit, expected: Expected) -> Iterator[StillLive]:
    """What is moved to live while it lasts goes to the directory that is there now, or nowhere: another table's may come to its path."""
    found = run.files.stat(unit.live)
    live = found.file_id if found else 0
    with run.files.anchored({unit.live: live}):
        yield StillLive(run, unit, expected, live)


class StillLive:
    """Whether live is a directory still, and holds the expected files, and so few that it can be listed; asked before each file that comes
    to it.
    """

    def __init__(self, run: Run, unit: PlannedUnit, expected: Expected, directory_id: int) -> None:
        self._run, self._unit, self._expected, self.directory_id = run, unit, expected, directory_id
        self._sure_of, self._moved = 0, 0

    def holds(self) -> bool:
        """One look serves for as many files as it takes calls."""
        if not self._sure_of:
            live = self._unit.live
            seen = self._run.files.look([live], self._run.most_listed([self._unit]))[live]
            present = len(seen.entries)
            # What was moved there is listed again and again.
            self._run.count_listed([self._unit], present - self._moved)
            is_live = is_surely_live(self._run, self._unit, self._expected, seen)
            if why_too_many(self._run, self._unit, present) or not is_live:
                return False
            # The listing is that of the directory wherever it is: in the trash, or below another partition's name.
            there = self._run.files.stat(live)
            if there is None or there.file_id != self.directory_id:
                return False
            self._sure_of = 1 + present // LISTED_IN_ONE_CALL
        self._sure_of -= 1
        self._moved += 1
        return True


def return_staging(run: Run, unit: PlannedUnit, entries: Iterable[FileInfo], expected: Expected) -> None:
    """Move Impala's empty staging directory back to live, so that the backup matches its manifest. Impala may have re-created it.

    As late files, only while live holds the expected files: in another table's directory it would be a writer at work.
    """
    stagings = list(filter(listings.is_impala_staging, entries))
    with _staying(run, unit, expected) if stagings else nullcontext(None) as still:
        for staging in stagings:
            if still is None or not still.holds():
                return
            try:
                run.files.rename_exact(staging.path, names.join(unit.live, staging.name))
            except TargetExists:
                run.files.remove_empty(staging.path)
            except (SourceMissing, NoPermission):
                # Live is missing (dropped or overwritten meanwhile), or an earlier call succeeded although it reported an error. Or this
                # user may rename the directory, but not what lies in it.
                continue


def merge_recreated(run: Run, unit: PlannedUnit, target: str, coming: Expected, is_live: bool = False, is_sure: bool = True) -> bool:
    """Merge the directories set aside into another one; whether all were. A subdirectory whose name is free moves whole, so that its
    committer finds it.

    Each entry costs a call. What is so much, in all units of a run, that it would take hours stays aside: no writer puts it at live's place
    within the gap. So does a directory that is not as open as `target`: it may be another table's, which somebody may rename but not read.
    And so do, if `target` `is_live`, the files that are left when it holds no more what was `coming` to it; and copies of the unit's files,
    which somebody who missed them in an outage has brought back.
    """
    asides, is_all = find_asides(run, unit), True
    if not asides:
        return True
    with _staying(run, unit, coming) if is_live else nullcontext(None) as still:
        for aside in asides:
            why = why_strange(run, unit, aside, target, is_sure) or _merge_allowed(run, unit, aside, target, still, coming)
            is_all = is_all and not why
            if why:
                reason = f"{why}; what came to its place while it was away stays there"
                log.warning("unit=%s step=merge-recreated left path=%r reason=%r", unit.log_field, aside.path, reason)
    return is_all


def why_strange(run: Run, unit: PlannedUnit, aside: FileInfo, target: str, is_sure: bool = True) -> str:
    """Why what was set aside is not merged, "" if it may be: who may write to the directory around that of a table without partitions can
    make one of its name, but may not write to the table. Nor perhaps to a partition in a directory with the sticky bit, which they could
    not have renamed; nor to a unit that is not `is_sure` to be this one.
    """
    if not aside.is_dir:
        return "it is a file"
    around = run.files.stat(names.parent(unit.live)) if unit.name and is_sure else None
    if around is not None and not around.mode & ownership.STICKY:
        return ""
    if _is_copy_of_ours(run, unit, aside):
        return "it belongs to the user of the runs, and is older than the run: it may be a copy of another table's"
    there = list(filter(None, map(run.files.stat, dict.fromkeys([target, run.paths.unit("retired", unit.number)]))))
    owners = {one.owner for one in there}
    if around is not None:
        # Who may rename a partition may have any other in its place.
        owners.add(around.owner)
    is_known = any(listings.may_have_made(aside, owners, one) for one in there)
    return "" if is_known else f"{aside.owner}, who made it, may not be one who writes to the table"


def _is_copy_of_ours(run: Run, unit: PlannedUnit, aside: FileInfo) -> bool:
    """Whether a directory may be a copy that could not be given away, from a table of whoever has put it here: its owner tells nothing of
    them. What a writer of the same user makes in the gap is younger than the run.
    """
    users = run.users_at(unit.live)
    if aside.owner not in users or aside.path.startswith("file:"):
        return False
    around = run.files.stat(names.parent(unit.live))
    if around is not None and ownership.is_closed_to_others(around, users):
        # Nobody else can have put it here. With a staging directory elsewhere, Hive renames what an overwrite wrote to the table's place.
        return False
    own = run.files.stat(run.paths.top)
    return own is not None and 0 < aside.file_id < own.file_id


def find_asides(run: Run, unit: PlannedUnit) -> Sequence[FileInfo]:
    top = run.paths.state("recreated")
    found = [(names.RECREATED.fullmatch(entry.name), entry) for entry in run.files.look([top])[top].entries]
    return [entry for match, entry in found if match and int(match["number"]) == unit.number]


def _merge_allowed(run: Run, unit: PlannedUnit, top: FileInfo, target: str, still: Optional[StillLive], coming: Expected) -> str:
    try:
        return _merge(run, unit, top, target, still, coming)
    except NoPermission as error:
        # It must not keep the unit away for that.
        return str(error)


def _has_copies(
    run: Run, unit: PlannedUnit, entries: Sequence[FileInfo], target: str, still: Optional[StillLive], coming: Expected
) -> bool:
    """Whether copies may be among these of what the unit has or had, also before earlier runs have taken it out. Nobody makes any within a
    moment: what has their names and lengths then is a writer's.
    """
    if not was_away(run, unit):
        return False
    there = run.look([unit], [target])[target].entries
    earlier = run.history.find_had(unit.name, unit.manifest)
    new = (ManifestFile(name, length, 0, file_id) for name, (length, file_id) in coming.items())
    others = entries if still is not None else _without_own(entries, unit, there)
    return has_copies(others, [*unit.manifest, *new, *there, *earlier])


def _without_own(entries: Sequence[FileInfo], unit: PlannedUnit, there: Iterable[FileInfo]) -> Sequence[FileInfo]:
    """Those that are not the unit's old files themselves, which somebody has moved back. Where the others go back, these belong to them.
    What has its file `there` still is a copy, even if it has the same time, where nobody tells ids.
    """
    own = set(unit.manifest).difference(map(ManifestFile.of, there))
    return [entry for entry in entries if ManifestFile.of(entry) not in own]


def _merge(run: Run, unit: PlannedUnit, top: FileInfo, target: str, still: Optional[StillLive], coming: Expected) -> str:
    """Why not all was merged, "" if it was. Without recursion: anyone who may write to the table may nest directories deeper than Python's
    stack.
    """
    older = Older(run, unit)
    into = run.files.stat(target)
    waiting, merged, why = [(top, target, into.file_id if into else 0)], [], ""
    left = older.why_left([top], target, into.file_id if into else 0)
    if left:
        return left[top.path]
    while waiting:
        source, target, target_id = waiting.pop()
        merged.append(source.path)
        room = max(0, MOST_LIFTED - run.moved_up.number)
        seen = run.files.look([source.path], room + 1)[source.path]
        if seen.file_id != source.file_id:
            # Its rights are not those that are compared.
            return f"another directory came to {source.path}"
        entries = seen.entries
        run.moved_up.number += len(entries)
        if len(entries) > room or len(merged) > MOST_LIFTED_DIRECTORIES:
            return "there are too many files"
        if source is top and _has_copies(run, unit, entries, target, still, coming):
            return "files in it are copies of those that the unit has or had"
        with run.files.anchored({source.path: source.file_id, target: target_id}):
            open_ones = _leave_out_closed(run.files, source, entries, target)
            if len(open_ones) < len(entries):
                why = f"more users could reach its files than may list {source.path}"
            taken = _move_entries(run.files, open_ones, target, still)
        if taken is None:
            return "somebody has overwritten live"
        same = [(entry, inner) for entry, inner in taken if inner.is_dir and inner.owner == entry.owner]
        if len(same) < len(taken):
            why = f"what has the same name in {target} is somebody else's"
        for entry, inner in same:
            left = older.why_left([entry], inner.path, inner.file_id)
            why = left.get(entry.path, why)
            waiting += [] if left else [(entry, inner.path, inner.file_id)]
    for directory in reversed(merged):
        run.files.remove_empty(directory)
    return why


def _leave_out_closed(files: Files, source: FileInfo, entries: Sequence[FileInfo], target: str) -> Sequence[FileInfo]:
    """The entries that no more users could reach in `target`, by the rights of just the directory that was listed."""
    if not entries:
        return entries
    known = files.attributes([source.path, target], {source.path: source.file_id})
    own, other = known.get(source.path), known.get(target)
    if own is None or other is None or own.directory_id not in (0, source.file_id):
        return ()
    # Not by the mode of a listing: an ACL may keep somebody out.
    return listings.find_open(entries, own, other)


def _move_entries(
    files: Files, entries: Sequence[FileInfo], target: str, still: Optional[StillLive]
) -> Optional[Sequence[Tuple[FileInfo, FileInfo]]]:
    """Move entries into a directory; returns the directories whose names are taken there, with what has these. None if live was
    overwritten.
    """
    taken = []
    for entry in entries:
        if still is not None and not still.holds():
            return None
        if not entry.is_dir:
            move_file(files, entry.path, target)
            continue
        inner = names.join(target, entry.name)
        try:
            files.rename_exact(entry.path, inner)
        except TargetExists:
            found = files.stat(inner)
            if found is None:
                # It has gone since.
                raise SourceMissing(inner) from None
            taken.append((entry, found))
    return taken


def lift_nested(run: Run, unit: PlannedUnit, seen: Snapshot) -> Tuple[FileInfo, ...]:
    """Move up the files of a directory that a committer renamed *into* live, which was `seen`, having taken live for its target; returns
    live's entries. A directory of copies of files that the unit has had, or of live's, is no committer's.

    Unless there are so many that it would take hours, or anything else lies in it: no committer leaves that.
    """
    files, live = run.files, unit.live
    nested, looked_at = _find_liftable(run, unit, seen)
    with files.anchored({live: seen.file_id, **{entry.path: entry.file_id for entry in seen.entries if entry.path in nested}}):
        for directory, inside in nested.items():
            # Nothing may be moved out of it perhaps: it stays.
            with suppress(NoPermission):
                for entry in inside:
                    move_file(files, entry.path, live)
                files.remove_empty(directory)
    entries = files.look([live], run.most_listed([unit]))[live].entries if nested else seen.entries
    run.moved_up.number += looked_at
    return entries


def _find_liftable(run: Run, unit: PlannedUnit, live: Snapshot) -> Tuple[Mapping[str, Tuple[FileInfo, ...]], int]:
    """The files in those directories that a committer may have left, by directory, and how many files and directories were looked at. None
    of another one, of which the rights were not looked at, that somebody has put in its place since. Nothing deeper is looked at: no
    committer leaves that.
    """
    files, committed, room = run.files, listings.find_committed(live), MOST_LIFTED - run.moved_up.number
    own = files.stat(unit.live) if committed and room > 0 else None
    if own is None or own.file_id != live.file_id:
        return {}, 0
    alike = [entry for entry in committed if entry.owner == own.owner and not own.mode & ~entry.mode & 0o055]
    if not alike or len(alike) > MOST_LIFTED_DIRECTORIES:
        return {}, 0
    try:
        known = _find_open(files, alike, unit.live, live.file_id)
    except NoPermission:
        return {}, len(alike)
    left = Older(run, unit).why_left(list(known.values()), unit.live, live.file_id)
    for place, why in itertools.islice(left.items(), MOST_TOLD):
        log.warning("step=lift-nested left=%d path=%r reason=%r", len(left), place, why)
    wanted = {place: entry.file_id for place, entry in known.items() if place not in left}
    try:
        seen = files.look(list(wanted), room + 1)
    except NoPermission:
        return {}, len(alike)
    entries = sum(len(one.entries) for one in seen.values())
    if entries > room:
        return {}, len(alike) + entries
    same = [place for place, file_id in wanted.items() if seen[place].file_id == file_id]
    had: List[Found] = [*unit.manifest, *unit.expected, *live.entries]
    whole = (place for place in same if not are_copies(seen[place].entries, had) and listings.holds_only_data(seen[place]))
    return {place: seen[place].entries for place in whole}, len(alike) + entries


def _find_open(files: Files, directories: Sequence[FileInfo], live: str, live_id: int) -> Mapping[str, FileInfo]:
    """Those that are as open as live, also by their ACLs, which a listing does not show."""
    ids = {live: live_id, **{one.path: one.file_id for one in directories}}
    rights = {path: found for path, found in files.attributes(list(ids), ids).items() if found.directory_id in (0, ids[path])}
    return {one.path: one for one in directories if {live, one.path} <= set(rights) and listings.is_as_open(rights[one.path], rights[live])}
