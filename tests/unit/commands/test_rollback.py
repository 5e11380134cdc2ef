"""rollback on the fakes: it undoes what a run did, keeps what came later, and can itself be undone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from hivekeeper.runlog.history import History
from hivekeeper.steps import cleanup
from support.builders import PARQUET, a_partition, a_table
from support.desk import EVERYTHING, Desk, outcomes
from support.fakes.rows import DataFile
from support.world import World

HOUR_MS = 3_600_000


@pytest.fixture
def world():
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in range(1, 4)})
    return world


@pytest.fixture
def desk(world):
    return Desk(world)


def append(desk, unit, row, name=None):
    desk.world.add_file(f"{desk.live(unit)}/{name or row + '.parquet'}", [row])
    desk.world.files.namespace.advance(HOUR_MS)


def file_names(desk, unit):
    entries = desk.world.files.look([desk.live(unit)])[desk.live(unit)].entries
    return sorted(entry.name for entry in entries)


def test_the_old_files_are_back_with_their_names_ids_and_times(desk, world):
    before, picture = world.files.look([desk.live("dt=1")])[desk.live("dt=1")], world.rows_of(desk.table)
    desk.compact()
    result = desk.rollback()
    assert result.code is Exit.DONE
    assert outcomes(result) == {"dt=1": "rolled-back", "dt=2": "rolled-back", "dt=3": "rolled-back"}
    now = world.files.look([desk.live("dt=1")])[desk.live("dt=1")]
    assert (now.file_id, now.entries) == (before.file_id, before.entries)
    assert world.rows_of(desk.table) == picture


def test_rows_added_after_the_swap_survive(desk, world):
    desk.compact()
    append(desk, "dt=1", "later")
    rows = world.rows_of(desk.table)
    result = desk.rollback()
    assert world.rows_of(desk.table) == rows
    assert rows["later"] == 1
    assert [unit.late_files for unit in result.tables[0].units if unit.name == "dt=1"] == [("later.parquet",)]


def test_a_later_file_with_the_name_of_an_old_one_gets_another_name(desk, world):
    desk.compact()
    append(desk, "dt=1", "later", "part-00000.parquet")
    rows = world.rows_of(desk.table)
    assert desk.rollback().code is Exit.DONE
    assert world.rows_of(desk.table) == rows
    assert "part-00000-late1.parquet" in file_names(desk, "dt=1")


def test_an_appenders_marker_file_is_no_obstacle(desk, world):
    desk.compact()
    append(desk, "dt=1", "later")
    world.add_file(f"{desk.live('dt=1')}/_SUCCESS", (), 0)
    rows = world.rows_of(desk.table)
    assert outcomes(desk.rollback())["dt=1"] == "rolled-back"
    assert world.rows_of(desk.table) == rows


def test_one_partition_of_nine(world):
    world.add_table(a_table(["dt"], name="nine"), {f"dt={day}": [1000] * 3 for day in range(1, 10)})
    desk = Desk(world, "sales.nine")
    rows = world.rows_of("sales.nine")
    desk.compact()
    result = desk.rollback(where="dt = '4'")
    assert outcomes(result) == {"dt=4": "rolled-back"}
    assert [len(file_names(desk, f"dt={day}")) for day in range(1, 10)] == [1, 1, 1, 3, 1, 1, 1, 1, 1]
    assert world.rows_of("sales.nine") == rows
    assert outcomes(desk.rollback()) == {f"dt={day}": "rolled-back" for day in range(1, 10) if day != 4}


def test_a_rollback_can_be_rolled_back_and_the_compaction_again(desk, world):
    rows = world.rows_of(desk.table)
    desk.compact()
    compacted = file_names(desk, "dt=1")
    desk.rollback()
    append(desk, "dt=1", "later")
    undone = desk.runs[-1]
    assert outcomes(desk.rollback(undone))["dt=1"] == "rolled-back"
    assert file_names(desk, "dt=1") == sorted([*compacted, "later.parquet"])
    assert outcomes(desk.rollback())["dt=1"] == "rolled-back"
    assert world.rows_of(desk.table) == rows + Counter(["later"])
    assert len(file_names(desk, "dt=1")) == 4


def test_runs_stacked_on_each_other_are_unwound_newest_first(desk, world):
    desk.compact()
    first = desk.runs[-1]
    for row in ("a", "b", "c"):
        append(desk, "dt=1", row)
    desk.compact()
    append(desk, "dt=1", "d")
    rows = world.rows_of(desk.table)
    result = desk.rollback(first)
    assert result.code is Exit.DONE
    assert [unit.of_run for unit in result.tables[0].units if unit.name == "dt=1"] == [desk.runs[1], first]
    assert world.rows_of(desk.table) == rows
    assert len(file_names(desk, "dt=1")) == 3 + 4
    again = desk.rollback(desk.runs[-1])
    assert again.code is Exit.DONE
    assert world.rows_of(desk.table) == rows
    assert len(file_names(desk, "dt=1")) == 2


def test_with_a_backup_in_between_gone_nothing_is_touched(desk, world, monkeypatch):
    desk.compact()
    first = desk.runs[-1]
    for row in ("a", "b", "c"):
        append(desk, "dt=1", row)
    desk.compact()
    second = desk.runs[-1]
    # The first backup cannot be discarded while somebody writes to it; earlier versions discarded the second all the same.
    monkeypatch.setattr(cleanup._Discarder, "_why_needed", lambda *_: None)
    name = f"{desk.control.run(first).unit('retired', 1)}/of-a-writer.parquet"
    world.files.writer.open(name)
    desk.cleanup()
    world.files.writer.delete(name)
    before = world.picture()
    result = desk.rollback(first, where="dt = '1'")
    assert result.code is Exit.REFUSED
    assert result.tables[0].units[0].why.code is Code.BACKUP_DISCARDED
    assert second in result.tables[0].units[0].reason
    assert without_lock(world.picture()) == without_lock(before)


def without_lock(picture):
    return {path: content for path, content in picture.items() if not path.endswith("/_lock")}


def test_a_pruned_backup_cannot_be_rolled_back(desk):
    desk.compact()
    run = desk.runs[-1]
    desk.cleanup()
    result = desk.rollback(run)
    assert result.code is Exit.REFUSED
    assert result.tables[0].units[0].why.code is Code.BACKUP_DISCARDED


def test_an_overwritten_partition_keeps_its_new_rows_and_the_others_are_rolled_back(desk, world):
    desk.compact()
    world.files.writer.overwrite(desk.live("dt=2"), {"theirs.parquet": DataFile(rows=("theirs",))})
    result = desk.rollback()
    assert result.code is Exit.PARTIAL
    assert outcomes(result) == {"dt=1": "rolled-back", "dt=2": "refused", "dt=3": "rolled-back"}
    assert world.rows_below(desk.live("dt=2")) == Counter(["theirs"])


def test_a_partition_that_was_dropped_is_not_made_again(desk, world):
    desk.compact()
    world.catalog.drop_partition(desk.table, "dt=2")
    result = desk.rollback()
    assert outcomes(result) == {"dt=1": "rolled-back", "dt=2": "refused", "dt=3": "rolled-back"}
    assert "dt=2" not in world.catalog.partitions[desk.table]
    assert len([path for path in world.picture() if f"{desk.runs[0]}/retired/" in path]) == 3


def test_a_partition_that_was_dropped_and_made_anew_keeps_its_new_rows(desk, world):
    desk.compact()
    world.catalog.drop_partition(desk.table, "dt=2")
    world.files.writer.delete(desk.live("dt=2"))
    world.catalog.add_partition(desk.table, a_partition("dt=2", desk.live("dt=2"), PARQUET))
    append(desk, "dt=2", "new")
    assert outcomes(desk.rollback())["dt=2"] == "refused"
    assert world.rows_below(desk.live("dt=2")) == Counter(["new"])


def test_a_location_that_was_changed_is_left_alone(desk, world):
    desk.compact()
    moved = a_partition("dt=2", f"{names.parent(desk.live())}/elsewhere/dt=2", PARQUET)
    world.files.writer.make_directory(moved.location)
    world.catalog.put_partition(desk.table, moved)
    result = desk.rollback(where="dt = '2'")
    assert result.code is Exit.REFUSED
    assert result.tables[0].units[0].why.code is Code.MOVED


def test_a_table_dropped_and_made_anew_under_the_same_name_is_not_given_old_rows(desk, world):
    desk.compact()
    run, table = desk.runs[-1], world.catalog.tables[desk.table]
    partitions = dict(world.catalog.partitions[desk.table])
    world.catalog.drop_table(desk.table)
    world.catalog.add_table(replace(table, create_time=table.create_time + 99), partitions.values())
    before = world.picture()
    for result in (desk.rollback(), desk.rollback(run)):
        assert result.code is Exit.REFUSED
        assert {unit.why.code for unit in result.tables[0].units} == {Code.TABLE_CREATED_AGAIN}
    assert without_lock(world.picture()) == without_lock(before)


def test_nothing_to_roll_back_says_so_and_changes_nothing(desk, world):
    before = world.picture()
    result = desk.rollback()
    assert (result.code, result.tables[0].units) == (Exit.DONE, ())
    assert world.picture() == before


def test_a_second_rollback_does_not_redo_the_compaction(desk, world):
    desk.compact()
    run = desk.runs[-1]
    desk.rollback()
    before = world.picture()
    assert desk.rollback().tables[0].units == ()
    again = desk.rollback(run)
    assert again.code is Exit.DONE
    assert set(outcomes(again).values()) == {"undone"}
    assert without_lock(world.picture()) == without_lock(before)


def test_an_unknown_run_is_refused(desk, world):
    desk.compact()
    before = world.picture()
    result = desk.rollback("20990101t000000z-ffff")
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NO_SUCH_RUN
    assert without_lock(world.picture()) == without_lock(before)


def test_a_run_of_another_table_is_refused(desk, world):
    world.add_table(a_table(name="events_2"), {"": [1000] * 3})
    desk.compact()
    other = Desk(world, "sales.events_2")
    other.runs = ["20260601t000000z-0000"]
    other.compact()
    result = other.rollback(desk.runs[0])
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NO_SUCH_RUN


def test_a_run_that_changed_no_partition_is_refused(desk):
    desk.compact()
    desk.backup()
    result = desk.rollback(desk.runs[-1])
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NOTHING_OF_THIS_RUN


def test_a_dry_run_shows_the_plan_and_changes_nothing(desk, world):
    desk.compact()
    before = world.picture()
    result = desk.rollback(dry_run=True)
    assert set(outcomes(result).values()) == {"planned"}
    assert (desk.asked, world.picture()) == ([], before)


def test_a_rollback_that_is_not_confirmed_changes_nothing(desk, world):
    desk.compact()
    before = world.picture()
    result = desk.rollback(yes=False)
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NOT_CONFIRMED
    assert set(outcomes_of(desk.asked[0]).values()) == {"planned"}
    assert without_lock(world.picture()) == without_lock(before)


def outcomes_of(planned):
    return {unit.name: unit.outcome.code for unit in planned.units}


def test_a_backup_that_was_spoiled_is_not_restored(desk, world):
    desk.compact()
    retired = desk.control.run(desk.runs[-1]).unit("retired", 1)
    world.files.writer.delete(f"{retired}/part-00001.parquet")
    result = desk.rollback(where="dt = '1'")
    assert result.code is Exit.REFUSED
    assert result.tables[0].units[0].why.code is Code.BACKUP_CHANGED


def test_a_file_that_came_into_the_backup_late_comes_back_with_it(desk, world):
    desk.compact()
    retired = desk.control.run(desk.runs[-1]).unit("retired", 1)
    world.add_file(f"{retired}/closed-late.parquet", ["closed late"])
    assert desk.rollback().code is Exit.DONE
    assert world.rows_below(desk.live("dt=1"))["closed late"] == 1


def test_the_sizes_in_the_metastore_follow(desk, world):
    desk.compact()
    desk.rollback()
    assert world.catalog.partitions[desk.table]["dt=1"].parameters["numFiles"] == "3"


def test_a_writer_at_work_in_the_table_keeps_it_as_it_is(desk, world):
    desk.compact()
    world.files.writer.make_directory(f"{desk.live()}/.hive-staging_1")
    rows = world.rows_of(desk.table)
    result = desk.rollback()
    assert result.code is Exit.PARTIAL
    assert set(outcomes(result).values()) == {"given-up"}
    assert world.rows_of(desk.table) == rows
    assert len([path for path in world.picture() if "/retired/" in path]) == 9
    world.files.writer.delete(f"{desk.live()}/.hive-staging_1")
    assert desk.rollback().code is Exit.DONE


def test_after_a_rollback_the_run_directories_hold_only_what_may_be_undone(desk):
    desk.compact()
    desk.rollback()
    assert desk.run_directories() == [desk.runs[-1]]
    desk.cleanup(EVERYTHING)
    assert desk.run_directories() == []


def test_a_skip_property_set_since_does_not_stand_in_the_way(desk, world):
    desk.compact()
    world.set_property(desk.table, **{"hivekeeper.skip": "true"})
    assert desk.rollback().code is Exit.DONE


def test_without_a_name_the_newest_run_of_the_selected_partitions_is_undone(desk):
    desk.compact(where="dt = '1'")
    desk.compact(where="dt = '2'")
    assert outcomes(desk.rollback(where="dt = '1'")) == {"dt=1": "rolled-back"}
    assert (len(file_names(desk, "dt=1")), len(file_names(desk, "dt=2"))) == (3, 1)


def test_the_backup_table_lets_go_of_what_is_restored_and_goes_with_the_last(desk, world):
    shown = desk.compact().tables[0].backup_table
    desk.rollback(where="dt = '1'")
    assert set(world.partitions(shown)) == {"dt=2", "dt=3"}
    desk.rollback(desk.runs[0])
    assert list(world.tables()) == [desk.table]


@pytest.mark.parametrize("is_killed", [False, True], ids=["rollback", "its recovery"])
def test_no_listing_tells_the_files_of_all_units(monkeypatch, is_killed):
    """A million of them would take all memory of the driver, in the last calls of the rollback and again of each recovery."""
    monkeypatch.setattr("hivekeeper.steps.observe.LOOK_AT_FIRST", 2)
    monkeypatch.setattr("hivekeeper.steps.observe.LOOK_AT_ONCE", 2)
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 20 for day in range(12)})
    desk = Desk(world)
    before = world.rows_of(desk.table)
    desk.compact()
    if is_killed:
        desk.kill_before(["rename_exact", "/entry.json"], desk.rollback)
    told, look = [], world.files.look

    def tell(directories, *most):
        seen = look(directories, *most)
        told.append(sum(len(one.entries) for one in seen.values()))
        return seen

    monkeypatch.setattr(world.files, "look", tell)
    assert (desk.recover if is_killed else desk.rollback)().code is Exit.DONE
    assert world.rows_of(desk.table) == before
    assert max(told) < 50


def test_why_many_partitions_have_nothing_left_to_undo_is_found_without_going_through_the_log_for_each(monkeypatch):
    """A hundred thousand took 22 minutes of a processor."""
    effects, passes = vars(History)["effects"].func, []

    class Counted(tuple):
        def __iter__(self):
            passes.append(len(self))
            return super().__iter__()

    monkeypatch.setattr(History, "effects", property(lambda history: Counted(effects(history))))
    counts = []
    for number in (2, 20):
        world = World()
        world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in range(number)})
        desk = Desk(world, backup_table=False)
        desk.compact()
        desk.rollback()
        passes.clear()
        assert set(outcomes(desk.rollback(undo=desk.runs[0])).values()) == {"undone"}
        counts.append(len(passes))
    assert counts[0] == counts[1]
