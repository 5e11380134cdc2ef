from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.plan.retention import Backup
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.properties import RETRIES
from hivekeeper.report.results import BackupOutcome, BackupState, TableOutcome, UnitOutcome, beside, code_of_tables, code_of_units
from hivekeeper.runlog.outcomes import Outcome

DONE, REFUSED, LOCKED, PARTIAL, DIFFERENT = Exit.DONE, Exit.REFUSED, Exit.LOCKED, Exit.PARTIAL, Exit.DIFFERENT


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], DONE),
        ([Outcome.SWAPPED], DONE),
        ([Outcome.SWAPPED, Outcome.RECENT], DONE),
        ([Outcome.OVERWRITTEN], DONE),
        ([Outcome.SWAPPED, Outcome.REFUSED], PARTIAL),
        ([Outcome.REFUSED], REFUSED),
        ([Outcome.SWAPPED, Outcome.PUT_BACK], PARTIAL),
        ([Outcome.GIVEN_UP], PARTIAL),
        ([Outcome.FAILED], PARTIAL),
        ([Outcome.SWAPPED, Outcome.FAILED, Outcome.DIFFERS], DIFFERENT),
        ([Outcome.VERIFIED], DONE),
        ([Outcome.VERIFIED, Outcome.DROPPED, Outcome.UNDONE], DONE),
        ([Outcome.VERIFIED, Outcome.DIFFERS], DIFFERENT),
        ([Outcome.ROLLED_BACK, Outcome.UNDONE], DONE),
        ([Outcome.ROLLED_BACK, Outcome.REFUSED], PARTIAL),
        ([Outcome.NOT_ROLLED_BACK], PARTIAL),
        ([Outcome.ROLLED_BACK, Outcome.PUT_BACK], PARTIAL),
        ([Outcome.UNDONE, Outcome.REFUSED], REFUSED),
        ([Outcome.RECORDED], DONE),
        ([Outcome.PLANNED], DONE),
    ],
)
def test_the_code_of_a_table_follows_from_its_units(outcomes, code):
    assert code_of_units(UnitOutcome("", outcome, 2, 2) for outcome in outcomes) is code


WRITER, TABLE_LOCKED = (Reason(code, "what", "next", "state") for code in (Code.WRITER_AT_WORK, Code.TABLE_LOCKED))


def a_unit(outcome, why=None):
    return UnitOutcome("", outcome, 2, 2, why=why)


@pytest.mark.parametrize(
    ("units", "code"),
    [
        ([a_unit(Outcome.REFUSED, WRITER)], LOCKED),
        ([a_unit(Outcome.REFUSED, WRITER), a_unit(Outcome.REFUSED, Reason(Code.SUBDIRECTORY, "what"))], LOCKED),
        ([a_unit(Outcome.REFUSED, WRITER), a_unit(Outcome.RECENT)], LOCKED),
        ([a_unit(Outcome.REFUSED, WRITER), a_unit(Outcome.SWAPPED)], PARTIAL),
        ([a_unit(Outcome.GIVEN_UP, WRITER)], PARTIAL),
    ],
)
def test_a_unit_that_waits_for_a_writer_is_to_be_tried_again(units, code):
    assert code_of_units(units) is code
    assert RETRIES[code] == "later"


@pytest.mark.parametrize(
    "busy", [TableOutcome("d.t", problem=WRITER), TableOutcome("d.t", units=(a_unit(Outcome.REFUSED, WRITER),))], ids=["table", "unit"]
)
def test_a_table_with_a_writer_is_later_where_it_is_named_and_passed_over_in_a_database(busy):
    assert code_of_tables([busy], named=True) is LOCKED
    assert code_of_tables([busy, a_table()], named=True) is LOCKED
    assert code_of_tables([busy, a_table(REFUSED)], named=True) is LOCKED
    assert code_of_tables([busy, a_table()], named=False) is DONE
    assert code_of_tables([busy, a_table(REFUSED)], named=False) is LOCKED
    assert code_of_tables([TableOutcome("d.t", problem=TABLE_LOCKED), a_table()], named=False) is LOCKED


