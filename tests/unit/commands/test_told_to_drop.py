"""What `history --orphans` tells an operator to do with a table of somebody who can alter it before they do so."""

from __future__ import annotations

from dataclasses import replace

from hivekeeper import names
from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from support.builders import a_table
from support.contexts import a_context
from support.hive_statements import Hive
from support.world import World

RUN = "20260101t020304z-0000"
MARKED = {names.BACKUP_OF: "sales.nothing", "external.table.purge": "false"}


def test_no_drop_that_a_message_calls_harmless_deletes_no_rows_of_another_table():
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    victim = a_table(name="victim", create_time=6)
    world.add_table(victim, {"": [1000] * 3})
    world.add_table(a_table(name="mine", parameters=MARKED), {"": [1000]})
    context = a_context(world.cluster, Selection(databases=("sales",)), RUN, Settings())
    (told,) = show_orphans(context).tables[0].orphans
    # After that, whoever owns it: ALTER TABLE … SET LOCATION, SET TBLPROPERTIES.
    mine = world.catalog.tables["sales.mine"]
    world.catalog.tables["sales.mine"] = replace(mine, location=victim.location, parameters={**MARKED, "external.table.purge": "true"})
    if "before a DROP TABLE, look at its location and its external.table.purge" not in told.next:
        for _ in Hive(world).drop_table("sales.mine"):
            pass
    assert world.files.stat(victim.location) is not None
    # What it names instead leaves such a table alone.
    assert "cleanup --orphans --database sales" in told.next
    clean_up_orphans(context)
    assert world.files.stat(victim.location) is not None
    assert "sales.mine" in world.catalog.tables
