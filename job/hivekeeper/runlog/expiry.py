"""Decide which entries of a table's log are old enough to go: the oldest ones, of which nothing is needed any more.

Pure. A checkpoint keeps what commands still ask of them (docs/on-disk.md).
"""

from __future__ import annotations

from typing import List, Mapping, Set, Tuple

from hivekeeper.runlog.history import History, UnitKey


def count_expired(history: History, written_ms: Mapping[int, int], retention_ms: int) -> int:
    """How many entries, from number 0 on, are expired. `written_ms` has the times of those that the log still has, by the NameNode's clock.

    An entry stays, and all later ones, while its backup or record exists, while a later entry that stays undoes it, and until it is
    older than the retention. So a cleanup's first entry stays until its last one says what is gone. The newest entry's time is the
    present: it has just been written.
    """
    if not written_ms:
        return 0
    newest = max(written_ms)
    needed = [effect.version for effect in history.standing] + [run.version for run in history.records]
    count = min([newest, *needed])
    young = [version for version, time_ms in written_ms.items() if written_ms[newest] - time_ms < retention_ms]
    return _before_none(_spans(history), min([count, *young]))


def find_needed(history: History) -> Set[UnitKey]:
    """The effects that must be known even if their entries are expired: of each partition the last one that cannot be undone, because its
    backup was discarded, and all later ones. Nothing that is on top of it refers to anything below (rule 11 in docs/on-disk.md).

    Also those whose old files were cut off a file that a list from before that may name with its former length.
    """
    none = len(history.runs)
    oldest = min([effect.version for effect in history.standing] + [run.version for run in history.records], default=none)
    undone = {effect.undoes for effect in history.effects}
    needed: Set[UnitKey] = set()
    ended: Set[str] = set()
    for effect in reversed(history.effects):
        cut_by = history.discarded.get(effect.place) if effect.inside else None
        if effect.partition in ended and not (cut_by and oldest < cut_by.version):
            continue
        needed.add(effect.key)
        if effect.undoes is None and effect.key not in undone and effect.place in history.discarded:
            ended.add(effect.partition)
    return needed


def _spans(history: History) -> List[Tuple[int, int]]:
    """Pairs of entries of which the later one undid a part of the earlier."""
    at = {effect.key: effect.version for effect in history.effects}
    return [(at[effect.undoes], effect.version) for effect in history.effects if effect.undoes in at]


def _before_none(spans: List[Tuple[int, int]], count: int) -> int:
    """The highest number, `count` at most, that parts none of the pairs."""
    parted = [count]
    while parted:
        count = min(parted)
        parted = [earlier for earlier, later in spans if earlier < count <= later]
    return count
