"""Judge tables and units by metadata alone, and predict what compacting them would save.

Pure: listings and settings in, judgements out.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.codes import Coded
from hivekeeper.config.settings import JOINED, Settings
from hivekeeper.model import FileInfo, Snapshot, Table, Unit
from hivekeeper.names import ControlPaths
from hivekeeper.plan import eligibility, exchange_choice, listings, own_place, ranking, sizing
from hivekeeper.plan.exchange_choice import Choice, Mix
from hivekeeper.plan.sizing import Lengths
from hivekeeper.plan.unchanged import KnownUnit
from hivekeeper.reasons import SHORT, Code, Reason
from hivekeeper.runlog.outcomes import Outcome

# What one call asks about, except for a single larger unit.
FILES_AT_ONCE, UNITS_AT_ONCE = 20_000, 2000


class Status(Coded):
    """What metadata and the log say about a unit. A table has the status of most of its units, unless one is worth compacting."""

    COMPACT = "worth compacting"
    FINE = "its files are large enough"
    EMPTY = "no files"
    MISSING = "the metastore knows it, but its directory does not exist"
    RECENT = "worth compacting, but written to within `min_quiet`"
    QUARANTINED = "worth compacting, but its compaction failed several nights in a row"
    REFUSED = "not fit; the reason says why"

    @property
    def meaning(self) -> str:
        return str(self.value)


# How compact-swap reports a unit that it did not try because of metadata or the log.
LEFT_ALONE: Mapping[Status, Outcome] = {
    Status.REFUSED: Outcome.REFUSED,
    Status.RECENT: Outcome.RECENT,
    Status.QUARANTINED: Outcome.QUARANTINED,
}


# What is told first of units of which there are too many.
_FIRST = {status: at for at, status in enumerate((Status.COMPACT, Status.QUARANTINED, Status.RECENT, Status.REFUSED))}


@dataclass(frozen=True)
class Sums:
    """What stays of a unit's files without their listing: their lengths, and who owns how many of the small ones."""

    lengths: array[int]
    small_of: Tuple[Tuple[str, int], ...]


@dataclass(frozen=True)
class UnitAnalysis:
    """One unit, judged by metadata and the log."""

    unit: Unit
    snapshot: Snapshot
    sizes: sizing.Sizes
    target_files: int
    status: Status
    reason: Optional[Reason] = None
    # The lengths of its data files, where there was no listing.
    counted: Optional[Lengths] = None
    # What the catalogue says of it, if it was not looked at because its directory has not changed since.
    known: Optional[KnownUnit] = None
    # Which exchange it would get, as far as metadata can tell, where the setting leaves that open and something could be gained.
    choice: Optional[Choice] = None
    # Its small files, where at most these are rewritten, by joins.
    joined: Optional[sizing.Sizes] = None
    # Of its data files, where the listing is not kept.
    sums: Optional[Sums] = None

    @property
    def dispensable(self) -> int:
        """How many characters `shortened` takes away."""
        of_places = sum(len(place) for place in (self.live, self.known.place if self.known else "") if len(place) > SHORT)
        return of_places + (self.reason.dispensable if self.reason else 0)

    def shortened(self) -> UnitAnalysis:
        """The same with a short reason, and without a place if that is long: who gets a part of a path takes it for another one."""
        if not self.dispensable:
            return self
        return replace(
            self,
            unit=replace(self.unit, live=_whole_or_none(self.live)),
            known=replace(self.known, place=_whole_or_none(self.known.place)) if self.known else None,
            reason=self.reason.shortened() if self.reason else None,
        )

    @property
    def rewritten(self) -> sizing.Sizes:
        """The files that would be rewritten."""
        return self.joined or self.sizes

    @property
    def written_files(self) -> int:
        return self.target_files - (self.sizes.files - self.rewritten.files)

    @property
    def name(self) -> str:
        return self.unit.name

    @property
    def live(self) -> str:
        return self.unit.live

    @property
    def label(self) -> str:
        return self.unit.label

    @property
    def files(self) -> Tuple[FileInfo, ...]:
        return listings.data_files(self.snapshot)

    @property
    def lengths(self) -> sizing.Counts:
        """How many data files have which length."""
        if self.counted is not None:
            return self.counted.counts.items()
        return sizing.count(self.sums.lengths if self.sums else (file.length for file in self.files))

    def count_small(self, threshold: float) -> Mapping[str, int]:
        """How many data files below this length each owner has."""
        return dict(self.sums.small_of) if self.sums else Counter(file.owner for file in self.files if file.length < threshold)

    def without_listing(self, threshold: float) -> UnitAnalysis:
        """The same in a fiftieth of the memory; small files are those below the threshold from then on."""
        sums = Sums(array("q", (file.length for file in self.files)), tuple(sorted(self.count_small(threshold).items())))
        return replace(self, snapshot=replace(self.snapshot, entries=()), sums=sums) if self.snapshot.entries else self

    @property
    def files_removed(self) -> int:
        return self.sizes.files - self.target_files if self.status is Status.COMPACT else 0


