"""recover on the fakes: it finishes what was begun, begins nothing, and leaves no trace if there is nothing to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.recover import recover
from hivekeeper.model import Selection
from hivekeeper.names import ControlPaths
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from support.builders import a_table
from support.contexts import a_context
from support.fakes.files import Killed
from support.world import World

EVENTS = Selection(tables=("sales.events",))
RUNS = [f"20260101t02030{number}z-0000" for number in range(5)]


@pytest.fixture
def world():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    return world


def live_of(world, unit):
    return names.join(world.catalog.tables["sales.events"].location, unit)


def control_of(world):
    return ControlPaths.of(world.catalog.tables["sales.events"].location, partitioned=True)


def files_in(world, unit):
    return len(world.files.look([live_of(world, unit)])[live_of(world, unit)].entries)


def compact(world, run=RUNS[1]):
    return compact_swap(a_context(world.cluster, EVENTS, run))


def interrupt(world, method, *words):
    """Kill a run just before the first call of this method that contains all these words."""

    def die(what):
        if what.startswith(method) and all(word in what for word in words):
            world.files.die_after(0)

    world.files.before_step = die
    with pytest.raises(Killed):
        compact(world)
    world.files.before_step = None
    world.files.revive()
    world.files.expire_locks()


def run_recover(world, run=RUNS[2], selected=EVENTS):
    return recover(a_context(world.cluster, selected, run))


def recovered(result):
    return tuple((run, {outcome.code: count for outcome, count in counts.items()}) for run, counts in result.tables[0].recovered)


def test_a_table_that_we_never_touched_is_left_without_a_trace(world):
    before = world.picture()
    result = run_recover(world)
    assert (result.code, recovered(result)) == (Exit.DONE, ())
    assert (world.files.steps, world.picture()) == (0, before)


def test_a_run_killed_in_the_gap_is_finished(world):
    before = world.rows_of("sales.events")
    interrupt(world, "rename_exact", "/ready/u00002 " + live_of(world, "dt=2"))
    assert not world.files.look([live_of(world, "dt=2")])[live_of(world, "dt=2")].exists
    result = run_recover(world)
    assert (result.code, recovered(result)) == (Exit.DONE, ((RUNS[1], {"swapped": 2}),))
    assert world.rows_of("sales.events") == before
    assert [files_in(world, "dt=1"), files_in(world, "dt=2")] == [1, 1]


def test_a_partition_that_was_dropped_while_it_was_away_is_for_an_operator_and_no_other(world):
    """`MSCK REPAIR TABLE … SYNC PARTITIONS` drops each whose directory is away."""
    interrupt(world, "rename_exact", "/ready/u00002 " + live_of(world, "dt=2"))
    for unit in ("dt=1", "dt=2"):
        world.catalog.drop_partition("sales.events", unit)
    assert recovered(run_recover(world)) == ((RUNS[1], {"dropped-meanwhile": 1, "misplaced": 1}),)


def test_a_run_killed_before_the_swap_is_undone_and_nothing_new_is_begun(world):
    before = world.rows_of("sales.events")
    interrupt(world, "rename_exact", live_of(world, "dt=1"), "/retired/")
    result = run_recover(world)
    assert (result.code, recovered(result)) == (Exit.DONE, ((RUNS[1], {"not-swapped": 2}),))
    assert world.rows_of("sales.events") == before
    assert [files_in(world, "dt=1"), files_in(world, "dt=2")] == [3, 3]
    assert store.find_runs(world.files, control_of(world)) == []


def test_a_run_killed_before_its_plan_is_swept_away(world):
    interrupt(world, "write_new", "plan.json")
    result = run_recover(world)
    assert (result.code, recovered(result)) == (Exit.DONE, ())
    assert store.find_runs(world.files, control_of(world)) == []


def test_a_run_killed_before_it_tidied_up_is_tidied(world):
    interrupt(world, "delete_tree", "/stage")
    result = run_recover(world)
    assert (result.code, recovered(result)) == (Exit.DONE, ())
    assert store.find_runs(world.files, control_of(world)) == [RUNS[1]]
    assert not world.files.look([control_of(world).run(RUNS[1]).stages])[control_of(world).run(RUNS[1]).stages].exists


def test_a_unit_that_was_overwritten_after_the_swap_keeps_the_overwriters_rows(world):
    interrupt(world, "metastore.update_sizes")
    world.files.writer.overwrite(live_of(world, "dt=1"), {})
    world.add_file(f"{live_of(world, 'dt=1')}/theirs.parquet", ["theirs"])
    result = run_recover(world)
    assert (result.code, recovered(result)) == (Exit.DONE, ((RUNS[1], {"overwritten": 1, "swapped": 1}),))
    assert dict(world.rows_below(live_of(world, "dt=1"))) == {"theirs": 1}


def test_an_old_file_that_was_changed_in_the_gap_is_put_back_not_replaced(world):
    interrupt(world, "rename_exact", "/ready/u00001 " + live_of(world, "dt=1"))
    retired = control_of(world).run(RUNS[1]).unit("retired", 1)
    world.files.writer.start_committer(retired)
    result = run_recover(world)
    assert recovered(result) == ((RUNS[1], {"not-swapped": 1, "put-back": 1}),)
    assert len(world.rows_below(live_of(world, "dt=1"))) == 3


def test_recovering_twice_finds_nothing_the_second_time(world):
    interrupt(world, "rename_exact", "/ready/u00001 " + live_of(world, "dt=1"))
    run_recover(world)
    after = world.picture()
    second = run_recover(world, RUNS[3])
    assert recovered(second) == ()
    assert {path for path in world.picture() if "/_lock" not in path} == {path for path in after if "/_lock" not in path}


def test_a_view_is_refused_and_a_missing_table_is_said(world):
    world.catalog.add_table(replace(a_table(name="view", kind="VIRTUAL_VIEW"), location=""))
    result = run_recover(world, selected=Selection(tables=("sales.view", "sales.nowhere")))
    assert result.code is Exit.REFUSED
    assert {table.table: table.problem.code for table in result.tables} == {"sales.view": Code.VIEW, "sales.nowhere": Code.NO_SUCH_TABLE}


def test_a_locked_table_is_not_recovered_under_its_holder(world):
    interrupt(world, "rename_exact", "/ready/u00001 " + live_of(world, "dt=1"))
    world.files.another_client().hold(control_of(world).lock, "run X of bob on edge2")
    before = world.picture()
    assert run_recover(world).code is Exit.LOCKED
    assert world.picture() == before


def test_a_finished_run_that_holds_what_no_run_makes_is_left_as_it_is(world, desk):
    """Perhaps from a later version, and all that is left of somebody's rows."""
    desk.compact()
    desk.rollback()
    top = desk.control.run(desk.runs[0]).top
    world.add_file(f"{top}/set-aside/u00001/old.parquet", ["old"])
    assert desk.recover().code is Exit.DONE
    assert world.rows_below(f"{top}/set-aside/u00001")["old"] == 1
