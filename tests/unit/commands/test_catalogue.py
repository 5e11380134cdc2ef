"""What commands leave in the catalogue, the command of that name, and that a failing catalogue fails nothing."""

import logging
from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.catalogue.columns import COMPONENTS, KEY_COLUMNS, RUNS, TABLES, VIEWS, VIEWS_OF_NOW
from hivekeeper.codes import Exit
from hivekeeper.commands import analyze, backup, catalogue, compact_swap
from hivekeeper.commands.catalogue import Request
from hivekeeper.config.settings import CatalogueSettings
from hivekeeper.errors import UsageError
from hivekeeper.model import Selection
from hivekeeper.ports import FilesUnavailable, MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.report import document, screen
from support.builders import a_partition, a_table
from support.catalogues import ROOT, RUN, SETTINGS, open_catalogue, places_shown, rows_in, rows_shown
from support.contexts import QUIET, a_context
from support.counting import Counting
from support.desk import Desk
from support.fakes.files import Killed
from support.world import World

DAY = 86_400_000
SIZES = ("table_name", "files", "total_bytes", "small_files", "files_after", "verdict")


@pytest.fixture
def world():
    world = World()
    world.files.writer.make_directory(ROOT)
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2, 3)})
    return world


@pytest.fixture
def desk(world):
    return Desk(world)


def record(world, result, settings=SETTINGS):
    catalogue.record(world.cluster, settings, (), result)
    return result


def everything(world, run="20260201t000000z-0000", work=analyze.analyze, settings=SETTINGS, **selection):
    """A command on the whole database, recorded."""
    selected = Selection(**(selection or {"databases": ("sales",)}))
    context = a_context(world.cluster, selected, run, QUIET, keeps_files=catalogue.keeps_files(settings))
    return record(world, work(context), settings)


def ask(world, request, selected=None, settings=SETTINGS):
    context = a_context(world.cluster, selected or Selection(), "20260301t000000z-0000")
    return catalogue.run_catalogue(context, settings, (), request)


def of_kind(world, kind, columns, component=TABLES):
    return rows_in(world.cluster, component, columns, metadata_kind=kind)


# ---- what is recorded


def test_what_is_above_the_catalogue_is_looked_at_twice_in_a_command_at_most(world, monkeypatch):
    asked, way_to = [], world.files.way_to
    monkeypatch.setattr(world.files, "way_to", lambda directory: asked.append(directory) or way_to(directory))
    everything(world)
    assert set(asked) == {ROOT}
    assert len(asked) <= 2


def test_a_table_is_described_as_a_whole_by_segment_and_by_partition(world):
    everything(world)
    assert of_kind(world, "TABLE", SIZES) == [("events", 9, 9000, 9, 3, "compact")]
    assert of_kind(world, "SEGMENT", ("metadata_key", "files")) == [("dt=1", 3), ("dt=2", 3), ("dt=3", 3)]
    shown = of_kind(world, "PARTITION", ("metadata_key", "partition_name", "files", "main_writer", "place"))
    assert shown[0] == ("dt=1", "dt=1", 3, "hive", world.table("sales.events").location + "/dt=1")
    assert len(shown) == 3


def test_two_levels_of_partitions_share_a_segment(world):
    world.add_table(a_table(["y", "m"], name="deep"), {f"y={year}/m={month}": [1000] * 2 for year in (1, 2) for month in (1, 2, 3)})
    everything(world)
    segments = rows_in(world.cluster, TABLES, ("metadata_key", "partition_count", "files"), metadata_kind="SEGMENT", table_name="deep")
    assert segments == [("y=1", 3, 6), ("y=2", 3, 6)]
    keys = rows_in(world.cluster, TABLES, ("metadata_key", "metadata_identifier"), metadata_kind="PARTITION", table_name="deep")
    assert ("y=1", "y=1/m=2/") in keys


def test_a_table_without_partitions_has_the_default_segment(world):
    world.add_table(a_table(name="plain"), {"": [1000] * 4})
    everything(world)
    keys = rows_in(world.cluster, TABLES, ("metadata_kind", "metadata_key", "partition_name"), table_name="plain")
    expected = [("PARTITION", "DEFAULT_SEGMENT", ""), ("SEGMENT", "DEFAULT_SEGMENT", None), ("TABLE", "GENERAL_INFO", None)]
    assert keys == expected


@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        ("table", {"TABLE"}),
        ("segment", {"TABLE", "SEGMENT"}),
        ("partition", {"TABLE", "SEGMENT", "PARTITION"}),
        ("file", {"TABLE", "SEGMENT", "PARTITION", "FILE"}),
        # analyze reads no footers.
        ("row_group", {"TABLE", "SEGMENT", "PARTITION", "FILE"}),
    ],
)
def test_the_level_says_how_deep_a_table_is_described(world, level, kinds):
    everything(world, settings=replace(SETTINGS, level=level))
    assert {kind for (kind,) in rows_in(world.cluster, TABLES, ("metadata_kind",))} == kinds


def test_files_are_listed_with_their_owner(world):
    everything(world, settings=replace(SETTINGS, level="file"))
    files = of_kind(world, "FILE", ("partition_name", "file_name", "total_bytes", "main_writer"))
    assert len(files) == 9
    assert files[0] == ("dt=1", "part-00000.parquet", 1000, "hive")


def test_no_part_of_a_key_is_ever_null_and_no_key_occurs_twice(world):
    world.add_table(a_table(["dt"], name="odd", buckets=4), {"dt=1": [1000]})
    everything(world, settings=replace(SETTINGS, level="file"))
    everything(world, "20260201t000001z-0000", compact_swap.compact_swap, settings=replace(SETTINGS, level="file"))
    for component in COMPONENTS:
        keys = rows_in(world.cluster, component, (*KEY_COLUMNS, "metadata_identifier", "metadata_kind"))
        assert all(cell for key in keys for cell in key)
        assert len(set(keys)) == len(keys)


def test_a_compaction_leaves_the_sizes_after_it_and_what_it_saved(world):
    everything(world)
    done = everything(world, "20260201t000001z-0000", compact_swap.compact_swap)
    assert of_kind(world, "TABLE", SIZES) == [("events", 3, 9000, 3, 3, "fine")]
    assert of_kind(world, "TABLE", ("last_run", "last_operation")) == [(done.run, "compact-swap")]
    assert of_kind(world, "PARTITION", ("files", "row_count", "directory_id")) == [(1, 3, None)] * 3
    runs = of_kind(world, "RUN", ("operation", "files_before", "files_after", "files", "exit_code", "day"), RUNS)
    assert runs == [("analyze", None, None, 9, 0, "2026-01-01"), ("compact-swap", 9, 3, 3, 0, "2026-01-01")]
    units = of_kind(world, "UNIT", ("partition_name", "outcome", "files_before", "files_after", "row_count"), RUNS)
    assert units == [(f"dt={day}", "swapped", 3, 1, 3) for day in (1, 2, 3)]
    found = everything(world, "20260201t000002z-0000")
    assert found.tables[0].observed.last_run[0] == done.run
    assert of_kind(world, "TABLE", SIZES) == [("events", 3, 9000, 3, 3, "fine")]
    assert of_kind(world, "TABLE", ("last_run", "last_operation")) == [(done.run, "compact-swap")]


