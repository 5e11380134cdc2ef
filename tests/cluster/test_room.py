"""HDFS reports its quotas as the fake does, and a run is told beforehand what will not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

import pytest

from cluster.tables import SmallTable
from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.plan import sizing
from hivekeeper.ports import NoSpace
from support.desk import outcomes
from support.drivers import another_cluster
from support.fakes.files import FakeFiles

NOT_SET = 9_223_372_036_854_775_807  # HDFS's value for a quota that stays as it is
NO_QUOTA = -1


@dataclass
class Place:
    """A directory, and an administrator who limits it."""

    files: Any
    root: str
    set_quota: Callable[[Optional[int], Optional[int]], None]

    def path(self, name: str) -> str:
        return names.join(self.root, name)


def set_quota(superuser: Any, path: Any, most_names: Optional[int], disk: Optional[int]) -> None:
    superuser.setQuota(path, NO_QUOTA, NO_QUOTA)
    superuser.setQuota(path, most_names or NOT_SET, disk or NOT_SET)


@pytest.fixture(params=["fake", "hdfs"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "fake":
        files = FakeFiles()
        root = files.qualify("/limited")
        files.make_directory(root)
        yield Place(files, root, lambda most, disk: files.namespace.quotas.update({root: (most, disk)}))
        return
    gateway, superuser = request.getfixturevalue("gateway"), request.getfixturevalue("superuser")
    files = another_cluster().files
    root = files.qualify(f"/user/etl/limited-{abs(hash(request.node.name)) % 10**8}")
    files.make_directory(root)
    path = gateway.jvm.org.apache.hadoop.fs.Path(root)
    yield Place(files, root, lambda most, disk: set_quota(superuser, path, most, disk))
    superuser.delete(path, True)


def test_what_is_left_of_a_quota_counts_the_directory_itself_and_every_copy(place):
    place.set_quota(10, 1 << 40)
    place.files.make_directory(place.path("d"))
    place.files.write_new(place.path("d/f"), "four")
    room = place.files.room(place.path("not/yet"), [place.root])
    (quota,) = room.quotas
    assert (quota.path, quota.names_left) == (place.root, 10 - 3)
    assert quota.disk_left == (1 << 40) - 4 * room.copies


@pytest.mark.parametrize(("most", "disk"), [(10, None), (None, 1 << 40)], ids=["names", "space"])
def test_what_is_not_limited_is_told_as_unknown(place, most, disk):
    place.set_quota(most, disk)
    (quota,) = place.files.room(place.root, [place.root]).quotas
    assert (quota.names_left is None, quota.disk_left is None) == (most is None, disk is None)


def test_the_last_name_may_be_used_and_no_other(place):
    place.set_quota(3, None)
    place.files.make_directory(place.path("a"))
    place.files.write_new(place.path("a/f"), "x")
    assert place.files.room(place.root, [place.root]).quotas[0].names_left == 0
    with pytest.raises(NoSpace):
        place.files.make_directory(place.path("b"))
    with pytest.raises(NoSpace):
        place.files.write_new(place.path("a/g"), "x")


def test_a_small_file_needs_room_for_a_whole_block_with_all_its_copies(place):
    room = place.files.room(place.root, [])
    place.set_quota(None, int(room.block_bytes * room.copies) - 1)
    with pytest.raises(NoSpace):
        place.files.write_new(place.path("f"), "x")
    place.set_quota(None, int(room.block_bytes * room.copies))
    place.files.write_new(place.path("g"), "x")


# -- a run --------------------------------------------------------------------------------------------------


@pytest.fixture
def table(spark, database):
    return SmallTable(spark, database, ["1", "2", "3"])


def limit_table(table: SmallTable, superuser: Any, more_names: Optional[int], more_disk: Optional[int]) -> None:
    """Allow this much more than is there."""
    summary = superuser.getContentSummary(table.path(table.root))
    used = summary.getFileCount() + summary.getDirectoryCount()
    most = None if more_names is None else used + more_names
    set_quota(superuser, table.path(table.root), most, None if more_disk is None else summary.getSpaceConsumed() + more_disk)


@pytest.mark.parametrize(("more_names", "more_disk"), [(5, None), (None, 1000)], ids=["names", "space"])
def test_where_nothing_fits_the_numbers_are_told_and_nothing_is_written(table, superuser, more_names, more_disk):
    before = table.everything()
    limit_table(table, superuser, more_names, more_disk)
    result = table.desk().compact()
    assert result.code is Exit.UNUSABLE
    assert result.tables[0].problem.what.endswith(f" are left in the quota of {another_cluster().files.qualify(table.root)}")
    assert table.everything() == before


def test_what_fits_into_a_quota_of_names_is_done_and_the_rest_is_left(table, superuser):
    needed_by_two = sizing.control_names(batches=1, first_run=True) + 2 * 3
    limit_table(table, superuser, needed_by_two, None)
    desk = table.desk()
    result = desk.compact()
    assert (result.code, sorted(outcomes(result).values())) == (Exit.PARTIAL, ["left", "swapped", "swapped"])
    table.require_every_row_once()
    set_quota(superuser, table.path(table.root), None, None)
    assert desk.compact().code is Exit.DONE
    table.require_every_row_once()


def test_a_quota_further_up_is_known_where_its_directory_is_named(table, superuser):
    above = table.path(table.root).getParent().getParent()
    set_quota(superuser, above, 10, None)
    try:
        assert table.desk(quota_directories=("/user/etl",)).compact().code is Exit.UNUSABLE
    finally:
        set_quota(superuser, above, None, None)


@pytest.mark.parametrize("limited", ["names", "space"])
def test_what_is_renamed_needs_room_below_what_lies_around_both_places(place, limited):
    files, outside, copies = place.files, f"{place.root}-outside", int(place.files.room(place.root, []).copies)
    for directory in (place.path("own"), outside):
        files.make_directory(directory)
        files.write_new(f"{directory}/f", "four")

    def leave_room(more: int) -> None:
        place.set_quota(5 + more if limited == "names" else None, 8 * copies + more if limited == "space" else None)

    leave_room(-1)
    with pytest.raises(NoSpace):
        files.rename_exact(outside, place.path("in"))
    assert files.stat(f"{outside}/f")
    assert files.stat(place.path("in")) is None
    files.rename_exact(place.path("own"), place.path("moved"))
    leave_room(0)
    files.rename_exact(outside, place.path("in"))
