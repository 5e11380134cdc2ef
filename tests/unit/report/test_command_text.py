"""What the commands around backups say to operators."""

from __future__ import annotations

from itertools import product

import pytest

from hivekeeper.model import Differences
from hivekeeper.plan.retention import Backup, Window
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import command_text, properties, screen
from hivekeeper.report.results import BackupOutcome, BackupState, CommandResult, TableOutcome, UnitOutcome
from hivekeeper.runlog.history import Effect, LoggedRun, LoggedUnit
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.replay import FileSet
from support.builders import a_file

RUN, LATER = "20260101t020304z-0000", "20260102t020304z-0000"
TABLE = "sales.events"
TIME_MS = 1_767_225_784_000
MANY = 25


def shown(command, width=200, **outcome):
    return screen.render(CommandResult(command, LATER, 0, 1.0, True, False, (TableOutcome(TABLE, **outcome),)), width=width)


def files(*names):
    return tuple(ManifestFile.of(a_file(name)) for name in names)


def an_effect(partition="dt=1", before=("old-1", "old-2"), after=("new",)):
    place = f"runs/{RUN}/retired/u00001"
    return Effect(RUN, 1, 0, "compact-swap", TIME_MS, "id", partition, partition or ".", place, files(*before), files(*after))


def a_backup(**more):
    given = {"operation": "compact-swap", "timestamp_ms": TIME_MS, "effects": (an_effect(),), "pinned": False, **more}
    return Backup(RUN, 0, directory=RUN, **given)


def a_logged_run(**more):
    given = {
        "version": 0,
        "run": RUN,
        "directory": RUN,
        "operation": "compact-swap",
        "timestamp_ms": TIME_MS,
        "user": "etl",
        "host": "edge1",
        "application_id": "app-1",
        "recovered_by": None,
        "finished": True,
        "backup_table": "",
        "table_id": "id",
        "parameters": {},
        "units": (),
        "effects": (an_effect(),),
        **more,
    }
    return LoggedRun(**given)


def assert_cleaned(text):
    assert "\x1b" not in text
    assert "\\x1b" in text


# ---- backup


def test_backup_says_what_was_recorded_and_that_nothing_was_copied():
    units = (UnitOutcome("dt=1", Outcome.RECORDED, 3, 3000), UnitOutcome("dt=2", Outcome.RECORDED, 1, 1000))
    assert shown("backup", run=RUN, units=units, backup_table="sales.__bkp_events_20260101_020304") == (
        f"sales.events: recorded 2 units, 4 files, 3.9 KiB; run {RUN}\n"
        "  backup table sales.__bkp_events_20260101_020304. "
        "Nothing was copied: files that another writer deletes before a compact-swap are gone for good."
    )
    assert "  no backup table. Nothing was copied" in shown("backup", run=RUN, units=units[1:])


# ---- verify


def test_verify_counts_what_holds_and_names_what_came_later():
    units = (
        UnitOutcome("dt=1", Outcome.VERIFIED, 3, 3000, rows=3, late_files=("a", "b")),
        UnitOutcome("dt=2", Outcome.VERIFIED, 1, 10, rows=1),
        UnitOutcome("dt=3", Outcome.DROPPED, 0, 0, why=Reason(Code.DROPPED, "it was dropped from the metastore since")),
    )
    assert shown("verify", units=units).splitlines() == [
        "sales.events: 2 of 3 units verified: live holds the backup's 4 rows",
        "  and 2 files that came later",
        "  sales.events/dt=1: a",
        "  sales.events/dt=1: b",
        "  sales.events/dt=3: dropped: it was dropped from the metastore since [dropped]",
    ]


