"""Somebody keeps thousands of hidden files in the root of a table, which each check of a partition lists, or changes the root on and on."""

from __future__ import annotations

from collections import Counter

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk, outcomes
from support.world import World

UNITS, MS_OF_LOOK, MINUTE_MS = 30, 60_000, 60_000


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


def codes(result):
    return {unit.why.code for unit in result.tables[0].units if unit.why}


def test_what_is_hidden_above_units_holds_a_run_up_for_ten_minutes_and_the_next_ones_go_on(monkeypatch):
    desk = a_desk()
    copied, done = slow_down(desk, monkeypatch), []
    while sum(done) < UNITS and len(done) < 5:
        copied.clear()
        began_ms = desk.world.clock.elapsed_ms
        result = desk.compact()
        found = Counter(outcomes(result).values())
        done.append(found["swapped"])
        assert desk.world.clock.elapsed_ms - began_ms < 12 * MINUTE_MS
        if sum(done) < UNITS:
            assert (result.code, set(found), codes(result)) == (Exit.PARTIAL, {"swapped", "left"}, {Code.CHECKS_HELD_UP})
            assert copied == [20] or len(done) > 1
    assert (len(done), sum(done), result.code) == (3, UNITS, Exit.DONE)


def test_partitions_that_change_during_each_check_hold_a_run_up_for_ten_minutes(monkeypatch):
    desk = a_desk()
    before, writer = desk.world.rows_of(desk.table), desk.world.files.writer

    def change():
        writer.make_directory(f"{desk.live()}/.x")
        writer.delete(f"{desk.live()}/.x")
        desk.world.files.namespace.advance(10)

    copied, began_ms = slow_down(desk, monkeypatch, change), desk.world.clock.elapsed_ms
    result = desk.compact()
    assert desk.world.clock.elapsed_ms - began_ms < 13 * MINUTE_MS
    assert (result.code, set(outcomes(result).values())) == (Exit.PARTIAL, {"given-up", "left"})
    assert (codes(result), copied) == ({Code.KEEPS_CHANGING, Code.CHECKS_HELD_UP}, [20])
    assert desk.world.rows_of(desk.table) == before


def test_a_proved_copy_is_kept_that_may_be_the_only_one_although_a_run_was_held_up(monkeypatch):
    desk = a_desk()

    def lose():
        for _, node in desk.world.files.namespace.walk(desk.world.files.qualify(desk.live("dt=19"))):
            node.lost = (0, 0) if node.is_dir else (0, node.length)

    rows = desk.world.rows_below(desk.live("dt=19"))
    slow_down(desk, monkeypatch, lose)
    result = desk.compact()
    assert (result.code, outcomes(result)["dt=18"], outcomes(result)["dt=19"]) == (Exit.INVESTIGATE, "left", "misplaced")
    assert desk.world.rows_below(desk.control.run(desk.runs[0]).unit("kept", 20)) == rows


def test_a_rollback_ends_when_all_is_rolled_back(monkeypatch):
    """Somebody waits for it."""
    desk = a_desk()
    desk.compact()
    copied = slow_down(desk, monkeypatch)
    copied.append(0)
    assert set(outcomes(desk.rollback()).values()) == {"rolled-back"}


def test_units_whose_checks_are_slow_are_each_checked_once(monkeypatch):
    """No attacker needed: each swap changes the time of the directory around its unit, by which the next check tells what it has seen."""
    desk, checks = a_desk(), []
    slow_down(desk, monkeypatch, lambda: checks.append(1), ms=200)
    assert outcomes(desk.compact()) == dict.fromkeys((f"dt={nth:02d}" for nth in range(UNITS)), "swapped")
    assert len(checks) == UNITS


def test_units_of_which_every_other_one_is_slow_to_list_hold_up_nothing(monkeypatch):
    """No attacker needed: the time that serves for small ones is from before their swaps, so a large one after them is checked twice."""
    desk = a_desk()
    files, look = desk.world.files, desk.world.files.look

    def look_slowly(places, *most):
        if len(places) == 2 and "/ready/" in places[1] and places[0].endswith(tuple("02468")):
            desk.world.clock.elapsed_ms += MINUTE_MS
            files.namespace.advance(MINUTE_MS)
        return look(places, *most)

    monkeypatch.setattr(files, "look", look_slowly)
    assert set(outcomes(desk.compact()).values()) == {"swapped"}


def test_a_namenode_that_does_not_answer_for_a_while_ends_no_run(monkeypatch):
    """Nor does a machine that was suspended."""
    desk, waiting = a_desk(), [11 * MINUTE_MS]

    def wait():
        desk.world.clock.elapsed_ms += waiting.pop() if waiting else 0

    slow_down(desk, monkeypatch, wait, ms=0)
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert not waiting
