"""What is found among all tables of a metastore, of which there may be a hundred thousand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper import names
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import orphans
from hivekeeper.plan.orphans import Reading
from hivekeeper.plan.own_place import Homes
from hivekeeper.runlog.run_files import is_inside
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


HOME = "hdfs://nn1/w/sales.db"
PLACES = st.builds(
    "".join,
    st.tuples(
        st.sampled_from([HOME, "hdfs://nn1", "hdfs://nn2/w/sales.db"]),
        st.sampled_from(["", "/gone", "/.hivekeeper-gone", "/gon", "/g0"]),
        st.sampled_from(["", "/x", "/*", "0", "/a[7]/b"]),
    ),
)


@given(st.lists(st.tuples(PLACES, st.none() | PLACES, st.booleans()), max_size=5))
def test_what_touches_a_control_directory_is_what_a_look_at_all_would_find(told):
    gone = replace(a_table(name="gone"), location=f"{HOME}/gone")
    control = ControlPaths.of(gone.location, partitioned=False)
    tables = []
    for nth, (location, path, is_backup) in enumerate(told):
        of_spark = {names.SPARK_PROVIDER: "parquet"} if path else {}
        marks = names.backup_marks(f"sales.t{nth}", "sales.gone") if is_backup else {}
        storage = replace(a_table().storage, serde_parameters={"path": path} if path else {})
        one = a_table(name=f"t{nth}", parameters={**of_spark, **marks}, storage=storage)
        tables.append(replace(one, location=location))
    expected = next((one.full_name for one in tables if not one.backup_of and touches(one, control.top, gone.location)), None)
    found = orphans.why_shared(["sales.gone@5"], gone, control, [Reading(tables)], Homes({}))
    assert (found.what.partition(" ")[0] if found else None) == expected


def touches(one, *directories):
    around = names.before_pattern(one.location)
    return any(is_inside(directory, around) or any(is_inside(place, directory) for place in one.places) for directory in directories)


@given(st.lists(PLACES, max_size=6), PLACES)
def test_what_lies_below_a_directory_on_whatever_server_is_what_a_look_at_all_would_find(places, directory):
    tables = [replace(a_table(name=f"t{nth}"), location=place) for nth, place in enumerate(places)]
    expected = [one for one in tables if is_inside(path_of(names.before_pattern(one.location)), path_of(directory))]
    assert Reading(tables).below(directory) == expected


def path_of(place):
    return place[len(names.server_of(place)) :]


class Placed(Table):
    """A table that counts how often somebody asks for its places."""

    asked = 0

    @property
    def places(self):
        Placed.asked += 1
        return super().places


def test_nor_for_each_control_directory_that_may_be_shared():
    tables = [Placed("sales", f"t{nth}", "MANAGED_TABLE", f"{HOME}/t{nth}", a_table().storage, ()) for nth in range(1000)]
    readings, Placed.asked = [Reading(tables)], 0
    for nth in range(100):
        gone = replace(a_table(name=f"gone{nth}"), location=f"{HOME}/gone{nth}")
        control = ControlPaths.of(gone.location, partitioned=False)
        assert orphans.why_shared([f"sales.gone{nth}@5"], gone, control, readings, Homes({})) is None
    assert Placed.asked <= 2 * len(tables)
