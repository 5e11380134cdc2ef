"""A directory that somebody makes in a unit long after a run, with copies of its files, is not a late committer's."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.ports import FilesUnavailable
from hivekeeper.steps import exchange, rollback
from hivekeeper.steps.arrivals import is_before
from support.desk import desk_by
from support.fakes.files import Killed
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


def test_nor_those_of_a_unit_whose_swap_was_killed_before_anything_left_live(desk, monkeypatch):
    rows = desk.world.rows_of(desk.table)

    def carry_out(_exchange):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "carry_out", carry_out)
        with pytest.raises(Killed):
            desk.compact()
    copy_beside(desk)
    for command in (desk.recover, desk.recover, desk.compact):
        command()
        assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("place", ["hdfs://nn/t", "file:/t", "viewfs://x/t"])
def test_a_directory_may_be_a_committers_if_it_is_older_than_the_log_entry(place):
    entry = FileInfo(f"{place}/log/0.json", 9, 5000, False, 700)
    files = FileInfo(f"{place}/job/part-0", 9, 4000, False, 601), FileInfo(f"{place}/job/part-1", 9, 4000, False, 602)
    directory = Snapshot(True, 600, 4000, files)
    # A killed run has moved some of its files up, which changes its time.
    begun = Snapshot(True, 600, 6000, files[1:])
    newer = Snapshot(True, 800, 4000, files)
    written_later = Snapshot(True, 600, 4000, (files[0], files[1]._replace(mtime_ms=6000)))
    counts_ids = place.startswith("hdfs")
    expected = [True, True, not counts_ids, counts_ids]
    assert [is_before(one, entry) for one in (directory, begun, newer, written_later)] == expected
    assert not is_before(directory, None)
