"""What a command over many tables holds of each until its end (see test_kept_backups.py, whose ways are used here)."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from hivekeeper.commands import compact_swap, history, per_table, rollback
from hivekeeper.model import Selection
from hivekeeper.runlog.manifests import ManifestFile
from support.builders import a_table
from support.contexts import QUIET, a_context
from support.desk import Desk
from support.world import World

RUNS = [f"20260101t02030{number}z-0000" for number in range(5)]
TABLES, FILES = 5, 40
COMMANDS = {"compact-swap": compact_swap.compact_swap, "rollback": rollback.rollback}


def location(number):
    return f"hdfs://nn/warehouse/sales.db/t{number}"


def a_world(units=("",)):
    world = World()
    for number in range(TABLES):
        columns = ["dt"] if "" not in units else []
        world.add_table(a_table(columns, name=f"t{number}", location=location(number)), {unit: [1000] * FILES for unit in units})
    return world


def run(world, command, run, run_key="", **settings):
    return command(a_context(world.cluster, Selection(databases=("sales",)), run, replace(QUIET, **settings), run_key=run_key))


def count_files(result):
    waiting, seen, found = [result], set(), 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        found += isinstance(one, ManifestFile)
        waiting += gc.get_referents(one)
    return found


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_answer_to_a_second_attempt_does_not_hold_the_files_of_the_first_of_all_tables(name):
    """--run-key: as many as two million of each table, a third of a kilobyte each, with the entry that bore the key."""
    world = a_world()
    if name == "rollback":
        run(world, COMMANDS["compact-swap"], RUNS[0])
    run(world, COMMANDS[name], RUNS[1], "monday")
    result = run(world, COMMANDS[name], RUNS[2], "monday")
    assert [table.answered_by is not None for table in result.tables] == [True] * TABLES
    assert count_files(result) <= 2 * FILES, count_files(result)


def late_names_held(result):
    return sum(len(name) for table in result.tables for one in table.backups for name in one.late_files)


def with_late_files(late, length):
    """A world in which somebody has put files into each table's backup."""
    world = a_world()
    run(world, compact_swap.compact_swap, RUNS[0])
    for number in range(TABLES):
        desk = Desk(world, f"sales.t{number}")
        (effect,) = desk.log().standing
        for at in range(late):
            world.add_file(f"{desk.control.top}/{effect.place}/{at:03d}{'x' * length}.parquet", [f"late {number} {at}"])
    world.files.namespace.advance(3_600_000)
    return world


@pytest.mark.parametrize("beside", [False, True])
def test_the_names_of_late_files_are_not_held_of_all_tables_that_are_cleaned_up_after(monkeypatch, beside):
    """Whoever may write to a backup puts files into it, each of which goes to live."""
    late, length = 50, 200
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", late * (length + 20))
    world = with_late_files(late, length)
    result = run(world, compact_swap.compact_swap, RUNS[2], min_age_ms=0, cleanup_after=True, cleanup_beside=beside)
    counted = [one.late_count for table in result.tables for one in table.backups]
    assert counted == [late] * TABLES, counted
    assert late_names_held(result) < 2 * late * (length + 20), late_names_held(result)


def test_history_does_not_hold_the_names_of_late_files_in_the_logs_of_all_tables(monkeypatch):
    """An entry has room for two million characters of reasons and such names, and a log has the entries of 400 days."""
    late, length = 50, 200
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", late * (length + 20))
    world = with_late_files(late, length)
    run(world, compact_swap.compact_swap, RUNS[2], min_age_ms=0, cleanup_after=True)
    result = run(world, history.show_history, RUNS[4])
    held = sum(len(name) for table in result.tables for entry in table.log for unit in entry.units for name in unit.late_files)
    assert held < 2 * late * (length + 20), held
