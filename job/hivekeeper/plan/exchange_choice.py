"""Decide which exchange a unit gets: that of its directory, or a join of its small files (docs/concat.md).

Pure: sizes, settings and what is known of a directory in, a choice with its reason out. In doubt files are not joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from hivekeeper import names
from hivekeeper.config.settings import AT_ONCE, AUTO, JOINED, TRASH, Settings
from hivekeeper.model import Attributes, Ties
from hivekeeper.plan import sizing
from hivekeeper.reasons import Code, Reason

AS_SET = Reason(Code.EXCHANGE_SET, "the setting exchange says so")
MOSTLY_WELL_SIZED = Reason(Code.MOSTLY_WELL_SIZED, "well-sized files make up most of its bytes")
MOSTLY_SMALL = Reason(Code.MOSTLY_SMALL, "well-sized files make up no more than half of its bytes")

_INSTEAD = "set exchange to directory for this table"


@dataclass(frozen=True)
class Mix:
    """How much of a unit is in small files."""

    small_files: int
    small_bytes: int
    total_bytes: int

    @classmethod
    def of(cls, lengths: sizing.Counts, settings: Settings) -> Mix:
        """Of so many files of each length."""
        small = sizing.find_small(lengths, settings.block_bytes, settings.ratio_threshold)
        return cls(*sizing.sum_up(small), sizing.sum_up(lengths)[1])

    @property
    def is_mostly_well_sized(self) -> bool:
        return 2 * self.small_bytes < self.total_bytes


@dataclass(frozen=True)
class Facts:
    """What decides about a unit. `obstacle`: why its files cannot be joined; `tie`: why its directory must not be renamed;
    `is_worth_a_swap`: it gains by a rewrite of all its files.
    """

    is_mostly_well_sized: bool
    is_worth_a_swap: bool
    obstacle: Optional[Reason] = None
    tie: Optional[Reason] = None


@dataclass(frozen=True)
class Choice:
    """The exchange of a unit, AT_ONCE or JOINED, and why; None for neither. `is_refused`: not because there is nothing to gain."""

    exchange: Optional[str]
    why: Reason
    is_refused: bool = False


def choose(wish: str, facts: Facts) -> Choice:
    """`wish` is the setting `exchange`."""
    obstacle, tie = facts.obstacle, facts.tie
    if wish == JOINED:
        return _leave(obstacle) if obstacle else Choice(JOINED, AS_SET)
    if wish == AT_ONCE:
        return Choice(None, tie, is_refused=True) if tie else Choice(AT_ONCE, AS_SET)
    if obstacle is None and (tie or facts.is_mostly_well_sized):
        return Choice(JOINED, tie or MOSTLY_WELL_SIZED)
    if not facts.is_worth_a_swap:
        return Choice(None, obstacle or MOSTLY_SMALL)
    if tie:
        return Choice(None, tie if obstacle is None else _neither(tie, obstacle), is_refused=True)
    return Choice(AT_ONCE, obstacle if obstacle and facts.is_mostly_well_sized else MOSTLY_SMALL)


def _leave(obstacle: Reason) -> Choice:
    """Few small files are what every table has on most nights: no operator needs to act on that."""
    return Choice(None, obstacle, is_refused=obstacle.code is not Code.FEW_TO_JOIN)


def _neither(tie: Reason, obstacle: Reason) -> Reason:
    return Reason(tie.code, f"{tie.what}; its files cannot be joined either: {obstacle.what}", tie.next)


def judge(format: Optional[str], mix: Mix, settings: Settings, is_worth_a_swap: bool) -> Choice:
    """By metadata alone: sizes, format and settings."""
    return choose(settings.exchange, Facts(mix.is_mostly_well_sized, is_worth_a_swap, find_obstacle(format, mix, settings)))


def find_obstacle(format: Optional[str], mix: Mix, settings: Settings) -> Optional[Reason]:
    """Why no files of a unit can be joined, by its metadata."""
    if format is None:
        return impossible("its format is not Parquet or ORC")
    if settings.sort_columns:
        return impossible("sort_columns is set, and only a copy of rows in their order can be joined")
    if settings.discard == TRASH:
        what = "discard is trash, and the old rows, inside the new file, cannot go there"
        return impossible(what, f"set discard to delete, or {_INSTEAD}")
    if settings.read_by_llap:
        what = "LLAP may read it, and could keep showing no rows of a file that was joined"
        return impossible(what, f"see docs/swap.md, what caches keep; then set read_by_llap to false, or {_INSTEAD}")
    return few_to_join(settings) if mix.small_files < settings.fewest_joined else None


def find_obstacle_at(live: str, control: str, ties: Ties, control_zone: str, attributes: Attributes) -> Optional[Reason]:
    """Why no files of a directory can be joined. `control_zone`: the encryption zone around the control directory."""
    if names.server_of(live) != names.server_of(control):
        return impossible(f"its directory is not on the file system of the control directory ({control})")
    if ties.zone or control_zone:
        return impossible(f"HDFS joins no files in an encryption zone ({ties.zone or control_zone})")
    if attributes.ec_policy:
        return impossible(f"its files are erasure-coded ({attributes.ec_policy}), which is not tried")
    return None


def has_snapshots(place: str) -> Reason:
    return impossible(f"snapshots of {place} may hold its files, and HDFS does not join those")


def has_summary(name: str) -> Reason:
    return impossible(f"a summary of its files ({name}) lies beside them, which a join would leave there though they are gone")


def few_to_join(settings: Settings) -> Reason:
    what = f"it has fewer than {settings.fewest_joined} small files of one form, too few to be joined"
    return Reason(Code.FEW_TO_JOIN, what, "nothing is to be done")


def impossible(what: str, next: str = _INSTEAD) -> Reason:
    return Reason(Code.NOT_JOINABLE, what, next)


def snapshots_of(directory: str) -> str:
    """Where HDFS lists the snapshots of a directory; there is nothing if none can be made of it."""
    return names.join(directory, ".snapshot")


def is_open(settings: Settings) -> bool:
    """Whether anything is to be chosen."""
    return settings.exchange in (AUTO, JOINED)
