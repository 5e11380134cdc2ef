"""A table that gets another owner (`ALTER TABLE … SET OWNER`, or an `ALTER TABLE` by a Spark before 2.4.5, which writes its own user there)
and is the same one: nobody has taken anything, and nothing may be lost to it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.ports import FilesError
from hivekeeper.reasons import Code
from support import joined_desk
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World

RENAMED = "sales.renamed"
SHAPES = {"flat": ((), [""]), "partitioned": (("dt",), ["dt=1", "dt=2"])}


def a_desk(shape):
    columns, units = SHAPES[shape]
    world = World()
    world.add_table(a_table(columns, create_time=5, owner="finance"), {unit: [1000] * 3 for unit in units})
    return Desk(world, backup_table=False)


def give(desk, owner):
    desk.world.catalog.put_table(replace(desk.world.table(desk.table), owner=owner))


def rename(desk):
    """An external table, so its records stay where it is."""
    deque(Hive(desk.world).rename_table(desk.table, RENAMED), maxlen=0)
    desk.table = RENAMED


def rows(desk):
    return sorted(desk.world.rows_of(desk.table))


def killed_in_its_gap(shape):
    desk = a_desk(shape)
    before = rows(desk)
    desk.kill_before(["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"], desk.compact)
    assert rows(desk) != before
    return desk, before


@pytest.mark.parametrize("is_renamed", [False, True], ids=["same name", "renamed"])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_the_rows_of_a_killed_run_come_back_once_the_table_is_given_back(shape, is_renamed):
    desk, before = killed_in_its_gap(shape)
    give(desk, "sales_etl")
    if is_renamed:
        rename(desk)
    desk.world.files.namespace.advance(3_600_000)
    for _ in range(2):
        (told,) = desk.compact().tables
        assert told.problem and told.problem.code is Code.OTHER_TABLE, told
    give(desk, "finance")
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == before


def test_where_hive_knows_no_set_owner_they_are_brought_by_hand():
    desk, before = killed_in_its_gap("flat")
    give(desk, "sales_etl")
    assert desk.compact().tables[0].problem.code is Code.OTHER_TABLE
    (run,) = desk.run_directories()
    desk.world.files.writer.rename_into(names.join(desk.control.run(run).state("retired"), "u00001"), desk.live())
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == before


def test_what_waits_aside_is_moved_out_where_the_new_files_are_live_already():
    desk = a_desk("flat")
    before = rows(desk)
    desk.kill_before(["write_new", "/entry.json"], desk.compact)
    give(desk, "sales_etl")
    assert desk.recover().tables[0].problem.code is Code.OTHER_TABLE
    (run,) = desk.run_directories()
    desk.world.files.writer.rename_into(names.join(desk.control.run(run).state("retired"), "u00001"), "hdfs://nn/kept")
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == before


def damage(desk, run):
    """As when a block of the file is missing."""
    plan, files = desk.control.run(run).plan, desk.world.files
    read = files.read_pieces

    def read_pieces(file):
        if file.path == plan:
            raise FilesError("Could not obtain block")
        return read(file)

    files.read_pieces = read_pieces


def cut(desk, run):
    plan = desk.control.run(run).plan
    desk.world.files.writer.delete(plan)
    desk.world.files.write_new(plan, "{", 0o600)


@pytest.mark.parametrize("spoil", [damage, cut])
@pytest.mark.parametrize("is_renamed", [False, True], ids=["same name", "renamed"])
def test_a_damaged_plan_of_a_run_that_has_ended_stops_no_command(spoil, is_renamed):
    desk = a_desk("partitioned")
    before = rows(desk)
    desk.compact()
    desk.append("dt=1", "a", "b")
    desk.compact()
    if is_renamed:
        rename(desk)
    spoil(desk, max(desk.run_directories()))
    desk.append("dt=2", "c", "d")
    assert desk.compact().code is Exit.DONE
    assert desk.rollback().code is Exit.DONE
    for run in list(desk.runs[:2])[::-1]:
        assert desk.rollback(undo=run).code is Exit.DONE, run
    assert rows(desk) == sorted([*before, *"abcd"])


def test_no_run_is_asked_for_that_is_in_the_log_alone():
    """A table that is compacted each night for a year, whose backups a cleanup has discarded."""
    desk = a_desk("flat")
    for night in range(20):
        desk.append("", f"{night}-a", f"{night}-b")
        desk.compact()
        desk.cleanup()
    asked, stat = [], desk.world.files.stat
    desk.world.files.stat = lambda path: asked.append(path) or stat(path)
    desk.append("", "a", "b")
    assert desk.compact().code is Exit.DONE
    assert len(desk.log().runs) > 40
    assert not [path for path in asked if path.endswith("plan.json")]


@pytest.mark.parametrize("is_renamed", [False, True], ids=["same name", "renamed"])
@pytest.mark.parametrize("command", [Desk.compact, Desk.rollback])
def test_a_join_that_was_killed_before_its_proof_has_taken_nothing_out_of_live(command, is_renamed):
    desk = joined_desk.a_desk()
    if command is Desk.rollback:
        desk.compact()
    before = rows(desk)
    desk.kill_before(["write_ends", "/stage/"], lambda: command(desk))
    give(desk, "sales_etl")
    if is_renamed:
        rename(desk)
    assert desk.recover().code is Exit.DONE
    assert desk.compact().code is Exit.DONE
    assert rows(desk) == before
