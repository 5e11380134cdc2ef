"""What the backup tables of a table have to show, as its log says: the last word on them, whatever a metastore call has missed.

Pure: values in, values out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Mapping, Tuple

from hivekeeper import names
from hivekeeper.runlog.history import Effect, History
from hivekeeper.runlog.run_files import absolute


@dataclass(frozen=True)
class Showing:
    """Directories by partition name, "" for an unpartitioned table. The table of a `backup` record shows all others too, live."""

    places: Mapping[str, str]
    gone: FrozenSet[str]
    is_record: bool


def find_showings(history: History, control_top: str, location: str) -> Dict[str, Showing]:
    """By name, for every backup table that is still needed: a record's, or one with a backup in its place.

    `control_top` and `location` are those of the table. A record's table shows restored files where they are now, live, and
    lets go of discarded ones, but for an unpartitioned table, which has no partition to drop.
    """
    records = {run.backup_table for run in history.records}
    standing = {effect.key for effect in history.standing}
    needed = records.union(effect.backup_table for effect in history.standing) - {""}
    newest: Dict[str, Dict[str, Effect]] = {name: {} for name in sorted(needed)}
    for effect in history.effects:
        if effect.backup_table in needed:
            newest[effect.backup_table][effect.partition] = effect
    found: Dict[str, Showing] = {}
    for name, effects in newest.items():
        places = {}
        for partition, effect in effects.items():
            if effect.key in standing:
                places[partition] = names.join(control_top, effect.place)
            elif name in records and (effect.place not in history.discarded or not partition):
                places[partition] = absolute(effect.live, location)
        found[name] = Showing(places, frozenset(effects) - frozenset(places), name in records)
    return found


def find_unused(history: History, needed: Mapping[str, Showing]) -> List[str]:
    """Backup tables that a run has made, or may have made, and that nothing needs any more."""
    return sorted({run.backup_table for run in history.runs if run.backup_table}.difference(needed))


def compare(showing: Showing, shown: Mapping[str, str]) -> Tuple[Dict[str, str], List[str]]:
    """What to point where, and what to drop, of the partitions that a backup table has now."""
    point = {name: place for name, place in showing.places.items() if shown.get(name, place) != place}
    others = frozenset(shown).difference(showing.places)
    return point, sorted(others & showing.gone if showing.is_record else others)
