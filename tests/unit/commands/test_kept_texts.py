"""What a command over many tables keeps of their long names and texts until its end, and what is told whatever other tables have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import per_table
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.history import View, show_history
from hivekeeper.model import Selection
from hivekeeper.plan.quarantine import Quarantine, Streak
from hivekeeper.plan.retention import Backup
from hivekeeper.reasons import SHORT, Code, Reason
from hivekeeper.report import document, screen
from hivekeeper.report.results import BackupOutcome, BackupState, KeptFiles, TableOutcome, UnitOutcome
from hivekeeper.runlog.history import Effect
from hivekeeper.runlog.manifests import Extent
from hivekeeper.runlog.outcomes import MOST_ASTRAY, Outcome
from support.builders import a_partition, a_table
from support.contexts import QUIET, a_context
from support.desk import Desk
from support.world import World

RUNS = [f"20260101t02030{number}z-0000" for number in range(5)]
TABLES, LATE, LENGTH, MIB = 5, 50, 200, 2**20
# Of all late files of one table.
NAMES = LATE * (LENGTH + 20)
HOME = f"hdfs://nn/warehouse/sales.db/{'department-of-many-words/' * 4}events"
LONG = Reason(Code.MOVED, "w" * 900, "n" * 900, "s" * 900)


def run(world, command, run, **settings):
    return command(a_context(world.cluster, Selection(databases=("sales",)), run, replace(QUIET, **settings)))


def with_late_files():
    """A world in which somebody has put files into each table's backup; a cleanup moves them to live."""
    world = World()
    for number in range(TABLES):
        world.add_table(a_table(name=f"t{number}", location=f"hdfs://nn/warehouse/sales.db/t{number}"), {"": [1000] * 40})
    run(world, compact_swap, RUNS[0])
    for number in range(TABLES):
        desk = Desk(world, f"sales.t{number}")
        (effect,) = desk.log().standing
        for at in range(LATE):
            world.add_file(f"{desk.control.top}/{effect.place}/{at:03d}{'x' * LENGTH}.parquet", [f"late {number} {at}"])
    world.files.namespace.advance(3_600_000)
    return world


@pytest.mark.parametrize("beside", [False, True])
def test_the_names_of_late_files_are_not_held_of_all_tables_that_are_cleaned_up_after(monkeypatch, beside, caplog):
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", NAMES)
    result = run(with_late_files(), compact_swap, RUNS[2], min_age_ms=0, cleanup_after=True, cleanup_beside=beside)
    backups = [one for table in result.tables for one in table.backups]
    assert [one.late_count for one in backups] == [LATE] * TABLES
    assert sum(len(name) for one in backups for name in one.late_files) < 2 * NAMES
    assert " step=cut-texts characters=" in caplog.text


@pytest.mark.parametrize("view", [View(), View(cleanups=True)])
def test_history_does_not_hold_the_names_of_late_files_in_the_logs_of_all_tables(monkeypatch, view):
    """An entry has room for two million characters of reasons and such names, and a log has the entries of 400 days."""
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", NAMES)
    world = with_late_files()
    run(world, compact_swap, RUNS[2], min_age_ms=0, cleanup_after=True)
    result = run(world, lambda context: show_history(context, view), RUNS[4])
    units = [unit for table in result.tables for entry in (*table.log, *(table.cleanups or ())) for unit in entry.units]
    assert sum(len(name) for unit in units for name in unit.late_files) < 2 * NAMES
    assert sum(unit.late_count for unit in units) == (0 if view.cleanups else TABLES * LATE)


def a_night(long):
    """The table `aaa` has partitions elsewhere, of `long` characters; in `events` somebody sets a location while it is in its gap."""
    world = World()
    world.add_table(a_table(["dt"], location=HOME), {"dt=1": [MIB] * 3})
    other = a_table(["dt"], name="aaa", location="hdfs://nn/warehouse/sales.db/aaa")
    world.add_table(other, {})
    for at in range(20):
        world.catalog.add_partition(other.full_name, a_partition(f"dt={at}", f"hdfs://nn/elsewhere/{at}/{'x' * long}"))
    desk = Desk(world)
    world.files.writer.make_directory("hdfs://nn/elsewhere/dt=1")

    def move(what):
        if what.startswith("rename_exact") and "/ready/u00001 " in what:
            places = world.catalog.partitions[desk.table]
            places["dt=1"] = replace(places["dt=1"], location="hdfs://nn/elsewhere/dt=1")

    world.files.before_step = move
    return compact_swap(a_context(world.cluster, Selection(databases=("sales",)), desk._new_run(), desk.settings))


