"""Follow the files of a unit from a backup to live: what each run since then claims about them, and where they are by now.

Pure. A run claims that the files it removed and those it put there hold the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.history import Effect
from hivekeeper.runlog.manifests import Cut, FileKey, ManifestFile, Present, key_of


@dataclass(frozen=True)
class Link:
    """One run's claim: the files that it removed (`before`) and those that it put there (`after`) hold the same rows.

    Either is None if the backup that held the files was discarded; then the run's certificate replaces them.
    """

    effect: Effect
    before: Optional[Tuple[FileInfo, ...]]
    after: Optional[Tuple[FileInfo, ...]]


class Chain:
    """The effects on a unit since a backup, oldest first. `holders`: for each, and for live behind them, where the files are that live held
    just before it. `nth` counts the effects.
    """

    def __init__(
        self,
        manifest: Sequence[ManifestFile],
        effects: Sequence[Effect],
        live: Snapshot,
        seen: Mapping[str, Snapshot],
        place_path: Callable[[str], str],
        cut: Mapping[FileKey, Cut],
    ) -> None:
        """`manifest` is what the backup holds; `cut` is the log's, `History.cut`."""
        self.effects, self._cut = effects, cut
        self.holders = _find_holders(effects, live, seen, place_path, cut, Told(manifest, effects, cut))
        self._whole = _find_whole(effects, self.holders)
        self._written, self._joined = _find_ids(manifest, effects), _find_joined_ids(effects)
        self._put_there = {effect.key: effect.after for effect in effects}

    def find_present(self, wanted: Iterable[ManifestFile], present: Iterable[Present]) -> Tuple[Tuple[Present, ...], str]:
        """As manifests.find_present, with what was cut since."""
        return manifests.find_present(wanted, present, self._cut)

    def find_carried(self, wanted: Iterable[ManifestFile], nth: int) -> Mapping[ManifestFile, FileInfo]:
        """The files that a run moved over into the directory that it put there, and as which they are there, or where later runs moved them
        on. It claims nothing about them.

        A file that a run put there is known by its name, length and time where its id is not: the claim of that run compares its rows. For
        any other file of unknown id nothing would tell that it was not replaced.
        """
        effect = self.effects[nth]
        if effect.inside is not None:
            return {}
        by_name, taken = {file.name: file for file in effect.before}, {file.file_id for file in effect.before if file.file_id}
        left: Dict[ManifestFile, int] = {}
        for file in wanted:
            file_id, same = file.file_id or self._id_of(key_of(file.name, file.length)), by_name.get(file.name)
            if file_id is not None and file_id not in taken and not (same and 0 in (file_id, same.file_id)):
                left[file] = file_id
        found: Dict[ManifestFile, FileInfo] = {}
        for seen in self.holders[nth + 1 :]:
            if not left:
                break
            present = files_of(seen)
            known = {file.file_id: file for file in present if file.file_id}
            alike = {key_of(file.name, file.length, file.mtime_ms): file for file in present}
            now = {file: known.get(file_id) if file_id else alike.get(key_of(*file[:3])) for file, file_id in left.items()}
            found.update((file, one) for file, one in now.items() if one is not None)
            left = {file: file_id for file, file_id in left.items() if file not in found}
        return found

    def _id_of(self, key: FileKey) -> Optional[int]:
        """That of a file that a run put into live, 0 if it is unknown; None for any other file. A log may have millions that were cut."""
        known = self._joined.get(key)
        if known is None and key in self._cut:
            return self._cut[key].file_id
        return self._written.get(key) if known is None else known

    def find_link(self, nth: int) -> Tuple[Link, Optional[Reason]]:
        """A run's files at their current place, and why any is missing. What it put into live may be without what the next run took."""
        effect, holder, following = self.effects[nth], self.holders[nth], self.holders[nth + 1]
        is_last = nth + 1 == len(self.effects)
        moved_on = {} if is_last else self.find_carried(effect.after, nth + 1)
        before, lost = self.find_present(effect.before, files_of(holder)) if holder.exists else (None, "")
        after, gone = self.find_present(effect.after, [*files_of(following), *moved_on.values()])
        is_known = self._whole[nth + 1] or (bool(after) and not gone)
        link = Link(effect, before, after if is_known else None)
        if lost:
            return link, Reason(Code.BACKUP_CHANGED, f"the backup of run {effect.run} is not what it was: {lost}")
        return link, overwritten_since(effect, gone) if gone and is_known else None

    def why_replaced(self, wanted: Iterable[ManifestFile], nth: int) -> Optional[Reason]:
        """Why a run did not find the expected files; None if it did. A run that joined files left the others."""
        effect = self.effects[nth]

        def key(file: ManifestFile) -> FileKey:
            shorter = self._cut.get(key_of(file.name, file.length))
            return key_of(file.name, shorter.copy_bytes if shorter else file.length)

        found = {key(file): file for file in effect.before}
        taken = {file.name for file in effect.before}
        expected = [file for file in wanted if not manifests.is_marker(file) and (effect.inside is None or file.name in taken)]
        missing = [file.name for file in expected if not _is_same(file, found.get(key(file)))]
        if not missing:
            return None
        return Reason(Code.OVERWRITTEN_SINCE, f"somebody replaced its files before run {effect.run} ({missing[0]} is gone or was changed)")

    def wanted_after(self, wanted: Sequence[ManifestFile], nth: int) -> Sequence[ManifestFile]:
        """The files that hold the same rows after an effect. A rollback of a join took what that had put there, also if its own list is
        gone with its backup.
        """
        effect = self.effects[nth]
        if effect.inside is None:
            return effect.after
        undone = self._put_there.get(effect.undoes, ()) if effect.undoes else ()
        taken = {file.name for file in (*effect.before, *undone)}
        return [*(file for file in wanted if file.name not in taken), *effect.after]

    def has_rest(self, wanted: Sequence[ManifestFile], nth: int, is_replaced: bool) -> bool:
        """Whether some of the files were still there when others of them had been replaced. `is_replaced`: before the run; else of what it
        had put there.
        """
        effect, later = self.effects[nth], self.effects[nth + 1 :]
        expected, there = (wanted, effect.before) if is_replaced else (self.wanted_after(wanted, nth), files_of(self.holders[nth + 1]))
        # What a rollback has put there, of a run since then, is as old.
        brought_back = [file for one in later if one.undoes in self._put_there for file in one.after]
        return bool(self.find_present(expected, there)[0] or self.find_present(brought_back, files_of(self.holders[-1]))[0])


