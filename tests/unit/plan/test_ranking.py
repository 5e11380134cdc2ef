"""Which unit is worth doing first."""

from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.plan import ranking

MIB = 2**20
ITEMS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 2**50), st.text(min_size=1)), max_size=20)


def ranked(*items):
    """Items of (files removed, bytes rewritten, name)."""
    return [item[2] for item in ranking.rank(items, lambda i: i[0], lambda i: i[1], lambda i: i[2])]


def test_more_files_removed_for_the_same_bytes_come_first():
    assert ranked((10, 50 * MIB, "few"), (100, 50 * MIB, "many")) == ["many", "few"]


def test_fewer_bytes_for_the_same_files_come_first():
    assert ranked((10, 500 * MIB, "big"), (10, 5 * MIB, "small")) == ["small", "big"]


def test_a_few_bytes_do_not_make_two_files_beat_a_thousand():
    assert ranked((2, 100, "tiny"), (1000, MIB, "thousand")) == ["thousand", "tiny"]


def test_equal_ones_are_ordered_by_name():
    assert ranked((1, MIB, "b"), (1, MIB, "c"), (1, MIB, "a")) == ["a", "b", "c"]


def test_an_empty_unit_can_be_ranked():
    assert ranking.gain(0, 0) == 0


@given(ITEMS)
def test_the_order_does_not_depend_on_the_order_of_the_question(items):
    assert ranked(*items) == ranked(*reversed(items))
