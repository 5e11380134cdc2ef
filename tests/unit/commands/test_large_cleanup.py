"""More may be discarded than one plan holds: the oldest goes, and the next cleanup takes what is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup
from hivekeeper.model import Selection
from hivekeeper.plan.orphans import OrphanState
from hivekeeper.reasons import Code
from hivekeeper.report.results import BackupState
from hivekeeper.runlog import run_files, store, strict
from support import leftovers
from support.builders import a_table
from support.contexts import a_context
from support.desk import EVERYTHING, Desk
from support.world import World

# Room for the backup of one night and for no more. Each has four files or three, and live one that is to be there for late files.
LIMITS = {
    "files": (run_files, "MOST_FILES", 8),
    "units": (run_files, "MOST_UNITS", 1),
    "bytes of the plan": (store, "MOST_RECORD_BYTES", 12_000),
    "bytes of the entry": (store, "MOST_ENTRY_BYTES", 3_000),
    "characters of a line": (strict, "MOST_LINE", 2**21 + 1_500),
}


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(("dt",), create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    for night in range(3):
        assert desk.compact().code is Exit.DONE
        desk.append("dt=1", *(f"n{night}-{number}" for number in range(3)))
    return desk


def backups_of(desk):
    return [path.split("/runs/")[1].split("/")[0] for path in desk.world.files.contents(desk.control.top) if "/retired/" in path]


def said_by(result):
    return [(one.state, one.why.code) for one in result.tables[0].backups]


GOES, STAYS = (BackupState.DISCARDED, Code.NOT_KEPT), (BackupState.KEPT, Code.BEYOND_ONE_CLEANUP)


@pytest.mark.parametrize("limit", LIMITS)
def test_the_oldest_backups_go_first_and_the_others_with_the_next_cleanups(desk, limit, monkeypatch):
    monkeypatch.setattr(*LIMITS[limit])
    planned = desk.cleanup(dry_run=True)
    assert said_by(planned) == [(BackupState.PLANNED, Code.NOT_KEPT), STAYS, STAYS]
    first = desk.cleanup()
    assert (first.code, said_by(first)) == (Exit.DONE, [GOES, STAYS, STAYS])
    assert first.tables[0].window.runs == 2
    assert set(backups_of(desk)) == set(desk.runs[1:3])
    assert said_by(desk.cleanup()) == [GOES, STAYS]
    assert said_by(desk.cleanup()) == [GOES]
    assert not backups_of(desk)


def test_over_a_database_too(desk, monkeypatch):
    monkeypatch.setattr(*LIMITS["files"])
    context = a_context(desk.world.cluster, Selection(databases=("sales",)), desk._new_run(), replace(EVERYTHING))
    assert said_by(cleanup.clean_up(context)) == [GOES, STAYS, STAYS]


def test_what_a_dropped_table_has_left_goes_by_and_by_and_then_its_records(monkeypatch):
    desk = leftovers.build("partitioned")
    top = desk.control.top
    leftovers.drop(desk)
    leftovers.clean(desk)
    leftovers.wait(desk, 8)
    monkeypatch.setattr(*LIMITS["files"])
    states = [leftovers.records(leftovers.clean(desk)).state for _ in range(3)]
    assert states == [OrphanState.DISCARDED, OrphanState.DISCARDED, OrphanState.REMOVED]
    assert not desk.world.files.contents(top)
