"""Decide which backups to keep: a verdict for each run's backup, unit by unit, with reasons, from the log, the settings and the time.

Pure. Whatever cannot be judged is kept; the old files of a unit go only if no configured rule keeps them. The rules by runs and by versions
are those of Apache Hudi's cleaner (KEEP_LATEST_COMMITS and KEEP_LATEST_FILE_VERSIONS, Hudi 0.8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import reduce
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names, quoting
from hivekeeper.config.settings import TRASH, VERIFIED, Settings
from hivekeeper.config.value_types import write_duration
from hivekeeper.errors import UsageError
from hivekeeper.names import ControlPaths, RunId
from hivekeeper.plan import sizing
from hivekeeper.plan.doctor import MOST_CLOCK_DIFFERENCE_MS
from hivekeeper.plan.quarantine import find_quarantined
from hivekeeper.plan.rollback import read_all_stacks
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.history import Effect, History, LoggedRun, UnitKey
from hivekeeper.runlog.manifests import key_of
from hivekeeper.runlog.run_files import BACKUP, CLEANUP, may_be_inside

# A directory that a table or partition shows, after what that is called in messages. Others may be called the same.
NamedPlace = Tuple[str, str]

# What is set for the table of this name.
SettingsFor = Callable[[str], Settings]

NOT_ASKED: Mapping[int, int] = {}
# A parameter of cleanups: the ids of the former tables that were in no database then.
GONE = "goneTables"


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
    table_id: str = ""

    def without_files(self) -> Backup:
        return replace(self, effects=tuple(effect.without_files() for effect in self.effects))

    @property
    def is_record(self) -> bool:
        return self.operation == BACKUP

    @property
    def files(self) -> int:
        return sum(effect.backup_files for effect in self.effects)

    @property
    def total_bytes(self) -> int:
        return sum(effect.backup_bytes for effect in self.effects)

    def count_objects(self, block_bytes: int) -> int:
        """The NameNode objects of its files and their directories."""
        return sum(_count_objects(effect, block_bytes) for effect in self.effects)


def _count_objects(effect: Effect, block_bytes: int) -> int:
    """Old files inside another one have only blocks of their own."""
    if effect.inside:
        return sum(max(1, -(-file.length // block_bytes)) for file in effect.before)
    return sizing.directory_objects((file.length for file in effect.before), block_bytes)


@dataclass(frozen=True)
class Verdict:
    """What happens to one backup: which units' old files go, and why the others stay. Of a record without files, whether it goes.

    `reason` is that of all of it; if only some of it goes, that of the units that do.
    """

    backup: Backup
    reason: Reason
    going: Tuple[Effect, ...] = ()
    staying: Tuple[Tuple[Effect, Reason], ...] = ()
    record_goes: bool = False

    @property
    def keep(self) -> bool:
        """Whether all of it stays."""
        return not self.going and not self.record_goes

    @property
    def goes_in_part(self) -> bool:
        return bool(self.going and self.staying)


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
    return Backup(run.run, run.version, run.operation, run.directory, run.timestamp_ms, effects, pinned, run.backup_table, run.table_id)


@dataclass(frozen=True)
class Window:
    """How far back all old files are kept: over the last `runs` that left any, the oldest of which ended `back_ms` ago."""

    runs: int
    back_ms: int


def refuse_contradiction(settings: Settings, table: str) -> None:
    """Raise UsageError for a rule that never decides anything, because another one always decides first."""
    if settings.keep_for_ms is not None and settings.keep_for_ms < settings.min_age_ms:
        least, wanted = write_duration(settings.min_age_ms), write_duration(settings.keep_for_ms)
        raise UsageError(
            f"{table}: keep_for is {wanted}, and min_age keeps every backup younger than {least}",
            code=Code.WRONG_CONFIGURATION,
            next=f"leave keep_for (--older-than) out, or lower the floor as well: --min-age {wanted}",
        )


def find_settings(history: History, settings_for: SettingsFor) -> Mapping[str, Settings]:
    """By its id, what is set for each table that the log is about. One that was renamed is known by its second, which another table may
    have, too: of all names of that second, what keeps most counts.
    """
    named = {one: one.rpartition("@") for one in sorted({run.table_id for run in history.runs})}
    # A table that is created each night has one name.
    of_name = {name: settings_for(name) for name in sorted({name for name, _, _ in named.values()})}
    of_second: Dict[str, List[Settings]] = {}
    for name, _, created in named.values():
        of_second.setdefault(created, []).append(of_name[name])
    strictest = {created: reduce(_keep_by_both, settings) for created, settings in of_second.items()}
    return {one: _keep_by_both(of_name[name], strictest[created]) for one, (name, _, created) in named.items()}


def _keep_by_both(one: Settings, other: Settings) -> Settings:
    """The first one's settings, but rules that keep what either keeps."""
    return replace(
        one,
        min_age_ms=max(one.min_age_ms, other.min_age_ms),
        keep_for_ms=_most(one.keep_for_ms, other.keep_for_ms),
        keep_latest_runs=_most(one.keep_latest_runs, other.keep_latest_runs),
        keep_latest_versions=_most(one.keep_latest_versions, other.keep_latest_versions),
        cleanup_requires=VERIFIED if VERIFIED in (one.cleanup_requires, other.cleanup_requires) else one.cleanup_requires,
        discard=TRASH if TRASH in (one.discard, other.discard) else one.discard,
    )


