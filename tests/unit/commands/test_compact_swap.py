"""compact-swap on the fakes: what is left in the world, and what the operator is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection, Ties
from hivekeeper.names import ControlPaths
from hivekeeper.ports import FilesUnavailable, MetastoreUnavailable, NoPermission
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps.stage import MOST_FAILED_JOBS_IN_A_ROW
from support.builders import FORM as OTHER_FORM
from support.builders import MIB, a_table
from support.contexts import a_context
from support.desk import Desk
from support.fakes.files import FakeFiles, Killed
from support.fakes.rows import FORM, DataFile, FakeRows
from support.world import World

EVENTS = ("sales.events",)
QUIET = Settings(min_quiet_ms=0)
UNREADABLE_FORM = replace(OTHER_FORM, undecodable=("pages encoded with BYTE_STREAM_SPLIT",))
HOUR_MS = 3_600_000


@pytest.fixture
def world():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3, "dt=3": [1000] * 3})
    return world


def compact(world, settings=QUIET, run=1, cluster=None, dry_run=False, **selected):
    selected = selected or {"tables": EVENTS}
    run_id = f"20260101t0203{run:02d}z-0000"
    return compact_swap(a_context(cluster or world.cluster, Selection(**selected), run_id, settings, dry_run=dry_run))


def outcomes(result, table=0):
    return {unit.name: unit.outcome.code for unit in result.tables[table].units}


def live_of(world, unit="", table="sales.events"):
    location = world.catalog.tables[table].location
    return names.join(location, unit) if unit else location


def files_in(world, unit="", table="sales.events"):
    """The number of data files that a reader of a unit opens."""
    entries = world.files.look([live_of(world, unit, table)])[live_of(world, unit, table)].entries
    return len([entry for entry in entries if not entry.is_dir and not names.is_hidden(entry.name)])


def control_of(world, table="sales.events"):
    stored = world.catalog.tables[table]
    return ControlPaths.of(world.files.qualify(stored.location), stored.partitioned)


def part_of(picture, directory):
    return {path: content for path, content in picture.items() if path.startswith(directory + "/")}


# -- done ---------------------------------------------------------------------------------------------------


def test_every_unit_has_one_file_with_the_same_rows_and_the_old_files_are_kept(world):
    before, old = world.rows_of("sales.events"), set(world.picture())
    result = compact(world)
    assert result.code is Exit.DONE
    assert outcomes(result) == {"dt=1": "swapped", "dt=2": "swapped", "dt=3": "swapped"}
    assert [files_in(world, f"dt={day}") for day in (1, 2, 3)] == [1, 1, 1]
    assert world.rows_of("sales.events") == before
    retired = [path for path in world.picture() if "/retired/" in path]
    assert Counter(map(names.base, retired)) == Counter(map(names.base, old))
    assert store.read_history(world.cluster, control_of(world)).finished == {result.run}


def test_an_unpartitioned_table_is_swapped_as_a_whole_and_keeps_its_marker():
    world = World()
    world.add_table(a_table(), {"": [1000] * 4})
    world.add_file(f"{live_of(world)}/_SUCCESS", (), 0)
    world.files.namespace.advance(HOUR_MS)
    before = world.rows_of("sales.events")
    assert compact(world).code is Exit.DONE
    assert files_in(world) == 1
    assert f"{live_of(world)}/_SUCCESS" in world.picture()
    assert world.rows_of("sales.events") == before


def test_the_metastore_gets_the_new_sizes(world):
    compact(world)
    parameters = world.catalog.partitions["sales.events"]["dt=1"].parameters
    assert (parameters["numFiles"], parameters["totalSize"]) == ("1", "3000")


def test_a_second_run_finds_nothing_to_do_and_leaves_no_trace(world):
    compact(world)
    after = world.picture()
    second = compact(world, run=2)
    assert (second.code, second.tables[0].units, second.tables[0].run) == (Exit.DONE, (), None)
    assert part_of(world.picture(), control_of(world).runs) == part_of(after, control_of(world).runs)
    assert part_of(world.picture(), control_of(world).log) == part_of(after, control_of(world).log)


def test_nothing_to_do_makes_no_control_directory():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [128 * MIB], "dt=2": []})
    result = compact(world)
    assert (result.code, outcomes(result)) == (Exit.DONE, {})
    assert world.files.steps == 0


def test_max_units_takes_the_most_profitable(world):
    world.add_file(f"{live_of(world, 'dt=2')}/part-9.parquet", ["one more"])
    world.files.namespace.advance(HOUR_MS)
    assert outcomes(compact(world, replace(QUIET, max_units=1))) == {"dt=2": "swapped"}
    assert [files_in(world, f"dt={day}") for day in (1, 2, 3)] == [3, 1, 3]


def test_where_chooses_partitions(world):
    result = compact(world, tables=EVENTS, where="dt = '3'")
    assert outcomes(result) == {"dt=3": "swapped"}
    assert [files_in(world, f"dt={day}") for day in (1, 2, 3)] == [3, 3, 1]


def rows_known(world):
    return {one.name: one.parameters.get("numRows") for one in world.metastore.partitions(world.table("sales.events"))}


def test_row_counts_are_those_of_the_proof_where_asked_for(world):
    compact(world, replace(QUIET, analyze_stats=True), tables=EVENTS, where="dt <> '3'")
    counted = {f"dt={day}": str(sum(1 for row in world.rows_of("sales.events") if f"dt={day}" in str(row))) for day in (1, 2)}
    assert rows_known(world) == {**counted, "dt=3": None}


def test_row_counts_stay_as_they_are_where_nobody_asks(world):
    compact(world)
    assert rows_known(world) == dict.fromkeys(["dt=1", "dt=2", "dt=3"])


def test_rows_that_came_late_are_not_counted_so_the_number_stays_as_it_is(world):
    live, late = live_of(world, "dt=2"), DataFile(("late",))

    def write_late(step):
        if step.startswith(f"rename_exact {live} "):
            world.files.writer.add(f"{live}/late.parquet", late, 10)

    world.files.before_step = write_late
    result = compact(world, replace(QUIET, analyze_stats=True))
    assert [unit.name for unit in result.tables[0].units if unit.late_files] == ["dt=2"]
    known = rows_known(world)
    assert (known.pop("dt=2"), None in known.values()) == (None, False)


def test_sorted_rows_are_the_same_rows(world):
    before = world.rows_of("sales.events")
    assert compact(world, replace(QUIET, sort_columns=("row",))).code is Exit.DONE
    assert world.rows_of("sales.events") == before


def test_batches_are_bounded_and_all_of_them_are_done(world):
    result = compact(world, replace(QUIET, batch_units=2))
    assert result.code is Exit.DONE
    assert len([path for path in world.picture() if "/certificates-" in path]) == 2


def test_a_partitions_value_adds_no_field_to_a_line_of_the_log(caplog):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1 step=swap\u3000outcome=put-back gap_ms=0.1": [1000] * 3})
    with caplog.at_level("INFO"):
        compact(world)
    (line,) = [record.getMessage() for record in caplog.records if "step=swap" in record.getMessage()]
    fields = line.split()
    assert [field.partition("=")[0] for field in fields] == ["run", "unit", "step", "done", "outcome", "gap_ms"]
    assert fields[1] == "unit=sales.events/dt=1%20step=swap%E3%80%80outcome=put-back%20gap_ms=0.1"


# -- dry run ------------------------------------------------------------------------------------------------


def test_a_dry_run_shows_the_plan_and_changes_nothing_at_all(world):
    before = world.picture()
    result = compact(world, dry_run=True)
    assert result.code is Exit.DONE
    assert {(unit.name, unit.outcome.code, unit.files_before, unit.files_after) for unit in result.tables[0].units} == {
        (f"dt={day}", "planned", 3, 1) for day in (1, 2, 3)
    }
    assert world.files.steps == 0
    assert world.picture() == before


def test_a_dry_run_shows_what_would_be_refused(world):
    world.add_file(f"{live_of(world, 'dt=1')}/other.parquet", ["x"], form=UNREADABLE_FORM)
    world.files.namespace.advance(HOUR_MS)
    result = compact(world, dry_run=True)
    assert outcomes(result) == {"dt=1": "refused", "dt=2": "planned", "dt=3": "planned"}
    assert world.files.steps == 0


# -- units that are left ------------------------------------------------------------------------------------


def test_a_unit_whose_job_fails_is_left_alone_and_the_others_are_swapped(world):
    before, live = world.picture(), live_of(world, "dt=2")
    world.rows.fail = lambda batch: "disk is full" if 2 in [unit.number for unit in batch.units] else None
    result = compact(world)
    assert result.code is Exit.PARTIAL
    assert outcomes(result) == {"dt=1": "swapped", "dt=2": "failed", "dt=3": "swapped"}
    failed = next(unit for unit in result.tables[0].units if unit.name == "dt=2")
    assert (failed.why.code, failed.reason) == (Code.JOB_FAILED, "disk is full")
    assert part_of(world.picture(), live) == part_of(before, live)
    assert not [path for path in world.picture() if "/stage/" in path]


def test_a_run_whose_jobs_all_fail_leaves_only_its_log_entry(world):
    before = world.picture()
    world.rows.fail = lambda _batch: "no executors"
    assert compact(world).code is Exit.PARTIAL
    new = set(world.picture()) - set(before)
    assert {names.base(path) for path in new} == {names.SEAL, "_lock", names.log_entry(0)}
    assert {path: world.picture()[path] for path in before} == before


@pytest.mark.repeating
def test_where_job_after_job_fails_the_rest_is_left_and_tried_by_the_next_run():
    """A cluster that accepts no writes would fail twice as many jobs as there are units, each after minutes of Hadoop's retries."""
    world, jobs = World(), []
    world.add_table(a_table(["dt"]), {f"dt={number:03d}": [1000] * 3 for number in range(200)})
    before = world.rows_of("sales.events")
    world.rows.fail = lambda batch: jobs.append(len(batch.units)) or "no DataNode"
    result = compact(world, replace(QUIET, batch_units=100))
    assert result.code is Exit.PARTIAL
    assert jobs[:4] == [100, 50, 50, 25]
    assert len(jobs) == MOST_FAILED_JOBS_IN_A_ROW
    assert set(outcomes(result).values()) == {"left"}
    (reason,) = {unit.reason for unit in result.tables[0].units}
    assert reason == "32 jobs failed one after the other; the last one: no DataNode"
    assert not [path for path in world.picture() if "/stage/" in path]
    world.rows.fail = None
    assert set(outcomes(compact(world, run=2)).values()) == {"swapped"}
    assert world.rows_of("sales.events") == before


