"""What a table's log says: what runs did to the table, and the backups they left.

Pure: values only, reconciled by the rules in docs/on-disk.md. `runlog/entry_reader.py` reads an entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import Digest, Table
from hivekeeper.names import RunId, UnitNumber
from hivekeeper.reasons import MOST_NAMED, SHORT, count_beyond, shorten
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.manifests import Extent, FileKey, ManifestFile, is_marker, key_of
from hivekeeper.runlog.outcomes import Outcome, spare_astray
from hivekeeper.runlog.run_files import BACKUP, VERIFY
from hivekeeper.runlog.strict import UnreadableRecord

UnitKey = Tuple[RunId, UnitNumber]


@dataclass(frozen=True)
class Effect:
    """What one run did to one unit: live held `before`, then `after`; the `before` files are at `place`.

    Paths are relative: `live` to the table's location, `place` to the control directory. `undoes` names the run and unit whose effect a
    rollback undid. File ids in `after` are 0 if unknown. `whole` is False if `Keeper` dropped `before`, or both lists, while the log was
    read. With `inside` nothing is at `place`: the `before` files are inside the only file of `after`, which cleanup cuts. `counted`: number
    and bytes of the `before` files, where an answer about many tables does not hold the files themselves.
    """

    run: RunId
    number: UnitNumber
    version: int
    operation: str
    timestamp_ms: Optional[int]
    table_id: str
    partition: str
    live: str
    place: str
    before: Tuple[ManifestFile, ...]
    after: Tuple[ManifestFile, ...]
    undoes: Optional[UnitKey] = None
    digest: Optional[Digest] = None
    backup_table: str = ""
    whole: bool = True
    inside: Optional[Inside] = None
    counted: Optional[Tuple[int, int]] = None

    def without_files(self) -> Effect:
        """For an answer, which does not show the place of live either: that may be as long as 4,000 characters."""
        return replace(self, live="", before=(), after=(), whole=False, counted=(self.backup_files, self.backup_bytes))

    @property
    def key(self) -> UnitKey:
        return self.run, self.number

    @property
    def backup_files(self) -> int:
        return self.counted[0] if self.counted else sum(1 for file in self.before if not is_marker(file))

    @property
    def backup_bytes(self) -> int:
        return self.counted[1] if self.counted else sum(file.length for file in self.before)

    @property
    def cut(self) -> Effect:
        """The effect after its backup was cut off the file that had it inside."""
        if self.inside is None:
            return self
        return replace(self, after=tuple(file._replace(length=self.inside.copy_bytes) for file in self.after))


@dataclass(frozen=True)
class LoggedUnit:
    """The logged result of one unit. `live` is relative to the table's location.

    `source` is what a compaction that did not swap the unit found there, None if not logged. `reason_code` may come from a later
    version: it is shown, not acted on. `about` is the run and unit whose backup was meant. `more_late`: how many late files are not named,
    where an answer about many tables would become too large.
    """

    partition: str
    outcome: Outcome
    reason: str
    gap_ms: Optional[float]
    late_files: Tuple[str, ...]
    live: str = "."
    source: Optional[Extent] = None
    reason_code: str = ""
    about: Optional[UnitKey] = None
    more_late: int = 0

    @property
    def late_count(self) -> int:
        return len(self.late_files) + self.more_late

    def dispensable(self, keeps_reason: bool) -> int:
        """How many characters `shortened` takes away."""
        return sum(map(len, self.late_files[MOST_NAMED:])) + (0 if keeps_reason else count_beyond(self.reason))

    def shortened(self, keeps_reason: bool) -> LoggedUnit:
        return replace(
            self,
            reason=self.reason if keeps_reason else shorten(self.reason, SHORT),
            late_files=self.late_files[:MOST_NAMED],
            more_late=self.late_count - len(self.late_files[:MOST_NAMED]),
        )


@dataclass(frozen=True)
class LoggedRun:
    """One log entry. `timestamp_ms` is None if it cannot be read as a time, `partition_columns` if the entry names no table of its own.

    `run_key` is a scheduler's, "" for none; `exit_code` that of the table, None if not known. `expired`: the entry itself is gone or may
    go, and a checkpoint has kept only the units and effects that are still needed.
    """

    version: int
    run: RunId
    directory: str
    operation: str
    timestamp_ms: Optional[int]
    user: str
    host: str
    application_id: str
    recovered_by: Optional[RunId]
    finished: bool
    backup_table: str
    table_id: str
    parameters: Mapping[str, Any]
    units: Tuple[LoggedUnit, ...]
    effects: Tuple[Effect, ...]
    pin: Optional[Tuple[RunId, bool]] = None
    discarding: Tuple[str, ...] = ()
    discarded: Tuple[str, ...] = ()
    partition_columns: Optional[Tuple[str, ...]] = None
    run_key: str = ""
    exit_code: Optional[int] = None
    discarded_files: int = 0
    discarded_bytes: int = 0
    expired: bool = False

    def without_files(self) -> LoggedRun:
        """As Effect's."""
        units = tuple(replace(unit, live="") for unit in self.units)
        return replace(self, units=units, effects=tuple(effect.without_files() for effect in self.effects))

    def is_partitioned_as(self, table: Table) -> bool:
        """Whether it can be about this table by its partition columns. Unlike kind and columns, no statement changes these between two
        runs.
        """
        if self.partition_columns is None:
            return True
        return [name.lower() for name in self.partition_columns] == [column.name.lower() for column in table.partition_columns]

    def without_units(self) -> LoggedRun:
        """What is told of a run as a whole."""
        return replace(self, units=(), effects=())

    @property
    def dispensable(self) -> int:
        """How many characters `shortened` takes away."""
        return sum(unit.dispensable(is_spared) for unit, is_spared in spare_astray(self.units))

    def shortened(self) -> LoggedRun:
        return replace(self, units=tuple(unit.shortened(is_spared) for unit, is_spared in spare_astray(self.units)))


