import itertools
import tracemalloc

import pytest

from hivekeeper.names import UnitNumber
from hivekeeper.plan import recover
from hivekeeper.plan.recover import Move
from hivekeeper.runlog.run_files import PlannedUnit
from support.builders import ROOT, a_directory, a_file, a_unit

TABLE = {
    # left, incoming, holds
    (False, False, False): Move.CANCEL,
    (False, False, True): Move.CANCEL,
    (False, True, False): Move.CANCEL,
    (False, True, True): Move.CANCEL,
    (True, True, False): Move.DECIDE,
    (True, True, True): Move.DECIDE,
    (True, False, True): Move.FINISH,
    (True, False, False): Move.OVERWRITTEN,
}


def test_the_table_is_total():
    assert set(TABLE) == set(itertools.product((False, True), repeat=3))


@pytest.mark.parametrize("picture", TABLE, ids=str)
def test_every_picture_has_its_move(picture):
    assert recover.next_move(*picture) is TABLE[picture]


RUN = "hdfs://nn/t/.hivekeeper/runs/R"


def strangers(*entries, operation="compact-swap"):
    return recover.find_strangers(RUN, entries, {1}, operation)


def in_each_state(*states):
    return [entry for state in states for entry in (a_directory(state, RUN), a_directory("u00001", f"{RUN}/{state}"))]


RECORDS = [a_file(name, directory=RUN) for name in ("plan.json", "entry.json", "plan.json.part", "entry.json.part", "clock")]


@pytest.mark.parametrize(
    ("operation", "states"),
    [
        ("compact-swap", ("ready", "retired")),
        ("rollback", ("restoring", "retired")),
        ("cleanup", ("held", "discarding")),
        ("backup", ()),
        ("pin", ()),
        ("unpin", ()),
    ],
)
def test_a_run_that_holds_what_its_plan_says_has_no_strangers(operation, states):
    assert not strangers(*RECORDS, a_directory("backup_table", RUN), *in_each_state(*states), operation=operation)


def test_a_compaction_holds_stages_certificates_and_what_it_set_aside_too():
    assert not strangers(
        a_directory("stage", RUN),
        a_directory("b00003", f"{RUN}/stage"),
        a_directory("recreated", RUN),
        a_directory("u00001.0", f"{RUN}/recreated"),
        a_file("certificates-1.jsonl", directory=RUN),
    )


@pytest.mark.parametrize(
    ("operation", "stranger"),
    [
        ("compact-swap", a_directory("u00002", f"{RUN}/retired")),
        ("compact-swap", a_directory("old", f"{RUN}/ready")),
        ("compact-swap", a_directory("u00001.bak", f"{RUN}/recreated")),
        ("compact-swap", a_directory("restoring", RUN)),
        ("compact-swap", a_file("notes.txt", directory=RUN)),
        ("rollback", a_directory("held", RUN)),
        ("rollback", a_directory("u00002", f"{RUN}/restoring")),
        ("cleanup", a_directory("retired", RUN)),
        ("cleanup", a_directory("u00002", f"{RUN}/discarding")),
        ("backup", a_directory("retired", RUN)),
        ("pin", a_directory("retired", RUN)),
        ("of a version to come", a_directory("retired", RUN)),
    ],
    ids=lambda given: given if isinstance(given, str) else given.path,
)
def test_what_the_plan_does_not_explain_is_a_stranger(operation, stranger):
    assert strangers(stranger, operation=operation) == [stranger.path]


RUN_ID = "20260101t020304z-1f0c"


@pytest.mark.parametrize(
    ("directories", "expected"),
    [
        ([RUN_ID], f"{RUN_ID}.t1"),
        ([f"{RUN_ID}.t1"], f"{RUN_ID}.t2"),
        ([f"{RUN_ID}.t9", f"{RUN_ID}.t10", RUN_ID], f"{RUN_ID}.t11"),
        (["20260101t020304z-1f0d.t5", RUN_ID], f"{RUN_ID}.t1"),
    ],
)
def test_a_run_is_taken_over_under_a_name_never_used(directories, expected):
    assert recover.next_taken_name(RUN_ID, directories) == expected


def test_directories_above_deep_partitions_do_not_take_the_drivers_memory():
    """All above a location of 4,000 characters have 4 MB of names."""
    lives = {f"dt={number}": f"{ROOT}/{number}{'/a' * 1950}" for number in range(20)}
    moved = PlannedUnit(UnitNumber(1), a_unit("dt=x", f"{ROOT}/7/a/a"), ())
    tracemalloc.start()
    foreign = recover.find_foreign([moved], lives, ())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert foreign == [moved]
    assert most < 2**25
