from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from hivekeeper.config.settings import Settings
from hivekeeper.model import Quota, Room
from hivekeeper.names import ControlPaths
from hivekeeper.plan.analysis import ObservedTable, analyze_unit
from hivekeeper.plan.capacity import Budget, count_names, explain_left, limit_by_debt, limit_by_room, refuse_whole
from hivekeeper.plan.retention import Backup
from hivekeeper.plan.sizing import control_names
from hivekeeper.runlog.history import Effect
from hivekeeper.runlog.manifests import ManifestFile
from support.builders import MIB, a_file, a_snapshot, a_table, a_unit

SETTINGS = Settings(min_quiet_ms=0)
TABLE = a_table(["dt"])
EVERYTHING = 10**9


def a_work(name, *lengths, markers=()):
    files = [a_file(f"{nth}.parquet", length) for nth, length in enumerate(lengths)] + [a_file(marker, 0) for marker in markers]
    return analyze_unit(a_unit(name), a_snapshot(*files), None, SETTINGS, 10**12)


SMALL, LARGE, MIDDLE = a_work("dt=1", 100, 100), a_work("dt=2", 4000, 4000), a_work("dt=3", 400, 400)
RANKED = [SMALL, LARGE, MIDDLE]


def an_observed(*units, has_control=True):
    return ObservedTable(TABLE, ControlPaths.of(TABLE.location, True), SETTINGS, units, has_control=has_control)


def limits_of(room, units=RANKED, has_control=True):
    return limit_by_room(an_observed(*units, has_control=has_control), units, room)


def names_of(units):
    return [unit.name for unit in units]


def take_fitting(waiting, limits, taken, most):
    """The next units, and those that wait then."""
    budget, queue = Budget(limits), deque(waiting)
    budget.take(taken)
    chosen = budget.choose(queue, most)
    return chosen, [*budget.beyond, *queue]


def test_without_limits_all_are_taken_in_their_order():
    assert take_fitting(RANKED, [], [], EVERYTHING) == (RANKED, [])


def test_one_that_is_too_large_leaves_its_place_to_the_next():
    taken, waiting = take_fitting(RANKED, limits_of(Room(free_bytes=1000)), [], EVERYTHING)
    assert (names_of(taken), names_of(waiting)) == (["dt=1", "dt=3"], ["dt=2"])


def test_what_was_taken_before_takes_its_room():
    limits = limits_of(Room(free_bytes=1000))
    assert names_of(take_fitting([LARGE, MIDDLE], limits, [SMALL], EVERYTHING)[0]) == ["dt=3"]
    assert names_of(take_fitting([LARGE, MIDDLE], limits, [MIDDLE], EVERYTHING)[0]) == []


def test_no_more_are_taken_than_are_wanted():
    taken, waiting = take_fitting(RANKED, limits_of(Room(free_bytes=10**6)), [], 1)
    assert (names_of(taken), names_of(waiting)) == (["dt=1"], ["dt=2", "dt=3"])


def test_exactly_as_much_as_is_left_fits_and_one_byte_less_does_not():
    assert names_of(take_fitting([SMALL], limits_of(Room(free_bytes=200)), [], EVERYTHING)[0]) == ["dt=1"]
    assert names_of(take_fitting([SMALL], limits_of(Room(free_bytes=199)), [], EVERYTHING)[0]) == []


def test_what_had_no_room_beside_one_that_proves_unfit_is_chosen_next():
    budget, waiting = Budget(limits_of(Room(free_bytes=900))), deque([MIDDLE, SMALL, LARGE])
    assert names_of(budget.choose(waiting, EVERYTHING)) == ["dt=3"]
    assert (names_of(waiting), names_of(budget.beyond)) == (["dt=1"], ["dt=2"])
    assert names_of(budget.choose(waiting, EVERYTHING)) == ["dt=1"]


def test_a_space_quota_counts_every_copy_and_a_whole_block():
    def fits(disk_left):
        room = Room(copies=3, block_bytes=128 * MIB, quotas=(Quota("hdfs://nn/w", disk_left=disk_left),))
        return names_of(take_fitting([SMALL], limits_of(room), [], EVERYTHING)[0]) == ["dt=1"]

    assert fits(3 * 128 * MIB + 600)
    assert not fits(3 * 128 * MIB + 599)


def test_files_with_more_copies_than_usual_need_room_for_all_of_them():
    entries = [file._replace(replication=6) for file in SMALL.snapshot.entries]
    often = replace(SMALL, snapshot=a_snapshot(*entries))

    def fits(**room):
        return bool(take_fitting([often], limits_of(Room(copies=3, **room), [often]), [], EVERYTHING)[0])

    assert fits(quotas=(Quota("hdfs://nn/w", disk_left=1200),))
    assert not fits(quotas=(Quota("hdfs://nn/w", disk_left=1199),))
    assert (fits(free_bytes=400), fits(free_bytes=399)) == (True, False)


