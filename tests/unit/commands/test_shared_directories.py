"""Another table or database has files in a table's directory: nothing is moved or deleted there, by any command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.names import backup_marks
from hivekeeper.reasons import Code
from support.builders import a_partition, a_table, of_spark
from support.desk import Desk, desk_by, outcomes
from support.hive_statements import Hive
from support.world import World

OTHER = "sales.other"
KILLED_IN_THE_GAP = ["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"]


@pytest.fixture(params=[("dt",), ()], ids=["partitioned", "unpartitioned"])
def desk(request):
    return desk_by(request.param)


def put_over(desk, place):
    """CREATE EXTERNAL TABLE other … LOCATION, or CREATE DATABASE; an hour later no command has cached locations from before."""
    events = desk.live()
    if place == "database":
        desk.world.catalog.homes["fin"] = "hdfs://nn/warehouse/sales"
        desk.world.catalog.databases.add("fin")
    else:
        where = {
            "same": events,
            "inside": f"{events}/x",
            "around": "hdfs://nn/warehouse",
            "control": f"{desk.control.runs}/x",
            "pattern": "hdfs://nn/warehouse/[s]ales/*/x",
        }
        other = a_table(name="other", location=where.get(place, "hdfs://nn/warehouse/elsewhere"))
        desk.world.catalog.add_table(of_spark(other, f"{desk.control.runs}/x") if place == "path" else other, [])
    desk.world.files.namespace.advance(3_600_001)


def move_away(desk, place):
    """ALTER TABLE other SET LOCATION, by Spark, which changes the property of its SerDe as well."""
    if place == "database":
        desk.world.catalog.homes["fin"] = "hdfs://nn/warehouse/fin"
    else:
        elsewhere = a_table(name="other", location="hdfs://nn/warehouse/elsewhere")
        desk.world.catalog.tables[OTHER] = of_spark(elsewhere, elsewhere.location) if place == "path" else elsewhere
    desk.world.files.namespace.advance(3_600_001)


def without_lock(picture):
    return {path: content for path, content in picture.items() if not path.endswith("/_lock")}


PLACES = ["same", "inside", "around", "control", "path", "pattern", "database"]
COMMANDS = {
    "recover": Desk.recover,
    "compact-swap": Desk.compact,
    "rollback": Desk.rollback,
    "cleanup": Desk.cleanup,
    "pin": lambda desk: desk.pin(desk.runs[0]),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("place", PLACES)
def test_an_interrupted_run_waits_until_the_other_table_has_a_place_of_its_own(desk, place, command):
    before = desk.world.rows_of(desk.table)
    desk.kill_before(KILLED_IN_THE_GAP, desk.compact)
    put_over(desk, place)
    picture, runs = without_lock(desk.world.picture()), desk.run_directories()
    result = command(desk)
    problem = result.tables[0].problem
    assert (result.code, problem.code) == (Exit.INVESTIGATE, Code.SHARED_SINCE)
    assert desk.table in problem.what and (OTHER if place != "database" else "fin") in problem.what
    assert (without_lock(desk.world.picture()), desk.run_directories()) == (picture, runs)
    move_away(desk, place)
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == before


@pytest.mark.parametrize("dry_run", [False, True], ids=["", "dry run"])
@pytest.mark.parametrize("command", [Desk.rollback, Desk.cleanup], ids=["rollback", "cleanup"])
@pytest.mark.parametrize("place", PLACES)
def test_no_backup_is_moved_or_discarded_beside_another_tables_files(desk, place, command, dry_run):
    desk.compact()
    put_over(desk, place)
    picture = without_lock(desk.world.picture())
    result = command(desk, dry_run=dry_run)
    assert (result.code, result.tables[0].problem.code) == (Exit.REFUSED, Code.SHARED_DIRECTORY)
    assert without_lock(desk.world.picture()) == picture
    assert desk.pin(desk.runs[0]).code is Exit.DONE
    move_away(desk, place)
    desk.pin(desk.runs[0], pinned=False)
    assert command(desk, dry_run=dry_run).code is Exit.DONE


@pytest.mark.parametrize("key", ["path", "PATH"])
@pytest.mark.parametrize("below", ["", "/x", "/d*"], ids=["same", "inside", "pattern"])
def test_a_directory_that_a_table_of_spark_has_too_is_not_compacted(desk, below, key):
    """The other one may be bucketed: Spark takes the bucket from a file's name, and finds none in ours (INVALID_BUCKET_FILE)."""
    desk.world.catalog.add_table(of_spark(a_table(name="other"), f"{desk.live()}{below}", key), [])
    picture = without_lock(desk.world.picture())
    result = desk.compact()
    assert (result.code, result.tables[0].problem.code) == (Exit.REFUSED, Code.SHARED_DIRECTORY)
    assert without_lock(desk.world.picture()) == picture


