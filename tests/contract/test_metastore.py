"""What the metastore and its fake both do; then what only the real one can show, judged by Hive's and Spark's own code."""

from __future__ import annotations

import itertools
import json
import os
import socket
import socketserver
import threading
import time
import tracemalloc
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivekeeper import names, ports, quoting
from hivekeeper.cluster import metastore as metastore_module
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_errors import Cause, metastore_error
from hivekeeper.cluster.metastore import HiveMetastore, Roots
from hivekeeper.cluster.session import guard_session
from hivekeeper.errors import Refused, Unusable
from hivekeeper.model import CatalogueTable, Column, Partition, Table
from hivekeeper.ports import Metastore, MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.steps.census import Census
from hivekeeper.steps.observe import qualify_all
from support.fakes.files import FakeFiles, Killed
from support.fakes.metastore import PARQUET, FakeMetastore
from support.hive_statements import Hive
from support.storage import Storage, local_only

COLUMNS = (Column("id", "int"), Column("v", "string"))
BY_DT = (Column("dt", "string"),)
NASTY = ("it's", 'a"b', "a`b", "a\\b", "F R", " x ", "a/b", "a%2Fb", "12:30", "a=b", "été 日本", "[x]{y}^*?#", "${env:HOME}", "\\'", "A")
STATS = {"numRows": "7", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true"}}', "rawDataSize": "70", "mine": "x"}
DATABASES = itertools.count()
MARKS = {"hivekeeper.backup-of": "contract.events", "hivekeeper.run": "20260101t020304z-0000"}


@dataclass
class FakeWorld:
    """Changes by others, made in the fake's catalog."""

    metastore: FakeMetastore
    files: FakeFiles
    database: str
    root: str = "hdfs://nn/warehouse"
    is_remote: bool = False

    def add_table(self, name: str, partitioned: bool = True, location: str = "", database: str = "") -> Table:
        storage = PARQUET
        location = location or f"{self.root}/{name}"
        table = Table(database or self.database, name, "EXTERNAL_TABLE", location, storage, COLUMNS, BY_DT if partitioned else ())
        self.metastore.catalog.add_table(table)
        return table

    def add_managed_table(self, name: str) -> Table:
        table = Table(self.database, name, "MANAGED_TABLE", f"{self.root}/{name}", PARQUET, COLUMNS, BY_DT, create_time=5)
        self.metastore.catalog.add_table(table)
        self.files.writer.make_directory(table.location)
        return table

    @property
    def hive(self) -> Hive:
        return Hive(self, metadata_first=True)

    @property
    def catalog(self) -> Any:
        return self.metastore.catalog

    def hand_over(self, table: Table, change: str) -> None:
        purge = {**table.parameters, "external.table.purge": "true"}
        changed = {"owner": {"owner": "mallory"}, "kind": {"kind": "MANAGED_TABLE"}, "purge": {"parameters": purge}}
        self.catalog.put_table(replace(table, **changed[change]))

    def rename_partition(self, table: Table, old: str, new: str) -> None:
        list(self.hive.rename_partition(table.full_name, old, new))

    def rename_table(self, table: Table, new: str) -> None:
        list(self.hive.rename_table(table.full_name, f"{self.database}.{new}"))

    def let_act(self, act: Callable[[], object], before: str) -> None:
        """Let somebody act just before each request of a certain method of Hive's client."""
        is_second = itertools.cycle([False, True])
        # Definitions of tables are each second request, after names.
        self.metastore.before_request = lambda _: (before == "getPartitionsByNames" or next(is_second)) and act()

    def drop_with_files(self, table: Table, name: str) -> None:
        list(self.hive.drop_partition(table.full_name, name))

    def take_away(self, location: str) -> None:
        self.files.writer.rename_into(location, f"{self.root}/aside")

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

    def set_serde_path(self, table: Table, path: str, key: str = "path", provider: str = "parquet") -> Table:
        storage = replace(table.storage, serde_parameters={**table.storage.serde_parameters, key: path})
        of_spark = {names.SPARK_PROVIDER: provider} if provider else {}
        changed = replace(table, storage=storage, parameters={**table.parameters, **of_spark})
        self.metastore.catalog.put_table(changed)
        return changed

    def promise(self, table: Table, name: str, layout: str) -> None:
        stored = self.metastore.catalog.partitions[table.full_name][name]
        self.metastore.catalog.put_partition(table.full_name, replace(stored, storage=replace(stored.storage, layout=layout)))

    def add_database(self) -> str:
        self.metastore.catalog.databases.add("backups")
        return "backups"

    def exists(self, location: str) -> bool:
        return self.files.look([location])[location].exists

    def add_file(self, location: str) -> None:
        self.files.writer.add(location, "rows")

    def delete(self, location: str) -> None:
        self.files.writer.delete(location)

    def listing(self) -> Any:
        return [(found.path, found.mtime_ms) for found in self.files.tree(self.root)]

    def another_client(self) -> Metastore:
        return FakeMetastore(self.files.another_client(), self.metastore.catalog)

    def make_lock_tables(self) -> None:
        self.metastore.catalog.has_locks = True

    def drop_lock_tables(self) -> None:
        self.metastore.catalog.has_locks = False


class RealWorld:
    """Changes by others, made with Spark SQL and a separate client; the metastore is a server, or embedded."""

    def __init__(self, gateway: Gateway, storage: Storage, database: str) -> None:
        self.gateway, self.storage, self.database, self.root = gateway, storage, database, storage.root
        self.metastore = HiveMetastore(gateway)
        self.is_remote = bool(gateway.hadoop_conf.get("hive.metastore.uris"))
        jvm = gateway.jvm
        self.hive = jvm.org.apache.hadoop.hive
        self.conf = self.hive.conf.HiveConf(gateway.hadoop_conf, jvm.java.lang.Class.forName("org.apache.hadoop.hive.conf.HiveConf"))
        if not self.is_remote:
            url = "javax.jdo.option.ConnectionURL"
            for key, value in ((url, gateway.hadoop_conf.get(url)), ("hive.metastore.schema.verification", "false")):
                self.conf.set(key, value)
        self.client = self.hive.metastore.HiveMetaStoreClient(self.conf)
        self.databases: List[str] = []
        self._make_database(database)

    def add_database(self) -> str:
        return self._make_database(f"{self.database}_backups")

    def _make_database(self, database: str) -> str:
        self.gateway.spark.sql(f"CREATE DATABASE {database} LOCATION '{self.root}'")
        self.databases.append(database)
        return database

    def add_table(self, name: str, partitioned: bool = True, location: str = "", database: str = "") -> Table:
        by = "PARTITIONED BY (dt string)" if partitioned else ""
        location, database = location or f"{self.root}/{name}", database or self.database
        what = f"EXTERNAL TABLE {database}.{name} (id int, v string) {by}"
        self.gateway.spark.sql(f"CREATE {what} STORED AS PARQUET LOCATION '{location}'")
        return self.metastore.tables(database, [name])[name]

    def add_managed_table(self, name: str) -> Table:
        self.gateway.spark.sql(f"CREATE TABLE {self.database}.{name} (id int, v string) PARTITIONED BY (dt string) STORED AS PARQUET")
        return self.metastore.tables(self.database, [name])[name]

    def rename_partition(self, table: Table, old: str, new: str) -> None:
        stored = self._stored(table, old)
        former, renamed = stored.getValues(), stored.deepCopy()
        renamed.setValues(self.gateway.jvm.java.util.ArrayList([new.partition("=")[2]]))
        self.client.renamePartition(table.database, table.name, former, renamed)

    def rename_table(self, table: Table, new: str) -> None:
        stored = self._stored(table, "")
        stored.setTableName(new)
        self.client.alter_table(table.database, table.name, stored)

    def let_act(self, act: Callable[[], object], before: str) -> None:
        let_fail(self, lambda *_: bool(act() and False), before)

    def drop_with_files(self, table: Table, name: str) -> None:
        self.client.dropPartition(table.database, table.name, name, True)

    def take_away(self, location: str) -> None:
        self.storage.rename(location, f"{self.root}/aside")

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

    def promise(self, table: Table, name: str, layout: str) -> None:
        stored, java, api = self._stored(table, name), self.gateway.jvm.java.util, self.hive.metastore.api
        if layout == "bucketed":
            stored.getSd().setNumBuckets(4)
            stored.getSd().setBucketCols(java.ArrayList(["id"]))
        elif layout == "sorted":
            stored.getSd().setSortCols(java.ArrayList([api.Order("id", 1)]))
        else:
            names_of, values = (["v"], [java.ArrayList(["x"])]) if layout else ([], [])
            stored.getSd().setSkewedInfo(api.SkewedInfo(java.ArrayList(names_of), java.ArrayList(values), java.HashMap()))
        self.client.alter_partition(table.database, table.name, stored, self._keep_statistics())

    def hand_over(self, table: Table, change: str) -> None:
        stored = self._stored(table, "")
        if change == "owner":
            stored.setOwner("mallory")
        elif change == "kind":
            stored.setTableType("MANAGED_TABLE")
            stored.getParameters().remove("EXTERNAL")
        else:
            stored.getParameters().put("external.table.purge", "true")
        self.client.alter_table_with_environmentContext(table.database, table.name, stored, self._keep_statistics())

    def _stored(self, table: Table, name: str) -> Any:
        return self.client.getPartition(table.database, table.name, name) if name else self.client.getTable(table.database, table.name)

    def _keep_statistics(self) -> Any:
        return self.hive.metastore.api.EnvironmentContext(self.gateway.jvm.java.util.HashMap({"DO_NOT_UPDATE_STATS": "true"}))

    def set_serde_path(self, table: Table, path: str, key: str = "path", provider: str = "parquet") -> Table:
        stored = self._stored(table, "")
        stored.getSd().getSerdeInfo().putToParameters(key, path)
        if provider:
            stored.putToParameters(names.SPARK_PROVIDER, provider)
        self.client.alter_table_with_environmentContext(table.database, table.name, stored, self._keep_statistics())
        return self.metastore.tables(table.database, [table.name])[table.name]

    def add_file(self, location: str) -> None:
        self.storage.write(location, b"rows")

    def delete(self, location: str) -> None:
        self.storage.delete(location)

    def listing(self) -> Any:
        return self.storage.tree(self.root)

    def exists(self, location: str) -> bool:
        return self.storage.exists(location)

    def another_client(self) -> Metastore:
        return HiveMetastore(Gateway(self.gateway.driver))

    def make_lock_tables(self) -> None:
        """A server has them from its installation on."""
        if not self.is_remote:
            self.hive.metastore.txn.TxnDbUtil.prepDb(self.conf)

    def drop_lock_tables(self) -> None:
        if not self.is_remote:
            self.hive.metastore.txn.TxnDbUtil.cleanDb(self.conf)


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.jvm)])
def world(request: pytest.FixtureRequest) -> Any:
    if request.param == "real":
        return request.getfixturevalue("real")
    files = FakeFiles()
    found = FakeWorld(FakeMetastore(files), files, "contract")
    found.metastore.catalog.databases.add(found.database)
    found.metastore.catalog.homes[found.database] = found.root
    return found


