"""The result document: what --json prints and --report-file writes (docs/json.md).

Pure. Keys are only ever added within one schema version; sizes are bytes, times milliseconds since 1970.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import __version__
from hivekeeper.config.layers import Config
from hivekeeper.model import Differences
from hivekeeper.plan.analysis import ObservedTable, UnitAnalysis, predict
from hivekeeper.plan.doctor import Check, Level, Place
from hivekeeper.plan.exchange_choice import Choice
from hivekeeper.plan.image_survey import OrphanedData
from hivekeeper.plan.orphans import Orphan
from hivekeeper.plan.quarantine import Quarantine
from hivekeeper.plan.sizing import threshold_bytes
from hivekeeper.reasons import Reason
from hivekeeper.report.results import (
    BackupOutcome,
    CatalogueAnswer,
    CommandResult,
    Forgotten,
    ImageReport,
    KeptFiles,
    LeftOut,
    LoggedUnits,
    TableOutcome,
    UnitOutcome,
)
from hivekeeper.report.text import escape_for_json
from hivekeeper.runlog.history import Effect, LoggedRun
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.replay import FileSet

SCHEMA = 1
# Words and signs of a document that are joined at a time: each takes many times its length.
WORDS_AT_ONCE = 10_000

Json = Dict[str, Any]


def to_json(document: Mapping[str, Any]) -> str:
    """The text, in which names can neither control a terminal nor change the direction of a line."""
    words = json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(document)
    return "".join(iter(lambda: escape_for_json("".join(islice(words, WORDS_AT_ONCE))), ""))


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
        "exit_code": result.exit_code,
        "signal": result.signal,
        "tables": [_table(table) for table in result.tables],
        "checks": [_check(check) for check in result.checks],
        "totals": count_totals(result),
        "image": _image(result.image),
        "catalogue": _catalogue(result.catalogue),
        "error": None,
    }


def build_error(problem: Reason, exit_code: int) -> Json:
    """The document of a command that could not run."""
    return {**_head(None), "exit_code": exit_code, "tables": [], "error": {**_reason(problem), "exit_code": exit_code}}


def build_config(config: Config, site: Optional[Path]) -> Json:
    values = {name: {"value": entry.plain, "origin": entry.origin} for name, entry in config.winners.items()}
    return {**_head("config"), "site_file": None if site is None else str(site), "values": values}


def _problem(problem: Optional[Reason]) -> Optional[Json]:
    return None if problem is None else {**_reason(problem), "exit_code": int(problem.exit)}


def _reason(problem: Reason) -> Json:
    return {"code": problem.code.code, "what": problem.what, "state": problem.state, "next": problem.next}


def _code(why: Optional[Reason]) -> str:
    return why.code.code if why else ""


def build_checks(checks: Iterable[Check]) -> str:
    """The findings on this machine, for a driver that adds those on the cluster. ASCII: on YARN the driver's locale may be C."""
    return json.dumps([_check(check) for check in checks])


def read_checks(text: str) -> Tuple[Check, ...]:
    """Read the text written by `build_checks`."""
    found = json.loads(text)
    return tuple(_read_check(each) for each in found)


def _read_check(known: Json) -> Check:
    more = {key: each for key, each in known.items() if key != "code"}
    return Check(**{**more, "level": Level.of_code(known["level"]), "place": Place.of_code(known["place"]), "cause": known["code"]})


def _check(check: Check) -> Json:
    known = {key: each for key, each in vars(check).items() if key != "cause"}
    return {**known, "level": check.level.code, "place": check.place.code, "code": check.code}


