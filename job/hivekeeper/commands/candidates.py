"""Read the units worth compacting, and choose the exchange of each (plan/exchange_choice.py), in a few calls for all of them.

Reads only.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Container, Dict, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.config.settings import AT_ONCE, JOINED, Settings
from hivekeeper.model import Attributes, Block, FileInfo, Ties, UnitFooters
from hivekeeper.names import RunId
from hivekeeper.plan import analysis, compaction, eligibility, exchange_choice, joining, listings, sizing
from hivekeeper.plan.analysis import ObservedTable, UnitAnalysis
from hivekeeper.plan.capacity import RoomForValues
from hivekeeper.plan.compaction import Candidate, Rewrite
from hivekeeper.plan.exchange_choice import Choice, Facts, Mix
from hivekeeper.ports import Cluster, NotPossible
from hivekeeper.reasons import Code, Reason
from hivekeeper.steps.attributes import read_attributes
from hivekeeper.steps.observe import find_ties, look_where_allowed

log = logging.getLogger(__name__)

GONE = Reason(Code.DIRECTORY_GONE, "its directory is gone; it was there a moment ago", "somebody is removing it: run again later")
UNNAMED = exchange_choice.impossible("its files changed meanwhile, or no name for a new file lies between two of theirs", "run again")

# Of the entries of live, each of which is listed before each of its sets is joined, in one run on a table; some minutes.
MOST_LISTED = 50_000_000
# Of all small files of a table that might be joined, besides one of each: whoever may write there can make files of a block for each byte.
MOST_BLOCKS = 1_000_000

# By unit, the names of its files that must not be joined.
LeaveOut = Mapping[str, Container[str]]


# The files of one unit that are to be joined.
FileSet = Tuple[FileInfo, ...]


def list_waiting(observed: ObservedTable, settings: Settings, leave_out: LeaveOut) -> List[UnitAnalysis]:
    """The units worth compacting, best first; those that are to be joined with their small files only."""
    units = (joining.narrow(unit, settings, leave_out.get(unit.name, ())) if unit.joined else unit for unit in observed.units)
    return analysis.choose(units)


@dataclass(frozen=True)
class Places:
    """What is known of the directories of some units, by name. `zone`: the encryption zone around the control directory. `unshared`: why
    no copy of its files gets any rights.
    """

    ties: Mapping[str, Ties]
    zone: str
    attributes: Mapping[str, Attributes] = field(default_factory=dict)
    unshared: Mapping[str, Reason] = field(default_factory=dict)

    def tie(self, name: str) -> Optional[Reason]:
        return listings.refuse_ties(self.ties[name], self.zone) if name in self.ties else None


@dataclass
class Reader:
    """Reads the units of one table for one run. `leave_out`: files that must not be joined. `room_for_values`: what the candidates take.
    `most_row_groups`: so many are told, none of files that are joined.

    It remembers why files cannot be joined. A unit that is to be rewritten as a whole instead needs more room, so it is given back, and
    comes a second time; so does one whose footers were not told, because those of others are long.
    """

    cluster: Cluster
    observed: ObservedTable
    rewrite: Rewrite
    settings: Settings
    run: RunId
    leave_out: LeaveOut
    room_for_values: RoomForValues
    most_row_groups: int = 0
    _obstacles: Dict[str, Reason] = field(default_factory=dict, init=False)
    # Why no file of the table can be joined, and whether that was asked.
    _never: Optional[Reason] = field(default=None, init=False)
    _has_asked: bool = field(default=False, init=False)
    _sets: int = field(default=0, init=False)
    _listed: int = field(default=0, init=False)
    _most_blocks: int = field(default=MOST_BLOCKS, init=False)
    # Of the units that are looked at together, as many as an answer had room for.
    _most_units: int = field(default=analysis.UNITS_AT_ONCE, init=False)

    def __post_init__(self) -> None:
        self._whole = {unit.name: unit for unit in self.observed.units}

    @property
    def is_open(self) -> bool:
        return exchange_choice.is_open(self.settings)

    def choose(self, units: Sequence[UnitAnalysis]) -> Dict[str, Choice]:
        """The exchange of each unit, by name, before its files are read."""
        return self._choose(units, self._look(units))

    def read(self, units: Sequence[UnitAnalysis]) -> Tuple[List[Candidate], List[UnitAnalysis]]:
        """The candidates, one at least unless all units come again; and units that are to come again."""
        units, back = units[: self._most_units], list(units[self._most_units :])
        places = self._look(units)
        choices = self._choose(units, places)
        by_exchange: Dict[Optional[str], List[UnitAnalysis]] = {JOINED: [], AT_ONCE: [], None: []}
        for unit in units:
            by_exchange[choices[unit.name].exchange].append(unit)
        joined, whole, untold = self._join(by_exchange[JOINED], places, choices)
        candidates = [self._limit(candidate) for candidate in joined]
        whole += [self._take_whole(unit) for unit in by_exchange[AT_ONCE] if unit.joined]
        read, more = self._read([unit for unit in by_exchange[AT_ONCE] if not unit.joined], places, choices)
        untold += more
        # Else each look at thousands of units would be for a few of them.
        self._most_units = max(1, len(units) - len(untold)) if untold else 2 * self._most_units
        return [*candidates, *read, *(_of_neither(unit, choices[unit.name]) for unit in by_exchange[None])], [*whole, *untold, *back]

    def _look(self, units: Sequence[UnitAnalysis]) -> Places:
        ties, zone = find_ties(self.cluster, self.observed.control, [unit.unit for unit in units])
        seen = Places(ties, zone)
        wanted = [unit for unit in units if self.is_open or seen.tie(unit.name) is None]
        found, refused = read_attributes(self.cluster.files, {unit.live: unit.snapshot for unit in wanted})
        return replace(
            seen,
            attributes={unit.name: found[unit.live] for unit in wanted if unit.live in found},
            unshared={unit.name: refused[unit.live] for unit in wanted if unit.live in refused},
        )

    def _choose(self, units: Sequence[UnitAnalysis], places: Places) -> Dict[str, Choice]:
        choices = {unit.name: self._judge(unit, places) for unit in units}
        joins = [unit for unit in units if choices[unit.name].exchange == JOINED]
        if joins:
            # Asked only where it matters: directories have no snapshots on most sites, and files have blocks.
            self._ask_about_table(joins[0])
            self._ask_about_snapshots(joins, places)
        return {**choices, **{unit.name: self._judge(unit, places) for unit in joins}}

    def _judge(self, unit: UnitAnalysis, places: Places) -> Choice:
        tie = places.tie(unit.name)
        if not self.is_open:
            choice = exchange_choice.choose(AT_ONCE, Facts(False, True, tie=tie))
        else:
            choice = exchange_choice.choose(self.settings.exchange, self._find_facts(unit, places, tie))
        if unit.name in places.unshared and not choice.is_refused:
            return Choice(None, places.unshared[unit.name], is_refused=True)
        is_there = unit.name in places.attributes and (unit.name in places.ties or not self.is_open)
        is_gone = not is_there and not choice.is_refused
        return Choice(None, GONE, is_refused=True) if is_gone else choice

    def _find_facts(self, unit: UnitAnalysis, places: Places, tie: Optional[Reason]) -> Facts:
        whole, settings = self._whole[unit.name], self.settings
        small = joining.narrow(whole, settings, self.leave_out.get(unit.name, ())).sizes
        mix = Mix(small.files, small.total_bytes, whole.sizes.total_bytes)
        obstacle = self._never or self._obstacles.get(unit.name)
        obstacle = obstacle or exchange_choice.find_obstacle(eligibility.format_of(unit.unit.storage), mix, settings)
        summary = listings.find_summary(whole.snapshot)
        obstacle = obstacle or (exchange_choice.has_summary(summary) if summary else None)
        ties, attributes = places.ties.get(unit.name), places.attributes.get(unit.name)
        if obstacle is None and ties and attributes:
            obstacle = exchange_choice.find_obstacle_at(unit.live, self.observed.control.top, ties, places.zone, attributes)
        worthwhile = sizing.is_worthwhile(whole.sizes, settings.block_bytes, settings.ratio_threshold)
        return Facts(mix.is_mostly_well_sized, worthwhile, obstacle, tie)

    def _ask_about_table(self, unit: UnitAnalysis) -> None:
        """Once: snapshots of the directories above the units, and whether a file has blocks at all, and is found by its id."""
        if self._has_asked:
            return
        self._has_asked = True
        # Who makes snapshots of a directory above keeps files of the table in them.
        found = self._find_snapshots(names.with_above(self.observed.table.location))
        files, first = self.cluster.files, unit.files[0]
        try:
            files.blocks(first.path, ids={first.name: first.file_id})
            self._never = exchange_choice.has_snapshots(found[0]) if found else None
        except NotPossible as error:
            self._never = _without_blocks(error)
            return
        try:
            # Without ids a moved file is not found again, and none is cut.
            files.is_anywhere(first.path, first.file_id)
        except NotPossible as error:
            self._never = exchange_choice.impossible(str(error))

    def _ask_about_snapshots(self, units: Sequence[UnitAnalysis], places: Places) -> None:
        """Directories of which snapshots can be made have mostly none; only then are their files free."""
        names_of = {unit.live: unit.name for unit in units if places.ties[unit.name].snapshots}
        for live in self._find_snapshots(list(names_of)):
            self._obstacles[names_of[live]] = exchange_choice.has_snapshots(live)

    def _find_snapshots(self, directories: Sequence[str]) -> List[str]:
        """Those that have snapshots, or may have some that this user may not list."""
        places = {exchange_choice.snapshots_of(directory): directory for directory in directories}
        seen, denied = look_where_allowed(self.cluster.files, list(places))
        return [directory for place, directory in places.items() if place in denied or seen[place].entries]

    def _join(
        self, units: Sequence[UnitAnalysis], places: Places, choices: Mapping[str, Choice]
    ) -> Tuple[List[Candidate], List[UnitAnalysis], List[UnitAnalysis]]:
        """The sets of files that are joined, as candidates. Units of which none can be are judged again: second come those that are to be
        rewritten as a whole, third those whose footers were not told.
        """
        small = [unit if unit.joined else joining.narrow(unit, self.settings, self.leave_out.get(unit.name, ())) for unit in units]
        guessed = {unit.name: joining.guess_bins(unit, self.settings) for unit in small}
        read = self._read_sets([files for sets in guessed.values() for files in sets], self.most_row_groups, compaction.MOST_READ)
        self.most_row_groups -= sum(found.row_group_count for found in read.values())
        told = list(takewhile(lambda unit: all(files in read for files in guessed[unit.name]), small))
        refused, untold = _set_aside_first(small, told)
        fit: List[Candidate] = []
        for unit in told:
            footers = compaction.merge([read[files] for files in guessed[unit.name]])
            one = Candidate(unit, compaction.leave_out_rowless(footers), places.attributes[unit.name], why=choices[unit.name].why)
            (fit if one.is_rowless or compaction.refuse_candidate(one, self.rewrite) is None else refused).append(one)
        joined = self._join_candidates(fit, read)
        done = {one.analysis.name for one in joined}
        left = [one.analysis for one in fit if one.analysis.name not in done]
        again = {unit.name: self._judge(unit, places) for unit in left}
        neither = [_of_neither(unit, again[unit.name]) for unit in left if again[unit.name].exchange is None]
        whole = [self._take_whole(unit) for unit in left if again[unit.name].exchange == AT_ONCE]
        return [*joined, *refused, *neither], whole, untold

    def _read_sets(
        self, sets: Sequence[FileSet], most_row_groups: int = 0, most_characters: Optional[int] = None
    ) -> Dict[FileSet, UnitFooters]:
        """The footers of each set of files; of the first ones only, if there is no room for all."""
        if not sets:
            return {}
        asked = {files: files for files in sets}
        return dict(self.cluster.rows.footers(self.rewrite.format, asked, True, most_row_groups, most_characters))

    def _join_candidates(self, candidates: Sequence[Candidate], read: Mapping[FileSet, UnitFooters]) -> List[Candidate]:
        """Sets of files that are joined, instead of the units that they are of. Notes why a unit has none. `read`: footers of some sets."""
        sets = [(candidate, files) for candidate in candidates for files in self._find_sets(candidate)]
        if not sets:
            return []
        footers = {**read, **self._read_sets([files for _, files in sets if files not in read])}
        lives = {candidate.analysis.live: candidate.analysis for candidate, _ in sets}
        blocks = {live: self._find_blocks(unit) for live, unit in lives.items()}
        made = []
        for candidate, files in sets:
            of_live = blocks[candidate.analysis.live]
            if of_live is not None:
                self._sets += 1
                made.append(
                    joining.make_candidate(candidate, files, footers[files], of_live, self.run, self._sets, self.settings.block_bytes)
                )
        joined = [one for one in made if one is not None]
        for name in {candidate.analysis.name for candidate, _ in sets} - {one.analysis.name for one in joined}:
            self._obstacles.setdefault(name, UNNAMED)
        return joined

    def _find_sets(self, candidate: Candidate) -> List[Tuple[FileInfo, ...]]:
        name = candidate.analysis.name
        sets = joining.choose_bins(candidate, self.rewrite, self.settings, self.leave_out.get(name, ()))
        if not sets:
            self._obstacles[name] = exchange_choice.few_to_join(self.settings)
        return self._take_some(name, sets)

    def _take_some(self, name: str, sets: List[FileSet]) -> List[FileSet]:
        """All, or the largest, so that each unit has one at least. The others are left for later runs."""
        entries = max(1, len(self._whole[name].snapshot.entries))
        most = max(1, (MOST_LISTED - self._listed) // entries)
        some = sets if len(sets) <= most else sorted(sets, key=len, reverse=True)[:most]
        self._listed += len(some) * entries
        if len(some) < len(sets):
            unit, what = self._whole[name].unit, "sets of its files are left for later runs"
            log.warning("unit=%s step=plan reason='%d of %d %s'", unit.log_field, len(sets) - len(some), len(sets), what)
        return some

    def _find_blocks(self, unit: UnitAnalysis) -> Optional[Mapping[str, Tuple[Block, ...]]]:
        """The blocks of the small files in live that may be joined, of no other file at the place of a listed one; None if they are too
        many, or its file system, perhaps another one behind a mount, has none.
        """
        leave_out = self.leave_out.get(unit.name, ())
        ids = {entry.name: entry.file_id for entry in self._whole[unit.name].snapshot.entries if entry.name not in leave_out}
        try:
            # Not those of all its files: whoever may write there can make a file of a million blocks.
            found = self.cluster.files.blocks(unit.live, joining.small_bytes(self.settings), ids, len(ids) + self._most_blocks)
        except NotPossible as error:
            self._obstacles[unit.name] = _without_blocks(error)
            return None
        self._most_blocks -= max(0, sum(map(len, found.values())) - len(ids))
        return found

    def _take_whole(self, unit: UnitAnalysis) -> UnitAnalysis:
        whole = self._whole[unit.name]
        return replace(whole, joined=None, target_files=sizing.target_files(whole.sizes.total_bytes, self.settings.block_bytes))

    def _read(
        self, units: Sequence[UnitAnalysis], places: Places, choices: Mapping[str, Choice]
    ) -> Tuple[List[Candidate], List[UnitAnalysis]]:
        """The candidates; and units whose footers were not told."""
        if not units:
            return [], []
        rows, rewrite = self.cluster.rows, self.rewrite
        files = {unit.name: unit.files for unit in units}
        read = rows.footers(rewrite.format, files, rewrite.is_copied, self.most_row_groups, compaction.MOST_READ)
        self.most_row_groups -= sum(found.row_group_count for found in read.values())
        told = [unit for unit in units if unit.name in read]
        refused, untold = _set_aside_first(units, told)
        footers = {name: compaction.leave_out_rowless(of_unit) for name, of_unit in read.items()}
        whys = {unit.name: choices[unit.name].why if self.is_open else None for unit in units}
        found = [self._limit(Candidate(unit, footers[unit.name], places.attributes[unit.name], why=whys[unit.name])) for unit in told]
        if rewrite.is_copied:
            return [*found, *refused], untold
        # Only where there is room for the values, and nothing else against it: they are all read.
        single = {one.analysis.name: one.footers.groups[0] for one in found if compaction.is_fit(one, rewrite)}
        hazards = rows.hazards(rewrite.format, single)
        return [*(replace(one, hazard=hazards.get(one.analysis.name)) for one in found), *refused], untold

    def _limit(self, candidate: Candidate) -> Candidate:
        """It takes the room that its values need."""
        return self.room_for_values.take(candidate) if compaction.is_fit(candidate, self.rewrite) else candidate


def _set_aside_first(units: Sequence[UnitAnalysis], told: Sequence[UnitAnalysis]) -> Tuple[List[Candidate], List[UnitAnalysis]]:
    """Of units of which only some were told: the first one, if there is no room even for its footers alone, and those that come again."""
    untold = list(units[len(told) :])
    if told or not untold:
        return [], untold
    return [Candidate.of_unfit(untold[0], compaction.MORE_THAN_READ)], untold[1:]


def _without_blocks(error: NotPossible) -> Reason:
    return exchange_choice.impossible(f"its blocks are not told: {error}")


def _of_neither(unit: UnitAnalysis, choice: Choice) -> Candidate:
    return Candidate.of_unfit(unit, choice.why) if choice.is_refused else Candidate.of_unjoined(unit, choice.why)
