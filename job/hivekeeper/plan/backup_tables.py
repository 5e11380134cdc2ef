"""What the backup tables of a table have to show, according to its log, which decides whatever earlier metastore calls did; and which
tables are not backup tables, although they have the name and the mark of one.

Pure: values in, values out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import Collection, Dict, FrozenSet, List, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import Table
from hivekeeper.runlog.history import Effect, History
from hivekeeper.runlog.run_files import absolute, is_inside

# Where the location of a backup table is: its run's own directory for that, or the old files of an unpartitioned table.
_SHOWN = re.compile(rf"runs/(?P<run>{names.RUN.pattern})(?:\.t[1-9][0-9]*)?/(?:backup_table|retired/u[0-9]{{5,}})")


class Remedy(Enum):
    """What is done where a backup table does not show the place that it has to."""

    POINT = "it is pointed there"
    # Of another table that lay here, which had the name of this one: what it must not show, such as live, goes.
    DROP = "the partition is dropped, or a table without partitions"
    # Of another owner, who may have been the table's, and is shown nothing more.
    LEAVE = "it stays as it is"


@dataclass(frozen=True)
class Showing:
    """What one backup table shows.

    `places` are directories by partition name, "" for an unpartitioned table. The table of a `backup` record shows all other
    partitions too, from live.
    """

    places: Mapping[str, str]
    gone: FrozenSet[str]
    is_record: bool
    remedy: Remedy = Remedy.POINT

    def of_other_owner(self) -> Showing:
        return replace(self, remedy=Remedy.LEAVE) if self.remedy is Remedy.POINT else self


def find_of_former(history: History, own: str) -> FrozenSet[str]:
    """The backup tables that were made for other tables than the one with this id."""
    made: Dict[str, str] = {}
    for run in history.runs:
        made.setdefault(run.backup_table, run.table_id)
    return frozenset(name for name, table_id in made.items() if name and table_id != own)


def find_showings(history: History, control_top: str, location: str, own: str) -> Dict[str, Showing]:
    """What each backup table still needed has to show, by name: a record's table, or one whose backup is still in place.

    `control_top`, `location` and `own` are those of the table, and its id. A record's table shows restored files in live and drops
    discarded partitions; for an unpartitioned table there is no partition to drop. That of a former table's record is one like any other:
    live is of another table by now.
    """
    of_former = find_of_former(history, own)
    records = {run.backup_table for run in history.records} - of_former
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
        remedy = Remedy.DROP if name in of_former else Remedy.POINT
        found[name] = Showing(places, frozenset(effects) - frozenset(places), name in records, remedy)
    return found


def find_unused(history: History, needed: Mapping[str, Showing]) -> List[str]:
    """Backup tables that a run created, or may have created, and that are no longer needed."""
    return sorted({run.backup_table for run in history.runs if run.backup_table}.difference(needed))


def compare(showing: Showing, shown: Mapping[str, str]) -> Tuple[Dict[str, str], List[str]]:
    """The partitions of a backup table to point elsewhere, with their places, and those to drop."""
    wrong = {name: place for name, place in showing.places.items() if shown.get(name, place) != place}
    others = frozenset(shown).difference(showing.places)
    trim = others & showing.gone if showing.is_record else others
    if showing.remedy is Remedy.DROP:
        trim = trim.union(wrong)
    return wrong if showing.remedy is Remedy.POINT else {}, sorted(trim)


def find_blank(showing: Showing, shown: Mapping[str, str], control_top: str) -> List[str]:
    """The units that the table of a record shows where it was made, not in live: the run could neither point it there nor drop it."""
    if not showing.is_record or showing.remedy is not Remedy.POINT:
        return []
    blank = [name for name, place in shown.items() if is_inside(place, control_top) and names.base(place) == "backup_table"]
    return sorted({*blank}.difference(showing.places, showing.gone))


def is_harmless(table: Table) -> bool:
    """Whether no file goes with a table, however it is dropped."""
    purges = table.parameters.get("external.table.purge", "").lower() != "false"
    return table.kind == "EXTERNAL_TABLE" and not purges and "TRANSLATED_TO_EXTERNAL" not in table.parameters


def run_of_place(below: str) -> Optional[names.RunId]:
    """The run whose backup table can have this location, given below its control directory; None if none can."""
    match = _SHOWN.fullmatch(below)
    return names.RunId(match["run"]) if match else None


def lies_in_run(place: str, control_top: str) -> bool:
    """Whether a place (qualified) is one in the directory of a run that the backup table of that run can have."""
    return is_inside(place, control_top) and run_of_place(place[len(control_top) + 1 :]) is not None


def why_not_ours(found: Table, table: Table, control_top: str) -> str:
    """Why a table with the name of a backup table is not as we make them, "" if it is: whoever may create tables can give one any name and
    any property. Locations are qualified.
    """
    if found.unreadable:
        return found.unreadable
    if found.backup_of != table.full_name:
        return "it is not marked as one of this table"
    if not is_harmless(found):
        return "files may go with it when it is dropped"
    return "" if lies_like_ours(found, table, control_top) else f"it lies at {found.location}"


def why_of_other(found: Table, table: Table, users: Collection[str]) -> str:
    """Why a table that is as we make backup tables may be somebody else's, or that of a former owner of the table, who must be shown no
    more; "" if it is not. `users` are those whose tables are trusted besides the owner of the table itself, which a backup table inherits.
    """
    is_of_other = table.owner and found.owner and found.owner not in {table.owner, *users}
    return f"it belongs to {found.owner}" if is_of_other else ""


def lies_like_ours(found: Table, table: Table, control_top: str) -> bool:
    """Whether a backup table of a table can have this location (qualified)."""
    if lies_in_run(found.location, control_top):
        return True
    # The one of an unpartitioned table shows live until a swap.
    return not found.partitioned and found.location == table.location