@pytest.mark.repeating
def test_a_few_bad_units_among_many_are_found_and_the_others_swapped():
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={number:03d}": [1000] * 3 for number in range(200)})
    bad = {17, 80, 81, 199}
    world.rows.fail = lambda batch: "corrupt" if bad & {unit.number for unit in batch.units} else None
    found = Counter(outcomes(compact(world, replace(QUIET, batch_units=100))).values())
    assert found == {"swapped": 200 - len(bad), "failed": len(bad)}


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda rows: rows[:-1], "3 rows in the source's footers, 2 in the output's"),
        (lambda rows: rows[:-1] + ("another",), "the content digests differ"),
        (lambda rows: rows + rows[:1], "3 rows in the source's footers, 4 in the output's"),
    ],
)
def test_a_unit_whose_output_differs_keeps_its_files(world, spoil, says):
    before, live = world.picture(), live_of(world, "dt=2")
    world.rows.spoil = lambda number, rows: spoil(rows) if number == 2 else rows
    result = compact(world)
    assert result.code is Exit.DIFFERENT
    assert outcomes(result) == {"dt=1": "swapped", "dt=2": "differs", "dt=3": "swapped"}
    assert says in next(unit for unit in result.tables[0].units if unit.name == "dt=2").reason
    assert part_of(world.picture(), live) == part_of(before, live)


