"""Decide how much of a table's work there is room for: on disk, in quotas, and within the limits on its backups.

Pure: ranked units and limits in; out come the units that fit and, for each other unit, the limit it exceeds, in numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Callable, Collection, Deque, Iterable, List, Optional, Sequence, Tuple

from hivekeeper import quoting
from hivekeeper.config.settings import Settings
from hivekeeper.model import Quota, Room
from hivekeeper.plan import sizing
from hivekeeper.plan.analysis import ObservedTable, UnitAnalysis, count_batches
from hivekeeper.plan.compaction import Candidate, Left
from hivekeeper.plan.listings import marker_files
from hivekeeper.plan.retention import Backup
from hivekeeper.reasons import Code, Reason

# Units that are passed over in one search.
MOST_PASSED = 100
# Values that nothing covers (`Candidate.bare_values`) which are read of one table, and of all tables of a command besides. A core copies
# and proves fifteen million in a second.
MOST_VALUES_OF_TABLE = 2**26
MOST_VALUES_OF_COMMAND = 2**35


@dataclass(frozen=True)
class Limit:
    """A limited resource with an amount `left`. A run always takes `fixed` of it, plus the `cost` of each unit.

    `explain` gives the reason that the needed amount is not available. `is_debt`: the limit is the site's own on backups; beyond
    any other limit nothing can be written.
    """

    left: int
    fixed: int
    cost: Callable[[UnitAnalysis], int]
    explain: Callable[[int], Reason]
    is_debt: bool = False


class Budget:
    """What the units that were taken need of each limit. `beyond`: units that no longer fit, whatever becomes of the others."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self._limits = limits
        self._used = [limit.fixed for limit in limits]
        self.beyond: List[UnitAnalysis] = []

    def take(self, units: Iterable[UnitAnalysis]) -> None:
        for unit in units:
            self._used = self._with(self._used, unit)

    def choose(self, waiting: Deque[UnitAnalysis], most: int) -> List[UnitAnalysis]:
        """The next units that fit together, in order; they leave `waiting`, and so do those that are too large.

        A unit that is too large is passed over: it must not block all the others for ever. One that only lacks the room of those chosen
        before it stays, because they may prove unfit. After MOST_PASSED of these the others come with the next call, so that calls for a
        unit at a time do not look at all units each time.
        """
        used = self._used
        chosen: List[UnitAnalysis] = []
        passed: List[UnitAnalysis] = []
        while waiting and len(chosen) < most and len(passed) < MOST_PASSED:
            unit = waiting.popleft()
            after = self._with(used, unit)
            if self._fits(after):
                chosen.append(unit)
                used = after
            elif self._fits(self._with(self._used, unit)):
                passed.append(unit)
            else:
                self.beyond.append(unit)
        waiting.extendleft(reversed(passed))
        return chosen

    def _with(self, used: Sequence[int], unit: UnitAnalysis) -> List[int]:
        return [so_far + limit.cost(unit) for so_far, limit in zip(used, self._limits)]

    def _fits(self, used: Sequence[int]) -> bool:
        return all(needed <= limit.left for needed, limit in zip(used, self._limits))


def explain_left(waiting: Sequence[UnitAnalysis], limits: Sequence[Limit], taken: Sequence[UnitAnalysis]) -> Tuple[Left, ...]:
    """The limit that each waiting unit exceeds, with the total needed by all of them, so that units with one cause share one text.

    A unit that exceeds no limit waits for the next run, because max_units or max_bytes ends this one.
    """
    used = [limit.fixed + sum(map(limit.cost, taken)) for limit in limits]
    reasons = [limit.explain(so_far + sum(map(limit.cost, waiting))) for so_far, limit in zip(used, limits)]
    left: List[Left] = []
    for unit in waiting:
        met = [at for at, limit in enumerate(limits) if used[at] + limit.cost(unit) > limit.left]
        left.extend(Left(unit.unit, reasons[at], limits[at].is_debt) for at in met[:1])
    return tuple(left)


class RoomForValues:
    """How many values that nothing covers a command may still read. A table has some for itself, so that no other one can take them."""

    def __init__(self) -> None:
        self._of_table, self._of_command = 0, MOST_VALUES_OF_COMMAND

    def begin_table(self) -> None:
        self._of_table = MOST_VALUES_OF_TABLE

    def take(self, candidate: Candidate) -> Candidate:
        """The candidate, unfit if there is no room for it."""
        if candidate.footers.values > candidate.values_of_outputs:
            return replace(candidate, unfit=_explain_unreadable(candidate))
        shared = max(0, candidate.bare_values - self._of_table)
        if shared > self._of_command:
            return replace(candidate, unfit=self._explain(candidate.bare_values))
        self._of_table -= candidate.bare_values - shared
        self._of_command -= shared
        return candidate

    def _explain(self, needed: int) -> Reason:
        room = self._of_table + self._of_command
        what = f"its files claim {needed:,} values more than files of their size can be expected to hold"
        what += f"; of such values this command reads {room:,} more here"
        return Reason(Code.TOO_MANY_VALUES, what, "compact the table by a command of its own; if that does not help, write the files anew")


def _explain_unreadable(candidate: Candidate) -> Reason:
    values, most = candidate.footers.values, candidate.values_of_outputs
    what = f"its files claim {values:,} values; of fewer files of that size no more than {most:,} are read"
    return Reason(Code.TOO_MANY_VALUES, what, "leave the unit out with --where, or write the files anew")


