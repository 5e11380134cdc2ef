"""A partition gets the name of another one of the same run (DROP, then RENAME; or a chain of renames), as those of an external table do
without their directories: it is at its place under that name, and was not dropped.
"""

from __future__ import annotations

from collections import Counter

import pytest

from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.joined_desk import at
from support.world import World

DISCOVERY = {"discover.partitions": "true"}


def a_desk(parameters):
    world = World()
    table = a_table(["dt"], kind="EXTERNAL_TABLE", parameters=parameters, create_time=5)
    world.add_table(table, {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    return Desk(world, backup_table=False)


def drop_and_rename(desk):
    hive = Hive(desk.world)
    list(hive.drop_partition(desk.table, "dt=1"))
    list(hive.rename_partition(desk.table, "dt=2", "dt=1"))


def shift(desk):
    """As where each partition gets the name of the next one."""
    hive = Hive(desk.world)
    list(hive.rename_partition(desk.table, "dt=2", "dt=3"))
    list(hive.rename_partition(desk.table, "dt=1", "dt=2"))


def during_a_run(desk, change):
    """After the last swap, before the run asks where its units are."""
    at(desk, ["metastore.update_sizes"], lambda: change(desk))
    return [desk.compact()]


def in_an_outage(desk, change):
    desk.kill_before(["metastore.update_sizes"], desk.compact)
    change(desk)
    return [desk.recover()]


def places_of(desk):
    return Counter(partition.location for partition in desk.world.partitions(desk.table).values())


@pytest.mark.parametrize("when", [during_a_run, in_an_outage])
@pytest.mark.parametrize("change", [drop_and_rename, shift])
def test_no_second_partition_is_made_over_the_directory_of_one_that_got_another_ones_name(change, when):
    desk = a_desk(DISCOVERY)
    when(desk, change)
    desk.recover()
    assert max(places_of(desk).values()) == 1, places_of(desk)
    assert max(desk.world.rows_of(desk.table).values()) == 1, "readers see rows twice"


@pytest.mark.parametrize("change", [shift])
def test_rows_of_a_partition_that_got_another_ones_name_in_an_outage_come_back(change):
    """Killed in the gap of dt=1. It is dt=2 now, at its former place, which Hive has left: nothing was dropped. (drop_and_rename would be
    the same for dt=2.)
    """
    desk = a_desk({"external.table.purge": "true"})
    before = desk.world.rows_of(desk.table)
    desk.kill_before(["rename_exact", f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    change(desk)
    desk.recover()
    assert desk.world.rows_of(desk.table) == before


def test_a_managed_partition_that_is_renamed_in_its_gap_to_the_name_of_a_dropped_one_of_the_run_is_misplaced():
    """As `PARTITION … RENAME`, managed table, in docs/swap.md: the new place has no directory, exit code 7. Where the new name is that of a
    unit of the same run, which was dropped just before, it counts as dropped on purpose: exit code 6, and "nothing" is to be done.
    """
    world = World()
    world.add_table(a_table(["dt"], kind="MANAGED_TABLE", create_time=5), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    desk = Desk(world, backup_table=False)
    rows = world.rows_below(desk.live("dt=2"))
    at(desk, ["rename_exact", f"/ready/u00002 {desk.live('dt=2')}"], lambda: drop_and_rename(desk))
    result = desk.compact()
    assert not set(rows) & set(world.rows_of(desk.table)), "readers do not see them"
    assert {unit.name: unit.outcome.code for unit in result.tables[0].units}["dt=2"] == "misplaced", result.code
