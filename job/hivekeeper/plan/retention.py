"""Decide which backups to keep: a verdict and a reason for each, from a policy and the time.

Pure. Whatever cannot be judged is kept; a backup goes only where every rule that is set lets it go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.manifests import is_marker
from hivekeeper.runlog.run_files import BACKUP


@dataclass(frozen=True)
class Backup:
    """What one run left behind: former files at the places of `effects`, or, of a `backup` command, the mere record.

    `timestamp_ms` is None where the log's date cannot be read.
    """

    run: str
    version: int
    operation: str
    directory: str
    timestamp_ms: Optional[int]
    effects: Tuple[Effect, ...]
    pinned: bool
    backup_table: str = ""

    @property
    def is_record(self) -> bool:
        return self.operation == BACKUP

    @property
    def files(self) -> int:
        return sum(1 for effect in self.effects for file in effect.before if not is_marker(file))

    @property
    def total_bytes(self) -> int:
        return sum(effect.backup_bytes for effect in self.effects)


@dataclass(frozen=True)
class Policy:
    """Times in milliseconds; None where a rule is not set."""

    min_age_ms: int = 7 * 86_400_000
    older_than_ms: Optional[int] = None
    keep_last: Optional[int] = None


@dataclass(frozen=True)
class Verdict:
    backup: Backup
    keep: bool
    reason: str


def list_backups(history: History) -> Tuple[Backup, ...]:
    """What is still there by the log, oldest first: neither discarded nor restored by a rollback."""
    standing: Dict[int, List[Effect]] = {}
    for effect in history.standing:
        standing.setdefault(effect.version, []).append(effect)
    records = {run.version for run in history.records}
    return tuple(
        _backup(run, tuple(standing.get(run.version, ())), history)
        for run in history.runs
        if run.version in standing or run.version in records
    )


def _backup(run: LoggedRun, effects: Tuple[Effect, ...], history: History) -> Backup:
    pinned = run.run in history.pinned
    return Backup(run.run, run.version, run.operation, run.directory, run.timestamp_ms, effects, pinned, run.backup_table)


def judge_backups(backups: Sequence[Backup], policy: Policy, now_ms: int) -> Tuple[Verdict, ...]:
    """One verdict for each, in the order given. The newest are counted among backups of files and among records separately."""
    newest: Mapping[bool, List[str]] = {
        kind: [backup.run for backup in sorted(backups, key=lambda b: -b.version) if backup.is_record is kind] for kind in (True, False)
    }
    verdicts = []
    for backup in backups:
        reason = _why_keep(backup, newest[backup.is_record].index(backup.run), policy, now_ms)
        verdicts.append(Verdict(backup, True, reason) if reason else Verdict(backup, False, _why_drop(policy)))
    return tuple(verdicts)


def _why_keep(backup: Backup, rank: int, policy: Policy, now_ms: int) -> str:
    if backup.pinned:
        return "it is pinned"
    if backup.timestamp_ms is None:
        return "its date cannot be read"
    if backup.timestamp_ms > now_ms:
        return "its date lies in the future"
    age_ms = now_ms - backup.timestamp_ms
    if age_ms < policy.min_age_ms:
        return f"it is younger than min_age ({time_text(policy.min_age_ms)})"
    if policy.older_than_ms is not None and age_ms < policy.older_than_ms:
        return f"it is younger than {time_text(policy.older_than_ms)}"
    if policy.keep_last is not None and rank < policy.keep_last:
        return "it is the newest" if policy.keep_last == 1 else f"it is one of the {policy.keep_last} newest"
    return ""


def _why_drop(policy: Policy) -> str:
    age_ms = max(policy.min_age_ms, policy.older_than_ms or 0)
    rules = [f"it is older than {time_text(age_ms)}"] if age_ms else []
    if policy.keep_last is not None:
        rules.append(f"it is not one of the {policy.keep_last} newest")
    return " and ".join(rules) or "no rule keeps it"


def time_text(duration_ms: int) -> str:
    """As the configuration writes it: 90s, 15m, 4h, 7d."""
    seconds = duration_ms // 1000
    for name, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{name}"
    return f"{seconds}s"
