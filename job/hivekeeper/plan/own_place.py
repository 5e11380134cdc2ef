"""Decide whether tables and units lie at places of their own: not in another one's directory, nor around it.

Pure. Each answer is None or a reason (docs/refusals.md).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import AbstractSet, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.model import Table, Unit
from hivekeeper.reasons import Code, Reason

# Of a unit below its table: before each swap, every directory between is looked at twice, the second time within milliseconds.
MOST_LEVELS = 50

# Of directories that are looked at for a table's records: all of its partitions outside it may have places of their own.
MOST_FORMER_PLACES = 1000

# The other table may be somebody's mistake, but its files may be the only ones.
_HOW_TO_MOVE_PATH = ", or set that property to the table's own (ALTER TABLE … SET SERDEPROPERTIES ('path'='…'))"
_HOW_TO_MOVE = "(ALTER TABLE … SET LOCATION; DROP TABLE may delete the files)"


def refuse_overlap(touching: Iterable[Table]) -> Optional[Reason]:
    """Why no directory may be moved in a table that overlaps these. Its own backup tables are none of them (`find_touching`), but what is
    only marked as one, and is around the table, is.
    """
    other = next(iter(touching), None)
    if other is None:
        return None
    is_elsewhere = any(path != other.location for path in other.spark_paths.values())
    return Reason(
        Code.SHARED_DIRECTORY,
        f"its directory, or its control directory, equals, contains or lies inside that of {other.full_name}"
        + (", or the one that the property path of its SerDe names, where Spark reads it" if is_elsewhere else ""),
        f"give each table a directory of its own {_HOW_TO_MOVE}" + (_HOW_TO_MOVE_PATH if is_elsewhere else ""),
    )


class Homes:
    """The directories of databases, by name, indexed by place: there may be a hundred thousand, which are asked for with each table; and
    that of the catalogue, "" for none.
    """

    def __init__(self, homes: Mapping[str, str], catalogue: str = "") -> None:
        self.catalogue = catalogue.rstrip("/")
        self._at: Dict[str, Set[str]] = {}
        for name, home in homes.items():
            self._at.setdefault(home.rstrip("/"), set()).add(name)
        # With a slash at their ends, those inside a directory follow it directly.
        self._ordered = sorted(f"{home}/" for home in self._at)

    def nearest(self, location: str) -> Tuple[str, AbstractSet[str]]:
        """The innermost one at a location or around it, and whose it is; "" and nobody for none."""
        return next(((above, self._at[above]) for above in names.with_above(location) if above in self._at), ("", frozenset()))

    def inside(self, location: str) -> Tuple[str, AbstractSet[str]]:
        """The same of one inside a location."""
        nth = bisect_right(self._ordered, location.rstrip("/") + "/")
        home = self._ordered[nth][:-1] if nth < len(self._ordered) else ""
        return (home, self._at[home]) if is_below(home, location) else ("", frozenset())

    def is_any_in(self, location: str) -> bool:
        """Whether one is at a location or inside it."""
        return location.rstrip("/") in self._at or bool(self.inside(location)[0])


def counts_around(path: str, location: str, homes: Homes) -> bool:
    """Whether a table at this location may have files of a table of Spark, in whose `path` it lies. Where databases lie, too, that path is
    no table's directory, whoever is said to own it: only what looks like a partition there may be a part of one, as anybody's database may
    have been made in a table's directory. Of Delta that is not all (`observe`).
    """
    return "=" in location[len(path) :] or not homes.is_any_in(path)


def refuse_home(table: Table, homes: Homes) -> Optional[Reason]:
    """Why a table in another database's directory or in the catalogue's, or around one, may not be swapped.

    The default database's directory is around those of all others, so the innermost one around the table must be that of its own database.
    The catalogue's is no such entry: it counts also if that of the table's own database lies between.
    """
    place, kept = f"{table.location.rstrip('/')}/", f"{homes.catalogue}/"
    if homes.catalogue and (place.startswith(kept) or kept.startswith(place)):
        return _shared(f"it {'lies in' if place.startswith(kept) else 'contains'} the directory of the catalogue ({homes.catalogue})")
    home, owners = homes.nearest(table.location)
    if owners and table.database not in owners:
        return _shared(f"it lies in the directory of the database {min(owners)} ({home})")
    home, owners = homes.inside(table.location)
    return _shared(f"it contains the directory of the database {min(owners)} ({home})") if owners else None


def _shared(what: str) -> Reason:
    return Reason(
        Code.SHARED_DIRECTORY,
        what,
        f"give each table a directory of its own, in its own database's directory or outside all {_HOW_TO_MOVE}",
    )


def is_inside(table: Table, unit: Unit) -> bool:
    """Whether a unit is in its table's directory, so that its own may be looked at. Others are refused whatever they hold."""
    return unit.live == table.location or is_below(unit.live, table.location)


def find_former_places(table: Table, lives: Iterable[str]) -> Tuple[str, ...]:
    """Where the table may have been before its location was set elsewhere, which moves no partition: the directories in which partitions
    outside its own lie as Hive makes them (`dt=1/hour=2`), on its server. No more than MOST_FORMER_PLACES. None in a snapshot: no run can
    be settled there, and what was interrupted then may have been settled since.
    """
    server, columns = names.server_of(table.location), [column.name.lower() for column in table.partition_columns]
    found: Dict[str, None] = {}
    for live in lives:
        if live == table.location or is_below(live, table.location) or names.server_of(live) != server:
            continue
        place = live
        for column in reversed(columns):
            name, is_named, _ = names.base(place).partition("=")
            if not is_named or name.lower() != column:
                break
            place = names.parent(place)
        else:
            if len(place) > len(server) and place != table.location and not names.is_reserved(place):
                found[place] = None
        if len(found) == MOST_FORMER_PLACES:
            break
    return tuple(found)


def is_below(path: str, top: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")


def find_shared_locations(units: Sequence[Unit]) -> Dict[str, Reason]:
    """Partitions whose directory equals, contains or lies inside another's (hazards 5.7), by name.

    Takes each partition once, however many share a directory or lie around and inside one another.
    """
    by_location: Dict[str, List[str]] = {}
    for unit in units:
        by_location.setdefault(unit.live, []).append(unit.name)
    found: Dict[str, Reason] = {}
    for sharing in by_location.values():
        if len(sharing) > 1:
            found.update({name: _shared_unit(f"it shares its directory with {_other(sharing, name)}") for name in sharing})
    containing: Set[str] = set()
    for outer, inner in _find_nested(by_location):
        if outer not in containing:
            containing.add(outer)
            for name in by_location[outer]:
                found.setdefault(name, _shared_unit(f"its directory contains that of {by_location[inner][0]}"))
        found.update({name: _shared_unit(f"its directory lies inside that of {by_location[outer][0]}") for name in by_location[inner]})
    return found


def _find_nested(locations: Iterable[str]) -> Iterator[Tuple[str, str]]:
    """Each location that lies inside others, behind the nearest of these."""
    around: List[str] = []
    # With a slash at their ends, those inside a location follow it directly.
    for place in sorted(locations, key=lambda location: location.rstrip("/") + "/"):
        while around and not is_below(place, around[-1]):
            around.pop()
        if around:
            yield around[-1], place
        around.append(place)


def _shared_unit(what: str) -> Reason:
    return Reason(Code.SHARED_DIRECTORY, what, "give each partition a directory of its own")


def _other(sharing: Sequence[str], name: str) -> str:
    return next(other for other in sharing if other != name)