@dataclass(frozen=True)
class History:
    """The whole log, reconciled."""

    runs: Tuple[LoggedRun, ...] = ()

    @cached_property
    def finished(self) -> FrozenSet[RunId]:
        """Runs whose last entry is in the log."""
        return frozenset(run.run for run in self.runs if run.finished)

    @property
    def next_version(self) -> int:
        return len(self.runs)

    @property
    def table_id(self) -> str:
        """The table that the last entry is about."""
        return self.runs[-1].table_id if self.runs else ""

    @cached_property
    def pinned(self) -> FrozenSet[RunId]:
        pins = {run.pin[0]: run.pin[1] for run in self.runs if run.pin}
        return frozenset(run for run, pinned in pins.items() if pinned)

    @cached_property
    def verified(self) -> FrozenSet[UnitKey]:
        """Units of runs whose backups were compared with live later, and held the same."""
        of_verify = [unit for run in self.runs if run.operation == VERIFY for unit in run.units]
        return frozenset(unit.about for unit in of_verify if unit.outcome is Outcome.VERIFIED and unit.about)

    @cached_property
    def effects(self) -> Tuple[Effect, ...]:
        """All effects, oldest first."""
        return tuple(effect.cut if effect.place in self.discarded else effect for run in self.runs for effect in run.effects)

    @cached_property
    def discarded(self) -> Mapping[str, LoggedRun]:
        """Places whose backups were discarded, and the run that did it."""
        return {place: run for run in self.runs for place in run.discarded}

    @cached_property
    def standing(self) -> Tuple[Effect, ...]:
        """Effects whose old files are still in place: neither discarded nor restored by a rollback."""
        undone = {effect.undoes for effect in self.effects}
        return tuple(effect for effect in self.effects if effect.place not in self.discarded and effect.key not in undone)

    @cached_property
    def joined(self) -> Tuple[Effect, ...]:
        """Of these, the ones whose old files are inside a file of live, or were when it left live. Its partition may be renamed since."""
        return tuple(effect for effect in self.standing if effect.inside)

    @cached_property
    def cut(self) -> Mapping[FileKey, Inside]:
        """The files whose old ones were cut off, as lists from before that name them; perhaps in a partition of another name now."""
        of_joins = (effect.inside for effect in self.effects if effect.inside and effect.place in self.discarded)
        return {key_of(inside.file, inside.length): inside for inside in of_joins}

    @cached_property
    def cut_ids(self) -> FrozenSet[int]:
        return frozenset(inside.file_id for inside in self.cut.values())

    def find_had(self, partition: str, present: Iterable[ManifestFile]) -> List[ManifestFile]:
        """The files that a unit with these `present` ones has had, as far as their lists are kept (`Keeper`): those of all effects on a
        partition of this name, or of one that it had before a rename. That name is told by a run's new files, whose names hold the run: by
        those that are present, or that a later effect took out, and so on backwards. Perhaps also files of another unit of that run, which
        had a new file of the same name and length.
        """
        known, had_names = set(_keys_of(present)), {partition}
        had: List[ManifestFile] = []
        for effect in reversed(self.effects):
            put = (key_of(file.name, file.length, file.file_id) for file in effect.after if file.holds_rows)
            if effect.partition in had_names or not known.isdisjoint(put):
                had_names.add(effect.partition)
                had += [*effect.before, *effect.after]
                known.update(_keys_of(effect.before))
        return had

    @cached_property
    def records(self) -> Tuple[LoggedRun, ...]:
        """The `backup` runs whose record was not dropped."""
        return tuple(run for run in self.runs if run.operation == BACKUP and names.record_place(run.directory) not in self.discarded)

    def find_key(self, key: str, table_id: Optional[str] = None) -> Optional[LoggedRun]:
        """The run, of the table with this id if one is given, that bore a scheduler's key first, or None."""
        return next((entry for entry in self.runs if entry.run_key == key and table_id in (None, entry.table_id)), None)

    def find(self, run: RunId) -> Optional[LoggedRun]:
        """The last entry of a run, or None."""
        return next((entry for entry in reversed(self.runs) if entry.run == run), None)


def _keys_of(files: Iterable[ManifestFile]) -> Iterator[FileKey]:
    """With the id, as a rollback knows it of what it brings back: files of writers have the same names and lengths in many partitions. And
    without it, as a compaction knows its new files.
    """
    return (key_of(file.name, file.length, file_id) for file in files for file_id in {0, file.file_id})


def reconcile(entries: Mapping[int, LoggedRun], where: str) -> History:
    """The history from entries already read; `where` names the log. Raises UnreadableRecord for a gap."""
    runs: List[LoggedRun] = []
    for expected, version in enumerate(sorted(entries)):
        if version != expected:
            raise UnreadableRecord(f"{where}: entry {expected} is missing")
        runs.append(_about(entries[version], runs[-1].table_id) if runs and not entries[version].table_id else entries[version])
    return History(tuple(runs))


def _about(entry: LoggedRun, table_id: str) -> LoggedRun:
    """Give an entry without a table id the table of the previous entry."""
    return replace(entry, table_id=table_id, effects=tuple(replace(effect, table_id=table_id) for effect in entry.effects))


def known_as(history: History, ids: Mapping[str, str]) -> History:
    """The same history with the ids of some tables replaced, for example after a rename."""
    return History(tuple(_about(run, ids[run.table_id]) if run.table_id in ids else run for run in history.runs))
