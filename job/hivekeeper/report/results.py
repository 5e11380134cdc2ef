"""What commands return: frozen results, rendered once by `report/`, and the resulting exit code.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

from hivekeeper.codes import Coded, Exit
from hivekeeper.model import Differences, FileRowGroups
from hivekeeper.names import RunId
from hivekeeper.plan.analysis import ObservedTable
from hivekeeper.plan.doctor import Check, code_of_checks
from hivekeeper.plan.image_survey import OrphanedData, Survey, Totals
from hivekeeper.plan.orphans import Orphan
from hivekeeper.plan.quarantine import Quarantine
from hivekeeper.plan.retention import Backup, Window
from hivekeeper.ports import Row
from hivekeeper.reasons import MOST_CHARACTERS, MOST_NAMED, Code, Reason, shorten
from hivekeeper.runlog.history import Effect, LoggedRun, LoggedUnit
from hivekeeper.runlog.outcomes import Outcome, spare_astray
from hivekeeper.runlog.replay import FileSet

# Which code wins when tables end differently: the one that most needs an operator comes first.
SEVERITY = (Exit.INVESTIGATE, Exit.BUG, Exit.DIFFERENT, Exit.USAGE, Exit.UNUSABLE, Exit.LOCKED, Exit.PARTIAL, Exit.REFUSED, Exit.DONE)

# With these an operator has to look, whatever ended the run: a later one may not find again what this one found.
LOOKED_AT = (Exit.INVESTIGATE, Exit.DIFFERENT)

# Of the text of each of two problems that are told as one.
HALF = MOST_CHARACTERS // 2 - 50


@dataclass(frozen=True)
class UnitOutcome:
    """The result of one unit. Sizes are bytes; `gap_ms` is how long readers could miss the unit, None if it was never away.

    `of_run` is the run that was undone or verified. `forms` counts the kinds of files that a compaction kept apart; None if it wrote none.
    `exchange`: how a compaction exchanges its files, a value of the setting, and why, where that was chosen.
    """

    name: str
    outcome: Outcome
    files_before: int
    bytes_before: int
    files_after: Optional[int] = None
    bytes_after: Optional[int] = None
    rows: Optional[int] = None
    gap_ms: Optional[float] = None
    late_files: Tuple[str, ...] = ()
    why: Optional[Reason] = None
    of_run: str = ""
    differences: Optional[Differences] = None
    forms: Optional[int] = None
    exchange: str = ""
    exchange_why: Optional[Reason] = None
    # How many late files are not named.
    more_late: int = 0
    # More than one: so many that are not told one by one. Then the sizes are their sums, and none has a name.
    units: int = 1

    @classmethod
    def of_several(cls, outcome: Outcome, units: Sequence[UnitOutcome]) -> UnitOutcome:
        """Units with one outcome, for reasons with one code, as one."""
        why = units[0].why
        if why and any(unit.why != why for unit in units):
            why = Reason(why.code, why.code.meaning, why.code.advice)
        gaps = [unit.gap_ms for unit in units if unit.gap_ms is not None]
        number = count_units(units)
        return cls(
            units[0].name if number == 1 else "",
            outcome,
            sum(unit.files_before for unit in units),
            sum(unit.bytes_before for unit in units),
            _sum_known(unit.files_after for unit in units),
            _sum_known(unit.bytes_after for unit in units),
            _sum_known(unit.rows for unit in units),
            max(gaps, default=None),
            why=why,
            more_late=sum(unit.late_count for unit in units),
            units=number,
        )

    @property
    def late_count(self) -> int:
        return len(self.late_files) + self.more_late

    def dispensable(self, keeps_why: bool) -> int:
        """How many characters `shortened` takes away."""
        examples = self.differences.examples if self.differences else ()
        of_rows = sum(len(value or "") for row in examples for value in row.values())
        why = None if keeps_why else self.why
        of_reasons = sum(one.dispensable for one in (why, self.exchange_why) if one)
        return of_reasons + sum(map(len, self.late_files[MOST_NAMED:])) + of_rows

    def shortened(self, keeps_why: bool) -> UnitOutcome:
        return replace(
            self,
            why=self.why.shortened() if self.why and not keeps_why else self.why,
            exchange_why=self.exchange_why.shortened() if self.exchange_why else None,
            late_files=self.late_files[:MOST_NAMED],
            more_late=self.more_late + len(self.late_files[MOST_NAMED:]),
            differences=self.differences.without_examples() if self.differences else None,
        )

    @property
    def reason(self) -> str:
        return self.why.what if self.why else ""

    @property
    def next(self) -> str:
        return self.why.next if self.why else ""

    @property
    def exit(self) -> Exit:
        """The exit code of the outcome; a unit refused only because a writer is at work should be retried."""
        refused = self.outcome is Outcome.REFUSED
        return self.why.exit if refused and self.why and self.why.waits_for_writer else self.outcome.exit


def _sum_known(numbers: Iterable[Optional[int]]) -> Optional[int]:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def count_units(units: Iterable[UnitOutcome]) -> int:
    """How many units: one whose files are joined has an outcome for each new file."""
    units = tuple(units)
    return len({unit.name for unit in units if unit.units == 1}) + sum(unit.units for unit in units if unit.units > 1)


class BackupState(Coded):
    """The result of one backup: the exit code, whether any of it was deleted, whether it counts as going, and the meaning."""

    THERE = Exit.DONE, False, False, "it is there (all commands but cleanup)"
    KEPT = Exit.DONE, False, False, "a rule keeps it"
    PLANNED = Exit.DONE, False, True, "a dry run would discard it"
    DISCARDED = Exit.DONE, True, True, "it is deleted"
    TRIMMED = Exit.DONE, True, True, "some of its units are deleted, a rule keeps the others"
    PARTLY = Exit.PARTIAL, True, False, "some of its units are not what they should be, or were not begun, and stay"
    LEFT = Exit.PARTIAL, False, False, "none of its units was begun: the command had to end"

    def __init__(self, exit: Exit, did_something: bool, goes: bool, meaning: str) -> None:
        self.exit = exit
        self.did_something = did_something
        self.goes = goes
        self.meaning = meaning


@dataclass(frozen=True)
class FilesOfUnits:
    """What is told of the old files of several units together."""

    units: int
    files: int
    total_bytes: int

    @classmethod
    def of(cls, effects: Sequence[Effect]) -> FilesOfUnits:
        return cls(len(effects), sum(one.backup_files for one in effects), sum(one.backup_bytes for one in effects))


@dataclass(frozen=True)
class BackupOutcome:
    """One backup as shown by cleanup or history.

    `going` is what a cleanup chose of it; `kept_units` are those that could not be discarded or that a rule keeps, with the reason.
    """

    backup: Backup
    state: BackupState
    why: Optional[Reason] = None
    kept_units: Tuple[Tuple[str, Optional[Reason]], ...] = ()
    late_files: Tuple[str, ...] = ()
    going: Tuple[Effect, ...] = ()
    more_late: int = 0
    # Of all its units, and of those that go, where a command over many tables has no room for them; how many more are kept.
    of_all: Optional[FilesOfUnits] = None
    of_going: Optional[FilesOfUnits] = None
    more_kept: int = 0

    def without_files(self) -> BackupOutcome:
        backup = self.backup.without_files()
        # Those that go are some of all: there may be a million, which need not be held twice.
        held = {effect.key: effect for effect in backup.effects}
        return replace(self, backup=backup, going=tuple(held[effect.key] for effect in self.going))

    def without_units(self, most: int) -> BackupOutcome:
        """With so many of the units that are kept, of which those that could not be discarded come first: of these one at least."""
        most = max(most, 0 if self.is_done else 1)
        return replace(
            self,
            backup=replace(self.backup, effects=()),
            going=(),
            of_all=self.held,
            of_going=self.chosen,
            kept_units=self.kept_units[:most],
            more_kept=self.more_kept + len(self.kept_units[most:]),
        )

    @property
    def held(self) -> FilesOfUnits:
        return self.of_all or FilesOfUnits.of(self.backup.effects)

    @property
    def chosen(self) -> FilesOfUnits:
        return self.of_going or FilesOfUnits.of(self.going)

    @property
    def dispensable(self) -> int:
        """How many characters `shortened` takes away."""
        reasons = (self.why, *(why for _, why in self.kept_units))
        return sum(why.dispensable for why in reasons if why) + sum(map(len, self.late_files[MOST_NAMED:]))

    def shortened(self) -> BackupOutcome:
        return replace(
            self,
            why=self.why.shortened() if self.why else None,
            kept_units=tuple((name, why.shortened() if why else None) for name, why in self.kept_units),
            late_files=self.late_files[:MOST_NAMED],
            more_late=self.more_late + len(self.late_files[MOST_NAMED:]),
        )

    @property
    def late_count(self) -> int:
        return len(self.late_files) + self.more_late

    @property
    def going_files(self) -> int:
        return self.chosen.files

    @property
    def going_bytes(self) -> int:
        return self.chosen.total_bytes

    @property
    def reason(self) -> str:
        return self.why.what if self.why else ""

    @property
    def is_done(self) -> bool:
        """Whether all went that was to go."""
        return self.state.exit is Exit.DONE

    @property
    def trouble(self) -> Optional[Reason]:
        """Why not all went that was to go, by its first unit; None if all did, or if that is unknown: other units' reasons may be rules."""
        return self.kept_units[0][1] if self.kept_units and not self.is_done else None


