"""Tell by its blocks which files a joined file took, and where in it they lie.

Pure. Blocks keep their ids and stamps in a concat (measured on HDFS 3.3.6), and it takes exactly one file for each name that it is given,
in that order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Callable, Iterable, List, Optional, Sequence, Tuple

from hivekeeper.model import Block
from hivekeeper.runlog.joins import length_of

# Looking at one takes two reads. Several files that were joined themselves have some thousands.
MOST_EDGES = 20_000


@dataclass(frozen=True)
class Part:
    """Bytes of a joined file. `planned`: which of the planned files they are, None if another one. `nth`: under which of their names it was
    taken, None if that is not clear; then the bytes may be those of several files.
    """

    begin: int
    length: int
    planned: Optional[int]
    nth: Optional[int]


def find_parts(
    blocks: Sequence[Block], planned: Sequence[Sequence[Block]], find_starts: Callable[[Sequence[int]], Iterable[int]]
) -> Tuple[Part, ...]:
    """What a joined file consists of. `planned` are the blocks of the files that were to be joined, the target first; `find_starts` returns
    those of some offsets where a file may begin, among them all where one does. It is asked only if several strange files lie side by side.
    """
    pieces = _find_pieces(blocks, planned)
    strange = [nth for nth, (known, _) in enumerate(pieces) if known is None]
    more = len(planned) - len(pieces)
    if more > 0 and strange:
        pieces = _split(pieces, more, find_starts)
    elif more == -len(strange):
        pieces = _with_growth(pieces)
    is_clear = len(pieces) == len(planned)
    parts, begin = [], 0
    for nth, (known, of_piece) in enumerate(pieces):
        length = length_of(of_piece)
        parts.append(Part(begin, length, known, nth if is_clear else known))
        begin += length
    return tuple(parts)


_Piece = Tuple[Optional[int], Tuple[Block, ...]]


def _find_pieces(blocks: Sequence[Block], planned: Sequence[Sequence[Block]]) -> List[_Piece]:
    """The planned files, each with its number, and what lies between them."""
    begins = {tuple(each)[:1]: nth for nth, each in enumerate(planned)}
    pieces: List[_Piece] = []
    at = strange_from = 0
    while at < len(blocks):
        nth = begins.get((blocks[at],))
        known = tuple(planned[nth]) if nth is not None else ()
        if not known or tuple(blocks[at : at + len(known)]) != known:
            at += 1
            continue
        if at > strange_from:
            pieces.append((None, tuple(blocks[strange_from:at])))
        pieces.append((nth, known))
        at = strange_from = at + len(known)
    if at > strange_from:
        pieces.append((None, tuple(blocks[strange_from:])))
    return pieces


def _with_growth(pieces: List[_Piece]) -> List[_Piece]:
    """All planned files are there: what lies behind one has been written to it since, and it is another one now."""
    grown: List[_Piece] = []
    for known, of_piece in pieces:
        if known is None and grown:
            grown[-1] = None, (*grown[-1][1], *of_piece)
        else:
            grown.append((known, of_piece))
    return grown


def _split(pieces: List[_Piece], more: int, find_starts: Callable[[Sequence[int]], Iterable[int]]) -> List[_Piece]:
    """The pieces, the strange ones split where files begin; as they are, unless there are just as many more."""
    begin, bounds = 0, []
    for _, of_piece in pieces:
        bounds.append(list(accumulate((block.length for block in of_piece), initial=begin)))
        begin = bounds[-1][-1]
    edges = [edge for (known, _), of_piece in zip(pieces, bounds) if known is None for edge in of_piece[1:-1]]
    starts = set(edges).intersection(find_starts(edges)) if more <= len(edges) <= MOST_EDGES else set()
    if len(starts) != more:
        return pieces
    split: List[_Piece] = []
    for (known, of_piece), ends in zip(pieces, bounds):
        cuts = [nth for nth, end in enumerate(ends) if end in starts and known is None]
        split += [(known, of_piece[first:last]) for first, last in zip([0, *cuts], [*cuts, len(of_piece)])]
    return split
