"""Tables and partitions on servers that nobody configured, which might never answer: nothing is called there.

The fake file system fails at every call that names such a server.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import PARQUET, a_partition, a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.world import World

ELSEWHERE = {
    "hdfs://silent:2121/x": Code.FOREIGN_SERVER,
    "ftp://silent/x": Code.FOREIGN_SERVER,
    "har://hdfs-nn/warehouse/x.har": Code.FOREIGN_SERVER,
    # With an automounter that calls a host, too.
    "file:/net/silent/x": Code.LOCAL_TABLE,
}
COMMANDS = ["analyze", "backup", "compact", "verify", "rollback", "cleanup", "history", "recover"]


@pytest.fixture(params=[["dt"], []], ids=["partitioned", "unpartitioned"])
def desk(request):
    world = World()
    world.add_table(a_table(request.param), {"dt=1" if request.param else "": [1000] * 3})
    return Desk(world)


def move(desk, location):
    desk.world.catalog.put_table(replace(desk.world.table(desk.table), location=location))


@pytest.mark.parametrize("location", ELSEWHERE)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_on_a_foreign_server_is_refused_before_it_is_called(desk, command, location):
    desk.compact()
    move(desk, location)
    (table,) = getattr(desk, command)().tables
    assert (table.code, table.problem.code) == (Exit.REFUSED, ELSEWHERE[location])
    assert location in table.problem.what


def test_a_foreign_server_of_one_table_does_not_stop_the_others(desk):
    desk.world.add_table(a_table(name="before", location="ftp://silent/before"), {})
    result = compact_swap.compact_swap(a_context(desk.world.cluster, Selection(databases=("sales",)), desk._new_run(), desk.settings))
    assert {table.table: table.code for table in result.tables} == {"sales.before": Exit.REFUSED, "sales.events": Exit.DONE}
    assert result.code is Exit.DONE


@pytest.mark.parametrize("command", COMMANDS)
def test_a_partition_that_was_moved_to_a_foreign_server_is_not_called(command):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    world.catalog.put_partition(desk.table, a_partition("dt=1", "hdfs://silent:2121/x", PARQUET))
    (table,) = getattr(desk, command)().tables
    assert table.problem is None


def test_a_partition_that_was_moved_to_a_foreign_server_is_not_rolled_back_but_the_others_are():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    world.catalog.put_partition(desk.table, a_partition("dt=1", "hdfs://silent:2121/x", PARQUET))
    assert outcomes(desk.rollback()) == {"dt=1": "refused", "dt=2": "rolled-back"}
