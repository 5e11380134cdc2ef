"""Files of a unit are joined by HDFS's concat: killed after every change, and beside a writer that replaces one of them at that moment."""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any, Dict, List, Optional

import pytest

from faults.checks import originals, require_rows_are_somewhere, settle
from faults.scenarios import SHAPES, Point, Scenario, changes_on_fakes, first_live
from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.report import document
from support.desk import Desk, outcomes
from support.fakes.files import Killed
from support.real_world import FAILED, KILLED, LOST_ANSWER, Fault, spec_of, visible_files
from support.storage import TEST_FS

pytestmark = pytest.mark.skipif(not TEST_FS, reason="local files have no blocks")
EVERYTHING = os.environ.get("HKTEST_MATRIX", "") == "all"
# What readers or the next run see; the rest is records and empty directories, as in a swap of directories.
SEEN = {
    "flat": ("→ live", "concat", "cut", "→ taken", "certificates-N.jsonl", "→ ready", "entry.json → log", "taken directory → nothing"),
    "partitioned": ("concat live", "cut live"),
}


def join(desk: Desk) -> Any:
    desk.settings = replace(desk.settings, exchange="files", fewest_joined=2)
    return desk.compact()


def have_joined(desk: Desk) -> None:
    assert set(outcomes(join(desk)).values()) == {"swapped"}


def replace_a_file(desk: Desk) -> None:
    """As an overwriter does that uses the same names each time."""
    path = f"{first_live(desk)}/part-00001.parquet"
    desk.world.storage.delete(path)
    desk.world.add_file(path, ["new row"])
    del desk.world.written[f"{desk.world.units[0] and 'events/dt=1' or 'events/'}/1"]


JOIN = Scenario("compact-swap, joined", join, kept=((0,), (0,)))
# Their backups lie in files of live, which no picture shows.
UNDO = Scenario("undo of a join", Desk.rollback, have_joined)
CUT = Scenario("cut of a join", Desk.cleanup, have_joined)


def points_of(scenario: Scenario) -> List[Point]:
    found = []
    for shape in SHAPES:
        seen: dict = {}
        for name in changes_on_fakes(scenario, shape):
            seen[name] = seen.get(name, 0) + 1
            found.append(Point(scenario, shape, name, seen[name]))
    return found


def choose(scenario: Scenario) -> List[Point]:
    """All; or on the flat table what is seen, and on the partitioned one each exchange, after which one unit is done and another is not."""
    found = points_of(scenario)
    return found if EVERYTHING else [point for point in found if any(words in point.name for words in SEEN[point.shape])]


TAKEN = choose(JOIN)
# An undo makes the changes of a join: of those that have already been met in a join, CI takes only what readers see.
LATER = [point for point in choose(UNDO) if EVERYTHING or " live" in point.name or "log" in point.name] + choose(CUT)
ERRORS = [(point, kind) for point in TAKEN if point.shape == "flat" or EVERYTHING for kind in (LOST_ANSWER, FAILED)]
if not EVERYTHING:
    # Each change, and each kind of error, once; where files are joined, both.
    ERRORS = [case for number, case in enumerate(ERRORS) if number % 4 in (0, 3) or case[0].name == "concat live/FILE"]


@pytest.mark.parametrize(("shape", "format"), [*((shape, "parquet") for shape in SHAPES), ("partitioned", "orc")])
def test_the_real_ports_make_the_same_changes_in_the_same_order_as_the_fakes(make_desk, shape, format):
    """A join, its rollback, the rollback of that, and a cleanup: each leaves one file with all rows, which `verify` finds the same.

    Rows are read by pyarrow.
    """
    desk = make_desk(shape, format)
    for scenario in (JOIN, UNDO):
        desk.world.process.changed.clear()
        before = bytes_of(desk)
        assert scenario.run(desk).code is Exit.DONE
        assert desk.world.process.changed == changes_on_fakes(scenario, shape)
        done = desk.runs[-1]
        assert old_bytes(desk, done) == before
        require_one_file_each(desk)
        assert set(outcomes(desk.verify(done)).values()) == {"verified"}
    assert set(outcomes(desk.rollback(done)).values()) == {"rolled-back"}
    require_one_file_each(desk)
    assert set(outcomes(desk.verify()).values()) == {"verified"}
    lengths = lengths_of(desk)
    assert desk.cleanup().code is Exit.DONE
    require_one_file_each(desk)
    assert all(length < lengths[path] for path, length in lengths_of(desk).items())
    assert desk.log().standing == ()


def bytes_of(desk: Desk) -> Dict[str, bytes]:
    """Of the files of live, by unit and name."""
    copies = {unit: desk.world.storage.copy(desk.live(unit)) for unit in desk.world.units}
    return {f"{unit}/{file.name}": file.read_bytes() for unit, copy in copies.items() for file in visible_files(copy)}


def old_bytes(desk: Desk, run: str) -> Dict[str, bytes]:
    """The files that a run took, read from where `history` says that they are."""
    found, now = {}, bytes_of(desk)
    for change in document.build(desk.history(files_of=run))["tables"][0]["changes"]:
        begin = change["inside"]["begin"]
        for file in change["removed"]:
            end = begin + file["bytes"]
            found[f"{change['partition']}/{file['name']}"] = now[f"{change['partition']}/{change['inside']['file']}"][begin:end]
            begin = end
    return found


def lengths_of(desk: Desk) -> Any:
    lives = [desk.live(unit) for unit in desk.world.units]
    return {entry.path: entry.length for seen in desk.world.files.look(lives).values() for entry in seen.entries if not entry.is_dir}


def require_one_file_each(desk: Desk) -> None:
    """With all rows; a file without rows would be a second one."""
    seen = desk.world.picture()
    assert seen.rows == desk.world.written
    assert set(seen.files.values()) == {1}
    assert seen.unproved == []
    require_nothing_hidden(desk)


