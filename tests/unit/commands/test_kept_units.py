"""What a command over many tables keeps of their units until its end, and what is told whatever other tables have."""

from __future__ import annotations

import gc
import json
import tracemalloc
from dataclasses import replace

import pytest

from hivekeeper.catalogue import rows
from hivekeeper.catalogue.columns import RUNS, TABLES
from hivekeeper.catalogue.rows import Actor, Level
from hivekeeper.codes import Exit
from hivekeeper.commands import per_table
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import document, properties, screen
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome, count_units
from hivekeeper.runlog.outcomes import MOST_ASTRAY, Outcome
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.world import World

RUN = "20260101t020304z-0000"
SALES = Selection(databases=("sales",))


def with_partitions(tables, partitions):
    """All in one directory, which need not exist: each is refused, and costs a tenant one row of the metastore."""
    world = World()
    for number in range(tables):
        table = a_table(["dt"], name=f"t{number}", location=f"hdfs://nn/warehouse/mallory/t{number}")
        world.add_table(table, {})
        for at in range(partitions):
            world.catalog.add_partition(table.full_name, a_partition(f"dt={at}", "hdfs://nn/warehouse/mallory/x"))
    return world


def held(command, tables):
    world = with_partitions(tables, 40)
    gc.collect()
    tracemalloc.start()
    try:
        result = command(a_context(world.cluster, SALES, RUN))
        gc.collect()
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(result.tables) == tables
    return now


@pytest.mark.parametrize("command", [analyze, compact_swap])
def test_a_command_does_not_hold_all_partitions_of_all_tables(monkeypatch, command):
    """Each table may have 2,000,000 of them (ports.MOST_PARTITIONS), and one tenant as many tables as they like."""
    monkeypatch.setattr(per_table, "MOST_UNITS", 80)
    monkeypatch.setattr(per_table, "UNITS_OF_TABLE", 2)
    few, many = held(command, 2), held(command, 8)
    assert many < 2 * few


def told(result):
    """All that is told without partitions, but for the time that it took."""
    answer = document.build(result)
    for table in answer["tables"]:
        table.pop("seconds"), table.pop("step_seconds"), table.pop("units"), table.pop("more_units")
        for key in ("partitions", "more_partitions"):
            (table["analysis"] or {}).pop(key, None)
    answer.pop("seconds")
    return answer, properties.render(result)


def a_mixed_lake():
    """One table worth compacting, with other units in it, one with many refused partitions, one with few."""
    world = with_partitions(2, 60)
    mixed = a_table(["dt"], name="mixed", location="hdfs://nn/warehouse/sales/mixed")
    world.add_table(mixed, {f"dt={at}": [1000 + at % 3] * (1 + at % 3) for at in range(60)})
    for at in range(60, 90):
        world.catalog.add_partition(mixed.full_name, a_partition(f"dt={at}", "hdfs://nn/warehouse/sales/x"))
    world.add_table(a_table(["dt"], name="small", location="hdfs://nn/warehouse/sales/small"), {"dt=1": [1000] * 3})
    world.files.namespace.advance(3_600_000)
    return world


@pytest.mark.parametrize("command", [analyze, compact_swap])
def test_numbers_properties_and_exit_codes_are_those_of_all_units(monkeypatch, command):
    whole = command(a_context(a_mixed_lake().cluster, SALES, RUN))
    monkeypatch.setattr(per_table, "MOST_UNITS", 20)
    short = command(a_context(a_mixed_lake().cluster, SALES, RUN))
    assert told(short) == told(whole)
    tables = {table["table"]: table for table in document.build(short)["tables"]}
    assert len(tables["sales.mixed"]["analysis"]["partitions"]) == per_table.UNITS_OF_TABLE
    assert tables["sales.mixed"]["analysis"]["more_partitions"] == 90 - per_table.UNITS_OF_TABLE
    assert (tables["sales.small"]["analysis"]["more_partitions"], tables["sales.small"]["more_units"]) == (0, [])
    lines, of_whole = (screen.render(replace(result, seconds=0)).splitlines() for result in (short, whole))
    assert lines[:3] == of_whole[:3] or command is compact_swap
    if command is compact_swap:
        assert tables["sales.t0"]["more_units"] == [{"outcome": "refused", "code": "shared-directory", "units": 40}]
        assert lines == of_whole


