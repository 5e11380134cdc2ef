import pytest

from hivekeeper.plan import own_place
from hivekeeper.reasons import Code, Reason
from support.builders import ROOT, a_table, a_unit


def test_partitions_that_share_or_nest_directories_are_refused_and_others_are_not():
    units = [
        a_unit("dt=1", f"{ROOT}/a"),
        a_unit("dt=2", f"{ROOT}/a"),
        a_unit("dt=3", f"{ROOT}/b"),
        a_unit("dt=4", f"{ROOT}/b/c"),
        a_unit("dt=5", f"{ROOT}/bc"),
    ]
    found = own_place.find_shared_locations(units)
    assert {name: (reason.code, reason.what.split()[-1]) for name, reason in found.items()} == {
        "dt=1": (Code.SHARED_DIRECTORY, "dt=2"),
        "dt=2": (Code.SHARED_DIRECTORY, "dt=1"),
        "dt=3": (Code.SHARED_DIRECTORY, "dt=4"),
        "dt=4": (Code.SHARED_DIRECTORY, "dt=3"),
    }


@pytest.mark.parametrize("inner", ["a/b", "a/b{}", "a/{}/c"])
def test_many_partitions_around_many_others_are_judged_one_by_one(monkeypatch, inner):
    """A reason for each pair would take hours."""
    made, make = [], Reason
    monkeypatch.setattr(own_place, "Reason", lambda *values: made.append(values) or make(*values))
    units = [a_unit(f"dt={n}", f"{ROOT}/a") for n in range(500)]
    units += [a_unit(f"dt={n}", f"{ROOT}/{inner.format(n)}") for n in range(500, 1000)]
    found = own_place.find_shared_locations(units)
    assert len(found) == len(units)
    assert len(made) <= 3 * len(units)


def test_partitions_inside_one_another_are_all_refused():
    places = ["a", "a/b", "a/b/c", "a/b-x", "a-x", "a/d", "b", "b.c/d"]
    found = own_place.find_shared_locations([a_unit(f"dt={place}", f"{ROOT}/{place}") for place in places])
    assert {name.partition("=")[2]: reason.what.partition(" directory ")[2] for name, reason in found.items()} == {
        "a": "contains that of dt=a/b-x",
        "a/b": "lies inside that of dt=a",
        "a/b/c": "lies inside that of dt=a/b",
        "a/b-x": "lies inside that of dt=a",
        "a/d": "lies inside that of dt=a",
    }


HOMES = {"default": "hdfs://nn/w", "sales": "hdfs://nn/w/sales.db", "fin": "hdfs://nn/w/fin.db", "shared": "hdfs://nn/w/sales.db"}


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("hdfs://nn/w/sales.db/events", ""),
        ("hdfs://nn/w/sales.db", ""),
        ("hdfs://nn/data/events", ""),
        ("hdfs://other/w/fin.db/events", ""),
        ("hdfs://nn/w/fin.db/events", "fin"),
        ("hdfs://nn/w/fin.db", "fin"),
        ("hdfs://nn/w/fin.db.old/events", "default"),
        ("hdfs://nn/w/events", "default"),
        ("hdfs://nn", "default"),
    ],
)
def test_a_table_in_or_around_the_directory_of_another_database_is_refused_and_the_innermost_counts(location, named):
    reason = own_place.refuse_home(a_table(location=location), own_place.Homes(HOMES))
    assert (reason.code if reason else None) is (Code.SHARED_DIRECTORY if named else None)
    assert not named or f"database {named} ({HOMES[named]})" in reason.what


@pytest.mark.parametrize("place", ["hdfs://nn/w/sales.db", "hdfs://nn/w/sales.db/events", "hdfs://nn/w/sales.db/events/x"])
@pytest.mark.parametrize("home", ["hdfs://nn/w/sales.db", "hdfs://nn/w/sales.db/events", "hdfs://nn/w/sales.db/events/x"])
def test_so_is_one_in_or_around_that_of_the_catalogue_whatever_its_own_database_has(place, home):
    homes = own_place.Homes({"sales": home}, place)
    assert "the catalogue (" in own_place.refuse_home(a_table(location="hdfs://nn/w/sales.db/events"), homes).what


def test_the_directories_of_many_databases_are_not_gone_through_for_each_table(monkeypatch):
    homes = own_place.Homes({f"db{number}": f"hdfs://nn/w/db{number}.db" for number in range(1000)})
    compared, is_below = [], own_place.is_below
    monkeypatch.setattr(own_place, "is_below", lambda *places: compared.append(places) or is_below(*places))
    assert own_place.refuse_home(a_table(location="hdfs://nn/w/events"), homes) is None
    assert own_place.refuse_home(a_table(location="hdfs://nn/w"), homes) is not None
    assert len(compared) <= 10
