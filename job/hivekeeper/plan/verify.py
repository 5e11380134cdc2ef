"""Decide what has to be compared to prove that live holds what a backup holds.

Pure. Each run between a backup and live claims that the files it removed and those it put there hold the same rows. Files that
arrived between two runs, or after the last, are arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Callable, Container, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import Digest, FileInfo, Snapshot
from hivekeeper.plan import listings
from hivekeeper.plan.chain import Chain, Link, files_of, overwritten_since
from hivekeeper.plan.rollback import first_files
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.history import Effect
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
    cut_ids: Container[int],
    discarded: Container[str],
) -> Proof:
    """Plan the proof. `manifest` is what the backup holds, `effects` are the later effects on the unit, oldest first; `cut` and `cut_ids`
    are the log's, as in `History`, and `discarded` has the places that cleanups discarded according to it.
    """
    chain = Chain(manifest, effects, live, seen, place_path, cut)
    first = chain.holders[0]
    carried = chain.find_carried(manifest, 0) if effects else {}
    base, missing = chain.find_present(manifest, [*files_of(first), *carried.values()])
    proof = Proof(
        base if first.exists else None,
        (),
        listings.data_files(live),
        gone=None if first.exists or not effects else _find_gone(effects, missing, seen, place_path, discarded),
        certified=_find_certified(manifest, effects),
        has_older=_has_older(effects, live, cut_ids),
    )
    if missing and (first.exists or not effects):
        # Otherwise the remaining files would be compared with themselves.
        changed = Reason(Code.BACKUP_CHANGED, f"the backup is not what it was: {missing}")
        return replace(proof, base=None, broken=changed)
    return _follow(chain, proof, manifest, effects, live)


def _follow(chain: Chain, proof: Proof, manifest: Sequence[ManifestFile], effects: Sequence[Effect], live: Snapshot) -> Proof:
    """The proof from effect to effect, up to the first one whose files are not there, or to live."""
    links: List[Link] = []
    arrivals: List[FileInfo] = []
    wanted: Sequence[ManifestFile] = manifest
    for nth in range(len(effects)):
        carried = chain.find_carried(wanted, nth)
        wanted = [file for file in wanted if file not in carried]
        link, gone = chain.find_link(nth)
        replaced = chain.why_replaced(wanted, nth)
        arrivals += _find_arrivals(wanted, link.before or ())
        if replaced or gone:
            has_older = proof.has_older or chain.has_rest(wanted, nth, is_replaced=replaced is not None)
            return replace(proof, arrivals=tuple(arrivals), broken=replaced or gone, has_older=has_older)
        links.append(link)
        wanted = [*chain.wanted_after(wanted, nth), *carried]
    newest, missing = chain.find_present(wanted, files_of(live))
    proof = replace(proof, links=tuple(links), newest=newest)
    if missing:
        has_older = proof.has_older or bool(newest)
        return replace(proof, arrivals=tuple(arrivals), broken=overwritten_since(effects[-1], missing), has_older=has_older)
    arrivals += _find_arrivals_in_live(proof, manifest, effects)
    late = tuple(
        file.name
        for effect, holder in zip(effects, chain.holders)
        if effect.inside is None
        for file in manifests.find_late(effect.before, holder.entries)
    )
    return replace(proof, arrivals=tuple(arrivals), late_in_backup=late)


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


def _has_older(effects: Sequence[Effect], live: Snapshot, cut_ids: Container[int]) -> bool:
    """Whether live has files that are as old as those that the first run joined others to: it was not overwritten as a whole.

    HDFS counts ids up, but a copied table has new ones, in a copied cluster smaller ones than before: so its times are compared, too. A cut
    changes the time of a file.
    """
    made = {effect.inside.file_id for effect in first_sets(effects) if effect.inside}
    if not made:
        return False
    newest, when_ms = max(made), effects[0].timestamp_ms
    old = (file for file in listings.data_files(live) if 0 < file.file_id <= newest)
    return any(when_ms is None or file.mtime_ms <= when_ms or file.file_id in made or file.file_id in cut_ids for file in old)


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


def _find_arrivals_in_live(proof: Proof, manifest: Sequence[ManifestFile], effects: Sequence[Effect]) -> List[FileInfo]:
    """Later files. If only joins took files of the unit, nobody knows which other ones it had: their log names only theirs."""
    if effects and all(effect.inside for effect in effects) and tuple(manifest) == first_files(effects):
        return []
    known = {file.name for file in proof.newest}
    return [file for file in proof.live if file.name not in known]


def _find_arrivals(wanted: Iterable[ManifestFile], before: Iterable[FileInfo]) -> List[FileInfo]:
    expected = {file.name for file in wanted}
    return [file for file in before if file.name not in expected and not names.is_hidden(file.name)]