@pytest.mark.parametrize("outcome", [one for one in Outcome if one.exit is PARTIAL and "compact-swap" in one.commands])
def test_a_writer_in_one_unit_hides_no_failure_of_another_one(outcome):
    table = TableOutcome("d.t", units=(a_unit(outcome), a_unit(Outcome.REFUSED, WRITER)))
    assert (table.code, code_of_tables([table, a_table()], named=False)) == (PARTIAL, PARTIAL)


def test_of_two_problems_the_graver_one_counts_and_both_are_told():
    full, asks = Reason(Code.NOT_ENOUGH_SPACE, "no room", "free some"), Reason(Code.BACKUP_HALF_DELETED, "half is gone", "compare")
    for first, second in ((full, asks), (asks, full)):
        problem = beside(first, second)
        assert (problem.code, problem.what, problem.next) == (asks.code, "half is gone; and no room [not-enough-space]", "compare")
    assert "[not-enough-space]" in beside(full, replace(asks, what="x" * 2000)).what
    assert beside(None, full) is full


def a_table(code=DONE, swapped=False):
    units = (UnitOutcome("", Outcome.SWAPPED, 2, 2),) if swapped else ()
    if code is DIFFERENT:
        return TableOutcome("d.t", units=(*units, UnitOutcome("", Outcome.DIFFERS, 2, 2)))
    if code is LOCKED:
        return TableOutcome("d.t", units=units, problem=TABLE_LOCKED)
    problem = None if code is DONE else Reason(next(one for one in Code if one.exit is code), "what", "next", "state")
    return TableOutcome("d.t", units=units, problem=problem)


@pytest.mark.parametrize(
    ("tables", "named", "code"),
    [
        ([], True, DONE),
        ([a_table(REFUSED)], True, REFUSED),
        ([a_table(REFUSED)], False, REFUSED),
        ([a_table(REFUSED), a_table()], False, DONE),
        ([a_table(REFUSED), a_table()], True, REFUSED),
        ([a_table(REFUSED), a_table(swapped=True)], True, PARTIAL),
        ([a_table(LOCKED), a_table(swapped=True)], False, PARTIAL),
        ([a_table(LOCKED), a_table(REFUSED)], False, LOCKED),
        ([a_table(LOCKED)], True, LOCKED),
        ([a_table(DIFFERENT), a_table(swapped=True)], True, DIFFERENT),
        ([a_table(Exit.INVESTIGATE), a_table(DIFFERENT)], True, Exit.INVESTIGATE),
        ([a_table(Exit.UNUSABLE)], True, Exit.UNUSABLE),
    ],
)
def test_the_code_of_a_command_is_the_one_that_needs_a_person_first(tables, named, code):
    assert code_of_tables(tables, named) is code


def a_cleaned_table(*outcomes):
    backup = Backup("20260101t020304z-0000", 0, "compact-swap", "20260101t020304z-0000", 5, (), False)
    return TableOutcome("d.t", backups=tuple(BackupOutcome(backup, outcome) for outcome in outcomes))


@pytest.mark.parametrize(
    ("outcomes", "code", "did_something"),
    [
        ((), DONE, False),
        ((BackupState.KEPT, BackupState.THERE, BackupState.PLANNED), DONE, False),
        ((BackupState.DISCARDED, BackupState.KEPT), DONE, True),
        ((BackupState.DISCARDED, BackupState.PARTLY), PARTIAL, True),
    ],
)
def test_a_backup_that_could_not_go_is_for_running_again(outcomes, code, did_something):
    table = a_cleaned_table(*outcomes)
    assert (table.code, table.did_something) == (code, did_something)


def test_a_table_that_is_locked_beside_one_that_was_cleaned_is_for_running_again():
    assert code_of_tables([a_table(LOCKED), a_cleaned_table(BackupState.DISCARDED)], named=True) is PARTIAL
    assert code_of_tables([a_table(LOCKED), a_cleaned_table(BackupState.KEPT)], named=True) is LOCKED