def test_what_a_cleanup_discarded_is_in_its_run(world, desk):
    record(world, desk.compact())
    record(world, desk.cleanup())
    runs = rows_in(world.cluster, RUNS, ("operation", "discarded_files", "discarded_bytes"), metadata_kind="RUN")
    assert ("cleanup", 9, 9000) in runs


def test_only_what_exchanged_files_saved_some(world, desk):
    record(world, desk.compact())
    record(world, desk.verify())
    record(world, desk.rollback())
    runs = rows_in(world.cluster, RUNS, ("operation", "files_before", "files_after"), metadata_kind="RUN")
    assert runs == [("compact-swap", 9, 3), ("rollback", 3, 9), ("verify", None, None)]


def test_with_where_only_its_partitions_are_replaced(world, desk):
    everything(world)
    record(world, desk.compact("dt = '2'"))
    assert of_kind(world, "PARTITION", ("partition_name", "files")) == [("dt=1", 3), ("dt=2", 1), ("dt=3", 3)]
    # The last look at the whole table.
    assert of_kind(world, "TABLE", SIZES) == [("events", 9, 9000, 9, 3, "compact")]
    assert of_kind(world, "RUN", ("operation", "files"), RUNS) == [("analyze", 9), ("compact-swap", None)]


def test_with_where_the_files_of_its_partitions_are_replaced_too(world, desk):
    settings = replace(SETTINGS, level="file")
    everything(world, settings=settings)
    world.files.writer.delete(f"{desk.live('dt=2')}/part-00000.parquet")
    world.add_file(f"{desk.live('dt=2')}/new.parquet", ["row"])
    selected = Selection(tables=("sales.events",), where="dt = '2'")
    context = a_context(world.cluster, selected, "20260201t000001z-0000", QUIET, keeps_files=True)
    record(world, analyze.analyze(context), settings)
    files = of_kind(world, "FILE", ("partition_name", "file_name"))
    assert [name for partition, name in files if partition == "dt=2"] == ["new.parquet", "part-00001.parquet", "part-00002.parquet"]
    assert len(files) == 9


def test_partitions_and_tables_that_are_gone_are_no_longer_shown(world):
    world.add_table(a_table(name="plain"), {"": [1000] * 4})
    everything(world)
    world.catalog.drop_partition("sales.events", "dt=2")
    world.catalog.drop_table("sales.plain")
    everything(world, "20260201t000001z-0000")
    assert of_kind(world, "TABLE", ("table_name",)) == [("events",)]
    assert of_kind(world, "PARTITION", ("partition_name",)) == [("dt=1",), ("dt=3",)]
    # What runs did stays.
    assert len(rows_in(world.cluster, RUNS, ("run",), table_name="plain")) == 1


def test_tables_that_were_left_out_stay(world):
    world.add_table(a_table(name="plain"), {"": [1000] * 4})
    everything(world)
    everything(world, "20260201t000001z-0000", databases=("sales",), exclude=("plain",))
    everything(world, "20260201t000002z-0000", tables=("sales.events",))
    assert of_kind(world, "TABLE", ("table_name",)) == [("events",), ("plain",)]


def test_a_table_that_is_refused_is_there_with_its_reason(world):
    world.add_table(a_table(["dt"], name="odd", buckets=4), {"dt=1": [1000]})
    everything(world)
    shown = rows_in(world.cluster, TABLES, ("verdict", "reason_code", "files", "owner"), table_name="odd")
    assert shown == [("refused", "bucketed", None, "")]


def test_a_view_is_in_a_component_of_its_own(world):
    view = a_table(name="totals", kind="VIRTUAL_VIEW", location="", view_text="SELECT count(*) FROM sales.events", owner="ann")
    world.catalog.add_table(view)
    everything(world)
    shown = rows_in(world.cluster, VIEWS, ("table_name", "view_kind", "owner", "view_text", "column_list"))
    assert shown == [("totals", "VIRTUAL_VIEW", "ann", "SELECT count(*) FROM sales.events", "id int")]
    assert of_kind(world, "TABLE", ("table_name",)) == [("events",)]
    world.catalog.drop_table("sales.totals")
    everything(world, "20260201t000001z-0000")
    assert rows_in(world.cluster, VIEWS, ("table_name",)) == []


def test_a_dry_run_is_not_recorded_nor_is_anything_without_a_base_path(world, desk):
    record(world, desk.compact(dry_run=True))
    record(world, desk.analyze(), CatalogueSettings())
    record(world, desk.history())
    assert [name for name in world.catalog.tables if name.startswith("hivekeeper.")] == []
    assert rows_in(world.cluster, RUNS, ("run",)) == []


def test_runs_are_kept_for_their_time(world, desk):
    settings = replace(SETTINGS, keep_runs_ms=10 * DAY)
    record(world, desk.analyze(), settings)
    world.files.namespace.advance(9 * DAY)
    record(world, desk.analyze(), settings)
    assert rows_in(world.cluster, RUNS, ("day",)) == [("2026-01-01",), ("2026-01-10",)]
    world.files.namespace.advance(3 * DAY)
    record(world, desk.analyze(), settings)
    assert rows_in(world.cluster, RUNS, ("day",)) == [("2026-01-10",), ("2026-01-13",)]


def test_it_holds_one_file_for_each_part_however_many_commands_run(world, desk):
    for _ in range(12):
        record(world, desk.analyze())
    assert len(places_shown(world, TABLES)) == len(places_shown(world, RUNS)) == 1
    assert len(rows_in(world.cluster, RUNS, ("run",))) == 12


# ---- row groups

DEEPEST = replace(SETTINGS, level="row_group")
# Compaction makes two of the three rows of a partition, of two rows and of one.
OF_A_COPY = [(0, 2), (1, 1)]


def deepest(world, work=compact_swap.compact_swap, run="20260201t000001z-0000", rules=QUIET, cluster=None, **selection):
    """A command, recorded down to row groups."""
    selected = Selection(**(selection or {"databases": ("sales",)}))
    most, keeps_files = catalogue.most_row_groups(DEEPEST), catalogue.keeps_files(DEEPEST)
    context = a_context(cluster or world.cluster, selected, run, rules, most_row_groups=most, keeps_files=keeps_files)
    return record(world, work(context), DEEPEST)


def row_groups_in(world, *columns):
    return of_kind(world, "ROW_GROUP", ("partition_name", *(columns or ("row_group_index", "row_count"))))


def test_the_row_groups_of_new_files_are_described(world):
    deepest(world)
    days = ("dt=1", "dt=2", "dt=3")
    assert row_groups_in(world) == [(day, *group) for day in days for group in OF_A_COPY]
    live = world.table("sales.events").location + "/dt=1"
    (file,) = world.files.look([live])[live].entries
    columns = ("file_name", "file_bytes", "modified_ms", "row_group_start", "total_bytes")
    assert row_groups_in(world, *columns)[:2] == [
        ("dt=1", file.name, file.length, file.mtime_ms, 4, 2),
        ("dt=1", file.name, file.length, file.mtime_ms, 6, 1),
    ]
    keys = of_kind(world, "ROW_GROUP", (*KEY_COLUMNS, "metadata_identifier", "operation"))
    assert keys[0] == ("hive", "sales", "events", "dt=1", f"dt=1/{file.name}/0", "compact-swap")
    assert all(cell for key in keys for cell in key)


