"""A managed table without partitions is renamed to the name of a table that left its control directory there: its own stays behind, perhaps
with rows that readers miss.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.steps import left_behind
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.hive_statements import Hive
from support.joined_desk import at
from support.leftovers import HOME, clean, leftovers
from support.listings import listen
from support.world import World

FORMER = "hdfs://nn/warehouse/sales/.hivekeeper-events"
GAP = ["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"]
READS = {"verify": Desk.verify, "history": Desk.history, "its partitions": lambda desk: desk.history(partitions=True)}
WRITES = {name: getattr(Desk, name) for name in ("compact", "recover", "rollback", "cleanup", "backup", "forget")}
PLANS = {f"{name} --dry-run": lambda desk, name=name: getattr(desk, name)(dry_run=True) for name in ("rollback", "cleanup", "forget")}
COMMANDS = {**READS, **WRITES, **PLANS, "pin": lambda desk: desk.pin(desk.runs[0])}


def carry_out(calls):
    for _ in calls:
        pass


def two_desks(created=5, other_created=6):
    """Of two tables alike; `events2` has been compacted."""
    world = World()
    for name, create_time in (("events", created), ("events2", other_created)):
        world.add_table(a_table((), kind="MANAGED_TABLE", name=name, create_time=create_time), {"": [1000] * 3})
    desk, other = Desk(world, backup_table=False), Desk(world, "sales.events2", backup_table=False)
    assert other.compact().code is Exit.DONE
    # Ids of runs are of their own.
    desk.runs.extend(["20260101t000000z-0000"] * 10)
    return desk, other


@pytest.fixture
def desks():
    return two_desks()


def take_name(desk, wait_ms=3_600_001):
    """DROP TABLE events2; ALTER TABLE events RENAME TO events2."""
    carry_out(Hive(desk.world).drop_table("sales.events2"))
    carry_out(Hive(desk.world).rename_table("sales.events", "sales.events2"))
    desk.world.files.namespace.advance(wait_ms)


def assert_told(result):
    problem = result.tables[0].problem
    assert (result.code, problem.code) == (Exit.INVESTIGATE, Code.LEFT_BEHIND)
    assert FORMER in problem.what


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_command_tells_of_an_interrupted_run_under_the_name_of_a_dropped_table(desks, command):
    desk, other = desks
    desk.kill_before(GAP, desk.compact)
    take_name(desk)
    assert_told(command(other))


def test_so_it_is_where_its_old_files_were_removed(desks):
    """Only the copy that was to come in has its rows then."""
    desk, other = desks
    desk.kill_before(GAP, desk.compact)
    (directory,) = desk.run_directories()
    desk.world.files.writer.delete(desk.control.run(directory).unit("retired", 1))
    take_name(desk)
    assert_told(other.recover())


@pytest.mark.parametrize("with_rows", [False, True], ids=["no rows", "new rows"])
def test_the_advice_brings_the_rows_back(desks, with_rows):
    desk, other = desks
    before = desk.world.rows_of(desk.table)
    desk.kill_before(GAP, desk.compact)
    take_name(desk)
    if with_rows:
        other.append("", "n1", "n2", "n3")
    for _ in range(2):
        assert_told(other.compact())
    *moves, recover = other.recover().tables[0].problem.next.split(", then: ")
    for move in moves:
        source, target = move.split()[3:5]
        assert source in (FORMER, other.control.top) and not other.world.files.stat(target)
        other.world.files.writer.rename_into(source, target)
    assert (len(moves), recover.partition(";")[0]) == (2, "hivekeeper recover --table sales.events2")
    code = other.recover().code
    if with_rows:
        # The new ones are in live, the old ones in a backup that is pinned.
        assert (code, bool(other.log().pinned)) == (Exit.INVESTIGATE, True)
        assert not before - other.world.rows_anywhere()
    else:
        assert (code, other.world.rows_of(other.table)) == (Exit.DONE, before)
    assert {run.table_id.partition("@")[2] for run in other.log().runs} == {"5"}


def test_verify_tells_also_where_the_dropped_table_has_left_an_empty_log():
    world = World()
    for name, create_time in (("events", 5), ("events2", 6)):
        world.add_table(a_table((), kind="MANAGED_TABLE", name=name, create_time=create_time), {"": [1000] * 3})
    desk, other = Desk(world, backup_table=False), Desk(world, "sales.events2", backup_table=False)
    other.kill_before(["rename_exact", "/plan"], other.compact)
    assert other.recover().code is Exit.DONE
    desk.runs.extend(["20260101t000000z-0000"] * 10)
    desk.kill_before(GAP, desk.compact)
    take_name(desk)
    assert_told(other.verify())


def test_a_run_that_ended_with_misplaced_rows_is_told_again(desks):
    desk, other = desks
    at(desk, GAP, lambda: take_name(desk, wait_ms=0))
    assert outcomes(desk.compact()) == {"": "misplaced"}
    other.world.files.namespace.advance(3_600_001)
    assert_told(other.compact())


def test_an_interrupted_run_of_the_dropped_table_is_settled_and_both_are_told(desks):
    desk, other = desks
    other.append("", "n1", "n2", "n3")
    other.kill_before(["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events2"], other.compact)
    desk.kill_before(GAP, desk.compact)
    take_name(desk)
    problem = other.recover().tables[0].problem
    assert problem.code is Code.CHANGED_IN_OUTAGE
    assert FORMER in problem.what
    assert_told(other.recover())


def test_a_table_that_is_left_alone_is_told_too(desks):
    desk, other = desks
    desk.kill_before(GAP, desk.compact)
    take_name(desk)
    stored = other.world.table(other.table)
    other.world.catalog.tables[other.table] = replace(stored, parameters={**stored.parameters, "hivekeeper.skip": "true"})
    assert_told(other.compact())


def test_it_is_told_of_a_rename_while_the_command_is_at_work_on_another_table():
    """The places of all tables, and the control directories beside them, were read before it."""
    world = World()
    for nth, name in enumerate(("a_first", "events", "events2")):
        world.add_table(a_table((), kind="MANAGED_TABLE", name=name, create_time=4 + nth), {"": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    world.forget()
    write = world.rows.write_stage

    def rename_and_write(batch):
        if "sales.events" in world.catalog.tables:
            take_name(desk, wait_ms=60_000)
            world.clock.elapsed_ms += 60_000
        return write(batch)

    world.rows.write_stage = rename_and_write
    result = compact_swap(a_context(world.cluster, Selection(databases=("sales",)), "20260102t000000z-0000", desk.settings))
    told = {table.table: table.problem.code for table in result.tables if table.problem}
    assert told == {"sales.events": Code.NO_SUCH_TABLE, "sales.events2": Code.LEFT_BEHIND}


def test_records_that_were_moved_away_for_it_are_those_of_a_dropped_table(desks):
    desk, other = desks
    desk.kill_before(GAP, desk.compact)
    take_name(desk)
    away = f"{other.control.top}-before-5"
    assert f" {away} " in other.recover().tables[0].problem.next
    other.world.files.writer.rename_into(other.control.top, away)
    other.world.catalog.homes["sales"] = HOME
    other.world.metastore.forget()
    (found,) = (one for one in leftovers(clean(other, dry_run=True)) if one.place == away)
    assert (found.table, found.why.partition(";")[0]) == ("sales.events2", "its table was dropped")


# ---- what is not refused


def test_a_table_that_was_built_and_compacted_under_another_name_is_compacted_under_its_own(desks):
    """Its old files stay in the other control directory, but none that readers need."""
    desk, other = desks
    assert desk.compact().code is Exit.DONE
    take_name(desk)
    for _ in range(2):
        other.append("", "n1", "n2", "n3")
        assert outcomes(other.compact()) == {"": "swapped"}
    assert other.world.files.contents(f"{FORMER}/runs")


def test_tables_that_exchanged_their_names_are_compacted(desks):
    desk, other = desks
    assert desk.compact().code is Exit.DONE
    for old, new in (("events", "temporary"), ("events2", "events"), ("temporary", "events2")):
        carry_out(Hive(desk.world).rename_table(f"sales.{old}", f"sales.{new}"))
    desk.world.files.namespace.advance(3_600_001)
    for one in desks:
        one.append("", "n1", "n2", "n3")
        assert outcomes(one.compact()) == {"": "swapped"}


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "killed"])
def test_a_table_that_was_created_again_beside_what_a_dropped_one_left_is_compacted(desks, is_killed):
    desk, other = desks
    if is_killed:
        desk.kill_before(GAP, desk.compact)
    carry_out(Hive(desk.world).drop_table(desk.table))
    carry_out(Hive(desk.world).drop_and_create(other.table))
    desk.world.files.namespace.advance(3_600_001)
    other.append("", "n1", "n2", "n3")
    assert outcomes(other.compact()) == {"": "swapped"}


def test_a_killed_copy_of_a_dropped_table_of_the_same_second_stops_no_other():
    """Each night a script drops its tables and creates them again, all in one second; today one less."""
    desk, other = two_desks(other_created=4)
    world = desk.world
    carry_out(Hive(world).drop_table(other.table))
    world.add_table(a_table((), kind="MANAGED_TABLE", name="events2", create_time=5), {"": [1000] * 3})
    desk.kill_before(["rename_exact", "/stage/"], desk.compact)
    carry_out(Hive(world).drop_table(desk.table))
    world.files.namespace.advance(3_600_001)
    assert outcomes(other.compact()) == {"": "swapped"}


def test_thousands_of_such_tables_beside_as_many_directories_do_not_look_through_them_for_each(monkeypatch):
    world, looked, is_there = World(), [], left_behind._is_there
    for nth in range(5):
        world.add_table(a_table((), kind="MANAGED_TABLE", name=f"events{nth}", create_time=5 + nth), {"": [1000] * 3})
        assert Desk(world, f"sales.events{nth}", backup_table=False).compact().code is Exit.DONE
        carry_out(Hive(world).drop_and_create(f"sales.events{nth}"))
    monkeypatch.setattr(left_behind, "_is_there", lambda table, *where: looked.append(table) or is_there(table, *where))
    context = a_context(world.cluster, Selection(databases=("sales",)), "20260102t000000z-0000", Desk(world, backup_table=False).settings)
    assert compact_swap(context).code is Exit.DONE
    assert len(looked) <= 5


def test_records_that_take_long_to_read_are_not_read_for_each_table_beside_them(monkeypatch):
    world, read, find_tables = World(), [], left_behind._find_tables
    for nth in range(5):
        world.add_table(a_table((), kind="MANAGED_TABLE", name=f"former{nth}", create_time=5 + nth), {"": [1000] * 3})
        assert Desk(world, f"sales.former{nth}", backup_table=False).compact().code is Exit.DONE
        carry_out(Hive(world).drop_table(f"sales.former{nth}"))
        world.add_table(a_table((), kind="MANAGED_TABLE", name=f"events{nth}", create_time=15 + nth), {"": [1000] * 3})

    def read_slowly(cluster, table, control, *more):
        read.append(control.top)
        world.clock.elapsed_ms += 20_000
        return find_tables(cluster, table, control, *more)

    monkeypatch.setattr(left_behind, "_find_tables", read_slowly)
    context = a_context(world.cluster, Selection(databases=("sales",)), "20260102t000000z-0000", Desk(world, backup_table=False).settings)
    assert compact_swap(context).code is Exit.DONE
    assert sorted(read) == sorted({*read})


def test_a_table_whose_first_run_was_interrupted_is_recovered_beside_what_one_of_the_same_second_left():
    world = World()
    for name in ("events", "events2"):
        world.add_table(a_table((), kind="MANAGED_TABLE", name=name, create_time=5), {"": [1000] * 3})
    desk, other = Desk(world, backup_table=False), Desk(world, "sales.events2", backup_table=False)
    before = world.rows_of(desk.table)
    desk.kill_before(GAP, desk.compact)
    other.kill_before(["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events2"], other.compact)
    carry_out(Hive(world).drop_table(other.table))
    world.files.namespace.advance(3_600_001)
    assert (desk.recover().code, world.rows_of(desk.table)) == (Exit.DONE, before)


def test_a_table_whose_control_directory_was_brought_is_not_asked_again(desks):
    desk, other = desks
    before = desk.world.rows_of(desk.table)
    desk.kill_before(GAP, desk.compact)
    take_name(desk)
    other.world.files.writer.rename_into(other.control.top, f"{other.control.top}-before-5")
    other.world.files.writer.rename_into(FORMER, other.control.top)
    assert (other.recover().code, other.world.rows_of(other.table)) == (Exit.DONE, before)
    assert other.cleanup().code is Exit.DONE


def test_a_table_with_an_entry_of_its_own_asks_nothing_more(desks):
    """Of thousands of tables in one directory each would."""
    desk, other = desks
    desk.kill_before(GAP, desk.compact)
    asked, names_of = [], other.world.metastore.table_names
    other.world.metastore.table_names = lambda database: asked.append(database) or names_of(database)
    listed = listen(other.world.files, "look", "look_hidden", "look_hidden_directories")
    for command in (Desk.recover, Desk.compact, Desk.verify, Desk.cleanup):
        assert command(other).code is Exit.DONE
    assert "hdfs://nn/warehouse/sales" not in listed and "sales" not in asked