@pytest.mark.parametrize("room", [0, 10_000])
def test_the_place_of_rows_that_readers_miss_is_told_whatever_is_cut(monkeypatch, room):
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", room)
    monkeypatch.setattr(per_table, "TEXTS_OF_TABLE", 0)
    result = a_night(3000)
    (table,) = [one for one in result.tables if one.table == "sales.events"]
    (unit,) = table.units
    assert (result.code, unit.outcome) == (Exit.INVESTIGATE, Outcome.MISPLACED)
    assert f"{HOME}/dt=1" in unit.reason
    assert f"{HOME}/dt=1" in screen.render(result)
    assert f"{HOME}/dt=1" in document.to_json(document.build(result)["tables"][-1]["units"][0])


def refused(name, units):
    return TableOutcome(name, units=tuple(UnitOutcome(f"dt={at}", Outcome.REFUSED, 0, 0, why=LONG) for at in range(units)))


def kept(monkeypatch, room, *outcomes, of_table=0):
    """Which of the tables a command tells whole."""
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", room)
    monkeypatch.setattr(per_table, "TEXTS_OF_TABLE", of_table)
    held = per_table.Outcomes()
    for outcome in outcomes:
        held.add(outcome)
    assert [one.table for one in held.tables] == [one.table for one in outcomes]
    return [one.table for one, whole in zip(held.tables, outcomes) if one == whole]


def test_the_table_with_the_longest_texts_is_shortened_whichever_comes_first(monkeypatch):
    room = refused("large", 10).dispensable
    assert kept(monkeypatch, room, refused("large", 10), refused("small", 2)) == ["small"]
    assert kept(monkeypatch, room, refused("small", 2), refused("large", 10)) == ["small"]
    assert kept(monkeypatch, room, refused("small", 2), refused("medium", 4), refused("large", 9), refused("other", 3)) == [
        "small",
        "medium",
        "other",
    ]


def test_texts_within_the_share_of_a_table_are_never_cut(monkeypatch):
    share = refused("t", 2).dispensable
    others = [refused(f"t{number}", 2) for number in range(20)]
    assert len(kept(monkeypatch, 0, *others, refused("large", 3), of_table=share)) == len(others)


def test_of_many_units_whose_rows_readers_miss_the_first_thousand_tell_where_they_are():
    units = [UnitOutcome(f"dt={at}", Outcome.MISPLACED, 0, 0, why=LONG) for at in range(MOST_ASTRAY + 5)]
    short = TableOutcome("t", units=tuple(units)).shortened().units
    assert [len(unit.reason) for unit in short] == [900] * MOST_ASTRAY + [SHORT] * 5


BACKUP = Backup(RUNS[0], 0, "compact-swap", "d", 0, (), False)
OLD_FILES = KeptFiles(BACKUP, Effect(RUNS[0], 1, 0, "compact-swap", 0, "", "dt=1", "dt=1", "p", (), (), counted=(0, 0)), True, LONG)


PARTS = {
    "the exchange of a unit": TableOutcome("t", units=(UnitOutcome("", Outcome.PLANNED, 0, 0, exchange_why=LONG),)),
    "a unit": refused("t", 1),
    "a unit that a cleanup kept": TableOutcome("t", backups=(BackupOutcome(BACKUP, BackupState.PARTLY, kept_units=(("dt=1", LONG),)),)),
    "a backup": TableOutcome("t", backups=(BackupOutcome(BACKUP, BackupState.KEPT, LONG),)),
    "the old files of a partition": TableOutcome("t", old_files=(OLD_FILES,)),
    "a unit in quarantine": TableOutcome(
        "t", quarantined=(Quarantine(Streak("dt=1", "dt=1", Extent(1, 1, 1), 3, 0, 0, 0, Outcome.FAILED, LONG.what), 0),)
    ),
}


@pytest.mark.parametrize("part", sorted(PARTS))
def test_what_is_counted_is_what_is_cut(part):
    outcome = PARTS[part]
    # What to do goes as a whole, and something shorter is told instead.
    assert outcome.dispensable == 900 - SHORT or 3 * (900 - SHORT) < outcome.dispensable < 3 * (900 - SHORT) + SHORT
    assert len(repr(outcome)) - len(repr(outcome.shortened())) == outcome.dispensable
    assert outcome.shortened().dispensable == 0
