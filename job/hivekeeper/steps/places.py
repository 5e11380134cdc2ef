"""Where the metastore has the units of a run. Checked before an interrupted exchange continues, and again before the log records its
results: a Hive statement that met a unit in its gap found no directory, so it moved and deleted nothing.

Moves nothing. Puts back only partitions that the metastore's own discovery dropped.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from hivekeeper.errors import Refused
from hivekeeper.model import Partition, Table, Unit
from hivekeeper.names import UnitNumber
from hivekeeper.plan.own_place import is_below
from hivekeeper.ports import FilesUnavailable, MetastoreUnavailable, require_readable
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.manifests import Expected
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.observe import find_alone, find_existing, look_at, qualify_all, refused_if_too_many
from hivekeeper.steps.run_directory import Run
from hivekeeper.steps.whereabouts import MOST_AGE_MS, usable_until

log = logging.getLogger(__name__)

# If all partitions can be read that fast, they are read again for each of many units that have a directory.
QUICK_MS = 100

WHERE_UNKNOWN = Reason(Code.MOVED, "the metastore has no partition of this name any more, and did not tell all of them: was it renamed?")


@dataclass(frozen=True)
class Places:
    """What the metastore says about some units: why one is no longer at its place, and which have another name there."""

    changed: Mapping[UnitNumber, Reason] = field(default_factory=dict)
    renamed: Mapping[UnitNumber, Unit] = field(default_factory=dict)


def ask(run: Run, units: Sequence[PlannedUnit], are_settled: bool = False) -> Places:
    """Takes two calls for any number of units; more only if a unit or the table is missing. `are_settled`: live of none of them is away.
    Raises Refused like qualify_all.
    """
    if not units:
        return Places()
    table, why = _find_table(run)
    if table is None or why:
        return Places({unit.number: why for unit in units if why})
    return _ask_for_partitions(run, table, units, are_settled) if table.partitioned else Places()


def _find_table(run: Run, anew: bool = True) -> Tuple[Optional[Table], Optional[Reason]]:
    """The run's table as it is now, under another name if it was renamed; and why it is not at its place. `anew`: if not, its new name may
    be known only a minute later, because all tables of its database are read for that.
    """
    own = run.table
    found = require_readable(run.cluster.metastore.tables(own.database, [own.name]).get(own.name)) or _find_renamed(run, anew)
    if found is None:
        return None, Reason(Code.TABLE_GONE, "the table is not in the metastore any more: it was dropped, or renamed into another database")
    if found.create_time != own.create_time:
        return found, Reason(Code.TABLE_CREATED_AGAIN, "the table was dropped and created again meanwhile")
    location = run.files.qualify(found.location)
    if location != own.location and not own.partitioned:
        return found, Reason(Code.MOVED, f"the metastore has {found.full_name} at {location} now")
    return found, None


@dataclass
class _Sought:
    """For which run a command has last looked for its table's new name, and until when not for another one: whoever owns many tables may
    rename, or drop, each of them while its run is at work, in a database whose tables take long to read.
    """

    by: str = ""
    until_ms: float = -math.inf


def _find_renamed(run: Run, anew: bool) -> Optional[Table]:
    """The table in the same database with the run's creation time and the same shape; None if there are none or several.

    Raises FilesUnavailable if it is renamed again and again, and the run has looked for what was moved too long; and this or, if it is
    looked for `anew`, MetastoreUnavailable if the command has just spent as much time on another table.
    """
    known, clock, sought = run.whereabouts, run.cluster.clock, run.cluster.memory.of(_Sought)
    began_ms = clock.monotonic_ms()
    if not anew and began_ms <= known.new_names_until_ms:
        alike = _find_alike(run, known.new_names)
        if len(alike) == len(known.new_names):
            return _only(alike)
    if not anew:
        known.require_time(run.table.full_name)
    if sought.by != run.paths.top and began_ms < sought.until_ms:
        what = f"{run.table.full_name} is not in the metastore any more; whether it has another name is asked a little later"
        raise MetastoreUnavailable(what) if anew else FilesUnavailable(what)
    alike = _find_alike(run, None)
    known.new_names = tuple(one.name for one in alike)
    known.new_names_until_ms = usable_until(clock, began_ms)
    sought.by, sought.until_ms = run.paths.top, usable_until(clock, began_ms, 0)
    known.spent_ms += clock.monotonic_ms() - began_ms
    return _only(alike)


def _only(tables: Sequence[Table]) -> Optional[Table]:
    return tables[0] if len(tables) == 1 else None


def _find_alike(run: Run, among: Optional[Sequence[str]]) -> List[Table]:
    """Those of these tables that may be the run's; None for all of its database."""
    own, metastore = run.table, run.cluster.metastore
    if not own.create_time:
        return []
    try:
        others = metastore.tables(own.database, metastore.table_names(own.database) if among is None else among)
    except KeyError:
        return []
    return [one for one in others.values() if _definition(one) == _definition(own) and not one.backup_of]


