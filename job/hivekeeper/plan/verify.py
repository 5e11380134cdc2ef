"""Decide what has to be compared to prove that live holds what a backup holds.

Pure. Each run between a backup and live claims that the files it removed and those it put there hold the same rows. Files that
arrived between two runs, or after the last, are arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Callable, Container, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Digest, FileInfo, Snapshot
from hivekeeper.plan import listings
from hivekeeper.plan.rollback import first_files
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.history import Effect, UnitKey
from hivekeeper.runlog.manifests import Cut, FileKey, ManifestFile


class How(Enum):
    """How a backup went. REMOVED: by somebody, not by a run."""

    DISCARDED = "its backup was discarded"
    BROUGHT_BACK = "a rollback brought its files back to live"
    WITH_ITS_FILE = "its backup is gone with the file of live that had it inside"
    REMOVED = "no cleanup has discarded it"


@dataclass(frozen=True)
class Gone:
    """That a backup is not there any more."""

    how: How
    why: Reason

    @classmethod
    def by(cls, how: How) -> Gone:
        return cls(how, Reason(Code.SAME_ROWS, how.value))


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
    live; then only the rows themselves can be compared, `base` with all of `live`. `gone` tells why the backup itself is not there;
    `certified` is its digest from its own run's certificate. `arrivals` are the files added since. `newest` are the files of live that hold
    the backup's rows, and the rows of arrivals compacted since. `has_older`: live still has files that the backup's run left there when it
    joined others, or where the claims break there still were some of the files that they are about, so not all of them were replaced.
    """

    base: Optional[Tuple[FileInfo, ...]]
    links: Tuple[Link, ...]
    live: Tuple[FileInfo, ...]
    newest: Tuple[FileInfo, ...] = ()
    arrivals: Tuple[FileInfo, ...] = ()
    broken: Optional[Reason] = None
    late_in_backup: Tuple[str, ...] = ()
    gone: Optional[Gone] = None
    certified: Optional[Digest] = None
    has_older: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether the backup is gone although no run discarded it or brought it back."""
        return self.gone is not None and self.gone.how is How.REMOVED

    @property
    def is_back(self) -> bool:
        """Whether a rollback brought the backup's files back to live: since then they were nowhere else."""
        return self.gone is not None and self.gone.how is How.BROUGHT_BACK

    @property
    def has_inner_files(self) -> bool:
        """Whether any of the files lies in another one, which only a digest can read."""
        sides = [self.base, *(link.before for link in self.links)]
        return any(file.begin for side in sides for file in side or ())

    @property
    def has_all_rows(self) -> bool:
        """Whether the rows of every arrival can still be read, including arrivals compacted since."""
        return bool(self.broken) or all(link.before is not None for link in self.links)

    @property
    def compacted_arrivals(self) -> Tuple[FileInfo, ...]:
        """Arrivals whose rows are now in files of a later run."""
        in_live = {(file.path, file.begin) for file in self.live}
        return tuple(file for file in self.arrivals if (file.path, file.begin) not in in_live)


