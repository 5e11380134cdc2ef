"""Marks in a table's properties, which statements copy and people spell in their own way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import SPARK_PROVIDER
from hivekeeper.reasons import Code
from support.builders import PARQUET, a_partition, a_table
from support.contexts import a_context
from support.desk import EVERYTHING, Desk
from support.world import World


def make(by=(), **parameters):
    world = World()
    world.add_table(a_table(by, create_time=5, parameters=parameters), {"dt=1" if by else "": [1000] * 3})
    return Desk(world)


@pytest.mark.parametrize("word", ["true ", " true", "yes", "1", "on"])
def test_a_table_whose_owner_wants_it_skipped_is_skipped(word):
    desk = make(**{"hivekeeper.skip": word})
    assert desk.compact().tables[0].units == ()


@pytest.mark.parametrize("rescue", ["rescue", "keep_events_20260101_020304"])
@pytest.mark.parametrize("is_copy", [True, False], ids=["made like it", "renamed"])
def test_a_backup_is_not_discarded_that_a_table_with_the_marks_of_its_backup_table_shows(rescue, is_copy):
    """Impala's CREATE EXTERNAL TABLE rescue LIKE __bkp_… LOCATION … copies all properties (CatalogOpExecutor.createTableLike), and
    ALTER TABLE __bkp_… RENAME TO rescue keeps them.
    """
    desk = make()
    desk.compact()
    catalog = desk.world.catalog
    (name,) = [name for name, table in catalog.tables.items() if table.backup_of]
    table = catalog.tables[name] if is_copy else catalog.tables.pop(name)
    catalog.add_table(replace(table, name=rescue, create_time=9), [])
    desk.world.files.namespace.advance(3_600_001)
    before = desk.world.rows_of(f"sales.{rescue}")
    assert before
    result = desk.cleanup(EVERYTHING)
    assert desk.world.rows_of(f"sales.{rescue}") == before, result.code


@pytest.mark.parametrize("tables", [("sales.events", "fin.events"), ("sales.eu_events", "sales_eu.events")], ids=["same", "underscores"])
def test_backup_tables_of_two_tables_of_one_command_have_two_names(tables):
    """With `backup_database`: all tables of a command have runs of one time."""
    world = World()
    world.catalog.databases.add("bkp")
    for name in tables:
        database, _, base = name.partition(".")
        table = a_table(name=base, location=f"hdfs://nn/warehouse/{database}/{base}", create_time=5)
        world.add_table(replace(table, database=database), {"": [1000] * 3})
    settings = Settings(min_quiet_ms=0, backup_database="bkp", read_by_llap=False)
    result = compact_swap.compact_swap(a_context(world.cluster, Selection(tables=tables), "20260101t020304z-0000", settings))
    assert result.code is Exit.DONE
    assert len([name for name in world.catalog.tables if name.startswith("bkp.")]) == 2


@pytest.mark.parametrize("path", ["hdfs://nn/", "/*", "hdfs://nn/warehouse/sales"])
def test_what_a_tenant_calls_the_path_of_its_own_table_stops_no_table_in_it(path):
    """ALTER TABLE … SET SERDEPROPERTIES needs no right to a location."""
    desk = make()
    storage = replace(PARQUET, serde_parameters={"path": path})
    own = a_table(name="own", location="hdfs://nn/tenants/own", storage=storage, parameters={SPARK_PROVIDER: "parquet"})
    desk.world.catalog.add_table(replace(own, database="tenant"), [])
    assert desk.compact().code is Exit.DONE


def test_each_path_of_spark_counts_for_itself():
    desk = make()
    storage = replace(PARQUET, serde_parameters={"path": desk.live(), "pAth": "/" + "x" * 8000})
    desk.world.catalog.add_table(a_table(name="other", storage=storage, parameters={SPARK_PROVIDER: "parquet"}), [])
    problem = desk.compact().tables[0].problem
    assert (problem.code, "SET SERDEPROPERTIES" in problem.next) == (Code.SHARED_DIRECTORY, True)


@pytest.mark.parametrize(("directory", "are_kept"), [("batch[7]", False), ("batch\\7", False), ("[.]*", True)])
def test_a_partition_at_a_pattern_keeps_what_it_may_find(directory, are_kept):
    desk = make(["dt"])
    desk.compact()
    desk.world.catalog.add_partition(desk.table, a_partition("dt=7", f"{names.parent(desk.control.top)}/{directory}"))
    desk.world.files.namespace.advance(3_600_001)
    desk.cleanup(EVERYTHING)
    assert any("/retired/" in path for path in desk.world.files.contents(desk.control.top)) is are_kept
