"""A table of Spark that Hive cannot read (external, in buckets, of Delta, of types that Hive lacks) has a placeholder for its location: its
files are where the property `path` of its SerDe says. Somebody points a table of theirs at a directory inside that.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.commands.cleanup import clean_up
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import SPARK_PROVIDER
from hivekeeper.reasons import Code
from support.builders import a_table, of_spark
from support.contexts import a_context
from support.desk import EVERYTHING
from support.hdfs_user import own
from support.world import World

OUTSIDE, INSIDE = "hdfs://nn/data/fin/orders", "hdfs://nn/warehouse/fin.db/orders"
BUCKETS = {"spark.sql.sources.schema.numBuckets": "4", "spark.sql.sources.schema.bucketCol.0": "id"}
KINDS = {"in buckets": {SPARK_PROVIDER: "parquet", **BUCKETS}, "of Delta": {SPARK_PROVIDER: "delta"}}


def a_world(path, kind, has_placeholder=True):
    """`mine` is mallory's, in a database of hers, over one partition of alice's table."""
    world = World()
    world.catalog.databases.update(["fin", "mallory"])
    # Where alice's database has a table, hers has its own directory: CREATE DATABASE … LOCATION.
    home = INSIDE if path == INSIDE else "hdfs://nn/warehouse/mallory.db"
    world.catalog.homes.update(fin="hdfs://nn/warehouse/fin.db", mallory=home)
    orders = replace(of_spark(a_table(["dt"], name="orders", owner="alice", create_time=3), path), database="fin")
    place = f"hdfs://nn/warehouse/fin.db/{orders.name}-__PLACEHOLDER__" if has_placeholder else path
    world.catalog.add_table(replace(orders, location=place, parameters={**orders.parameters, **KINDS[kind]}), [])
    mine = a_table(name="mine", owner="mallory", create_time=2, location=f"{path}/dt=1")
    world.catalog.add_table(replace(mine, database="mallory"), [])
    for number in range(4):
        # Spark takes the bucket from the name.
        world.add_file(f"{path}/dt=1/part-00000-1_0000{number}.c000.parquet", [f"b{number}"])
    own(world.files.namespace.find(path), "alice", "alice", 0o755)
    world.files.namespace.advance(30 * 86_400_000)
    return world


def run(command, world, name, settings):
    return command(a_context(world.another_process(), Selection(databases=("fin", "mallory")), name, settings))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", [OUTSIDE, INSIDE], ids=["outside", "in the database's directory"])
@pytest.mark.parametrize("has_placeholder", [False, True], ids=["its own location", "placeholder"])
def test_what_another_table_of_spark_has_is_left_alone(path, kind, has_placeholder):
    world = a_world(path, kind, has_placeholder)
    before = world.files.contents(path)
    result = run(compact_swap, world, "20260101t020304z-0000", Settings(min_quiet_ms=0))
    (problem,) = (table.problem for table in result.tables if table.table == "mallory.mine")
    assert world.files.contents(path) == before
    assert problem is not None and problem.code is Code.SHARED_DIRECTORY


@pytest.mark.parametrize("inside", ["", "/dt=1", "/any"])
def test_so_is_it_where_somebody_has_made_a_database_in_its_directory(inside):
    world = a_world(OUTSIDE, "of Delta")
    world.catalog.homes.update(mallory=f"{OUTSIDE}{inside}")
    before = world.files.contents(OUTSIDE)
    result = run(compact_swap, world, "20260101t020304z-0000", Settings(min_quiet_ms=0))
    (problem,) = (table.problem for table in result.tables if table.table == "mallory.mine")
    assert world.files.contents(OUTSIDE) == before
    assert problem is not None and problem.code is Code.SHARED_DIRECTORY


@pytest.mark.parametrize("inside", [None, "", "/aB", "/any"])
def test_so_is_a_directory_of_delta_that_does_not_look_like_a_partition(inside):
    """With random prefixes, or where columns are mapped, its files lie in directories of two characters."""
    world = a_world(OUTSIDE, "of Delta")
    if inside is not None:
        world.catalog.homes.update(mallory=f"{OUTSIDE}{inside}")
    mine = world.catalog.tables["mallory.mine"]
    world.catalog.drop_table("mallory.mine")
    world.catalog.add_table(replace(mine, location=f"{OUTSIDE}/aB"), [])
    for number in range(4):
        world.add_file(f"{OUTSIDE}/aB/{number}.parquet", [f"b{number}"])
    world.files.writer.make_directory(f"{OUTSIDE}/_delta_log")
    own(world.files.namespace.find(f"{OUTSIDE}/_delta_log"), "alice", "alice", 0o755)
    world.files.namespace.advance(30 * 86_400_000)
    before = world.files.contents(OUTSIDE)
    result = run(compact_swap, world, "20260101t020304z-0000", Settings(min_quiet_ms=0))
    (problem,) = (table.problem for table in result.tables if table.table == "mallory.mine")
    assert world.files.contents(OUTSIDE) == before
    assert problem is not None and problem.code is Code.SHARED_DIRECTORY


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_that_its_readers_need_are_not_discarded(kind):
    """The names of buckets, or of Delta's log, are in no other file."""
    world = a_world(OUTSIDE, kind)
    before = {path.rpartition("/")[2] for path in world.files.contents(f"{OUTSIDE}/dt=1")}
    run(compact_swap, world, "20260101t020304z-0000", Settings(min_quiet_ms=0))
    world.files.namespace.advance(90 * 86_400_000)
    run(clean_up, world, "20260401t020304z-0000", EVERYTHING)
    assert before <= {path.rpartition("/")[2] for path in world.files.contents(OUTSIDE)}


