import itertools

import pytest

from builders import a_directory, a_file
from hivekeeper.plan import recovery
from hivekeeper.plan.recovery import Live, Move

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
    assert recovery.next_move(*picture) is TABLE[picture]


RUN = "hdfs://nn/t/.hivekeeper/runs/R"


def strangers(*entries):
    return recovery.find_strangers(RUN, entries, units={1})


def test_a_run_that_holds_what_its_plan_says_has_no_strangers():
    assert not strangers(
        a_directory("stage", RUN),
        a_directory("ready", RUN),
        a_directory("retired", RUN),
        a_directory("recreated", RUN),
        a_file("plan.json", directory=RUN),
        a_file("certificates-1.jsonl", directory=RUN),
        a_file("entry.json", directory=RUN),
        a_directory("u00001", f"{RUN}/retired"),
        a_directory("u00001.0", f"{RUN}/recreated"),
    )


@pytest.mark.parametrize(
    "stranger",
    [
        a_directory("u00002", f"{RUN}/retired"),
        a_directory("old", f"{RUN}/ready"),
        a_directory("u00001.bak", f"{RUN}/recreated"),
        a_directory("discarded", RUN),
        a_file("notes.txt", directory=RUN),
    ],
    ids=lambda entry: entry.name,
)
def test_what_the_plan_does_not_explain_is_a_stranger(stranger):
    assert strangers(stranger) == [stranger.path]


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
    assert recovery.next_taken_name(RUN_ID, directories) == expected
