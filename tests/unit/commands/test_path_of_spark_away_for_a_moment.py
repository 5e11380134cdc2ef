"""Alice's job of Spark writes its table anew: the directory is away for a moment, and just then the command first asks whose it is. Mallory
has pointed tables of hers inside it (test_inside_a_path_of_spark.py): what was not known then is not known of the tables that come later.
"""

from __future__ import annotations

from dataclasses import replace

from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import SPARK_PROVIDER
from hivekeeper.reasons import Code
from support.builders import a_table, of_spark
from support.contexts import a_context
from support.hdfs_user import own
from support.world import World

PATH = "hdfs://nn/data/fin/orders"


def a_world(first):
    """`first`: where the table of mallory's lies that comes first."""
    world = World()
    world.catalog.databases.update(["fin", "mallory"])
    world.catalog.homes.update(fin="hdfs://nn/warehouse/fin.db", mallory="hdfs://nn/warehouse/mallory.db")
    orders = replace(of_spark(a_table(["dt"], name="orders", owner="alice", create_time=3), PATH), database="fin")
    place = "hdfs://nn/warehouse/fin.db/orders-__PLACEHOLDER__"
    world.catalog.add_table(replace(orders, location=place, parameters={**orders.parameters, SPARK_PROVIDER: "delta"}), [])
    for nth, location in enumerate((first, f"{PATH}/dt=1")):
        mine = a_table(name=f"mine{nth}", owner="mallory", create_time=2, location=location)
        world.catalog.add_table(replace(mine, database="mallory"), [])
    for number in range(4):
        world.add_file(f"{PATH}/dt=1/part-00000-1_0000{number}.c000.parquet", [f"b{number}"])
    own(world.files.namespace.find(PATH), "alice", "alice", 0o755)
    world.files.namespace.advance(30 * 86_400_000)
    return world


class AwayOnce:
    """`files.stat`, to which the directory is away the first time: both names of a directory that is exchanged for a new one are."""

    def __init__(self, stat):
        self.stat, self.asked = stat, 0

    def __call__(self, path):
        self.asked += path == PATH
        return None if path == PATH and self.asked == 1 else self.stat(path)


def compact(world):
    world.files.stat = stat = AwayOnce(world.files.stat)
    context = a_context(world.cluster, Selection(databases=("mallory",)), "20260101t020304z-0000", Settings(min_quiet_ms=0))
    result = compact_swap(context)
    assert stat.asked
    return {table.table: table.problem for table in result.tables}


def test_of_the_tables_that_come_later_whose_it_is_is_asked_again():
    """The first one has nothing to do; the command goes on for hours."""
    world = a_world(f"{PATH}/dt=0")
    before = world.files.contents(PATH)
    problem = compact(world)["mallory.mine1"]
    assert world.files.contents(PATH) == before
    assert problem is not None and problem.code is Code.SHARED_DIRECTORY


def test_where_it_is_away_a_table_inside_it_is_left_alone():
    """The files of Delta's table go to a backup, where its readers do not find them."""
    world = a_world("hdfs://nn/warehouse/mallory.db/mine0")
    before = world.files.contents(PATH)
    compact(world)
    assert world.files.contents(PATH) == before
