"""(no attacker needed) A job builds a table anew and renames it to the place of the one before, as every night. A cleanup has just asked
which table has the name, and now for its partitions: those are of the other one.
"""

from __future__ import annotations

from dataclasses import replace

from hivekeeper.codes import Exit
from support.builders import a_partition
from unit.commands.test_renamed_while_all_are_read import desk, rename_table, retired  # noqa: F401


def test_a_backup_stays_that_a_partition_shows_of_the_table_that_had_the_name(desk, monkeypatch):  # noqa: F811
    world, place, table = desk.world, retired(desk, 1), desk.table
    world.catalog.add_partition(table, a_partition("dt=9", place))
    held = world.rows_below(place)
    anew = replace(world.table(table), name="anew", location="hdfs://nn/warehouse/sales/anew", create_time=99)
    world.catalog.add_table(anew, [])
    ask, done = world.metastore.partitions, []

    def partitions(asked):
        if asked.full_name == table and not done:
            done.append(dict(world.catalog.partitions[table]))
            rename_table(desk, table, "sales.former")
            world.catalog.partitions["sales.former"] = done[0]
            rename_table(desk, "sales.anew", table)
        return ask(asked)

    monkeypatch.setattr(world.metastore, "partitions", partitions)
    result = desk.cleanup()
    assert done and world.catalog.partitions["sales.former"]["dt=9"].location == place
    assert world.rows_below(place) == held != {}, f"exit {result.code}, and the partition shows nothing any more"
    assert result.code is not Exit.DONE