def test_the_row_groups_of_a_table_without_partitions_have_its_segment(world):
    world.add_table(a_table(name="plain"), {"": [1000] * 4})
    deepest(world, tables=("sales.plain",))
    keys = of_kind(world, "ROW_GROUP", ("metadata_key", "metadata_identifier", "partition_name"))
    assert [(key, partition, name.partition("/")[0]) for key, name, partition in keys] == [("DEFAULT_SEGMENT", "", "")] * 2


def test_those_of_files_that_are_read_and_stay_are_described_those_of_unreadable_ones_are_not(world, desk):
    world.files.put(f"{desk.live('dt=2')}/damaged.parquet", "no data file", 1000)
    deepest(world)
    shown = row_groups_in(world, "file_name", "row_count")
    assert [row for row in shown if row[0] == "dt=2"] == [("dt=2", f"part-0000{nth}.parquet", 1) for nth in range(3)]
    assert len([row for row in shown if row[0] != "dt=2"]) == 2 * len(OF_A_COPY)


def test_so_are_those_of_a_unit_whose_files_were_to_be_joined(world, desk):
    world.files.put(f"{desk.live('dt=2')}/damaged.parquet", "no data file", 1000)
    done = deepest(world, rules=replace(QUIET, exchange="files", read_by_llap=False, fewest_joined=2))
    assert {unit.name: unit.outcome.code for unit in done.tables[0].units} == {"dt=1": "swapped", "dt=2": "refused", "dt=3": "swapped"}
    assert row_groups_in(world, "file_name", "row_count") == [("dt=2", f"part-0000{nth}.parquet", 1) for nth in range(3)]


def test_a_copy_that_was_not_put_in_place_is_not_described_but_what_stayed(world):
    world.rows.spoil = lambda unit, rows: ("wrong", *rows[1:]) if unit == 1 else rows
    done = deepest(world, where="dt < '3'", tables=("sales.events",))
    assert [unit.outcome.code for unit in done.tables[0].units] == ["swapped", "differs"]
    assert [row for row in row_groups_in(world) if row[0] == "dt=1"] == [("dt=1", 0, 1)] * 3


def test_they_stay_as_long_as_their_file_is_the_same(world, desk):
    deepest(world)
    before = of_kind(world, "ROW_GROUP", tuple(TABLES.columns))
    world.files.namespace.advance(3_600_000)
    deepest(world, analyze.analyze, "20260202t000000z-0000")
    assert of_kind(world, "ROW_GROUP", tuple(TABLES.columns)) == before
    # Of another length, of another time, and gone.
    first, second, third = (world.files.look([desk.live(day)])[desk.live(day)].entries[0].path for day in ("dt=1", "dt=2", "dt=3"))
    content = world.files.content(first)
    world.files.writer.delete(first)
    world.files.put(first, content, 5000)
    content = world.files.content(second)
    world.files.writer.delete(second)
    world.files.put(second, content, 3000)
    world.files.writer.rename_into(third, third.replace("part", "other"))
    world.add_file(f"{desk.live('dt=3')}/new.parquet", ["row"])
    deepest(world, analyze.analyze, "20260202t000001z-0000")
    assert row_groups_in(world) == []


def test_a_compaction_replaces_those_that_it_read_the_night_before(world, desk):
    world.files.put(f"{desk.live('dt=2')}/damaged.parquet", "no data file", 1000)
    deepest(world)
    world.files.writer.delete(f"{desk.live('dt=2')}/damaged.parquet")
    deepest(world, run="20260202t000000z-0000")
    assert row_groups_in(world) == [(day, *group) for day in ("dt=1", "dt=2", "dt=3") for group in OF_A_COPY]
    desk.rollback()
    # It undid the second compaction, which was of this partition alone.
    deepest(world, analyze.analyze, "20260203t000000z-0000")
    assert row_groups_in(world) == [(day, *group) for day in ("dt=1", "dt=3") for group in OF_A_COPY]


def test_with_where_those_of_other_partitions_stay_and_none_is_there_twice(world):
    deepest(world)
    expected = row_groups_in(world)
    for work in (analyze.analyze, compact_swap.compact_swap):
        deepest(world, work, "20260202t000000z-0000", tables=("sales.events",), where="dt = '2'")
        assert row_groups_in(world) == expected
    keys = rows_in(world.cluster, TABLES, (*KEY_COLUMNS, "metadata_identifier", "metadata_kind"))
    assert len(set(keys)) == len(keys)


def test_those_of_partitions_that_are_not_listed_again_stay(world):
    deepest(world)
    world.files.namespace.advance(3_600_000)
    deepest(world, analyze.analyze, "20260202t000000z-0000")
    expected = row_groups_in(world)
    world.files.namespace.advance(3_600_000)
    _, found = analyze_changed(world, "20260203t000000z-0000", DEEPEST)
    record(world, found, DEEPEST)
    assert found.tables[0].observed.unchanged == 3
    assert row_groups_in(world) == expected != []


def test_other_tables_keep_theirs_and_those_of_a_dropped_partition_go(world):
    for name in ("plain", "other"):
        world.add_table(a_table(name=name), {"": [1000] * 4})
    deepest(world)
    everyone = of_kind(world, "ROW_GROUP", ("table_name",))
    assert len(everyone) == 6 + 2 * 2
    world.catalog.drop_partition("sales.events", "dt=2")
    deepest(world, analyze.analyze, "20260202t000000z-0000", tables=("sales.events",))
    deepest(world, analyze.analyze, "20260202t000001z-0000")
    assert len(of_kind(world, "ROW_GROUP", ("table_name",))) == len(everyone) - len(OF_A_COPY)


def add_two_files(world, desk, day, name):
    """Of one row each: with the copy's three rows, the next copy has three row groups."""
    for number in range(2):
        world.add_file(f"{desk.live(f'dt={day}')}/{name}{number}.parquet", [f"{name} {number}"])


def count_by_day(world):
    return Counter(day for day, *_ in row_groups_in(world))


def test_a_table_has_so_many_row_groups_at_most_whatever_its_footers_claim(world, desk, monkeypatch):
    monkeypatch.setattr("hivekeeper.catalogue.row_groups.MOST_OF_TABLE", 6)
    deepest(world)
    assert count_by_day(world) == {"dt=1": 2, "dt=2": 2, "dt=3": 2}
    for day, expected in (("1", {"dt=2": 2, "dt=3": 2}), ("2", {"dt=2": 3, "dt=3": 2})):
        add_two_files(world, desk, day, "more")
        deepest(world, run=f"2026020{day}t000000z-0000", tables=("sales.events",), where=f"dt = '{day}'")
        # Those of partitions that were not looked at stay; those of a file are there all or none.
        assert count_by_day(world) == expected


def test_those_just_read_come_before_those_of_before(world, desk, monkeypatch):
    deepest(world)
    add_two_files(world, desk, 3, "more")
    monkeypatch.setattr("hivekeeper.catalogue.row_groups.MOST_OF_TABLE", 4)
    deepest(world, run="20260202t000000z-0000")
    # The last file of those of before is one too many: it is there whole.
    assert count_by_day(world) == {"dt=1": 2, "dt=3": 3}