@pytest.fixture
def real(gateway: Gateway, storage: Storage) -> Iterator[RealWorld]:
    found = RealWorld(gateway, storage, f"contract_{os.getpid()}_{next(DATABASES)}")
    yield found
    for database in found.databases:
        gateway.spark.sql(f"DROP DATABASE {database} CASCADE")
    found.client.close()


def partition_of(table: Table, value: str, parameters: Optional[Mapping[str, str]] = None, location: str = "") -> Partition:
    name = quoting.partition_name(["dt"], [value])
    return Partition(name, (value,), location or f"{table.location}/{name}", table.storage, parameters or {})


def add_partitions(world: Any, table: Table, values: Sequence[str]) -> None:
    for value in values:
        assert world.metastore.add_partition(table, partition_of(table, value))


def without_time(parameters: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in parameters.items() if key != "transient_lastDdlTime"}


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


# ---- definitions that are too large


RICH = {"EXTERNAL": "TRUE", "x": "v" * 4000, "y": "\N{GRINNING FACE}" * 100}


def test_a_table_with_a_huge_definition_is_unreadable_and_the_others_are_read(world, monkeypatch):
    for name in ("before", "huge", "rest"):
        world.add_table(name)
    table = world.metastore.tables(world.database, ["huge"])["huge"]
    world.set_parameters(table, "", RICH)
    assert world.metastore.tables(world.database, ["huge"])["huge"].parameters["y"] == RICH["y"]
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 3000)
    found = world.metastore.tables(world.database, ["before", "huge", "rest"])
    assert {name: bool(one.unreadable) for name, one in found.items()} == {"before": False, "huge": True, "rest": False}
    assert (found["huge"].kind, found["huge"].create_time, found["huge"].parameters) == (table.kind, table.create_time, {})
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)


def test_of_tables_that_are_huge_together_the_largest_are_unreadable(world, monkeypatch):
    names = ["before", "huge", "large", "rest"]
    tables = {name: world.add_table(name) for name in names}
    world.set_parameters(tables["huge"], "", RICH)
    world.set_parameters(tables["large"], "", {**RICH, "x": "v" * 3000})
    created = find(world, tables["huge"].full_name).create_time
    for most, unread in ((2**14, set()), (7000, {"huge"}), (3000, {"huge", "large"})):
        monkeypatch.setattr(ports, "MOST_OF_TABLES", most)
        found = world.metastore.tables(world.database, names)
        assert {name for name, one in found.items() if one.unreadable} == unread
        assert (sorted(found), found["huge"].create_time) == (names, created)


def describe_storage(world: Any, table: Table, part: str) -> None:
    """Give a table much of what Hive keeps beside its properties, columns and SerDe: by DDL, or by a client of the metastore."""
    stored, java = world._stored(table, ""), world.gateway.jvm.java.util
    words = java.ArrayList([f"{number:0200d}" for number in range(20)])
    if part == "storage properties":
        stored.getSd().setParameters(java.HashMap({"x": "v" * 4000}))
    elif part == "buckets":
        stored.getSd().setBucketCols(words)
    elif part == "sorting":
        stored.getSd().setSortCols(java.ArrayList([world.hive.metastore.api.Order(word, 1) for word in words]))
    elif part == "skew":
        values = java.ArrayList([java.ArrayList([word]) for word in words])
        stored.getSd().setSkewedInfo(world.hive.metastore.api.SkewedInfo(java.ArrayList(["v"]), values, java.HashMap()))
    elif part == "comments":
        for column in stored.getSd().getCols():
            column.setComment("c" * 250)
        stored.getSd().setCols(java.ArrayList([*stored.getSd().getCols(), *_commented(world, 18)]))
    else:
        stored.setViewOriginalText("v" * 4000)
    world.client.alter_table_with_environmentContext(table.database, table.name, stored, world._keep_statistics())


def _commented(world: Any, columns: int) -> List[Any]:
    return [world.hive.metastore.api.FieldSchema(f"c{number}", "int", "c" * 250) for number in range(columns)]


@local_only
@pytest.mark.parametrize("part", ["storage properties", "buckets", "sorting", "skew", "comments", "text"])
def test_all_that_a_definition_holds_counts(real, monkeypatch, part):
    """Java keeps all of it until it has read the other tables of the database."""
    for name in ("before", "huge"):
        table = real.add_table(name)
    describe_storage(real, table, part)
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 3000)
    found = real.metastore.tables(real.database, ["before", "huge"])
    assert {name: bool(one.unreadable) for name, one in found.items()} == {"before": False, "huge": True}


@local_only
@pytest.mark.parametrize("part", ["properties", "columns", "buckets"])
def test_what_many_short_texts_take_besides_their_characters_counts(real, monkeypatch, part):
    """A property or a column of two characters takes hundreds of bytes."""
    table, java = real.add_table("many"), real.gateway.jvm.java.util
    stored, short = real._stored(table, ""), [f"{number:x}" for number in range(3000)]
    if part == "properties":
        stored.setParameters(java.HashMap({**dict.fromkeys(short, "v"), "EXTERNAL": "TRUE"}))
    elif part == "columns":
        more = [real.hive.metastore.api.FieldSchema(f"c{name}", "int", "") for name in short]
        stored.getSd().setCols(java.ArrayList([*stored.getSd().getCols(), *more]))
    else:
        stored.getSd().setBucketCols(java.ArrayList(short))
    real.client.alter_table_with_environmentContext(table.database, table.name, stored, real._keep_statistics())
    assert not find(real, table.full_name).unreadable
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 100_000)
    assert find(real, table.full_name).unreadable


