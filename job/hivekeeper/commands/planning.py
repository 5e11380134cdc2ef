"""Chooses the units of one run: in the order of their rank, as many as fit, reading footers as it goes. Changes nothing."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from typing import Collection, Deque, Iterable, List, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.commands import candidates, per_table
from hivekeeper.commands.candidates import LeaveOut, Reader
from hivekeeper.config.settings import AT_ONCE, Settings
from hivekeeper.errors import Unusable
from hivekeeper.model import Table
from hivekeeper.names import RunId
from hivekeeper.plan import analysis, capacity, compaction, inside, own_place, retention
from hivekeeper.plan.analysis import ObservedTable, UnitAnalysis
from hivekeeper.plan.capacity import Limit, RoomForValues
from hivekeeper.plan.compaction import Candidate, CompactionPlan, Left, Rewrite
from hivekeeper.plan.engine import Engine
from hivekeeper.ports import Cluster, Files
from hivekeeper.runlog.history import History
from hivekeeper.steps.observe import find_tied

log = logging.getLogger(__name__)


class Choice:
    """The units of one run, while they are chosen: a unit counts once its footers have shown that it is fit.

    `waiting`: the units that are not chosen yet, in order. `taken`: those that are fit, with each set of files of one that is joined.
    """

    def __init__(self, waiting: Sequence[UnitAnalysis], most: int, limits: Sequence[Limit], rewrite: Rewrite) -> None:
        """`most`: of units."""
        self.waiting: Deque[UnitAnalysis] = deque(waiting)
        self.found: List[Candidate] = []
        self.taken: List[UnitAnalysis] = []
        self._most, self._budget, self._rewrite = most, capacity.Budget(limits), rewrite
        self._portions: Deque[List[UnitAnalysis]] = deque()
        self._shared = compaction.Shared()
        self._units: Set[str] = set()

    @property
    def has_enough(self) -> bool:
        return len(self._units) >= self._most

    @property
    def is_full(self) -> bool:
        """Whether the rights, forms and columns of its units are as long as a plan holds."""
        return self._shared.is_full

    @property
    def beyond(self) -> List[UnitAnalysis]:
        """Units that do not fit, then those that were not reached."""
        return [*self._budget.beyond, *self.waiting]

    def next_portion(self) -> List[UnitAnalysis]:
        """The units whose footers are to be read next, no more than are read at once; none at the end."""
        if not self._portions and not self.has_enough and not self.is_full:
            self._portions.extend(analysis.portions(self._budget.choose(self.waiting, self._most - len(self._units))))
        if self.is_full:
            self.waiting.extendleft(reversed([unit for some in self._portions for unit in some]))
            self._portions.clear()
        return self._portions.popleft() if self._portions else []

    def take(self, read: Iterable[Candidate], back: Sequence[UnitAnalysis]) -> None:
        """What was read of a portion; `back`: what of it waits again."""
        judged = [(candidate, compaction.is_fit(candidate, self._rewrite)) for candidate in read]
        fit = [candidate.analysis for candidate, is_fit in judged if is_fit]
        self.waiting.extendleft(reversed(back))
        self._budget.take(fit)
        self._units.update(unit.name for unit in fit)
        self.taken += fit
        # What needs nothing, night after night, takes no room from those that are fit.
        self.found += [self._shared.of(one) if is_fit else compaction.set_aside(one, self._rewrite) for one, is_fit in judged]


def make_plan(
    cluster: Cluster,
    observed: ObservedTable,
    history: History,
    settings: Settings,
    run: RunId,
    room_for_values: RoomForValues,
    most_row_groups: int = 0,
) -> CompactionPlan:
    """Read the footers of the units worth compacting and decide. Reads only. Raises Unusable if none of them can be written.

    With max_units, footers are read until that many units are fit, so that an unfit unit of high rank does not use up a place in every run.
    """
    table, engine = observed.table, Engine(cluster.spark_version, cluster.time_zone)
    rewrite, joined = Rewrite.of(table, settings, engine), _find_joined(observed, history)
    waiting = candidates.list_waiting(observed, settings, joined)
    room_for_values.begin_table()
    reader = Reader(cluster, observed, rewrite, settings, run, joined, room_for_values, most_row_groups)
    limits, wish = _find_limits(cluster, observed, waiting, history, settings), capacity.limit_by_wish(settings)
    choice = Choice(waiting, settings.max_units or len(waiting), [*limits, *wish], rewrite)
    while True:
        some = choice.next_portion()
        if not some:
            break
        per_table.require_time(cluster, table)
        choice.take(*reader.read(some))
    if choice.beyond and wish and not choice.taken:
        log.warning("table=%s step=plan reason='no unit that is fit is as small as max_bytes'", table.log_field)
    left = () if choice.has_enough else capacity.explain_left(choice.beyond, limits, choice.taken)
    _require_room(table, left, choice.taken)
    if choice.is_full and not choice.has_enough:
        left = _with_full(left, choice)
    plan = compaction.plan_compaction(run, observed.control.run(run), table, choice.found, settings, rewrite)
    return replace(plan, left=(*plan.left, *left))


def _with_full(left: Tuple[Left, ...], choice: Choice) -> Tuple[Left, ...]:
    explained = {one.unit.name for one in left}
    return (*left, *(Left(one.unit, compaction.MORE_TO_HOLD) for one in choice.waiting if one.name not in explained))


def _find_joined(observed: ObservedTable, history: History) -> LeaveOut:
    """By unit, the files that have old ones inside: joined again, these could not come back."""
    known = inside.find_inside(history)
    found = {unit.name: inside.names_of(unit.files, known) for unit in observed.units} if known else {}
    return {name: files for name, files in found.items() if files}


def _find_limits(
    cluster: Cluster, observed: ObservedTable, chosen: Collection[UnitAnalysis], history: History, settings: Settings
) -> List[Limit]:
    """The limits on the units of one run. Makes no call if there are no units."""
    if not chosen:
        return []
    debt = capacity.limit_by_debt(observed.table.full_name, retention.list_backups(history), settings)
    quotas_at = _find_quota_directories(cluster.files, observed.table, settings)
    return debt + capacity.limit_by_room(observed, chosen, cluster.files.room(names.parent(observed.control.top), quotas_at))


def _find_quota_directories(files: Files, table: Table, settings: Settings) -> List[str]:
    """The directories whose quota is checked. Higher ones only if configured: without a quota HDFS has to count everything below."""
    above = [files.qualify(place) for place in settings.quota_directories]
    database = names.parent(table.location)
    own = [table.location, database] if table.partitioned else [database]
    return list(dict.fromkeys([*own, *(place for place in above if own_place.is_below(database, place))]))


def is_tied_as_a_whole(cluster: Cluster, observed: ObservedTable, settings: Settings, run: RunId) -> bool:
    """Whether no unit worth compacting can be exchanged, so that not even a lock is to be written. Mostly one unit answers that."""
    chosen = analysis.choose(observed.units)
    if settings.exchange == AT_ONCE:
        return all(len(find_tied(cluster, observed.control, [one.unit for one in some])) == len(some) for some in (chosen[:1], chosen))
    rewrite = Rewrite.of(observed.table, settings, Engine(cluster.spark_version, cluster.time_zone))
    reader = Reader(cluster, observed, rewrite, settings, run, {}, RoomForValues())
    return all(choice.exchange is None for some in (chosen[:1], chosen) for choice in reader.choose(some).values())


def refuse_without_room(cluster: Cluster, observed: ObservedTable, settings: Settings) -> None:
    """Raise Unusable if none of the units can be written, before any footer is read."""
    waiting = candidates.list_waiting(observed, settings, {})
    limits = _find_limits(cluster, observed, waiting, History(), settings)
    if not capacity.Budget(limits).choose(deque(waiting), 1):
        _require_room(observed.table, capacity.explain_left(waiting, limits, ()), ())


def _require_room(table: Table, left: Sequence[Left], taken: Sequence[UnitAnalysis]) -> None:
    reason = capacity.refuse_whole(left, len(taken))
    if reason is not None:
        raise Unusable(f"{table.full_name}: {reason.what}", code=reason.code, state="untouched", next=reason.next)
