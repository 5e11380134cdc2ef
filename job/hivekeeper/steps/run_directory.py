"""A run's own directory: opening it, taking it over, reading the NameNode's time.

Never touches live data.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Callable, Collection, Container, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set

from hivekeeper import names
from hivekeeper.config.settings import Settings
from hivekeeper.errors import HivekeeperError, Locked, NeedsInvestigation, Refused
from hivekeeper.model import OWNER_ONLY, Attributes, FileInfo, Guard, Snapshot, Table, Unit
from hivekeeper.names import ControlPaths, RunId, RunPaths, UnitNumber
from hivekeeper.plan import recover
from hivekeeper.ports import ALL, Cluster, Files, FilesError, Lock, NoPermission, SourceMissing, most_files
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History, LoggedRun
from hivekeeper.runlog.namenode_time import ask_time
from hivekeeper.runlog.run_files import PlannedUnit, RunPlan, plan_pieces
from hivekeeper.steps import ownership
from hivekeeper.steps.observe import BoundedLook, find_above
from hivekeeper.steps.whereabouts import Whereabouts

log = logging.getLogger(__name__)

MOST_USES_OF_A_TIME = 50
# From then on a gap counts as an outage: what looks for all directories of a table meets it.
LONG_GAP_MS = 10_000
# Of one unit, beyond twice what was planned: a NameNode tells so many at once by default (dfs.ls.limit), and some files come late to any.
MOST_LATE = 1000
# In all units of a run, or four times what is listed at once where that is more.
MOST_BEYOND = 1_000_000


class Fenced(Locked):
    """Another run took this one over: it finishes or undoes what was begun here."""


@dataclass
class NameNodeTime:
    """The NameNode's time in milliseconds when a run last read it, and for how many checks it has served; None if the next one reads it."""

    read_ms: Optional[int] = None
    uses: int = 0


@dataclass
class Returned:
    """How many bytes a run has copied for files that were joined by mistake, by unit, and whether it copies any number."""

    lengths: Dict[UnitNumber, int] = field(default_factory=dict)
    is_unlimited: bool = False


@dataclass
class MovedUp:
    """How many files and directories a run has looked at to move them into its units, of what late committers left in them, or others put
    in their places in the gap; and where it has carried late files over to, by their ids, and how often such a file came late to another
    unit, too.
    """

    number: int = 0
    late: Dict[int, str] = field(default_factory=dict)
    again: int = 0


@dataclass
class Listed:
    """How many entries of its units' directories a run has listed beyond what its plan lets expect. `planned`: by directory, the entries it
    had then, of units of which the plan has only some files.
    """

    beyond: int = 0
    planned: Dict[str, int] = field(default_factory=dict)


@dataclass
class HeldUp:
    """How long the checks of a run's units took because of what others do: those that had to be made again, and what is hidden above the
    units beyond a moment each.
    """

    ms: float = 0.0


@dataclass
class HiveLock:
    """Whether a run has waited for Hive's own lock in vain."""

    was_in_vain: bool = False


