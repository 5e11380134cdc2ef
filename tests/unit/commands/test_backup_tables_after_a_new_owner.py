"""A table that got another owner (`ALTER TABLE … SET OWNER`): its backup tables belong to the former one."""

from __future__ import annotations

from dataclasses import replace

from hivekeeper.codes import Exit
from support.desk import EVERYTHING
from support.leftovers import build, wait


def test_they_go_with_what_they_show_and_the_table_can_be_forgotten():
    desk = build("flat", compactions=1)
    world = desk.world
    (name,) = [name for name in world.tables() if "__bkp_events" in name]
    world.catalog.put_table(replace(world.table(name), owner="alice"))
    world.catalog.put_table(replace(world.table(desk.table), owner="bob"))
    wait(desk, 30)
    assert desk.cleanup(EVERYTHING).code is Exit.DONE
    assert not desk.log().standing
    result = desk.forget()
    assert (result.code, name in world.tables()) == (Exit.DONE, False)
