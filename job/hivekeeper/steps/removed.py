"""Units whose new files somebody has removed before the log has the run, with nothing in their place: nobody can tell a deletion on purpose
from one that met what it did not mean, as when the metastore takes away a directory that it has made in a gap. Their rows are in the backup
alone.

Told last: what the metastore says of a unit comes first, and who overwrites it may have needed a moment. Reads only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional, Sequence, Set, Tuple

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
from hivekeeper.steps.run_directory import Run


def tell_removed(run: Run, results: Sequence[UnitResult]) -> Tuple[List[UnitResult], Optional[FilesUnavailable]]:
    """The results for the log, after a look at live of those whose new files were not there any more. If that cannot be had, its error is
    returned, too: the run is to be left for the next one, which looks again.

    What a join had inside its file went with it.
    """
    replaced = [one for one in results if one.why and one.why.code is Code.REPLACED_AFTER and one.planned.join is None]
    removed: Set[UnitNumber] = set()
    try:
        for start in range(0, len(replaced), UNITS_AT_ONCE):
            some = replaced[start : start + UNITS_AT_ONCE]
            seen = look_at_last(run, [one.planned for one in some])
            removed.update(one.planned.number for one in some if _is_removed(one, seen.get(one.planned.live)))
    except FilesUnavailable as error:
        return list(results), error
    return [_tell(run, one) if one.planned.number in removed else one for one in results], None


def _is_removed(result: UnitResult, live: Optional[Snapshot]) -> bool:
    """Whether files are missing, and all that live shows is what is left of the new ones, or copies of these: who has put back all that
    were missing has removed nothing. Most overwrites without rows leave an empty file; those that leave none, as a TRUNCATE does, cannot be
    told from a deletion. What was moved to live with its directory, onto one that was made again, is inside that.
    """
    new = manifests.without_ids(places.expected(result))
    if live is None or not manifests.tells(new) or manifests.holds(new, live.entries):
        return False
    shown = [entry for entry in live.entries if not names.is_hidden(entry.name)]
    moved = names.unit_directory(result.planned.number)
    return all(entry.name == moved if entry.is_dir else new.get(entry.name) == (entry.length, 0) for entry in shown)


def _tell(run: Run, result: UnitResult) -> UnitResult:
    """Nothing has replaced the old files then, by the log: a rollback brings them back as soon as live holds none."""
    planned = result.planned
    of_run = f"--table {quoting.shell(run.table.full_name)} --run {store.run_of(run.directory)}"
    what = "somebody removed its new files before the log had the run, and nothing is in their place: its rows are in "
    place = run.paths.unit("retired", planned.number)
    more = f"; {result.why.what}" if result.why and result.outcome.is_astray else ""
    advice = (
        f"if that was done on purpose: hivekeeper unpin {of_run}; if not: see that {planned.live} is there and holds no file, "
        f"then: hivekeeper rollback {of_run}" + (", with --where for this partition alone" if planned.name else "")
    )
    why = Reason(Code.REMOVED_AFTER, f"{what}{place}{more}", advice)
    return replace(result, planned=replace(planned, expected=()), outcome=Outcome.MISPLACED, certificate=None, why=why, has_backup=True)