def _table(outcome: TableOutcome) -> Json:
    return {
        "table": outcome.table,
        "exit_code": int(outcome.code),
        "seconds": round(outcome.seconds, 3),
        "step_seconds": {step: round(seconds, 3) for step, seconds in outcome.spent.items()},
        "run": outcome.run,
        "log_version": outcome.log_version,
        "error": _problem(outcome.problem),
        "answered_by": _logged_run(outcome.answered_by, outcome.left_out) if outcome.answered_by else None,
        "recovered": [
            {"run": run, "outcomes": {outcome.code: count for outcome, count in counts.items()}} for run, counts in outcome.recovered
        ],
        "analysis": _analysis(outcome.observed),
        "units": [_unit(unit) for unit in outcome.units if unit.units == 1],
        "more_units": [_units(unit) for unit in outcome.units if unit.units > 1],
        "backup_table": outcome.backup_table,
        "backups": [_backup(backup) for backup in outcome.backups],
        "window": {"runs": outcome.window.runs, "back_ms": outcome.window.back_ms} if outcome.window else None,
        "log": [_logged_run(run, outcome.left_out) for run in outcome.log],
        "changes": [_change(effect) for effect in outcome.changes or ()],
        "more_changes": outcome.left_out.changes,
        "files": _file_set(outcome.files, outcome.left_out),
        "old_files": [_old_files(one) for one in outcome.old_files or ()],
        "more_old_files": outcome.of_old_files.number - len(outcome.old_files or ()),
        "cleanups": [_cleanup(run, outcome.left_out) for run in outcome.cleanups or ()],
        "orphans": [_orphan(one) for one in outcome.orphans or ()],
        "quarantined": [_quarantined(one) for one in outcome.quarantined],
        "more_quarantined": outcome.left_out.quarantined,
        "forgotten": _forgotten(outcome.forgotten),
    }


def _quarantined(quarantined: Quarantine) -> Json:
    streak = quarantined.streak
    return {
        "partition": streak.partition,
        "nights": streak.nights,
        "since_ms": streak.since_ms,
        "until_ms": quarantined.until_ms,
        "outcome": streak.outcome.code,
        "reason": streak.reason,
        "code": streak.reason_code,
    }


def _backup(outcome: BackupOutcome) -> Json:
    backup = outcome.backup
    return {
        "run": backup.run,
        "version": backup.version,
        "operation": backup.operation,
        "timestamp_ms": backup.timestamp_ms,
        "pinned": backup.pinned,
        "backup_table": backup.backup_table,
        "units": [effect.partition for effect in backup.effects],
        "more_units": outcome.held.units - len(backup.effects),
        "files": outcome.held.files,
        "bytes": outcome.held.total_bytes,
        "outcome": outcome.state.code,
        "reason": outcome.reason,
        "code": _code(outcome.why),
        "going_units": [effect.partition for effect in outcome.going],
        "more_going_units": outcome.chosen.units - len(outcome.going),
        "kept_units": [{"partition": name, "reason": why.what if why else "", "code": _code(why)} for name, why in outcome.kept_units],
        "more_kept_units": outcome.more_kept,
        "late_files": list(outcome.late_files),
        "more_late_files": outcome.more_late,
    }


def _logged_run(run: LoggedRun, left_out: LeftOut) -> Json:
    return {
        "version": run.version,
        "run": run.run,
        "operation": run.operation,
        "timestamp_ms": run.timestamp_ms,
        "user": run.user,
        "host": run.host,
        "application_id": run.application_id,
        "recovered_by": run.recovered_by,
        "run_key": run.run_key,
        "finished": run.finished,
        "expired": run.expired,
        "backup_table": run.backup_table,
        "parameters": dict(run.parameters),
        "pin": {"run": run.pin[0], "pinned": run.pin[1]} if run.pin else None,
        "units": [
            {
                "partition": unit.partition,
                "outcome": unit.outcome.code,
                "reason": unit.reason,
                "code": unit.reason_code,
                "gap_ms": unit.gap_ms,
                "late_files": list(unit.late_files),
                "more_late_files": unit.more_late,
            }
            for unit in run.units
        ],
        "more_units": [_logged_units(units) for units in left_out.units.get(run.version, ())],
    }


def _logged_units(several: LoggedUnits) -> Json:
    return {"outcome": several.outcome.code, "code": several.code, "units": several.units}


