"""cleanup --orphans: discard what dropped tables have left. Deletes only backups that still match their manifests, and records.

Whatever is not certainly the leftover of a dropped table is explained, and stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Callable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.commands import cleanup, orphans, per_table
from hivekeeper.commands.context import Context
from hivekeeper.commands.open_table import note_recovered
from hivekeeper.config.settings import Settings
from hivekeeper.config.value_types import write_duration
from hivekeeper.errors import Refused
from hivekeeper.jail import Jail, confine
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import orphans as rules
from hivekeeper.plan import retention
from hivekeeper.plan.doctor import MOST_CLOCK_DIFFERENCE_MS
from hivekeeper.plan.orphans import Doubt, Orphan, OrphanKind, OrphanState
from hivekeeper.plan.own_place import Homes
from hivekeeper.plan.retention import Verdict
from hivekeeper.ports import Cluster, Lock
from hivekeeper.reasons import Code
from hivekeeper.report.command_text import time_text
from hivekeeper.report.results import BackupOutcome, CommandResult, TableOutcome
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History
from hivekeeper.runlog.orphan_mark import OrphanMark
from hivekeeper.runlog.run_files import CLEANUP, RunPlan
from hivekeeper.steps import finish, ownership, recover, removal, table_lock
from hivekeeper.steps import orphans as finding
from hivekeeper.steps.census import Census, shared_census
from hivekeeper.steps.grounds import Directories, Grounds
from hivekeeper.steps.observe import find_existing, find_homes, qualify_all, qualify_table
from hivekeeper.steps.removal import Aside

BY_HAND = "find out what became of the table; nothing is discarded as long as that is not certain"
CLOCKS_DIFFER = "the NameNode's clock and this machine's differ by too much to tell how long its table has been gone"
LOOK_FOR_INDEX = "before anybody drops it, look which table an index of it names (SHOW INDEX ON …)"
SET_CLOCKS = "let both follow the same time server (chronyc tracking), then run again"

# What is done to one leftover; returns it as it is then.
Act = Callable[[Context, Census, str, Orphan], TableOutcome]


def clean_up_orphans(context: Context) -> CommandResult:
    """Discard what is left of dropped tables in each selected database."""
    cluster = context.cluster
    began = cluster.clock.monotonic_ms()
    looked, census = orphans.show_orphans(context, partial(_end_wait, context)), shared_census(cluster)
    outcomes = per_table.Outcomes()
    for found in looked.tables:
        # Each database comes before its tables, by which its leftovers are known.
        at = len(outcomes.tables)
        outcomes.add(found)
        leftovers = _clean_up_database(context, census, found, outcomes)
        if found.orphans is not None:
            outcomes.tables[at] = replace(found, orphans=leftovers)
    seconds = (cluster.clock.monotonic_ms() - began) / 1000
    tables = tuple(outcomes.tables)
    return replace(looked, command=CLEANUP, seconds=seconds, dry_run=context.dry_run, tables=tables, signal=cluster.stopping.signal)


def _end_wait(context: Context, table: Table, control: ControlPaths) -> None:
    """A table that was away is at its place again, perhaps untouched since."""
    if not context.dry_run:
        finding.remove_mark(confine(context.cluster, Jail.of_records(table.full_name, control.top)), control)


def _clean_up_database(context: Context, census: Census, found: TableOutcome, outcomes: per_table.Outcomes) -> Tuple[Orphan, ...]:
    """The leftovers of the database as they are then; adds an outcome for each table of which backups were judged."""
    leftovers: List[Orphan] = []
    # Records first: with a backup its backup table goes.
    for orphan in sorted(found.orphans or (), key=lambda one: list(OrphanKind).index(one.kind)):
        may_go = orphan.may_go or orphan.kind is OrphanKind.REMOVED
        # Nothing goes where not all was looked at.
        act = ACTS.get(orphan.kind) if orphan.is_read and may_go and not found.problem else None
        if act is None:
            leftovers.append(orphan)
            continue
        outcome = per_table.attempt(context, _subject(found.table, orphan), partial(_act_on, act, census, found.table, orphan))
        context.cluster.log_entries.clear()
        leftovers += outcome.orphans or [orphan]
        if outcome.problem or outcome.backups or outcome.recovered:
            outcomes.add(replace(outcome, orphans=None))
    return tuple(leftovers)


def _subject(database: str, orphan: Orphan) -> Table:
    """A name for errors and settings. The place decides what may be changed, below."""
    if names.TABLE.fullmatch(orphan.table):
        database, _, name = orphan.table.partition(".")
    else:
        name = names.base(ControlPaths(orphan.place).home)
    return Table.without_definition(database, name, "it is gone")


def _act_on(act: Act, census: Census, database: str, orphan: Orphan, context: Context, table: Table) -> TableOutcome:
    return replace(act(context, census, database, orphan), table=table.full_name)


# ---- a backup table


def _clean_up_backup_table(context: Context, _census: Census, _database: str, orphan: Orphan) -> TableOutcome:
    """Drop a backup table that is exactly as we make them and shows nothing any more. No file goes with it."""
    why = _why_not_dropped(context, orphan)
    if why:
        return _outcome(replace(orphan, why=f"{orphan.why}. It stays: {why}"))
    why = context.cluster.metastore.why_no_backup_tables()
    if why:
        return _outcome(replace(orphan, why=f"{orphan.why}. It stays: {why}", next=LOOK_FOR_INDEX))
    if context.dry_run:
        return _outcome(replace(orphan, state=OrphanState.PLANNED))
    cluster = confine(context.cluster, Jail.of_records(orphan.table))
    cluster.metastore.drop_backup_table(orphan.place, names.backup_marks(orphan.place, orphan.table))
    return _outcome(replace(orphan, state=OrphanState.REMOVED, why="it showed nothing any more", next=""))


def _why_not_dropped(context: Context, orphan: Orphan) -> str:
    cluster = context.cluster
    database, _, name = orphan.place.partition(".")
    table = cluster.metastore.tables(database, [name]).get(name)
    if table is None:
        return ""
    table = qualify_table(cluster.files, table)
    why = rules.why_not_ours(table, orphan.table, context.backup_prefix)
    if why or orphans.exists(cluster, orphan.table):
        return why or f"{orphan.table} is there again"
    try:
        partitions = qualify_all(cluster.files, table, cluster.metastore.partitions(table))
    except Refused as error:
        return str(error)
    # Also where Spark finds it, if somebody has changed that.
    places = [table.location, *map(cluster.files.qualify, table.spark_paths.values()), *partitions]
    # What is on a server that must not be called, or what a pattern finds, is not looked for.
    unsure = [place for place in places if cluster.files.is_foreign(place) or names.before_pattern(place) != place]
    there = sorted(unsure or find_existing(cluster.files, places))
    return f"it still shows {there[0]}" if there else ""


# ---- a removal that was interrupted


def _finish_removal(context: Context, census: Census, database: str, orphan: Orphan) -> TableOutcome:
    if names.NEW.fullmatch(names.base(orphan.place)):
        return _remove_unborn(context, orphan)
    removed, control = ControlPaths(orphan.place), ControlPaths.of_removed(orphan.place)
    assert control is not None
    cluster = confine(context.cluster, Jail.of_records(orphan.table, removed.top, control.top))
    subject = Table.without_definition("(no table)", names.base(control.home), "")
    strange = removal.why_not_ours(cluster, removed)
    if strange:
        return _outcome(_stays(orphan, strange))
    ownership.require_own_records(cluster, subject, removed, cluster.trusted_owners)
    aside = removal.read_aside(cluster, removed)
    why = _why_of_other(census, control, aside.history)
    if not why and aside.history and not aside.needed and not orphan.may_go:
        # Whoever may rename it can give it such a name; but only a run deletes its lock, and with that its removal has begun.
        why = f"its log is whole, and no table of {database} whose log is about it alone lies beside it: it may be of another metastore's"
    if why:
        return _outcome(_stays(orphan, why))
    if context.dry_run:
        return _outcome(replace(orphan, state=OrphanState.PLANNED))
    if removal.finish_removal(cluster, subject, aside):
        return _outcome(replace(orphan, state=OrphanState.REMOVED, why="its removal is finished", next=""))
    return _outcome(replace(orphan, why=f"it holds more than records, and is at {control.top} again", next=f"look at {control.top}"))


def _remove_unborn(context: Context, orphan: Orphan) -> TableOutcome:
    if context.dry_run:
        return _outcome(replace(orphan, state=OrphanState.PLANNED))
    cluster = confine(context.cluster, Jail.of_records(orphan.table, orphan.place))
    if not removal.remove_unborn(cluster.files, orphan.place):
        return _outcome(_stays(orphan, "it holds more than a control directory that was being made"))
    return _outcome(replace(orphan, state=OrphanState.REMOVED, why="no run is making it any more", next=""))


def _why_of_other(census: Census, control: ControlPaths, history: Optional[History]) -> str:
    """Why these may be the records of a table elsewhere, which whoever may rename them has put here; "" if they are not."""
    own = {table_id(table) for table in census.tables() if table.location == control.home}
    others = rules.ids_of(history) - own - {""} if history else ()
    why = census.why_perhaps_there(others) if others else ""
    return f"its log is about {sorted(rules.names_of(others))[0]}, and {why}" if why else ""


# ---- records


@dataclass(frozen=True)
class _Records:
    """A control directory without a table. `table` is the one that its log was about last; the cluster can change only this directory."""

    context: Context
    census: Census
    database: str
    control: ControlPaths
    table: Table
    settings: Settings
    history: History
    # Of interrupted runs; and the directories of those of which no plan is seen, though they hold more than a run does before its plan.
    plans: Tuple[RunPlan, ...] = ()
    unplanned: Tuple[str, ...] = ()

    @cached_property
    def wait_ms(self) -> int:
        """How old its mark must be: as the rules for each table say of which something is left."""
        of_each, left = retention.find_settings(self.history, self.context.settings_for), retention.list_backups(self.history)
        return max([self.settings.min_age_ms, *(of_each[backup.table_id].min_age_ms for backup in left)])

    @property
    def cluster(self) -> Cluster:
        return self.context.cluster

    def grounds(self) -> Grounds:
        return Grounds(self.cluster.clock, self.control, self._ask, is_gone=True)

    def _ask(self) -> Directories:
        """Raises Refused if its table is, or may be, there again."""
        doubt = _doubt(self)
        if doubt:
            what, state = f"{self.table.full_name}: {doubt.why}", "nothing more was discarded"
            raise Refused(what, code=Code.RECORDS_NEEDED, state=state, next=BY_HAND)
        # Somebody may have pointed something at old files, to rescue rows.
        own = rules.names_of(rules.ids_of(self.history, self.plans))
        return Directories({}, self.census.inside(self.control.top, own, self.database))


def _clean_up_records(context: Context, census: Census, database: str, orphan: Orphan) -> TableOutcome:
    control = ControlPaths(orphan.place)
    subject = _subject(database, orphan)
    settings = context.settings_for(subject.full_name)
    retention.refuse_contradiction(settings, subject.full_name)
    jail = Jail.of_records(subject.full_name, control.top, control.removed(context.run))
    context = replace(context, cluster=confine(context.cluster, jail))
    ownership.require_own_records(context.cluster, subject, control, settings.trusted_owners)
    records = _read(context, census, database, control)
    doubt = _doubt(records)
    if doubt:
        # Not even the lock is taken: it may be the control directory of a table that is elsewhere.
        return _outcome(_stays(orphan, doubt.why))
    if context.dry_run:
        return _plan(records, orphan)
    with table_lock.hold_table(context.cluster, subject, control, context.run, settings) as lock:
        outcome, aside = _carry_out(_read(context, census, database, control), orphan, lock)
    if aside:
        # Only now: the lock, which is in it, is released.
        removal.delete_records(context.cluster.files, aside)
    return outcome


def _read(context: Context, census: Census, database: str, control: ControlPaths) -> _Records:
    """What the records say now, with the rules for the table that they are about: that may be another one than was looked at before.
    Raises what reading them raises.
    """
    cluster = context.cluster
    history = store.read_history(cluster, control)
    bare = rules.former_table(history, control, database, None)
    unfinished = {name: store.read_plan(cluster, bare, control.run(name)) for name in finding.find_unfinished(cluster, control, history)}
    unplanned = tuple(name for name, known in unfinished.items() if not known and finish.holds_more(cluster.files, control.run(name)))
    kept = reversed(retention.list_backups(history))
    plan = next((plan for one in kept for plan in [store.read_plan(cluster, bare, control.run(one.directory))] if plan), None)
    table = rules.former_table(history, control, database, plan)
    settings = context.settings_for(table.full_name)
    return _Records(context, census, database, control, table, settings, history, tuple(filter(None, unfinished.values())), unplanned)


def _doubt(records: _Records) -> Optional[Doubt]:
    """Why nothing in a control directory may be discarded, None if it may. A sign of its table ends the wait since it was dropped."""
    doubt = _find_doubt(records)
    if doubt and doubt.is_sign and not records.context.dry_run:
        finding.remove_mark(records.cluster, records.control)
    return doubt


def _find_doubt(records: _Records) -> Optional[Doubt]:
    begun = [plan.run for plan in records.plans if plan.operation != CLEANUP] or [store.run_of(name) for name in records.unplanned]
    if begun:
        return Doubt(f"run {begun[0]} was interrupted: rows that readers miss may be there alone", is_sign=True)
    ids, readings = rules.ids_of(records.history, records.plans), records.census.readings()
    doubt = rules.doubt_drop(ids, records.database, readings)
    if doubt and doubt.is_sign:
        return doubt
    # From another database, only a table at its place can tell anything.
    homes = Homes({}) if doubt else find_homes(records.cluster)
    shared = rules.why_shared(ids, records.table, records.control, readings, homes)
    if not shared:
        return doubt
    return Doubt(doubt.why if doubt else shared.what, is_sign=True)


def _plan(records: _Records, orphan: Orphan) -> TableOutcome:
    """What a run would do now; writes nothing."""
    known = store.read_mark(records.cluster, records.control)
    now_ms = records.cluster.clock.now_ms()
    if known is None or known[0] != OrphanMark.of(records.history):
        return _outcome(_marked(records, orphan, now_ms, "a run would mark it now"))
    if now_ms - known[1] < records.wait_ms:
        return _outcome(_marked(records, orphan, known[1], "it is marked"))
    verdicts = _judge(records, records.grounds())
    backups = tuple(cleanup.outcome_of(verdict, (), dry_run=True) for verdict in verdicts)
    goes = not verdicts or any(not verdict.keep for verdict in verdicts)
    return _outcome(_kept(orphan, OrphanState.PLANNED if goes else OrphanState.KEPT, verdicts), backups)


def _carry_out(records: _Records, orphan: Orphan, lock: Lock) -> Tuple[TableOutcome, Optional[Aside]]:
    """Mark, or discard; and where the directory was set aside, if nothing but records was left in it."""
    doubt = _doubt(records)
    if doubt:
        return _outcome(_stays(orphan, doubt.why)), None
    times = finding.renew_mark(records.cluster, records.control, records.history, records.wait_ms)
    if times is None:
        return _outcome(replace(_stays(orphan, CLOCKS_DIFFER), next=SET_CLOCKS)), None
    since_ms, now_ms = times
    if since_ms == now_ms or now_ms - since_ms < records.wait_ms:
        said = "it is marked from now on" if since_ms == now_ms else "it is marked"
        return _outcome(_marked(records, orphan, since_ms, said)), None
    outcome, verdicts = _discard(records, lock, now_ms)
    left = _read(records.context, records.census, records.database, records.control)
    state = OrphanState.DISCARDED if outcome.did_something else OrphanState.KEPT
    if retention.list_backups(left.history):
        return replace(outcome, orphans=(_kept(orphan, state, verdicts),)), None
    strangers = removal.find_strangers(records.cluster.files, records.control)
    doubt = Doubt(removal.explain_stranger(strangers[0]), is_sign=False) if strangers else _doubt(left)
    if doubt:
        return replace(outcome, orphans=(replace(_stays(orphan, doubt.why), state=state),)), None
    about = rules.ids_of(left.history)
    aside = removal.set_aside(records.cluster, records.table, records.control, lock, records.context.run, about)
    gone = replace(orphan, state=OrphanState.REMOVED, why="its table was dropped, and no backup is left in it", next="")
    return replace(outcome, orphans=(gone,)), aside


def _discard(records: _Records, lock: Lock, told_ms: int) -> Tuple[TableOutcome, Sequence[Verdict]]:
    """Finish what an interrupted cleanup had begun, then discard what no rule keeps, also not by the time that the NameNode has told."""
    cluster, control, context, grounds = records.cluster, records.control, records.context, records.grounds()
    settle = partial(recover.settle_orphaned, grounds)
    for settled in recover.settle_runs(cluster, records.table, control, lock, context.run, settle):
        note_recovered(cluster, settled)
    records = replace(records, history=store.read_history(cluster, control))
    verdicts = _judge(records, grounds, told_ms + MOST_CLOCK_DIFFERENCE_MS)
    outcome = TableOutcome(records.table.full_name, backups=tuple(cleanup.outcome_of(verdict, ()) for verdict in verdicts))
    if not all(verdict.keep for verdict in verdicts):
        outcome = cleanup.carry_out(context, records.table, control, records.history, verdicts, grounds, lock)
    return outcome, verdicts


def _judge(records: _Records, grounds: Grounds, *told_ms: int) -> Tuple[Verdict, ...]:
    times_ms, written_ms = (records.cluster.clock.now_ms(), *told_ms), store.written_times(records.cluster, records.control)
    verdicts = retention.judge_backups(records.history, records.context.settings_for, *times_ms, written_ms=written_ms)
    if all(verdict.keep for verdict in verdicts):
        return verdicts
    per_table.require_time(records.cluster, records.table)
    verdicts = retention.keep_shown(records.history, verdicts, records.control, grounds.directories().all)
    return cleanup.keep_beyond(records.table, records.history, verdicts)


def _stays(orphan: Orphan, why: str) -> Orphan:
    known = orphan.next if orphan.next.startswith("if ") else BY_HAND
    return replace(orphan, why=f"{orphan.why}. Nothing is discarded: {why}", next=known)


def _marked(records: _Records, orphan: Orphan, since_ms: int, said: str) -> Orphan:
    least = records.wait_ms
    why = f"its table was dropped; {said}, and may go from {time_text(since_ms + least)} UTC (min_age {write_duration(least)})"
    return replace(orphan, state=OrphanState.MARKED, why=why, next="run the same command again then")


def _kept(orphan: Orphan, state: OrphanState, verdicts: Sequence[Verdict]) -> Orphan:
    how = rules.how_to_let_go(verdicts)
    return replace(orphan, state=state, why="its table was dropped", next=how or "run the same command again later")


def _outcome(orphan: Orphan, backups: Tuple[BackupOutcome, ...] = ()) -> TableOutcome:
    return TableOutcome(orphan.table, orphans=(orphan,), backups=backups)


ACTS: Mapping[OrphanKind, Act] = {
    OrphanKind.RECORDS: _clean_up_records,
    OrphanKind.REMOVED: _finish_removal,
    OrphanKind.BACKUP_TABLE: _clean_up_backup_table,
}
