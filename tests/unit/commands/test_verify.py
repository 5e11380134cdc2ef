"""verify on the fakes: it finds what is lost or changed, reports nothing worse than is true, and writes nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import per_table
from hivekeeper.commands.verify import verify
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.report import screen
from hivekeeper.steps import table_lock
from support.builders import PARQUET, a_partition, a_table
from support.contexts import a_context
from support.desk import Desk, desk_by, outcomes
from support.fakes.rows import FORM, DataFile, FakeRows
from support.hive_statements import Hive
from support.world import World

LEVELS = ["count", "digest", "rows"]
UNITS = ("dt=1", "dt=2", "dt=3")
VERIFIED = dict.fromkeys(UNITS, "verified")


def unit_of(result, name="dt=1"):
    (unit,) = [unit for unit in result.tables[0].units if unit.name == name]
    return unit


def compacted_file(desk, unit="dt=1"):
    """The one file that compact-swap wrote."""
    (path,) = [path for path in desk.world.files.contents(desk.live(unit)) if desk.runs[0] in path]
    return path


def replace_rows(desk, path, change):
    """Change a file's rows but not its name, length, id or times: only its content gives the change away."""
    node = desk.world.files.namespace.file(path)
    node.content = DataFile(change(node.content.rows))


def assert_found(result, names_of_units=UNITS):
    assert result.code is Exit.DONE, screen.render(result)
    assert outcomes(result) == dict.fromkeys(names_of_units, "verified")


# ---- what is fine


@pytest.mark.parametrize("level", LEVELS)
def test_right_after_a_compaction_every_unit_is_verified(desk, level):
    desk.compact()
    result = desk.verify(level=level)
    assert_found(result)
    unit = unit_of(result)
    assert (unit.rows, unit.files_before, unit.files_after, unit.late_files, unit.of_run) == (3, 3, 1, (), desk.runs[0])


@pytest.mark.parametrize("level", LEVELS)
def test_an_unpartitioned_table_is_verified(world, level):
    world.add_table(a_table(name="flat"), {"": [1000] * 3})
    desk = Desk(world, "sales.flat")
    desk.compact()
    assert_found(desk.verify(level=level), ("",))


@pytest.mark.parametrize("level", LEVELS)
def test_what_came_later_is_counted_and_named(desk, level):
    desk.compact()
    desk.append("dt=1", "a", "b")
    result = desk.verify(level=level)
    assert_found(result)
    assert unit_of(result).late_files == ("a.parquet", "b.parquet")
    assert unit_of(result).rows == 3


@pytest.mark.parametrize("level", LEVELS)
def test_an_older_run_is_followed_through_the_runs_stacked_on_it(desk, level):
    desk.compact()
    desk.append("dt=1", "a", "b", "c")
    desk.compact()
    desk.append("dt=1", "d")
    result = desk.verify(desk.runs[0], level)
    assert_found(result)
    assert (unit_of(result).rows, unit_of(result).of_run) == (3, desk.runs[0])
    assert unit_of(result).late_files == ("a.parquet", "b.parquet", "c.parquet", "d.parquet")
    newest = unit_of(desk.verify(level=level))
    assert (newest.of_run, newest.rows, newest.late_files) == (desk.runs[1], 6, ("d.parquet",))


@pytest.mark.parametrize("level", LEVELS)
def test_a_record_is_verified_before_a_compaction_and_after_it(desk, level):
    desk.backup()
    record = desk.runs[0]
    desk.append("dt=1", "a")
    before = desk.verify(record, level)
    assert_found(before)
    assert unit_of(before).late_files == ("a.parquet",)
    desk.compact()
    desk.append("dt=1", "b", "c", "d")
    desk.compact()
    after = desk.verify(record, level)
    assert_found(after)
    assert (unit_of(after).rows, unit_of(after).late_files) == (3, ("a.parquet", "b.parquet", "c.parquet", "d.parquet"))


@pytest.mark.parametrize("level", LEVELS)
def test_after_a_cleanup_the_certificates_alone_are_the_evidence(desk, level):
    desk.compact()
    desk.cleanup()
    result = desk.verify(level=level)
    assert_found(result)
    assert unit_of(result).rows == 3


@pytest.mark.parametrize("level", LEVELS)
def test_after_a_cleanup_a_lost_row_is_found_by_the_certificate(desk, level):
    desk.compact()
    desk.cleanup()
    replace_rows(desk, compacted_file(desk), lambda rows: rows[1:])
    result = desk.verify(level=level)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")


