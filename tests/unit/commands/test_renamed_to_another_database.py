"""A run is killed in its gap, and its table without partitions is renamed into another database, whose directory Hive moves it to: it has
no directory there, by which its own commands and those on what is left over know it among the tables of its second.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.model import Column, Selection, Storage
from hivekeeper.ports import FilesUnavailable, MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.hive_statements import Hive
from support.leftovers import clean, records
from support.listings import listen
from support.world import World

PLACE, NAME = "hdfs://nn/warehouse/sales.db/events", "archive.kept"
FORMER, BESIDE = "hdfs://nn/warehouse/sales.db/.hivekeeper-events", "hdfs://nn/warehouse/sales.db/kept"
ELSEWHERE = "hdfs://nn/warehouse/archive.db/kept"
NEW = "hdfs://nn/warehouse/archive.db/.hivekeeper-kept"
GAP = ["rename_exact", f"/ready/u00001 {PLACE}"]
BEFORE = {f"events//{nth}" for nth in range(3)}
COMMANDS = pytest.mark.parametrize("command", [Desk.recover, Desk.compact, Desk.verify], ids=["recover", "compact", "verify"])


def interrupt(words=GAP, before=lambda _world: None):
    world = World()
    world.catalog.databases.update(["archive", "tenant"])
    world.catalog.homes.update({name: f"hdfs://nn/warehouse/{name}.db" for name in ("sales", "archive", "tenant")})
    for home in world.catalog.homes.values():
        world.files.writer.make_directory(home)
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5, location=PLACE), {"": [1000] * 3})
    before(world)
    desk = Desk(world, backup_table=False)
    desk.kill_before(words, desk.compact)
    return desk


def rename(desk, new=ELSEWHERE):
    world = desk.world
    for _ in Hive(world).rename_table("sales.events", NAME):
        pass
    # HiveAlterHandler: the new database's directory, and the new name.
    world.catalog.put_table(replace(world.table(NAME), location=new))
    world.catalog.homes["archive"] = new.rpartition("/")[0]
    world.files.namespace.advance(3_600_001)
    return desk_of(world, NAME)


def desk_of(world, name):
    desk = Desk(world, name, backup_table=False)
    desk.runs.extend(["20260101t000000z-0000"] * 10)
    return desk


def table_of(name):
    """A table of that second."""
    database, _, base = name.partition(".")
    place = f"hdfs://nn/warehouse/{database}.db/{base}"
    return replace(a_table((), kind="MANAGED_TABLE", name=base, create_time=5, location=place), database=database)


def add(world, name="tenant.mine", **changes):
    """One without a directory."""
    world.catalog.add_table(replace(table_of(name), **changes), [])
    return desk_of(world, name)


@pytest.mark.parametrize("new", [BESIDE, ELSEWHERE], ids=["beside", "elsewhere"])
@COMMANDS
def test_its_commands_tell_that_its_rows_are_missing(command, new):
    desk = interrupt()
    kept = rename(desk, new)
    result = command(kept)
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.LEFT_BEHIND)


def test_the_advice_brings_its_rows_back():
    desk = interrupt()
    kept = rename(desk)
    problem = kept.recover().tables[0].problem
    assert f"hdfs dfs -mv {FORMER} {NEW}, then: hivekeeper recover --table {NAME}" in problem.next
    desk.world.files.writer.rename_into(FORMER, NEW)
    assert (kept.recover().code, set(desk.world.rows_of(NAME))) == (Exit.DONE, BEFORE)


def test_the_advice_makes_way_where_a_table_of_the_new_name_has_left_records():
    desk = interrupt()
    world = desk.world
    world.add_table(
        replace(a_table((), kind="MANAGED_TABLE", name="kept", create_time=9, location=ELSEWHERE), database="archive"), {"": [1] * 3}
    )
    assert desk_of(world, NAME).compact().code is Exit.DONE
    for _ in Hive(world).drop_table(NAME):
        pass
    kept = rename(desk)
    problem = kept.verify().tables[0].problem
    assert problem.code is Code.LEFT_BEHIND
    assert f"hdfs dfs -mv {NEW} {NEW}-before-5 (of the table that had the name before), then: hdfs dfs -mv {FORMER} {NEW}" in problem.next


def test_another_table_that_may_be_it_is_named_and_no_command_is_given():
    """A tenant may have made it so: CREATE TABLE in that second, SET OWNER, and its directory removed."""
    desk = interrupt()
    kept, mine = rename(desk), add(desk.world)
    for one, other in ((kept, "tenant.mine"), (mine, NAME)):
        problem = one.recover().tables[0].problem
        assert (problem.code, "hdfs dfs" in problem.next) == (Code.LEFT_BEHIND, False)
        assert other in problem.what


def test_one_that_took_another_name_since_all_tables_were_read_is_one_of_them():
    desk = interrupt()
    rename(desk)
    world = desk.world
    mine = add(world)
    ask, acted = world.metastore.tables, []

    def tables(database, names):
        if names == ["kept"] and not acted:
            acted.append(True)
            world.catalog.put_table(replace(world.table(NAME), name="last"))
            world.catalog.drop_table(NAME)
        return ask(database, names)

    world.metastore.tables = tables
    problem = mine.recover().tables[0].problem
    assert acted
    assert ("archive.last" in problem.what, "hdfs dfs" in problem.next) == (True, False)


def test_it_is_told_by_a_command_that_has_read_the_places_of_all_tables_before():
    desk = interrupt()
    desk.world.forget()
    assert desk.world.metastore.table_locations()["sales.events"] == PLACE
    for _ in Hive(desk.world).rename_table("sales.events", NAME):
        pass
    desk.world.catalog.put_table(replace(desk.world.table(NAME), location=ELSEWHERE))
    result = desk_of(desk.world, NAME).verify()
    assert desk.world.metastore.table_locations()["sales.events"] == PLACE
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.LEFT_BEHIND)


def test_it_is_told_though_not_all_tables_can_be_read(monkeypatch):
    """Without a command, as others may be it."""
    kept = rename(interrupt())

    def refuse():
        raise MetastoreUnavailable("sales has more than 1,000,000 tables")

    monkeypatch.setattr(kept.world.metastore, "databases", refuse)
    problem = kept.recover().tables[0].problem
    assert (problem.code, "hdfs dfs" in problem.next) == (Code.LEFT_BEHIND, False)
    assert "not known" in problem.what


# ---- whom it does not stop

OTHERS = {
    "another owner": {"owner": "mallory"},
    "other columns": {"columns": (Column("other", "string"),)},
    "another format": {"columns": (Column("id", "int"), Column("more", "int")), "storage": Storage("TextInputFormat", "", "")},
    "another second": {"create_time": 6},
    "external": {"kind": "EXTERNAL_TABLE"},
    "another server": {"location": "hdfs://other/warehouse/tenant.db/mine"},
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
@COMMANDS
def test_a_table_that_cannot_be_it_is_not_stopped(command, changes):
    desk = interrupt()
    rename(desk)
    result = command(add(desk.world, **changes))
    assert "sales.events" not in str(result.tables[0].problem)


@COMMANDS
def test_a_table_with_a_directory_is_not_stopped(command):
    desk = interrupt()
    rename(desk)
    mine = add(desk.world)
    desk.world.files.writer.make_directory(mine.world.table("tenant.mine").location)
    result = command(mine)
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)


@COMMANDS
def test_a_killed_run_that_has_nothing_away_stops_nobody(command):
    desk = interrupt(["rename_exact", f"{PLACE} {FORMER}"])
    desk.world.catalog.drop_table("sales.events")
    desk.world.files.namespace.advance(3_600_001)
    result = command(add(desk.world))
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)


@COMMANDS
def test_the_killed_run_of_a_table_that_has_its_name_still_stops_nobody_else(command):
    """ALTER TABLE events SET LOCATION: what it has left is at no table's place."""
    desk = interrupt()
    world = desk.world
    world.catalog.put_table(replace(world.table("sales.events"), location="hdfs://nn/warehouse/sales.db/elsewhere"))
    world.files.namespace.advance(3_600_001)
    result = command(add(world))
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)
    world.wait(3_600_001)
    assert "without a directory" not in records(clean(desk)).why