def test_mixed_forms_are_refused_with_the_respects_named_where_rows_are_sorted(world):
    world.add_file(f"{live_of(world, 'dt=1')}/other.parquet", ["x"], form=replace(FORM, codec="gzip", writer="impala"))
    world.files.namespace.advance(HOUR_MS)
    before = world.picture()
    result = compact(world, replace(QUIET, sort_columns=("row",)), tables=EVENTS, where="dt = '1'")
    assert result.code is Exit.REFUSED
    assert result.tables[0].units[0].reason == (
        "its files do not share one form: 1 and 3 files differ in codec, writer (codec gzip / snappy; writer impala / spark)"
    )
    assert part_of(world.picture(), live_of(world, "dt=1")) == part_of(before, live_of(world, "dt=1"))


def test_an_unreadable_file_refuses_its_unit_and_no_other(world):
    world.files.writer.add(f"{live_of(world, 'dt=1')}/broken.parquet", "not a data file")
    world.files.namespace.advance(HOUR_MS)
    result = compact(world)
    assert (result.code, outcomes(result)["dt=1"], outcomes(result)["dt=2"]) == (Exit.PARTIAL, "refused", "swapped")
    refused = next(unit for unit in result.tables[0].units if unit.name == "dt=1")
    assert refused.why.code is Code.UNREADABLE_FILE
    assert files_in(world, "dt=1") == 4


def test_a_hazard_that_only_the_data_tell_refuses_the_unit(world):
    world.files.writer.add(f"{live_of(world, 'dt=1')}/hazard.parquet", DataFile(("x",), FORM, "nanoseconds"), 1000)
    world.files.namespace.advance(HOUR_MS)
    result = compact(world, replace(QUIET, sort_columns=("row",)))
    assert outcomes(result) == {"dt=1": "refused", "dt=2": "swapped", "dt=3": "swapped"}
    assert files_in(world, "dt=1") == 4


def test_the_data_of_a_unit_that_is_refused_anyway_are_not_read_for_hazards(world):
    """Each night as a whole; and nothing limits how many values its files claim."""
    world.files.writer.delete(live_of(world, "dt=1"))
    for name in ("x", "y", "z"):
        world.add_file(f"{live_of(world, 'dt=1')}/{name}.parquet", [name], form=UNREADABLE_FORM)
    world.files.namespace.advance(HOUR_MS)
    asked, hazards = [], world.rows.hazards

    def noted(format, groups):
        asked.extend(groups)
        return hazards(format, groups)

    world.rows.hazards = noted
    result = compact(world, replace(QUIET, sort_columns=("row",)))
    assert outcomes(result) == {"dt=1": "refused", "dt=2": "swapped", "dt=3": "swapped"}
    assert sorted(asked) == ["dt=2", "dt=3"]


def test_files_of_several_forms_become_one_file_of_each_form(world):
    impala = replace(FORM, codec="gzip", writer="impala", identity="a footer of Impala")
    for name in ("x", "y"):
        world.add_file(f"{live_of(world, 'dt=1')}/{name}.parquet", [name], form=impala)
    world.files.namespace.advance(HOUR_MS)
    result = compact(world, tables=EVENTS, where="dt = '1'")
    assert outcomes(result) == {"dt=1": "swapped"}
    live = live_of(world, "dt=1")
    assert sorted(len(world.files.content(entry.path).rows) for entry in world.files.look([live])[live].entries) == [2, 3]


