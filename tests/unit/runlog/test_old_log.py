"""A log from the time before checkpoints, kept as its files: this version reads it, works on, and undoes what is in it.

`old_log/` holds what version 0.1.0 wrote, byte by byte, and in files.json everything below the table's directory with its ids and times.
Never write it again: whatever the program becomes, these records exist.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hivekeeper.codes import Exit
from hivekeeper.config.settings import Settings
from hivekeeper.runlog import store
from support.builders import a_partition, a_table
from support.desk import Desk, outcomes
from support.fakes.rows import DataFile
from support.world import World

FROZEN = Path(__file__).parent / "old_log"
NOW_MS = 1_767_260_000_000
RUNS = [f"20260101t0200{number:02d}z-0000" for number in range(7)]
FIRST, SECOND, ROLLBACK, THIRD, PIN, CLEANUP, LAST = RUNS


@pytest.fixture
def desk():
    """The table as it lay there, with ids and times."""
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {})
    desk = Desk(world, checkpoint_interval=1, backup_table=False)
    space = world.files.namespace
    for entry in json.loads((FROZEN / "files.json").read_text("utf-8")):
        if entry.get("is_dir"):
            world.files.writer.make_directory(entry["path"])
            node = space.find(entry["path"])
        elif "rows" in entry:
            node = space.create(entry["path"], DataFile(tuple(entry["rows"])), entry["length"])
        else:
            text = (FROZEN / entry["in"]).read_text("utf-8") if "in" in entry else entry["text"]
            assert len(text.encode("utf-8")) == entry["length"]
            node = space.create(entry["path"], text, entry["length"])
        node.id, node.mtime_ms = entry["id"], entry["mtime_ms"]
    for day in (1, 2):
        world.catalog.put_partition("sales.events", a_partition(f"dt={day}", desk.live(f"dt={day}")))
    space.clock_ms = NOW_MS
    desk.runs = list(RUNS)
    return desk


def test_its_runs_backups_pins_and_run_keys_are_known(desk):
    history = desk.log()
    kinds = ["compact-swap", "compact-swap", "rollback", "compact-swap", "pin", "cleanup", "cleanup", "compact-swap"]
    assert [(run.run, run.operation) for run in history.runs] == list(zip([*RUNS[:6], CLEANUP, LAST], kinds))
    assert history.finished == set(RUNS)
    assert {(effect.run, effect.partition) for effect in history.standing} == {(THIRD, "dt=1"), (THIRD, "dt=2"), (LAST, "dt=1")}
    assert history.pinned == {THIRD}
    assert history.find_key("night-3").run == ROLLBACK
    files = store.read_files_at(desk.world.cluster, desk.control, history.next_version - 1)
    live = {path[len(desk.live()) + 1 :] for path in desk.world.files.contents(desk.live()) if "/.hivekeeper/" not in path}
    assert set(files.files) == live - {"dt=1/g.parquet", "dt=1/h.parquet"}


def test_a_compaction_follows_and_repeats_it_in_a_checkpoint(desk):
    before, rows = desk.log(), desk.world.rows_of(desk.table)
    result = desk.compact()
    assert (result.code, outcomes(result)) == (Exit.DONE, {"dt=1": "swapped"})
    assert desk.world.rows_of(desk.table) == rows
    assert list(store.list_log(desk.world.files, desk.control).checkpoints) == [before.next_version]
    desk.world.cluster.log_entries.clear()
    assert desk.log().runs[:-1] == before.runs
    assert [effect.key for effect in desk.log().standing][:-1] == [effect.key for effect in before.standing]


def test_what_it_says_can_be_rolled_back_and_cleaned_up(desk):
    rows = desk.world.rows_of(desk.table)
    assert outcomes(desk.rollback(THIRD)) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}
    result = desk.cleanup(Settings(min_age_ms=0))
    assert result.code is Exit.DONE
    assert list(desk.log().standing) == []
    assert desk.world.rows_of(desk.table) == rows


def test_its_old_entries_expire(desk):
    desk.settings = Settings(min_quiet_ms=0, checkpoint_interval=1, log_retention_ms=86_400_000, backup_table=False)
    desk.pin(THIRD, pinned=False)
    for nth in range(3):
        desk.cleanup(Settings(min_age_ms=0))
        desk.world.wait(2 * 86_400_000)
        desk.append("dt=1", f"x{nth}", f"y{nth}")
        assert desk.compact().code is Exit.DONE
    assert min(store.list_log(desk.world.files, desk.control).entries) >= len(RUNS)
    desk.world.cluster.log_entries.clear()
    assert [run.run for run in desk.log().runs][:6] == RUNS[:6]