@pytest.mark.parametrize("place", ["same", "inside", "around", "control"])
def test_a_view_has_no_place_whatever_location_it_was_given(desk, place):
    """By the metastore's own interface, which asks for no right to that directory: nobody reads a view's files."""
    put_over(desk, place)
    other = desk.world.catalog.tables[OTHER]
    desk.world.catalog.tables[OTHER] = replace(other, kind="VIRTUAL_VIEW", view_text="SELECT 1")
    result = desk.compact()
    assert (result.code, set(outcomes(result).values())) == (Exit.DONE, {"swapped"})
    assert desk.cleanup().code is Exit.DONE


def test_a_pattern_beside_which_the_control_directory_is_made_is_around_the_table(desk):
    """What such a table finds is not filtered for hidden names: Spark would read our records as its rows."""
    desk.world.catalog.add_table(a_table(name="other", location="hdfs://nn/warehouse/sales/*"), [])
    assert desk.compact().tables[0].problem.code is Code.SHARED_DIRECTORY


def set_own_path(desk, path):
    own = desk.world.table(desk.table)
    desk.world.catalog.put_table(replace(of_spark(own, path), location=own.location))
    desk.world.files.namespace.advance(3_600_001)


def test_a_table_whose_path_of_spark_is_elsewhere_is_no_stranger_to_itself(desk):
    """Hive renamed it, and moved its directory: its location follows, the property of its SerDe does not."""
    set_own_path(desk, "hdfs://nn/warehouse/sales/former_name")
    before = desk.world.rows_of(desk.table)
    assert desk.compact().code is Exit.DONE
    assert set(outcomes(desk.rollback()).values()) == {"rolled-back"}
    assert desk.compact().code is Exit.DONE
    assert desk.cleanup().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == before


@pytest.mark.parametrize("command", [Desk.compact, Desk.rollback, Desk.cleanup], ids=["compact", "rollback", "cleanup"])
def test_a_backup_in_which_spark_reads_the_table_itself_is_not_moved_or_discarded(desk, command):
    """Spark's SET LOCATION changed both places, Hive's only the location back."""
    desk.compact()
    set_own_path(desk, f"{desk.control.runs}/{desk.run_directories()[0]}/retired/u00001")
    picture = without_lock(desk.world.picture())
    result = command(desk)
    assert (result.code, result.tables[0].problem.code) == (Exit.REFUSED, Code.IN_CONTROL_DIRECTORY)
    assert without_lock(desk.world.picture()) == picture


@pytest.mark.parametrize("killed", [False, True], ids=["", "interrupted"])
def test_backup_tables_of_a_former_name_are_not_other_tables(desk, killed):
    before = desk.world.rows_of(desk.table)
    if killed:
        desk.kill_before(KILLED_IN_THE_GAP, desk.compact)
    else:
        desk.compact()
    for _ in Hive(desk.world).rename_table(desk.table, "sales.events2"):
        pass
    desk.table = "sales.events2"
    assert desk.recover().code is Exit.DONE
    assert set(outcomes(desk.rollback()).values()) == {"rolled-back"}
    assert desk.compact().code is Exit.DONE
    assert desk.cleanup().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == before


def test_a_backup_table_of_a_table_that_is_there_is_another_tables(desk):
    desk.compact()
    marked = a_table(name="other", location=desk.live(), parameters={"hivekeeper.backup-of": "sales.third"})
    desk.world.catalog.add_table(a_table(name="third"), [])
    desk.world.catalog.add_table(marked, [])
    desk.world.files.namespace.advance(3_600_001)
    assert desk.rollback().tables[0].problem.code is Code.SHARED_DIRECTORY


def desk_of_evil(desk):
    """CREATE EXTERNAL TABLE evil … LOCATION 'a backup of this table'."""
    backup = f"{desk.control.runs}/{desk.run_directories()[0]}/retired/u00001"
    desk.world.catalog.add_table(a_table(name="evil", location=backup, create_time=6), [])
    desk.world.files.namespace.advance(3_600_001)
    return Desk(desk.world, "sales.evil", backup_table=False)