def _definition(table: Table) -> Tuple[object, ...]:
    return table.create_time, table.kind, table.columns, table.partition_columns, table.owner


def _ask_for_partitions(run: Run, table: Table, units: Sequence[PlannedUnit], are_settled: bool) -> Places:
    present = run.cluster.metastore.partitions_named(table, list(dict.fromkeys(unit.name for unit in units)))
    locations = dict(zip(present, qualify_all(run.files, table, present.values())))
    away = [unit for unit in units if locations.get(unit.name) != unit.live]
    if not away:
        return Places()
    moved = {unit.number: _why_moved(locations[unit.name]) for unit in away if unit.name in locations}
    try:
        every = run.cluster.metastore.partitions(table)
        # A partition may have got the name of another unit of the run, whose own was dropped or changed.
        by_place = dict(zip(qualify_all(run.files, table, every), every))
    except (MetastoreUnavailable, Refused):
        if not are_settled or not moved:
            raise
        # All of them may be too many to tell: what is known of one counts.
        return Places({unit.number: moved.get(unit.number, WHERE_UNKNOWN) for unit in away})
    vacant = _find_vacant(run, {place: one for place, one in by_place.items() if are_settled or one.name not in present})
    changed: Dict[UnitNumber, Reason] = {}
    renamed: Dict[UnitNumber, Unit] = {}
    for unit in away:
        if unit.live in by_place:
            renamed[unit.number] = _unit_of(table, by_place[unit.live], unit)
        else:
            changed[unit.number] = moved.get(unit.number) or _why_missing(vacant)
    return Places(changed, renamed)


def _why_moved(location: str) -> Reason:
    return Reason(Code.MOVED, f"the metastore has it at {location} now")


def find_at(run: Run, former: PlannedUnit, place: str) -> Optional[Unit]:
    """What a unit is now whose directory was moved to this one: a partition of the run's table inside the table's directory.

    The metastore is asked for its former name, and for the name that the directory has. That it has a partition there of another name, with
    a location of its own, may be known only a minute later, because all are read for that.
    """
    table, why = _find_table(run, anew=False)
    if table is None or why or not table.partitioned or not is_below(place, run.table.location):
        return None
    likely = [former.name, *_names_of(table, place[len(run.table.location) + 1 :])]
    found = _find_named(run, table, likely, place)
    if found is None:
        listed = _partitions_by_place(run, table).get(place)
        found = _find_named(run, table, [listed.name], place) if listed else None
    return replace(_unit_of(table, found, former), live=place) if found else None