def test_a_unit_that_is_still_what_a_run_made_of_it_is_fine_until_a_file_comes_or_a_setting_changes(world):
    for number in range(4):
        form = replace(FORM, identity=f"writer {number % 2}")
        world.add_file(f"{live_of(world, 'dt=1')}/{number}.parquet", ["x"], form=form)
    world.files.namespace.advance(HOUR_MS)
    assert outcomes(compact(world, tables=EVENTS, where="dt = '1'")) == {"dt=1": "swapped"}
    assert files_in(world, "dt=1") == 3
    world.files.namespace.advance(HOUR_MS)
    found = analyze(a_context(world.cluster, Selection(tables=EVENTS, where="dt = '1'"), "20260101t020399z-0000", QUIET))
    assert [unit.status.code for unit in found.tables[0].observed.units] == ["fine"]
    assert outcomes(compact(world, run=2, where="dt = '1'", tables=EVENTS)) == {}
    larger = replace(QUIET, block_bytes=QUIET.block_bytes * 2)
    assert outcomes(compact(world, larger, run=3, where="dt = '1'", tables=EVENTS)) == {"dt=1": "fewest"}
    world.add_file(f"{live_of(world, 'dt=1')}/late.parquet", ["y"])
    world.files.namespace.advance(HOUR_MS)
    assert outcomes(compact(world, run=4, where="dt = '1'", tables=EVENTS)) == {"dt=1": "swapped"}


def test_a_unit_with_one_file_of_each_form_is_left_as_it_is_and_that_is_no_error(world):
    forms = [replace(FORM, identity=f"writer {number}") for number in range(3)]
    live = live_of(world, "dt=1")
    for entry in world.files.look([live])[live].entries:
        world.files.writer.delete(entry.path)
    for number, form in enumerate(forms):
        world.add_file(f"{live}/{number}.parquet", ["x"], form=form)
    world.files.namespace.advance(HOUR_MS)
    result = compact(world, tables=EVENTS, where="dt = '1'")
    assert (result.code, outcomes(result)) == (Exit.DONE, {"dt=1": "fewest"})


def test_a_unit_written_to_a_moment_ago_waits_and_that_is_no_error(world):
    world.add_file(f"{live_of(world, 'dt=1')}/new.parquet", ["x"])
    result = compact(world, replace(QUIET, min_quiet_ms=60_000))
    assert (result.code, outcomes(result)) == (Exit.DONE, {"dt=2": "swapped", "dt=3": "swapped", "dt=1": "recent"})
    assert files_in(world, "dt=1") == 4


def test_files_without_rows_do_not_make_a_second_form(world):
    """Hive leaves ORC files with the schema struct<> if a task had no rows."""
    for number in range(2):
        world.add_file(f"{live_of(world, 'dt=1')}/empty-{number}.parquet", (), 100, form=replace(OTHER_FORM, codec="none"))
    world.files.namespace.advance(HOUR_MS)
    before = world.rows_of("sales.events")
    result = compact(world)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DONE, "swapped")
    assert files_in(world, "dt=1") == 1
    assert world.rows_of("sales.events") == before
    assert len([path for path in world.picture() if "/retired/" in path and "/empty-" in path]) == 2


def test_a_unit_without_any_rows_is_left_and_that_is_no_error():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": []})
    for number in range(3):
        world.add_file(f"{live_of(world, 'dt=1')}/empty-{number}.parquet", (), 100, form=replace(FORM, codec="none"))
    world.files.namespace.advance(HOUR_MS)
    result = compact(world)
    assert (result.code, outcomes(result)) == (Exit.DONE, {"dt=1": "empty"})
    assert result.tables[0].units[0].why.code is Code.NO_ROWS
    assert files_in(world, "dt=1") == 3
    assert not [path for path in world.picture() if "/runs/" in path]


def test_a_partition_that_is_dropped_meanwhile_is_given_up(world):
    before, live = world.picture(), live_of(world, "dt=2")
    write = world.rows.write_stage

    def drop_then_write(batch):
        world.catalog.drop_partition("sales.events", "dt=2")
        return write(batch)

    world.rows.write_stage = drop_then_write
    result = compact(world)
    assert (result.code, outcomes(result)["dt=2"]) == (Exit.PARTIAL, "given-up")
    assert part_of(world.picture(), live) == part_of(before, live)
    assert "dt=2" not in world.catalog.partitions["sales.events"]
    assert files_in(world, "dt=1") == 1


@pytest.mark.parametrize(("discovery", "is_back"), [("true", True), ("false", False)])
def test_a_partition_that_discovery_drops_in_the_gap_is_put_back_where_discovery_is_on(world, discovery, is_back):
    world.set_property("sales.events", **{"discover.partitions": discovery})
    live = live_of(world, "dt=2")

    def drop_in_the_gap(what):
        if what.startswith("rename_exact") and what.endswith(f"/ready/u00002 {live}"):
            world.catalog.drop_partition("sales.events", "dt=2")

    world.files.before_step = drop_in_the_gap
    before = world.rows_below(live)
    result = compact(world)
    assert (outcomes(result)["dt=2"], result.code) == (("swapped", Exit.DONE) if is_back else ("dropped-meanwhile", Exit.PARTIAL))
    assert ("dt=2" in world.catalog.partitions["sales.events"]) is is_back
    assert world.rows_below(live) == before