@dataclass(frozen=True)
class KeptFiles:
    """The old files that one run left of one unit; whether they stay if a cleanup comes now, and why."""

    backup: Backup
    effect: Effect
    stay: bool
    why: Reason

    def without_files(self) -> KeptFiles:
        # With the backup's other units, those of a million would be held a million times.
        return replace(self, backup=replace(self.backup, effects=()), effect=self.effect.without_files())

    @property
    def dispensable(self) -> int:
        """How many characters `shortened` takes away."""
        return self.why.dispensable

    def shortened(self) -> KeptFiles:
        return replace(self, why=self.why.shortened())


@dataclass(frozen=True)
class Forgotten:
    """What `forget` removed of a table: its control directory, with so many log entries in it, and backup tables."""

    place: str
    entries: int = 0
    backup_tables: Tuple[str, ...] = ()


@dataclass(frozen=True)
class OfAllOldFiles:
    """What is told of all old files of a table: how many times a run left some of a unit, of how many partitions, how many would go."""

    number: int
    partitions: int
    going: int

    @classmethod
    def of(cls, old_files: Sequence[KeptFiles]) -> OfAllOldFiles:
        return cls(len(old_files), len({one.effect.partition for one in old_files}), sum(not one.stay for one in old_files))


KNOWN_CODES = frozenset(code.code for code in Code)