def is_alone(run: Run, unit: PlannedUnit) -> bool:
    """Whether no other partition lies in a unit's directory, or around it, so that all that is in it is the unit's; not if nobody can tell,
    nor if all partitions were read a minute ago: one may have come since, and to read them again for each unit may take all night.
    """
    if not run.table.partitioned:
        return True
    known, clock = run.whereabouts, run.cluster.clock
    began_ms = clock.monotonic_ms()
    if began_ms <= known.not_alone_until_ms:
        return False
    try:
        table, why = _find_table(run, anew=False)
        alone = frozenset() if table is None or why else find_alone(run.cluster, table)
    except (MetastoreUnavailable, Refused) as error:
        log.warning("table=%s step=find-shared failed reason=%r", run.table.log_field, str(error))
        alone = frozenset()
    if clock.monotonic_ms() - began_ms > QUICK_MS:
        known.not_alone_until_ms = usable_until(clock, began_ms)
    return unit.live in alone


def is_left(run: Run, unit: PlannedUnit) -> bool:
    """Whether the metastore has no partition at a unit's live any more. One that got another name, as those of external tables do without
    their directory, may be known only a minute later.
    """
    table, why = _find_table(run, anew=False)
    if table is None or why:
        return True
    if not table.partitioned or _find_named(run, table, [unit.name], unit.live):
        return False
    return unit.live not in _partitions_by_place(run, table)


def _names_of(table: Table, below: str) -> List[str]:
    """The name of the partition that has this directory unless it was given another one; none if none would have it."""
    levels = below.split("/")
    is_name = len(levels) == len(table.partition_columns) and all(
        level.startswith(f"{column.name}=") for level, column in zip(levels, table.partition_columns)
    )
    return [below] if is_name else []


def _find_named(run: Run, table: Table, wanted: Sequence[str], place: str) -> Optional[Partition]:
    present = run.cluster.metastore.partitions_named(table, list(dict.fromkeys(wanted))).values()
    return next((one for one, at in zip(present, qualify_all(run.files, table, present)) if at == place), None)


def _partitions_by_place(run: Run, table: Table) -> Mapping[str, Partition]:
    known, clock = run.whereabouts, run.cluster.clock
    began_ms = clock.monotonic_ms()
    if began_ms > known.partitions_until_ms:
        every = run.cluster.metastore.partitions(table)
        known.partitions = dict(zip(qualify_all(run.files, table, every), every))
        known.partitions_until_ms = usable_until(clock, began_ms)
    return known.partitions


def _find_vacant(run: Run, by_place: Mapping[str, Partition]) -> Optional[str]:
    """A partition of the table's directory without a directory: possibly the new name of one renamed while its directory was away."""
    inside = sorted(place for place in by_place if is_below(place, run.table.location))
    there = find_existing(run.files, inside)
    return next((f"{by_place[place].name} at {place}" for place in inside if place not in there), None)


def _why_missing(vacant: Optional[str]) -> Reason:
    if vacant is None:
        return Reason(Code.DROPPED, "it was dropped from the metastore meanwhile")
    return Reason(Code.MOVED, f"the metastore has no partition of this name any more, and {vacant} has no directory: was it renamed?")


def _unit_of(table: Table, partition: Partition, former: PlannedUnit) -> Unit:
    return Unit(table.full_name, partition.name, partition.values, former.live, partition.storage, partition.parameters)


def deletes_files(table: Table) -> bool:
    """Whether Hive deletes the files of a dropped table or partition."""
    return table.kind == "MANAGED_TABLE" or table.parameters.get("external.table.purge", "").lower() == "true"


def discovers(table: Table) -> bool:
    """Whether the metastore itself drops partitions whose directories are missing, and adds those that it finds."""
    return table.parameters.get("discover.partitions", "").lower() == "true"


def find_undecided(run: Run, changed: Mapping[UnitNumber, Reason]) -> Set[UnitNumber]:
    """The units of an interrupted run that nothing may be moved into or out of, because they are in the metastore no more.

    If Hive would have deleted the files, a dropped partition must not come back with them. But discovery drops one whose directory is away,
    too; and one that was renamed then has lost its rows. So an operator has to decide.
    """
    return {number for number, why in changed.items() if why.code is Code.DROPPED} if deletes_files(run.table) else set()