def _whole_or_none(place: str) -> str:
    return place if len(place) <= SHORT else ""


def analyze_unit(unit: Unit, snapshot: Snapshot, refusal: Optional[Reason], settings: Settings, now_ms: int) -> UnitAnalysis:
    """Judge one unit by its listing. `refusal`: why its definition alone makes it unfit."""
    files = listings.data_files(snapshot)
    sizes = sizing.measure([file.length for file in files], settings.block_bytes)
    lengths = sizing.count(file.length for file in files)
    judged = judge_sizes(unit, snapshot, sizes, lengths, refusal or refuse_contents(snapshot, files, settings), settings)
    return wait_until_quiet(judged, settings, now_ms)


def wait_until_quiet(judged: UnitAnalysis, settings: Settings, now_ms: int) -> UnitAnalysis:
    """The unit, left for a later run if it is worth compacting and was written to a short time ago."""
    if judged.status is not Status.COMPACT:
        return judged
    quiet_ms = now_ms - listings.newest_ms(judged.snapshot)
    if quiet_ms >= settings.min_quiet_ms:
        return judged
    wait = Reason(Code.RECENTLY_WRITTEN, f"written to {max(0, quiet_ms) // 1000} s ago", "run again later, or lower --min-quiet")
    return UnitAnalysis(judged.unit, judged.snapshot, judged.sizes, judged.sizes.files, Status.RECENT, wait)


def wait_until_all_quiet(observed: ObservedTable, now_ms: int) -> ObservedTable:
    """The table with those units left for a later run that were written to a short time ago by this clock, too."""
    units = (replace(wait_until_quiet(unit, observed.settings, now_ms), counted=unit.counted) for unit in observed.units)
    return replace(observed, units=tuple(units))


def refuse_contents(snapshot: Snapshot, files: Iterable[FileInfo], settings: Settings) -> Optional[Reason]:
    """Why what lies in a unit's directory makes it unfit. `files` are its data files, or those with telling names."""
    reason = listings.refuse_directory(snapshot) if snapshot.exists else None
    return reason if reason or settings.compact_offset_files else listings.refuse_offset_names(files)


def judge_sizes(
    unit: Unit, snapshot: Snapshot, sizes: sizing.Sizes, lengths: sizing.Counts, reason: Optional[Reason], settings: Settings
) -> UnitAnalysis:
    """Judge one unit by the sizes of its files, whenever they were written: `sizes` are exact, `lengths` may be rounded. `reason`: why it
    is unfit.
    """
    status = _status(snapshot, sizes, reason, settings)
    target = sizing.target_files(sizes.total_bytes, settings.block_bytes) if status is Status.COMPACT else sizes.files
    judged = UnitAnalysis(unit, snapshot, sizes, target, status, reason)
    is_open = exchange_choice.is_open(settings) and status in (Status.COMPACT, Status.FINE)
    return _choose_exchange(judged, lengths, settings) if is_open else judged


