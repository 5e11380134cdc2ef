"""Decide which units are skipped for a while because their compaction failed several nights in a row.

Pure: the table's log, its current units and the time in. A unit whose files have changed since is tried again at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Dict, Mapping, Optional, Tuple

from hivekeeper.config.settings import Settings
from hivekeeper.plan.analysis import ObservedTable, Status, UnitAnalysis
from hivekeeper.reasons import SHORT, Code, Reason, count_beyond, shorten
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History, LoggedUnit
from hivekeeper.runlog.manifests import Extent
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import COMPACT_SWAP

# Schedulers retry a few times, half an hour apart: failures closer together than this count as one night.
NIGHT_MS = 12 * 3_600_000


@dataclass(frozen=True)
class Streak:
    """Consecutive failures of one unit with the same files.

    `outcome` and `reason` are those of the last failure; `live` is relative to the table's location.
    """

    partition: str
    live: str
    source: Extent
    nights: int
    since_ms: int
    last_ms: int
    counted_ms: int
    outcome: Outcome
    reason: str
    reason_code: str = ""


@dataclass(frozen=True)
class Quarantine:
    """A unit that is skipped until `until_ms`."""

    streak: Streak
    until_ms: int

    @property
    def dispensable(self) -> int:
        """How many characters `shortened` takes away."""
        return count_beyond(self.streak.reason)

    def shortened(self) -> Quarantine:
        return replace(self, streak=replace(self.streak, reason=shorten(self.streak.reason, SHORT)))


def find_streaks(history: History, of_table: str, now_ms: int) -> Mapping[str, Streak]:
    """Units, by name, whose last compaction failed. A failure whose time is unreadable or in the future does not count."""
    streaks: Dict[str, Streak] = {}
    for run in history.runs:
        if run.operation != COMPACT_SWAP or run.table_id != of_table:
            continue
        for unit in run.units:
            if unit.outcome.is_failure and unit.source is not None and run.timestamp_ms is not None and run.timestamp_ms <= now_ms:
                streaks[unit.partition] = _prolong(streaks.get(unit.partition), unit, unit.source, run.timestamp_ms)
            elif not unit.outcome.is_silent:
                streaks.pop(unit.partition, None)
    return streaks


def _prolong(streak: Optional[Streak], unit: LoggedUnit, source: Extent, failed_ms: int) -> Streak:
    if streak is None or (streak.source, streak.live) != (source, unit.live):
        return Streak(unit.partition, unit.live, source, 1, failed_ms, failed_ms, failed_ms, unit.outcome, unit.reason, unit.reason_code)
    another_night = failed_ms - streak.counted_ms >= NIGHT_MS
    return replace(
        streak,
        nights=streak.nights + another_night,
        last_ms=failed_ms,
        counted_ms=failed_ms if another_night else streak.counted_ms,
        outcome=unit.outcome,
        reason=unit.reason,
        reason_code=unit.reason_code,
    )


def find_quarantined(history: History, of_table: str, settings: Settings, now_ms: int) -> Tuple[Quarantine, ...]:
    """The units in quarantine according to the log, ordered by name. The caller checks in a listing that their files are unchanged."""
    if not settings.quarantine_after:
        return ()
    streaks = find_streaks(history, of_table, now_ms)
    long = [streak for _, streak in sorted(streaks.items()) if streak.nights >= settings.quarantine_after]
    found = (Quarantine(streak, streak.last_ms + settings.quarantine_for_ms) for streak in long)
    return tuple(one for one in found if now_ms < one.until_ms)


def set_apart(observed: ObservedTable, history: History, now_ms: int) -> ObservedTable:
    """The table with the status of units in quarantine changed from compact to quarantined."""
    found = {one.streak.partition: one for one in find_quarantined(history, table_id(observed.table), observed.settings, now_ms)}
    units = tuple(_judge(unit, found.get(unit.name)) for unit in observed.units) if found else observed.units
    return replace(observed, units=units)


def _judge(unit: UnitAnalysis, quarantine: Optional[Quarantine]) -> UnitAnalysis:
    if quarantine is None or unit.status is not Status.COMPACT or Extent.of(unit.snapshot.entries) != quarantine.streak.source:
        return unit
    return replace(unit, status=Status.QUARANTINED, target_files=unit.sizes.files, reason=explain(quarantine))


def explain(quarantine: Quarantine) -> Reason:
    streak = quarantine.streak
    nights = "one night" if streak.nights == 1 else f"{streak.nights} nights in a row"
    return Reason(
        Code.QUARANTINED,
        f"its compaction failed {nights} since {day_text(streak.since_ms)}, so it is left alone until {day_text(quarantine.until_ms)}; "
        f"last: {streak.outcome.text}: {streak.reason}",
        "fix the cause; --set quarantine_after=0 tries it at once, and so does a change of its files",
    )


def day_text(time_ms: int) -> str:
    """`2026-01-01`, in UTC."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, timezone.utc).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):
        return "an unknown day"