def stacked_and_cleaned(desk, pinned):
    desk.compact()
    desk.append("dt=1", "a", "b", "c")
    desk.compact()
    if pinned is not None:
        desk.pin(desk.runs[pinned])
    desk.cleanup()


@pytest.mark.parametrize("level", LEVELS)
def test_after_a_cleanup_an_older_run_is_verified_by_certificates_too(desk, level):
    stacked_and_cleaned(desk, None)
    assert_found(desk.verify(desk.runs[0], level))


@pytest.mark.parametrize("which", [0, 1], ids=["older", "newer"])
def test_a_lost_row_is_found_by_a_run_from_before_the_table_was_renamed_too(which):
    """What the log does not hold of such a run any more is read again, under the former name."""
    desk = desk_by(["dt"])
    world = desk.world
    stacked_and_cleaned(desk, None)
    list(Hive(world).rename_table("sales.events", "sales.renamed"))
    desk.table = "sales.renamed"
    assert outcomes(desk.verify(desk.runs[which]))["dt=1"] == "verified"
    lost = next(path for path, one in world.picture().items() if isinstance(one, DataFile) and names.parent(path) == desk.live("dt=1"))
    world.files.writer.delete(lost)
    result = desk.verify(desk.runs[which])
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("pinned", [pytest.param(0, id="older"), pytest.param(1, id="newer")])
def test_with_one_of_two_backups_gone_the_older_run_is_verified_by_what_is_left(desk, level, pinned):
    stacked_and_cleaned(desk, pinned)
    assert_found(desk.verify(desk.runs[0], level))


@pytest.mark.parametrize("level", LEVELS)
def test_files_that_somebody_rewrote_with_the_same_rows_are_verified_with_a_note(desk, world, level):
    desk.compact()
    rows = tuple(world.rows_below(desk.live("dt=1")))
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": DataFile(rows)})
    result = desk.verify(level=level)
    assert_found(result)
    assert unit_of(result).why.code is Code.SAME_ROWS
    assert unit_of(result).reason.endswith("its rows are as many" if level == "count" else "its rows are the same")


def test_a_partition_that_was_dropped_is_no_error(desk, world):
    desk.compact()
    world.catalog.drop_partition(desk.table, "dt=2")
    result = desk.verify()
    assert (result.code, outcomes(result)["dt=2"]) == (Exit.DONE, "dropped")
    assert unit_of(result, "dt=2").why.code is Code.DROPPED


def test_a_unit_that_was_rolled_back_needs_no_comparison(desk):
    desk.compact()
    desk.rollback(where="dt = '2'")
    newest, named = desk.verify(), desk.verify(desk.runs[0])
    assert outcomes(newest) == {"dt=1": "verified", "dt=3": "verified"}
    assert outcomes(named) == {"dt=1": "verified", "dt=2": "undone", "dt=3": "verified"}
    assert named.code is Exit.DONE
    assert unit_of(named, "dt=2").why.code is Code.ALREADY_ROLLED_BACK


@pytest.mark.parametrize("level", LEVELS)
def test_a_rollback_is_verified_as_what_it_put_back(desk, level):
    desk.compact()
    desk.rollback()
    desk.append("dt=1", "later")
    result = desk.verify(desk.runs[1], level)
    assert_found(result)
    assert unit_of(result).late_files == ("later.parquet",)


@pytest.mark.parametrize("level", LEVELS)
def test_a_rollback_of_a_rollback_is_verified(desk, level):
    desk.compact()
    desk.rollback()
    desk.rollback(desk.runs[1])
    assert_found(desk.verify(level=level))


def test_a_run_that_is_in_force_again_is_not_called_rolled_back(desk):
    desk.compact()
    desk.rollback()
    desk.rollback(desk.runs[1])
    assert_found(desk.verify(desk.runs[0]))


def test_a_late_file_in_the_backup_is_mentioned(desk, world):
    desk.compact()
    world.add_file(f"{desk.control.run(desk.runs[0]).unit('retired', 1)}/late.parquet", ["late"])
    result = desk.verify()
    assert_found(result)
    assert unit_of(result).why.code is Code.LATE_IN_BACKUP