# -- tables that are left -----------------------------------------------------------------------------------


def test_one_locked_one_refused_and_one_broken_table_leave_the_others_to_be_done():
    world = World()
    for name in ("good", "locked", "broken", "zz_good"):
        world.add_table(a_table(name=name), {"": [1000] * 3})
    world.add_table(a_table(name="acid", parameters={"transactional": "true"}), {"": [1000] * 3})
    world.files.another_client().hold(control_of(world, "sales.locked").lock, "run X of bob on edge2")
    world.files.writer.add(control_of(world, "sales.broken").log + "/" + names.log_entry(0), "no JSON")
    result = compact(world, databases=("sales",))
    codes = {table.table.partition(".")[2]: table.code for table in result.tables}
    assert codes == {
        "acid": Exit.REFUSED,
        "broken": Exit.INVESTIGATE,
        "good": Exit.DONE,
        "locked": Exit.LOCKED,
        "zz_good": Exit.DONE,
    }
    assert result.code is Exit.INVESTIGATE
    left = {name: files_in(world, table=f"sales.{name}") for name in codes}
    assert left == {"acid": 3, "broken": 3, "good": 1, "locked": 3, "zz_good": 1}


def test_a_locked_table_says_who_holds_it(world):
    world.files.another_client().hold(control_of(world).lock, "run X of bob on edge2")
    result = compact(world)
    assert result.code is Exit.LOCKED
    assert result.tables[0].problem.code is Code.TABLE_LOCKED
    assert "run X of bob on edge2" in result.tables[0].problem.what
    assert files_in(world, "dt=1") == 3


def test_backups_of_the_predecessor_are_never_selected_by_database(world):
    world.add_table(a_table(name="__bkp_events_20260101_020304"), {"": [1000] * 3})
    assert [table.table for table in compact(world, databases=("sales",)).tables] == ["sales.events"]
    assert files_in(world, table="sales.__bkp_events_20260101_020304") == 3


def test_a_table_that_does_not_exist_leaves_the_others_to_be_done(world):
    result = compact(world, tables=("sales.nowhere", *EVENTS))
    assert result.code is Exit.PARTIAL
    assert files_in(world, "dt=1") == 1


def test_a_table_that_is_refused_is_not_touched(world):
    world.set_property("sales.events", **{"hivekeeper.skip": "TRUE"})
    result = compact(world)
    assert (result.code, world.files.steps) == (Exit.REFUSED, 0)


def test_a_writer_at_work_in_the_root_leaves_the_table_alone(world):
    world.files.writer.start_committer(live_of(world))
    result = compact(world)
    assert (result.code, world.files.steps) == (Exit.LOCKED, 0)
    assert result.tables[0].problem.code is Code.WRITER_AT_WORK


def begin_with_the_lock(world):
    def begin(what):
        if what.startswith("hold"):
            world.files.writer.start_committer(live_of(world))

    world.files.before_step = begin


def test_a_writer_that_begins_after_the_one_look_at_a_table_without_records_is_met_by_the_check(world):
    begin_with_the_lock(world)
    result = compact(world)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.PARTIAL, Outcome.GIVEN_UP.code)
    assert files_in(world, "dt=1") == 3


def test_a_table_with_records_is_looked_at_with_the_lock_held_and_not_before(world):
    compact(world)
    for day in (1, 2, 3):
        for nth in range(3):
            world.add_file(f"{live_of(world, f'dt={day}')}/more{nth}.parquet", [f"more {day}{nth}"])
    begin_with_the_lock(world)
    assert compact(world, run=2).code is Exit.LOCKED


# -- the cluster does not do its part -----------------------------------------------------------------------


def test_too_little_space_is_seen_before_anything_is_written(world):
    before = world.picture()
    world.files.namespace.space_bytes = world.files.namespace.used_bytes() + 128 * MIB + 2000
    result = compact(world)
    assert result.code is Exit.UNUSABLE
    assert result.tables[0].problem.code is Code.NOT_ENOUGH_SPACE
    assert "134,226,728 bytes" in result.tables[0].problem.what
    assert "134,219," in result.tables[0].problem.what
    assert world.picture() == before


class OrdinaryUser(FakeFiles):
    """A client that may not give files to another user."""

    def dress(self, wanted):
        if any(attributes.owner or attributes.group not in ("", "hive") for attributes in wanted.values()):
            raise NoPermission("Only superusers may change owner")
        super().dress(wanted)


def an_ordinary_user(world):
    """A cluster with that client; the files of dt=1 belong to alice."""
    node = world.files.namespace.find(live_of(world, "dt=1"))
    node.attributes = replace(node.attributes, owner="alice", mode=0o750)
    files = OrdinaryUser(namespace=world.files.namespace)
    return world.cluster_of(files, world.metastore, FakeRows(files))


TIED = [
    (Ties(denied="parent has the sticky bit"), Code.NOT_RENAMABLE),
    (Ties(zone="/secret"), Code.OTHER_ENCRYPTION_ZONE),
    (Ties(locked="User [hive] is not authorized to perform [DECRYPT_EEK]"), Code.NO_ZONE_KEY),
    (Ties(snapshots=True), Code.SNAPSHOTTABLE),
    (Ties(quota=True), Code.OWN_QUOTA),
]


