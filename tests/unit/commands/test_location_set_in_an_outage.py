"""A killed run has left a partition in its gap, and then the table's location is set elsewhere: its partitions stay where they are, and so
do the records of the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper import names, quoting
from hivekeeper.codes import Exit
from hivekeeper.commands import backup, cleanup, compact_swap, recover, rollback, verify
from hivekeeper.model import Selection
from hivekeeper.names import UnitNumber
from hivekeeper.reasons import Code
from support import joined_desk
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.desk import Desk, desk_by
from support.fakes.rows import DataFile
from support.world import World

MIB, DAY_MS = 2**20, 86_400_000
DATABASE, NAMED = Selection(databases=("sales",)), Selection(tables=("sales.events",))
NEW = "hdfs://nn/new/events"
COMMANDS = {
    "compact-swap": (compact_swap.compact_swap, DATABASE),
    "backup": (backup.back_up, DATABASE),
    "recover": (recover.recover, NAMED),
    "cleanup": (cleanup.clean_up, NAMED),
    "verify": (verify.verify, NAMED),
    "rollback": (rollback.rollback, NAMED),
}


def killed(by=("dt",), units=("dt=1", "dt=2")):
    world = World()
    world.add_table(a_table(by, create_time=5), {unit: [MIB] * 3 for unit in units})
    desk = Desk(world)
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    assert hidden(desk)
    return desk


def hidden(desk):
    return set(desk.world.rows_anywhere()) - set(desk.world.rows_of(desk.table))


def set_location(desk, place=NEW, **more):
    desk.world.files.writer.make_directory(place)
    desk.world.catalog.tables[desk.table] = replace(desk.world.table(desk.table), location=place, **more)


def run(desk, command, **more):
    work, selected = COMMANDS[command]
    return work(a_context(desk.world.another_process(), selected, desk._new_run(), desk.settings, **more))


def code_of(result):
    (table,) = result.tables
    return result.code, table.problem and table.problem.code


UNSETTLED = (Exit.INVESTIGATE, Code.UNSETTLED)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_table_ends_with_7_until_the_location_is_set_back(command):
    desk = killed()
    former = desk.live()
    set_location(desk)
    before = desk.world.picture()
    result = run(desk, command)
    assert code_of(result) == UNSETTLED
    assert f"SET LOCATION '{former}'" in result.tables[0].problem.next
    assert desk.world.picture() == before
    set_location(desk, former)
    assert desk.recover().code is Exit.DONE
    assert not hidden(desk)
    set_location(desk)
    assert run(desk, command).tables[0].problem is None


def killed_while_a_joined_file_gives_back():
    """Its rows are in no file of live, as a source was replaced just before files were joined."""
    desk = joined_desk.a_desk()
    joined_desk.kill_in_put_back(desk, ["rename_exact", "copy-", "/dt=1/part"], desk.compact)
    return desk


def killed_after_a_put_back():
    """What came to the place of live in the gap is not in it."""
    desk = killed()
    run, writer = desk.control.run(desk.runs[0]), desk.world.files.writer
    writer.rename_into(names.join(run.state("retired"), "u00001"), desk.live("dt=1"))
    writer.make_directory(run.recreated(UnitNumber(1), 0))
    writer.add(names.join(run.recreated(UnitNumber(1), 0), "late.parquet"), DataFile(("late",)), 1000)
    return desk


@pytest.mark.parametrize("command", COMMANDS)
def test_so_it_is_where_the_old_files_were_removed_and_only_the_copy_is_left(command):
    desk = killed()
    desk.world.files.writer.delete(desk.control.run(desk.run_directories()[0]).unit("retired", UnitNumber(1)))
    set_location(desk)
    assert code_of(run(desk, command)) == UNSETTLED


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kill", [killed_while_a_joined_file_gives_back, killed_after_a_put_back])
def test_rows_that_are_away_in_another_way_are_told_too(kill, command):
    desk = kill()
    assert hidden(desk)
    former = desk.live()
    set_location(desk)
    before = desk.world.picture()
    assert code_of(run(desk, command)) == UNSETTLED
    assert desk.world.picture() == before
    set_location(desk, former)
    # What others have brought may stay aside, and is told.
    assert (desk.recover().code is Exit.DONE) == (not hidden(desk))


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_told_too_where_earlier_runs_have_worked_at_the_new_place(command):
    desk = desk_by(["dt"])
    former = desk.live()
    desk.compact()
    desk.world.files.namespace.advance(40 * DAY_MS)
    set_location(desk)
    desk.world.catalog.add_partition(desk.table, a_partition("dt=3", f"{NEW}/dt=3"))
    for nth in range(3):
        desk.world.add_file(f"{NEW}/dt=3/{nth}.parquet", [f"events/dt=3/{nth}"])
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    set_location(desk, former)
    assert hidden(desk)
    assert code_of(run(desk, command)) == UNSETTLED


@pytest.mark.parametrize("place", ["inside", "around"])
@pytest.mark.parametrize("command", ["compact-swap", "backup"])
def test_the_new_place_may_be_inside_the_former_one_or_around_it(command, place):
    desk = killed(("dt", "hr"), ["dt=1/hr=1", "dt=2/hr=1"])
    set_location(desk, {"inside": f"{desk.live()}/new", "around": "hdfs://nn/warehouse/sales"}[place])
    assert code_of(run(desk, command)) == UNSETTLED


def test_it_is_told_by_a_dry_run_of_some_partitions():
    desk = killed()
    set_location(desk)
    desk.world.catalog.add_partition(desk.table, a_partition("dt=3", f"{NEW}/dt=3"))
    result = compact_swap.compact_swap(a_context(desk.world.cluster, replace(NAMED, where="dt = '3'"), desk._new_run(), dry_run=True))
    assert code_of(result) == UNSETTLED


def test_it_is_the_same_table_after_it_was_renamed():
    desk = killed()
    set_location(desk)
    tables, partitions = desk.world.catalog.tables, desk.world.catalog.partitions
    tables["sales.renamed"] = replace(tables.pop(desk.table), name="renamed")
    partitions["sales.renamed"] = partitions.pop(desk.table)
    desk.table = "sales.renamed"
    assert code_of(desk.compact()) == UNSETTLED


@pytest.mark.parametrize("changed", [{"create_time": 6}, {"name": "other"}], ids=["created again", "another"])
def test_the_records_of_another_table_around_its_partitions_are_no_reason(changed):
    desk = killed()
    other = replace(desk.world.table(desk.table), location=NEW, **changed)
    desk.world.catalog.tables[other.full_name] = other
    desk.world.catalog.partitions[other.full_name] = desk.world.catalog.partitions[desk.table]
    desk.world.files.writer.make_directory(NEW)
    result = run(desk, "backup")
    assert [table.problem for table in result.tables if table.table == other.full_name] == [None]


def test_records_that_others_may_have_written_are_not_believed():
    desk = killed()
    node = desk.world.files.namespace.find(desk.control.top)
    node.attributes = replace(node.attributes, owner="somebody")
    set_location(desk)
    assert run(desk, "compact-swap").tables[0].problem is None


def test_a_run_that_died_before_it_touched_live_is_no_reason():
    desk = desk_by(["dt"])
    desk.kill_before(["put ", "/stage/"], desk.compact)
    assert not hidden(desk)
    set_location(desk)
    assert run(desk, "compact-swap").tables[0].problem is None


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_with_its_partitions_in_it_costs_no_call(command, monkeypatch):
    desk = desk_by(["dt"])
    desk.compact()
    asked, look = Counter(), desk.world.files.look

    def count(places, *more):
        asked.update(place for place in places if place.endswith("/.hivekeeper") and not place.startswith(desk.live()))
        return look(places, *more)

    monkeypatch.setattr(desk.world.files, "look", count)
    work, selected = COMMANDS[command]
    work(a_context(desk.world.cluster, selected, desk._new_run(), desk.settings))
    assert not asked


ODD = "events`;drop table payments;`"


@pytest.mark.parametrize(
    ("name", "place"),
    [("events", "hdfs://nn/w/a;drop table payments;b"), (ODD, "hdfs://nn/w/a"), ("events", "hdfs://nn/w/it's"), ("a--b", "hdfs://nn/w/a")],
    ids=["semicolon in its place", "in its name", "quote", "comment"],
)
def test_no_statement_is_shown_that_beeline_may_split(name, place):
    """Beeline of Hive 3 ends a statement at a semicolon in back-quotes, and knows comments there."""
    world = World()
    world.add_table(a_table(["dt"], name=name, location=place, create_time=5), {"dt=1": [MIB] * 3, "dt=2": [MIB] * 3})
    desk = Desk(world, f"sales.{name}")
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    set_location(desk)
    (table,) = run(desk, "backup").tables
    assert table.problem.code is Code.UNSETTLED
    assert "ALTER" not in table.problem.next
    assert place in table.problem.next
    assert f"hivekeeper recover --table {quoting.shell(desk.table)}" in table.problem.next
