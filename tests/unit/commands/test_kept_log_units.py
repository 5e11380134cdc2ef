"""What `history` and `cleanup` over many tables keep of the units in logs and backups until their end, and what they tell all the same."""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import partial

import pytest

from hivekeeper.catalogue import rows
from hivekeeper.catalogue.columns import RUNS
from hivekeeper.catalogue.rows import Actor, Level
from hivekeeper.codes import Exit
from hivekeeper.commands import per_table
from hivekeeper.commands.cleanup import clean_up
from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.history import View, show_history
from hivekeeper.model import Selection
from hivekeeper.plan.quarantine import Quarantine, Streak
from hivekeeper.plan.retention import Backup
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import document, properties, screen
from hivekeeper.report.results import BackupOutcome, BackupState, CommandResult, TableOutcome
from hivekeeper.runlog.manifests import Extent
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.contexts import QUIET, a_context
from support.leftovers import DAY_MS, HOME
from support.world import World

RUN, NEXT, AFTER = "20260101t020304z-0000", "20260102t020304z-0000", "20260103t020304z-0000"
SALES = Selection(databases=("sales",))
KEPT = 3


@pytest.fixture(autouse=True)
def little_is_kept(monkeypatch):
    monkeypatch.setattr(per_table, "UNITS_OF_TABLE", KEPT)


def no_room(monkeypatch):
    monkeypatch.setattr(per_table, "MOST_UNITS", 0)


def run(world, command, run, selected=SALES, run_key="", dry_run=False, **settings):
    return command(a_context(world.cluster, selected, run, replace(QUIET, **settings), run_key=run_key, dry_run=dry_run))


def a_lake(units=12, run_key="", tables=2):
    """Each table with a run that compacted all its units."""
    world = World()
    for number in range(tables):
        table = a_table(["dt"], name=f"t{number}", create_time=number + 1)
        world.add_table(table, {f"dt={at:02}": [1000] * 3 for at in range(units)})
    run(world, compact_swap, RUN, run_key=run_key)
    return world


def look(view, selected=SALES, is_cleaned=False):
    def command(units=12):
        world = a_lake(units)
        if is_cleaned:
            run(world, clean_up, NEXT, min_age_ms=0)
        return run(world, lambda context: show_history(context, view), AFTER, selected)

    return command


def drop_and_clean_up(units=12, **more):
    """Let go of what two dropped tables have left, after it was marked."""
    world = a_lake(units)
    world.catalog.homes["sales"] = HOME
    world.catalog.add_table(a_table(name="other", location=f"{HOME}/other", create_time=9), [])
    for number in range(2):
        world.catalog.drop_table(f"sales.t{number}")
    for at in (NEXT, AFTER):
        world.wait(30 * DAY_MS)
        world.clock.elapsed_ms += 30 * DAY_MS
        result = run(world, clean_up_orphans, at, **(more if at == AFTER else {}))
    return result


COMMANDS = {
    "cleanup --orphans": drop_and_clean_up,
    "cleanup --orphans --dry-run": partial(drop_and_clean_up, dry_run=True),
    "cleanup --orphans that keeps": partial(drop_and_clean_up, keep_latest_runs=1),
    "history": look(View()),
    "history of what a cleanup left": look(View(), is_cleaned=True),
    "history --partitions": look(View(partitions=True)),
    "history --files": look(View(files_of=RUN)),
    "history --at": look(View(at=0)),
    "history --cleanups": look(View(cleanups=True), is_cleaned=True),
    "cleanup": lambda units=12: run(a_lake(units), clean_up, NEXT, min_age_ms=0),
    "cleanup that keeps": lambda units=12: run(a_lake(units), clean_up, NEXT),
    "cleanup --dry-run": lambda units=12: run(a_lake(units), clean_up, NEXT, min_age_ms=0, dry_run=True),
    "cleanup after a compaction": lambda units=12: run(a_lake(units), compact_swap, NEXT, cleanup_after=True, min_age_ms=0),
    "cleanup beside compactions": lambda units=12: run(
        a_lake(units), compact_swap, NEXT, cleanup_after=True, cleanup_beside=True, min_age_ms=0
    ),
    "a second attempt": lambda units=12: run(a_lake(units, "monday"), compact_swap, NEXT, run_key="monday"),
}


