"""The possible outcomes of a unit, and their consequences.

Pure. The log and the result document identify an outcome by its code. Its consequences are attributes of the member, so that
they are defined once, here.
"""

from __future__ import annotations

from enum import Flag, auto
from typing import Iterable, Iterator, Protocol, Tuple, TypeVar

from hivekeeper.codes import Coded, Exit


class Kind(Coded):
    """How schedulers count a unit (docs/schedulers.md)."""

    DONE = auto()
    SKIPPED = auto()
    REFUSED = auto()
    QUARANTINED = auto()
    LEFT = auto()
    FAILED = auto()


class Implies(Flag):
    """What an outcome implies about the unit's live directory and the attempted compaction."""

    NOTHING = 0
    # Live was moved away, or may have been: a late committer may have hit the gap.
    TOUCHED = auto()
    # Live holds, or held, other files than before.
    EXCHANGED = auto()
    # The sizes in the metastore still describe the former files.
    RESIZED = auto()
    # The unit's own compaction failed; several of these in a row lead to quarantine.
    FAILURE = auto()
    # The run ended before it reached the unit, which does not interrupt a series of failures.
    SILENCE = auto()


_EXCHANGED = Implies.TOUCHED | Implies.EXCHANGED | Implies.RESIZED


class Outcome(Coded):
    """The outcome of one unit: how it is counted, its exit code, what it implies, which commands produce it, and its meaning."""

    PLANNED = Kind.DONE, Exit.DONE, Implies.NOTHING, ("every dry run",), "would be done"
    SWAPPED = Kind.DONE, Exit.DONE, _EXCHANGED, ("compact-swap",), "the compacted files are live"
    ROLLED_BACK = Kind.DONE, Exit.DONE, _EXCHANGED, ("rollback",), "the old files are live"
    OVERWRITTEN = (
        Kind.DONE,
        Exit.DONE,
        Implies.EXCHANGED,
        ("compact-swap", "rollback"),
        "done, and somebody replaced the files before the run ended: theirs are live",
    )
    PUT_BACK = (
        Kind.FAILED,
        Exit.PARTIAL,
        Implies.TOUCHED,
        ("compact-swap", "rollback"),
        "a writer was at work in the gap: live is what it was",
    )
    DROPPED_MEANWHILE = (
        Kind.FAILED,
        Exit.PARTIAL,
        Implies.TOUCHED | Implies.EXCHANGED,
        ("compact-swap", "rollback", "recover"),
        "the partition was dropped from the metastore meanwhile and is not put back; what left live is a backup",
    )
    MISPLACED = (
        Kind.FAILED,
        Exit.INVESTIGATE,
        Implies.TOUCHED | Implies.EXCHANGED,
        ("compact-swap", "rollback", "recover"),
        "the metastore has the table or partition elsewhere now, or another one under its name, or live was replaced before all of its "
        "files were back, or its new files were removed, or a directory is in it, or blocks of it are lost and a proved copy is kept: "
        "readers may not see these rows; the reason says where they are",
    )
    NOT_SWAPPED = Kind.FAILED, Exit.PARTIAL, Implies.TOUCHED | Implies.SILENCE, ("recover",), "the run ended before this unit's swap"
    NOT_ROLLED_BACK = (
        Kind.FAILED,
        Exit.PARTIAL,
        Implies.TOUCHED,
        ("rollback", "recover"),
        "its rollback was interrupted: live is what it was; the reason says why",
    )
    GIVEN_UP = (
        Kind.FAILED,
        Exit.PARTIAL,
        Implies.NOTHING,
        ("compact-swap", "rollback"),
        "live was not touched; the reason says what changed since the plan, or failed",
    )
    DIFFERS = (
        Kind.FAILED,
        Exit.DIFFERENT,
        Implies.FAILURE,
        ("compact-swap", "verify"),
        "the proof failed, before a swap; live does not hold what the backup holds, or that is gone or was changed",
    )
    FAILED = Kind.FAILED, Exit.PARTIAL, Implies.FAILURE, ("compact-swap",), "the job that writes it failed: live was not touched"
    LEFT = (
        Kind.LEFT,
        Exit.PARTIAL,
        Implies.SILENCE,
        ("compact-swap", "rollback", "cleanup"),
        "not begun, nothing was touched: the command had to end, there is no room for it, job after job failed, or others held checks up",
    )
    REFUSED = (
        Kind.REFUSED,
        Exit.REFUSED,
        Implies.NOTHING,
        ("compact-swap", "rollback", "backup"),
        "not fit, or it would bring old rows over newer ones",
    )
    EMPTY = Kind.SKIPPED, Exit.DONE, Implies.NOTHING, ("compact-swap",), "its files hold no rows"
    FEWEST = Kind.SKIPPED, Exit.DONE, Implies.NOTHING, ("compact-swap",), "its files are of different forms, and cannot become fewer"
    RECENT = Kind.SKIPPED, Exit.DONE, Implies.NOTHING, ("compact-swap",), "written to within `min_quiet`"
    QUARANTINED = (
        Kind.QUARANTINED,
        Exit.DONE,
        Implies.NOTHING,
        ("compact-swap",),
        "its compaction failed several nights in a row: left alone for a while",
    )
    RECORDED = Kind.DONE, Exit.DONE, Implies.NOTHING, ("backup",), "it is in the record"
    VERIFIED = Kind.DONE, Exit.DONE, Implies.NOTHING, ("verify",), "live holds what the backup holds"
    UNDONE = Kind.SKIPPED, Exit.DONE, Implies.NOTHING, ("verify", "rollback"), "it was rolled back already"
    DROPPED = Kind.SKIPPED, Exit.DONE, Implies.NOTHING, ("verify",), "the partition is not in the metastore any more"
    REPLACED = (
        Kind.SKIPPED,
        Exit.DONE,
        Implies.NOTHING,
        ("verify",),
        "its backup was discarded, or went with the file that had it inside, and all its files were replaced since: nothing to compare",
    )
    DISCARDED = Kind.DONE, Exit.DONE, Implies.NOTHING, ("cleanup",), "its backup is deleted"
    KEPT = (
        Kind.FAILED,
        Exit.PARTIAL,
        Implies.NOTHING,
        ("cleanup",),
        "its backup could not be deleted, or is not what it was; the reason says why",
    )

    def __init__(self, kind: Kind, exit: Exit, implies: Implies, commands: Tuple[str, ...], meaning: str) -> None:
        self.kind = kind
        self.exit = exit
        self.implies = implies
        self.commands = commands
        self.meaning = meaning

    @property
    def is_done(self) -> bool:
        """Whether the command did what was requested."""
        return self.kind is Kind.DONE

    @property
    def touched(self) -> bool:
        return Implies.TOUCHED in self.implies

    @property
    def exchanged(self) -> bool:
        return Implies.EXCHANGED in self.implies

    @property
    def is_astray(self) -> bool:
        """Whether the metastore no longer has the unit where it was exchanged."""
        return self in (Outcome.DROPPED_MEANWHILE, Outcome.MISPLACED)

    @property
    def resized(self) -> bool:
        return Implies.RESIZED in self.implies

    @property
    def is_failure(self) -> bool:
        return Implies.FAILURE in self.implies

    @property
    def is_silent(self) -> bool:
        return Implies.SILENCE in self.implies


# So many units of a table, or of an entry of its log, whose rows readers may miss keep their reasons whole in an answer that would become
# too large.
MOST_ASTRAY = 1000


class WithOutcome(Protocol):
    """A unit of an answer, or of the log."""

    @property
    def outcome(self) -> Outcome: ...


Told = TypeVar("Told", bound=WithOutcome)


def spare_astray(units: Iterable[Told]) -> Iterator[Tuple[Told, bool]]:
    """Each unit, and whether its reason must stay whole: only that says where the rows are."""
    found = 0
    for unit in units:
        found += unit.outcome.is_astray
        yield unit, unit.outcome.is_astray and found <= MOST_ASTRAY