@pytest.mark.parametrize("level", LEVELS)
def test_a_record_of_compacted_files_is_verified_after_their_compaction_was_rolled_back(desk, level):
    desk.compact()
    desk.backup()
    desk.rollback()
    result = desk.verify(desk.runs[1], level)
    assert_found(result)
    assert unit_of(result).rows == 3


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("lost", [False, True])
def test_a_record_with_a_file_that_a_rollback_moved_over_is_verified_with_it(desk, world, level, lost):
    """It came after the run that was undone, so it stayed in live."""
    desk.compact()
    desk.append("dt=2", "late")
    desk.backup()
    record = desk.runs[1]
    desk.rollback(desk.runs[0])
    if lost:
        (late,) = (entry for entry in world.files.look([desk.live("dt=2")])[desk.live("dt=2")].entries if "late" in entry.name)
        world.files.writer.delete(late.path)
    result = desk.verify(record, level)
    assert outcomes(result)["dt=2"] == ("differs" if lost else "verified")
    assert lost or unit_of(result, "dt=2").rows == 4


def test_one_partition_is_verified_where_one_is_asked_for(desk):
    desk.compact()
    assert outcomes(desk.verify(where="dt = '2'")) == {"dt=2": "verified"}


def test_a_marker_that_a_later_writer_made_anew_is_nothing_to_speak_of(desk, world):
    world.add_file(f"{desk.live('dt=1')}/_SUCCESS", (), 0)
    world.files.namespace.advance(3_600_000)
    desk.compact()
    world.files.writer.delete(f"{desk.live('dt=1')}/_SUCCESS")
    desk.append("dt=1", "a")
    world.add_file(f"{desk.live('dt=1')}/_SUCCESS", (), 0)
    result = desk.verify()
    assert_found(result)
    assert unit_of(result).late_files == ("a.parquet",)


@pytest.mark.parametrize("level", LEVELS)
def test_files_replaced_after_their_backup_was_discarded_leave_nothing_to_compare(desk, world, level):
    desk.compact()
    desk.cleanup()
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": DataFile(("their", "own", "four", "rows"))})
    result = desk.verify(level=level)
    assert outcomes(result) == {**VERIFIED, "dt=1": "replaced"}
    assert unit_of(result).why.code is Code.NOTHING_LEFT_TO_COMPARE


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("left", [{}, {"theirs.parquet": DataFile(("one",))}], ids=["none", "one"])
def test_fewer_rows_than_the_certificate_tells_differ_after_the_backup_was_discarded_too(desk, world, level, left):
    desk.compact()
    desk.cleanup()
    world.files.writer.overwrite(desk.live("dt=1"), left)
    result = desk.verify(level=level)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")


@pytest.mark.parametrize("level", LEVELS)
def test_a_backup_that_somebody_removed_is_not_called_discarded(desk, world, level):
    """The reason tells how live compares with the run's certificate."""
    desk.compact()
    world.files.delete_tree(desk.control.run(desk.runs[0]).unit("retired", 1))
    result = desk.verify(level=level)
    assert (result.code, outcomes(result)) == (Exit.DIFFERENT, {**VERIFIED, "dt=1": "differs"})
    assert unit_of(result).why.code is Code.BACKUP_GONE
    said = "gone, and no cleanup has discarded it: compared with the run's certificate"
    assert unit_of(result).reason == f"the backup of run {desk.runs[0]} is {said}"
    replace_rows(desk, compacted_file(desk), lambda rows: rows[1:])
    result = desk.verify(level=level)
    assert unit_of(result).why.code is Code.ROWS_DIFFER
    assert unit_of(result).reason.endswith(said)


@pytest.mark.parametrize("level", LEVELS)
def test_after_a_cleanup_a_backup_that_somebody_removed_counts_as_discarded(desk, world, level):
    desk.compact()
    world.files.delete_tree(desk.control.run(desk.runs[0]).unit("retired", 1))
    desk.cleanup()
    assert_found(desk.verify(level=level))


def test_without_its_backup_an_overwritten_unit_differs(desk, world):
    desk.compact()
    world.files.delete_tree(desk.control.run(desk.runs[0]).unit("retired", 1))
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": DataFile(("their", "own", "four", "rows"))})
    result = desk.verify()
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")
    assert "no cleanup has discarded it" in unit_of(result).reason


@pytest.mark.parametrize("level", LEVELS)
def test_a_record_whose_compaction_was_rolled_back_misses_no_backup(desk, level):
    desk.backup()
    desk.compact()
    desk.rollback()
    assert_found(desk.verify(desk.runs[0], level))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("is_rolled_back", [False, True])
def test_a_record_overwritten_with_no_backup_of_it_left_differs(desk, world, level, is_rolled_back):
    """A rollback has brought back its files: no cleanup discarded them, and live had the only copy."""
    desk.backup()
    if is_rolled_back:
        desk.compact()
        desk.rollback()
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": DataFile(("their", "own", "four", "rows"))})
    result = desk.verify(desk.runs[0], level)
    assert (result.code, outcomes(result)) == (Exit.DIFFERENT, {**VERIFIED, "dt=1": "differs"})