def _choose_exchange(judged: UnitAnalysis, lengths: sizing.Counts, settings: Settings) -> UnitAnalysis:
    """A join may gain where a swap would not: small files among many well-sized ones are neither the average nor the median."""
    is_worth_a_swap = judged.status is Status.COMPACT
    choice = exchange_choice.judge(eligibility.format_of(judged.unit.storage), Mix.of(lengths, settings), settings, is_worth_a_swap)
    if choice.exchange == JOINED:
        small = sizing.measure_counts(sizing.find_small(lengths, settings.block_bytes, settings.ratio_threshold), settings.block_bytes)
        target = judged.sizes.files - small.files + sizing.target_files(small.total_bytes, settings.block_bytes)
        return replace(judged, status=Status.COMPACT, target_files=target, choice=choice, joined=small)
    if not is_worth_a_swap:
        return judged
    if choice.exchange is None:
        status, reason = (Status.REFUSED, choice.why) if choice.is_refused else (Status.FINE, None)
        return replace(judged, status=status, target_files=judged.sizes.files, reason=reason, choice=choice)
    return replace(judged, choice=choice)


def _status(snapshot: Snapshot, sizes: sizing.Sizes, reason: Optional[Reason], settings: Settings) -> Status:
    if reason:
        return Status.REFUSED
    if not snapshot.exists:
        return Status.MISSING
    if sizes.files == 0:
        return Status.EMPTY
    return Status.COMPACT if sizing.is_worthwhile(sizes, settings.block_bytes, settings.ratio_threshold) else Status.FINE


def choose(analyses: Iterable[UnitAnalysis]) -> List[UnitAnalysis]:
    """The units worth compacting, best first."""
    worthwhile = [analysis for analysis in analyses if analysis.status is Status.COMPACT]
    return ranking.rank(worthwhile, lambda a: a.files_removed, lambda a: a.sizes.total_bytes, lambda a: a.unit.name)


def portions(units: Iterable[UnitAnalysis]) -> Iterator[List[UnitAnalysis]]:
    """The units, as many at a time as can be asked about in one call: its answer is held in memory."""
    some: List[UnitAnalysis] = []
    files = 0
    for unit in units:
        if some and (files + unit.sizes.files > FILES_AT_ONCE or len(some) == UNITS_AT_ONCE):
            yield some
            some, files = [], 0
        some.append(unit)
        files += unit.sizes.files
    if some:
        yield some


