"""A table or partition is renamed, moved, dropped or re-created: during a command, in an outage, or between two commands."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands.recover import recover
from hivekeeper.model import Column, Selection
from hivekeeper.names import ControlPaths
from hivekeeper.ports import FilesUnavailable
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.fakes.files import FakeFiles
from support.fakes.rows import DataFile
from support.hive_statements import Hive
from support.joined_desk import at
from support.world import World

TABLE, RENAMED = "sales.events", "sales.events2"
GAP = ["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"]


def make_desk(kind="EXTERNAL_TABLE", columns=("dt",), **parameters):
    world = World()
    units = {"dt=1": [1000] * 3, "dt=2": [1000] * 2} if columns else {"": [1000] * 3}
    world.add_table(a_table(columns, kind=kind, parameters=parameters, create_time=5), units)
    return Desk(world, backup_table=False)


def carry_out(calls):
    for _ in calls:
        pass


def in_the_gap(desk, statement):
    """Let a Hive statement run between the two renames of the first unit."""

    def act(what):
        if all(word in what for word in GAP):
            desk.world.files.before_step = None
            carry_out(statement())

    desk.world.files.before_step = act


def kill_in_the_gap(desk):
    desk.kill_before(GAP, desk.compact)


def unit_of(result, name):
    return next(unit for unit in result.tables[0].units if unit.name == name)


def rows_in(unit):
    return Counter(f"events/{unit}/{number}" for number in range(3))


# ---- in the gap


def test_a_managed_partition_renamed_in_the_gap_is_the_loudest_answer():
    """Hive finds no directory to rename, so the metastore points to a missing directory."""
    desk = make_desk("MANAGED_TABLE")
    in_the_gap(desk, lambda: Hive(desk.world).rename_partition(TABLE, "dt=1", "dt=9"))
    result = desk.compact()
    unit = unit_of(result, "dt=1")
    assert (result.code, unit.outcome.code, unit.why.code) == (Exit.INVESTIGATE, "misplaced", Code.MOVED)
    assert desk.live("dt=1") in unit.reason and "dt=9" in unit.reason and "/retired/u00001" in unit.reason
    assert outcomes(result)["dt=2"] == "swapped"
    # After following the advice, the rows are visible again.
    desk.world.files.writer.rename_into(desk.live("dt=1"), desk.live("dt=9"))
    assert not rows_in("dt=1") - desk.world.rows_of(TABLE)


def test_an_external_partition_renamed_in_the_gap_is_followed_and_rolled_back_under_its_new_name():
    desk = make_desk()
    before = desk.world.rows_of(TABLE)
    in_the_gap(desk, lambda: Hive(desk.world).rename_partition(TABLE, "dt=1", "dt=9"))
    result = desk.compact()
    assert (result.code, outcomes(result)["dt=1"], unit_of(result, "dt=1").why.code) == (Exit.DONE, "swapped", Code.RENAMED)
    assert desk.world.rows_of(TABLE) == before
    assert outcomes(desk.verify()) == {"dt=9": "verified", "dt=2": "verified"}
    assert outcomes(desk.rollback()) == {"dt=9": "rolled-back", "dt=2": "rolled-back"}
    assert desk.world.rows_of(TABLE) == before


def test_a_managed_table_renamed_in_the_gap_is_reported_and_found_again():
    """The table is unpartitioned: its control directory stays beside its old place, with the backup in it."""
    desk = make_desk("MANAGED_TABLE", columns=())
    former = desk.live()
    in_the_gap(desk, lambda: Hive(desk.world).rename_table(TABLE, RENAMED))
    result = desk.compact()
    assert (result.code, outcomes(result)) == (Exit.INVESTIGATE, {"": "misplaced"})
    assert RENAMED in unit_of(result, "").reason and former in unit_of(result, "").reason


def test_a_table_dropped_in_the_gap_is_not_a_success():
    desk = make_desk("MANAGED_TABLE", columns=())
    in_the_gap(desk, lambda: Hive(desk.world).drop_table(TABLE))
    result = desk.compact()
    assert (result.code, unit_of(result, "").why.code) == (Exit.INVESTIGATE, Code.TABLE_GONE)


def test_a_table_dropped_before_a_swap_is_given_up_and_says_so():
    desk = make_desk()
    write = desk.world.rows.write_stage

    def drop_then_write(batch):
        carry_out(Hive(desk.world).drop_table(TABLE))
        return write(batch)

    desk.world.rows.write_stage = drop_then_write
    result = desk.compact()
    assert result.code is Exit.PARTIAL
    assert {unit.why.code for unit in result.tables[0].units} == {Code.TABLE_GONE}


def test_a_table_created_again_before_a_swap_is_given_up():
    desk = make_desk(columns=())
    write = desk.world.rows.write_stage

    def create_again_then_write(batch):
        carry_out(Hive(desk.world).drop_and_create(TABLE))
        return write(batch)

    desk.world.rows.write_stage = create_again_then_write
    result = desk.compact()
    assert (result.code, outcomes(result), unit_of(result, "").why.code) == (Exit.PARTIAL, {"": "given-up"}, Code.TABLE_CREATED_AGAIN)
    assert desk.world.rows_of(TABLE) == rows_in("")


def test_a_table_that_is_renamed_with_its_control_directory_ends_the_run_and_says_so():
    desk = make_desk("MANAGED_TABLE")
    before = desk.world.rows_of(TABLE)
    in_the_gap(desk, lambda: Hive(desk.world).rename_table(TABLE, RENAMED))
    result = desk.compact()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.CONTROL_GONE)
    desk.world.files.expire_locks()
    desk.table = RENAMED
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(RENAMED) == before


def test_discovery_does_not_bring_back_a_partition_that_was_dropped_with_its_files():
    desk = make_desk(**{"discover.partitions": "true", "external.table.purge": "true"})
    steps = []

    def act(what):
        steps.append(what)
        if what.startswith("metastore.update_sizes"):
            desk.world.files.before_step = None
            carry_out(Hive(desk.world).drop_partition(TABLE, "dt=1"))

    desk.world.files.before_step = act
    result = desk.compact()
    assert (outcomes(result)["dt=1"], result.code) == ("dropped-meanwhile", Exit.PARTIAL)
    assert "dt=1" not in desk.world.catalog.partitions[TABLE]


# ---- in an outage


@pytest.mark.parametrize("columns", [(), ("dt",)], ids=["flat", "partitioned"])
@pytest.mark.parametrize("moment", ["before", "gap", "after"])
def test_a_table_created_again_in_an_outage_gets_no_rows_of_the_old_one(columns, moment):
    desk = make_desk(columns=columns)
    unit = "dt=1" if columns else ""
    words = {"before": [*GAP[:1], "/retired/u00001"], "gap": GAP, "after": ["metastore.update_sizes"]}[moment]
    desk.kill_before(words, desk.compact)
    stored = desk.world.catalog.tables[TABLE]
    partitions = dict(desk.world.catalog.partitions[TABLE])
    desk.world.catalog.drop_table(TABLE)
    desk.world.catalog.add_table(replace(stored, create_time=99), partitions.values())
    desk.world.files.writer.overwrite(desk.live(unit), {"new.parquet": DataFile(("new",))})
    live = desk.world.files.look([desk.live(unit)])

    result = desk.recover()

    assert desk.world.files.look([desk.live(unit)]) == live, "nothing goes into the new table or out of it"
    entry = desk.log().runs[-1]
    assert entry.table_id == f"{TABLE}@5"
    if moment == "before":
        assert result.code is Exit.DONE
        assert entry.effects == ()
        return
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.CHANGED_IN_OUTAGE)
    effect = next(effect for effect in entry.effects if effect.partition == unit)
    assert (entry.run in desk.log().pinned) is (moment == "gap"), "of these rows there is no other copy"
    assert not rows_in(unit) - desk.world.rows_below(names.join(desk.control.top, effect.place))
    assert desk.recover().code is Exit.DONE
    refused = desk.rollback(entry.run)
    assert (refused.code, unit_of(refused, unit).why.code) == (Exit.REFUSED, Code.TABLE_CREATED_AGAIN)


def test_a_rollback_of_a_table_created_again_gives_its_backup_back_and_keeps_what_left_live():
    desk = make_desk(columns=())
    desk.compact()
    run, before = desk.runs[0], desk.world.rows_of(TABLE)
    desk.kill_before(["rename_exact", "/restoring/u00001 hdfs://nn/warehouse/sales/events"], lambda: desk.rollback(run))
    stored = desk.world.catalog.tables[TABLE]
    desk.world.catalog.drop_table(TABLE)
    desk.world.catalog.add_table(replace(stored, create_time=99))
    desk.world.files.writer.make_directory(desk.live())

    assert desk.recover().code is Exit.INVESTIGATE
    assert desk.world.rows_of(TABLE) == Counter()
    backups = {effect.run: desk.world.rows_below(names.join(desk.control.top, effect.place)) for effect in desk.log().standing}
    assert list(backups.values()) == [before, before]
    assert run in backups


def test_a_cleanup_of_a_table_created_again_moves_no_late_file_into_the_new_one():
    desk = make_desk(columns=())
    desk.compact()
    desk.world.add_file(f"{desk.control.run(desk.runs[0]).unit('retired', 1)}/late.parquet", ["late"])
    desk.kill_before(["rename_exact", "/held/u00001"], desk.cleanup)
    stored = desk.world.catalog.tables[TABLE]
    desk.world.catalog.drop_table(TABLE)
    desk.world.catalog.add_table(replace(stored, create_time=99))
    live = desk.world.files.look([desk.live()])
    desk.recover()
    assert desk.world.files.look([desk.live()]) == live
    assert desk.world.rows_anywhere()["late"] == 1


def create_again(desk, columns):
    """DROP TABLE without its files, then CREATE TABLE at the same place with other partition columns."""
    stored = desk.world.catalog.tables[TABLE]
    desk.world.catalog.drop_table(TABLE)
    desk.world.catalog.add_table(replace(stored, create_time=99, partition_columns=tuple(Column(name, "string") for name in columns)))


@pytest.mark.parametrize("columns", [("region",), ("dt", "hour")])
@pytest.mark.parametrize("interrupted", [False, True], ids=["", "interrupted"])
def test_the_backups_of_a_table_created_again_with_other_partition_columns_are_discarded(columns, interrupted):
    desk = make_desk()
    desk.compact()
    create_again(desk, columns)
    if interrupted:
        desk.kill_before(["rename_exact", "/held/u00002"], lambda: desk.cleanup(former=True))
    assert desk.cleanup(former=True).code is Exit.DONE
    assert (desk.run_directories(), desk.log().standing) == ([], ())
    assert desk.history().code is Exit.DONE


def test_where_leaves_out_the_partitions_of_a_former_table_by_other_columns():
    desk = make_desk()
    desk.compact()
    create_again(desk, ("dt", "hour"))
    assert desk.history(where="hour = '1'").tables[0].log == ()
    assert desk.rollback(where="hour = '1'").code is Exit.DONE
    assert desk.verify(against=desk.runs[0], where="hour = '1'").code is Exit.DONE


def test_a_partition_dropped_with_its_files_in_an_outage_is_not_put_back():
    desk = make_desk("MANAGED_TABLE")
    kill_in_the_gap(desk)
    carry_out(Hive(desk.world).drop_partition(TABLE, "dt=1"))
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    assert "unpin" in result.tables[0].problem.next
    assert "dt=1" not in desk.world.catalog.partitions[TABLE]
    assert not desk.world.files.look([desk.live("dt=1")])[desk.live("dt=1")].exists
    effect = next(effect for effect in desk.log().standing if effect.partition == "dt=1")
    assert desk.world.rows_below(names.join(desk.control.top, effect.place)) == rows_in("dt=1")
    # An operator who wants the partition back does this.
    desk.world.make_partition(TABLE, "dt=1")
    assert outcomes(desk.rollback(effect.run, where="dt = '1'")) == {"dt=1": "rolled-back"}
    assert not rows_in("dt=1") - desk.world.rows_of(TABLE)


def test_a_failure_after_the_log_entry_hides_no_misplaced_rows():
    """No later command tells of them."""
    desk = make_desk("MANAGED_TABLE")
    kill_in_the_gap(desk)
    carry_out(Hive(desk.world).drop_partition(TABLE, "dt=1"))
    at(desk, ["delete_file", "/clock"], lambda: desk.world.files.fail_next("delete_file", FilesUnavailable("no answer")))
    assert desk.recover().code is Exit.INVESTIGATE
    assert desk.recover().code is Exit.DONE
    assert desk.log().pinned


def test_the_only_copy_of_a_partition_that_looks_dropped_in_an_outage_is_not_cleaned_up():
    """It was renamed, with a directory that a writer had made meanwhile: its new place is not missing."""
    desk = make_desk("MANAGED_TABLE")
    kill_in_the_gap(desk)
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    carry_out(Hive(desk.world).rename_partition(TABLE, "dt=1", "dt=9"))
    assert desk.recover().code is Exit.INVESTIGATE
    assert desk.cleanup().code is Exit.DONE
    assert not rows_in("dt=1") - desk.world.rows_anywhere()


def test_a_discovered_table_that_is_renamed_or_created_again_in_the_gap_is_no_success():
    for change, code in (("drop_and_create", Exit.INVESTIGATE), ("drop_table", Exit.INVESTIGATE)):
        desk = make_desk(**{"discover.partitions": "true"})
        in_the_gap(desk, lambda desk=desk, change=change: getattr(Hive(desk.world), change)(TABLE))
        assert desk.compact().code is code, change


@pytest.mark.parametrize(("purge", "is_back"), [("false", True), ("true", False)])
def test_what_discovery_dropped_in_an_outage_is_put_back_where_a_drop_would_have_left_the_files(purge, is_back):
    """Otherwise a partition dropped on purpose looks the same, and an operator has to decide."""
    desk = make_desk(**{"discover.partitions": "true", "external.table.purge": purge})
    kill_in_the_gap(desk)
    desk.world.catalog.drop_partition(TABLE, "dt=1")
    result = desk.recover()
    assert result.code is (Exit.DONE if is_back else Exit.INVESTIGATE)
    assert ("dt=1" in desk.world.catalog.partitions[TABLE]) is is_back
    assert desk.world.files.look([desk.live("dt=1")])[desk.live("dt=1")].exists is is_back


def test_the_old_rows_of_a_partition_dropped_in_an_outage_do_not_come_back_beside_those_loaded_since():
    """Nobody can tell whether these are the same rows again."""
    desk = make_desk("MANAGED_TABLE")
    kill_in_the_gap(desk)
    carry_out(Hive(desk.world).drop_partition(TABLE, "dt=1"))
    assert desk.recover().code is Exit.INVESTIGATE
    (effect,) = desk.log().standing
    desk.world.make_partition(TABLE, "dt=1")
    desk.append("dt=1", "loaded", "again")
    (unit,) = desk.rollback().tables[0].units
    assert (unit.outcome.code, unit.why.code) == ("refused", Code.OVERWRITTEN_SINCE)
    assert desk.world.rows_below(desk.live("dt=1")) == Counter(["loaded", "again"])
    assert desk.world.rows_below(names.join(desk.control.top, effect.place)) == rows_in("dt=1")


def test_a_partition_renamed_in_an_outage_is_reported_with_its_places():
    desk = make_desk("MANAGED_TABLE")
    kill_in_the_gap(desk)
    carry_out(Hive(desk.world).rename_partition(TABLE, "dt=1", "dt=9"))
    problem = desk.recover().tables[0].problem
    assert problem.code is Code.CHANGED_IN_OUTAGE
    assert desk.live("dt=1") in problem.what and "dt=9" in problem.what
    assert desk.world.rows_below(desk.live("dt=1")) == rows_in("dt=1")


# ---- between two commands


@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "MANAGED_TABLE"])
def test_a_renamed_table_is_known_again(kind):
    desk = make_desk(kind)
    desk.compact()
    before = desk.world.rows_of(TABLE)
    carry_out(Hive(desk.world).rename_table(TABLE, RENAMED))
    desk.table = RENAMED
    assert outcomes(desk.verify()) == {"dt=1": "verified", "dt=2": "verified"}
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}
    assert desk.world.rows_of(RENAMED) == before
    assert desk.compact().code is Exit.DONE
    assert {backup.state.code for backup in desk.cleanup().tables[0].backups} == {"discarded"}
    assert desk.world.rows_of(RENAMED) == before


@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "MANAGED_TABLE"])
def test_the_records_of_a_renamed_table_are_forgotten(kind):
    desk = make_desk(kind)
    desk.compact()
    carry_out(Hive(desk.world).rename_table(TABLE, RENAMED))
    desk.table = RENAMED
    desk.cleanup()
    assert desk.forget().code is Exit.DONE
    assert not [path for path in desk.world.picture() if ".hivekeeper" in path]


@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "MANAGED_TABLE"])
def test_an_interrupted_run_is_recovered_under_the_tables_new_name(kind):
    desk = make_desk(kind)
    before = desk.world.rows_of(TABLE)
    kill_in_the_gap(desk)
    carry_out(Hive(desk.world).rename_table(TABLE, RENAMED))
    desk.table = RENAMED
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(RENAMED) == before
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}


@pytest.mark.parametrize("command", [Desk.compact, Desk.recover, Desk.rollback, Desk.verify, Desk.cleanup, Desk.backup])
def test_a_control_directory_that_a_rename_left_behind_is_said_and_how_to_bring_it(command):
    desk = make_desk("MANAGED_TABLE", columns=())
    before = desk.world.rows_of(TABLE)
    kill_in_the_gap(desk)
    former = desk.control
    carry_out(Hive(desk.world).rename_table(TABLE, RENAMED))
    desk.table = RENAMED
    desk.world.files.namespace.advance(3_600_000)
    result = command(desk)
    problem = result.tables[0].problem
    assert (result.code, problem.code) == (Exit.INVESTIGATE, Code.LEFT_BEHIND)
    assert former.top in problem.next and desk.control.top in problem.next
    desk.world.files.writer.rename_into(former.top, desk.control.top)
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(RENAMED) == before


def test_a_control_directory_of_another_user_beside_is_not_taken_for_one_that_was_left_behind():
    """With records about a table that was created in the same second: whoever may write beside the table can put them there."""
    desk = make_desk("MANAGED_TABLE", columns=())
    desk.compact()
    top = desk.control.top
    carry_out(Hive(desk.world).rename_table(TABLE, RENAMED))
    for _, node in [(top, desk.world.files.namespace.directory(top)), *desk.world.files.namespace.walk(top)]:
        node.attributes = replace(node.attributes, owner="loader")
    desk.table = RENAMED
    desk.append("", "late1", "late2", "late3")
    assert outcomes(desk.compact()) == {"": "swapped"}


def test_a_backup_table_at_the_former_place_does_not_hide_what_a_rename_left_behind():
    """That of a record shows live until the swap, and that run was killed."""
    desk = make_desk("MANAGED_TABLE", columns=())
    desk = Desk(desk.world)
    desk.backup()
    kill_in_the_gap(desk)
    assert any(name.startswith("sales.__bkp_") and table.location == desk.live() for name, table in desk.world.catalog.tables.items())
    carry_out(Hive(desk.world).rename_table(TABLE, RENAMED))
    desk.table = RENAMED
    desk.world.files.namespace.advance(3_600_001)
    assert desk.recover().tables[0].problem.code is Code.LEFT_BEHIND


def test_the_command_that_brings_a_control_directory_is_safe_to_copy_whatever_the_directories_are_called():
    """Whoever chooses the location of a table chooses a part of it."""
    evil = "hdfs://nn/warehouse/it's $(reboot);`reboot`"
    world = World()
    world.add_table(replace(a_table((), kind="MANAGED_TABLE", create_time=5), location=evil), {"": [1000] * 3})
    desk = Desk(world, backup_table=False)
    assert outcomes(desk.compact()) == {"": "swapped"}
    former = desk.control.top
    world.catalog.tables[TABLE] = replace(world.catalog.tables[TABLE], location=f"{evil} again")
    world.files.namespace.advance(3_600_000)
    problem = desk.recover().tables[0].problem
    assert problem.code is Code.LEFT_BEHIND
    command, _, _ = problem.next.partition(", then: ")
    assert shlex.split(command) == ["hdfs", "dfs", "-mv", former, desk.control.top]


def make_directories_beside(desk, number):
    beside = names.parent(desk.live())
    for nth in range(number):
        path = names.join(beside, f".hivekeeper-gone{nth}")
        desk.world.files.writer.make_directory(path)
        node = desk.world.files.namespace.directory(path)
        node.attributes = replace(node.attributes, owner="mallory")


def test_for_control_directories_of_another_user_beside_nothing_is_asked(monkeypatch):
    """Each would cost a call, in every command, and whoever chooses the table's location may have made a million."""
    desk = make_desk("MANAGED_TABLE", columns=())
    make_directories_beside(desk, 50)
    asked, exposed = [], FakeFiles.exposed
    monkeypatch.setattr(FakeFiles, "exposed", lambda self, top, levels: asked.append(top) or exposed(self, top, levels))
    assert desk.rollback().code is Exit.DONE
    assert asked == []
    assert outcomes(desk.compact()) == {"": "swapped"}
    assert set(asked) == {desk.control.top}


