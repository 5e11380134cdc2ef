"""A tenant of one metastore points a table beside those of another one: `cleanup --orphans` takes these for dropped."""

from __future__ import annotations

import pytest

from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

# Of the database `sales` of the other metastore, which this one has, too.
PLACE = "hdfs://nn/production/sales.db"


@pytest.mark.parametrize("is_pointed", [False, True])
def test_old_files_of_tables_that_another_metastore_has_stay_wherever_a_tenant_points_a_table(is_pointed):
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/development/sales.db"
    world.add_table(a_table(["dt"], location=f"{PLACE}/events", create_time=5), {"dt=1": [1000] * 3})
    world.add_table(a_table(["dt"], name="other", location="hdfs://nn/development/sales.db/other", create_time=6), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.compact()
    top = desk.control.top
    # From here on the metastore is the other one, to which nothing else than this table is unknown.
    world.catalog.drop_table(desk.table)
    if is_pointed:
        world.catalog.add_table(a_table(["dt"], name="mine", location=f"{PLACE}/no-such-directory", create_time=77), [])
    before = world.files.contents(top)
    for nth in range(3):
        world.files.namespace.advance(30 * 86_400_000)
        context = a_context(world.another_process(), Selection(databases=("sales",)), f"2026060{nth + 1}t020304z-0000", Settings())
        clean_up_orphans(context)
    assert world.files.contents(top) == before


@pytest.mark.parametrize(("at", "goes"), [("mine", True), ("events", False), ("beside", False)])
def test_they_go_only_beside_a_log_of_a_table_of_this_metastore_alone(at, goes):
    """As beside each external table that was compacted; a table at the place of one of the others has no log of its own there."""
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/development/sales.db"
    names = ("events", "beside")
    for nth, name in enumerate(names):
        world.add_table(a_table(["dt"], name=name, location=f"{PLACE}/{name}", create_time=5 + nth), {"dt=1": [1000] * 3})
        Desk(world, f"sales.{name}", backup_table=False).compact()
    for name in names:
        world.catalog.drop_table(f"sales.{name}")
    world.add_table(a_table(["dt"], name="mine", location=f"{PLACE}/{at}", create_time=77), {"dt=2": [1000] * 3})
    world.files.namespace.advance(2 * 3_600_000)
    Desk(world, "sales.mine", backup_table=False).compact()
    leftover = f"{PLACE}/{'beside' if at == 'events' else 'events'}/.hivekeeper"
    before = world.files.contents(leftover)
    for nth in range(3):
        world.files.namespace.advance(30 * 86_400_000)
        context = a_context(world.another_process(), Selection(databases=("sales",)), f"2026060{nth + 1}t020304z-0000", Settings())
        clean_up_orphans(context)
    assert any("/retired/" in path for path in before)
    assert world.files.contents(leftover) == ({} if goes else before)


@pytest.mark.parametrize("columns", [["dt"], []], ids=["partitioned", "flat"])
@pytest.mark.parametrize("is_begun", [False, True])
def test_a_whole_log_that_a_tenant_has_called_like_one_set_aside_stays(columns, is_begun):
    """Whoever writes to a table of the other metastore may rename what is in its root. The lock is deleted first, by a run alone."""
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/development/sales.db"
    world.add_table(a_table(columns, location=f"{PLACE}/events", create_time=5), {"dt=1" if columns else "": [1000] * 3})
    world.add_table(a_table(["dt"], name="other", location="hdfs://nn/development/sales.db/other", create_time=6), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.compact()
    desk.cleanup()
    aside = desk.control.removed("20260101t000000z-0000")
    world.files.rename_exact(desk.control.top, aside)
    if is_begun:
        world.files.delete_file(f"{aside}/_lock")
    world.catalog.drop_table(desk.table)
    world.catalog.add_table(a_table(["dt"], name="mine", location=f"{PLACE}/no-such-directory", create_time=77), [])
    before = world.files.contents(aside)
    clean_up_orphans(a_context(world.another_process(), Selection(databases=("sales",)), "20260601t020304z-0000", Settings()))
    assert before and world.files.contents(aside) == ({} if is_begun else before)


def test_one_that_was_given_that_name_with_backups_in_it_comes_back():
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/development/sales.db"
    world.add_table(a_table(["dt"], location=f"{PLACE}/events", create_time=5), {"dt=1": [1000] * 3})
    world.add_table(a_table(["dt"], name="mine", location=f"{PLACE}/no-such-directory", create_time=77), {})
    desk = Desk(world, backup_table=False)
    desk.compact()
    control = desk.control
    before = world.files.contents(control.top)
    world.files.rename_exact(control.top, control.removed("20260101t000000z-0000"))
    world.catalog.drop_table(desk.table)
    clean_up_orphans(a_context(world.another_process(), Selection(databases=("sales",)), "20260601t020304z-0000", Settings()))
    assert world.files.contents(control.top) == before