def require_nothing_hidden(desk: Desk) -> None:
    assert [path for path in lengths_of(desk) if names.base(path).startswith((".", "_"))] == []


def require_verified(desk: Desk, undo: Optional[str]) -> None:
    """The old files of each unit are those of the join, or where it was undone those of `undo`. After a cut there may be none."""
    found = outcomes(desk.verify())
    if undo and len(found) < len(desk.world.units):
        found = {**outcomes(desk.verify(undo)), **found}
    assert set(found.values()) <= {"verified"}
    assert undo is None or set(found) == set(desk.world.units)


@pytest.mark.parametrize("point", LATER, ids=str)
def test_a_rollback_or_a_cleanup_that_is_killed_after_any_change_is_settled_by_the_next_command(make_desk, point):
    desk = make_desk(point.shape)
    point.scenario.prepare(desk)
    desk.world.process.fault = fault = Fault(point.name, point.nth, KILLED)
    with suppress(Killed):
        point.scenario.run(desk)
    done = desk.runs[-1]
    assert fault.happened
    require_rows_are_somewhere(desk.world, desk.world.picture())
    settle(desk, point)
    require_one_file_each(desk)
    require_verified(desk, done if point.scenario is UNDO else None)
    assert desk.cleanup().code is Exit.DONE
    require_one_file_each(desk)


@pytest.mark.parametrize("point", TAKEN, ids=str)
def test_a_join_that_is_killed_after_any_change_is_settled_by_the_next_command(make_desk, point):
    desk = make_desk(point.shape)
    desk.world.process.fault = fault = Fault(point.name, point.nth, KILLED)
    with suppress(Killed):
        point.scenario.run(desk)
    assert fault.happened
    require_rows_are_somewhere(desk.world, desk.world.picture())
    settle(desk, point)
    # A file without rows would be one more.
    assert set(desk.world.picture().files.values()) <= {1, 3}
    require_nothing_hidden(desk)
    assert join(desk).code is Exit.DONE
    require_one_file_each(desk)
    assert set(outcomes(desk.verify()).values()) == {"verified"}


@pytest.mark.parametrize(("point", "kind"), ERRORS, ids=str)
def test_a_call_that_fails_anywhere_loses_nothing(make_desk, point, kind):
    desk = make_desk(point.shape)
    desk.world.process.fault = fault = Fault(point.name, point.nth, kind)
    assert point.scenario.run(desk).code in {Exit.DONE, Exit.PARTIAL, Exit.UNUSABLE}
    assert fault.happened
    require_rows_are_somewhere(desk.world, desk.world.picture())
    settle(desk, point)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_file_that_replaced_one_at_the_last_moment_gets_its_own_place_back(make_desk, shape):
    desk = make_desk(shape)
    waiting = [replace_a_file]
    desk.world.watch(desk.table, lambda name: waiting.pop()(desk) if name == "concat live/FILE" and waiting else None)
    assert outcomes(join(desk))[desk.world.units[0]] == "put-back"
    seen = desk.world.picture()
    assert seen.rows == desk.world.written
    assert seen.files[desk.world.units[0]] == 3
    modes = {(entry.mode, entry.owner, entry.group) for entry in desk.world.files.look([first_live(desk)])[first_live(desk)].entries}
    assert len([mode for mode in modes if not mode[0] & 0o1000]) == 1


@pytest.mark.parametrize("seed", range(40 if EVERYTHING else 2))
def test_a_put_back_that_is_killed_and_its_recovery_too_is_settled_by_the_one_after(make_desk, seed):
    chance = random.Random(seed)
    desk = make_desk(chance.choice(list(SHAPES)))
    waiting = [replace_a_file]

    def act(name: str) -> None:
        if name == "concat live/FILE" and waiting:
            waiting.pop()(desk)
            desk.world.die_after(chance.randint(1, 12), chance.random() < 0.5)

    desk.world.watch(desk.table, act)
    with suppress(Killed):
        join(desk)
    desk.world.revive()
    desk.world.die_after(chance.randint(1, 12), chance.random() < 0.5)
    with suppress(Killed):
        desk.recover()
    desk.world.revive()
    assert desk.recover().code is Exit.DONE
    seen = desk.world.picture()
    assert seen.rows == desk.world.written
    assert seen.unproved == []


def move(desk: Desk, unit: str) -> str:
    """`hdfs dfs -mv` of a partition's directory, and ALTER TABLE … SET LOCATION."""
    world, moved = desk.world, f"{desk.world.events.location}/moved"
    world.storage.rename(world.live(unit), moved)
    world.spark.sql(f"ALTER TABLE {desk.table} PARTITION ({spec_of(unit)}) SET LOCATION '{moved}'")
    return moved


@pytest.mark.parametrize("changes", range(0, 12, 1 if EVERYTHING else 6))
def test_a_put_back_goes_on_where_its_directory_was_moved(make_desk, changes):
    desk = make_desk("partitioned")
    waiting = [replace_a_file]

    def act(name: str) -> None:
        if name == "concat live/FILE" and waiting:
            waiting.pop()(desk)
            desk.world.die_after(1 + changes, True)

    desk.world.watch(desk.table, act)
    with suppress(Killed):
        join(desk)
    desk.world.revive()
    unit = desk.world.units[0]
    moved = move(desk, unit)
    desk.recover()
    others = [row for other in desk.world.units[1:] for row in originals(desk.world, other)]
    assert desk.world.rows_below(moved) == desk.world.written - Counter(others)
    assert [entry.name for entry in desk.world.files.look([moved])[moved].entries if names.is_hidden(entry.name)] == []