def test_verify_shows_the_rows_that_differ():
    found = Differences(1, 2, ("id", "name"), ({"id": "1", "name": None},), ({"id": "1", "name": "x"},))
    unit = UnitOutcome(
        "",
        Outcome.DIFFERS,
        3,
        3000,
        why=Reason(Code.ROWS_DIFFER, "1 rows are only in the backup, 2 only in live", "look"),
        differences=found,
    )
    assert shown("verify", units=(unit,)).splitlines() == [
        "sales.events: 0 of 1 unit verified: live holds the backup's 0 rows",
        "  sales.events: differs: 1 rows are only in the backup, 2 only in live [rows-differ] — look",
        "  sales.events: 1 rows only in the backup, 2 only in live; columns that differ: id, name",
        "    only in backup: id=1, name=NULL",
        "    only in live: id=1, name=x",
    ]


def test_long_lists_of_verify_are_cut():
    units = tuple(
        UnitOutcome(f"dt={n}", Outcome.DIFFERS, 1, 1, why=Reason(Code.JOB_FAILED, "boom"), late_files=("x",)) for n in range(MANY)
    )
    lines = shown("verify", units=units).splitlines()
    assert lines.count("  … and 5 more (all of them with --json)") == 2
    assert len(lines) == 2 + 2 * 21


def test_the_examples_of_many_units_that_differ_are_cut_too():
    found = Differences(10, 10, ("id",), ({"id": "1"},) * 10, ({"id": "2"},) * 10)
    units = tuple(
        UnitOutcome(f"dt={n}", Outcome.DIFFERS, 1, 1, why=Reason(Code.JOB_FAILED, "boom"), differences=found) for n in range(1000)
    )
    assert len(shown("verify", units=units).splitlines()) < 1000


def test_a_value_of_a_row_cannot_steer_a_terminal():
    found = Differences(1, 0, ("id",), ({"id": "\x1b[2J"},))
    assert_cleaned(
        shown("verify", units=(UnitOutcome("dt=1", Outcome.DIFFERS, 1, 1, why=Reason(Code.JOB_FAILED, "boom"), differences=found),))
    )


def test_a_value_of_several_lines_stays_in_its_line():
    found = Differences(1, 0, ("id",), ({"id": "one\nsales.events: 3 of 3 units verified"},))
    text = shown("verify", units=(UnitOutcome("dt=1", Outcome.DIFFERS, 1, 1, why=Reason(Code.JOB_FAILED, "boom"), differences=found),))
    assert not [line for line in text.splitlines() if line.startswith("sales.events: 3 of 3")]


# ---- rollback


def test_rollback_says_what_was_undone_and_how_to_undo_that():
    units = (
        UnitOutcome("dt=1", Outcome.ROLLED_BACK, 1, 10, 3, 10, gap_ms=2.5, late_files=("a",), of_run=RUN),
        UnitOutcome("dt=2", Outcome.REFUSED, 0, 0, why=Reason(Code.DIRECTORY_GONE, "its directory is gone", "look")),
    )
    assert shown("rollback", run=LATER, units=units).splitlines() == [
        f"sales.events: rolled back 1 step, longest gap 2.5 ms, run {LATER}",
        f"  sales.events/dt=1: 1 → 3 files, undoes run {RUN}, 1 file that came later kept",
        f"  to undo this: hivekeeper rollback --table sales.events --run {LATER}",
        "  sales.events/dt=2: refused: its directory is gone [directory-gone] — look",
    ]


def test_rollback_with_nothing_to_do_says_so():
    assert shown("rollback") == "sales.events: nothing to roll back: no compaction is in force"
    undone = (UnitOutcome("dt=1", Outcome.UNDONE, 0, 0, why=Reason(Code.ALREADY_ROLLED_BACK, f"it was rolled back already, by run {RUN}")),)
    assert shown("rollback", units=undone).splitlines()[0] == "sales.events: nothing to roll back"


def test_a_long_plan_of_a_rollback_is_cut():
    units = tuple(UnitOutcome(f"dt={n}", Outcome.PLANNED, 1, 10, 3, 10, of_run=RUN) for n in range(MANY))
    lines = screen.render_planned_rollback(TableOutcome(TABLE, units=units)).splitlines()
    assert (len(lines), lines[-1]) == (22, "  … and 5 more (all of them with --json)")


