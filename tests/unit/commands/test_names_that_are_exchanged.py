"""Two partitions exchange their names while all are read: the one that shows a backup is told by no name."""

from __future__ import annotations

import pytest

from support.builders import a_partition
from support.fakes import metastore
from unit.commands.test_renamed_while_all_are_read import act_before_each, desk, rename_partition, retired  # noqa: F401


def exchange_before(desk, nth, monkeypatch):  # noqa: F811
    """Before this request for partitions; returns the place that one of the two shows, and what was done."""
    monkeypatch.setattr(metastore, "PARTITIONS_AT_ONCE", 1)
    world, place = desk.world, retired(desk, 1)
    world.catalog.add_partition(desk.table, a_partition("dt=0", f"{world.table(desk.table).location}/dt=0"))
    world.catalog.add_partition(desk.table, a_partition("dt=9", place))
    renames, done = {nth: [(0, 10), (9, 0), (10, 9)]}, []

    def act(number):
        for one in renames.get(number, ()):
            rename_partition(desk, *one)
            done.append(one)

    act_before_each(desk, "partitions", act)
    return place, done


@pytest.mark.parametrize("nth", range(2, 16))
def test_a_backup_stays_whose_partition_exchanges_its_name_with_another(desk, nth, monkeypatch):  # noqa: F811
    place, done = exchange_before(desk, nth, monkeypatch)
    held = desk.world.rows_below(place)
    result = desk.cleanup()
    assert len(done) == 3
    assert desk.world.rows_below(place) == held != {}, f"exit {result.code}, and the partition shows nothing any more"


@pytest.mark.parametrize("nth", range(2, 8))
def test_each_place_is_told(desk, nth, monkeypatch):  # noqa: F811
    place, done = exchange_before(desk, nth, monkeypatch)
    assert place in {one.location for one in desk.world.metastore.partitions(desk.world.table(desk.table))}
    assert len(done) == 3


@pytest.mark.parametrize("nth", range(3, 20))
def test_so_is_each_where_one_was_dropped_before_so_that_all_are_read_twice(desk, nth, monkeypatch):  # noqa: F811
    place, done = exchange_before(desk, nth, monkeypatch)
    exchange, dropped = desk.world.metastore.before_request, []

    def act(called):
        exchange(called)
        if called == "partitions" and not dropped:
            dropped.append(desk.world.catalog.drop_partition(desk.table, "dt=1"))

    monkeypatch.setattr(desk.world.metastore, "before_request", act)
    found = {one.location for one in desk.world.metastore.partitions(desk.world.table(desk.table))}
    assert place in found
    assert dropped
    assert len(done) in (0, 3)
