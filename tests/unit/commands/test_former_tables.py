"""Old files of a table that lay where another one lies now: dropped and created again, or with its place taken by somebody else's table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands.cleanup import clean_up
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.desk import EVERYTHING, Desk
from support.hive_statements import Hive
from support.leftovers import DAY_MS, SHAPES, build, wait

TAKERS = ["loader.mine", "sales.mine", "sales.events"]


@pytest.fixture(params=list(SHAPES))
def desk(request):
    return build(request.param)


def take_place(desk, taker, moved=False):
    """The desk of a table that got the place of a dropped, or moved, one, on which nothing was run yet."""
    world, old = desk.world, desk.world.table(desk.table)
    wait(desk, 30)
    world.catalog.drop_table(desk.table)
    world.wait(2 * 3_600_000)
    database, _, name = taker.partition(".")
    created = world.clock.now_ms() // 1000
    world.catalog.add_table(replace(old, database=database, name=name, create_time=created, owner="loader"), [])
    if moved:
        world.add_table(replace(old, name="moved", location="hdfs://nn/elsewhere/moved"), {})
    # An external table's directory, outside those of all databases.
    world.catalog.homes.pop("sales", None)
    world.wait(2 * 3_600_000)
    theirs = Desk(world, taker)
    theirs.runs = list(desk.runs)
    return theirs


def old_files(desk):
    return sorted(path for path in desk.world.files.contents(desk.control.top) if "/retired/" in path)


def reasons(result):
    return {backup.why.code for backup in result.tables[0].backups}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("moved", [False, True], ids=["dropped", "renamed and moved"])
def test_the_old_files_of_a_table_stay_whatever_lies_in_its_place_now(desk, taker, moved):
    theirs = take_place(desk, taker, moved)
    before = old_files(theirs)
    assert reasons(theirs.cleanup(Settings(), dry_run=True)) == reasons(theirs.cleanup(Settings())) == {Code.OF_FORMER_TABLE}
    assert theirs.history(partitions=True).tables[0].old_files[0].why.code is Code.OF_FORMER_TABLE
    assert before and old_files(theirs) == before
    assert theirs.cleanup(Settings()).tables[0].window is None


@pytest.mark.parametrize("taker", TAKERS)
def test_they_go_when_an_operator_asks_for_those_of_former_tables(desk, taker):
    theirs = take_place(desk, taker)
    refused = theirs.forget()
    assert (refused.code, "cleanup --former-tables" in refused.tables[0].problem.next) == (Exit.REFUSED, True)
    before = old_files(theirs)
    assert reasons(theirs.cleanup(Settings(), former=True)) == {Code.TOO_YOUNG}
    assert before and old_files(theirs) == before
    wait(theirs, 8)
    assert theirs.cleanup(Settings(), former=True).code is Exit.DONE
    assert (old_files(theirs), theirs.log().standing) == ([], ())
    assert theirs.forget().code is Exit.DONE
    assert not theirs.world.files.contents(theirs.control.top)


def test_they_stay_as_long_as_a_young_backup_when_the_other_table_was_just_created(desk):
    theirs = take_place(desk, "sales.events")
    before = old_files(theirs)
    assert reasons(theirs.cleanup(Settings(), former=True)) == {Code.TOO_YOUNG}
    assert old_files(theirs) == before


@pytest.mark.parametrize("taker", TAKERS)
def test_those_of_a_table_that_may_have_been_renamed_stay_also_when_an_operator_asks(desk, taker):
    theirs = take_place(desk, taker, moved=True)
    before = old_files(theirs)
    result = theirs.cleanup(EVERYTHING, former=True)
    assert reasons(result) == {Code.OF_FORMER_TABLE}
    assert "sales.moved was created in the same second" in result.tables[0].backups[0].why.what
    assert old_files(theirs) == before


@pytest.mark.parametrize("hidden", [False, True], ids=["alone", "beside a partition that is called like it"])
def test_those_that_a_partition_of_another_table_shows_stay(desk, hidden):
    """Somebody has pointed it there, to have the rows of the dropped table."""
    theirs = take_place(desk, "sales.events")
    place = names.join(theirs.control.top, theirs.log().standing[0].place)
    rescue = a_table(["dt", "hour"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    theirs.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1/hour=2", place)])
    if hidden:
        # Hive 4 allows `/` and `=` in the names of tables.
        evil = a_table(["hour"], name="rescue/dt=1", location="hdfs://nn/home/mallory/t", create_time=99)
        theirs.world.catalog.add_table(replace(evil, database="fin"), [a_partition("hour=2", names.join(theirs.control.top, "log/x"))])
    shown = [path for path in old_files(theirs) if path.startswith(place)]
    result = theirs.cleanup(EVERYTHING, former=True)
    assert (result.code, Code.BACKUP_SHOWN in reasons(result) | {why.code for _, why in result.tables[0].backups[0].kept_units}) == (
        Exit.DONE,
        True,
    )
    assert shown and set(shown) <= set(old_files(theirs))


def test_its_own_old_files_go_beside_those_of_a_former_table(desk):
    theirs = take_place(desk, "sales.events")
    kept = old_files(theirs)
    if theirs.world.table(theirs.table).partitioned:
        theirs.world.make_partition(theirs.table, "dt=1")
    unit = "dt=1" if theirs.world.table(theirs.table).partitioned else ""
    theirs.append(unit, "a", "b", "c")
    assert theirs.compact().code is Exit.DONE
    assert len(old_files(theirs)) > len(kept)
    assert theirs.cleanup().code is Exit.DONE
    assert old_files(theirs) == kept


def test_so_they_do_when_it_was_renamed_and_its_backup_tables_have_its_former_name(desk):
    theirs = take_place(desk, "sales.mine")
    unit = "dt=1" if theirs.world.table(theirs.table).partitioned else ""
    if unit:
        theirs.world.make_partition(theirs.table, unit)
    theirs.append(unit, "a", "b", "c")
    assert theirs.compact().code is Exit.DONE
    for _ in Hive(theirs.world).rename_table("sales.mine", "sales.renamed"):
        pass
    renamed = Desk(theirs.world, "sales.renamed")
    renamed.runs = list(theirs.runs)
    wait(renamed, 8)
    assert reasons(renamed.cleanup(EVERYTHING, former=True)) == {Code.NOT_KEPT}
    assert old_files(renamed) == []


def test_a_slow_metastore_is_not_read_again_for_each_of_many_former_tables(monkeypatch):
    desk = build("flat")
    for _ in range(5):
        desk = take_place(desk, "sales.events")
        desk.append("", "a", "b", "c")
        assert desk.compact().code is Exit.DONE
    desk = take_place(desk, "sales.events")
    wait(desk, 30)
    world, asked = desk.world, []
    databases_of = world.metastore.databases

    def take_long():
        asked.append(1)
        world.clock.sleep_ms(90_000)
        return databases_of()

    monkeypatch.setattr(world.metastore, "databases", take_long)
    assert reasons(desk.cleanup(EVERYTHING, former=True)) == {Code.NOT_KEPT}
    # Twice before the partitions of all are read, and twice after.
    assert (len(asked), old_files(desk)) == (4, [])


def test_the_record_of_a_backup_of_a_former_table_stays_too():
    desk = build("flat", compactions=1)
    desk.backup()
    theirs = take_place(desk, "loader.mine")
    theirs.cleanup()
    assert len(theirs.log().records) == 1
    theirs.cleanup(former=True)
    assert theirs.log().records == ()


@pytest.mark.parametrize("moved", [False, True], ids=["dropped", "renamed and moved"])
def test_forget_takes_the_log_of_a_former_table_only_if_that_is_certainly_gone(desk, moved):
    desk.world.wait(30 * DAY_MS)
    assert desk.cleanup().code == 0
    theirs = take_place(desk, "loader.mine", moved)
    result = theirs.forget()
    assert result.code is (Exit.REFUSED if moved else Exit.DONE)
    assert (theirs.log().runs != ()) is moved
    if moved:
        assert result.tables[0].problem.code is Code.RECORDS_NEEDED


@pytest.fixture(params=["archive", "sales"], ids=["to another database", "in its database"])
def rename_once_names_are_read(request):
    """Gives sales.moved another name as soon as the names of the tables of one database are read. What is told of the tables then: those of
    `archive` without it, or those of `sales` by their names before.
    """

    def prepare(desk):
        world, done = desk.world, []
        world.catalog.databases.add("archive")
        names_of = world.metastore.table_names

        def read_and_rename(database):
            found = names_of(database)
            if database == request.param and not done:
                done.append(database)
                for _ in Hive(world).rename_table("sales.moved", f"{request.param}.renamed"):
                    pass
            return found

        world.metastore.table_names = read_and_rename
        return done

    return prepare


def test_those_of_a_table_that_is_renamed_while_all_tables_are_read_stay(desk, rename_once_names_are_read):
    theirs = take_place(desk, "loader.mine", moved=True)
    before, done = old_files(theirs), rename_once_names_are_read(theirs)
    assert reasons(theirs.cleanup(EVERYTHING, former=True)) == {Code.OF_FORMER_TABLE}
    assert done and before and old_files(theirs) == before


def test_what_a_table_shows_that_is_renamed_while_all_tables_are_read_a_second_time_stays(desk, monkeypatch):
    """It has shown them since before the first time. The second time nobody is told of it: `sales` is read before `fin` then."""
    theirs = take_place(desk, "loader.mine")
    world, place, asked = theirs.world, names.join(theirs.control.top, theirs.log().standing[0].place), []
    world.catalog.add_table(replace(a_table(name="rescue", location=place, create_time=88), database="fin"))
    rows, names_of = world.rows_of("fin.rescue"), world.metastore.table_names

    def read_and_rename(database):
        found = names_of(database)
        asked.append(database)
        if asked.count("sales") == 2 and "fin.rescue" in world.tables():
            list(Hive(world).rename_table("fin.rescue", "sales.rescued"))
        return found

    # The locations of all tables, which the command reads too, are those of before.
    world.metastore.table_locations()
    monkeypatch.setattr(world.metastore, "table_names", read_and_rename)
    theirs.cleanup(EVERYTHING, former=True)
    assert rows and "sales.rescued" in world.tables()
    assert world.rows_of("sales.rescued") == rows


def test_forget_keeps_the_log_of_a_table_that_is_renamed_while_all_tables_are_read(desk, rename_once_names_are_read):
    desk.world.wait(30 * DAY_MS)
    assert desk.cleanup().code == 0
    theirs = take_place(desk, "loader.mine", moved=True)
    done = rename_once_names_are_read(theirs)
    assert theirs.forget().tables[0].problem.code is Code.RECORDS_NEEDED
    assert done and theirs.log().runs


def test_all_tables_are_read_twice_by_a_command_that_also_settles_a_run_of_a_former_table(monkeypatch):
    theirs = take_place(build("flat"), "sales.events")
    world = theirs.world
    killed = Desk(world, "sales.killed")
    killed.runs = list(theirs.runs)
    world.add_table(a_table([], name="killed", create_time=7), {"": [1000] * 3})
    killed.kill_before(["rename_exact", "/ready/u00001 "], killed.compact)
    known = world.table("sales.killed")
    world.catalog.drop_table("sales.killed")
    world.catalog.add_table(replace(known, create_time=world.clock.now_ms() // 1000), [])
    wait(theirs, 30)
    world.forget()
    read, databases = [], world.metastore.databases
    monkeypatch.setattr(world.metastore, "databases", lambda: read.append(True) or databases())
    context = a_context(world.cluster, Selection(tables=("sales.killed", "sales.events")), "20260901t020304z-0000", former_tables=True)
    result = clean_up(context)
    codes = {one.table: one.problem and one.problem.code for one in result.tables}
    assert codes == {"sales.killed": Code.CHANGED_IN_OUTAGE, "sales.events": None}
    assert result.tables[1].backups
    assert len(read) == 2
