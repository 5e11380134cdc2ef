"""history --orphans: what is left of tables, backups and runs that are not there any more."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper import names, ports
from hivekeeper.codes import Exit
from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.plan.orphans import OrphanKind
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.report import document, screen
from hivekeeper.steps import left_behind, orphans
from support.builders import a_table
from support.contexts import a_context
from support.desk import EVERYTHING, Desk
from support.world import World

RUN = "20260101t020304z-0000"


@pytest.fixture(params=[(), ("dt",)], ids=["flat", "partitioned"])
def desk(request):
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    world.add_table(a_table(request.param, create_time=5), {unit: [1000] * 3 for unit in (["dt=1", "dt=2"] if request.param else [""])})
    world.add_table(a_table(["dt"], name="other", create_time=6), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    Desk(world, "sales.other").compact()
    assert find(desk) == []
    return desk


def ask(desk, *databases):
    return show_orphans(a_context(desk.world.cluster, Selection(databases=databases or ("sales",)), RUN, Settings()))


def find(desk):
    (outcome,) = ask(desk).tables
    assert outcome.code is Exit.DONE, outcome.problem
    return list(outcome.orphans)


def drop(desk):
    desk.world.catalog.drop_table(desk.table)
    # Clients cache the locations of tables for an hour.
    desk.world.files.namespace.advance(2 * 3_600_000)


def test_the_records_of_a_table_that_was_dropped_are_found_with_the_size_of_their_backups(desk):
    before = desk.world.picture()
    control = desk.control
    (backup,) = {effect.backup_table for effect in desk.log().effects}
    units = len(desk.log().effects)
    drop(desk)
    table, records = sorted(find(desk), key=lambda one: one.kind.code)
    assert (table.kind, table.place, table.table) == (OrphanKind.BACKUP_TABLE, f"sales.{backup.rpartition('.')[2]}", "sales.events")
    assert table.next.startswith("hivekeeper cleanup --orphans --database sales drops it, and no file")
    assert "before a DROP TABLE, look at its location" in table.next
    assert (records.kind, records.place, records.table) == (OrphanKind.RECORDS, control.top, "sales.events")
    assert (records.backups, records.files, records.size_bytes) == (1, 3 * units, 3000 * units)
    assert "dropped" in records.why
    assert desk.world.picture() == before


def test_of_a_table_that_was_renamed_it_says_where_the_records_belong(desk):
    control, table = desk.control, desk.world.table(desk.table)
    moved = names.join(names.parent(table.location), "moved")
    drop(desk)
    desk.world.add_table(replace(table, name="moved", location=moved), {"dt=1" if table.partitioned else "": [1000]})
    (records,) = [one for one in find(desk) if one.kind is OrphanKind.RECORDS]
    home = names.join(moved, names.CONTROL) if table.partitioned else names.join(names.parent(moved), ".hivekeeper-moved")
    assert "it is sales.moved" in records.why
    assert f"hdfs dfs -mv {control.top} {home}" in records.next


@pytest.mark.parametrize("location", ["hdfs://silent:2121/x/moved", "//silent/x", ""])
def test_nothing_is_to_be_moved_to_a_server_that_is_not_known(desk, location):
    table = desk.world.table(desk.table)
    drop(desk)
    desk.world.catalog.add_table(replace(table, name="moved", location=location), [])
    (records,) = [one for one in find(desk) if one.kind is OrphanKind.RECORDS]
    assert f"it is sales.moved {f'at {location}' if location else 'without a location'} now" in records.why
    assert records.next.startswith("if its columns and its owner say so too: ")
    assert "-mv" not in records.next


def test_a_table_created_again_elsewhere_is_told_apart(desk):
    table = desk.world.table(desk.table)
    drop(desk)
    again = replace(table, location=names.join(names.parent(table.location), "again"), create_time=99)
    desk.world.add_table(again, {"dt=1" if table.partitioned else "": [1000]})
    (records,) = [one for one in find(desk) if one.kind is OrphanKind.RECORDS]
    assert "created again elsewhere" in records.why


def test_an_interrupted_run_in_them_is_the_loudest_thing_to_say(desk):
    desk.append("dt=1" if desk.world.table(desk.table).partitioned else "", "a", "b")
    desk.kill_before(["rename_exact", "/ready/u"], desk.compact)
    (run,) = find(desk)
    assert (run.kind, run.table, run.run) == (OrphanKind.RUN, "sales.events", desk.runs[-1])
    drop(desk)
    (records,) = [one for one in find(desk) if one.kind is OrphanKind.RECORDS]
    assert "was interrupted: rows that readers miss may be there alone" in records.why


def test_a_backup_that_somebody_deleted_is_found(desk):
    place = names.join(desk.control.top, desk.log().effects[0].place)
    desk.world.files.writer.delete(place)
    (backup,) = find(desk)
    assert (backup.kind, backup.place, backup.run, backup.files) == (OrphanKind.BACKUP, place, desk.runs[0], 3)
    desk.cleanup(EVERYTHING)
    assert find(desk) == []


def test_records_of_somebody_else_are_named_and_not_believed(desk):
    control = desk.control
    drop(desk)
    for _, node in [(control.log, desk.world.files.namespace.directory(control.log))]:
        node.attributes = replace(node.attributes, owner="mallory")
    (records,) = [one for one in find(desk) if one.kind is OrphanKind.RECORDS]
    assert (records.table, records.files) == ("", 0)
    assert "mallory" in records.why


def test_a_forged_backup_table_is_not_said_to_be_harmless(desk):
    forged = a_table(name="mine", kind="MANAGED_TABLE", parameters={names.BACKUP_OF: "sales.nothing"})
    desk.world.add_table(forged, {"": [1000]})
    (table,) = find(desk)
    assert (table.kind, table.place) == (OrphanKind.BACKUP_TABLE, "sales.mine")
    assert "may delete its files" in table.next


def test_a_mark_with_a_name_of_which_the_metastore_tells_nothing_hides_nothing_else(desk, monkeypatch):
    """Anybody may give a table the mark, with a name in a database that is closed, or one too long for what the metastore asks."""
    marks, top = {"one": "closed.table", "two": f"{'d' * 100_000}.table"}, desk.control.top
    for name, of in marks.items():
        desk.world.add_table(a_table(name=name, parameters={names.BACKUP_OF: of}), {"": [1000]})
    drop(desk)
    ask_tables = desk.world.metastore.tables

    def tables(database, wanted):
        if database == "closed" or len(database) > 4000:
            raise MetastoreRefused(f"{database[:10]}: permission denied")
        return ask_tables(database, wanted)

    monkeypatch.setattr(desk.world.metastore, "tables", tables)
    places = {one.place for one in find(desk)}
    assert top in places
    assert places.isdisjoint(f"sales.{name}" for name in marks)


def test_other_directories_and_tables_are_left_out(desk):
    desk.world.files.writer.make_directory("hdfs://nn/warehouse/sales/not_ours/dt=1")
    desk.world.files.writer.make_directory("hdfs://nn/warehouse/sales/.hidden")
    desk.world.files.writer.make_directory("hdfs://nn/warehouse/sales/.hivekeeper-")
    desk.world.files.writer.add("hdfs://nn/warehouse/sales/.hivekeeper-file", "x", 1)
    assert find(desk) == []


@pytest.mark.parametrize("place", ["hdfs://nn/warehouse", "hdfs://nn/warehouse/sales", "hdfs://nn/warehouse/sales/events/inside"])
def test_a_table_around_or_inside_a_place_does_not_hide_what_is_left_there(desk, place):
    control = desk.control
    cover = replace(a_table(["dt"], name="cover", location=place, create_time=9), database="fin")
    desk.world.catalog.add_table(cover, [])
    drop(desk)
    assert [one.place for one in find(desk) if one.kind is OrphanKind.RECORDS] == [control.top]


def test_a_table_at_a_place_is_at_home_there_whatever_its_database(desk):
    columns = ["dt"] if desk.world.table(desk.table).partitioned else []
    drop(desk)
    heir = replace(a_table(columns, name="heir", location="hdfs://nn/warehouse/sales/events", create_time=9), database="fin")
    desk.world.catalog.add_table(heir, [])
    assert [one.place for one in find(desk) if one.kind is OrphanKind.RECORDS] == []


def close_database(desk, closed, monkeypatch):
    ask_for = desk.world.metastore.tables

    def refuse(database, names):
        if database == closed:
            raise MetastoreRefused(f"{closed}: permission denied")
        return ask_for(database, names)

    monkeypatch.setattr(desk.world.metastore, "tables", refuse)


def test_a_table_of_a_closed_database_is_at_home_and_ends_no_search(desk, monkeypatch):
    columns = ["dt"] if desk.world.table(desk.table).partitioned else []
    drop(desk)
    heir = replace(a_table(columns, name="heir", location="hdfs://nn/warehouse/sales/events", create_time=9), database="fin")
    desk.world.catalog.add_table(heir, [])
    expected = find(desk)
    close_database(desk, "fin", monkeypatch)
    assert find(desk) == expected
    assert [one for one in expected if one.kind is OrphanKind.RECORDS] == []


def test_a_table_too_large_to_be_read_is_at_home_all_the_same(desk, monkeypatch):
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 10)
    assert [one for one in find(desk) if one.kind is OrphanKind.RECORDS] == []


@pytest.mark.parametrize("database", ["fin", "sales"])
def test_many_tables_of_others_that_are_just_not_too_large_are_not_held_together(desk, monkeypatch, database):
    """Neither those at the places of leftovers nor those of the database itself, in which others may create tables."""
    monkeypatch.setattr("hivekeeper.steps.orphans.TABLES_AT_ONCE", 2)
    monkeypatch.setattr("hivekeeper.commands.selection.TABLES_AT_ONCE", 2)
    long = 2**19
    for number in range(40):
        large = a_table(["dt"], name=f"t{number}", location=f"hdfs://nn/warehouse/sales/t{number}", parameters={"x": "y" * long})
        desk.world.add_table(replace(large, database=database), {"dt=1": [1000]})
    desk.world.files.namespace.advance(2 * 3_600_000)
    told = desk.world.metastore.tables

    def told_anew(database, names):
        found = told(database, names)
        own = {name: {key: value[:-1] + value[-1] for key, value in one.parameters.items()} for name, one in found.items()}
        return {name: replace(found[name], parameters=own[name]) for name in found}

    monkeypatch.setattr(desk.world.metastore, "tables", told_anew)
    tracemalloc.start()
    try:
        assert find(desk) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * long


def test_directories_that_are_left_out_because_they_lie_in_a_table_are_named(desk, caplog):
    desk.world.add_table(a_table(["dt"], name="gone", location="hdfs://nn/raw/gone", create_time=7), {"dt=1": [1000] * 3})
    desk.world.add_table(a_table(["dt"], name="stays", location="hdfs://nn/raw/stays", create_time=8), {"dt=1": [1000] * 3})
    Desk(desk.world, "sales.gone").compact()
    desk.world.catalog.drop_table("sales.gone")
    cover = replace(a_table(["dt"], name="cover", location="hdfs://nn/raw", create_time=9), database="fin")
    desk.world.catalog.add_table(cover, [])
    desk.world.files.namespace.advance(2 * 3_600_000)
    assert [one.place for one in find(desk) if one.kind is OrphanKind.RECORDS] == []
    assert "hdfs://nn/raw is left out" in caplog.text


def test_a_database_that_does_not_exist_or_cannot_be_listed_is_one_clear_error(desk):
    unknown, own = ask(desk, "nothing", "sales").tables
    assert (unknown.problem.code, own.orphans) == (Code.NO_SUCH_DATABASE, ())
    desk.world.files.namespace.unreadable.add("hdfs://nn/warehouse/sales")
    (outcome,) = ask(desk).tables
    assert (outcome.code, outcome.problem.code) == (Exit.REFUSED, Code.NO_PERMISSION)


@pytest.mark.parametrize("command", [show_orphans, clean_up_orphans])
def test_what_was_found_before_the_search_failed_is_told_and_stays(desk, monkeypatch, command):
    drop(desk)
    expected, asked, tables = find(desk), [], desk.world.metastore.tables

    def tables_until_it_goes(database, wanted):
        asked.append(wanted)
        if len(wanted) > 1 and len([one for one in asked if len(one) > 1]) > 1:
            raise MetastoreUnavailable("the metastore has gone")
        return tables(database, wanted)

    monkeypatch.setattr(desk.world.metastore, "tables", tables_until_it_goes)
    (own,) = command(a_context(desk.world.cluster, Selection(databases=("sales",)), RUN, Settings(min_age_ms=0))).tables
    assert (own.code, own.problem.what) == (Exit.UNUSABLE, "sales: the metastore has gone")
    assert expected and sorted(own.orphans, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("command", [show_orphans, clean_up_orphans])
def test_an_error_that_nobody_foresaw_is_that_of_its_table_or_database_and_the_others_are_looked_at(desk, monkeypatch, command, caplog):
    desk.world.catalog.homes["raw"] = "hdfs://nn/raw"
    desk.world.add_table(replace(a_table(["dt"], name="one"), database="raw"), {})
    drop(desk)
    ask_tables, look = desk.world.metastore.tables, desk.world.files.look

    def tables(database, wanted):
        if database == "raw":
            raise KeyError("cols")
        return ask_tables(database, wanted)

    def look_or_fail(places, *bounds):
        if any("/other/.hivekeeper" in place for place in places):
            raise RecursionError
        return look(places, *bounds)

    monkeypatch.setattr(desk.world.metastore, "tables", tables)
    monkeypatch.setattr(desk.world.files, "look", look_or_fail)
    result = command(a_context(desk.world.cluster, Selection(databases=("raw", "sales")), RUN, Settings()))
    assert result.code is Exit.BUG
    raw, sales, other = (next(one for one in result.tables if one.table == name) for name in ("raw", "sales", "sales.other"))
    assert (raw.problem.code, raw.problem.what) == (Code.BUG, "raw: unexpected error: KeyError: 'cols'")
    assert (sales.problem, [one.table for one in sales.orphans][:1]) == (None, [desk.table])
    assert (other.problem.code, other.problem.what) == (Code.BUG, "sales.other: unexpected error: RecursionError")
    assert [record.exc_info[0] for record in caplog.records if record.exc_info][:2] == [KeyError, RecursionError]


def test_it_is_shown_as_text_and_json(desk):
    drop(desk)
    result = ask(desk)
    shown = screen.render(result)
    assert "sales: 2 leftovers, " in shown
    assert "next: " in shown
    told = document.build(result)["tables"][0]["orphans"]
    assert {one["kind"] for one in told} == {"records", "backup-table"}
    assert {one["place"] for one in told} == {one.place for one in result.tables[0].orphans}
    assert "sales: nothing is left over" in screen.render(ask_empty())


def ask_empty():
    world = World()
    world.add_table(a_table(), {"": [1000]})
    return ask(Desk(world))


def test_a_table_that_lay_elsewhere_is_found_beside_another_one(desk):
    places = {name: f"hdfs://nn/raw/{name}" for name in ("gone", "stays")}
    for name, place in places.items():
        desk.world.add_table(a_table(["dt"], name=name, location=place, create_time=7), {"dt=1": [1000] * 3})
        Desk(desk.world, f"sales.{name}").compact()
    desk.world.catalog.drop_table("sales.gone")
    desk.world.files.namespace.advance(2 * 3_600_000)
    (records,) = [one for one in find(desk) if one.kind is OrphanKind.RECORDS]
    assert records.place == f"{places['gone']}/.hivekeeper"


def a_database_of_tables_at(world, *places):
    world.catalog.homes["loader"] = "hdfs://nn/warehouse/loader"
    for nth, place in enumerate(places):
        table = a_table(name=f"t{nth}", location=place, create_time=100 + nth)
        world.catalog.add_table(replace(table, database="loader"), [])


def look_through(world):
    world.metastore.forget()
    return show_orphans(a_context(world.cluster, Selection(databases=("loader",)), "20260901t020304z-0000", Settings()))


@pytest.mark.parametrize("inside", ["x", "dt=1/x", "../x"])
def test_what_it_costs_does_not_grow_with_the_partitions_or_tables_of_somebody_else(desk, monkeypatch, inside):
    world = desk.world
    big = replace(a_table(["dt"], name="big", location="hdfs://nn/warehouse/fin/big", create_time=9), database="fin")
    world.add_table(big, {f"dt={day}": [] for day in range(40)})
    for nth in range(40):
        table = a_table(name=f"other{nth}", location=f"hdfs://nn/warehouse/fin/other{nth}", create_time=10)
        world.catalog.add_table(replace(table, database="fin"), [])
        world.files.writer.make_directory(table.location)
    a_database_of_tables_at(world, f"hdfs://nn/warehouse/fin/{'big/' * (inside[0] != '.')}{inside.replace('../', '')}")
    tables, calls = world.metastore.tables, Counter()
    monkeypatch.setattr(world.metastore, "tables", lambda database, bases: (calls.update([database]), tables(database, bases))[1])
    assert look_through(world).code is Exit.DONE
    assert calls["fin"] <= 1


def test_what_is_listed_is_bounded_for_all_directories_together(desk, monkeypatch, caplog):
    world = desk.world
    monkeypatch.setattr(orphans, "MOST_LISTED", 20)
    for nth in range(10):
        for entry in range(15):
            world.files.writer.make_directory(f"hdfs://nn/data/p{nth}/d{entry}")
    world.files.writer.make_directory("hdfs://nn/data/small/d0")
    a_database_of_tables_at(world, *(f"hdfs://nn/data/p{nth}/x" for nth in range(10)), "hdfs://nn/data/small/x")
    look, asked = world.files.look, []
    monkeypatch.setattr(type(world.files), "look", lambda _, places, *most: (asked.append(list(places)), look(places, *most))[1])
    assert look_through(world).code is Exit.DONE
    assert max(map(len, asked)) <= 20
    assert any("hdfs://nn/data/small/d0/.hivekeeper" in places for places in asked)
    assert caplog.text.count("is left out") == 9


@pytest.mark.parametrize("closed", ["closed", "closed/.hivekeeper", ".hivekeeper-closed"])
def test_a_directory_that_is_closed_to_the_user_costs_only_itself(desk, caplog, closed):
    """Whoever may alter one table points it beside such a directory of their own."""
    world = desk.world
    world.files.writer.make_directory(f"hdfs://nn/user/mallory/{closed}")
    world.catalog.add_table(a_table(name="far", location="hdfs://nn/user/mallory/far"), [])
    drop(desk)
    before = find(desk)
    assert OrphanKind.RECORDS in {one.kind for one in before}
    world.files.namespace.unreadable.add(f"hdfs://nn/user/mallory/{closed}")
    assert [one for one in find(desk) if "mallory" not in one.place] == [one for one in before if "mallory" not in one.place]
    assert f"hdfs://nn/user/mallory/{closed}" in caplog.text


def test_a_directory_of_tables_that_cannot_be_looked_through_costs_only_itself(desk, monkeypatch, caplog):
    desk.world.add_table(a_table(["dt"], name="far", location="hdfs://nn/raw/far"), {"dt=1": [1000]})
    for nth in range(6):
        desk.world.files.writer.make_directory(f"hdfs://nn/raw/d{nth}")
    drop(desk)
    monkeypatch.setattr(orphans, "MOST_LISTED", 5)
    assert {one.kind for one in find(desk)} == {OrphanKind.RECORDS, OrphanKind.BACKUP_TABLE}
    assert "hdfs://nn/raw is left out" in caplog.text


@pytest.mark.parametrize("created", ["²", "99999999999999999999"])
def test_records_that_tell_no_time_of_creation_do_not_hide_what_else_is_left(desk, created):
    control = desk.control
    entry = desk.world.files.namespace.find(names.join(control.log, names.log_entry(0)))
    entry.content = entry.content.replace('"sales.events@5"', f'"sales.events@{created}"')
    entry.length = len(entry.content.encode())
    drop(desk)
    (records,) = [one for one in find(desk) if one.kind is OrphanKind.RECORDS]
    assert (records.place, records.is_read) == (control.top, False)
    assert "metaData.id" in records.why


def test_records_that_name_a_table_in_a_closed_database_hide_no_leftover_of_others(desk, monkeypatch):
    """Who had a table in a database of their own moves its control directory beside one that they create in the same second in a database
    that others share, and closes their own.
    """
    world = desk.world
    mine = a_table(name="mine", kind="MANAGED_TABLE", location="hdfs://nn/warehouse/closed/mine", create_time=77)
    world.add_table(replace(mine, database="closed"), {"": [1000] * 3})
    Desk(world, "closed.mine").compact()
    world.files.namespace.rename("hdfs://nn/warehouse/closed/.hivekeeper-mine", "hdfs://nn/warehouse/sales/.hivekeeper-mine")
    world.add_table(replace(mine, name="bait", location="hdfs://nn/warehouse/sales/bait"), {"": [1000]})
    drop(desk)
    expected = find(desk)
    assert [one for one in expected if one.table == "sales.events"] != []
    close_database(desk, "closed", monkeypatch)
    assert find(desk) == expected


def leave_logs(world, tables):
    """Those of dropped tables, each about the backup of fifty files."""
    for number in range(tables):
        world.add_table(a_table(name=f"t{number}", location=f"hdfs://nn/warehouse/sales/t{number}", create_time=5), {"": [1000] * 50})
        Desk(world, f"sales.t{number}").compact()
    for number in range(tables):
        world.catalog.drop_table(f"sales.t{number}")
    world.files.namespace.advance(2 * 3_600_000)


def count_held(monkeypatch, module, name):
    """After each call of this function, of how many files the log entries are that the cluster holds."""
    held, call = [], getattr(module, name)

    def call_and_count(cluster, *more):
        found = call(cluster, *more)
        runs = [one for one in cluster.log_entries.values() if hasattr(one, "effects")]
        held.append(sum(len(effect.before) for run in runs for effect in run.effects))
        return found

    monkeypatch.setattr(module, name, call_and_count)
    return held


def test_the_logs_of_all_that_is_left_over_are_not_held_together(monkeypatch):
    """Each may name the files of backups of millions of files."""
    world, tables = World(), 8
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    leave_logs(world, tables)
    held = count_held(monkeypatch, orphans, "_describe")
    found = [one for one in find(Desk(world, "sales.t0")) if one.kind is OrphanKind.RECORDS]
    assert [one.files for one in found] == [50] * tables
    assert max(held) <= 50, held


def test_nor_by_the_first_command_on_a_table_beside_them(monkeypatch):
    world, tables = World(), 8
    leave_logs(world, tables)
    fresh = a_table(name="fresh", kind="MANAGED_TABLE", location="hdfs://nn/warehouse/sales/fresh", create_time=9)
    world.add_table(fresh, {"": [1000] * 3})
    held = count_held(monkeypatch, left_behind, "_find_tables")
    assert Desk(world, "sales.fresh").compact().code is Exit.DONE
    assert len(held) == tables
    assert max(held) <= 50, held