def test_what_many_short_properties_of_partitions_take_counts(world, monkeypatch):
    table = world.add_table("many")
    add_partitions(world, table, ["1", "2"])
    world.set_parameters(table, "dt=1", {f"{number:x}": "v" for number in range(3000)})
    assert len(world.metastore.partitions(table)) == 2
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 100_000)
    with pytest.raises(Refused):
        world.metastore.partitions(table)
    assert list(world.metastore.partitions_named(table, ["dt=2"])) == ["dt=2"]


def test_many_definitions_come_in_answers_of_bounded_size(real, monkeypatch):
    """Java holds several copies of an answer: in one of all definitions, a few large tables took the memory that Spark gives a driver."""
    names = [f"t{number}" for number in range(12)]
    for name in names:
        real.set_parameters(real.add_table(name), "", {"y": "v" * 2000})
    lengths, loads = [], json.loads
    monkeypatch.setattr(ports, "MOST_OF_ANSWER", 5000)
    monkeypatch.setattr(json, "loads", lambda text: (lengths.append(len(text)), loads(text))[1])
    found = real.metastore.tables(real.database, names)
    assert {name: len(one.parameters["y"]) for name, one in found.items()} == dict.fromkeys(names, 2000)
    assert max(lengths) < 12_000


def test_partitions_with_huge_properties_are_refused(world, monkeypatch):
    table, other = world.add_table("huge"), world.add_table("other")
    for one in (table, other):
        add_partitions(world, one, ["1", "2"])
    world.set_parameters(table, "dt=1", RICH)
    assert world.metastore.partitions_named(table, ["dt=1"])["dt=1"].parameters["y"] == RICH["y"]
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 4000)
    for read in (lambda: world.metastore.partitions(table), lambda: world.metastore.partitions_named(table, ["dt=1"])):
        with pytest.raises(Refused) as refused:
            read()
        assert refused.value.reason.code is Code.UNREADABLE_DEFINITION
    assert list(world.metastore.partitions_named(table, ["dt=2"])) == ["dt=2"]
    assert len(world.metastore.partitions(other)) == 2


def test_too_many_partitions_are_refused_however_little_each_says(world, monkeypatch):
    table = world.add_table("many")
    add_partitions(world, table, ["1", "2", "3"])
    monkeypatch.setattr(ports, "MOST_PARTITIONS", 2)
    with pytest.raises(Refused) as refused:
        world.metastore.partitions(table)
    assert refused.value.reason.code is Code.UNREADABLE_DEFINITION
    assert sorted(world.metastore.partitions_named(table, ["dt=1", "dt=3"])) == ["dt=1", "dt=3"]


def test_partitions_with_huge_locations_are_refused(world, monkeypatch):
    """A million of 4,000 characters would be read whole, several times over."""
    table, other = world.add_table("huge"), world.add_table("other")
    deep = "/".join([table.location, *["d" * 200] * 6])
    for value in ("1", "2"):
        assert world.metastore.add_partition(table, partition_of(table, value, location=f"{deep}/dt={value}"))
    add_partitions(world, other, ["1", "2"])
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 1500)
    assert len(world.metastore.partitions(other)) == 2
    assert list(world.metastore.partitions_named(table, ["dt=1"])) == ["dt=1"]
    with pytest.raises(Refused) as refused:
        world.metastore.partitions(table)
    assert refused.value.reason.code is Code.UNREADABLE_DEFINITION


def test_partitions_with_huge_values_are_refused(world, monkeypatch):
    """Each is in the name and by itself, and one character of a rare alphabet takes six on its way."""
    table, other = world.add_table("huge"), world.add_table("other")
    for number in range(5):
        value = "\N{CJK UNIFIED IDEOGRAPH-65E5}" * 60 + str(number)
        assert world.metastore.add_partition(table, partition_of(table, value, location=f"{table.location}/{number}"))
    add_partitions(world, other, [str(number) for number in range(5)])
    assert len(world.metastore.partitions(table)) == 5
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 2000)
    assert len(world.metastore.partitions(other)) == 5
    with pytest.raises(Refused) as refused:
        world.metastore.partitions(table)
    assert refused.value.reason.code is Code.UNREADABLE_DEFINITION


class FailingClient:
    """Hive's client, which fails at each request that reads a certain table or database, or at all of them."""

    def __init__(self, client: Any, fails: Any, fails_at: str) -> None:
        self._client, self._fails, self._fails_at = client, fails, fails_at

    def invoke(self, _proxy: Any, method: Any, arguments: Any) -> Any:
        if method.getName() == self._fails_at and self._fails(*(arguments or ())):
            raise RuntimeError("too large for this metastore")
        return method.invoke(self._client, arguments)

    class Java:
        implements = ["java.lang.reflect.InvocationHandler"]


def let_fail(world: RealWorld, fails: Any, fails_at: str = "getTableObjectsByName") -> None:
    """Exchange the client behind the metastore of a world."""
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(world.gateway.java_gateway)
    reader = world.metastore._reader
    of_reader = reader.getClass().getDeclaredField("connection")
    of_reader.setAccessible(True)
    connection = of_reader.get(reader)
    of_connection = connection.getClass().getDeclaredField("client")
    of_connection.setAccessible(True)
    client = of_connection.get(connection)
    jvm = world.gateway.jvm
    kind = jvm.java.lang.Class.forName("org.apache.hadoop.hive.metastore.IMetaStoreClient", True, client.getClass().getClassLoader())
    kinds = world.gateway.java_gateway.new_array(jvm.java.lang.Class, 1)
    kinds[0] = kind
    made = jvm.java.lang.reflect.Proxy.newProxyInstance(client.getClass().getClassLoader(), kinds, FailingClient(client, fails, fails_at))
    of_connection.set(connection, made)


def test_a_table_that_fails_every_request_for_it_fails_no_other_table(real):
    tables = {name: real.add_table(name) for name in ("a", "b", "bad", "c", "d")}
    let_fail(real, lambda _, names: "bad" in list(names))
    found = real.metastore.tables(real.database, list(tables))
    assert {name for name, one in found.items() if one.unreadable} == {"bad"}
    assert found["bad"].unreadable.startswith("the metastore cannot give its definition: ")
    assert found["d"].columns == COLUMNS
    below = real.metastore.locations_below([table.location for table in tables.values()])
    assert [name for names in below.values() for name in names] == [tables[name].full_name for name in ("a", "b", "c", "d")]


@local_only
def test_a_metastore_that_fails_at_every_request_is_not_asked_for_each_table(real):
    asked = []
    let_fail(real, lambda _, names: not asked.append(list(names)))
    with pytest.raises(Exception, match="too large for this metastore"):
        real.metastore.tables(real.database, ["a", "b", "c", "d"])
    assert len(asked) == 2


@local_only
def test_a_database_that_fails_every_request_for_it_fails_no_other(real):
    """Its owner may have given it gigabytes of properties, with which it is read."""
    table, bad = real.add_table("events"), real.add_database()
    let_fail(real, lambda name: name == bad, "getDatabase")
    homes = real.metastore.database_locations()
    assert (homes[real.database], bad in homes) == (real.root, False)
    assert real.metastore.locations_below([table.location])[table.location] == (table.full_name,)
    assert (real.metastore.table_names(bad), real.metastore.table_names(real.database)) == ((), ("events",))


