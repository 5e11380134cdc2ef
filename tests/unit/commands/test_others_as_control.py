"""A directory of another table at the place of a control directory: whoever may rename it there may not be allowed to read it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.world import World

COMMANDS = {
    "compact-swap": lambda desk: desk.compact(),
    "backup": lambda desk: desk.backup(),
    "cleanup": lambda desk: desk.cleanup(replace(desk.settings, min_age_ms=0)),
    "rollback": lambda desk: desk.rollback(),
    "recover": lambda desk: desk.recover(),
    "forget": lambda desk: desk.forget(),
}


def set_up(has_records):
    """A table that everybody may read, and one that is closed, whose directory our user owns: its copy could not be given away."""
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    world.add_table(a_table(name="orders"), {"": [1000] * 3})
    desk = Desk(world)
    if has_records:
        assert desk.compact().code is Exit.DONE
        desk.append("dt=1", "a", "b", "c")
    orders = world.table("sales.orders").location
    node = world.files.namespace.find(orders)
    node.attributes = replace(node.attributes, mode=0o700)
    return desk, orders


def picture(desk, place):
    nodes = [(place, desk.world.files.namespace.find(place)), *desk.world.files.namespace.walk(place)]
    return {path[len(place) :]: (node.attributes, node.content) for path, node in nodes}


def put_in_place(desk, orders):
    writer, top = desk.world.files.writer, desk.control.top
    if desk.world.files.stat(top) is not None:
        writer.rename_into(top, names.parent(top) + "/.ours")
    writer.rename_into(orders, top)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("has_records", [True, False])
def test_it_gets_neither_the_lock_nor_records_nor_the_rights_of_the_table(command, has_records):
    desk, orders = set_up(has_records)
    before = picture(desk, orders)
    put_in_place(desk, orders)
    result = COMMANDS[command](desk)
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.UNKNOWN_FILES)
    assert picture(desk, desk.control.top) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_nor_does_it_if_it_comes_there_just_when_the_lock_is_taken(command):
    desk, orders = set_up(has_records=True)
    before = picture(desk, orders)

    def exchange(step):
        if step.startswith("hold "):
            desk.world.files.before_step = None
            put_in_place(desk, orders)

    desk.world.files.before_step = exchange
    assert COMMANDS[command](desk).tables[0].problem.code is Code.UNKNOWN_FILES
    assert picture(desk, desk.control.top) == before


def test_what_a_killed_doctor_leaves_in_a_control_directory_is_no_reason():
    desk, _ = set_up(has_records=False)
    desk.world.files.make_directory(f"{desk.control.top}/{names.trial_directory('20260101t000000z-0000')}/x")
    assert desk.compact().code is Exit.DONE
