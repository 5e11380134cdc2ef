"""Somebody drops a table of their own while `doctor` looks at the tables of its database: nothing on this machine is to be fixed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.doctor import Subject, check_up
from hivekeeper.model import Selection
from hivekeeper.plan.doctor import FIX, SKIP
from hivekeeper.ports import NoPermission
from support.builders import a_table
from support.contexts import PREFIX, QUIET
from support.world import World
from unit.commands.test_doctor import HealthyProbes

RUN = "20260101t020304z-0000"


# A database's tables, and one by one: then a name may be misspelt.
OF_A_DATABASE, NAMED = Selection(databases=("sales",)), Selection(tables=("sales.events", "sales.tmp"))


def check_up_while_one_is_dropped(monkeypatch, selected, broken):
    world = World()
    for name in ("events", "tmp"):
        world.add_table(a_table(["dt"], name=name), {"dt=1": [1]})
    names = world.metastore.table_names

    def drop_behind(database):
        told = names(database)
        world.catalog.drop_table("sales.tmp")
        return told

    monkeypatch.setattr(world.metastore, "table_names", drop_behind)
    if not selected.databases:
        world.catalog.drop_table("sales.tmp")

    @contextmanager
    def open_probes():
        yield HealthyProbes(world, broken)

    return check_up(open_probes, world.clock, Subject(selected, lambda _table: QUIET, PREFIX, RUN))


@pytest.mark.parametrize("broken", [{}, {"room": NoPermission("/warehouse/sales/events")}], ids=["all is well", "a right is missing"])
def test_a_table_of_a_database_that_is_dropped_meanwhile_is_no_fault_of_this_machine(monkeypatch, broken):
    found = check_up_while_one_is_dropped(monkeypatch, OF_A_DATABASE, broken)
    assert found.code is (Exit.UNUSABLE if broken else Exit.DONE)
    assert [(one.level, one.cause) for one in found.checks if one.table == "sales.tmp"] == [(SKIP, "no-such-table")]


@pytest.mark.parametrize("selected", [NAMED, replace(NAMED, databases=("sales",))], ids=["alone", "with its database"])
def test_a_table_that_was_named_is_to_be_found(monkeypatch, selected):
    found = check_up_while_one_is_dropped(monkeypatch, selected, {})
    assert found.code is Exit.USAGE
    assert [(one.level, one.cause) for one in found.checks if one.table == "sales.tmp"] == [(FIX, "no-such-table")]