@dataclass(frozen=True)
class LoggedUnits:
    """Units of one logged run, with one outcome, for reasons with one code ("" for one that this version does not know)."""

    outcome: Outcome
    code: str
    units: int
    gap_ms: Optional[float]
    late_count: int

    @classmethod
    def of(cls, units: Iterable[LoggedUnit]) -> Tuple[LoggedUnits, ...]:
        alike: Dict[Tuple[Outcome, str], List[LoggedUnit]] = {}
        for unit in units:
            alike.setdefault((unit.outcome, unit.reason_code if unit.reason_code in KNOWN_CODES else ""), []).append(unit)
        return tuple(
            cls(
                outcome,
                code,
                len(each),
                max((unit.gap_ms for unit in each if unit.gap_ms is not None), default=None),
                sum(unit.late_count for unit in each),
            )
            for (outcome, code), each in alike.items()
        )


@dataclass(frozen=True)
class LeftOut:
    """What the log of a table says that is not told one by one, because all tables together have too much of it.

    `units` and `places` are of runs, by the versions of their entries; `files` and `tombstones` of a version of the log. `old_files` counts
    those that are told, too.
    """

    units: Mapping[int, Tuple[LoggedUnits, ...]] = field(default_factory=dict)
    places: Mapping[int, int] = field(default_factory=dict)
    old_files: Optional[OfAllOldFiles] = None
    quarantined: int = 0
    changes: int = 0
    files: int = 0
    tombstones: int = 0


