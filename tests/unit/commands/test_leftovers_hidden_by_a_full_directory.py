"""Somebody fills the directory that a table of theirs lies in: what is left beside tables of others in the same database is told."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.plan.orphans import OrphanKind
from hivekeeper.steps import orphans
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

RUN = "20260101t020304z-0000"
MOST = 40


# How full that directory is, in how many others tables of the database lie, and how many directories lie beside the records: in the second
# case more than an equal share, but less than one of what the others leave.
CASES = [(MOST, 0, 0), (30, 6, 8)]


@pytest.mark.parametrize(("full", "others", "beside"), CASES)
@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_whichever_directory_comes_first(monkeypatch, caplog, name, full, others, beside):
    monkeypatch.setattr(orphans, "MOST_LISTED", MOST)
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    world.files.writer.make_directory("hdfs://nn/warehouse/sales")
    for nth, one in enumerate(("gone", "stays")):
        world.add_table(a_table(["dt"], name=one, location=f"hdfs://nn/data/raw/{one}", create_time=7 + nth), {"dt=1": [1000] * 3})
        Desk(world, f"sales.{one}").compact()
    world.catalog.drop_table("sales.gone")
    # No more than may be listed, and nothing there looks like a record.
    world.catalog.add_table(a_table(name="mine", location=f"hdfs://nn/data/{name}/mine", create_time=9), [])
    for nth in range(full - 1):
        world.files.writer.make_directory(f"hdfs://nn/data/{name}/d{nth}")
    for nth in range(others):
        world.catalog.add_table(a_table(name=f"other{nth}", location=f"hdfs://nn/data/other{nth}/t", create_time=9), [])
    for nth in range(beside):
        world.files.writer.make_directory(f"hdfs://nn/data/raw/d{nth}")
    world.files.namespace.advance(2 * 3_600_000)
    (found,) = show_orphans(a_context(world.cluster, Selection(databases=("sales",)), RUN, Settings())).tables
    assert found.code is Exit.DONE
    assert [one.place for one in found.orphans if one.kind is OrphanKind.RECORDS] == ["hdfs://nn/data/raw/gone/.hivekeeper"]
    assert f"hdfs://nn/data/{name} is left out" in caplog.text