def _most(*given: Optional[int]) -> Optional[int]:
    return max((one for one in given if one is not None), default=None)


def judge_backups(
    history: History, settings_for: SettingsFor, *times_ms: int, written_ms: Mapping[int, int] = NOT_ASKED
) -> Tuple[Verdict, ...]:
    """One verdict for each backup of the log, oldest first. `times_ms`: what it is now, by one clock or several; what goes may go by each.
    `written_ms`: when entries were written, by the NameNode's clock: that of the machine of their runs may have been days behind.

    The log may be about several tables. Each has its own rules, which are applied to its own runs: whoever has its place now decides
    nothing about what it left.
    """
    backups = tuple(_dated(backup, written_ms) for backup in list_backups(history))
    rules = _Rules(history, settings_for, times_ms)
    why_stay = {effect.key: rules.why_stay(backup, effect) for backup in backups for effect in backup.effects}
    _keep_what_others_need(history, why_stay)
    records = _rank_by_table((backup.table_id, backup.version) for backup in backups if backup.is_record)
    return tuple(
        _judge_record(backup, rules, records[backup.version]) if backup.is_record else _judge_units(backup, rules, why_stay)
        for backup in backups
    )


def _rank_by_table(runs: Iterable[Tuple[str, int]]) -> Mapping[int, int]:
    """By its version, how many newer ones of these there are of the same table."""
    newer: Dict[str, int] = {}
    ranks: Dict[int, int] = {}
    for of_table, version in sorted(set(runs), key=lambda run: -run[1]):
        ranks[version] = newer.get(of_table, 0)
        newer[of_table] = ranks[version] + 1
    return ranks


def _dated(backup: Backup, written_ms: Mapping[int, int]) -> Backup:
    return replace(backup, timestamp_ms=_later(backup.timestamp_ms, backup.version, written_ms))


def _later(known_ms: Optional[int], version: int, written_ms: Mapping[int, int]) -> Optional[int]:
    """The later of the two dates of an entry, unless they are as good as the same; None if it has none that can be read."""
    return known_ms if known_ms is None else max(known_ms, written_ms.get(version, 0) - MOST_CLOCK_DIFFERENCE_MS)


def _judge_record(backup: Backup, rules: _Rules, rank: int) -> Verdict:
    why = rules.why_stay_by_date(backup) or rules.why_stay_by_rank(backup, rank, rank)
    return Verdict(backup, why) if why else Verdict(backup, rules.why_go(backup), record_goes=True)


def _judge_units(backup: Backup, rules: _Rules, why_stay: Mapping[UnitKey, Optional[Reason]]) -> Verdict:
    judged = [(effect, why_stay[effect.key]) for effect in backup.effects]
    staying = tuple((effect, why) for effect, why in judged if why)
    return _verdict(backup, tuple(effect for effect, why in judged if not why), staying, rules.why_go(backup))


def _verdict(backup: Backup, going: Tuple[Effect, ...], staying: Tuple[Tuple[Effect, Reason], ...], why_go: Reason) -> Verdict:
    if not going:
        return Verdict(backup, staying[0][1], (), staying)
    return Verdict(backup, why_go, going, staying)


