"""What a joined file took, by its blocks."""

from __future__ import annotations

import time

import pytest

from hivekeeper.model import Block
from hivekeeper.plan.joined_parts import Part, find_parts

HEAD, TAIL = (Block(1, 1, 10), Block(2, 1, 5)), (Block(9, 1, 3),)
ONE, TWO, THREE = (Block(11, 1, 100),), (Block(21, 1, 100), Block(22, 1, 50)), (Block(31, 1, 70),)
STRANGE, STRANGER, STRANGEST = Block(41, 1, 7), Block(42, 1, 8), Block(43, 1, 9)


def parts(*middle, starts=None, end=TAIL):
    """(length, which planned file it is, under whose name it was taken) of each part behind the head, in order; 0 is the first source."""
    asked = []

    def find_starts(offsets):
        asked.append(list(offsets))
        return [offset for offset in offsets if offset in starts]

    found = find_parts((*HEAD, *middle, *end), [HEAD, ONE, TWO, THREE, TAIL], find_starts)
    # They lie one behind the other.
    assert [part.begin for part in found] == [sum(part.length for part in found[:nth]) for nth in range(len(found))]
    assert starts is not None or not asked
    assert found[0] == Part(0, 15, 0, 0)
    return [(part.length, *(None if number is None else number - 1 for number in (part.planned, part.nth))) for part in found[1:]]


def test_planned_files_are_known_by_their_blocks():
    assert parts(*ONE, *TWO, *THREE) == [(100, 0, 0), (150, 1, 1), (70, 2, 2), (3, 3, 3)]


@pytest.mark.parametrize(
    ("middle", "expected"),
    [
        ((STRANGE, *TWO, *THREE), [(7, None, 0), (150, 1, 1), (70, 2, 2), (3, 3, 3)]),
        ((*ONE, STRANGE, *THREE), [(100, 0, 0), (7, None, 1), (70, 2, 2), (3, 3, 3)]),
        ((*ONE, *TWO, STRANGE), [(100, 0, 0), (150, 1, 1), (7, None, 2), (3, 3, 3)]),
        ((STRANGE, *TWO, STRANGER), [(7, None, 0), (150, 1, 1), (8, None, 2), (3, 3, 3)]),
        # A file of several blocks, as one that was joined itself: no name stands for more than one file.
        ((*ONE, STRANGE, STRANGER, STRANGEST, *THREE), [(100, 0, 0), (24, None, 1), (70, 2, 2), (3, 3, 3)]),
        # Written to again: it is another file now.
        ((*ONE, TWO[0], Block(22, 2, 60), *THREE), [(100, 0, 0), (160, None, 1), (70, 2, 2), (3, 3, 3)]),
        # Under one another's names.
        ((*THREE, *TWO, *ONE), [(70, 2, 0), (150, 1, 1), (100, 0, 2), (3, 3, 3)]),
    ],
)
def test_where_one_file_is_strange_it_is_all_that_lies_between_the_others(middle, expected):
    assert parts(*middle) == expected


def test_strange_files_beside_one_another_are_told_by_where_files_begin():
    assert parts(STRANGE, STRANGER, *THREE, starts={22}) == [(7, None, 0), (8, None, 1), (70, 2, 2), (3, 3, 3)]
    assert parts(STRANGE, STRANGER, STRANGEST, starts={30}) == [(24, None, None), (3, 3, 3)]
    assert parts(STRANGE, STRANGER, STRANGEST, starts={22, 30}) == [(7, None, 0), (8, None, 1), (9, None, 2), (3, 3, 3)]


@pytest.mark.parametrize("starts", [set(), {22, 30}])
def test_strange_files_stay_together_if_it_is_not_clear_where_one_ends(starts):
    """Fewer begin there than were taken, or more, because one of them is a joined file."""
    assert parts(STRANGE, STRANGER, STRANGEST, *THREE, starts=starts) == [(24, None, None), (70, 2, 2), (3, 3, 3)]


def test_a_strange_end_is_a_file_like_the_others():
    assert parts(*ONE, *TWO, *THREE, end=(STRANGE,)) == [(100, 0, 0), (150, 1, 1), (70, 2, 2), (7, None, 3)]


def test_what_lies_behind_a_planned_file_was_written_to_it_if_all_are_there():
    assert parts(*ONE, STRANGE, *TWO, *THREE) == [(107, None, 0), (150, 1, 1), (70, 2, 2), (3, 3, 3)]
    assert parts(*ONE, *TWO, STRANGE, STRANGER, *THREE) == [(100, 0, 0), (165, None, 1), (70, 2, 2), (3, 3, 3)]


def test_bytes_that_no_name_stands_for_belong_to_none():
    assert parts(*ONE, STRANGE, *THREE, STRANGER)[1] == (7, None, None)
    assert find_parts((*HEAD, *ONE), [HEAD, ONE, TWO, TAIL], list) == (Part(0, 15, 0, 0), Part(15, 100, 1, 1))


def test_a_strange_target_is_a_file_like_the_others():
    found = find_parts((STRANGE, *ONE, *TWO, *THREE, *TAIL), [HEAD, ONE, TWO, THREE, TAIL], list)
    assert [(part.length, part.planned, part.nth) for part in found] == [(7, None, 0), (100, 1, 1), (150, 2, 2), (70, 3, 3), (3, 4, 4)]


MANY = 100_000


def test_a_strange_file_of_many_blocks_is_found_in_a_time_that_grows_with_their_number():
    """Whoever may write there can join a hundred thousand files of a byte."""
    strange = [Block(100 + nth, 1, 1) for nth in range(MANY)]
    started = time.monotonic()
    assert parts(*ONE, *strange, *THREE) == [(100, 0, 0), (MANY, None, 1), (70, 2, 2), (3, 3, 3)]
    assert time.monotonic() - started < 5


def test_so_many_edges_are_not_looked_at_one_by_one():
    """Each would be read from two blocks."""
    strange = [Block(100 + nth, 1, 1) for nth in range(MANY)]
    assert parts(*strange, *THREE) == [(MANY, None, None), (70, 2, 2), (3, 3, 3)]