def plan_proof(
    manifest: Sequence[ManifestFile],
    effects: Sequence[Effect],
    live: Snapshot,
    seen: Mapping[str, Snapshot],
    place_path: Callable[[str], str],
    cut: Mapping[FileKey, Cut],
    discarded: Container[str],
) -> Proof:
    """Plan the proof. `manifest` is what the backup holds, `effects` are the later effects on the unit, oldest first; `cut` is the
    log's, `History.cut`, and `discarded` has the places that cleanups discarded according to it.
    """
    holders = _find_holders(effects, live, seen, place_path, cut)
    first, whole, ids = holders[0], _find_whole(effects, holders), _find_ids(manifest, effects, cut)
    carried = _find_carried(manifest, effects[0], holders[1:], ids) if effects else {}
    base, missing = manifests.find_present(manifest, [*_files_of(first), *carried.values()], cut)
    proof = Proof(
        base if first.exists else None,
        (),
        listings.data_files(live),
        gone=None if first.exists or not effects else _find_gone(effects, missing, seen, place_path, discarded),
        certified=_find_certified(manifest, effects),
        has_older=_has_older(effects, live, cut),
    )
    if missing and (first.exists or not effects):
        # Otherwise the remaining files would be compared with themselves.
        changed = Reason(Code.BACKUP_CHANGED, f"the backup is not what it was: {missing}")
        return replace(proof, base=None, broken=changed)
    links: List[Link] = []
    arrivals: List[FileInfo] = []
    wanted: Sequence[ManifestFile] = manifest
    put_there = {effect.key: effect.after for effect in effects}
    for nth, (effect, holder, following) in enumerate(zip(effects, holders, holders[1:])):
        carried = _find_carried(wanted, effect, holders[nth + 1 :], ids)
        wanted = [file for file in wanted if file not in carried]
        is_last = following is live
        moved_on = {} if is_last else _find_carried(effect.after, effects[nth + 1], holders[nth + 2 :], ids)
        link, gone = _find_link(effect, holder, [*_files_of(following), *moved_on.values()], whole[nth + 1], cut)
        replaced = _find_replaced(wanted, effect, cut)
        arrivals += _find_arrivals(wanted, link.before or ())
        if replaced or gone:
            expected, there = (wanted, effect.before) if replaced else (_wanted_after(wanted, effect, put_there), _files_of(following))
            # What a rollback has put there, of a run since then, is as old.
            brought_back = (file for later in effects[nth + 1 :] if later.undoes in put_there for file in later.after)
            has_rest = any(
                manifests.find_present(some, files, cut)[0] for some, files in ((expected, there), (brought_back, _files_of(live)))
            )
            return replace(proof, arrivals=tuple(arrivals), broken=replaced or gone, has_older=proof.has_older or has_rest)
        links.append(link)
        wanted = [*_wanted_after(wanted, effect, put_there), *carried]
    newest, missing = manifests.find_present(wanted, _files_of(live), cut)
    proof = replace(proof, links=tuple(links), newest=newest)
    if missing:
        has_older = proof.has_older or bool(newest)
        return replace(proof, arrivals=tuple(arrivals), broken=_overwritten_since(effects[-1], missing), has_older=has_older)
    arrivals += _find_arrivals_in_live(proof, manifest, effects)
    late = tuple(
        file.name
        for effect, holder in zip(effects, holders)
        if effect.inside is None
        for file in manifests.find_late(effect.before, holder.entries)
    )
    return replace(proof, arrivals=tuple(arrivals), late_in_backup=late)


def _find_ids(manifest: Iterable[ManifestFile], effects: Iterable[Effect], cut: Mapping[FileKey, Cut]) -> Mapping[FileKey, int]:
    """The ids of files that runs put into live, which the lists of those are often without; 0 if unknown. Files that the manifest has
    without an id are left out: they may have been replaced before the first run.
    """
    unsure = {(file.name, file.length) for file in manifest if not file.file_id}
    written = {(file.name, file.length): file.file_id for effect in effects for file in effect.after}
    joined = {(effect.inside.file, effect.inside.length): effect.inside.file_id for effect in effects if effect.inside}
    told = {key: file_id for key, file_id in written.items() if key not in unsure}
    return {**told, **{key: each.file_id for key, each in cut.items()}, **joined}


def _find_carried(
    wanted: Iterable[ManifestFile], effect: Effect, later: Iterable[Snapshot], ids: Mapping[FileKey, int]
) -> Mapping[ManifestFile, FileInfo]:
    """The files that a run moved over into the directory that it put there, and as which they are in `later`: there, or where later runs
    moved them on. It claims nothing about them.

    A file that a run put there is known by its name, length and time where its id is not: the claim of that run compares its rows. For any
    other file of unknown id nothing would tell that it was not replaced.
    """
    if effect.inside is not None:
        return {}
    by_name, taken = {file.name: file for file in effect.before}, {file.file_id for file in effect.before if file.file_id}
    left: Dict[ManifestFile, int] = {}
    for file in wanted:
        file_id, same = file.file_id or ids.get((file.name, file.length)), by_name.get(file.name)
        if file_id is not None and file_id not in taken and not (same and 0 in (file_id, same.file_id)):
            left[file] = file_id
    found: Dict[ManifestFile, FileInfo] = {}
    for seen in later:
        if not left:
            break
        present = _files_of(seen)
        known = {file.file_id: file for file in present if file.file_id}
        alike = {(file.name, file.length, file.mtime_ms): file for file in present}
        now = {file: known.get(file_id) if file_id else alike.get(file[:3]) for file, file_id in left.items()}
        found.update((file, one) for file, one in now.items() if one is not None)
        left = {file: file_id for file, file_id in left.items() if file not in found}
    return found


