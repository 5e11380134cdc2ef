"""Rollback and cleanup on real files after others, and kills, have changed what they find: a selection from tests/crash."""

from __future__ import annotations

from contextlib import suppress
from typing import Callable

import pytest

from faults.scenarios import SHAPES, compact, first_live
from hivekeeper.codes import Exit
from support.desk import Desk, outcomes
from support.fakes.files import Killed
from support.real_world import KILLED, Fault

MakeDesk = Callable[[str], Desk]
FIRST = {"flat": "", "partitioned": "dt=1"}


def append(desk: Desk, *rows: str) -> None:
    for row in rows:
        desk.world.add_file(f"{first_live(desk)}/{row}.parquet", [row])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rollback_after_appends_keeps_them_and_so_does_its_own_undoing(make_desk: MakeDesk, shape: str):
    desk = make_desk(shape)
    compact(desk)
    append(desk, "after the swap")
    assert set(outcomes(desk.rollback()).values()) == {"rolled-back"}
    append(desk, "after the rollback")
    assert desk.world.picture().rows == desk.world.written
    assert desk.world.picture().files[FIRST[shape]] == 5
    assert set(outcomes(desk.rollback(desk.runs[-1])).values()) == {"rolled-back"}
    assert desk.world.picture().rows == desk.world.written
    assert desk.world.picture().files[FIRST[shape]] == 3


@pytest.mark.parametrize("whole", [True, False], ids=["the directory", "the files"])
def test_a_rollback_after_an_overwrite_is_refused_and_the_other_partition_is_rolled_back(make_desk: MakeDesk, whole: bool):
    desk = make_desk("partitioned")
    compact(desk)
    desk.world.overwrite(desk.live("dt=1"), "new.parquet", ["new"], whole)
    assert outcomes(desk.rollback()) == {"dt=1": "refused", "dt=2": "rolled-back"}
    seen = desk.world.picture()
    assert set(seen.live["dt=1"]) == {"new"}
    assert set(seen.live["dt=2"]) == {f"events/dt=2/{nth}" for nth in range(3)}


def test_one_partition_of_a_run_is_rolled_back_and_the_other_stays(make_desk: MakeDesk):
    desk = make_desk("partitioned")
    compact(desk)
    assert outcomes(desk.rollback(where="dt = '2'")) == {"dt=2": "rolled-back"}
    seen = desk.world.picture()
    assert seen.rows == desk.world.written
    assert seen.files == {"dt=1": 1, "dt=2": 3}
    assert desk.cleanup().code is Exit.DONE
    assert desk.world.picture().rows == desk.world.written
    assert desk.world.picture().held == {}


@pytest.mark.parametrize("shape", SHAPES)
def test_runs_on_each_other_with_a_backup_missing_between_are_not_rolled_back(make_desk: MakeDesk, shape: str):
    desk = make_desk(shape)
    compact(desk)
    append(desk, "one", "two", "three")
    assert outcomes(desk.compact())[FIRST[shape]] == "swapped"
    desk.world.storage.delete(desk.control.run(desk.runs[1]).unit("retired", 1))
    before = desk.world.picture()
    assert outcomes(desk.rollback(desk.runs[0]))[FIRST[shape]] == "refused"
    after = desk.world.picture()
    assert (after.live[FIRST[shape]], after.rows) == (before.live[FIRST[shape]], desk.world.written)


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ("flat", "retired → restoring"),
        ("partitioned", "live → retired"),
        ("flat", "restoring → live"),
        pytest.param("partitioned", "retired → restoring", marks=pytest.mark.thorough),
        pytest.param("flat", "live → retired", marks=pytest.mark.thorough),
        pytest.param("partitioned", "restoring → live", marks=pytest.mark.thorough),
    ],
)
def test_a_cleanup_that_finds_a_killed_rollback_finishes_it_first_and_deletes_nothing_it_needs(make_desk: MakeDesk, shape: str, name: str):
    desk = make_desk(shape)
    compact(desk)
    append(desk, "late")
    desk.world.process.fault = fault = Fault(name, 1, KILLED)
    with suppress(Killed):
        desk.rollback()
    assert fault.happened
    desk.world.revive()
    assert desk.cleanup().code is Exit.DONE
    seen = desk.world.picture()
    assert seen.rows == desk.world.written
    assert seen.held == {}
