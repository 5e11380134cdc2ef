"""The checks before and after a unit's live directory is renamed away: steps 4 and 5 of docs/swap.md.

Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Mapping, Optional, Sequence, Tuple, Union

from hivekeeper import names
from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.plan import listings, own_place
from hivekeeper.ports import MetastoreRefused, require_readable
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.leftovers import find_staging, look_inside, without_empty_staging
from hivekeeper.steps.run_directory import Run, read_clock, recent_time, require_lock

# A writer that sets up and commits a task while live is away is lost only if both happen between the check
# and the put-back, so this interval is kept short.
MOST_MS_BETWEEN_CHECK_AND_RENAME = 100
MOST_CHECKS = 10
MOST_GLANCES = 20
# Directories. More of them are looked at in one call, which lists them for nothing.
MOST_BY_ONE = 8
# It may be another table's, in which anybody may have put all files of the manifest, or of which the manifest has none.
OTHER_DIRECTORY = Reason(Code.CHANGED_MEANWHILE, "another directory came to its place")
GONE = Reason(Code.DIRECTORY_GONE, "its directory is gone")
LISTED_ENOUGH = Reason(Code.CHANGED_MEANWHILE, "so many files came to partitions of this run that no more of them are looked at")
HELD_UP = Reason(
    Code.CHECKS_HELD_UP, "ten minutes went into partitions that changed while they were checked, or into what is hidden above them"
)
# Of one unit. Where one takes too long, the next one does too, as a rule, and a table may have ten thousand units.
MOST_MS_OF_CHECKS = 5000
# Of all units of a run (run_directory.HeldUp): other tables wait.
MOST_MS_HELD_UP = 600_000
# Of one check. What takes longer is a NameNode that does not answer, or a machine that was suspended, and not what others do.
MOST_MS_OF_ONE = 60_000


@dataclass(frozen=True)
class Checked:
    """The result of step 4: `why` is None if the swap may begin.

    `seen` holds snapshots of live, the directories above it and writers' directories in them; times were read before listings. `incoming`
    is the listing of what replaces live, `incoming_id` that directory. `clock_ms` is the NameNode's time from before that, `began_ms` the
    local one, for durations.
    """

    seen: Mapping[str, Snapshot]
    clock_ms: int
    began_ms: float
    incoming: Tuple[FileInfo, ...] = ()
    incoming_id: int = 0
    why: Optional[Reason] = None


def why_begin_no_more(run: Run) -> Optional[Reason]:
    """Why a run begins no other unit, and copies none: others have made it list or check enough. What was begun is settled all the same."""
    if run.has_listed_enough:
        return LISTED_ENOUGH
    return HELD_UP if run.held_up.ms > MOST_MS_HELD_UP else None


def check_often(run: Run, unit: PlannedUnit, incoming: str) -> Checked:
    """Repeat step 4 until its result is recent enough: by listings, or by ids and times if listing takes too long."""
    clock = run.cluster.clock
    if run.has_listed_enough:
        return Checked({}, 0, clock.monotonic_ms(), why=LISTED_ENOUGH)
    end_ms: Optional[float] = None
    for _ in range(MOST_CHECKS):
        first_ms, held_up_ms = clock.monotonic_ms(), run.held_up.ms
        if end_ms is not None and clock.monotonic_ms() > end_ms:
            break
        checked = check(run, unit, incoming, recent_time)
        # Else an exchange of this run may have changed what is around the unit since, and nobody else anything.
        is_new_time = run.time.uses == 1
        # A large directory takes seconds to list, and is glanced at then.
        end_ms = end_ms or clock.monotonic_ms() + MOST_MS_OF_CHECKS
        # What a join took is known by its blocks afterwards, not by the time of its directory, which the one before has just changed.
        is_recent = _is_recent(run, checked)
        if not is_recent:
            # What is compared by times from now on, here and for the next unit, may be younger: each exchange changes what is around it.
            run.time.read_ms = None
        needs_time = unit.join is None or not is_recent
        if needs_time and not checked.why and not manifests.can_tell(checked.seen[unit.live], checked.clock_ms, run.files.clock_grain_ms):
            # It may have changed since the clock was read for another unit.
            checked = check(run, unit, incoming, read_clock)
        if checked.why or _is_recent(run, checked):
            return checked
        for _ in range(MOST_GLANCES):
            began_ms = clock.monotonic_ms()
            if not is_still_true(run, checked):
                break
            if clock.monotonic_ms() - began_ms <= MOST_MS_BETWEEN_CHECK_AND_RENAME:
                return checked
            if clock.monotonic_ms() > end_ms:
                break
        if is_new_time:
            run.held_up.ms = held_up_ms + min(MOST_MS_OF_ONE, clock.monotonic_ms() - first_ms)
    what = f"it keeps changing, or the file system needs more than {MOST_MS_BETWEEN_CHECK_AND_RENAME} ms for one check"
    return replace(checked, why=Reason(Code.KEEPS_CHANGING, what))


def _is_recent(run: Run, checked: Checked) -> bool:
    return run.cluster.clock.monotonic_ms() - checked.began_ms <= MOST_MS_BETWEEN_CHECK_AND_RENAME


def is_still_true(run: Run, checked: Checked) -> bool:
    """Whether the ids and times alone prove that the checked directories are unchanged."""
    if len(checked.seen) > MOST_BY_ONE:
        seen = run.files.look(list(checked.seen), 0)
        return all(seen[place].exists and _is_untouched(run, checked, before, seen[place]) for place, before in checked.seen.items())
    for directory, before in checked.seen.items():
        now = run.files.stat(directory)
        if now is None or not _is_untouched(run, checked, before, now):
            return False
    return True


def _is_untouched(run: Run, checked: Checked, before: Snapshot, now: Union[FileInfo, Snapshot]) -> bool:
    return manifests.is_untouched(before, now, checked.clock_ms, run.files.clock_grain_ms)


def check(run: Run, unit: PlannedUnit, incoming: str, ask_time: Callable[[Run], int]) -> Checked:
    """Step 4: check that everything is as planned. Lists `incoming` for the caller to judge. `ask_time` tells a time of the NameNode."""
    moved, live = find_change_in_metastore(run, unit), unit.live
    above = _directories_above(live, run.table.location)
    require_lock(run)
    clock_ms = ask_time(run)
    began_ms = run.cluster.clock.monotonic_ms()
    seen = run.look([unit], [live, incoming])
    above_ms = run.cluster.clock.monotonic_ms()
    seen_above = run.files.look_hidden(above, listings.MOST_HIDDEN + 1)
    entries_above = [entry for directory in above for entry in seen_above[directory].entries]
    unsure = listings.find_unsure(entries_above, clock_ms, run.leftover_ms)
    inside = look_inside(run.files, [*unsure, *find_staging(seen[live].entries)])
    took_ms = run.cluster.clock.monotonic_ms() - above_ms
    run.held_up.ms += min(MOST_MS_OF_ONE, max(0.0, took_ms - MOST_MS_BETWEEN_CHECK_AND_RENAME))
    checked = Checked({live: seen[live], **seen_above, **inside}, clock_ms, began_ms, seen[incoming].entries, seen[incoming].file_id)
    writer = listings.find_writer(entries_above, inside, clock_ms, run.leftover_ms)
    gone = None if seen[live].exists else GONE
    entries = listings.without_empty_staging(seen[live].entries, inside)
    if unit.join:
        # A swap takes markers along, so it knows them; a join leaves them where they are.
        entries = tuple(entry for entry in entries if entry.is_dir or entry.is_open or not manifests.is_marker(ManifestFile.of(entry)))
    crowd = why_too_many(run, unit, sum(len(one.entries) for one in seen.values()))
    why = moved or gone or crowd or manifests.judge(unit.manifest, entries).why or find_other_directory(unit, seen[live].file_id)
    crowded = listings.too_many_hidden(listings.MOST_HIDDEN) if len(entries_above) > listings.MOST_HIDDEN else None
    busy = Reason(Code.WRITER_AT_WORK, f"a writer is at work in the table ({writer})") if writer else None
    return replace(checked, why=why or _find_closed(run, seen_above) or crowded or listings.refuse_logs_above(entries_above) or busy)


def find_other_directory(unit: PlannedUnit, directory_id: int) -> Optional[Reason]:
    """Why this is not the directory that was planned for."""
    return OTHER_DIRECTORY if unit.knows(directory_id) and directory_id != unit.directory_id else None


def _find_closed(run: Run, above: Mapping[str, Snapshot]) -> Optional[Reason]:
    """Why the old files must not leave: a directory above lets fewer users through than when it was compared with the way to a backup."""
    for place, seen in above.items():
        before = run.above.get(place)
        if before is None:
            continue
        if before.directory_id not in (0, seen.file_id):
            return Reason(Code.CHANGED_MEANWHILE, f"{place} is another directory than before")
        if before.mode & ~seen.mode & 0o055:
            return Reason(Code.CHANGED_MEANWHILE, f"{place} lets fewer users through than before")
    return None


def find_change_in_metastore(run: Run, unit: PlannedUnit) -> Optional[Reason]:
    """Why the metastore no longer has the unit at this place; None if it has."""
    table, metastore = run.table, run.cluster.metastore
    found = None if unit.name else require_readable(metastore.tables(table.database, [table.name]).get(table.name))
    if found is not None and found.create_time != table.create_time:
        return Reason(Code.TABLE_CREATED_AGAIN, "its table was dropped and created again meanwhile")
    location = found.location if found else ""
    if unit.name:
        try:
            partition = metastore.partitions_named(table, [unit.name]).get(unit.name)
        except MetastoreRefused:
            if table.name in metastore.tables(table.database, [table.name]):
                raise
            return Reason(Code.TABLE_GONE, "its table was dropped or renamed meanwhile")
        location = partition.location if partition else ""
    if not location:
        return Reason(Code.DROPPED, "it was dropped from the metastore meanwhile")
    if run.files.qualify(location) == unit.live:
        return None
    return Reason(Code.MOVED, "its location in the metastore was changed meanwhile")


def _directories_above(live: str, root: str) -> Sequence[str]:
    """The table's root and the directories between it and the unit: committers put their temporary directories there."""
    found = []
    while live != root and own_place.is_below(live, root):
        live = names.parent(live)
        found.append(live)
    return found


