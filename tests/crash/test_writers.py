"""Writers with several steps, one at each moment of a run: committers, overwriters, directories renamed as a whole."""

from __future__ import annotations

from collections import Counter
from typing import Callable, Dict

import pytest

from crash.test_compact import SELECTED, build, compact, control_of, count_steps, live_of, overwrite_files, require_tidy, run_id, steps_of
from hivekeeper.codes import Exit
from hivekeeper.commands.recover import recover
from hivekeeper.ports import FilesError
from hivekeeper.reasons import Code
from support.contexts import a_context
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.world import World

STEPS = range(count_steps("flat"))


def act_at(world: World, acts: Dict[int, Callable[[], None]]) -> None:
    """Let writers act, each just before one of our steps; acts for steps that never come happen after the run."""
    seen = [0]

    def act(_what: str) -> None:
        acts.pop(seen[0], lambda: None)()
        seen[0] += 1

    world.files.before_step = act


def finish(world: World, acts: Dict[int, Callable[[], None]]):
    world.files.before_step = None
    for step in sorted(acts):
        acts[step]()
    return recover(a_context(world.cluster, SELECTED, run_id(9)))


def step_of(*words: str) -> int:
    """The first step of an undisturbed run whose description contains all these words."""
    world, steps = build("flat"), []
    world.files.before_step = steps.append
    compact(world, run_id(1))
    return next(number for number, what in enumerate(steps) if all(word in what for word in words))


RETIRE = step_of("rename_exact hdfs://nn/warehouse/sales/events ", "/retired/")
PROMOTE = step_of("rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events")


@pytest.mark.parametrize("gap", [1, 2, 3])
@pytest.mark.parametrize("step", STEPS)
def test_a_committer_that_commits_its_tasks_one_by_one_loses_none(step, gap):
    """It commits its job later; a writer that does everything within the gap is not noticed (docs/swap.md)."""
    world = build("flat")
    before, live, writer = world.rows_of("sales.events"), live_of(world, ""), world.files.writer
    acts = {
        step: lambda: (writer.start_committer(live), writer.commit_task(live, "task1.parquet", DataFile(("task1",)), 10)),
        step + gap: lambda: writer.commit_task(live, "task2.parquet", DataFile(("task2",)), 10),
    }
    act_at(world, acts)
    compact(world, run_id(1))
    finish(world, acts)
    writer.commit_job(live)
    recover(a_context(world.cluster, SELECTED, run_id(10)))
    assert world.rows_of("sales.events") == before + Counter(["task1", "task2"])


@pytest.mark.parametrize("step", STEPS)
def test_a_committer_in_the_gap_is_seen_by_the_recovery_of_a_killed_run_too(step):
    world = build("flat")
    before, live, writer = world.rows_of("sales.events"), live_of(world, ""), world.files.writer
    acts = {step: lambda: (writer.start_committer(live), writer.commit_task(live, "task.parquet", DataFile(("task",)), 10))}
    act_at(world, acts)
    world.files.die_after(step + 1)
    with pytest.raises(Killed):
        compact(world, run_id(1))
        raise Killed("the last step was the lock's release")
    world.files.before_step = None
    world.files.revive()
    world.files.expire_locks()
    compact(world, run_id(2))
    writer.commit_job(live)
    recover(a_context(world.cluster, SELECTED, run_id(3)))
    assert world.rows_of("sales.events") == before + Counter(["task"])


@pytest.mark.parametrize("step", STEPS)
def test_a_directory_renamed_whole_into_live_is_left_whole_by_all_that_come_later(step):
    """A writer finds live absent, and renames its directory to that name after we have put ours there, and looked at it for the last time
    (the interleavings have the moments before that).
    """
    world = build("flat")
    before, live, writer = world.rows_of("sales.events"), live_of(world, ""), world.files.writer
    writer.add("hdfs://nn/private/insert/new.parquet", DataFile(("new",)), 10)
    found = []

    def move() -> None:
        if found == [True]:
            writer.rename_into("hdfs://nn/private/insert", live)
        else:
            writer.add(f"{live}/new.parquet", DataFile(("new",)), 10)

    acts = {step: lambda: found.append(world.files.namespace.find(live) is None), step + 1: move}
    act_at(world, acts)
    compact(world, run_id(1))
    assert finish(world, acts).code is Exit.DONE
    if step == PROMOTE:
        assert world.rows_of("sales.events") == before
        assert world.files.contents(live)[f"{live}/insert/new.parquet"] == DataFile(("new",))
        assert compact(world, run_id(10)).code is Exit.REFUSED
    else:
        assert world.rows_of("sales.events") == before + Counter(["new"])
    require_tidy(world)


def test_the_gap_is_where_a_writer_finds_live_absent():
    assert PROMOTE == RETIRE + 1


@pytest.mark.parametrize(("shape", "step"), steps_of("flat"))
def test_with_a_coarse_clock_an_overwriter_is_seen_all_the_same(shape, step):
    """Everything happens within one tick of the NameNode's clock, so times say nothing."""
    world = build(shape)
    live, writer = live_of(world, ""), world.files.writer
    world.files.namespace.tick_ms = 0
    wrote = []

    def overwrite() -> None:
        if world.files.namespace.find(live) is not None:
            overwrite_files(world, live)
            wrote.append(True)

    def append() -> None:
        if world.files.namespace.find(live) is not None:
            writer.add(f"{live}/late.parquet", DataFile(("late",)), 10)

    acts = {step - 1: append, step: overwrite}
    act_at(world, acts)
    compact(world, run_id(1))
    finish(world, {})
    assert world.rows_of("sales.events") == Counter(["new"]) or not wrote