def test_records_beside_that_are_of_tables_of_other_seconds_are_read_once_in_a_command(monkeypatch):
    """Whoever has thousands of tables compacted and drops them, or one with a long log, would have all beside them wait for hours."""
    desk = make_desk("MANAGED_TABLE", columns=())
    for number in range(10):
        desk.world.add_table(a_table((), kind="MANAGED_TABLE", name=f"t{number}", create_time=10 + number), {"": [1000] * 3})
    desk.compact()
    gone = desk.control.top
    desk.world.catalog.drop_table(TABLE)
    desk.world.files.namespace.advance(3_600_000)
    asked, exposed = [], FakeFiles.exposed
    monkeypatch.setattr(FakeFiles, "exposed", lambda self, top, levels: asked.append(top) or exposed(self, top, levels))
    every = a_context(desk.world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000")
    assert len(recover(every).tables) == 10
    assert 0 < asked.count(gone) <= 2


@pytest.mark.parametrize("number", [5, 20])
def test_records_beside_are_read_once_in_a_command_also_for_tables_of_their_second(number, monkeypatch):
    """A script creates many tables in one second, and drops some that have been compacted."""
    world = World()
    for nth in range(number):
        gone = a_table((), kind="MANAGED_TABLE", name=f"gone{nth}", create_time=5)
        world.add_table(replace(gone, columns=(*gone.columns, Column("more", "int"))), {"": [1000] * 3})
        assert outcomes(Desk(world, f"sales.gone{nth}", backup_table=False).compact()) == {"": "swapped"}
    for nth in range(number):
        world.catalog.drop_table(f"sales.gone{nth}")
        world.add_table(a_table((), kind="MANAGED_TABLE", name=f"t{nth}", create_time=5), {"": [1000] * 3})
    world.files.namespace.advance(3_600_000)
    asked, exposed = [], FakeFiles.exposed
    monkeypatch.setattr(FakeFiles, "exposed", lambda self, top, levels: asked.append(top) or exposed(self, top, levels))
    result = recover(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"))
    assert [outcome.problem for outcome in result.tables] == [None] * number
    # Two looks at each directory.
    assert 0 < len(asked) <= 2 * number


def test_what_is_kept_of_records_beside_tells_a_renamed_table_from_others_of_its_second():
    """The first that asks is none of them, by its columns, and the last is."""
    world = World()
    for name, more in (("events", ()), ("a_first", (Column("more", "int"),)), ("b_second", (Column("more", "string"),))):
        table = a_table((), kind="MANAGED_TABLE", name=name, create_time=5)
        world.add_table(replace(table, columns=(*table.columns, *more)), {"": [1000] * 3})
    assert outcomes(Desk(world, backup_table=False).compact()) == {"": "swapped"}
    stored = world.table("sales.events")
    world.catalog.drop_table("sales.events")
    world.add_table(replace(stored, name="renamed", location="hdfs://nn/warehouse/sales/renamed"), {"": [1000] * 3})
    world.files.namespace.advance(3_600_000)
    result = recover(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"))
    told = {table.table: table.problem and table.problem.code for table in result.tables}
    assert told == {"sales.a_first": None, "sales.b_second": None, "sales.renamed": Code.LEFT_BEHIND}


def test_the_places_of_all_tables_are_looked_through_once_not_for_each_directory_with_a_table(monkeypatch):
    world, number = World(), 20
    for nth in range(number):
        for name in (f"done{nth}", f"new{nth}"):
            place = f"hdfs://nn/tenant/d{nth}/{name}"
            world.add_table(a_table((), kind="MANAGED_TABLE", name=name, create_time=10 + nth, location=place), {"": [1000] * 3})
        assert outcomes(Desk(world, f"sales.done{nth}", backup_table=False).compact()) == {"": "swapped"}
    world.files.namespace.advance(3_600_000)
    looked, may_back_up = [], names.may_back_up
    monkeypatch.setattr(names, "may_back_up", lambda *each: looked.append(each) or may_back_up(*each))
    recover(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"))
    assert 0 < len(looked) <= 2 * number


@pytest.mark.parametrize(
    ("place", "is_told"),
    [
        ("hdfs://nn/warehouse/sales/events/inside", False),
        ("hdfs://nn/warehouse/sales/events", False),
        ("hdfs://nn/warehouse/sales/", False),
        ("hdfs://nn/warehouse", False),
        ("hdfs://nn/", False),
        ("hdfs://nn/warehouse/sales/events-more", True),
        ("hdfs://nn/warehouse/sales/even", True),
        ("hdfs://nn/ware", True),
    ],
)
def test_records_beside_are_those_of_a_table_at_or_below_their_home_or_around_all(place, is_told):
    desk = make_desk("MANAGED_TABLE", columns=())
    desk.compact()
    stored = desk.world.table(TABLE)
    desk.world.catalog.drop_table(TABLE)
    desk.world.add_table(replace(stored, name="events2", location="hdfs://nn/warehouse/sales/events2"), {"": [1000] * 3})
    desk.world.catalog.add_table(replace(stored, name="other", database="tenant", location=place, create_time=77), {})
    desk.world.forget()
    problem = Desk(desk.world, "sales.events2", backup_table=False).recover().tables[0].problem
    assert (problem is not None and problem.code is Code.LEFT_BEHIND) is is_told


@pytest.mark.parametrize("command", [Desk.compact, Desk.recover, Desk.rollback, Desk.verify, Desk.cleanup, Desk.backup])
def test_a_table_beside_too_many_hidden_directories_is_refused(command, monkeypatch):
    """Whether one of them is its own, under its former name, would take all memory to find out."""
    monkeypatch.setattr("hivekeeper.plan.listings.MOST_BESIDE", 20)
    desk = make_desk("MANAGED_TABLE", columns=())
    make_directories_beside(desk, 20)
    before, told, look_hidden = desk.world.picture(), [], desk.world.files.look_hidden_directories

    def tell(places, *most):
        seen = look_hidden(places, *most)
        told.append(sum(len(one.entries) for one in seen.values()))
        return seen

    assert desk.recover().code is Exit.DONE
    make_directories_beside(desk, 50)
    monkeypatch.setattr(desk.world.files, "look_hidden_directories", tell)
    result = command(desk)
    assert (result.code, result.tables[0].problem.code) == (Exit.REFUSED, Code.TOO_MANY_HIDDEN)
    assert desk.world.picture() == before
    assert max(told) == 21


def test_the_control_directory_of_another_table_beside_is_none_of_ours():
    desk = make_desk("MANAGED_TABLE", columns=())
    desk.compact()
    desk.world.add_table(a_table((), kind="MANAGED_TABLE", name="other", create_time=5), {"": [1000] * 3})
    other = Desk(desk.world, "sales.other", backup_table=False)
    assert outcomes(other.compact()) == {"": "swapped"}


@pytest.mark.parametrize("create_time", [5, 6], ids=["of the same second", "of another time"])
@pytest.mark.parametrize("command", [Desk.recover, Desk.rollback, Desk.verify, Desk.cleanup, Desk.compact])
def test_the_records_of_another_table_that_is_still_there_are_refused(command, create_time):
    """A tenant renames a victim's control directory into a table of its own."""
    desk = make_desk()
    desk.compact()
    world = desk.world
    world.add_table(a_table(["dt"], name="mine", create_time=create_time), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    mine = Desk(world, "sales.mine", backup_table=False)
    if command is Desk.recover:
        desk.append("dt=1", "x", "y", "z")
        kill_in_the_gap(desk)
    world.files.writer.rename_into(desk.control.top, mine.control.top)
    before = {path: content for path, content in world.picture().items() if isinstance(content, DataFile)}
    result = command(mine)
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.OTHER_TABLE)
    assert TABLE in result.tables[0].problem.what
    after = {path: content for path, content in world.picture().items() if isinstance(content, DataFile)}
    assert {*map(names.base, after)} == {*map(names.base, before)}
    assert world.rows_of("sales.mine") == Counter(f"mine/dt={unit}/{n}" for unit, count in ((1, 3), (2, 2)) for n in range(count))


def test_runs_on_a_table_that_was_created_again_are_not_passed_over_in_silence():
    desk = make_desk()
    desk.compact()
    stored, partitions = desk.world.catalog.tables[TABLE], dict(desk.world.catalog.partitions[TABLE])
    desk.world.catalog.drop_table(TABLE)
    desk.world.catalog.add_table(replace(stored, create_time=99), partitions.values())
    for result in (desk.rollback(), desk.rollback(dry_run=True)):
        assert result.code is Exit.REFUSED
        assert {unit.why.code for unit in result.tables[0].units} == {Code.TABLE_CREATED_AGAIN}
    verified = desk.verify()
    assert (verified.code, verified.tables[0].problem.code) == (Exit.REFUSED, Code.TABLE_CREATED_AGAIN)
    assert store.read_history(desk.world.cluster, ControlPaths.of(stored.location, True)).standing


def test_the_table_of_a_former_name_is_read_once_whatever_number_of_tables_have_had_it(monkeypatch):
    """One that was created again each night, and then renamed; one of that name may take long to read now."""
    desk = make_desk()
    catalog, lives = desk.world.catalog, 6
    for create_time in range(5, 5 + lives):
        catalog.put_table(replace(catalog.tables[TABLE], create_time=create_time))
        desk.append("dt=1", f"of {create_time}")
        assert desk.compact().code is Exit.DONE
    assert len({run.table_id for run in desk.log().runs}) == lives
    carry_out(Hive(desk.world).rename_table(TABLE, RENAMED))
    desk.world.add_table(a_table(["dt"], create_time=99, location="hdfs://nn/elsewhere"), {})
    asked, tables = [], desk.world.metastore.tables
    monkeypatch.setattr(desk.world.metastore, "tables", lambda database, some: asked.extend(some) or tables(database, some))
    desk.table = RENAMED
    assert desk.cleanup(dry_run=True).code is Exit.DONE
    assert 0 < asked.count("events") < lives


# ---- a partition at a place of its own


def make_desk_elsewhere(kind, **parameters):
    """dt=1 lies where its name does not say, as after a rename of an external partition."""
    world = World()
    table = a_table(["dt"], kind=kind, parameters=parameters, create_time=5)
    world.add_table(table, {"dt=2": [1000] * 2})
    live = f"{table.location}/2026/01"
    world.catalog.add_partition(TABLE, a_partition("dt=1", live, table.storage))
    for number in range(3):
        world.add_file(f"{live}/part-{number}.parquet", [f"events/dt=1/{number}"])
    world.files.namespace.advance(3_600_000)
    return Desk(world, backup_table=False)


STATEMENTS = {
    "rename partition": lambda hive: hive.rename_partition(TABLE, "dt=1", "dt=9"),
    "drop partition": lambda hive: hive.drop_partition(TABLE, "dt=1"),
    "set location": lambda hive: hive.set_location(TABLE, "dt=1", "hdfs://nn/elsewhere"),
    "drop and create": lambda hive: hive.drop_and_create(TABLE),
}


@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "MANAGED_TABLE"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_run_killed_over_a_partition_at_its_own_place_is_settled_whatever_changed_in_the_outage(statement, kind):
    desk = make_desk_elsewhere(kind)
    kill_in_the_gap(desk)
    rows = desk.world.rows_anywhere().keys()
    carry_out(STATEMENTS[statement](Hive(desk.world)))
    first = desk.recover()
    assert first.tables[0].problem is None or first.tables[0].problem.code is Code.CHANGED_IN_OUTAGE
    assert desk.recover().code is Exit.DONE
    if (statement, kind) != ("drop and create", "MANAGED_TABLE"):
        assert rows == desk.world.rows_anywhere().keys()


def test_a_partition_at_its_own_place_that_discovery_dropped_in_the_gap_is_put_back():
    desk = make_desk_elsewhere("EXTERNAL_TABLE", **{"discover.partitions": "true"})
    kill_in_the_gap(desk)
    desk.world.catalog.drop_partition(TABLE, "dt=1")
    assert desk.recover().code is Exit.DONE
    assert rows_in("dt=1") - desk.world.rows_of(TABLE) == Counter()


# ---- tables that were created in the same second


@pytest.mark.parametrize("more_columns", [(), (Column("b", "string"),)], ids=["alike", "of other columns"])
def test_the_interrupted_run_of_a_dropped_table_of_the_same_second_is_not_recovered_into_another(more_columns):
    """Also where an operator moves its records there."""
    world = World()
    table, other = (a_table((), kind="MANAGED_TABLE", name=name, create_time=5) for name in ("events", "other"))
    world.add_table(table, {"": [1000] * 3})
    world.add_table(replace(other, columns=(*other.columns, *more_columns)), {"": [1000] * 3})
    former = Desk(world, "sales.other", backup_table=False)
    former.kill_before(["rename_exact", f"/ready/u00001 {other.location}"], former.compact)
    world.catalog.drop_table("sales.other")
    desk = Desk(world, backup_table=False)
    desk.runs = former.runs
    before = world.rows_of(TABLE)
    world.files.writer.rename_into(ControlPaths.of(other.location, False).top, desk.control.top)
    for command in (desk.recover, desk.compact, desk.rollback, desk.recover):
        command()
        assert world.rows_of(TABLE) == before


def two_tables(*more_columns):
    """Two tables of one script, so of one second, the first with a control directory beside it."""
    world = World()
    for name, more in (("other", more_columns), ("events", ())):
        table = a_table((), kind="MANAGED_TABLE", name=name, create_time=5)
        world.add_table(replace(table, columns=(*table.columns, *more)), {"": [1000] * 3})
    other = Desk(world, "sales.other", backup_table=False)
    assert outcomes(other.compact()) == {"": "swapped"}
    world.files.namespace.advance(3_600_000)
    return world, Desk(world, backup_table=False)


def test_records_of_a_table_that_is_still_there_elsewhere_are_not_what_a_rename_left_behind():
    """`ALTER TABLE other SET LOCATION`, by whoever may alter that one table, would stop all others of its second."""
    world, desk = two_tables()
    world.catalog.tables["sales.other"] = replace(world.table("sales.other"), location="hdfs://nn/warehouse/sales/elsewhere")
    assert outcomes(desk.compact()) == {"": "swapped"}


def test_records_of_a_dropped_table_of_the_same_second_with_other_columns_are_not_what_a_rename_left_behind():
    world, desk = two_tables(Column("more", "int"))
    world.catalog.drop_table("sales.other")
    assert outcomes(desk.compact()) == {"": "swapped"}


def test_a_table_that_only_looks_like_a_dropped_one_of_the_same_second_is_not_told_to_take_its_records_alone():
    world, desk = two_tables()
    world.catalog.drop_table("sales.other")
    problem = desk.compact().tables[0].problem
    assert problem.code is Code.LEFT_BEHIND
    assert "renamed from sales.other" in problem.what
    assert "if it never had that name" in problem.next


@pytest.mark.parametrize(("columns", "is_former"), [(("dt",), True), (("dt", "hour"), False), (("region",), False)])
def test_the_log_of_a_dropped_table_of_the_same_second_is_not_that_of_one_with_other_partition_columns(columns, is_former):
    desk = make_desk()
    desk.compact()
    stored, partitions = desk.world.table(TABLE), desk.world.partitions(TABLE).values()
    desk.world.catalog.drop_table(TABLE)
    # A column that was added since tells nothing.
    changed = replace(stored, name="events2", columns=(*stored.columns, Column("more", "int")))
    changed = replace(changed, partition_columns=tuple(Column(name, "string") for name in columns))
    desk.world.catalog.add_table(changed, partitions if is_former else [])
    desk.table = RENAMED
    units = desk.rollback().tables[0].units
    assert {unit.why and unit.why.code for unit in units} == ({None} if is_former else {Code.TABLE_CREATED_AGAIN})


@pytest.mark.parametrize("backup_table", [False, True])
def test_a_table_created_at_the_place_of_a_dropped_one_is_told_of_its_interrupted_run(backup_table):
    desk = make_desk()
    desk.settings = replace(desk.settings, backup_table=backup_table)
    kill_in_the_gap(desk)
    table, partitions = desk.world.table(TABLE), desk.world.partitions(TABLE).values()
    carry_out(Hive(desk.world).drop_table(TABLE))
    desk.world.catalog.add_table(replace(table, name="events2", create_time=104), partitions)
    desk.table = RENAMED
    problem = desk.recover().tables[0].problem
    assert problem.code is Code.CHANGED_IN_OUTAGE
