"""The states that an exploration has met, by their hashes, as TLC keeps them: whole ones take a hundred times as much memory."""

from __future__ import annotations

from array import array
from typing import List

SMALLEST = 1 << 16


class Met:
    """Keys of 64 bits, each with the key that it was met from; the first with itself. Two arrays, 24 to 48 bytes for a key.

    Of ten million states two have the same 64 bits with a probability of 3 in a million.
    """

    def __init__(self) -> None:
        self._keys, self._froms = _empty(SMALLEST), _empty(SMALLEST)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: int, origin: int) -> bool:
        """False if it was met before."""
        slot = self._slot_of(key)
        if self._keys[slot]:
            return False
        self._keys[slot], self._froms[slot] = key, origin
        self._count += 1
        if 3 * self._count > 2 * len(self._keys):
            self._grow()
        return True

    def way_to(self, key: int) -> List[int]:
        """The keys from the first one to this one."""
        way = [key]
        while (origin := self._froms[self._slot_of(way[-1])]) != way[-1]:
            way.append(origin)
        return way[::-1]

    def _slot_of(self, key: int) -> int:
        """Where the key is, or where it belongs."""
        keys, last = self._keys, len(self._keys) - 1
        slot = (key ^ (key >> 32)) & last
        while keys[slot] and keys[slot] != key:
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        keys, froms = self._keys, self._froms
        self._keys, self._froms = _empty(2 * len(keys)), _empty(2 * len(keys))
        for key, origin in zip(keys, froms):
            if key:
                slot = self._slot_of(key)
                self._keys[slot], self._froms[slot] = key, origin


def _empty(slots: int) -> array[int]:
    return array("Q", bytes(8 * slots))


def key_of(state: object) -> int:
    """A state's hash as a key; never 0, which marks an empty slot."""
    return hash(state) & 0xFFFF_FFFF_FFFF_FFFF or 1
