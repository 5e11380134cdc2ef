"""A table that gets another owner (`ALTER TABLE … SET OWNER`, or an `ALTER TABLE` by a Spark before 2.4.5, which writes its own user there)
and is the same one: nobody has taken anything, and nothing may be lost to it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World

RENAMED = "sales.renamed"
SHAPES = {"flat": ((), [""]), "partitioned": (("dt",), ["dt=1", "dt=2"])}


def a_desk(shape):
    columns, units = SHAPES[shape]
    world = World()
    world.add_table(a_table(columns, create_time=5, owner="finance"), {unit: [1000] * 3 for unit in units})
    return Desk(world, backup_table=False)


def give(desk, owner):
    desk.world.catalog.put_table(replace(desk.world.table(desk.table), owner=owner))


def rename(desk):
    """An external table, so its records stay where it is."""
    deque(Hive(desk.world).rename_table(desk.table, RENAMED), maxlen=0)
    desk.table = RENAMED


def rows(desk):
    return sorted(desk.world.rows_of(desk.table))


def killed_in_its_gap(shape):
    desk = a_desk(shape)
    before = rows(desk)
    desk.kill_before(["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"], desk.compact)
    assert rows(desk) != before
    return desk, before


@pytest.mark.parametrize("is_renamed", [False, True], ids=["same name", "renamed"])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_the_rows_of_a_killed_run_come_back_once_the_table_is_given_back(shape, is_renamed):
    desk, before = killed_in_its_gap(shape)
    give(desk, "sales_etl")
    if is_renamed:
        rename(desk)
    desk.world.files.namespace.advance(3_600_000)
    for _ in range(2):
        (told,) = desk.compact().tables
        assert told.problem and told.problem.code is Code.OTHER_TABLE, told
    give(desk, "finance")
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == before


def test_where_hive_knows_no_set_owner_they_are_brought_by_hand():
    desk, before = killed_in_its_gap("flat")
    give(desk, "sales_etl")
    assert desk.compact().tables[0].problem.code is Code.OTHER_TABLE
    (run,) = desk.run_directories()
    desk.world.files.writer.rename_into(names.join(desk.control.run(run).state("retired"), "u00001"), desk.live())
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == before
