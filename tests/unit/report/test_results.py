import pytest

from hivekeeper.errors import Exit
from hivekeeper.plan.retention import Backup
from hivekeeper.report.results import BackupOutcome, Problem, TableOutcome, UnitOutcome, code_of_tables, code_of_units

DONE, REFUSED, LOCKED, PARTIAL, DIFFERENT = Exit.DONE, Exit.REFUSED, Exit.LOCKED, Exit.PARTIAL, Exit.DIFFERENT


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], DONE),
        (["swapped"], DONE),
        (["swapped", "recent"], DONE),
        (["overwritten"], DONE),
        (["swapped", "refused"], PARTIAL),
        (["refused"], REFUSED),
        (["swapped", "put back"], PARTIAL),
        (["given up"], PARTIAL),
        (["failed"], PARTIAL),
        (["swapped", "failed", "differs"], DIFFERENT),
        (["verified"], DONE),
        (["verified", "dropped", "undone"], DONE),
        (["verified", "differs"], DIFFERENT),
        (["rolled back", "undone"], DONE),
        (["rolled back", "refused"], PARTIAL),
        (["not rolled back"], PARTIAL),
        (["rolled back", "put back"], PARTIAL),
        (["undone", "refused"], REFUSED),
        (["recorded"], DONE),
        (["planned"], DONE),
    ],
)
def test_the_code_of_a_table_follows_from_its_units(outcomes, code):
    assert code_of_units(outcomes) is code


def a_table(code=DONE, swapped=False):
    problem = None if code is DONE else Problem("what", "state", "next", code)
    units = (UnitOutcome("", "swapped", 2, 2),) if swapped else ()
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
        ([a_table(Exit.ASK), a_table(DIFFERENT)], True, Exit.ASK),
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
        (("kept", "there", "planned"), DONE, False),
        (("discarded", "kept"), DONE, True),
        (("discarded", "partly"), PARTIAL, True),
    ],
)
def test_a_backup_that_could_not_go_is_for_running_again(outcomes, code, did_something):
    table = a_cleaned_table(*outcomes)
    assert (table.code, table.did_something) == (code, did_something)


def test_a_table_that_is_locked_beside_one_that_was_cleaned_is_for_running_again():
    assert code_of_tables([a_table(LOCKED), a_cleaned_table("discarded")], named=True) is PARTIAL
    assert code_of_tables([a_table(LOCKED), a_cleaned_table("kept")], named=True) is LOCKED