@pytest.mark.parametrize(("ties", "code"), TIED)
def test_a_directory_that_is_tied_to_its_place_is_refused_before_anything_is_written_and_the_others_are_done(world, desk, ties, code):
    world.files.namespace.ties[desk.live("dt=2")] = ties
    before = world.files.look([desk.live("dt=2")])
    for dry_run, done in ((True, "planned"), (False, "swapped")):
        outcomes = {unit.name: unit for unit in desk.compact(dry_run=dry_run).tables[0].units}
        assert {name: unit.outcome.code for name, unit in outcomes.items()} == {"dt=1": done, "dt=2": "refused", "dt=3": done}
        assert outcomes["dt=2"].why.code is code
    assert world.files.look([desk.live("dt=2")]) == before


@pytest.mark.parametrize(("ties", "code"), TIED)
def test_a_table_of_which_no_directory_may_be_renamed_is_refused_before_a_lock_is_written(world, desk, ties, code):
    for day in ("dt=1", "dt=2", "dt=3"):
        world.files.namespace.ties[desk.live(day)] = ties
    before = world.picture()
    result = desk.compact()
    assert {(unit.outcome.code, unit.why.code) for unit in result.tables[0].units} == {("refused", code)}
    assert result.code is Exit.REFUSED
    assert world.picture() == before


def test_a_table_inside_an_encryption_zone_is_compacted(world, desk):
    for place in ("", "dt=1", "dt=2", "dt=3"):
        world.files.namespace.ties[desk.live(place)] = Ties(zone="/warehouse")
    assert [unit.outcome.code for unit in desk.compact().tables[0].units] == ["swapped"] * 3


@pytest.mark.parametrize("forbidden", ["dt=1", "dt=2", "dt=3"])
def test_a_partition_that_may_not_be_read_is_refused_and_the_others_are_done(world, desk, forbidden):
    world.files.namespace.unreadable.add(desk.live(forbidden))
    result = desk.compact()
    refused = [unit for unit in result.tables[0].units if unit.outcome.code == "refused"]
    assert [unit.name for unit in refused] == [forbidden]
    assert refused[0].why.code is Code.UNREADABLE_DIRECTORY
    assert {unit.name for unit in result.tables[0].units if unit.outcome.code == "swapped"} == {"dt=1", "dt=2", "dt=3"} - {forbidden}


def test_a_table_whose_root_may_not_be_read_is_refused(world, desk):
    world.files.namespace.unreadable.add(desk.live())
    assert desk.compact().code is Exit.REFUSED


def test_an_owner_that_cannot_be_kept_refuses_before_anything_is_written(world):
    before = world.picture()
    result = compact(world, cluster=an_ordinary_user(world))
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.ATTRIBUTES_NOT_KEPT
    assert "owner: try" in result.tables[0].problem.next
    assert {names.base(path) for path in set(world.picture()) - set(before)} == {names.SEAL, "_lock"}
    assert world.files.look([control_of(world).runs])[control_of(world).runs].entries == ()


@pytest.mark.parametrize("owner", ["try", "ignore"])
def test_an_owner_that_need_not_be_kept_is_given_up_but_the_mode_is_kept(world, owner):
    result = compact(world, replace(QUIET, owner=owner), cluster=an_ordinary_user(world))
    assert result.code is Exit.DONE
    attributes = world.files.attributes([live_of(world, "dt=1")])[live_of(world, "dt=1")]
    assert (attributes.owner, attributes.mode) == ("hive", 0o750)


@pytest.mark.parametrize("owner", ["try", "ignore"])
def test_a_group_that_is_given_up_does_not_open_the_files_to_that_of_the_table(world, caplog, owner):
    top = world.files.namespace.find(live_of(world, "dt=1"))
    for node in (top, *top.children.values()):
        node.attributes = replace(node.attributes, group="analyst", file_mode=0o640)
    result = compact(world, replace(QUIET, owner=owner), cluster=an_ordinary_user(world))
    assert result.code is Exit.DONE
    attributes = world.files.attributes([live_of(world, "dt=1")])[live_of(world, "dt=1")]
    assert (attributes.group, attributes.mode, attributes.file_mode) == ("hive", 0o700, 0o600)
    told = [record.getMessage() for record in caplog.records if "group=not-kept" in record.getMessage()]
    assert told == [
        "unit=sales.events/dt=1 step=dress group=not-kept reason='the group analyst cannot be kept; the one that it has, hive, "
        "may do no more than others'"
    ]


def test_a_superuser_keeps_owner_and_mode(world):
    node = world.files.namespace.find(live_of(world, "dt=1"))
    node.attributes = replace(node.attributes, owner="alice", mode=0o750)
    assert compact(world).code is Exit.DONE
    attributes = world.files.attributes([live_of(world, "dt=1")])[live_of(world, "dt=1")]
    assert (attributes.owner, attributes.mode) == ("alice", 0o750)


def test_a_metastore_that_fails_after_the_swap_is_only_a_warning(world, caplog):
    before = world.rows_of("sales.events")
    world.metastore.fail_next("update_sizes", MetastoreUnavailable("connection refused"))
    result = compact(world)
    assert (result.code, set(outcomes(result).values())) == (Exit.DONE, {"swapped"})
    assert world.rows_of("sales.events") == before
    assert any("connection refused" in record.message for record in caplog.records)


