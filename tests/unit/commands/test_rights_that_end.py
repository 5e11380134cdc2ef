"""Rights that end while a unit is away: a run over a database passes over tables that it may not read, but not over such a one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.commands import rollback as rollback_command
from hivekeeper.model import Selection
from hivekeeper.ports import NoPermission
from hivekeeper.reasons import Code
from support import joined_desk
from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.hdfs_user import own
from support.hive_statements import Hive
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
COMMANDS = {
    "compact": compact_swap.compact_swap,
    "rollback": lambda context: rollback_command.rollback(replace(context, confirm=lambda _: True)),
}


def set_up(columns=("dt",), units=("dt=1", "dt=2"), kind="EXTERNAL_TABLE"):
    world = World()
    world.add_table(a_table(columns, kind=kind, create_time=5), {unit: [1000] * 3 for unit in units})
    world.add_table(a_table(["dt"], name="other", create_time=6), {"dt=1": [1000] * 3})
    return Desk(world, backup_table=False)


def run_on_database(desk, command):
    result = COMMANDS[command](replace(desk._context(), selection=Selection(databases=("sales",))))
    return result.code, [one.problem.code for one in result.tables if one.problem]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("shape", ["flat", "partitioned"])
@pytest.mark.parametrize("closed", ["the unit", "the table"])
def test_a_unit_that_is_away_is_in_no_refused_table(command, shape, closed):
    desk = set_up((), ("",)) if shape == "flat" else set_up()
    world, live, met = desk.world, desk.live("" if shape == "flat" else "dt=1"), []
    if command == "rollback":
        for table in ("sales.other", "sales.events"):
            desk.table = table
            desk.compact()

    def act(what):
        if not met and what.startswith("rename_exact") and what.endswith(f"/u00001 {live}"):
            met.append(what)
            world.fail_call(what, done=False)
            away = desk.control.run(desk.runs[-1]).unit("retired", 1)
            world.files.namespace.unreadable.add(away if closed == "the unit" else f"{HOME}/events")

    world.files.before_step = act
    told = run_on_database(desk, command)
    assert met and world.files.namespace.find(live) is None
    assert told == (Exit.INVESTIGATE, [Code.UNSETTLED])


def test_a_unit_that_may_not_be_read_does_not_hide_what_became_of_another_one():
    desk = set_up(kind="MANAGED_TABLE")
    world, live, met = desk.world, desk.live("dt=1"), []

    def act(what):
        if not met and what.startswith("rename_exact") and what.endswith(f"/ready/u00001 {live}"):
            met.append(what)
            list(Hive(world).rename_partition("sales.events", "dt=1", "dt=9"))
            world.files.namespace.unreadable.add(desk.live("dt=2"))

    world.files.before_step = act
    told = run_on_database(desk, "compact")
    assert met and not world.rows_of("sales.events")["events/dt=1/0"]
    assert told == (Exit.INVESTIGATE, [Code.UNSETTLED])


def test_a_directory_that_may_not_be_listed_stays_aside_and_the_unit_comes_back():
    desk = set_up()
    world, live, met = desk.world, desk.live("dt=1"), []
    space = world.files.namespace

    def act(what):
        if not met and what.startswith(f"rename_exact {live} "):
            met.append(what)
            world.files.writer.start_committer(live)
        elif len(met) == 1 and space.find(live) is None:
            met.append(what)
            world.files.writer.add(f"{live}/new.parquet", DataFile(("new",)), 100)
            own(space.directory(live), "bob", "bob", 0o700)
            # Wherever a recovery renames the run to.
            space.unreadable.update(desk.control.run(f"{desk.runs[-1]}{taken}").recreated(1, 0) for taken in ("", ".t1", ".t2"))

    world.files.before_step = act
    codes = [desk.compact("dt = '1'").code]
    assert len(met) == 2 and world.rows_of("sales.events")["events/dt=1/0"] == 1
    world.wait(3_600_000)
    codes += [desk.recover().code, desk.compact("dt = '2'").code]
    # It is told once.
    assert codes == [Exit.INVESTIGATE, Exit.DONE, Exit.DONE]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_on_which_work_was_done_that_could_not_be_recorded_is_not_passed_over(command):
    desk, met = set_up(), []
    if command == "rollback":
        for table in ("sales.other", "sales.events"):
            desk.table = table
            desk.compact()

    def act(what):
        if not met and what.startswith("rename_exact") and "/events/" in what and "/entry.json " in what:
            met.append(what)
            desk.world.files.fail_next("rename_exact", NoPermission("denied"))

    desk.world.files.before_step = act
    code, problems = run_on_database(desk, command)
    assert met and problems == [Code.NO_PERMISSION]
    assert code is Exit.PARTIAL


def test_rows_that_a_joined_file_is_to_give_back_are_in_no_refused_table():
    """Recovery may not list the directory that it left. What waits for that is no unit that has left live."""
    desk = joined_desk.a_desk()
    desk.world.add_table(a_table(["dt"], name="other", create_time=6), {"dt=1": [1000] * 3})
    joined_desk.kill_in_put_back(desk, ["rename_exact", "copy-", "/dt=1/part"], desk.compact)
    assert joined_desk.rows(desk) == ["large"]
    desk.world.files.namespace.unreadable.add(desk.live("dt=1"))
    assert run_on_database(desk, "compact") == (Exit.INVESTIGATE, [Code.UNSETTLED])