def test_erasure_coding_takes_less_than_a_copy_more():
    room = Room(copies=1.5, quotas=(Quota("hdfs://nn/w", disk_left=300),))
    assert names_of(take_fitting([SMALL], limits_of(room), [], EVERYTHING)[0]) == ["dt=1"]


def test_a_quota_of_names_counts_new_files_with_their_tasks_directories_markers_and_our_own():
    unit = a_work("dt=1", 100, 100, markers=("_SUCCESS",))
    assert count_names(unit) == 4
    for has_control in (True, False):
        needed = 4 + control_names(1, first_run=not has_control)
        for names_left, fits in ((needed, True), (needed - 1, False)):
            limits = limits_of(Room(quotas=(Quota("hdfs://nn/w", names_left=names_left),)), [unit], has_control)
            assert bool(take_fitting([unit], limits, [], EVERYTHING)[0]) is fits


def test_the_narrowest_of_several_quotas_counts():
    quotas = (Quota("hdfs://nn/w/db/t", names_left=10**6), Quota("hdfs://nn/w/db", names_left=3, disk_left=10**12))
    limits = limits_of(Room(quotas=quotas))
    assert take_fitting(RANKED, limits, [], EVERYTHING)[0] == []
    assert explain_left(RANKED, limits, [])[0].reason.what == "not enough names: 22 are needed, 3 are left in the quota of hdfs://nn/w/db"


def test_all_that_wait_for_the_same_reason_say_what_all_of_them_need():
    room = Room(free_bytes=1000, block_bytes=100)
    limits = limits_of(room)
    taken, waiting = take_fitting([*RANKED, a_work("dt=4", 600, 600)], limits, [], EVERYTHING)
    left = explain_left(waiting, limits, taken)
    assert sorted(one.unit.name for one in left) == ["dt=2", "dt=3", "dt=4"]
    assert {one.reason.what for one in left} == {
        "not enough space: 10,300 bytes are needed (a whole block of them to begin a file), 1,000 are free"
    }


def a_backup(*lengths, pinned=False):
    files = tuple(ManifestFile(f"{nth}", length, 1, 1) for nth, length in enumerate(lengths))
    effect = Effect("r", 1, 0, "compact-swap", 1, "t", "dt=9", "dt=9", "runs/r/retired/u00001", files, ())
    return Backup("r", 0, "compact-swap", "r", 1, (effect,), pinned)


def debt_of(*backups, **settings):
    return limit_by_debt("sales.events", backups, replace(SETTINGS, **settings))


def test_without_a_limit_backups_may_take_anything():
    assert debt_of(a_backup(10**12)) == []


def test_backups_and_what_the_units_add_must_stay_within_the_bytes_allowed():
    limits = debt_of(a_backup(500, 300), max_backup_bytes=1000)
    assert names_of(take_fitting(RANKED, limits, [], EVERYTHING)[0]) == ["dt=1"]
    (left, _) = explain_left([LARGE, MIDDLE], limits, [SMALL])
    assert left.reason.what == "its backups hold 800 of 1,000 bytes (max_backup_bytes), 9,000 more are needed"
    assert left.reason.next == "run: hivekeeper cleanup --table sales.events"
    assert left.is_debt


def test_objects_are_inodes_blocks_and_directories():
    block = SETTINGS.block_bytes
    limits = debt_of(a_backup(1, block + 1), max_backup_objects=11)
    assert limits[0].left == 11 - (2 + 3 + 1)
    assert names_of(take_fitting(RANKED, limits, [], EVERYTHING)[0]) == ["dt=1"]


@pytest.mark.parametrize(("pinned_bytes", "named"), [(401, True), (400, False)])
def test_pinned_backups_are_named_where_they_are_the_most(pinned_bytes, named):
    limits = debt_of(a_backup(pinned_bytes, pinned=True), a_backup(400), max_backup_bytes=100)
    reason = explain_left([SMALL], limits, [])[0].reason
    assert (f"; {pinned_bytes} of them are pinned" in reason.what) is named
    assert ("unpin" in reason.next) is named


def test_a_table_is_unusable_only_where_nothing_at_all_can_be_written():
    by_room, by_debt = limits_of(Room(free_bytes=100)), debt_of(max_backup_bytes=100)
    left = explain_left([SMALL], by_room, [])
    assert refuse_whole(left, 0) == left[0].reason
    assert refuse_whole(left, 1) is None
    assert refuse_whole((), 0) is None
    assert refuse_whole(explain_left([SMALL], by_debt, []), 0) is None
