"""As test_backups_of_dropped_tables_stay_closed.py, with both tables created in one second: their partition columns differ."""

from __future__ import annotations

from support.builders import a_table
from support.desk import Desk
from support.world import World
from unit.commands.test_backups_of_dropped_tables_stay_closed import close, may_be_reached_by_all


def test_they_are_not_opened_with_the_rights_of_the_other_table():
    world = World()
    world.add_table(a_table(name="orders", create_time=5), {"": [1000] * 3})
    world.add_table(a_table(["dt"], name="mine", create_time=5), {"dt=1": [1000] * 3})
    orders, mine = Desk(world, "sales.orders", backup_table=False), Desk(world, "sales.mine", backup_table=False)
    orders.compact()
    close(world, orders.live())
    orders.append("", "a", "b", "c")
    orders.compact()
    top = orders.control.top
    backups = [path for path in world.files.contents(top) if "/retired/" in path]
    world.drop_table("sales.orders")
    mine.runs = orders.runs
    world.files.writer.rename_into(top, mine.control.top)
    mine.compact()
    moved = [mine.control.top + path[len(top) :] for path in backups]
    assert [path for path in moved if world.files.stat(path) is None or may_be_reached_by_all(world, path)] == []
