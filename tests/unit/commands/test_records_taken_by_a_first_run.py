"""What a first run of one table takes from another one."""

from __future__ import annotations

from hivekeeper import names
from support.builders import a_table
from support.desk import Desk
from support.world import World


def test_the_records_of_another_table_are_not_moved_to_the_place_of_the_new_control_directory():
    """Whoever may rename a table's directory, and write to nothing in it, has it at the name of the closed one for a moment."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    world.add_table(a_table(["dt"], name="orders", create_time=77), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    events, orders = Desk(world), Desk(world, "sales.orders")
    rows = world.rows_of("sales.orders")
    orders.kill_before([f"/ready/u00001 {orders.live('dt=1')}"], orders.compact)
    assert world.rows_of("sales.orders") != rows
    home, writer = names.parent(orders.control.top), world.files.writer
    done = []

    def exchange(step):
        if step.startswith("hold.rename ") and not done:
            closed = names.parent(step.split()[1])
            writer.rename_into(closed, f"{names.parent(closed)}/.aside")
            writer.rename_into(home, closed)
            done.append(closed)
        elif step.startswith(("hold.tidy ", "hold ")) and len(done) == 1:
            done.append(step)
            writer.rename_into(done[0], home)

    world.files.before_step = exchange
    events.compact()
    world.files.before_step = None
    orders.recover()
    orders.compact()
    assert world.rows_of("sales.orders") == rows
