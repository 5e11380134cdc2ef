"""Decide which units are still what the last run made of them, so that compacting them again would gain nothing.

Pure: the table's log and its current units in. Files of several forms stay several files, which metadata alone takes for work.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Mapping

from hivekeeper.config.settings import Settings
from hivekeeper.plan import quarantine
from hivekeeper.plan.analysis import ObservedTable, Status, UnitAnalysis
from hivekeeper.plan.inside import count_copies
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import Effect, History
from hivekeeper.runlog.manifests import is_marker, key_of
from hivekeeper.runlog.run_files import COMPACT_SWAP


def logged_parameters(settings: Settings) -> Dict[str, Any]:
    """The settings that are kept in the log."""
    return {
        "blockBytes": settings.block_bytes,
        "ratioThreshold": settings.ratio_threshold,
        "compression": settings.compression,
        "sortColumns": list(settings.sort_columns),
        "minQuietMs": settings.min_quiet_ms,
    }


# Those that decide how many files a run leaves.
_DECISIVE = ("blockBytes", "compression", "sortColumns")


def judge_by_log(observed: ObservedTable, history: History, now_ms: int) -> ObservedTable:
    """The table with all that its log says of its units: what files count for, which units keep failing, which are as a run left them."""
    return set_apart(quarantine.set_apart(count_copies(observed, history, now_ms), history, now_ms), history)


def set_apart(observed: ObservedTable, history: History) -> ObservedTable:
    """The table with the status of these units changed from compact to fine."""
    newest = {effect.partition: effect for effect in history.effects if effect.table_id == table_id(observed.table)}
    wanted = logged_parameters(observed.settings)
    made = {name: effect for name, effect in newest.items() if _was_made_with(history.runs[effect.version].parameters, wanted, effect)}
    units = tuple(_judge(unit, made[unit.name]) if unit.name in made else unit for unit in observed.units)
    return replace(observed, units=units)


def _was_made_with(parameters: Mapping[str, Any], wanted: Mapping[str, Any], effect: Effect) -> bool:
    return effect.operation == COMPACT_SWAP and all(parameters.get(name) == wanted[name] for name in _DECISIVE)


def _judge(unit: UnitAnalysis, effect: Effect) -> UnitAnalysis:
    made = {key_of(file.name, file.length) for file in effect.after if not is_marker(file)}
    if unit.status is not Status.COMPACT or {key_of(file.name, file.length) for file in unit.files} != made:
        return unit
    return replace(unit, status=Status.FINE, target_files=unit.sizes.files)