def test_a_run_holds_no_more_row_groups_than_it_may_tell(world):
    one_by_one = replace(QUIET, batch_units=1)
    context = a_context(world.cluster, Selection(databases=("sales",)), "20260201t000001z-0000", one_by_one, most_row_groups=5)
    (done,) = compact_swap.compact_swap(context).tables
    assert done.row_group_count == 4


def test_footers_that_are_read_in_portions_share_the_room(world, monkeypatch):
    monkeypatch.setattr("hivekeeper.plan.analysis.UNITS_AT_ONCE", 1)
    for day in (1, 2, 3):
        world.files.put(f"{world.table('sales.events').location}/dt={day}/damaged.parquet", "no data file", 1000)
    context = a_context(world.cluster, Selection(databases=("sales",)), "20260201t000001z-0000", QUIET, most_row_groups=5)
    (done,) = compact_swap.compact_swap(context).tables
    assert done.row_group_count == 5


def test_files_that_are_read_two_nights_are_there_once(world, desk):
    world.files.put(f"{desk.live('dt=2')}/damaged.parquet", "no data file", 1000)
    for night in (1, 2):
        deepest(world, run=f"2026020{night}t000000z-0000")
        assert count_by_day(world)["dt=2"] == 3


def test_files_that_left_live_have_none_although_they_were_read(world, desk):
    def drop_in_the_gap(what):
        if what.startswith("rename_exact") and what.endswith(f"/ready/u00002 {desk.live('dt=2')}"):
            world.catalog.drop_partition("sales.events", "dt=2")

    world.files.before_step = drop_in_the_gap
    done = deepest(world)
    assert [unit.outcome.code for unit in done.tables[0].units] == ["swapped", "dropped-meanwhile", "swapped"]
    assert count_by_day(world) == {"dt=1": 2, "dt=3": 2}


def test_a_command_tells_so_many_of_all_its_tables(world, monkeypatch):
    monkeypatch.setattr("hivekeeper.commands.per_table.MOST_ROW_GROUPS", 7)
    for name in ("plain", "other"):
        world.add_table(a_table(name=name), {"": [1000] * 4})
    done = deepest(world)
    assert done.tables[0].row_group_count == 6
    assert [table.row_group_count for table in done.tables[1:]] == [0, 0]


def test_nothing_more_is_asked_for_row_groups():
    calls = []
    for most in (0, 50_000):
        fresh = World()
        fresh.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2, 3)})
        files, rows = Counting(fresh.files), Counting(fresh.rows)
        cluster = replace(fresh.cluster, files=files, rows=rows)
        context = a_context(cluster, Selection(databases=("sales",)), "20260201t000001z-0000", most_row_groups=most)
        done = compact_swap.compact_swap(context)
        assert done.tables[0].row_group_count == (6 if most else 0)
        calls.append((files.calls, files.looked_at, rows.calls))
    assert calls[0] == calls[1]


def test_show_prints_row_groups(world):
    deepest(world)
    columns = ("partition_name", "row_group_index", "row_count")
    shown = ask(world, Request("show", kind="ROW_GROUP", columns=columns, key="dt=2"), settings=DEEPEST)
    assert shown.catalogue.rows == (("dt=2", 0, 2), ("dt=2", 1, 1))
    assert document.build(shown)["catalogue"]["rows"][0] == {"partition_name": "dt=2", "row_group_index": 0, "row_count": 2}
    assert "dt=2" in screen.render(shown)


@pytest.mark.parametrize(("settings", "most"), [(CatalogueSettings(level="row_group"), 0), (SETTINGS, 0), (DEEPEST, 50_000)])
def test_they_are_told_only_if_the_catalogue_wants_them(settings, most):
    assert catalogue.most_row_groups(settings) == most


# ---- what others see


def test_hives_tables_show_the_newest_commit_and_views_are_over_them(world):
    everything(world)
    everything(world, "20260201t000001z-0000", compact_swap.compact_swap)
    for component in COMPONENTS:
        assert rows_shown(world, component) == rows_in(world.cluster, component, tuple(component.columns))
    for view in VIEWS_OF_NOW:
        known = world.table(f"hivekeeper.{view.name}")
        assert (known.kind, known.view_text) == ("VIRTUAL_VIEW", view.text("hivekeeper"))
        assert [column.name for column in known.columns] == list(view.columns)


def test_killed_at_any_step_hives_tables_show_one_of_the_commits_and_the_next_run_mends_them(world):
    def shown(world):
        found = sorted(row[list(TABLES.columns).index("verdict")] for row in rows_shown(world, TABLES) if "TABLE" in row)
        assert found in (["compact"], ["fine"])
        return found

    seen = []
    for step in range(200):
        world = World()
        world.files.writer.make_directory(ROOT)
        world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
        everything(world)
        done = compact_swap.compact_swap(a_context(world.cluster, Selection(tables=("sales.events",)), "20260201t000001z-0000", QUIET))
        world.files.die_after(step)
        try:
            record(world, done)
            break
        except Killed:
            world.files.revive()
        seen.append(shown(world))
        everything(world, "20260201t000002z-0000")
        assert shown(world) == ["fine"]
        assert rows_shown(world, TABLES) == rows_in(world.cluster, TABLES, tuple(TABLES.columns))
    assert seen[0] == ["compact"]
    assert seen[-1] == ["fine"]


def test_two_runs_that_end_together_leave_hives_tables_at_the_newest_commit(world):
    world.add_table(a_table(name="plain"), {"": [1000] * 4})
    for step in range(200):
        world.files.delete_tree(ROOT)
        world.files.writer.make_directory(ROOT)
        other, count = world.another_process(), [0]

        def interrupt(_what, step=step, other=other, count=count):
            if count[0] == step:
                own = a_context(other, Selection(tables=("sales.plain",)), "20260201t000001z-0000", QUIET)
                catalogue.record(other, SETTINGS, (), analyze.analyze(own))
            count[0] += 1

        done = analyze.analyze(a_context(world.cluster, Selection(tables=("sales.events",)), "20260201t000002z-0000", QUIET))
        world.files.before_step = interrupt
        record(world, done)
        world.files.before_step = None
        if count[0] <= step:
            break
        assert of_kind(world, "TABLE", ("table_name",)) == [("events",), ("plain",)]
        assert len(of_kind(world, "RUN", ("run",), RUNS)) == 2
        for component in (TABLES, RUNS):
            assert rows_shown(world, component) == rows_in(world.cluster, component, tuple(component.columns))
    assert step > 10


# ---- what goes wrong


@pytest.mark.parametrize("method", ["write_new", "rename_exact", "make_directory", "put", "guard"])
def test_a_failing_catalogue_fails_no_command(world, desk, caplog, method):
    done = desk.compact()
    world.files.fail_next(method, FilesUnavailable("the NameNode is away"))
    with caplog.at_level(logging.WARNING, "hivekeeper"):
        record(world, done)
    assert "the NameNode is away; what this run saw may be missing" in caplog.text
    everything(world, "20260201t000002z-0000")
    assert of_kind(world, "TABLE", SIZES) == [("events", 3, 9000, 3, 3, "fine")]


