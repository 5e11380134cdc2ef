"""backup on the fakes: a record of the table as it is, used by the next compaction as long as it is accurate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.model import Column
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable
from hivekeeper.runlog import store
from support.builders import PARQUET, a_partition, a_table
from support.desk import Desk, outcomes
from support.fakes.files import Killed
from support.records import plan_from_json_lines
from support.world import World


def a_world():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3, "dt=3": []})
    return world


@pytest.fixture
def world():
    return a_world()


@pytest.fixture
def desk(world):
    return Desk(world)


def plan_of(desk, run):
    return plan_from_json_lines(desk.world.files.content(desk.control.run(run).plan))


def record_used(desk):
    """The run whose record the newest compaction relies on."""
    return plan_of(desk, desk.runs[-1])["record"]


def test_the_record_names_every_file_and_the_definition(desk):
    result = desk.backup()
    assert (result.code, outcomes(result)) == (Exit.DONE, dict.fromkeys(("dt=1", "dt=2", "dt=3"), "recorded"))
    plan = plan_of(desk, desk.runs[0])
    assert [file[0] for file in plan["units"][0]["files"]] == [f"part-{n:05d}.parquet" for n in range(3)]
    assert plan["definition"]["columns"] == [{"name": "id", "type": "int"}]
    assert desk.log().runs[0].parameters == {"units": 3, "files": 6, "bytes": 6000}


def test_where_records_some_partitions_and_a_compaction_of_others_takes_its_own_record(desk):
    assert outcomes(desk.backup(where="dt = '1'")) == {"dt=1": "recorded"}
    desk.compact(where="dt = '1'")
    assert record_used(desk) == desk.runs[0]
    desk.compact(where="dt = '2'")
    assert record_used(desk) == desk.runs[-1]


def test_where_that_selects_nothing_records_nothing(desk):
    result = desk.backup(where="dt = '9'")
    assert (result.code, outcomes(result), desk.log().runs) == (Exit.DONE, {}, ())


def test_only_metadata_are_written(desk, world):
    before = world.picture()
    desk.backup()
    after = world.picture()
    assert {path: content for path, content in after.items() if path in before} == before
    new = sorted(path[len(desk.control.top) + 1 :] for path in set(after) - set(before))
    assert new == [names.SEAL, "_lock", f"log/{names.log_entry(0)}", f"runs/{desk.runs[0]}/plan.json"]


def test_the_next_compaction_uses_a_record_that_still_describes_the_table(desk):
    desk.backup()
    desk.compact()
    assert record_used(desk) == desk.runs[0]


def test_a_compaction_of_some_partitions_uses_it_too(desk):
    desk.backup()
    desk.compact(where="dt = '2'")
    assert record_used(desk) == desk.runs[0]


def test_without_a_record_a_compaction_takes_its_own(desk):
    desk.compact()
    assert record_used(desk) == desk.runs[0]


def add_file(desk):
    desk.world.add_file(f"{desk.live('dt=1')}/new.parquet", ["new"])
    desk.world.files.namespace.advance(3_600_000)


def change_location(desk):
    elsewhere = f"{desk.live()}/elsewhere"
    for n in range(3):
        desk.world.add_file(f"{elsewhere}/part-{n:05d}.parquet", [str(n)])
    desk.world.catalog.put_partition(desk.table, a_partition("dt=1", elsewhere, PARQUET))
    desk.world.files.namespace.advance(3_600_000)


def add_column(desk):
    table = desk.world.catalog.tables[desk.table]
    desk.world.catalog.put_table(replace(table, columns=(*table.columns, Column("more", "string"))))


def add_partition(desk):
    for n in range(3):
        desk.world.add_file(f"{desk.live('dt=9')}/part-{n:05d}.parquet", [str(n)])
    desk.world.catalog.add_partition(desk.table, a_partition("dt=9", desk.live("dt=9"), PARQUET))
    desk.world.files.namespace.advance(3_600_000)


def rewrite_file(desk):
    path = f"{desk.live('dt=1')}/part-00000.parquet"
    desk.world.files.writer.delete(path)
    desk.world.add_file(path, ["rewritten"])
    desk.world.files.namespace.advance(3_600_000)


@pytest.mark.parametrize("change", [add_file, change_location, add_column, add_partition, rewrite_file])
def test_a_record_that_does_not_describe_the_table_any_more_is_not_used(desk, change):
    desk.backup()
    change(desk)
    desk.compact()
    assert record_used(desk) == desk.runs[1]


def test_statistics_that_changed_do_not_make_a_record_untrue(desk, world):
    desk.backup()
    world.set_property(desk.table, numRows="77", transient_lastDdlTime="1")
    desk.compact()
    assert record_used(desk) == desk.runs[0]


def test_the_newest_record_that_describes_the_table_is_used(desk):
    desk.backup()
    desk.backup()
    desk.compact()
    assert record_used(desk) == desk.runs[1]


def test_a_discarded_record_is_not_used(desk):
    desk.backup()
    desk.cleanup()
    desk.compact()
    assert record_used(desk) == desk.runs[2]


def test_with_a_record_of_its_own_or_not_a_compaction_is_undone_the_same(desk, world):
    rows = world.rows_of(desk.table)
    desk.backup()
    desk.compact()
    assert desk.rollback().code is Exit.DONE
    assert world.rows_of(desk.table) == rows


def test_a_partition_that_lies_outside_the_table_does_not_break_the_record(desk, world):
    outside = f"{names.parent(desk.live())}/outside"
    world.add_file(f"{outside}/part-00000.parquet", ["outside"])
    world.catalog.add_partition(desk.table, a_partition("dt=8", outside, PARQUET))
    result = desk.backup()
    recorded = dict.fromkeys(("dt=1", "dt=2", "dt=3"), "recorded")
    assert {name: outcome for name, outcome in outcomes(result).items() if name != "dt=8"} == recorded


def test_a_partition_without_a_directory_does_not_break_the_record(desk, world):
    world.files.writer.delete(desk.live("dt=3"))
    assert desk.backup().code is Exit.DONE


def test_a_table_that_cannot_be_compacted_is_refused_without_a_trace(world):
    world.add_table(a_table(name="acid", kind="MANAGED_TABLE", parameters={"transactional": "true"}), {"": [1000]})
    desk = Desk(world, "sales.acid")
    before = world.picture()
    assert desk.backup().code is Exit.REFUSED
    assert world.picture() == before


def test_a_backup_killed_at_any_step_leaves_a_record_or_no_trace():
    for steps in range(100):
        world = a_world()
        desk = Desk(world)
        before = world.picture()
        world.files.die_after(steps)
        try:
            desk.backup()
            break
        except Killed:
            world.files.revive()
            world.files.expire_locks()
        assert desk.recover().code is Exit.DONE
        promised = desk.log().next_version == 1
        left = {path for path in world.picture() if path not in before and names.base(path) not in (names.SEAL, "_lock")}
        assert desk.run_directories() == ([desk.runs[0]] if promised else []), steps
        assert bool(left) is promised, (steps, left)
        if promised:
            assert store.read_plan(world.cluster, world.catalog.tables[desk.table], desk.control.run(desk.runs[0])) is not None
    assert 5 < steps < 99


def test_what_is_recorded_can_be_listed_and_verified(desk):
    desk.backup()
    assert [one.backup.is_record for one in desk.history().tables[0].backups] == [True]
    assert desk.verify(desk.runs[0]).code is Exit.DONE


# ---- the backup table


def backup_tables(desk):
    """Backup tables by name, each with the rows that its readers see."""
    catalog = desk.world.catalog
    ours = [name for name, table in catalog.tables.items() if table.parameters.get("hivekeeper.backup-of") == desk.table]
    return {name: dict(desk.world.rows_of(name)) for name in ours}


def shown_partitions(desk, name):
    return sorted(desk.world.catalog.partitions[name])


FIRST = "sales.__bkp_events_20260101_020000"
SECOND = "sales.__bkp_events_20260101_020001"


def test_a_backup_table_shows_the_rows_as_they_are(desk, world):
    assert desk.backup().tables[0].backup_table == FIRST
    assert backup_tables(desk) == {FIRST: dict(world.rows_of(desk.table))}


def test_a_compactions_own_backup_table_shows_the_old_files_of_what_was_swapped(desk, world):
    old = dict(world.rows_below(desk.live("dt=1")))
    assert desk.compact(where="dt = '1'").tables[0].backup_table == FIRST
    assert backup_tables(desk) == {FIRST: old}
    assert "/retired/" in world.catalog.partitions[FIRST]["dt=1"].location
    assert shown_partitions(desk, FIRST) == ["dt=1"]


def test_later_rows_are_not_in_the_backup_table(desk, world):
    old = dict(world.rows_of(desk.table))
    desk.compact()
    add_file(desk)
    assert backup_tables(desk) == {FIRST: old}


def test_an_unpartitioned_backup_table_follows_its_files(world):
    world.add_table(a_table(name="flat"), {"": [1000] * 3})
    desk = Desk(world, "sales.flat")
    old = dict(world.rows_of("sales.flat"))
    desk.compact()
    assert backup_tables(desk) == {"sales.__bkp_flat_20260101_020000": old}
    desk.rollback()
    assert backup_tables(desk) == {}


def test_where_nothing_was_swapped_no_backup_table_is_left(desk, world):
    world.rows.fail = lambda _batch: "the disk is full"
    assert desk.compact().tables[0].backup_table == ""
    assert backup_tables(desk) == {}


def test_the_table_of_a_record_follows_the_files_and_comes_back_with_them(desk, world):
    rows = dict(world.rows_of(desk.table))
    desk.backup()
    desk.compact()
    assert backup_tables(desk) == {FIRST: rows}
    assert "/retired/" in world.catalog.partitions[FIRST]["dt=1"].location
    desk.rollback()
    assert backup_tables(desk) == {FIRST: rows}
    assert world.catalog.partitions[FIRST]["dt=1"].location == desk.live("dt=1")


def test_a_compaction_that_a_record_does_not_describe_makes_a_table_of_its_own(desk):
    desk.backup()
    add_file(desk)
    desk.compact()
    assert sorted(backup_tables(desk)) == [FIRST, SECOND]


def test_a_rollback_of_one_partition_takes_it_out_of_the_backup_table(desk):
    desk.compact()
    desk.rollback(where="dt = '1'")
    assert shown_partitions(desk, FIRST) == ["dt=2"]
    desk.rollback()
    assert backup_tables(desk) == {}


def test_a_cleanup_drops_the_backup_tables_with_their_files(desk):
    desk.backup()
    desk.compact()
    add_file(desk)
    for n in "abc":
        desk.world.add_file(f"{desk.live('dt=1')}/{n}.parquet", [n])
    desk.world.files.namespace.advance(3_600_000)
    desk.compact()
    assert len(backup_tables(desk)) == 2
    desk.cleanup()
    assert backup_tables(desk) == {}


def test_a_unit_that_a_cleanup_kept_stays_in_the_backup_table(desk, world):
    desk.compact()
    world.files.writer.make_directory(f"{desk.control.run(desk.runs[0]).unit('retired', 1)}/_temporary")
    desk.cleanup()
    assert shown_partitions(desk, FIRST) == ["dt=1"]


def test_the_table_of_a_pinned_record_lets_go_of_files_that_were_discarded(desk):
    desk.backup()
    desk.compact(where="dt = '1'")
    desk.pin(desk.runs[0])
    desk.cleanup()
    assert shown_partitions(desk, FIRST) == ["dt=2", "dt=3"]


def test_a_backup_table_of_a_compaction_stays_when_only_the_record_was_discarded(desk):
    desk.backup()
    desk.compact()
    desk.pin(desk.runs[1])
    rows = backup_tables(desk)[FIRST]
    desk.cleanup()
    assert backup_tables(desk) == {FIRST: rows}


def test_backup_tables_can_be_switched_off(world):
    desk = Desk(world, backup_table=False)
    assert desk.backup().tables[0].backup_table == ""
    assert desk.compact().tables[0].backup_table == ""
    assert backup_tables(desk) == {}


def test_a_database_of_their_own_can_be_given_to_backup_tables(world):
    world.catalog.databases.add("attic")
    desk = Desk(world, backup_database="attic")
    assert desk.backup().tables[0].backup_table == "attic.__bkp_sales__events_20260101_020000"
    desk.compact()
    desk.cleanup()
    assert backup_tables(desk) == {}


def test_without_a_metastore_that_makes_it_there_is_no_backup_table_and_all_else_is_done(desk, world):
    world.metastore.fail_next("make_backup_table", MetastoreRefused("no right to create"))
    result = desk.compact()
    assert (result.code, result.tables[0].backup_table) == (Exit.DONE, "")
    assert desk.rollback().code is Exit.DONE


@pytest.mark.parametrize("answers_again", [True, False])
def test_a_backup_table_whose_answer_was_lost_goes_with_the_runs_backup(desk, world, answers_again):
    def fall_silent(step: str) -> None:
        if step.startswith("metastore.make_backup_table ") and not answers_again:
            world.metastore.fail_next("tables", MetastoreUnavailable("timeout"))

    world.metastore.fail_next("make_backup_table", MetastoreUnavailable("timeout"), done=True)
    world.files.before_step = fall_silent
    assert desk.compact().code is Exit.DONE
    assert len(backup_tables(desk)) == 1
    desk.cleanup()
    assert backup_tables(desk) == {}


def test_somebodys_table_of_that_name_is_never_touched(desk, world):
    theirs = a_table(name="__bkp_events_20260101_020000", location="hdfs://nn/theirs")
    world.catalog.add_table(theirs)
    assert desk.compact().code is Exit.DONE
    desk.cleanup()
    assert world.catalog.tables[theirs.full_name] == theirs


def test_a_backup_table_that_somebody_dropped_is_no_obstacle(desk, world):
    desk.compact()
    world.catalog.drop_table(FIRST)
    assert desk.rollback(where="dt = '1'").code is Exit.DONE
    assert desk.cleanup().code is Exit.DONE


def test_a_backup_table_that_could_not_be_dropped_is_dropped_later(desk, world):
    desk.compact()
    world.metastore.fail_next("drop_backup_table", MetastoreRefused("not now"))
    desk.cleanup()
    desk.cleanup()
    assert backup_tables(desk) == {}


def test_a_backup_table_of_a_run_that_swapped_nothing_is_dropped_later_if_it_could_not_be_dropped_at_once(desk, world):
    """Its log entry still names the table: nobody would ever drop one that the log does not know."""
    live = desk.live("dt=1")

    def come_before_the_swap(what):
        if what.startswith("write_new ") and "certificates" in what:
            world.add_file(f"{live}/_temporary/x", ["x"])

    world.files.before_step = come_before_the_swap
    world.metastore.fail_next("drop_backup_table", MetastoreUnavailable("timeout"))
    assert "swapped" not in {unit.outcome.code for unit in desk.compact(where="dt = '1'").tables[0].units}
    world.files.before_step = None
    assert backup_tables(desk) != {}
    desk.recover()
    assert backup_tables(desk) == {}


def test_a_killed_backup_whose_table_cannot_be_dropped_is_settled_by_the_run_after(desk, world):
    desk.kill_before(["entry.json"], desk.backup)
    world.metastore.fail_next("drop_backup_table", MetastoreUnavailable("timeout"))
    desk.recover()
    assert backup_tables(desk) != {}
    desk.recover()
    assert backup_tables(desk) == {}
    assert desk.run_directories() == []


@pytest.mark.repeating
@pytest.mark.parametrize("command", ["backup", "compact", "rollback", "cleanup"])
def test_whatever_is_killed_no_backup_table_outlives_its_files(command):
    for steps in range(200):
        world = a_world()
        desk = Desk(world)
        if command in ("rollback", "cleanup"):
            desk.compact()
        world.files.die_after(steps)
        try:
            getattr(desk, command)()
            break
        except Killed:
            world.files.revive()
            world.files.expire_locks()
        assert desk.recover().code is Exit.DONE
        rows = dict(world.rows_of(desk.table))
        assert all(found.items() <= rows.items() for found in backup_tables(desk).values()), steps
        kept = [one.backup for one in desk.history().tables[0].backups]
        assert sorted(backup_tables(desk)) == sorted(one.backup_table for one in kept if one.operation != "rollback"), steps
        desk.cleanup()
        assert backup_tables(desk) == {}, steps
    assert 5 < steps < 199


def test_a_records_table_keeps_the_units_that_a_compaction_gave_up(desk, world):
    desk.backup()
    table = desk.log().runs[-1].backup_table
    world.rows.fail = lambda batch: "the disk is full" if any(unit.number == 2 for unit in batch.units) else None
    result = desk.compact()
    assert set(outcomes(result).values()) == {"swapped", "failed"}
    assert set(world.catalog.partitions[table]) == set(world.catalog.partitions[desk.table])


def test_a_file_that_comes_while_the_lock_is_taken_is_in_the_record(desk, world):
    def append(what):
        if what.startswith("hold"):
            world.files.before_step = None
            world.add_file(f"{desk.live('dt=1')}/just-now.parquet", ["just now"])

    desk.compact()
    world.files.before_step = append
    result = desk.backup()
    world.files.before_step = None
    files = {unit.name: unit.files_before for unit in result.tables[0].units}
    assert files["dt=1"] == 2


def test_a_backup_table_that_goes_as_a_whole_is_not_emptied_partition_by_partition(desk, world):
    desk.compact()
    table = desk.log().runs[0].backup_table
    desk.cleanup()
    assert table not in world.catalog.tables
    assert [event for event in world.catalog.events if event[0] == "DROP_PARTITION"] == []


def test_a_prefix_in_capitals_is_spelled_as_the_metastore_does(world):
    desk = Desk(world)
    desk.settings = replace(desk.settings, backup_prefix="BKP_")
    rows = dict(world.rows_of(desk.table))
    assert desk.backup().tables[0].backup_table == "sales.bkp_events_20260101_020000"
    desk.compact()
    assert backup_tables(desk) == {"sales.bkp_events_20260101_020000": rows}
    desk.cleanup()
    assert backup_tables(desk) == {}


def test_the_table_of_a_record_that_was_discarded_keeps_only_what_has_a_backup(desk):
    desk.backup()
    desk.compact(where="dt = '1'")
    desk.pin(desk.runs[1])
    assert shown_partitions(desk, FIRST) == ["dt=1", "dt=2", "dt=3"]
    desk.cleanup()
    assert shown_partitions(desk, FIRST) == ["dt=1"]


def test_a_backup_table_that_somebody_pointed_elsewhere_is_set_right(desk, world):
    desk.compact()
    rows, kept = backup_tables(desk), shown_partitions(desk, FIRST)
    moved = world.catalog.partitions[FIRST]["dt=1"]
    world.catalog.put_partition(FIRST, replace(moved, location=desk.live("dt=1")))
    assert desk.recover().code is Exit.DONE
    assert (backup_tables(desk), shown_partitions(desk, FIRST)) == (rows, kept)


def test_backup_tables_that_cannot_be_looked_for_are_no_obstacle(desk, world):
    def fall_silent(step: str) -> None:
        if "/log/" in step:
            world.metastore.fail_next("tables", MetastoreUnavailable("timeout"))

    desk.compact()
    world.files.before_step = fall_silent
    assert desk.rollback().code is Exit.DONE
    world.files.before_step = None
    assert list(backup_tables(desk)) == [FIRST]
    assert desk.recover().code is Exit.DONE
    assert backup_tables(desk) == {}


def test_the_unpartitioned_table_of_a_pinned_record_shows_live_when_its_files_were_discarded(world):
    world.add_table(a_table(name="flat"), {"": [1000] * 3})
    desk = Desk(world, "sales.flat")
    desk.backup()
    desk.compact()
    desk.pin(desk.runs[0])
    desk.cleanup()
    assert backup_tables(desk) == {"sales.__bkp_flat_20260101_020000": dict(world.rows_of("sales.flat"))}