class _Ranks:
    """Counts the old versions of a unit from the newest on. The sets of files that one run joined are one version."""

    def __init__(self) -> None:
        self._rank = -1
        self._joined_by: Optional[RunId] = None

    def next_of(self, effect: Effect) -> int:
        if effect.inside is None or effect.run != self._joined_by:
            self._rank += 1
        self._joined_by = effect.run if effect.inside else None
        return self._rank


class _Rules:
    """The rules for each table that a log is about."""

    def __init__(self, history: History, settings_for: SettingsFor, times_ms: Sequence[int]) -> None:
        self._settings, self.times_ms = find_settings(history, settings_for), times_ms
        self._rank_of_run = _rank_by_table((effect.table_id, effect.version) for effect in history.effects)
        self._rank_in_unit: Dict[UnitKey, int] = {}
        ranks: Dict[Tuple[str, str], _Ranks] = {}
        for effect in sorted(history.standing, key=lambda effect: (-effect.version, -effect.number)):
            # Those of a table that was dropped and created again since may be the only copy of its rows.
            unit = effect.table_id, effect.partition
            self._rank_in_unit[effect.key] = ranks.setdefault(unit, _Ranks()).next_of(effect)
        self._rank_apart_from_rollbacks(history)
        self._verified = history.verified
        # Of whichever table: the one that is there now may have been renamed.
        self._quarantined = frozenset(
            one.streak.partition
            for of_table in {effect.table_id for effect in history.standing}
            for now_ms in times_ms
            for one in find_quarantined(history, of_table, self._settings[of_table], now_ms)
        )

    def _rank_apart_from_rollbacks(self, history: History) -> None:
        """What a rollback took out of live is newer than the old files of the runs still in force, and must not take their places."""
        for stack in read_all_stacks(history).values():
            for effects in (stack.done, stack.undone):
                ranks = _Ranks()
                for effect in (effect for effect in reversed(effects) if effect.key in self._rank_in_unit):
                    self._rank_in_unit[effect.key] = min(ranks.next_of(effect), self._rank_in_unit[effect.key])

    def why_stay(self, backup: Backup, effect: Effect) -> Optional[Reason]:
        """Why the old files of one unit stay; None if no rule keeps them."""
        if effect.partition in self._quarantined:
            return Reason(Code.UNIT_IN_QUARANTINE, "the compaction of its unit keeps failing: the unit is in quarantine")
        rank = self._rank_in_unit[effect.key]
        if rank == 0 and self._settings[backup.table_id].cleanup_requires == VERIFIED and effect.key not in self._verified:
            return Reason(
                Code.NOT_VERIFIED, "it is the newest of its unit, which was never verified since", "hivekeeper verify compares it"
            )
        return self.why_stay_by_date(backup) or self.why_stay_by_rank(backup, self._rank_of_run[effect.version], rank)

    def why_stay_by_date(self, backup: Backup) -> Optional[Reason]:
        if backup.pinned:
            return Reason(Code.PINNED, "it is pinned")
        if backup.timestamp_ms is None:
            return Reason(Code.DATE_UNKNOWN, "its date cannot be read")
        settings = self._settings[backup.table_id]
        age_ms, keep_for_ms = min(self.times_ms) - backup.timestamp_ms, settings.keep_for_ms
        if age_ms < 0:
            return Reason(Code.DATE_IN_FUTURE, "its date lies in the future")
        if age_ms < settings.min_age_ms:
            return Reason(Code.TOO_YOUNG, f"it is younger than min_age ({write_duration(settings.min_age_ms)})")
        if keep_for_ms is not None and age_ms < keep_for_ms:
            return Reason(Code.TOO_YOUNG, f"it is younger than {write_duration(keep_for_ms)}")
        return None

    def why_stay_by_rank(self, backup: Backup, rank_of_run: int, rank_in_unit: int) -> Optional[Reason]:
        """Looking back N runs takes the old files of N+1: those of the oldest are what was live when the window begins."""
        settings = self._settings[backup.table_id]
        runs, versions = settings.keep_latest_runs, settings.keep_latest_versions
        if runs is not None and rank_of_run <= runs:
            return Reason(Code.IN_WINDOW, f"its run is one of the last {runs + 1}, which a look back over {runs} runs takes")
        if versions is not None and rank_in_unit < versions:
            return Reason(Code.AMONG_NEWEST, f"it is {_newest(versions)} of its unit")
        return None

    def why_go(self, backup: Backup) -> Reason:
        settings = self._settings[backup.table_id]
        age_ms = max(settings.min_age_ms, settings.keep_for_ms or 0)
        rules = [f"it is older than {write_duration(age_ms)}"] if age_ms else []
        if settings.keep_latest_runs is not None:
            rules.append(f"it is not of the last {settings.keep_latest_runs + 1} runs")
        if settings.keep_latest_versions is not None:
            rules.append(f"it is not {_newest(settings.keep_latest_versions)} of its unit")
        return Reason(Code.NOT_KEPT, " and ".join(rules) or "no rule keeps it")


