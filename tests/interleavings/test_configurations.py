"""What an exploration is about can happen in it: a command that finds nothing to do keeps every promise."""

from __future__ import annotations

from typing import FrozenSet, NamedTuple

import pytest

from hivekeeper.runlog.outcomes import Outcome
from interleavings.configurations import CLEANUP, COMPACT_JOINED, CONFIGURATIONS, RECOVER, begin
from interleavings.promises import list_checkpoints, read_entries
from interleavings.runners import run_id
from interleavings.world import add_file
from interleavings.writers import LIVE
from support.fakes.rows import DataFile


class Did(NamedTuple):
    outcomes: FrozenSet[Outcome]
    joins: bool
    writes_checkpoint: bool


def what_is_to_be_done(configuration, job):
    kind, _, variant = job.partition(", ")
    outcome = {"compact": Outcome.SWAPPED, "rollback": Outcome.ROLLED_BACK, "cleanup": Outcome.DISCARDED}[kind]
    if configuration.full:
        outcome = Outcome.PUT_BACK
    if job == CLEANUP and any(writer == "append_to_old" for writer, *_ in configuration.writers):
        outcome = Outcome.KEPT
    return Did(frozenset([outcome]), job == COMPACT_JOINED, variant == "short memory")


def what_it_did(world, number):
    runs = [run for run in read_entries(world).values() if run.run == run_id(number)]
    return Did(
        frozenset(unit.outcome for run in runs for unit in run.units),
        any(effect.inside and not effect.undoes for run in runs for effect in run.effects),
        any(run.version in list_checkpoints(world) for run in runs),
    )


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_each_command_can_do_what_it_is_there_for(name):
    """At once, after the commands before it, or with a file that a writer adds. A recovery has something to do only after a kill."""
    configuration = CONFIGURATIONS[name]
    explorer, first = begin(configuration)
    at_once = in_turn = explorer.world_of(first)
    world = explorer.freezer.thaw(at_once)
    if configuration.writers:
        add_file(world, f"{LIVE}/added.parquet", DataFile(("added",)))
    added = explorer.freezer.freeze(world)
    for number, job in enumerate(configuration.jobs, start=1):
        ends = [explorer.run_alone(begins, job, number) for begins in (in_turn, at_once, added)]
        in_turn = ends[0]
        if job != RECOVER:
            did = [what_it_did(explorer.freezer.thaw(end), number) for end in ends]
            assert what_is_to_be_done(configuration, job) in did, job
