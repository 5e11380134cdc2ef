"""A run is killed in its gap, and its table without partitions is renamed into another database, whose directory Hive moves it to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World

PLACE, NAME = "hdfs://nn/warehouse/sales.db/events", "archive.kept"


# docs/SECURITY.md, "A table that is renamed while a killed run has its rows away".
OPEN = pytest.mark.xfail(strict=True, reason="known, and not prevented yet")


@pytest.mark.parametrize(
    "new",
    [
        pytest.param("hdfs://nn/warehouse/sales.db/kept", id="beside"),
        pytest.param("hdfs://nn/warehouse/archive.db/kept", id="elsewhere", marks=OPEN),
    ],
)
@pytest.mark.parametrize("command", [Desk.recover, Desk.compact, Desk.verify], ids=["recover", "compact", "verify"])
def test_its_commands_tell_that_its_rows_are_missing(command, new):
    world = World()
    world.catalog.databases.add("archive")
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales.db"
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5, location=PLACE), {"": [1000] * 3})
    before = world.rows_of("sales.events")
    desk = Desk(world, backup_table=False)
    desk.kill_before(["rename_exact", f"/ready/u00001 {PLACE}"], desk.compact)
    for _ in Hive(world).rename_table("sales.events", NAME):
        pass
    # HiveAlterHandler: the new database's directory, and the new name.
    world.catalog.put_table(replace(world.table(NAME), location=new))
    world.catalog.homes["archive"] = new.rpartition("/")[0]
    world.files.namespace.advance(3_600_001)
    kept = Desk(world, NAME, backup_table=False)
    kept.runs = list(desk.runs)
    assert world.rows_of(NAME) != before
    assert command(kept).code is Exit.INVESTIGATE
