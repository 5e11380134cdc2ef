"""`--where` over a database in which a tenant has a table that it cannot be about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.backup import back_up
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.history import show_history
from hivekeeper.model import Column, Selection
from hivekeeper.ports import FilesUnavailable
from hivekeeper.reasons import Code
from hivekeeper.report import properties
from support.builders import a_table
from support.contexts import a_context
from support.world import World

MIB = 2**20
RUN = "20260101t020304z-0000"


@pytest.fixture
def world():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3})
    return world


def night(world):
    """HDFS goes away in the gap of `events`: readers miss the partition until the command is run again."""
    gone = []

    def go_away(what):
        if gone or (what.startswith("rename_exact") and "/ready/u00001 " in what):
            gone.append(what)
            raise FilesUnavailable("no NameNode answers")

    world.files.before_step = go_away
    result = compact_swap(a_context(world.cluster, Selection(databases=("sales",), where="dt = '1'"), RUN))
    world.files.before_step = None
    assert gone
    return result


def retry(result):
    read = dict(line.partition("=")[::2] for line in properties.render(result).splitlines())
    return read["hivekeeper.exit_code"], read["hivekeeper.retry"]


def test_a_unit_that_readers_miss_makes_a_scheduler_try_again(world):
    assert retry(night(world)) in (("8", "later"), ("6", "later"))


def test_also_where_a_tenant_has_a_table_by_other_columns_in_the_database(world):
    """It was told as wrong usage (2, "no table was touched"), after which no scheduler tries again: the partition stayed away."""
    mine = a_table(["region"], name="mine", location="hdfs://nn/warehouse/sales.db/mine")
    world.add_table(mine, {"region=1": [MIB] * 3})
    result = night(world)
    assert {table.table: table.code for table in result.tables}["sales.events"] is Exit.UNUSABLE
    assert retry(result) in (("8", "later"), ("6", "later"))


@pytest.mark.parametrize("column", [("dt", "binary"), ("dt", "boolean"), ("when", "string")])
@pytest.mark.parametrize("command", [compact_swap, analyze, back_up, show_history], ids=lambda one: one.__name__)
def test_a_table_whose_columns_the_filter_cannot_be_about_is_left_alone_unless_it_is_named(world, command, column):
    mine = replace(a_table([column[0]], name="mine", location="hdfs://nn/warehouse/sales.db/mine"), partition_columns=(Column(*column),))
    world.add_table(mine, {f"{column[0]}=1": [MIB] * 3})
    selected = Selection(databases=("sales",), where="dt = '1'")
    result = command(a_context(world.cluster, selected, RUN))
    left = next(table for table in result.tables if table.table == "sales.mine")
    assert (result.code, left.problem.code) == (Exit.DONE, Code.NO_PARTITIONS)
    assert f"the partition columns are: {column[0]} ({column[1]})" in left.problem.next
    named = command(a_context(world.cluster, replace(selected, databases=(), tables=("sales.mine",)), RUN))
    assert named.code is Exit.USAGE


@pytest.mark.parametrize("text", ["dt =", "dt = '1' or", "dt = = '1'", "dt ~ '1'", "dt = x"])
def test_what_no_table_could_have_is_still_wrong_usage(world, text):
    assert compact_swap(a_context(world.cluster, Selection(databases=("sales",), where=text), RUN)).code is Exit.USAGE