def test_a_database_whose_tables_cannot_be_told_is_named_and_not_passed_over(real, monkeypatch):
    """A million tables with names of a hundred characters are more than Spark 4's Thrift reads; one of them may lie in any directory."""
    table, crowd, asked = real.add_table("events"), real.add_database(), []
    let_fail(real, lambda name: name == crowd and not asked.append(name), "getAllTables")
    for _ in range(2):
        with pytest.raises(MetastoreUnavailable, match=f"the database {crowd} .*cannot tell their names.*dropped") as raised:
            real.metastore.locations_below([table.location])
        # No caller takes it as a refusal of the table in its hands.
        assert not isinstance(raised.value, MetastoreRefused)
    # Twice for the first time, and not for the second.
    assert asked == [crowd, crowd]
    assert real.metastore.table_names(real.database) == ("events",)
    with pytest.raises(MetastoreRefused, match="cannot tell their names"):
        real.metastore.table_names(crowd)
    real.gateway.spark.sql(f"DROP DATABASE {crowd}")
    real.databases.remove(crowd)
    monkeypatch.setattr("hivekeeper.cluster.metastore.KEEP_REFUSAL_S", 0)
    assert real.metastore.locations_below([table.location])[table.location] == (table.full_name,)


@local_only
def test_a_metastore_that_answers_nothing_about_a_database_is_asked_again(real):
    table = real.add_table("events")
    asked = []
    let_fail(real, lambda name: not asked.append(name), "getAllTables")
    let_fail(real, lambda *_: True, "getTables")
    for _ in range(2):
        with pytest.raises(Exception, match="too large for this metastore"):
            real.metastore.locations_below([table.location])
    assert len(asked) == 2


@local_only
def test_a_metastore_that_fails_once_at_the_names_of_a_database_keeps_no_table_from_its_turn(real):
    """Each of a thousand tables was refused for a minute, which is all that they take then."""
    table, fails = real.add_table("events"), [True]
    let_fail(real, lambda _: bool(fails and fails.pop()), "getAllTables")
    assert real.metastore.locations_below([table.location])[table.location] == (table.full_name,)
    fails.append(True)
    assert real.metastore.table_names(real.database) == ("events",)


@local_only
def test_what_a_metastore_refuses_while_it_refuses_everything_is_not_kept(real, monkeypatch):
    table, is_down, ask, passed = real.add_table("events"), [True], metastore_module._ask, []

    def answer(method, *arguments):
        # It has qualified the places, and named the databases.
        if is_down and len(passed) == 2:
            raise MetastoreRefused("the database behind it does not answer")
        passed.append(method)
        return ask(method, *arguments)

    monkeypatch.setattr(metastore_module, "_ask", answer)
    with pytest.raises(MetastoreUnavailable, match="is not known"):
        real.metastore.locations_below([table.location])
    is_down.clear()
    assert real.metastore.locations_below([table.location])[table.location] == (table.full_name,)


@local_only
@pytest.mark.parametrize(("bound", "most", "said"), [("MOST_TABLES", 1, "are 2, more than 1"), ("MOST_OF_PLACES", 99, "more than 99 ch")])
def test_a_database_with_more_than_there_is_memory_for_is_named(real, monkeypatch, bound, most, said):
    for name in ("events", "clicks"):
        real.add_table(name)
    real.metastore.locations_below([])
    real.metastore._roots = None
    monkeypatch.setattr(ports, bound, most)
    with pytest.raises(MetastoreUnavailable, match=f"the database {real.database} .*{said}"):
        real.metastore.locations_below([])


def test_of_databases_with_more_together_than_there_is_memory_for_the_largest_is_named(real, monkeypatch):
    """Not the last one, which may be anybody's."""
    real.add_database()
    for name in ("events", "clicks"):
        real.add_table(name)
    real.metastore._roots = None
    monkeypatch.setattr(ports, "MOST_OF_ALL_PLACES", 99)
    with pytest.raises(MetastoreUnavailable, match=f"more than 99 characters, most of them in the database {real.database};"):
        real.metastore.locations_below([])


@local_only
def test_a_partition_whose_name_another_one_gets_while_many_are_read_is_not_missing(real):
    """Above a hundred there are several requests, between which an hour may pass: as many come as were named."""
    table, java = real.add_table("events"), real.gateway.jvm.java.util
    add_partitions(real, table, ["000", "a"])
    stored = real._stored(table, "dt=000")

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


@local_only
def test_a_metastore_that_fails_for_every_database_is_an_error(real):
    let_fail(real, lambda _: True, "getDatabase")
    with pytest.raises(Exception, match="too large for this metastore"):
        real.metastore.database_locations()


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


def test_an_empty_value_stays_empty_and_takes_the_name_of_null(world):
    table = world.add_table("events")
    add_partitions(world, table, [""])
    (found,) = world.metastore.partitions(table)
    assert (found.name, found.values) == ("dt=__HIVE_DEFAULT_PARTITION__", ("",))
    assert not world.metastore.add_partition(table, partition_of(table, quoting.HIVE_NULL))


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


# ---- backup tables


def backup_of(world: Any, database: str = "") -> str:
    return f"{database or world.database}.__bkp_events_20260101_020304"


def place(world: Any, number: int, state: str = "retired") -> str:
    return f"{world.root}/events/.hivekeeper/runs/20260101t020304z-0000/{state}/u{number:05d}"


def find(world: Any, name: str) -> Any:
    database, _, own_name = name.partition(".")
    return world.metastore.tables(database, [own_name]).get(own_name)


def shown_by(world: Any, name: str) -> Dict[str, str]:
    table = find(world, name)
    if not table.partitioned:
        return {"": table.location}
    return {partition.name: partition.location for partition in world.metastore.partitions(table)}


def make_backup(world: Any, table: Table, places: Mapping[str, str], name: str = "") -> str:
    name = name or backup_of(world)
    world.metastore.make_backup_table(table, name, place(world, 0, "backup_table"), MARKS, list(places))
    world.metastore.point_backup_table(name, MARKS, places)
    return name


OF_OTHERS = {
    "TRANSLATED_TO_EXTERNAL": "TRUE",
    "external.table.purge": "true",
    "auto.purge": "true",
    "discover.partitions": "true",
    "partition.retention.period": "7d",
}
SIZES = {"numFiles": "9", "totalSize": "99"}
OF_SPARK = {"spark.sql.statistics.numRows": "7", "spark.sql.statistics.colStats.id.max": "9"}
OF_A_BACKUP = {**MARKS, "mine": "x", "EXTERNAL": "TRUE", "external.table.purge": "false", "discover.partitions": "false"}


def test_a_backup_table_has_the_definition_of_its_table_and_shows_the_places_given(world):
    table = world.add_table("events")
    world.set_parameters(table, "", {**STATS, **OF_OTHERS, **SIZES, **OF_SPARK, "EXTERNAL": "TRUE", "hivekeeper.run": "older"})
    odd = replace(partition_of(table, "a"), storage=replace(table.storage, serde_parameters={"serialization.format": "1", "k": "v"}))
    world.metastore.add_partition(table, odd)
    add_partitions(world, table, ["b", "c"])
    world.set_parameters(table, "dt=a", {**STATS, **SIZES, **OF_SPARK})
    stored = find(world, table.full_name)

    name = make_backup(world, table, {"dt=a": place(world, 1), "dt=b": place(world, 2)})

    found = find(world, name)
    expected = {
        "name": found.name,
        "location": place(world, 0, "backup_table"),
        "create_time": found.create_time,
        "parameters": OF_A_BACKUP,
    }
    assert replace(found, parameters=without_time(found.parameters)) == replace(stored, **expected)
    assert found.create_time > 0
    shown = {partition.name: partition for partition in world.metastore.partitions(found)}
    assert {name: partition.location for name, partition in shown.items()} == {"dt=a": place(world, 1), "dt=b": place(world, 2)}
    assert without_time(shown["dt=a"].parameters) == {"mine": "x", **SIZES}
    assert (shown["dt=a"].values, shown["dt=a"].storage) == (("a",), odd.storage)
    assert shown_by(world, table.full_name) == {f"dt={value}": f"{table.location}/dt={value}" for value in "abc"}
    assert find(world, table.full_name) == stored


