"""Units whose new files somebody has removed before the log has the run, with nothing in their place: nobody can tell a deletion on purpose
from one that met what it did not mean, as when the metastore takes away a directory that it has made in a gap. Or before live had them, as
far as times tell: then what is in their place has replaced nothing. Their rows are in the backup alone.

Told last: what the metastore says of a unit comes first, and who overwrites it may have needed a moment. Reads only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Optional, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.model import Snapshot
from hivekeeper.names import UnitNumber
from hivekeeper.ports import FilesUnavailable
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests, store
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps import places
from hivekeeper.steps.late_directories import UNITS_AT_ONCE, look_at_last
from hivekeeper.steps.run_directory import LONG_GAP_MS, Run

UNSEEN = Snapshot(exists=False)


def is_taken_out(left: Snapshot, coming: Snapshot, noted_ms: int = 0) -> bool:
    """Whether the new files of the unit that left last, which wait no more, were taken out of where they waited by somebody else, as far as
    times tell: `coming`, the directory around that, was changed long after old files came to `left`. The exchange does it within a moment,
    or before it has noted, at `noted_ms`, that this took longer.
    """
    return not coming.exists or coming.mtime_ms > max(left.mtime_ms + LONG_GAP_MS, noted_ms)


def tell_removed(run: Run, results: Sequence[UnitResult]) -> Tuple[List[UnitResult], Optional[FilesUnavailable]]:
    """The results for the log, after a look at live of those whose new files were not there any more. If that cannot be had, its error is
    returned, too: the run is to be left for the next one, which looks again.

    What a join had inside its file went with it.
    """
    replaced = [one for one in results if one.why and one.why.code is Code.REPLACED_AFTER and one.planned.join is None]
    removed: Dict[UnitNumber, Snapshot] = {}
    try:
        for start in range(0, len(replaced), UNITS_AT_ONCE):
            some = replaced[start : start + UNITS_AT_ONCE]
            seen = look_at_last(run, [one.planned for one in some])
            for one in some:
                # Where live could not be listed, it is not known to have the new files.
                live = seen.get(one.planned.live, UNSEEN if one.planned.number in run.taken_out else None)
                if live is not None and _is_removed(run, one, live):
                    removed[one.planned.number] = live
    except FilesUnavailable as error:
        return list(results), error
    return [_tell(run, one, removed[one.planned.number]) if one.planned.number in removed else one for one in results], None


def _is_removed(run: Run, result: UnitResult, live: Snapshot) -> bool:
    """Whether files are missing, and all that live shows is what is left of the new ones, or copies of these: who has put back all that
    were missing has removed nothing. Most overwrites without rows leave an empty file; those that leave none, as a TRUNCATE does, cannot be
    told from a deletion. Whatever live shows has replaced nothing if live never had the new files, or they were moved into it with their
    directory, where no reader sees them.
    """
    new = manifests.without_ids(places.expected(result))
    if not manifests.tells(new) or manifests.holds(new, live.entries):
        return False
    if result.planned.number in run.taken_out or _find_moved(result, live):
        return True
    shown = [entry for entry in live.entries if not names.is_hidden(entry.name)]
    return all(not entry.is_dir and new.get(entry.name) == (entry.length, 0) for entry in shown)


def _find_moved(result: UnitResult, live: Snapshot) -> str:
    """The directory of the new files, if somebody has moved it into live, "" for none: so does `hdfs dfs -mv` where that was made again."""
    moved = names.unit_directory(result.planned.number)
    return next((entry.path for entry in live.entries if entry.is_dir and entry.name == moved), "")


def _tell(run: Run, result: UnitResult, live: Snapshot) -> UnitResult:
    """Nothing has replaced the old files then, by the log: a rollback brings them back as soon as live holds none."""
    planned, moved = result.planned, _find_moved(result, live)
    of_run = f"--table {quoting.shell(run.table.full_name)} --run {store.run_of(run.directory)}"
    instead = "nothing is in their place"
    if planned.number in run.taken_out:
        instead = "live may never have had them"
    if moved:
        instead = f"{moved} may have them, which readers do not see"
    what = f"somebody removed its new files before the log had the run, and {instead}: its rows are in "
    place = run.paths.unit("retired", planned.number)
    more = f"; {result.why.what}" if result.why and result.outcome.is_astray else ""
    advice = (
        f"if that was done on purpose: hivekeeper unpin {of_run}; if not: see that {planned.live} is there and holds no file or directory "
        f"(what writers have added can go back to it afterwards), then: hivekeeper rollback {of_run}"
        + (", with --where for this partition alone" if planned.name else "")
    )
    why = Reason(Code.REMOVED_AFTER, f"{what}{place}{more}", advice)
    return replace(result, planned=replace(planned, expected=()), outcome=Outcome.MISPLACED, certificate=None, why=why, has_backup=True)