@pytest.mark.parametrize("level", LEVELS)
def test_a_record_rolled_back_to_and_rewritten_with_the_same_rows_is_verified(desk, world, level):
    desk.backup()
    desk.compact()
    desk.rollback()
    rows = [row for path, file in world.files.contents(desk.live("dt=1")).items() for row in file.rows]
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": DataFile(tuple(rows))})
    result = desk.verify(desk.runs[0], level)
    assert (result.code, outcomes(result)) == (Exit.DONE, VERIFIED)
    assert "a rollback brought its files back to live" in unit_of(result).reason


# ---- what differs


def change_row(rows):
    return ("changed", *rows[1:])


def lose_row(rows):
    return rows[1:]


def double_row(rows):
    return (*rows, rows[0])


@pytest.mark.parametrize(("change", "missing", "more"), [(change_row, 1, 1), (lose_row, 1, 0), (double_row, 0, 1)])
def test_row_by_row_the_difference_is_shown(desk, change, missing, more):
    desk.compact()
    lost = world_file_rows(desk)[0]
    replace_rows(desk, compacted_file(desk), change)
    result = desk.verify(level="rows")
    assert result.code is Exit.DIFFERENT
    assert outcomes(result) == {**VERIFIED, "dt=1": "differs"}
    found = unit_of(result).differences
    assert (found.only_in_one, found.only_in_other) == (missing, more)
    assert found.examples_of_one == (({"row": lost},) if missing else ())
    shown = screen.render(result)
    assert f"{missing} rows only in the backup, {more} only in live; columns that differ: row" in shown
    assert f"only in {'backup' if missing else 'live'}: row={lost}" in shown


def world_file_rows(desk):
    return desk.world.files.content(compacted_file(desk)).rows


@pytest.mark.parametrize(
    ("level", "change"), [("count", lose_row), ("count", double_row), *(("digest", c) for c in (change_row, lose_row, double_row))]
)
def test_a_lost_a_doubled_and_a_changed_row_differ(desk, level, change):
    desk.compact()
    replace_rows(desk, compacted_file(desk), change)
    result = desk.verify(level=level)
    assert result.code is Exit.DIFFERENT
    assert outcomes(result) == {**VERIFIED, "dt=1": "differs"}
    assert "verify --level rows" in unit_of(result).next


def test_equal_counts_are_not_enough_for_a_digest(desk):
    """A column that only some files have values for can vanish with equal counts."""
    desk.compact()
    replace_rows(desk, compacted_file(desk), lambda rows: tuple(row.partition("/")[0] for row in rows))
    assert desk.verify(level="count").code is Exit.DONE
    result = desk.verify(level="digest")
    assert result.code is Exit.DIFFERENT
    assert unit_of(result).why.code is Code.ROWS_DIFFER


@pytest.mark.parametrize("level", LEVELS)
def test_later_arrivals_do_not_hide_a_lost_row(desk, level):
    desk.compact()
    desk.append("dt=1", "later")
    replace_rows(desk, compacted_file(desk), lose_row)
    assert outcomes(desk.verify(level=level))["dt=1"] == "differs"


@pytest.mark.parametrize("level", LEVELS)
def test_a_row_that_was_lost_below_a_newer_run_is_found(desk, level):
    """By then the older run's output is in the newer run's backup."""
    desk.compact()
    lost = compacted_file(desk)
    desk.append("dt=1", "a", "b", "c")
    replace_rows(desk, lost, lose_row)
    desk.compact()
    result = desk.verify(desk.runs[0], level)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")


@pytest.mark.parametrize("level", LEVELS)
def test_an_overwritten_unit_differs(desk, world, level):
    desk.compact()
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": DataFile(("theirs",))})
    result = desk.verify(level=level)
    assert result.code is Exit.DIFFERENT
    assert outcomes(result) == {**VERIFIED, "dt=1": "differs"}
    assert unit_of(result).why.code is Code.OVERWRITTEN_SINCE


@pytest.mark.parametrize("level", LEVELS)
def test_a_unit_without_its_directory_differs(desk, world, level):
    desk.compact()
    world.files.writer.delete(desk.live("dt=1"))
    assert outcomes(desk.verify(level=level))["dt=1"] == "differs"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("lost", ["one file", "all files", "the directory"])
def test_files_lost_since_a_record_differ(desk, world, level, lost):
    """Nothing was compacted in between: the record lists live's own files, and some of them are gone."""
    desk.backup()
    live = desk.live("dt=1")
    if lost == "the directory":
        world.files.writer.delete(live)
    for number in range({"one file": 1, "all files": 3, "the directory": 0}[lost]):
        world.files.writer.delete(f"{live}/part-{number:05d}.parquet")
    result = desk.verify(desk.runs[0], level)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")


