"""Decide what has to be compared to prove that live holds what a backup holds.

Pure. Each run between a backup and live claims that the files it removed and those it put there hold the same rows. Files that
arrived between two runs, or after the last, are arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Digest, FileInfo, Snapshot
from hivekeeper.plan import eligibility
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.history import Effect
from hivekeeper.runlog.manifests import ManifestFile


@dataclass(frozen=True)
class Link:
    """One run's claim: the files that it removed (`before`) and those that it put there (`after`) hold the same rows.

    Either is None if the backup that held the files was discarded; then the run's certificate replaces them.
    """

    effect: Effect
    before: Optional[Tuple[FileInfo, ...]]
    after: Optional[Tuple[FileInfo, ...]]


@dataclass(frozen=True)
class Proof:
    """What to compare for one unit, oldest link first.

    `base` are the backup's own files, None if they are gone. `broken` says why the claims do not lead from the backup to
    live; then only the rows themselves can be compared, `base` with all of `live`. `is_discarded`: the backup itself is gone;
    `certified` is its digest from its own run's certificate. `arrivals` are the files added since.
    """

    base: Optional[Tuple[FileInfo, ...]]
    links: Tuple[Link, ...]
    live: Tuple[FileInfo, ...]
    arrivals: Tuple[FileInfo, ...] = ()
    broken: Optional[Reason] = None
    late_in_backup: Tuple[str, ...] = ()
    is_discarded: bool = False
    certified: Optional[Digest] = None

    @property
    def newest(self) -> Tuple[FileInfo, ...]:
        """The files of live that hold the backup's rows, and the rows of arrivals compacted since."""
        return (self.links[-1].after if self.links else self.base) or ()

    @property
    def has_all_rows(self) -> bool:
        """Whether the rows of every arrival can still be read, including arrivals compacted since."""
        return bool(self.broken) or all(link.before is not None for link in self.links)

    @property
    def compacted_arrivals(self) -> Tuple[FileInfo, ...]:
        """Arrivals whose rows are now in files of a later run."""
        in_live = {file.path for file in self.live}
        return tuple(file for file in self.arrivals if file.path not in in_live)


def plan_proof(
    manifest: Sequence[ManifestFile],
    effects: Sequence[Effect],
    live: Snapshot,
    seen: Mapping[str, Snapshot],
    place_path: Callable[[str], str],
) -> Proof:
    """Plan the proof. `manifest` is what the backup holds, `effects` are the later effects on the unit, oldest first."""
    holders = [seen[place_path(effect.place)] for effect in effects]
    first = holders[0] if holders else live
    base, missing = manifests.find_present(manifest, _files_of(first))
    certified = effects[0].digest if effects and tuple(manifest) == effects[0].before else None
    proof = Proof(base if first.exists else None, (), eligibility.data_files(live), is_discarded=not first.exists, certified=certified)
    if missing and (first.exists or not holders):
        # Otherwise the remaining files would be compared with themselves.
        changed = Reason(Code.BACKUP_CHANGED, f"the backup is not what it was: {missing}")
        return replace(proof, base=None, is_discarded=False, broken=changed)
    links: List[Link] = []
    arrivals: List[FileInfo] = []
    wanted: Sequence[ManifestFile] = manifest
    for effect, holder, following in zip(effects, holders, [*holders[1:], live]):
        link, why = _find_link(effect, holder, following, following is live)
        why = _find_replaced(wanted, effect) or why
        arrivals += _find_arrivals(wanted, link.before or ())
        if why:
            return replace(proof, arrivals=tuple(arrivals), broken=why)
        links.append(link)
        wanted = effect.after
    proof = replace(proof, links=tuple(links))
    known = {file.name for file in proof.newest}
    arrivals += [file for file in proof.live if file.name not in known]
    late = tuple(file.name for effect, holder in zip(effects, holders) for file in manifests.find_late(effect.before, holder.entries))
    return replace(proof, arrivals=tuple(arrivals), late_in_backup=late)


def _find_link(effect: Effect, holder: Snapshot, following: Snapshot, is_last: bool) -> Tuple[Link, Optional[Reason]]:
    """A run's files at their current place, and why any is missing. `following` holds what the run put into live."""
    before, lost = manifests.find_present(effect.before, _files_of(holder)) if holder.exists else (None, "")
    after, gone = manifests.find_present(effect.after, _files_of(following)) if is_last or following.exists else (None, "")
    link = Link(effect, before, after)
    if lost:
        return link, Reason(Code.BACKUP_CHANGED, f"the backup of run {effect.run} is not what it was: {lost}")
    return link, Reason(Code.OVERWRITTEN_SINCE, f"somebody replaced its files since run {effect.run} ({gone})") if gone else None


def _find_replaced(wanted: Iterable[ManifestFile], effect: Effect) -> Optional[Reason]:
    """Why a run did not find the expected files; None if it did."""
    found = {(file.name, file.length) for file in effect.before}
    missing = [file.name for file in wanted if not manifests.is_marker(file) and (file.name, file.length) not in found]
    if not missing:
        return None
    return Reason(Code.OVERWRITTEN_SINCE, f"somebody replaced its files before run {effect.run} ({missing[0]} is gone or was changed)")


def _find_arrivals(wanted: Iterable[ManifestFile], before: Iterable[FileInfo]) -> List[FileInfo]:
    expected = {file.name for file in wanted}
    return [file for file in before if file.name not in expected and not names.is_hidden(file.name)]


def _files_of(seen: Snapshot) -> List[FileInfo]:
    return [entry for entry in seen.entries if not entry.is_dir]
