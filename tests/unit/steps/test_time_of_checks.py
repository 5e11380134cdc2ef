"""Somebody keeps thousands of hidden files in the root of a table, which each check of a partition lists, or changes the root on and on."""

from __future__ import annotations

from support.builders import a_table
from support.desk import Desk, outcomes
from support.world import World

UNITS, MS_OF_LOOK = 30, 60_000


def a_desk():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {f"dt={nth:02d}": [1000] * 2 for nth in range(UNITS)})
    return Desk(world, backup_table=False, batch_units=20)


def slow_down(desk, monkeypatch, act=lambda: None, ms=MS_OF_LOOK):
    """Each look of a check at what is hidden in the root takes a while; then `act` is called. Returns how many units each job copies."""
    files, root, look, write, copied = desk.world.files, desk.live(), desk.world.files.look_hidden, desk.world.rows.write_stage, []

    def look_hidden(places, *most):
        seen = look(places, *most)
        if root in places and copied:
            desk.world.clock.elapsed_ms += ms
            files.namespace.advance(ms)
            act()
        return seen

    def write_stage(batch):
        copied.append(len(batch.units))
        return write(batch)

    monkeypatch.setattr(files, "look_hidden", look_hidden)
    monkeypatch.setattr(desk.world.rows, "write_stage", write_stage)
    return copied


def test_units_whose_checks_are_slow_are_each_checked_once(monkeypatch):
    """No attacker needed: each swap changes the time of the directory around its unit, by which the next check tells what it has seen."""
    desk, checks = a_desk(), []
    slow_down(desk, monkeypatch, lambda: checks.append(1), ms=200)
    assert outcomes(desk.compact()) == dict.fromkeys((f"dt={nth:02d}" for nth in range(UNITS)), "swapped")
    assert len(checks) == UNITS
