"""Readers beside swaps see all rows of a unit, or none, or an error. `make bench-readers` runs longer and measures rates."""

from __future__ import annotations

import pytest

from bench.readers import ALL_ROWS, make_readers, swap_under
from cluster.tables import SmallTable

DAYS = tuple(str(day) for day in range(12))
# One round of compact-swap, rollback and cleanup swaps each unit twice.
A_ROUND = 2 * (len(DAYS) + 1)


@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.thorough)])
def test_no_reader_ever_sees_a_part_of_a_unit_or_old_and_new_rows_together(spark, database, rounds):
    tables = [SmallTable(spark, database, DAYS), SmallTable(spark, database, name="flat")]
    readers = [reader for table in tables for reader in make_readers(table)]
    swaps = rounds * A_ROUND
    assert len(swap_under(tables, readers, swaps)) >= swaps
    assert [text for reader in readers for text in reader.wrong] == []
    assert all(reader.seen[ALL_ROWS] for reader in readers), [reader.line() for reader in readers]
