"""An unpartitioned Impala table whose empty staging directory is swapped along: kills, and a query at every moment of a run."""

from __future__ import annotations

from typing import Callable, Dict

import pytest

from crash.test_compact import SELECTED, build, compact, live_of, require_both_copies, require_tidy, retired_directories, run_id
from crash.test_writers import act_at, finish
from hivekeeper.codes import Exit
from hivekeeper.commands.cleanup import clean_up
from hivekeeper.commands.rollback import rollback
from hivekeeper.config.settings import Settings
from hivekeeper.ports import SourceMissing
from support.built_once import built_once
from support.contexts import a_context
from support.every_step import KILLS
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.world import World

STAGING = "_impala_insert_staging"


@built_once
def build_of_impala() -> World:
    world = build("flat")
    world.files.writer.make_directory(f"{live_of(world, '')}/{STAGING}")
    world.files.namespace.advance(3_600_000)
    return world


def count() -> int:
    world = build_of_impala()
    compact(world, run_id(1))
    return world.files.steps


STEPS = range(count())


def holds_staging(world: World, place: str) -> bool:
    return world.files.namespace.find(f"{place}/{STAGING}") is not None


@pytest.mark.parametrize("at_once", KILLS)
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_run_brings_the_staging_directory_back_with_the_next(step, at_once):
    world = build_of_impala()
    before = world.rows_of("sales.events")
    world.files.die_after(step, at_once)
    with pytest.raises(Killed):
        compact(world, run_id(1))
        raise Killed("the last step was the lock's release")
    world.files.revive()
    world.files.expire_locks()
    require_both_copies(world, before, [""])
    assert compact(world, run_id(2)).code is Exit.DONE
    assert world.rows_of("sales.events") == before
    assert holds_staging(world, live_of(world, ""))
    assert not any(holds_staging(world, place) for place in retired_directories(world))
    require_tidy(world)
    assert rollback(a_context(world.cluster, SELECTED, run_id(3))).code is Exit.DONE
    assert world.rows_of("sales.events") == before
    settings = Settings(min_age_ms=0)
    assert clean_up(a_context(world.cluster, SELECTED, run_id(4), settings)).code is Exit.DONE
    assert retired_directories(world) == set()
    assert (world.rows_of("sales.events"), holds_staging(world, live_of(world, ""))) == (before, True)


@pytest.mark.parametrize("gap", [1, 2, 100])
@pytest.mark.parametrize("step", STEPS)
def test_a_query_of_impala_keeps_its_row_or_is_told_that_it_failed(step, gap):
    """Impala's executor writes below the staging directory and its coordinator moves the file from there, or fails if it is missing."""
    world = build_of_impala()
    before, live, writer = world.rows_of("sales.events"), live_of(world, ""), world.files.writer
    told = []

    def end() -> None:
        try:
            writer.rename_into(f"{live}/{STAGING}/1_2/new.parquet", f"{live}/new.parquet")
            writer.delete(f"{live}/{STAGING}/1_2")
            before.update(["new"])
        except SourceMissing:
            told.append("failed")

    acts: Dict[int, Callable[[], None]] = {
        step: lambda: writer.add(f"{live}/{STAGING}/1_2/new.parquet", DataFile(("new",)), 10),
        step + gap: end,
    }
    act_at(world, acts)
    compact(world, run_id(1))
    finish(world, acts)
    assert world.rows_of("sales.events") == before
    assert told == [] or gap < 100, "only a query that ends within the gap can find its directory away"
    assert holds_staging(world, live)
