"""Decide in which order units are compacted.

Pure: the most files removed per byte rewritten first.
"""

from __future__ import annotations

from typing import Callable, Iterable, List, TypeVar

Item = TypeVar("Item")


def gain(files_removed: int, bytes_rewritten: int) -> float:
    """Files removed per MiB rewritten; an empty unit costs as much as one of a single MiB."""
    return files_removed / max(1.0, bytes_rewritten / 2**20)


def rank(
    items: Iterable[Item], files_removed: Callable[[Item], int], bytes_rewritten: Callable[[Item], int], name: Callable[[Item], str]
) -> List[Item]:
    """Best first; ties are ordered by name, so that two runs agree."""
    return sorted(items, key=lambda item: (-gain(files_removed(item), bytes_rewritten(item)), name(item)))