@pytest.mark.parametrize("path", ["hdfs://nn/data", "hdfs://nn/data/fin/nothing", OUTSIDE])
def test_nobody_keeps_tables_from_being_compacted_by_a_path_to_what_is_not_theirs(path):
    """To set it needs no right on the directory."""
    world = a_world(OUTSIDE, "in buckets", has_placeholder=True)
    world.catalog.drop_table("fin.orders")
    theirs = replace(of_spark(a_table(name="theirs", owner="eve", create_time=4), path), database="fin")
    world.catalog.add_table(replace(theirs, location="hdfs://nn/warehouse/fin.db/theirs-__PLACEHOLDER__"), [])
    result = run(compact_swap, world, "20260101t020304z-0000", Settings(min_quiet_ms=0))
    (mine,) = (table for table in result.tables if table.table == "mallory.mine")
    assert [unit.outcome.is_done for unit in mine.units] == [True], mine.problem


@pytest.mark.parametrize("top", ["hdfs://nn", "hdfs://nn/warehouse", "hdfs://nn/warehouse/sales.db"])
@pytest.mark.parametrize("has_log", [False, True])
def test_nor_by_the_path_of_a_table_that_is_said_to_be_its_owners(top, has_log):
    """A table's owner is what its maker says (`tests/contract/test_metastore.py`), such as the superuser, to whom all of that belongs.
    Where anybody may make names, anybody makes one like that of Delta's log.
    """
    world = a_world(OUTSIDE, "in buckets")
    if has_log:
        world.files.writer.make_directory(f"{top}/_delta_log")
        own(world.files.namespace.find(f"{top}/_delta_log"), "eve", "eve", 0o755)
    world.catalog.drop_table("fin.orders")
    home = "hdfs://nn/warehouse/sales.db"
    world.catalog.homes.update(sales=home)
    innocent = a_table(["dt"], name="innocent", owner="alice", create_time=9, location=f"{home}/innocent")
    world.add_table(innocent, {"dt=1": [1000] * 3})
    theirs = replace(of_spark(a_table(name="theirs", owner=world.files.stat(top).owner, create_time=4), top), database="fin")
    world.catalog.add_table(replace(theirs, location="hdfs://nn/warehouse/fin.db/theirs-__PLACEHOLDER__"), [])
    context = a_context(world.another_process(), Selection(databases=("sales",)), "20260101t020304z-0000", Settings(min_quiet_ms=0))
    (innocent,) = compact_swap(context).tables
    assert [unit.outcome.is_done for unit in innocent.units] == [True], innocent.problem