def test_a_backup_table_shows_nothing_before_it_is_pointed(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a", "b"])
    world.metastore.make_backup_table(table, backup_of(world), place(world, 0, "backup_table"), MARKS, ["dt=a"])
    assert shown_by(world, backup_of(world)) == {"dt=a": place(world, 0, "backup_table")}


@pytest.mark.parametrize("partitioned", [False, True])
def test_no_directory_is_made_again_that_a_backup_table_is_to_show(world, partitioned):
    """A loader that replaces it may have deleted it, and would move the new one into it (FileSystem.rename)."""
    table = world.add_table("events", partitioned)
    if partitioned:
        add_partitions(world, table, ["a", "b"])
    lives = shown_by(world, table.full_name)
    world.delete(table.location)
    made, name = f"{world.root}/made", backup_of(world)
    world.add_file(f"{made}/f")
    world.metastore.make_backup_table(table, name, made, MARKS, list(lives))
    world.metastore.point_backup_table(name, MARKS, lives)
    assert shown_by(world, name) == lives
    assert not world.exists(table.location)


def test_a_backup_table_of_an_unpartitioned_table_lies_at_the_place_itself(world):
    table = world.add_table("plain", partitioned=False)
    world.set_parameters(table, "", {**STATS, **OF_OTHERS, **SIZES, **OF_SPARK, "EXTERNAL": "TRUE"})
    name = make_backup(world, table, {"": place(world, 1)})
    found = find(world, name)
    assert (found.kind, found.location) == ("EXTERNAL_TABLE", place(world, 1))
    assert without_time(found.parameters) == {**OF_A_BACKUP, **SIZES}
    assert not world.exists(place(world, 1))


def test_a_backup_table_follows_its_units_by_any_partition_value_and_lets_go_of_them(world):
    table = world.add_table("events")
    add_partitions(world, table, [*NASTY, quoting.HIVE_NULL])
    lives = shown_by(world, table.full_name)
    name = make_backup(world, table, lives)
    assert shown_by(world, name) == lives
    moved = {one: place(world, number) for number, one in enumerate(lives) if number % 2}
    world.metastore.point_backup_table(name, MARKS, {**moved, "dt=no": place(world, 99)})
    assert shown_by(world, name) == {**lives, **moved}
    world.metastore.trim_backup_table(name, MARKS, [*(one for one in lives if one not in moved), "dt=no"])
    assert shown_by(world, name) == moved
    assert world.metastore.drop_backup_table(name, MARKS)
    assert find(world, name) is None
    assert shown_by(world, table.full_name) == lives


def test_a_backup_table_of_an_unpartitioned_table_follows_it_and_has_nothing_to_trim(world):
    table = world.add_table("plain", partitioned=False)
    name = make_backup(world, table, {"": table.location})
    world.metastore.point_backup_table(name, MARKS, {"dt=a": place(world, 2)})
    assert shown_by(world, name) == {"": table.location}
    world.metastore.point_backup_table(name, MARKS, {"": place(world, 1)})
    world.metastore.trim_backup_table(name, MARKS, [""])
    assert shown_by(world, name) == {"": place(world, 1)}
    assert world.metastore.drop_backup_table(name, MARKS)
    assert find(world, table.full_name) == table


@pytest.mark.parametrize("partitioned", [False, True])
def test_the_serde_path_of_a_backup_table_follows_where_there_is_one(world, partitioned):
    table = world.add_table("events", partitioned)
    table = world.set_serde_path(table, table.location)
    if partitioned:
        world.metastore.add_partition(table, partition_of(table, "a"))
    unit = "dt=a" if partitioned else ""
    name = make_backup(world, table, {unit: place(world, 1)})
    assert find(world, name).storage.serde_parameters["path"] == (place(world, 0, "backup_table") if partitioned else place(world, 1))
    world.metastore.point_backup_table(name, MARKS, {unit: place(world, 2)})
    found = find(world, name)
    moved = world.metastore.partitions(found)[0] if partitioned else found
    assert (moved.location, moved.storage.serde_parameters["path"]) == (place(world, 2), place(world, 2))


@pytest.mark.parametrize("partitioned", [False, True])
def test_no_file_is_touched_by_what_happens_to_a_backup_table(world, partitioned):
    table = world.add_table("events", partitioned)
    if partitioned:
        add_partitions(world, table, ["a", "b"])
    places = {"dt=a": place(world, 1), "dt=b": place(world, 2)} if partitioned else {"": place(world, 1)}
    lives = shown_by(world, table.full_name)
    for directory in (*lives.values(), *places.values(), place(world, 0, "backup_table")):
        world.add_file(f"{directory}/f")
    before = world.listing()
    name = make_backup(world, table, lives)
    world.metastore.point_backup_table(name, MARKS, places)
    world.metastore.trim_backup_table(name, MARKS, ["dt=a"])
    assert world.metastore.drop_backup_table(name, MARKS)
    assert world.listing() == before


def test_a_partition_that_its_table_does_not_have_is_left_out_of_the_backup_table(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a", "b"])
    world.drop_partition(table, "dt=b")
    name = make_backup(world, table, {"dt=a": place(world, 1), "dt=b": place(world, 2)})
    assert shown_by(world, name) == {"dt=a": place(world, 1)}


def test_a_backup_table_without_partitions_as_a_kill_leaves_it_is_ours_all_the_same(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    name = make_backup(world, table, {})
    assert shown_by(world, name) == {}
    world.metastore.point_backup_table(name, MARKS, {"dt=a": place(world, 1)})
    world.metastore.trim_backup_table(name, MARKS, ["dt=a"])
    assert shown_by(world, name) == {}
    assert world.metastore.drop_backup_table(name, MARKS)


def test_a_backup_table_may_lie_in_another_database(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    name = make_backup(world, table, {"dt=a": place(world, 1)}, backup_of(world, world.add_database()))
    world.metastore.point_backup_table(name, MARKS, {"dt=a": place(world, 2)})
    assert shown_by(world, name) == {"dt=a": place(world, 2)}
    assert world.metastore.table_names(world.database) == ("events",)
    assert world.metastore.drop_backup_table(name, MARKS)


def test_without_its_database_no_backup_table_is_made_nor_found(world):
    table = world.add_table("events")
    name = backup_of(world, "no_such_database")
    with pytest.raises(MetastoreRefused):
        make_backup(world, table, {}, name)
    world.metastore.point_backup_table(name, MARKS, {"dt=a": place(world, 1)})
    world.metastore.trim_backup_table(name, MARKS, ["dt=a"])
    assert not world.metastore.drop_backup_table(name, MARKS)


def test_a_backup_name_that_is_taken_is_refused_and_stays_with_its_holder(world):
    table, other = world.add_table("events"), world.add_table("__bkp_events_20260101_020304")
    add_partitions(world, other, ["a"])
    with pytest.raises(MetastoreRefused, match="already exists"):
        make_backup(world, table, {})
    assert find(world, other.full_name) == other
    assert list(shown_by(world, other.full_name)) == ["dt=a"]


HARMLESS = {"external.table.purge": "false"}


@pytest.mark.parametrize(
    "carried",
    [
        {},
        {**MARKS, **HARMLESS, "hivekeeper.run": "another"},
        {"hivekeeper.backup-of": "contract.events", **HARMLESS},
        MARKS,
        {**MARKS, "external.table.purge": "true"},
        {**MARKS, **HARMLESS, "TRANSLATED_TO_EXTERNAL": "TRUE"},
    ],
)
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_table_without_all_marks_of_a_backup_or_whose_files_may_go_with_it_is_not_ours_to_change(world, carried, partitioned):
    table = world.add_table("__bkp_events_20260101_020304", partitioned)
    if partitioned:
        add_partitions(world, table, ["a"])
    world.set_parameters(table, "", {"EXTERNAL": "TRUE", **carried})
    before = find(world, table.full_name), shown_by(world, table.full_name)
    unit = "dt=a" if partitioned else ""
    world.metastore.point_backup_table(table.full_name, MARKS, {unit: place(world, 1)})
    world.metastore.trim_backup_table(table.full_name, MARKS, [unit])
    assert not world.metastore.drop_backup_table(table.full_name, MARKS)
    assert (find(world, table.full_name), shown_by(world, table.full_name)) == before


def test_a_backup_table_that_is_gone_is_no_error(world):
    world.metastore.point_backup_table(backup_of(world), MARKS, {"dt=a": place(world, 1)})
    world.metastore.trim_backup_table(backup_of(world), MARKS, ["dt=a"])
    assert not world.metastore.drop_backup_table(backup_of(world), MARKS)


def test_no_backup_table_is_made_of_a_table_that_is_gone(world):
    table = world.add_table("events")
    world.drop_table(table)
    with pytest.raises(MetastoreRefused):
        make_backup(world, table, {"dt=a": place(world, 1)})
    assert find(world, backup_of(world)) is None


def test_a_backup_table_that_can_lie_nowhere_is_not_left_behind(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    world.add_file(place(world, 0, "backup_table"))
    with pytest.raises(MetastoreRefused):
        world.metastore.make_backup_table(table, backup_of(world), f"{place(world, 0, 'backup_table')}/below a file", MARKS, ["dt=a"])
    assert find(world, backup_of(world)) is None


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


# ---- tables that share directories


def test_tables_at_above_and_below_a_location_are_named_and_neighbours_are_not(world):
    for name, below in (("at", "x/y"), ("above", "x"), ("inside", "x/y/z"), ("beside", "x/y2"), ("far", "q")):
        world.add_table(name, location=f"{world.root}/{below}")
    asked = [f"{world.root}/x/y", f"{world.root}/q/"]
    found = world.metastore.locations_below(asked)
    touching = tuple(f"{world.database}.{name}" for name in ("above", "at", "inside"))
    assert found == {asked[0]: touching, asked[1]: (f"{world.database}.far",)}


@pytest.mark.parametrize("key", ["path", "PATH", "Path"])
def test_a_table_is_also_where_spark_finds_it(world, key):
    """Spark looks for its SerDe's property `path` in any case (CaseInsensitiveMap); Hive's SET LOCATION changes the location alone."""
    table = world.set_serde_path(world.add_table("events"), f"{world.root}/x/", key)
    asked = [table.location, f"{world.root}/x", f"{world.root}/x/y", f"{world.root}/xx", world.root]
    found = world.metastore.locations_below(asked)
    # Not around: whoever may alter a table may set it to anything.
    assert [found[place] for place in asked] == [(table.full_name,), (table.full_name,), (), (), (table.full_name,)]
    assert world.metastore.table_locations()[table.full_name] == table.location
    assert world.metastore.table_places()[table.full_name] == (table.location, f"{world.root}/x")


def test_a_path_of_a_table_that_is_not_sparks_is_no_place(world):
    """Hive's CREATE TABLE … LIKE copies it from a table of Spark, and Spark does not read it there (3.2, SPARK-28266)."""
    table = world.set_serde_path(world.add_table("events"), f"{world.root}/x", provider="")
    assert world.metastore.table_places()[table.full_name] == (table.location,)


def test_a_path_that_is_the_location_is_no_further_place(world):
    table = world.set_serde_path(world.add_table("events"), f"{world.root}//events/")
    assert world.metastore.table_places()[table.full_name] == (table.location,)


@pytest.mark.parametrize("name", ["d*", "d?", "[de]1", "{d1,e/x}", "*/x", "d\\1"])
def test_a_table_at_a_pattern_has_files_in_the_directory_before_it(world, name):
    """Hive (FileInputFormat) and Spark (DataSource) take such a location, or path, for a pattern of Hadoop."""
    located = world.add_table("located", location=f"{world.root}/a/b/{name}")
    pathed = world.set_serde_path(world.add_table("pathed"), f"{world.root}/a/c/{name}")
    asked = [f"{world.root}/a/{place}" for place in ("b/d1", "b", "c", "d1", "bb")]
    found = world.metastore.locations_below(asked)
    assert [found[place] for place in asked] == [(located.full_name,), (located.full_name,), (pathed.full_name,), (), ()]
    assert world.metastore.table_places()[pathed.full_name] == (pathed.location, f"{world.root}/a/c")
    assert world.metastore.table_locations()[located.full_name] == located.location


@pytest.mark.parametrize("text", ["", "x:y", "a b:/x", "/" + "x" * names.MOST_PATH], ids=["empty", "relative", "no scheme", "too long"])
def test_a_path_that_cannot_be_one_is_no_place(world, text):
    table = world.set_serde_path(world.add_table("events"), text)
    assert world.metastore.table_places()[table.full_name] == (table.location,)
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)


def test_a_table_without_a_location_is_where_spark_finds_it(real):
    """Hive cannot read intervals (nor TIMESTAMP_NTZ, which Spark 3.3 does not know), and the location of such a table is a placeholder."""
    where = f"{real.root}/x"
    real.gateway.spark.sql(f"CREATE TABLE {real.database}.events (id INT, during INTERVAL YEAR) USING parquet LOCATION '{where}'")
    location, place = real.metastore.table_places()[f"{real.database}.events"]
    assert (location.endswith("-__PLACEHOLDER__"), place) == (True, where)
    assert real.metastore.locations_below([where])[where] == (f"{real.database}.events",)


def test_a_table_of_another_database_on_the_same_directory_is_named(world):
    other = world.add_database()
    world.add_table("events", location=f"{world.root}/x")
    world.add_table("copy", location=f"{world.root}/x", database=other)
    (found,) = world.metastore.locations_below([f"{world.root}/x"]).values()
    assert set(found) == {f"{world.database}.events", f"{other}.copy"}


def test_tables_at_deep_locations_take_no_more_memory_than_these_are_long():
    """A location need not exist, and whoever may create tables chooses it: the directories above all of them were kept, 4 MB for each."""
    locations = {f"loader.t{number}": f"hdfs://nn/{number}{'/d' * 2000}" for number in range(50)}
    asked = ("hdfs://nn/7", f"{locations['loader.t7']}/x", "hdfs://nn/70", "hdfs://nn")
    tracemalloc.start()
    try:
        roots = Roots(locations, {name: (location,) for name, location in locations.items()})
        found = {place: sorted(roots.touching(place)) for place in asked}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(found.values()) == [["loader.t7"], ["loader.t7"], [], sorted(locations)]
    # Also what other threads of the test process take meanwhile.
    assert peak < 100 * sum(map(len, locations.values()))


def test_the_locations_of_tables_are_compared_without_calling_their_servers(world):
    world.add_table("events", location=f"{world.root}/x")
    found = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        asked = [f"{scheme}://{server}/x" for scheme in ("ftp", "hdfs", "webhdfs", "swebhdfs")] + [f"har://hdfs-{server}/x.har/y"]
        # As a daemon, what waits for a server ends with the process.
        thread = threading.Thread(target=lambda: found.append(world.metastore.locations_below(asked)), daemon=True)
        thread.start()
        thread.join(20)
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert found == [dict.fromkeys(asked, ())]


def test_one_broken_location_does_not_make_the_others_unreadable(real):
    table = real.add_table("events")
    schemes = ("", "hdfs:", "ftp:", "har:", "viewfs:", "file:", "s3a:", "nothing:", ":", "a b:", "1:")
    rests = (
        "//",
        "//:",
        "//:8020/x",
        "//a:b:c/x",
        "//[::1]:8020/x",
        "//[/x",
        "//a b/x",
        "//%zz/x",
        "x",
        "",
        "//@/x",
        "//./x",
        "//a:99999999999/x",
    )
    broken = [f"{scheme}{rest}" for scheme in schemes for rest in rests] + ["/x\0", "/x\n", "hdfs://" + "a." * 2000 + "/x", "/.." * 1000]
    found = real.metastore.locations_below([*broken, table.location])
    assert found[table.location] == (table.full_name,)


@pytest.mark.parametrize("broken", ["x:.hivekeeper/y", "hdfs://[/.hivekeeper", "a b:/.hivekeeper/y"])
def test_a_partition_at_no_location_hides_no_partition_of_another_table(real, broken):
    """The server looks at the location of a table, and of a partition that is added, but not of one that is altered with others."""
    table, victim = real.add_table("parted"), real.add_table("other")
    add_partitions(real, table, ["1"])
    stored = real._stored(table, "dt=1")
    stored.getSd().setLocation(broken)
    altered = real.gateway.jvm.java.util.ArrayList([stored])
    real.client.alter_partitions(table.database, table.name, altered, real._keep_statistics())
    inside = f"{victim.location}/.hivekeeper/runs/x/retired/u00001"
    real.metastore.add_partition(victim, partition_of(victim, "2", location=inside))
    files = HadoopFiles(real.gateway)
    (found,) = qualify_all(files, table, real.metastore.partitions(table))
    assert found == broken
    assert files.is_foreign(found)
    census = Census(SimpleNamespace(files=files, metastore=real.metastore, clock=SimpleNamespace(monotonic_ms=lambda: 0.0)))
    top = files.qualify(f"{victim.location}/.hivekeeper")
    assert [name for name, _ in census.partitions_inside(top, [], victim.database)] == [f"{victim.full_name}/dt=2"]


def add_view_with_partition(real, like):
    """`CREATE VIEW … PARTITIONED ON (dt)` and `ALTER VIEW … ADD PARTITION`, which Hive's client stores without a place."""
    jvm, stored = real.gateway.jvm, real._stored(like, "").deepCopy()
    stored.setTableName("shown")
    stored.setTableType("VIRTUAL_VIEW")
    stored.getSd().setLocation(None)
    stored.setParameters(jvm.java.util.HashMap({}))
    stored.setViewOriginalText("SELECT 1")
    stored.setViewExpandedText("SELECT 1")
    real.client.createTable(stored)
    partition = real.hive.metastore.api.Partition()
    partition.setDbName(like.database)
    partition.setTableName("shown")
    partition.setValues(jvm.java.util.ArrayList(["1"]))
    partition.setParameters(jvm.java.util.HashMap({}))
    real.client.add_partition(partition)
    return find(real, f"{like.database}.shown")


@pytest.mark.jvm
def test_a_view_that_has_partitions_hides_nothing_from_whoever_looks_through_all_tables(real):
    victim = real.add_table("other")
    view = add_view_with_partition(real, victim)
    assert (view.kind, view.partitioned) == ("VIRTUAL_VIEW", True)
    inside = f"{victim.location}/.hivekeeper/runs/x/retired/u00001"
    real.metastore.add_partition(victim, partition_of(victim, "2", location=inside))
    files = HadoopFiles(real.gateway)
    census = Census(SimpleNamespace(files=files, metastore=real.metastore, clock=SimpleNamespace(monotonic_ms=lambda: 0.0)))
    top = files.qualify(f"{victim.location}/.hivekeeper")
    assert [name for name, _ in census.partitions_inside(top, [], victim.database)] == [f"{victim.full_name}/dt=2"]


def test_the_directories_of_all_tables_are_told_in_their_one_spelling(world):
    table = world.add_table("events")
    assert world.metastore.table_locations()[table.full_name] == table.location


def test_the_directories_of_databases_are_told_in_their_one_spelling(world):
    homes = world.metastore.database_locations()
    assert homes[world.database] == world.root
    assert set(homes) <= set(world.metastore.databases())


def test_a_table_that_is_renamed_while_the_places_of_all_are_read_is_known(world):
    """Before its definition, after its name."""
    table, waiting = world.add_table("events"), ["renamed"]
    world.let_act(lambda: waiting and world.rename_table(table, waiting.pop()), "getTableObjectsByName")
    (found,) = world.metastore.locations_below([table.location]).values()
    assert not waiting
    assert found == (f"{world.database}.renamed",)


def test_a_table_that_was_renamed_since_is_known_once_places_are_read_again(world):
    table = world.add_table("events")
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)
    world.rename_table(table, "renamed")
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)
    world.metastore.read_places_again(table.full_name)
    assert world.metastore.locations_below([table.location])[table.location] == (f"{world.database}.renamed",)


def test_places_are_not_read_again_all_the_time(world, monkeypatch):
    table = world.add_table("events")
    # As if that took long.
    monkeypatch.setattr(metastore_module, "KEEP_READ_AGAIN", 10**6)
    monkeypatch.setattr(world.metastore, "keeps_read_again_ms", 10**6, raising=False)
    world.metastore.read_places_again(table.full_name)
    with pytest.raises(MetastoreUnavailable, match=f"{table.full_name}, .* under another name") as raised:
        world.metastore.read_places_again(table.full_name)
    assert not isinstance(raised.value, MetastoreRefused)
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)


def test_a_backup_table_that_was_dropped_by_this_client_is_not_known_any_more(world):
    table = world.add_table("events")
    make_backup(world, table, {})
    asked = [table.location, place(world, 0)]
    before = {name for found in world.metastore.locations_below(asked).values() for name in found}
    assert before == {table.full_name, backup_of(world)}
    assert world.metastore.drop_backup_table(backup_of(world), MARKS)
    after = {name for found in world.metastore.locations_below(asked).values() for name in found}
    assert after == {table.full_name}


# ---- the fake only


@pytest.mark.parametrize(("steps", "changed"), [(0, False), (1, True)])
def test_a_kill_falls_before_or_after_a_change_and_the_killed_client_does_nothing_more(steps, changed):
    files = FakeFiles()
    world = FakeWorld(FakeMetastore(files), files, "contract")
    table = world.add_table("events")
    files.die_after(steps)
    with pytest.raises(Killed):
        world.metastore.add_partition(table, partition_of(table, "a"))
    with pytest.raises(Killed):
        world.metastore.partitions(table)
    assert ("dt=a" in world.metastore.catalog.partitions[table.full_name]) is changed


def test_an_injected_failure_comes_with_or_without_its_effect():
    files = FakeFiles()
    world = FakeWorld(FakeMetastore(files), files, "contract")
    table = world.add_table("events")
    for value, done in (("a", False), ("b", True)):
        world.metastore.fail_next("add_partition", MetastoreUnavailable("connection lost"), done=done)
        with pytest.raises(MetastoreUnavailable):
            world.metastore.add_partition(table, partition_of(table, value))
    assert [partition.name for partition in world.metastore.partitions(table)] == ["dt=b"]


def test_a_kill_between_a_backup_table_and_its_partitions_leaves_one_that_can_be_dropped():
    files = FakeFiles()
    world = FakeWorld(FakeMetastore(files), files, "contract")
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    files.die_after(1)
    with pytest.raises(Killed):
        make_backup(world, table, {"dt=a": place(world, 1)})
    files.revive()
    assert shown_by(world, backup_of(world)) == {}
    assert world.metastore.drop_backup_table(backup_of(world), MARKS)


# ---- the real one only


def test_comments_and_owner_come_along_to_a_backup_table(real):
    real.gateway.spark.sql(
        f"CREATE EXTERNAL TABLE {real.database}.events (id int COMMENT 'the key') COMMENT 'what happened' "
        f"PARTITIONED BY (dt string COMMENT 'its day') STORED AS PARQUET LOCATION '{real.root}/events'"
    )
    table = find(real, f"{real.database}.events")
    stored = real._stored(table, "")
    stored.setOwner("somebody")
    real.client.alter_table(table.database, table.name, stored)
    add_partitions(real, table, ["a"])
    made = real._stored(find(real, make_backup(real, table, {"dt=a": place(real, 1)})), "")
    comments = [column.getComment() for column in (*made.getSd().getCols(), *made.getPartitionKeys())]
    assert [*comments, made.getParameters()["comment"]] == ["the key", "its day", "what happened"]
    assert made.getOwner() == "somebody"


def test_many_places_of_a_backup_table_cost_as_many_gateway_calls_as_few(real):
    def calls_for(name: str, count: int) -> int:
        table = real.add_table(name)
        spec = " ".join(f"PARTITION (dt='{number:04d}')" for number in range(count))
        real.gateway.spark.sql(f"ALTER TABLE {table.full_name} ADD {spec}")
        lives = shown_by(real, table.full_name)
        before = real.gateway.calls
        backup = make_backup(real, table, lives, f"{real.database}.backup_of_{name}")
        real.metastore.point_backup_table(backup, MARKS, {one: f"{live}-moved" for one, live in lives.items()})
        real.metastore.trim_backup_table(backup, MARKS, list(lives)[1:])
        calls = real.gateway.calls - before
        assert len(shown_by(real, backup)) == 1
        return int(calls)

    assert calls_for("few", 2) == calls_for("many", 40)


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


@local_only
def test_every_character_is_escaped_as_hive_does(gateway):
    hive = gateway.jvm.org.apache.hadoop.hive.common.FileUtils
    text = "".join(map(chr, range(0x250))) + "日😀"
    assert quoting.escape(text) == str(hive.escapePathName(text))
    assert quoting.unescape(quoting.escape(text)) == str(hive.unescapePathName(hive.escapePathName(text)))


@local_only
@pytest.mark.parametrize("value", [*NASTY, quoting.HIVE_NULL, ""])
def test_a_partition_name_is_the_one_that_hive_makes(gateway, value):
    name = gateway.jvm.org.apache.hadoop.hive.common.FileUtils.makePartName(["DT", "ref"], [value, "x"])
    assert quoting.partition_name(["DT", "ref"], [value, "x"]) == str(name)


@local_only
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


class HugeTables(socketserver.BaseRequestHandler):
    """A metastore's server, in Thrift's binary protocol. Each of its tables has a text of two gigabytes, which follows in part."""

    NAMES = b"\x0f\x00\x00\x0b\x00\x00\x00\x01\x00\x00\x00\x02ok\x00"
    TABLE = b"\x0c\x00\x00\x0b\x00\x01\x7f\x00\x00\x00" + b"y" * 1000

    def handle(self) -> None:
        while True:
            asked = self.request.recv(65536)
            if not asked:
                return
            end = 8 + int.from_bytes(asked[4:8], "big")
            header = b"\x80\x01\x00\x02" + asked[4 : end + 4]
            one = {b"get_table": self.TABLE, b"get_table_req": b"\x0c\x00\x00" + self.TABLE}.get(asked[8:end], self.NAMES)
            self.request.sendall(header + one)


@local_only
def test_an_answer_that_takes_all_memory_is_not_read_on_as_the_answer_to_the_next_question(gateway):
    """Whoever may alter a table gives it properties after its definition was looked at; what follows may be about any other table."""
    elsewhere = Gateway(gateway.driver)
    elsewhere.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), HugeTables)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    elsewhere.hadoop_conf.set("hive.metastore.uris", f"thrift://127.0.0.1:{server.server_address[1]}")
    elsewhere.hadoop_conf.set("hive.metastore.client.socket.timeout", "10s")
    try:
        metastore = HiveMetastore(elsewhere)
        with pytest.raises(MetastoreRefused, match="larger than the driver has memory for"):
            metastore.drop_backup_table("sales.__bkp_events", MARKS)
        assert metastore.databases() == ("ok",)
    finally:
        server.shutdown()


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


