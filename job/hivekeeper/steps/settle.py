"""Bring what former runs left unfinished to its end or back to its start.

Deletes only stages and proved copies whose old files are live; what it does not understand it leaves to a person.
"""

from __future__ import annotations

import logging
from typing import Container, Iterable, List, Tuple

from hivekeeper.errors import AskAPerson
from hivekeeper.model import Snapshot, Table, Unit
from hivekeeper.names import ControlPaths
from hivekeeper.plan import recovery
from hivekeeper.plan.records import Actor, UnitRecord, UnreadableRecord
from hivekeeper.seams import Cluster, Files, Lock
from hivekeeper.steps import journal, record, swap
from hivekeeper.steps.journal import Run

log = logging.getLogger(__name__)

Settled = Tuple[str, Tuple[UnitRecord, ...]]


def settle_runs(cluster: Cluster, table: Table, control: ControlPaths, lock: Lock, actor: Actor, by: str) -> List[Settled]:
    """Fence and finish every unfinished run, oldest first, and tidy those that were killed at the very end.

    Gives (run, what became of its units) for each run that had a plan.
    """
    settled: List[Settled] = []
    for directory in journal.fence(cluster.files, control):
        paths = control.run(directory)
        plan = journal.read_plan(cluster.files, table, paths)
        if plan is None:
            # Without a plan nothing was changed: there is nothing in it but a stage.
            cluster.files.delete_tree(paths.top)
            continue
        run = Run(cluster, table, control, paths, lock)
        settled.append((plan.run, settle_run(run, plan, actor, by)))
    record.sweep_finished(cluster.files, control, journal.find_runs(cluster.files, control))
    return settled


def settle_run(run: Run, plan: journal.RecordedPlan, actor: Actor, by: str) -> Tuple[UnitRecord, ...]:
    """Finish one run that was taken over."""
    refuse_strangers(run, plan)
    try:
        certificates = journal.read_certificates(run.files, run.paths)
    except UnreadableRecord as error:
        raise AskAPerson(
            str(error), state=f"the run in {run.paths.top} is unfinished", next="look at the file; nothing was touched"
        ) from error
    units = []
    for unit in plan.units:
        done = swap.settle_unit(run, unit, certificates.get(unit.number))
        log.info("run=%s unit=%s step=recover done outcome=%r", plan.run, unit.unit.label, done.outcome)
        units.append(done)
    record.record_units(run, units)
    record.finish_run(run, units, actor, {"recovered": plan.operation}, recovered_by=by)
    return tuple(units)


def refuse_strangers(run: Run, plan: journal.RecordedPlan) -> None:
    """Raise AskAPerson where the run's directory holds what its plan does not explain."""
    numbers = {unit.number for unit in plan.units}
    places = [run.paths.top, *(run.paths.state(state) for state in ("ready", "retired", "recreated"))]
    seen = run.files.look(places)
    entries = [entry for place in places for entry in seen[place].entries]
    strangers = recovery.find_strangers(run.paths.top, entries, numbers)
    if plan.operation != "compact-swap":
        strangers = [run.paths.plan]
    if strangers:
        raise AskAPerson(
            f"{run.table.full_name}: an interrupted run holds what we do not understand: {strangers[0]}",
            state=f"nothing in {run.paths.top} was touched",
            next="find out who made it, move it away, then run: hivekeeper recover --table " + run.table.full_name,
        )


def lift_leftovers(files: Files, swapped: Container[str], units: Iterable[Tuple[Unit, Snapshot]]) -> Tuple[str, ...]:
    """A committer at work during an earlier swap may have renamed its directory into live since; gives the units concerned.

    Only in units that a run has swapped before: they had no sub-directory then.
    """
    found = [unit for unit, seen in units if unit.name in swapped and any(swap.is_committed_directory(entry) for entry in seen.entries)]
    for unit in found:
        swap.lift_nested(files, unit.live)
        log.warning("unit=%s step=lift done reason='a committer had renamed its directory into the unit'", unit.label)
    return tuple(unit.label for unit in found)
