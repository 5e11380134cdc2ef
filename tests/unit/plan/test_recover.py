import itertools

import pytest

from hivekeeper.plan import recover
from hivekeeper.plan.recover import Live, Move, Undo
from support.builders import a_directory, a_file

TABLE = {
    # live, ready, retired
    (Live.ABSENT, False, False): Move.NOTHING_SWAPPED,
    (Live.OTHER, False, False): Move.NOTHING_SWAPPED,
    (Live.OURS, False, False): Move.NOTHING_SWAPPED,
    (Live.ABSENT, True, False): Move.NOTHING_SWAPPED,
    (Live.OTHER, True, False): Move.NOTHING_SWAPPED,
    (Live.OURS, True, False): Move.NOTHING_SWAPPED,
    (Live.ABSENT, True, True): Move.FINISH_GAP,
    (Live.OTHER, True, True): Move.FINISH_GAP,
    (Live.OURS, True, True): Move.FINISH_GAP,
    (Live.OURS, False, True): Move.FINISH,
    (Live.ABSENT, False, True): Move.OVERWRITTEN,
    (Live.OTHER, False, True): Move.OVERWRITTEN,
}


def test_the_table_is_total():
    assert set(TABLE) == set(itertools.product(Live, (False, True), (False, True)))


@pytest.mark.parametrize("picture", TABLE, ids=str)
def test_every_picture_has_its_move(picture):
    assert recover.next_move(*picture) is TABLE[picture]


UNDOS = {
    # live is the older one, restoring, discarded
    (True, True, True): Undo.LOOK,
    (False, True, True): Undo.LOOK,
    (True, False, True): Undo.RESTORED,
    (False, False, True): Undo.OVERWRITTEN,
    (True, True, False): Undo.GIVE_BACK,
    (False, True, False): Undo.GIVE_BACK,
    (True, False, False): Undo.NOTHING,
    (False, False, False): Undo.NOTHING,
}


def test_the_table_of_a_rollback_is_total():
    assert set(UNDOS) == set(itertools.product((False, True), repeat=3))


@pytest.mark.parametrize("picture", UNDOS, ids=str)
def test_every_picture_of_a_rollback_has_its_move(picture):
    assert recover.next_undo(*picture) is UNDOS[picture]


RUN = "hdfs://nn/t/.hivekeeper/runs/R"


def strangers(*entries, operation="compact-swap"):
    return recover.find_strangers(RUN, entries, {1}, operation)


def in_each_state(*states):
    return [entry for state in states for entry in (a_directory(state, RUN), a_directory("u00001", f"{RUN}/{state}"))]


RECORDS = [a_file(name, directory=RUN) for name in ("plan.json", "entry.json", "plan.json.part", "entry.json.part", "tick")]


@pytest.mark.parametrize(
    ("operation", "states"),
    [
        ("compact-swap", ("ready", "retired")),
        ("rollback", ("restoring", "discarded")),
        ("cleanup", ("discarding", "deleting")),
        ("backup", ()),
        ("pin", ()),
        ("unpin", ()),
    ],
)
def test_a_run_that_holds_what_its_plan_says_has_no_strangers(operation, states):
    assert not strangers(*RECORDS, a_directory("shown", RUN), *in_each_state(*states), operation=operation)


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
        ("compact-swap", a_directory("discarded", RUN)),
        ("compact-swap", a_file("notes.txt", directory=RUN)),
        ("rollback", a_directory("retired", RUN)),
        ("rollback", a_directory("u00002", f"{RUN}/restoring")),
        ("cleanup", a_directory("retired", RUN)),
        ("cleanup", a_directory("u00002", f"{RUN}/deleting")),
        ("backup", a_directory("retired", RUN)),
        ("pin", a_directory("retired", RUN)),
        ("of a version to come", a_directory("retired", RUN)),
    ],
    ids=str,
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
