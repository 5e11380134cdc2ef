"""A tenant has many tables without a directory: each is removed by hand. For each of them the directories of all databases are looked
through, as a killed run may have rows of a renamed one away beside any table: in a warehouse of thousands of databases that takes long.
"""

from __future__ import annotations

from dataclasses import replace

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from support.builders import a_table
from support.contexts import a_context
from support.world import World

DATABASES, TABLES, MS_OF_LISTING = 30, 20, 1000


def test_the_directories_of_all_databases_take_half_of_the_time_at_most(monkeypatch):
    world, listed = World(), []
    names = [f"team{nth}" for nth in range(DATABASES)]
    world.catalog.databases.update([*names, "tenant"])
    world.catalog.homes.update({name: f"hdfs://nn/warehouse/{name}.db" for name in [*names, "tenant"]})
    for home in world.catalog.homes.values():
        world.files.writer.make_directory(home)
    for nth in range(TABLES):
        table = a_table((), kind="MANAGED_TABLE", name=f"t{nth}", create_time=5 + nth, location=f"hdfs://nn/warehouse/tenant.db/t{nth}")
        world.catalog.add_table(replace(table, database="tenant"), [])
    look = world.files.look_hidden_directories

    def look_slowly(places, *most):
        listed.extend(places)
        world.clock.elapsed_ms += MS_OF_LISTING * len(places)
        return look(places, *most)

    monkeypatch.setattr(world.files, "look_hidden_directories", look_slowly)
    settings = Settings(min_quiet_ms=0, backup_table=False)
    result = compact_swap(a_context(world.cluster, Selection(databases=("tenant",)), "20260101t020304z-0000", settings))
    assert (result.code, len(result.tables)) == (Exit.DONE, TABLES)
    assert len(listed) <= 3 * DATABASES