def count_held(result):
    """All objects that a result holds."""
    waiting, seen = [result], set()
    while waiting:
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, type):
            seen.add(id(one))
            waiting += gc.get_referents(one)
    return len(seen)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_what_is_held_does_not_grow_with_the_units_in_the_logs_of_all_tables(monkeypatch, name):
    """A partition compacted every night is in each entry of the log, and in as many backups."""
    no_room(monkeypatch)
    few, many = count_held(COMMANDS[name](12)), count_held(COMMANDS[name](36))
    assert many < few + 12


def same_but_for_names(short, whole):
    """Whether two documents say the same, where one tells only how many more there are of something."""
    if isinstance(short, list):
        return len(short) == len(whole) and all(map(same_but_for_names, short, whole))
    if not isinstance(short, dict):
        return short == whole
    left = {key for key in short if not key.endswith("seconds")}
    for more in {key for key in left if key.startswith("more_") and key != "more_late_files"}:
        key = more[len("more_") :]
        if key in short:
            number = short[more] if isinstance(short[more], int) else sum(units["units"] for units in short[more])
            told = len(short[key]) + number == len(whole[key]) and all(each in whole[key] for each in short[key])
            if not told or whole[more]:
                return False
            left -= {more, key}
    return short.keys() == whole.keys() and all(same_but_for_names(short[key], whole[key]) for key in left)


def shown(result):
    """What is printed, but for lines that name units or files, or say that more are not named."""
    lines = screen.render(replace(result, seconds=0)).splitlines()
    return [line.strip() for line in lines if not any(word in line for word in ("dt=", ".parquet", "name this table alone", "----"))]


def discarded_by_catalogue(result):
    at = [list(RUNS.columns).index(f"discarded_{what}") for what in ("files", "bytes")]
    known = [table for table in result.tables if rows.describes(RUNS, table)]
    found = [list(rows.rows_of(RUNS, result, table, Actor("etl", "edge", ""), Level.of("table")))[0] for table in known]
    return [[row[each] for each in at] for row in found]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_numbers_texts_and_exit_codes_are_those_of_all_units(monkeypatch, name):
    whole = COMMANDS[name]()
    no_room(monkeypatch)
    short = COMMANDS[name]()
    of_short, of_whole = document.build(short), document.build(whole)
    assert of_short["tables"] != of_whole["tables"]
    assert same_but_for_names(of_short, of_whole)
    assert properties.render(short) == properties.render(whole)
    assert [line.split() for line in shown(short)] == [line.split() for line in shown(whole)]
    assert discarded_by_catalogue(short) == discarded_by_catalogue(whole)


@pytest.mark.parametrize("name", ["history --partitions", "history --files", "history --at"])
def test_the_text_says_how_many_are_not_named(monkeypatch, name):
    no_room(monkeypatch)
    told = screen.render(COMMANDS[name]())
    numbers = {"history --partitions": f"{12 - KEPT} more old files", "history --files": "12 more changed units"}
    assert told.count(f"… and {numbers.get(name, '48 more files and tombstones')}: name this table alone to see them") == 2


@pytest.mark.parametrize("view", [View(), View(partitions=True), View(files_of=RUN), View(at=0)])
def test_a_table_that_is_named_alone_keeps_everything(monkeypatch, view):
    one = Selection(tables=("sales.t0",))
    whole = document.build(look(view, one)())["tables"]
    no_room(monkeypatch)
    assert same_but_for_names(document.build(look(view, one)())["tables"], whole)
    short = document.build(look(view, one)())["tables"]
    for table in (*short, *whole):
        table.pop("seconds"), table.pop("step_seconds")
    assert short == whole


def test_old_files_by_partition_do_not_each_hold_all_of_their_backup():
    """Those of a million would be held a million times, of one table too."""
    few, many = (count_held(look(View(partitions=True))(units)) for units in (10, 40))
    assert many < 4 * few