def confirm(run: Run, units: Sequence[UnitResult]) -> Tuple[List[UnitResult], Optional[MetastoreUnavailable]]:
    """The results for the log: a unit that the metastore has elsewhere, or not at all, is no success.

    If it does not answer, its error is returned, too: a statement may have met a unit in its gap, so the run is to be left for the next
    one, which asks again.
    """
    concerned = [unit for unit in units if (unit.outcome.touched or unit.outcome.exchanged) and not unit.outcome.is_astray]
    try:
        found = ask(run, [unit.planned for unit in concerned], are_settled=True)
    except (MetastoreUnavailable, Refused) as error:
        log.warning("table=%s step=confirm-places failed reason=%r", run.table.log_field, str(error))
        # What we refuse the next run refuses, too.
        return list(units), error if isinstance(error, MetastoreUnavailable) else None
    restored: Set[UnitNumber] = set()
    failed: Dict[UnitNumber, Reason] = {}
    try:
        restored, failed = _restore(run, concerned, found)
    except Refused as error:
        # It must not hide where the others are.
        log.warning("table=%s step=restore-partition failed reason=%r", run.table.log_field, str(error))
    changed = {number: failed.get(number, why) for number, why in found.changed.items() if number not in restored}
    found = replace(found, changed=changed)
    numbers = {unit.planned.number for unit in concerned}
    return [_confirmed(run, unit, found) if unit.planned.number in numbers else unit for unit in units], None


def _confirmed(run: Run, unit: UnitResult, found: Places) -> UnitResult:
    number = unit.planned.number
    if number in found.renamed:
        new = found.renamed[number]
        why = unit.why or Reason(Code.RENAMED, f"it was renamed to {new.name} meanwhile")
        return replace(unit, planned=replace(unit.planned, unit=new), why=why)
    if number not in found.changed:
        return unit
    result = replace(unit, outcome=outcome_of(run, number, found.changed[number]), has_backup=unit.exchanged)
    return replace(result, why=explain(run, result, found.changed[number]))


def outcome_of(run: Run, number: UnitNumber, why: Reason) -> Outcome:
    """A missing partition was dropped on purpose; an operator has to look at anything else, and at one whose directory was away for as long
    as an outage: `MSCK REPAIR TABLE … SYNC PARTITIONS` drops that.
    """
    return Outcome.DROPPED_MEANWHILE if why.code is Code.DROPPED and number not in run.were_away else Outcome.MISPLACED


def explain(run: Run, result: UnitResult, why: Reason) -> Reason:
    """The reason, with the places of the unit's files."""
    planned, backup = result.planned, run.paths.unit("retired", result.planned.number)
    seen = run.files.look([planned.live, backup], 0)
    there = [f"its files are in {planned.live}"] if seen[planned.live].exists else []
    there += [f"the old ones in {backup}" if there else f"its files are in {backup}"] if seen[backup].exists else []
    advice = "nothing, if it was dropped on purpose" if result.outcome is Outcome.DROPPED_MEANWHILE else ADVICE
    if why.code is Code.DROPPED and result.outcome is Outcome.MISPLACED:
        is_pinned = result.is_without_new_files or planned.number in run.taken_out
        on_purpose = "unpin that run, and a cleanup discards them" if is_pinned else "nothing"
        added = "; if it was dropped because its directory was away, ALTER TABLE … ADD PARTITION" if seen[planned.live].exists else ""
        advice = f"if it was dropped on purpose, {on_purpose}{added}; if it was renamed, {ADVICE}"
    return Reason(why.code, "; ".join([why.what, *there]), advice)


ADVICE = "compare the places with the metastore's and put the rows where they belong (docs/runbook.md, the table changed meanwhile)"