def limit_by_wish(settings: Settings) -> List[Limit]:
    """The site's limit on bytes rewritten in one run. Units that do not fit wait silently, like those beyond max_units."""
    if settings.max_bytes is None:
        return []
    reason = Reason(Code.MORE_THAN_WANTED, "more than max_bytes would be rewritten", "raise max_bytes")
    return [Limit(settings.max_bytes, 0, lambda unit: unit.sizes.total_bytes, lambda _needed: reason)]


def limit_by_room(observed: ObservedTable, chosen: Collection[UnitAnalysis], room: Room) -> List[Limit]:
    """The limits of disk and quotas. The old files stay as the backup, so the new ones need space and names of their own."""
    limits = []
    if room.free_bytes is not None:
        limits.append(_limit_by_disk(room.free_bytes, room))
    for quota in room.quotas:
        if quota.disk_left is not None:
            limits.append(_limit_by_space_quota(quota, quota.disk_left, room))
        if quota.names_left is not None:
            limits.append(_limit_by_names(quota, quota.names_left, observed, chosen))
    return limits


# A file takes a whole block until it is closed, so our last record needs one in addition to all data.
A_BLOCK = "a whole block of them to begin a file"
MAKE_ROOM = "free space or raise the quota, or let cleanup discard backups"


def _limit_by_disk(free_bytes: int, room: Room) -> Limit:
    def explain(needed: int) -> Reason:
        return Reason(
            Code.NOT_ENOUGH_SPACE, f"not enough space: {needed:,} bytes are needed ({A_BLOCK}), {free_bytes:,} are free", MAKE_ROOM
        )

    return Limit(free_bytes, room.block_bytes, lambda unit: math.ceil(unit.sizes.total_bytes * _copies(unit, room) / room.copies), explain)


def _copies(unit: UnitAnalysis, room: Room) -> float:
    """How many bytes of disk one byte of a unit's new files takes."""
    return max(room.copies, sizing.copies_of(entry.replication for entry in unit.snapshot.entries))


def _limit_by_space_quota(quota: Quota, disk_left: int, room: Room) -> Limit:
    def explain(needed: int) -> Reason:
        what = f"not enough space: {needed:,} bytes of disk are needed ({room.copies:g} for each byte; {A_BLOCK})"
        return Reason(Code.NOT_ENOUGH_SPACE, f"{what}, {disk_left:,} are left in the quota of {quota.path}", MAKE_ROOM)

    fixed = math.ceil(room.block_bytes * room.copies)
    return Limit(disk_left, fixed, lambda unit: math.ceil(unit.sizes.total_bytes * _copies(unit, room)), explain)


def _limit_by_names(quota: Quota, names_left: int, observed: ObservedTable, chosen: Collection[UnitAnalysis]) -> Limit:
    def explain(needed: int) -> Reason:
        return Reason(
            Code.NOT_ENOUGH_NAMES,
            f"not enough names: {needed:,} are needed, {names_left:,} are left in the quota of {quota.path}",
            MAKE_ROOM,
        )

    batches = count_batches([unit.sizes.total_bytes for unit in chosen], observed.settings)
    return Limit(names_left, sizing.control_names(batches, not observed.has_control), count_names, explain)


def count_names(unit: UnitAnalysis) -> int:
    """Files and directories that a unit takes while it is written: each new file has its task's directory, with one for the unit in it.

    Afterwards only the files and one directory remain.
    """
    return 3 * unit.target_files + len(marker_files(unit.snapshot))


def limit_by_debt(table: str, backups: Sequence[Backup], settings: Settings) -> List[Limit]:
    """The site's limits on the backups of a table: what they already hold counts, and what this run would add."""
    limits = []
    if settings.max_backup_bytes is not None:
        held = [sum(effect.backup_bytes for effect in backup.effects) for backup in backups]
        limits.append(_limit_debt(table, backups, held, settings.max_backup_bytes, "bytes", lambda unit: sum(_lengths(unit))))
    if settings.max_backup_objects is not None:
        held = [one.count_objects(settings.block_bytes) for one in backups]
        cost = lambda unit: sizing.directory_objects(_lengths(unit), settings.block_bytes)  # noqa: E731
        limits.append(_limit_debt(table, backups, held, settings.max_backup_objects, "objects", cost))
    return limits


def _limit_debt(
    table: str, backups: Sequence[Backup], held: Sequence[int], most: int, noun: str, cost: Callable[[UnitAnalysis], int]
) -> Limit:
    total = sum(held)
    pinned = sum(size for size, backup in zip(held, backups) if backup.pinned)

    def explain(needed: int) -> Reason:
        what = f"its backups hold {total:,} of {most:,} {noun} (max_backup_{noun}), {needed:,} more are needed"
        if pinned * 2 > total:
            what += f"; {pinned:,} of them are pinned"
        unpin = f"unpin what nobody needs (hivekeeper history --table {quoting.shell(table)}), then " if pinned * 2 > total else ""
        return Reason(Code.BACKUPS_TOO_LARGE, what, f"{unpin}run: hivekeeper cleanup --table {quoting.shell(table)}")

    return Limit(most - total, 0, cost, explain, is_debt=True)


def _lengths(unit: UnitAnalysis) -> List[int]:
    return [entry.length for entry in unit.snapshot.entries if not entry.is_dir]


def refuse_whole(left: Sequence[Left], planned: int) -> Optional[Reason]:
    """Why nothing at all can be written, or None."""
    return left[0].reason if left and not planned and not any(one.is_debt for one in left) else None