def _reduce_backups(backups: Sequence[BackupOutcome], most: int) -> Tuple[BackupOutcome, ...]:
    """With so many units in all of them, those of the gravest backups first; with one at least of each that could not go as a whole."""
    found: Dict[int, BackupOutcome] = {}
    for at in sorted(range(len(backups)), key=lambda at: SEVERITY.index(backups[at].state.exit)):
        found[at] = backups[at].without_units(most)
        most -= len(found[at].kept_units)
    return tuple(found[at] for at in range(len(backups)))


def _choose_logged(runs: Iterable[LoggedRun], most: int) -> Set[Tuple[int, int]]:
    """So many units of all runs, the gravest, then those of the newest runs: the version of each one's entry, and its place there."""
    every = ((SEVERITY.index(unit.outcome.exit), -run.version, at) for run in runs for at, unit in enumerate(run.units))
    return {(-newest, at) for _, newest, at in nsmallest(most, every)}


# The parts of a table's outcome that can be shortened as a whole.
Shortenable = Union[ObservedTable, BackupOutcome, LoggedRun, KeptFiles, Quarantine]


@dataclass(frozen=True)
class TableOutcome:
    """The result of one table. `recovered` holds (run, number of units by outcome) of interrupted runs that were settled first.

    `declined`: the operator was asked and said no. `is_unrecorded`: the work is done, but perhaps has no log entry. `log`, `files`,
    `changes`, `old_files` and `cleanups` are the results of history: all entries, the files at a version, the files one run removed and
    added, the old files by partition; `quarantined` goes with all entries; `orphans`: the leftovers in a database, whose name is then
    `table`. `forgotten`: what `forget` removed. `window`: what a cleanup keeps whole. `answered_by`: nothing was done, because this run
    bore the command's run key already. `row_groups`: by unit, those of files that are live now and whose footers the command read, if the
    catalogue wants them. `left_out`: what is told of the log together.
    """

    table: str
    run: Optional[RunId] = None
    units: Tuple[UnitOutcome, ...] = ()
    observed: Optional[ObservedTable] = None
    problem: Optional[Reason] = None
    recovered: Tuple[Tuple[str, Mapping[Outcome, int]], ...] = ()
    log_version: Optional[int] = None
    seconds: float = 0.0
    # By step, if the command has several.
    spent: Mapping[str, float] = field(default_factory=dict)
    backup_table: str = ""
    backups: Tuple[BackupOutcome, ...] = ()
    window: Optional[Window] = None
    answered_by: Optional[LoggedRun] = None
    log: Tuple[LoggedRun, ...] = ()
    files: Optional[FileSet] = None
    changes: Optional[Tuple[Effect, ...]] = None
    old_files: Optional[Tuple[KeptFiles, ...]] = None
    cleanups: Optional[Tuple[LoggedRun, ...]] = None
    orphans: Optional[Tuple[Orphan, ...]] = None
    quarantined: Tuple[Quarantine, ...] = ()
    forgotten: Optional[Forgotten] = None
    declined: bool = False
    is_unrecorded: bool = False
    row_groups: Mapping[str, Tuple[FileRowGroups, ...]] = field(default_factory=dict)
    left_out: LeftOut = LeftOut()

    def without_manifests(self) -> TableOutcome:
        """A command keeps the outcomes of all its tables until its end. Of entries of the log only units are told; of a cleanup, places;
        what one run has changed is told beside its entry.
        """
        return replace(
            self,
            backups=tuple(one.without_files() for one in self.backups),
            log=tuple(_only_units(run) for run in self.log),
            old_files=tuple(one.without_files() for one in self.old_files) if self.old_files is not None else None,
            cleanups=tuple(replace(run.without_units(), discarding=()) for run in self.cleanups) if self.cleanups is not None else None,
            answered_by=_only_units(self.answered_by) if self.answered_by else None,
        )

    def without_listings(self) -> TableOutcome:
        """For the same reason."""
        return replace(self, observed=self.observed.without_listings()) if self.observed else self

    def without_definitions(self) -> TableOutcome:
        """For the same reason."""
        return replace(self, observed=self.observed.without_definitions()) if self.observed else self

    @property
    def of_definition(self) -> int:
        """How many characters `with_short_definition` takes away: of columns, and of the query of a view."""
        return self.observed.table.dispensable if self.observed else 0

    def with_short_definition(self) -> TableOutcome:
        return replace(self, observed=replace(self.observed, table=self.observed.table.shortened())) if self.observed else self

    @property
    def dispensable(self) -> int:
        """How many characters `shortened` takes away: of texts that a table's owner makes as long as they like."""
        single = [one for one in (self.observed, self.answered_by) if one]
        parts: Iterable[Shortenable] = (*single, *self.backups, *self.log, *(self.old_files or ()), *self.quarantined)
        of_units = sum(unit.dispensable(is_spared) for unit, is_spared in spare_astray(self.units))
        return of_units + sum(part.dispensable for part in parts)

    def shortened(self) -> TableOutcome:
        return replace(
            self,
            units=tuple(unit.shortened(is_spared) for unit, is_spared in spare_astray(self.units)),
            observed=self.observed.shortened() if self.observed else None,
            answered_by=self.answered_by.shortened() if self.answered_by else None,
            backups=tuple(one.shortened() for one in self.backups),
            log=tuple(run.shortened() for run in self.log),
            old_files=tuple(one.shortened() for one in self.old_files) if self.old_files is not None else None,
            quarantined=tuple(one.shortened() for one in self.quarantined),
        )

    @property
    def unit_count(self) -> int:
        """How many units it holds, and files by name."""
        of_now = max(len(self.units), len(self.observed.units) if self.observed else 0)
        of_backups = sum(len(one.backup.effects) + len(one.kept_units) for one in self.backups)
        of_files = sum(1 + len(one.before) + len(one.after) for one in self.changes or ())
        of_files += len(self.files.files) + len(self.files.tombstones) if self.files else 0
        of_log = sum(len(run.units) for run in self._logged) + sum(len(run.discarded) for run in self.cleanups or ())
        return of_now + of_backups + of_files + of_log + len(self.old_files or ()) + len(self.quarantined)

    @property
    def _logged(self) -> Tuple[LoggedRun, ...]:
        """The entries whose units are told."""
        return (*self.log, self.answered_by) if self.answered_by else self.log

    def without_units(self, most: int) -> TableOutcome:
        """With so many units, the gravest, and those whose rows readers may miss (`spare_astray`); the others are told together, by outcome
        and code. Of what the log says, and of backups, with so many of each.
        """
        kept = {at for at, (_, is_spared) in enumerate(spare_astray(self.units)) if is_spared}
        kept.update(nsmallest(most, range(len(self.units)), lambda at: SEVERITY.index(self.units[at].exit)))
        # One whose files are joined has several outcomes.
        whole = {self.units[at].name for at in kept}
        kept.update(at for at, unit in enumerate(self.units) if unit.name in whole and unit.units == 1)
        alike: Dict[Tuple[Outcome, Optional[Code]], List[UnitOutcome]] = {}
        for at, unit in enumerate(self.units):
            if at not in kept:
                alike.setdefault((unit.outcome, unit.why.code if unit.why else None), []).append(unit)
        together = [UnitOutcome.of_several(outcome, units) if len(units) > 1 else units[0] for (outcome, _), units in alike.items()]
        return replace(
            self,
            units=(*(self.units[at] for at in sorted(kept)), *together),
            observed=self.observed.without_units(most) if self.observed else None,
            row_groups={},
            backups=_reduce_backups(self.backups, most),
        )._without_logged(most)

    def _without_logged(self, most: int) -> TableOutcome:
        chosen, changes = _choose_logged(self._logged, most), self.changes or ()
        more = {
            run.version: LoggedUnits.of(unit for at, unit in enumerate(run.units) if (run.version, at) not in chosen)
            for run in self._logged
        }

        def told(run: LoggedRun) -> LoggedRun:
            return replace(run, units=tuple(unit for at, unit in enumerate(run.units) if (run.version, at) in chosen))

        left_out = LeftOut(
            {version: units for version, units in more.items() if units},
            {run.version: len(run.discarded) for run in self.cleanups or ()},
            OfAllOldFiles.of(self.old_files) if self.old_files is not None else None,
            len(self.quarantined[most:]),
            len(changes),
            *((len(self.files.files), len(self.files.tombstones)) if self.files else ()),
        )
        answer = self.answered_by
        return replace(
            self,
            log=tuple(told(run) for run in self.log),
            # Its code may be known by its units only.
            answered_by=replace(told(answer), exit_code=int(code_of_run(answer))) if answer else None,
            cleanups=tuple(replace(run, discarded=()) for run in self.cleanups) if self.cleanups is not None else None,
            old_files=self.old_files[:most] if self.old_files is not None else None,
            quarantined=self.quarantined[:most],
            changes=() if self.changes is not None else None,
            files=FileSet({}, {}) if self.files is not None else None,
            left_out=left_out,
        )

    @property
    def of_old_files(self) -> OfAllOldFiles:
        return self.left_out.old_files or OfAllOldFiles.of(self.old_files or ())

    @property
    def row_group_count(self) -> int:
        return sum(len(one.groups) for found in self.row_groups.values() for one in found)

    @property
    def code(self) -> Exit:
        return worst_of((self._own_code, *(outcome.exit for outcome in self._astray)))

    @property
    def _own_code(self) -> Exit:
        if self.answered_by and not self.problem:
            return code_of_run(self.answered_by)
        # What went wrong after the work was done must not hide what that says of units or backups.
        of_problem = [self.problem.exit] if self.problem else []
        return worst_of((*of_problem, code_of_units(self.units), *(backup.state.exit for backup in self.backups)))

    @property
    def _astray(self) -> List[Outcome]:
        """Outcomes by which readers may miss rows of an interrupted run: no later command reports them again."""
        return [outcome for _, counts in self.recovered for outcome in counts if outcome.is_astray]

    @property
    def is_left_alone(self) -> bool:
        """Whether a run over a database skips the table without an error: it is not eligible, or a writer is at work in it. That there is
        no such database is an error.
        """
        if self._astray or self.is_unrecorded or (self.problem and self.problem.code is Code.NO_SUCH_DATABASE):
            return False
        locked = self.code is Exit.LOCKED and (self.problem is None or self.problem.waits_for_writer)
        return (self.code is Exit.REFUSED and not self.declined) or locked

    @property
    def did_something(self) -> bool:
        discarded = any(backup.state.did_something for backup in self.backups)
        discarded = discarded or any(orphan.state.did_something for orphan in self.orphans or ())
        return bool(self.recovered or self.forgotten) or discarded or any(unit.outcome.is_done for unit in self.units)

    def count(self, outcome: Outcome) -> int:
        return sum(unit.units for unit in self.units if unit.outcome is outcome)