def test_files_that_vanish_after_the_promotion_are_recorded_as_overwritten_and_left():
    world = build("flat")
    live, writer = live_of(world, ""), world.files.writer
    # With a late file we rename once more after the promotion: the overwriter acts there.
    acts = {RETIRE: lambda: writer.add(f"{live}/late.parquet", DataFile(("late",)), 10), PROMOTE + 1: lambda: overwrite_files(world, live)}
    act_at(world, acts)
    unit = compact(world, run_id(1)).tables[0].units[0]
    assert unit.outcome.code == "overwritten"
    assert world.rows_of("sales.events") == Counter(["new", "late"])


@pytest.mark.parametrize("step", range(RETIRE))
def test_a_partition_dropped_before_the_swap_is_given_up_and_not_made_again(step):
    world = build("partitioned")
    location = live_of(world, "dt=1")

    def drop() -> None:
        world.catalog.drop_partition("sales.events", "dt=1")
        world.files.writer.delete(location)

    act_at(world, {step: drop})
    compact(world, run_id(1))
    finish(world, {})
    assert "dt=1" not in world.catalog.partitions["sales.events"]
    assert world.rows_of("sales.events") == Counter(["events/dt=2/0", "events/dt=2/1"])


@pytest.mark.parametrize("step", range(count_steps("partitioned")))
def test_a_partition_that_discovery_dropped_in_the_gap_is_put_back(step):
    """The metastore's own task drops partitions whose directory it cannot find."""
    world = build("partitioned")
    world.set_property("sales.events", **{"discover.partitions": "true"})
    before = world.rows_of("sales.events")

    def discover() -> None:
        for name in ("dt=1", "dt=2"):
            if world.files.namespace.find(live_of(world, name)) is None:
                world.catalog.drop_partition("sales.events", name)

    act_at(world, {step: discover})
    compact(world, run_id(1))
    finish(world, {})
    assert world.rows_of("sales.events") == before


def test_a_slow_file_system_makes_the_check_again_and_then_gives_up():
    world = build("flat")
    before = world.rows_of("sales.events")
    world.clock.slowness_ms = 200
    result = compact(world, run_id(1))
    assert result.code is Exit.PARTIAL
    assert result.tables[0].units[0].why.code is Code.KEEPS_CHANGING
    assert world.rows_of("sales.events") == before


def test_a_late_file_is_carried_over_though_an_old_file_was_opened_for_append_after_the_look():
    world = build("flat")
    before, live, writer = world.rows_of("sales.events"), live_of(world, ""), world.files.writer
    retired = control_of(world).run(run_id(1)).unit("retired", 1)
    acts = {
        RETIRE: lambda: writer.add(f"{live}/late.parquet", DataFile(("late",)), 10),
        PROMOTE: lambda: writer.open(f"{retired}/part-00000.parquet"),
    }
    act_at(world, acts)
    unit = compact(world, run_id(1)).tables[0].units[0]
    assert (unit.outcome.code, unit.late_files) == ("swapped", ("late.parquet",))
    assert world.rows_of("sales.events") == before + Counter(["late"])


def test_a_partition_that_discovery_drops_after_it_was_recorded_is_put_back_at_the_end_of_the_run():
    """Discovery looked in the gap but drops the partition only long after the unit was recorded."""
    world, steps = build("partitioned"), []
    world.set_property("sales.events", **{"discover.partitions": "true"})
    world.files.before_step = steps.append
    compact(world, run_id(1))
    recorded = next(number for number, what in enumerate(steps) if what.startswith("metastore.update_sizes"))

    world = build("partitioned")
    world.set_property("sales.events", **{"discover.partitions": "true"})
    before = world.rows_of("sales.events")
    act_at(world, {recorded: lambda: world.catalog.drop_partition("sales.events", "dt=1")})
    compact(world, run_id(1))
    assert world.rows_of("sales.events") == before


@pytest.mark.parametrize("later", range(3, 14))
def test_a_job_that_ends_while_its_unit_is_put_back_finds_all_of_its_tasks_or_fails(later):
    """One of its tasks runs before the swap, one in the gap: the second re-creates live, and both belong together."""
    world = build("flat")
    before, live, writer, failed = world.rows_of("sales.events"), live_of(world, ""), world.files.writer, []

    def commit_job() -> None:
        try:
            writer.commit_job(live)
        except FilesError as error:
            failed.append(error)

    acts = {
        RETIRE: lambda: (writer.start_committer(live), writer.commit_task(live, "task1.parquet", DataFile(("task1",)), 10)),
        RETIRE + 1: lambda: writer.commit_task(live, "task2.parquet", DataFile(("task2",)), 10),
        # Any earlier, it finds the directory that its second task re-created before we do: that window stays open (docs/swap.md).
        RETIRE + later: commit_job,
    }
    act_at(world, acts)
    assert [unit.outcome.code for unit in compact(world, run_id(1)).tables[0].units] == ["put-back"]
    finish(world, acts)
    assert world.rows_of("sales.events") == before + Counter([] if failed else ["task1", "task2"])
    waiting = [path for path in world.files.contents(live) if "/_temporary/" in path]
    assert len(waiting) == (2 if failed else 0)
