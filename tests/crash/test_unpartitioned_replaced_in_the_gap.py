"""A managed table without partitions is replaced in the gap of a run. Its control directory is beside its directory, so it does not go
along, and what a run brings in by path goes to the other table's place (docs/swap.md: `DROP TABLE`, `CREATE TABLE`: nothing is moved into
it).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.hive_statements import Hive
from support.world import World

TABLE, BUILT, RENAMED = "sales.events", "sales.events_new", "sales.events_old"


def drop_and_create(hive):
    stored = hive.catalog.tables[TABLE]
    yield from hive.drop_table(TABLE)
    yield "create"
    hive.space.make_directory(stored.location)
    hive.catalog.add_table(replace(stored, create_time=stored.create_time + 99))


def rename_built(hive):
    yield from hive.rename_table(TABLE, RENAMED)
    yield from hive.rename_table(BUILT, TABLE)


@pytest.mark.parametrize("command", ["compact", "rollback"])
@pytest.mark.parametrize("statements", [drop_and_create, rename_built])
def test_nothing_is_moved_into_the_table_that_has_the_name_now(statements, command):
    world = World()
    world.add_table(a_table([], kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    if statements is rename_built:
        world.add_table(a_table([], kind="MANAGED_TABLE", name="events_new", create_time=6), {"": [1000] * 2})
    desk, calls = Desk(world, backup_table=False), statements(Hive(world))
    if command == "rollback":
        desk.compact()
    live, done = desk.live(), []

    def act(what):
        if not done and f"/u00001 {live}" in what and what.startswith("rename_exact"):
            done.append(what)
            list(calls)

    world.files.before_step = act
    getattr(desk, command)()
    world.files.before_step = None
    assert done, "no such step"
    found = [row for content in world.files.contents(live).values() if isinstance(content, DataFile) for row in content.rows]
    assert not [row for row in found if row.startswith("events//")]
