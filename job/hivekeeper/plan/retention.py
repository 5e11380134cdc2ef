"""Decide which backups to keep: a verdict and a reason for each, from the settings and the time.

Pure. Whatever cannot be judged is kept; a backup is dropped only if no configured rule keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.config.settings import Settings
from hivekeeper.config.value_types import write_duration
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.manifests import is_marker
from hivekeeper.runlog.run_files import BACKUP, is_inside


@dataclass(frozen=True)
class Backup:
    """What one run left behind: former files at the places of `effects`, or only the record of a `backup` command.

    `timestamp_ms` is None if the log's date cannot be read.
    """

    run: RunId
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
class Verdict:
    backup: Backup
    keep: bool
    reason: Reason


def list_backups(history: History) -> Tuple[Backup, ...]:
    """The backups that exist according to the log, oldest first: neither discarded nor restored by a rollback."""
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


def judge_backups(backups: Sequence[Backup], settings: Settings, now_ms: int) -> Tuple[Verdict, ...]:
    """One verdict for each backup, in the order given. `keep_last` counts backups of files and records separately."""
    newest: Mapping[bool, List[str]] = {
        kind: [backup.run for backup in sorted(backups, key=lambda b: -b.version) if backup.is_record is kind] for kind in (True, False)
    }
    verdicts = []
    for backup in backups:
        reason = _why_keep(backup, newest[backup.is_record].index(backup.run), settings, now_ms)
        verdicts.append(Verdict(backup, True, reason) if reason else Verdict(backup, False, _why_drop(settings)))
    return tuple(verdicts)


def _why_keep(backup: Backup, rank: int, settings: Settings, now_ms: int) -> Optional[Reason]:
    if backup.pinned:
        return Reason(Code.PINNED, "it is pinned")
    if backup.timestamp_ms is None:
        return Reason(Code.DATE_UNKNOWN, "its date cannot be read")
    if backup.timestamp_ms > now_ms:
        return Reason(Code.DATE_IN_FUTURE, "its date lies in the future")
    age_ms = now_ms - backup.timestamp_ms
    if age_ms < settings.min_age_ms:
        return Reason(Code.TOO_YOUNG, f"it is younger than min_age ({write_duration(settings.min_age_ms)})")
    if settings.older_than_ms is not None and age_ms < settings.older_than_ms:
        return Reason(Code.TOO_YOUNG, f"it is younger than {write_duration(settings.older_than_ms)}")
    if settings.keep_last is not None and rank < settings.keep_last:
        what = "it is the newest" if settings.keep_last == 1 else f"it is one of the {settings.keep_last} newest"
        return Reason(Code.AMONG_NEWEST, what)
    return None


def keep_shown(verdicts: Sequence[Verdict], control: ControlPaths, lives: Mapping[str, str]) -> Tuple[Verdict, ...]:
    """The same verdicts, but a backup that a partition shows is kept. `lives`: the locations of all partitions by name."""
    going = [effect.place for verdict in verdicts if not verdict.keep for effect in verdict.backup.effects]
    shown = find_shown(control, going, lives)
    return tuple(_keep_if_shown(verdict, shown) for verdict in verdicts)


def _keep_if_shown(verdict: Verdict, shown: Mapping[str, str]) -> Verdict:
    partition = next((shown[effect.place] for effect in verdict.backup.effects if effect.place in shown), None)
    return verdict if partition is None else replace(verdict, keep=True, reason=why_shown(partition))


def why_shown(partition: str) -> Reason:
    return Reason(Code.BACKUP_SHOWN, f"the partition {partition} lies in it, or around it", "give that partition a directory of its own")


def find_shown(control: ControlPaths, places: Iterable[str], lives: Mapping[str, str]) -> Dict[str, str]:
    """Of these places, relative to the control directory, those that a partition lies in or around, each with its name."""
    inside = {live: name for name, live in lives.items() if is_inside(live, control.top)}
    around = {above: name for live, name in inside.items() for above in _up_to(live, control.top)}
    found: Dict[str, str] = {}
    for place in places if inside else ():
        path = names.join(control.top, place)
        partition = around.get(path) or next((inside[above] for above in _up_to(path, control.top) if above in inside), None)
        found.update({place: partition} if partition else {})
    return found


def _up_to(path: str, top: str) -> Iterator[str]:
    """The path and the directories above it, up to a directory around it."""
    while path != top:
        yield path
        path = names.parent(path)
    yield top


def _why_drop(settings: Settings) -> Reason:
    age_ms = max(settings.min_age_ms, settings.older_than_ms or 0)
    rules = [f"it is older than {write_duration(age_ms)}"] if age_ms else []
    if settings.keep_last is not None:
        rules.append(f"it is not one of the {settings.keep_last} newest")
    return Reason(Code.NOT_KEPT, " and ".join(rules) or "no rule keeps it")
