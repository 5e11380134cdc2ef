"""A defect around a table gives one clear error with the right code, whichever command meets it."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable, MetastoreNoTicket, NoSpace, NoTicket
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.world import World

WRITERS = ("compact", "backup", "rollback", "cleanup", "recover")
READERS = ("verify", "history")


def a_desk(partitioned):
    world = World()
    world.add_table(a_table(["dt"] if partitioned else ()), {name: [1000] * 3 for name in (("dt=1", "dt=2") if partitioned else ("",))})
    world.files.namespace.advance(3_600_000)
    return Desk(world)


@pytest.fixture(params=[True, False], ids=["partitioned", "unpartitioned"])
def desk(request):
    return a_desk(request.param)


def problem_of(result):
    (table,) = result.tables
    assert table.problem is not None, table
    assert (table.problem.what, table.problem.state, table.problem.next) != ("", "", "")
    return table.problem.code, result.code


@pytest.mark.parametrize("command", WRITERS + READERS)
def test_a_file_in_place_of_the_control_directory_is_named(desk, command):
    desk.world.files.writer.add(desk.control.top, "something")
    rows = desk.world.rows_of(desk.table)
    result = getattr(desk, command)()
    assert problem_of(result) == (Code.CONTROL_NOT_A_DIRECTORY, Exit.REFUSED)
    assert desk.control.top in result.tables[0].problem.what
    assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("command", WRITERS)
def test_a_control_directory_without_rights_is_a_matter_of_rights(desk, command):
    desk.compact()
    desk.append("dt=1" if desk.world.table(desk.table).partitioned else "", "a", "b")
    desk.world.files.namespace.denied.add(desk.world.files.qualify(desk.control.top))
    assert problem_of(getattr(desk, command)()) == (Code.NO_PERMISSION, Exit.REFUSED)


def test_a_full_disk_under_the_records_is_a_matter_of_space_and_the_next_run_goes_on(desk):
    desk.world.files.fail_next("write_new", NoSpace("No space left on device"))
    result = desk.compact()
    assert problem_of(result) == (Code.NOT_ENOUGH_SPACE, Exit.UNUSABLE)
    assert result.tables[0].problem.what == "sales.events: there is no space left for records or files: No space left on device"
    assert desk.compact().code is Exit.DONE


@pytest.mark.parametrize(
    "error", [NoTicket("there is no valid Kerberos ticket"), FilesUnavailable("the connection broke")], ids=["ticket", "other"]
)
def test_a_missing_ticket_has_a_code_of_its_own(desk, error):
    desk.world.files.fail_next("write_new", error)
    assert problem_of(desk.compact()) == (Code.NO_TICKET if isinstance(error, NoTicket) else Code.FILE_SYSTEM_UNUSABLE, Exit.UNUSABLE)
    assert MetastoreNoTicket.code is Code.NO_TICKET


STEPS = ("/plan.json", "/stage/", "/ready/u00001 ", "/entry.json")


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "created-again"])
@pytest.mark.parametrize("step", STEPS)
def test_a_table_that_is_dropped_while_it_is_compacted_is_called_dropped(step, again):
    """Everything in it is gone, including a partitioned table's control directory, as when Hive drops one with external.table.purge."""
    desk, dropped = a_desk(partitioned=True), []
    world = desk.world

    def drop(what):
        if step in what and not dropped:
            dropped.append(what)
            world.drop_table(desk.table, create_again=again)

    world.files.before_step = drop
    result = desk.compact()
    assert dropped
    assert problem_of(result) == (Code.CONTROL_GONE, Exit.INVESTIGATE)