@dataclass(frozen=True)
class Run:
    """What every step of one run on one table needs.

    `leftover_ms`: how long a writer's directory above the units must be unchanged to count as a leftover; None: never.
    `checkpoint_interval`: the entries of the log after which it gets a checkpoint, which may let go entries older than `log_retention_ms`;
    None for a recovery, which writes none.
    """

    cluster: Cluster
    table: Table
    control: ControlPaths
    paths: RunPaths
    lock: Lock
    leftover_ms: Optional[int] = None
    # The rights of directories on the path to a backup, and of records.
    rights: Guard = ownership.CLOSED
    # Of the directories above the units when they were compared with those on that path; none if these are for the run's user alone.
    above: Mapping[str, Attributes] = field(default_factory=dict)
    checkpoint_interval: Optional[int] = None
    log_retention_ms: int = 0
    # The units whose files were away for longer than a moment (`end_gap`): of a recovery, also those that had left live when it began, or
    # perhaps when an earlier one did, which was killed.
    were_away: Set[UnitNumber] = field(default_factory=set, compare=False)
    # Of these, those whose new files somebody may have taken out of where they waited, before live had them (`removed.is_taken_out`).
    taken_out: Set[UnitNumber] = field(default_factory=set, compare=False)
    # When an exchange began, by number (monotonic): since then the unit's files may be away, until `end_gap`.
    away_since_ms: Dict[UnitNumber, float] = field(default_factory=dict, compare=False)
    time: NameNodeTime = field(default_factory=NameNodeTime, compare=False)
    # Of the directories with the new files of units that were looked at before these were live, by number: what is younger came since.
    incoming_ids: Dict[UnitNumber, int] = field(default_factory=dict, compare=False)
    # Of the youngest certificate when a unit was looked at, by number: for a unit of which a killed run has brought the new files in.
    certified_ids: Dict[UnitNumber, int] = field(default_factory=dict, compare=False)
    returned: Returned = field(default_factory=Returned, compare=False)
    moved_up: MovedUp = field(default_factory=MovedUp, compare=False)
    listed: Listed = field(default_factory=Listed, compare=False)
    whereabouts: Whereabouts = field(default_factory=Whereabouts, compare=False)
    hive_lock: HiveLock = field(default_factory=HiveLock, compare=False)
    held_up: HeldUp = field(default_factory=HeldUp, compare=False)
    # The log when the run began, or was taken over: to read it while a unit is away may mean to wait for a KMS.
    history: History = field(default_factory=History, repr=False, compare=False)

    @property
    def is_recovered(self) -> bool:
        """Whether a later command ends what it had begun."""
        return self._takeovers > 0

    @property
    def was_recovered_before(self) -> bool:
        """Whether a recovery of it was killed."""
        return self._takeovers > 1

    @property
    def _takeovers(self) -> int:
        match = names.RUN_DIRECTORY.fullmatch(self.directory)
        return int(match["taken"] or 0) if match else 0

    @property
    def record_mode(self) -> int:
        return self.rights.file_mode or OWNER_ONLY

    @property
    def files(self) -> Files:
        return self.cluster.files

    def users_at(self, path: str) -> Collection[str]:
        """The users of this run and of others. What belongs to one of them may be a copy that could not be given away."""
        return {self.files.user_at(path), *self.cluster.trusted_owners}

    @property
    def directory(self) -> str:
        return names.base(self.paths.top)

    def find_path(self, file_id: int, former: str) -> Optional[str]:
        """Where a file or directory of the table is now, which was at `former`; see Whereabouts.find."""
        return self.whereabouts.find(self.files, self.cluster.clock, self.table.location, file_id, former)

    @contextmanager
    def at_place(self) -> Iterator[None]:
        """While it lasts, what is below the directory around the control directory is found in the one that it was when the lock was taken:
        whoever may rename that could have another table's directory of the same name taken out of it, or files put into that.

        Not the directories between: Hive moves one that has become empty to the trash, and with its id what is put into it goes there.
        """
        top = names.parent(self.control.top)
        with self.files.anchored({top: self.files.id_around(self.control.top)}):
            yield

    def most_listed(self, units: Iterable[PlannedUnit]) -> int:
        """How many entries of these units' directories are listed at once: so many may be only a part.

        Twice what the plan has of them is as little as what it has: it may be that of a run for which `max_files` was higher. Of
        files with long paths fewer are listed.
        """
        planned = list(units)
        in_plan = sum(len(unit.manifest) + len(unit.expected) for unit in planned)
        return min(ALL, max(most_files(self.cluster.most_listed, (unit.live for unit in planned)), 2 * in_plan))

    def most_expected(self, units: Iterable[PlannedUnit]) -> int:
        """How many entries of these units' directories may be listed without being counted: twice what the plan has of them, and some."""
        planned: Dict[str, int] = {}
        for unit in units:
            planned[unit.live] = planned.get(unit.live, 0) + len(unit.manifest) + len(unit.expected)
        return sum(MOST_LATE + 2 * max(number, self.listed.planned.get(live, 0)) for live, number in planned.items())

    def most_looked_at(self, units: Collection[PlannedUnit]) -> int:
        """The same for a look that costs something for each unit: once enough was listed, only what may be listed without being counted."""
        most = self.most_listed(units)
        return min(most, self.most_expected(units)) if self.has_listed_enough else most

    def look(self, units: Sequence[PlannedUnit], directories: Sequence[str]) -> Mapping[str, Snapshot]:
        """Files.look at directories of these units, up to most_listed; counts what is listed beyond the plan."""
        seen = self.files.look(directories, self.most_listed(units))
        self.count_listed(units, sum(len(one.entries) for one in seen.values()))
        return seen

    def look_at_live(self, units: Iterable[PlannedUnit]) -> BoundedLook:
        """Files.look for live of these units; counts what is listed beyond the plan."""
        known = {unit.live: unit for unit in units}

        def look(lives: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
            seen = self.files.look(lives, most)
            self.count_listed([known[live] for live in lives], sum(len(one.entries) for one in seen.values()))
            return seen

        return look

    def count_listed(self, units: Sequence[PlannedUnit], entries: int) -> None:
        self.listed.beyond += max(0, entries - self.most_expected(units))

    @property
    def has_listed_enough(self) -> bool:
        """Whether so much was listed beyond the plan that no other unit is begun: somebody may rename one directory of a million files from
        unit to unit, always to the one that is looked at next. What was begun is settled however much must be listed for that.
        """
        return self.listed.beyond > max(MOST_BEYOND, 4 * self.cluster.most_listed)

    def backup_path(self, unit: PlannedUnit) -> str:
        """Where the backup is that a rollback restores or a cleanup discards."""
        assert unit.backup is not None
        return names.join(self.control.top, unit.backup.place)


def find_unfinished(cluster: Cluster, control: ControlPaths) -> List[str]:
    """The directories of runs without a last log entry, oldest first."""
    finished = store.read_history(cluster, control).finished
    return [directory for directory in store.find_runs(cluster.files, control) if store.run_of(directory) not in finished]


def fence(cluster: Cluster, control: ControlPaths, unfinished: Sequence[str]) -> List[str]:
    """Rename every unfinished run directory, also those taken over before, so that a stalled run can no longer act on it.

    The log is read again afterwards: an entry committed before the rename counts. Returns the
    directories that are still unfinished, oldest first.
    """
    files = cluster.files
    moved = []
    for directory in unfinished:
        taken = recover.next_taken_name(store.run_of(directory), store.find_runs(files, control))
        files.rename_exact(names.join(control.runs, directory), names.join(control.runs, taken))
        moved.append(taken)
    finished: Container[RunId] = store.read_history(cluster, control).finished if moved else ()
    return [directory for directory in moved if store.run_of(directory) not in finished]


def open_run(
    cluster: Cluster,
    table: Table,
    control: ControlPaths,
    lock: Lock,
    name: RunId,
    operation: str,
    settings: Settings,
    group_reads: Callable[[str], bool] = lambda _group: True,
    joins: bool = False,
    units: Iterable[Unit] = (),
    is_gone: bool = False,
) -> Run:
    """Make a run's directories, so that every later step is a rename into a parent that exists. Raises Fenced, Locked for an id that the
    table knows already, and Refused for a table that no log entry can name.

    A run that lost its lock may have re-created them after the takeover, which fencing cannot see, so the lock is checked afterwards. A
    later takeover finds the directories and renames them.
    `group_reads`: whether a group may read everything that the run's records will describe. `joins`: whether it joins files. `units`:
    those whose files will be in it, or in its records. `is_gone`: the table is not there any more, so all stays as open as it was at last:
    what lies at its place by now may be anybody's, and older backups may have been open once.
    """
    require_name(table)
    seen = cluster.files.look([control.top, control.log, control.runs])
    history = store.read_listed(cluster, seen[control.log], control.log)
    run = Run(
        cluster,
        table,
        control,
        control.run(name),
        lock,
        leftover_ms=settings.leftover_age_ms,
        checkpoint_interval=settings.checkpoint_interval,
        log_retention_ms=settings.log_retention_ms,
        history=history,
    )
    _require_new(run, history)
    is_log_of, log_group = _is_log_of(table, history), ownership.find_log_group(seen[control.top], control.log)

    def reads_records(group: str) -> bool:
        return is_log_of and (not seen[control.log].exists or log_group == group) and group_reads(group)

    cluster.files.make_directory(control.log)
    cluster.files.make_directory(run.paths.top)
    unneeded = (*recover.MADE_LATER, *(() if joins else recover.OF_JOINS.get(operation, ())))
    states = [state for state in recover.STATES[operation] if state not in unneeded]
    for state in states:
        cluster.files.make_directory(run.paths.state(state))
    with told_if_taken(run):
        require_lock(run)
        if is_gone:
            return run
        if _close_others(run, history, seen[control.runs].entries, was_open=bool(seen[control.top].mode & 0o077)):
            run = _open_up(run, states, find_above(table, units), reads_records, settings)
        else:
            ownership.open_up(run.files, run.rights, control, [control.top, control.runs])
    require_lock(run)
    return run


def _require_new(run: Run, history: History) -> None:
    """Raise Locked if the log, or a directory, is of a run with this id: an entry of it would be taken for this run's own last one, so that
    this one would get none, and nobody would recover it.
    """
    name = store.run_of(run.directory)
    if history.find(name) or run.files.stat(run.paths.top):
        raise Locked(
            f"{run.table.full_name}: it has had a run {name} already: of this command, before the table was renamed, or of another one "
            "with the same id",
            code=Code.RUN_ID_TAKEN,
            state="nothing new was begun",
            next="run again",
        )


def _is_log_of(table: Table, history: History) -> bool:
    """Whether the log has entries of this table alone: one that was created at the place of another takes over its control directory."""
    return {entry.table_id for entry in history.runs} <= {table_id(table)}


def _close_others(run: Run, history: History, present: Sequence[FileInfo], was_open: bool) -> bool:
    """Close the `present` directories of runs of which the log does not say that they are this table's; whether they are closed.

    Those of another table that was here before, or that somebody has renamed to this place, have the rights of that one from when they were
    made, and perhaps only the control directory above, which gets this table's now, has kept its readers out since. By their ids, as all in
    there: nobody else can put anything between them before that is opened.

    Where the control directory `was_open`, runs of this table have closed those of another owner before. It also stays closed where one of
    them could not be closed: then the oldest is still that one's.
    """
    others = {logged.run for logged in history.runs if not _may_be(run.table, logged)}
    for known in {logged.table_id for logged in history.runs if _may_be(run.table, logged)}:
        of_one = [logged for logged in history.runs if logged.table_id == known]
        telling = reversed(of_one) if was_open else of_one
        if not store.may_be_owned_alike(run.cluster, run.table, telling, {entry.name for entry in present}):
            others.update(logged.run for logged in of_one)
    own = {logged.run for logged in history.runs} - others
    open_ones = [entry for entry in present if entry.is_dir and entry.mode & 0o077 and names.run_of(entry.name) not in own]
    try:
        if open_ones:
            run.files.guard({entry.path: Guard(0o700, file_id=entry.file_id) for entry in open_ones})
        return True
    except NoPermission as error:
        log.warning("step=open-control-directory reason=%r", f"it has backups of another table, and stays closed: {error}")
        return False


def _may_be(table: Table, logged: LoggedRun) -> bool:
    """Whether the table of an entry can be this one, perhaps before it was renamed: created in the same second, with the same partition
    columns. So may another one be that a script created in that second.
    """
    created = logged.table_id.rpartition("@")[2]
    is_former = created == str(table.create_time) != "0" and logged.is_partitioned_as(table)
    return is_former or logged.table_id == table_id(table)


def _open_up(run: Run, states: Iterable[str], above: Sequence[str], group_reads: Callable[[str], bool], settings: Settings) -> Run:
    """Give the directories on the way to backups the table's rights, unless a unit lies below a directory that has narrower ones: that one
    is not on the way any more, and the run's own stays closed in its place.
    """
    files, control = run.files, run.control
    rights, passed = ownership.find_rights(files, run.table, above, group_reads, settings.trusted_owners)
    shown = [run.paths.state(state) for state in states if state in recover.SHOWN_STATES]
    own = [] if passed is None else [run.paths.top, *shown]
    given = ownership.open_up(files, rights, control, [control.top, control.runs, *own])
    return run if passed is None else replace(run, rights=given, above=passed)


def end_gap(run: Run, unit: PlannedUnit) -> None:
    """Note, in the run's directory, too, if a unit's files were away for so long that this is an outage: a recovery may find it live again.

    Only once they are live, or nothing more is tried: in an encryption zone this waits for the KMS, which no rename does.
    """
    is_long = was_away(run, unit)
    if run.away_since_ms.pop(unit.number, None) is not None and is_long:
        run.were_away.add(unit.number)
        with suppress(FilesError):
            run.files.write_new(run.paths.away(unit.number), "")


def note_taken_out(run: Run, number: UnitNumber) -> None:
    """Keep, also for a recovery, that somebody took the new files of a unit out of where they waited: once the run went on, its times tell
    nothing.
    """
    run.taken_out.add(number)
    with suppress(FilesError):
        run.files.write_new(run.paths.taken_out(number), "")


def was_away(run: Run, unit: PlannedUnit) -> bool:
    """Whether a unit's files are away, or were, for so long that this is an outage. Makes no call."""
    since_ms = run.away_since_ms.get(unit.number)
    is_long = since_ms is not None and run.cluster.clock.monotonic_ms() - since_ms > LONG_GAP_MS
    return is_long or unit.number in run.were_away


def return_backup(run: Run, unit: PlannedUnit, aside: str) -> None:
    """Rename a backup that lies in the run's own directory back to its place.

    A cleanup that was stalled while it tidied up, and lost its lock, may have found the place empty and removed the directories above it;
    so may somebody by hand.
    """
    place = run.backup_path(unit)
    if run.files.stat(names.parent(place)) is None:
        run.files.make_directory(names.parent(place))
    run.files.rename_exact(aside, place)


def require_lock(run: Run) -> None:
    """Raise Fenced if the table's lock is lost. If the lock cannot be checked, the run's own directory shows whether it was taken."""
    try:
        held = run.lock.check()
    except FilesError:
        require_own_directory(run)
        raise
    if not held:
        raise fenced(run)


@contextmanager
def told_if_taken(run: Run) -> Iterator[None]:
    """Raise Fenced if a call fails because another run has taken the directory, even if this one has re-created it since.

    For everything a run does before its log entry.
    """
    try:
        yield
    except FilesError as error:
        if is_gone(run, run.paths.top) or is_gone(run, run.control.top) or _is_lost(run.lock):
            raise fenced(run) from error
        raise


def _is_lost(lock: Lock) -> bool:
    try:
        return not lock.check()
    except FilesError:
        return False


def is_gone(run: Run, path: str) -> bool:
    """Whether there is nothing at this path, as far as can be asked now."""
    try:
        return run.files.stat(path) is None
    except FilesError:
        return False


def require_name(table: Table) -> None:
    """Raise Refused for a table that no log entry can name, as Hive 4 allows: with one, the whole log could not be read again."""
    if names.TABLE_ID.fullmatch(table_id(table)) is None:
        raise Refused(
            f"{table.full_name}: no record can hold this name",
            code=Code.NOT_RECORDABLE,
            state="nothing was begun",
            next="give the table a name without dots and control characters",
        )


def write_plan(run: Run, plan: RunPlan) -> None:
    """Write the plan durably, before anything is changed. Raises Refused for a plan that recovery would not accept as ours."""
    created_ms = run.cluster.clock.now_ms()
    why = store.why_not_readable(run.paths, plan, created_ms)
    if why:
        run.files.delete_tree(run.paths.top)
        raise Refused(
            f"{run.table.full_name}: the records of this run could not be read again: {why}",
            code=Code.NOT_RECORDABLE,
            next="select fewer units at a time, with --max-units or --where; if one unit is too large alone, leave it out",
        )
    store.write_durably(run.files, run.paths.plan, plan_pieces(plan, created_ms), run.record_mode)


def recent_time(run: Run) -> int:
    """The NameNode's time not long ago. What is older than that is older than now, so an early time only makes a comparison stricter,
    unless the clock goes back: so it serves for few checks, about a second.
    """
    if run.time.read_ms is None or run.time.uses >= MOST_USES_OF_A_TIME:
        return read_clock(run)
    run.time.uses += 1
    return run.time.read_ms


def read_clock(run: Run) -> int:
    """The NameNode's own current time. The times of its directories are compared with no other clock."""
    try:
        told_ms = ask_time(run.files, run.paths.clock)
    except SourceMissing as gone:
        raise fenced(run) from gone
    if told_ms is None:
        raise fenced(run)
    run.time.read_ms, run.time.uses = told_ms, 1
    return told_ms


def require_own_directory(run: Run) -> None:
    """Raise Fenced if the run's directory was taken over, or moved away with the control directory: a missing file then proves nothing."""
    if run.files.stat(run.paths.top) is None or run.files.stat(run.control.top) is None:
        raise fenced(run)


def fenced(run: Run) -> HivekeeperError:
    """The error of a run whose directory is gone: another run took it over, or the whole table is gone."""
    if is_gone(run, run.control.top) or is_gone(run, run.control.log):
        return NeedsInvestigation(
            f"{run.table.full_name}: {run.control.top} is gone: the table was dropped, or renamed with its directory",
            code=Code.CONTROL_GONE,
            state="where it was renamed, readers may miss a partition until the run is recovered; its rows went along",
            next="if it was renamed, at once: hivekeeper recover --table NEW_NAME",
        )
    return Fenced(
        f"{run.table.full_name}: another run took over {run.paths.top}",
        code=Code.RUN_TAKEN_OVER,
        state="that run finishes or undoes what this one began",
        next="look at the other run's result",
    )