def _only_units(run: LoggedRun) -> LoggedRun:
    return replace(run, effects=(), discarding=(), discarded=()).without_files()


def code_of_run(run: LoggedRun) -> Exit:
    """The exit code that a run had in its time; by its units if another run recorded it."""
    if run.exit_code is not None:
        return Exit(run.exit_code)
    return code_of_units(UnitOutcome(unit.partition, unit.outcome, 0, 0) for unit in run.units)


def worst_of(codes: Iterable[Exit]) -> Exit:
    return min(codes, key=SEVERITY.index, default=Exit.DONE)


def beside(first: Optional[Reason], second: Reason) -> Reason:
    """The graver of two problems of a table, which also says what the other one is."""
    if first is None:
        return second
    worse, other = (first, second) if worst_of((first.exit, second.exit)) is first.exit else (second, first)
    return replace(worse, what=f"{shorten(worse.what, HALF)}; and {shorten(other.what, HALF)} [{other.code.code}]")


def code_of_units(units: Iterable[UnitOutcome]) -> Exit:
    """The code of a table without a problem of its own: if other units were done, or were begun and failed, neither a refused unit nor one
    with a writer makes the table one that was left alone.
    """
    units = tuple(units)
    worst = worst_of(unit.exit for unit in units)
    softened = worst in (Exit.LOCKED, Exit.REFUSED)
    return Exit.PARTIAL if softened and any(unit.outcome.is_done or unit.exit is Exit.PARTIAL for unit in units) else worst


