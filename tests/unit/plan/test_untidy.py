"""Which directories of finished runs are looked at again: what the log says of since the last run, and what changed later."""

from dataclasses import replace

import pytest

from hivekeeper.names import backup_place
from hivekeeper.plan.untidy import MOST_SKEW_MS, choose_untidy
from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.run_files import CLEANUP, COMPACT_SWAP, OPERATIONS, ROLLBACK, VERIFY

# 2026-01-01 02:00 UTC.
FIRST_MS = 1_767_232_800_000
DAY_MS = 86_400_000
OLD, MIDDLE, NEW, LAST = (f"2026010{day}t020000z-0000" for day in (1, 2, 3, 4))


def began_ms(run):
    return FIRST_MS + (int(run[6:8]) - 1) * DAY_MS


def an_entry(version, run, operation=COMPACT_SWAP, **more):
    given = {"recovered_by": None, "finished": True, "effects": (), "units": (), "parameters": {}, **more}
    return LoggedRun(version, run, run, operation, began_ms(run), "etl", "edge1", "", backup_table="", table_id="t@1", **given)


def an_effect(run, version, undoes=None):
    return Effect(run, 1, version, ROLLBACK, 0, "t@1", "dt=1", "dt=1", backup_place(run, 1), (), (), undoes)


def chosen(*entries, modified=None, directories=None):
    """Every directory was last changed an hour after its run began."""
    times = {run: began_ms(run) + 3_600_000 for run in directories or {entry.run for entry in entries}}
    return choose_untidy(History(entries), {**times, **(modified or {})})


THREE = (an_entry(0, OLD), an_entry(1, MIDDLE), an_entry(2, NEW))


def test_what_the_last_run_found_tidy_is_passed_over():
    assert chosen(*THREE) == {NEW}


def test_without_a_run_that_has_tidied_all_are_looked_at():
    assert chosen(*(replace(entry, operation=VERIFY) for entry in THREE)) == {OLD, MIDDLE, NEW}
    assert chosen(*(replace(entry, recovered_by=LAST) for entry in THREE)) == {OLD, MIDDLE, NEW}


@pytest.mark.parametrize("operation", sorted(OPERATIONS - {VERIFY}))
def test_every_operation_that_settles_first_has_tidied(operation):
    assert chosen(*THREE[:2], an_entry(2, NEW, operation)) == {NEW}


def test_a_verify_and_a_recovered_run_are_looked_at_with_the_run_before_them():
    assert chosen(*THREE[:2], an_entry(2, NEW, VERIFY)) == {MIDDLE, NEW}
    assert chosen(*THREE[:2], an_entry(2, NEW, recovered_by=LAST)) == {MIDDLE, NEW}


def test_a_run_whose_backup_was_restored_or_discarded_since_is_looked_at():
    assert chosen(*THREE[:2], an_entry(2, NEW, ROLLBACK, effects=(an_effect(NEW, 2, undoes=(OLD, 1)),))) == {OLD, NEW}
    begun = an_entry(2, NEW, CLEANUP, finished=False, discarding=(backup_place(OLD, 1),))
    ended = an_entry(3, NEW, CLEANUP, discarded=(backup_place(OLD, 1), f"runs/{MIDDLE}"))
    assert chosen(*THREE[:2], begun, ended) == {OLD, MIDDLE, NEW}


def test_both_entries_of_a_cleanup_are_its_own():
    begun = an_entry(2, NEW, CLEANUP, finished=False, discarding=(backup_place(OLD, 1),))
    assert chosen(*THREE[:2], begun, an_entry(3, NEW, CLEANUP)) == {OLD, NEW}


def test_a_directory_that_changed_since_the_last_run_began_is_looked_at_by_clocks_that_may_differ():
    late = began_ms(NEW) - MOST_SKEW_MS
    assert chosen(*THREE, modified={OLD: late - 1}) == {NEW}
    assert chosen(*THREE, modified={OLD: late}) == {OLD, NEW}
    assert chosen(*THREE, modified={f"{OLD}.t1": late}) == {f"{OLD}.t1", NEW}


def test_an_unfinished_run_is_none_of_them_and_an_expired_entry_tells_too_little():
    assert chosen(*THREE, directories=(OLD, LAST), modified={LAST: began_ms(LAST)}) == set()
    assert chosen(*THREE[:2], replace(THREE[2], expired=True)) == {OLD, MIDDLE, NEW}


def test_an_id_that_is_no_time_tells_nothing():
    assert chosen(*THREE[:2], replace(THREE[2], run="20269999t999999z-0000"), directories=(OLD, MIDDLE)) == {OLD, MIDDLE}