@pytest.mark.parametrize("method", ["make_database", "make_catalogue_table", "make_catalogue_view", "point_catalogue_table"])
def test_a_failing_metastore_leaves_the_files_right_and_the_next_run_points_the_tables(world, desk, caplog, method):
    record(world, desk.compact())
    world.metastore.fail_next(method, MetastoreUnavailable("timeout"))
    with caplog.at_level(logging.WARNING, "hivekeeper"):
        record(world, desk.analyze())
    assert "timeout" in caplog.text
    assert len(of_kind(world, "RUN", ("run",), RUNS)) == 2
    record(world, desk.analyze())
    for component in COMPONENTS:
        assert rows_shown(world, component) == rows_in(world.cluster, component, tuple(component.columns))


def test_a_bug_in_the_catalogue_fails_no_command(world, desk, caplog, monkeypatch):
    done = desk.compact()
    monkeypatch.setattr("hivekeeper.catalogue.rows.bucket_of", lambda *_: 1 / 0)
    record(world, done)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("table", "run", "what"),
    [
        ("events", "20260201t000000z-0000", "a TABLE row of 'events' has no table"),
        (".events", "20260201t000000z-0000", "a TABLE row of '.events' has no database"),
        ("sales.events", "", "a RUN row of 'sales.events' has no metadata key"),
    ],
    ids=["table", "database", "key"],
)
def test_a_row_without_a_part_of_its_key_is_refused_in_one_line_and_added_nowhere(world, desk, caplog, table, run, what):
    everything(world, "20260131t000000z-0000")
    found = desk.analyze()
    with caplog.at_level(logging.WARNING, "hivekeeper"):
        record(world, replace(found, run=run, tables=(replace(found.tables[0], table=table),)))
    (warning,) = (line for line in caplog.text.splitlines() if "missing in the catalogue" in line)
    assert f"the catalogue: {what}, and no part of a key may be missing" in warning
    assert "unexpected" not in caplog.text
    for component in (TABLES, RUNS):
        keys = rows_in(world.cluster, component, KEY_COLUMNS)
        assert keys
        assert all(all(key) for key in keys)


@pytest.mark.parametrize("place", ["/warehouse/sales/events", "/warehouse/sales/events/cat", "/warehouse/sales", "/warehouse"])
def test_a_place_that_belongs_to_a_table_is_refused(world, desk, caplog, place):
    world.add_table(a_table(name="at", location="hdfs://nn/warehouse/sales/events/metadata/tables/x"), {})
    location = world.table("sales.events").location
    settings = CatalogueSettings(base_path=f"{location}/cat" if place.endswith("cat") else location, relative_path="metadata")
    before = world.picture()
    with pytest.raises(UsageError) as refused:
        ask(world, Request("show"), settings=settings)
    assert refused.value.reason.code is Code.CATALOGUE_PLACE
    with caplog.at_level(logging.WARNING, "hivekeeper"):
        record(world, desk.analyze(), settings)
    assert "lies in the directory of sales." in caplog.text
    assert world.picture() == before


def test_components_at_one_place_are_refused(world):
    with pytest.raises(UsageError, match="two components lie"):
        open_catalogue(world.cluster, replace(SETTINGS, tables="same", runs="same"))


def test_no_catalogue_is_configured(world):
    with pytest.raises(UsageError, match="base_path is not set"):
        ask(world, Request("show"), settings=CatalogueSettings())


@pytest.mark.parametrize("name", ["metadata_tables", "tables_now", "metadata_runs", "savings_by_run"])
def test_a_table_of_somebody_else_by_a_name_it_needs_stays_and_the_files_are_right(world, desk, caplog, name):
    taken = take_name(world, name)
    with caplog.at_level(logging.WARNING, "hivekeeper"):
        record(world, desk.analyze())
    assert f"hivekeeper.{name} exists and is not the catalogue's" in caplog.text
    assert world.table(f"hivekeeper.{name}") == taken
    assert (len(of_kind(world, "TABLE", ("run",))), len(of_kind(world, "RUN", ("run",), RUNS))) == (1, 1)
    for component in (one for one in COMPONENTS if one.table != name):
        assert rows_shown(world, component) == rows_in(world.cluster, component, tuple(component.columns))


def take_name(world, name):
    taken = replace(a_table(name=name, location=f"hdfs://nn/elsewhere/{name}"), database="hivekeeper")
    world.catalog.tables.pop(taken.full_name, None)
    world.catalog.add_table(taken)
    return taken


def test_each_table_of_somebody_else_is_told(world, desk, caplog):
    for component in COMPONENTS:
        take_name(world, component.table)
    record(world, desk.analyze())
    assert [component for component in COMPONENTS if f"hivekeeper.{component.table} exists" not in caplog.text] == []


@pytest.mark.parametrize("action", ["delete", "purge", "expire"])
def test_the_command_changes_the_files_of_all_components_although_a_table_is_somebody_elses(world, action):
    settings = replace(SETTINGS, expire_after_ms=1000)
    everything(world, settings=settings)
    if action == "expire":
        ask(world, Request("purge"), settings=settings)
        world.files.namespace.advance(2000)
    take_name(world, TABLES.table)
    with pytest.raises(UsageError, match="is not the catalogue's"):
        ask(world, Request(action), settings=settings)
    assert [rows_in(world.cluster, component, ("run",)) for component in COMPONENTS] == [[], [], []]
    if action == "expire":
        assert not [path for path in world.picture() if path.endswith(".parquet") and path.startswith(ROOT)]


def test_a_component_that_cannot_be_read_keeps_no_rows_out_of_the_others(world, caplog):
    everything(world)
    damage_newest_commit(world)
    everything(world, "20260201t000001z-0000")
    assert "step=catalogue failed" in caplog.text
    assert len(of_kind(world, "RUN", ("run",), RUNS)) == 2
    assert rows_shown(world, RUNS) == rows_in(world.cluster, RUNS, tuple(RUNS.columns))


def damage_newest_commit(world):
    log = f"{ROOT}/metadata/tables/log"
    newest = max(entry.path for entry in world.files.look([log])[log].entries)
    world.files.writer.delete(newest)
    world.files.put(newest, "no commit\n")


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda one: one.name)
def test_a_tenants_table_with_its_mark_is_not_handed_the_catalogue(world, desk, component):
    """Whoever makes it first, with the mark in its properties, would own it, and could drop it with the catalogue's files."""
    mark = {names.CATALOGUE: component.name, "external.table.purge": "true"}
    table = a_table([component.part], name=component.table, location="hdfs://nn/user/mallory/x", kind="MANAGED_TABLE", owner="mallory")
    theirs = replace(table, database="hivekeeper", parameters=mark)
    world.catalog.add_table(theirs, [])
    record(world, desk.analyze())
    assert (world.table(theirs.full_name), places_shown(world, component)) == (theirs, {})


def test_its_own_tables_are_not_compacted(world):
    everything(world)
    result = compact_swap.compact_swap(a_context(world.cluster, Selection(databases=("hivekeeper",)), "20260201t000003z-0000", QUIET))
    assert {table.problem.code for table in result.tables} == {Code.CATALOGUE_TABLE, Code.VIEW}
    assert result.code is Exit.REFUSED


