"""What the metastore and its fake both do with tables, partitions, sizes and locks; then what only the real one shows."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any, Iterator, List

import pytest

from hivekeeper import quoting
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_errors import Cause, metastore_error
from hivekeeper.cluster.metastore import HiveMetastore
from hivekeeper.errors import Unusable
from hivekeeper.model import Table
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable
from support.fakes.metastore import PARQUET
from support.metastore_worlds import BY_DT, COLUMNS, NASTY, STATS, add_partitions, find, let_fail, let_forget, partition_of, without_time
from support.storage import local_only

# ---- tables


def test_an_unknown_database_is_a_key_error(world):
    with pytest.raises(KeyError):
        world.metastore.table_names("no_such_database")


def test_a_database_without_tables_has_no_names(world):
    assert world.metastore.table_names(world.database) == ()
    assert world.database in world.metastore.databases()


def test_tables_come_back_as_stored_and_a_missing_one_is_left_out(world):
    world.add_table("plain", partitioned=False)
    world.add_table("events")
    assert world.metastore.table_names(world.database) == ("events", "plain")
    found = world.metastore.tables(world.database, ["plain", "missing", "EVENTS"])
    assert list(found) == ["events", "plain"]
    events = found["events"]
    assert (events.database, events.name, events.kind) == (world.database, "events", "EXTERNAL_TABLE")
    assert events.location == f"{world.root}/events"
    assert (events.columns, events.partition_columns) == (COLUMNS, BY_DT)
    assert (events.storage, events.buckets, events.bucket_columns) == (PARQUET, -1, ())
    assert not found["plain"].partitioned


def test_tables_of_a_missing_database_are_missing_too(world):
    world.add_table("events")
    assert world.metastore.tables("no_such_database", ["events"]) == {}


def test_no_names_ask_for_no_tables(world):
    assert world.metastore.tables(world.database, []) == {}


@local_only
def test_the_names_of_all_databases_are_not_asked_for_each_database(real):
    """Those of ten thousand databases are half a megabyte, ten thousand times."""
    empty = real.add_database()
    real.add_table("events")
    let_fail(real, lambda: True, "getAllDatabases")
    assert (real.metastore.table_names(real.database), real.metastore.table_names(empty)) == (("events",), ())
    assert real.metastore.table_names(real.database.upper()) == ("events",)


@pytest.mark.parametrize("name", ["{}*", "{}|x", " {}", "@hive#{}", ""])
def test_what_only_finds_a_database_as_a_pattern_is_none(real, name):
    with pytest.raises(KeyError):
        real.metastore.table_names(name.format(real.database))


def test_a_database_whose_name_is_like_that_of_another_is_none(real):
    assert "_" in real.database
    with pytest.raises(KeyError):
        real.metastore.table_names(f"{real.database[:-1]}_")


# ---- partitions


def test_a_partition_says_what_its_own_definition_promises_of_its_files(world):
    """ALTER TABLE … NOT CLUSTERED changes none of the partitions that were loaded before."""
    table = world.add_table("events")
    layouts = {"dt=a": "", "dt=b": "bucketed", "dt=c": "sorted", "dt=d": "skewed"}
    add_partitions(world, table, ["a", "b", "c", "d"])
    for name, layout in layouts.items():
        if layout:
            world.promise(table, name, layout)
    assert {one.name: one.storage.layout for one in world.metastore.partitions(table)} == layouts
    named = world.metastore.partitions_named(table, list(layouts))
    assert {name: one.storage.layout for name, one in named.items()} == layouts
    assert world.metastore.tables(table.database, [table.name])[table.name].buckets <= 0
    # A metastore 3.1 on PostgreSQL cannot drop a table with such a partition (SKEWED_STRING_LIST_VALUES.STRING_LIST_ID, not quoted).
    world.promise(table, "dt=d", "")


@local_only
def test_a_partition_whose_name_another_one_gets_while_many_are_read_is_not_missing(real):
    """Above a hundred there are several requests, between which an hour may pass: as many come as were named."""
    table, java = real.add_table("events"), real.gateway.jvm.java.util
    add_partitions(real, table, ["000", "a"])
    stored = real.stored(table, "dt=000")

    def with_value(value: str, location: str) -> Any:
        one = stored.deepCopy()
        one.setValues(java.ArrayList([value]))
        one.getSd().setLocation(location)
        return one

    real.client.add_partitions(java.ArrayList([with_value(f"{number:03}", f"{table.location}/{number}") for number in range(1, 110)]))
    batches = [0]

    def act() -> None:
        batches[0] += 1
        # The one with `a` comes in the second batch.
        if batches[0] == 2:
            real.rename_partition(table, "dt=a", "dt=b")
            real.client.add_partition(with_value("a", f"{table.location}/another"))

    real.let_act(act, "getPartitionsByNames")
    assert {f"{table.location}/another", f"{table.location}/dt=a"} <= set(places_of(real, table))


def test_partitions_come_back_ordered_by_name_with_any_value(world):
    table = world.add_table("events")
    add_partitions(world, table, NASTY)
    expected = sorted((partition_of(table, value) for value in NASTY), key=lambda partition: partition.name)
    found = world.metastore.partitions(table)
    assert [replace(partition, parameters={}) for partition in found] == expected


def test_the_partition_of_null_goes_by_its_name(world):
    table = world.add_table("events")
    add_partitions(world, table, [quoting.HIVE_NULL])
    (found,) = world.metastore.partitions(table)
    assert (found.name, found.values) == ("dt=__HIVE_DEFAULT_PARTITION__", (quoting.HIVE_NULL,))


def test_an_empty_value_stays_empty_and_takes_the_name_of_null(world):
    table = world.add_table("events")
    add_partitions(world, table, [""])
    (found,) = world.metastore.partitions(table)
    assert (found.name, found.values) == ("dt=__HIVE_DEFAULT_PARTITION__", ("",))
    assert not world.metastore.add_partition(table, partition_of(table, quoting.HIVE_NULL))


@pytest.mark.parametrize("seen", [{"owner": "mallory"}, {"create_time": 1}], ids=["owner", "time"])
def test_no_partition_comes_back_to_another_table_that_has_the_name_by_now(world, seen):
    table = world.add_table("events")
    with pytest.raises(MetastoreRefused, match="another table by now"):
        world.metastore.add_partition(replace(table, **seen), partition_of(table, "a"))
    assert world.metastore.partitions(table) == ()


def test_a_partition_comes_back_to_a_table_that_has_moved(world):
    table = world.add_table("events")
    assert world.metastore.add_partition(replace(table, location=f"{world.root}/elsewhere"), partition_of(table, "a"))


def test_an_unpartitioned_table_has_no_partitions(world):
    assert world.metastore.partitions(world.add_table("plain", partitioned=False)) == ()


def test_of_the_named_partitions_those_that_exist_come_back(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a", "b/c", "d"])
    assert list(world.metastore.partitions_named(table, ["dt=d", "dt=b%2Fc", "dt=no"])) == ["dt=b%2Fc", "dt=d"]
    assert world.metastore.partitions_named(table, []) == {}


def test_partitions_of_a_dropped_table_are_an_error_not_an_empty_answer(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    world.drop_table(table)
    for ask in (lambda: world.metastore.partitions(table), lambda: world.metastore.partitions_named(table, ["dt=a"])):
        with pytest.raises(MetastoreUnavailable):
            ask()


def places_of(world: Any, table: Table) -> List[str]:
    return [partition.location for partition in world.metastore.partitions(table)]


def test_a_partition_that_is_renamed_while_all_are_read_is_not_missing(world):
    """Their names are told first."""
    table, waiting = world.add_table("events"), [("dt=a", "dt=c"), ("dt=d", "dt=a")]
    for value in ("a", "b", "d"):
        world.metastore.add_partition(table, partition_of(table, value, location=f"{world.root}/at/{value}"))
    world.let_act(lambda: waiting and world.rename_partition(table, *waiting.pop(0)), "getPartitionsByNames")
    found = places_of(world, table)
    assert {f"{world.root}/at/{value}" for value in ("a", "b", "d")} <= set(found)
    assert not waiting


def test_a_partition_that_is_renamed_to_the_name_of_one_that_was_read_before_it_is_not_missing(world):
    """All are read a hundred at a time, then more."""
    table, waiting = world.add_table("events"), [(), (("dt=000", "dt=z"), ("dt=100", "dt=000"))]
    for number in range(101):
        value = f"{number:03}"
        world.metastore.add_partition(table, partition_of(table, value, location=f"{world.root}/at/{value}"))

    def act() -> None:
        for old, new in waiting.pop(0) if waiting else ():
            world.rename_partition(table, old, new)

    world.let_act(act, "getPartitionsByNames")
    found = places_of(world, table)
    assert {f"{world.root}/at/{number:03}" for number in range(101)} <= set(found)
    assert not waiting


def test_a_partition_that_takes_the_name_of_one_that_was_dropped_after_its_turn_is_not_missing(world):
    """As of a load that writes beside, drops and renames: no name is new."""
    table, waiting = world.add_table("events"), [False, True]
    for number in range(101):
        value = f"{number:03}"
        world.metastore.add_partition(table, partition_of(table, value, location=f"{world.root}/at/{value}"))

    def act() -> None:
        if waiting and waiting.pop(0):
            world.drop_partition(table, "dt=000")
            world.rename_partition(table, "dt=100", "dt=000")

    world.let_act(act, "getPartitionsByNames")
    found = world.metastore.partitions(table)
    assert f"{world.root}/at/100" in {one.location for one in found}
    assert len({one.values for one in found}) == len(found)
    assert not waiting


def test_a_partition_that_is_dropped_each_time_that_all_are_read_is_no_error(world):
    table, values = world.add_table("events"), list("abcdefghijklmnopqrstuvwxyz")
    add_partitions(world, table, [*values, "kept"])
    world.let_act(lambda: values and world.drop_partition(table, f"dt={values.pop()}"), "getPartitionsByNames")
    assert f"{table.location}/dt=kept" in places_of(world, table)


def test_partitions_that_are_renamed_each_time_that_all_are_read_are_an_error(world):
    table, number = world.add_table("events"), itertools.count()
    world.metastore.add_partition(table, partition_of(table, "0", location=f"{world.root}/at"))

    def rename() -> None:
        old = next(number)
        world.rename_partition(table, f"dt={old}", f"dt={old + 1}")

    world.let_act(rename, "getPartitionsByNames")
    with pytest.raises(MetastoreUnavailable, match="renamed each") as raised:
        world.metastore.partitions(table)
    # Nobody takes it for a table that is closed, and so is not looked at.
    assert not isinstance(raised.value, MetastoreRefused)


def test_partitions_that_are_dropped_or_added_while_all_are_read_are_no_error(world):
    table, other, values = world.add_table("events"), world.another_client(), [str(number) for number in range(100)]
    add_partitions(world, table, ["a", "b"])

    def act() -> None:
        if len(values) == 100:
            world.drop_partition(table, "dt=a")
        other.add_partition(table, partition_of(table, values.pop()))

    world.let_act(act, "getPartitionsByNames")
    assert f"{table.location}/dt=b" in places_of(world, table)


def test_many_partitions_cost_as_many_gateway_calls_as_few(real):
    # The locations of all tables, which are read once.
    real.metastore.locations_below([])

    def calls_for(name: str, count: int) -> int:
        table = real.add_table(name)
        spec = " ".join(f"PARTITION (dt='{number:04d}')" for number in range(count))
        real.gateway.spark.sql(f"ALTER TABLE {table.full_name} ADD {spec}")
        before = real.gateway.calls
        lives = {partition.name: partition.location for partition in real.metastore.partitions(table)}
        real.metastore.update_sizes(table, dict.fromkeys(lives, (1, 1)), lives)
        assert len(real.metastore.partitions_named(table, list(lives))) == count
        real.metastore.locations_below(list(lives.values()))
        return int(real.gateway.calls - before)

    assert calls_for("few", 5) == calls_for("many", 100)


# ---- sizes


def test_sizes_of_partitions_are_set_and_all_else_is_kept(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a", "it's/b", "c"])
    stored = {**STATS, "numFiles": "900", "totalSize": "12345"}
    for name in ("dt=a", "dt=it%27s%2Fb"):
        world.set_parameters(table, name, stored)
    untouched = world.metastore.partitions_named(table, ["dt=c"])
    world.metastore.update_sizes(table, {"dt=a": (2, 1000), "dt=it%27s%2Fb": (3, 1 << 40)})
    found = world.metastore.partitions_named(table, ["dt=a", "dt=it%27s%2Fb"])
    assert without_time(found["dt=a"].parameters) == {**stored, "numFiles": "2", "totalSize": "1000"}
    assert without_time(found["dt=it%27s%2Fb"].parameters) == {**stored, "numFiles": "3", "totalSize": str(1 << 40)}
    assert world.metastore.partitions_named(table, ["dt=c"]) == untouched


def test_what_a_metastore_leaves_out_of_many_partitions_is_not_lost_with_new_sizes(real):
    """Hive 4, and Cloudera's metastores, leave out what a pattern names: Impala's incremental statistics are hours of work."""
    table, key = real.add_table("events"), "impala_intermediate_stats_chunk0"
    add_partitions(real, table, ["a", "b"])
    for name in ("dt=a", "dt=b"):
        real.set_parameters(table, name, {**STATS, key: "of Impala"})
    let_forget(real, key)
    assert key not in real.metastore.partitions_named(table, ["dt=a"])["dt=a"].parameters
    real.metastore.update_sizes(table, {"dt=a": (2, 1000), "dt=b": (3, 2000), "dt=gone": (1, 1)})
    stored = {name: real.stored(table, name).getParameters() for name in ("dt=a", "dt=b")}
    assert {name: (one.get("totalSize"), one.get(key)) for name, one in stored.items()} == {
        "dt=a": ("1000", "of Impala"),
        "dt=b": ("2000", "of Impala"),
    }


def test_sizes_of_an_unpartitioned_table_are_set_and_all_else_is_kept(world):
    table = world.add_table("plain", partitioned=False)
    stored = {**table.parameters, **STATS, "numFiles": "900", "totalSize": "12345", "EXTERNAL": "TRUE"}
    world.set_parameters(table, "", stored)
    world.metastore.update_sizes(table, {"": (2, 1000)}, {"": table.location}, {"": 60})
    found = world.metastore.tables(world.database, ["plain"])["plain"]
    assert without_time(found.parameters) == without_time({**stored, "numFiles": "2", "totalSize": "1000", "numRows": "60"})
    assert replace(found, parameters={}) == replace(table, parameters={})


def test_rows_are_set_where_they_are_given_and_no_other_number_of_them(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a", "b", "c"])
    known = {"numRows": "7", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    for value in "abc":
        world.set_parameters(table, f"dt={value}", {**known, **({"spark.sql.statistics.totalSize": "1"} if value == "b" else {})})
    world.metastore.update_sizes(table, dict.fromkeys(["dt=a", "dt=b", "dt=c"], (2, 1000)), rows={"dt=a": 1 << 40, "dt=b": 0})
    found = {partition.name: partition.parameters for partition in world.metastore.partitions(table)}
    assert [found[name]["numRows"] for name in found] == [str(1 << 40), "0", "7"]
    assert [found[name].get("spark.sql.statistics.numRows") for name in found] == [None, "0", None]
    assert {found[name]["COLUMN_STATS_ACCURATE"] for name in found} == {known["COLUMN_STATS_ACCURATE"]}


def test_sparks_own_size_follows_where_it_is_there(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    world.set_parameters(table, "dt=a", {"spark.sql.statistics.totalSize": "12345", "spark.sql.statistics.numRows": "7"})
    world.metastore.update_sizes(table, {"dt=a": (2, 1000)})
    parameters = world.metastore.partitions_named(table, ["dt=a"])["dt=a"].parameters
    assert parameters["spark.sql.statistics.totalSize"] == "1000"
    assert parameters["spark.sql.statistics.numRows"] == "7"


def test_a_partition_that_is_gone_or_lies_elsewhere_keeps_its_sizes_and_the_others_get_theirs(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a", "b", "c"])
    lives = {partition.name: partition.location for partition in world.metastore.partitions(table)}
    world.drop_partition(table, "dt=a")
    sizes = {"dt=a": (2, 1000), "dt=b": (2, 1000), "dt=c": (2, 1000)}
    world.metastore.update_sizes(table, sizes, {**lives, "dt=b": f"{world.root}/moved"})
    found = world.metastore.partitions_named(table, list(sizes))
    assert {name: partition.parameters.get("totalSize") == "1000" for name, partition in found.items()} == {"dt=b": False, "dt=c": True}


def test_an_unpartitioned_table_that_lies_elsewhere_keeps_its_sizes(world):
    table = world.add_table("plain", partitioned=False)
    world.metastore.update_sizes(table, {"": (2, 1000)}, {"": f"{world.root}/moved"})
    assert world.metastore.tables(world.database, ["plain"])["plain"] == table


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_table_that_gets_the_name_while_sizes_are_recorded_keeps_its_creation_time_alone(real, partitioned):
    """So a run that asks for the table afterwards knows that another one has the name. Cost: a known limit (docs/SECURITY.md)."""
    table = real.add_table("events", partitioned)
    # The metastore's times are in seconds.
    time.sleep(1.1)
    built = real.add_table("built_anew", partitioned)
    for one in (table, built) if partitioned else ():
        add_partitions(real, one, ["a"])

    def exchange() -> None:
        real.rename_table(table, "events_old")
        real.rename_table(built, "events")

    real.let_act(exchange, "alter_partitions" if partitioned else "alter_table_with_environmentContext")
    real.metastore.update_sizes(table, {"dt=a" if partitioned else "": (2, 1000)})
    found = find(real, f"{real.database}.events")
    assert found.create_time == built.create_time != table.create_time
    places = [one.location for one in real.metastore.partitions(found)] if partitioned else [found.location]
    assert all(place.startswith(table.location) for place in places)


def test_column_statistics_of_partitions_and_tables_survive_new_sizes(real):
    api = real.hive.metastore.api
    numbers = api.ColumnStatisticsData.longStats(api.LongColumnStatsData(0, 5))
    listed = real.gateway.jvm.java.util.ArrayList
    for table, name in ((real.add_table("events"), "dt=a"), (real.add_table("plain", partitioned=False), "")):
        about = api.ColumnStatisticsDesc(not name, table.database, table.name)
        if name:
            add_partitions(real, table, ["a"])
            about.setPartName(name)
        statistics = api.ColumnStatistics(about, listed([api.ColumnStatisticsObj("id", "int", numbers)]))
        (real.client.updatePartitionColumnStatistics if name else real.client.updateTableColumnStatistics)(statistics)
        before = real.stored(table, name).getParameters().get("COLUMN_STATS_ACCURATE")
        real.metastore.update_sizes(table, {name: (2, 1000)})
        after = real.stored(table, name).getParameters()
        assert (after.get("COLUMN_STATS_ACCURATE"), after.get("totalSize")) == (before, "1000")
        assert '"id":"true"' in before
        if name:
            kept = real.client.getPartitionColumnStatistics(table.database, table.name, listed([name]), listed(["id"])).get(name)
        else:
            kept = real.client.getTableColumnStatistics(table.database, table.name, listed(["id"]))
        assert kept.get(0).getStatsData().getLongStats().getNumDVs() == 5


def test_spark_takes_the_rows_that_were_set(real, guarded):
    """From Hive's numbers where it has no size of its own, from its own where it has."""
    table = real.add_table("events")
    guarded.sql(f"INSERT INTO {table.full_name} PARTITION (dt='a') VALUES (1, 'v'), (2, 'w')")
    guarded.sql(f"INSERT INTO {table.full_name} PARTITION (dt='b') VALUES (1, 'v')")
    guarded.sql(f"ANALYZE TABLE {table.full_name} PARTITION (dt='b') COMPUTE STATISTICS")
    real.metastore.update_sizes(table, {"dt=a": (1, 1000), "dt=b": (1, 2000)}, rows={"dt=a": 20, "dt=b": 10})

    def statistics_of(value):
        told = guarded.sql(f"DESCRIBE EXTENDED {table.full_name} PARTITION (dt='{value}')").where("col_name = 'Partition Statistics'")
        return told.collect()[0]["data_type"]

    assert [statistics_of(value) for value in "ab"] == ["1000 bytes, 20 rows", "2000 bytes, 10 rows"]


