"""A run is killed in the gap of a partition, its table is renamed, and a writer makes the partition's directory again, with no file yet."""

from __future__ import annotations

from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World


def test_the_rows_of_a_renamed_table_come_back_to_a_directory_that_was_made_again() -> None:
    world = World()
    world.add_table(a_table(["dt"], kind="MANAGED_TABLE", create_time=5), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    desk, before = Desk(world, backup_table=False), world.rows_of("sales.events")
    desk.kill_before(["rename_exact", "ready/", f" {desk.live('dt=2')}"], desk.compact)
    for _ in Hive(world).rename_table("sales.events", "sales.renamed"):
        pass
    renamed = Desk(world, "sales.renamed", backup_table=False)
    renamed.runs = desk.runs
    world.files.writer.make_directory(renamed.live("dt=2"))
    result = renamed.recover()
    assert world.rows_of("sales.renamed") == before, (result.code, result.tables)
