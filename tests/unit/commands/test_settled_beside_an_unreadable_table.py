"""A run on a tenant's table at the former place of a renamed one, of which the metastore tells too little just then: it cannot give its
definition, or the database that it is in now is closed to the user of the runs.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import ports
from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from hivekeeper.ports import MetastoreRefused
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World

PLACE = "hdfs://nn/warehouse/sales/events"
GAP = ["rename_exact", f"/ready/u00001 {PLACE}"]
FORMER = "hdfs://nn/warehouse/sales/.hivekeeper-events"


def make_unreadable(world, _monkeypatch, _cluster, name):
    world.catalog.unreadable.add(name)


def make_heavy(world, monkeypatch, _cluster, name):
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 10_000)
    world.catalog.put_table(replace(world.table(name), parameters={"comment": "x" * 20_000}))


def close_its_database(_world, monkeypatch, cluster, name):
    ask = cluster.metastore.tables

    def tables(database, names):
        if database == name.partition(".")[0]:
            raise MetastoreRefused(f"{database}: permission denied")
        return ask(database, names)

    monkeypatch.setattr(cluster.metastore, "tables", tables)


def leave(*_):
    pass


@pytest.mark.parametrize("act", [leave, make_unreadable, make_heavy, close_its_database])
def test_the_interrupted_run_of_the_renamed_one_is_not_ended(monkeypatch, act):
    world, name = World(), "archive.kept"
    world.catalog.databases.update(["archive", "tenant"])
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    before = world.rows_of("sales.events")
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    for _ in Hive(world).rename_table("sales.events", name):
        pass
    world.catalog.homes["archive"] = world.table(name).location.rpartition("/")[0]
    # The tenant's database has its directory there: CREATE DATABASE … LOCATION, or ALTER DATABASE … SET LOCATION.
    world.catalog.homes["tenant"] = PLACE
    world.files.namespace.advance(3_600_001)
    world.catalog.add_table(replace(a_table((), name="mine", location=PLACE, create_time=77), database="tenant"), [])
    cluster = world.another_process()
    with monkeypatch.context() as meanwhile:
        act(world, meanwhile, cluster, name)
        compact_swap(a_context(cluster, Selection(databases=("tenant",)), "20260201t020304z-0000"))
    world.catalog.unreadable.clear()
    world.catalog.put_table(replace(world.table(name), parameters={}))
    world.catalog.drop_table("tenant.mine")
    world.files.namespace.advance(3_600_001)
    # As `identity.refuse_renamed` advises.
    place, _, base = world.table(name).location.rpartition("/")
    world.files.writer.rename_into(FORMER, f"{place}/.hivekeeper-{base}")
    desk.table = name
    result = desk.recover()
    assert (result.code, world.rows_of(name)) == (Exit.DONE, before)


@pytest.mark.parametrize("act", [make_unreadable, make_heavy, close_its_database])
def test_a_table_that_is_dropped_and_created_again_each_night_is_not_stopped_by_one(monkeypatch, act):
    world, name = World(), "tenant.mine"
    world.catalog.databases.add("tenant")
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    mine = a_table((), name="mine", location="hdfs://nn/data/mine", create_time=77)
    world.catalog.add_table(replace(mine, database="tenant"), [])
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    for _ in Hive(world).drop_table("sales.events"):
        pass
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=99), {"": [1000] * 3})
    world.files.namespace.advance(3_600_001)
    world.forget()
    act(world, monkeypatch, world.cluster, name)
    problem = desk.recover().tables[0].problem
    assert problem.code is Code.CHANGED_IN_OUTAGE
    assert desk.compact().code is Exit.DONE


def test_one_of_another_second_may_not_be_the_renamed_one(monkeypatch):
    """Nor does it stop a table of another name at that place."""
    world, name = World(), "tenant.other"
    world.catalog.databases.add("tenant")
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    world.catalog.add_table(replace(a_table((), name="other", location="hdfs://nn/data/other", create_time=77), database="tenant"), [])
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    for _ in Hive(world).drop_table("sales.events"):
        pass
    world.catalog.add_table(a_table((), name="mine", location=PLACE, create_time=99), [])
    world.files.namespace.advance(3_600_001)
    world.forget()
    make_heavy(world, monkeypatch, world.cluster, name)
    desk.table = "sales.mine"
    assert desk.recover().tables[0].problem.code is Code.CHANGED_IN_OUTAGE