def test_a_definition_of_megabytes_is_cut(world):
    wide = a_table(["dt"], name="wide", owner="o" * 1_000_000)
    world.add_table(wide, {"dt=1": [1000]})
    view = a_table(name="long", kind="VIRTUAL_VIEW", location="", view_text="SELECT " + "1 + " * 500_000 + "1")
    world.catalog.add_table(view)
    everything(world)
    (owner,) = [row[0] for row in rows_in(world.cluster, TABLES, ("owner",), table_name="wide", metadata_kind="TABLE")]
    (text,) = [row[0] for row in rows_in(world.cluster, VIEWS, ("view_text",))]
    assert (len(owner), len(text), text[-1]) == (2**16 + 1, 2**16 + 1, "…")


def test_what_controls_a_terminal_is_shown_as_text(world):
    world.add_table(a_table(["dt"], name="odd", owner="\x1b[31mroot"), {"dt=1": [1000]})
    everything(world)
    shown = ask(world, Request("show", columns=("table_name", "owner")))
    assert "\x1b" not in screen.render(shown)
    assert "\x1b" not in document.to_json(document.build(shown))


# ---- the command


def test_show_prints_what_is_recorded(world):
    everything(world)
    shown = ask(world, Request("show"))
    text = screen.render(shown)
    assert "sales          events      compact" in text
    assert "8.8 KiB" in text
    row = document.build(shown)["catalogue"]["rows"][0]
    assert (row["table_name"], row["files"], row["total_bytes"]) == ("events", 9, 9000)
    assert screen.render(ask(world, Request("show", "views"))) == "nothing is recorded"


def test_delete_leaves_the_rows_of_tables_that_are_left_out_as_in_all_commands(world):
    """By a pattern without a dot: it was compared with the names of databases, too."""
    world.add_table(a_table(name="plain"), {"": [1000] * 4})
    everything(world)
    ask(world, Request("delete"), Selection(databases=("sales",), exclude=("events",)))
    assert {row[0] for row in rows_in(world.cluster, TABLES, ("table_name",))} == {"events"}


def test_show_takes_a_component_a_kind_columns_a_key_tables_and_a_limit(world):
    world.add_table(a_table(name="plain"), {"": [1000] * 4})
    everything(world)

    def rows(request, **selection):
        return ask(world, request, Selection(**selection)).catalogue.rows

    columns = ("partition_name", "bucket")
    found = rows(Request("show", kind="PARTITION", columns=columns, key="dt=2"))
    assert [row[0] for row in found] == ["dt=2"]
    assert len(rows(Request("show", kind="PARTITION"), tables=("sales.EVENTS",))) == 3
    assert len(rows(Request("show", kind="PARTITION"), databases=("sales",), exclude=("*.events",))) == 1
    assert len(rows(Request("show", kind="PARTITION"), databases=("sales",), exclude=("events",))) == 1
    assert rows(Request("show"), databases=("other",)) == ()
    limited = ask(world, Request("show", kind="PARTITION", limit=2))
    assert (len(limited.catalogue.rows), limited.catalogue.has_more) == (2, True)
    assert "… and more" in screen.render(limited)
    with pytest.raises(UsageError, match="tables has no column rows"):
        rows(Request("show", columns=("rows",)))


def test_show_is_in_order_tables_by_name_and_runs_by_time(world, desk):
    for name in ("zebra", "ant", "middle"):
        world.add_table(a_table(name=name), {"": [1000] * 4})
    everything(world)
    assert [row[0] for row in ask(world, Request("show", columns=("table_name",))).catalogue.rows] == ["ant", "events", "middle", "zebra"]
    found = ask(world, Request("show", kind="PARTITION", columns=("partition_name",), limit=3), Selection(tables=("sales.events",)))
    assert [row[0] for row in found.catalogue.rows] == ["dt=1", "dt=2", "dt=3"]
    runs = [record(world, desk.analyze()).run for _ in range(3)]
    shown = ask(world, Request("show", "runs", columns=("run",), limit=3), Selection(tables=("sales.events",)))
    assert [row[0] for row in shown.catalogue.rows] == ["20260201t000000z-0000", runs[2], runs[1]]
    assert shown.catalogue.has_more


def test_delete_removes_the_rows_of_tables_or_of_one_key(world):
    world.add_table(a_table(name="plain"), {"": [1000] * 4})
    everything(world)
    one = ask(world, Request("delete", key="dt=2"), Selection(tables=("sales.events",)))
    assert dict(one.catalogue.deleted) == {"tables": 1, "views": 0, "runs": 0}
    assert of_kind(world, "PARTITION", ("partition_name",)) == [("",), ("dt=1",), ("dt=3",)]
    ask(world, Request("delete"), Selection(tables=("sales.events",)))
    assert {name for (name,) in rows_in(world.cluster, TABLES, ("table_name",))} == {"plain"}
    assert {name for (name,) in rows_in(world.cluster, RUNS, ("table_name",))} == {"plain"}
    assert rows_shown(world, TABLES) == rows_in(world.cluster, TABLES, tuple(TABLES.columns))


def test_purge_removes_all_and_expire_the_files(world):
    settings = replace(SETTINGS, expire_after_ms=1000)
    everything(world)
    ask(world, Request("purge"), settings=settings)
    assert [rows_in(world.cluster, component, ("table_name",)) for component in COMPONENTS] == [[], [], []]
    assert [places_shown(world, component) for component in COMPONENTS] == [{}, {}, {}]
    assert [path for path in world.picture() if path.endswith(".parquet") and path.startswith(ROOT)]
    world.files.namespace.advance(2000)
    ask(world, Request("expire"), settings=settings)
    assert not [path for path in world.picture() if path.endswith(".parquet") and path.startswith(ROOT)]


@pytest.mark.parametrize("place", [ROOT, f"{ROOT}/metadata/tables", f"{ROOT}/metadata/runs/data/x"], ids=["around", "at", "inside"])
def test_a_table_that_claims_the_place_of_the_catalogue_ends_no_command_on_it(world, caplog, place):
    settings = replace(SETTINGS, expire_after_ms=1000)
    everything(world, settings=settings)
    world.catalog.add_table(replace(a_table(name="mine", location=place, create_time=7), database="mallory"))
    world.cluster = world.another_process()
    assert ask(world, Request("show"), settings=settings).catalogue.rows
    assert "mallory.mine" in caplog.text
    assert dict(ask(world, Request("delete"), settings=settings).catalogue.deleted)["runs"] == 1
    ask(world, Request("purge"), settings=settings)
    world.files.namespace.advance(2000)
    ask(world, Request("expire"), settings=settings)
    assert not [path for path in world.picture() if path.endswith(".parquet") and path.startswith(ROOT)]


def test_a_component_that_is_not_there_yet_is_not_made_in_a_table_that_claims_its_place(world):
    everything(world)
    world.files.delete_tree(f"{ROOT}/metadata/runs")
    world.catalog.add_table(a_table(name="mine", location=ROOT, create_time=7))
    world.cluster = world.another_process()
    for action in ("delete", "purge", "expire"):
        ask(world, Request(action))
    assert not world.files.look([f"{ROOT}/metadata/runs"])[f"{ROOT}/metadata/runs"].exists


def test_the_rows_of_a_table_around_the_catalogue_stay(world):
    everything(world)
    theirs = {f"{ROOT}/part-0.parquet", f"{ROOT}/metadata/tables/part-0.parquet", f"{ROOT}/metadata/tables/data/x/x.parquet"}
    for path in theirs:
        world.files.writer.add(path, "rows")
    world.catalog.add_table(a_table(name="mine", location=ROOT, create_time=7))
    world.cluster = world.another_process()
    settings = replace(SETTINGS, expire_after_ms=1000)
    ask(world, Request("purge"), settings=settings)
    world.files.namespace.advance(3 * 86_400_000)
    ask(world, Request("expire"), settings=settings)
    assert theirs <= world.picture().keys()