def _newest(versions: int) -> str:
    return "the newest" if versions == 1 else f"one of the {versions} newest"


def find_holders(history: History) -> Mapping[UnitKey, Effect]:
    """The effects whose old files are inside a file that is in the backup of another effect now, each with that one.

    Perhaps under another name of the partition. No two files that a run joined have one name.
    """
    if not history.joined:
        return {}
    at = {key_of(file.name, file.length): effect for effect in history.standing for file in effect.before if names.may_be_joined(file.name)}
    found = {effect.key: at.get(key_of(effect.inside.file, effect.inside.length)) for effect in history.joined if effect.inside}
    return {key: holder for key, holder in found.items() if holder}


def _keep_what_others_need(history: History, why_stay: Dict[UnitKey, Optional[Reason]]) -> None:
    """Keep what a rollback to a backup that stays has to undo first, and what lies inside another backup as long as that one."""
    _keep_with_holders(history, why_stay)
    _keep_what_rollbacks_need(history, why_stay)
    _keep_with_holders(history, why_stay)


def _keep_with_holders(history: History, why_stay: Dict[UnitKey, Optional[Reason]]) -> None:
    """A backup inside a file of another one and that other one go together, or not at all."""
    for key, holder in find_holders(history).items():
        if key not in why_stay or holder.key not in why_stay:
            continue
        if why_stay[holder.key]:
            what = f"the file that has it inside is in the backup of run {holder.run}"
            why_stay[key] = why_stay[key] or Reason(Code.IN_OTHER_BACKUP, what)
        elif why_stay[key]:
            why_stay[holder.key] = Reason(Code.IN_OTHER_BACKUP, f"a file of it has the backup of run {key[0]} inside, which stays")


def _keep_what_rollbacks_need(history: History, why_stay: Dict[UnitKey, Optional[Reason]]) -> None:
    """Keep, above each backup of a unit that stays, the newer ones that a rollback to it would have to undo first.

    As far as that rollback is still possible: a gap in what stands ends it.
    """
    for stack in read_all_stacks(history).values():
        for effects in (stack.done, stack.undone):
            reachable: List[Effect] = []
            for effect in reversed(effects):
                if effect.key not in why_stay:
                    break
                reachable.append(effect)
            lowest = max((index for index, effect in enumerate(reachable) if why_stay[effect.key]), default=-1)
            # A rollback undoes all that a run did to a unit, or nothing.
            of_run = [index for index, effect in enumerate(reachable) if lowest >= 0 and effect.run == reachable[lowest].run]
            for effect in reachable[: max(of_run, default=-1) + 1]:
                why_stay[effect.key] = why_stay[effect.key] or why_needed(reachable[lowest].run)


def why_needed(run: RunId) -> Reason:
    return Reason(Code.NEEDED_BY_ROLLBACK, f"a rollback of run {run}, whose backup stays, needs it")


def find_window(history: History, own: str, verdicts: Sequence[Verdict], now_ms: int) -> Optional[Window]:
    """How far back everything is kept by these verdicts; None if not even the newest backup of files is. `own` is the id of the table that
    is there now.

    It ends at a run of which an earlier cleanup discarded something, and where the table was created again.
    """
    of_run = {verdict.backup.version: verdict for verdict in verdicts}
    broken = {effect.version for effect in history.effects if effect.place in history.discarded or effect.table_id != own}
    window, runs = None, 0
    for version in sorted({effect.version for effect in history.effects}, reverse=True):
        verdict = of_run.get(version)
        if version in broken or (verdict and (not verdict.keep or verdict.backup.timestamp_ms is None)):
            break
        if verdict and verdict.backup.timestamp_ms is not None:
            runs += 1
            window = Window(runs, max(0, now_ms - verdict.backup.timestamp_ms))
    return window


