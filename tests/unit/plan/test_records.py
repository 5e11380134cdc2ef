import json

import pytest

from builders import FORM, ROOT, a_file, a_group, a_table, a_unit
from hivekeeper.model import Digest
from hivekeeper.plan import records
from hivekeeper.plan.compaction import CompactionPlan, PlannedUnit
from hivekeeper.plan.look import RecordedFile
from hivekeeper.plan.records import Actor, RunRecord, UnitRecord, UnreadableRecord

MANIFEST = (RecordedFile.of(a_file("a b%2F'.parquet")), RecordedFile.of(a_file("_SUCCESS", length=0)))
PLANNED = PlannedUnit(1, a_unit("dt=2026-01-01"), MANIFEST, ("_SUCCESS",), outputs=1, files=1, total_bytes=1000)
PLAN = CompactionPlan("20260101t020304z-0000", a_table(["dt"], create_time=5), (PLANNED,))
OUTPUT = a_group({f"{ROOT}/x/new.parquet": 7}, FORM)
CERTIFICATE = records.certify(PLANNED, a_group({"old": 7}), OUTPUT, [a_file("new.parquet"), a_file("_SUCCESS", length=0)], Digest(7, 1, 2))


def test_a_plan_is_read_back_as_it_was():
    text = records.plan_to_text(PLAN, created_ms=1)
    assert records.plan_from_text(text, ROOT, "plan.json") == records.recorded(PLAN)


def test_a_plan_stays_true_when_the_nameservice_is_renamed():
    text = records.plan_to_text(PLAN, created_ms=1)
    read = records.plan_from_text(text, "hdfs://ha/warehouse/sales/events", "plan.json")
    assert read.units[0].unit.live == "hdfs://ha/warehouse/sales/events/dt=2026-01-01"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "run": 1, "operation": 2, "table": 3, "units": [{}]}'])
def test_a_plan_that_cannot_be_read_says_which(text):
    with pytest.raises(UnreadableRecord, match="runs/R/plan.json"):
        records.plan_from_text(text, ROOT, "runs/R/plan.json")


def test_a_plan_of_a_newer_version_is_refused():
    newer = json.dumps({**json.loads(records.plan_to_text(PLAN, 1)), "version": 2})
    with pytest.raises(UnreadableRecord, match="newer Hivekeeper"):
        records.plan_from_text(newer, ROOT, "plan.json")


def test_certificates_are_read_back_as_they_were():
    text = records.certificates_to_text([CERTIFICATE, CERTIFICATE])
    assert records.certificates_from_text(text, "c") == (CERTIFICATE, CERTIFICATE)


def entry(outcome="swapped", first=True):
    unit = UnitRecord(records.recorded(PLAN).units[0], outcome, CERTIFICATE if outcome == "swapped" else None, 2.5, ("late",))
    record = RunRecord(PLAN.run, f"{PLAN.run}.t1", "compact-swap", 9, (unit,))
    return records.entry_to_text(record, PLAN.table, Actor("etl", "edge1", "app-1", "0.1.0"), {"x": 1}, first)


def actions(text):
    return [json.loads(line) for line in text.splitlines()]


def test_an_entry_tells_where_every_old_file_lies_now_and_what_replaced_it():
    by_kind = {}
    for action in actions(entry()):
        for kind, content in action.items():
            by_kind.setdefault(kind, []).append(content)
    assert list(by_kind) == ["protocol", "metaData", "commitInfo", "remove", "add"]
    assert by_kind["metaData"][0]["id"] == "sales.events@5"
    assert by_kind["remove"][0]["path"] == "dt=2026-01-01/a b%2F'.parquet"
    assert by_kind["remove"][0]["retired"] == f"runs/{PLAN.run}.t1/retired/u00001/a b%2F'.parquet"
    assert by_kind["add"][0]["path"] == "dt=2026-01-01/new.parquet"
    assert json.loads(by_kind["add"][0]["stats"]) == {"numRecords": 7}
    assert all(action["dataChange"] is False for kind in ("add", "remove") for action in by_kind[kind])


def test_a_unit_that_was_not_swapped_removes_and_adds_nothing():
    kinds = [kind for action in actions(entry("put back")) for kind in action]
    assert kinds == ["protocol", "metaData", "commitInfo"]


def test_reading_the_log_finds_finished_runs_and_swapped_units():
    state = records.read_log({0: entry(), 1: entry("given up", first=False)})
    assert state.finished == {PLAN.run}
    assert state.next_version == 2
    assert state.swapped == ("dt=2026-01-01",)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({0: entry(), 2: entry()}, "log entry 1 is missing"),
        ({0: ""}, "log entry 0 cannot be read"),
        ({0: entry()[:50]}, "log entry 0 cannot be read"),
        ({0: '{"protocol": {"minReaderVersion": 2, "minWriterVersion": 1}}'}, "log entry 0 needs a newer Hivekeeper"),
    ],
)
def test_a_log_that_cannot_be_trusted_is_refused(entries, says):
    with pytest.raises(UnreadableRecord, match=says):
        records.read_log(entries)


def test_a_path_that_only_begins_like_the_root_is_not_below_it():
    with pytest.raises(ValueError, match="is not below"):
        records.relative(f"{ROOT}_archive/dt=1", ROOT)
