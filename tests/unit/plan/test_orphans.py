"""What is found among all tables of a metastore, of which there may be a hundred thousand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.plan import orphans
from hivekeeper.plan.orphans import Reading
from support.builders import a_table

SECONDS = st.integers(0, 5)
TABLES = st.lists(st.tuples(SECONDS, st.booleans()), max_size=6)


def read(told, database):
    tables = [a_table(name=f"t{nth}", create_time=second) for nth, (second, _) in enumerate(told)]
    return [replace(one, database=database, unreadable="x" if unreadable else "") for one, (_, unreadable) in zip(tables, told)]


@given(TABLES, TABLES, st.lists(SECONDS, min_size=1, max_size=4))
def test_the_table_that_is_named_is_the_first_that_a_look_at_all_would_find(newer, older, seconds):
    tables = [*read(newer, "newer"), *read(older, "older")]
    readings = [Reading(tables[: len(newer)]), Reading(tables[len(newer) :])]
    ids = [f"sales.gone@{second}" for second in seconds]
    of_second = [table.full_name for table in tables if table.create_time in seconds]
    undated = [table.full_name for table in tables if table.unreadable and not table.create_time]
    why = orphans.why_perhaps_there(ids, readings)
    assert orphans.is_of_second(ids, readings) is bool(of_second)
    if 0 in seconds:
        assert why == orphans.UNDATED
    elif of_second:
        assert why.startswith(f"{of_second[0]} was created in the same second")
    elif undated:
        assert why.startswith(f"the metastore does not say when {undated[0]} was created")
    else:
        assert why == ("" if tables else "the metastore has no table at all: is it the right one?")


@dataclass
class Watched:
    """A table that counts how often somebody looks when it was created."""

    second: int
    looks: int = 0
    unreadable: str = ""

    @property
    def create_time(self):
        self.looks += 1
        return self.second


@pytest.mark.parametrize("questions", [1, 100])
def test_not_all_tables_are_gone_through_for_each_that_is_looked_for(questions):
    tables = [Watched(second) for second in range(1, 1001)]
    readings = [Reading(tables)]
    for nth in range(questions):
        assert orphans.why_perhaps_there([f"sales.gone@{2000 + nth}"], readings) == ""
    assert sum(one.looks for one in tables) == 1000
