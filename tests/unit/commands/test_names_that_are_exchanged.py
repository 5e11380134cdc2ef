"""Two partitions exchange their names while all are read: the one that shows a backup is told by no name."""

from __future__ import annotations

import pytest

from support.builders import a_partition
from support.fakes import metastore
from unit.commands.test_renamed_while_all_are_read import act_before_each, desk, rename_partition, retired  # noqa: F401


@pytest.mark.parametrize("nth", range(2, 40))
def test_a_backup_stays_whose_partition_exchanges_its_name_with_another(desk, nth, monkeypatch):  # noqa: F811
    monkeypatch.setattr(metastore, "PARTITIONS_AT_ONCE", 1)
    world, place = desk.world, retired(desk, 1)
    world.catalog.add_partition(desk.table, a_partition("dt=0", f"{world.table(desk.table).location}/dt=0"))
    world.catalog.add_partition(desk.table, a_partition("dt=9", place))
    held = world.rows_below(place)
    renames = {nth: [(0, 10), (9, 0), (10, 9)]}
    act_before_each(desk, "partitions", lambda number: [rename_partition(desk, *one) for one in renames.get(number, ())])
    result = desk.cleanup()
    assert world.rows_below(place) == held != {}, f"exit {result.code}, and the partition shows nothing any more"


@pytest.mark.parametrize("nth", range(2, 9))
def test_each_place_is_told(desk, nth, monkeypatch):  # noqa: F811
    monkeypatch.setattr(metastore, "PARTITIONS_AT_ONCE", 1)
    world, place = desk.world, retired(desk, 1)
    world.catalog.add_partition(desk.table, a_partition("dt=0", f"{world.table(desk.table).location}/dt=0"))
    world.catalog.add_partition(desk.table, a_partition("dt=9", place))
    renames = {nth: [(0, 10), (9, 0), (10, 9)]}
    act_before_each(desk, "partitions", lambda number: [rename_partition(desk, *one) for one in renames.get(number, ())])
    assert place in {one.location for one in world.metastore.partitions(world.table(desk.table))}
