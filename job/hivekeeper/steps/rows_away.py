"""Which interrupted runs may have rows away that readers miss.

Reads only.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Iterable, Iterator, Tuple

from hivekeeper import names
from hivekeeper.errors import HivekeeperError
from hivekeeper.model import Snapshot, Table
from hivekeeper.names import ControlPaths, RunPaths
from hivekeeper.ports import Cluster, Files, NoPermission
from hivekeeper.runlog import store
from hivekeeper.runlog.run_files import RunPlan


def may_miss_rows(files: Files, unfinished: Iterable[RunPaths], plans: Iterable[RunPlan]) -> bool:
    """Whether these runs had begun to exchange files. A join takes nothing out of live but to put back what it has taken, from `ready`."""
    joins, runs = any(unit.join for plan in plans for unit in plan.units), tuple(unfinished)
    states = ("retired", "recreated", *(("ready", "taken") if joins else ()))
    aside = [paths.state(state) for paths in runs for state in states]
    return any(seen.entries for seen in files.look(aside, 1 + len(aside)).values()) or _has_only_copies(files, runs)


def _has_only_copies(files: Files, runs: Iterable[RunPaths]) -> bool:
    """Whether something has left live that is not where old files go, and what was to come in for it waits still: perhaps all that is left.

    Most runs that were killed had taken nothing out of live: these cost no listing.
    """
    pairs = [(paths.state("retired"), paths.state(coming)) for paths in runs for coming in ("ready", "restoring")]
    seen = files.look([place for pair in pairs for place in pair], 0)
    waiting = [coming for left, coming in pairs if seen[coming].exists and has_left_last(seen[left], seen[coming])]
    return bool(waiting) and any(one.entries for one in files.look(waiting, 1 + len(waiting)).values())


def has_left_last(left: Snapshot, coming: Snapshot) -> bool:
    """Whether a run's directory for old files was changed after the one out of which new ones come, or is gone: old files have left then,
    or have come back or were removed since.

    Each exchange changes the one for old files before the other.
    """
    return not left.exists or left.mtime_ms > coming.mtime_ms


def read_plans(cluster: Cluster, control: ControlPaths, unfinished: Iterable[str]) -> Iterator[Tuple[RunPaths, RunPlan]]:
    """Of these directories of runs, the plans of those that may have rows away. What cannot be read says nothing."""
    at_home = replace(Table.without_definition("(no table)", names.base(control.home), ""), location=control.home)
    for paths in map(control.run, unfinished):
        with suppress(HivekeeperError, NoPermission):
            plan = store.read_plan(cluster, at_home, paths)
            if plan is not None and may_miss_rows(cluster.files, [paths], [plan]):
                yield paths, plan
