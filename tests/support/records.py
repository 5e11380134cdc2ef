"""Valid records of every kind, as plain JSON values, for tests that damage them."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

from hivekeeper.model import Digest
from hivekeeper.plan import compaction
from hivekeeper.plan.compaction import CompactionPlan
from hivekeeper.runlog import entry_reader, run_files
from hivekeeper.runlog.entries import Actor, LogEntry, UnitResult, entry_to_text
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import BackupPlace, PlannedUnit
from support.builders import ROOT, a_file, a_group, a_table, a_unit

RUN, LATER, CLEANUP = "20260101t020304z-0000", "20260102t020304z-0000", "20260103t020304z-0000"
TABLE = a_table(["dt", "ref"], create_time=5, parameters={"k": "v"})
UNIT = a_unit("dt=2026-01-01/ref=F R")
OTHER = a_unit("dt=2026-01-02/ref=F R", live=f"{ROOT}/moved/here")
OLD = (ManifestFile.of(a_file("a b%2F'.parquet")), ManifestFile.of(a_file("_SUCCESS", length=0)))
NEW = (ManifestFile("new.parquet", 1000, 9, 77),)
PLACE = f"runs/{RUN}.t1/retired/u00001"
DIGEST = Digest(7, 1, 2)

_PLANNED = PlannedUnit(1, UNIT, OLD, ("_SUCCESS",))
_UNDONE = PlannedUnit(1, UNIT, NEW, (), BackupPlace(RUN, 1, PLACE), OLD, DIGEST)
_CERTIFICATE = compaction.certify(_PLANNED, [a_group({"old": 7})], [a_group({f"{ROOT}/x/new.parquet": 7})], [a_file("new.parquet")], DIGEST)
_COMPACTION = compaction.to_run_plan(
    CompactionPlan(RUN, TABLE, (_PLANNED, PlannedUnit(2, OTHER, OLD))), "sales.__bkp_events_20260101_020304", RUN
)


def plan_to_text(plan, created_ms=1):
    return "".join(run_files.plan_pieces(plan, created_ms))


def plan_from_json_lines(text):
    """A plan as one value, with its units in `units`."""
    run, *units = map(json.loads, text.splitlines())
    assert run["units"] == len(units)
    return {**run, "units": units}


def plan_to_lines(plan):
    """The values on the lines of such a plan, which may be a damaged one."""
    units = plan.get("units")
    return [{**plan, "units": len(units)}, *units] if isinstance(units, list) else [plan]


def plan_to_json_lines(plan):
    return lines(plan_to_lines(plan))


def compaction_plan():
    return plan_from_json_lines(plan_to_text(_COMPACTION, created_ms=1))


def rollback_plan():
    return plan_from_json_lines(plan_to_text(replace(_COMPACTION, operation="rollback", units=(_UNDONE,), record=""), created_ms=1))


def cleanup_plan():
    plan = replace(_COMPACTION, operation="cleanup", units=(_UNDONE,), record="", discard="trash", records=(f"{LATER}.t2",))
    return plan_from_json_lines(plan_to_text(plan, created_ms=1))


def certificate():
    return json.loads(run_files.certificates_to_text([_CERTIFICATE]))


def _entry(run, operation, *units, **more):
    record = LogEntry(run, f"{run}.t1", operation, 9, units, **more)
    return [json.loads(line) for line in entry_to_text(record, TABLE, Actor("etl", "edge1", "app-1", "0.1"), {"x": 1}, True).splitlines()]


def compaction_entry():
    failed = UnitResult(PlannedUnit(2, OTHER, OLD), Outcome.FAILED)
    return _entry(RUN, "compact-swap", UnitResult(_PLANNED, Outcome.SWAPPED, _CERTIFICATE, 2.5, ("late",)), failed)


def rollback_entry():
    return _entry(LATER, "rollback", UnitResult(_UNDONE, Outcome.ROLLED_BACK), recovered_by=CLEANUP)


def cleanup_entry():
    return _entry(CLEANUP, "cleanup", UnitResult(_UNDONE, Outcome.DISCARDED), discarding=(PLACE,), records=(f"{LATER}.t2",))


def keyed_entry():
    return _entry(LATER, "rollback", UnitResult(_UNDONE, Outcome.ROLLED_BACK), run_key="tonight@undo", exit_code=6)


def pin_entry():
    return _entry(CLEANUP, "pin", pin=(RUN, True))


PLANS = {make.__name__: make for make in (compaction_plan, rollback_plan, cleanup_plan)}
PLAN_LINES = {name: (lambda make=make: plan_to_lines(make())) for name, make in PLANS.items()}
ENTRIES = {make.__name__: make for make in (compaction_entry, rollback_entry, cleanup_entry, keyed_entry, pin_entry)}


def read_plan(text):
    return run_files.plan_from_lines(text.split("\n"), ROOT, "plan.json", RUN)


def read_certificates(text):
    return run_files.certificates_from_lines(text.split("\n"), "certificates-1.jsonl")


def read_entry(text):
    return entry_reader.read_entry(text.split("\n"), 0, "0.json")


def lines(actions):
    return "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions)


GONE = object()


def changed(document, way, value):
    """A copy with one field replaced or removed; `way` is its path of keys and indexes."""
    document = copy.deepcopy(document)
    holder = document
    for key in way[:-1]:
        holder = holder[key]
    if value is GONE:
        del holder[way[-1]]
    else:
        holder[way[-1]] = value
    return document
