"""Decide what a rollback undoes: which runs of which units, in which order, and why not.

Pure. A unit's history works like undo and redo in an editor: what was done and can be undone, newest last, and what was undone
and can be redone until the next compaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Container, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from hivekeeper import names
from hivekeeper.model import Block, Snapshot, Unit
from hivekeeper.names import RunId, UnitNumber
from hivekeeper.plan.chain import Told
from hivekeeper.plan.inside import LOST_BLOCKS_TO_DO, find_lost, has_lost_rows
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.history import Effect, History, UnitKey
from hivekeeper.runlog.joins import Inside, Join, fingerprint
from hivekeeper.runlog.manifests import FileKey, ManifestFile
from hivekeeper.runlog.run_files import BackupPlace, PlannedUnit, absolute


@dataclass
class Stack:
    """The effects on one unit: those in force (`done`), and those of rollbacks that can themselves be undone (`undone`).

    `origins` gives, for the effect of a rollback, the run that it undid or redid. `detours`: after which of these effects files were joined
    and brought back, as one under another name, or the other way round; oldest first.
    """

    done: List[Effect] = field(default_factory=list)
    undone: List[Effect] = field(default_factory=list)
    origins: Dict[UnitKey, str] = field(default_factory=dict)
    detours: Dict[UnitKey, List[Effect]] = field(default_factory=dict)

    def take(self, effect: Effect) -> None:
        if self.done and self.done[-1].key == effect.undoes:
            former = self.done.pop()
            self._detour(self.done, former, effect)
            self.undone.append(effect)
        elif self.undone and self.undone[-1].key == effect.undoes:
            former = self.undone.pop()
            self._detour(self.undone, former, effect)
            self.done.append(effect)
        else:
            self.done.append(effect)
            self.undone.clear()

    def _detour(self, stack: Sequence[Effect], former: Effect, effect: Effect) -> None:
        self.origins[effect.key] = self._origin(former)
        if former.inside and stack:
            own = self.detours.pop(former.key, [])
            self.detours.setdefault(stack[-1].key, []).extend([former, *own, effect])

    @property
    def newest(self) -> Tuple[Effect, ...]:
        """The newest effect in force, with the others of its run that joined files, each some of them; oldest first."""
        some = [self.done[-1]]
        for effect in reversed(self.done[:-1]):
            if not (effect.inside and some[0].inside and effect.run == some[0].run):
                break
            some.insert(0, effect)
        return tuple(some)

    def with_detours(self, effects: Sequence[Effect]) -> Tuple[Effect, ...]:
        """These effects, oldest first, with what happened to their files between them, and since."""
        return tuple(one for effect in effects for one in (effect, *self.detours.get(effect.key, ())))

    def _origin(self, effect: Effect) -> str:
        return self.origins.get(effect.key, effect.run)

    def chain(self, run: RunId) -> Tuple[Effect, ...]:
        """What has to be undone, newest first, to get back before a run; () if the run no longer has an effect."""
        in_force = [index for index, effect in enumerate(self.done) if run in (effect.run, self._origin(effect))]
        if in_force:
            return tuple(reversed(self.done[in_force[0] :]))
        taken_back = [index for index, effect in enumerate(self.undone) if effect.run == run]
        return tuple(reversed(self.undone[taken_back[0] :])) if taken_back else ()


def read_stacks(history: History, table_id: str) -> Dict[str, Stack]:
    """The stack of each partition. A table re-created under the same name starts empty: its predecessor's files are not its own."""
    return {partition: stack for (of_table, partition), stack in read_all_stacks(history).items() if of_table == table_id}


def read_all_stacks(history: History) -> Dict[Tuple[str, str], Stack]:
    """The stack of each partition of each table that the log is about, by the table's id and the partition."""
    stacks: Dict[Tuple[str, str], Stack] = {}
    for effect in history.effects:
        stacks.setdefault((effect.table_id, effect.partition), Stack()).take(effect)
    return stacks


def first_files(chain: Sequence[Effect]) -> Tuple[ManifestFile, ...]:
    """The files that the oldest run of a chain, which is its first effect, took out of live; it may have joined several sets of them."""
    if not chain or chain[0].inside is None:
        return chain[0].before if chain else ()
    return tuple(file for effect in chain if effect.inside and effect.run == chain[0].run for file in effect.before)


def newest_run(stacks: Mapping[str, Stack]) -> Optional[RunId]:
    """The newest run in force in any of these units. A rollback of a rollback has to be requested by run id."""
    in_force = [effect for stack in stacks.values() for effect in stack.done]
    return max(in_force, key=lambda effect: effect.version).run if in_force else None


