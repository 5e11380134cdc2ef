from collections import Counter
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.plan import sizing
from hivekeeper.plan.sizing import EXACT_LENGTHS, Lengths, median_of

MIB = 2**20
BLOCK = 128 * MIB


def worthwhile(*lengths):
    return sizing.is_worthwhile(sizing.measure(lengths, BLOCK), BLOCK, 10)


def test_many_small_files_are_work():
    assert worthwhile(*[MIB] * 100)


def test_a_single_small_file_is_never_work():
    assert not worthwhile(1000)


def test_no_files_are_never_work():
    assert not worthwhile()


def test_two_small_files_are_work_because_one_remains():
    assert worthwhile(1000, 1000)


def test_one_huge_file_does_not_hide_thousands_of_small_ones():
    assert worthwhile(100 * 1024 * MIB, *[MIB] * 2000)


def test_a_few_small_files_beside_large_ones_are_left():
    assert not worthwhile(*[BLOCK] * 10, 1000)


@pytest.mark.parametrize(("length", "work"), [(12 * MIB, True), (13 * MIB, False)])
def test_the_threshold_is_block_size_divided_by_ratio(length, work):
    assert worthwhile(*[length] * 20) is work


def test_a_compacted_unit_is_not_work_again():
    total = 700 * MIB
    files = sizing.target_files(total, BLOCK)
    assert not worthwhile(*[total // files] * files)


@pytest.mark.parametrize(("total", "files"), [(0, 1), (1, 1), (BLOCK, 1), (BLOCK + 1, 2), (10 * BLOCK, 10)])
def test_target_files_hold_at_most_a_block_each(total, files):
    assert sizing.target_files(total, BLOCK) == files


def test_objects_are_inodes_and_blocks_and_the_directory():
    assert sizing.measure([0, 1, BLOCK, BLOCK + 1], BLOCK).objects == 1 + 2 + 2 + 3 + 1


def test_our_own_objects_are_counted_and_fewer_after_cleanup():
    until, kept = sizing.control_objects(units=9, batches=1, first_run=True)
    assert (until, kept) == (2 + 5 + 3 + 2 + 2 + 9, 7)
    assert sizing.control_objects(0, 0, first_run=True) == (0, 0)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=60), st.integers(1, 70))
def test_bins_are_contiguous_all_used_and_no_more_than_asked(lengths, bins):
    assigned = sizing.assign_bins(lengths, bins)
    assert len(assigned) == len(lengths)
    assert list(assigned) == sorted(assigned)
    assert set(assigned) == set(range(min(bins, len(lengths))))


def test_bins_of_equal_files_are_of_equal_size():
    assigned = sizing.assign_bins([10] * 100, 4)
    assert [assigned.count(number) for number in range(4)] == [25, 25, 25, 25]


@given(st.lists(st.integers(1, 1000), min_size=50, max_size=200), st.integers(2, 8))
def test_a_bin_is_at_most_its_share_and_one_file_too_large(lengths, bins):
    assigned = sizing.assign_bins(lengths, bins)
    sums = [sum(length for length, bin in zip(lengths, assigned) if bin == number) for number in range(bins)]
    assert max(sums) <= 2 * sum(lengths) / bins + max(lengths)


@given(st.lists(st.integers(1, 2**50), min_size=1, max_size=200))
def test_lengths_are_exact_for_a_few_files_and_close_for_many(values):
    lengths = Lengths()
    for value in values:
        lengths.add(value)
    assert (lengths.files, lengths.total_bytes, sum(lengths.counts.values())) == (len(values), sum(values), len(values))
    if len(set(values)) <= EXACT_LENGTHS:
        assert lengths.counts == Counter(values)
        assert lengths.median == median(values)
    else:
        assert abs(lengths.median - median(values)) <= median(values) / 15 + 1


@given(st.lists(st.integers(0, 50), min_size=1))
def test_the_median_of_counts_is_that_of_the_values(values):
    assert median_of(Counter(values).items()) == median(values)


def test_lengths_of_many_files_take_little_memory():
    lengths = Lengths()
    for value in range(1, 200_000):
        lengths.add(value * 7919)
    assert len(lengths.counts) < 200


@given(st.integers(1, 2**60))
def test_a_step_of_lengths_is_narrow_and_does_not_go_beyond_a_power_of_two(length):
    lengths = Lengths()
    for other in range(2**61, 2**61 + EXACT_LENGTHS):
        lengths.add(other)
    lengths.add(length)
    middle = min(lengths.counts)
    assert abs(middle - length) <= length / 16
    assert middle.bit_length() == length.bit_length()