@pytest.mark.parametrize("has_home", [False, True], ids=["", "in a database of its own inside it"])
@pytest.mark.parametrize("is_taken", [True, False], ids=["its name is taken", "it is new"])
@pytest.mark.parametrize("place", [ROOT, f"{ROOT}/metadata", f"{ROOT}/metadata/tables/data"], ids=["around", "at", "inside"])
def test_no_table_is_worked_on_where_the_catalogue_is_whatever_the_metastore_tells_of_it(world, place, is_taken, has_home):
    """It is in no list of places if its names are taken, nor if it is younger than the list."""
    for component in COMPONENTS if is_taken else ():
        taken = a_table(name=component.table, location=f"hdfs://nn/hers/{component.table}", create_time=8)
        world.catalog.add_table(replace(taken, database="hivekeeper"))
    if has_home:
        world.catalog.homes["mallory"] = place
    world.metastore.locations_below([ROOT])
    everything(world)
    mine = replace(a_table(["part"], name="mine", location=place, create_time=7), database="mallory")
    parts = [one.path for one in world.files.look([f"{ROOT}/metadata/tables/data"])[f"{ROOT}/metadata/tables/data"].entries]
    world.catalog.add_table(mine, [a_partition(f"part={nth}", path) for nth, path in enumerate(parts)])
    if is_taken:
        world.cluster = world.another_process()
    before, cluster = world.picture(), replace(world.cluster, catalogue_at=catalogue.place_of(SETTINGS))
    for command in (analyze.analyze, compact_swap.compact_swap, backup.back_up):
        (found,) = command(a_context(cluster, Selection(tables=("mallory.mine",)), RUN, QUIET)).tables
        assert found.problem.code is Code.SHARED_DIRECTORY
        # Those of a catalogue that is new are told with newer places.
        assert "the catalogue" in found.problem.what or not is_taken
    assert world.picture() == before


def test_where_there_is_no_catalogue_no_place_is_kept():
    assert catalogue.place_of(CatalogueSettings()) == ""


# ---- analyze --changed


class CountedFiles:
    """Files that remember which directories were listed, as directories of partitions."""

    def __init__(self, files):
        self._files = files
        self.listed = []

    def __getattr__(self, name):
        return getattr(self._files, name)

    def look(self, directories, most=2**31 - 1):
        if most:
            self.listed += [place.rpartition("/")[2] for place in directories if "dt=" in place]
        return self._files.look(directories, most)


def analyze_changed(world, run="20260202t000000z-0000", settings=SETTINGS, rules=QUIET, **selection):
    """What was listed, and the result."""
    files = CountedFiles(world.files)
    cluster = replace(world.cluster, files=files)
    selected = Selection(**(selection or {"tables": ("sales.events",)}))
    context = a_context(cluster, selected, run, rules)
    result = analyze.analyze(context, catalogue.open_known(context, settings, ()))
    return sorted(files.listed), result


def test_a_table_that_claims_the_place_of_the_catalogue_ends_no_analysis(compacted, caplog):
    compacted.catalog.add_table(replace(a_table(name="mine", location=ROOT, create_time=7), database="mallory"))
    compacted.cluster = compacted.another_process()
    _, found = analyze_changed(compacted)
    assert (found.code, found.tables[0].observed.unchanged) == (Exit.DONE, 0)
    assert "step=catalogue failed" in caplog.text


def lose_rows(world):
    for path in [path for path in world.picture() if path.startswith(f"{ROOT}/metadata/tables/data")]:
        world.files.writer.delete(path)


def take_away(world):
    """The directory of the catalogue does not answer."""
    look = world.files.look

    def fail(directories, *most):
        if any(place.startswith(ROOT) for place in directories):
            raise FilesUnavailable("timeout")
        return look(directories, *most)

    world.files.look = fail


@pytest.mark.parametrize("spoil", [damage_newest_commit, lose_rows, take_away])
def test_a_catalogue_that_cannot_be_read_is_asked_once_and_all_is_looked_at(compacted, caplog, spoil):
    compacted.add_table(a_table(name="plain"), {"": [1000] * 3})
    spoil(compacted)
    selected = Selection(databases=("sales",))
    listed, found = analyze_changed(compacted, databases=selected.databases)
    assert (listed, found.code) == (["dt=1", "dt=2", "dt=3"], Exit.DONE)
    expected = analyze.analyze(a_context(compacted.cluster, selected, found.run, QUIET))
    assert found.tables == expected.tables
    assert caplog.text.count("step=catalogue failed") == 1


def judged(result):
    return {unit.name: (unit.status.code, unit.sizes.files, unit.sizes.total_bytes) for unit in result.tables[0].observed.units}


@pytest.fixture
def compacted(world, desk):
    """A table that was compacted, and looked at an hour later."""
    desk.compact()
    world.files.namespace.advance(3_600_000)
    everything(world)
    return world


def test_what_has_not_changed_is_not_listed_and_judged_as_before(compacted):
    listed, found = analyze_changed(compacted)
    assert listed == []
    assert found.tables[0].observed.unchanged == 3
    assert judged(found) == judged(analyze.analyze(a_context(compacted.cluster, Selection(tables=("sales.events",)), "r", QUIET)))
    assert "not listed       3 of 3 units" in screen.render(found)
    assert document.build(found)["tables"][0]["analysis"]["unchanged"] == 3


@pytest.mark.parametrize("change", ["add", "remove", "rename", "replace directory", "same time", "move"])
def test_a_partition_that_changed_is_listed(compacted, change):
    live = compacted.table("sales.events").location + "/dt=2"
    writer = compacted.files.writer
    file = compacted.files.look([live])[live].entries[0].path
    if change == "add":
        compacted.add_file(f"{live}/new.parquet", ["row"])
    elif change == "remove":
        writer.delete(file)
    elif change == "rename":
        writer.rename_into(file, f"{live}/other.parquet")
    elif change == "replace directory":
        writer.rename_into(live, f"{live}.old")
        writer.make_directory(live)
    elif change == "same time":
        seen_ms = compacted.files.stat(live).mtime_ms
        writer.rename_into(live, f"{live}.old")
        writer.make_directory(live)
        compacted.files.namespace.find(live).mtime_ms = seen_ms
    else:
        writer.rename_into(live, live.replace("dt=2", "dt=9"))
        partition = compacted.partitions("sales.events")["dt=2"]
        compacted.catalog.put_partition("sales.events", replace(partition, location=live.replace("dt=2", "dt=9")))
    listed, found = analyze_changed(compacted)
    assert listed == ["dt=9" if change == "move" else "dt=2"]
    assert judged(found) == judged(analyze.analyze(a_context(compacted.cluster, Selection(tables=("sales.events",)), "r", QUIET)))


