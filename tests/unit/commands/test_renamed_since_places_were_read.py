"""The places of all tables are read once an hour: a table that is renamed since is still at its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.commands import cleanup, compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, desk_by
from support.hive_statements import Hive


@pytest.mark.parametrize("by", [[], ["dt"]], ids=["flat", "partitioned"])
def test_old_files_stay_that_a_table_shows_which_was_renamed_while_a_table_before_was_cleaned_up(by):
    """The table has shown them for a day, under one name or another."""
    desk = desk_by(by)
    world = desk.world
    world.add_table(a_table(["dt"], name="before", create_time=6), {"dt=1": [1000] * 3})
    for one in (desk, Desk(world, "sales.before")):
        one.compact()
    place = names.join(desk.control.top, desk.log().standing[0].place)
    world.catalog.add_table(replace(a_table(name="rescue", location=place, create_time=88), database="fin"))
    rows, done = world.rows_of("fin.rescue"), []
    world.forget()
    world.wait(86_400_000)

    def rename(step):
        if step.startswith("delete_tree") and "/before/" in step and not done:
            done.extend(Hive(world).rename_table("fin.rescue", "fin.rescued"))

    world.files.before_step = rename
    selected = Selection(tables=("sales.before", "sales.events"))
    cleanup.clean_up(a_context(world.cluster, selected, "20260901t020304z-0000", Settings(min_age_ms=0)))
    assert done and rows and world.rows_of("fin.rescued") == rows


def test_a_table_is_not_compacted_over_the_files_of_one_that_was_renamed_while_a_table_before_was_compacted():
    """As by a nightly job, `new` to `events`. A tenant's table lies in its directory, and is refused in all other nights."""
    desk = desk_by(["dt"])
    world = desk.world
    stored = world.table("sales.events")
    list(Hive(world).rename_table("sales.events", "sales.new"))
    mine = replace(stored, database="loader", name="mine", create_time=88)
    world.catalog.add_table(mine, list(world.partitions("sales.new").values()))
    world.add_table(replace(a_table(["dt"], name="before", create_time=6), database="loader"), {"dt=1": [1000] * 3})
    before, done = {path: one for path, one in world.picture().items() if path.startswith(stored.location)}, []

    def rename(step):
        if step.startswith("rename_exact") and "/before/" in step and not done:
            done.extend(Hive(world).rename_table("sales.new", "sales.events"))

    world.files.before_step = rename
    selected = Selection(tables=("loader.before", "loader.mine"))
    result = compact_swap.compact_swap(a_context(world.cluster, selected, "20260901t020304z-0000", desk.settings))
    assert done and result.tables[1].table == "loader.mine"
    assert {path: one for path, one in world.picture().items() if path.startswith(stored.location)} == before