def test_a_metastore_that_fails_before_the_swap_leaves_the_units_as_they_are(world):
    before = world.rows_of("sales.events")
    world.metastore.fail_next("partitions_named", MetastoreUnavailable("connection refused"))
    result = compact(world)
    assert result.code is Exit.UNUSABLE
    assert "hivekeeper recover --table sales.events" in result.tables[0].problem.next
    assert world.rows_of("sales.events") == before
    assert compact(world, run=2).code is Exit.DONE
    assert [files_in(world, f"dt={day}") for day in (1, 2, 3)] == [1, 1, 1]


def test_a_directory_that_must_not_be_changed_is_refused_and_nothing_is_lost(world):
    before = world.rows_of("sales.events")
    world.files.namespace.denied.add(live_of(world, "dt=2"))
    result = compact(world)
    assert result.code is not Exit.DONE
    assert world.rows_of("sales.events") == before
    assert files_in(world, "dt=2") == 3
    world.files.namespace.denied.clear()
    assert compact(world, run=2).code is Exit.DONE
    assert world.rows_of("sales.events") == before


# -- states that are not understood -------------------------------------------------------------------------


def interrupt(world, before_rename_of="/ready/u00001"):
    """Leave an unfinished run behind: killed before its first unit is swapped in."""

    def die(what):
        if what.startswith("rename_exact") and before_rename_of in what.split()[1]:
            world.files.die_after(0)

    world.files.before_step = die
    with pytest.raises(Killed):
        compact(world)
    world.files.before_step = None
    world.files.revive()
    world.files.expire_locks()
    return control_of(world).run("20260101t020301z-0000")


def rewrite(world, path, change):
    text = str(world.picture()[path])
    world.files.writer.delete(path)
    world.files.writer.add(path, change(text))


def add_stranger(world, run):
    world.files.writer.add(f"{run.top}/ready/notes.txt", "whose is this?")


def add_unknown_unit(world, run):
    world.files.writer.make_directory(run.unit("retired", 77))


def break_plan(world, run):
    rewrite(world, run.plan, lambda text: text[: len(text) // 2])


def make_plan_newer(world, run):
    rewrite(world, run.plan, lambda text: text.replace('"version": 3', '"version": 99'))


def make_plan_foreign(world, run):
    rewrite(world, run.plan, lambda text: text.replace('"compact-swap"', '"rebalance"'))


def break_certificates(world, run):
    rewrite(world, run.certificates(1), lambda text: text[:-20])


def remove_certificates(world, run):
    world.files.writer.delete(run.certificates(1))


@pytest.mark.parametrize(
    "hurt",
    [add_stranger, add_unknown_unit, break_plan, make_plan_newer, make_plan_foreign, break_certificates, remove_certificates],
    ids=lambda hurt: hurt.__name__,
)
def test_an_interrupted_run_that_is_not_understood_is_left_to_a_person(world, hurt):
    run = interrupt(world)
    hurt(world, run)
    before, rows = world.picture(), Counter(world.rows_of("sales.events"))
    result = compact(world, run=2)
    assert result.code is Exit.INVESTIGATE
    problem = result.tables[0].problem
    assert problem.state
    assert problem.next
    taken = run.top + ".t1"
    assert {path.replace(taken, run.top): content for path, content in world.picture().items() if not path.endswith("/_lock")} == {
        path: content for path, content in before.items() if not path.endswith("/_lock")
    }
    assert world.rows_of("sales.events") == rows


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("half a li", Code.UNREADABLE_LOG),
        ("", Code.UNREADABLE_LOG),
        ("[1, 2]\n", Code.FOREIGN_RECORD),
        ('{"commitInfo": {"units": []}}\n', Code.FOREIGN_RECORD),
        ('{"protocol": {}}\n', Code.FOREIGN_RECORD),
    ],
)
def test_a_log_that_is_not_understood_stops_everything(world, text, code):
    world.files.writer.add(control_of(world).log + "/" + names.log_entry(0), text)
    before = world.picture()
    result = compact(world)
    assert result.code is Exit.INVESTIGATE
    assert result.tables[0].problem.code is code
    assert f"/log/{names.log_entry(0)} " in result.tables[0].problem.what
    assert result.tables[0].problem.state == "nothing was changed"
    assert "do not delete it" in result.tables[0].problem.next
    assert {path: content for path, content in world.picture().items() if not path.endswith("/_lock")} == before


def test_a_missing_log_entry_stops_everything(world):
    compact(world)
    log = control_of(world).log
    text = str(world.picture()[f"{log}/{names.log_entry(0)}"])
    world.files.writer.add(f"{log}/{names.log_entry(2)}", text)
    world.add_file(f"{live_of(world, 'dt=1')}/new.parquet", ["x"])
    world.files.namespace.advance(HOUR_MS)
    result = compact(world, run=2)
    assert result.code is Exit.INVESTIGATE
    assert result.tables[0].problem.code is Code.UNREADABLE_LOG
    assert files_in(world, "dt=1") == 2