@pytest.mark.parametrize("level", LEVELS)
def test_files_lost_between_a_record_and_a_compaction_differ(desk, world, level):
    desk.backup()
    world.files.writer.delete(f"{desk.live('dt=1')}/part-00000.parquet")
    desk.append("dt=1", "a", "b")
    desk.compact()
    result = desk.verify(desk.runs[0], level)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")


@pytest.mark.parametrize("level", ["digest", "rows"])
def test_an_overwrite_between_two_runs_is_found_behind_the_newer_one(desk, world, level):
    desk.compact()
    world.files.writer.overwrite(desk.live("dt=1"), {f"{n}.parquet": DataFile((f"theirs {n}",)) for n in range(3)})
    world.files.namespace.advance(3_600_000)
    desk.compact()
    assert outcomes(desk.verify(level=level)) == VERIFIED
    result = desk.verify(desk.runs[0], level)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")


@pytest.mark.parametrize("level", LEVELS)
def test_a_backup_that_lost_a_file_is_not_called_verified(desk, world, level):
    desk.compact()
    world.files.writer.delete(f"{desk.control.run(desk.runs[0]).unit('retired', 1)}/part-00001.parquet")
    result = desk.verify(level=level)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")
    assert unit_of(result).why.code is Code.BACKUP_CHANGED


def test_a_changed_location_differs(desk, world):
    desk.compact()
    elsewhere = f"{names.parent(desk.live())}/elsewhere"
    world.files.writer.make_directory(elsewhere)
    world.catalog.put_partition(desk.table, a_partition("dt=1", elsewhere, PARQUET))
    result = desk.verify()
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DIFFERENT, "differs")
    assert unit_of(result).why.code is Code.MOVED


@pytest.mark.parametrize("level", LEVELS)
def test_a_location_that_was_changed_since_a_record_differs(desk, world, level):
    desk.backup()
    elsewhere = f"{names.parent(desk.live())}/elsewhere"
    world.files.writer.make_directory(elsewhere)
    world.catalog.put_partition(desk.table, a_partition("dt=1", elsewhere, PARQUET))
    assert outcomes(desk.verify(desk.runs[0], level))["dt=1"] == "differs"


def test_a_file_that_cannot_be_read_differs(desk, world):
    desk.compact()
    world.files.namespace.file(compacted_file(desk)).content = "not a data file"
    result = desk.verify()
    assert outcomes(result)["dt=1"] == "differs"
    assert unit_of(result).why.code is Code.UNREADABLE_FILE


# ---- what allows no comparison


def test_a_table_that_was_made_anew_is_not_compared_with_its_predecessors_backup(desk, world):
    desk.compact()
    table, partitions = world.catalog.tables[desk.table], dict(world.catalog.partitions[desk.table])
    world.catalog.drop_table(desk.table)
    world.catalog.add_table(replace(table, create_time=table.create_time + 99), partitions.values())
    world.files.writer.overwrite(desk.live("dt=1"), {"new.parquet": DataFile(("new",))})
    assert "differs" not in outcomes(desk.verify()).values()
    named = desk.verify(desk.runs[0])
    assert named.code is Exit.DONE
    assert {unit.why.code for unit in named.tables[0].units} == {Code.TABLE_CREATED_AGAIN}


def test_a_compaction_that_was_interrupted_is_not_taken_for_an_overwriter(desk):
    desk.compact()
    desk.append("dt=1", "a", "b", "c")

    desk.kill_before(["log/"], desk.compact)
    result = desk.verify()
    assert result.code is Exit.LOCKED
    assert result.tables[0].problem.code is Code.RUN_UNFINISHED
    assert desk.runs[1] in result.tables[0].problem.what
    assert "hivekeeper recover" in result.tables[0].problem.next
    desk.recover()
    assert_found(desk.verify())


def test_an_unknown_run_is_refused(desk):
    desk.compact()
    result = desk.verify("20990101t000000z-ffff")
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NO_SUCH_RUN


def test_an_unknown_run_of_a_table_without_a_log_is_refused(desk):
    assert desk.verify("20990101t000000z-ffff").code is Exit.REFUSED


def test_a_run_that_left_no_backup_is_refused(desk):
    desk.compact()
    desk.pin(desk.runs[0])
    result = desk.verify(desk.runs[1])
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NOTHING_OF_THIS_RUN