# Directories without a table that a result lists.
MOST_ORPHANS = 1000


@dataclass(frozen=True)
class ImageReport:
    """What a NameNode's image says besides the tables. `written_ms`: when its file was last written.

    `orphans` are the largest directories that belong to no table, `left_out` is the number of the others, `orphaned` the sum of all.
    `has_merged`: there were so many that small ones were added to the directories above. `other_tables`: how many were not selected, or
    are refused; a partition of theirs outside their own directory is among the orphans.
    """

    path: str
    written_ms: int
    totals: Totals
    orphans: Tuple[OrphanedData, ...]
    left_out: int
    orphaned: OrphanedData
    has_merged: bool
    other_tables: int

    @classmethod
    def of(cls, path: str, written_ms: int, totals: Totals, survey: Survey, other_tables: int) -> ImageReport:
        every = survey.orphans()
        sums = [sum(getattr(one, name) for one in every) for name in ("files", "directories", "total_bytes", "objects")]
        shown, left_out = tuple(every[:MOST_ORPHANS]), max(0, len(every) - MOST_ORPHANS)
        return cls(path, written_ms, totals, shown, left_out, OrphanedData("", False, *sums), survey.has_merged, other_tables)


@dataclass(frozen=True)
class CatalogueAnswer:
    """What the catalogue said or did. `rows` have a cell for each of `columns`; `has_more`: there were more than the limit allowed.
    `deleted`: how many metadata keys went, by component.
    """

    action: str
    component: str = ""
    columns: Tuple[str, ...] = ()
    rows: Tuple[Row, ...] = ()
    has_more: bool = False
    deleted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CommandResult:
    """The result of one command. `named`: tables were named one by one, so a refusal is an error. `signal`: what stopped it, or 0.
    `image`: what the tables were judged by, if not by listings. `where`: the partitions that were selected, None for all. `databases`:
    those that were selected as a whole. `catalogue`: the answer of the command of that name.
    """

    command: str
    run: RunId
    started_ms: int
    seconds: float
    named: bool
    dry_run: bool = False
    tables: Tuple[TableOutcome, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    checks: Tuple[Check, ...] = ()
    signal: int = 0
    image: Optional[ImageReport] = None
    where: Optional[str] = None
    databases: Tuple[str, ...] = ()
    catalogue: Optional[CatalogueAnswer] = None

    @property
    def exit_code(self) -> int:
        """The exit code of the process; after a signal it is 128+n, unless an operator has to look."""
        if not self.signal:
            return int(self.code)
        # What a signal does to one table may be graver than what another one told before.
        found = [code for code in (self.code, *(table.code for table in self.tables)) if code in LOOKED_AT]
        return int(worst_of(found)) if found else 128 + self.signal

    @property
    def code(self) -> Exit:
        if self.checks:
            return code_of_checks(self.checks)
        return code_of_tables(self.tables, self.named)


def code_of_tables(tables: Iterable[TableOutcome], named: bool) -> Exit:
    """The worst code of all tables; 6 if some were done and some were not. Tables skipped in a run over a database are no error."""
    tables = tuple(tables)
    counted = tables if named else [table for table in tables if not table.is_left_alone] or tables
    worst = worst_of(table.code for table in counted)
    softened = worst in (Exit.LOCKED, Exit.REFUSED, Exit.UNUSABLE)
    return Exit.PARTIAL if softened and any(table.did_something for table in tables) else worst
