"""A run of NULLs takes a few bytes however long it is: how many such values a table, and a command, has read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from hivekeeper.plan import capacity
from hivekeeper.plan.capacity import MOST_VALUES_OF_TABLE
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.world import World

LENGTH, FILES = 1000, 12
COVERED = FILES * (1000 * LENGTH + 2**20)
MOST_VALUES_OF_COMMAND = 2**29


@pytest.fixture(autouse=True)
def room(monkeypatch):
    """Less than one file may have."""
    monkeypatch.setattr(capacity, "MOST_VALUES_OF_COMMAND", MOST_VALUES_OF_COMMAND)


def add(world, table, units):
    """`units`: by name, how many values its files claim together."""
    world.add_table(table, {name: [LENGTH] * FILES for name in units})
    for name, values in units.items():
        path = f"{table.location}/{name}/part-00000.parquet"
        content = replace(world.files.content(path), values=values)
        world.files.writer.delete(path)
        world.files.writer.add(path, content, LENGTH)
    world.files.namespace.advance(3_600_000)


def told(result):
    return {(one.table, unit.name): unit.why.code if unit.why else unit.outcome for one in result.tables for unit in one.units}


@pytest.mark.parametrize("exchange", ["directory", "files"])
def test_units_with_too_many_of_them_are_left_out_and_the_others_compacted(exchange):
    world, half = World(), MOST_VALUES_OF_COMMAND // 2
    files = {f"dt={day}": values for day, values in enumerate([half, half, half, 0], start=1)}
    add(world, a_table(["dt"]), files)
    desk = Desk(world, exchange=exchange)
    first, second = desk.compact(), desk.compact()
    assert Counter(outcomes(first).values()) == {"refused": 1, "swapped": 3}
    assert Code.TOO_MANY_VALUES in told(first).values()
    # The next command has room of its own.
    assert set(outcomes(second).values()) == {"swapped"}


def test_what_bytes_and_number_of_the_files_cover_is_not_counted():
    world = World()
    add(world, a_table(["dt"]), {"dt=1": COVERED + MOST_VALUES_OF_TABLE + MOST_VALUES_OF_COMMAND, "dt=2": COVERED})
    assert set(outcomes(Desk(world).compact()).values()) == {"swapped"}


def test_a_table_does_not_take_all_from_the_others():
    world = World()
    add(world, a_table(["dt"], name="a"), {"dt=1": COVERED + MOST_VALUES_OF_TABLE + MOST_VALUES_OF_COMMAND})
    add(world, a_table(["dt"], name="b"), {f"dt={day}": COVERED + MOST_VALUES_OF_TABLE for day in (1, 2)})
    told_of = told(compact_swap(a_context(world.cluster, Selection(databases=("sales",)), "20260201t020301z-0000")))
    assert told_of[("sales.a", "dt=1")] is Outcome.SWAPPED
    assert {told_of[("sales.b", f"dt={day}")] for day in (1, 2)} == {Outcome.SWAPPED, Code.TOO_MANY_VALUES}


@pytest.mark.parametrize("exchange", ["directory", "files"])
def test_no_file_is_written_that_has_more_values_than_one_is_read_with(exchange, monkeypatch):
    """It took a minute and half the room of the command, each night, and counted as one that is not what was read."""
    monkeypatch.setattr(capacity, "MOST_VALUES_OF_COMMAND", 2**35)
    world, most = World(), 1000 * FILES * LENGTH + 2**30
    add(world, a_table(["dt"]), {"dt=1": most, "dt=2": most + 1})
    assert outcomes(Desk(world, exchange=exchange).compact()) == {"dt=1": "swapped", "dt=2": "refused"}
