"""Decide what live must hold for files that came late to a backup to go there.

Pure. Such a file was added to what live held before the backup's run. Its rows belong to live as long as each later run took what the one
before it had put there: whoever overwrote the unit in between has replaced these rows as well.
"""

from __future__ import annotations

from typing import Callable, Container, Dict, Hashable, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar

from hivekeeper.runlog.history import Effect, History, UnitKey
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.manifests import FileKey, ManifestFile, is_marker, key_of

Files = Tuple[ManifestFile, ...]
# As History.cut.
Cuts = Mapping[FileKey, Inside]
Key = TypeVar("Key", bound=Hashable)


class Stretch(NamedTuple):
    """The effects on a unit of a table between two breaks; `breaks` counts those after it."""

    table_id: str
    partition: str
    breaks: int


def find_expected(history: History, own: str, partitions: Container[str]) -> Mapping[UnitKey, Files]:
    """For each effect on one of these partitions from which runs lead to live without a break, what these have put there and no later one
    took: live holds that if nobody has overwritten it since. `own` is the id of the table that is there now.
    """
    by_partition = _group(history, partitions, lambda effect: effect.partition)
    followed = (one for effects in by_partition.values() for one in _follow_back(effects, history.cut))
    return {effect.key: files for effect, breaks, files in followed if not breaks and effect.table_id == own}


def find_stretches(history: History, partitions: Container[str]) -> Mapping[UnitKey, Stretch]:
    """Which effects on these partitions lie on the same side of each break. No rollback leads over one, nor from one table to another."""
    by_unit = _group(history, partitions, lambda effect: (effect.table_id, effect.partition))
    followed = ((unit, one) for unit, effects in by_unit.items() for one in _follow_back(effects, history.cut))
    return {effect.key: Stretch(*unit, breaks) for unit, (effect, breaks, _) in followed}


def _group(history: History, partitions: Container[str], of: Callable[[Effect], Key]) -> Mapping[Key, Sequence[Effect]]:
    found: Dict[Key, List[Effect]] = {}
    for effect in history.effects:
        if effect.partition in partitions:
            found.setdefault(of(effect), []).append(effect)
    return found


def _follow_back(effects: Sequence[Effect], cut: Cuts) -> Iterator[Tuple[Effect, int, Files]]:
    """From the newest one back: each with the number of breaks after it, and what those since the first of these have put, and none took.

    A join and a rollback take only some of the files, and leave the others in live. What a rollback brings back is what the run that it
    undoes had taken: the log may be without the lists of that one (`Keeper`), and so is one without lists no break by itself.
    """
    breaks, last = 0, effects[-1]
    expected: Files = ()
    taken: Dict[str, ManifestFile] = {}
    takes_all = False
    for effect in reversed(effects):
        put = tuple(file for file in as_cut(_with_id(effect), cut) if not is_marker(file))
        left = tuple(file for file in put if not _is_same(file, taken.get(file.name)))
        is_its_own = effect.table_id == last.table_id and effect.live == last.live
        # Where a run has put nothing, what the next one finds does not tell whether it was overwritten.
        if not is_its_own or (effect.whole and not put) or (left and (takes_all or _share_a_name(left, expected))):
            breaks, last, expected, left, taken, takes_all = breaks + 1, effect, (), put, {}, False
        expected = (*left, *expected) if left else expected
        yield effect, breaks, expected
        if effect.whole and effect.inside is None and effect.undoes is None:
            taken, takes_all = {}, True
        taken.update((file.name, file) for file in as_cut((*effect.before, *(effect.after if effect.undoes else ())), cut))


def as_cut(files: Files, cut: Cuts) -> Files:
    """The same files as they are now: those that were cut since are shorter."""
    if not cut:
        return files
    shorter = [cut.get(key_of(file.name, file.length)) for file in files]
    return tuple(
        file._replace(length=one.copy_bytes, file_id=one.file_id) if one and file.file_id in (0, one.file_id) else file
        for file, one in zip(files, shorter)
    )


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