def restore_partitions(run: Run, units: Sequence[UnitResult]) -> List[UnitResult]:
    """Put back partitions that auto-discovery dropped while live was away: only if discovery is on and the files are there. Returns these.

    Discovery would add such a directory by itself, but without the partition's parameters. A partition without its files was dropped by a
    user.
    All partitions have to be read for that, as it may have another name now. If that has taken a minute altogether, and was done a moment
    ago, it waits for the units that come next, or for the end of the run: whoever drops a partition again and again would have all of them
    read each time.
    """
    if not discovers(run.table):
        return []
    known, clock = run.whereabouts, run.cluster.clock
    touched = [unit for unit in units if unit.planned.name and unit.outcome.touched and not unit.outcome.is_astray]
    known.missing.update(_find_missing(run, touched))
    began_ms = clock.monotonic_ms()
    if not known.missing or began_ms <= known.not_missing_until_ms:
        return []
    missing = known.missing
    try:
        found = ask(run, [unit.planned for unit in missing.values()])
    except (MetastoreUnavailable, Refused) as error:
        # Of others it has just told, so their sizes can be recorded.
        log.warning("table=%s step=restore-partition failed reason=%r", run.table.log_field, str(error))
        return []
    finally:
        known.missing_ms += clock.monotonic_ms() - began_ms
        if known.missing_ms > MOST_AGE_MS:
            known.not_missing_until_ms = usable_until(clock, began_ms)
    known.missing = {}
    restored, _ = _restore(run, list(missing.values()), found)
    return [missing[number] for number in restored]


def _find_missing(run: Run, units: Sequence[UnitResult]) -> Dict[UnitNumber, UnitResult]:
    """Those that the metastore does not have at their places."""
    if not units:
        return {}
    try:
        table, why = _find_table(run, anew=False)
    except FilesUnavailable:
        # Its new name was looked for too long.
        return {}
    if table is None or why or not table.partitioned:
        return {}
    present = run.cluster.metastore.partitions_named(table, list(dict.fromkeys(unit.planned.name for unit in units)))
    locations = dict(zip(present, qualify_all(run.files, table, present.values())))
    return {unit.planned.number: unit for unit in units if locations.get(unit.planned.name) != unit.planned.live}


def _restore(run: Run, units: Sequence[UnitResult], found: Places) -> Tuple[Set[UnitNumber], Dict[UnitNumber, Reason]]:
    """The units that are in the metastore again, and why some that have their files are not: an operator has to put these back, as the
    metastore may fail at one each time.
    """
    numbers = {number for number, why in found.changed.items() if why.code is Code.DROPPED}
    dropped = [unit for unit in units if unit.planned.number in numbers and unit.outcome.touched] if discovers(run.table) else []
    most = run.most_listed(unit.planned for unit in units)
    with refused_if_too_many(run.table, most):
        seen = look_at(run.files.look, list(dict.fromkeys(unit.planned.live for unit in dropped)), most)
    back = [unit.planned for unit in dropped if manifests.holds(expected(unit), seen[unit.planned.live].entries)]
    failed: Dict[UnitNumber, Reason] = {}
    restored: Set[UnitNumber] = set()
    for planned in back:
        # A loader may have removed it since, while others were put back: the metastore would make it again, before the loader's own comes.
        if not find_existing(run.files, [planned.live]):
            continue
        try:
            if run.cluster.metastore.add_partition(run.table, planned.partition):
                log.warning("unit=%s step=restore-partition done reason='discovery had dropped it'", planned.log_field)
            restored.add(planned.number)
        except MetastoreUnavailable as error:
            log.warning("unit=%s step=restore-partition failed reason=%r", planned.log_field, str(error))
            failed[planned.number] = Reason(Code.MOVED, f"discovery had dropped it, and it could not be put back: {error}")
    return restored, failed


def expected(unit: UnitResult) -> Expected:
    """The files in live after this result."""
    if unit.certificate and unit.exchanged:
        return manifests.expect_new(unit.certificate.files)
    files = unit.planned.expected if unit.exchanged else unit.planned.manifest
    return manifests.expect(files)
