"""Which interrupted runs may have rows away that readers miss.

Reads only.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Iterable, Iterator, Tuple

from hivekeeper import names
from hivekeeper.errors import HivekeeperError
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths, RunPaths
from hivekeeper.ports import Cluster, Files, NoPermission
from hivekeeper.runlog import store
from hivekeeper.runlog.run_files import RunPlan


def may_miss_rows(files: Files, unfinished: Iterable[RunPaths], plans: Iterable[RunPlan]) -> bool:
    """Whether these runs had begun to exchange files. A join takes nothing out of live but to put back what it has taken, from `ready`."""
    joins = any(unit.join for plan in plans for unit in plan.units)
    states = ("retired", "recreated", *(("ready", "taken") if joins else ()))
    aside = [paths.state(state) for paths in unfinished for state in states]
    return any(seen.entries for seen in files.look(aside, 1 + len(aside)).values())


def read_plans(cluster: Cluster, control: ControlPaths, unfinished: Iterable[str]) -> Iterator[Tuple[RunPaths, RunPlan]]:
    """Of these directories of runs, the plans of those that may have rows away. What cannot be read says nothing."""
    at_home = replace(Table.without_definition("(no table)", names.base(control.home), ""), location=control.home)
    for paths in map(control.run, unfinished):
        with suppress(HivekeeperError, NoPermission):
            plan = store.read_plan(cluster, at_home, paths)
            if plan is not None and may_miss_rows(cluster.files, [paths], [plan]):
                yield paths, plan
