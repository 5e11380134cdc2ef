"""Files with numbers that give the tuples of all of them one hash, and names that count how often they are compared.

CPython's hash of a tuple has no secret, and an int's is the int (Objects/tupleobject.c, since 3.8). That of a text has none either where
PYTHONHASHSEED is 0, as bin/spark-submit exports it.
"""

from __future__ import annotations

from itertools import count, islice
from typing import Any, Callable, Iterator, Optional, Tuple

_SIZE = 2**64
_P1, _P2, _P5 = 11400714785074694791, 14029467366897019727, 2870177450012600261
_INVERSE1, _INVERSE2 = pow(_P1, _SIZE // 2 - 1, _SIZE), pow(_P2, _SIZE // 2 - 1, _SIZE)
_ONE_HASH = 0x0123456789ABCDEF

Around = Tuple[Tuple[Any, ...], Tuple[Any, ...]]


class Counted(str):
    """A name that counts how often any of its kind was compared with another."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def choose(number: int, around: Callable[[str], Around], name: str = "f{:08d}.parquet") -> Iterator[Tuple[str, int]]:
    """So many names, each with the number that gives `(*before, number, *after)` the one hash; `around` tells both from the name."""
    names = (name.format(nth) for nth in count())
    found = ((each, solve(*around(each))) for each in names)
    return islice(((Counted(each), chosen) for each, chosen in found if chosen is not None), number)


def solve(before: Tuple[Any, ...], after: Tuple[Any, ...]) -> Optional[int]:
    """The number between these values; None if there is none of 61 bits."""
    start, end = _P5, _ONE_HASH
    for value in before:
        start = _rotate(start + hash(value) * _P2, 31) * _P1 % _SIZE
    for value in reversed(after):
        end = (_rotate(end * _INVERSE1, 33) - hash(value) * _P2) % _SIZE
    chosen = (_rotate(end * _INVERSE1, 33) - start) * _INVERSE2 % _SIZE
    return chosen if 0 < chosen < 2**61 - 1 else None


def _rotate(number: int, bits: int) -> int:
    number %= _SIZE
    return (number << bits | number >> (64 - bits)) % _SIZE
