"""A table that has had a run of the command's id already. Its entry would be taken for that of the new run, which would get none, so that
nobody could undo or recover it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import backup, cleanup, compact_swap, pin, rollback, verify
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import EVERYTHING, desk_by

FIRST, NEXT = "20260101t020304z-00fe", "20260101t020304z-00ff"
FLAT_TOO = pytest.mark.parametrize("by", [["dt"], []], ids=["partitioned", "flat"])
COMMANDS = {
    "compact": compact_swap.compact_swap,
    "backup": backup.back_up,
    "rollback": rollback.rollback,
    "cleanup": cleanup.clean_up,
    "pin": lambda context: pin.pin(context, FIRST, True),
}


def run(desk, run_id, command=compact_swap.compact_swap, databases=("sales",), **settings):
    selection = Selection(databases=databases)
    return command(a_context(desk.world.cluster, selection, run_id, replace(EVERYTHING, **settings), confirm=lambda _planned: True))


def picture(desk):
    """All but the lock, which tells who had it last."""
    return {path: content for path, content in desk.world.picture().items() if not path.endswith("/_lock")}


def is_refused(table):
    return (table.problem.code, table.code) == (Code.RUN_ID_TAKEN, Exit.LOCKED)


@FLAT_TOO
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_with_the_id_of_a_former_run_changes_nothing_and_the_next_one_does_its_work(by, command):
    desk = desk_by(by)
    run(desk, FIRST)
    desk.append("dt=1" if by else "", "a", "b")
    before, logged = picture(desk), desk.log().next_version
    assert is_refused(run(desk, FIRST, COMMANDS[command]).tables[0])
    assert picture(desk) == before
    assert run(desk, NEXT, COMMANDS[command]).code is Exit.DONE
    assert desk.log().next_version > logged


def test_verify_does_not_end_an_interrupted_run_of_the_same_id(monkeypatch):
    desk = desk_by(["dt"])
    run(desk, FIRST)
    desk.append("dt=1", "a", "b")
    rows = desk.world.rows_of(desk.table)
    desk.kill_before(["rename_exact", "/ready/u00001 "], lambda: run(desk, NEXT))
    # It has looked for such runs just before.
    monkeypatch.setattr(verify, "refuse_unfinished", lambda *_: None)
    run(desk, NEXT, verify.verify, cleanup_requires="verified")
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == rows


def test_the_id_of_a_cleanup_after_a_compaction_and_of_an_expired_entry_are_known_too():
    desk = desk_by(["dt"])
    run(desk, FIRST)
    desk.append("dt=1", "a", "b")
    run(desk, "20260102t020304z-0000", cleanup_after=True, checkpoint_interval=1, log_retention_ms=0)
    desk.append("dt=1", "c", "d")
    run(desk, "20260103t020304z-0000", cleanup_after=True, checkpoint_interval=1, log_retention_ms=0)
    assert any(entry.expired and entry.run == FIRST for entry in desk.log().runs)
    desk.append("dt=1", "e", "f")
    for former in (FIRST, names.following_run_id("20260103t020304z-0000")):
        assert is_refused(run(desk, former).tables[0])


@FLAT_TOO
def test_a_table_that_a_command_meets_again_under_a_new_name_waits_for_the_next_command(by, monkeypatch):
    """Its job for `sales.events` fails; then somebody publishes that table, before the command comes to the other database: `DROP TABLE
    zz.events; ALTER TABLE sales.events RENAME TO zz.events`.
    """
    desk = desk_by(by)
    world, catalog, tables = desk.world, desk.world.catalog, desk.world.metastore.tables
    world.add_table(replace(a_table(location="hdfs://nn/data/former"), database="zz"), {"": [200 * 2**20]})
    rows = world.rows_of(desk.table)
    world.rows.fail = lambda _batch: "an executor was lost" if "sales.events" in catalog.tables else None

    def then_rename(database, wanted):
        if database == "zz" and "sales.events" in catalog.tables:
            catalog.tables["zz.events"] = replace(catalog.tables.pop("sales.events"), database="zz")
            catalog.partitions["zz.events"] = catalog.partitions.pop("sales.events")
        return tables(database, wanted)

    monkeypatch.setattr(world.metastore, "tables", then_rename)
    first, again = run(desk, FIRST, databases=("sales", "zz")).tables
    assert (first.code, is_refused(again)) == (Exit.PARTIAL, True)
    desk.table = "zz.events"
    assert run(desk, NEXT, databases=("zz",)).code is Exit.DONE
    assert NEXT in {effect.run for effect in desk.log().standing}
    assert world.rows_of(desk.table) == rows