# ---- the tables of the catalogue


MARK = {"hivekeeper.catalogue": "tables"}
CELLS = {"name": "string", "files": "bigint", "median": "double"}


def make_catalogue_table(world: Any, name: str, columns: Mapping[str, str] = CELLS) -> bool:
    made: bool = world.metastore.make_catalogue_table(catalogue_table(world, name, columns))
    return made


def catalogue_table(world: Any, name: str, columns: Mapping[str, str] = CELLS) -> CatalogueTable:
    return CatalogueTable(name, place(world, 0, "catalogue"), columns, "bucket", MARK)


def test_a_table_of_the_catalogue_is_external_and_nothing_deletes_its_files(world):
    name = f"{world.database}.metadata_tables"
    assert make_catalogue_table(world, name)
    assert make_catalogue_table(world, name, {**CELLS, "new": "string"})
    found = find(world, name)
    assert (found.kind, found.location) == ("EXTERNAL_TABLE", place(world, 0, "catalogue"))
    assert [(column.name, column.type) for column in found.columns] == [*CELLS.items(), ("new", "string")]
    assert [column.name for column in found.partition_columns] == ["bucket"]
    assert {**MARK, "EXTERNAL": "TRUE", "external.table.purge": "false", "discover.partitions": "false"}.items() <= found.parameters.items()


