"""A tenant hides what dropped tables of others have left, by a name beside them or a table of the other kind at their place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.plan.orphans import OrphanKind
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

PLACE = "hdfs://nn/warehouse/sales/events"
BESIDE = "hdfs://nn/warehouse/sales/.hivekeeper-events"


def drop_compacted(columns):
    """A compacted table that was dropped with its files kept, as that of an external one; and another one beside it."""
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    world.add_table(a_table(columns, create_time=5), {"dt=1" if columns else "": [1000] * 3})
    world.add_table(a_table(["dt"], name="other", create_time=6), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    control = desk.control.top
    world.catalog.drop_table(desk.table)
    world.files.namespace.advance(2 * 3_600_000)
    return world, control


def find_records(world):
    (outcome,) = show_orphans(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000", Settings())).tables
    assert outcome.code is Exit.DONE, outcome.problem
    return [one for one in outcome.orphans if one.kind is OrphanKind.RECORDS]


def test_a_directory_of_somebody_else_beside_it_does_not_hide_what_a_partitioned_table_has_left():
    world, control = drop_compacted(["dt"])
    world.files.writer.make_directory(BESIDE)
    world.files.namespace.directory(BESIDE).attributes = replace(world.files.namespace.directory(BESIDE).attributes, owner="mallory")
    assert control in [one.place for one in find_records(world)]


@pytest.mark.parametrize(("dropped", "heir"), [(["dt"], []), ([], ["dt"])], ids=["flat-heir", "partitioned-heir"])
def test_a_table_of_the_other_kind_at_its_place_does_not_hide_what_a_table_has_left(dropped, heir):
    world, control = drop_compacted(dropped)
    own = replace(a_table(heir, name="heir", location=PLACE, create_time=9), database="fin")
    world.catalog.add_table(own, [])
    assert control in [one.place for one in find_records(world)]
