"""What the metastore and its twin both do; then what only the real one can show, with Hive's and Spark's own code as judges."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace
from typing import Any, Iterator, Mapping, Optional, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivekeeper import quoting
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.metastore import HiveMetastore, analyze_statements
from hivekeeper.cluster.session import guard_session
from hivekeeper.errors import Unusable
from hivekeeper.model import Column, Partition, Table
from hivekeeper.seams import Metastore, MetastoreUnavailable
from twins.files import FakeFiles, Killed
from twins.metastore import PARQUET, FakeMetastore

COLUMNS = (Column("id", "int"), Column("v", "string"))
BY_DT = (Column("dt", "string"),)
NASTY = ("it's", 'a"b', "a`b", "a\\b", "F R", " x ", "a/b", "a%2Fb", "12:30", "a=b", "été 日本", "[x]{y}^*?#", "${env:HOME}", "\\'", "A")
STATS = {"numRows": "7", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true"}}', "rawDataSize": "70", "mine": "x"}
DATABASES = itertools.count()


@dataclass
class TwinWorld:
    """Other people's changes, made in the twin's catalog."""

    metastore: FakeMetastore
    files: FakeFiles
    database: str
    root: str = "hdfs://nn/warehouse"

    def add_table(self, name: str, partitioned: bool = True, location: str = "") -> Table:
        storage = PARQUET
        location = location or f"{self.root}/{name}"
        table = Table(self.database, name, "EXTERNAL_TABLE", location, storage, COLUMNS, BY_DT if partitioned else ())
        self.metastore.catalog.add_table(table)
        return table

    def drop_table(self, table: Table) -> None:
        self.metastore.catalog.drop_table(table.full_name)

    def drop_partition(self, table: Table, name: str) -> None:
        self.metastore.catalog.drop_partition(table.full_name, name)

    def set_parameters(self, table: Table, name: str, parameters: Mapping[str, str]) -> None:
        catalog = self.metastore.catalog
        if name:
            catalog.put_partition(table.full_name, replace(catalog.partitions[table.full_name][name], parameters=parameters))
        else:
            catalog.put_table(replace(catalog.tables[table.full_name], parameters=parameters))

    def exists(self, location: str) -> bool:
        return self.files.look([location])[location].exists

    def another_client(self) -> Metastore:
        return FakeMetastore(self.files.another_client(), self.metastore.catalog)

    def make_lock_tables(self) -> None:
        self.metastore.catalog.has_locks = True

    def drop_lock_tables(self) -> None:
        self.metastore.catalog.has_locks = False


class RealWorld:
    """Other people's changes, made by Spark's SQL and a client of their own."""

    def __init__(self, gateway: Gateway, database: str, root: str) -> None:
        self.gateway, self.database, self.root = gateway, database, root
        self.metastore = HiveMetastore(gateway)
        jvm = gateway.jvm
        self.hive = jvm.org.apache.hadoop.hive
        self.conf = self.hive.conf.HiveConf(gateway.hadoop_conf, jvm.java.lang.Class.forName("org.apache.hadoop.hive.conf.HiveConf"))
        url = "javax.jdo.option.ConnectionURL"
        for key, value in ((url, gateway.hadoop_conf.get(url)), ("hive.metastore.schema.verification", "false")):
            self.conf.set(key, value)
        self.client = self.hive.metastore.HiveMetaStoreClient(self.conf)
        gateway.spark.sql(f"CREATE DATABASE {database} LOCATION '{root}'")

    def add_table(self, name: str, partitioned: bool = True, location: str = "") -> Table:
        by = "PARTITIONED BY (dt string)" if partitioned else ""
        location = location or f"{self.root}/{name}"
        what = f"EXTERNAL TABLE {self.database}.{name} (id int, v string) {by}"
        self.gateway.spark.sql(f"CREATE {what} STORED AS PARQUET LOCATION '{location}'")
        return self.metastore.tables(self.database, [name])[name]

    def drop_table(self, table: Table) -> None:
        self.gateway.spark.sql(f"DROP TABLE {table.full_name}")

    def drop_partition(self, table: Table, name: str) -> None:
        self.client.dropPartition(table.database, table.name, name, False)

    def set_parameters(self, table: Table, name: str, parameters: Mapping[str, str]) -> None:
        stored = self._stored(table, name)
        stored.setParameters(self.gateway.jvm.java.util.HashMap(dict(parameters)))
        if name:
            self.client.alter_partition(table.database, table.name, stored, self._keep_statistics())
        else:
            self.client.alter_table_with_environmentContext(table.database, table.name, stored, self._keep_statistics())

    def _stored(self, table: Table, name: str) -> Any:
        return self.client.getPartition(table.database, table.name, name) if name else self.client.getTable(table.database, table.name)

    def _keep_statistics(self) -> Any:
        return self.hive.metastore.api.EnvironmentContext(self.gateway.jvm.java.util.HashMap({"DO_NOT_UPDATE_STATS": "true"}))

    def exists(self, location: str) -> bool:
        path = self.gateway.jvm.org.apache.hadoop.fs.Path(location)
        return bool(path.getFileSystem(self.gateway.hadoop_conf).exists(path))

    def another_client(self) -> Metastore:
        return HiveMetastore(Gateway(self.gateway.spark))

    def make_lock_tables(self) -> None:
        self.hive.metastore.txn.TxnDbUtil.prepDb(self.conf)

    def drop_lock_tables(self) -> None:
        self.hive.metastore.txn.TxnDbUtil.cleanDb(self.conf)


@pytest.fixture(params=["twin", "real"])
def world(request: pytest.FixtureRequest) -> Any:
    if request.param == "real":
        return request.getfixturevalue("real")
    files = FakeFiles()
    found = TwinWorld(FakeMetastore(files), files, "contract")
    found.metastore.catalog.databases.add(found.database)
    return found


@pytest.fixture
def real(gateway: Gateway, tmp_path: Any) -> Iterator[RealWorld]:
    found = RealWorld(gateway, f"contract_{next(DATABASES)}", f"file:{tmp_path}")
    yield found
    gateway.spark.sql(f"DROP DATABASE {found.database} CASCADE")
    found.client.close()


def partition_of(table: Table, value: str, parameters: Optional[Mapping[str, str]] = None, location: str = "") -> Partition:
    name = quoting.partition_name(["dt"], [value])
    return Partition(name, (value,), location or f"{table.location}/{name}", table.storage, parameters or {})


def add_partitions(world: Any, table: Table, values: Sequence[str]) -> None:
    for value in values:
        assert world.metastore.add_partition(table, partition_of(table, value))


def without_time(parameters: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in parameters.items() if key != "transient_lastDdlTime"}


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


def test_no_names_ask_for_no_tables(world):
    assert world.metastore.tables(world.database, []) == {}


# ---- partitions


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


def test_sizes_of_an_unpartitioned_table_are_set_and_all_else_is_kept(world):
    table = world.add_table("plain", partitioned=False)
    stored = {**table.parameters, **STATS, "numFiles": "900", "totalSize": "12345", "EXTERNAL": "TRUE"}
    world.set_parameters(table, "", stored)
    world.metastore.update_sizes(table, {"": (2, 1000)}, {"": table.location})
    found = world.metastore.tables(world.database, ["plain"])["plain"]
    assert without_time(found.parameters) == without_time({**stored, "numFiles": "2", "totalSize": "1000"})
    assert replace(found, parameters={}) == replace(table, parameters={})


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
    world.drop_lock_tables()
    with world.metastore.hold(world.add_table("events"), 1) as reason:
        assert "Unable to update transaction database" in reason


def test_a_timeout_of_zero_asks_for_no_lock(with_locks):
    table = with_locks.add_table("events")
    with with_locks.metastore.hold(table, 0) as reason, with_locks.another_client().hold(table, 1) as reason_of_other:
        assert (reason, reason_of_other) == ("it was not asked for", "")


# ---- tables that share directories


def test_tables_at_above_and_below_a_location_are_named_and_neighbours_are_not(world):
    for name, below in (("at", "x/y"), ("above", "x"), ("inside", "x/y/z"), ("beside", "x/y2"), ("far", "q")):
        world.add_table(name, location=f"{world.root}/{below}")
    asked = [f"{world.root}/x/y", f"{world.root}/q/"]
    found = world.metastore.locations_below(asked, world.database)
    touching = tuple(f"{world.database}.{name}" for name in ("above", "at", "inside"))
    assert found == {asked[0]: touching, asked[1]: (f"{world.database}.far",)}
    assert world.metastore.locations_below(asked) == found


# ---- the twin only


@pytest.mark.parametrize(("steps", "changed"), [(0, False), (1, True)])
def test_a_kill_falls_before_or_after_a_change_and_the_killed_client_does_nothing_more(steps, changed):
    files = FakeFiles()
    world = TwinWorld(FakeMetastore(files), files, "contract")
    table = world.add_table("events")
    files.die_after(steps)
    with pytest.raises(Killed):
        world.metastore.add_partition(table, partition_of(table, "a"))
    with pytest.raises(Killed):
        world.metastore.partitions(table)
    assert ("dt=a" in world.metastore.catalog.partitions[table.full_name]) is changed


def test_an_injected_failure_comes_with_or_without_its_effect():
    files = FakeFiles()
    world = TwinWorld(FakeMetastore(files), files, "contract")
    table = world.add_table("events")
    for value, done in (("a", False), ("b", True)):
        world.metastore.fail_next("add_partition", MetastoreUnavailable("connection lost"), done=done)
        with pytest.raises(MetastoreUnavailable):
            world.metastore.add_partition(table, partition_of(table, value))
    assert [partition.name for partition in world.metastore.partitions(table)] == ["dt=b"]


# ---- the real one only


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
        before = real._stored(table, name).getParameters().get("COLUMN_STATS_ACCURATE")
        real.metastore.update_sizes(table, {name: (2, 1000)})
        after = real._stored(table, name).getParameters()
        assert (after.get("COLUMN_STATS_ACCURATE"), after.get("totalSize")) == (before, "1000")
        assert '"id":"true"' in before
        if name:
            kept = real.client.getPartitionColumnStatistics(table.database, table.name, listed([name]), listed(["id"])).get(name)
        else:
            kept = real.client.getTableColumnStatistics(table.database, table.name, listed(["id"]))
        assert kept.get(0).getStatsData().getLongStats().getNumDVs() == 5


def test_the_hive_lock_is_kept_alive_by_heartbeats(real):
    def find_locks() -> Any:
        return real.client.showLocks(real.hive.metastore.api.ShowLocksRequest()).getLocks()

    def has_beaten() -> bool:
        lock = find_locks().get(0)
        return bool(lock.getLastheartbeat() > lock.getAcquiredat())

    real.make_lock_tables()
    try:
        with real.metastore.hold(real.add_table("events"), 1):
            end = time.monotonic() + 30
            while not has_beaten() and time.monotonic() < end:
                time.sleep(0.1)
            assert has_beaten()
        assert find_locks().isEmpty()
    finally:
        real.drop_lock_tables()


def test_every_character_is_escaped_as_hive_does(gateway):
    hive = gateway.jvm.org.apache.hadoop.hive.common.FileUtils
    text = "".join(map(chr, range(0x250))) + "日😀"
    assert quoting.escape(text) == str(hive.escapePathName(text))
    assert quoting.unescape(quoting.escape(text)) == str(hive.unescapePathName(hive.escapePathName(text)))


@pytest.mark.parametrize("value", [*NASTY, quoting.HIVE_NULL, ""])
def test_a_partition_name_is_the_one_that_hive_makes(gateway, value):
    name = gateway.jvm.org.apache.hadoop.hive.common.FileUtils.makePartName(["DT", "ref"], [value, "x"])
    assert quoting.partition_name(["DT", "ref"], [value, "x"]) == str(name)


@given(texts=st.lists(st.text(st.characters(blacklist_categories=["Cs"])), min_size=1, max_size=20))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_spark_reads_back_every_literal_and_identifier(guarded, texts):
    texts = [*texts, *NASTY, "\\%", "\\_", "\\u0041", "\\101", "a;--", "\n"]
    columns = ", ".join(f"{quoting.literal(text)} AS {quoting.identifier(f'{number}{text}')}" for number, text in enumerate(texts))
    found = guarded.sql(f"SELECT {columns}")
    assert found.columns == [f"{number}{text}" for number, text in enumerate(texts)]
    assert list(found.first()) == texts


@pytest.fixture(scope="module")
def guarded(spark: Any) -> Any:
    session = spark.newSession()
    guard_session(session)
    return session


def test_statistics_are_computed_for_partitions_of_any_value_and_the_table(real, guarded):
    table = real.add_table("events")
    values = ("it's a\\b/c%2Fd", "${env:HOME}")
    rows = ", ".join(f"(1, 'v', {literal})" for literal in [*map(quoting.literal, values), "NULL"])
    guarded.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    guarded.sql(f"INSERT INTO {table.full_name} VALUES {rows}")
    names = {partition.values[0]: partition.name for partition in real.metastore.partitions(table)}
    assert set(names) == {*values, quoting.HIVE_NULL}
    real.metastore.analyze(table, names.values())
    rows = "spark.sql.statistics.numRows"
    counted = {partition.values[0]: partition.parameters.get(rows) for partition in real.metastore.partitions(table)}
    assert counted == dict.fromkeys(names, "1")
    assert real.metastore.tables(table.database, [table.name])[table.name].parameters[rows] == str(len(values) + 1)


def test_statistics_are_computed_where_spark_spells_a_partition_column_in_upper_case(real):
    spark = real.gateway.spark
    spark.sql(f"CREATE TABLE {real.database}.loud (id int, DT string) USING parquet PARTITIONED BY (DT) LOCATION '{real.root}/loud'")
    spark.sql(f"INSERT INTO {real.database}.loud VALUES (1, 'A')")
    table = real.metastore.tables(real.database, ["loud"])["loud"]
    real.metastore.analyze(table, ["dt=A"])
    (found,) = real.metastore.partitions(table)
    assert found.parameters["spark.sql.statistics.numRows"] == "1"


def test_from_a_null_on_analyze_names_columns_without_a_value():
    table = Table("d", "t", "EXTERNAL_TABLE", "", PARQUET, COLUMNS, (*BY_DT, Column("ref", "string"), Column("h", "string")))
    found = analyze_statements(table, [f"dt=x/ref={quoting.HIVE_NULL}/h=1", f"dt=x/ref={quoting.HIVE_NULL}/h=2"])
    target = "ANALYZE TABLE `spark_catalog`.`d`.`t`"
    assert found == [f"{target} PARTITION (`dt`='x', `ref`, `h`) COMPUTE STATISTICS", f"{target} COMPUTE STATISTICS"]


def test_analyze_of_a_dropped_table_is_an_error_of_the_metastore(real):
    table = real.add_table("events")
    real.drop_table(table)
    with pytest.raises(MetastoreUnavailable, match="events"):
        real.metastore.analyze(table, [])


def test_many_partitions_cost_as_many_gateway_calls_as_few(real):
    def calls_for(name: str, count: int) -> int:
        table = real.add_table(name)
        spec = " ".join(f"PARTITION (dt='{number:04d}')" for number in range(count))
        real.gateway.spark.sql(f"ALTER TABLE {table.full_name} ADD {spec}")
        before = real.gateway.calls
        lives = {partition.name: partition.location for partition in real.metastore.partitions(table)}
        real.metastore.update_sizes(table, dict.fromkeys(lives, (1, 1)), lives)
        assert len(real.metastore.partitions_named(table, list(lives))) == count
        real.metastore.locations_below(list(lives.values()), real.database)
        return int(real.gateway.calls - before)

    # The second time the database's table locations are known already.
    assert calls_for("few", 5) == calls_for("many", 100) + 1


def test_a_metastore_that_does_not_answer_is_unusable_with_a_next_step(gateway):
    elsewhere = Gateway(gateway.spark)
    elsewhere.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    elsewhere.hadoop_conf.set("hive.metastore.uris", "thrift://127.0.0.1:1")
    elsewhere.hadoop_conf.set("hive.metastore.connect.retries", "1")
    elsewhere.hadoop_conf.set("hive.metastore.client.connect.retry.delay", "0")
    with pytest.raises(Unusable, match="does not answer") as raised:
        HiveMetastore(elsewhere)
    assert "hive.metastore.uris" in raised.value.next