def test_of_a_table_with_a_directory_other_databases_are_not_asked():
    desk = interrupt()
    mine = add(desk.world)
    desk.world.files.writer.make_directory(mine.world.table("tenant.mine").location)
    listed = listen(desk.world.files, "look_hidden_directories")
    mine.compact()
    assert not {"hdfs://nn/warehouse/sales.db", "hdfs://nn/warehouse/archive.db"} & {*listed}


def test_a_run_of_its_own_is_recovered_whatever_else_there_is():
    """Also of a table that is to be left alone (`hivekeeper.skip`), for which the records are looked at before."""
    desk = interrupt()
    world, table = desk.world, table_of("tenant.mine")
    world.add_table(table, {"": [1000] * 3})
    before = world.rows_of("tenant.mine")
    mine = desk_of(world, "tenant.mine")
    mine.kill_before(["rename_exact", f"/ready/u00001 {table.location}"], mine.compact)
    world.catalog.drop_table("sales.events")
    world.files.namespace.advance(3_600_001)
    world.catalog.put_table(replace(table, parameters={"hivekeeper.skip": "true"}))
    mine.compact()
    assert world.rows_of("tenant.mine") == before


@COMMANDS
def test_a_database_at_a_place_that_cannot_be_looked_at_stops_no_table_without_a_directory(command, monkeypatch):
    """ALTER DATABASE tenant SET LOCATION 'hdfs://nn/a:b'."""
    desk = interrupt()
    world, asked = desk.world, []
    world.forget()
    world.catalog.homes["tenant"] = "hdfs://nn/warehouse/a:b"
    look = world.files.look_hidden_directories

    def fail(places, *most):
        if any(":" in place[7:] for place in places):
            asked.extend(places)
            raise FilesUnavailable("IllegalArgumentException: Pathname /warehouse/a:b is not a valid DFS filename")
        return look(places, *most)

    monkeypatch.setattr(world.files, "look_hidden_directories", fail)
    result = command(add(world, "archive.other", create_time=6))
    assert asked
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)