# ---- putting a partition back


def test_a_partition_is_put_back_as_it_was_but_for_column_statistics(world):
    table = world.add_table("events")
    record = partition_of(table, "a b", {**STATS, "numFiles": "9", "totalSize": "99"}, location=f"{world.root}/else where/x%2F")
    record = replace(record, storage=replace(table.storage, serde_parameters={"serialization.format": "1", "k": "v"}))
    assert world.metastore.add_partition(table, record)
    found = world.metastore.partitions_named(table, [record.name])[record.name]
    expected = {**record.parameters, "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    assert replace(found, parameters=without_time(found.parameters)) == replace(record, parameters=expected)
    assert world.exists(record.location)


def test_a_partition_that_exists_is_not_put_back_over_it(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    before = world.metastore.partitions(table)
    assert not world.metastore.add_partition(table, partition_of(table, "a", {"mine": "other"}))
    assert world.metastore.partitions(table) == before


@pytest.mark.parametrize("is_there", [True, False])
def test_a_directory_that_was_there_stays_if_a_partition_cannot_be_put_back(real, is_there):
    """The metastore deletes, by its path and with all in it, only what it has made for the request: a run puts back only what is there."""
    table = real.add_table("events")
    record = partition_of(table, "a", {"k" * 1000: "longer than the metastore can store"})
    if is_there:
        real.add_file(f"{record.location}/f")
    with pytest.raises(MetastoreUnavailable):
        real.metastore.add_partition(table, record)
    assert real.metastore.partitions(table) == ()
    assert real.exists(f"{record.location}/f") is is_there
    assert real.exists(record.location) is is_there


# ---- Hive's lock


@pytest.fixture
def with_locks(world: Any) -> Iterator[Any]:
    world.make_lock_tables()
    yield world
    world.drop_lock_tables()


def test_while_a_table_is_held_another_client_is_told_why_it_is_not(with_locks):
    table, other = with_locks.add_table("events"), with_locks.another_client()
    with with_locks.metastore.hold(table, 1) as reason:
        assert reason == ""
        with other.hold(table, 0.3) as reason_of_other:
            assert reason_of_other == "another holds Hive's lock on it"
    with other.hold(table, 1) as reason_after:
        assert reason_after == ""


def test_a_metastore_without_lock_tables_yields_the_reason(world):
    if world.is_remote:
        pytest.skip("a server's lock tables are made with its schema, and are in use")
    world.drop_lock_tables()
    with world.metastore.hold(world.add_table("events"), 1) as reason:
        assert "Unable to update transaction database" in reason


def test_a_timeout_of_zero_asks_for_no_lock(with_locks):
    table = with_locks.add_table("events")
    with with_locks.metastore.hold(table, 0) as reason, with_locks.another_client().hold(table, 1) as reason_of_other:
        assert (reason, reason_of_other) == ("it was not asked for", "")


def test_the_hive_lock_is_kept_alive_by_heartbeats(real):
    def find_locks() -> Any:
        ours = real.hive.metastore.api.ShowLocksRequest()
        ours.setDbname(real.database)
        return real.client.showLocks(ours).getLocks()

    def has_beaten() -> bool:
        lock = find_locks().get(0)
        return bool(lock.getLastheartbeat() > lock.getAcquiredat())

    real.make_lock_tables()
    try:
        with real.metastore.hold(real.add_table("events"), 1):
            end = time.monotonic() + 300
            while not has_beaten() and time.monotonic() < end:
                time.sleep(0.1)
            assert has_beaten()
        assert find_locks().isEmpty()
    finally:
        real.drop_lock_tables()


# ---- what Hive does if directories are missing, as modelled in tests/support/hive_statements.py


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "away"])
@pytest.mark.parametrize("is_managed", [True, False], ids=["managed", "external"])
def test_a_renamed_partition_takes_its_directory_along_only_where_it_is_there(world: Any, is_managed: bool, is_there: bool) -> None:
    """In the gap of a swap, the metastore is left with a location where nothing is."""
    table = world.add_managed_table("events") if is_managed else world.add_table("events")
    add_partitions(world, table, ["1"])
    old, new = f"{table.location}/dt=1", f"{table.location}/dt=9"
    if not is_there:
        world.take_away(old)
    world.rename_partition(table, "dt=1", "dt=9")
    (found,) = world.metastore.partitions(table)
    assert (found.name, found.values) == ("dt=9", ("9",))
    assert found.location == (new if is_managed else old)
    assert (world.exists(old), world.exists(new)) == (is_there and not is_managed, is_there and is_managed)