class Told:
    """The names and ids of all files that are ever looked for: those that the manifest and the runs tell of."""

    def __init__(self, manifest: Iterable[ManifestFile], effects: Sequence[Effect], cut: Mapping[FileKey, Cut]) -> None:
        files = [*manifest, *(file for effect in effects for file in (*effect.before, *effect.after))]
        self._names = {file.name for file in files}
        self._ids = {file.file_id for file in files if file.file_id}
        self._ids.update(effect.inside.file_id for effect in effects if effect.inside)
        if cut:
            shorter = (cut.get(key_of(file.name, file.length)) for file in files)
            self._ids.update(one.file_id for one in shorter if one)

    def only(self, present: Iterable[Present]) -> Tuple[Present, ...]:
        """Of the files of a directory only these. There may be a million others, which each of a thousand joins would go through."""
        return tuple(file for file in present if file.file_id in self._ids or file.name in self._names)


def _find_ids(manifest: Iterable[ManifestFile], effects: Iterable[Effect]) -> Mapping[FileKey, int]:
    """The ids of files that runs put into live, which the lists of those are often without; 0 if unknown. Files that the manifest has
    without an id are left out: they may have been replaced before the first run.
    """
    unsure = {key_of(file.name, file.length) for file in manifest if not file.file_id}
    written = {key_of(file.name, file.length): file.file_id for effect in effects for file in effect.after}
    return {key: file_id for key, file_id in written.items() if key not in unsure}


def _find_joined_ids(effects: Iterable[Effect]) -> Mapping[FileKey, int]:
    insides = (effect.inside for effect in effects if effect.inside)
    return {key_of(inside.file, inside.length): inside.file_id for inside in insides}


def _find_holders(
    effects: Sequence[Effect],
    live: Snapshot,
    seen: Mapping[str, Snapshot],
    place_path: Callable[[str], str],
    cut: Mapping[FileKey, Cut],
    told: Told,
) -> List[Snapshot]:
    """For each effect, and for live behind them, where the files are that live held just before it.

    A join takes some files and leaves the others, which are where the next directory is: in a backup, or in live. They may be there without
    those that it took: `exists` tells of these only. What a later rollback brought back is where that put it, if all of it is.
    """
    holders, brought_back, is_of_told = [live], {}, False
    for effect in reversed(effects):
        rest = holders[-1]
        if effect.undoes:
            brought_back[effect.undoes] = rest
        if effect.inside is not None:
            rest, is_of_told = rest if is_of_told else replace(rest, entries=told.only(rest.entries)), True
            inner = _find_inner(effect, rest)
            holders.append(replace(rest, exists=bool(inner), entries=(*inner, *rest.entries)))
            continue
        is_of_told = False
        own = seen[place_path(effect.place)]
        back, missing = manifests.find_present(effect.before, files_of(brought_back.get(effect.key, own)), cut)
        holders.append(own if own.exists or missing or not back else replace(own, exists=True, entries=back))
    return holders[::-1]


def _find_whole(effects: Sequence[Effect], holders: Sequence[Snapshot]) -> List[bool]:
    """Which of the holders have all that live held then, but for what the next exchange of the directory moved on."""
    whole = [True]
    for effect, holder in zip(reversed(effects), reversed(holders[:-1])):
        whole.append(holder.exists and (effect.inside is None or whole[-1]))
    return whole[::-1]


def _find_inner(effect: Effect, holder: Snapshot) -> Tuple[FileInfo, ...]:
    """The old files of a join as they lie in the file that has them inside; () if that is not there as the run left it.

    They have the names, times and ids that they had as files of their own. That file may itself lie in another one, with which it was
    joined later.
    """
    inside = effect.inside
    if inside is None or not effect.whole:
        return ()
    around = next((one for one in files_of(holder) if (one.file_id, one.length) == (inside.file_id, inside.length)), None)
    if around is None or around.is_open:
        return ()
    found, begin = [], around.begin + inside.begin
    for file in effect.before:
        found.append(around._replace(length=file.length, mtime_ms=file.mtime_ms, file_id=file.file_id, begin=begin, inner=file.name))
        begin += file.length
    return tuple(found)


def _is_same(file: ManifestFile, found: Optional[ManifestFile]) -> bool:
    """Whether a file of one list, and of the same name and length in another, is the same one, as far as both know its id."""
    return found is not None and (found.file_id == file.file_id or 0 in (found.file_id, file.file_id))


def overwritten_since(effect: Effect, what: str) -> Reason:
    return Reason(Code.OVERWRITTEN_SINCE, f"somebody replaced its files since run {effect.run} ({what})")


def files_of(seen: Snapshot) -> List[FileInfo]:
    return [entry for entry in seen.entries if not entry.is_dir]
