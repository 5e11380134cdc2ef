"""What one tenant writes does not take away what is said of another one's rows that readers miss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap, per_table
from hivekeeper.model import Selection
from hivekeeper.report import document, screen
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

MIB = 2**20
HOME = f"hdfs://nn/warehouse/sales.db/{'department-of-many-words/' * 4}events"


def a_night(long):
    """The table `aaa` has partitions elsewhere, of `long` characters; in `events` somebody sets a location while the run has it in its gap."""
    world = World()
    world.add_table(a_table(["dt"], location=HOME), {"dt=1": [MIB] * 3})
    other = a_table(["dt"], name="aaa", location="hdfs://nn/warehouse/sales.db/aaa")
    world.add_table(other, {})
    for at in range(20):
        world.catalog.add_partition(other.full_name, a_partition(f"dt={at}", f"hdfs://nn/elsewhere/{at}/{'x' * long}"))
    desk = Desk(world)
    world.files.writer.make_directory("hdfs://nn/elsewhere/dt=1")

    def move(what):
        if what.startswith("rename_exact") and "/ready/u00001 " in what:
            places = world.catalog.partitions[desk.table]
            places["dt=1"] = replace(places["dt=1"], location="hdfs://nn/elsewhere/dt=1")

    world.files.before_step = move
    return compact_swap.compact_swap(a_context(world.cluster, Selection(databases=("sales",)), desk._new_run(), desk.settings))


@pytest.mark.parametrize("long", [10, 3000])
def test_the_place_of_rows_that_readers_miss_is_told_whatever_other_tables_say(monkeypatch, long):
    # Whoever owns `aaa` makes it as long as there is room for (2**26).
    first = a_night(long).tables[0]
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", max(first.dispensable, 10_000))
    result = a_night(long)
    (table,) = [one for one in result.tables if one.table == "sales.events"]
    (unit,) = table.units
    assert (result.code, unit.outcome) == (Exit.INVESTIGATE, Outcome.MISPLACED)
    assert f"{HOME}/dt=1" in unit.reason, unit.reason
    assert f"{HOME}/dt=1" in screen.render(result)
    assert f"{HOME}/dt=1" in document.to_json(document.build(result)["tables"][-1]["units"][0])
