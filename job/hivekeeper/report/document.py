"""The result document: what --json prints and --report-file writes (docs/json.md).

Pure. Keys are only ever added within one schema version; sizes are bytes, times milliseconds since 1970.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional

from hivekeeper import __version__
from hivekeeper.config import Config
from hivekeeper.plan.analysis import ObservedTable, UnitAnalysis, predict
from hivekeeper.plan.sizing import threshold_bytes
from hivekeeper.report.results import CommandResult, Problem, TableOutcome, UnitOutcome

SCHEMA = 1

Json = Dict[str, Any]


def to_json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2)


def _head(command: Optional[str]) -> Json:
    return {"schema": SCHEMA, "hivekeeper": __version__, "command": command}


def build(result: CommandResult) -> Json:
    """The document of a command that ran."""
    return {
        **_head(result.command),
        "run": result.run,
        "dry_run": result.dry_run,
        "started_ms": result.started_ms,
        "seconds": round(result.seconds, 3),
        "exit_code": int(result.code),
        "tables": [_table(table) for table in result.tables],
        "totals": _totals(result),
        "error": None,
    }


def build_error(problem: Problem) -> Json:
    """The document of a command that could not run."""
    return {**_head(None), "exit_code": int(problem.code), "tables": [], "error": _problem(problem)}


def build_config(config: Config) -> Json:
    return {**_head("config"), "values": {name: {"value": entry.value, "origin": entry.origin} for name, entry in config.winners.items()}}


def _problem(problem: Optional[Problem]) -> Optional[Json]:
    if problem is None:
        return None
    return {"what": problem.what, "state": problem.state, "next": problem.next, "exit_code": int(problem.code)}


def _table(outcome: TableOutcome) -> Json:
    return {
        "table": outcome.table,
        "exit_code": int(outcome.code),
        "seconds": round(outcome.seconds, 3),
        "run": outcome.run,
        "log_version": outcome.log_version,
        "error": _problem(outcome.problem),
        "recovered": [{"run": run, "outcomes": dict(counts)} for run, counts in outcome.recovered],
        "analysis": _analysis(outcome.observed),
        "units": [_unit(unit) for unit in outcome.units],
    }


def _analysis(observed: Optional[ObservedTable]) -> Optional[Json]:
    if observed is None or observed.reason is not None:
        return None
    prediction, settings = predict(observed), observed.settings
    return {
        "status": observed.status,
        "location": observed.table.location,
        "block_bytes": settings.block_bytes,
        "threshold_bytes": threshold_bytes(settings.block_bytes, settings.ratio),
        "units": len(observed.units),
        "statuses": observed.statuses,
        "files": prediction.files_now,
        "files_after": prediction.files_after,
        "bytes": sum(unit.sizes.total_bytes for unit in observed.units),
        "bytes_rewritten": prediction.bytes_rewritten,
        "objects": prediction.objects_now,
        "objects_after": prediction.objects_after,
        "objects_after_cleanup": prediction.objects_after_cleanup,
        "partitions": [_unit_analysis(unit) for unit in observed.units],
    }


def _unit_analysis(unit: UnitAnalysis) -> Json:
    return {
        "partition": unit.unit.name,
        "location": unit.unit.live,
        "status": unit.status,
        "reason": unit.reason.what if unit.reason else "",
        "files": unit.sizes.files,
        "files_after": unit.target_files,
        "bytes": unit.sizes.total_bytes,
        "average_bytes": round(unit.sizes.average_bytes, 1),
        "median_bytes": round(unit.sizes.median_bytes, 1),
    }


def _unit(unit: UnitOutcome) -> Json:
    return {
        "partition": unit.name,
        "outcome": unit.outcome,
        "files_before": unit.files_before,
        "files_after": unit.files_after,
        "bytes_before": unit.bytes_before,
        "bytes_after": unit.bytes_after,
        "rows": unit.rows,
        "gap_ms": None if unit.gap_ms is None else round(unit.gap_ms, 3),
        "late_files": list(unit.late_files),
        "reason": unit.reason,
        "next": unit.next,
    }


def _totals(result: CommandResult) -> Json:
    units: List[UnitOutcome] = [unit for table in result.tables for unit in table.units]
    done = [unit for unit in units if unit.outcome == "swapped"]
    gaps = [unit.gap_ms for unit in units if unit.gap_ms is not None]
    outcomes: Dict[str, int] = {}
    for unit in units:
        outcomes[unit.outcome] = outcomes.get(unit.outcome, 0) + 1
    return {
        "tables": len(result.tables),
        "outcomes": outcomes,
        "files_before": sum(unit.files_before for unit in done),
        "files_after": sum(unit.files_after or 0 for unit in done),
        "bytes_before": sum(unit.bytes_before for unit in done),
        "bytes_after": sum(unit.bytes_after or 0 for unit in done),
        "longest_gap_ms": round(max(gaps), 3) if gaps else None,
    }