def test_an_interrupted_run_is_finished_first_and_reported(world):
    interrupt(world)
    before = sum((world.rows_below(path) for path in {names.parent(path) for path in world.picture() if "/retired/" in path}), Counter())
    result = compact(world, run=2)
    assert result.code is Exit.DONE
    assert before
    assert result.tables[0].recovered[0][0] == "20260101t020301z-0000"
    assert [files_in(world, f"dt={day}") for day in (1, 2, 3)] == [1, 1, 1]


def test_a_database_that_does_not_exist_is_refused(world):
    result = compact(world, databases=("nowhere",))
    assert [table.problem.what for table in result.tables] == ["nowhere: the database nowhere does not exist"]
    assert result.code is Exit.REFUSED


def test_a_unit_of_which_nothing_was_written_keeps_its_files(world):
    write = world.rows.write_stage

    def write_less(batch):
        result = write(batch)
        world.files.writer.delete(f"{batch.target}/{names.UNIT_COLUMN}=2")
        return result

    world.rows.write_stage = write_less
    result = compact(world)
    assert (result.code, outcomes(result)["dt=2"], files_in(world, "dt=2")) == (Exit.DIFFERENT, "differs", 3)
    reason = next(unit.reason for unit in result.tables[0].units if unit.name == "dt=2")
    assert reason.startswith("nothing of it was written")


def test_a_control_directory_that_must_not_be_made_is_a_refusal(world):
    before = world.picture()
    world.files.namespace.denied.add(control_of(world).top)
    result = compact(world)
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NO_PERMISSION
    assert world.picture() == before


def test_a_unit_that_is_refused_takes_no_place_among_the_most_profitable():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 50, "dt=2": [MIB] * 10, "dt=3": [MIB] * 5})
    world.add_file(f"{a_table().location}/dt=1/other.parquet", ["x"], MIB, form=UNREADABLE_FORM)
    world.files.namespace.advance(3_600_000)
    result = compact(world, Settings(min_quiet_ms=0, max_units=1), tables=("sales.events",))
    assert {unit.name: unit.outcome.code for unit in result.tables[0].units} == {"dt=1": "refused", "dt=2": "swapped"}


def test_a_backup_table_that_recovery_has_just_dropped_is_no_other_table_on_the_same_directory(world, desk):
    desk.kill_before(["rename_exact", "/retired/"], desk.compact)
    assert any(name.startswith("sales.__bkp_") for name in world.catalog.tables)
    result = desk.compact(cluster=world.another_process())
    assert result.code is Exit.DONE, result.tables[0].problem


def test_a_partition_that_is_removed_while_it_is_looked_at_is_refused_and_the_others_are_done():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    gone = world.catalog.partitions["sales.events"]["dt=1"].location
    ties = world.files.ties

    def removed_meanwhile(directories, around):
        found = ties(directories, around)
        world.files.writer.delete(gone)
        return found

    world.files.ties = removed_meanwhile
    result = compact(world, Settings(min_quiet_ms=0))
    outcomes = {unit.name: (unit.outcome.code, unit.reason) for unit in result.tables[0].units}
    assert outcomes["dt=2"][0] == "swapped"
    assert outcomes["dt=1"][0] == "refused"
    assert "is gone" in outcomes["dt=1"][1]


def test_a_unit_that_is_given_up_keeps_its_reason_where_its_copy_cannot_be_dropped_at_once(world):
    def meet(what):
        if what.startswith("rename_exact") and "/ready/" in what:
            world.files.writer.delete(f"{live_of(world, 'dt=1')}/part-00000.parquet")
            world.files.before_step = refuse_once

    def refuse_once(what):
        if what.startswith("delete_tree") and "/ready/" in what:
            world.files.before_step = None
            raise FilesUnavailable("the connection was lost")

    world.files.before_step = meet
    unit = next(unit for unit in compact(world).tables[0].units if unit.name == "dt=1")
    assert (unit.outcome, unit.why.code) == (Outcome.GIVEN_UP, Code.CHANGED_MEANWHILE)


def test_a_codec_that_spark_cannot_write_refuses_the_table_once_before_anything_is_touched(world):
    before = world.picture()
    world.cluster = replace(world.cluster, spark_version="3.3.2")
    result = compact(world, replace(QUIET, compression="lz4_raw"))
    assert (result.code, outcomes(result)) == (Exit.REFUSED, {})
    assert result.tables[0].problem.code is Code.CODEC_NOT_WRITABLE
    assert world.picture() == before


def test_a_partition_with_extended_attributes_of_half_a_megabyte_costs_only_itself():
    """Whoever may write to a directory may give it so many; those of all partitions together would take the driver's memory."""
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    for day, size in ((1, 16_384), (2, 100)):
        node = world.files.namespace.find(f"hdfs://nn/warehouse/sales/events/dt={day}")
        node.attributes = replace(node.attributes, xattrs=tuple((f"user.{nth}", "0s" + "A" * size) for nth in range(32)))
    result = Desk(world).compact()
    found = {unit.name: unit for unit in result.tables[0].units}
    assert (found["dt=1"].outcome.code, found["dt=1"].why.code) == ("refused", Code.MORE_XATTRS)
    assert found["dt=2"].outcome.code == "swapped"
