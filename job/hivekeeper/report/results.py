"""What commands return: frozen results, rendered once by `report/`, and the exit code that follows from them.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterable, Mapping, Optional, Tuple

from hivekeeper.errors import Exit, HivekeeperError
from hivekeeper.model import Differences
from hivekeeper.plan.analysis import ObservedTable
from hivekeeper.plan.compaction import CompactionPlan
from hivekeeper.plan.doctor import Check, code_of_checks
from hivekeeper.plan.quarantine import Quarantine
from hivekeeper.plan.retention import Backup
from hivekeeper.runlog.history import Effect, FileSet, LoggedRun

# Which code wins when tables end differently: what needs a person first.
SEVERITY = (Exit.ASK, Exit.BUG, Exit.DIFFERENT, Exit.USAGE, Exit.UNUSABLE, Exit.LOCKED, Exit.PARTIAL, Exit.REFUSED, Exit.DONE)

DONE_OUTCOMES = frozenset(["swapped", "overwritten", "rolled back", "recorded", "verified", "planned"])


@dataclass(frozen=True)
class Problem:
    """An error as a value: what happened, the state of the table, what to do next."""

    what: str
    state: str
    next: str
    code: Exit

    @classmethod
    def of(cls, error: HivekeeperError) -> Problem:
        return cls(error.what, error.state, error.next, error.code)


@dataclass(frozen=True)
class UnitOutcome:
    """What became of one unit.

    `outcome`: swapped, overwritten, put back, not swapped, given up, differs, failed, left, refused, empty, recent, quarantined;
    of a rollback rolled back, not rolled back, put back, overwritten, left;
    of verify verified, differs, undone, dropped, replaced; of backup recorded.

    Sizes are bytes; `gap_ms` is how long readers could miss the unit, None where it was never away. `of_run` is the run that
    was undone or verified.
    """

    name: str
    outcome: str
    files_before: int
    bytes_before: int
    files_after: Optional[int] = None
    bytes_after: Optional[int] = None
    rows: Optional[int] = None
    gap_ms: Optional[float] = None
    late_files: Tuple[str, ...] = ()
    reason: str = ""
    next: str = ""
    of_run: str = ""
    differences: Optional[Differences] = None


@dataclass(frozen=True)
class BackupOutcome:
    """One backup as cleanup or history shows it. `kept_units` are those that could not be discarded, with the reason.

    `outcome`: kept, discarded, planned (a dry run), partly (some units were not what they should be, or are left), left (all are: the
    command was to end before it came to them), there (history).
    """

    backup: Backup
    outcome: str
    reason: str = ""
    kept_units: Tuple[Tuple[str, str], ...] = ()
    late_files: Tuple[str, ...] = ()


@dataclass(frozen=True)
class TableOutcome:
    """What became of one table. `recovered` holds (run, outcomes in words) of interrupted runs that were finished first.

    `declined`: a person was asked and said no. `log`, `files` and `changes` are what history was asked for: all entries, the
    files at a version, what one run took and put; `quarantined` goes with all entries.
    """

    table: str
    run: Optional[str] = None
    units: Tuple[UnitOutcome, ...] = ()
    observed: Optional[ObservedTable] = None
    plan: Optional[CompactionPlan] = None
    problem: Optional[Problem] = None
    recovered: Tuple[Tuple[str, Mapping[str, int]], ...] = ()
    log_version: Optional[int] = None
    seconds: float = 0.0
    backup_table: str = ""
    backups: Tuple[BackupOutcome, ...] = ()
    log: Tuple[LoggedRun, ...] = ()
    files: Optional[FileSet] = None
    changes: Optional[Tuple[Effect, ...]] = None
    quarantined: Tuple[Quarantine, ...] = ()
    declined: bool = False

    @property
    def code(self) -> Exit:
        if self.problem:
            return self.problem.code
        if any(backup.outcome in ("partly", "left") for backup in self.backups):
            return Exit.PARTIAL
        return code_of_units(unit.outcome for unit in self.units)

    @property
    def did_something(self) -> bool:
        discarded = any(backup.outcome in ("discarded", "partly") for backup in self.backups)
        return bool(self.recovered) or discarded or any(unit.outcome in DONE_OUTCOMES for unit in self.units)

    def count(self, outcome: str) -> int:
        return sum(1 for unit in self.units if unit.outcome == outcome)


def code_of_units(outcomes: Iterable[str]) -> Exit:
    """The code of one table without a problem of its own."""
    found = set(outcomes) - {"recent", "quarantined"}
    if "differs" in found:
        return Exit.DIFFERENT
    if found & {"put back", "not swapped", "not rolled back", "given up", "failed", "left"}:
        return Exit.PARTIAL
    if "refused" in found:
        return Exit.PARTIAL if found & DONE_OUTCOMES else Exit.REFUSED
    return Exit.DONE


@dataclass(frozen=True)
class CommandResult:
    """The result of one command. `named`: the tables were named one by one, so a refusal is an error. `signal` asked it to end, 0: none."""

    command: str
    run: str
    started_ms: int
    seconds: float
    named: bool
    dry_run: bool = False
    tables: Tuple[TableOutcome, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    checks: Tuple[Check, ...] = ()
    signal: int = 0

    @property
    def exit_code(self) -> int:
        """What the process ends with: where a signal asked for the end, that is said, whatever was done."""
        return 128 + self.signal if self.signal else int(self.code)

    @property
    def code(self) -> Exit:
        if self.checks:
            return code_of_checks(self.checks)
        return code_of_tables(self.tables, self.named)


def code_of_tables(tables: Iterable[TableOutcome], named: bool) -> Exit:
    """The worst of all; 6 where some tables were done and some were not; refusals inside a database are no error."""
    tables = tuple(tables)
    codes = [table.code for table in tables]
    if not named and any(code is not Exit.REFUSED for code in codes):
        codes = [Exit.DONE if table.code is Exit.REFUSED and not table.declined else table.code for table in tables]
    worst = min(codes, key=SEVERITY.index, default=Exit.DONE)
    softened = worst in (Exit.LOCKED, Exit.REFUSED, Exit.UNUSABLE)
    return Exit.PARTIAL if softened and any(table.did_something for table in tables) else worst