def test_a_record_that_was_discarded_is_refused(desk):
    desk.backup()
    desk.cleanup()
    result = desk.verify(desk.runs[0])
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NOTHING_OF_THIS_RUN


def test_a_table_without_a_log_has_nothing_to_verify(desk):
    result = desk.verify()
    assert (result.code, result.tables[0].units) == (Exit.DONE, ())
    assert screen.render(result) == "sales.events: nothing to verify: no run has changed it"


def test_where_a_record_is_all_there_is_the_answer_does_not_say_verified(desk):
    desk.backup()
    assert desk.verify().tables[0].units == ()


# ---- what it leaves alone


@pytest.mark.parametrize("level", LEVELS)
def test_verify_writes_nothing(desk, world, level):
    desk.backup()
    desk.compact()
    desk.append("dt=1", "a", "b", "c")
    desk.compact()
    desk.cleanup(Settings(min_age_ms=0, keep_latest_versions=1))
    picture, steps, events = world.picture(), world.files.steps, list(world.catalog.events)
    desk.verify(level=level)
    desk.verify(desk.runs[2], level)
    desk.verify("20990101t000000z-ffff", level)
    assert (world.picture(), world.files.steps, world.catalog.events) == (picture, steps, events)


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_rollback_of_a_rollback_brought_back_is_proved_by_the_certificate_after_a_cleanup(desk, level):
    desk.compact()
    desk.rollback()
    desk.rollback(desk.runs[1])
    desk.cleanup()
    result = desk.verify(level=level)
    assert_found(result)
    assert unit_of(result).rows == 3


def test_a_row_that_changed_after_a_rollback_of_a_rollback_differs_from_the_certificate(desk, world):
    desk.compact()
    desk.rollback()
    desk.rollback(desk.runs[1])
    desk.cleanup()
    file = world.files.namespace.file(compacted_file(desk))
    file.content = replace(file.content, rows=change_row(file.content.rows))
    assert outcomes(desk.verify())["dt=1"] == "differs"


@pytest.mark.parametrize("level", ["digest", "rows"])
def test_no_file_is_read_twice_for_its_content(desk, world, level):
    """By rows once by our own reader, which knows bounds, and once by Spark's."""
    read = []

    class Counting(FakeRows):
        def digests(self, format, sets):
            read.extend(("digest", file.path) for files in sets.values() for file in files)
            return super().digests(format, sets)

        def differences(self, format, one, other, limit):
            read.extend(("rows", path) for group in (*one, *other) for path in group.rows)
            return super().differences(format, one, other, limit)

    desk.compact()
    desk.append("dt=1", "a", "b", "c")
    desk.compact()
    world.cluster = replace(world.cluster, rows=Counting(world.files))
    assert_found(desk.verify(desk.runs[0] if level == "rows" else None, level))
    assert read
    assert len(read) == len(set(read))


def test_the_same_values_that_readers_understand_otherwise_differ(desk, world):
    """Somebody replaced the files: equal stored values may be microseconds or nanoseconds."""
    desk.compact()
    rows = tuple(world.rows_below(desk.live("dt=1")))
    form = replace(FORM, schema=FORM.schema.replace("(STRING)", "(JSON)"))
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": DataFile(rows, form)})
    result = desk.verify()
    assert (outcomes(result)["dt=1"], unit_of(result).why.code) == ("differs", Code.ROWS_DIFFER)


class Microseconds(FakeRows):
    """Reads rows as Spark does, without the last three digits of a second."""

    def _counts(self, groups):
        return Counter({row[:15]: count for row, count in super()._counts(groups).items()})


def test_nanoseconds_that_somebody_cut_off_differ_though_spark_reads_the_same_rows(desk, world):
    """An INSERT OVERWRITE by Spark, for instance: a cleanup that waits for a verify would discard the only ones."""
    hazard = "the timestamps of t have nanoseconds; Spark keeps microseconds"
    times = ("12:00:00.123456789", "12:00:01.123456789")
    world.files.writer.overwrite(desk.live("dt=1"), {f"{row[7]}.parquet": DataFile((row,), hazard=hazard) for row in times})
    desk.compact()
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": DataFile(tuple(row[:15] for row in times))})
    world.cluster = replace(world.cluster, rows=Microseconds(world.files))
    result = desk.verify(level="rows")
    assert (outcomes(result)["dt=1"], unit_of(result).why.code) == ("differs", Code.OVERWRITTEN_SINCE)
    assert "somebody replaced its files" in unit_of(result).reason
    assert f"its rows are the same for Spark, but not as they are stored: {hazard}" in unit_of(result).reason