def test_units_that_a_cleanup_could_not_discard_are_kept_before_those_that_a_rule_keeps():
    failed, rule = Reason(Code.JOB_FAILED, "f"), Reason(Code.TOO_YOUNG, "y")
    backup = Backup(RUN, 0, "compact-swap", "d", 0, (), False)
    trimmed = BackupOutcome(backup, BackupState.TRIMMED, kept_units=tuple((f"dt={at}", rule) for at in range(9)))
    partly = BackupOutcome(backup, BackupState.PARTLY, kept_units=(("dt=8", failed), *trimmed.kept_units))
    whole = TableOutcome("sales.t", backups=(trimmed, partly))
    short = whole.without_units(2)
    assert [[name for name, _ in one.kept_units] for one in short.backups] == [[], ["dt=8", "dt=0"]]
    assert [one.more_kept for one in short.backups] == [9, 8]
    assert (short.code, short.did_something) == (whole.code, whole.did_something) == (Exit.PARTIAL, True)
    assert "… and 8 more kept units of run" in screen.render(CommandResult("cleanup", RUN, 0, 0, False, tables=(short,)))


def test_each_backup_that_could_not_go_as_a_whole_keeps_a_unit_that_tells_why():
    """Else it would tell why it was to go: that it is old enough."""
    failed, rule = Reason(Code.BACKUP_CHANGED, "old-1 is gone"), Reason(Code.TOO_YOUNG, "y")
    backup = Backup(RUN, 0, "compact-swap", "d", 0, (), False)
    trimmed = BackupOutcome(backup, BackupState.TRIMMED, kept_units=(("dt=9", rule),))
    partly = BackupOutcome(
        backup, BackupState.PARTLY, Reason(Code.NOT_KEPT, "it is older than 7d"), tuple((f"dt={at}", failed) for at in range(3))
    )
    whole = TableOutcome("sales.t", backups=(trimmed, partly, partly, partly, trimmed))
    short = whole.without_units(2)
    assert [len(one.kept_units) for one in short.backups] == [0, 2, 1, 1, 0]
    assert [one.more_kept for one in short.backups] == [1, 1, 2, 2, 1]
    assert [one.trouble for one in short.backups] == [one.trouble for one in whole.backups] == [None, failed, failed, failed, None]


def test_units_of_the_log_that_need_somebody_are_kept_before_newer_ones():
    (whole,) = look(View(), Selection(tables=("sales.t0",)))().tables
    older = whole.log[0]
    astray = replace(older.units[5], outcome=Outcome.MISPLACED, gap_ms=99.0, reason_code="of-a-later-version")
    newer = replace(older, version=7)
    older = replace(older, units=(*older.units[:5], astray, astray, *older.units[6:]))
    short = replace(whole, log=(older, newer)).without_units(1)
    assert [run.units for run in short.log] == [(astray,), ()]
    assert {(each.outcome, each.code, each.units) for each in short.left_out.units[older.version]} == {
        (Outcome.SWAPPED, "", 11),
        (Outcome.MISPLACED, "", 1),
    }
    assert "99.0 ms" in screen.render(CommandResult("history", RUN, 0, 0, False, tables=(short,)))


def test_an_answer_keeps_the_exit_code_that_only_its_units_tell():
    """A run that was killed has none in the log."""
    (whole,) = COMMANDS["a second attempt"]().tables[:1]
    left = replace(whole.answered_by.units[0], outcome=Outcome.LEFT)
    killed = replace(whole, answered_by=replace(whole.answered_by, exit_code=None, units=(*whole.answered_by.units, left)))
    assert killed.without_units(0).code is killed.code is Exit.PARTIAL


def test_units_in_quarantine_are_counted():
    streak = Streak("dt=1", ".", Extent(1, 1, 0), 3, 0, 0, 0, Outcome.FAILED, "f")
    (outcome,) = look(View(), Selection(tables=("sales.t0",)))().tables
    short = replace(outcome, quarantined=(Quarantine(streak, 9),) * 5).without_units(2)
    (table,) = document.build(CommandResult("history", RUN, 0, 0, False, tables=(short,)))["tables"]
    assert (len(table["quarantined"]), table["more_quarantined"]) == (2, 3)