READING = ["analyze", "backup", "history", "verify"]


@pytest.mark.parametrize("command", [*COMMANDS, *READING, "dry run"])
def test_a_table_in_the_control_directory_of_another_one_is_refused(desk, command):
    """That of an unpartitioned table lies beside it, so their locations do not touch; without a backup table nothing shows the backup."""
    desk.settings = replace(desk.settings, backup_table=False)
    desk.compact()
    rows = desk.world.rows_of(desk.table)
    evil = desk_of_evil(desk)
    before = desk.world.picture()
    do = {
        **COMMANDS,
        "pin": lambda desk: desk.pin("20260101t020304z-0000"),
        **{name: getattr(Desk, name) for name in READING},
        "dry run": lambda d: d.compact(dry_run=True),
    }
    (outcome,) = do[command](evil).tables
    assert (outcome.problem.code, outcome.code) == (Code.IN_CONTROL_DIRECTORY, Exit.REFUSED)
    assert desk.world.picture() == before
    desk.world.catalog.drop_table("sales.evil")
    desk.world.files.namespace.advance(3_600_001)
    assert set(outcomes(desk.rollback()).values()) == {"rolled-back"}
    assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize(("place", "code"), [("in", Code.IN_CONTROL_DIRECTORY), ("x", Code.OUTSIDE_TABLE)], ids=["around", "beside"])
def test_a_partition_in_the_control_directory_of_another_table_is_refused_and_the_others_are_done(place, code):
    """That table was moved meanwhile, so that this one's directory may lie around its records."""
    world = World()
    world.add_table(a_table(name="orders", location="hdfs://nn/warehouse/sales/in/orders"), {"": [1000] * 3})
    orders = Desk(world, "sales.orders", backup_table=False)
    orders.compact()
    backup = f"{orders.control.runs}/{orders.run_directories()[0]}/retired/u00001"
    world.catalog.tables["sales.orders"] = replace(world.table("sales.orders"), location="hdfs://nn/warehouse/sales/orders")
    evil = a_table(["dt"], name="evil", location=f"hdfs://nn/warehouse/sales/{place}")
    world.add_table(evil, {"dt=1": [1000] * 3})
    world.catalog.add_partition("sales.evil", a_partition("dt=2", backup, evil.storage))
    before = world.rows_below(backup)
    found = {unit.name: unit for unit in Desk(world, "sales.evil").compact().tables[0].units}
    assert (found["dt=1"].outcome.code, found["dt=2"].outcome.code, found["dt=2"].why.code) == ("swapped", "refused", code)
    assert world.rows_below(backup) == before


@pytest.mark.parametrize("command", ["analyze", "compact"])
def test_of_a_table_around_all_others_few_others_are_read(desk, monkeypatch, command):
    """Whoever points some tables at the root would have the definitions of the whole metastore read for each, and held together."""
    for number in range(1000):
        other = a_table(name=f"t{number:04d}", location=f"hdfs://nn/warehouse/x/{number}", parameters={"hivekeeper.backup-of": desk.table})
        desk.world.catalog.add_table(replace(other, database=f"db{number % 9}", parameters={} if number % 7 else other.parameters))
    desk.world.catalog.put_table(replace(desk.world.table(desk.table), location="hdfs://nn/warehouse"))
    read, ask = [], desk.world.metastore.tables
    monkeypatch.setattr(type(desk.world.metastore), "tables", lambda _, database, names: (read.extend(names), ask(database, names))[1])
    (table,) = getattr(desk, command)().tables
    assert (table.problem.code if table.problem else table.observed.reason.code) is Code.SHARED_DIRECTORY
    assert len(read) < 250


@pytest.mark.parametrize("others", [["inside"], ["around"], ["inside", "around"]], ids="-".join)
def test_a_table_around_that_is_marked_as_a_backup_is_none_and_hides_no_other_table(desk, others):
    places = {"inside": f"{desk.live()}/x", "around": "hdfs://nn/warehouse"}
    for name in others:
        marks = backup_marks(f"sales.{name}", desk.table) if name == "around" else {}
        desk.world.catalog.add_table(a_table(name=name, location=places[name], parameters=marks), [])
    desk.world.files.namespace.advance(3_600_000)
    assert desk.compact().tables[0].problem.code is Code.SHARED_DIRECTORY
