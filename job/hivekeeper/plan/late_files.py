"""Decide what live must hold for files that came late to a backup to go there.

Pure. Such a file was added to what live held before the backup's run. Its rows belong to live as long as each later run took what the one
before it had put there: whoever overwrote the unit in between has replaced these rows as well.
"""

from __future__ import annotations

from typing import Container, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.runlog.history import Effect, History, UnitKey
from hivekeeper.runlog.manifests import ManifestFile, is_marker

Files = Tuple[ManifestFile, ...]


def find_expected(history: History, own: str, partitions: Container[str]) -> Mapping[UnitKey, Files]:
    """For each effect on one of these partitions from which runs lead to live without a break, what these have put there and no later one
    took: live holds that if nobody has overwritten it since. `own` is the id of the table that is there now.
    """
    found: Dict[str, List[Effect]] = {}
    for effect in history.effects:
        if effect.partition in partitions:
            found.setdefault(effect.partition, []).append(effect)
    return {key: files for effects in found.values() for key, files in _follow_back(effects, own)}


def _follow_back(effects: Sequence[Effect], own: str) -> Iterator[Tuple[UnitKey, Files]]:
    """From live back to the first break.

    A join and a rollback take only some of the files, and leave the others in live. What a rollback brings back is what the run that it
    undoes had taken: the log may be without the lists of that one (`Keeper`), and so is one without lists no break by itself.
    """
    expected: Files = ()
    taken: Dict[str, ManifestFile] = {}
    takes_all = False
    for effect in reversed(effects):
        put = tuple(file for file in _with_id(effect) if not is_marker(file))
        left = tuple(file for file in put if not _is_same(file, taken.get(file.name)))
        is_its_own = effect.table_id == own and effect.live == effects[-1].live
        # Where a run has put nothing, what the next one finds does not tell whether it was overwritten.
        if not is_its_own or (effect.whole and not put) or (left and (takes_all or _share_a_name(left, expected))):
            return
        expected = (*left, *expected) if left else expected
        yield effect.key, expected
        if effect is effects[0]:
            return
        if effect.whole and effect.inside is None and effect.undoes is None:
            taken, takes_all = {}, True
        taken.update((file.name, file) for file in (*effect.before, *(effect.after if effect.undoes else ())))


def _with_id(effect: Effect) -> Files:
    """The files that it has put into live, with the id of a joined one: the same run gives the same name to that of another table whose
    files have the names of this one's. The names of other new files have a digest of their place.
    """
    inside = effect.inside
    return tuple(file._replace(file_id=inside.file_id) if inside and file.name == inside.file else file for file in effect.after)


def _is_same(file: ManifestFile, taken: Optional[ManifestFile]) -> bool:
    """Whether a file of one list is what another list has under its name, as far as both know its id."""
    return taken is not None and file.length == taken.length and (file.file_id == taken.file_id or 0 in (file.file_id, taken.file_id))


def _share_a_name(some: Iterable[ManifestFile], others: Iterable[ManifestFile]) -> bool:
    return not {file.name for file in some}.isdisjoint(file.name for file in others)