def _orphan(one: Orphan) -> Json:
    return {
        "kind": one.kind.code,
        "place": one.place,
        "table": one.table,
        "run": one.run,
        "backups": one.backups,
        "files": one.files,
        "bytes": one.size_bytes,
        "last_ms": one.last_ms,
        "outcome": one.state.code,
        "why": one.why,
        "next": one.next,
    }


def _forgotten(one: Optional[Forgotten]) -> Optional[Json]:
    return None if one is None else {"place": one.place, "entries": one.entries, "backup_tables": list(one.backup_tables)}


def _old_files(one: KeptFiles) -> Json:
    return {
        "partition": one.effect.partition,
        "run": one.backup.run,
        "timestamp_ms": one.backup.timestamp_ms,
        "place": one.effect.place,
        "files": one.effect.backup_files,
        "bytes": one.effect.backup_bytes,
        "stays": one.stay,
        "reason": one.why.what,
        "code": _code(one.why),
    }


def _cleanup(run: LoggedRun, left_out: LeftOut) -> Json:
    return {
        "version": run.version,
        "run": run.run,
        "timestamp_ms": run.timestamp_ms,
        "places": list(run.discarded),
        "more_places": left_out.places.get(run.version, 0),
        "files": run.discarded_files,
        "bytes": run.discarded_bytes,
        "parameters": dict(run.parameters),
    }


def _change(effect: Effect) -> Json:
    return {
        "partition": effect.partition,
        "place": effect.place,
        "inside": {"file": effect.inside.file, "begin": effect.inside.begin} if effect.inside else None,
        "removed": [{"name": file.name, "bytes": file.length} for file in effect.before],
        "added": [{"name": file.name, "bytes": file.length} for file in effect.after],
    }


def _file_set(files: Optional[FileSet], left_out: LeftOut) -> Optional[Json]:
    if files is None:
        return None
    return {
        "files": [{"path": path, "bytes": size} for path, size in sorted(files.files.items())],
        "tombstones": [{"path": path, "bytes": size, "place": place} for path, (size, place) in sorted(files.tombstones.items())],
        "more_files": left_out.files,
        "more_tombstones": left_out.tombstones,
    }


def _catalogue(answer: Optional[CatalogueAnswer]) -> Optional[Json]:
    if answer is None:
        return None
    return {
        "action": answer.action,
        "component": answer.component,
        "rows": [dict(zip(answer.columns, row)) for row in answer.rows],
        "has_more": answer.has_more,
        "deleted": dict(answer.deleted),
    }


def _image(image: Optional[ImageReport]) -> Optional[Json]:
    if image is None:
        return None
    return {
        "file": image.path,
        "written_ms": image.written_ms,
        "newest_change": image.totals.newest_change,
        "files": image.totals.files,
        "directories": image.totals.directories,
        "bytes": image.totals.total_bytes,
        "orphaned": _sums(image.orphaned),
        "orphans": [{"directory": one.path, "is_rest": one.is_rest, **_sums(one)} for one in image.orphans],
        "orphans_left_out": image.left_out,
        "orphans_merged": image.has_merged,
        "other_tables": image.other_tables,
    }


def _sums(orphan: OrphanedData) -> Json:
    return {"files": orphan.files, "directories": orphan.directories, "bytes": orphan.total_bytes, "objects": orphan.objects}


def _analysis(observed: Optional[ObservedTable]) -> Optional[Json]:
    if observed is None or observed.reason is not None:
        return None
    prediction, settings = predict(observed), observed.settings
    return {
        "status": observed.status.code,
        "location": observed.table.location,
        "block_bytes": settings.block_bytes,
        "threshold_bytes": threshold_bytes(settings.block_bytes, settings.ratio_threshold),
        "units": observed.unit_count,
        "unchanged": observed.unchanged,
        "statuses": {status.code: count for status, count in observed.statuses.items()},
        "files": prediction.files_now,
        "files_after": prediction.files_after,
        "bytes": observed.total_bytes,
        "bytes_rewritten": prediction.bytes_rewritten,
        "objects": prediction.objects_now,
        "objects_after": prediction.objects_after,
        "objects_after_cleanup": prediction.objects_after_cleanup,
        "backup_objects": prediction.backup_objects,
        "exchange": settings.exchange,
        "exchanges": [_exchange(choice, count) for choice, count in observed.exchanges.items()],
        "partitions": [_unit_analysis(unit) for unit in observed.units],
        "more_partitions": observed.unit_count - len(observed.units),
    }