def close(monkeypatch, world, closed):
    """Let the metastore refuse all that it is asked of a database."""
    for method in ("table_names", "tables"):
        ask = getattr(world.metastore, method)

        def refuse(database, *some, ask=ask):
            if database == closed:
                raise MetastoreRefused("User hivekeeper does not have privileges for SHOWTABLES")
            return ask(database, *some)

        monkeypatch.setattr(world.metastore, method, refuse)


@COMMANDS
def test_a_closed_database_with_records_stops_no_table_without_a_directory(command, monkeypatch):
    desk = interrupt()
    world = desk.world
    world.add_table(replace(table_of("tenant.theirs"), create_time=77), {"": [1000] * 3})
    assert desk_of(world, "tenant.theirs").compact().code is Exit.DONE
    mine = add(world, "archive.other", create_time=6)
    close(monkeypatch, world, "tenant")
    result = command(mine)
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)


def test_no_command_is_given_where_the_renamed_one_may_be_in_a_closed_database(monkeypatch):
    """Another table looks like it, whose owner would get its rows."""
    desk = interrupt()
    rename(desk)
    mine = add(desk.world)
    close(monkeypatch, desk.world, "archive")
    problem = mine.recover().tables[0].problem
    assert (problem.code, "not known" in problem.what, "hdfs dfs" in problem.next) == (Code.LEFT_BEHIND, True, False)
    found = records(clean(desk))
    assert ("tenant.mine" in found.why, "hdfs dfs" in found.next) == (True, False)