@dataclass(frozen=True)
class Undoing:
    """The plan of a rollback. `units` are steps in order, several per unit if needed; `refused` is by partition. `listed`: how many entries
    the directories have in which joined files are. `lossy`: why the rows that come back by these steps, each the last one of its unit, are
    not all there.
    """

    units: Tuple[PlannedUnit, ...]
    refused: Mapping[str, Reason]
    listed: Mapping[str, int] = field(default_factory=dict)
    lossy: Mapping[UnitNumber, Reason] = field(default_factory=dict)


@dataclass(frozen=True)
class Surroundings:
    """What a rollback is planned on: the run that does it, the table's location, and what was seen there.

    `seen` holds live directories and the places of backups, keyed by `place_path`; `blocks` those of the files that have old ones inside,
    by path. `cut` is the log's, `History.cut`, and so is `inside`, the files that have old ones inside, by name.
    """

    run: RunId
    root: str
    seen: Mapping[str, Snapshot]
    place_path: Callable[[str], str]
    blocks: Mapping[str, Tuple[Block, ...]] = field(default_factory=dict)
    cut: Mapping[FileKey, Inside] = field(default_factory=dict)
    inside: Mapping[str, Inside] = field(default_factory=dict)

    def find_lossy(self, directory: str, among: Iterable[ManifestFile]) -> str:
        """One of these files that has lost blocks there which its readers need, "" for none."""
        lost = find_lost(among, self.seen[directory].entries)
        return next((one.name for one in lost if has_lost_rows(one, self.inside)), "")


def plan_undoing(chains: Mapping[str, Sequence[Effect]], units: Mapping[str, Unit], around: Surroundings) -> Undoing:
    """Plan the rollback of all chains. `units` are the current ones in the metastore."""
    steps: List[PlannedUnit] = []
    refused: Dict[str, Reason] = {}
    lossy: Dict[UnitNumber, Reason] = {}
    for partition in sorted(chains):
        planned = plan_unit(chains[partition], units.get(partition), around, len(steps) + 1)
        if isinstance(planned, Reason):
            refused[partition] = planned
            continue
        lost, of_live = _find_lossy(planned, around)
        if lost and not of_live:
            refused[partition] = Reason(Code.LOST_BLOCKS, f"{lost}, and live can be read", LOST_BLOCKS_TO_DO)
            continue
        if lost:
            lossy[planned[-1].number] = Reason(Code.LOST_BLOCKS, f"{lost}; nor of {of_live}, which leaves live", LOST_BLOCKS_TO_DO)
        steps.extend(planned)
    return Undoing(tuple(steps), refused, lossy=lossy)


def _find_lossy(steps: Sequence[PlannedUnit], around: Surroundings) -> Tuple[str, str]:
    """Why not all rows of the backup that will be live can be read, and which file that leaves live cannot be either; "" where they can. If
    both are so, nobody but an operator can say which are better.

    Backups on the way there are only passed through. Old files inside another one are read in full before they come back.
    """
    first, last = steps[0], steps[-1]
    if last.backup is None or last.inside:
        return "", ""
    lost = around.find_lossy(around.place_path(last.backup.place), last.expected)
    what = f"no DataNode has some blocks of {lost} in the backup of run {last.backup.run}" if lost else ""
    return what, around.find_lossy(first.live, first.manifest)


def plan_unit(chain: Sequence[Effect], unit: Optional[Unit], around: Surroundings, first: int) -> Union[Reason, List[PlannedUnit]]:
    """The steps for one unit, numbered from `first`, each planned on live as the step before will leave it."""
    root, seen = around.root, around.seen
    if unit is None:
        return Reason(Code.DROPPED, "it was dropped from the metastore since", "its old files stay in the backup until cleanup")
    if any(absolute(effect.live, root) != unit.live for effect in chain):
        return Reason(Code.MOVED, "its location in the metastore was changed since", "its old files stay in the backup until cleanup")
    if not seen[unit.live].exists:
        return Reason(Code.DIRECTORY_GONE, "its directory is gone", "its old files stay in the backup until cleanup")
    live = [ManifestFile.of(entry) for entry in seen[unit.live].entries if not entry.is_dir]
    if any(effect.inside for effect in chain):
        return _plan_rejoining(chain, unit, live, around, first)
    steps: List[PlannedUnit] = []
    directory_id = seen[unit.live].lasting_id(unit.live)
    for effect in chain:
        backup = seen[around.place_path(effect.place)]
        written, changed = manifests.find_present(effect.after, live, around.cut)
        refusal = _overwritten(effect, changed) if changed else _filled_again(effect, live) or why_not_restorable(effect, backup)
        if refusal:
            return refusal
        # Markers belong to no run: they leave with the other files.
        newer = (*(file for file in live if manifests.is_marker(file)), *written)
        place = BackupPlace(effect.run, effect.number, effect.place)
        number = UnitNumber(first + len(steps))
        steps.append(PlannedUnit(number, unit, newer, (), place, effect.before, effect.digest, directory_id=directory_id))
        live, directory_id = _exchange(live, newer, effect.before), backup.lasting_id(unit.live)
    return steps


