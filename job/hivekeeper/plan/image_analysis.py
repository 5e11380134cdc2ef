"""Judge tables by what a NameNode's image says about their directories, as analyze does by listings.

Pure: definitions and sums in, judgements out. An image is of the past, so it cannot say who is writing now: neither writers above the units
nor `min_quiet` are judged. It has no log either, so no unit is in quarantine, or settled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterable, List, Mapping, Tuple

from hivekeeper import names
from hivekeeper.config.settings import Settings
from hivekeeper.model import Snapshot, Table, Unit
from hivekeeper.names import ControlPaths
from hivekeeper.plan import listings, own_place
from hivekeeper.plan.analysis import ObservedTable, UnitAnalysis, judge_sizes, refuse_contents
from hivekeeper.plan.image_survey import Places, Survey, UnitBin, to_bytes
from hivekeeper.reasons import Code, Reason, count_beyond


@dataclass(frozen=True)
class DefinedTable:
    """A selected table as the metastore has it, locations qualified. `refused`: units that are unfit by definition, by name; `elsewhere`:
    directories of any of its units, selected or not, outside its own.
    """

    table: Table
    control: ControlPaths
    settings: Settings
    units: Tuple[Unit, ...]
    refused: Mapping[str, Reason]
    elsewhere: Tuple[str, ...]

    @property
    def long_texts(self) -> int:
        """The characters that its locations and reasons have beyond short ones."""
        of_places = sum(map(count_beyond, {*self.elsewhere, *(unit.live for unit in self.units)}))
        return of_places + sum(reason.dispensable for reason in self.refused.values())


def refuse_other_file_system(table: Table, home: str) -> Reason:
    server = names.server_of(table.location)
    return Reason(
        Code.NOT_IN_IMAGE,
        f"it is on {server or 'another file system'}, and the image is taken to be from {home}",
        "analyze it without --fsimage, which lists its directories",
    )


def refuse_long_texts() -> Reason:
    return Reason(
        Code.UNREADABLE_DEFINITION,
        "the locations of its partitions are so long that those of all tables would take the memory of the driver until the image is read",
        "analyze it without --fsimage",
    )


def is_at_home(location: str, home: str) -> bool:
    """Whether a location is on the file system whose image is read. `home`: its scheme and authority."""
    return names.server_of(location) == home


def in_image(location: str, home: str) -> bytes:
    """A location as a path of the image."""
    return to_bytes(location[len(home) :])


def find_places(defined: Iterable[DefinedTable], locations: Iterable[str], home: str) -> Places:
    """Where to count. `locations`: the places of all tables of all databases."""
    units: List[bytes] = []
    # At the root there is room for a pattern only, which any user may give a table: nothing would be in no table.
    tables = [location for location in locations if is_at_home(location, home) and location.rstrip("/") != home]
    controls = [ControlPaths.of(location, partitioned=False).top for location in tables]
    for one in defined:
        units += [in_image(unit.live, home) for unit in one.units if own_place.is_inside(one.table, unit)]
        tables += [one.table.location, *(place for place in one.elsewhere if is_at_home(place, home))]
        controls.append(one.control.top)
    return Places(units, [in_image(each, home) for each in tables], [in_image(each, home) for each in controls])


def judge_table(one: DefinedTable, survey: Survey, home: str) -> ObservedTable:
    control = survey.control(in_image(one.control.top, home))
    units = tuple(_judge_unit(one, unit, survey, home) for unit in one.units)
    left = control.retired.objects
    return ObservedTable(one.table, one.control, one.settings, units, has_control=control.exists, backup_objects=left)


def _judge_unit(one: DefinedTable, unit: Unit, survey: Survey, home: str) -> UnitAnalysis:
    counted = own_place.is_inside(one.table, unit)
    found = survey.unit(in_image(unit.live, home)) if counted else UnitBin()
    snapshot = found.snapshot if counted else Snapshot(exists=True)
    # As a listing is judged, in this order.
    reason = one.refused.get(unit.name) or refuse_contents(snapshot, [], one.settings) or listings.refuse_markers(found.markers)
    reason = reason or refuse_contents(snapshot, [found.offsets] if found.offsets else [], one.settings)
    judged = judge_sizes(unit, snapshot, found.sizes, found.lengths.counts.items(), reason, one.settings)
    return replace(judged, counted=found.lengths)