@pytest.mark.parametrize("is_cut", [False, True])
def test_nanoseconds_are_said_to_be_cut_off_beside_another_row_only_where_live_has_none(desk, world, is_cut):
    """Its owner added a row to its own. Nobody can tell whether those are as they were, so a cleanup that needs a verify keeps them."""
    hazard = "the timestamps of t have nanoseconds; Spark keeps microseconds"
    times = ("12:00:00.123456789", "12:00:01.123456789")
    world.files.writer.overwrite(desk.live("dt=1"), {f"{row[7]}.parquet": DataFile((row,), hazard=hazard) for row in times})
    rules = requiring(desk)
    desk.compact()
    rows = (*times, "12:00:02.123456789")
    theirs = DataFile(tuple(row[:15] for row in rows)) if is_cut else DataFile(rows, hazard=hazard)
    world.files.writer.overwrite(desk.live("dt=1"), {"theirs.parquet": theirs})
    world.cluster = replace(world.cluster, rows=Microseconds(world.files))
    result = desk.verify(level="rows")
    assert (result.code, outcomes(result)["dt=1"], unit_of(result).why.code) == (Exit.DIFFERENT, "differs", Code.OVERWRITTEN_SINCE)
    cut_off = f"its rows are the same for Spark, but not as they are stored: {hazard}"
    unknown = f"its rows are among those of live for Spark, but {hazard}, so they cannot be compared by rows"
    assert "somebody replaced its files" in unit_of(result).reason
    assert (cut_off in unit_of(result).reason, unknown in unit_of(result).reason) == (is_cut, not is_cut)
    assert [name for name, _ in desk.cleanup(rules).tables[0].backups[0].kept_units] == ["dt=1"]


# ---- what a cleanup requires


def requiring(desk):
    desk.settings = replace(desk.settings, min_age_ms=0, cleanup_requires="verified")
    return desk.settings


def states(result):
    return [one.state.code for one in result.tables[0].backups]


def test_a_backup_that_must_be_verified_goes_after_a_verify_only(desk):
    rules = requiring(desk)
    desk.compact()
    assert states(desk.cleanup(rules)) == ["kept"]
    assert desk.verify(level="count").tables[0].log_version is None
    assert states(desk.cleanup(rules)) == ["kept"]
    result = desk.verify()
    assert (result.code, result.tables[0].log_version, desk.log().runs[-1].operation) == (Exit.DONE, 1, "verify")
    assert desk.run_directories() == [desk.runs[0]]
    assert states(desk.cleanup(rules)) == ["discarded"]


def test_what_differs_is_not_recorded_and_stays(desk):
    rules = requiring(desk)
    desk.compact()
    desk.world.files.writer.overwrite(desk.live("dt=1"), {"new.parquet": DataFile(("new",))})
    assert desk.verify().code is Exit.DIFFERENT
    desk.cleanup(rules)
    assert {effect.partition for effect in desk.log().standing} == {"dt=1"}


def test_without_that_rule_verify_writes_nothing(desk):
    desk.compact()
    before = desk.world.picture()
    assert desk.verify().tables[0].log_version is None
    assert desk.world.picture() == before


