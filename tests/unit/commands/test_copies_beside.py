"""A directory that somebody makes in a unit long after a run, with copies of its files, is not a late committer's."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.ports import FilesUnavailable
from hivekeeper.steps import exchange, rollback
from hivekeeper.steps.lateness import ANYTHING, Late
from support.desk import desk_by
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.leftovers import DAY_MS


@pytest.fixture(params=[["dt"], []], ids=["partitioned", "unpartitioned"])
def desk(request):
    return desk_by(request.param)


def unit_of(desk):
    return "dt=1" if desk.world.table(desk.table).partitioned else ""


def pass_days(desk, days):
    desk.world.files.namespace.advance(days * DAY_MS)
    desk.world.clock.elapsed_ms += days * DAY_MS


def copy_beside(desk):
    """As `hdfs dfs -mkdir LIVE/before_reload; hdfs dfs -cp LIVE/part-* LIVE/before_reload` does."""
    pass_days(desk, 90)
    live = desk.live(unit_of(desk))
    for path, content in list(desk.world.files.contents(live).items()):
        if path.startswith(f"{live}/part-"):
            desk.world.files.writer.add(f"{live}/before_reload/{path.rpartition('/')[2]}", content)
    pass_days(desk, 90)


@pytest.mark.parametrize("later", ["recover", "compact", "rollback"])
@pytest.mark.parametrize("before", [None, "rollback"])
def test_copies_that_somebody_keeps_in_a_directory_beside_the_files_are_not_shown_twice(desk, before, later):
    """Nor after a rollback that was refused because of them, and is in the log since."""
    desk.compact()
    rows = desk.world.rows_of(desk.table)
    copy_beside(desk)
    for command in filter(None, [before, later]):
        getattr(desk, command)()
        assert desk.world.rows_of(desk.table) == rows, command


@pytest.mark.parametrize("end", [Killed(), FilesUnavailable("a NameNode restarts")], ids=["killed", "failed"])
def test_nor_those_of_a_unit_whose_rollback_ended_before_anything_left_live(desk, end, monkeypatch):
    desk.compact()
    rows = desk.world.rows_of(desk.table)
    copy_beside(desk)

    def claim_backup(_run, _unit):
        raise end

    with monkeypatch.context() as patch:
        patch.setattr(rollback, "claim_backup", claim_backup)
        with suppress(Killed):
            desk.rollback()
    pass_days(desk, 1)
    for command in (desk.recover, desk.recover, desk.compact):
        command()
        assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("keeps_times", [False, True], ids=["new times", "old times"])
def test_nor_those_of_a_unit_whose_swap_was_killed_before_anything_left_live(desk, keeps_times, monkeypatch):
    rows = desk.world.rows_of(desk.table)

    def carry_out(_exchange):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "carry_out", carry_out)
        with pytest.raises(Killed):
            desk.compact()
    copy_beside(desk)
    if keeps_times:
        # hdfs dfs -cp -p
        for node in desk.world.files.namespace.directory(f"{desk.live(unit_of(desk))}/before_reload").children.values():
            node.mtime_ms = 1
    for command in (desk.recover, desk.recover, desk.compact):
        command()
        assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("place", ["hdfs://nn/t", "file:/t", "viewfs://x/t"])
def test_a_directory_may_be_a_committers_if_it_is_older_than_the_log_entry(place):
    late = Late(before=FileInfo(f"{place}/log/0.json", 9, 5000, False, 700))
    directory = FileInfo(f"{place}/job", 0, 4000, True, 600)
    files = FileInfo(f"{place}/job/part-0", 9, 4000, False, 601), FileInfo(f"{place}/job/part-1", 9, 4000, False, 602)

    def is_taken(directory, *files):
        seen = Snapshot(True, directory.file_id, directory.mtime_ms, files)
        return late.may_be(directory) and late.may_have_left(seen)

    counts_ids = place.startswith("hdfs")
    assert is_taken(directory, *files)
    # A killed run has moved some of its files up, which changes its time.
    assert is_taken(directory._replace(mtime_ms=6000), *files[1:])
    assert is_taken(directory._replace(file_id=800), *files) is not counts_ids
    assert is_taken(directory, files[0], files[1]._replace(mtime_ms=6000)) is counts_ids
    assert not is_taken(directory._replace(file_id=800, mtime_ms=6000))


def test_in_the_gap_everything_may_be_a_committers():
    assert ANYTHING.may_be(FileInfo("hdfs://nn/t/job", 0, 4000, True, 600))
    assert ANYTHING.may_have_left(Snapshot(True, 600, 4000))


def test_many_kept_copies_cost_nothing_and_keep_no_committers_directory_from_being_moved_up(desk, monkeypatch):
    monkeypatch.setattr("hivekeeper.steps.arrivals.MOST_LIFTED", 6)
    desk.compact()
    files, live = desk.world.files, desk.live(unit_of(desk))
    for nth in range(7):
        files.writer.add(f"{live}/kept/{nth}.parquet", DataFile((f"kept {nth}",)))
    files.writer.add(f"{live}/job/late.parquet", DataFile(("late",)))
    desk.world.make_older(f"{live}/job")
    look, looked = files.look, []

    def count(directories, *more):
        looked.extend(place for place in directories if place.endswith("/kept"))
        return look(directories, *more)

    files.look = count
    desk.recover()
    assert desk.world.rows_of(desk.table)["late"] == 1
    assert not looked