@pytest.mark.parametrize("is_managed", [True, False], ids=["managed", "external"])
def test_a_renamed_table_keeps_its_creation_time_and_takes_everything_in_it_along_where_it_is_managed(world: Any, is_managed: bool) -> None:
    table = world.add_managed_table("events") if is_managed else world.add_table("events")
    add_partitions(world, table, ["1"])
    world.add_file(f"{table.location}/.hivekeeper/_lock")
    world.rename_table(table, "events2")
    assert world.metastore.tables(table.database, ["events"]) == {}
    found = world.metastore.tables(table.database, ["events2"])["events2"]
    assert found.create_time == table.create_time
    assert found.location == (table.location + "2" if is_managed else table.location)
    assert [partition.location for partition in world.metastore.partitions(found)] == [f"{found.location}/dt=1"]
    assert world.exists(f"{found.location}/.hivekeeper")


def test_a_drop_of_a_partition_whose_directory_is_away_deletes_nothing_and_is_no_error(world: Any) -> None:
    table = world.add_managed_table("events")
    add_partitions(world, table, ["1"])
    world.take_away(f"{table.location}/dt=1")
    world.drop_with_files(table, "dt=1")
    assert world.metastore.partitions(table) == ()
    assert world.exists(f"{world.root}/aside")


# ---- what does not answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [("Invalid method name: 'get_table'", "another protocol version"), ("Internal error processing get_table", "its own log says why")],
)
def test_a_server_that_fails_inside_is_told_from_one_of_another_version(answer, said):
    found = metastore_error((Cause("org.apache.thrift.TApplicationException", answer),))
    assert isinstance(found, MetastoreUnavailable)
    assert said in str(found)
    assert answer in str(found)


def test_a_metastore_that_does_not_answer_is_unusable_with_a_next_step(gateway):
    elsewhere = Gateway(gateway.driver)
    elsewhere.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    elsewhere.hadoop_conf.set("hive.metastore.uris", "thrift://127.0.0.1:1")
    elsewhere.hadoop_conf.set("hive.metastore.connect.retries", "1")
    elsewhere.hadoop_conf.set("hive.metastore.client.connect.retry.delay", "0")
    with pytest.raises(Unusable, match="does not answer") as raised:
        HiveMetastore(elsewhere)
    assert "hive.metastore.uris" in raised.value.reason.next


def test_a_table_belongs_to_whoever_its_maker_says_and_may_be_given_to_anybody(real):
    """So that two tables have one owner proves nothing against somebody who makes a table in each second."""
    made = real.stored(real.add_table("events"), "").deepCopy()
    made.setTableName("mine")
    made.setOwner("finance")
    real.client.createTable(made)
    assert find(real, f"{real.database}.mine").owner == "finance"
    given = real.stored(find(real, f"{real.database}.events"), "")
    given.setOwner("finance")
    real.client.alter_table(real.database, "events", given)
    assert find(real, f"{real.database}.events").owner == "finance"