def _find_holders(
    effects: Sequence[Effect], live: Snapshot, seen: Mapping[str, Snapshot], place_path: Callable[[str], str], cut: Mapping[FileKey, Cut]
) -> List[Snapshot]:
    """For each effect, and for live behind them, where the files are that live held just before it.

    A join takes some files and leaves the others, which are where the next directory is: in a backup, or in live. They may be there without
    those that it took: `exists` tells of these only. What a later rollback brought back is where that put it, if all of it is.
    """
    holders, brought_back = [live], {}
    for effect in reversed(effects):
        rest = holders[-1]
        if effect.undoes:
            brought_back[effect.undoes] = rest
        if effect.inside is not None:
            inner = find_inner(effect, rest)
            holders.append(replace(rest, exists=bool(inner), entries=(*inner, *rest.entries)))
            continue
        own = seen[place_path(effect.place)]
        back, missing = manifests.find_present(effect.before, _files_of(brought_back.get(effect.key, own)), cut)
        holders.append(own if own.exists or missing or not back else replace(own, exists=True, entries=back))
    return holders[::-1]


def _find_whole(effects: Sequence[Effect], holders: Sequence[Snapshot]) -> List[bool]:
    """Which of the holders have all that live held then, but for what the next exchange of the directory moved on."""
    whole = [True]
    for effect, holder in zip(reversed(effects), reversed(holders[:-1])):
        whole.append(holder.exists and (effect.inside is None or whole[-1]))
    return whole[::-1]


def find_inner(effect: Effect, holder: Snapshot) -> Tuple[FileInfo, ...]:
    """The old files of a join as they lie in the file that has them inside; () if that is not there as the run left it.

    They have the names, times and ids that they had as files of their own. That file may itself lie in another one, with which it was
    joined later.
    """
    inside = effect.inside
    if inside is None or not effect.whole:
        return ()
    around = next((one for one in _files_of(holder) if (one.file_id, one.length) == (inside.file_id, inside.length)), None)
    if around is None or around.is_open:
        return ()
    found, begin = [], around.begin + inside.begin
    for file in effect.before:
        found.append(around._replace(length=file.length, mtime_ms=file.mtime_ms, file_id=file.file_id, begin=begin, inner=file.name))
        begin += file.length
    return tuple(found)


def _find_gone(
    effects: Sequence[Effect], missing: str, seen: Mapping[str, Snapshot], place_path: Callable[[str], str], discarded: Container[str]
) -> Gone:
    """Why the old files of the first effect are not there. What a join took goes with the file that has it inside, and that with live, or
    with the backup of the next run that exchanged the directory.
    """
    holder = next((effect for effect in effects if effect.inside is None), None)
    undone = {effect.undoes for effect in effects}
    kept_by = [effect for effect in (effects[0], holder) if effect]
    if any(effect.place in discarded for effect in kept_by) or not missing:
        return Gone.by(How.DISCARDED)
    if any(effect.key in undone for effect in kept_by):
        return Gone.by(How.BROUGHT_BACK)
    if holder is None or seen[place_path(holder.place)].exists:
        return Gone.by(How.WITH_ITS_FILE)
    what = f"the backup of run {holder.run} is gone, and {How.REMOVED.value}"
    return Gone(
        How.REMOVED, Reason(Code.BACKUP_GONE, what, "look for it in the trash and in snapshots; the next cleanup takes it for discarded")
    )


def _has_older(effects: Sequence[Effect], live: Snapshot, cut: Mapping[FileKey, Cut]) -> bool:
    """Whether live has files that are as old as those that the first run joined others to: it was not overwritten as a whole.

    HDFS counts ids up, but a copied table has new ones, in a copied cluster smaller ones than before: so its times are compared, too. A cut
    changes the time of a file.
    """
    made = {effect.inside.file_id for effect in first_sets(effects) if effect.inside}
    if not made:
        return False
    newest, when_ms, known = max(made), effects[0].timestamp_ms, made.union(each.file_id for each in cut.values())
    old = (file for file in listings.data_files(live) if 0 < file.file_id <= newest)
    return any(when_ms is None or file.mtime_ms <= when_ms or file.file_id in known for file in old)


