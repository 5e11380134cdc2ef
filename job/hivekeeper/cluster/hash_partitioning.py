"""Chooses one key per task so that Spark's hash partitioning gives every task exactly one key.

Pure. With plain numbers as keys, hash partitioning would leave some tasks empty and put several outputs into others.
"""

from __future__ import annotations

from typing import Dict, Tuple

_MASK = 0xFFFFFFFF


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's `hash()` of one INT column, as a signed 32-bit number."""
    mixed = (value * 0xCC9E2D51) & _MASK
    mixed = ((mixed << 15) | (mixed >> 17)) & _MASK
    hashed = seed ^ ((mixed * 0x1B873593) & _MASK)
    hashed = ((hashed << 13) | (hashed >> 19)) & _MASK
    hashed = (hashed * 5 + 0xE6546B64) & _MASK
    hashed ^= 4
    hashed = ((hashed ^ (hashed >> 16)) * 0x85EBCA6B) & _MASK
    hashed = ((hashed ^ (hashed >> 13)) * 0xC2B2AE35) & _MASK
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >> 31 else hashed


def task_keys(tasks: int) -> Tuple[int, ...]:
    """For each task number, an INT that `repartition(tasks, key)` sends to it."""
    keys: Dict[int, int] = {}
    candidate = 0
    while len(keys) < tasks:
        keys.setdefault(murmur3(candidate) % tasks, candidate)
        candidate += 1
    return tuple(keys[task] for task in range(tasks))
