"""The control directory of another table lies in the place of this one's: no command adds to its log, answers from it, or clears it up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.runlog.history import History
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World


def two_tables(**settings):
    world = World()
    for name, create_time in (("events", 5), ("orders", 99)):
        world.add_table(a_table(["dt"], name=name, create_time=create_time), {"dt=1": [1000] * 3})
    mine, theirs = Desk(world, **settings), Desk(world, "sales.orders", **settings)
    # Ids of runs are of their own.
    mine.runs.extend(["20260101t000000z-0000"] * 10)
    return mine, theirs


def put_in_place(mine, theirs):
    mine.world.files.writer.rename_into(theirs.control.top, mine.control.top)


def drop_and_create_again(desk):
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table).values()
    for _ in Hive(desk.world).drop_table(desk.table):
        pass
    desk.world.catalog.add_table(replace(table, create_time=104), partitions)


def assert_refused(result):
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.OTHER_TABLE)


@pytest.mark.parametrize("pinned", [True, False])
def test_neither_pin_nor_unpin_writes_into_it(pinned):
    mine, theirs = two_tables()
    theirs.compact()
    if not pinned:
        theirs.pin(theirs.runs[0])
    put_in_place(mine, theirs)
    before = mine.log()
    assert_refused(mine.pin(theirs.runs[0], pinned))
    assert mine.log() == before


def test_the_backup_that_a_dropped_table_left_here_can_be_pinned():
    desk, _ = two_tables()
    desk.compact()
    former = desk.runs[-1]
    drop_and_create_again(desk)
    assert (desk.pin(former).code, desk.log().pinned) == (Exit.DONE, {former})


def test_a_dry_run_of_a_compaction_is_refused_like_the_compaction():
    mine, theirs = two_tables()
    theirs.compact()
    put_in_place(mine, theirs)
    for dry_run in (True, False):
        assert_refused(mine.compact(dry_run=dry_run))


@pytest.mark.parametrize("command", [Desk.compact, Desk.rollback])
def test_a_run_key_in_it_answers_nothing(command):
    mine, theirs = two_tables()
    mine.run_key = theirs.run_key = "nightly"
    if command is Desk.rollback:
        theirs.run_key = ""
        theirs.compact()
        theirs.run_key = "nightly"
    assert command(theirs).code is Exit.DONE
    put_in_place(mine, theirs)
    assert_refused(command(mine))


@pytest.mark.parametrize("is_away", [False, True], ids=["", "and the metastore does not answer"])
def test_what_was_verified_is_not_written_into_one_that_came_while_rows_were_read(monkeypatch, is_away):
    mine, theirs = two_tables(cleanup_requires="verified")
    assert mine.compact().code is theirs.compact().code is Exit.DONE
    before, place, digests = theirs.log(), theirs.control.top, mine.world.rows.digests

    def exchange(*args):
        found = digests(*args)
        mine.world.files.writer.rename_into(mine.control.top, f"{mine.live()}/.aside")
        put_in_place(mine, theirs)
        if is_away:
            mine.world.metastore.fail_next("tables", MetastoreUnavailable("timeout"))
        return found

    monkeypatch.setattr(mine.world.rows, "digests", exchange)
    result = mine.verify()
    if is_away:
        assert (result.code, result.tables[0].log_version) == (Exit.DONE, None)
    else:
        assert_refused(result)
    mine.world.files.writer.rename_into(mine.control.top, place)
    assert theirs.log() == before


def test_an_interrupted_record_of_another_table_stays():
    mine, theirs = two_tables()
    theirs.kill_before(["/log/"], theirs.backup)
    put_in_place(mine, theirs)
    assert_refused(mine.recover())
    assert len(mine.run_directories()) == 1


def test_an_interrupted_record_of_a_table_that_was_created_again_goes():
    desk, _ = two_tables()
    desk.kill_before(["/log/"], desk.backup)
    drop_and_create_again(desk)
    assert desk.recover().code is Exit.DONE
    assert (desk.run_directories(), desk.log()) == ([], History())
