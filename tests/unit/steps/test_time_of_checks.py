"""Somebody keeps as many hidden files as are allowed in the root of a table, so that a look at them takes longer than a check may, and
changes the root on and on: no partition can be checked, each in as much time as is given to one.
"""

from __future__ import annotations

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.world import World

UNITS, MS_OF_LOOK, MINUTE_MS = 200, 450, 60_000


def a_desk():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {f"dt={nth}": [1000] * 2 for nth in range(UNITS)})
    return Desk(world, backup_table=False)


def change_on_and_on(desk, monkeypatch, ms=MS_OF_LOOK):
    """While it is looked at, that is: until the copies are proved it is quiet."""
    files, root, nth = desk.world.files, desk.live(), iter(range(10**6))
    look = files.look_hidden

    def look_hidden(places, *most):
        seen = look(places, *most)
        if root in places:
            desk.world.clock.elapsed_ms += ms
            files.namespace.advance(ms)
            files.writer.make_directory(f"{root}/.x{next(nth)}")
            files.writer.delete(f"{root}/.x{next(nth) - 1}")
            files.namespace.advance(10)
        return seen

    monkeypatch.setattr(files, "look_hidden", look_hidden)


def test_a_run_gives_up_some_minutes_after_it_began_to_check_in_vain(monkeypatch):
    desk = a_desk()
    change_on_and_on(desk, monkeypatch)
    result = desk.compact()
    codes = {unit.why and unit.why.code for unit in result.tables[0].units}
    assert result.code is Exit.PARTIAL
    assert codes == {Code.KEEPS_CHANGING}
    assert desk.world.clock.elapsed_ms < 11 * MINUTE_MS