def find_former(history: History, own: str) -> FrozenSet[str]:
    """The ids of the other tables of which old files or records are left; `own` is the id of the table that is there now."""
    left = {effect.table_id for effect in history.standing} | {run.table_id for run in history.records}
    return frozenset(left - {own})


def find_gone(history: History, written_ms: Mapping[int, int] = NOT_ASKED) -> Mapping[str, int]:
    """By its id, since when each former table is known to be gone: each list that a cleanup has noted takes the place of the one before.
    Who has dropped one by mistake may do so long after another one has its place.
    """
    since: Dict[str, int] = {}
    for run in history.runs:
        # It was there once more.
        since.pop(run.table_id, None)
        noted = run.parameters.get(GONE) if run.operation == CLEANUP else None
        noted_ms = _later(run.timestamp_ms, run.version, written_ms)
        if isinstance(noted, list) and noted_ms is not None:
            since = {one: since.get(one, noted_ms) for one in noted if isinstance(one, str)}
    return since


def why_former(table_id: str, table: str) -> Reason:
    name, _, created = table_id.rpartition("@")
    when = f", created {datetime.fromtimestamp(int(created), timezone.utc):%Y-%m-%d %H:%M:%S} UTC" if created.isdigit() else ""
    return Reason(
        Code.OF_FORMER_TABLE,
        f"it is of another table that lay here ({name or 'its name is not known'}{when})",
        f"when nobody needs its rows: hivekeeper cleanup --former-tables --table {quoting.shell(table)}",
    )


def keep_former(history: History, verdicts: Sequence[Verdict], keep: Mapping[str, Reason]) -> Tuple[Verdict, ...]:
    """The same verdicts, but what is of one of the tables in `keep`, by their ids, stays for the reason given there."""
    of_run = {run.version: run.table_id for run in history.runs}
    why_stay: Dict[UnitKey, Optional[Reason]] = {effect.key: why for verdict in verdicts for effect, why in verdict.staying}
    why_stay.update({effect.key: keep.get(effect.table_id) for verdict in verdicts for effect in verdict.going})
    _keep_with_holders(history, why_stay)
    found = []
    for verdict in verdicts:
        why = keep.get(of_run[verdict.backup.version]) if verdict.record_goes else None
        found.append(Verdict(verdict.backup, why) if why else _keep_also(verdict, why_stay))
    return tuple(found)


def keep_shown(history: History, verdicts: Sequence[Verdict], control: ControlPaths, lives: Iterable[NamedPlace]) -> Tuple[Verdict, ...]:
    """The same verdicts, but old files that a partition shows stay, and what a rollback to them needs. `lives`: the locations of all
    partitions.
    """
    shown = find_shown(control, [effect.place for verdict in verdicts for effect in verdict.going], lives)
    if not shown:
        return tuple(verdicts)
    going = (effect for verdict in verdicts for effect in verdict.going)
    return _keep_as_well(history, verdicts, {effect.key: why_shown(shown[effect.place]) for effect in going if effect.place in shown})


def keep_inside(history: History, verdicts: Sequence[Verdict], why: Optional[Reason]) -> Tuple[Verdict, ...]:
    """The same verdicts, but old files inside files of live stay, and what a rollback to them needs. `why`: these may not be cut."""
    if not why:
        return tuple(verdicts)
    holders = find_holders(history)
    going = (effect for verdict in verdicts for effect in verdict.going)
    return _keep_as_well(history, verdicts, {effect.key: why for effect in going if effect.inside and effect.key not in holders})


def _keep_as_well(history: History, verdicts: Sequence[Verdict], why: Mapping[UnitKey, Reason]) -> Tuple[Verdict, ...]:
    """The same verdicts, but of what goes these stay, and what a rollback to them needs."""
    if not why:
        return tuple(verdicts)
    why_stay: Dict[UnitKey, Optional[Reason]] = {effect.key: stays for verdict in verdicts for effect, stays in verdict.staying}
    why_stay.update({effect.key: why.get(effect.key) for verdict in verdicts for effect in verdict.going})
    _keep_what_others_need(history, why_stay)
    return tuple(_keep_also(verdict, why_stay) for verdict in verdicts)