def test_a_table_of_the_catalogue_has_exactly_the_partitions_it_is_given(world):
    name = f"{world.database}.metadata_tables"
    make_catalogue_table(world, name)
    for places in ({"01": 1, "02": 2}, {"01": 1, "02": 3, "03": 4}, {"03": 4}, {}):
        wanted = {value: place(world, number) for value, number in places.items()}
        assert world.metastore.point_catalogue_table(catalogue_table(world, name), wanted)
        assert shown_by(world, name) == {f"bucket={value}": location for value, location in wanted.items()}


def test_a_table_of_somebody_else_is_not_touched(world):
    table = world.add_table("metadata_tables")
    add_partitions(world, table, ["1"])
    before = find(world, table.full_name)
    assert not make_catalogue_table(world, table.full_name)
    assert not world.metastore.make_catalogue_view(table.full_name, "SELECT 1 AS `one`", {"one": "bigint"}, MARK, ())
    assert not world.metastore.point_catalogue_table(catalogue_table(world, table.full_name), {})
    assert not world.metastore.point_catalogue_table(catalogue_table(world, f"{world.database}.gone"), {})
    assert find(world, table.full_name) == before
    assert list(shown_by(world, table.full_name)) == ["dt=1"]


@pytest.mark.parametrize("differs", ["location", "partition_column", "parameters"])
def test_a_table_with_the_mark_of_the_catalogue_that_differs_from_ours_is_not_touched(world, differs):
    name = f"{world.database}.metadata_tables"
    assert make_catalogue_table(world, name)
    before = find(world, name)
    other = {"location": place(world, 1, "catalogue"), "partition_column": "day", "parameters": {"hivekeeper.catalogue": "runs"}}
    wanted = replace(catalogue_table(world, name), **{differs: other[differs]})
    assert not world.metastore.make_catalogue_table(replace(wanted, columns={"new": "string"}))
    assert not world.metastore.point_catalogue_table(wanted, {"01": place(world, 1)})
    assert (find(world, name), shown_by(world, name)) == (before, {})


