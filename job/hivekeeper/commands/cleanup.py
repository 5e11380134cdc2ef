"""cleanup: discard backups that the retention policy no longer keeps. Deletes only what still matches its manifest."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names, quoting
from hivekeeper.codes import Exit
from hivekeeper.commands import per_table, run_keys
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import (
    find_control,
    hold_settled,
    read_again,
    refuse_left_elsewhere,
    refuse_where_it_was,
    require_own_place,
)
from hivekeeper.config.settings import TRASH, Settings
from hivekeeper.config.value_types import write_duration
from hivekeeper.errors import Refused
from hivekeeper.model import Table, Unit
from hivekeeper.names import ControlPaths, RunId, UnitNumber
from hivekeeper.plan import eligibility, late_files, listings, retention
from hivekeeper.plan import orphans as rules
from hivekeeper.plan.doctor import MOST_CLOCK_DIFFERENCE_MS
from hivekeeper.plan.inside import find_inside
from hivekeeper.plan.retention import SettingsFor, Verdict, Window
from hivekeeper.ports import Cluster, Lock
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.command_text import time_text
from hivekeeper.report.results import BackupOutcome, BackupState, CommandResult, TableOutcome
from hivekeeper.runlog import store, strict
from hivekeeper.runlog.entries import LogEntry, UnitResult, table_id
from hivekeeper.runlog.history import Effect, History, UnitKey
from hivekeeper.runlog.namenode_time import ask_before_run
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import CLEANUP, MOST_UNITS, BackupPlace, PlannedUnit, RunPlan, absolute
from hivekeeper.steps import cleanup, finish, identity, ownership, run_directory, table_log
from hivekeeper.steps.census import Census, shared_census
from hivekeeper.steps.grounds import Answer, CreatedAgain, Directories, Grounds
from hivekeeper.steps.observe import find_lives
from hivekeeper.steps.timing import Step, timed

log = logging.getLogger(__name__)

BY_HAND = "find out what became of that table; nothing of it is discarded as long as that is not certain"


def clean_up(context: Context) -> CommandResult:
    """Judge the backups of every selected table, and discard those that may go."""
    return per_table.run_on_tables(context, CLEANUP, clean_up_table)


def clean_up_table(context: Context, table: Table, is_observed: bool = False) -> TableOutcome:
    """`is_observed`: by the command that this cleanup follows."""
    cluster, settings = context.cluster, context.settings_for(table.full_name)
    # To let go also of the backups of other tables that lay here and are gone.
    census = shared_census(cluster) if context.former_tables else None
    table, control = find_control(cluster, table, settings)
    if control is None:
        if not is_observed:
            refuse_left_elsewhere(context, table)
        return TableOutcome(table.full_name)
    if context.dry_run:
        ownership.require_own_records(cluster, table, control, settings.trusted_owners)
        history = identity.know_history(cluster, table, store.read_history(cluster, control))
        table, verdicts, _ = judge(cluster, table, control, history, context.settings_for, census)
        backups = tuple(outcome_of(verdict, (), dry_run=True) for verdict in verdicts)
        return TableOutcome(table.full_name, backups=backups, window=_find_window(cluster, table, history, verdicts))
    with hold_settled(cluster, table, control, context.run, settings) as lock:
        history = identity.know_history(cluster, table, store.read_history(cluster, control))
        answered = run_keys.answer(context, table, history, CLEANUP)
        if answered is not None:
            return answered
        with timed(cluster, Step.PLAN):
            found, verdicts, grounds = judge(cluster, table, control, history, context.settings_for, census, lock)
            gone = _list_gone(found, history, census) if table_id(found) == table_id(table) else None
            table = found
        window = _find_window(cluster, table, history, verdicts)
        if gone is None and all(verdict.keep for verdict in verdicts):
            backups = tuple(outcome_of(verdict, ()) for verdict in verdicts)
            return TableOutcome(table.full_name, backups=backups, window=window)
        outcome = carry_out(context, table, control, history, verdicts, grounds, lock, gone)
    return replace(outcome, window=window)


def _find_window(cluster: Cluster, table: Table, history: History, verdicts: Sequence[Verdict]) -> Optional[Window]:
    """How far back the table can be rolled back; None if the newest backup is of another one that lay here."""
    return retention.find_window(history, table_id(table), verdicts, cluster.clock.now_ms())


def judge(
    cluster: Cluster,
    table: Table,
    control: ControlPaths,
    history: History,
    settings_for: SettingsFor,
    census: Optional[Census] = None,
    lock: Optional[Lock] = None,
) -> Tuple[Table, Tuple[Verdict, ...], Grounds]:
    """The table that is here by now, a verdict for each backup, and the grounds on which they go; without one that may go, the metastore is
    not asked.

    Raises Refused if another table has files here, or there is none any more; and Stopped.
    """
    settings = settings_for(table.full_name)
    retention.refuse_contradiction(settings, table.full_name)
    verdicts = _judge_by_rules(cluster, table, control, history, settings_for, census, lock)
    grounds = _find_grounds(cluster, table, control, verdicts, census)
    if all(verdict.keep for verdict in verdicts):
        return table, verdicts, grounds
    # A pause, settling, and the wait for the lock take their time: the metastore is asked after them.
    per_table.require_time(cluster, table)
    found = grounds.ask()
    if isinstance(found, CreatedAgain):
        # The new one has just been created: also with a census, nothing of the former one goes.
        return found.table, retention.keep_former(history, verdicts, _why_former(found.table, history)), grounds
    refuse_where_it_was(cluster, table, found.lives.values(), settings)
    verdicts = retention.keep_inside(history, retention.keep_shown(history, verdicts, control, found.all), found.why_uncut)
    return table, keep_beyond(table, history, verdicts), grounds


def keep_beyond(table: Table, history: History, verdicts: Sequence[Verdict]) -> Tuple[Verdict, ...]:
    """The same verdicts, but what does not fit into one plan stays for the next cleanup."""
    expected, records = _find_expected(table, history, verdicts), _records_of(verdicts)
    room = store.PlanRoom(RunPlan(RunId(""), CLEANUP, table, (), records=records))

    def takes(effects: Sequence[Effect]) -> bool:
        return room.take([_plan_unit(table, expected, effect, MOST_UNITS) for effect in effects])

    found = retention.keep_beyond(history, verdicts, takes)
    going, left = (sum(len(verdict.going) for verdict in some) for some in (found, verdicts))
    if going < left:
        log.warning("table=%s step=plan units=%d left=%d reason=%r", table.log_field, going, left - going, retention.BEYOND.what)
    return found


def _judge_by_rules(
    cluster: Cluster,
    table: Table,
    control: ControlPaths,
    history: History,
    settings_for: SettingsFor,
    census: Optional[Census],
    lock: Optional[Lock],
) -> Tuple[Verdict, ...]:
    """The verdicts before the metastore is asked where partitions are.

    What goes may go by the NameNode's clock, too: a machine's may be days ahead, or behind. It can be asked with the `lock`.
    """
    now_ms = cluster.clock.now_ms()
    verdicts = _judge_at(table, history, settings_for, census, [now_ms])
    if all(verdict.keep for verdict in verdicts):
        return verdicts
    told_ms = [ask_before_run(cluster.files, control) + MOST_CLOCK_DIFFERENCE_MS] if lock else []
    return _judge_at(table, history, settings_for, census, [now_ms, *told_ms], store.written_times(cluster, control))


def _judge_at(
    table: Table,
    history: History,
    settings_for: SettingsFor,
    census: Optional[Census],
    times_ms: Sequence[int],
    written_ms: Mapping[int, int] = retention.NOT_ASKED,
) -> Tuple[Verdict, ...]:
    """The verdicts at these times, which are those of `retention.judge_backups`."""
    verdicts = retention.judge_backups(history, settings_for, *times_ms, written_ms=written_ms)
    return retention.keep_former(history, verdicts, _why_keep_former(table, history, settings_for, census, min(times_ms), written_ms))


def _find_grounds(cluster: Cluster, table: Table, control: ControlPaths, verdicts: Iterable[Verdict], census: Optional[Census]) -> Grounds:
    """On which what these verdicts let go may go."""
    former = {effect.table_id for verdict in verdicts for effect in verdict.going} - {table_id(table)}
    # Also the former names of this table: its backup tables have them.
    known = rules.names_of(rules.ids_of(store.read_history(cluster, control))) if census and former else frozenset()
    return Grounds(cluster.clock, control, partial(_ask_grounds, cluster, table, control, former, known, census))


def _ask_grounds(
    cluster: Cluster, table: Table, control: ControlPaths, former: Collection[str], known: Iterable[str], census: Optional[Census]
) -> Answer:
    """Raises Refused if the table is not there any more, or none of its backups is to be moved; and if one of the `former` tables, by their
    ids, of which old files are to go, may be there. `known`: the names of all tables that the log is about.
    """
    now = read_again(cluster, table)
    if table_id(now) != table_id(table):
        return CreatedAgain(now)
    table = replace(now, location=table.location)
    require_own_place(cluster, table, control)
    lives = find_lives(cluster, table)
    # Of whichever table had the name by then.
    now = read_again(cluster, table)
    if table_id(now) != table_id(table):
        return CreatedAgain(now)
    why_uncut = eligibility.refuse_engine(now) or _find_log(cluster, table)
    if census is None or not former:
        return Directories(lives, why_uncut=why_uncut)
    why = census.why_perhaps_there(former)
    if why:
        raise Refused(f"{table.full_name}: {why}", code=Code.RECORDS_NEEDED, state="nothing more was discarded", next=BY_HAND)
    # Who had that table may have pointed something at its old files, for its rows.
    return Directories(lives, census.inside(control.top, {table.full_name, *known}, table.database), why_uncut)


def _find_log(cluster: Cluster, table: Table) -> Optional[Reason]:
    """Why another engine may have noted how long the table's files are, though its definition does not say so: as of a path, such as
    CONVERT TO DELTA makes one.
    """
    places = {name: names.join(table.location, name) for name in sorted(listings.FOREIGN_LOGS)}
    seen = cluster.files.look(list(places.values()), 0)
    found = next((name for name, place in places.items() if seen[place].exists), "")
    return listings.refuse_log(found) if found else None


def _why_keep_former(
    table: Table, history: History, settings_for: SettingsFor, census: Optional[Census], now_ms: int, written_ms: Mapping[int, int]
) -> Mapping[str, Reason]:
    """By its id, why the backups of each other table that lay here stay: all without a `census`, else those that may still be needed."""
    kept = _why_former(table, history)
    if census is None:
        return kept
    settings, since_ms = retention.find_settings(history, settings_for), retention.find_gone(history, written_ms)
    found: Dict[str, Reason] = {}
    for one, known in kept.items():
        why, least = census.why_perhaps_there([one]), settings[one].min_age_ms
        if why:
            found[one] = replace(known, what=f"{known.what}, and {why}", next=BY_HAND)
        elif now_ms - since_ms.get(one, now_ms) < least:
            # Old files may be months old when somebody drops the table by mistake.
            found[one] = _why_wait(known, since_ms.get(one), least)
    return found


def _why_wait(former: Reason, since_ms: Optional[int], least_ms: int) -> Reason:
    until = f"may go once that is min_age ({write_duration(least_ms)}) ago"
    if since_ms is not None:
        until = f"may go from {time_text(since_ms + least_ms)} UTC (min_age {write_duration(least_ms)})"
    since = "from now on" if since_ms is None else f"since {time_text(since_ms)} UTC"
    return Reason(Code.TOO_YOUNG, f"{former.what}, which is known to be gone {since}, and {until}", "run the same command again then")


def _list_gone(table: Table, history: History, census: Optional[Census]) -> Optional[Sequence[str]]:
    """The ids of the former tables that are known to be gone, if the log does not have them so yet.

    That a table may be there, because the metastore does not tell of one today, does not end a wait; one of the same second does, or that
    it is this one again. No more are noted than can be read, first those that wait already; the others wait until these have gone.
    """
    own = table_id(table)
    former, known = retention.find_former(history, own), retention.find_gone(history).keys()
    if census is None:
        return None
    back = {one for one in known if one == own or rules.is_of_second([one], census.readings())}
    waiting = (known & former) - back
    gone = {one for one in former - waiting if not census.why_perhaps_there([one])}
    new = sorted(gone)[: max(0, strict.MOST_WORD - len(waiting))]
    return sorted({*waiting, *new}) if back or new else None


def _why_former(table: Table, history: History) -> Mapping[str, Reason]:
    """By its id, why the backups of each other table that lay here stay: who has the place now decides nothing about them."""
    return {one: retention.why_former(one, table.full_name) for one in retention.find_former(history, table_id(table))}


def carry_out(
    context: Context,
    table: Table,
    control: ControlPaths,
    history: History,
    verdicts: Sequence[Verdict],
    grounds: Grounds,
    lock: Lock,
    gone: Optional[Sequence[str]] = None,
) -> TableOutcome:
    """Write the plan durably and log the intention first; then discard backup by backup.

    `gone`: the ids of former tables that the log is to have as gone.
    """
    cluster = context.cluster
    plan = plan_cleanup(context, table, history, verdicts, grounds.directories().lives)
    settings = context.settings_for(table.full_name)
    run = run_directory.open_run(cluster, table, control, lock, context.run, CLEANUP, settings, is_gone=grounds.is_gone)
    places = tuple(unit.backup.place for unit in plan.units if unit.backup)
    begin = LogEntry(context.run, run.directory, CLEANUP, cluster.clock.now_ms(), finished=False, discarding=places)
    parameters = parameters_of(settings, plan)
    if gone is not None:
        parameters[retention.GONE] = list(gone)
    with run_directory.told_if_taken(run):
        with timed(cluster, Step.RECORD):
            run_directory.write_plan(run, plan)
            table_log.commit(run, begin, parameters)
        with timed(cluster, Step.DISCARD):
            stretches = late_files.find_stretches(history, _partitions_of(verdicts))
            units = cleanup.discard_units(run, plan, grounds, stretches, find_inside(history), settings.delete_pause_ms)
        finish.finish_units(run, units)
    outcome = TableOutcome(table.full_name, context.run, backups=tuple(outcome_of(verdict, units) for verdict in verdicts))

    def record(code: Exit) -> int:
        version = finish.record_run(run, plan, units, parameters, exit_code=code)
        finish.tidy_up(cluster, table, control, is_gone=grounds.is_gone)
        return version

    return per_table.keep_done(cluster, table, outcome, record)


def plan_cleanup(context: Context, table: Table, history: History, verdicts: Iterable[Verdict], lives: Mapping[str, str]) -> RunPlan:
    """What to discard, oldest first, but what is inside a file of another backup after that. Late files may move to live only if live is
    still the unit's, and nobody but runs has exchanged its files since.
    """
    verdicts = tuple(verdicts)
    expected, holders = _find_expected(table, history, verdicts), retention.find_holders(history)
    units: List[PlannedUnit] = []
    for effect in sorted((effect for verdict in verdicts for effect in verdict.going), key=lambda effect: effect.key in holders):
        unit = _plan_unit(table, expected, effect, len(units) + 1)
        units.append(unit if lives.get(effect.partition) == unit.live else replace(unit, expected=()))
    settings = retention.find_settings(history, context.settings_for)
    ways = {settings[effect.table_id].discard for verdict in verdicts for effect in verdict.going}
    discard = TRASH if TRASH in ways else context.settings_for(table.full_name).discard
    records = _records_of(verdicts)
    return RunPlan(context.run, CLEANUP, table, tuple(units), discard=discard, records=records, run_key=context.run_key)


def _find_expected(table: Table, history: History, verdicts: Iterable[Verdict]) -> Mapping[UnitKey, late_files.Files]:
    return late_files.find_expected(history, table_id(table), _partitions_of(verdicts))


def _partitions_of(verdicts: Iterable[Verdict]) -> Set[str]:
    return {effect.partition for verdict in verdicts for effect in verdict.going}


def _records_of(verdicts: Iterable[Verdict]) -> Tuple[str, ...]:
    return tuple(verdict.backup.directory for verdict in verdicts if verdict.record_goes)


def _plan_unit(table: Table, expected: Mapping[UnitKey, late_files.Files], effect: Effect, number: int) -> PlannedUnit:
    """With what live must hold for late files to go there, by the log."""
    values = tuple(quoting.partition_values(effect.partition).values()) if effect.partition else ()
    unit = Unit(table.full_name, effect.partition, values, absolute(effect.live, table.location), table.storage)
    # A file that a former table left is this one's now: it keeps what is inside.
    inside = effect.inside if effect.table_id == table_id(table) else None
    place = BackupPlace(effect.run, effect.number, effect.place)
    return PlannedUnit(UnitNumber(number), unit, effect.before, (), place, expected.get(effect.key, ()), inside=inside)


def parameters_of(settings: Settings, plan: RunPlan) -> Dict[str, object]:
    """The retention rules of a cleanup, for the log."""
    return {
        "minAgeMs": settings.min_age_ms,
        "keepForMs": settings.keep_for_ms,
        "keepLatestRuns": settings.keep_latest_runs,
        "keepLatestVersions": settings.keep_latest_versions,
        "cleanupRequires": settings.cleanup_requires,
        "discard": plan.discard,
    }


def outcome_of(verdict: Verdict, units: Iterable[UnitResult], dry_run: bool = False) -> BackupOutcome:
    if verdict.keep:
        return BackupOutcome(verdict.backup, BackupState.KEPT, verdict.reason)
    staying = tuple((effect.partition, why) for effect, why in verdict.staying)
    part = f"{len(verdict.going)} of {len(verdict.backup.effects)} units: " if staying else ""
    reason = replace(verdict.reason, what=part + verdict.reason.what)
    if dry_run:
        return BackupOutcome(verdict.backup, BackupState.PLANNED, reason, staying, going=verdict.going)
    of_run = [unit for unit in units if unit.planned.backup and unit.planned.backup.run == verdict.backup.run]
    failed = tuple((unit.planned.name, unit.why) for unit in of_run if unit.outcome is not Outcome.DISCARDED)
    late = tuple(name for unit in of_run for name in unit.late_files)
    state = BackupState.TRIMMED if staying else BackupState.DISCARDED
    if failed:
        state = BackupState.LEFT if all(unit.outcome is Outcome.LEFT for unit in of_run) else BackupState.PARTLY
    return BackupOutcome(verdict.backup, state, reason, (*failed, *staying), late, verdict.going)
