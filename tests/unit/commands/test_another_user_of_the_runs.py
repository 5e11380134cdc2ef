"""Another user runs Hivekeeper from now on, no superuser, who trusts the former one (`trusted_owners`) but may not read the records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap, recover
from hivekeeper.model import Selection
from hivekeeper.ports import NoPermission
from hivekeeper.reasons import Code
from support import joined_desk
from support.builders import a_table
from support.contexts import a_context

COMMANDS = {"compact-swap": compact_swap.compact_swap, "recover": recover.recover}


def close_records(files, top):
    """To whoever runs from now on: the lock and all records have mode 600."""

    def denied(call):
        def asked(what, *more):
            wanted = what if isinstance(what, (list, tuple)) and not hasattr(what, "path") else [what]
            if any(getattr(one, "path", one).startswith(top) for one in wanted):
                raise NoPermission(f"{top}: permission denied")
            return call(what, *more)

        return asked

    for method in ("hold", "read_texts", "read_pieces", "read_bytes"):
        setattr(files, method, denied(getattr(files, method)))


def run_over_database(desk, command):
    """As a process of its own does, that has read nothing yet."""
    cluster = replace(desk.world.cluster, log_entries={})
    result = COMMANDS[command](a_context(cluster, Selection(databases=("sales",)), desk._new_run(), desk.settings))
    return result.code, {one.table: one.problem and one.problem.code for one in result.tables}


@pytest.fixture(autouse=True)
def another_table(desk, world):
    """Whose work goes well."""
    world.add_table(a_table(["dt"], name="orders"), {"dt=1": [1000] * 3})
    desk.compact()
    desk.append("dt=1", "x", "y")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_unit_that_the_former_ones_killed_run_has_away_is_told(desk, world, command):
    desk.kill_before(["ready/u00001", "dt=1"], desk.compact)
    assert world.files.namespace.find(desk.live("dt=1")) is None
    close_records(world.files, desk.control.top)
    assert run_over_database(desk, command) == (Exit.INVESTIGATE, {"sales.events": Code.UNSETTLED, "sales.orders": None})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_of_which_nothing_is_away_is_passed_over(desk, world, command):
    desk.compact()
    close_records(world.files, desk.control.top)
    assert run_over_database(desk, command) == (Exit.DONE, {"sales.events": Code.NO_PERMISSION, "sales.orders": None})


def test_so_it_is_of_a_table_that_is_to_be_left_alone_by_now(desk, world):
    desk.kill_before(["ready/u00001", "dt=1"], desk.compact)
    world.set_property(desk.table, **{"hivekeeper.skip": "true"})
    close_records(world.files, desk.control.top)
    assert run_over_database(desk, "compact-swap") == (Exit.INVESTIGATE, {"sales.events": Code.UNSETTLED, "sales.orders": None})


def test_so_are_rows_that_a_joined_file_is_to_give_back():
    desk = joined_desk.a_desk()
    desk.compact("dt = '2'")
    assert desk.log().runs
    joined_desk.kill_in_put_back(desk, ["rename_exact", "copy-", "/dt=1/part"], desk.compact)
    assert joined_desk.rows(desk) == ["large"]
    close_records(desk.world.files, desk.control.top)
    assert run_over_database(desk, "compact-swap") == (Exit.INVESTIGATE, {"sales.events": Code.UNSETTLED})
