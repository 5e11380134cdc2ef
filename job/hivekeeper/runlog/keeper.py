"""Decide which lists of files of the log are kept in memory: those of backups that still exist, and of files that live may hold.

Pure. A log has two lines for each file that a run ever exchanged, so its length must not decide how much memory a command takes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Set, Tuple

from hivekeeper.runlog.history import Effect, LoggedRun, UnitKey


class Keeper:
    """Which lists of files may still be needed, so that memory is bounded by the backups in place, not by the length of the log.

    `before` is kept as long as the backup is at its place. `after` is kept with it; without a backup, only while live may hold these
    files, or get them again, which ends with the next compaction of the unit that cannot be rolled back any more. To know that, pass
    entries newest first. What is dropped at one version is not needed at a later one, so a checkpoint may drop it.
    """

    def __init__(self, keeps: bool = True) -> None:
        self._keeps = keeps
        self._discarded: Set[str] = set()
        self._undone: Set[UnitKey] = set()
        self._compacted: Set[str] = set()

    def judge(self, effect: Effect) -> Tuple[bool, bool]:
        """Whether to keep `before` and `after`."""
        if not self._keeps:
            return False, False
        if effect.key in self._undone:
            # Old files of a join come back under another name: without its lists nobody knows in place of which ones.
            stays = effect.inside is not None and effect.partition not in self._compacted
            return stays, stays
        stands = effect.place not in self._discarded
        return stands, stands or effect.partition not in self._compacted

    def pass_by(self, run: LoggedRun) -> LoggedRun:
        """The entry without the lists that nobody needs. Remembers it to judge older entries."""
        self._discarded.update(run.discarded)
        effects = tuple([self._reduce(effect) for effect in reversed(run.effects)][::-1])
        return run if effects == run.effects else replace(run, effects=effects)

    def _reduce(self, effect: Effect) -> Effect:
        keep_before, keep_after = self.judge(effect)
        if effect.undoes:
            self._undone.add(effect.undoes)
        elif effect.key not in self._undone and effect.place in self._discarded and effect.inside is None:
            # A join leaves other files of the unit, which older runs may have put there.
            self._compacted.add(effect.partition)
        if keep_before and keep_after:
            return effect
        return replace(effect, before=(), after=effect.after if keep_after else (), whole=False)