@dataclass(frozen=True)
class ObservedTable:
    """The current state of one table. `reason`: why the whole table is left alone; its units are empty then.

    `backup_objects`: the NameNode objects of what earlier runs left, where the log was read. `last_run`: id, time in ms and operation of
    its last entry. `former_places`: where the table may have been before its location was set elsewhere.
    """

    table: Table
    control: ControlPaths
    settings: Settings
    units: Tuple[UnitAnalysis, ...] = ()
    reason: Optional[Reason] = None
    has_control: bool = False
    backup_objects: int = 0
    last_run: Optional[Tuple[str, Optional[int], str]] = None
    former_places: Tuple[str, ...] = ()
    # Of all its units, where a command over many tables has room for some of them only.
    of_all: Optional[OfAllUnits] = None

    def without_units(self, most: int) -> ObservedTable:
        """The same with so many units, those that need work first, and what is told of all together."""
        of_all = OfAllUnits(
            self.unit_count, self.unchanged, self.statuses, self.exchanges, predict(self), self.total_bytes, Lengths.of(self.lengths)
        )
        return replace(self, units=tuple(nsmallest(most, self.units, lambda unit: _FIRST.get(unit.status, len(_FIRST)))), of_all=of_all)

    def without_listings(self) -> ObservedTable:
        threshold = sizing.threshold_bytes(self.settings.block_bytes, self.settings.ratio_threshold)
        return replace(self, units=tuple(unit.without_listing(threshold) for unit in self.units))

    def without_definitions(self) -> ObservedTable:
        units = tuple(replace(unit, unit=unit.unit.outlined()) for unit in self.units)
        return replace(self, table=self.table.outlined(), units=units, former_places=())

    @property
    def dispensable(self) -> int:
        """How many characters `shortened` takes away."""
        return sum(unit.dispensable for unit in self.units)

    def shortened(self) -> ObservedTable:
        return replace(self, units=tuple(unit.shortened() for unit in self.units))

    @property
    def unit_count(self) -> int:
        return self.of_all.units if self.of_all else len(self.units)

    @property
    def total_bytes(self) -> int:
        return self.of_all.total_bytes if self.of_all else sum(unit.sizes.total_bytes for unit in self.units)

    @property
    def lengths(self) -> sizing.Counts:
        """How many files have which length."""
        if self.of_all:
            return self.of_all.lengths.counts.items()
        return sizing.merge(unit.lengths for unit in self.units)

    @property
    def unchanged(self) -> int:
        """How many units were not looked at, because the catalogue knows them."""
        return self.of_all.unchanged if self.of_all else sum(unit.known is not None for unit in self.units)

    @property
    def exchanges(self) -> Dict[Choice, int]:
        """How many units would get which exchange, as far as metadata can tell; none where the setting leaves nothing open."""
        if self.of_all:
            return dict(self.of_all.exchanges)
        return dict(
            Counter(unit.choice for unit in self.units if unit.choice and (unit.status is Status.COMPACT or not unit.choice.exchange))
        )

    @property
    def statuses(self) -> Dict[Status, int]:
        if self.of_all:
            return dict(self.of_all.statuses)
        counts: Dict[Status, int] = {}
        for unit in self.units:
            counts[unit.status] = counts.get(unit.status, 0) + 1
        return counts

    @property
    def status(self) -> Status:
        """The status of the table: refused, compact, else that of most of its units."""
        if self.reason:
            return Status.REFUSED
        counts = self.statuses
        if not counts:
            return Status.EMPTY
        return Status.COMPACT if Status.COMPACT in counts else max(sorted(counts, key=lambda one: one.code), key=lambda one: counts[one])


@dataclass(frozen=True)
class SeenTable:
    """The observations of a table, before anything is judged. Locations are qualified.

    `touching` are tables of any database on the same, an outer or an inner directory; `homes` are the databases' directories.
    `units` are the selected units, `all_units` all of them. `snapshots` and `unreadable` (why a directory may not be read) are keyed by the
    units' directories. `above` are the hidden entries of the directories above the units, where committers work, and `inside` holds what is
    inside the directories created by writers.
    """

    table: Table
    control: ControlPaths
    has_control: bool
    touching: Tuple[Table, ...]
    homes: own_place.Homes
    all_units: Tuple[Unit, ...]
    units: Tuple[Unit, ...]
    snapshots: Mapping[str, Snapshot]
    unreadable: Mapping[str, str]
    above: Tuple[FileInfo, ...]
    inside: listings.Inside
    unchanged: Mapping[str, KnownUnit] = field(default_factory=dict)


def judge_table(seen: SeenTable, settings: Settings, now_ms: int) -> ObservedTable:
    """Judge the table as a whole first, then each of its units."""
    writer = listings.find_writer(seen.above, seen.inside, now_ms, settings.leftover_age_ms)
    reason = own_place.refuse_overlap(seen.touching) or own_place.refuse_home(seen.table, seen.homes)
    reason = reason or listings.refuse_logs_above(seen.above) or (listings.writer_at_work(writer) if writer else None)
    former_places = _find_former_places(seen)
    if reason:
        return ObservedTable(seen.table, seen.control, settings, reason=reason, has_control=seen.has_control, former_places=former_places)
    refused = eligibility.refuse_units(seen.table, seen.all_units)
    refused.update(
        {unit.name: listings.refuse_unreadable(seen.unreadable[unit.live]) for unit in seen.units if unit.live in seen.unreadable}
    )
    units = tuple(_judge_unit(seen, unit, refused.get(unit.name), settings, now_ms) for unit in seen.units)
    return ObservedTable(seen.table, seen.control, settings, units, has_control=seen.has_control, former_places=former_places)