def _unit_analysis(unit: UnitAnalysis) -> Json:
    return {
        "partition": unit.name,
        "location": unit.live,
        "status": unit.status.code,
        "reason": unit.reason.what if unit.reason else "",
        "code": _code(unit.reason),
        "files": unit.sizes.files,
        "files_after": unit.target_files,
        "bytes": unit.sizes.total_bytes,
        "average_bytes": round(unit.sizes.average_bytes, 1),
        "median_bytes": round(unit.sizes.median_bytes, 1),
        "exchange": unit.choice.exchange if unit.choice else None,
        "exchange_code": _code(unit.choice.why) if unit.choice else "",
    }


def _exchange(choice: Choice, units: int) -> Json:
    return {"exchange": choice.exchange, "units": units, "reason": choice.why.what, "code": _code(choice.why)}


def _unit(unit: UnitOutcome) -> Json:
    return {
        "partition": unit.name,
        "outcome": unit.outcome.code,
        "files_before": unit.files_before,
        "files_after": unit.files_after,
        "bytes_before": unit.bytes_before,
        "bytes_after": unit.bytes_after,
        "rows": unit.rows,
        "forms": unit.forms,
        "exchange": unit.exchange or None,
        "exchange_reason": unit.exchange_why.what if unit.exchange_why else "",
        "exchange_code": _code(unit.exchange_why),
        "gap_ms": None if unit.gap_ms is None else round(unit.gap_ms, 3),
        "late_files": list(unit.late_files),
        "more_late_files": unit.more_late,
        "reason": unit.reason,
        "code": _code(unit.why),
        "next": unit.next,
        "of_run": unit.of_run,
        "differences": _differences(unit.differences),
    }


def _units(several: UnitOutcome) -> Json:
    return {"outcome": several.outcome.code, "code": _code(several.why), "units": several.units}


def _differences(found: Optional[Differences]) -> Optional[Json]:
    if found is None:
        return None
    return {
        "only_in_backup": found.only_in_one,
        "only_in_live": found.only_in_other,
        "columns": list(found.columns),
        "examples_in_backup": [dict(row) for row in found.examples_of_one],
        "examples_in_live": [dict(row) for row in found.examples_of_other],
    }


def _count_codes(tables: Sequence[TableOutcome]) -> Dict[str, int]:
    """How many tables ended with each exit code."""
    codes = [int(table.code) for table in tables]
    return {str(code): codes.count(code) for code in sorted(set(codes))}


def count_totals(result: CommandResult) -> Json:
    units: List[UnitOutcome] = [unit for table in result.tables for unit in table.units]
    done = [unit for unit in units if unit.outcome is Outcome.SWAPPED]
    gaps = [unit.gap_ms for unit in units if unit.gap_ms is not None]
    outcomes: Dict[str, int] = {}
    for unit in units:
        outcomes[unit.outcome.code] = outcomes.get(unit.outcome.code, 0) + unit.units
    return {
        "tables": len(result.tables),
        "exit_codes": _count_codes(result.tables),
        "outcomes": outcomes,
        "files_before": sum(unit.files_before for unit in done),
        "files_after": sum(unit.files_after or 0 for unit in done),
        "bytes_before": sum(unit.bytes_before for unit in done),
        "bytes_after": sum(unit.bytes_after or 0 for unit in done),
        "longest_gap_ms": round(max(gaps), 3) if gaps else None,
    }
