"""A tenant hides, by a table at the former place of a renamed one, that this one's rows were left behind there."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.recover import recover
from hivekeeper.model import Selection
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.fakes.files import FakeFiles
from support.hive_statements import Hive
from support.world import World

PLACE = "hdfs://nn/warehouse/sales/events"


@pytest.mark.parametrize("place", ["", f"{PLACE}/inside", PLACE, "hdfs://nn/warehouse/sales", "hdfs://nn/warehouse"])
def test_a_table_of_a_tenant_does_not_silence_that_rows_were_left_behind_by_a_rename_in_the_gap(place):
    """The renamed table has no rows, which are in the control directory at its former place; a run over its database says nothing."""
    world = World()
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.kill_before(["rename_exact", f"/ready/u00001 {PLACE}"], desk.compact)
    for _ in Hive(world).rename_table("sales.events", "sales.renamed"):
        pass
    if place:
        world.catalog.add_table(replace(a_table((), name="mine", location=place, create_time=77), database="tenant"), [])
    # Another one, so that a run over the database has something to do.
    world.add_table(a_table((), name="healthy", create_time=6), {"": [1000] * 3})
    world.files.namespace.advance(3_600_001)
    context = a_context(world.another_process(), Selection(databases=("sales",)), "20260201t020304z-0000")
    results = [compact_swap(context), recover(context)]
    assert world.rows_of("sales.renamed") == Counter()
    problems = [(table.table, table.problem and table.problem.code) for result in results for table in result.tables]
    assert [result.code for result in results] == [Exit.INVESTIGATE] * 2, problems


def test_an_unfinished_run_of_a_table_at_the_former_place_is_none_of_the_renamed_one():
    """Whose own runs there are finished: its control directory is that table's by now, which its own recovery settles."""
    world = World()
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.compact()
    for _ in Hive(world).rename_table("sales.events", "sales.renamed"):
        pass
    world.add_table(a_table((), name="mine", location=PLACE, create_time=77), {"": [1000] * 3})
    world.files.namespace.advance(3_600_001)
    mine, renamed = (Desk(world, f"sales.{name}", backup_table=False) for name in ("mine", "renamed"))
    mine.runs.extend(["20260101t000000z-0000"] * 10)
    mine.kill_before(["rename_exact", f"/ready/u00001 {PLACE}"], mine.compact)
    world.files.namespace.advance(3_600_001)
    assert renamed.recover().code is Exit.DONE


@pytest.mark.parametrize("place", ["hdfs://nn/warehouse/sales/t", "hdfs://nn/warehouse/sales/v"], ids=["by its name", "not by its name"])
def test_records_of_tables_at_their_homes_are_read_once_in_a_command_and_not_where_the_name_says_whose_they_are(place, monkeypatch):
    world, number = World(), 5
    for nth in range(number):
        world.add_table(a_table((), name=f"t{nth}", create_time=5, location=f"{place}{nth}"), {"": [1000] * 3})
        assert Desk(world, f"sales.t{nth}", backup_table=False).compact().code is Exit.DONE
        world.add_table(a_table((), kind="MANAGED_TABLE", name=f"new{nth}", create_time=5), {"": [1000] * 3})
    world.files.namespace.advance(3_600_001)
    asked, exposed = [], FakeFiles.exposed
    monkeypatch.setattr(FakeFiles, "exposed", lambda self, top, levels: asked.append(top) or exposed(self, top, levels))
    names = [f"sales.new{nth}" for nth in range(number)]
    assert recover(a_context(world.cluster, Selection(tables=tuple(names)), "20260201t020304z-0000")).code is Exit.DONE
    # Two looks at each directory.
    assert len(asked) == (0 if place.endswith("t") else 2 * number)
