"""Correcting backup tables on the fakes."""

from __future__ import annotations

from dataclasses import replace

from hivekeeper import names
from hivekeeper.steps import backup_tables
from support.builders import a_table
from support.desk import Desk
from support.world import World


def test_what_others_add_to_a_backup_table_is_dropped_a_part_at_a_time(monkeypatch):
    """Each is a request, and there may be a million."""
    monkeypatch.setattr(backup_tables, "MOST_TRIMMED", 3)
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    catalog = world.cluster.metastore.catalog
    (backup,) = [name for name, table in catalog.tables.items() if names.BACKUP_OF in table.parameters]
    (own,) = catalog.partitions[backup].values()
    for day in range(2, 10):
        catalog.add_partition(backup, replace(own, name=f"dt={day}", values=(str(day),)))
    left = []
    for _ in range(3):
        desk.append("dt=1", "a", "b", "c")
        before = len(catalog.partitions[backup])
        desk.compact()
        left.append(before - len(catalog.partitions[backup]))
    assert max(left) <= 6
    assert list(catalog.partitions[backup]) == ["dt=1"]