@pytest.mark.parametrize("why", ["locked", "denied"])
def test_a_verify_that_cannot_be_recorded_answers_all_the_same(desk, why, caplog):
    requiring(desk)
    desk.compact()
    if why == "denied":
        desk.world.files.namespace.denied.add(desk.control.runs)
        result = desk.verify()
    else:
        with table_lock.hold_table(
            desk.world.another_process(), desk.world.table(desk.table), desk.control, "20260101t050000z-0000", desk.settings
        ):
            result = desk.verify()
    assert (result.code, set(outcomes(result).values())) == (Exit.DONE, {"verified"})
    assert [run.operation for run in desk.log().runs] == ["compact-swap"]
    assert any("step=record-verified failed" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("level", ["digest", "rows"])
def test_only_what_was_itself_compared_is_recorded_as_verified(desk, level):
    """Somebody's rows came and went between two backups: the older one and live hold the same, the newer
    one holds the only copy of theirs.
    """
    rules = requiring(desk)
    rows = tuple(desk.world.rows_below(desk.live("dt=1")))
    desk.compact()
    desk.world.files.writer.overwrite(desk.live("dt=1"), {f"{name}.parquet": DataFile((name,)) for name in "abc"})
    desk.compact(where="dt='1'")
    desk.world.files.writer.overwrite(desk.live("dt=1"), {"again.parquet": DataFile(rows)})
    assert outcomes(desk.verify(desk.runs[0], level))["dt=1"] == "verified"
    desk.cleanup(rules)
    assert desk.runs[1] in {effect.run for effect in desk.log().standing}


@pytest.mark.parametrize(
    ("mark", "code"),
    [
        ("udt", Code.USER_DEFINED_TYPE),
        ("sql", Code.USER_DEFINED_TYPE),
        ("variable", Code.VARIABLE_IN_SCHEMA),
        ("columns", Code.OTHER_COLUMNS),
    ],
)
def test_files_that_name_code_for_spark_or_other_columns_are_not_compared_by_rows(desk, world, mark, code):
    desk.compact()
    file = world.files.namespace.find(compacted_file(desk))
    said = (f"org.apache.spark.sql.parquet.row.metadata#{mark}#0a1b2c",)
    file.content = replace(file.content, form=replace(file.content.form, keys=said))
    result = desk.verify(level="rows")
    assert (result.code, unit_of(result).why.code) == (Exit.DIFFERENT, code)
    assert desk.verify(level="digest").code is Exit.DONE


@pytest.mark.parametrize("mark", ["udt", "sql", "variable", "columns"])
def test_files_without_rows_are_compared_whatever_their_footers_say(desk, world, mark):
    """Of another form, so a group of their own: nothing of them is read."""
    said = (f"org.apache.spark.sql.parquet.row.metadata#{mark}#0a1b2c",)
    world.add_file(f"{desk.live('dt=1')}/empty.parquet", [], form=replace(FORM, keys=said))
    desk.compact()
    assert outcomes(desk.verify(level="rows"))["dt=1"] == "verified"


def test_the_examples_of_thousands_of_partitions_are_not_all_held():
    """Twenty of a unit, of a million characters each (cluster/differences.py), whose files take a few bytes: a thousand partitions that
    somebody has overwritten take 20 GB in the driver.
    """
    world, units = World(), [f"dt={number}" for number in range(60)]
    world.add_table(a_table(["dt"]), {})
    desk = Desk(world)
    for unit in units:
        world.make_partition(desk.table, unit)
        for file in "ab":
            world.add_file(f"{desk.live(unit)}/{file}.parquet", [f"{unit}-{file}-{row}" + "x" * 20_000 for row in range(5)])
    world.files.namespace.advance(3_600_000)
    desk.compact()
    for unit in units:
        world.overwrite(desk.live(unit), "new.parquet", [f"{unit}-{row}" + "y" * 20_000 for row in range(10)], whole=False)
    (table,) = desk.verify(level="rows").tables
    found = [unit.differences for unit in table.units if unit.differences]
    assert len(table.units) == len(units) and found
    held = sum(len(text) for one in found for row in (*one.examples_of_one, *one.examples_of_other) for text in row.values())
    assert held < 20 * 20 * 20_000, f"{held:,} characters"


def test_the_names_of_a_million_files_that_came_later_are_not_held_of_all_tables(monkeypatch):
    """Up to max_files (2,000,000) of each table, of 255 characters each."""
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", 200 * 250)
    world, tables, files = World(), 8, 200
    for number in range(tables):
        world.add_table(a_table(name=f"t{number}", location=f"hdfs://nn/warehouse/sales.db/t{number}"), {"": [1000] * 3})
        Desk(world, f"sales.t{number}").compact()
        for file in range(files):
            world.add_file(f"hdfs://nn/warehouse/sales.db/t{number}/{file}{'x' * 240}", ["later"])
    result = verify(a_context(world.cluster, Selection(databases=("sales",)), "20260201t000000z-0000"))
    assert [len(table.units) for table in result.tables] == [1] * tables
    held = sum(len(name) for table in result.tables for unit in table.units for name in unit.late_files)
    assert held < 2 * files * 250, f"{held:,} characters"
    assert sum(unit.late_count for table in result.tables for unit in table.units) == tables * files


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("older", [False, True])
def test_one_of_the_files_of_a_run_that_is_gone_is_missed_whatever_rows_came_since(level, older):
    """Its backup is discarded, and all of live has more rows than the backup had: but not everything was replaced."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 60})
    desk = Desk(world, block_bytes=25_000, exchange="directory")
    desk.compact()
    written = sorted(world.files.contents(desk.live("dt=1")))
    assert len(written) > 1
    desk.cleanup()
    world.files.writer.delete(written[0])
    desk.append("dt=1", *(f"row{nth}" for nth in range(60)))
    if older:
        desk.compact()
        desk.cleanup()
    result = desk.verify(desk.runs[0], level=level)
    assert (result.code, outcomes(result)) == (Exit.DIFFERENT, {"dt=1": "differs"})
