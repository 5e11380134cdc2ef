"""A loader replaces the whole directory of a table, or of a partition: it deletes it, and renames a new one to its place
(FileSystem.rename, as `hdfs dfs -mv`), which goes *into* a directory that is there. Who makes the missing one again in between hides rows.
"""

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.world import World

TABLE, ROOT, NEW = "sales.events", "hdfs://nn/warehouse/sales/events", "hdfs://nn/warehouse/sales/_load/events"


def make_desk(by=("dt",), **more):
    """A table, and beside it what a loader will put in its place."""
    world = World()
    world.add_table(a_table(by, create_time=5), {"dt=1" if by else "": [1000] * 3})
    for number in range(3):
        world.add_file("/".join([NEW, *(["dt=1"] if by else []), f"n{number}.parquet"]), [f"n{number}"])
    world.files.namespace.advance(3_600_000)
    return Desk(world, **more)


def delete_before(desk, step, directory):
    """Delete a directory just before the first change with this in its name; returns what will hold that change."""
    seen = []

    def act(what):
        if step in what and not seen:
            seen.append(what)
            desk.world.files.writer.delete(directory)

    desk.world.files.before_step = act
    return seen


def put_new_one(desk, name=""):
    """The second half of what the loader does; returns how many rows readers see then."""
    desk.world.files.writer.rename_into(f"{NEW}{name}", f"{ROOT}{name}")
    return sum(desk.world.rows_of(TABLE).values())


@pytest.mark.parametrize("by", [(), ("dt",)])
def test_a_backup_does_not_make_the_directory_of_a_table_that_is_away(by):
    desk = make_desk(by)
    desk.world.files.writer.delete(ROOT)
    result = desk.backup()
    assert (result.code, result.tables[0].run, result.tables[0].units) == (Exit.DONE, None, ())
    assert desk.world.files.stat(desk.control.top) is None
    assert put_new_one(desk) == 3


@pytest.mark.parametrize("command", ["backup", "compact"])
def test_nor_does_the_lock_of_a_table_whose_directory_goes_just_before_it_is_taken(command):
    desk = make_desk()
    seen = delete_before(desk, "hold ", ROOT)
    result = getattr(desk, command)()
    assert seen
    problem = result.tables[0].problem
    assert (result.code, problem.code, problem.what) == (Exit.REFUSED, Code.TABLE_DIRECTORY_GONE, f"{TABLE}: its directory is gone: {ROOT}")
    assert put_new_one(desk) == 3
    assert getattr(desk, command)().code is Exit.DONE


@pytest.mark.parametrize("by", [(), ("dt",)])
def test_nor_a_directory_that_never_was_where_whoever_may_alter_a_table_has_set_its_location(by):
    """Of another user, who is about to make it: `hive` would own it then."""
    world = World()
    world.catalog.add_table(a_table(by, name="mine", location="hdfs://nn/user/victim/out/current", create_time=9), [])
    world.files.writer.make_directory("hdfs://nn/user/victim")
    assert Desk(world, "sales.mine").backup().code is Exit.DONE
    assert world.files.stat("hdfs://nn/user/victim/out") is None


@pytest.mark.parametrize("command", ["backup", "compact"])
@pytest.mark.parametrize("by", [(), ("dt",)])
def test_nor_is_the_directory_of_a_unit_made_for_a_backup_table(command, by):
    """By the metastore, which makes that of each table and partition that it is given (HMSHandler.createLocationForAddedPartition)."""
    desk = make_desk(by)
    unit = "/dt=1" if by else ""
    seen = delete_before(desk, "make_backup_table ", f"{ROOT}{unit}")
    getattr(desk, command)()
    assert seen
    assert put_new_one(desk, unit) == 3


@pytest.mark.parametrize("by", [(), ("dt",)])
def test_a_backup_of_a_table_whose_units_are_all_away_records_nothing(by):
    desk = make_desk(by, backup_table=False)
    desk.backup()
    desk.world.files.writer.delete(desk.live("dt=1" if by else ""))
    result = desk.backup()
    assert (result.code, result.tables[0].run, len(desk.log().runs)) == (Exit.DONE, None, 1)


# ---- the table of a record is made at an empty directory first


def shown(desk):
    """Where the units of each backup table lie."""
    tables = {name: table for name, table in desk.world.tables().items() if name != TABLE}
    partitions = {name: [one.location for one in desk.world.partitions(name).values()] for name in tables}
    return {name: partitions[name] if table.partitioned else [table.location] for name, table in tables.items()}


@pytest.mark.parametrize("error", [MetastoreUnavailable("timeout"), MetastoreRefused("no right to this URI")], ids=["lost", "refused"])
@pytest.mark.parametrize("by", [(), ("dt",)])
def test_a_table_of_a_record_that_cannot_be_pointed_at_live_is_dropped(by, error):
    desk = make_desk(by)
    desk.world.metastore.fail_next("point_backup_table", error)
    result = desk.backup()
    assert (result.code, result.tables[0].backup_table, shown(desk)) == (Exit.DONE, "", {})


@pytest.mark.parametrize("by", [(), ("dt",)])
def test_one_that_could_not_be_dropped_either_is_pointed_at_live_by_the_next_command(by):
    desk = make_desk(by)
    for call in ("point_backup_table", "drop_backup_table"):
        desk.world.metastore.fail_next(call, MetastoreUnavailable("timeout"))
    name = desk.backup().tables[0].backup_table
    assert shown(desk) == {name: [desk.control.run(desk.runs[0]).state("backup_table")]}
    assert desk.recover().code is Exit.DONE
    assert shown(desk) == {name: [desk.live("dt=1" if by else "")]}


@pytest.mark.parametrize("by", [(), ("dt",)])
def test_one_that_a_killed_backup_has_not_pointed_yet_goes_with_the_next_command(by):
    desk = make_desk(by)
    desk.kill_before(["point_backup_table"], desk.backup)
    assert shown(desk)
    assert desk.recover().code is Exit.DONE
    assert shown(desk) == {}
