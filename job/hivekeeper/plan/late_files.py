"""Decide what live must hold for files that came late to a backup to go there.

Pure. Such a file was added to what live held before the backup's run. Its rows belong to live as long as each later run took what the one
before it had put there: whoever overwrote the unit in between has replaced these rows as well.
"""

from __future__ import annotations

from typing import Callable, Container, Dict, Hashable, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple, TypeVar

from hivekeeper import names
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
    """For each exchange of the directory of one of these partitions from which runs lead to live without a break, what these have put there
    and no later one took: live holds that if nobody has overwritten it since. `own` is the id of the table that is there now.

    Nothing for joins, of which a partition may have a thousand each night: nothing comes late to what lies inside a file.
    """
    by_partition = _group(history, partitions, lambda effect: effect.partition)
    followed = (one for effects in by_partition.values() for one in _follow_back(effects, history.cut))
    return {
        effect.key: expected.files
        for effect, breaks, expected in followed
        if effect.inside is None and not breaks and effect.table_id == own
    }


def find_stretches(history: History, partitions: Container[str]) -> Mapping[UnitKey, Stretch]:
    """Which effects on these partitions lie on the same side of each break. No rollback leads over one, nor from one table to another."""
    by_unit = _group(history, partitions, lambda effect: (effect.table_id, effect.partition))
    return {
        effect.key: Stretch(*unit, breaks)
        for unit, effects in by_unit.items()
        for effect, breaks in _join_runs((effect, breaks) for effect, breaks, _ in _follow_back(effects, history.cut))
    }


def _join_runs(found: Iterable[Tuple[Effect, int]]) -> Iterator[Tuple[Effect, int]]:
    """Without the breaks between two effects of one run: a rollback undoes all that it did to a unit, or nothing."""
    newer, counted, inside = "", 0, 0
    for effect, breaks in found:
        inside += breaks - counted if effect.run == newer else 0
        newer, counted = effect.run, breaks
        yield effect, breaks - inside


def _group(history: History, partitions: Container[str], of: Callable[[Effect], Key]) -> Mapping[Key, Sequence[Effect]]:
    found: Dict[Key, List[Effect]] = {}
    for effect in history.effects:
        if effect.partition in partitions:
            found.setdefault(of(effect), []).append(effect)
    return found


def _follow_back(effects: Sequence[Effect], cut: Cuts) -> Iterator[Tuple[Effect, int, _Expected]]:
    """From the newest one back: each with the number of breaks after it, and what those since the first of these have put, and none took.

    A join and a rollback take only some of the files, and leave the others in live. What a rollback brings back is what the run that it
    undoes had taken: the log may be without the lists of that one (`Keeper`), and so is one without lists no break by itself.
    """
    breaks, last, expected = 0, effects[-1], _Expected()
    taken, takes_all = _Taken(), False
    for effect in reversed(effects):
        put = tuple(file for file in as_cut(_with_id(effect), cut) if not is_marker(file))
        left = tuple(file for file in put if not taken.has(file, with_time=effect.undoes is not None))
        is_its_own = effect.table_id == last.table_id and effect.live == last.live
        # Where a run has put nothing, what the next one finds does not tell whether it was overwritten.
        is_broken = not is_its_own or (effect.whole and not put) or (bool(left) and takes_all)
        if is_broken or not expected.add(left):
            breaks, last, expected, taken, takes_all = breaks + 1, effect, _Expected(put), _Taken(), False
        yield effect, breaks, expected
        if effect.whole and effect.inside is None and effect.undoes is None:
            taken, takes_all = _Taken(), True
        taken.add(as_cut((*effect.before, *(effect.after if effect.undoes else ())), cut))


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


class _Taken:
    """Files that runs took. Moving others over may have renamed one since it was put there, which is known by its id then."""

    def __init__(self) -> None:
        self._by_name: Dict[str, ManifestFile] = {}
        self._by_id: Dict[int, ManifestFile] = {}

    def add(self, files: Files) -> None:
        self._by_name.update((file.name, file) for file in files)
        self._by_id.update((file.file_id, file) for file in files if file.file_id)

    def has(self, file: ManifestFile, with_time: bool) -> bool:
        """`with_time`: it was seen before it was put there, and not just written, so that its time is known."""
        renamed, same = self._by_id.get(file.file_id), self._by_name.get(file.name)
        if renamed is not None and renamed.name != file.name:
            return (renamed.length, renamed.mtime_ms) == (file.length, file.mtime_ms)
        if same is None or same.length != file.length:
            return False
        if file.file_id == same.file_id:
            return file.file_id != 0 or not with_time or same.mtime_ms == file.mtime_ms
        return 0 in (file.file_id, same.file_id)


class _Expected:
    """What live must hold by some runs, to which those before them are added one by one."""

    def __init__(self, files: Files = ()) -> None:
        # Those of the newest run first.
        self._parts = [files]
        self._names = {file.name for file in files}

    @property
    def files(self) -> Files:
        """All of them, the oldest first; one list for all runs that add nothing."""
        if len(self._parts) > 1:
            self._parts = [tuple(file for part in reversed(self._parts) for file in part)]
        return self._parts[0]

    def add(self, left: Files) -> bool:
        """Whether live can hold these of an older run as well. A file of which the id is known has got another name where a rollback has
        brought back one of its own.
        """
        found = []
        for file in left:
            name = file.name
            # Each of several rollbacks may have renamed it once more.
            while file.file_id and name in self._names and names.is_file_name(name):
                name = names.late_name(name)
            if name in self._names or not names.is_file_name(name):
                return False
            self._names.add(name)
            found.append(file._replace(name=name))
        if found:
            self._parts.append(tuple(found))
        return True
