"""A command over many tables does not hold the lists of files of all their backups until it tells all results at its end."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from hivekeeper.commands.cleanup import clean_up
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.history import show_history
from hivekeeper.commands.rollback import rollback
from hivekeeper.model import Selection
from hivekeeper.runlog.manifests import ManifestFile
from support.builders import a_table
from support.contexts import QUIET, a_context
from support.world import World

RUNS = [f"20260101t02030{number}z-0000" for number in range(4)]
TABLES, FILES = 5, 40


@pytest.fixture
def world():
    world = World()
    for number in range(TABLES):
        world.add_table(a_table(name=f"t{number}", location=f"hdfs://nn/warehouse/sales.db/t{number}"), {"": [1000] * FILES})
    return world


def run(world, command, run, run_key="", **settings):
    return command(a_context(world.cluster, Selection(databases=("sales",)), run, replace(QUIET, **settings), run_key=run_key))


def count_files(result):
    """The files of manifests that a result holds."""
    waiting, seen, found = [result], set(), 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        found += isinstance(one, ManifestFile)
        waiting += gc.get_referents(one)
    return found


def dry_cleanup(world):
    context = a_context(world.cluster, Selection(databases=("sales",)), RUNS[1], replace(QUIET, min_age_ms=0), dry_run=True)
    return clean_up(context)


COMMANDS = {
    "cleanup that keeps": lambda world: run(world, clean_up, RUNS[1]),
    "cleanup that discards": lambda world: run(world, clean_up, RUNS[1], min_age_ms=0),
    "cleanup --dry-run": dry_cleanup,
    "history": lambda world: run(world, show_history, RUNS[1]),
    "compact-swap with a cleanup": lambda world: run(world, compact_swap, RUNS[1], cleanup_after=True),
}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_result_does_not_hold_the_files_of_the_backups_of_all_tables(world, name):
    """As many as two million of each run on a table, a third of a kilobyte each."""
    run(world, compact_swap, RUNS[0])
    result = COMMANDS[name](world)
    assert len(result.tables) == TABLES
    assert sum(len(table.backups) for table in result.tables) == TABLES
    assert count_files(result) <= 2 * FILES


@pytest.mark.parametrize("command", [compact_swap, rollback])
def test_nor_does_the_answer_to_a_second_attempt_those_of_the_first(world, command):
    """--run-key: the entry that bore the key has them."""
    if command is rollback:
        run(world, compact_swap, RUNS[0])
    run(world, command, RUNS[1], "monday")
    result = run(world, command, RUNS[2], "monday")
    assert [table.answered_by is not None for table in result.tables] == [True] * TABLES
    assert count_files(result) <= 2 * FILES
