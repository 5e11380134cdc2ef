"""Give new directories the owner, group, mode, ACLs and policies of those they will replace, and see that these still have the same rights.

Touches only directories below the run's own.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.errors import Refused
from hivekeeper.model import OWNER_ONLY, Attributes, FileInfo, Snapshot, StageUnit
from hivekeeper.names import UnitNumber
from hivekeeper.plan import file_rights, ownership
from hivekeeper.ports import Files, NoPermission, SourceMissing
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.checks import GONE, LISTED_ENOUGH, find_other_directory
from hivekeeper.steps.fitness import MOST_AGE_MS
from hivekeeper.steps.observe import TooManyEntries, ask_where_allowed, look_at
from hivekeeper.steps.run_directory import Run
from hivekeeper.steps.whereabouts import usable_until

log = logging.getLogger(__name__)

MORE_XATTRS = Reason(
    Code.MORE_XATTRS,
    "its directory has more than 4 KiB of extended attributes, so many are not kept",
    "remove some of them, or leave the unit out with --where",
)
# Whoever may write to a directory can give its files a hundred ACLs.
RIGHTS_AT_ONCE = 200
# For so many units one answer serves.
UNITS_AT_ONCE = 50
CROWDED = Reason(Code.CHANGED_MEANWHILE, "so many files came to it that their rights were not looked at")
RIGHTS_CHANGED = Reason(Code.CHANGED_MEANWHILE, "the rights of its directory, or of files in it, were changed, or files are gone")


def dress(files: Files, wanted: Mapping[str, Attributes], owner: str) -> Mapping[str, str]:
    """Give directories their attributes. `owner` says how much the owner matters: require, try or ignore. Returns why some of them are open
    to fewer users than is wanted.

    On HDFS only a superuser may change a file's owner, but the owner may change its group to any group they belong to, and
    group-based readers of the table depend on that. Raises NoPermission.
    """
    keepable = {"require": (keep_all,), "try": (keep_all, keep_group), "ignore": ()}[owner]
    for keep in keepable:
        try:
            files.dress({path: keep(attributes) for path, attributes in wanted.items()})
            return {}
        except NoPermission as error:
            if owner == "require":
                raise
            log.warning("step=dress owner=not-kept reason=%r", str(error))
    alike = _by_group(wanted)
    if keepable and len(alike) > 1:
        # One group that cannot be given is no reason to leave out the others.
        return {path: why for some in alike for path, why in dress(files, some, owner).items()}
    allowed, narrower = keep_neither(files, wanted)
    files.dress(allowed)
    return narrower


def keep_all(wanted: Attributes) -> Attributes:
    return wanted


def keep_group(wanted: Attributes) -> Attributes:
    return replace(wanted, owner="", file_owner="")


def _by_group(wanted: Mapping[str, Attributes]) -> List[Dict[str, Attributes]]:
    """The same in parts, each for one group of directories and one of the files in them."""
    parts: Dict[object, Dict[str, Attributes]] = {}
    for path, attributes in wanted.items():
        parts.setdefault((attributes.group, attributes.file_group), {})[path] = attributes
    return list(parts.values())


def keep_neither(files: Files, wanted: Mapping[str, Attributes]) -> Tuple[Dict[str, Attributes], Dict[str, str]]:
    """The attributes without owner and group, and why some are narrower.

    HDFS gives what is new the group of the directory around it. To any other group than the wanted one, rows that were for that one must
    not be opened.
    """
    asked = [path for path, attributes in wanted.items() if file_rights.without_group(attributes, True, True) != attributes]
    known, seen = (files.attributes(asked), files.look(asked)) if asked else ({}, {})
    allowed, narrower = dict(wanted), {}
    for path in asked:
        group = wanted[path].group
        of_files = group if wanted[path].file_group is None else wanted[path].file_group
        present = known[path].group if path in known else ""
        # Until there are files: what is new gets the directory's.
        others = {entry.group for entry in seen[path].entries if not entry.is_dir} or {present}
        allowed[path] = file_rights.without_group(wanted[path], present != group, others != {of_files})
        if allowed[path] != wanted[path]:
            lost = group if present != group else of_files
            narrower[path] = f"the group {lost} cannot be kept; the one that it has, {present}, may do no more than others"
    return {path: replace(one, owner="", group="", file_owner="", file_group="") for path, one in allowed.items()}, narrower


def warn_narrower(unit: PlannedUnit, why: str) -> None:
    """Fewer users than before can read the unit."""
    log.warning("unit=%s step=dress group=not-kept reason=%r", unit.log_field, why)


def read_attributes(files: Files, seen: Mapping[str, Snapshot]) -> Tuple[Dict[str, Attributes], Dict[str, Reason]]:
    """The attributes of directories, as they were seen before, with those that copies of their files get, and why other directories have
    none.
    """
    ids = {place: snapshot.file_id for place, snapshot in seen.items()}
    known = files.attributes(list(seen), ids)
    found: Dict[str, Attributes] = {}
    refused: Dict[str, Reason] = {}
    for start in range(0, len(known), RIGHTS_AT_ONCE):
        some = {place: ids[place] for place in list(known)[start : start + RIGHTS_AT_ONCE]}
        for place, rights in files.file_rights(some, file_rights.MOST_DIFFERENT).items():
            shared = MORE_XATTRS if known[place].has_more_xattrs else file_rights.share_rights(known[place], list(rights))
            if not file_rights.are_of(known[place], rights, seen[place]):
                shared = RIGHTS_CHANGED.advising("run again")
            if isinstance(shared, Reason):
                refused[place] = shared
            else:
                found[place] = shared
    return found, refused


def is_read_by_group(files: Files, seen: Mapping[str, Snapshot], group: str) -> bool:
    """Whether a group may read everything in directories, as they were seen before; not if that cannot be told of one."""
    try:
        found, refused = read_attributes(files, seen)
    except NoPermission:
        return False
    return not refused and all(place in found and ownership.is_read_by_group(found[place], group) for place in seen)


def may_read_now(files: Files, places: Sequence[str], group: str, most: int) -> bool:
    """The same of directories as they are now; not if they have more than `most` entries, or one is away."""

    def may_read(some: Sequence[str]) -> bool:
        seen = look_at(files.look, some, most)
        return all(one.exists for one in seen.values()) and is_read_by_group(files, seen, group)

    return _is_so_of_all(may_read, places)


def may_list_now(files: Files, places: Sequence[str], group: str) -> bool:
    """The same of the directories and a file in each, which are not listed for that."""

    def may_list(some: Sequence[str]) -> bool:
        found = files.attributes(some)
        return all(place in found and ownership.is_read_by_group(found[place], group) for place in some)

    return _is_so_of_all(may_list, places)


def _is_so_of_all(is_so: Callable[[Sequence[str]], bool], places: Sequence[str]) -> bool:
    """Asked of some at a time; not if that cannot be told."""
    try:
        return all(is_so(places[start : start + UNITS_AT_ONCE]) for start in range(0, len(places), UNITS_AT_ONCE))
    except (NoPermission, TooManyEntries):
        return False


def like(files: Files, file: FileInfo) -> Attributes:
    """The attributes of a file's directory, with that file's own rights for what lies in it. Raises SourceMissing if it is gone.

    If its rights cannot be told, or another directory is at that place by now, for nobody but its owner, who is not always that of the
    directory: an operator can open it.
    """
    directory = names.parent(file.path)
    known = files.attributes([directory]).get(directory)
    if known is None:
        raise SourceMissing(directory)
    every = files.file_rights({directory: known.directory_id}, file_rights.MOST_DIFFERENT).get(directory, {})
    own = [rights for rights, ids in every.items() if file.file_id in ids]
    shared = file_rights.share_rights(known, own) if own else MORE_XATTRS
    return closed(known, file.owner, file.group) if isinstance(shared, Reason) else shared


def closed(known: Attributes, owner: str = "", group: str = "") -> Attributes:
    """The attributes of a directory, with files in it for this owner alone; "" for the user of the run."""
    return replace(known, file_mode=OWNER_ONLY, file_acl=(), file_owner=owner, file_group=group)


def rehearse(files: Files, directory: str, wanted: Iterable[Attributes], owner: str) -> None:
    """Set the attributes on an empty directory, to find missing rights before anything is written. Raises Refused."""
    for attributes in file_rights.with_different_owners(wanted):
        try:
            dress(files, {directory: attributes}, owner)
        except NoPermission as error:
            raise Refused(
                f"the attributes of its files cannot be kept: {error}",
                code=Code.ATTRIBUTES_NOT_KEPT,
                next="run as their owner or as the superuser, or set owner: try (keep what is allowed) or owner: ignore",
            ) from error


class RightsOfLive:
    """Whether units still have the rights that their copies got. A run may take hours, and somebody may close a directory meanwhile.

    `units` are exchanged in this order; `wanted` are the attributes of their copies.
    """

    def __init__(self, run: Run, units: Sequence[Tuple[PlannedUnit, StageUnit]], wanted: Mapping[UnitNumber, Attributes]) -> None:
        self._run, self._units, self._wanted = run, units, wanted
        self._why: Dict[UnitNumber, Optional[Reason]] = {}
        self._until_ms = 0.0
        # Units that are asked about one by one: too many files came to one that was to be looked at with them.
        self._alone: Set[UnitNumber] = set()

    def why_changed(self, number: UnitNumber) -> Optional[Reason]:
        """Why a unit must not be exchanged, by an answer that is at most some seconds old, or as old as it took."""
        clock = self._run.cluster.clock
        if number not in self._why or clock.monotonic_ms() > self._until_ms:
            if self._run.has_listed_enough:
                return LISTED_ENOUGH
            start = next(index for index, (unit, _) in enumerate(self._units) if unit.number == number)
            began_ms = clock.monotonic_ms()
            self._why = self._ask_from(start)
            self._until_ms = usable_until(clock, began_ms, MOST_AGE_MS)
        return self._why[number]

    def _ask_from(self, start: int) -> Dict[UnitNumber, Optional[Reason]]:
        """Of some units as many entries as their plan lets expect; of the first one alone as many as a unit may have."""
        some = self._units[start : start + UNITS_AT_ONCE]
        first, units = some[:1], [unit for unit, _ in some]
        if units[0].number not in self._alone:
            try:
                return self._ask(some, min(self._run.most_expected(units), self._run.most_listed(units)))
            except TooManyEntries:
                self._alone.update(unit.number for unit in units)
        try:
            return self._ask(first, self._run.most_listed(units[:1]))
        except TooManyEntries:
            return {units[0].number: CROWDED}

    def _ask(self, some: Sequence[Tuple[PlannedUnit, StageUnit]], most: int) -> Dict[UnitNumber, Optional[Reason]]:
        """Also where a directory is closed to this user by now. Raises TooManyEntries."""
        found, denied = ask_where_allowed(lambda units: self._compare(units, most), some)
        return {**found, **{unit.number: Reason(Code.NO_PERMISSION, why) for (unit, _), why in denied}}

    def _compare(self, some: Sequence[Tuple[PlannedUnit, StageUnit]], most: int) -> Dict[UnitNumber, Optional[Reason]]:
        lives = list(dict.fromkeys(unit.live for unit, _ in some))
        seen = look_at(self._run.look_at_live(unit for unit, _ in some), lives, most)
        now = self._run.files.attributes(lives, {live: snapshot.file_id for live, snapshot in seen.items()})
        return {unit.number: self._find_change(unit, staged, seen[unit.live], now.get(unit.live)) for unit, staged in some}

    def _find_change(self, unit: PlannedUnit, staged: StageUnit, seen: Snapshot, now: Optional[Attributes]) -> Optional[Reason]:
        """What is away, or has another one in its place, may be back before the check that comes next, and was not compared."""
        if now is None or not seen.exists:
            return GONE
        other = find_other_directory(unit, seen.file_id) or find_other_directory(unit, now.directory_id)
        is_changed = file_rights.are_changed(self._wanted[unit.number], now, staged.files, seen.entries)
        return other or (RIGHTS_CHANGED if is_changed else None)
