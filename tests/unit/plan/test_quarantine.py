from __future__ import annotations

import pytest

from hivekeeper.config.settings import Settings
from hivekeeper.names import ControlPaths
from hivekeeper.plan.analysis import ObservedTable, Status, UnitAnalysis, analyze_unit
from hivekeeper.plan.quarantine import day_text, explain, find_quarantined, set_apart
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.entries import Actor, LogEntry, UnitResult, entry_to_text, table_id
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import PlannedUnit
from support.builders import a_directory, a_file, a_snapshot, a_table, a_unit, read_log

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START_MS = 1_767_225_600_000  # 2026-01-01
TABLE = a_table(["dt"], create_time=5)
FILES = (a_file("a.parquet"), a_file("b.parquet", mtime_ms=2000))
ACTOR = Actor("etl", "edge1", "app-1", "0.1.0")
RULES = Settings(min_quiet_ms=0)


def a_record(outcome, name="dt=1", files=FILES, reason="boom", number=1):
    return UnitResult(PlannedUnit(number, a_unit(name), tuple(map(ManifestFile.of, files))), outcome, why=Reason(Code.JOB_FAILED, reason))


def a_log(*runs, table=TABLE, operation="compact-swap"):
    """`runs` are (time in ms after the start, record…)."""
    texts = {}
    for version, (after_ms, *units) in enumerate(runs):
        run = f"202601{1 + version:02d}t020304z-0000"
        record = LogEntry(run, run, operation, START_MS + after_ms, tuple(units))
        texts[version] = entry_to_text(record, table, ACTOR, {}, version == 0)
    return texts


def quarantined(log, now_ms, settings=RULES, table=TABLE):
    found = find_quarantined(read_log(log), table_id(table), settings, START_MS + now_ms)
    return {one.streak.partition: one for one in found}


def nightly(*outcomes, **more):
    return a_log(*((night * DAY_MS, a_record(outcome)) for night, outcome in enumerate(outcomes)), **more)


def test_three_failed_nights_put_a_unit_in_quarantine_for_a_week_after_the_last_one():
    log = nightly(Outcome.FAILED, Outcome.DIFFERS, Outcome.FAILED)
    found = quarantined(log, 3 * DAY_MS)["dt=1"]
    assert (found.streak.nights, found.streak.since_ms, found.until_ms) == (3, START_MS, START_MS + 9 * DAY_MS)
    assert (found.streak.outcome, found.streak.reason) == (Outcome.FAILED, "boom")
    assert list(quarantined(log, 9 * DAY_MS - 1)) == ["dt=1"]
    assert quarantined(log, 9 * DAY_MS) == {}


def test_two_failed_nights_are_not_enough():
    assert quarantined(nightly(Outcome.FAILED, Outcome.FAILED), 2 * DAY_MS) == {}


def test_after_its_time_one_more_failure_is_enough():
    log = a_log(*((day * DAY_MS, a_record(Outcome.FAILED)) for day in (0, 1, 2, 10)))
    assert quarantined(log, 11 * DAY_MS)["dt=1"].streak.nights == 4