def _find_certified(manifest: Sequence[ManifestFile], effects: Sequence[Effect]) -> Optional[Digest]:
    """The digest of the manifest's files from the certificate of the run that took just these, None if there is none.

    It may have joined several sets of them. The lists of those whose backups were discarded are gone, and the manifest is without them.
    """
    before = tuple(file for effect in first_sets(effects) for file in effect.before)
    return add_digests(first_sets(effects)) if before == tuple(manifest) else None


def first_sets(effects: Sequence[Effect]) -> Sequence[Effect]:
    """The first effect, with the others of its run if that joined several sets of files."""
    return [effect for effect in effects if effect is effects[0] or (effect.inside and effect.run == effects[0].run)]


def add_digests(effects: Sequence[Effect]) -> Optional[Digest]:
    """What the certificates of all these say of their rows together; None if one does not, or there are none."""
    digests = [effect.digest for effect in effects if effect.digest is not None]
    return sum(digests[1:], digests[0]) if digests and len(digests) == len(effects) else None


def _wanted_after(
    wanted: Sequence[ManifestFile], effect: Effect, put_there: Mapping[UnitKey, Sequence[ManifestFile]]
) -> Sequence[ManifestFile]:
    """The files that hold the same rows after an effect. A rollback of a join took what that had put there, also if its own list is gone
    with its backup.
    """
    if effect.inside is None:
        return effect.after
    undone = put_there.get(effect.undoes, ()) if effect.undoes else ()
    taken = {file.name for file in (*effect.before, *undone)}
    return [*(file for file in wanted if file.name not in taken), *effect.after]


def _find_arrivals_in_live(proof: Proof, manifest: Sequence[ManifestFile], effects: Sequence[Effect]) -> List[FileInfo]:
    """Later files. If only joins took files of the unit, nobody knows which other ones it had: their log names only theirs."""
    if effects and all(effect.inside for effect in effects) and tuple(manifest) == first_files(effects):
        return []
    known = {file.name for file in proof.newest}
    return [file for file in proof.live if file.name not in known]


def _overwritten_since(effect: Effect, what: str) -> Reason:
    return Reason(Code.OVERWRITTEN_SINCE, f"somebody replaced its files since run {effect.run} ({what})")


def _find_link(
    effect: Effect, holder: Snapshot, following: Sequence[FileInfo], is_whole: bool, cut: Mapping[FileKey, Cut]
) -> Tuple[Link, Optional[Reason]]:
    """A run's files at their current place, and why any is missing. What it put into live is in `following`, which may be without what the
    next run took, unless it `is_whole`.
    """
    before, lost = manifests.find_present(effect.before, _files_of(holder), cut) if holder.exists else (None, "")
    after, gone = manifests.find_present(effect.after, following, cut)
    is_known = is_whole or (bool(after) and not gone)
    link = Link(effect, before, after if is_known else None)
    if lost:
        return link, Reason(Code.BACKUP_CHANGED, f"the backup of run {effect.run} is not what it was: {lost}")
    return link, _overwritten_since(effect, gone) if gone and is_known else None


def _find_replaced(wanted: Iterable[ManifestFile], effect: Effect, cut: Mapping[FileKey, Cut]) -> Optional[Reason]:
    """Why a run did not find the expected files; None if it did. A run that joined files left the others."""

    def key(file: ManifestFile) -> FileKey:
        shorter = cut.get((file.name, file.length))
        return file.name, shorter.copy_bytes if shorter else file.length

    found = {key(file): file for file in effect.before}
    taken = {file.name for file in effect.before}
    expected = [file for file in wanted if not manifests.is_marker(file) and (effect.inside is None or file.name in taken)]
    missing = [file.name for file in expected if not _is_same(file, found.get(key(file)))]
    if not missing:
        return None
    return Reason(Code.OVERWRITTEN_SINCE, f"somebody replaced its files before run {effect.run} ({missing[0]} is gone or was changed)")


def _is_same(file: ManifestFile, found: Optional[ManifestFile]) -> bool:
    """Whether a file of one list, and of the same name and length in another, is the same one, as far as both know its id."""
    return found is not None and (found.file_id == file.file_id or 0 in (found.file_id, file.file_id))


def _find_arrivals(wanted: Iterable[ManifestFile], before: Iterable[FileInfo]) -> List[FileInfo]:
    expected = {file.name for file in wanted}
    return [file for file in before if file.name not in expected and not names.is_hidden(file.name)]


def _files_of(seen: Snapshot) -> List[FileInfo]:
    return [entry for entry in seen.entries if not entry.is_dir]