BEYOND = Reason(Code.BEYOND_ONE_CLEANUP, "no more fits into the plan of one cleanup: the next one takes it", "run cleanup again")


def keep_beyond(history: History, verdicts: Sequence[Verdict], takes: Callable[[Sequence[Effect]], bool]) -> Tuple[Verdict, ...]:
    """The same verdicts, but what is beyond one cleanup stays for the next one: the oldest go, and never a part of what only goes together.

    `takes` takes such a set, or answers that there is no room for it.
    """
    why: Dict[UnitKey, Reason] = {}
    beyond: Set[str] = set()
    for partition, effects in _find_sets(history, [effect for verdict in verdicts for effect in verdict.going]):
        if partition in beyond or not takes(effects):
            # The newer ones of a unit do not go before the older ones.
            beyond.add(partition)
            why.update({effect.key: BEYOND for effect in effects})
    return _keep_as_well(history, verdicts, why)


def _find_sets(history: History, going: Sequence[Effect]) -> List[Tuple[str, List[Effect]]]:
    """What of a unit only goes together, with the unit's name, the oldest first: the backups of one run, and from one that lies inside a
    file up to the one that has this file, if the file left live.

    A partition that was renamed in between has one of its names.
    """
    holders, same_as = find_holders(history), {}  # type: Mapping[UnitKey, Effect], Dict[str, str]

    def name_of(effect: Effect) -> str:
        passed, name = [], effect.partition
        while name in same_as:
            passed.append(name)
            name = same_as[name]
        # Whoever moves joined files from each partition to the next makes a chain of thousands, which is not gone through again.
        same_as.update(dict.fromkeys(passed, name))
        return name

    for effect in (effect for effect in going if effect.key in holders):
        own, other = name_of(effect), name_of(holders[effect.key])
        if own != other:
            same_as[own] = other
    sets: List[Tuple[str, List[Effect]]] = []
    # By unit, its newest set, and the version that this one reaches to.
    newest: Dict[str, Tuple[List[Effect], int]] = {}
    for effect in sorted(going, key=lambda effect: (effect.version, effect.number)):
        name, last = name_of(effect), max(effect.version, holders[effect.key].version if effect.key in holders else 0)
        effects, until = newest.get(name, ([], -1))
        if effect.version > until:
            effects = []
            sets.append((name, effects))
        effects.append(effect)
        newest[name] = effects, max(until, last)
    return sets


def _keep_also(verdict: Verdict, why_stay: Mapping[UnitKey, Optional[Reason]]) -> Verdict:
    judged = [(effect, why_stay[effect.key]) for effect in verdict.going]
    held = tuple((effect, why) for effect, why in judged if why)
    if not held:
        return verdict
    return _verdict(verdict.backup, tuple(effect for effect, why in judged if not why), (*held, *verdict.staying), verdict.reason)


def why_shown(partition: str) -> Reason:
    return Reason(Code.BACKUP_SHOWN, f"the partition {partition} lies in it, or around it", "give that partition a directory of its own")


def find_shown(control: ControlPaths, places: Iterable[str], lives: Iterable[NamedPlace]) -> Dict[str, str]:
    """Of these places, relative to the control directory, those that a partition lies in or around, each with its name.

    A location may have 4,000 characters and nearly as many levels: no more of them are looked at than a place has.
    """
    wanted = dict.fromkeys(places)
    # A pattern is in or around all that is below the directory before it.
    shown = ((names.before_pattern(live), name) for name, live in lives if may_be_inside(live, control.top))
    inside = {place[len(control.top) + 1 :]: name for place, name in shown}
    most = max((place.count("/") + 1 for place in wanted), default=0)
    lies_in = {above: name for live, name in inside.items() for above in _up_to(live, most) if above in wanted}
    found: Dict[str, str] = {}
    for place in wanted if inside else ():
        partition = lies_in.get(place) or next((inside[above] for above in _up_to(place, most) if above in inside), None)
        found.update({place: partition} if partition else {})
    return found


def _up_to(path: str, levels: int) -> Iterator[str]:
    """The first levels of a relative path, the deepest one first, and "" for where it begins."""
    parts = path.split("/", levels)[:levels]
    while parts:
        yield "/".join(parts)
        parts.pop()
    yield ""