def can_tell_alone(run: Run, unit: PlannedUnit, checked: Checked) -> bool:
    """Whether an unchanged id and time of live prove that nothing was added; not if a query may start in Impala's staging directory."""
    before = checked.seen[unit.live]
    settled = manifests.can_tell(before, checked.clock_ms, run.files.clock_grain_ms)
    return settled and not any(listings.is_impala_staging(entry) for entry in before.entries)


def look_at_leaving(run: Run, unit: PlannedUnit, checked: Checked, left: FileInfo) -> Optional[Reason]:
    """Why the former live directory differs from what was checked; None if it does not, or if only complete files were added.

    `left` is its status after the rename. It can no longer be reached by its old path, so the answer stays true.
    """
    before = checked.seen[unit.live]
    if can_tell_alone(run, unit, checked) and manifests.is_untouched(before, left, checked.clock_ms, run.files.clock_grain_ms):
        return None
    if left.file_id != before.file_id:
        return OTHER_DIRECTORY
    seen = run.look([unit], [left.path])[left.path]
    entries = without_empty_staging(run.files, seen.entries)
    return why_too_many(run, unit, len(seen.entries)) or manifests.judge(unit.manifest, entries).why


def why_too_many(run: Run, unit: PlannedUnit, entries: int) -> Optional[Reason]:
    """Why a listing that ended at the most that is listed is not used: it may be only a part."""
    most = run.most_listed([unit])
    if entries < most:
        return None
    return Reason(Code.CHANGED_MEANWHILE, f"so many files came to it that there are {most} or more")
