"""A tenant sets the location of their table into a snapshot of the database's directory, which sites make each night. The table itself is
refused there (`reserved-name`). But what lies beside it in the snapshot, where nothing can be changed, is the past of all other tables: the
records of those that were dropped since are no leftovers that a command can let go.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.model import Selection
from support.contexts import a_context
from support.desk import Desk
from support.leftovers import HOME, build, clean, drop, leftovers, wait

SNAPSHOT = f"{HOME}/.snapshot/s0"


def make_snapshot(desk):
    space = desk.world.files.namespace
    for path, node in list(space.walk(HOME)):
        copy = SNAPSHOT + path[len(HOME) :]
        if node.is_dir:
            space.make_directory(copy)
        else:
            space.create(copy, node.content, node.length)
        made = space.find(copy)
        made.attributes, made.mtime_ms = node.attributes, node.mtime_ms


def build_with_table_in_snapshot(shape, worked_in):
    """`worked_in`: the tenant's table was compacted before the snapshot."""
    desk = build(shape)
    if worked_in:
        tenants = Desk(desk.world, "sales.other")
        tenants.runs = [f"20260101t0{number}0000z-0000" for number in range(3)]
        tenants.compact()
    make_snapshot(desk)
    drop(desk)
    for _ in range(2):
        clean(desk)
        wait(desk, 8)
    assert leftovers(clean(desk)) == []
    wait(desk, 1)
    table = desk.world.catalog.tables["sales.other"]
    desk.world.catalog.tables["sales.other"] = replace(table, location=f"{SNAPSHOT}/other")
    return desk


@pytest.mark.parametrize("worked_in", [True, False], ids=["worked in", "never worked in"])
@pytest.mark.parametrize("shape", ["flat", "partitioned"])
def test_a_night_over_the_database_ends_with_0(shape, worked_in):
    """S: the table's definition alone."""
    desk = build_with_table_in_snapshot(shape, worked_in)
    results = []
    for _ in range(3):
        results.append(clean(desk))
        wait(desk, 8)
    told = [([one.place for one in leftovers(result)], [one.problem for one in result.tables]) for result in results]
    assert [result.code for result in results] == [Exit.DONE] * 3, told


@pytest.mark.parametrize("shape", ["flat", "partitioned"])
def test_records_of_others_in_a_snapshot_are_not_told(shape):
    desk = build_with_table_in_snapshot(shape, True)
    context = a_context(desk.world.cluster, Selection(databases=("sales",)), "20260901t020304z-9999", desk.settings)
    found = show_orphans(context).tables[0].orphans or ()
    assert [one.place for one in found if ".snapshot" in one.place] == []


@pytest.mark.parametrize("name", ["new-0123456789abcdef0123456789abcdef", "removed-20260101t020304z-0000-gone"])
def test_what_killed_runs_have_left_in_a_snapshot_is_not_removed_there(name):
    """Also of a table that was never worked in."""
    desk = build("flat")
    desk.world.files.namespace.make_directory(f"{HOME}/.hivekeeper.{name}")
    node = desk.world.files.namespace.directory(f"{HOME}/.hivekeeper.{name}")
    node.attributes = replace(node.attributes, mode=0o700)
    make_snapshot(desk)
    desk.world.files.writer.delete(f"{HOME}/.hivekeeper.{name}")
    table = desk.world.catalog.tables["sales.other"]
    desk.world.catalog.tables["sales.other"] = replace(table, location=f"{SNAPSHOT}/other")
    wait(desk, 30)
    result = clean(desk)
    assert result.code is Exit.DONE, [one.problem for one in result.tables]
