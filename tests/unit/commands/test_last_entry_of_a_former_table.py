"""A table is created again while a command waits or works: nothing that this command does later is said of the former one in the log that
is the new one's by then, and what is said all the same decides nothing about the new one's backups.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import backup, compact_swap
from hivekeeper.model import Selection
from support.contexts import a_context
from support.desk import EVERYTHING, desk_by, outcomes
from support.hive_statements import Hive

HOURS_MS = 3 * 3_600_000


class PausedOnce:
    """A pause file is found at the first look, and is there for hours, in which something happens."""

    signal, is_limited = 0, False

    def __init__(self, world, meanwhile):
        self._world, self._meanwhile = world, [meanwhile]

    def why(self):
        while self._meanwhile:
            self._meanwhile.pop()()
            self._world.clock.sleep_ms(HOURS_MS)
        return ""

    def is_asked(self):
        return False

    def at_once(self):
        return nullcontext()


def create_again(desk):
    """And compact it twice; the first of these backups is pinned. Returns that run."""
    for _ in Hive(desk.world).drop_and_create(desk.table):
        pass
    for rows in ("abc", "def"):
        desk.append("", *rows)
        assert outcomes(desk.compact()) == {"": "swapped"}
        if rows == "abc":
            assert desk.pin(desk.runs[-1]).code is Exit.DONE
    return next(run.pin[0] for run in desk.log().runs if run.pin)


def tables_of(desk):
    """The tables that the log is about, by its entries, without repetitions."""
    return list(dict.fromkeys(run.table_id for run in desk.log().runs)), desk.log().table_id


@pytest.fixture
def desk():
    desk = desk_by([], backup_table=False, cleanup_requires="verified")
    assert desk.compact().code is Exit.DONE
    return desk


@pytest.mark.parametrize("work", [compact_swap.compact_swap, backup.back_up], ids=["compact", "backup"])
def test_the_definition_is_read_after_a_pause(desk, work):
    world = desk.world

    def meanwhile():
        create_again(desk)
        desk.append("", *"ghi")

    cluster = replace(world.cluster, stopping=PausedOnce(world, meanwhile))
    result = work(a_context(cluster, Selection(databases=("sales",)), "20260102t000000z-0000", desk.settings))
    assert result.code is Exit.DONE
    former, own = "sales.events@5", "sales.events@104"
    assert tables_of(desk) == ([former, own], own)


def test_nothing_is_recorded_as_verified_of_a_table_that_was_created_again_meanwhile(desk, monkeypatch):
    read = desk.world.rows.digests

    def digests(*arguments):
        monkeypatch.undo()
        found = read(*arguments)
        create_again(desk)
        return found

    monkeypatch.setattr(desk.world.rows, "digests", digests)
    assert desk.verify().code is Exit.DONE
    assert desk.log().table_id == "sales.events@104"
    assert "verify" not in {run.operation for run in desk.log().runs}


def test_a_rollback_to_a_pinned_run_stays_possible_after_an_entry_about_the_former_table(desk):
    former = desk.world.table(desk.table)
    pinned = create_again(desk)
    own = desk.world.table(desk.table)
    # As a command ends that has found the former table before.
    desk.world.catalog.put_table(former)
    assert desk.backup().code is Exit.DONE
    desk.world.catalog.put_table(own)
    assert desk.log().table_id == "sales.events@5"
    desk.cleanup(EVERYTHING)
    assert outcomes(desk.rollback(pinned)) == {"": "rolled-back"}