def test_files_that_somebody_puts_beside_partitions_are_not_listed_to_their_end(compacted, monkeypatch):
    """They are in no partition, so nothing else counts them. A table may have partitions in thousands of directories."""
    root = compacted.table("sales.events").location
    for number in range(400):
        compacted.add_file(f"{root}/x{number}", ["x"])
    counts, look = [], CountedFiles.look

    def count(self, directories, *most):
        found = look(self, directories, *most)
        counts.append(sum(len(one.entries) for one in found.values()))
        return found

    monkeypatch.setattr(CountedFiles, "look", count)
    listed, found = analyze_changed(compacted, rules=replace(QUIET, max_files=20))
    assert max(counts) <= 21
    assert (listed, found.tables[0].observed.unchanged) == (["dt=1", "dt=2", "dt=3"], 0)
    assert set(judged(found)) == {"dt=1", "dt=2", "dt=3"}


def test_what_is_worth_compacting_is_looked_at_again(world):
    everything(world)
    listed, found = analyze_changed(world)
    assert listed == ["dt=1", "dt=2", "dt=3"]
    assert found.tables[0].observed.unchanged == 0


def test_a_change_within_a_minute_of_the_look_may_have_come_after_it(world, desk):
    desk.compact()
    world.files.namespace.advance(30_000)
    everything(world)
    assert analyze_changed(world)[0] == ["dt=1", "dt=2", "dt=3"]


@pytest.mark.parametrize("setting", [{"block_bytes": 2**20}, {"ratio_threshold": 2.0}, {"compression": "zstd"}, {"sort_columns": ("id",)}])
def test_other_settings_judge_anew(compacted, setting):
    assert analyze_changed(compacted, rules=replace(QUIET, **setting))[0] == ["dt=1", "dt=2", "dt=3"]


def test_a_new_partition_is_listed_and_one_that_is_gone_is_not_missed(compacted):
    live = compacted.table("sales.events").location + "/dt=4"
    compacted.add_file(f"{live}/new.parquet", ["row"])
    compacted.catalog.add_partition(
        "sales.events", replace(compacted.partitions("sales.events")["dt=1"], name="dt=4", values=("4",), location=live)
    )
    compacted.catalog.drop_partition("sales.events", "dt=1")
    listed, found = analyze_changed(compacted)
    assert listed == ["dt=4"]
    assert set(judged(found)) == {"dt=2", "dt=3", "dt=4"}


def test_a_table_without_partitions_is_not_listed_either(world):
    table = a_table(name="plain")
    world.add_table(table, {"": [1000] * 4})
    own = Desk(world, "sales.plain")
    own.compact()
    world.files.namespace.advance(3_600_000)
    everything(world)
    _, found = analyze_changed(world, tables=("sales.plain",))
    assert found.tables[0].observed.unchanged == 1
    world.add_file(f"{table.location}/new.parquet", ["row"])
    _, found = analyze_changed(world, tables=("sales.plain",))
    assert (found.tables[0].observed.unchanged, found.tables[0].observed.units[0].sizes.files) == (0, 2)


@pytest.mark.parametrize("level", ["partition", "file"])
def test_recording_it_changes_no_row_of_what_was_not_listed(compacted, level):
    settings = replace(SETTINGS, level=level)
    everything(compacted, settings=settings)
    columns = tuple(column for column in TABLES.columns if column not in ("run", "seen_ms"))
    before = rows_in(compacted.cluster, TABLES, columns)
    compacted.files.namespace.advance(3_600_000)
    _, found = analyze_changed(compacted, settings=settings)
    record(compacted, found, settings)
    assert rows_in(compacted.cluster, TABLES, columns) == before
    assert found.tables[0].observed.unchanged == 3
    # When a partition was listed is still told.
    assert {seen for (seen,) in of_kind(compacted, "PARTITION", ("seen_ms",))} < {
        seen for (seen,) in rows_in(compacted.cluster, TABLES, ("seen_ms",))
    }
    _, again = analyze_changed(compacted, settings=settings)
    assert again.tables[0].observed.unchanged == 3


def test_a_partition_that_is_refused_now_is_refused(compacted):
    first = compacted.partitions("sales.events")["dt=1"]
    compacted.catalog.put_partition("sales.events", replace(compacted.partitions("sales.events")["dt=2"], location=first.location))
    _, found = analyze_changed(compacted)
    assert {name: status for name, (status, *_) in judged(found).items()} == {"dt=1": "refused", "dt=2": "refused", "dt=3": "fine"}


def test_where_no_catalogue_is_configured_it_is_an_error(world):
    with pytest.raises(UsageError):
        analyze_changed(world, settings=CatalogueSettings())
    # One that knows nothing yet is no error.
    assert analyze_changed(world)[0] == ["dt=1", "dt=2", "dt=3"]


@pytest.mark.parametrize(("is_dropped", "left"), [(True, ["hr"]), (False, ["hr", "sales"])])
def test_the_tables_of_a_database_that_was_refused_stay_and_those_of_a_dropped_one_go(world, monkeypatch, caplog, is_dropped, left):
    world.catalog.databases.add("hr")
    world.add_table(replace(a_table(name="people", location="hdfs://nn/warehouse/hr/people"), database="hr"), {"": [1000] * 3})
    everything(world, databases=("sales", "hr"))
    ask_names = world.metastore.table_names

    def refuse(database):
        if database == "sales":
            raise KeyError(database) if is_dropped else MetastoreRefused("Permission denied")
        return ask_names(database)

    monkeypatch.setattr(world.metastore, "table_names", refuse)
    result = everything(world, "20260201t000001z-0000", databases=("sales", "hr"))
    assert [table.table for table in result.tables] == ["sales", "hr.people"]
    assert [name for (name,) in of_kind(world, "TABLE", ("database_name",))] == left
    assert "step=catalogue failed" not in caplog.text


@pytest.mark.parametrize(("component", "kind"), [(TABLES, "MANAGED_TABLE"), (VIEWS, "VIRTUAL_VIEW")], ids=["table", "view"])
def test_what_another_command_records_while_a_catalogue_is_written_stays(world, monkeypatch, component, kind):
    result, ask_names, asked = everything(world), world.metastore.table_names, []

    def create_and_record(database):
        found = ask_names(database)
        if not asked:
            asked.append(database)
            world.add_table(a_table(name="new", kind=kind, view_text="SELECT 1"), {})
            everything(world, "20260201t000001z-0000")
        return found

    monkeypatch.setattr(world.metastore, "table_names", create_and_record)
    record(world, result)
    assert asked == ["sales"]
    assert ("new",) in rows_in(world.cluster, component, ("table_name",))


def test_looking_for_dropped_tables_reads_no_file_once_more_for_each_database(world, monkeypatch):
    world.catalog.databases.update(f"mallory{number}" for number in range(30))
    selected = ("sales", *(f"mallory{number}" for number in range(30)))
    everything(world, databases=selected)
    reads, read = [], type(world.cluster.row_files).read
    monkeypatch.setattr(type(world.cluster.row_files), "read", lambda *some, **more: reads.append(1) or read(*some, **more))
    everything(world, "20260201t000001z-0000", databases=selected)
    assert 0 < len(reads) < 30


@pytest.mark.parametrize(
    ("settings", "kept"),
    [(CatalogueSettings(level="file"), False), (SETTINGS, False), (replace(SETTINGS, level="file"), True), (DEEPEST, True)],
)
def test_files_are_kept_only_if_the_catalogue_describes_them(settings, kept):
    assert catalogue.keeps_files(settings) is kept