@COMMANDS
def test_a_database_in_a_snapshot_from_then_stops_no_table_without_a_directory(command):
    """CREATE DATABASE tenant LOCATION '/warehouse/sales.db/.snapshot/s0': what was interrupted then was settled since."""
    desk = interrupt()
    world, home = desk.world, "hdfs://nn/warehouse/sales.db"
    space, snapshot = world.files.namespace, f"{home}/.snapshot/s0"
    for path, node in list(space.walk(home)):
        copy = snapshot + path[len(home) :]
        if node.is_dir:
            space.make_directory(copy)
        else:
            space.create(copy, node.content, node.length)
        space.find(copy).attributes = node.attributes
    world.catalog.homes["tenant"] = snapshot
    world.forget()
    assert (desk.recover().code, set(world.rows_of("sales.events"))) == (Exit.DONE, BEFORE)
    world.catalog.drop_table("sales.events")
    result = command(add(world, "archive.of_that_second"))
    assert (result.code, result.tables[0].problem) == (Exit.DONE, None)


# ---- what is left over


@pytest.mark.parametrize("since", ["", "loaded"])
def test_what_is_left_over_names_it_and_the_command_that_brings_its_rows_back(since):
    desk = interrupt()
    kept = rename(desk)
    if since:
        # INSERT INTO makes the directory.
        desk.world.files.writer.make_directory(ELSEWHERE)
        kept.append("", "n1")
    shown = show_orphans(a_context(desk.world.cluster, Selection(databases=("sales",)), "20260201t020304z-0000"))
    for result in (shown, clean(desk), clean(desk)):
        found = records(result)
        assert f"It may have been renamed: {NAME}, without a directory from before that run" in found.why
        assert found.next == f"if it was renamed: hdfs dfs -mv {FORMER} {NEW}, then: hivekeeper recover --table {NAME}"


def test_what_is_left_over_names_all_that_may_be_it_and_no_command():
    desk = interrupt()
    rename(desk)
    add(desk.world)
    found = records(clean(desk))
    assert f"{NAME}, tenant.mine, without" in found.why
    assert "hdfs dfs" not in found.next


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_what_is_left_over_names_none_that_cannot_be_it(changes):
    desk = interrupt()
    desk.world.catalog.drop_table("sales.events")
    add(desk.world, **changes)
    found = records(clean(desk))
    assert "without a directory" not in found.why
    assert "interrupted" in found.why


def test_what_is_left_over_of_a_run_that_had_taken_nothing_away_names_none():
    desk = interrupt(["rename_exact", f"{PLACE} ", "/retired/u00001"])
    desk.world.catalog.drop_table("sales.events")
    add(desk.world)
    found = records(clean(desk))
    assert "without a directory" not in found.why
    assert "interrupted" in found.why


def test_the_rows_of_one_that_was_loaded_since_stay_and_are_told():
    """As `history --orphans` advises."""
    desk = interrupt()
    kept = rename(desk)
    desk.world.files.writer.make_directory(ELSEWHERE)
    kept.append("", "n1")
    desk.world.files.writer.rename_into(FORMER, NEW)
    result = kept.recover()
    assert (result.code, bool(kept.log().pinned)) == (Exit.INVESTIGATE, True)
    assert {"n1", *BEFORE} <= set(desk.world.rows_anywhere())


def test_what_is_left_over_names_no_table_of_its_second_with_an_older_directory():
    desk = interrupt(before=lambda world: world.add_table(table_of("tenant.older"), {"": [1000]}))
    desk.world.catalog.drop_table("sales.events")
    assert "without a directory" not in records(clean(desk)).why


def test_what_is_left_over_of_a_table_with_partitions_names_none():
    """Their directory has the control directory in it, and both move."""
    world = World()
    world.catalog.databases.add("tenant")
    world.catalog.homes["sales"] = PLACE.rpartition("/")[0]
    table = a_table(("dt",), kind="MANAGED_TABLE", create_time=5, location=PLACE)
    world.add_table(table, {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.kill_before(["rename_exact", f"/ready/u00001 {PLACE}"], desk.compact)
    world.catalog.drop_table("sales.events")
    add(world, partition_columns=table.partition_columns)
    found = records(clean(desk))
    assert "without a directory" not in found.why
    assert "interrupted" in found.why