def test_units_that_need_somebody_are_kept_before_others():
    failed, waiting = Reason(Code.JOB_FAILED, "f"), Reason(Code.WRITER_AT_WORK, "w")
    units = [UnitOutcome(f"dt={at}", Outcome.SWAPPED, 2, 20, 1, 10, gap_ms=at) for at in range(50)]
    units += [UnitOutcome("astray", Outcome.MISPLACED, 0, 0), UnitOutcome("failed", Outcome.FAILED, 0, 0, why=failed)]
    units += [UnitOutcome("waiting", Outcome.REFUSED, 0, 0, why=waiting)]
    whole = TableOutcome("t", units=tuple(units))
    short = whole.without_units(3)
    assert [unit.name for unit in short.units] == ["astray", "failed", "waiting", ""]
    assert short.units[-1] == UnitOutcome("", Outcome.SWAPPED, 100, 1000, 50, 500, gap_ms=49, units=50)
    assert (short.code, short.did_something, short.count(Outcome.SWAPPED)) == (Exit.INVESTIGATE, True, 50)
    # A unit that waits for a writer is no refusal, whether or not it is told.
    alone = TableOutcome("t", units=(*units[-1:], *(replace(units[-1], name=f"w{at}") for at in range(9))))
    assert alone.code is alone.without_units(0).code is Exit.LOCKED


def test_the_first_thousand_units_whose_rows_readers_miss_are_told_one_by_one():
    units = tuple(UnitOutcome(f"dt={at}", Outcome.MISPLACED, 0, 0) for at in range(MOST_ASTRAY + 5))
    short = TableOutcome("t", units=units).without_units(0).units
    assert [unit.units for unit in short] == [1] * MOST_ASTRAY + [5]


def test_the_table_with_the_most_units_keeps_the_fewest_and_the_log_says_so(monkeypatch, caplog):
    monkeypatch.setattr(per_table, "MOST_UNITS", 100)
    kept = per_table.Outcomes()
    for name, count in (("small", 30), ("large", 90), ("other", 60)):
        kept.add(TableOutcome(name, units=tuple(UnitOutcome(f"dt={at}", Outcome.EMPTY, 0, 0) for at in range(count))))
    assert [len(table.units) for table in kept.tables] == [30, per_table.UNITS_OF_TABLE + 1, 60]
    assert [record.getMessage() for record in caplog.records] == ["table=large step=leave-out units=90"]


def test_the_catalogue_keeps_what_it_knows_of_a_table_whose_units_are_not_all_held():
    """What it records of a table takes the place of all that it had."""
    (outcome,) = analyze(a_context(with_partitions(1, 30).cluster, SALES, RUN)).tables
    result = CommandResult("analyze", RUN, 0, 0, False, tables=(outcome.without_units(20),))
    (short,) = result.tables
    assert rows.describes(TABLES, outcome)
    assert not rows.describes(TABLES, short)
    (row,) = rows.rows_of(RUNS, result, short, Actor("etl", "edge", ""), Level.of("partition"))
    assert row[list(RUNS.columns).index("files")] is None
    json.dumps(document.build(result))


def test_a_unit_whose_files_are_joined_counts_once_whether_it_is_kept_or_not():
    """It has an outcome for each new file."""
    units = [UnitOutcome(f"dt={at}", Outcome.SWAPPED, 3, 30, 1, 30, rows=3, exchange="files") for at in range(50) for _ in range(3)]
    for most in (0, 20, 49):
        short = TableOutcome("sales.t", units=tuple(units)).without_units(most)
        assert count_units(short.units) == 50
        assert sum(unit.files_before for unit in short.units) == 450