def _plan_rejoining(
    chain: Sequence[Effect], unit: Unit, live: Sequence[ManifestFile], around: Surroundings, first: int
) -> Union[Reason, List[PlannedUnit]]:
    """The steps for files that have old ones inside: each becomes part of a file that shows the rows of the old ones."""
    steps: List[PlannedUnit] = []
    taken, told = {file.name for file in live}, Told((), chain, around.cut).only(live)
    for effect in chain:
        if effect.inside is None:
            what = f"run {effect.run} exchanged its directory, and a later one joined files of it: they come back one after the other"
            return Reason(Code.JOINED_SINCE, what, f"roll back run {chain[0].run} first, by its id, then run {effect.run}")
        planned = _plan_rejoined(effect, effect.inside, unit, told, taken, around, UnitNumber(first + len(steps)))
        if isinstance(planned, Reason):
            return planned
        steps.append(planned)
    return steps


def _plan_rejoined(
    effect: Effect,
    inside: Inside,
    unit: Unit,
    live: Sequence[ManifestFile],
    taken: Container[str],
    around: Surroundings,
    number: UnitNumber,
) -> Union[Reason, PlannedUnit]:
    """`live` are the files there that the runs tell of, `taken` the names of all."""
    written, changed = manifests.find_present(effect.after, live, around.cut)
    if changed:
        return _overwritten(effect, changed)
    if not effect.whole:
        return Reason(Code.BACKUP_GONE, f"the backup of run {effect.run} is gone", NOT_OVER_NEWER)
    (file,) = written
    blocks = around.blocks.get(names.join(unit.live, file.name), ())
    if file.file_id != inside.file_id or fingerprint(blocks) != inside.blocks:
        return _overwritten(effect, f"{file.name} was written to")
    found = names.joined_alone(file.name, taken, around.run, number)
    if found is None:
        return Reason(Code.BACKUP_CHANGED, f"the name of {file.name} is too long to be followed by another one", NOT_OVER_NEWER)
    join = Join(found[0], names.join_tail(around.run, number), (blocks,), found[1])
    place = BackupPlace(effect.run, effect.number, effect.place)
    return PlannedUnit(number, unit, (file,), (), place, effect.before, effect.digest, join, inside)


NOT_OVER_NEWER = "its old rows must not come back over newer ones; nothing of it was changed"


def _overwritten(effect: Effect, changed: str) -> Reason:
    return Reason(Code.OVERWRITTEN_SINCE, f"somebody replaced its files since run {effect.run} ({changed})", NOT_OVER_NEWER)


def _filled_again(effect: Effect, live: Iterable[ManifestFile]) -> Optional[Reason]:
    """Why the files of a partition that was dropped while its run was interrupted cannot come back: nothing replaced them then, and what
    live holds now may be the same rows, loaded again.
    """
    newer = next((file.name for file in live if file.holds_rows), None)
    if newer is None or not effect.whole or any(file.holds_rows for file in effect.after):
        return None
    what = f"its files went without others in their place in run {effect.run}, and it holds newer ones now ({newer})"
    return Reason(Code.OVERWRITTEN_SINCE, what, NOT_OVER_NEWER)


def why_not_restorable(effect: Effect, backup: Snapshot) -> Optional[Reason]:
    """Why the backup cannot be restored, None if it can. Late files in it are no reason: they go to live with it."""
    if not backup.exists or not effect.whole:
        return Reason(Code.BACKUP_GONE, f"the backup of run {effect.run} is gone", NOT_OVER_NEWER)
    why = manifests.judge(effect.before, backup.entries).why
    what = f"the backup of run {effect.run} is not what it was"
    return Reason(Code.BACKUP_CHANGED, f"{what}: {why.what}", NOT_OVER_NEWER) if why else None


def _exchange(live: Iterable[ManifestFile], gone: Iterable[ManifestFile], come: Iterable[ManifestFile]) -> List[ManifestFile]:
    leaving = {file.name for file in gone}
    return [*come, *(file for file in live if file.name not in leaving)]
