"""Observe tables: definitions from the metastore, listings from the file system, in bulk.

Reads only; changes nothing and opens no data file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Partition, Snapshot, Table, Unit
from hivekeeper.names import ControlPaths
from hivekeeper.plan import eligibility
from hivekeeper.plan.analysis import ObservedTable, analyze_unit
from hivekeeper.plan.eligibility import Reason
from hivekeeper.plan.settings import Settings
from hivekeeper.ports import Cluster, Files, NoPermission

# Directories looked at in one call: bounds the answer's size, not the work.
LOOK_AT_ONCE = 2000

Wanted = Callable[[Sequence[str]], bool]
Look = Callable[[Sequence[str]], Mapping[str, Snapshot]]


def qualify_table(files: Files, table: Table) -> Table:
    return replace(table, location=files.qualify(table.location) if table.location else "")


def observe_table(cluster: Cluster, table: Table, settings: Settings, wanted: Optional[Wanted] = None) -> ObservedTable:
    """Judge a table and all its units by metadata. `wanted` chooses partitions by their values."""
    reason = eligibility.refuse_table(table)
    if reason:
        return ObservedTable(table, ControlPaths(""), settings, reason=reason)
    table = qualify_table(cluster.files, table)
    control = ControlPaths.of(table.location, table.partitioned)
    reason = refuse_overlap(cluster, table)
    if reason:
        return ObservedTable(table, control, settings, reason=reason)
    units, refusals = find_units(cluster, table)
    if wanted is not None:
        units = [unit for unit in units if wanted(unit.values)]
    seen = look_at(cluster.files.look_hidden, [control.top, *_above(table, units)])
    of_units, unreadable = look_where_allowed(cluster.files, [unit.live for unit in units])
    refusals.update({unit.name: eligibility.refuse_unreadable(unreadable[unit.live]) for unit in units if unit.live in unreadable})
    writer = eligibility.find_writer(entry for place in _above(table, units) for entry in seen[place].entries)
    if writer:
        return ObservedTable(table, control, settings, reason=eligibility.writer_at_work(writer), has_control=seen[control.top].exists)
    now_ms = cluster.clock.now_ms()
    analyses = tuple(analyze_unit(unit, of_units[unit.live], refusals.get(unit.name), settings, now_ms) for unit in units)
    return ObservedTable(table, control, settings, analyses, has_control=seen[control.top].exists)


def refuse_overlap(cluster: Cluster, table: Table) -> Optional[Reason]:
    """Another table of the database on the same directory, above it or below it would be swapped along. Its own backup tables follow it."""
    touching = cluster.metastore.locations_below([table.location], table.database).get(table.location, ())
    strangers = [name for name in touching if name != table.full_name]
    # Which tables touch was read some time ago: what recovery has dropped since, such as a killed run's backup table, is no reason.
    found = cluster.metastore.tables(table.database, [name.partition(".")[2] for name in strangers]) if strangers else {}
    others = [one.full_name for one in found.values() if one.parameters.get(eligibility.BACKUP_OF) != table.full_name]
    if not others:
        return None
    return Reason(f"its directory equals, contains or lies inside that of {others[0]}", "give each table a directory of its own")


def find_units(cluster: Cluster, table: Table) -> Tuple[List[Unit], Dict[str, Reason]]:
    """A table's units, ordered by name, and why some are unfit by definition."""
    if not table.partitioned:
        return [Unit(table.full_name, "", (), table.location, table.storage, table.parameters)], {}
    stored = cluster.metastore.partitions(table)
    partitions = [replace(partition, location=cluster.files.qualify(partition.location)) for partition in stored]
    refusals = eligibility.find_shared_locations(partitions)
    for partition in partitions:
        reason = eligibility.refuse_partition(table, partition)
        if reason:
            refusals.setdefault(partition.name, reason)
    return [_unit_of(table, partition) for partition in partitions], refusals


def _unit_of(table: Table, partition: Partition) -> Unit:
    return Unit(table.full_name, partition.name, partition.values, partition.location, partition.storage, partition.parameters)


def find_tied(cluster: Cluster, control: ControlPaths, units: Sequence[Unit]) -> Dict[str, Reason]:
    """The units whose directories must not be renamed, by name."""
    beside = names.parent(control.top)
    ties = cluster.files.ties([beside, *(unit.live for unit in units)])
    zone = ties[beside].zone if beside in ties else ""
    judged = {unit.name: eligibility.refuse_ties(ties[unit.live], zone) for unit in units if unit.live in ties}
    return {name: reason for name, reason in judged.items() if reason}


def _above(table: Table, units: Iterable[Unit]) -> Tuple[str, ...]:
    """The root of a partitioned table and the directories between it and its units: committers work there."""
    found: Dict[str, None] = {}
    for unit in units:
        place = unit.live
        while eligibility.is_below(place, table.location):
            place = names.parent(place)
            found[place] = None
    return tuple(found)


def look_at(look: Look, places: Sequence[str]) -> Mapping[str, Snapshot]:
    seen: Dict[str, Snapshot] = {}
    for start in range(0, len(places), LOOK_AT_ONCE):
        seen.update(look(places[start : start + LOOK_AT_ONCE]))
    return seen


def look_where_allowed(files: Files, places: Sequence[str]) -> Tuple[Mapping[str, Snapshot], Mapping[str, str]]:
    """What was seen, and why some directories may not be read: those count as existing and empty.

    One that is forbidden spoils the answer for all that were asked for together, so they are halved until it is alone.
    """
    try:
        return look_at(files.look, places), {}
    except NoPermission as error:
        if len(places) == 1:
            return {places[0]: Snapshot(exists=True)}, {places[0]: str(error)}
    half = len(places) // 2
    seen, denied = look_where_allowed(files, places[:half])
    more_seen, more_denied = look_where_allowed(files, places[half:])
    return {**seen, **more_seen}, {**denied, **more_denied}
