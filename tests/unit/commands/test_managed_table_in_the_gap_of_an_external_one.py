"""An external table without partitions has a directory of another name than its own, where Hive makes the managed tables of its database.

One of these is renamed to that name in the external one's gap: Hive, which refuses that at any other moment, finds no directory there, and
moves the managed one's to that place. A known limit (docs/SECURITY.md).
"""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk, outcomes
from support.hive_statements import Hive, HiveError
from support.world import World

PLACE = "hdfs://nn/warehouse/sales/orders_new"


def add_other(world):
    world.add_table(a_table((), "MANAGED_TABLE", name="other", create_time=6), {"": [1000] * 2})


@pytest.mark.parametrize("is_older", [True, False])
def test_no_row_of_the_external_table_is_lost_and_the_next_run_refuses_it(is_older):
    world = World()
    world.add_table(a_table((), name="orders", create_time=5, location=PLACE), {"": [1000] * 3})
    desk = Desk(world, table="sales.orders", backup_table=False)
    rows = world.rows_below(PLACE)
    if is_older:
        add_other(world)
        with pytest.raises(HiveError):
            list(Hive(world).rename_table("sales.other", "sales.orders_new"))

    def act(what):
        if "rename_exact" in what and f"/ready/u00001 {PLACE}" in what:
            world.files.before_step = None
            if not is_older:
                add_other(world)
            list(Hive(world).rename_table("sales.other", "sales.orders_new"))

    world.files.before_step = act
    result = desk.compact()
    if is_older:
        # What is older than the run is another table's.
        assert (result.code, outcomes(result)) == (Exit.INVESTIGATE, {"": "misplaced"})
        backup = next(effect.place for effect in desk.log().runs[-1].effects)
        assert world.rows_below(f"{desk.control.top}/{backup}") == rows
    else:
        # As for what a writer has made there since.
        assert not rows - world.rows_below(PLACE)
    world.wait(3_600_001)
    assert desk.compact().code is Exit.REFUSED