@pytest.mark.parametrize("change", ["owner", "purge", "kind"])
def test_a_table_of_the_catalogue_that_somebody_else_may_drop_with_its_files_is_not_touched(world, change):
    table = catalogue_table(world, f"{world.database}.metadata_tables")
    assert world.metastore.make_catalogue_table(table)
    world.hand_over(find(world, table.name), change)
    before = find(world, table.name)
    assert not world.metastore.make_catalogue_table(replace(table, columns={"new": "string"}))
    assert not world.metastore.point_catalogue_table(table, {"01": place(world, 1)})
    assert (find(world, table.name), shown_by(world, table.name)) == (before, {})
    if change == "owner":
        assert world.metastore.point_catalogue_table(replace(table, owners=("mallory",)), {"01": place(world, 1)})


def test_a_view_of_somebody_else_with_the_mark_of_the_catalogue_is_not_touched(world):
    name, mark = f"{world.database}.tables_now", {"hivekeeper.catalogue": "tables_now"}
    assert world.metastore.make_catalogue_view(name, "SELECT 1 AS `one`", {"one": "bigint"}, mark, ())
    world.hand_over(find(world, name), "owner")
    assert not world.metastore.make_catalogue_view(name, "SELECT 2 AS `one`", {"one": "bigint"}, mark, ())
    assert find(world, name).view_text == "SELECT 1 AS `one`"
    assert world.metastore.make_catalogue_view(name, "SELECT 2 AS `one`", {"one": "bigint"}, mark, ("mallory",))


def test_a_view_of_the_catalogue_has_its_newest_text(world):
    name = f"{world.database}.tables_now"
    for text in ("SELECT 1 AS `one`", "SELECT 1 AS `one`", "SELECT 2 AS `one`"):
        assert world.metastore.make_catalogue_view(name, text, {"one": "bigint"}, {"hivekeeper.catalogue": "tables_now"}, ())
        found = find(world, name)
        assert (found.kind, found.view_text, [column.name for column in found.columns]) == ("VIRTUAL_VIEW", text, ["one"])


def test_a_database_is_made_once(world):
    name = f"{world.database}_made"
    for _ in range(2):
        world.metastore.make_database(name, "a comment")
    assert name in world.metastore.databases()
    if isinstance(world, RealWorld):
        world.databases.append(name)