def _find_former_places(seen: SeenTable) -> Tuple[str, ...]:
    """Those around partitions outside the table; and between it and its units those with records, if its location was set higher up."""
    if not seen.table.partitioned:
        return ()
    around = own_place.find_former_places(seen.table, (unit.live for unit in seen.all_units))
    tops = [entry.path for entry in seen.above if entry.is_dir and entry.name == names.CONTROL and entry.path != seen.control.top]
    return (*around, *map(names.parent, tops))[: own_place.MOST_FORMER_PLACES]


def _judge_unit(seen: SeenTable, unit: Unit, refusal: Optional[Reason], settings: Settings, now_ms: int) -> UnitAnalysis:
    known = seen.unchanged.get(unit.name)
    if known is None:
        return analyze_unit(unit, _passed(seen, unit), refusal, settings, now_ms)
    status = Status.REFUSED if refusal else Status.of_code(known.verdict)
    return UnitAnalysis(unit, seen.snapshots[unit.live], known.sizes, known.files, status, refusal, Lengths.of(known.lengths), known)


def _passed(seen: SeenTable, unit: Unit) -> Snapshot:
    """The snapshot of a unit without the leftovers in it."""
    snapshot = seen.snapshots[unit.live]
    return replace(snapshot, entries=listings.without_empty_staging(snapshot.entries, seen.inside))


@dataclass(frozen=True)
class Prediction:
    """What compacting would do. Objects are the NameNode's: inodes and blocks, including our own; `backup_objects` are among them until
    cleanup.
    """

    files_now: int
    files_after: int
    bytes_rewritten: int
    objects_now: int
    objects_after: int
    objects_after_cleanup: int
    backup_objects: int

    @property
    def files_removed(self) -> int:
        return self.files_now - self.files_after


@dataclass(frozen=True)
class OfAllUnits:
    """What is told of all units of a table together."""

    units: int
    unchanged: int
    statuses: Mapping[Status, int]
    exchanges: Mapping[Choice, int]
    prediction: Prediction
    total_bytes: int
    lengths: Lengths


def predict(observed: ObservedTable) -> Prediction:
    """The prediction for one table. Until cleanup the old files stay as the backup, so the objects first increase. Those that are joined
    are no files any more, but keep their blocks.
    """
    if observed.of_all:
        return observed.of_all.prediction
    block, units = observed.settings.block_bytes, observed.units
    work = [unit for unit in units if unit.status is Status.COMPACT]
    now = sum(unit.sizes.objects for unit in units if unit.snapshot.exists)
    replaced = sum(unit.rewritten.objects for unit in work)
    written = sum(sizing.predicted_objects(unit.rewritten.total_bytes, unit.written_files, block) for unit in work)
    gone = sum(unit.joined.files + 1 for unit in work if unit.joined)
    batches = count_batches([unit.rewritten.total_bytes for unit in work], observed.settings)
    ours_until, ours_kept = sizing.control_objects(len(work), batches, first_run=not observed.has_control)
    return Prediction(
        files_now=sum(unit.sizes.files for unit in units),
        files_after=sum(unit.target_files for unit in units),
        bytes_rewritten=sum(unit.rewritten.total_bytes for unit in work),
        objects_now=now + observed.backup_objects,
        objects_after=now + observed.backup_objects + written - gone + ours_until,
        objects_after_cleanup=now - replaced + written + ours_kept,
        backup_objects=observed.backup_objects,
    )


def count_batches(sizes: Sequence[int], settings: Settings) -> int:
    """The number of stage jobs for units of these sizes if all share one form."""
    if not sizes:
        return 0
    return max(-(-len(sizes) // settings.batch_units), -(-sum(sizes) // settings.batch_bytes))
