"""What a log entry holds however much a tenant makes us say: it must stay readable, because it tells where the backups are."""

from __future__ import annotations

from dataclasses import replace

from hivekeeper import reasons
from hivekeeper.model import Column
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import entries, strict
from hivekeeper.runlog.entries import Actor, LogEntry, UnitResult, entry_to_text
from hivekeeper.runlog.entry_reader import read_entry
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import COMPACT_SWAP, PlannedUnit
from support.builders import a_table, a_unit

RUN = "20260101t020304z-0000"
ACTOR = Actor("etl", "edge1", "app-1", "0.1")


def written(*units, table=None):
    record = LogEntry(RUN, RUN, COMPACT_SWAP, 9, units)
    return entry_to_text(record, table or a_table(["dt"]), ACTOR, {}, first=True)


def failed(units, **more):
    return [UnitResult(PlannedUnit(number, a_unit(f"dt={number}"), ()), Outcome.FAILED, **more) for number in range(1, units + 1)]


def read(text):
    return read_entry(text.split("\n"), 0, "0.json").units


def longest(text):
    return max(map(len, text.split("\n")))


def test_names_of_late_files_take_no_more_than_their_room():
    """A name of 255 control characters has 1,530 in JSON."""
    late = tuple(f"{number:06d}" + "\x01" * 249 for number in range(2000))
    text = written(*failed(2, late_files=late))
    first, second = read(text)
    assert 0 < len(first.late_files) < len(late)
    assert first.late_files == late[: len(first.late_files)]
    assert second.late_files == ()
    assert longest(text) < 1.1 * entries.MOST_NOTES


def test_reasons_take_no_more_than_their_room_and_codes_are_always_there():
    units = failed(3000, why=Reason(Code.PROOF_FAILED, "x" * 10_000_000))
    text = written(*units)
    found = read(text)
    assert {unit.reason_code for unit in found} == {"proof-failed"}
    assert {len(unit.reason) for unit in found} == {0, reasons.MOST_CHARACTERS}
    assert longest(text) < entries.longest_line(unit.planned for unit in units)


def test_a_schema_that_is_too_long_is_left_out():
    """A tenant may have made it long after the run was planned."""
    table = replace(a_table(["dt"]), columns=(Column("x", "struct<" + "y" * strict.MOST_TEXT + ">"),))
    assert '"schemaString": ""' in written(table=table)
    assert '"schemaString": "[{' in written()


def test_the_estimate_of_the_longest_line_holds_for_long_numbers_and_odd_names():
    numbers = range(999_900, 1_000_000)
    units = [PlannedUnit(number, a_unit(f'dt="{number}\x01"', f"{a_table().location}/é\x02"), ()) for number in numbers]
    results = [UnitResult(unit, Outcome.DROPPED_MEANWHILE, gap_ms=123456.789012345) for unit in units]
    text = written(*results)
    assert longest(text) < entries.longest_line(units) - entries.MOST_NOTES
