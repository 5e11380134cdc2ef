from dataclasses import replace

import pytest

from hivekeeper.model import Digest
from hivekeeper.plan import compaction
from hivekeeper.plan.compaction import CompactionPlan
from hivekeeper.runlog import run_files
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import BackupPlace, PlannedUnit
from hivekeeper.runlog.strict import ForeignRecord, NewerRecord, UnreadableRecord
from support.builders import FORM, ROOT, a_file, a_group, a_table, a_unit
from support.records import plan_from_json_lines, plan_to_json_lines, plan_to_text, read_plan

MANIFEST = (ManifestFile.of(a_file("a b%2F'.parquet")), ManifestFile.of(a_file("_SUCCESS", length=0)))
PLANNED = PlannedUnit(1, a_unit("dt=2026-01-01"), MANIFEST, ("_SUCCESS",))
RUN = "20260101t020304z-0000"
PLAN = CompactionPlan(RUN, a_table(["dt"], create_time=5), (PLANNED,))
RECORDED = compaction.to_run_plan(PLAN, "sales.__bkp_events_20260101_020304", RUN)
OUTPUT = a_group({f"{ROOT}/x/new.parquet": 7}, FORM)
CERTIFICATE = compaction.certify(
    PLANNED, [a_group({"old": 7})], [OUTPUT], [a_file("new.parquet"), a_file("_SUCCESS", length=0)], Digest(7, 1, 2)
)


def test_a_plan_is_read_back_as_it_was():
    text = plan_to_text(RECORDED, created_ms=1)
    assert read_plan(text) == RECORDED


def test_a_plan_stays_true_when_the_nameservice_is_renamed():
    text = plan_to_text(RECORDED, created_ms=1)
    read = run_files.plan_from_lines(text.split("\n"), "hdfs://ha/warehouse/sales/events", "plan.json", RUN)
    assert read.units[0].unit.live == "hdfs://ha/warehouse/sales/events/dt=2026-01-01"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "run": 1, "operation": 2, "table": 3, "units": [{}]}'])
def test_a_plan_that_cannot_be_read_says_which(text):
    with pytest.raises(UnreadableRecord, match="runs/R/plan.json"):
        run_files.plan_from_lines(text.split("\n"), ROOT, "runs/R/plan.json", RUN)


def test_a_plan_of_a_newer_version_is_refused():
    newer = plan_to_json_lines({**plan_from_json_lines(plan_to_text(RECORDED)), "version": 2})
    with pytest.raises(NewerRecord, match="newer Hivekeeper"):
        read_plan(newer)


def test_a_plan_of_a_cleanup_is_read_back_with_what_it_discards():
    unit = PlannedUnit(1, a_unit("dt=2026-01-01"), MANIFEST, (), BackupPlace(RUN, 3, f"runs/{RUN}.t1/retired/u00003"), MANIFEST[:1])
    plan = replace(RECORDED, operation="cleanup", units=(unit,), records=(RUN,), discard="trash")
    assert read_plan(plan_to_text(plan)) == plan


def test_a_plan_that_is_cut_off_between_two_lines_is_not_a_shorter_plan():
    text = plan_to_text(replace(RECORDED, units=(PLANNED, replace(PLANNED, number=2, unit=a_unit("dt=2026-01-02")))))
    first, second, third = text.splitlines(keepends=True)
    assert len(read_plan(first + second + third).units) == 2
    with pytest.raises(ForeignRecord, match="units: only 1 units follow"):
        read_plan(first + second)
    with pytest.raises(ForeignRecord, match="units: more units follow"):
        read_plan(first + second + third + third)


TWICE = (RECORDED.units[0], RECORDED.units[0])


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        (replace(RECORDED, units=TWICE), r"units\[1\].unit: another unit has this number"),
        (replace(RECORDED, operation="cleanup"), "discard"),
        (replace(RECORDED, units=(replace(RECORDED.units[0], manifest=MANIFEST * 2),)), "stands there twice"),
    ],
)
def test_what_could_not_be_read_back_is_found_before_it_is_written(plan, what):
    for read in (
        lambda: run_files.check_plan(plan, 1, "plan.json", RUN),
        lambda: read_plan(plan_to_text(plan)),
    ):
        with pytest.raises(UnreadableRecord, match=what):
            read()
    run_files.check_plan(RECORDED, 1, "plan.json", RUN)


def test_certificates_are_read_back_as_they_were():
    text = run_files.certificates_to_text([CERTIFICATE, CERTIFICATE])
    assert run_files.certificates_from_lines(text.split("\n"), "c") == (CERTIFICATE, CERTIFICATE)


def test_characters_that_python_takes_for_line_ends_do_not_end_a_line():
    odd = replace(CERTIFICATE, partition="dt=a\u2028b\x85c")
    assert run_files.certificates_from_lines(run_files.certificates_to_text([odd, CERTIFICATE]).split("\n"), "c") == (odd, CERTIFICATE)


def test_a_path_that_only_begins_like_the_root_is_not_below_it():
    with pytest.raises(ValueError, match="is not below"):
        run_files.relative(f"{ROOT}_archive/dt=1", ROOT)
