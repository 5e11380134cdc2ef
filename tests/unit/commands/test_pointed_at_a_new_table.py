"""Where all tables are is known for an hour. Somebody makes a table within that hour, and somebody else points a table of theirs there."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.desk import Desk
from support.fakes.metastore import FakeMetastore
from support.hive_statements import Hive
from support.world import World

THEIRS = "hdfs://nn/warehouse/sales/buckets"

HOW = pytest.mark.parametrize("how", ["all are read again", "newer ones are read"])


def read_places(cluster, how):
    """Let a command know where all tables are, and how it may read more."""
    cluster.metastore.keeps_read_again_ms = 0 if how == "all are read again" else 10**12
    cluster.metastore.read_places_again("sales.first")


def alter_meanwhile(cluster, alter):
    """Call `alter` with the first change of sizes in the metastore, and let definitions be read again after it; returns that step."""
    acted = []

    def act(step):
        if step.startswith("metastore.update_sizes") and not acted:
            acted.append(step)
            alter()
            # Longer than a definition counts.
            cluster.clock.elapsed_ms += 60_000

    cluster.files.before_step = act
    return acted


@HOW
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_its_files_are_left_as_they_are(when, how):
    """A table in buckets is wrong once they are merged."""
    world = World()
    world.add_table(a_table(name="first", create_time=1), {"": [1000] * 3})
    world.add_table(a_table(name="mine", owner="mallory", create_time=2), {"": [1000] * 3})
    for number in range(4):
        world.add_file(f"{THEIRS}/00000{number}_0", [f"b{number}"])
    world.files.namespace.advance(30 * 86_400_000)
    buckets = replace(a_table(name="buckets", owner="alice", create_time=3), buckets=4, bucket_columns=("id",))
    before = world.files.contents(THEIRS)

    def come():
        world.catalog.add_table(buckets, [])
        # ALTER TABLE mine SET LOCATION
        world.catalog.put_table(replace(world.table("sales.mine"), location=THEIRS))
        world.files.namespace.advance(60_000)

    if when == "before":
        come()
    read_places(world.cluster, how)
    acted = alter_meanwhile(world.cluster, come if when == "meanwhile" else lambda: None)
    result = compact_swap(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"))
    assert acted
    assert {table.table for table in result.tables} >= {"sales.first", "sales.mine"}
    assert world.files.contents(THEIRS) == before


@HOW
def test_the_records_of_one_that_was_renamed_do_not_become_those_of_the_other(how):
    """Hive moves the directory of a managed table, with all records in it."""
    world = World()
    world.add_table(a_table(name="first", create_time=1), {"": [1000] * 3})
    world.add_table(a_table(["dt"], name="mine", owner="mallory", create_time=2), {"dt=9": [1000] * 3})
    world.add_table(a_table(["dt"], name="orders", owner="alice", create_time=3, kind="MANAGED_TABLE"), {"dt=1": [1000] * 3})
    orders = Desk(world, "sales.orders", backup_table=False)
    assert orders.compact().code is Exit.DONE
    orders.append("dt=1", "a", "b", "c")
    world.wait(30 * 86_400_000)
    new = "hdfs://nn/warehouse/sales/rescue"

    def point():
        deque(Hive(world).rename_table("sales.orders", "sales.rescue"), maxlen=0)
        # ALTER TABLE mine SET LOCATION; ALTER TABLE mine ADD PARTITION
        world.catalog.put_table(replace(world.table("sales.mine"), location=new))
        world.catalog.add_partition("sales.mine", a_partition("dt=1", f"{new}/dt=1"))

    read_places(world.cluster, how)
    acted = alter_meanwhile(world.cluster, point)
    names = ("sales.first", "sales.mine")
    compact_swap(a_context(world.cluster, Selection(tables=names), "20260201t020304z-0000"))
    assert acted
    world.files.before_step = lambda _step: None
    # Somebody has found it, and set the location back; another process begins.
    world.catalog.put_table(replace(world.table("sales.mine"), location="hdfs://nn/warehouse/sales/mine"))
    world.metastore.forget()
    rescue = Desk(world, "sales.rescue", backup_table=False)
    rescue.runs = list(orders.runs)
    result = rescue.history().tables[0]
    assert {run.table_id for run in rescue.log().runs} == {"sales.orders@3"}
    assert (result.problem, rescue.rollback().code) == (None, Exit.DONE)


@HOW
def test_an_interrupted_run_of_one_that_was_renamed_is_not_ended_by_the_other(how):
    """It would count as that of a table that was dropped: its rows stay aside, and no later command brings them back."""
    world = World()
    world.add_table(a_table(name="first", create_time=1), {"": [1000] * 3})
    world.add_table(a_table(["dt"], name="mine", owner="mallory", create_time=2), {"dt=9": [1000] * 3})
    world.add_table(a_table(["dt"], name="orders", owner="alice", create_time=3, kind="MANAGED_TABLE"), {"dt=1": [1000] * 3})
    before = world.rows_of("sales.orders")
    orders = Desk(world, "sales.orders", backup_table=False)
    orders.kill_before(["rename_exact", "/ready/u00001 "], orders.compact)
    new = "hdfs://nn/warehouse/sales/rescue"
    cluster = world.another_process()

    def point():
        deque(Hive(world).rename_table("sales.orders", "sales.rescue"), maxlen=0)
        # ALTER TABLE mine SET LOCATION
        world.catalog.put_table(replace(world.table("sales.mine"), location=new))

    read_places(cluster, how)
    acted = alter_meanwhile(cluster, point)
    compact_swap(a_context(cluster, Selection(tables=("sales.first", "sales.mine")), "20260201t020304z-0000"))
    assert acted
    # Somebody has found it, and set the location back; another process begins.
    world.catalog.put_table(replace(world.table("sales.mine"), location="hdfs://nn/warehouse/sales/mine"))
    world.metastore.forget()
    rescue = Desk(world, "sales.rescue", backup_table=False)
    rescue.runs = list(orders.runs)
    code = rescue.recover().code
    assert (code, world.rows_of("sales.rescue")) == (Exit.DONE, before)


@pytest.fixture
def three():
    """The third one is in another database, of which nothing is read again for the second."""
    world = World()
    world.catalog.databases.add("tax")
    for number, full_name in enumerate(("sales.first", "sales.second", "tax.third")):
        database, _, name = full_name.partition(".")
        world.add_table(replace(a_table(name=name, create_time=number + 1), database=database), {"": [1000] * 3})
    return world


def move_tables(world, *full_names):
    """ALTER TABLE … SET LOCATION, to places where nobody else is; the files are there."""
    for name in full_names:
        new = f"{world.table(name).location}_new"
        world.files.namespace.rename(world.table(name).location, new)
        world.catalog.put_table(replace(world.table(name), location=new))


def compact_all(world):
    result = compact_swap(a_context(world.cluster, Selection(databases=("sales", "tax")), "20260101t020304z-0000"))
    return {table.table: table.problem and table.problem.code for table in result.tables}


@HOW
def test_tables_that_were_moved_to_places_of_their_own_are_compacted(three, how, monkeypatch):
    asked, ask = [], FakeMetastore.read_newer_places
    monkeypatch.setattr(FakeMetastore, "read_newer_places", lambda self, table: (asked.append(table.full_name), ask(self, table)))
    read_places(three.cluster, how)
    alter_meanwhile(three.cluster, lambda: move_tables(three, "sales.second", "tax.third"))
    assert compact_all(three) == dict.fromkeys(("sales.first", "sales.second", "tax.third"))
    # The places of both are known once they are read for the first; otherwise each costs that once.
    assert asked == (["sales.second"] if how == "all are read again" else ["sales.second", "tax.third"])


def test_tables_that_are_moved_again_and_again_wait_and_let_nothing_be_read_all_the_time(three):
    """Which would cost other tables their turn."""
    read_places(three.cluster, "newer ones are read")
    three.metastore.newer_left = 1
    alter_meanwhile(three.cluster, lambda: move_tables(three, "sales.second", "tax.third"))
    assert compact_all(three) == {"sales.first": None, "sales.second": None, "tax.third": Code.METASTORE_UNUSABLE}
