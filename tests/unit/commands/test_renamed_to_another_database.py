"""A run is killed in its gap, and its table without partitions is renamed into another database, whose directory Hive moves it to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from hivekeeper.plan import listings
from hivekeeper.ports import NoPermission
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.hive_statements import Hive
from support.joined_desk import at
from support.listings import listen
from support.world import World

PLACE, NAME = "hdfs://nn/warehouse/sales.db/events", "archive.kept"
BESIDE, ELSEWHERE = "hdfs://nn/warehouse/sales.db/kept", "hdfs://nn/warehouse/archive.db/kept"
FORMER = "hdfs://nn/warehouse/sales.db/.hivekeeper-events"
GAP = ["rename_exact", f"/ready/u00001 {PLACE}"]


def rename(world, new=ELSEWHERE):
    for _ in Hive(world).rename_table("sales.events", NAME):
        pass
    # HiveAlterHandler: the new database's directory, and the new name.
    world.catalog.put_table(replace(world.table(NAME), location=new))
    world.catalog.homes["archive"] = new.rpartition("/")[0]
    world.files.writer.make_directory(world.catalog.homes["archive"])


def two_databases():
    world = World()
    world.catalog.databases.update(["archive", "tenant"])
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales.db"
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5, location=PLACE), {"": [1000] * 3})
    return world


def interrupt(new=ELSEWHERE):
    """The desk of the renamed table, and its rows before."""
    world = two_databases()
    before = world.rows_of("sales.events")
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    rename(world, new)
    world.files.namespace.advance(3_600_001)
    kept = Desk(world, NAME, backup_table=False)
    kept.runs = list(desk.runs)
    assert world.rows_of(NAME) != before
    return kept, before


@pytest.mark.parametrize("new", [BESIDE, ELSEWHERE], ids=["beside", "elsewhere"])
@pytest.mark.parametrize("command", [Desk.recover, Desk.compact, Desk.verify], ids=["recover", "compact", "verify"])
def test_its_commands_tell_that_its_rows_are_missing(command, new):
    kept, _ = interrupt(new)
    assert command(kept).code is Exit.INVESTIGATE


def test_the_advice_brings_the_rows_back():
    kept, before = interrupt()
    problem = kept.compact().tables[0].problem
    own = "hdfs://nn/warehouse/archive.db/.hivekeeper-kept"
    assert (problem.code, f"hdfs dfs -mv {FORMER} {own}, then: " in problem.next) == (Code.LEFT_BEHIND, True)
    kept.world.files.writer.rename_into(FORMER, own)
    assert (kept.recover().code, kept.world.rows_of(NAME)) == (Exit.DONE, before)


def test_a_run_that_ended_with_misplaced_rows_is_told_again():
    world = two_databases()
    desk = Desk(world, backup_table=False)
    at(desk, GAP, lambda: rename(world))
    assert outcomes(desk.compact()) == {"": "misplaced"}
    world.files.namespace.advance(3_600_001)
    kept = Desk(world, NAME, backup_table=False)
    assert kept.recover().tables[0].problem.code is Code.LEFT_BEHIND


def test_a_compaction_tells_also_after_new_rows_have_come():
    kept, _ = interrupt()
    kept.append("", "n1", "n2", "n3")
    assert kept.compact().tables[0].problem.code is Code.LEFT_BEHIND
    assert kept.compact(dry_run=True).tables[0].problem.code is Code.LEFT_BEHIND


@pytest.mark.parametrize("place", ["hdfs://nn/warehouse", PLACE], ids=["around", "at it"])
def test_a_table_of_somebody_else_at_its_former_place_does_not_silence_it(place):
    kept, _ = interrupt()
    kept.world.catalog.add_table(replace(a_table((), name="mine", location=place, create_time=77), database="tenant"), [])
    assert kept.recover().tables[0].problem.code is Code.LEFT_BEHIND


def test_whoever_closes_the_directory_of_a_database_or_fills_it_hides_nothing_of_others(monkeypatch):
    kept, _ = interrupt()
    world = kept.world
    monkeypatch.setattr(listings, "MOST_BESIDE", 20)
    world.catalog.homes["tenant"] = "hdfs://nn/warehouse/tenant.db"
    world.catalog.databases.add("full")
    world.catalog.homes["full"] = "hdfs://nn/warehouse/full.db"
    for nth in range(30):
        world.files.writer.make_directory(f"hdfs://nn/warehouse/full.db/.{nth}")
    look = world.files.look_hidden_directories

    def refuse(places, *most):
        if any(place.endswith("tenant.db") for place in places):
            raise NoPermission("tenant.db: permission denied")
        return look(places, *most)

    monkeypatch.setattr(world.files, "look_hidden_directories", refuse)
    assert kept.recover().tables[0].problem.code is Code.LEFT_BEHIND


# ---- what it costs others, and whom it does not stop


def add_new(world, number, **more):
    for nth in range(number):
        world.add_table(a_table((), kind="MANAGED_TABLE", name=f"t{nth}", location=f"hdfs://nn/new/t{nth}", **more), {"": [1000]})


def test_the_directories_of_databases_are_listed_once_in_a_command_and_not_those_of_another_server():
    kept, _ = interrupt()
    world = kept.world
    add_new(world, 5, create_time=9)
    world.catalog.homes["tenant"] = "hdfs://other/warehouse/tenant.db"
    listed = listen(world.files, "look_hidden_directories")
    context = a_context(world.cluster, Selection(databases=("sales",)), "20260201t020304z-0000")
    assert compact_swap(context).code is Exit.DONE
    homes = ["hdfs://nn/warehouse/sales.db", "hdfs://nn/warehouse/archive.db", "hdfs://other/warehouse/tenant.db"]
    assert [listed.count(home) for home in homes] == [1, 1, 0]


@pytest.mark.parametrize("command", [Desk.recover, Desk.verify, Desk.history])
def test_for_a_table_that_has_its_directory_the_places_of_all_tables_are_not_read(command):
    world = two_databases()
    world.metastore.database_locations = None
    assert command(Desk(world)).code is Exit.DONE


@pytest.mark.parametrize("is_dropped", [False, True], ids=["is there", "was dropped"])
def test_tables_of_the_same_second_in_other_databases_are_compacted(is_dropped):
    world = two_databases()
    world.catalog.homes["archive"] = ELSEWHERE.rpartition("/")[0]
    other = replace(a_table((), kind="MANAGED_TABLE", name="kept", create_time=5, location=ELSEWHERE), database="archive")
    world.add_table(other, {"": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.kill_before(GAP, desk.compact)
    if is_dropped:
        for _ in Hive(world).drop_table("sales.events"):
            pass
    world.files.namespace.advance(3_600_001)
    kept = Desk(world, NAME, backup_table=False)
    kept.runs = list(desk.runs)
    assert (kept.recover().code, kept.compact().code) == (Exit.DONE, Exit.DONE)


def test_a_table_that_was_compacted_and_then_renamed_into_another_database_is_compacted_there():
    world = two_databases()
    desk = Desk(world, backup_table=False)
    assert desk.compact().code is Exit.DONE
    rename(world)
    world.files.writer.rename_into(BESIDE, ELSEWHERE)
    world.files.namespace.advance(3_600_001)
    kept = Desk(world, NAME, backup_table=False)
    kept.runs = list(desk.runs)
    kept.append("", "n1", "n2", "n3")
    assert outcomes(kept.compact()) == {"": "swapped"}
