"""Marks in a table's properties, which statements copy and people spell in their own way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import BACKUP_OF
from support.builders import a_table
from support.contexts import a_context
from support.desk import EVERYTHING, Desk
from support.world import World


def make(by=(), **parameters):
    world = World()
    world.add_table(a_table(by, create_time=5, parameters=parameters), {"": [1000] * 3})
    return Desk(world)


@pytest.mark.parametrize("word", ["true ", " true", "yes", "1", "on"])
def test_a_table_whose_owner_wants_it_skipped_is_skipped(word):
    desk = make(**{"hivekeeper.skip": word})
    assert desk.compact().tables[0].units == ()


def test_a_backup_is_not_discarded_that_a_table_made_like_the_backup_table_shows():
    """Impala's CREATE EXTERNAL TABLE rescue LIKE __bkp_… LOCATION … copies all properties (CatalogOpExecutor.createTableLike)."""
    desk = make()
    desk.compact()
    (effect,) = desk.log().effects
    place = f"{desk.control.top}/{effect.place}"
    rescue = a_table(name="rescue", location=place, create_time=9, parameters={BACKUP_OF: "sales.events"})
    desk.world.catalog.add_table(rescue, [])
    desk.world.files.namespace.advance(3_600_001)
    before = desk.world.rows_of("sales.rescue")
    assert before
    result = desk.cleanup(EVERYTHING)
    assert desk.world.rows_of("sales.rescue") == before, result.code


def test_backup_tables_of_two_tables_of_one_command_have_two_names():
    """With `backup_database`, tables of one name in two databases: all tables of a command have runs of one time."""
    world = World()
    world.catalog.databases.add("bkp")
    world.add_table(a_table(create_time=5), {"": [1000] * 3})
    other = replace(a_table(create_time=6, location="hdfs://nn/warehouse/fin/events"), database="fin")
    world.add_table(other, {"": [1000] * 3})
    selected = Selection(tables=("sales.events", "fin.events"))
    settings = Settings(min_quiet_ms=0, backup_database="bkp", read_by_llap=False)
    result = compact_swap.compact_swap(a_context(world.cluster, selected, "20260101t020304z-0000", settings))
    assert result.code is Exit.DONE
    assert len([name for name in world.catalog.tables if name.startswith("bkp.")]) == 2
