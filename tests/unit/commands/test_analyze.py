"""analyze on the fakes: what it finds, and that it changes nothing."""

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.analyze import analyze
from hivekeeper.model import Selection
from hivekeeper.plan.analysis import predict
from hivekeeper.reasons import Code
from hivekeeper.report import screen
from support.builders import MIB, a_partition, a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

SMALL, BLOCK = MIB, 128 * MIB


@pytest.fixture
def world():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [SMALL] * 200, "dt=2": [BLOCK], "dt=3": [], "dt=4": [SMALL]})
    world.add_table(a_table(name="big"), {"": [BLOCK, BLOCK]})
    world.add_table(a_table(name="a_view", kind="VIRTUAL_VIEW", location=""), {})
    world.add_table(a_table(name="__bkp_events_20260101_020304"), {"": [SMALL] * 50})
    return world


def run(world, **selected):
    return analyze(a_context(world.cluster, Selection(**selected), "20260101t020304z-0000"))


def statuses(result):
    return {table.table: table.observed.status.code for table in result.tables}


def test_a_database_shows_each_table_with_one_word_and_leaves_backups_out(world):
    result = run(world, databases=("sales",))
    assert statuses(result) == {"sales.events": "compact", "sales.big": "fine", "sales.a_view": "refused"}
    assert result.code is Exit.DONE


def test_each_unit_has_its_word(world):
    units = run(world, tables=("sales.events",)).tables[0].observed.units
    assert {unit.name: unit.status.code for unit in units} == {"dt=1": "compact", "dt=2": "fine", "dt=3": "empty", "dt=4": "fine"}


def test_where_chooses_partitions(world):
    units = run(world, tables=("sales.events",), where="dt in ('2', '3')").tables[0].observed.units
    assert [unit.name for unit in units] == ["dt=2", "dt=3"]


def test_nothing_is_written(world):
    before = world.picture()
    run(world, databases=("sales",))
    assert world.picture() == before
    assert world.files.steps == 0


def test_a_table_that_is_named_and_refused_is_an_error(world):
    result = run(world, tables=("sales.a_view",))
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.VIEW


def test_a_table_that_does_not_exist_is_refused_and_the_others_are_shown(world):
    result = run(world, tables=("sales.nowhere", "sales.big"))
    assert [table.problem.code if table.problem else None for table in result.tables] == [Code.NO_SUCH_TABLE, None]
    assert result.code is Exit.REFUSED


def test_a_database_that_does_not_exist_is_refused(world):
    result = run(world, databases=("nowhere", "sales"))
    assert result.tables[0].problem.what == "nowhere: the database nowhere does not exist"
    assert (len(result.tables) > 1, result.code) == (True, Exit.REFUSED)


def test_several_databases_are_one_selection(world):
    world.catalog.databases.add("hr")
    people = replace(a_table(name="people", location="hdfs://nn/warehouse/hr/people"), database="hr")
    world.add_table(people, {"": [1000] * 3})
    assert {"hr.people", "sales.events"} <= set(statuses(run(world, databases=("sales", "hr", "Sales"))))


def test_an_empty_database_is_nothing_to_do(world):
    world.catalog.databases.add("empty")
    assert run(world, databases=("empty",)).code is Exit.DONE


def test_where_on_an_unpartitioned_table_is_refused_and_inside_a_database_no_error(world):
    assert run(world, tables=("sales.big",), where="dt = '1'").code is Exit.REFUSED
    assert run(world, databases=("sales",), where="dt = '1'").code is Exit.DONE


def test_a_where_that_cannot_be_read_is_wrong_usage(world):
    assert run(world, tables=("sales.events",), where="dt = ").code is Exit.USAGE


def test_exclude_leaves_tables_out(world):
    assert set(statuses(run(world, databases=("sales",), exclude=("a_*", "sales.b*")))) == {"sales.events"}


@pytest.mark.parametrize("pattern", ["sales.odd[1]*", "odd[1]*", "odd[[]1][*]"])
def test_exclude_leaves_out_the_table_that_it_names_though_hive_4_allows_the_signs_of_patterns_in_names(world, pattern):
    world.add_table(a_table(name="odd[1]*"), {"": [1000] * 3})
    world.add_table(a_table(name="odd[1]x"), {"": [1000] * 3})
    shown = set(statuses(run(world, databases=("sales",), exclude=(pattern,))))
    assert "sales.odd[1]*" not in shown
    assert "sales.odd[1]x" in shown


def test_two_tables_in_one_directory_are_both_refused(world):
    world.catalog.add_table(a_table(name="fake", location=a_table().location + "/dt=1"))
    result = run(world, databases=("sales",))
    assert statuses(result)["sales.events"] == statuses(result)["sales.fake"] == "refused"


def test_a_partition_that_lies_in_another_one_is_refused(world):
    table = a_table(["dt"])
    world.catalog.add_partition("sales.events", a_partition("dt=9", table.location + "/dt=1"))
    units = run(world, tables=("sales.events",)).tables[0].observed.units
    assert {unit.name for unit in units if unit.status.code == "refused"} == {"dt=1", "dt=9"}


def test_what_earlier_runs_left_is_counted_until_cleanup(world):
    desk = Desk(world)
    before = predict(desk.analyze().tables[0].observed)
    assert before.backup_objects == 0
    desk.compact()
    after = predict(desk.analyze().tables[0].observed)
    # Each old file has an inode and a block, and its directory an inode.
    assert after.backup_objects == sum(2 * len(effect.before) + 1 for effect in desk.log().effects)
    assert after.backup_objects == 401
    assert after.objects_now == after.objects_after == after.objects_after_cleanup + after.backup_objects
    told = screen.render(desk.analyze())
    assert f"({after.backup_objects} in backups)" in told
    assert "the old files stay as the backup" not in told
    desk.cleanup()
    cleaned = predict(desk.analyze().tables[0].observed)
    assert (cleaned.backup_objects, cleaned.objects_now) == (0, after.objects_after_cleanup)
