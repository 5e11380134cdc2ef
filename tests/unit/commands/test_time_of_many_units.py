"""What a command does once for each unit of a table takes a time that grows with their number, not with its square: others wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.model import StageUnit
from hivekeeper.plan import capacity, sizing
from hivekeeper.runlog.outcomes import Outcome
from support.builders import FORM, a_table
from support.desk import Desk
from support.world import World

UNITS = 60


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_forms_of_all_units_are_not_counted_for_each_of_them(monkeypatch, dry_run):
    """A hundred thousand partitions took more than an hour between the last exchange and the log entry, with the table locked; where
    units have many forms, or Bloom filters of many columns, a few thousand did.
    """
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={number}": [1000] * 2 for number in range(UNITS)})
    calls, forms = [], StageUnit.forms.fget

    def count(unit):
        calls.append(unit.number)
        return forms(unit)

    monkeypatch.setattr(StageUnit, "forms", property(count))
    result = Desk(world).compact(dry_run=dry_run)
    assert result.code is Exit.DONE
    assert len(calls) <= 3 * UNITS, f"{len(calls)} times for {UNITS} units"


@pytest.mark.parametrize("many", [20, 80])
def test_units_for_which_there_is_no_room_are_not_looked_at_again_for_each_one_that_is_unfit(monkeypatch, many):
    """With max_units, footers are read until so many units are fit. A hundred thousand partitions that are too large for what is left of
    max_backup_objects, before as many with files that cannot be read, were compared ten thousand million times.
    """
    world = World()
    world.add_table(a_table(["dt"]), {f"dt=large{number}": [1000] * 9 for number in range(many)})
    desk = Desk(world, max_units=1, max_backup_objects=8)
    for number in range(many):
        world.make_partition(desk.table, f"dt=unfit{number}")
        for file in "ab":
            world.add_file(f"{desk.live(f'dt=unfit{number}')}/{file}.parquet", ["x"], form=replace(FORM, undecodable=("codec lzo",)))
    world.files.namespace.advance(3_600_000)
    calls, directory_objects = [], sizing.directory_objects

    def count(lengths, block_bytes):
        calls.append(block_bytes)
        return directory_objects(lengths, block_bytes)

    monkeypatch.setattr(capacity.sizing, "directory_objects", count)
    (table,) = desk.compact().tables
    assert len([unit for unit in table.units if unit.outcome is Outcome.REFUSED]) == many
    assert len(calls) <= 20 * many, f"{len(calls)} times for {2 * many} units"
