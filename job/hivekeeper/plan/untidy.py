"""Decide which directories of finished runs have to be looked at again for what does not belong there any more.

Pure. A run that writes to the log has looked at all of them before it began, so only what the log says of later is looked at: a table may
keep the backups of hundreds of runs.
"""

from __future__ import annotations

from typing import FrozenSet, Iterable, Mapping, Optional, Set

from hivekeeper import names
from hivekeeper.names import RunId
from hivekeeper.runlog.history import History, LoggedRun
from hivekeeper.runlog.run_files import BACKUP, CLEANUP, COMPACT_SWAP, PIN, ROLLBACK, UNPIN

# Each of them settles, and so tidies, before its first entry. A verify writes its entry without that.
TIDYING = frozenset([COMPACT_SWAP, ROLLBACK, CLEANUP, BACKUP, PIN, UNPIN])
# How much later than the NameNode's the clock may be that gave a run its id; Kerberos allows five minutes.
MOST_SKEW_MS = 3_600_000


def choose_untidy(history: History, modified_ms: Mapping[str, int]) -> FrozenSet[str]:
    """Those directories of finished runs that may hold something needless. `modified_ms`: when each run's directory last changed."""
    finished = frozenset(name for name in modified_ms if names.run_of(name) in history.finished)
    last = _find_last(history)
    began_ms = names.started_ms(last.run) if last else None
    if last is None or began_ms is None:
        return finished
    since = history.runs[min(run.version for run in history.runs if run.run == last.run) :]
    if any(run.expired for run in since):
        return finished
    concerned = _find_concerned(since)
    # A process that wakes up when its run is over may still put something into its directory.
    fresh_ms = began_ms - MOST_SKEW_MS
    return frozenset(name for name in finished if names.run_of(name) in concerned or modified_ms[name] >= fresh_ms)


def _find_last(history: History) -> Optional[LoggedRun]:
    """The last run that settled what was there and wrote its own entry; one by a recovery does not tell whether its run had got so far."""
    return next((run for run in reversed(history.runs) if run.operation in TIDYING and run.recovered_by is None), None)


def _find_concerned(entries: Iterable[LoggedRun]) -> FrozenSet[Optional[RunId]]:
    """The runs that wrote these entries, and those whose backups they say were taken: restored, or discarded."""
    found: Set[Optional[RunId]] = set()
    for entry in entries:
        found.add(entry.run)
        found.update(effect.undoes[0] for effect in entry.effects if effect.undoes)
        found.update(names.run_of(place.split("/")[1]) for place in (*entry.discarding, *entry.discarded) if "/" in place)
    return frozenset(found)