def test_a_schedulers_retries_are_one_night():
    tries = [night * DAY_MS + half * HOUR_MS // 2 for night in (0, 1) for half in range(4)]
    assert quarantined(a_log(*((at, a_record(Outcome.FAILED)) for at in tries)), 2 * DAY_MS) == {}
    assert quarantined(a_log(*((at, a_record(Outcome.FAILED)) for at in [*tries, 2 * DAY_MS])), 3 * DAY_MS)["dt=1"].streak.nights == 3


@pytest.mark.parametrize("outcome", [Outcome.SWAPPED, Outcome.OVERWRITTEN, Outcome.PUT_BACK, Outcome.GIVEN_UP])
def test_any_other_outcome_ends_the_row(outcome):
    assert quarantined(nightly(Outcome.FAILED, Outcome.FAILED, outcome, Outcome.FAILED), 4 * DAY_MS) == {}
    assert quarantined(nightly(Outcome.FAILED, Outcome.FAILED, Outcome.FAILED, outcome), 4 * DAY_MS) == {}


@pytest.mark.parametrize("outcome", [Outcome.LEFT, Outcome.NOT_SWAPPED])
def test_a_night_that_did_not_come_to_the_unit_neither_counts_nor_ends_the_row(outcome):
    assert quarantined(nightly(Outcome.FAILED, outcome, Outcome.FAILED), 3 * DAY_MS) == {}
    assert quarantined(nightly(Outcome.FAILED, outcome, Outcome.FAILED, Outcome.FAILED), 4 * DAY_MS)["dt=1"].streak.nights == 3


def test_other_files_begin_a_new_row():
    runs = [(night * DAY_MS, a_record(Outcome.FAILED, files=FILES[: 1 + (night > 1)])) for night in range(4)]
    assert quarantined(a_log(*runs), 4 * DAY_MS) == {}
    assert quarantined(a_log(*runs, (4 * DAY_MS, a_record(Outcome.FAILED))), 5 * DAY_MS)["dt=1"].streak.nights == 3


def test_units_are_judged_apart():
    log = a_log(
        *(
            (night * DAY_MS, a_record(Outcome.FAILED), a_record(Outcome.FAILED if night else Outcome.SWAPPED, "dt=2", number=2))
            for night in range(3)
        )
    )
    assert list(quarantined(log, 3 * DAY_MS)) == ["dt=1"]


def test_a_table_that_was_made_anew_starts_without_failures():
    assert quarantined(nightly(Outcome.FAILED, Outcome.FAILED, Outcome.FAILED), 3 * DAY_MS, table=a_table(["dt"], create_time=6)) == {}


def test_what_a_cleanup_or_a_rollback_says_of_a_unit_is_no_failure():
    assert quarantined(nightly(Outcome.FAILED, Outcome.FAILED, Outcome.FAILED, operation="rollback"), 3 * DAY_MS) == {}


def test_a_failure_of_the_future_or_of_an_unknown_time_does_not_count():
    log = nightly(Outcome.FAILED, Outcome.FAILED, Outcome.FAILED)
    assert quarantined(log, 2 * DAY_MS - 1) == {}
    assert quarantined({**log, 2: log[2].replace(f'"timestamp": {START_MS + 2 * DAY_MS}', '"timestamp": "?"')}, 3 * DAY_MS) == {}


def test_a_failure_that_an_earlier_version_recorded_does_not_count():
    log = {
        version: text.replace('"source": {', '"unknown": {')
        for version, text in nightly(Outcome.FAILED, Outcome.FAILED, Outcome.FAILED).items()
    }
    assert read_log(log).runs[0].units[0].source is None
    assert quarantined(log, 3 * DAY_MS) == {}


def test_zero_switches_it_off_and_one_takes_the_first_failure():
    log = nightly(Outcome.FAILED, Outcome.FAILED, Outcome.FAILED)
    assert quarantined(log, 3 * DAY_MS, Settings(quarantine_after=0)) == {}
    assert list(quarantined(nightly(Outcome.FAILED), DAY_MS, Settings(quarantine_after=1))) == ["dt=1"]


def an_analysis(*files) -> UnitAnalysis:
    return analyze_unit(a_unit("dt=1"), a_snapshot(*files), None, RULES, START_MS)


def set_apart_now(analysis: UnitAnalysis) -> UnitAnalysis:
    observed = ObservedTable(TABLE, ControlPaths.of(TABLE.location, True), RULES, (analysis,))
    return set_apart(observed, read_log(nightly(Outcome.FAILED, Outcome.FAILED, Outcome.FAILED)), START_MS + 3 * DAY_MS).units[0]


def test_a_unit_in_quarantine_is_no_work_and_says_why():
    unit = set_apart_now(an_analysis(*FILES))
    assert (unit.status, unit.target_files, unit.files_removed) == (Status.QUARANTINED, 2, 0)
    assert unit.reason.what == (
        "its compaction failed 3 nights in a row since 2026-01-01, so it is left alone until 2026-01-10; last: failed: boom"
    )
    assert "--set quarantine_after=0" in unit.reason.next


@pytest.mark.parametrize(
    "files",
    [
        (*FILES, a_file("c.parquet")),
        (FILES[0], a_file("b.parquet", mtime_ms=2001)),
        (FILES[0], a_file("b.parquet", length=1001, mtime_ms=2000)),
    ],
    ids=["one more", "another time", "another size"],
)
def test_a_unit_whose_files_changed_since_is_work_again(files):
    assert set_apart_now(an_analysis(*files)).status == Status.COMPACT


def test_a_unit_that_is_no_work_or_is_refused_stays_what_it_is():
    assert set_apart_now(an_analysis(FILES[0])).status == Status.FINE
    assert set_apart_now(an_analysis(*FILES, a_directory("_temporary"))).status == Status.REFUSED


def test_one_night_is_told_as_one():
    found = quarantined(nightly(Outcome.FAILED), DAY_MS, Settings(quarantine_after=1))["dt=1"]
    assert explain(found).what.startswith("its compaction failed one night since 2026-01-01")


def test_a_time_that_no_calendar_knows_is_no_error():
    assert (day_text(START_MS), day_text(10**18)) == ("2026-01-01", "an unknown day")
