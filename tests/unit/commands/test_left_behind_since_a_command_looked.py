"""A command looks once for control directories beside tables without partitions. Another one makes one since, for a table that it works on
for the first time, and is killed in its gap; then that table takes another one's name, as each night, and gets new rows. The first command
comes to it: once the log at the new place has an entry about it, nobody asks for the old rows any more.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.fakes.files import Killed
from support.hive_statements import Hive
from support.world import World

GAP = "/ready/u00001 hdfs://nn/warehouse/sales/events"
SETTINGS = Settings(min_quiet_ms=0, backup_table=False)


def kill_in_gap(world):
    cluster = world.another_process()
    files = getattr(cluster.files, "inner", cluster.files)

    def die(what):
        if what.startswith("rename_exact") and GAP in what:
            files.die_after(0)

    files.before_step = die
    with suppress(Killed):
        compact_swap(a_context(cluster, Selection(tables=("sales.events",)), "20260101t010203z-0000", SETTINGS))
        raise AssertionError("it was not killed")


def take_name(world):
    for statement in (Hive(world).drop_table("sales.events2"), Hive(world).rename_table("sales.events", "sales.events2")):
        for _ in statement:
            pass
    for nth in range(3):
        world.add_file(f"hdfs://nn/warehouse/sales/events2/new{nth}.parquet", [f"new{nth}"])
    world.files.namespace.advance(60_000)
    world.clock.elapsed_ms += 60_000


def add_tables(world, first, of_events):
    """`first`: the columns by which the table before the others is partitioned."""
    for nth, name in enumerate(("a_first", "events", "events2")):
        columns = first if name == "a_first" else []
        table = a_table(columns, kind="MANAGED_TABLE", name=name, create_time=of_events if name == "events" else 4 + nth)
        if table.full_name not in world.catalog.tables:
            world.add_table(table, {"dt=1" if columns else "": [1000] * 3})


def require_told(world, beside_first=lambda: None):
    """While a command is at the first table."""
    done = []

    def act(what):
        if not done and "a_first" in what and what.startswith("rename_exact"):
            done.append(what)
            beside_first()
            kill_in_gap(world)
            take_name(world)

    world.files.before_step = act
    first = compact_swap(a_context(world.cluster, Selection(tables=("sales.a_first", "sales.events2")), "20260101t020304z-0000", SETTINGS))
    world.files.before_step = None
    assert done
    world.files.expire_locks()
    world.files.namespace.advance(3_600_001)
    later = Desk(world, "sales.events2", backup_table=False)
    later.runs.extend(["20260102t000000z-0000"] * 10)
    told = {table.table: table.problem.code for table in first.tables if table.problem}
    assert told.get("sales.events2") is Code.LEFT_BEHIND
    assert [later.recover().code, later.compact().code, later.verify().code] == [Exit.INVESTIGATE] * 3


@pytest.mark.parametrize("has_looked", [False, True])
def test_rows_of_a_run_that_was_killed_since_are_told(has_looked):
    world = World()
    # Beside a partitioned table nothing is looked for.
    add_tables(world, [] if has_looked else ["dt"], 5)
    require_told(world)


def test_rows_of_a_run_that_was_killed_since_are_told_where_records_were_already():
    """As the table has a new name each morning, its records of last night are beside no table when a command looks."""
    world = World()
    add_tables(world, [], 5)
    assert Desk(world, "sales.events", backup_table=False).compact().code is Exit.DONE
    for _ in Hive(world).drop_table("sales.events"):
        pass
    require_told(world, lambda: add_tables(world, [], 9))