def test_a_planned_rollback_of_an_odd_partition_cannot_steer_a_terminal():
    assert_cleaned(screen.render_planned_rollback(TableOutcome(TABLE, units=(UnitOutcome("dt=\x1b[2J", Outcome.PLANNED, 1, 1, 3, 1),))))


# ---- cleanup


def test_cleanup_gives_each_backup_its_verdict_and_reason():
    kept = BackupOutcome(a_backup(pinned=True), BackupState.KEPT, Reason(Code.NOT_KEPT, "it is pinned"))
    gone = BackupOutcome(
        a_backup(), BackupState.DISCARDED, Reason(Code.NOT_KEPT, "it is older than 7d"), late_files=("late",), going=a_backup().effects
    )
    assert shown("cleanup", backups=(kept, gone), window=Window(14, 14 * 86_400_000 + 5)).splitlines() == [
        "sales.events: discarded 1 of 2 backups: 2 files, 2.0 KiB",
        "  kept as a whole: the last 14 runs, 14 days back",
        "  RUN                    OF                     WHEN                 UNITS  FILES     SIZE  OUTCOME    WHY",
        "  ---------------------  ---------------------  -------------------  -----  -----  -------  ---------  -------------------",
        f"  {RUN}  compact-swap (pinned)  2026-01-01 00:03:04      1      2  2.0 KiB  kept       it is pinned",
        f"  {RUN}  compact-swap           2026-01-01 00:03:04      1      2  2.0 KiB  discarded  it is older than 7d",
        "  1 file that came into the backup late went to live: late",
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_reason_of_a_verdict_is_whole_however_narrow_the_terminal_is(width):
    why = "it is one of the newest 3 backups of this table, which keep_last protects, and older than nothing"
    table = TableOutcome(TABLE, backups=(BackupOutcome(a_backup(), BackupState.PLANNED, Reason(Code.NOT_KEPT, why)),))
    assert why in "\n".join(command_text.render_cleanup(table, width))


def test_a_dry_run_of_cleanup_says_would():
    assert shown("cleanup", backups=(BackupOutcome(a_backup(), BackupState.PLANNED, Reason(Code.NOT_KEPT, "x")),)).startswith(
        "sales.events: would discard 1 of 1 backup: "
    )


def test_cleanup_says_which_units_stay_and_why():
    partly = BackupOutcome(
        a_backup(),
        BackupState.PARTLY,
        Reason(Code.NOT_KEPT, "it is older than 7d"),
        (("dt=1", Reason(Code.BACKUP_CHANGED, "old-1 is gone")),),
    )
    assert f"  kept sales.events/dt=1 of run {RUN}: old-1 is gone [backup-changed]" in shown("cleanup", backups=(partly,)).splitlines()


def test_the_unit_of_an_unpartitioned_table_goes_by_the_tables_name():
    partly = BackupOutcome(
        a_backup(effects=(an_effect(""),)),
        BackupState.PARTLY,
        Reason(Code.NOT_KEPT, "x"),
        (("", Reason(Code.BACKUP_CHANGED, "old-1 is gone")),),
    )
    assert f"  kept sales.events of run {RUN}: old-1 is gone [backup-changed]" in shown("cleanup", backups=(partly,)).splitlines()


def test_a_long_list_of_units_that_stay_is_cut():
    kept = tuple((f"dt={n}", Reason(Code.TRASH_OFF, "the trash is switched off")) for n in range(1000))
    assert (
        len(shown("cleanup", backups=(BackupOutcome(a_backup(), BackupState.PARTLY, Reason(Code.NOT_KEPT, "x"), kept),)).splitlines()) < 100
    )


@pytest.mark.parametrize("width", [40, 80, 120])
def test_ids_of_runs_are_never_shortened(width):
    text = shown(
        "cleanup", width, backups=(BackupOutcome(a_backup(), BackupState.KEPT, Reason(Code.NOT_KEPT, "it is younger than min_age (7d)")),)
    )
    assert RUN in text


def test_a_command_over_many_tables_names_the_backup_for_which_it_ends_with_6():
    """After a compaction, too (`cleanup_after`), and to a scheduler: else nobody knows which table it is."""
    partly = BackupOutcome(
        a_backup(),
        BackupState.PARTLY,
        Reason(Code.NOT_KEPT, "it is older than 7d"),
        (("dt=1", Reason(Code.BACKUP_CHANGED, "old-1 is gone")),),
    )
    others = tuple(TableOutcome(f"sales.t{n}") for n in range(MANY))
    result = CommandResult("compact-swap", LATER, 0, 1.0, False, tables=(TableOutcome(TABLE, backups=(partly,)), *others))
    assert result.exit_code == 6
    assert f"  {TABLE}: backup of run {RUN}: partly: old-1 is gone [backup-changed]" in screen.render(result).splitlines()
    assert f"hivekeeper.error={TABLE}: backup of run {RUN}: partly: old-1 is gone" in properties.render(result).splitlines()


@pytest.mark.parametrize("kept", [(), (("dt=1", None), ("dt=2", Reason(Code.TOO_YOUNG, "it is too young")))])
def test_a_backup_that_could_not_go_for_an_unknown_reason_does_not_tell_why_it_was_to_go_or_what_a_rule_keeps(kept):
    partly = BackupOutcome(a_backup(), BackupState.PARTLY, Reason(Code.NOT_KEPT, "it is older than 7d"), kept)
    others = tuple(TableOutcome(f"sales.t{n}") for n in range(MANY))
    result = CommandResult("compact-swap", LATER, 0, 1.0, False, tables=(TableOutcome(TABLE, backups=(partly,)), *others))
    said = f"{TABLE}: backup of run {RUN}: partly: {BackupState.PARTLY.meaning}"
    assert f"  {said}" in screen.render(result).splitlines()
    assert f"hivekeeper.error={said}" in properties.render(result).splitlines()


def test_cleanup_without_backups_says_so():
    assert shown("cleanup") == "sales.events: no backups"


def test_names_of_kept_units_and_late_files_cannot_steer_a_terminal():
    partly = BackupOutcome(
        a_backup(),
        BackupState.PARTLY,
        Reason(Code.NOT_KEPT, "x"),
        (("dt=\x1b[2J", Reason(Code.BACKUP_CHANGED, "gone")),),
        ("\x1b[2J.parquet",),
    )
    assert_cleaned(shown("cleanup", backups=(partly,)))


# ---- history


def test_history_lists_runs_and_backups():
    units = (LoggedUnit("dt=1", Outcome.SWAPPED, "", 2.25, ("a",)), LoggedUnit("dt=2", Outcome.FAILED, "boom", None, ()))
    runs = (
        a_logged_run(units=units, recovered_by=LATER),
        a_logged_run(version=1, operation="pin", run=LATER, pin=(RUN, True), effects=()),
    )
    assert shown("history", log=runs, backups=(BackupOutcome(a_backup(pinned=True), BackupState.THERE),)).splitlines() == [
        "sales.events:",
        "  VERSION  WHEN                 OPERATION     RUN                    BY         UNITS                   GAP  LATE  NOTE",
        "  -------  -------------------  ------------  ---------------------  ---------  -------------------  ------  ----  "
        "----------------------------------",
        f"        0  2026-01-01 00:03:04  compact-swap  {RUN}  etl@edge1  1 swapped, 1 failed  2.2 ms     1  recovered by {LATER}",
        f"        1  2026-01-01 00:03:04  pin           {LATER}  etl@edge1  -                         -     0  pins {RUN}",
        "  backups: 1, 2.0 KiB",
        "  RUN                    OF                     WHEN                 UNITS  FILES     SIZE",
        "  ---------------------  ---------------------  -------------------  -----  -----  -------",
        f"  {RUN}  compact-swap (pinned)  2026-01-01 00:03:04      1      2  2.0 KiB",
    ]


@pytest.mark.parametrize("timestamp_ms", [None, 10**20])
def test_a_date_that_cannot_be_read_is_unknown(timestamp_ms):
    text = shown("history", log=(a_logged_run(timestamp_ms=timestamp_ms),), backups=(BackupOutcome(a_backup(), BackupState.THERE),))
    assert "0  unknown  compact-swap" in text


def test_history_shows_what_one_run_took_and_put():
    assert shown("history", log=(a_logged_run(),), changes=(an_effect(),)).splitlines() == [
        f"sales.events: run {RUN} (compact-swap, 2026-01-01 00:03:04)",
        f"  dt=1: old files in runs/{RUN}/retired/u00001",
        "    - old-1  1000 B",
        "    - old-2  1000 B",
        "    + new  1000 B",
    ]
    assert "  (whole table): old files in" in shown("history", log=(a_logged_run(),), changes=(an_effect(""),))


def test_history_shows_the_files_of_a_version():
    known = FileSet({"dt=1/new": 1000}, {"dt=1/old": (2000, f"runs/{RUN}/retired/u00001/old")})
    assert shown("history", log=(a_logged_run(),), files=known).splitlines() == [
        "sales.events: 1 file, 1 tombstone (writers' own files are not in the log)",
        "  file       dt=1/new  1000 B",
        f"  tombstone  dt=1/old  2.0 KiB  in runs/{RUN}/retired/u00001/old",
    ]


def test_names_of_files_in_the_log_cannot_steer_a_terminal():
    assert_cleaned(shown("history", log=(a_logged_run(),), changes=(an_effect(before=("\x1b[2J",)),)))
    assert_cleaned(shown("history", log=(a_logged_run(),), files=FileSet({"\x1b[2J": 1}, {})))
    assert_cleaned(shown("history", log=(a_logged_run(user="\x1b[2J"), a_logged_run(version=1))))


def test_files_whose_names_look_alike_are_all_shown():
    """Whoever writes to a table could have one of them hidden, and counted less."""
    known = FileSet({"a\x07": 1, "a\\x07": 2, "a\\x07'": 3}, {})
    assert shown("history", log=(a_logged_run(),), files=known).split("\n") == [
        "sales.events: 3 files, 0 tombstones (writers' own files are not in the log)",
        "  file       a\\x07  2 B",
        "  file       a\\x07'  3 B",
        "  file       a\\x07'2  1 B",
    ]


def test_what_is_added_to_names_that_look_alike_does_not_grow_with_their_number():
    """A name of n characters has two to the power of n such others, which history would show for hours."""
    alike = ["".join(one) for one in product(["\x07", "\\x07"], repeat=9)]
    known = FileSet(dict.fromkeys(alike, 1), {})
    names = [line.split()[1] for line in shown("history", log=(a_logged_run(),), files=known).split("\n")[1:]]
    assert len({*names}) == len(alike)
    assert max(map(len, names)) <= len("\\x07" * 9 + "'511")


# ---- pin, and all of them


@pytest.mark.parametrize(("pinned", "said"), [(True, "is pinned"), (False, "is not pinned")])
def test_pin_says_how_it_is_now(pinned, said):
    found = (BackupOutcome(a_backup(pinned=pinned), BackupState.THERE),)
    assert shown("pin", backups=found) == shown("unpin", backups=found) == f"sales.events: the backup of run {RUN} {said}"


@pytest.mark.parametrize("command", ["backup", "verify", "rollback", "cleanup", "history", "pin", "unpin"])
def test_what_was_recovered_first_is_said_and_an_empty_selection_too(command):
    first, *_ = shown(command, run=RUN, recovered=((RUN, {Outcome.SWAPPED: 2}),)).splitlines()
    assert first == f"sales.events: recovered run {RUN}: 2 swapped"
    assert screen.render(CommandResult(command, RUN, 0, 1.0, True)) == "no table is selected"
