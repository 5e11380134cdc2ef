"""Whether interrupted runs have left units away, so that readers miss them; also of a partitioned table whose location was set elsewhere
since: its partitions stay where they are, and so do the records of its runs.

Reads only. What lies there may be anybody's: records that others may have written are not believed.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Collection, Dict, FrozenSet, Iterable, Iterator, Optional, Sequence, Set, Tuple

from hivekeeper import names, quoting
from hivekeeper.errors import HivekeeperError, NeedsInvestigation, Refused
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths, RunPaths, UnitNumber
from hivekeeper.ports import Cluster, NoPermission, SourceMissing
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.run_files import RunPlan
from hivekeeper.steps import identity, ownership, rows_away, run_directory
from hivekeeper.steps.fitness import MOST_AGE_MS
from hivekeeper.steps.observe import ask_where_allowed, find_existing

log = logging.getLogger(__name__)

# Entries of the directories of all runs, of which each has a few.
MOST_IN_RUNS = 100_000


@dataclass
class _Known:
    """What a command knows of the records at former places of tables, and until when that may be used: some seconds, and as long as it took
    to read those of all places. Whoever has many tables may point partitions of each at the places of all others, whose logs may be long:
    were each place known for its own time alone, most would be read again for each of these tables.

    `created`: by control directory, and by whose records are believed, when the tables were created of which interrupted runs have units
    away. Those of another second are none of the table that is asked for.
    """

    until_ms: float = -math.inf
    created: Dict[Tuple[str, FrozenSet[str]], FrozenSet[int]] = field(default_factory=dict)


def has_taken_away(cluster: Cluster, control: ControlPaths, directories: Sequence[str]) -> bool:
    """Whether these runs, which are unfinished, have rows out of live that readers may miss: of units, or of what came to their places."""
    runs = [control.run(directory) for directory in directories]
    if rows_away.may_miss_rows(cluster.files, [(paths, None) for paths in runs]):
        return True
    return any(find_existing(cluster.files, _find_returning(cluster, paths)) for paths in runs)


def may_have_taken_away(cluster: Cluster, control: ControlPaths) -> bool:
    """The same of all runs of a table whose log this user may not read, as one who takes the place of another: a directory for what is to
    come to live goes when a run ends.
    """
    try:
        runs = {control.run(directory).top: directory for directory in store.find_runs(cluster.files, control)}
        seen = cluster.files.look(list(runs), MOST_IN_RUNS)
        is_open = {top: any(entry.name in ("ready", "restoring") for entry in seen[top].entries) for top in runs}
        return has_taken_away(cluster, control, [directory for top, directory in runs.items() if is_open[top]])
    except (Refused, NoPermission):
        return False


def _find_returning(cluster: Cluster, paths: RunPaths) -> Sequence[str]:
    """Where the copies wait that are to go back to live after a joined file left it, whose rows they have. They are gone once all are back,
    and so is what a join without rows would have brought.
    """
    taken = paths.state("taken")
    found = [names.TAKEN.fullmatch(entry.name) for entry in cluster.files.look([taken])[taken].entries]
    return [paths.unit("ready", UnitNumber(int(one["number"]))) for one in found if one and one["part"] == "file"]


def refuse_at_former_places(cluster: Cluster, table: Table, places: Iterable[str], trusted: Collection[str]) -> None:
    """Raise NeedsInvestigation if the records in one of these directories (`own_place.find_former_places`) say that a run of this table
    was interrupted while a unit was away. Makes no call if there are none.
    """
    tops = [ControlPaths.of(place, partitioned=True).top for place in places]
    found, _ = ask_where_allowed(lambda some: cluster.files.look(some, 0), tops)
    for control in (ControlPaths(top) for top in tops if top in found and found[top].exists):
        run = _find_interrupted(cluster, table, control, trusted)
        if run is not None:
            raise NeedsInvestigation(
                f"{table.full_name}: run {run} is at work, or was interrupted, and the table's location was set elsewhere since: its "
                f"records are in {control.top}",
                code=Code.UNSETTLED,
                state="nothing was changed there; no row is lost, but readers may miss a partition until that run is settled",
                next=f"{_how_to_set_back(table, control.home)}, then run: hivekeeper recover --table {quoting.shell(table.full_name)}; "
                "then the location may be set again",
            )


def _how_to_set_back(table: Table, place: str) -> str:
    if not all(map(quoting.is_plain, (table.database, table.name, place))):
        return f"set the table's location back to {place} (no statement is shown: clients differ in how they read such a name or place)"
    return f"ALTER TABLE {quoting.identifier(table.database)}.{quoting.identifier(table.name)} SET LOCATION {quoting.literal(place)}"


def _find_interrupted(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> Optional[str]:
    """The id of a run of this table, with a unit away, that the log does not know; all of them if it cannot be read."""
    clock, known, which = cluster.clock, cluster.memory.of(_Known), (control.top, frozenset(trusted))
    began_ms = clock.monotonic_ms()
    if began_ms > known.until_ms:
        known.until_ms, known.created = began_ms + MOST_AGE_MS, {}
    if which in known.created and table.create_time not in known.created[which]:
        return None
    created: Set[int] = set()
    found: Optional[str] = None
    for plan in _read_plans_away(cluster, table, control, trusted):
        created.add(plan.table.create_time)
        with suppress(HivekeeperError, NoPermission, SourceMissing):
            found = found or (plan.run if identity.is_about(cluster, table, plan.table) else None)
    known.created[which] = frozenset(created)
    known.until_ms += 2 * (clock.monotonic_ms() - began_ms)
    return found


def _read_plans_away(cluster: Cluster, table: Table, control: ControlPaths, trusted: Collection[str]) -> Iterator[RunPlan]:
    """The plans of the interrupted runs of a control directory that have units away. What cannot be read says nothing."""
    # It may be another table's, whose log is not kept.
    cluster = replace(cluster, log_entries={})
    try:
        ownership.require_own_records(cluster, table, control, trusted)
        directories = store.find_runs(cluster.files, control)
    except (NeedsInvestigation, NoPermission, SourceMissing) as error:
        log.info("table=%s step=find-records failed reason=%r", table.log_field, str(error))
        return
    with suppress(HivekeeperError, NoPermission):
        directories = run_directory.find_unfinished(cluster, control)
    for directory in directories:
        plan = None
        with suppress(HivekeeperError, NoPermission, SourceMissing):
            plan = _read_plan(cluster, table, control, directory) if has_taken_away(cluster, control, [directory]) else None
        if plan:
            yield plan


def _read_plan(cluster: Cluster, table: Table, control: ControlPaths, directory: str) -> Optional[RunPlan]:
    return store.read_plan(cluster, replace(table, location=control.home), control.run(directory))
