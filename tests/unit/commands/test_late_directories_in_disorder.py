"""A directory that a late committer leaves in a unit, and at the same time something else that happens to the unit or to the run."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable
from hivekeeper.steps.directory_exchange import DirectoryExchange
from support.desk import desk_by, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import survive
from support.late_directories import BOTH, act_before_live_is_settled, desk_before, nest, put_back_with


@BOTH
def test_a_unit_that_was_put_back_has_no_backup_whatever_is_aside_or_in_it(command, monkeypatch):
    desk = desk_before(command)
    # `hdfs dfs -put` makes a file where there is no directory: it stays aside.
    opened = put_back_with(desk, lambda: desk.world.files.writer.add(desk.live("dt=1"), DataFile(("aside",)), 10))
    act_before_live_is_settled(desk, nest, monkeypatch)
    result = getattr(desk, command)()
    assert opened
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.INVESTIGATE, "misplaced")
    last = desk.log().runs[-1]
    assert not [effect for effect in last.effects if effect.partition == "dt=1"]
    assert not desk.log().pinned


def nest_with_marker(desk):
    """So that it is not moved up."""
    desk.world.files.writer.add(f"{nest(desk)}/_SUCCESS", "", 0)


@BOTH
def test_a_partition_that_discovery_dropped_in_the_gap_is_put_back_though_a_directory_is_in_it(command, monkeypatch):
    desk = desk_before(command)
    desk.world.set_property(desk.table, **{"discover.partitions": "true"})
    live = desk.live("dt=1")

    def drop(what):
        if what.startswith("rename_exact") and what.endswith(f"/u00001 {live}"):
            desk.world.catalog.drop_partition(desk.table, "dt=1")

    desk.world.files.before_step = drop
    act_before_live_is_settled(desk, nest_with_marker, monkeypatch)
    result = getattr(desk, command)()
    assert outcomes(result)["dt=1"] == "misplaced"
    assert "dt=1" in desk.world.catalog.partitions[desk.table]


def test_one_unit_with_too_many_files_hides_no_other_at_the_last_look(monkeypatch):
    desk = desk_by(["dt"], max_files=20)

    def spoil(*_args):
        nest(desk, "dt=2")
        for nth in range(60):
            desk.world.files.writer.add(f"{desk.live('dt=1')}/x{nth}.parquet", DataFile((str(nth),)))

    monkeypatch.setattr(desk.world.metastore, "update_sizes", spoil)
    assert outcomes(desk.compact()) == {"dt=1": "swapped", "dt=2": "misplaced"}


def test_what_is_gone_again_at_the_last_look_is_not_told(monkeypatch):
    desk = desk_by(["dt"])
    place = f"{desk.live('dt=1')}/attempt"

    def take_away(*_args):
        for path in (f"{place}/late.parquet", f"{place}/_SUCCESS", place):
            desk.world.files.writer.delete(path)

    act_before_live_is_settled(desk, nest_with_marker, monkeypatch)
    monkeypatch.setattr(desk.world.metastore, "update_sizes", take_away)
    assert desk.compact().code is Exit.DONE


@BOTH
@pytest.mark.parametrize("answers", [True, False])
def test_what_comes_long_after_the_exchange_while_a_call_waits_for_an_answer_is_not_moved_up(command, answers, monkeypatch):
    """As `INSERT OVERWRITE DIRECTORY` makes a copy, while both NameNodes are standby."""
    desk = desk_before(command)
    rows, files, waiting = desk.world.rows_of(desk.table), desk.world.files, [1]
    settle_live = DirectoryExchange.settle_live

    def wait_then_fail(self, *args, **more):
        if self.unit.name == "dt=1" and waiting:
            waiting.pop()
            files.namespace.advance(600_000)
            desk.world.clock.elapsed_ms += 600_000
            files.writer.add(f"{desk.live('dt=1')}/sorted/one.parquet", DataFile(tuple(desk.world.rows_below(desk.live("dt=1")))))
            if not answers:
                raise FilesUnavailable("both NameNodes were standby")
        return settle_live(self, *args, **more)

    monkeypatch.setattr(DirectoryExchange, "settle_live", wait_then_fail)
    result = getattr(desk, command)()
    assert not waiting
    assert desk.world.rows_of(desk.table) == rows
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.INVESTIGATE, "misplaced")


@BOTH
def test_what_comes_to_a_unit_that_a_killed_run_had_put_back_while_others_are_settled(command, monkeypatch):
    desk = desk_before(command)
    put_back_with(desk, lambda: desk.world.files.die_after(1, at_once=True))
    with suppress(Killed):
        getattr(desk, command)()
    survive(desk)
    act_before_live_is_settled(desk, nest, monkeypatch, unit="dt=2")
    assert desk.recover().code is Exit.INVESTIGATE
    assert {unit.partition: unit.outcome.code for unit in desk.log().runs[-1].units}["dt=1"] == "misplaced"
