"""What the backup tables of a table have to show, according to its log, which decides whatever earlier metastore calls did.

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
    """What one backup table shows.

    `places` are directories by partition name, "" for an unpartitioned table. The table of a `backup` record shows all other
    partitions too, from live.
    """

    places: Mapping[str, str]
    gone: FrozenSet[str]
    is_record: bool


def find_showings(history: History, control_top: str, location: str) -> Dict[str, Showing]:
    """What each backup table still needed has to show, by name: a record's table, or one whose backup is still in place.

    `control_top` and `location` are those of the table. A record's table shows restored files in live and drops discarded
    partitions; for an unpartitioned table there is no partition to drop.
    """
    records = {run.backup_table for run in history.records}
    standing = {effect.key for effect in history.standing if effect.inside is None}
    needed = records.union(effect.backup_table for effect in history.standing if effect.inside is None) - {""}
    newest: Dict[str, Dict[str, Effect]] = {name: {} for name in sorted(needed)}
    for effect in history.effects:
        # Old files inside a file of live are in no directory that a table could show.
        if effect.backup_table in needed and effect.inside is None:
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
    """Backup tables that a run created, or may have created, and that are no longer needed."""
    return sorted({run.backup_table for run in history.runs if run.backup_table}.difference(needed))


def compare(showing: Showing, shown: Mapping[str, str]) -> Tuple[Dict[str, str], List[str]]:
    """The partitions of a backup table to point elsewhere, with their places, and those to drop."""
    point = {name: place for name, place in showing.places.items() if shown.get(name, place) != place}
    others = frozenset(shown).difference(showing.places)
    return point, sorted(others & showing.gone if showing.is_record else others)
