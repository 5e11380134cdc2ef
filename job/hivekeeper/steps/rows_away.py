"""Which interrupted runs may have rows away that readers miss.

Reads only.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Iterable, Iterator, Optional, Tuple

from hivekeeper import names
from hivekeeper.errors import HivekeeperError
from hivekeeper.model import Snapshot, Table
from hivekeeper.names import ControlPaths, RunPaths
from hivekeeper.ports import Cluster, Files, NoPermission
from hivekeeper.runlog import store
from hivekeeper.runlog.run_files import RunPlan
from hivekeeper.steps.checks import find_other_directory


def may_miss_rows(files: Files, unfinished: Iterable[Tuple[RunPaths, Optional[RunPlan]]]) -> bool:
    """Whether these runs, whose plans may not be known, had begun to exchange files. A join takes nothing out of live but to put back what
    it has taken, from `ready`.
    """
    runs = tuple(unfinished)
    joins = any(unit.join for _, plan in runs if plan for unit in plan.units)
    states = ("retired", "recreated", *(("ready", "taken") if joins else ()))
    aside = [paths.state(state) for paths, _ in runs for state in states]
    if any(seen.entries for seen in files.look(aside, 1 + len(aside)).values()):
        return True
    return any(_has_only_copies(files, paths, plan) for paths, plan in runs)


def _has_only_copies(files: Files, paths: RunPaths, plan: Optional[RunPlan]) -> bool:
    """Whether something has left live that is not where old files go, and what was to come in for it waits still: perhaps all that is left.
    Not where live is the directory that was planned for: it has come back.

    Most runs that were killed had taken nothing out of live: these cost no listing.
    """
    left, *coming = (paths.state(state) for state in ("retired", "ready", "restoring"))
    seen = files.look([left, *coming], 0)
    waiting = [place for place in coming if seen[place].exists and has_left_last(seen[left], seen[place])]
    if not waiting:
        return False
    if plan is None:
        return any(one.entries for one in files.look(waiting, 1 + len(waiting)).values())
    waits = {entry.name for one in files.look(waiting).values() for entry in one.entries}
    units = [unit for unit in plan.units if names.unit_directory(unit.number) in waits]
    there = files.look([unit.live for unit in units], 0)
    return any(not there[unit.live].exists or find_other_directory(unit, there[unit.live].file_id) for unit in units)


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
            if plan is not None and may_miss_rows(cluster.files, [(paths, plan)]):
                yield paths, plan
